//! Slots of r + 3 bits: places of their remainder and metadata bits.
//!
//! ```text
//!  bytes: slot i is bytes c i .. c (i + 1), c = ceil((r + 3) / 8)       (the paper's section VI: `char` containers)
//!  +-------------+---+---+---+
//!  | remainder   | S | C | O |    O is_occupied: some stored fingerprint has this slot's index as its quotient
//!  +-------------+---+---+---+    C is_continuation: the remainder here has the same quotient as the one before
//!                  2   1   0      S is_shifted: the remainder here is not in its canonical slot
//!
//!  packed: blocks of 64 slots, r + 3 words of 64 bits
//!  +------------+----------------+-----------+--------------------------------+
//!  | 64 times O | 64 times C     | 64 times S| 64 remainders, r bits each     |
//!  +------------+----------------+-----------+--------------------------------+
//! ```
//!
//! A slot is empty if its three metadata bits are zero; its remainder is zero then, too. In both forms 64 slots take a
//! whole number of words, so the blocks of a filter can be built independently.
//!
//! Departure from the paper: the packed form. It has no unused bits for any width of remainders, and walks go by whole
//! words of metadata instead of slot by slot.

mod append;

pub use append::Appender;

use crate::bits::{ReadWords, WriteWords, lowest, read_field, select, write_field};

/// Least number of slots that share words with no others.
pub const BLOCK_SLOTS: u64 = 64;

/// Metadata bit: some stored fingerprint has this slot's index as its quotient.
pub const OCCUPIED: u64 = 1;
/// Metadata bit: the remainder has the same quotient as the one in the slot before.
pub const CONTINUATION: u64 = 2;
/// Metadata bit: the remainder is not in its canonical slot.
pub const SHIFTED: u64 = 4;

/// Memory layout of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Container {
    /// A whole number of bytes per slot, as in the paper.
    Bytes = 0,
    /// Exactly r + 3 bits per slot, in blocks of 64 slots.
    Packed = 1,
}

impl Container {
    /// Returns the container with this number, as stored in files.
    pub const fn from_index(index: u64) -> Option<Container> {
        match index {
            0 => Some(Container::Bytes),
            1 => Some(Container::Packed),
            _ => None,
        }
    }

    /// Returns the words of a block of [`BLOCK_SLOTS`] slots with remainders of this width.
    #[inline]
    pub const fn block_words(self, remainder_bits: u32) -> u64 {
        match self {
            Container::Bytes => 8 * bytes_of_slot(remainder_bits) as u64,
            Container::Packed => remainder_bits as u64 + 3,
        }
    }
}

/// Returns the bytes of a slot in [`Container::Bytes`].
#[inline]
pub const fn bytes_of_slot(remainder_bits: u32) -> u32 {
    (remainder_bits + 3).div_ceil(8)
}

/// Gathers the lowest bits of the eight bytes of a word.
#[inline]
const fn low_bits_of_bytes(word: u64) -> u64 {
    // The bit of byte `i`, at `8 i`, moves to bit `56 + i`; no two products meet, so nothing carries.
    (word & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// Slots for reading, and walks through them.
///
/// Walks expect the invariants of a filter. In damaged memory they end at the first or the last slot. The last slot of
/// a filter is always empty, so no walk through a sound filter goes past it.
pub trait Slots {
    /// Returns the number of slots, the overflow region included; a multiple of [`BLOCK_SLOTS`].
    fn len(&self) -> u64;
    /// Returns the metadata bits of a slot.
    fn metadata(&self, slot: u64) -> u64;
    /// Returns the remainder in a slot; zero if it is empty.
    fn remainder(&self, slot: u64) -> u64;

    /// Returns the metadata bits of a block of [`BLOCK_SLOTS`] slots, one bit per slot: `is_occupied`,
    /// `is_continuation`, `is_shifted`.
    fn metadata_words(&self, block: u64) -> [u64; 3];

    /// Whether there are no slots.
    #[inline]
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether some stored fingerprint has this quotient.
    #[inline]
    fn is_occupied(&self, quotient: u64) -> bool {
        self.metadata(quotient) & OCCUPIED != 0
    }

    /// Whether the remainder in this slot continues the run of the slot before.
    #[inline]
    fn is_continuation(&self, slot: u64) -> bool {
        self.metadata(slot) & CONTINUATION != 0
    }

    /// Returns the start of the cluster of a slot: the nearest unshifted slot, at `slot` or before.
    #[inline]
    fn cluster_start(&self, mut slot: u64) -> u64 {
        while slot > 0 && self.metadata(slot) & SHIFTED != 0 {
            slot -= 1;
        }
        slot
    }

    /// Returns the start of the supercluster of a slot: the slot after the nearest empty one before `slot`, or the
    /// first of all. An empty slot belongs to the supercluster that it ends.
    #[inline]
    fn supercluster_start(&self, mut slot: u64) -> u64 {
        while slot > 0 && self.metadata(slot - 1) != 0 {
            slot -= 1;
        }
        slot
    }

    /// Counts the quotients in `from..=to` with a run, without `from`.
    #[inline]
    fn runs_between(&self, from: u64, to: u64) -> u64 {
        let mut runs = 0;
        let mut quotient = from;
        while quotient < to {
            quotient += 1;
            runs += self.metadata(quotient) & OCCUPIED;
        }
        runs
    }

    /// Returns the first slot of the run that comes `runs` runs after the one that starts at `slot`; the slot after the
    /// cluster if that has exactly that many.
    #[inline]
    fn skip_runs(&self, mut slot: u64, runs: u64) -> u64 {
        for _ in 0..runs {
            slot = self.run_end(slot);
        }
        slot
    }

    /// Returns the first slot after `slot` that does not continue its run.
    #[inline]
    fn run_end(&self, slot: u64) -> u64 {
        let mut end = slot + 1;
        while end < self.len() && self.metadata(end) & CONTINUATION != 0 {
            end += 1;
        }
        end
    }

    /// Returns the first empty slot from `slot` on; the number of slots if there is none.
    #[inline]
    fn empty_from(&self, mut slot: u64) -> u64 {
        while slot < self.len() && self.metadata(slot) != 0 {
            slot += 1;
        }
        slot
    }

    /// Returns the first slot from `slot` on that is not empty; the number of slots if there is none.
    #[inline]
    fn used_from(&self, mut slot: u64) -> u64 {
        while slot < self.len() && self.metadata(slot) == 0 {
            slot += 1;
        }
        slot
    }

    /// Returns the first quotient from `quotient` on that has a run; the number of slots if there is none.
    #[inline]
    fn occupied_from(&self, mut quotient: u64) -> u64 {
        while quotient < self.len() && self.metadata(quotient) & OCCUPIED == 0 {
            quotient += 1;
        }
        quotient
    }
}

/// Slots for writing.
pub trait SlotsMut: Slots {
    /// Sets the bits that travel with an item, its remainder and [`CONTINUATION`] and [`SHIFTED`]; `is_occupied`
    /// belongs to the slot and stays.
    fn set_item(&mut self, slot: u64, metadata: u64, remainder: u64);
    /// Sets whether a quotient has a run.
    fn set_occupied(&mut self, quotient: u64, occupied: bool);
}

/// Slots of [`Container::Bytes`].
#[derive(Clone, Copy, Debug)]
pub struct ByteSlots<W> {
    words: W,
    len: u64,
    /// Bits of a slot, a multiple of 8.
    bits: u32,
}

impl<W: ReadWords> ByteSlots<W> {
    /// Makes slots of `words`, whole blocks.
    #[inline]
    pub const fn new(words: W, len: u64, remainder_bits: u32) -> ByteSlots<W> {
        ByteSlots { words, len, bits: 8 * bytes_of_slot(remainder_bits) }
    }
}

impl<W: ReadWords> Slots for ByteSlots<W> {
    #[inline]
    fn len(&self) -> u64 {
        self.len
    }

    #[inline]
    fn metadata(&self, slot: u64) -> u64 {
        let at = slot * self.bits as u64;
        // A slot begins with a byte, so these bits are in one word.
        self.words.word(at / 64) >> (at % 64) & 7
    }

    #[inline]
    fn remainder(&self, slot: u64) -> u64 {
        read_field(&self.words, slot * self.bits as u64, self.bits) >> 3
    }

    #[inline(always)]
    fn metadata_words(&self, block: u64) -> [u64; 3] {
        let (mut occupied, mut continuation, mut shifted) = (0, 0, 0);
        if self.bits == 8 {
            for i in 0..8 {
                let slots = self.words.word(block * 8 + i);
                occupied |= low_bits_of_bytes(slots) << (8 * i);
                continuation |= low_bits_of_bytes(slots >> 1) << (8 * i);
                shifted |= low_bits_of_bytes(slots >> 2) << (8 * i);
            }
        } else {
            // The loop goes from the last slot on. It is bounded so that no compiler makes 64 loads with 64 registers
            // of it.
            let first = block * BLOCK_SLOTS * self.bits as u64;
            let mut at = first + BLOCK_SLOTS * self.bits as u64;
            while at > first {
                at -= self.bits as u64;
                let bits = self.words.word(at / 64) >> (at % 64);
                occupied = occupied << 1 | bits & 1;
                continuation = continuation << 1 | bits >> 1 & 1;
                shifted = shifted << 1 | bits >> 2 & 1;
            }
        }
        [occupied, continuation, shifted]
    }
}

impl<W: WriteWords> SlotsMut for ByteSlots<W> {
    #[inline]
    fn set_item(&mut self, slot: u64, metadata: u64, remainder: u64) {
        let at = slot * self.bits as u64;
        write_field(&mut self.words, at + 1, self.bits - 1, remainder << 2 | metadata >> 1);
    }

    #[inline]
    fn set_occupied(&mut self, quotient: u64, occupied: bool) {
        let at = quotient * self.bits as u64;
        self.words.replace(at / 64, OCCUPIED << (at % 64), (occupied as u64) << (at % 64));
    }
}

/// Slots of [`Container::Packed`].
#[derive(Clone, Copy, Debug)]
pub struct PackedSlots<W> {
    words: W,
    len: u64,
    remainder_bits: u32,
}

/// Metadata words of a block, by their index in it.
const OCCUPIEDS: u64 = 0;
const CONTINUATIONS: u64 = 1;
const SHIFTEDS: u64 = 2;

impl<W: ReadWords> PackedSlots<W> {
    /// Makes slots of `words`, whole blocks.
    #[inline]
    pub const fn new(words: W, len: u64, remainder_bits: u32) -> PackedSlots<W> {
        PackedSlots { words, len, remainder_bits }
    }

    #[inline]
    fn metadata_word(&self, block: u64, which: u64) -> u64 {
        self.words.word(block * (self.remainder_bits as u64 + 3) + which)
    }

    #[inline]
    fn used(&self, block: u64) -> u64 {
        self.metadata_word(block, OCCUPIEDS) | self.metadata_word(block, SHIFTEDS)
    }

    #[inline]
    fn remainder_at(&self, slot: u64) -> u64 {
        let block = slot / 64 * (self.remainder_bits as u64 + 3) + 3;
        64 * block + slot % 64 * self.remainder_bits as u64
    }

    /// Returns the first slot from `slot` on with a bit in `word(block)`; the number of slots if there is none.
    #[inline]
    fn first_from(&self, slot: u64, word: impl Fn(u64) -> u64) -> u64 {
        let mut block = slot / 64;
        if slot >= self.len {
            return self.len;
        }
        let mut bits = word(block) & (!0 << (slot % 64));
        while bits == 0 {
            block += 1;
            if block * 64 >= self.len {
                return self.len;
            }
            bits = word(block);
        }
        block * 64 + bits.trailing_zeros() as u64
    }
}

impl<W: ReadWords> Slots for PackedSlots<W> {
    #[inline]
    fn len(&self) -> u64 {
        self.len
    }

    #[inline]
    fn metadata(&self, slot: u64) -> u64 {
        let bit = |which| self.metadata_word(slot / 64, which) >> (slot % 64) & 1;
        bit(OCCUPIEDS) | bit(CONTINUATIONS) << 1 | bit(SHIFTEDS) << 2
    }

    #[inline]
    fn remainder(&self, slot: u64) -> u64 {
        read_field(&self.words, self.remainder_at(slot), self.remainder_bits)
    }

    #[inline]
    fn is_occupied(&self, quotient: u64) -> bool {
        self.metadata_word(quotient / 64, OCCUPIEDS) >> (quotient % 64) & 1 != 0
    }

    #[inline]
    fn is_continuation(&self, slot: u64) -> bool {
        self.metadata_word(slot / 64, CONTINUATIONS) >> (slot % 64) & 1 != 0
    }

    #[inline(always)]
    fn metadata_words(&self, block: u64) -> [u64; 3] {
        let word = |which| self.metadata_word(block, which);
        [word(OCCUPIEDS), word(CONTINUATIONS), word(SHIFTEDS)]
    }

    #[inline]
    fn supercluster_start(&self, slot: u64) -> u64 {
        if slot == 0 {
            return 0;
        }
        let mut block = (slot - 1) / 64;
        let mut empty = !self.used(block) & lowest((slot - 1) as u32 % 64 + 1);
        while empty == 0 && block > 0 {
            block -= 1;
            empty = !self.used(block);
        }
        if empty == 0 { 0 } else { block * 64 + 64 - empty.leading_zeros() as u64 }
    }

    #[inline]
    fn cluster_start(&self, slot: u64) -> u64 {
        let mut block = slot / 64;
        let mut unshifted = !self.metadata_word(block, SHIFTEDS) & lowest(slot as u32 % 64 + 1);
        while unshifted == 0 && block > 0 {
            block -= 1;
            unshifted = !self.metadata_word(block, SHIFTEDS);
        }
        if unshifted == 0 { 0 } else { block * 64 + 63 - unshifted.leading_zeros() as u64 }
    }

    #[inline]
    fn runs_between(&self, from: u64, to: u64) -> u64 {
        let (mut block, last) = (from / 64, to / 64);
        let mut bits = self.metadata_word(block, OCCUPIEDS) & !lowest(from as u32 % 64 + 1);
        let mut runs = 0;
        while block < last {
            runs += bits.count_ones() as u64;
            block += 1;
            bits = self.metadata_word(block, OCCUPIEDS);
        }
        runs + (bits & lowest(to as u32 % 64 + 1)).count_ones() as u64
    }

    #[inline]
    fn skip_runs(&self, slot: u64, runs: u64) -> u64 {
        if runs == 0 {
            return slot;
        }
        let mut rank = runs - 1;
        let mut block = slot / 64;
        let mut starts = !self.metadata_word(block, CONTINUATIONS) & !lowest(slot as u32 % 64 + 1);
        loop {
            let count = starts.count_ones() as u64;
            if rank < count {
                return block * 64 + select(starts, rank as u32) as u64;
            }
            rank -= count;
            block += 1;
            if block * 64 >= self.len {
                return self.len;
            }
            starts = !self.metadata_word(block, CONTINUATIONS);
        }
    }

    #[inline]
    fn run_end(&self, slot: u64) -> u64 {
        self.first_from(slot + 1, |block| !self.metadata_word(block, CONTINUATIONS))
    }

    #[inline]
    fn empty_from(&self, slot: u64) -> u64 {
        self.first_from(slot, |block| !self.used(block))
    }

    #[inline]
    fn used_from(&self, slot: u64) -> u64 {
        self.first_from(slot, |block| self.used(block))
    }

    #[inline]
    fn occupied_from(&self, quotient: u64) -> u64 {
        self.first_from(quotient, |block| self.metadata_word(block, OCCUPIEDS))
    }
}

impl<W: WriteWords> SlotsMut for PackedSlots<W> {
    #[inline]
    fn set_item(&mut self, slot: u64, metadata: u64, remainder: u64) {
        let first = slot / 64 * (self.remainder_bits as u64 + 3);
        for which in [CONTINUATIONS, SHIFTEDS] {
            self.words.replace(first + which, 1 << (slot % 64), (metadata >> which & 1) << (slot % 64));
        }
        let at = self.remainder_at(slot);
        write_field(&mut self.words, at, self.remainder_bits, remainder);
    }

    #[inline]
    fn set_occupied(&mut self, quotient: u64, occupied: bool) {
        let first = quotient / 64 * (self.remainder_bits as u64 + 3);
        self.words.replace(first + OCCUPIEDS, 1 << (quotient % 64), (occupied as u64) << (quotient % 64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::finalise;

    #[test]
    fn superclusters_of_both_containers_begin_alike() {
        for seed in 0..100 {
            let used = finalise(seed) | finalise(!seed);
            let (mut bytes, mut packed) = ([0; 8], [0; 8]);
            packed[OCCUPIEDS as usize] = used;
            (0..64).for_each(|slot| bytes[slot / 8] |= (used >> slot & 1) << (8 * (slot % 8)));
            let (bytes, packed) = (ByteSlots::new(&bytes[..], 64, 5), PackedSlots::new(&packed[..], 64, 5));
            for slot in 0..64 {
                let begin = 64 - u64::from((!used & lowest(slot as u32)).leading_zeros());
                assert_eq!([bytes.supercluster_start(slot), packed.supercluster_start(slot)], [begin; 2]);
            }
        }
    }
}

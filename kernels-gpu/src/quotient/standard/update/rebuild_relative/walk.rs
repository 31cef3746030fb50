//! Walk through the fingerprints of a block of quotients, in a filter that is not written.

use warpset_core::quotient::slots::{BLOCK_SLOTS, ByteSlots, Container, PackedSlots, Slots, bytes_of_slot};
use warpset_core::quotient::standard as core;
use warpset_simt::Global;

use crate::quotient::memory::{Fingerprint, ReadOnly};

/// Fingerprint relative to its block.
pub(super) trait Near: Fingerprint {
    /// Mark after the last one.
    const END: Self;
    fn join(quotient: u32, remainder: Self, bits: u32) -> Self;
    fn quotient(self, bits: u32) -> u32;
    fn remainder(self, bits: u32) -> Self;
    /// Returns the difference to `base`.
    fn minus(self, base: Self) -> Self;
    /// Reads `width` bits from bit `at` of word `index` on; no word without any of them is read.
    ///
    /// # Safety
    /// The words with these bits are valid for reads.
    unsafe fn field(words: Global<u32>, index: u32, at: u32, width: u32) -> Self;
}

macro_rules! near {
    ($($word:ty)*) => {$(
        impl Near for $word {
            const END: $word = <$word>::MAX;
            #[inline(always)]
            fn join(quotient: u32, remainder: $word, bits: u32) -> $word {
                (quotient as $word) << bits | remainder
            }
            #[inline(always)]
            fn quotient(self, bits: u32) -> u32 {
                (self >> bits) as u32
            }
            #[inline(always)]
            fn remainder(self, bits: u32) -> $word {
                self & ((1 << bits) - 1)
            }
            #[inline(always)]
            fn minus(self, base: $word) -> $word {
                self.wrapping_sub(base)
            }
            #[inline(always)]
            unsafe fn field(words: Global<u32>, index: u32, at: u32, width: u32) -> $word {
                // SAFETY: the contract is the same.
                unsafe {
                    let mut value = (words.read_nc(index as usize) >> at) as $word;
                    if at + width > 32 {
                        value |= (words.read_nc(index as usize + 1) as $word) << (32 - at);
                    }
                    if <$word>::BITS > 32 && at + width > 64 {
                        value |= (words.read_nc(index as usize + 2) as $word) << (64 - at);
                    }
                    value & (<$word>::MAX >> (<$word>::BITS - width))
                }
            }
        }
    )*};
}
near! { u32 u64 }

/// Returns the first word and bit of a slot of `bytes` whole bytes, in 32-bit words after its block's first. Four slots
/// take `bytes` words.
#[cfg(feature = "bodies")]
#[inline(always)]
pub(super) fn place_of_bytes(slot: u32, bytes: u32) -> (u32, u32) {
    let byte = slot % 4 * bytes;
    (slot / 4 * bytes + byte / 4, byte % 4 * 8)
}

/// Walk through the fingerprints of a block.
#[cfg(feature = "bodies")]
pub(super) struct Ours<const PACKED: bool> {
    /// Words from the block's first on.
    words: Global<u64>,
    pub(super) remainder_bits: u32,
    /// Quotients with runs that are not finished.
    pub(super) occupied: u64,
    /// Slot, relative to the block.
    at: u32,
    /// Packed: `is_continuation` of the block of slots with `at`.
    continuations: u64,
}

#[cfg(feature = "bodies")]
impl<const PACKED: bool> Ours<PACKED> {
    /// Returns the first slot of the block's fingerprints, relative to it; zero if there are none.
    ///
    /// # Safety
    /// - `words` are a sound filter of `slots` slots in this container.
    /// - The block has quotients.
    #[inline(always)]
    pub(super) unsafe fn start(words: Global<u64>, slots: u64, remainder_bits: u32, block: u64) -> u32 {
        let words = ReadOnly(words);
        if PACKED {
            Self::start_in(PackedSlots::new(words, slots, remainder_bits), block)
        } else {
            Self::start_in(ByteSlots::new(words, slots, remainder_bits), block)
        }
    }

    #[inline(always)]
    fn start_in<S: Slots>(slots: S, block: u64) -> u32 {
        let [occupied, ..] = slots.metadata_words(block);
        if occupied == 0 {
            return 0;
        }
        let quotient = block * BLOCK_SLOTS + occupied.trailing_zeros() as u64;
        (core::find_run_start(&slots, quotient) - block * BLOCK_SLOTS) as u32
    }

    /// Starts a walk at slot `at`.
    ///
    /// # Safety
    /// The contract of [`start`](Self::start), which `at` is.
    #[inline(always)]
    pub(super) unsafe fn new(words: Global<u64>, slots: u64, remainder_bits: u32, block: u64, at: u32) -> Self {
        let container = if PACKED { Container::Packed } else { Container::Bytes };
        let [occupied, ..] = if PACKED {
            PackedSlots::new(ReadOnly(words), slots, remainder_bits).metadata_words(block)
        } else {
            ByteSlots::new(ReadOnly(words), slots, remainder_bits).metadata_words(block)
        };
        let words = words.at((block * container.block_words(remainder_bits)) as usize);
        let mut ours = Ours { words, remainder_bits, occupied, at, continuations: 0 };
        if PACKED && occupied != 0 {
            // SAFETY: the slot is below the last.
            ours.continuations = unsafe { ours.continuations() };
        }
        ours
    }

    /// Returns `is_continuation` of the packed block of slots with `at`.
    ///
    /// # Safety
    /// The slot is in the filter.
    #[inline(always)]
    unsafe fn continuations(&self) -> u64 {
        let index = self.at / 64 * (self.remainder_bits + 3) + 1;
        // SAFETY: the contract is the same.
        unsafe { self.words.read_nc(index as usize) }
    }

    /// Returns the fingerprint, or the end.
    ///
    /// # Safety
    /// The contract of [`start`](Self::start).
    #[inline(always)]
    pub(super) unsafe fn get<F: Near>(&self) -> F {
        if self.occupied == 0 {
            return F::END;
        }
        let bits = self.remainder_bits;
        let (index, shift) = if PACKED {
            let bit = self.at % 64 * bits;
            (2 * (self.at / 64 * (bits + 3) + 3) + bit / 32, bit % 32)
        } else {
            let (index, shift) = place_of_bytes(self.at, bytes_of_slot(bits));
            (index, shift + 3) // after the metadata
        };
        // SAFETY: the slot is below the last; the remainder lies in these words of it.
        let remainder = unsafe { F::field(self.words.cast(), index, shift, bits) };
        F::join(self.occupied.trailing_zeros(), remainder, bits)
    }

    /// Moves to the next fingerprint.
    ///
    /// # Safety
    /// - The contract of [`start`](Self::start).
    /// - The walk is not at the end.
    #[inline(always)]
    pub(super) unsafe fn advance(&mut self) {
        self.at += 1;
        // SAFETY: the last slot of all is empty, so there is a slot after this one.
        let continues = unsafe {
            if PACKED {
                if self.at % 64 == 0 {
                    self.continuations = self.continuations();
                }
                self.continuations >> (self.at % 64) & 1 != 0
            } else {
                self.is_continuation_in_bytes()
            }
        };
        if !continues {
            self.leave_run();
        }
    }

    /// Moves from the slot after a run to the next run: it is there, unless it is in its canonical slot after a gap, in
    /// this same block.
    #[inline(always)]
    fn leave_run(&mut self) {
        self.occupied &= self.occupied - 1;
        if self.occupied != 0 {
            self.at = self.at.max(self.occupied.trailing_zeros());
        }
    }

    /// Moves from the start of a run to the next run. Returns the length of the run.
    ///
    /// # Safety
    /// The contract of [`advance`](Self::advance).
    #[inline(always)]
    pub(super) unsafe fn skip_run(&mut self) -> u32 {
        let first = self.at;
        loop {
            if PACKED {
                let starts = !self.continuations >> (self.at % 64) >> 1;
                if starts != 0 {
                    self.at += 1 + starts.trailing_zeros();
                    break;
                }
                self.at = (self.at | 63) + 1;
                // SAFETY: the last slot of all is empty, so there is a slot after this one.
                self.continuations = unsafe { self.continuations() };
                if self.continuations & 1 == 0 {
                    break;
                }
            } else {
                self.at += 1;
                // SAFETY: as above.
                if !unsafe { self.is_continuation_in_bytes() } {
                    break;
                }
            }
        }
        let length = self.at - first;
        self.leave_run();
        length
    }

    /// Whether the slot, of whole bytes, continues a run.
    ///
    /// # Safety
    /// The slot is in the filter.
    #[inline(always)]
    unsafe fn is_continuation_in_bytes(&self) -> bool {
        let (index, shift) = place_of_bytes(self.at, bytes_of_slot(self.remainder_bits));
        // SAFETY: the contract is the same.
        unsafe { self.words.cast::<u32>().read_nc(index as usize) >> (shift + 1) & 1 != 0 }
    }
}

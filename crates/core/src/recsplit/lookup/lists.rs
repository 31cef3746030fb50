//! Lookups in the two interleaved Elias-Fano lists: the positions of each bucket's keys and tree.
//!
//! ```text
//! lower bits   phi(0) chi(0) phi(1) chi(1) …            low_keys + low_bits bits per entry
//! upper bits   …0001 01 1 001…   for phi, then for chi   one i at (value >> low) + i
//! jump array   [u64 phi, u64 chi, (u16 phi, u16 chi) × 2^14 / stride] for every 2^14 entries
//! ```

use super::super::elias_fano::{JUMP_BLOCK, ListValues};
use super::words::Words;
use crate::bits::Select;

/// Entry of the lists for one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Keys in buckets before this one.
    pub keys_before: u64,
    /// Keys in this bucket.
    pub keys: u64,
    /// First bit of the tree.
    pub bits_before: u64,
}

/// Parameters of the entries, and the positions of the lists' parts within the words of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Lists {
    /// Parameters of the entries.
    pub values: ListValues,
    /// First bit of the lower bits.
    pub lower: u64,
    /// First bit of the upper bits of keys.
    pub upper_keys: u64,
    /// First bit of the upper bits of tree positions.
    pub upper_bits: u64,
    /// First word of the jump array.
    pub jumps: u64,
    /// Words of a full block of the jump array.
    pub block_words: u64,
    /// Base-2 logarithm of the distance between sampled positions in the jump array.
    pub log_stride: u32,
    /// Padding to whole words.
    pub unused: u32,
}

/// Start of a lookup in the upper bits: positions of ones of both lists, with `rank` ones between them and the bucket's
/// own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Jump {
    /// In the upper bits of keys.
    pub phi: u64,
    /// In the upper bits of tree positions.
    pub chi: u64,
    /// Number of ones between.
    pub rank: u32,
}

impl Lists {
    /// Returns an entry's place in the jump array: first word of the block, index of the 16-bit pair.
    #[inline(always)]
    pub fn jump_place(&self, index: u64) -> (u64, u64) {
        let block = self.jumps.wrapping_add((index / JUMP_BLOCK).wrapping_mul(self.block_words));
        (block, (index % JUMP_BLOCK) >> self.log_stride)
    }

    /// Reads the jump array for `bucket`.
    #[inline(always)]
    pub fn jump_to(&self, words: impl Words, bucket: u64) -> Jump {
        let (block, pair) = self.jump_place(bucket);
        let pair_word = words.word(block.wrapping_add(2 + pair / 2)) >> (32 * (pair % 2));
        Jump {
            phi: self.upper_keys.wrapping_add(words.word(block)).wrapping_add(pair_word & 0xffff),
            chi: self.upper_bits.wrapping_add(words.word(block.wrapping_add(1))).wrapping_add(pair_word >> 16 & 0xffff),
            rank: bucket as u32 & ((1 << self.log_stride) - 1),
        }
    }

    /// Returns the entry of `bucket`, below the number of buckets.
    #[inline(always)]
    pub fn get(&self, words: impl Words, bucket: u64, jump: Jump, select: impl Select) -> Entry {
        let ListValues { least_keys, low_keys, low_bits, .. } = self.values;
        let width = low_keys + low_bits;
        let at = self.lower + bucket * u64::from(width);
        let (low_phi, low_chi, next_low_phi) = if width + low_keys <= 57 {
            let low = words.bits_from(at);
            let keys = (1 << low_keys) - 1;
            (low & keys, low >> low_keys & ((1 << low_bits) - 1), low >> width & keys)
        } else {
            (
                words.field(at, low_keys),
                words.field(at + u64::from(low_keys), low_bits),
                words.field(at + u64::from(width), low_keys),
            )
        };
        let (phi_at, next_at) = two_ones(words, jump.phi, jump.rank, self.log_stride, select);
        let (chi_at, _) = two_ones(words, jump.chi, jump.rank, self.log_stride, select);

        let phi = (phi_at.wrapping_sub(self.upper_keys).wrapping_sub(bucket)) << low_keys | low_phi;
        let more = next_at.wrapping_sub(phi_at).wrapping_sub(1) << low_keys;
        let chi = (chi_at.wrapping_sub(self.upper_bits).wrapping_sub(bucket)) << low_bits | low_chi;
        let keys_before = phi.wrapping_add(bucket.wrapping_mul(least_keys));
        Entry {
            keys_before,
            keys: more.wrapping_add(next_low_phi).wrapping_sub(low_phi).wrapping_add(least_keys),
            bits_before: chi.wrapping_add(self.values.line(keys_before, bucket)),
        }
    }
}

/// Returns the positions of the one with `rank` ones between it and position `from`, and of the next one; positions at
/// the end if there are none. Ranks are below `1 << log_stride`.
#[inline(always)]
fn two_ones(words: impl Words, from: u64, rank: u32, log_stride: u32, select: impl Select) -> (u64, u64) {
    if log_stride <= 5 {
        let (mut bits, mut rank, mut from) = (words.bits_from(from), rank, from);
        if log_stride == 5 {
            // Selects within the second half of the window if the one is not in the first, without an unpredictable
            // branch.
            let before = (bits as u32).count_ones();
            let beyond = rank >= before;
            let further = words.bits_from(from.wrapping_add(32));
            bits = if beyond { further } else { bits };
            from = from.wrapping_add(if beyond { 32 } else { 0 });
            rank -= if beyond { before } else { 0 };
        }
        let both = select.pair(bits, rank);
        let second = both & both.wrapping_sub(1);
        if second != 0 {
            return (
                from.wrapping_add(u64::from(both.trailing_zeros())),
                from.wrapping_add(u64::from(second.trailing_zeros())),
            );
        }
    }
    far_two_ones(words, from, rank, select)
}

/// Computes [`two_ones`] at any distance.
#[inline(always)]
fn far_two_ones(words: impl Words, from: u64, rank: u32, select: impl Select) -> (u64, u64) {
    let first = words.scan::<6>(from, rank, select);
    let after = first.wrapping_add(1);
    let next = words.bits_from(after);
    let next = if next != 0 {
        after.wrapping_add(u64::from(next.trailing_zeros()))
    } else {
        words.scan::<6>(after, 0, select)
    };
    (first, next)
}

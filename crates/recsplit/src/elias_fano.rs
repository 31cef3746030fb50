//! Double Elias-Fano: where each bucket's keys and its tree begin.
//!
//! Source: section 4.5, construction as in 5.9. Departures:
//! - Tree positions are taken relative to a line in both the number of keys and the number of buckets before. The thesis
//!   takes the average of bits per key and then the least difference; here the line is the one below all buckets that is
//!   highest for a bucket of average size (an edge of the lower convex hull of keys and bits), which is what makes the
//!   differences small: 0.02 to 0.1 bits per key at 5 to 50 keys per bucket.
//! - Positions of every 256th one become every 4th to 128th one, by bucket size: with large buckets a denser jump array
//!   costs nothing and saves the query its linear search.
//! - Construction (`encode.rs`) takes stretches of buckets in parallel, which write to their places. The jump array needs no
//!   selection: the position of a one is known when it is written.
//!
//! ```text
//! lower bits   phi(0) chi(0) phi(1) chi(1) …            low_phi + low_chi bits per entry
//! upper bits   …0001 01 1 001…   for phi, then for chi   one i at (value >> low) + i
//! jump array   [u64 phi, u64 chi, (u16 phi, u16 chi) × 2^14 / stride] for every 2^14 entries
//! ```

#[cfg(target_arch = "x86_64")]
mod batch;
mod encode;

pub(crate) use encode::{Least, Prefixes, Space, encode_stretch, layout, stretches};

use crate::windows::{bits_from, prefetch, scan};
use warpset_core::bits::{Select, field, word};
use warpset_core::recsplit::elias_fano::{JUMP_BLOCK as BLOCK, ListValues, POINT};

/// Base-2 logarithms of strides.
pub(crate) const LOG_STRIDES: std::ops::RangeInclusive<u32> = 2..=7;

/// Everything but the bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Buckets; there is one entry more.
    pub buckets: u64,
    /// Bits of the line for each key, times 2^16.
    pub key_slope: i64,
    /// Bits of the line for each bucket, times 2^16.
    pub bucket_slope: i64,
    /// The least number of keys in a bucket.
    pub least_keys: u64,
    pub low_keys: u32,
    pub low_bits: u32,
    /// Base-2 logarithm of the distance of positions in the jump array.
    pub log_stride: u32,
    /// Words of the upper bits.
    pub upper_keys_words: u64,
    pub upper_bits_words: u64,
}

impl Layout {
    /// Words of the lower bits.
    pub(crate) fn lower_words(&self) -> u64 {
        ((self.buckets + 1) * u64::from(self.low_keys + self.low_bits)).div_ceil(64)
    }

    /// Words of a full block of the jump array.
    pub(crate) fn block_words(&self) -> u64 {
        2 + (BLOCK >> self.log_stride) / 2
    }

    /// Words of the jump array.
    pub(crate) fn jump_words(&self) -> u64 {
        let entries = self.buckets + 1;
        let rest = entries % BLOCK;
        let rest_words = if rest == 0 { 0 } else { 2 + rest.div_ceil(1 << self.log_stride).div_ceil(2) };
        entries / BLOCK * self.block_words() + rest_words
    }

    /// Where the upper bits of keys, those of tree positions and the jump array begin, in words after the lower bits' first.
    pub(crate) fn parts(&self) -> [u64; 3] {
        let upper_keys = self.lower_words();
        let upper_bits = upper_keys + self.upper_keys_words;
        [upper_keys, upper_bits, upper_bits + self.upper_bits_words]
    }

    /// Words of all parts.
    pub(crate) fn words(&self) -> u64 {
        self.lower_words() + self.upper_keys_words + self.upper_bits_words + self.jump_words()
    }

    /// What the entries are computed with.
    #[inline(always)]
    pub(crate) fn list_values(&self) -> ListValues {
        ListValues {
            key_slope: self.key_slope,
            bucket_slope: self.bucket_slope,
            least_keys: self.least_keys,
            low_keys: self.low_keys,
            low_bits: self.low_bits,
        }
    }

    /// The line's position of the tree that begins after `keys` keys in `bucket` buckets.
    #[inline(always)]
    fn line(&self, keys: u64, bucket: u64) -> u64 {
        self.list_values().line(keys, bucket)
    }

    /// What the lists hold for entry `index`.
    #[inline(always)]
    fn values(&self, index: u64, sums: (u64, u64)) -> [u64; 2] {
        self.list_values().values(index, sums)
    }

    /// Where the ones of an entry with these values are in the upper bits.
    #[inline(always)]
    fn ones(&self, index: u64, values: [u64; 2]) -> [u64; 2] {
        self.list_values().ones(index, values)
    }
}

/// Base-2 logarithm of the jump array's stride for an expected bucket size.
pub(crate) const fn log_stride(bucket_size: u32) -> u32 {
    match bucket_size {
        0..32 => 7,
        32..64 => 6,
        64..200 => 5,
        200..1000 => 4,
        1000..4000 => 3,
        _ => 2,
    }
}

/// What the lists say of one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Keys in buckets before this one.
    pub keys_before: u64,
    /// Keys in this bucket.
    pub keys: u64,
    /// Where the tree begins.
    pub bits_before: u64,
}

/// A layout together with where its parts begin within the words of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lists {
    pub layout: Layout,
    lower: u64,
    upper_keys: u64,
    upper_bits: u64,
    jumps: u64,
}

/// Where a lookup searches in the upper bits: positions of ones of both lists that have `rank` ones between them and the
/// bucket's own.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Jump {
    phi: u64,
    chi: u64,
    rank: u32,
}

impl Lists {
    /// The lists whose first word is `base`.
    pub(crate) fn at(layout: Layout, base: u64) -> Self {
        let [upper_keys, upper_bits, jumps] = layout.parts().map(|part| base + part);
        Self { layout, lower: base * 64, upper_keys: upper_keys * 64, upper_bits: upper_bits * 64, jumps }
    }

    /// Prefetches what [`Lists::jump_to`] reads for `bucket`, and the lower bits.
    #[inline(always)]
    pub(crate) fn prefetch_first(&self, words: &[u64], bucket: u64) {
        let (block, pair) = self.jump_place(bucket);
        prefetch(words, block);
        prefetch(words, block + 2 + pair / 2);
        prefetch(words, (self.lower + bucket * u64::from(self.layout.low_keys + self.layout.low_bits)) / 64);
    }

    /// Prefetches the upper bits.
    #[inline(always)]
    pub(crate) fn prefetch_second(&self, words: &[u64], jump: Jump) {
        // An entry takes two to three upper bits.
        let ahead = u64::from(jump.rank) * 9 / 4;
        prefetch(words, jump.phi.wrapping_add(ahead) / 64);
        prefetch(words, jump.chi.wrapping_add(ahead) / 64);
    }

    /// Word and 16-bit pair of the jump array for an entry: first word of the block, index of the pair.
    #[inline(always)]
    fn jump_place(&self, index: u64) -> (u64, u64) {
        let block = self.jumps + index / BLOCK * self.layout.block_words();
        (block, (index % BLOCK) >> self.layout.log_stride)
    }

    /// What the jump array says of `bucket`.
    #[inline(always)]
    pub(crate) fn jump_to(&self, words: &[u64], bucket: u64) -> Jump {
        let (block, pair) = self.jump_place(bucket);
        let pair_word = word(words, (block + 2 + pair / 2) as usize) >> (32 * (pair % 2));
        Jump {
            phi: self.upper_keys.wrapping_add(word(words, block as usize)).wrapping_add(pair_word & 0xffff),
            chi: self.upper_bits.wrapping_add(word(words, block as usize + 1)).wrapping_add(pair_word >> 16 & 0xffff),
            rank: bucket as u32 & ((1 << self.layout.log_stride) - 1),
        }
    }

    /// The entry of `bucket`, below the number of buckets.
    #[inline(always)]
    pub(crate) fn get(&self, words: &[u64], bucket: u64, jump: Jump, select: impl Select) -> Entry {
        let layout = &self.layout;
        let width = layout.low_keys + layout.low_bits;
        let at = self.lower + bucket * u64::from(width);
        let (low_phi, low_chi, next_low_phi) = if width + layout.low_keys <= 57 {
            let low = bits_from(words, at);
            let keys = (1 << layout.low_keys) - 1;
            (low & keys, low >> layout.low_keys & ((1 << layout.low_bits) - 1), low >> width & keys)
        } else {
            (
                field(words, at, layout.low_keys),
                field(words, at + u64::from(layout.low_keys), layout.low_bits),
                field(words, at + u64::from(width), layout.low_keys),
            )
        };
        let (phi_at, next_at) = two_ones(words, jump.phi, jump.rank, layout.log_stride, select);
        let (chi_at, _) = two_ones(words, jump.chi, jump.rank, layout.log_stride, select);

        let phi = (phi_at.wrapping_sub(self.upper_keys).wrapping_sub(bucket)) << layout.low_keys | low_phi;
        let more = next_at.wrapping_sub(phi_at).wrapping_sub(1) << layout.low_keys;
        let chi = (chi_at.wrapping_sub(self.upper_bits).wrapping_sub(bucket)) << layout.low_bits | low_chi;
        let keys_before = phi.wrapping_add(bucket.wrapping_mul(layout.least_keys));
        Entry {
            keys_before,
            keys: more.wrapping_add(next_low_phi).wrapping_sub(low_phi).wrapping_add(layout.least_keys),
            bits_before: chi.wrapping_add(layout.line(keys_before, bucket)),
        }
    }
}

/// Positions of the one with `rank` ones between it and position `from`, and of the one after it; some positions at the
/// end if there are none. Ranks are below `1 << log_stride`.
#[inline(always)]
fn two_ones(words: &[u64], from: u64, rank: u32, log_stride: u32, select: impl Select) -> (u64, u64) {
    if log_stride <= 5 {
        let (mut bits, mut rank, mut from) = (bits_from(words, from), rank, from);
        if log_stride == 5 {
            // The window of what is not in the lower half of the first, without a branch, which could not be predicted.
            let before = (bits as u32).count_ones();
            let beyond = rank >= before;
            let further = bits_from(words, from.wrapping_add(32));
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

/// [`two_ones`], however far they are.
#[inline(always)]
fn far_two_ones(words: &[u64], from: u64, rank: u32, select: impl Select) -> (u64, u64) {
    let first = scan::<6>(words, from, rank, select);
    let after = first.wrapping_add(1);
    let next = bits_from(words, after);
    let next = if next != 0 { after + u64::from(next.trailing_zeros()) } else { scan::<6>(words, after, 0, select) };
    (first, next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpset_core::bits::Portable;

    #[test]
    fn gives_back_what_it_was_given() {
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        let sizes = [(0, 7), (1, 4), (2, 7), (100, 5), (16383, 7), (16384, 6), (40_000, 2), (40_000, 3), (40_000, 7)];
        for (buckets, log_stride) in sizes.into_iter().filter(|(buckets, _)| !cfg!(miri) || *buckets < 1000) {
            let (mut keys, mut bits) = (vec![0], vec![0]);
            for i in 0..buckets {
                keys.push(keys[i] + random(30));
                bits.push(bits[i] + random(70));
            }
            let (layout, words) = encode::tests::build(&keys, &bits, log_stride);
            let lists = Lists::at(layout, 0);
            for i in 0..buckets {
                let entry = lists.get(&words, i as u64, lists.jump_to(&words, i as u64), Portable);
                let expected = Entry { keys_before: keys[i], keys: keys[i + 1] - keys[i], bits_before: bits[i] };
                assert_eq!(entry, expected, "{buckets} {log_stride} {i}");
            }
        }
    }
}

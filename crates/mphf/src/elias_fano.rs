//! Double Elias-Fano lists: the positions of each bucket's keys and tree.
//!
//! Source: section 4.5, construction as in 5.9. Departures:
//! - Tree positions are relative to a line in both the number of keys and the number of buckets before. The thesis
//!   takes the average bits per key and then the least difference. Here the line is the one below all buckets that is
//!   highest for a bucket of average size (an edge of the lower convex hull of keys and bits), so the differences are
//!   small: 0.02 to 0.1 bits per key at 5 to 50 keys per bucket.
//! - Instead of every 256th one, the positions of every 4th to 128th one are sampled, by bucket size. With large
//!   buckets a denser jump array costs nothing and saves the lookup its linear search.
//! - Construction (`encode.rs`) takes stretches of buckets in parallel, and each writes to its own places. The jump
//!   array needs no selection: the position of a one is known when it is written.
//!
//! Lookups are in `warpset_core::recsplit::lookup`.
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

use crate::windows::prefetch;
use warpset_core::bits::field;
use warpset_core::recsplit::elias_fano::{JUMP_BLOCK as BLOCK, ListValues, POINT};
use warpset_core::recsplit::lookup::lists::{Jump, Lists as Places};

/// Valid logarithms of strides.
pub(crate) const LOG_STRIDES: std::ops::RangeInclusive<u32> = 2..=7;

/// Sizes and coefficients of the lists, without their bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Number of buckets; there is one entry more.
    pub buckets: u64,
    /// Bits of the line per key, times 2^16.
    pub key_slope: i64,
    /// Bits of the line per bucket, times 2^16.
    pub bucket_slope: i64,
    /// The least number of keys in a bucket.
    pub least_keys: u64,
    pub low_keys: u32,
    pub low_bits: u32,
    /// Base-2 logarithm of the distance between sampled positions in the jump array.
    pub log_stride: u32,
    /// Words of the upper bits.
    pub upper_keys_words: u64,
    pub upper_bits_words: u64,
}

impl Layout {
    /// Returns the words of the lower bits.
    pub(crate) fn lower_words(&self) -> u64 {
        ((self.buckets + 1) * u64::from(self.low_keys + self.low_bits)).div_ceil(64)
    }

    /// Returns the words of a full block of the jump array.
    pub(crate) fn block_words(&self) -> u64 {
        2 + (BLOCK >> self.log_stride) / 2
    }

    /// Returns the words of the jump array.
    pub(crate) fn jump_words(&self) -> u64 {
        let entries = self.buckets + 1;
        let rest = entries % BLOCK;
        let rest_words = if rest == 0 { 0 } else { 2 + rest.div_ceil(1 << self.log_stride).div_ceil(2) };
        entries / BLOCK * self.block_words() + rest_words
    }

    /// Returns the starts of the upper bits of keys, of those of tree positions, and of the jump array, in words after
    /// the first of the lower bits.
    pub(crate) fn parts(&self) -> [u64; 3] {
        let upper_keys = self.lower_words();
        let upper_bits = upper_keys + self.upper_keys_words;
        [upper_keys, upper_bits, upper_bits + self.upper_bits_words]
    }

    /// Returns the entries of the lists in these words, in order: keys and bits before. Words may be damaged.
    pub(crate) fn entries<'a>(&self, words: &'a [u64]) -> impl Iterator<Item = (u64, u64)> + use<'a> {
        let layout = *self;
        let [upper_keys, upper_bits, jumps] = layout.parts().map(|part| part as usize);
        let (keys, bits) = (ones(&words[upper_keys..upper_bits]), ones(&words[upper_bits..jumps]));
        (0..=layout.buckets).zip(keys.zip(bits)).map(move |(index, (keys, bits))| {
            let at = index * u64::from(layout.low_keys + layout.low_bits);
            let low =
                [field(words, at, layout.low_keys), field(words, at + u64::from(layout.low_keys), layout.low_bits)];
            let keys_before =
                ((keys - index) << layout.low_keys | low[0]).wrapping_add(index.wrapping_mul(layout.least_keys));
            let bits = (bits - index) << layout.low_bits | low[1];
            (keys_before, bits.wrapping_add(layout.list_values().line(keys_before, index)))
        })
    }

    /// Returns the words of all parts.
    pub(crate) fn words(&self) -> u64 {
        self.lower_words() + self.upper_keys_words + self.upper_bits_words + self.jump_words()
    }

    /// Returns the parameters of the entries.
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

    /// Returns both lists' values of entry `index`.
    #[inline(always)]
    fn values(&self, index: u64, sums: (u64, u64)) -> [u64; 2] {
        self.list_values().values(index, sums)
    }

    /// Returns the positions of an entry's ones in the upper bits of both lists.
    #[inline(always)]
    fn ones(&self, index: u64, values: [u64; 2]) -> [u64; 2] {
        self.list_values().ones(index, values)
    }
}

/// Returns the positions of all ones.
fn ones(words: &[u64]) -> impl Iterator<Item = u64> {
    (0..).step_by(64).zip(words).flat_map(|(first, &word)| {
        let rests = std::iter::successors(Some(word), |rest| Some(rest & rest.wrapping_sub(1)));
        rests.take_while(|&rest| rest != 0).map(move |rest| first + u64::from(rest.trailing_zeros()))
    })
}

/// Returns the base-2 logarithm of the jump array's stride for an expected bucket size.
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

/// A layout, and the positions of its parts within the words of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lists {
    pub(crate) layout: Layout,
    pub(crate) places: Places,
}

impl Lists {
    /// Locates the lists from their first word, `base`.
    pub(crate) fn at(layout: Layout, base: u64) -> Self {
        let [upper_keys, upper_bits, jumps] = layout.parts().map(|part| base + part);
        let places = Places {
            values: layout.list_values(),
            lower: base * 64,
            upper_keys: upper_keys * 64,
            upper_bits: upper_bits * 64,
            jumps,
            block_words: layout.block_words(),
            log_stride: layout.log_stride,
            unused: 0,
        };
        Self { layout, places }
    }

    /// Prefetches the words that [`Places::jump_to`] reads for `bucket`, and the lower bits.
    #[inline(always)]
    pub(crate) fn prefetch_first(&self, words: &[u64], bucket: u64) {
        let (block, pair) = self.places.jump_place(bucket);
        prefetch(words, block);
        prefetch(words, block + 2 + pair / 2);
        prefetch(words, (self.places.lower + bucket * u64::from(self.layout.low_keys + self.layout.low_bits)) / 64);
    }

    /// Prefetches the upper bits.
    #[inline(always)]
    pub(crate) fn prefetch_second(&self, words: &[u64], jump: Jump) {
        // An entry takes two to three upper bits.
        let ahead = u64::from(jump.rank) * 9 / 4;
        prefetch(words, jump.phi.wrapping_add(ahead) / 64);
        prefetch(words, jump.chi.wrapping_add(ahead) / 64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::windows::HostWords;
    use warpset_core::bits::Portable;
    use warpset_core::recsplit::lookup::lists::Entry;

    #[test]
    fn gives_back_what_it_was_given() {
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        let sizes = [(0, 7), (1, 4), (2, 7), (100, 5), (16383, 7), (16384, 6), (40_000, 2), (40_000, 3), (40_000, 7)];
        for (buckets, log_stride) in sizes {
            let (mut keys, mut bits) = (vec![0], vec![0]);
            for i in 0..buckets {
                keys.push(keys[i] + random(30));
                bits.push(bits[i] + random(70));
            }
            let (layout, words) = encode::tests::build(&keys, &bits, log_stride);
            let lists = Lists::at(layout, 0);
            for i in 0..buckets {
                let words = HostWords(&words);
                let entry = lists.places.get(words, i as u64, lists.places.jump_to(words, i as u64), Portable);
                let expected = Entry { keys_before: keys[i], keys: keys[i + 1] - keys[i], bits_before: bits[i] };
                assert_eq!(entry, expected, "{buckets} {log_stride} {i}");
            }
        }
    }
}

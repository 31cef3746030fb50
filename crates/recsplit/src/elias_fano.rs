//! Double Elias-Fano: where each bucket's keys and its tree begin.
//!
//! Source: section 4.5, construction as in 5.9. Departures:
//! - The average of bits a key is a fixed-point number with 32 bits after the point.
//! - Positions of every 256th one become every 16th to 256th one, by bucket size: with large buckets a denser jump array
//!   costs nothing and saves the query most of its linear search.
//! - Construction takes stretches of 2^14 buckets in parallel. The jump array needs no selection: the position of a one is
//!   known when it is written.
//!
//! ```text
//! lower bits   phi(0) chi(0) phi(1) chi(1) …            low_phi + low_chi bits an entry
//! upper bits   …0001 01 1 001…   for phi, then for chi   one i at (value >> low) + i
//! jump array   [u64 phi, u64 chi, (u16 phi, u16 chi) × 2^14 / stride] for every 2^14 entries
//! ```

use rayon::prelude::*;
use warpset_core::recsplit::bits::{elias_fano_low_bits, field, select, word};

/// Entries of one block of the jump array.
const BLOCK: u64 = 1 << 14;

/// Everything but the bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Buckets; there is one entry more.
    pub buckets: u64,
    /// Bits a key, times 2^32.
    pub slope: u64,
    /// The least number of keys in a bucket.
    pub least_keys: u64,
    /// The least difference of consecutive bit positions after the average is taken off.
    pub least_bits: i64,
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
    fn block_words(&self) -> u64 {
        2 + (BLOCK >> self.log_stride) / 2
    }

    /// Words of the jump array.
    pub(crate) fn jump_words(&self) -> u64 {
        let entries = self.buckets + 1;
        let rest = entries % BLOCK;
        let rest_words = if rest == 0 { 0 } else { 2 + rest.div_ceil(1 << self.log_stride).div_ceil(2) };
        entries / BLOCK * self.block_words() + rest_words
    }

    /// Words of all parts.
    pub(crate) fn words(&self) -> u64 {
        self.lower_words() + self.upper_keys_words + self.upper_bits_words + self.jump_words()
    }

    /// The average position of the tree that begins after `keys` keys.
    #[inline]
    fn line(&self, keys: u64) -> u64 {
        ((u128::from(keys) * u128::from(self.slope)) >> 32) as u64
    }
}

/// Base-2 logarithm of the jump array's stride for an expected bucket size.
pub(crate) const fn log_stride(bucket_size: u32) -> u32 {
    match bucket_size {
        0..32 => 8,
        32..200 => 7,
        200..1000 => 5,
        _ => 4,
    }
}

/// One stretch of upper bits.
struct Upper {
    first_word: u64,
    words: Vec<u64>,
}

impl Upper {
    fn from(first: u64, last: u64) -> Self {
        let first_word = first / 64;
        Self { first_word, words: vec![0; (last / 64 - first_word) as usize + 1] }
    }

    #[inline]
    fn set(&mut self, at: u64) {
        self.words[(at / 64 - self.first_word) as usize] |= 1 << (at % 64);
    }
}

/// Encodes the prefix sums of keys (`keys[i]`: keys before bucket i) and the bit positions of trees; both have one entry
/// more than there are buckets and begin with 0. `None` if the jump array's 16 bits do not do, which hashed keys make
/// impossible in practice.
pub(crate) fn build(keys: &[u64], bits: &[u64], log_stride: u32) -> Option<(Layout, Vec<u64>)> {
    let entries = keys.len();
    let buckets = entries as u64 - 1;
    let (all_keys, all_bits) = (keys[entries - 1], bits[entries - 1]);
    let slope = if all_keys == 0 { 0 } else { ((u128::from(all_bits) << 32) / u128::from(all_keys)) as u64 };
    let mut layout = Layout {
        buckets,
        slope,
        least_keys: 0,
        least_bits: 0,
        low_keys: 0,
        low_bits: 0,
        log_stride,
        upper_keys_words: 0,
        upper_bits_words: 0,
    };
    let unscaled = layout;
    let above_line = |i: usize| bits[i] as i64 - unscaled.line(keys[i]) as i64;
    let stretches = || (0..entries.div_ceil(BLOCK as usize)).into_par_iter();
    let stretch = |i: usize| i * BLOCK as usize..entries.min((i + 1) * BLOCK as usize);
    if buckets > 0 {
        let least = |i: usize| {
            stretch(i).filter(|&i| i > 0).fold((u64::MAX, i64::MAX), |(k, b), i| {
                (k.min(keys[i] - keys[i - 1]), b.min(above_line(i) - above_line(i - 1)))
            })
        };
        (layout.least_keys, layout.least_bits) =
            stretches().map(least).reduce(|| (u64::MAX, i64::MAX), |a, b| (a.0.min(b.0), a.1.min(b.1)));
    }
    let phi = |i: usize| keys[i] - i as u64 * layout.least_keys;
    let chi = |i: usize| (above_line(i) - i as i64 * layout.least_bits) as u64;
    let (low_keys, low_bits) =
        (elias_fano_low_bits(phi(entries - 1), entries as u64), elias_fano_low_bits(chi(entries - 1), entries as u64));
    let upper_phi = |i: usize| (phi(i) >> low_keys) + i as u64;
    let upper_chi = |i: usize| (chi(i) >> low_bits) + i as u64;

    let encode = |stretch_index: usize| {
        let range = stretch(stretch_index);
        let mut lower = crate::bits::BitVec::default();
        let mut uppers = [
            Upper::from(upper_phi(range.start), upper_phi(range.end - 1)),
            Upper::from(upper_chi(range.start), upper_chi(range.end - 1)),
        ];
        let firsts = [upper_phi(range.start), upper_chi(range.start)];
        let mut jumps = firsts.to_vec();
        let mut half = 0;
        for (index, i) in range.enumerate() {
            let (phi, chi) = (phi(i), chi(i));
            lower.push(phi, low_keys);
            lower.push(chi, low_bits);
            let positions = [(phi >> low_keys) + i as u64, (chi >> low_bits) + i as u64];
            for (upper, at) in uppers.iter_mut().zip(positions) {
                upper.set(at);
            }
            if index & ((1 << log_stride) - 1) == 0 {
                let relative: [u64; 2] = std::array::from_fn(|list| positions[list] - firsts[list]);
                if relative.iter().any(|&relative| relative > u64::from(u16::MAX)) {
                    return None;
                }
                let pair = relative[0] | relative[1] << 16;
                if half == 0 {
                    jumps.push(pair);
                } else {
                    *jumps.last_mut()? |= pair << 32;
                }
                half ^= 1;
            }
        }
        Some((lower, uppers, jumps))
    };
    let parts: Vec<_> =
        if entries > BLOCK as usize { stretches().map(encode).collect::<Option<_>>()? } else { vec![encode(0)?] };
    let upper_words = |last: u64| last / 64 + 1;
    let layout = Layout {
        low_keys,
        low_bits,
        upper_keys_words: upper_words(upper_phi(entries - 1)),
        upper_bits_words: upper_words(upper_chi(entries - 1)),
        ..layout
    };
    let mut words = Vec::with_capacity(layout.words() as usize);
    // A stretch has 2^14 entries, so its lower bits fill whole words.
    parts.iter().for_each(|(lower, ..)| words.extend(lower.words()));
    debug_assert_eq!(words.len() as u64, layout.lower_words());
    for (list, len) in [layout.upper_keys_words, layout.upper_bits_words].into_iter().enumerate() {
        let base = words.len();
        words.resize(base + len as usize, 0);
        for (_, uppers, _) in &parts {
            let to = &mut words[base + uppers[list].first_word as usize..];
            to.iter_mut().zip(&uppers[list].words).for_each(|(to, from)| *to |= from);
        }
    }
    parts.iter().for_each(|(.., jumps)| words.extend_from_slice(jumps));
    debug_assert_eq!(words.len() as u64, layout.words());
    Some((layout, words))
}

/// What the lists say of one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Keys in buckets before this one.
    pub keys_before: u64,
    /// Keys in buckets up to and with this one.
    pub keys_through: u64,
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

impl Lists {
    /// The lists whose first word is `base`.
    pub(crate) fn at(layout: Layout, base: u64) -> Self {
        let upper_keys = base + layout.lower_words();
        let upper_bits = upper_keys + layout.upper_keys_words;
        let jumps = upper_bits + layout.upper_bits_words;
        Self { layout, lower: base * 64, upper_keys: upper_keys * 64, upper_bits: upper_bits * 64, jumps }
    }

    /// Words that a look-up of `bucket` reads first, for prefetching.
    #[inline]
    pub(crate) fn first_touched(&self, bucket: u64) -> [u64; 4] {
        let entry = u64::from(self.layout.low_keys + self.layout.low_bits);
        // The upper bits are about where the bucket's share of them is.
        let share =
            |words: u64| ((u128::from(bucket) * u128::from(words)) / u128::from(self.layout.buckets.max(1))) as u64;
        [
            (self.lower + bucket * entry) / 64,
            self.jump(bucket).0,
            self.upper_keys / 64 + share(self.layout.upper_keys_words),
            self.upper_bits / 64 + share(self.layout.upper_bits_words),
        ]
    }

    /// Word and 16-bit pair of the jump array for an entry: first word of the block, index of the pair.
    #[inline(always)]
    fn jump(&self, index: u64) -> (u64, u64) {
        let block = self.jumps + index / BLOCK * self.layout.block_words();
        (block, (index % BLOCK) >> self.layout.log_stride)
    }

    /// The entry of `bucket`, below the number of buckets.
    #[inline(always)]
    pub(crate) fn get(&self, words: &[u64], bucket: u64, select: impl Fn(u64, u32) -> u32 + Copy) -> Entry {
        let layout = &self.layout;
        let width = u64::from(layout.low_keys + layout.low_bits);
        let at = self.lower + bucket * width;
        let low_phi = field(words, at, layout.low_keys);
        let low_chi = field(words, at + u64::from(layout.low_keys), layout.low_bits);
        let next_low_phi = field(words, at + width, layout.low_keys);

        let (block, pair) = self.jump(bucket);
        let pair_word = word(words, (block + 2 + pair / 2) as usize) >> (32 * (pair % 2));
        let rank = bucket as u32 & ((1 << layout.log_stride) - 1);
        let first_phi = self.upper_keys.wrapping_add(word(words, block as usize)) + (pair_word & 0xffff);
        let first_chi = self.upper_bits.wrapping_add(word(words, block as usize + 1)) + (pair_word >> 16 & 0xffff);
        let phi_at = nth_one(words, first_phi, rank, select);
        let chi_at = nth_one(words, first_chi, rank, select);
        let next_at = nth_one(words, phi_at.wrapping_add(1), 0, select);

        let phi = (phi_at.wrapping_sub(self.upper_keys).wrapping_sub(bucket)) << layout.low_keys | low_phi;
        let next_phi =
            (next_at.wrapping_sub(self.upper_keys).wrapping_sub(bucket + 1)) << layout.low_keys | next_low_phi;
        let chi = (chi_at.wrapping_sub(self.upper_bits).wrapping_sub(bucket)) << layout.low_bits | low_chi;
        let keys_before = phi.wrapping_add(bucket.wrapping_mul(layout.least_keys));
        let keys_through = next_phi.wrapping_add((bucket + 1).wrapping_mul(layout.least_keys));
        let above_line = (chi as i64).wrapping_add((bucket as i64).wrapping_mul(layout.least_bits));
        Entry { keys_before, keys_through, bits_before: (above_line as u64).wrapping_add(layout.line(keys_before)) }
    }
}

/// Position of the one with `rank` ones between it and position `from`; some position at the end if there is none.
#[inline(always)]
pub(crate) fn nth_one(words: &[u64], from: u64, mut rank: u32, select: impl Fn(u64, u32) -> u32) -> u64 {
    let mut index = (from / 64) as usize;
    let mut bits = word(words, index) & (u64::MAX << (from % 64));
    loop {
        let ones = bits.count_ones();
        if rank < ones {
            return index as u64 * 64 + u64::from(select(bits, rank));
        }
        rank -= ones;
        index = index.wrapping_add(1);
        if index >= words.len() {
            return words.len() as u64 * 64;
        }
        bits = words[index];
    }
}

/// The portable selection, for callers without a faster one.
#[inline(always)]
pub(crate) fn portable_select(word: u64, rank: u32) -> u32 {
    select(word, rank)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_back_what_it_was_given() {
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        for (buckets, log_stride) in
            [(0, 8), (1, 4), (2, 8), (100, 5), (16383, 8), (16384, 7), (40_000, 4), (40_000, 8)]
        {
            let (mut keys, mut bits) = (vec![0], vec![0]);
            for i in 0..buckets {
                keys.push(keys[i] + random(30));
                bits.push(bits[i] + random(70));
            }
            let (layout, words) = build(&keys, &bits, log_stride).unwrap();
            let lists = Lists::at(layout, 0);
            for i in 0..buckets {
                let entry = lists.get(&words, i as u64, portable_select);
                let expected = Entry { keys_before: keys[i], keys_through: keys[i + 1], bits_before: bits[i] };
                assert_eq!(entry, expected, "{buckets} {log_stride} {i}");
            }
        }
    }
}

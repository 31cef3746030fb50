//! Double Elias-Fano: where each bucket's keys and its tree begin.
//!
//! Source: section 4.5, construction as in 5.9. Departures:
//! - Tree positions are taken relative to a line in both the number of keys and the number of buckets before. The thesis
//!   takes the average of bits a key and then the least difference; here the line is the one below all buckets that is
//!   highest for a bucket of average size (an edge of the lower convex hull of keys and bits), which is what makes the
//!   differences small: 0.02 to 0.1 bits a key at 5 to 50 keys a bucket.
//! - Positions of every 256th one become every 4th to 128th one, by bucket size: with large buckets a denser jump array
//!   costs nothing and saves the query its linear search.
//! - Construction takes stretches of 2^14 buckets in parallel. The jump array needs no selection: the position of a one is
//!   known when it is written.
//!
//! ```text
//! lower bits   phi(0) chi(0) phi(1) chi(1) …            low_phi + low_chi bits an entry
//! upper bits   …0001 01 1 001…   for phi, then for chi   one i at (value >> low) + i
//! jump array   [u64 phi, u64 chi, (u16 phi, u16 chi) × 2^14 / stride] for every 2^14 entries
//! ```

#[cfg(target_arch = "x86_64")]
mod lanes;

use crate::read::{Select, bits_from, prefetch, scan};
use rayon::prelude::*;
use warpset_core::recsplit::bits::{elias_fano_low_bits, field, word};

/// Entries of one block of the jump array.
const BLOCK: u64 = 1 << 14;
/// Bits after the point of the line's coefficients.
const POINT: u32 = 16;
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

    /// The line's position of the tree that begins after `keys` keys in `bucket` buckets.
    #[inline(always)]
    fn line(&self, keys: u64, bucket: u64) -> u64 {
        let keys = self.key_slope.wrapping_mul(keys as i64);
        (keys.wrapping_add(self.bucket_slope.wrapping_mul(bucket as i64)) >> POINT) as u64
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

/// Slopes for keys and for buckets of the line below all `(keys, bits)` of single buckets that is highest at the average
/// number of keys; `least[k]` is the least number of bits of a bucket of `k` keys, `u64::MAX` if there is none.
fn line_below(least: &[u64], (all_keys, buckets): (u64, u64)) -> (i64, i64) {
    let points =
        || (0..).zip(least).filter(|&(_, &bits)| bits != u64::MAX).map(|(k, &bits): (i64, _)| (k, bits as i64));
    // The lower convex hull, from left to right, as far as the edge over the average.
    let mut hull: Vec<(i64, i64)> = Vec::new();
    for point in points() {
        while let [.., a, b] = hull[..] {
            let (ab, ac) = ((b.0 - a.0, b.1 - a.1), (point.0 - a.0, point.1 - a.1));
            if i128::from(ab.1) * i128::from(ac.0) < i128::from(ac.1) * i128::from(ab.0) {
                break;
            }
            hull.pop();
        }
        hull.push(point);
    }
    let right = |point: &(i64, i64)| u128::from(point.0 as u64) * u128::from(buckets) > u128::from(all_keys);
    let edge = hull.iter().position(right).unwrap_or(hull.len().saturating_sub(1)).max(1);
    let key_slope = match (hull.get(edge - 1), hull.get(edge)) {
        (Some(a), Some(b)) => ((i128::from(b.1 - a.1) << POINT) / i128::from(b.0 - a.0)) as i64,
        _ => 0,
    };
    // The slope is rounded, so that the height is found from all points.
    let height = |(k, bits): (i64, i64)| (bits << POINT) - key_slope * k;
    let bucket_slope = points().map(height).min().unwrap_or(0);
    let reach = i128::from(key_slope.unsigned_abs()) * i128::from(all_keys)
        + i128::from(bucket_slope.unsigned_abs()) * i128::from(buckets);
    // Without a line it is only larger.
    if reach < 1 << 62 { (key_slope, bucket_slope) } else { (0, 0) }
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
    let mut layout = Layout {
        buckets,
        key_slope: 0,
        bucket_slope: 0,
        least_keys: 0,
        low_keys: 0,
        low_bits: 0,
        log_stride,
        upper_keys_words: 0,
        upper_bits_words: 0,
    };
    let stretches = || (0..entries.div_ceil(BLOCK as usize)).into_par_iter();
    let stretch = |i: usize| i * BLOCK as usize..entries.min((i + 1) * BLOCK as usize);
    if buckets > 0 {
        // The least number of bits by number of keys.
        let see = |mut least: Vec<u64>, i: usize| {
            for i in stretch(i).filter(|&i| i > 0) {
                let size = (keys[i] - keys[i - 1]) as usize;
                if size >= least.len() {
                    least.resize(size + 1, u64::MAX);
                }
                least[size] = least[size].min(bits[i] - bits[i - 1]);
            }
            least
        };
        let merge = |a: Vec<u64>, b: Vec<u64>| {
            let (mut long, short) = if a.len() < b.len() { (b, a) } else { (a, b) };
            long.iter_mut().zip(short).for_each(|(long, short)| *long = short.min(*long));
            long
        };
        let least = stretches().fold(Vec::new, see).reduce(Vec::new, merge);
        layout.least_keys = least.iter().position(|&bits| bits != u64::MAX).unwrap_or(0) as u64;
        (layout.key_slope, layout.bucket_slope) = line_below(&least, (keys[entries - 1], buckets));
    }
    let unfinished = layout;
    let phi = |i: usize| keys[i] - i as u64 * unfinished.least_keys;
    let chi = |i: usize| bits[i].wrapping_sub(unfinished.line(keys[i], i as u64));
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

/// Where a look-up searches in the upper bits: positions of ones of both lists that have `rank` ones between them and the
/// bucket's own.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Near {
    phi: u64,
    chi: u64,
    rank: u32,
}

impl Lists {
    /// The lists whose first word is `base`.
    pub(crate) fn at(layout: Layout, base: u64) -> Self {
        let upper_keys = base + layout.lower_words();
        let upper_bits = upper_keys + layout.upper_keys_words;
        let jumps = upper_bits + layout.upper_bits_words;
        Self { layout, lower: base * 64, upper_keys: upper_keys * 64, upper_bits: upper_bits * 64, jumps }
    }

    /// Prefetches what [`Lists::near`] reads for `bucket`, and the lower bits.
    #[inline(always)]
    pub(crate) fn prefetch_first(&self, words: &[u64], bucket: u64) {
        let (block, pair) = self.jump(bucket);
        prefetch(words, block);
        prefetch(words, block + 2 + pair / 2);
        prefetch(words, (self.lower + bucket * u64::from(self.layout.low_keys + self.layout.low_bits)) / 64);
    }

    /// Prefetches the upper bits.
    #[inline(always)]
    pub(crate) fn prefetch_second(&self, words: &[u64], near: Near) {
        // An entry takes two to three upper bits.
        let ahead = u64::from(near.rank) * 9 / 4;
        prefetch(words, near.phi.wrapping_add(ahead) / 64);
        prefetch(words, near.chi.wrapping_add(ahead) / 64);
    }

    /// Word and 16-bit pair of the jump array for an entry: first word of the block, index of the pair.
    #[inline(always)]
    fn jump(&self, index: u64) -> (u64, u64) {
        let block = self.jumps + index / BLOCK * self.layout.block_words();
        (block, (index % BLOCK) >> self.layout.log_stride)
    }

    /// What the jump array says of `bucket`.
    #[inline(always)]
    pub(crate) fn near(&self, words: &[u64], bucket: u64) -> Near {
        let (block, pair) = self.jump(bucket);
        let pair_word = word(words, (block + 2 + pair / 2) as usize) >> (32 * (pair % 2));
        Near {
            phi: self.upper_keys.wrapping_add(word(words, block as usize)).wrapping_add(pair_word & 0xffff),
            chi: self.upper_bits.wrapping_add(word(words, block as usize + 1)).wrapping_add(pair_word >> 16 & 0xffff),
            rank: bucket as u32 & ((1 << self.layout.log_stride) - 1),
        }
    }

    /// The entry of `bucket`, below the number of buckets.
    #[inline(always)]
    pub(crate) fn get(&self, words: &[u64], bucket: u64, near: Near, select: impl Select) -> Entry {
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
        let (phi_at, next_at) = two_ones(words, near.phi, near.rank, layout.log_stride, select);
        let (chi_at, _) = two_ones(words, near.chi, near.rank, layout.log_stride, select);

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
            // The window of what is not in the lower half of the first, without a branch that nobody could predict.
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
    let behind = first.wrapping_add(1);
    let next = bits_from(words, behind);
    let next = if next != 0 { behind + u64::from(next.trailing_zeros()) } else { scan::<6>(words, behind, 0, select) };
    (first, next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::Portable;

    #[test]
    fn gives_back_what_it_was_given() {
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        for (buckets, log_stride) in
            [(0, 7), (1, 4), (2, 7), (100, 5), (16383, 7), (16384, 6), (40_000, 2), (40_000, 3), (40_000, 7)]
        {
            let (mut keys, mut bits) = (vec![0], vec![0]);
            for i in 0..buckets {
                keys.push(keys[i] + random(30));
                bits.push(bits[i] + random(70));
            }
            let (layout, words) = build(&keys, &bits, log_stride).unwrap();
            let lists = Lists::at(layout, 0);
            for i in 0..buckets {
                let entry = lists.get(&words, i as u64, lists.near(&words, i as u64), Portable);
                let expected = Entry { keys_before: keys[i], keys: keys[i + 1] - keys[i], bits_before: bits[i] };
                assert_eq!(entry, expected, "{buckets} {log_stride} {i}");
            }
        }
    }

    #[test]
    fn lines_stay_below_and_touch() {
        let least = [0, 0, 1, 2, 4, 5, 7, u64::MAX, 10];
        for all_keys in 0..80 {
            let (key_slope, bucket_slope) = line_below(&least, (all_keys, 10));
            let above = |k: usize| ((least[k] as i64) << POINT) - key_slope * k as i64 - bucket_slope;
            let above: Vec<i64> = (0..9).filter(|&k| least[k] != u64::MAX).map(above).collect();
            assert_eq!(above.iter().min(), Some(&0), "{all_keys}");
        }
        // The edge over 4 keys goes from (3, 2) to (5, 5), that over 7 from (5, 5) to (8, 10).
        assert_eq!(line_below(&least, (40, 10)).0, (3 << POINT) / 2);
        assert_eq!(line_below(&least, (70, 10)).0, (5 << POINT) / 3);
        assert_eq!(line_below(&[u64::MAX, 3], (7, 7)), (0, 3 << POINT));
    }
}

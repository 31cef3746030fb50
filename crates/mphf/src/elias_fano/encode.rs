//! Construction of the lists.

use super::{BLOCK, Layout, POINT};
use crate::bit_vec::BitVec;
use std::sync::atomic::AtomicU64;
use warpset_core::recsplit::elias_fano::elias_fano_low_bits;

/// Entries to encode at a time. A block of the jump array has whole stretches.
const STRETCH: usize = 1 << 11;

/// Prefix sums: the number of keys before each bucket, and the bit position of its tree. Both begin with 0, and there
/// is one entry more than buckets.
pub(crate) trait Prefixes: Sync {
    /// Returns the number of entries, at least one.
    fn len(&self) -> usize;

    /// Writes the entries from `first` on to `to`, until `to` is full.
    fn read(&self, first: usize, to: &mut [(u64, u64)]);

    /// Returns one entry.
    fn get(&self, index: usize) -> (u64, u64) {
        let mut entry = [(0, 0)];
        self.read(index, &mut entry);
        entry[0]
    }
}

/// Least number of bits of a bucket by its number of keys; `u64::MAX` for absent numbers.
#[derive(Clone, Debug, Default)]
pub struct Least(Vec<u64>);

impl Least {
    /// Wraps a table of least numbers of bits.
    #[cfg(feature = "gpu")]
    pub(crate) fn of(table: Vec<u64>) -> Self {
        Self(table)
    }

    /// Adds a bucket.
    #[inline]
    pub(crate) fn see(&mut self, keys: usize, bits: u64) {
        if keys >= self.0.len() {
            self.0.resize(keys + 1, u64::MAX);
        }
        self.0[keys] = self.0[keys].min(bits);
    }

    /// Adds the buckets of another.
    pub(crate) fn merge(&mut self, other: &Least) {
        for (keys, &bits) in other.0.iter().enumerate() {
            self.see(keys, bits);
        }
    }
}

/// Returns the slopes for keys and for buckets of the line below all `(keys, bits)` of single buckets that is highest
/// at the average number of keys. `least[k]` is the least number of bits of a bucket of `k` keys, `u64::MAX` if there
/// is none.
fn line_below(least: &[u64], (all_keys, buckets): (u64, u64)) -> (i64, i64) {
    let points =
        || (0..).zip(least).filter(|&(_, &bits)| bits != u64::MAX).map(|(k, &bits): (i64, _)| (k, bits as i64));
    // Lower convex hull, from left to right, up to the edge over the average.
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
    // The slope is rounded, so the height is computed from all points.
    let height = |(k, bits): (i64, i64)| (bits << POINT) - key_slope * k;
    let bucket_slope = points().map(height).min().unwrap_or(0);
    let reach = i128::from(key_slope.unsigned_abs()) * i128::from(all_keys)
        + i128::from(bucket_slope.unsigned_abs()) * i128::from(buckets);
    // Without a line the lists are only larger.
    if reach < 1 << 62 { (key_slope, bucket_slope) } else { (0, 0) }
}

/// Returns the layout of lists for prefix sums of buckets with these least numbers of bits.
pub(crate) fn layout<P: Prefixes>(prefixes: &P, Least(least): &Least, log_stride: u32) -> Layout {
    let entries = prefixes.len() as u64;
    let (index, last) = (entries - 1, prefixes.get(entries as usize - 1));
    let (key_slope, bucket_slope) = if least.is_empty() { (0, 0) } else { line_below(least, (last.0, index)) };
    let mut layout = Layout {
        buckets: index,
        key_slope,
        bucket_slope,
        least_keys: least.iter().position(|&bits| bits != u64::MAX).unwrap_or(0) as u64,
        low_keys: 0,
        low_bits: 0,
        log_stride,
        upper_keys_words: 0,
        upper_bits_words: 0,
    };
    let values = layout.values(index, last);
    [layout.low_keys, layout.low_bits] = values.map(|value| elias_fano_low_bits(value, entries));
    [layout.upper_keys_words, layout.upper_bits_words] = layout.ones(index, values).map(|at| at / 64 + 1);
    layout
}

/// Returns the number of stretches, each encoded by any thread.
pub(crate) fn stretches<P: Prefixes>(prefixes: &P) -> usize {
    prefixes.len().div_ceil(STRETCH)
}

/// Memory reused from stretch to stretch: lower bits, both upper bits, jump array.
#[derive(Default)]
pub(crate) struct Space {
    sums: Vec<(u64, u64)>,
    lower: BitVec,
    uppers: [BitVec; 2],
    jumps: BitVec,
}

/// Encodes a stretch of the prefix sums in `words`, which are zero and of the number in `layout`. `None` if 16 bits are
/// too few for the jump array, which does not happen with hashed keys in practice.
pub(crate) fn encode_stretch<P: Prefixes>(
    layout: &Layout,
    prefixes: &P,
    stretch: usize,
    space: &mut Space,
    words: &[AtomicU64],
) -> Option<()> {
    let range = stretch * STRETCH..prefixes.len().min((stretch + 1) * STRETCH);
    let Space { sums, lower, uppers: [upper_keys, upper_bits], jumps } = space;
    [&mut *lower, upper_keys, upper_bits, jumps].into_iter().for_each(BitVec::clear);
    sums.resize(range.len(), (0, 0));
    prefixes.read(range.start, sums);
    let first = range.start as u64;
    let ones = |index: u64, sums| layout.ones(index, layout.values(index, sums));
    let begin = ones(first, sums[0]);
    // The jump array is relative to the first entry of the block.
    let (block, within) = (first / BLOCK, first % BLOCK);
    let base = if within == 0 { begin } else { ones(first - within, prefixes.get((first - within) as usize)) };
    let jumps_at =
        block * layout.block_words() * 64 + if within == 0 { 0 } else { 128 + (within >> layout.log_stride) * 32 };
    if within == 0 {
        base.iter().flat_map(|&at| [at, at >> 32]).for_each(|half| jumps.push(half, 32));
    }
    let mut next = begin;
    for (index, &sums) in (first..).zip(&*sums) {
        let values = layout.values(index, sums);
        lower.push(values[0], layout.low_keys);
        lower.push(values[1], layout.low_bits);
        let at = layout.ones(index, values);
        upper_keys.push_unary(at[0] - next[0]);
        upper_bits.push_unary(at[1] - next[1]);
        next = [at[0] + 1, at[1] + 1];
        if index % (1 << layout.log_stride) == 0 {
            let (keys, bits) = (at[0] - base[0], at[1] - base[1]);
            if keys.max(bits) > u64::from(u16::MAX) {
                return None;
            }
            jumps.push(keys | bits << 16, 32);
        }
    }
    let mut rest = words;
    let mut section = |words: u64| {
        let (section, after) = rest.split_at(words as usize);
        rest = after;
        section
    };
    lower.copy_to(section(layout.lower_words()), first * u64::from(layout.low_keys + layout.low_bits));
    upper_keys.copy_to(section(layout.upper_keys_words), begin[0]);
    upper_bits.copy_to(section(layout.upper_bits_words), begin[1]);
    jumps.copy_to(section(layout.jump_words()), jumps_at);
    Some(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Prefix sums in memory.
    struct Sums<'a>(&'a [u64], &'a [u64]);

    impl Prefixes for Sums<'_> {
        fn len(&self) -> usize {
            self.0.len()
        }

        fn read(&self, first: usize, to: &mut [(u64, u64)]) {
            (first..).zip(to).for_each(|(i, to)| *to = (self.0[i], self.1[i]));
        }
    }

    /// Builds the lists of prefix sums.
    pub(in super::super) fn build(keys: &[u64], bits: &[u64], log_stride: u32) -> (Layout, Vec<u64>) {
        let mut least = Least::default();
        (1..keys.len()).for_each(|i| least.see((keys[i] - keys[i - 1]) as usize, bits[i] - bits[i - 1]));
        let prefixes = Sums(keys, bits);
        let layout = layout(&prefixes, &least, log_stride);
        let words: Vec<AtomicU64> = (0..layout.words()).map(|_| AtomicU64::new(0)).collect();
        let encode = |stretch| encode_stretch(&layout, &prefixes, stretch, &mut Space::default(), &words);
        (0..stretches(&prefixes)).try_for_each(encode).unwrap();
        (layout, words.into_iter().map(AtomicU64::into_inner).collect())
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
        // The edge over 4 keys goes from (3, 2) to (5, 5), the one over 7 keys from (5, 5) to (8, 10).
        assert_eq!(line_below(&least, (40, 10)).0, (3 << POINT) / 2);
        assert_eq!(line_below(&least, (70, 10)).0, (5 << POINT) / 3);
        assert_eq!(line_below(&[u64::MAX, 3], (7, 7)), (0, 3 << POINT));
    }
}

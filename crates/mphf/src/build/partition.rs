//! Keys by partition.
//!
//! A partition stores only the rest of a hash that its number does not determine: the low half, and the bucket within
//! the partition. That is 10 bytes per key instead of 16, bytes that the system zeroes, one thread writes and another
//! one reads.

use super::huge_vec::HugeVec;
use super::work_stealing;
use std::convert::Infallible;
use std::mem::MaybeUninit;
use std::ops::Range;
use warpset_base::key::Hash128;
use warpset_core::recsplit::hash::bucket_of;

/// Splits a range of buckets into partitions of equal size.
#[derive(Clone, Debug)]
pub(crate) struct Partitions {
    /// All buckets.
    buckets: u64,
    /// The buckets that the partitions split.
    within: Range<u64>,
    /// Base-2 logarithm of the buckets in one partition.
    log_buckets: u32,
}

impl Partitions {
    /// Splits the buckets `within`, which have `keys` keys, into partitions of about `keys_wanted` keys: at most `most`
    /// of them, unless partitions would have more than 2^16 buckets.
    pub(crate) fn new(keys: u64, within: Range<u64>, buckets: u64, keys_wanted: u64, most: u64) -> Self {
        let wanted = (keys / keys_wanted).clamp(1, most);
        let mut log_buckets = 0;
        while (within.end - within.start).div_ceil(1 << log_buckets) > wanted && log_buckets < 16 {
            log_buckets += 1;
        }
        Self { buckets, within, log_buckets }
    }

    /// Returns the number of buckets in each partition but the last.
    pub(crate) fn len(&self) -> usize {
        1 << self.log_buckets
    }

    /// Returns all buckets in partitions.
    pub(crate) fn buckets(&self) -> Range<u64> {
        self.within.clone()
    }

    /// Returns the number of partitions.
    pub(crate) fn count(&self) -> usize {
        (self.within.end - self.within.start).div_ceil(1 << self.log_buckets) as usize
    }

    /// Returns the partition of a key, and its bucket within.
    #[inline]
    pub(crate) fn of(&self, hash: &Hash128) -> (usize, u16) {
        let bucket = bucket_of(hash.high, self.buckets) - self.within.start;
        ((bucket >> self.log_buckets) as usize, (bucket & ((1 << self.log_buckets) - 1)) as u16)
    }
}

/// Chunks of keys per thread: enough that no thread waits long for the others.
const CHUNKS: usize = 8;

/// The low halves of hashes, and their buckets within the partition; one partition after the other.
pub(crate) struct PartitionedKeys {
    lows: HugeVec<u64>,
    buckets: HugeVec<u16>,
    /// The end of each partition.
    ends: Vec<usize>,
}

/// The keys of one partition.
#[derive(Clone, Copy)]
pub(crate) struct Partition<'a> {
    /// Low halves of the hashes.
    pub lows: &'a [u64],
    /// Their buckets, counted from the first one of the partition.
    pub buckets: &'a [u16],
}

/// An item of the first pass over keys and pages.
enum First<'a> {
    /// Touches a fresh page.
    Page(&'a mut [u8]),
    /// Counts the keys of each partition in a chunk.
    Chunk(usize, &'a mut [u32]),
}

impl PartitionedKeys {
    /// Spreads `keys` hashes over `partitions`; `place_of` returns partition and bucket within. Touches `pages` as
    /// well.
    pub(crate) fn new<'a>(
        keys: usize,
        hash: impl Fn(usize) -> Hash128 + Sync,
        place_of: impl Fn(&Hash128) -> (usize, u16) + Sync,
        partitions: usize,
        pages: impl Iterator<Item = &'a mut [u8]>,
    ) -> Self {
        let (mut lows, mut buckets) = (HugeVec::new(keys), HugeVec::new(keys));
        let chunk = keys.div_ceil(rayon::current_num_threads() * CHUNKS).max(1 << 12);
        let range = |index: usize| index * chunk..keys.min((index + 1) * chunk);
        let mut counts = vec![0_u32; keys.div_ceil(chunk) * partitions];
        let first: Vec<First> = (lows.pages().chain(buckets.pages()).map(First::Page))
            .chain(pages.map(|page| First::Page(&mut *page)))
            .chain(counts.chunks_exact_mut(partitions).enumerate().map(|(index, counts)| First::Chunk(index, counts)))
            .collect();
        let Ok(_) = work_stealing::for_each(first.into_iter(), |(): &mut (), first| {
            match first {
                First::Page(page) => page[0] = 0,
                First::Chunk(index, counts) => range(index).for_each(|i| counts[place_of(&hash(i)).0] += 1),
            }
            Ok::<_, Infallible>(())
        });
        // Turns counts into places within partitions, chunk by chunk, and leaves the sizes of partitions.
        let mut sizes = vec![0_u32; partitions];
        for counts in counts.chunks_exact_mut(partitions) {
            sizes.iter_mut().zip(counts).for_each(|(size, count)| *size += std::mem::replace(count, *size));
        }
        let mut end = 0;
        let ends: Vec<usize> = sizes.iter().map(|&size| (end += size as usize, end).1).collect();
        assert_eq!(end, keys, "less than 2^32 keys in a partition");
        let to = (Places::of(&mut lows), Places::of(&mut buckets));
        let scatter = |places: &mut Vec<(usize, usize)>, index| {
            // Place of each partition's next key of this chunk, and the end.
            let rows = |index: usize| &counts[index * partitions..][..partitions];
            let begins = std::iter::once(0).chain(ends.iter().copied()).zip(rows(index));
            let limits = if (index + 1) * partitions < counts.len() { rows(index + 1) } else { &sizes };
            places.clear();
            places.extend(begins.zip(limits).map(|((begin, &at), &end)| (begin + at as usize, begin + end as usize)));
            for i in range(index) {
                let hash = hash(i);
                let (partition, bucket) = place_of(&hash);
                let (place, end) = &mut places[partition];
                assert!(*place < *end, "a key must have the same hash each time");
                // SAFETY: `lows` and `buckets` live until the end and have `keys` places. The places before those of
                // the next chunk are this chunk's alone, and it writes each of them once.
                unsafe {
                    to.0.put(*place, hash.low);
                    to.1.put(*place, bucket);
                }
                *place += 1;
            }
            Ok::<_, Infallible>(())
        };
        let Ok(_) = work_stealing::for_each(0..keys.div_ceil(chunk), scatter);
        // SAFETY: each chunk has one place per key, and each key took a place of its own, so all are written.
        unsafe {
            lows.set_len(keys);
            buckets.set_len(keys);
        }
        Self { lows, buckets, ends }
    }

    pub(crate) fn partition(&self, index: usize) -> Partition<'_> {
        let range = if index == 0 { 0 } else { self.ends[index - 1] }..self.ends[index];
        Partition { lows: &self.lows.as_slice()[range.clone()], buckets: &self.buckets.as_slice()[range] }
    }
}

/// Memory to which several threads write, each to its own places.
struct Places<T>(*mut MaybeUninit<T>);

// SAFETY: all access is through `put`, whose callers write to disjoint places.
unsafe impl<T: Send> Sync for Places<T> {}

impl<T: Copy> Places<T> {
    fn of(values: &mut HugeVec<T>) -> Self {
        Self(values.slots().as_mut_ptr())
    }

    /// Writes `value` to place `at`.
    ///
    /// # Safety
    /// - The allocation that `self` was made from is still live and has a place `at`.
    /// - No other thread accesses that place at the same time.
    #[inline]
    unsafe fn put(&self, at: usize, value: T) {
        // SAFETY: the place is live and accessed by this thread alone, by this function's contract.
        unsafe { self.0.add(at).write(MaybeUninit::new(value)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn every_key_in_its_partition() {
        for (keys, partitions) in [(0, 1), (1, 1), (5000, 1), (5000, 3), (4096, 7), (700_000, 1024)] {
            let hash = |i: usize| Hash128 { high: (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15), low: i as u64 };
            let place_of = |hash: &Hash128| ((hash.high >> 32) as usize % partitions, hash.high as u16);
            let mut page = [1; 4];
            let spread = PartitionedKeys::new(keys, hash, place_of, partitions, std::iter::once(&mut page[..]));
            assert_eq!(page[0], 0);
            let mut found = 0;
            for index in 0..partitions {
                let Partition { lows, buckets } = spread.partition(index);
                assert!(lows.is_sorted(), "in the order of keys");
                assert!(lows.iter().zip(buckets).all(|(&i, &bucket)| place_of(&hash(i as usize)) == (index, bucket)));
                found += lows.len();
            }
            assert_eq!(found, keys);
        }
    }

    #[test]
    #[should_panic(expected = "the same hash each time")]
    fn keys_that_change_are_noticed() {
        let calls = AtomicU64::new(0);
        let hash = |_| Hash128 { high: calls.fetch_add(1, Ordering::Relaxed) / 9000, low: 0 };
        PartitionedKeys::new(10_000, hash, |hash| (hash.high as usize, 0), 3, std::iter::empty());
    }
}

//! Lookups of one range and of many. Those of many go in batches, each stage a loop over a batch.
//!
//! | stage | work | reads | prefetches |
//! | --- | --- | --- | --- |
//! | codes | hashes the ends of ranges | | hints |
//! | blocks | finds the blocks of upper bits | hints, numbers of ones | upper bits |
//! | buckets | finds the buckets of the codes | upper bits | lower bits |
//! | answers | compares codes | lower bits | |

use std::ops::RangeBounds;

use warpset_base::bitmap::Bitmap;
use warpset_base::parallel;
use warpset_base::processor::Pdep;
use warpset_core::bits::{Portable, Select};
use warpset_core::range::{BLOCK, Bucket};

use crate::key::sealed::Word;
use crate::{KeyOf, RangeFilterView, RangeKey};

/// Ranges of a batch: the bits of a word of answers.
const BATCH: usize = 64;
/// Nanoseconds per range of a batch.
const LOOKUP_NS: f64 = 15.0;

/// Numbers of the first and the last key of a range, unless it is empty.
type Ends<K> = Option<(<K as crate::key::sealed::Ordered>::Word, <K as crate::key::sealed::Ordered>::Word)>;

/// Runs a closure with the fastest selection of this processor.
macro_rules! with_select {
    (|$select:ident| $work:expr) => {
        match Pdep::detect() {
            Some($select) => $select.run(
                #[inline(always)]
                || $work,
            ),
            None => {
                let $select = Portable;
                $work
            }
        }
    };
}

/// Prefetches the cache line of a bit.
#[inline(always)]
fn prefetch(words: &[u64], bit: u64) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch accesses no memory in the sense of the language, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(words.as_ptr().wrapping_add((bit / 64) as usize).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (words, bit);
}

impl<K: RangeKey + ?Sized> RangeFilterView<'_, K> {
    /// Returns the distances of a range's ends from the least key, for the part between the least and the largest key.
    #[inline(always)]
    fn offsets(&self, ends: Ends<K>) -> Ends<K> {
        let (first, last) = ends?;
        let (least, largest) = (K::Word::of(self.layout.ends.0), K::Word::of(self.layout.ends.1));
        let (first, last) = (first.max(least), last.min(largest));
        (first <= last && !self.is_empty()).then(|| (first.minus(least), last.minus(least)))
    }

    /// Whether any key may lie between two.
    #[inline(always)]
    pub(crate) fn any_of(&self, ends: Ends<K>) -> bool {
        let Some((first, last)) = self.offsets(ends) else { return false };
        with_select!(|select| self.any_between(first, last, select))
    }

    #[inline(always)]
    fn any_between(&self, first: K::Word, last: K::Word, select: impl Select) -> bool {
        let shape = &self.layout.shape;
        match shape.interval(first, last) {
            Some((from, to)) => shape.any(self.words, from, to, select),
            None => shape.any_interval(first, last, |from, to| shape.any(self.words, from, to, select)),
        }
    }

    /// Returns an upper bound of the number of keys between two.
    #[inline(always)]
    pub(crate) fn count_of(&self, ends: Ends<K>) -> u64 {
        let Some((first, last)) = self.offsets(ends) else { return 0 };
        with_select!(|select| self.count_between(first, last, select))
    }

    #[inline(always)]
    fn count_between(&self, first: K::Word, last: K::Word, select: impl Select) -> u64 {
        let (shape, len) = (&self.layout.shape, self.len());
        let mut count = 0u64;
        let is_long = shape.any_interval(first, last, |from, to| {
            count = count.saturating_add(shape.count(self.words, from, to, select));
            false
        });
        if is_long { len } else { count.min(len) }
    }

    /// Answers items, each a range.
    pub(crate) fn answer<T: Sync>(&self, items: &[T], ends: impl Fn(&T) -> Ends<K> + Sync) -> Bitmap {
        let mut answers = vec![0u64; items.len().div_ceil(BATCH)];
        parallel::answer(items, &mut answers, (LOOKUP_NS, BATCH), |items, answers| {
            with_select!(|select| {
                for (items, answer) in items.chunks(BATCH).zip(answers) {
                    *answer = self.batch(items, &ends, select);
                }
            });
        });
        Bitmap::from_words(answers, items.len())
    }

    /// Answers up to [`BATCH`] items, one bit each.
    #[inline(always)]
    fn batch<T>(&self, items: &[T], ends: &impl Fn(&T) -> Ends<K>, select: impl Select) -> u64 {
        let (shape, words) = (&self.layout.shape, self.words);
        let mut answers = 0;
        // Intervals of codes with the bits of their items.
        let mut intervals = [(0, (0, 0)); BATCH];
        let mut count = 0;
        for (bit, item) in items.iter().enumerate() {
            let Some((first, last)) = self.offsets(ends(item)) else { continue };
            match shape.interval(first, last) {
                Some(interval) => {
                    prefetch(words, shape.hint_place(interval.0 >> shape.low_bits));
                    intervals[count] = (bit, interval);
                    count += 1;
                }
                None => {
                    let any = shape.any_interval(first, last, |from, to| shape.any(words, from, to, select));
                    answers |= u64::from(any) << bit;
                }
            }
        }
        let mut blocks = [0; BATCH];
        for (block, &(_, (from, _))) in blocks.iter_mut().zip(&intervals[..count]) {
            *block = shape.block_of(words, from >> shape.low_bits);
            prefetch(words, *block * BLOCK);
        }
        let mut buckets = [Bucket::default(); BATCH];
        for ((bucket, &block), &(_, (from, _))) in buckets.iter_mut().zip(&blocks).zip(&intervals[..count]) {
            *bucket = shape.bucket(words, from >> shape.low_bits, block, select);
            prefetch(words, shape.low_place(bucket.first));
        }
        for (&bucket, &(bit, interval)) in buckets.iter().zip(&intervals[..count]) {
            answers |= u64::from(shape.any_in(words, interval, bucket, select)) << bit;
        }
        answers
    }

    /// Counts the keys of ranges.
    pub(crate) fn counts<Q: KeyOf<K>, R: RangeBounds<Q> + Sync>(&self, ranges: &[R], counts: &mut [u64]) {
        parallel::answer(ranges, counts, (2.0 * LOOKUP_NS, 1), |ranges, counts| {
            for (range, count) in ranges.iter().zip(counts) {
                *count = self.count_of(crate::key::words_of(range.start_bound(), range.end_bound()));
            }
        });
    }
}

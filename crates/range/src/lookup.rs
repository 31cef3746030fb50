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
use warpset_core::bits::{Portable, ReadWords, Select, read_field, word};
use warpset_core::range::{BLOCK, Bucket, LINE, Lines};

use crate::key::Ends;
use crate::key::sealed::Word;
use crate::{KeyOf, RangeFilterView, RangeKey};

/// Ranges of a batch: the bits of a word of answers.
const BATCH: usize = 64;
/// Nanoseconds per range of a batch.
const LOOKUP_NS: f64 = 15.0;

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

/// Words in host memory.
struct Words<'a>(&'a [u64]);

impl ReadWords for Words<'_> {
    #[inline(always)]
    fn word(&self, index: u64) -> u64 {
        word(self.0, index as usize)
    }

    #[inline(always)]
    fn field(&self, at: u64, width: u32) -> u64 {
        if width <= 57 && at / 64 + 1 < self.0.len() as u64 {
            let from = self.0.as_ptr().cast::<u8>().wrapping_add((at / 8) as usize);
            // SAFETY: a word follows that of the first bit, so the eight bytes from the bit's byte on are in the words.
            let bits = unsafe { from.cast::<u64>().read_unaligned() };
            bits >> (at % 8) & ((1 << width) - 1)
        } else {
            read_field(self, at, width)
        }
    }
}

impl Lines for Words<'_> {
    #[inline(always)]
    fn line(&self, block: u64) -> [u64; LINE] {
        let line = self.0.get(block as usize * LINE..).and_then(|words| words.first_chunk());
        line.copied().unwrap_or([0; LINE])
    }
}

/// Prefetches the cache line of a bit.
#[inline(always)]
fn prefetch(words: &[u64], bit: u64) {
    warpset_base::processor::prefetch(words, (bit / 64) as usize);
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
        with_select!(|select| self.layout.shape.any_between(&Words(self.words), first, last, select))
    }

    /// Returns an upper bound of the number of keys between two.
    #[inline(always)]
    pub(crate) fn count_of(&self, ends: Ends<K>) -> u64 {
        let Some((first, last)) = self.offsets(ends) else { return 0 };
        with_select!(|select| self.layout.shape.count_between(&Words(self.words), first, last, select))
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
        let (shape, words) = (&self.layout.shape, Words(self.words));
        let mut answers = 0;
        let batch = self.intervals(items, ends, |bit, first, last| {
            answers |= u64::from(shape.any_between(&words, first, last, select)) << bit;
        });
        let buckets = self.buckets(&batch.from[..batch.len], select);
        for (i, &bucket) in buckets[..batch.len].iter().enumerate() {
            let any = shape.any_in(&words, (batch.from[i], batch.to[i]), bucket, select);
            answers |= u64::from(any) << batch.item[i];
        }
        answers
    }

    /// Counts the keys of ranges.
    pub(crate) fn counts<Q: KeyOf<K>, R: RangeBounds<Q> + Sync>(&self, ranges: &[R], counts: &mut [u64]) {
        parallel::answer(ranges, counts, (2.0 * LOOKUP_NS, 1), |ranges, counts| {
            with_select!(|select| {
                for (ranges, counts) in ranges.chunks(BATCH).zip(counts.chunks_mut(BATCH)) {
                    self.count_batch(ranges, counts, select);
                }
            });
        });
    }

    /// Counts the keys of up to [`BATCH`] ranges.
    #[inline(always)]
    fn count_batch<Q: KeyOf<K>, R: RangeBounds<Q>>(&self, ranges: &[R], counts: &mut [u64], select: impl Select) {
        let (shape, words) = (&self.layout.shape, Words(self.words));
        counts.fill(0);
        let ends = |range: &R| crate::key::words_of(range.start_bound(), range.end_bound());
        let batch = self.intervals(ranges, &ends, |item, first, last| {
            counts[item] = shape.count_between(&words, first, last, select);
        });
        let (from, to) = (&batch.from[..batch.len], &batch.to[..batch.len]);
        to.iter().for_each(|&code| prefetch(self.words, shape.hint_place(shape.bucket_number(code))));
        let (first, last) = (self.buckets(from, select), self.buckets(to, select));
        for i in 0..batch.len {
            let before = shape.rank_in::<false, _>(&words, from[i], first[i]);
            let upto = shape.rank_in::<true, _>(&words, to[i], last[i]);
            counts[batch.item[i]] = upto.wrapping_sub(before).min(self.len());
        }
    }

    /// Finds the codes of ranges, and prefetches hints to the first ones. Gives ranges with several intervals of codes,
    /// which are rare, to `several`.
    #[inline(always)]
    fn intervals<T>(
        &self,
        items: &[T],
        ends: &impl Fn(&T) -> Ends<K>,
        mut several: impl FnMut(usize, K::Word, K::Word),
    ) -> Intervals {
        let shape = &self.layout.shape;
        let mut batch = Intervals { len: 0, item: [0; BATCH], from: [0; BATCH], to: [0; BATCH] };
        for (item, range) in items.iter().take(BATCH).enumerate() {
            let Some((first, last)) = self.offsets(ends(range)) else { continue };
            match shape.interval(first, last) {
                Some((from, to)) => {
                    prefetch(self.words, shape.hint_place(shape.bucket_number(from)));
                    (batch.item[batch.len], batch.from[batch.len], batch.to[batch.len]) = (item, from, to);
                    batch.len += 1;
                }
                None => several(item, first, last),
            }
        }
        batch
    }

    /// Finds the buckets of up to [`BATCH`] codes, and prefetches their lower bits.
    #[inline(always)]
    fn buckets(&self, codes: &[u64], select: impl Select) -> [Bucket; BATCH] {
        let (shape, words) = (&self.layout.shape, Words(self.words));
        let mut blocks = [0; BATCH];
        for (block, &code) in blocks.iter_mut().zip(codes) {
            *block = shape.block_of(&words, shape.bucket_number(code));
            prefetch(self.words, *block * BLOCK);
        }
        let mut buckets = [Bucket::default(); BATCH];
        for ((bucket, &block), &code) in buckets.iter_mut().zip(&blocks).zip(codes) {
            *bucket = shape.bucket(&words, shape.bucket_number(code), block, select);
            prefetch(self.words, shape.low_place(bucket.first));
        }
        buckets
    }
}

/// Ranges of a batch that have one interval of codes.
struct Intervals {
    len: usize,
    /// Places of the ranges in the batch.
    item: [usize; BATCH],
    /// First and last codes.
    from: [u64; BATCH],
    to: [u64; BATCH],
}

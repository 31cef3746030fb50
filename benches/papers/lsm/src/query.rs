//! Lookup, count and range, for the host and for devices.

use super::element::{PackedKey, PairValue};
use super::steps::{Memory, Pairs, Sorted, Steps};
use super::tree::Tree;
use crate::Error;

/// Approach of lookups (section IV-B).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LookupMethod {
    /// Each query searches the full levels by itself, from the smallest on, until one has its key. The paper measures
    /// this approach.
    #[default]
    Individual,
    /// All queries are sorted, and searched in step with each full level.
    Bulk,
}

/// Most queries of the bulk approach at once: their places are sorted as 32 bits.
const MOST_SORTED: usize = 1 << 32;

impl<K: PackedKey, V: PairValue, M: Steps<K, V>> Tree<K, V, M> {
    /// Looks up queries (section IV-B): the value of each, zero if there is none, and a bit for each with a value, in
    /// whole words.
    ///
    /// # Safety
    /// Slices that go together have one length, and outputs a place per query.
    pub unsafe fn look_up(
        &self,
        on: &M,
        queries: M::Slice<'_, K>,
        values: M::SliceMut<'_, V>,
        found: M::SliceMut<'_, u64>,
        method: LookupMethod,
    ) -> Result<(), Error> {
        match method {
            // SAFETY: values and bits have a place per query, by the contract.
            LookupMethod::Individual => unsafe { on.look_up(&self.levels(), queries, values, found) },
            LookupMethod::Bulk => self.look_up_sorted(on, queries, values, found),
        }
    }

    /// Looks up by the bulk approach: the queries are sorted, and searched in step with each full level.
    fn look_up_sorted(
        &self,
        on: &M,
        queries: M::Slice<'_, K>,
        mut values: M::SliceMut<'_, V>,
        mut found: M::SliceMut<'_, u64>,
    ) -> Result<(), Error> {
        let n = M::len(queries);
        if n > MOST_SORTED {
            return Err(warpset_primitives::Error::TooLong { len: n, max: MOST_SORTED }.into());
        }
        let (mut needles, mut places) = (on.uninit::<K>(n)?, on.uninit::<u32>(n)?);
        let (mut bounds, mut decided) = (on.uninit::<u64>(n)?, on.zeroed::<u8>(n)?);
        on.clear(M::reborrow(&mut values))?;
        on.clear(M::reborrow(&mut found))?;
        // SAFETY: both arrays have `n` places.
        unsafe { on.needles(queries, M::part_mut(&mut needles, 0..n), M::part_mut(&mut places, 0..n))? };
        // SAFETY: `n` needles and `n` places.
        unsafe { on.sort_needles(M::part_mut(&mut needles, 0..n), M::part_mut(&mut places, 0..n))? };
        for i in self.counter.full() {
            let level = self.level(i);
            // SAFETY: the level and the needles are sorted; `bounds` has `n` places.
            unsafe { on.sorted_search(level.0, M::part(&needles, 0..n), M::part_mut(&mut bounds, 0..n))? };
            let sorted = Sorted {
                needles: M::part(&needles, 0..n),
                places: M::part(&places, 0..n),
                bounds: M::part(&bounds, 0..n),
                decided: M::part_mut(&mut decided, 0..n),
            };
            // SAFETY: `sorted` is of these queries, with the bounds in this level; values and bits have a place per
            // query, by the contract of `look_up`.
            unsafe { on.resolve(level, sorted, queries, M::reborrow(&mut values), M::reborrow(&mut found))? };
        }
        Ok(())
    }

    /// Counts the keys from each of `lows` to that of `highs` that have a value, in the five steps of section IV-C.
    /// Waits after the second.
    ///
    /// # Safety
    /// Slices that go together have one length, and outputs a place per query.
    pub unsafe fn count(
        &self,
        on: &M,
        (lows, highs): (M::Slice<'_, K>, M::Slice<'_, K>),
        counts: M::SliceMut<'_, u64>,
    ) -> Result<(), Error> {
        let n = M::len(lows);
        if n == 0 {
            return Ok(());
        }
        let (estimate, total) = self.estimate(on, (lows, highs))?;
        let (mut keys, mut sorted) = (on.uninit::<K>(total)?, on.uninit::<K>(total)?);
        let mut segments = on.uninit::<u64>(n + 1)?;
        let out = M::part_mut(&mut keys, 0..total);
        // SAFETY: the estimate is of these levels; `keys` has a place per candidate, `segments` one more than queries.
        unsafe {
            on.initial_key_storage(&self.levels(), estimate.slices(), out, M::part_mut(&mut segments, 0..n + 1))?
        };
        let segments = M::part(&segments, 0..n + 1);
        // SAFETY: both arrays have `total` places, which the segments cover.
        unsafe { on.segmented_sort_keys(M::part(&keys, 0..total), segments, M::part_mut(&mut sorted, 0..total))? };
        // SAFETY: the segments cover `sorted`; `counts` has a place per query.
        unsafe { on.final_counting(M::part(&sorted, 0..total), segments, counts) }
    }

    /// Lists the elements from each of `lows` to that of `highs` (section IV-D). Waits after the second step and in the
    /// last one.
    ///
    /// # Safety
    /// Slices that go together have one length.
    pub unsafe fn range(
        &self,
        on: &M,
        (lows, highs): (M::Slice<'_, K>, M::Slice<'_, K>),
    ) -> Result<Listed<K, V, M>, Error> {
        let n = M::len(lows);
        let mut offsets = on.zeroed::<u64>(n + 1)?;
        if n == 0 {
            return Ok(Listed { offsets, pairs: Pairs::uninit(on, 0)? });
        }
        let (estimate, total) = self.estimate(on, (lows, highs))?;
        let (mut pairs, mut sorted) = (Pairs::uninit(on, total)?, Pairs::<K, V, M>::uninit(on, total)?);
        let mut segments = on.uninit::<u64>(n + 1)?;
        let out = pairs.part_mut(0..total);
        // SAFETY: the estimate is of these levels; `pairs` has a place per candidate, `segments` one more than queries.
        unsafe {
            on.initial_pair_storage(&self.levels(), estimate.slices(), out, M::part_mut(&mut segments, 0..n + 1))?
        };
        let segments = M::part(&segments, 0..n + 1);
        // SAFETY: both have `total` places, which the segments cover.
        unsafe { on.segmented_sort_pairs(pairs.part(0..total), segments, sorted.part_mut(0..total))? };

        // The input of the sort is used up, and takes the marked variables.
        let marked = M::part_mut(&mut pairs.keys, 0..total);
        // SAFETY: `sorted` and `marked` have `total` places, `offsets` one per query.
        unsafe { on.mark_valid(M::part(&sorted.keys, 0..total), segments, M::part_mut(&mut offsets, 0..n), marked)? };
        // SAFETY: one array, in its place.
        unsafe { on.scanning_stage(M::part_mut(&mut offsets, 0..n + 1))? };
        let valid = on.word(&offsets, n)? as usize;
        let mut listed = Pairs::uninit(on, valid)?;
        let marked = (M::part(&pairs.keys, 0..total), M::part(&sorted.values, 0..total));
        // SAFETY: the offsets are the scanned counts of marked elements, and `valid` is their sum.
        unsafe { on.segmented_compaction(marked, segments, M::part(&offsets, 0..n), listed.part_mut(0..valid))? };
        Ok(Listed { offsets, pairs: listed })
    }

    /// Runs steps 1 and 2: for each query the places of its candidates in each full level and in the output, and their
    /// number. Waits.
    fn estimate(&self, on: &M, ranges: (M::Slice<'_, K>, M::Slice<'_, K>)) -> Result<(Estimate<M>, usize), Error> {
        let words = M::len(ranges.0) * self.counter.full_count();
        let mut estimate = Estimate { lower: on.uninit(words)?, offsets: on.zeroed(words + 1)?, words };
        let Estimate { lower, offsets, .. } = &mut estimate;
        let counts = M::part_mut(offsets, 0..words);
        // SAFETY: as many lows as highs, by the contracts of `count` and `range`; both outputs have a word per query
        // and full level.
        unsafe { on.initial_count_estimate(&self.levels(), ranges, M::part_mut(lower, 0..words), counts)? };
        // SAFETY: one array, in its place.
        unsafe { on.scanning_stage(M::part_mut(offsets, 0..words + 1))? };
        let total = on.word(offsets, words)? as usize;
        Ok((estimate, total))
    }
}

/// Result of a range query.
pub(crate) struct Listed<K: PackedKey, V: PairValue, M: Memory> {
    /// Start of the elements of each query, and the end of the last.
    pub offsets: M::Array<u64>,
    /// Original keys and values.
    pub pairs: Pairs<K, V, M>,
}

/// Results of steps 1 and 2, a word for each query and full level.
struct Estimate<M: Memory> {
    lower: M::Array<u64>,
    /// Offsets, with the sum as one more word.
    offsets: M::Array<u64>,
    words: usize,
}

impl<M: Memory> Estimate<M> {
    fn slices(&self) -> (M::Slice<'_, u64>, M::Slice<'_, u64>) {
        (M::part(&self.lower, 0..self.words), M::part(&self.offsets, 0..self.words + 1))
    }
}

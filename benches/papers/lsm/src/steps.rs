//! Parts of the algorithms, on the host or on a device: arrays, and steps in a fixed order.
//!
//! A device queues the steps on one stream; only [`Memory::word`] waits. Steps check nothing, so they are `unsafe`.

use std::ops::Range;

use bytemuck::Pod;
use papers_kernels::lsm::layout::Counter;

use super::element::{PackedKey, PairValue};
use crate::Error;

/// Memory with arrays.
pub(crate) trait Memory {
    /// Array that owns its memory.
    type Array<T: Pod>;
    /// Part of an array for reading.
    type Slice<'a, T: Pod>: Copy;
    /// Part of an array for writing.
    type SliceMut<'a, T: Pod>;

    /// Allocates `len` items of any content.
    fn uninit<T: Pod>(&self, len: usize) -> Result<Self::Array<T>, Error>;
    /// Allocates `len` items that are zero.
    fn zeroed<T: Pod>(&self, len: usize) -> Result<Self::Array<T>, Error>;
    fn part<T: Pod>(array: &Self::Array<T>, places: Range<usize>) -> Self::Slice<'_, T>;
    fn part_mut<T: Pod>(array: &mut Self::Array<T>, places: Range<usize>) -> Self::SliceMut<'_, T>;
    fn reborrow<'a, T: Pod>(slice: &'a mut Self::SliceMut<'_, T>) -> Self::SliceMut<'a, T>;
    fn len<T: Pod>(slice: Self::Slice<'_, T>) -> usize;
    /// Copies one item per place.
    fn copy<T: Pod>(&self, from: Self::Slice<'_, T>, to: Self::SliceMut<'_, T>) -> Result<(), Error>;
    /// Sets all bytes to zero.
    fn clear<T: Pod>(&self, to: Self::SliceMut<'_, T>) -> Result<(), Error>;
    /// Reads a word of an array. Waits for everything queued.
    fn word(&self, array: &Self::Array<u64>, place: usize) -> Result<u64, Error>;
}

/// Keys and values for reading, one value per key.
pub(crate) type Pair<'a, K, V, M> = (<M as Memory>::Slice<'a, K>, <M as Memory>::Slice<'a, V>);
/// Keys and values for writing, one value per key.
pub(crate) type PairMut<'a, K, V, M> = (<M as Memory>::SliceMut<'a, K>, <M as Memory>::SliceMut<'a, V>);

/// Arrays of key variables and values.
pub(crate) struct Pairs<K: Pod, V: Pod, M: Memory> {
    pub keys: M::Array<K>,
    pub values: M::Array<V>,
}

impl<K: Pod, V: Pod, M: Memory> Pairs<K, V, M> {
    pub fn uninit(on: &M, len: usize) -> Result<Self, Error> {
        Ok(Pairs { keys: on.uninit(len)?, values: on.uninit(len)? })
    }

    pub fn zeroed(on: &M, len: usize) -> Result<Self, Error> {
        Ok(Pairs { keys: on.zeroed(len)?, values: on.zeroed(len)? })
    }

    pub fn part(&self, places: Range<usize>) -> Pair<'_, K, V, M> {
        (M::part(&self.keys, places.clone()), M::part(&self.values, places))
    }

    pub fn part_mut(&mut self, places: Range<usize>) -> PairMut<'_, K, V, M> {
        (M::part_mut(&mut self.keys, places.clone()), M::part_mut(&mut self.values, places))
    }
}

/// Batch of original keys, with the change of each.
pub(crate) struct Batch<'a, K: Pod, V: Pod, M: Memory + 'a> {
    pub keys: M::Slice<'a, K>,
    pub does: Does<'a, V, M>,
}

/// Change by the keys of a batch.
pub(crate) enum Does<'a, V: Pod, M: Memory + 'a> {
    /// Inserts the keys with these values.
    Insert(M::Slice<'a, V>),
    /// Removes the keys.
    Remove,
    /// Removes the keys whose flag is not zero, and inserts the others.
    Both(M::Slice<'a, V>, M::Slice<'a, u8>),
}

/// Levels: one array, and the counter of the full ones.
pub(crate) struct Levels<'a, K: Pod, V: Pod, M: Memory + 'a> {
    pub elements: Pair<'a, K, V, M>,
    pub counter: Counter,
}

/// Steps of the algorithms. Slices that go together have one length, and `n` queries have `n` places. Names of
/// arguments tell their contents:
///
/// - `lower`: for each query and full level the place in that level of the first candidate;
/// - `offsets`: output places of counted items, by an exclusive scan, with the sum at the end;
/// - `segments`: the candidates of query `q` are `segments[q]..segments[q + 1]`.
///
/// # Safety
/// For every method:
/// - Slices that go together have one length, each output has a place for every item, and `n` queries have `n` places;
///   `segments` and scanned `offsets` have one more.
/// - `lower`, `offsets` and `segments` are the output of the step before, for the same levels and queries.
/// - Levels are sorted by original keys where they are merged or searched.
/// - Until the device has done the step, nothing else writes its slices or frees them.
pub(crate) trait Steps<K: PackedKey, V: PairValue>: Memory + Sized {
    /// Makes a batch's key variables, the last element first, and pads it with copies of the last element. `largest`
    /// becomes the largest key with a set highest bit, if there is one.
    unsafe fn pack(
        &self,
        batch: &Batch<'_, K, V, Self>,
        out: PairMut<'_, K, V, Self>,
        largest: &mut Self::Array<u64>,
    ) -> Result<(), Error>;
    /// Sorts by key variables, status bit included; stable.
    unsafe fn sort(&self, pairs: PairMut<'_, K, V, Self>) -> Result<(), Error>;
    /// Merges by original keys, stable; of equal keys those of `newer` come first.
    unsafe fn merge(
        &self,
        newer: Pair<'_, K, V, Self>,
        older: Pair<'_, K, V, Self>,
        out: PairMut<'_, K, V, Self>,
    ) -> Result<(), Error>;

    /// Looks up each query by itself: values, and a bit for each that has one.
    unsafe fn look_up(
        &self,
        levels: &Levels<'_, K, V, Self>,
        queries: Self::Slice<'_, K>,
        values: Self::SliceMut<'_, V>,
        found: Self::SliceMut<'_, u64>,
    ) -> Result<(), Error>;
    /// Writes the key variable to search, and the place, of each query.
    unsafe fn needles(
        &self,
        queries: Self::Slice<'_, K>,
        needles: Self::SliceMut<'_, K>,
        places: Self::SliceMut<'_, u32>,
    ) -> Result<(), Error>;
    /// Sorts needles with their places.
    unsafe fn sort_needles(&self, needles: Self::SliceMut<'_, K>, places: Self::SliceMut<'_, u32>)
    -> Result<(), Error>;
    /// Finds the lower bounds of sorted needles in a level.
    unsafe fn sorted_search(
        &self,
        level: Self::Slice<'_, K>,
        needles: Self::Slice<'_, K>,
        bounds: Self::SliceMut<'_, u64>,
    ) -> Result<(), Error>;
    /// Decides the queries with a key in a level.
    unsafe fn resolve(
        &self,
        level: Pair<'_, K, V, Self>,
        sorted: Sorted<'_, K, Self>,
        queries: Self::Slice<'_, K>,
        values: Self::SliceMut<'_, V>,
        found: Self::SliceMut<'_, u64>,
    ) -> Result<(), Error>;

    /// Finds bounds for each query and full level: stage 1 of count and range.
    unsafe fn initial_count_estimate(
        &self,
        levels: &Levels<'_, K, V, Self>,
        ranges: (Self::Slice<'_, K>, Self::Slice<'_, K>),
        lower: Self::SliceMut<'_, u64>,
        counts: Self::SliceMut<'_, u64>,
    ) -> Result<(), Error>;
    /// Scans counts in place, exclusively: stage 2.
    unsafe fn scanning_stage(&self, counts: Self::SliceMut<'_, u64>) -> Result<(), Error>;
    /// Copies the candidates' key variables: stage 3 of a count.
    unsafe fn initial_key_storage(
        &self,
        levels: &Levels<'_, K, V, Self>,
        estimate: (Self::Slice<'_, u64>, Self::Slice<'_, u64>),
        out: Self::SliceMut<'_, K>,
        segments: Self::SliceMut<'_, u64>,
    ) -> Result<(), Error>;
    /// Copies the candidates' key variables and values: stage 3 of a range.
    unsafe fn initial_pair_storage(
        &self,
        levels: &Levels<'_, K, V, Self>,
        estimate: (Self::Slice<'_, u64>, Self::Slice<'_, u64>),
        out: PairMut<'_, K, V, Self>,
        segments: Self::SliceMut<'_, u64>,
    ) -> Result<(), Error>;
    /// Sorts each segment by original keys, stable: stage 4 of a count.
    unsafe fn segmented_sort_keys(
        &self,
        from: Self::Slice<'_, K>,
        segments: Self::Slice<'_, u64>,
        to: Self::SliceMut<'_, K>,
    ) -> Result<(), Error>;
    /// Sorts each segment with values: stage 4 of a range.
    unsafe fn segmented_sort_pairs(
        &self,
        from: Pair<'_, K, V, Self>,
        segments: Self::Slice<'_, u64>,
        to: PairMut<'_, K, V, Self>,
    ) -> Result<(), Error>;
    /// Counts the first elements of a key that are regular: stage 5 of a count.
    unsafe fn final_counting(
        &self,
        keys: Self::Slice<'_, K>,
        segments: Self::Slice<'_, u64>,
        counts: Self::SliceMut<'_, u64>,
    ) -> Result<(), Error>;
    /// Counts as [`final_counting`](Self::final_counting) does, and writes key variables with a status bit that says
    /// whether the element is valid: stage 5 of a range.
    unsafe fn mark_valid(
        &self,
        keys: Self::Slice<'_, K>,
        segments: Self::Slice<'_, u64>,
        counts: Self::SliceMut<'_, u64>,
        marked: Self::SliceMut<'_, K>,
    ) -> Result<(), Error>;
    /// Writes original keys and values of marked elements, those of query `q` from `offsets[q]` on: stage 5 of a range.
    unsafe fn segmented_compaction(
        &self,
        marked: Pair<'_, K, V, Self>,
        segments: Self::Slice<'_, u64>,
        offsets: Self::Slice<'_, u64>,
        out: PairMut<'_, K, V, Self>,
    ) -> Result<(), Error>;

    /// Marks the elements that a cleanup keeps: regular ones that are the first of their key. There is a bit per
    /// element, zero before.
    unsafe fn mark_stale(&self, keys: Self::Slice<'_, K>, valid: Self::SliceMut<'_, u64>) -> Result<(), Error>;
    /// Moves marked elements to the start of `out`, and their number to the first word of `count`.
    unsafe fn compact(
        &self,
        pairs: Pair<'_, K, V, Self>,
        valid: Self::Slice<'_, u64>,
        out: PairMut<'_, K, V, Self>,
        count: &mut Self::Array<u64>,
    ) -> Result<(), Error>;
    /// Writes placebos.
    unsafe fn placebos(&self, out: Self::SliceMut<'_, K>) -> Result<(), Error>;
}

/// Sorted queries of the bulk approach, for one level.
pub(crate) struct Sorted<'a, K: Pod, M: Memory + 'a> {
    pub needles: M::Slice<'a, K>,
    /// Query of each needle.
    pub places: M::Slice<'a, u32>,
    /// Lower bound of each needle in the level.
    pub bounds: M::Slice<'a, u64>,
    /// Flag per needle, not zero once a level had the key.
    pub decided: M::SliceMut<'a, u8>,
}

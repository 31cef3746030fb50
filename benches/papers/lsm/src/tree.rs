//! Insertion, deletion, bulk build and cleanup, for the host and for devices.
//!
//! A failed operation leaves the tree unchanged: levels are emptied once the new one is written.

use papers_kernels::lsm::layout::Counter;

use super::element::{PackedKey, PairValue};
use super::steps::{Batch, Levels, Memory, Pair, PairMut, Pairs, Steps};
use crate::Error;

/// All levels in one array, and the binary counter.
pub(crate) struct Tree<K: PackedKey, V: PairValue, M: Memory> {
    pub counter: Counter,
    /// Elements; level `i` begins at `(2^i - 1) b`. The contents of empty levels are undefined.
    pub elements: Pairs<K, V, M>,
    /// Number of levels that fit in the array.
    room: u32,
}

impl<K: PackedKey, V: PairValue, M: Steps<K, V>> Tree<K, V, M> {
    pub fn empty(on: &M, batch: usize) -> Result<Self, Error> {
        Self::with_levels(on, Counter { batch, batches: 0 })
    }

    /// Makes an array for the levels that are full by this counter.
    fn with_levels(on: &M, counter: Counter) -> Result<Self, Error> {
        let room = counter.levels();
        Ok(Tree { counter, elements: Pairs::zeroed(on, counter.offset(room))?, room })
    }

    /// Makes a tree of levels in an array, which may fit other levels too.
    pub fn from_levels(counter: Counter, elements: Pairs<K, V, M>) -> Self {
        Tree { counter, elements, room: counter.levels() }
    }

    pub fn levels(&self) -> Levels<'_, K, V, M> {
        Levels { elements: self.elements.part(0..self.counter.offset(self.room)), counter: self.counter }
    }

    pub fn level(&self, i: u32) -> Pair<'_, K, V, M> {
        let first = self.counter.offset(i);
        self.elements.part(first..first + self.counter.len(i))
    }

    /// Returns the bytes of the array.
    pub fn memory_bytes(&self) -> u64 {
        (self.counter.offset(self.room) * (size_of::<K>() + size_of::<V>())) as u64
    }

    /// Writes level `i`, which fits in the array.
    fn fill_level(&mut self, on: &M, i: u32, (keys, values): Pair<'_, K, V, M>) -> Result<(), Error> {
        let first = self.counter.offset(i);
        let to = self.elements.part_mut(first..first + self.counter.len(i));
        on.copy(keys, to.0)?;
        on.copy(values, to.1)
    }

    /// Inserts a batch (figures 2a and 3): sorted and padded, it is merged with level after level until one is empty.
    /// It has at least one element. With `check`, reads the largest key, and waits for it.
    ///
    /// # Safety
    /// The batch has a value and a flag per key, and at most `b` keys.
    pub unsafe fn insert(&mut self, on: &M, batch: &Batch<'_, K, V, M>, check: bool) -> Result<(), Error> {
        let Counter { batch: b, batches } = self.counter;
        let empty = batches.trailing_ones();
        let total = b << empty;
        // Double buffers, one read and one written in turn.
        let mut buffer = Pairs::uninit(on, total)?;
        let mut other = Pairs::uninit(on, if empty == 0 { 0 } else { total })?;
        sorted_batch(on, batch, buffer.part_mut(0..b), check)?;
        let mut len = b;
        for i in 0..empty {
            // SAFETY: both are sorted and have `len` elements.
            unsafe { on.merge(buffer.part(0..len), self.level(i), other.part_mut(0..2 * len))? };
            std::mem::swap(&mut buffer, &mut other);
            len *= 2;
        }
        let counter = Counter { batch: b, batches: batches + 1 };
        if empty == self.room {
            // All levels were full, so the array of one more level has no other elements.
            let mut grown = Self::with_levels(on, counter)?;
            grown.fill_level(on, empty, buffer.part(0..total))?;
            *self = grown;
            return Ok(());
        }
        self.fill_level(on, empty, buffer.part(0..total))?;
        self.counter = counter;
        on.clear(M::part_mut(&mut self.elements.keys, 0..counter.offset(empty)))
    }

    /// Builds in bulk (section V-B): one sort, and the sorted array cut into levels.
    ///
    /// # Safety
    /// The batch has a value and a flag per key.
    pub unsafe fn build(on: &M, b: usize, batch: &Batch<'_, K, V, M>) -> Result<Self, Error> {
        let batches = M::len(batch.keys).div_ceil(b);
        let mut sorted = Pairs::uninit(on, batches * b)?;
        if batches != 0 {
            sorted_batch(on, batch, sorted.part_mut(0..batches * b), true)?;
        }
        Self::redistributed(on, &sorted, Counter { batch: b, batches: batches as u64 })
    }

    /// Cleans up (section IV-E). Waits.
    pub fn cleanup(&mut self, on: &M) -> Result<(), Error> {
        let b = self.counter.batch;
        let (mut valid, len) = self.valid_elements(on)?;
        let batches = len.div_ceil(b);
        // There were at least as many elements, a multiple of `b`, so they fit.
        let (keys, values) = valid.part_mut(len..batches * b);
        // SAFETY: any places will do.
        unsafe { on.placebos(keys)? };
        on.clear(values)?;
        *self = Self::redistributed(on, &valid, Counter { batch: b, batches: batches as u64 })?;
        Ok(())
    }

    /// Runs steps 1 to 3 of a cleanup: all levels merged, from the smallest to the largest, stale elements marked, the
    /// others compacted. Returns arrays as long as all levels, and the number of valid elements at their start. Waits.
    pub fn valid_elements(&self, on: &M) -> Result<(Pairs<K, V, M>, usize), Error> {
        let total = self.counter.resident();
        let mut merged = Pairs::uninit(on, total)?;
        let mut other = Pairs::uninit(on, total)?;
        let mut len = 0;
        for i in self.counter.full() {
            let (from, with) = (self.level(i), len + self.counter.len(i));
            if len == 0 {
                let to = merged.part_mut(0..with);
                on.copy(from.0, to.0)?;
                on.copy(from.1, to.1)?;
            } else {
                // SAFETY: both are sorted, and have `with` elements together.
                unsafe { on.merge(merged.part(0..len), from, other.part_mut(0..with))? };
                std::mem::swap(&mut merged, &mut other);
            }
            len = with;
        }
        let words = total.div_ceil(64);
        let mut valid = on.zeroed::<u64>(words)?;
        let mut count = on.zeroed::<u64>(1)?;
        // SAFETY: `merged` is sorted; a bit per element, all zero.
        unsafe { on.mark_stale(M::part(&merged.keys, 0..total), M::part_mut(&mut valid, 0..words))? };
        // SAFETY: a bit per element, and as many places as elements.
        unsafe { on.compact(merged.part(0..total), M::part(&valid, 0..words), other.part_mut(0..total), &mut count)? };
        let count = on.word(&count, 0)? as usize;
        Ok((other, count))
    }

    /// Cuts sorted elements into the full levels of a counter: smaller keys go to smaller levels.
    fn redistributed(on: &M, sorted: &Pairs<K, V, M>, counter: Counter) -> Result<Self, Error> {
        let mut tree = Self::with_levels(on, counter)?;
        let mut first = 0;
        for i in counter.full() {
            let end = first + counter.len(i);
            tree.fill_level(on, i, sorted.part(first..end))?;
            first = end;
        }
        Ok(tree)
    }
}

/// Packs a batch of at least one element, pads it to the length of `out`, and sorts it by key variables: of equal keys
/// tombstones come first, then the last insertion.
fn sorted_batch<K: PackedKey, V: PairValue, M: Steps<K, V>>(
    on: &M,
    batch: &Batch<'_, K, V, M>,
    mut out: PairMut<'_, K, V, M>,
    check: bool,
) -> Result<(), Error> {
    let mut largest = on.zeroed::<u64>(1)?;
    // SAFETY: there is a value and a flag per key, by the contracts of `insert` and `build`; `out` has a place per
    // element, and more up to whole batches; `largest` is one word.
    unsafe { on.pack(batch, (M::reborrow(&mut out.0), M::reborrow(&mut out.1)), &mut largest)? };
    if check {
        let key = on.word(&largest, 0)?;
        if key != 0 {
            return Err(Error::KeyTooLarge { key, bits: 8 * size_of::<K>() as u32 - 1 });
        }
    }
    // SAFETY: as many values as keys, by the caller.
    unsafe { on.sort(out) }
}

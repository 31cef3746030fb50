//! Levels: sorted runs that never change once they are made, each at its index.

use warpset_core::lsm::capacity;

use crate::run::{Elements, Run};
use crate::search_index::SearchIndex;
use crate::{OrderedKey, Value};

/// Index of a level, which determines its capacity. The smallest levels, which hold the newest elements, come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LevelIndex(pub(crate) u32);

impl LevelIndex {
    /// Returns the number of the level, from 0.
    pub fn get(self) -> u32 {
        self.0
    }

    /// Returns the largest number of elements of the level in a dictionary of this batch size.
    pub fn capacity(self, batch_size: u64) -> u64 {
        capacity(batch_size, self.0)
    }

    /// Returns the smallest level that holds `len` elements.
    pub(crate) fn holding(batch_size: u64, len: usize) -> LevelIndex {
        LevelIndex((0..).find(|&index| capacity(batch_size, index) >= len as u64).unwrap_or(u32::MAX))
    }
}

/// Returns the level for a batch of `len` elements, and the number of occupied levels that are merged with it. It is
/// the first level `j` that holds the batch together with the levels `0..=j`. `levels` lists the occupied levels with
/// their lengths, by ascending index.
pub(crate) fn place_for(
    batch_size: u64,
    len: usize,
    levels: impl Iterator<Item = (LevelIndex, usize)>,
) -> (LevelIndex, usize) {
    let mut levels = levels.peekable();
    let (mut sum, mut merged) = (len as u64, 0);
    for index in 0.. {
        if let Some((_, len)) = levels.next_if(|&(occupied, _)| occupied.0 == index) {
            sum += len as u64;
            merged += 1;
        }
        if sum <= capacity(batch_size, index) {
            return (LevelIndex(index), merged);
        }
    }
    unreachable!("the capacity of level 64 is that of the address space")
}

/// A level's elements.
pub struct Level<K, V> {
    pub index: LevelIndex,
    pub elements: Elements<K, V>,
    search_index: SearchIndex<K>,
}

impl<K: OrderedKey, V: Value> Level<K, V> {
    pub fn new(index: LevelIndex, elements: Elements<K, V>) -> Self {
        Level { index, elements, search_index: SearchIndex::default() }
    }

    /// Returns an only level, in which all elements live.
    pub fn of_live(index: LevelIndex, elements: Elements<K, V>) -> Self {
        Level { index, elements, search_index: SearchIndex::of_live() }
    }
}

/// Sorted run with its search index, whoever owns it.
pub trait Sorted<K, V> {
    fn run(&self) -> Run<'_, K, V>;
    fn search_index(&self) -> &SearchIndex<K>;
}

impl<K: OrderedKey, V: Value> Sorted<K, V> for Level<K, V> {
    #[inline]
    fn run(&self) -> Run<'_, K, V> {
        self.elements.run()
    }

    #[inline]
    fn search_index(&self) -> &SearchIndex<K> {
        &self.search_index
    }
}

impl<K, V, S: Sorted<K, V>> Sorted<K, V> for std::sync::Arc<S> {
    #[inline]
    fn run(&self) -> Run<'_, K, V> {
        (**self).run()
    }

    #[inline]
    fn search_index(&self) -> &SearchIndex<K> {
        (**self).search_index()
    }
}

/// Returns the bytes of the elements and of their search indexes.
pub(crate) fn memory_bytes<K: OrderedKey, V: Value>(levels: &[impl Sorted<K, V>]) -> u64 {
    let bytes = |level: &dyn Sorted<K, V>| {
        let run = level.run();
        let bitmap = if run.has_tombstones() { 4 * run.len().div_ceil(32) } else { 0 };
        (run.len() * (size_of::<K>() + size_of::<V>()) + bitmap) as u64 + level.search_index().memory_bytes()
    };
    levels.iter().map(|level| bytes(level)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a stream of batches through the rule alone.
    fn lengths(batch_size: u64, batches: impl Iterator<Item = usize>) -> Vec<(u32, usize)> {
        let mut levels: Vec<(LevelIndex, usize)> = Vec::new();
        for len in batches {
            let (index, merged) = place_for(batch_size, len, levels.iter().copied());
            let sum = len + levels.drain(..merged).map(|(_, len)| len).sum::<usize>();
            levels.insert(0, (index, sum));
        }
        levels.into_iter().map(|(index, len)| (index.0, len)).collect()
    }

    #[test]
    fn full_batches_count_in_binary() {
        for resident in 1..=64usize {
            let expected: Vec<(u32, usize)> =
                (0..7).filter(|bit| resident >> bit & 1 == 1).map(|bit| (bit, 64 << bit)).collect();
            assert_eq!(lengths(64, std::iter::repeat_n(64, resident)), expected);
            let gathered: Vec<(u32, usize)> = expected.iter().map(|&(i, len)| (i + 2, 1024 * len)).collect();
            assert_eq!(lengths(1 << 16, std::iter::repeat_n(1 << 16, resident)), gathered);
        }
    }

    #[test]
    fn small_and_long_batches() {
        assert_eq!(lengths(1 << 16, std::iter::repeat_n(1, 256)), [(0, 256)]);
        assert_eq!(lengths(1 << 16, std::iter::repeat_n(1, 257)), [(1, 257)]);
        assert_eq!(lengths(1 << 16, std::iter::repeat_n(1, 258)), [(0, 1), (1, 257)]);
        assert_eq!(lengths(64, [1000, 3].into_iter()), [(0, 3), (4, 1000)]);
        assert_eq!(LevelIndex::holding(64, 65), LevelIndex(1));
        assert_eq!(LevelIndex::holding(64, 0), LevelIndex(0));
    }
}

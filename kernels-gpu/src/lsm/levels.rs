//! The levels of a log-structured merge tree as kernels see them, by way of the [table](super::table) of their
//! addresses: keys, values, tombstones, and what [`derive`](super::derive) makes of the keys.

use warpset_core::lsm::index::Buckets;
use warpset_core::lsm::{filter_mask, filter_word};
use warpset_simt::{Global, GlobalMut};

use crate::lsm::table::{LEVELS, word};
use crate::primitives::merge_path::MergeKey;

/// Words of 64 bits at the start of an index: least key, greatest key, shift, multiplier.
pub const INDEX_HEAD: usize = 4;

/// A key of a level.
pub trait LevelKey: MergeKey + Into<u64> {}
impl LevelKey for u32 {}
impl LevelKey for u64 {}

/// The key as hashes and indexes take it.
#[inline(always)]
pub fn number<K: LevelKey>(key: K) -> u64 {
    key.into()
}

/// The table.
#[derive(Clone, Copy)]
pub struct Levels {
    table: Global<u64>,
}

/// One level's keys and index.
#[derive(Clone, Copy)]
pub struct Level<K> {
    /// In ascending order, the newest of equal ones first.
    pub keys: Global<K>,
    /// How many.
    pub len: usize,
    index: u64,
}

/// Elements `low..high` of a level.
#[derive(Clone, Copy)]
pub struct Span {
    /// The first.
    pub low: usize,
    /// After the last.
    pub high: usize,
}

impl Span {
    /// None.
    pub const EMPTY: Self = Self { low: 0, high: 0 };

    /// Elements.
    #[inline(always)]
    pub fn count(self) -> usize {
        self.high - self.low
    }
}

/// Which elements of a level are tombstones: the address of the bits, or 0 if none is.
#[derive(Clone, Copy)]
pub struct Tombstones(u64);

impl Tombstones {
    /// Whether element `i` is one.
    ///
    /// # Safety
    /// `i` is below the level's length, and [`Levels::new`]'s contract holds.
    #[inline(always)]
    pub unsafe fn is_one(self, i: usize) -> bool {
        if self.0 == 0 {
            return false;
        }
        let bits: Global<u32> = Global::at_address(self.0, i / 32 + 1);
        // SAFETY: there is one bit per element.
        unsafe { bits.read_nc(i / 32) >> (i % 32) & 1 != 0 }
    }
}

impl Levels {
    /// Reads levels by the table at `table`.
    ///
    /// # Safety
    /// While it is used:
    /// - `table` is as `lsm_publish` left it, and the arrays of each level are where it says; keys ascend; no thread
    ///   writes any of them.
    /// - Filters and indexes are those of their level's keys.
    #[inline(always)]
    pub unsafe fn new(table: Global<u64>) -> Self {
        Self { table }
    }

    #[inline(always)]
    fn word(self, level: u32, word: usize) -> u64 {
        // SAFETY: `new`'s caller vouches for the table.
        unsafe { self.table.read_nc(word * LEVELS + level as usize) }
    }

    /// The level of that number.
    #[inline(always)]
    pub fn level<K>(self, number: u32) -> Level<K> {
        let len = self.word(number, word::LEN) as usize;
        let keys = Global::at_address(self.word(number, word::KEYS), len);
        Level { keys, len, index: self.word(number, word::INDEX) }
    }

    /// Whether the level may hold a key of this [`filter_hash`](warpset_core::lsm::filter_hash). True without a filter.
    #[inline(always)]
    pub fn may_hold(self, number: u32, hash: u64) -> bool {
        let words = self.word(number, word::FILTER_WORDS);
        if words == 0 {
            return true;
        }
        let filter: Global<u64> = Global::at_address(self.word(number, word::FILTER), words as usize);
        let mask = filter_mask(hash);
        // SAFETY: a filter's word is below their number, and `new`'s caller vouches for all of them.
        unsafe { filter.read_nc(filter_word(hash, words) as usize) & mask == mask }
    }

    /// Where the level's words of visibility begin.
    #[inline(always)]
    pub fn first_visible(self, number: u32) -> usize {
        self.word(number, word::FIRST_VISIBLE) as usize
    }

    /// The address of the keys of the level.
    #[inline(always)]
    pub fn keys_address(self, number: u32) -> u64 {
        self.word(number, word::KEYS)
    }

    /// The address of the values of the level.
    #[inline(always)]
    pub fn values_address(self, number: u32) -> u64 {
        self.word(number, word::VALUES)
    }

    /// The keys of the level.
    #[inline(always)]
    pub fn keys<K>(self, number: u32) -> Global<K> {
        Global::at_address(self.word(number, word::KEYS), self.word(number, word::LEN) as usize)
    }

    /// The tombstones of the level.
    #[inline(always)]
    pub fn tombstones(self, number: u32) -> Tombstones {
        Tombstones(self.word(number, word::TOMBSTONES))
    }

    /// Where the key stands in a level, if it does.
    #[inline(always)]
    pub fn place_of<K: LevelKey>(self, number: u32, key: K) -> Option<usize> {
        let level = self.level::<K>(number);
        let place = level.indexed().lower_bound(key);
        // SAFETY: `place` is below the length where it is read.
        let found = place < level.len && unsafe { level.keys.read_nc(place) } == key;
        if found { Some(place) } else { None }
    }

    /// Copies the value of element `i`, of `words` words of 32 bits: 0, 1 or 2, to place `to`.
    ///
    /// # Safety
    /// - `i` is below the level's length, and values have that many words.
    /// - `out` is valid for a value at `to`, which nothing else accesses.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn copy_value(self, number: u32, i: usize, words: u32, out: GlobalMut<u32>, to: usize) {
        let address = self.word(number, word::VALUES);
        // SAFETY: the caller's promise.
        unsafe {
            if words == 1 {
                out.write(to, Global::at_address(address, i + 1).read_nc(i));
            } else if words == 2 {
                out.cast::<u64>().write(to, Global::<u64>::at_address(address, i + 1).read_nc(i));
            }
        }
    }
}

impl<K: LevelKey> Level<K> {
    /// With what the head of the index says, if the level has one.
    #[inline(always)]
    pub fn indexed(self) -> IndexedLevel<K> {
        if self.index == 0 {
            let buckets = Buckets { least: 0, greatest: 0, shift: 0, multiplier: 0 };
            return IndexedLevel { level: self, buckets };
        }
        let head: Global<u64> = Global::at_address(self.index, INDEX_HEAD);
        // SAFETY: an index begins with its head, at a multiple of 16 bytes.
        let ([least, greatest], [shift, multiplier]) = unsafe { (head.read2_nc(0), head.read2_nc(2)) };
        IndexedLevel { level: self, buckets: Buckets { least, greatest, shift: shift as u32, multiplier } }
    }
}

/// A level, ready for searches.
#[derive(Clone, Copy)]
pub struct IndexedLevel<K> {
    level: Level<K>,
    buckets: Buckets,
}

impl<K: LevelKey> IndexedLevel<K> {
    /// The keys of the level.
    #[inline(always)]
    pub fn keys(self) -> Global<K> {
        self.level.keys
    }

    /// What the index says of a key.
    #[inline(always)]
    fn span(self, key: K) -> Span {
        let Level { len, index, .. } = self.level;
        if index == 0 {
            return Span { low: 0, high: len };
        }
        let key = key.into();
        if key < self.buckets.least {
            return Span { low: 0, high: 0 };
        }
        if key > self.buckets.greatest {
            return Span { low: len, high: len };
        }
        let bucket = bucket_of::<K>(self.buckets, key);
        let entries: Global<u32> = Global::at_address(index, 2 * INDEX_HEAD + bucket + 2).at(2 * INDEX_HEAD);
        // SAFETY: the key is among those that the buckets were made for, so its bucket has an entry, and the next one.
        unsafe { Span { low: entries.read_nc(bucket) as usize, high: entries.read_nc(bucket + 1) as usize } }
    }

    /// The number of elements with smaller keys.
    #[inline(always)]
    pub fn lower_bound(self, key: K) -> usize {
        let Span { low, high } = self.span(key);
        // SAFETY: an index does not lead past the level.
        unsafe { lower_bound(self.level.keys, low, high, key) }
    }

    /// The elements with keys from `first` to `last`, at least `first`. Both searches go in step, so that their reads
    /// overlap.
    #[inline(always)]
    pub fn between(self, first: K, last: K) -> Span {
        let (mut a, mut b) = (self.span(first), self.span(last));
        while (a.low < a.high) | (b.low < b.high) {
            let (middle_a, middle_b) = (a.low + (a.high - a.low) / 2, b.low + (b.high - b.low) / 2);
            let (mut key_a, mut key_b) = (K::default(), K::default());
            // SAFETY: an index does not lead past the level, and a middle is below what was `high`.
            unsafe {
                if a.low < a.high {
                    key_a = self.level.keys.read_nc(middle_a);
                }
                if b.low < b.high {
                    key_b = self.level.keys.read_nc(middle_b);
                }
            }
            if a.low < a.high {
                a = if key_a < first { Span { low: middle_a + 1, ..a } } else { Span { high: middle_a, ..a } };
            }
            if b.low < b.high {
                b = if key_b <= last { Span { low: middle_b + 1, ..b } } else { Span { high: middle_b, ..b } };
            }
        }
        Span { low: a.low, high: b.low }
    }
}

/// The bucket of a key of type `K`. For keys of 32 bits the shift is at least 32, so half of the bits do.
#[inline(always)]
fn bucket_of<K>(buckets: Buckets, key: u64) -> usize {
    if size_of::<K>() > 4 {
        return buckets.of(key) as usize;
    }
    let shifted = (key as u32).wrapping_sub(buckets.least as u32) << (buckets.shift & 31);
    // There are fewer than 2^32 buckets.
    ((shifted as u64).wrapping_mul(buckets.multiplier) >> 32) as usize
}

/// The first of `low..high` with a key not less, or `high`.
///
/// # Safety
/// The keys ascend there and are valid for reading, which nothing writes meanwhile.
#[inline(always)]
#[track_caller]
pub unsafe fn lower_bound<K: LevelKey>(keys: Global<K>, mut low: usize, mut high: usize, key: K) -> usize {
    while low < high {
        let middle = low + (high - low) / 2;
        // SAFETY: `middle` is between the bounds.
        let less = unsafe { keys.read_nc(middle) } < key;
        low = if less { middle + 1 } else { low };
        high = if less { high } else { middle };
    }
    low
}

/// The first of `low..high` with a greater key, or `high`.
///
/// # Safety
/// As [`lower_bound`].
#[inline(always)]
#[track_caller]
pub unsafe fn upper_bound<K: LevelKey>(keys: Global<K>, mut low: usize, mut high: usize, key: K) -> usize {
    while low < high {
        let middle = low + (high - low) / 2;
        // SAFETY: `middle` is between the bounds.
        let not_greater = unsafe { keys.read_nc(middle) } <= key;
        low = if not_greater { middle + 1 } else { low };
        high = if not_greater { high } else { middle };
    }
    low
}

#[cfg(all(test, not(target_arch = "nvptx64")))]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_bits_give_the_same_bucket() {
        for (least, greatest) in
            [(0, 0), (5, 6), (0, u32::MAX as u64), (9, 1 << 31), (7, 1 << 20), (1 << 31, u32::MAX as u64)]
        {
            for len in [1, 9, 1000, 1 << 20, 1 << 27, (1 << 32) - 2] {
                let buckets = Buckets::new(least, greatest, len);
                for step in 0..=1000 {
                    let key = least + (greatest - least) * step / 1000;
                    assert_eq!(
                        bucket_of::<u32>(buckets, key) as u64,
                        buckets.of(key),
                        "{least}..={greatest} {len} {key}"
                    );
                }
            }
        }
    }
}

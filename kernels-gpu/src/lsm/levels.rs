//! Levels of a log-structured merge tree in kernels, read through the [table](super::table) of their addresses: keys,
//! values, tombstones, and the search data that [`derive`](super::derive) makes of the keys.

use warpset_core::lsm::{Number, filter_mask, filter_word};
use warpset_simt::{Global, GlobalMut};

use crate::lsm::nodes::{Index, NodeKey};
use crate::lsm::table::{LEVELS, word};

/// Key of a level.
pub trait LevelKey: NodeKey + Into<Self::Number> {
    /// Key as a number, for hashes and indexes.
    type Number: Number;

    /// Returns the number of bits of the distance to `from`, at most this key.
    fn bits_from(self, from: Self) -> u32;

    /// Returns the distance to `from`, at most this key, without its lowest `shift` bits; the rest has at most 32.
    fn steps_from(self, from: Self, shift: u32) -> u32;
}

macro_rules! level_keys {
    ($($key:ty: $number:ty;)*) => {$(
        impl LevelKey for $key {
            type Number = $number;

            #[inline(always)]
            fn bits_from(self, from: Self) -> u32 {
                Self::BITS - (self - from).leading_zeros()
            }

            #[inline(always)]
            fn steps_from(self, from: Self, shift: u32) -> u32 {
                ((self - from) >> (shift & (Self::BITS - 1))) as u32
            }
        }
    )*};
}
level_keys! { u32: u64; u64: u64; u128: u128; }

/// Returns the key as a number, for hashes and indexes.
#[inline(always)]
pub fn number<K: LevelKey>(key: K) -> K::Number {
    key.into()
}

/// Table of the levels.
#[derive(Clone, Copy)]
pub struct Levels {
    table: Global<u64>,
}

/// Keys and index of one level.
#[derive(Clone, Copy)]
pub struct Level<K> {
    /// Keys in ascending order, the newest of equal ones first.
    pub keys: Global<K>,
    /// Number of elements.
    pub len: usize,
    index: u64,
}

/// Elements `low..high` of a level.
#[derive(Clone, Copy)]
pub struct Span {
    /// First element.
    pub low: usize,
    /// One past the last element.
    pub high: usize,
}

impl Span {
    /// No elements.
    pub const EMPTY: Self = Self { low: 0, high: 0 };

    /// Returns the number of elements.
    #[inline(always)]
    pub fn count(self) -> usize {
        self.high - self.low
    }
}

/// Tombstones of a level: the address of the bits, or 0 if there are none.
#[derive(Clone, Copy)]
pub struct Tombstones(u64);

#[cfg(feature = "bodies")]
impl Tombstones {
    /// Whether element `i` is a tombstone.
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

#[cfg(feature = "bodies")]
impl Levels {
    /// Reads levels by the table at `table`.
    ///
    /// # Safety
    /// While it is used:
    /// - `table` is the output of `lsm_publish`, and the arrays of each level are at its addresses; keys ascend; no
    ///   thread writes any of them.
    /// - Filters and indexes are those of their level's keys.
    #[inline(always)]
    pub unsafe fn new(table: Global<u64>) -> Self {
        Self { table }
    }

    #[inline(always)]
    fn word(self, level: u32, word: usize) -> u64 {
        // SAFETY: the table is valid by the contract of `new`.
        unsafe { self.table.read_nc(word * LEVELS + level as usize) }
    }

    /// Returns the level with this number.
    #[inline(always)]
    pub fn level<K>(self, number: u32) -> Level<K> {
        let len = self.len(number);
        let keys = Global::at_address(self.word(number, word::KEYS), len);
        Level { keys, len, index: self.word(number, word::INDEX) }
    }

    /// Whether the level may hold a key with this [`filter_hash`](warpset_core::lsm::filter_hash). True without a
    /// filter.
    #[inline(always)]
    pub fn may_hold(self, number: u32, hash: u64) -> bool {
        let words = self.word(number, word::FILTER_WORDS);
        if words == 0 {
            return true;
        }
        let filter: Global<u64> = Global::at_address(self.word(number, word::FILTER), words as usize);
        let mask = filter_mask(hash);
        // SAFETY: a filter's word is below their number, and filters are valid by the contract of `new`.
        unsafe { filter.read_nc(filter_word(hash, words) as usize) & mask == mask }
    }

    /// Returns the number of elements of the level.
    #[inline(always)]
    pub fn len(self, number: u32) -> usize {
        self.word(number, word::LEN) as usize
    }

    /// Returns the place of the level's first word of visibility.
    #[inline(always)]
    pub fn first_visible(self, number: u32) -> usize {
        self.word(number, word::FIRST_VISIBLE) as usize
    }

    /// Returns the address of the level's values.
    #[inline(always)]
    pub fn values_address(self, number: u32) -> u64 {
        self.word(number, word::VALUES)
    }

    /// Returns the level's keys.
    #[inline(always)]
    pub fn keys<K>(self, number: u32) -> Global<K> {
        Global::at_address(self.word(number, word::KEYS), self.len(number))
    }

    /// Returns the level's tombstones.
    #[inline(always)]
    pub fn tombstones(self, number: u32) -> Tombstones {
        Tombstones(self.word(number, word::TOMBSTONES))
    }

    /// Returns the place of the key in a level, if it is there.
    #[inline(always)]
    pub fn place_of<K: LevelKey>(self, number: u32, key: K) -> Option<usize> {
        let (place, is_there) = self.level::<K>(number).indexed().find(key);
        if is_there { Some(place) } else { None }
    }

    /// Copies the value of element `i`, of `words` words of 32 bits: 0, 1 or 2, to place `to`.
    ///
    /// # Safety
    /// - `i` is below the level's length, and values have `words` words.
    /// - `out` is valid for a value at `to`, which nothing else accesses.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn copy_value(self, number: u32, i: usize, words: u32, out: GlobalMut<u32>, to: usize) {
        let address = self.word(number, word::VALUES);
        // SAFETY: the contract of this function.
        unsafe {
            if words == 1 {
                out.write(to, Global::at_address(address, i + 1).read_nc(i));
            } else if words == 2 {
                out.cast::<u64>().write(to, Global::<u64>::at_address(address, i + 1).read_nc(i));
            }
        }
    }
}

#[cfg(feature = "bodies")]
impl<K: LevelKey> Level<K> {
    /// Returns the level with the head of its index, if it has one.
    #[inline(always)]
    pub fn indexed(self) -> IndexedLevel<K> {
        // SAFETY: keys and index are valid by the contract of `Levels::new`.
        unsafe { Index::new(self.keys, self.len, self.index) }
    }
}

/// Level, ready for searches.
pub type IndexedLevel<K> = Index<K>;

/// Returns the first element of `low..high` with a key not less, or `high`.
///
/// # Safety
/// The keys ascend there, are valid for reads, and nothing writes them meanwhile.
#[cfg(feature = "bodies")]
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

/// Returns the first element of `low..high` with a greater key, or `high`.
///
/// # Safety
/// The contract of [`lower_bound`].
#[cfg(feature = "bodies")]
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

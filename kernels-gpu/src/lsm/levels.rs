//! The levels of a log-structured merge tree as kernels see them, by way of the [table](super::table) of their
//! addresses: keys, values, tombstones, and what [`derive`](super::derive) makes of the keys.

use warpset_core::lsm::{Number, filter_mask, filter_word};
use warpset_simt::{Global, GlobalMut};

use crate::lsm::nodes::{Index, NodeKey};
use crate::lsm::table::{LEVELS, word};

/// A key of a level.
pub trait LevelKey: NodeKey + Into<Self::Number> {
    /// The key as hashes and indexes take it.
    type Number: Number;

    /// How many bits the distance to `from`, which is not above, has.
    fn bits_from(self, from: Self) -> u32;

    /// The distance to `from`, which is not above, without its lowest `shift` bits; the rest has at most 32.
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

/// The key as hashes and indexes take it.
#[inline(always)]
pub fn number<K: LevelKey>(key: K) -> K::Number {
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

#[cfg(feature = "bodies")]
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

#[cfg(feature = "bodies")]
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
        let len = self.len(number);
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

    /// How many elements the level has.
    #[inline(always)]
    pub fn len(self, number: u32) -> usize {
        self.word(number, word::LEN) as usize
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
        Global::at_address(self.word(number, word::KEYS), self.len(number))
    }

    /// The tombstones of the level.
    #[inline(always)]
    pub fn tombstones(self, number: u32) -> Tombstones {
        Tombstones(self.word(number, word::TOMBSTONES))
    }

    /// Where the key stands in a level, if it does.
    #[inline(always)]
    pub fn place_of<K: LevelKey>(self, number: u32, key: K) -> Option<usize> {
        let (place, is_there) = self.level::<K>(number).indexed().find(key);
        if is_there { Some(place) } else { None }
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

#[cfg(feature = "bodies")]
impl<K: LevelKey> Level<K> {
    /// With what the head of the index says, if the level has one.
    #[inline(always)]
    pub fn indexed(self) -> IndexedLevel<K> {
        // SAFETY: `Levels::new`'s caller vouches for the keys and their index.
        unsafe { Index::new(self.keys, self.len, self.index) }
    }
}

/// A level, ready for searches.
pub type IndexedLevel<K> = Index<K>;

/// The first of `low..high` with a key not less, or `high`.
///
/// # Safety
/// The keys ascend there and are valid for reading, which nothing writes meanwhile.
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

/// The first of `low..high` with a greater key, or `high`.
///
/// # Safety
/// As [`lower_bound`].
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

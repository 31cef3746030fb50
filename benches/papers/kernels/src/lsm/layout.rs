//! Contents and places of the published tree, one copy for kernels and the host.
//!
//! ```text
//! key variable   | original key (31 or 63 bits) | status bit |     1: regular element, 0: tombstone
//! one array      | level 0: b | level 1: 2 b | level 2: 4 b | ...   level i begins at (2^i - 1) b
//! ```
//!
//! A level is full or empty: level `i` is full if bit `i` of the number of resident batches is set.
//!
//! A tombstone's variable is the least of all variables with its key. So "the variable is below `pack(key, false)`"
//! means that the original key is below `key`, and "it is not above `pack(key, true)`" that the original key is not
//! above `key`. Searches need no mask, for any order of status bits within a key.

use warpset_simt::{Global, Word};

/// Original key with its status bit below it.
pub trait KeyVariable: Word + Ord + Default + Into<u64> {
    /// Largest original key.
    const MAX_KEY: Self;
    /// Tombstone of [`KeyVariable::MAX_KEY`], which pads a cleanup.
    const PLACEBO: Self;
    /// Makes the variable of an original key; its highest bit is dropped.
    fn pack(key: Self, is_regular: bool) -> Self;
    /// Returns the original key.
    fn original(self) -> Self;
    /// Whether it is not a tombstone.
    fn is_regular(self) -> bool;
}

macro_rules! variables {
    ($($word:ty),*) => {$(
        impl KeyVariable for $word {
            const MAX_KEY: Self = <$word>::MAX >> 1;
            const PLACEBO: Self = <$word>::MAX - 1;
            #[inline(always)]
            fn pack(key: Self, is_regular: bool) -> Self {
                key << 1 | is_regular as $word
            }
            #[inline(always)]
            fn original(self) -> Self {
                self >> 1
            }
            #[inline(always)]
            fn is_regular(self) -> bool {
                self & 1 == 1
            }
        }
    )*};
}
variables!(u32, u64);

/// Returns the first place of `low..high` with a variable not less than `bound`, or `high`.
///
/// # Safety
/// Variables `low..high` are valid for reads, ascend, and are not written while the kernel runs.
#[inline(always)]
#[track_caller]
pub unsafe fn lower_bound<K: KeyVariable>(keys: Global<K>, low: usize, high: usize, bound: K) -> usize {
    // SAFETY: the contract is the same.
    unsafe { partition_point(keys, low, high, |variable| variable < bound) }
}

/// Returns the first place of `low..high` with a variable greater than `bound`, or `high`.
///
/// # Safety
/// The contract of [`lower_bound`].
#[inline(always)]
#[track_caller]
pub unsafe fn upper_bound<K: KeyVariable>(keys: Global<K>, low: usize, high: usize, bound: K) -> usize {
    // SAFETY: the contract is the same.
    unsafe { partition_point(keys, low, high, |variable| variable <= bound) }
}

/// Returns the first place of `low..high` with a variable for which `before` does not hold, or `high`.
///
/// # Safety
/// The contract of [`lower_bound`].
#[inline(always)]
#[track_caller]
unsafe fn partition_point<K: KeyVariable>(
    keys: Global<K>,
    mut low: usize,
    mut high: usize,
    before: impl Fn(K) -> bool,
) -> usize {
    while low < high {
        let middle = low + (high - low) / 2;
        // SAFETY: `low <= middle < high`.
        let before = before(unsafe { keys.read_nc(middle) });
        low = if before { middle + 1 } else { low };
        high = if before { high } else { middle };
    }
    low
}

/// Binary counter of the full levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Elements of a batch, and of level 0.
    pub batch: usize,
    /// Resident batches.
    pub batches: u64,
}

impl Counter {
    /// Returns the full levels, those with the newest elements first.
    #[inline(always)]
    pub fn full(self) -> FullLevels {
        FullLevels(self.batches)
    }

    /// Returns the number of full levels.
    #[inline(always)]
    pub fn full_count(self) -> usize {
        self.batches.count_ones() as usize
    }

    /// Returns the number of levels, full or empty, up to the last full one.
    #[inline(always)]
    pub fn levels(self) -> u32 {
        64 - self.batches.leading_zeros()
    }

    /// Returns the first place of level `i`.
    #[inline(always)]
    pub fn offset(self, i: u32) -> usize {
        self.batch * ((1 << i) - 1)
    }

    /// Returns the number of elements of level `i` if it is full.
    #[inline(always)]
    pub fn len(self, i: u32) -> usize {
        self.batch << i
    }

    /// Whether there is no batch.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.batches == 0
    }

    /// Returns the number of elements of all full levels.
    #[inline(always)]
    pub fn resident(self) -> usize {
        self.batch * self.batches as usize
    }
}

/// Iterator over the numbers of full levels, ascending.
#[derive(Clone, Copy, Debug)]
pub struct FullLevels(u64);

impl Iterator for FullLevels {
    type Item = u32;

    #[inline(always)]
    fn next(&mut self) -> Option<u32> {
        if self.0 == 0 {
            return None;
        }
        let level = self.0.trailing_zeros();
        self.0 &= self.0 - 1;
        Some(level)
    }
}

#[cfg(all(test, not(target_arch = "nvptx64")))]
mod tests {
    use super::*;

    #[test]
    fn bounds_need_no_mask() {
        for stored in 0..8u32 {
            for key in 0..4u32 {
                assert_eq!(stored < u32::pack(key, false), stored.original() < key);
                assert_eq!(stored <= u32::pack(key, true), stored.original() <= key);
            }
        }
        assert_eq!(u32::PLACEBO, u32::pack(u32::MAX_KEY, false));
        assert_eq!(u64::PLACEBO, u64::pack(u64::MAX_KEY, false));
        assert!(u64::pack(u64::MAX_KEY, true).is_regular() && !u64::PLACEBO.is_regular());
    }

    #[test]
    fn levels_are_the_bits_of_the_number_of_batches() {
        let counter = Counter { batch: 10, batches: 0b1101 };
        assert!(counter.full().eq([0, 2, 3]));
        assert_eq!((counter.full_count(), counter.levels(), counter.resident()), (3, 4, 130));
        assert_eq!((counter.offset(0), counter.offset(2), counter.len(2)), (0, 30, 40));
        assert!(Counter { batch: 10, batches: 0 }.full().next().is_none());
    }
}

//! Construction of the [`visibility`](super::visibility) of a tree's elements.
//!
//! 1. [`lsm_visible_own`] sets the bit of the first of equal keys in a level, the newest, unless it is a tombstone.
//! 2. [`lsm_visible_hide`] takes the first of equal keys in each level, tombstones included, looks the key up in all
//!    older levels, and clears the bit of the first element with that key there. Keys of neighbouring lanes ascend, so
//!    their lookups read the same sectors.
//! 3. [`lsm_visible_counts`] counts the bits of each word, a scan adds the counts, [`lsm_visible_words`] joins both.
//!
//! Cost: half of the elements are in the oldest level and are never looked up; a quarter are looked up once, an eighth
//! twice, and so on, because levels double. The sum is one search per element.

use warpset_simt::warp::{self, FULL_MASK, lane_id};
use warpset_simt::{Global, GlobalMut, atomic, thread};

use crate::lsm::levels::{LevelKey, Levels};
use crate::lsm::visibility::PER_WORD;

/// Threads per block of the kernels of this module.
pub const BLOCK: u32 = 256;

/// Returns the level of a word, which is before the last level's end.
///
/// # Safety
/// All lanes of the warp call this together; `first` is the place of the first word of the lane's level.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
unsafe fn level_of(first: usize, word: usize) -> u32 {
    // SAFETY: all lanes call this together.
    let begun = unsafe { warp::ballot(FULL_MASK, first <= word) };
    31 - begun.leading_zeros()
}

/// Returns the place of the first word of the lane's level; for a lane without a level, the end of all words.
#[cfg(feature = "bodies")]
#[inline(always)]
fn first_word(tree: Levels, levels: u32, end: usize) -> usize {
    if lane_id() < levels { tree.first_visible(lane_id()) } else { end }
}

/// Returns the first word of a warp, and the distance to its next.
#[cfg(feature = "bodies")]
#[inline(always)]
fn stride() -> (usize, usize) {
    (thread::index_1d() as usize / 32, thread::grid_dim_x() as usize * (BLOCK / 32) as usize)
}

/// Returns element `i` of a level, unless an element of its level hides it or there is none.
///
/// # Safety
/// [`Levels::new`]'s contract.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn newest<K: LevelKey>(tree: Levels, level: u32, i: usize) -> Option<K> {
    let here = tree.level::<K>(level);
    if i >= here.len {
        return None;
    }
    // SAFETY: `i` is below the length.
    unsafe {
        let key = here.keys.read_nc(i);
        if i != 0 && here.keys.read_nc(i - 1) == key { None } else { Some(key) }
    }
}

kernel! {
    /// Sets the bits of the elements that are live and the newest of their key in their level.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid of blocks of [`BLOCK`] threads.
    /// - `table`: as for [`Levels::new`], with `levels > 0` levels of keys of the type of `_keys`, which are not read.
    /// - `bits`: valid for `words` words, as many as all levels have; used by this launch alone.
    #[launch_bounds(256, 8)]
    pub unsafe fn lsm_visible_own<K>(table: Global<u64>, levels: u32, _keys: Global<K>, bits: GlobalMut<u32>, words: usize)
    for [u32 => lsm_visible_own_u32, u64 => lsm_visible_own_u64, u128 => lsm_visible_own_u128] {
        // SAFETY: the contract of this kernel.
        let tree = unsafe { Levels::new(table) };
        let first = first_word(tree, levels, words);
        let (mut word, step) = stride();
        while word < words {
            // SAFETY: the word is equal in all lanes, and belongs to this warp.
            unsafe {
                let level = level_of(first, word);
                let i = (word - warp::shuffle_idx(FULL_MASK, first as u64, level) as usize) * PER_WORD + lane_id() as usize;
                let live = newest::<K>(tree, level, i).is_some() && !tree.tombstones(level).is_one(i);
                let live = warp::ballot(FULL_MASK, live);
                if lane_id() == 0 {
                    bits.write(word, live);
                }
            }
            word += step;
        }
    }

    /// Clears the bits of elements that a newer level hides.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid of blocks of [`BLOCK`] threads.
    /// - `table`, `_keys`: as for [`lsm_visible_own`]; `words` words belong to all levels but the oldest.
    /// - `bits`: the output of [`lsm_visible_own`], used by this launch alone.
    #[launch_bounds(256, 6)]
    pub unsafe fn lsm_visible_hide<K>(table: Global<u64>, levels: u32, _keys: Global<K>, bits: GlobalMut<u32>, words: usize)
    for [
        u32 => lsm_visible_hide_u32, #[launch_bounds(256, 5)] u64 => lsm_visible_hide_u64,
        #[launch_bounds(256, 4)] u128 => lsm_visible_hide_u128
    ] {
        // SAFETY: the contract of this kernel.
        let tree = unsafe { Levels::new(table) };
        let first = first_word(tree, levels, words);
        let (mut word, step) = stride();
        while word < words {
            // SAFETY: the word is equal in all lanes; a place that is read is below its level's length, and has a bit.
            unsafe {
                let level = level_of(first, word);
                let i = (word - warp::shuffle_idx(FULL_MASK, first as u64, level) as usize) * PER_WORD + lane_id() as usize;
                if let Some(key) = newest::<K>(tree, level, i) {
                    for older in level + 1..levels {
                        if let Some(place) = tree.place_of(older, key) {
                            let word = tree.first_visible(older) + place / PER_WORD;
                            atomic::reduce_and(bits.at(word), !(1 << (place % PER_WORD)));
                        }
                    }
                }
            }
            word += step;
        }
    }

    /// Counts the bits of each word.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid.
    /// - `bits`: valid for `words` reads, not written while the kernel runs; `counts`: valid for `words` writes, used
    ///   by this launch alone.
    pub unsafe fn lsm_visible_counts(bits: Global<u32>, counts: GlobalMut<u32>, words: usize) {
        for i in thread::grid_stride(words) {
            // SAFETY: `i < words`.
            unsafe { counts.write(i, bits.read_nc(i).count_ones()) };
        }
    }

    /// Combines bits and counts to words.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid.
    /// - `bits`: valid for `words` reads; `before`: valid for one more: the number of set bits before each word, modulo
    ///   2^32. Neither is written while the kernel runs.
    /// - `out`: valid for `words + 1` writes, used by this launch alone.
    pub unsafe fn lsm_visible_words(bits: Global<u32>, before: Global<u32>, words: usize, out: GlobalMut<u64>) {
        for i in thread::grid_stride(words + 1) {
            // SAFETY: `i <= words`, and `i < words` where bits are read.
            unsafe {
                let bits = if i < words { bits.read_nc(i) } else { 0 };
                out.write(i, (before.read_nc(i) as u64) << 32 | bits as u64);
            }
        }
    }
}

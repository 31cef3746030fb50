//! Neighbours in the order of the keys: for each query the live element with the least key above it, or with the
//! greatest key below it.
//!
//! The paper says that its levels make such queries straightforward (Ashkiani, Li, Farach-Colton, Amenta, Owens, "GPU
//! LSM", IPDPS 2018, section II, footnote 1) and gives no algorithm. Here a group of lanes processes a query, one lane
//! per level. Each lane offers the nearest key of its level; the newest level with the best key decides. If its element
//! is a tombstone, the lanes that offered this key go past it.

use warpset_simt::warp::{self, FULL_MASK, lane_id};
use warpset_simt::{Global, GlobalMut, atomic, thread};

use crate::lsm::levels::{LevelKey, Levels};
#[cfg(feature = "bodies")]
use crate::lsm::levels::{lower_bound, upper_bound};

/// Threads per block.
pub const BLOCK: u32 = 256;
/// Warps per block.
pub const WARPS: u32 = BLOCK / 32;

/// Returns the first element of a level with the key of element `last`, which is the last one with it.
///
/// # Safety
/// The keys ascend up to `last`, are valid for reads, and nothing writes them meanwhile.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
unsafe fn first_of<K: LevelKey>(keys: Global<K>, last: usize, key: K) -> usize {
    // SAFETY: the contract of this function.
    unsafe {
        // Most keys occur once.
        if last == 0 || keys.read_nc(last - 1) != key {
            return last;
        }
        lower_bound(keys, 0, last, key)
    }
}

/// Returns the first element of a level after those with the key of element `first`; `len` if there is none.
///
/// # Safety
/// The keys ascend up to `len`, are valid for reads, and nothing writes them meanwhile; `first < len`.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
unsafe fn after<K: LevelKey>(keys: Global<K>, first: usize, len: usize, key: K) -> usize {
    // SAFETY: the contract of this function.
    unsafe {
        if first + 1 == len || keys.read_nc(first + 1) != key {
            return first + 1;
        }
        upper_bound(keys, first + 1, len, key)
    }
}

kernel! {
    /// Finds for each query the live element with the least key above it, if `upwards` is not 0, or with the greatest
    /// key below it; the query's own key counts too if `inclusive` is not 0. Keys and values of queries without a
    /// neighbour become zero.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid of blocks of [`BLOCK`] threads.
    /// - `table`: as for [`Levels::new`], with `levels` levels, at most 32.
    /// - `queries`: valid for `n` reads, not written while the kernel runs.
    /// - `out_keys`: valid for `n` writes, `out_values` for `n` values of `value_words` words of 32 bits, 0, 1 or 2;
    ///   both used by this launch alone.
    /// - `found`: valid for a bit per query in whole words, all zero, only accessed atomically while the kernel runs.
    #[launch_bounds(256, 4)]
    pub unsafe fn lsm_neighbours<K>(
        table: Global<u64>, levels: u32, queries: Global<K>, n: usize, upwards: u32, inclusive: u32,
        out_keys: GlobalMut<K>, out_values: GlobalMut<u32>, value_words: u32, found: GlobalMut<u64>,
    ) for [u32 => lsm_neighbours_u32, u64 => lsm_neighbours_u64, #[launch_bounds(256, 3)] u128 => lsm_neighbours_u128] {
        let (upwards, inclusive) = (upwards != 0, inclusive != 0);
        // SAFETY: the contract of this kernel.
        let tree = unsafe { Levels::new(table) };
        let lanes = levels.max(1).next_power_of_two();
        let (group, own) = (lane_id() / lanes, lane_id() % lanes);
        let group_mask = (u32::MAX >> (32 - lanes)) << (group * lanes);
        let at_a_time = (32 / lanes) as usize;
        // Lanes without a level read that of the newest, and do not use it.
        let number = if own < levels { own } else { 0 };
        let level = tree.level::<K>(number);
        let (keys, len, indexed) = (level.keys, level.len, level.indexed());
        let warp_in_grid = thread::index_1d() as usize / 32;
        let mut base = warp_in_grid * at_a_time;
        while base < n {
            let query = base + group as usize;
            let has_level = own < levels && query < n;
            // The lane's next element upwards, or the number of remaining elements downwards.
            let mut place = 0;
            let mut open = query < n;
            let mut answered = false;
            // SAFETY: all lanes of the warp reach each vote and exchange: `base` is equal in all lanes, and the loop
            // ends for all at once. `query < n` where it is read, and answered by one lane of its group; places are
            // inside the level where its keys are read.
            unsafe {
                if has_level {
                    let key = queries.read_nc(query);
                    let around = indexed.between(key, key);
                    place = if upwards == inclusive { around.low } else { around.high };
                }
                loop {
                    let offers = has_level && open && (if upwards { place < len } else { place > 0 });
                    let at = if upwards { place } else { place.wrapping_sub(1) };
                    let key = if offers { keys.read_nc(at) } else { K::default() };
                    let (mut any, mut best) = (offers as u32, key);
                    let mut distance = 1;
                    while distance < lanes {
                        let other_any = warp::shuffle_xor(FULL_MASK, any, distance);
                        let other = warp::shuffle_xor(FULL_MASK, best, distance);
                        let is_nearer = if upwards { other < best } else { other > best };
                        if other_any != 0 && (any == 0 || is_nearer) {
                            best = other;
                        }
                        any |= other_any;
                        distance *= 2;
                    }
                    let has_best = offers && key == best;
                    let with_best = warp::ballot(FULL_MASK, has_best) & group_mask;
                    let mut newest = at;
                    if has_best && !upwards {
                        newest = first_of(keys, at, key);
                    }
                    // The newest level's lane decides.
                    let decides = has_best && with_best.trailing_zeros() == lane_id();
                    let lives = decides && !tree.tombstones(number).is_one(newest);
                    let is_live = warp::ballot(FULL_MASK, lives) & group_mask != 0;
                    if lives {
                        out_keys.write(query, key);
                        tree.copy_value(number, newest, value_words, out_values, query);
                        atomic::reduce_or(found.at(query / 64), 1u64 << (query % 64));
                    } else if has_best && !is_live {
                        place = if upwards { after(keys, place, len, key) } else { newest };
                    }
                    answered |= is_live;
                    open &= any != 0 && !is_live;
                    if !warp::any(FULL_MASK, open) {
                        break;
                    }
                }
                if own == 0 && query < n && !answered {
                    out_keys.write(query, K::default());
                    if value_words == 1 {
                        out_values.write(query, 0);
                    } else if value_words == 2 {
                        out_values.cast::<u64>().write(query, 0);
                    }
                }
            }
            base += thread::grid_dim_x() as usize * WARPS as usize * at_a_time;
        }
    }
}

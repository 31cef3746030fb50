//! Merge path: the crossings of the merge of two sorted runs with diagonals.
//!
//! The merge of runs `a` and `b` is a path through a grid of `a.len()` by `b.len()` cells. It crosses the diagonal `d`
//! where `d` items have been merged, and the crossing gives the number of them that come from `a`. Crossings are found
//! independently of each other, so every block, and in it every thread, merges the same number of items. Source: Odeh,
//! Green, Mwassi, Shmueli, Birk, "Merge Path - Parallel Merging Made Simple", IPDPSW 2012, section III; Green, McColl,
//! Bader, "GPU Merge Path: A GPU Merging Algorithm", ICS 2012.
//!
//! Among equal keys those of `a` come first.

use core::ops::BitAnd;

use warpset_simt::shared::Shared;
use warpset_simt::{Global, GlobalMut, Word, thread, warp};

/// Key that is compared by the bits of a mask.
pub trait MergeKey: Word + Default + Ord + BitAnd<Output = Self> {}
impl MergeKey for u32 {}
impl MergeKey for u64 {}
impl MergeKey for u128 {}

/// Whether `first`, of an earlier run, goes before `second`.
#[cfg(feature = "bodies")]
#[inline(always)]
pub fn goes_first<K: MergeKey>(first: K, second: K, mask: K) -> bool {
    first & mask <= second & mask
}

/// Counts the items of `a` among the first `diagonal` of the merge, by one warp, which tries 32 places at a time.
///
/// # Safety
/// - All lanes of the warp call this together with the same arguments.
/// - The runs are valid for `a_len` and `b_len` reads and not written while the kernel runs.
/// - `diagonal` is at most their sum.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
pub unsafe fn crossing_by_warp<K: MergeKey>(
    a: Global<K>,
    a_len: usize,
    b: Global<K>,
    b_len: usize,
    diagonal: usize,
    mask: K,
) -> usize {
    let lane = warp::lane_id() as usize;
    let mut low = diagonal.saturating_sub(b_len);
    let mut high = diagonal.min(a_len);
    while low < high {
        // The last place of each of 32 parts.
        let part = (high - low).div_ceil(32);
        let at = low + (lane + 1) * part - 1;
        // SAFETY: `low <= at < high` keeps both places inside their runs; the whole warp reaches the vote.
        let parts = unsafe {
            let first = at < high && goes_first(a.read_nc(at), b.read_nc(diagonal - 1 - at), mask);
            warp::ballot(warp::FULL_MASK, first).count_ones() as usize
        };
        low += parts * part;
        high = high.min(low + part - 1);
    }
    low
}

/// Counts as [`crossing_by_warp`] does, by a single thread that halves: fewer reads, but more of them in sequence.
///
/// # Safety
/// The contract of [`crossing_by_warp`], for a single thread.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
pub unsafe fn crossing_by_thread<K: MergeKey>(
    a: Global<K>,
    a_len: usize,
    b: Global<K>,
    b_len: usize,
    diagonal: usize,
    mask: K,
) -> usize {
    let mut low = diagonal.saturating_sub(b_len);
    let mut high = diagonal.min(a_len);
    while low < high {
        let middle = low + (high - low) / 2;
        // SAFETY: `low <= middle < high` keeps both places inside their runs.
        if unsafe { goes_first(a.read_nc(middle), b.read_nc(diagonal - 1 - middle), mask) } {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Counts the items of `a` among the first `diagonal` of the merge of two runs in shared memory.
///
/// # Safety
/// - The runs are in shared memory, and nothing writes them meanwhile.
/// - `diagonal` is at most the sum of their lengths.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
pub unsafe fn crossing_in_shared<K: MergeKey>(
    (a, a_len): (Shared<K>, u32),
    (b, b_len): (Shared<K>, u32),
    diagonal: u32,
    mask: K,
) -> u32 {
    let mut low = diagonal.saturating_sub(b_len);
    let mut high = diagonal.min(a_len);
    while low < high {
        let middle = (low + high) / 2;
        // SAFETY: `low <= middle < high` keeps both places inside their runs.
        if unsafe { goes_first(a.get(middle), b.get(diagonal - 1 - middle), mask) } {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Tile of a block, and the thread's part in it.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
pub struct Tile<const THREADS: u32, const ITEMS: usize> {
    /// Number of the thread.
    pub t: u32,
    /// Items of the first run.
    pub a_len: u32,
    /// Items.
    pub len: u32,
}

#[cfg(feature = "bodies")]
impl<const THREADS: u32, const ITEMS: usize> Tile<THREADS, ITEMS> {
    /// Loads every `THREADS`-th item from the thread's own on, of the first run's part followed by the second run's;
    /// `FULL` if the tile is complete.
    ///
    /// # Safety
    /// Both parts are valid for reads and not written while the kernel runs.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load<T: Word + Default, const FULL: bool>(self, a: Global<T>, b: Global<T>) -> [T; ITEMS] {
        let mut items = [T::default(); ITEMS];
        for u in 0..ITEMS {
            let i = self.t + u as u32 * THREADS;
            if FULL || i < self.len {
                let from = if i < self.a_len { a.at(i as usize) } else { b.at((i - self.a_len) as usize) };
                // SAFETY: `i` is below the length of both parts together.
                items[u] = unsafe { from.read_nc(0) };
            }
        }
        items
    }

    /// Puts the result of [`load`](Self::load) into shared memory, both parts side by side.
    ///
    /// # Safety
    /// `to` is valid for a tile, which nothing else accesses.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn put<T: Word, const FULL: bool>(self, to: Shared<T>, items: [T; ITEMS]) {
        for u in 0..ITEMS {
            let i = self.t + u as u32 * THREADS;
            if FULL || i < self.len {
                // SAFETY: each place of the tile belongs to one thread.
                unsafe { to.set(i, items[u]) };
            }
        }
    }

    /// Writes the thread's merged items to `out`, through shared memory.
    ///
    /// # Safety
    /// - All threads of the block call this together.
    /// - No thread reads `shared` any more.
    /// - `out` is valid for the tile and used by this launch alone.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn store<T: Word, const FULL: bool>(self, shared: Shared<T>, items: [T; ITEMS], out: GlobalMut<T>) {
        // SAFETY: a thread writes its own places, which exist beyond an incomplete tile too; then, after a barrier, it
        // reads every `THREADS`-th below the length.
        unsafe {
            for u in 0..ITEMS {
                shared.set(self.t * ITEMS as u32 + u as u32, items[u]);
            }
            thread::sync_threads();
            for u in 0..ITEMS {
                let i = self.t + u as u32 * THREADS;
                if FULL || i < self.len {
                    out.write(i as usize, shared.get(i));
                }
            }
        }
    }
}

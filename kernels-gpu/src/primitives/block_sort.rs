//! Sort by one block of items in its shared memory, digit by digit.

use crate::primitives::ranking::{self, DIGITS, SortKey};
use warpset_simt::shared::{self, Shared};
use warpset_simt::{thread, warp};

/// Shared memory of a block of `WARPS` warps for up to `TILE` items: counters, sums, and two copies of the items. An
/// item is a key and its *origin*, a number of 16 bits: its place before the first pass. Keys of 16 bytes do not move,
/// only their origins; there is one copy of such keys.
///
/// Between passes, items stay in shared memory and not in registers. The loops over them are not unrolled, so the cost
/// is proportional to any number of items.
#[derive(Clone, Copy)]
pub struct BlockSort<K, const WARPS: u32, const TILE: u32> {
    counters: Shared<u32>,
    sums: Shared<u32>,
    keys: Shared<K>,
    origins: Shared<u16>,
    /// Second copy, unless keys do not move.
    other_keys: Shared<K>,
    other_origins: Shared<u16>,
}

impl<K: SortKey, const WARPS: u32, const TILE: u32> BlockSort<K, WARPS, TILE> {
    const SUMS_AT: u32 = WARPS * DIGITS * 4;
    const KEYS_AT: u32 = Self::SUMS_AT + 128;
    /// Whether keys move with their origins.
    const KEYS_MOVE: bool = size_of::<K>() <= 8;
    const ORIGINS_AT: u32 = Self::KEYS_AT + if Self::KEYS_MOVE { 2 } else { 1 } * TILE * size_of::<K>() as u32;
    /// Bytes from the start of the dynamic shared memory.
    pub const SHARED_BYTES: u32 = Self::ORIGINS_AT + 2 * TILE * 2;
    /// Bytes from [`staging`](Self::staging) on.
    pub const STAGING_BYTES: u32 = Self::SHARED_BYTES - Self::KEYS_AT;

    /// Returns the block sort at the start of the dynamic shared memory.
    #[cfg(feature = "bodies")]
    #[inline(always)]
    pub fn in_shared_memory() -> Self {
        let (keys, origins) = (shared::dynamic::<K>(Self::KEYS_AT), shared::dynamic::<u16>(Self::ORIGINS_AT));
        Self {
            counters: shared::dynamic(0),
            sums: shared::dynamic(Self::SUMS_AT),
            keys,
            origins,
            other_keys: if Self::KEYS_MOVE { keys.at(TILE) } else { keys },
            other_origins: origins.at(TILE),
        }
    }

    /// Returns the place of this thread's item `i`, if each thread has `rows`.
    #[inline(always)]
    fn place(rows: u32, i: u32) -> u32 {
        (thread::thread_idx_x() / 32 * rows + i) * 32 + warp::lane_id()
    }

    /// Calls `item` with the place of each of this thread's items below `32 * WARPS * rows`.
    #[inline(always)]
    pub fn for_each(rows: u32, mut item: impl FnMut(u32)) {
        for i in 0..rows {
            item(Self::place(rows, i));
        }
    }

    /// Sets the item at a place, which is its origin, before the first pass.
    ///
    /// # Safety
    /// `place` is below `TILE`, and this thread's own.
    #[cfg(feature = "bodies")]
    #[inline(always)]
    pub unsafe fn set(self, place: u32, key: K) {
        // SAFETY: the contract of this function.
        unsafe {
            self.keys.set(place, key);
            self.origins.set(place, place as u16);
        }
    }

    /// Returns key and origin of the item at a place.
    ///
    /// # Safety
    /// `place` is below `TILE`, and has been set.
    #[cfg(feature = "bodies")]
    #[inline(always)]
    pub unsafe fn get(self, place: u32) -> (K, u32) {
        // SAFETY: the contract of this function; origins are places that have been set.
        unsafe {
            let origin = self.origins.get(place) as u32;
            (self.keys.get(if Self::KEYS_MOVE { place } else { origin }), origin)
        }
    }

    /// Returns memory for `TILE` payloads of up to 8 bytes in place of the keys, once these have been read.
    #[inline(always)]
    pub fn staging<V>(self) -> Shared<V> {
        const { assert!(Self::KEYS_AT + TILE * size_of::<V>() as u32 <= Self::ORIGINS_AT) };
        shared::dynamic(Self::KEYS_AT)
    }

    /// Returns the item at a place, with its origin if `ORIGIN`.
    ///
    /// # Safety
    /// The contract of [`get`](Self::get).
    #[cfg(feature = "bodies")]
    #[inline(always)]
    unsafe fn item<const ORIGIN: bool>(self, place: u32) -> (K, u32) {
        // SAFETY: the contract of this function.
        unsafe { if ORIGIN || !Self::KEYS_MOVE { self.get(place) } else { (self.keys.get(place), 0) } }
    }

    /// Runs one stable pass over a digit of the first `32 * WARPS * rows` items, with barriers before and after.
    /// Returns the sort with the new places of the items.
    ///
    /// # Safety
    /// - All threads of the block arrive with the same `rows`, at most `TILE / (32 * WARPS)`, all of whose items are
    ///   set.
    /// - The memory is used by nothing else.
    /// - Digits are below [`DIGITS`].
    #[cfg(feature = "bodies")]
    #[inline(always)]
    #[must_use]
    pub unsafe fn pass<const ORIGINS: bool>(self, rows: u32, digit_of: impl Fn(K, u32) -> u32) -> Self {
        let row = self.counters.at(thread::thread_idx_x() / 32 * DIGITS);
        // SAFETY: a row belongs to its warp between the barriers around the sums; places are those of a sorted tile, so
        // they are below `TILE` and distinct.
        unsafe {
            ranking::clear_row(row);
            thread::sync_threads();
            Self::for_each(rows, |place| {
                let (key, origin) = self.item::<ORIGINS>(place);
                row.reduce_add(digit_of(key, origin), 1);
            });
            thread::sync_threads();
            ranking::place_digits::<WARPS>(self.counters, WARPS, self.sums, |_| ());
            thread::sync_threads();
            Self::for_each(rows, |place| {
                let (key, origin) = self.item::<ORIGINS>(place);
                let rank = ranking::rank(row, digit_of(key, origin));
                if Self::KEYS_MOVE {
                    self.other_keys.set(rank, key);
                }
                if ORIGINS || !Self::KEYS_MOVE {
                    self.other_origins.set(rank, origin as u16);
                }
            });
            thread::sync_threads();
        }
        Self {
            keys: self.other_keys,
            origins: self.other_origins,
            other_keys: self.keys,
            other_origins: self.origins,
            ..self
        }
    }
}

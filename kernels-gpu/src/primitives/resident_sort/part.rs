//! Sort by one block of a part of the keys, in shared memory.
//!
//! The part's interval is cut again, into about as many *slots* as items. Each slot's items are counted, prefix sums
//! give the beginnings of slots, and each item takes a place in its slot. Few items share a slot, so each counts the
//! items before it there. If many share one (many equal keys, or dense groups of keys), the part is sorted by a network
//! of comparisons instead, which is little code: code takes time to load, and this is rare.

use warpset_core::scan::Sum;
use warpset_simt::shared::{self, Shared};
use warpset_simt::warp::{self, FULL_MASK};
use warpset_simt::{GlobalMut, ShuffleWord, Word, thread};

#[cfg(feature = "bodies")]
use super::interval::{Interval, bounds_of_block};
use super::{BATCH, Order};
use crate::block;
use crate::primitives::ranking::SortKey;

/// Largest number of items of a slot that are compared with each other.
const MOST_IN_SLOT: u32 = 48;

/// Slots of a warp's row: each lane has four neighbours, so that lanes do not conflict at a bank.
const ROW_SLOTS: u32 = 4 * 32;

/// Capacity of a block in items and slots; the number of slots is a multiple of four times its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Room {
    /// Items, an even number.
    pub capacity: u32,
    /// Slots.
    pub slots: u32,
}

const _: () = assert!(size_of::<Room>() == 8);

// Shared memory: sums; two bounds per warp; slots; keys; values; the item of each place in the order of slots.
const BOUNDS_AT: u32 = 128;
const SLOTS_AT: u32 = BOUNDS_AT + 2 * 32 * 16;

impl Room {
    /// Returns the bytes of shared memory, for items of `item_bytes` bytes.
    #[must_use]
    pub const fn shared_bytes(self, item_bytes: u32) -> u32 {
        SLOTS_AT + 4 * self.slots + self.capacity * (item_bytes + 2)
    }
}

/// Part in scratch memory, and its target.
#[derive(Clone, Copy)]
pub(super) struct Part<K, V> {
    pub(super) keys: GlobalMut<K>,
    pub(super) values: GlobalMut<V>,
    pub(super) out_keys: GlobalMut<K>,
    pub(super) out_values: GlobalMut<V>,
    pub(super) len: u32,
}

#[cfg(feature = "bodies")]
impl<K: SortKey + ShuffleWord, V: Word + Default> Part<K, V> {
    /// Sorts the part.
    ///
    /// # Safety
    /// - All threads of a block of `THREADS` threads call this together.
    /// - The part has at most `room.capacity` items, fewer than 2^16; they are valid for reads and writes, and the
    ///   output for the same number of writes; nothing else accesses either meanwhile.
    /// - Dynamic shared memory has the bytes of `room`; nothing else accesses it meanwhile.
    #[inline(always)]
    pub(super) unsafe fn sort<const PAYLOAD: bool, const WARPS: u32, const THREADS: u32>(
        self,
        order: Order,
        room: Room,
    ) {
        if self.len == 0 {
            return; // there is no least key
        }
        let sums: Shared<u32> = shared::dynamic(0);
        let slots: Shared<u32> = shared::dynamic(SLOTS_AT);
        let keys_at = SLOTS_AT + 4 * room.slots;
        let values_at = keys_at + room.capacity * size_of::<K>() as u32;
        let keys: Shared<K> = shared::dynamic(keys_at);
        let values: Shared<V> = shared::dynamic(values_at);
        let values_bytes = if PAYLOAD { room.capacity * size_of::<V>() as u32 } else { 0 };
        let places: Shared<u16> = shared::dynamic(values_at + values_bytes);
        let t = thread::thread_idx_x();
        let lane = warp::lane_id();
        let rows = room.slots / (4 * THREADS);
        let own_slots = slots.at(t / 32 * rows * ROW_SLOTS + 4 * lane);
        // SAFETY: items are below `len` and slots below their number; each item has its own place; barriers separate
        // accesses of different threads to the same words, except for atomic ones; all threads reach them.
        unsafe {
            let (mut least, mut greatest) = (K::splat(!0), K::splat(0));
            let mut i = t;
            while i < self.len {
                let mut loaded = [K::splat(0); BATCH as usize];
                let mut loaded_values = [V::default(); BATCH as usize];
                for u in 0..BATCH {
                    if i + u * THREADS < self.len {
                        loaded[u as usize] = self.keys.read((i + u * THREADS) as usize);
                        if PAYLOAD {
                            loaded_values[u as usize] = self.values.read((i + u * THREADS) as usize);
                        }
                    }
                }
                for u in 0..BATCH {
                    if i + u * THREADS < self.len {
                        let compared = order.compared(loaded[u as usize]);
                        (least, greatest) = (least.min(compared), greatest.max(compared));
                        keys.set(i + u * THREADS, loaded[u as usize]);
                        if PAYLOAD {
                            values.set(i + u * THREADS, loaded_values[u as usize]);
                        }
                    }
                }
                i += BATCH * THREADS;
            }
            for row in 0..rows {
                own_slots.set4(row * ROW_SLOTS, [0; 4]);
            }
            let (least, greatest) = bounds_of_block::<K, WARPS>((least, greatest), shared::dynamic(BOUNDS_AT));
            let interval = Interval::new(least, greatest, room.slots);
            let mut i = t;
            while i < self.len {
                slots.reduce_add(interval.part(order.compared(keys.get(i))), 1);
                i += THREADS;
            }
            thread::sync_threads();
            let (mut own, mut most) = (0, 0);
            for row in 0..rows {
                let [a, b, c, d] = own_slots.get4(row * ROW_SLOTS);
                own += a + b + c + d;
                most = most.max(a).max(b).max(c).max(d);
            }
            let of_warp = warp::reduce_add(FULL_MASK, own);
            let (before, _) = block::exclusive_scan::<Sum<u32>, WARPS>(if lane == 0 { of_warp } else { 0 }, sums);
            let mut before = warp::shuffle_idx(FULL_MASK, before, 0);
            for row in 0..rows {
                let [a, b, c, d] = own_slots.get4(row * ROW_SLOTS);
                let own = a + b + c + d;
                let through = warp::inclusive_scan_add(FULL_MASK, own);
                let next = before + through - own;
                own_slots.set4(row * ROW_SLOTS, [next, next + a, next + a + b, next + a + b + c]);
                before += warp::shuffle_idx(FULL_MASK, through, 31);
            }
            if thread::sync_threads_or(most > MOST_IN_SLOT) {
                return self.sort_by_network::<PAYLOAD, THREADS>(order, keys, values, places);
            }
            let mut i = t;
            while i < self.len {
                let place = slots.fetch_add(interval.part(order.compared(keys.get(i))), 1);
                places.set(place, i as u16);
                i += THREADS;
            }
            thread::sync_threads();
            // Each slot's word is now its end.
            let mut place = t;
            while place < self.len {
                let own = places.get(place);
                let key = keys.get(own as u32);
                let compared = order.compared(key);
                let slot = interval.part(compared);
                let end = slots.get(slot);
                let begin = if slot == 0 { 0 } else { slots.get(slot - 1) };
                let mut rank = begin;
                for other in begin..end {
                    let item = places.get(other);
                    let other = order.compared(keys.get(item as u32));
                    rank += u32::from((other < compared) | ((other == compared) & (item < own)));
                }
                self.out_keys.write(rank as usize, key);
                if PAYLOAD {
                    self.out_values.write(rank as usize, values.get(own as u32));
                }
                place += THREADS;
            }
        }
    }

    /// Sorts the part by comparing: Batcher's bitonic network, in the form whose steps all put the lesser item first.
    /// Items past the last one would be the greatest, so they would never move and need no places.
    ///
    /// # Safety
    /// - The contract of [`sort`](Self::sort), which has loaded the keys and values; there is a place for each item.
    #[inline(always)]
    unsafe fn sort_by_network<const PAYLOAD: bool, const THREADS: u32>(
        self,
        order: Order,
        keys: Shared<K>,
        values: Shared<V>,
        places: Shared<u16>,
    ) {
        let t = thread::thread_idx_x();
        // SAFETY: places are below `len` and name items; each is in one pair of a step, which belongs to one thread,
        // and a barrier separates steps; all threads reach it.
        unsafe {
            let mut i = t;
            while i < self.len {
                places.set(i, i as u16);
                i += THREADS;
            }
            thread::sync_threads();
            let mut sorted = 1;
            while sorted < self.len {
                // The first step compares mirrored places in two sorted ranges, the others places `distance` apart.
                let (mut distance, mut mask) = (sorted, 2 * sorted - 1);
                while distance > 0 {
                    let mut pair = t;
                    while pair < self.len.div_ceil(2 * distance) * distance {
                        let below = pair & (distance - 1);
                        let i = 2 * (pair - below) + below;
                        if i ^ mask < self.len {
                            let (a, b) = (places.get(i), places.get(i ^ mask));
                            let key_a = order.compared(keys.get(a as u32));
                            let key_b = order.compared(keys.get(b as u32));
                            if (key_b < key_a) | ((key_b == key_a) & (b < a)) {
                                places.set(i, b);
                                places.set(i ^ mask, a);
                            }
                        }
                        pair += THREADS;
                    }
                    thread::sync_threads();
                    distance /= 2;
                    mask = distance;
                }
                sorted *= 2;
            }
            let mut i = t;
            while i < self.len {
                let own = places.get(i) as u32;
                self.out_keys.write(i as usize, keys.get(own));
                if PAYLOAD {
                    self.out_values.write(i as usize, values.get(own));
                }
                i += THREADS;
            }
        }
    }
}

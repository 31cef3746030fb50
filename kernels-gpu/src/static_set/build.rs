//! Building exact static sets and maps from sorted hashes: one thread block per shard.
//!
//! `warpset_core::static_set` defines the contents of a shard, and the CPU's build makes the same. A block finds the
//! shard among the hashes, the starts of its groups, and the order to place them. One warp then places them, one after
//! the other: its lanes try 32 pilots at once. A pilot passes if each key alone fits; of those that pass, the smallest
//! is taken with which all keys fit together. The block writes the keys to their buckets, in any order, and one thread
//! per bucket sorts them by their hashes.

use warpset_core::static_set::{MOST_IN_GROUP, PILOTS, Shape, hash, key, place_by};
use warpset_simt::shared::{self, Shared};
use warpset_simt::warp::{self, FULL_MASK};
use warpset_simt::{Global, GlobalMut, atomic, multiply_high, opaque, thread};

use crate::batch::keys::KeyKind;
#[cfg(feature = "bodies")]
use crate::batch::keys::word_at;

/// Threads of a block that builds a shard.
pub const BLOCK: u32 = 256;
/// Threads of a block that hashes.
pub const HASH_BLOCK: u32 = 256;
/// Sizes of groups, and one more for lanes without a group.
const SIZES: u32 = MOST_IN_GROUP + 2;
/// Bytes before the arrays in shared memory: the shard's bounds among the hashes, and whether it failed.
const HEAD_BYTES: u32 = 32;

/// Returns the bytes of shared memory of a block.
pub const fn shared_bytes(shape: Shape) -> u32 {
    HEAD_BYTES + 4 * (2 * shape.groups + 1 + shape.buckets + SIZES)
}

/// Arrays in shared memory.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct Arrays {
    /// Start of each group, and the end of the last one.
    begins: Shared<u32>,
    /// Groups with keys, in the order of their placement.
    order: Shared<u32>,
    /// Keys in each bucket.
    counts: Shared<u32>,
    /// Groups of each size, then the start of that size in the order.
    sizes: Shared<u32>,
}

#[cfg(feature = "bodies")]
impl Arrays {
    #[inline(always)]
    fn of(shape: Shape) -> Arrays {
        let begins = shared::dynamic::<u32>(HEAD_BYTES);
        let order = begins.at(shape.groups + 1);
        let counts = order.at(shape.groups);
        Arrays { begins, order, counts, sizes: counts.at(shape.buckets) }
    }
}

/// Returns the bucket of a shard for a hash with these low bits: `warpset_core::static_set::place`.
#[cfg(feature = "bodies")]
#[inline(always)]
fn place(low: u32, pilot: u32, buckets: u32) -> u32 {
    place_by(low, pilot, buckets, multiply_high)
}

/// Calls `work` with the numbers below `end` that belong to this thread of a block of [`BLOCK`].
#[cfg(feature = "bodies")]
#[inline(always)]
fn each_of_block(end: u32, mut work: impl FnMut(u32)) {
    let mut i = thread::thread_idx_x();
    while i < end {
        work(i);
        i += BLOCK;
    }
}

/// Returns the first of `n` ascending hashes in this shard or a later one.
///
/// # Safety
/// `hashes` is valid for `n` reads, and not written.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn first_of_shard(hashes: Global<u64>, n: usize, shape: Shape, shard: u64) -> usize {
    let (mut begin, mut end) = (0, n);
    while begin < end {
        let middle = begin + (end - begin) / 2;
        // SAFETY: `middle < n`.
        if shape.shard(unsafe { hashes.read_nc(middle) }) < shard {
            begin = middle + 1;
        } else {
            end = middle;
        }
    }
    begin
}

/// Writes the starts of the groups of `count` hashes, and the number of groups of each size. Returns, to all threads,
/// whether one is too large.
///
/// # Safety
/// - All threads of the block arrive together; no other thread uses the arrays except `counts`.
/// - `hashes` is valid for `count` reads, and not written.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn find_groups(hashes: Global<u64>, count: u32, shape: Shape, arrays: Arrays) -> bool {
    // SAFETY: each place of `begins` is written once, by the thread of the first element that is not before it;
    // barriers separate the phases; the rest is this function's contract.
    unsafe {
        each_of_block(SIZES, |i| arrays.sizes.set(i, 0));
        each_of_block(count + 1, |i| {
            let group = |i: u32| shape.group_in_shard_by(hashes.read_nc(i as usize), multiply_high);
            let mut at = if i == 0 { 0 } else { group(i - 1) + 1 };
            let end = if i == count { shape.groups + 1 } else { group(i) + 1 };
            while at < end {
                arrays.begins.set(at, i);
                at += 1;
            }
        });
        thread::sync_threads();
        let mut too_large = false;
        each_of_block(shape.groups, |group| {
            let size = arrays.begins.get(group + 1) - arrays.begins.get(group);
            too_large |= size > MOST_IN_GROUP;
            arrays.sizes.reduce_add(if size > MOST_IN_GROUP { 0 } else { size }, 1);
        });
        thread::sync_threads_or(too_large)
    }
}

/// Writes the order of the groups with keys, largest first, those of one size by number; returns their number.
///
/// # Safety
/// - All lanes of one warp arrive together, and no other thread uses the arrays.
/// - [`find_groups`] has run.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn find_order(shape: Shape, arrays: Arrays) -> u32 {
    let lane = warp::lane_id();
    // SAFETY: one lane takes all places of a size; the warp synchronises between reads and writes; the rest is this
    // function's contract.
    unsafe {
        let filled = shape.groups - arrays.sizes.get(0);
        warp::sync_warp(FULL_MASK);
        if lane == 0 {
            let (mut begin, mut size) = (0, MOST_IN_GROUP + 1);
            while size > 0 {
                size -= 1;
                let count = arrays.sizes.get(size);
                arrays.sizes.set(size, begin);
                begin += count;
            }
        }
        warp::sync_warp(FULL_MASK);
        let mut first = 0;
        while first < shape.groups {
            let group = first + lane;
            let is_group = group < shape.groups;
            let size =
                if is_group { arrays.begins.get(group + 1) - arrays.begins.get(group) } else { MOST_IN_GROUP + 1 };
            let alike = warp::match_low_byte(FULL_MASK, size);
            let before = (alike & warp::lane_mask_lt()).count_ones();
            let begin = arrays.sizes.get(size);
            warp::sync_warp(FULL_MASK);
            if is_group && size > 0 {
                arrays.order.set(begin + before, group);
            }
            if before == 0 {
                arrays.sizes.set(size, begin + alike.count_ones());
            }
            warp::sync_warp(FULL_MASK);
            first += 32;
        }
        filled
    }
}

/// A group in the registers of a warp: each lane has the low bits of two keys' hashes.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct Group {
    number: u32,
    size: u32,
    low: [u32; 2],
}

/// Reads a group.
///
/// # Safety
/// All lanes of the warp arrive together, for the same group, and nothing writes hashes and arrays.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn read_group(hashes: Global<u64>, arrays: Arrays, number: u32) -> Group {
    let lane = warp::lane_id();
    // SAFETY: the group's hashes are between its bounds; the rest is this function's contract.
    unsafe {
        let begin = arrays.begins.get(number);
        let size = arrays.begins.get(number + 1) - begin;
        let low = |i: u32| if i < size { hashes.read_nc((begin + i) as usize) as u32 } else { 0 };
        Group { number, size, low: [low(lane), low(lane + 32)] }
    }
}

/// Finds the smallest pilot with which the keys of a group fit in buckets of `slots`, and counts them there; [`PILOTS`]
/// if there is none.
///
/// # Safety
/// All lanes of one warp arrive together, and no other thread uses the `buckets` words of `counts`.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn find_pilot(group: Group, buckets: u32, slots: u32, counts: Shared<u32>) -> u32 {
    let lane = warp::lane_id();
    let mine = [lane < group.size, lane + 32 < group.size];
    let mut first = 0;
    // SAFETY: buckets are below their number; the whole warp runs the loops together; counts are changed by atomics,
    // and the warp synchronises before they are read again.
    unsafe {
        // Opaque, since eight copies of the loop would only fill the instruction cache.
        while first < opaque(PILOTS) {
            let pilot = first + lane;
            let mut fits = true;
            let mut i = 0;
            while i < group.size && warp::any(FULL_MASK, fits) {
                let low = warp::shuffle_idx(FULL_MASK, if i < 32 { group.low[0] } else { group.low[1] }, i % 32);
                fits &= counts.get_volatile(place(low, pilot, buckets)) < slots;
                i += 1;
            }
            // Keys of the group that share a bucket have not been counted together yet.
            let mut candidates = warp::ballot(FULL_MASK, fits);
            while candidates != 0 {
                let pilot = first + candidates.trailing_zeros();
                candidates &= candidates - 1;
                let buckets = [place(group.low[0], pilot, buckets), place(group.low[1], pilot, buckets)];
                let mut is_full = false;
                for half in 0..2 {
                    is_full |= mine[half] && counts.fetch_add(buckets[half], 1) >= slots;
                }
                if !warp::any(FULL_MASK, is_full) {
                    warp::sync_warp(FULL_MASK);
                    return pilot;
                }
                for half in 0..2 {
                    if mine[half] {
                        counts.reduce_add(buckets[half], !0);
                    }
                }
                warp::sync_warp(FULL_MASK);
            }
            first += 32;
        }
    }
    PILOTS
}

/// Places the groups of a shard, and writes their pilots; returns whether all have one.
///
/// # Safety
/// - All lanes of one warp arrive together, and no other thread uses arrays and pilots; `pilots` has a byte per group.
/// - [`find_groups`] has run, and `counts` are zero.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn place_groups(hashes: Global<u64>, shape: Shape, slots: u32, arrays: Arrays, pilots: GlobalMut<u8>) -> bool {
    // SAFETY: the contracts are the same; places in the order are below their number.
    unsafe {
        let filled = find_order(shape, arrays);
        let none = Group { number: 0, size: 0, low: [0; 2] };
        let group_at = |at: u32| if at < filled { read_group(hashes, arrays, arrays.order.get(at)) } else { none };
        let (mut next, mut at, mut pilot) = (group_at(0), 0, 0);
        while at < filled && pilot < PILOTS {
            let group = next;
            // Read before the search, which hides the latency.
            next = group_at(at + 1);
            pilot = find_pilot(group, shape.buckets, slots, arrays.counts);
            if warp::lane_id() == 0 {
                pilots.write(group.number as usize, pilot as u8);
            }
            at += 1;
        }
        pilot < PILOTS
    }
}

/// Returns the smallest key that lookups search in another bucket than `bucket` of this shard, in 64 bits.
///
/// # Safety
/// `pilots` is valid for the shard's groups, and not written.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn filler(shape: Shape, spread: u64, shard: u64, bucket: u32, pilots: GlobalMut<u8>) -> u64 {
    let mut word = 0;
    loop {
        let hash = hash(word, spread);
        if shape.shard(hash) != shard {
            return word;
        }
        // SAFETY: groups are below their number.
        let pilot = unsafe { pilots.read(shape.group_in_shard_by(hash, multiply_high) as usize) };
        if place(hash as u32, pilot as u32, shape.buckets) != bucket {
            return word;
        }
        word += 1;
    }
}

kernel! {
    /// Writes the hashes of `n` keys.
    ///
    /// # Safety
    /// - Launch: 1-D, any number of blocks of [`HASH_BLOCK`] threads, no shared memory.
    /// - `keys`: `n` integers of `kind`, not written while the kernel runs.
    /// - `hashes`: `n` places, used by this launch alone.
    pub unsafe fn static_set_hash(keys: Global<u64>, kind: KeyKind, spread: u64, n: usize, hashes: GlobalMut<u64>) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`.
            unsafe { hashes.write(i, hash(word_at(keys, kind.class, i), spread)) };
        }
    }

    /// Builds all shards, one per block.
    ///
    /// # Safety
    /// - Launch: 1-D, a block of [`BLOCK`] threads for each shard, [`shared_bytes`] of shared memory.
    /// - `hashes`: `n > 0` different ones, ascending, of keys of this type; `values`: a value per hash, of
    ///   `value_words` words of 32 bits, 0, 1 or 2. Nothing writes them while the kernel runs.
    /// - `shape`: the one for `n` keys.
    /// - `pilots`: a byte per group, zero; `keys`: the words of all buckets; `out_values`: a value per slot. All are
    ///   used by this launch alone.
    /// - `failed`: a word, zero; it becomes 1 if a shard finds no pilots, and the output is then undefined.
    #[launch_bounds(256, 4)]
    pub unsafe fn static_set_build<K>(
        hashes: Global<u64>, n: usize, shape: Shape, spread: u64, values: Global<u32>, value_words: u32,
        pilots: GlobalMut<u8>, keys: GlobalMut<K>, out_values: GlobalMut<u32>, failed: GlobalMut<u32>,
    ) for [u32 => static_set_build_u32, u64 => static_set_build_u64] {
        const SLOTS: usize = 64 / size_of::<K>();
        let thread = thread::thread_idx_x();
        let shard = thread::block_idx_x() as u64;
        let arrays = Arrays::of(shape);
        let bounds = shared::dynamic::<u64>(0);
        let outcome = shared::dynamic::<u32>(16);
        // SAFETY: the shared memory has all arrays. Each phase ends at a barrier that all threads reach, since
        // conditions that end a shard early are the same for all. Groups, buckets and slots belong to this shard, and
        // so to this block alone.
        unsafe {
            if thread < 2 {
                bounds.set(thread, first_of_shard(hashes, n, shape, shard + thread as u64) as u64);
            }
            each_of_block(shape.buckets, |bucket| arrays.counts.set(bucket, 0));
            thread::sync_threads();
            let (begin, end) = (bounds.get(0) as usize, bounds.get(1) as usize);
            let pilots = pilots.at((shard * shape.groups as u64) as usize);
            let first_slot = (shard * shape.buckets as u64) as usize * SLOTS;
            let (keys, out_values) = (keys.at(first_slot), out_values.at(first_slot * value_words as usize));
            let hashes = hashes.at(begin);
            let mut is_failed = end - begin > shape.buckets as usize * SLOTS;
            let count = if is_failed { 0 } else { (end - begin) as u32 };
            is_failed |= find_groups(hashes, count, shape, arrays);
            if thread < 32 && !is_failed {
                let has_placed = place_groups(hashes, shape, SLOTS as u32, arrays, pilots);
                if thread == 0 {
                    outcome.set(0, has_placed as u32);
                }
            }
            thread::sync_threads();
            if !is_failed && outcome.get(0) != 0 {
                each_of_block(shape.buckets, |bucket| arrays.counts.set(bucket, 0));
                thread::sync_threads();
                // Positions of keys among the shard's hashes, in their buckets, in any order.
                let (members, words) = (keys.cast::<u32>(), size_of::<K>() / 4);
                each_of_block(count, |i| {
                    let hash = hashes.read_nc(i as usize);
                    let pilot = pilots.read(shape.group_in_shard_by(hash, multiply_high) as usize);
                    let bucket = place(hash as u32, pilot as u32, shape.buckets);
                    let slot = bucket as usize * SLOTS + arrays.counts.fetch_add(bucket, 1) as usize;
                    members.write(slot * words, i);
                });
                thread::sync_threads();
                each_of_block(shape.buckets, |bucket| {
                    let used = arrays.counts.get(bucket) as usize;
                    let slot = bucket as usize * SLOTS;
                    let mut numbers = [u32::MAX; SLOTS];
                    for i in 0..SLOTS {
                        if i < used {
                            numbers[i] = members.read((slot + i) * words);
                        }
                    }
                    let mut least = u32::MAX;
                    for i in 0..SLOTS {
                        let number = numbers[i];
                        least = if number < least { number } else { least };
                        if i < used {
                            let mut rank = 0;
                            for j in 0..SLOTS {
                                rank += (numbers[j] < number) as usize;
                            }
                            keys.write(slot + rank, key(hashes.read_nc(number as usize), spread) as K);
                            for word in 0..value_words as usize {
                                let value = values.read_nc((begin + number as usize) * value_words as usize + word);
                                out_values.write((slot + rank) * value_words as usize + word, value);
                            }
                        }
                    }
                    let filler = if used == 0 {
                        filler(shape, spread, shard, bucket, pilots)
                    } else {
                        key(hashes.read_nc(least as usize), spread)
                    };
                    for i in 0..SLOTS {
                        if i >= used {
                            keys.write(slot + i, filler as K);
                        }
                    }
                });
            } else if thread == 0 {
                atomic::exchange(failed, 1);
            }
        }
    }
}

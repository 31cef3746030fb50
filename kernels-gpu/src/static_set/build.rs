//! Building exact static sets and maps from sorted hashes: one thread block per shard.
//!
//! `warpset_core::static_set` defines the contents of a shard, and the CPU's build makes the same. A block finds the
//! shard among the hashes, the starts of its groups, and the order to place them. Each warp then searches the pilot of
//! one of the next groups: its lanes try 32 pilots at once, first for each key alone. Of the pilots that pass, it takes
//! the smallest with which all keys fit together. The block writes the keys to their buckets, in any order,
//! and one thread per bucket sorts them by their hashes.
//!
//! **Groups in rounds.** The pilots are those of a search group by group, although a round searches those of several
//! groups at once. A pilot that fails while fewer keys are placed fails later too, so the pilot found is the right one
//! unless groups before it in the round fill its buckets. All keys of the round are counted; if no bucket exceeds its
//! slots, all pilots stand. Otherwise those stand up to the first group that has keys in such a bucket: no group
//! before it has keys there, and without those after it the group fits. The other groups are searched again.

use warpset_core::static_set::{MOST_IN_GROUP, PILOTS, Shape, hash, key, place_by};
use warpset_simt::shared::{self, Shared};
use warpset_simt::warp::{self, FULL_MASK};
use warpset_simt::{Global, GlobalMut, atomic, multiply_high, opaque, thread};

use crate::batch::keys::KeyKind;
#[cfg(feature = "bodies")]
use crate::batch::keys::word_at;

/// Threads of a block that builds a shard where there are several shards per multiprocessor.
pub const BLOCK: u32 = 256;
/// Threads of a block that builds a shard where there are fewer; the most that a block has.
pub const LARGE_BLOCK: u32 = 512;
/// Threads of a block that hashes.
pub const HASH_BLOCK: u32 = 256;
/// No bucket of a shard has this number or a higher one.
#[cfg(feature = "bodies")]
const NO_BUCKET: u32 = 1 << 31;
/// Keys of a group that are tested between two votes.
#[cfg(feature = "bodies")]
const TOGETHER: u32 = 4;
/// Sizes of groups, and one more for lanes without a group.
const SIZES: u32 = MOST_IN_GROUP + 2;
/// Bytes before the arrays in shared memory: the shard's bounds among the hashes, the number of groups with keys, and
/// the first group of a round that has keys in a bucket with too many.
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
    /// Number of groups with keys.
    filled: Shared<u32>,
    /// First group of a round, by order, that has keys in a bucket with too many; all ones between rounds.
    overfull: Shared<u32>,
}

#[cfg(feature = "bodies")]
impl Arrays {
    #[inline(always)]
    fn of(shape: Shape) -> Arrays {
        let begins = shared::dynamic::<u32>(HEAD_BYTES);
        let order = begins.at(shape.groups + 1);
        let counts = order.at(shape.groups);
        let (filled, overfull) = (shared::dynamic::<u32>(16), shared::dynamic::<u32>(20));
        Arrays { begins, order, counts, sizes: counts.at(shape.buckets), filled, overfull }
    }
}

/// Returns the bucket of a shard for a hash with these low bits: `warpset_core::static_set::place`.
#[cfg(feature = "bodies")]
#[inline(always)]
fn place(low: u32, pilot: u32, buckets: u32) -> u32 {
    place_by(low, pilot, buckets, multiply_high)
}

/// Calls `work` with the numbers below `end` that belong to this thread of the block.
#[cfg(feature = "bodies")]
#[inline(always)]
fn each_of_block(end: u32, mut work: impl FnMut(u32)) {
    let mut i = thread::thread_idx_x();
    while i < end {
        work(i);
        i += thread::block_dim_x();
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

/// Writes the order of the groups with keys, largest first, those of one size by number, and their number.
///
/// # Safety
/// - All lanes of one warp arrive together, and no other thread uses the arrays.
/// - [`find_groups`] has run.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn find_order(shape: Shape, arrays: Arrays) {
    let lane = warp::lane_id();
    // SAFETY: one lane takes all places of a size; the warp synchronises between reads and writes; the rest is this
    // function's contract.
    unsafe {
        if lane == 0 {
            arrays.filled.set(0, shape.groups - arrays.sizes.get(0));
            arrays.overfull.set(0, u32::MAX);
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

#[cfg(feature = "bodies")]
impl Group {
    /// Returns the buckets of the lane's two keys; places without a key get numbers that no bucket has.
    #[inline(always)]
    fn places(&self, pilot: u32, buckets: u32) -> [u32; 2] {
        let lane = warp::lane_id();
        let at = |half: u32| {
            let i = 32 * half + lane;
            if i < self.size { place(self.low[half as usize], pilot, buckets) } else { NO_BUCKET + i }
        };
        [at(0), at(1)]
    }

    /// Returns how many keys of the group before each of the lane's two have its bucket.
    ///
    /// # Safety
    /// All lanes of the warp arrive together, with the same group and their places.
    #[inline(always)]
    unsafe fn alike_before(&self, places: [u32; 2]) -> [u32; 2] {
        // SAFETY: the whole warp is here, and branches on the size alone.
        unsafe {
            let alike = |bucket: u32| (warp::match_any(FULL_MASK, bucket) & warp::lane_mask_lt()).count_ones();
            let mut before = [alike(places[0]), 0];
            if self.size > 32 {
                before[1] = alike(places[1]);
                for lane in 0..32 {
                    before[1] += (warp::shuffle_idx(FULL_MASK, places[0], opaque(lane)) == places[1]) as u32;
                }
            }
            before
        }
    }
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

/// Finds the smallest pilot with which the keys of a group fit in buckets of `slots`; [`PILOTS`] if there is none.
///
/// # Safety
/// All lanes of one warp arrive together, and nothing writes the `buckets` words of `counts`.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn find_pilot(group: Group, buckets: u32, slots: u32, counts: Shared<u32>) -> u32 {
    let lane = warp::lane_id();
    let mut first = 0;
    // SAFETY: buckets are below their number; the whole warp runs the loops together.
    unsafe {
        // Opaque, since eight copies of the loop would only fill the instruction cache.
        while first < opaque(PILOTS) {
            let pilot = first + lane;
            let mut fits = true;
            let mut i = 0;
            while i < group.size && warp::any(FULL_MASK, fits) {
                let low = if i < 32 { group.low[0] } else { group.low[1] };
                for j in 0..TOGETHER {
                    let low = warp::shuffle_idx(FULL_MASK, low, (i + j) % 32);
                    // Lanes past the group have zero, which has a bucket too: no branch, so reads do not wait.
                    fits &= (i + j >= group.size) | (counts.get(place(low, pilot, buckets)) < slots);
                }
                i += TOGETHER;
            }
            // Keys of the group that share a bucket have not been counted together yet.
            let mut candidates = warp::ballot(FULL_MASK, fits);
            while candidates != 0 {
                let pilot = first + candidates.trailing_zeros();
                candidates &= candidates - 1;
                let places = group.places(pilot, buckets);
                let before = group.alike_before(places);
                let mut is_full = false;
                for half in 0..2 {
                    let bucket = places[half];
                    is_full |= bucket < NO_BUCKET && counts.get(bucket) + before[half] >= slots;
                }
                if !warp::any(FULL_MASK, is_full) {
                    return pilot;
                }
            }
            first += 32;
        }
    }
    PILOTS
}

/// Places the groups of a shard, and writes their pilots; returns whether all have one.
///
/// # Safety
/// - All threads of the block arrive together, and no other thread uses arrays and pilots.
/// - `pilots` has a byte per group.
/// - [`find_groups`] has run, and `counts` are zero.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn place_groups(hashes: Global<u64>, shape: Shape, slots: u32, arrays: Arrays, pilots: GlobalMut<u8>) -> bool {
    let (warps, counts) = (thread::block_dim_x() / 32, arrays.counts);
    let mut at = thread::thread_idx_x() / 32;
    // SAFETY: the contracts are the same; places in the order are below their number. A round searches, counts, and
    // takes back what does not fit; barriers, which all threads reach, separate these phases. Counts are changed by
    // atomics.
    unsafe {
        if at == 0 {
            find_order(shape, arrays);
        }
        thread::sync_threads();
        let filled = arrays.filled.get(0);
        let none = Group { number: 0, size: 0, low: [0; 2] };
        let group_at = |at: u32| if at < filled { read_group(hashes, arrays, arrays.order.get(at)) } else { none };
        let (mut group, mut next, mut begin) = (group_at(at), group_at(at + warps), 0);
        // This warp's group is one of the `warps` from `begin` on.
        while begin < filled {
            let pilot = find_pilot(group, shape.buckets, slots, counts);
            if thread::sync_threads_or(pilot == PILOTS) {
                return false;
            }
            let places = group.places(pilot, shape.buckets);
            let mut is_full = false;
            for half in 0..2 {
                is_full |= places[half] < NO_BUCKET && counts.fetch_add(places[half], 1) >= slots;
            }
            begin += warps;
            if thread::sync_threads_or(is_full) {
                let is_overfull = |bucket: u32| bucket < NO_BUCKET && counts.get_volatile(bucket) > slots;
                if is_overfull(places[0]) || is_overfull(places[1]) {
                    arrays.overfull.fetch_min(0, at);
                }
                thread::sync_threads();
                begin = arrays.overfull.get_volatile(0) + 1;
                if at >= begin {
                    for half in 0..2 {
                        if places[half] < NO_BUCKET {
                            counts.reduce_add(places[half], !0);
                        }
                    }
                }
                thread::sync_threads();
                if thread::thread_idx_x() == 0 {
                    arrays.overfull.set_volatile(0, u32::MAX);
                }
            }
            if at < begin {
                if group.size > 0 && warp::lane_id() == 0 {
                    pilots.write(group.number as usize, pilot as u8);
                }
                at += warps;
                group = next;
                // Read a round before the search, which hides the latency.
                next = group_at(at + warps);
            }
        }
        true
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

    /// Builds shards from number `first` on, one per block.
    ///
    /// # Safety
    /// - Launch: 1-D, a block for each shard, of whole warps and [`LARGE_BLOCK`] threads at most, [`shared_bytes`] of
    ///   shared memory.
    /// - `hashes`: `n` different ones, ascending, of keys of this type, all of these shards; `values`: a value per
    ///   hash, of `value_words` words of 32 bits, 0, 1 or 2, each `stride` words after the one before. Nothing writes
    ///   them while the kernel runs.
    /// - `shape`: the one for the keys of all shards.
    /// - `pilots`: a byte per group of these shards, zero; `keys`: the words of all their buckets; `out_values`: a
    ///   value per slot. All are used by this launch alone.
    /// - `failed`: a word, zero; it becomes 1 if a shard finds no pilots, and the output is then undefined.
    #[launch_bounds(512, 2)]
    pub unsafe fn static_set_build<K>(
        hashes: Global<u64>, n: usize, first: u64, shape: Shape, spread: u64, values: Global<u32>, value_words: u32,
        stride: u32, pilots: GlobalMut<u8>, keys: GlobalMut<K>, out_values: GlobalMut<u32>, failed: GlobalMut<u32>,
    ) for [u32 => static_set_build_u32, u64 => static_set_build_u64] {
        const SLOTS: usize = 64 / size_of::<K>();
        let thread = thread::thread_idx_x();
        let here = thread::block_idx_x() as u64;
        let shard = first + here;
        let arrays = Arrays::of(shape);
        let bounds = shared::dynamic::<u64>(0);
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
            let pilots = pilots.at((here * shape.groups as u64) as usize);
            let first_slot = (here * shape.buckets as u64) as usize * SLOTS;
            let (keys, out_values) = (keys.at(first_slot), out_values.at(first_slot * value_words as usize));
            let hashes = hashes.at(begin);
            let mut is_failed = end - begin > shape.buckets as usize * SLOTS;
            let count = if is_failed { 0 } else { (end - begin) as u32 };
            is_failed |= find_groups(hashes, count, shape, arrays);
            let is_placed = !is_failed && place_groups(hashes, shape, SLOTS as u32, arrays, pilots);
            thread::sync_threads();
            if is_placed {
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
                                let value = values.read_nc((begin + number as usize) * stride as usize + word);
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

//! Kernels of Rao's two-level Bloom filter: assignment to buckets, the build in shared memory, lookups.
//!
//! Source: Venkatesh Rao, "Implementation of the Bloom Filter on GPU using CUDA", 2010, sections 4.3 to 4.5. A batch of
//! keys is assigned to buckets, grouped by bucket, built by one thread block per bucket in shared memory, and merged
//! into global memory by OR. Departures: assignment and grouping, the paper's preprocessing on the host, run here too;
//! the grouped hashes lie in global memory (the paper's 64 KiB of constant memory hold few). With few buckets, keys are
//! counted in shared memory first: otherwise all atomics of a batch would meet in the same few words.

use crate::batch::keys::KeyKind;
#[cfg(feature = "bodies")]
use crate::batch::keys::mix_at;
use crate::batch::results;
use crate::bloom::claims::Claims;
use warpset_core::bloom::rao::{BucketShape, Positions, choices_of_string_hash, choices_spread, emptier};
use warpset_core::hash;
use warpset_simt::shared::{self, Shared};
use warpset_simt::{Global, GlobalMut, atomic, thread, warp};

/// Threads of a block, in every kernel of this module but the scan and the build.
pub const BLOCK: u32 = 256;
/// The most threads of the scan's one block, and of a block of the build.
pub const MAX_BLOCK: u32 = 1024;
/// Mark of "no bucket": the filter contains the key already.
pub const NO_BUCKET: u32 = !0;

/// The most buckets that are counted in shared memory: 32 KiB.
pub const MAX_COUNTED_HERE: u64 = 1 << 13;

/// First level: a second mix of the hash.
pub const MIXED: u32 = 0;
/// First level: a string hash, unchanged.
pub const STRING: u32 = 1;
/// First level: a string hash, mixed with the attempt.
pub const STRING_MIXED: u32 = 2;

/// Parameters of a filter that kernels take.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Parameters {
    /// Buckets, fewer than 2^32.
    pub buckets: u64,
    /// The attempt, spread.
    pub attempt_spread: u64,
    /// One bucket's parameters.
    pub shape: BucketShape,
    /// 1 or 2.
    pub choices: u32,
    /// [`MIXED`], [`STRING`] or [`STRING_MIXED`].
    pub first_level: u32,
    /// Fills the struct up.
    pub reserved: u32,
}

const _: () = assert!(size_of::<Parameters>() == 40);

/// Place of a kernel's first key that means that all of its keys are live.
pub const ALL: u64 = !0;

/// Returns the number of live keys among a kernel's `n`, which begin with key `first` of those counted in the word at
/// `live`; or all.
///
/// # Safety
/// `first` is [`ALL`], or `live` is one word, not written while the kernel runs.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn living(live: Global<u64>, first: u64, n: usize) -> usize {
    if first == ALL {
        return n;
    }
    // SAFETY: one word.
    let left = unsafe { live.read_nc(0) }.saturating_sub(first);
    if left < n as u64 { left as usize } else { n }
}

/// Returns the keys of this thread in its block's tile of `tile` keys.
#[cfg(feature = "bodies")]
#[inline(always)]
fn in_tile(tile: u32, n: usize) -> impl Iterator<Item = usize> {
    let first = thread::block_idx_x() as usize * tile as usize;
    let end = if n < first + tile as usize { n } else { first + tile as usize };
    (first + thread::thread_idx_x() as usize..end).step_by(BLOCK as usize)
}

/// Zeroes `n` words of shared memory, by the whole block.
///
/// # Safety
/// - There are `n` words.
/// - All threads of the block arrive together.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn clear(here: Shared<u32>, n: u32) {
    let mut i = thread::thread_idx_x();
    // SAFETY: `i < n`; all threads reach the barrier.
    unsafe {
        while i < n {
            here.set(i, 0);
            i += BLOCK;
        }
        thread::sync_threads();
    }
}

/// Source of hashes: keys, and with a string hash as first level one word per key.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct Keys {
    keys: Global<u64>,
    kind: KeyKind,
    spread: u64,
    string_hashes: Global<u32>,
}

#[cfg(feature = "bodies")]
impl Keys {
    /// Returns the hash of key `i` and its buckets.
    ///
    /// # Safety
    /// - There are more than `i` keys, and string hashes where the first level wants them.
    #[inline(always)]
    unsafe fn probe(self, parameters: Parameters, i: usize) -> (u64, [u64; 2]) {
        // SAFETY: this function's contract.
        let hash = unsafe { mix_at(self.keys, self.kind, self.spread, i) };
        let [a, b] = if parameters.first_level == MIXED {
            choices_spread(hash, parameters.attempt_spread, parameters.buckets)
        } else {
            // SAFETY: this function's contract.
            let mut string_hash = unsafe { self.string_hashes.read_nc(i) };
            if parameters.first_level == STRING_MIXED {
                string_hash = hash::mix_spread(string_hash as u64, parameters.attempt_spread) as u32;
            }
            choices_of_string_hash(string_hash, parameters.buckets)
        };
        (hash, [a, if parameters.choices == 2 { b } else { a }])
    }
}

/// Whether a bucket has all bits of a hash.
///
/// # Safety
/// `words` holds more than `bucket` buckets, not written while the kernel runs.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn bucket_contains(words: Global<u32>, shape: BucketShape, bucket: u64, hash: u64) -> bool {
    let first = bucket as usize * shape.bucket_words as usize;
    for position in Positions::of(hash, shape) {
        // SAFETY: positions are below `shape.bits`, which fit in a bucket's words.
        let word = unsafe { words.read_nc(first + (position / 32) as usize) };
        if word >> (position % 32) & 1 == 0 {
            return false;
        }
    }
    true
}

/// Looks a key up in either bucket (Table 2 of the paper).
///
/// # Safety
/// The contract of [`bucket_contains`], for both.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn contains_one(words: Global<u32>, shape: BucketShape, hash: u64, buckets: [u64; 2]) -> bool {
    // SAFETY: this function's contract.
    unsafe {
        bucket_contains(words, shape, buckets[0], hash)
            || (buckets[1] != buckets[0] && bucket_contains(words, shape, buckets[1], hash))
    }
}

kernel! {
    /// Looks up `n` keys, one per thread.
    ///
    /// # Safety
    /// - Launch: 1-D, `n.div_ceil(BLOCK)` blocks of [`BLOCK`] threads, no shared memory.
    /// - `words`: valid for all buckets, not written while the kernel runs.
    /// - `keys`: `n` keys of `kind`; `string_hashes`: `n`, unless the first level is [`MIXED`]; not written while the
    ///   kernel runs.
    /// - `out`: room for the form of result (see [`crate::batch::results`]), used by this launch alone.
    #[launch_bounds(256, 6)]
    pub unsafe fn rao_contains(
        words: Global<u32>, parameters: Parameters, keys: Global<u64>, kind: KeyKind, spread: u64,
        string_hashes: Global<u32>, n: usize, form: u32, out: GlobalMut<u64>,
    ) {
        let i = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
        let keys = Keys { keys, kind, spread, string_hashes };
        // SAFETY: `i < n`; buckets are below their number; all threads reach `put`.
        unsafe {
            let mut found = false;
            if i < n {
                let (hash, buckets) = keys.probe(parameters, i);
                found = contains_one(words, parameters.shape, hash, buckets);
            }
            warp::sync_warp(warp::FULL_MASK);
            results::put(form, out, i, n, found);
        }
    }

    /// Assigns keys to buckets and counts how many each gets: to the only choice; or to the emptier of two, unless the
    /// filter contains the key.
    ///
    /// # Safety
    /// - Launch: 1-D, blocks of [`BLOCK`] threads, one for each tile of `tile` keys; `4 * buckets` bytes of dynamic
    ///   shared memory if `counted_here` is 1, else none.
    /// - `words`, `keys`, `string_hashes`: as for [`rao_contains`]; `first`: [`ALL`], or `live` is one word, the number
    ///   of keys, and `first` keys precede these `n`.
    /// - `ones`: one word per bucket, its number of set bits, not written while the kernel runs.
    /// - `assigned`: valid for `n` writes, used by this launch alone; `counts`: one word per bucket, only accessed
    ///   atomically.
    #[launch_bounds(256, 6)]
    pub unsafe fn rao_assign(
        words: Global<u32>, ones: Global<u32>, parameters: Parameters, keys: Global<u64>, kind: KeyKind, spread: u64,
        string_hashes: Global<u32>, n: usize, live: Global<u64>, first: u64, tile: u32, counted_here: u32,
        assigned: GlobalMut<u32>, counts: GlobalMut<u32>,
    ) {
        let keys = Keys { keys, kind, spread, string_hashes };
        let here: Shared<u32> = shared::dynamic(0);
        // SAFETY: keys are below `n`, buckets below their number; `counted_here` is the same for all threads, so all
        // reach the barriers, which separate clearing, counting and reading.
        unsafe {
            let n = living(live, first, n);
            if counted_here == 1 {
                clear(here, parameters.buckets as u32);
            }
            for i in in_tile(tile, n) {
                let (hash, buckets) = keys.probe(parameters, i);
                let mut bucket = buckets[0] as u32;
                if parameters.choices == 2 {
                    if contains_one(words, parameters.shape, hash, buckets) {
                        bucket = NO_BUCKET;
                    } else {
                        let loads = [ones.read_nc(buckets[0] as usize), ones.read_nc(buckets[1] as usize)];
                        if emptier(loads) == 1 {
                            bucket = buckets[1] as u32;
                        }
                    }
                }
                assigned.write(i, bucket);
                if bucket == NO_BUCKET {
                    continue;
                }
                if counted_here == 1 {
                    here.reduce_add(bucket, 1);
                } else {
                    atomic::reduce_add(counts.at(bucket as usize), 1);
                }
            }
            if counted_here == 1 {
                thread::sync_threads();
                let mut bucket = thread::thread_idx_x();
                while bucket < parameters.buckets as u32 {
                    let count = here.get(bucket);
                    if count != 0 {
                        atomic::reduce_add(counts.at(bucket as usize), count);
                    }
                    bucket += BLOCK;
                }
            }
        }
    }

    /// Replaces counts by their exclusive sums.
    ///
    /// # Safety
    /// - Launch: one block of whole warps up to [`MAX_BLOCK`] threads, 128 bytes of dynamic shared memory.
    /// - `counts`: valid for `n` words, used by this launch alone; their sum is below 2^32.
    #[launch_bounds(1024, 1)]
    pub unsafe fn rao_scan(counts: GlobalMut<u32>, n: usize) {
        let sums: Shared<u32> = shared::dynamic(0);
        let (t, threads) = (thread::thread_idx_x(), thread::block_dim_x());
        let lane = warp::lane_id();
        let mut before = 0;
        let mut first = 0;
        while first < n {
            let i = first + t as usize;
            // SAFETY: `i < n` belongs to this thread; barriers separate writing and reading the warps' sums; the loop
            // is the same for all threads.
            unsafe {
                let count = if i < n { counts.read(i) } else { 0 };
                let inclusive = warp::inclusive_scan_add(warp::FULL_MASK, count);
                if lane == 31 {
                    sums.set(t / 32, inclusive);
                }
                thread::sync_threads();
                let mut sum = before;
                let mut total = 0;
                for w in 0..threads / 32 {
                    let other = sums.get(w);
                    if w < t / 32 {
                        sum += other;
                    }
                    total += other;
                }
                if i < n {
                    counts.write(i, sum + inclusive - count);
                }
                before += total;
                thread::sync_threads();
            }
            first += threads as usize;
        }
    }

    /// Groups the hashes of assigned keys by bucket, in any order within a bucket; `starts[b]` becomes the end of
    /// bucket `b`.
    ///
    /// # Safety
    /// - Launch, `live`, `first`, `tile`, `counted_here`: as for [`rao_assign`].
    /// - `keys`, `assigned`: `n`, as [`rao_assign`] had and wrote them, not written while the kernel runs.
    /// - `starts`: one word for each of `buckets` buckets, the exclusive sums of its counts, only accessed atomically.
    /// - `grouped`: room for all assigned keys, used by this launch alone.
    #[launch_bounds(256, 8)]
    pub unsafe fn rao_group(
        keys: Global<u64>, kind: KeyKind, spread: u64, n: usize, live: Global<u64>, first: u64, tile: u32,
        counted_here: u32, buckets: u32, assigned: Global<u32>, starts: GlobalMut<u32>, grouped: GlobalMut<u64>,
    ) {
        let here: Shared<u32> = shared::dynamic(0);
        // SAFETY: keys are below `n`, buckets below their number; places come from the counts of all keys, so no two
        // are equal; all threads reach the barriers, which separate clearing, counting, reserving and handing out.
        unsafe {
            let n = living(live, first, n);
            if counted_here == 1 {
                clear(here, buckets);
                for i in in_tile(tile, n) {
                    let bucket = assigned.read_nc(i);
                    if bucket != NO_BUCKET {
                        here.reduce_add(bucket, 1);
                    }
                }
                thread::sync_threads();
                let mut bucket = thread::thread_idx_x();
                while bucket < buckets {
                    let count = here.get(bucket);
                    if count != 0 {
                        here.set(bucket, atomic::fetch_add(starts.at(bucket as usize), count));
                    }
                    bucket += BLOCK;
                }
                thread::sync_threads();
            }
            for i in in_tile(tile, n) {
                let bucket = assigned.read_nc(i);
                if bucket != NO_BUCKET {
                    let place = if counted_here == 1 {
                        here.fetch_add(bucket, 1)
                    } else {
                        atomic::fetch_add(starts.at(bucket as usize), 1)
                    };
                    grouped.write(place as usize, mix_at(keys, kind, spread, i));
                }
            }
        }
    }

    /// Builds each bucket's share of a batch in shared memory, merges it into the filter by OR, and counts its bits.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid, blocks of whole warps up to [`MAX_BLOCK`] threads, `4 * bucket_words + 128` bytes of
    ///   dynamic shared memory.
    /// - `words`, `ones`: valid for all buckets, used by this launch alone.
    /// - `grouped`, `ends`: the hashes by bucket, and where each bucket's end, as [`rao_group`] leaves them; not
    ///   written while the kernel runs.
    #[launch_bounds(1024, 2)]
    pub unsafe fn rao_build(
        words: GlobalMut<u32>, ones: GlobalMut<u32>, buckets: u64, shape: BucketShape, grouped: Global<u64>,
        ends: Global<u32>,
    ) {
        let sums: Shared<u32> = shared::dynamic(0);
        let filter: Shared<u32> = shared::dynamic(128);
        let (t, threads) = (thread::thread_idx_x(), thread::block_dim_x());
        let mut bucket = thread::block_idx_x() as u64;
        while bucket < buckets {
            // SAFETY: shared indices are below `bucket_words`, and barriers separate zeroing, atomic setting and
            // reading; the bucket belongs to this block; the hashes lie between two ends; `bucket` and its ends are the
            // same for the whole block, so all threads reach every barrier.
            unsafe {
                let first = if bucket == 0 { 0 } else { ends.read_nc(bucket as usize - 1) };
                let end = ends.read_nc(bucket as usize);
                if first != end {
                    let mut w = t;
                    while w < shape.bucket_words {
                        filter.set(w, 0);
                        w += threads;
                    }
                    thread::sync_threads();
                    let mut i = first + t;
                    while i < end {
                        for position in Positions::of(grouped.read_nc(i as usize), shape) {
                            filter.reduce_or(position / 32, 1 << (position % 32));
                        }
                        i += threads;
                    }
                    thread::sync_threads();
                    let start = bucket as usize * shape.bucket_words as usize;
                    let mut sum = 0;
                    let mut w = t;
                    while w < shape.bucket_words {
                        let at = start + w as usize;
                        let before = words.read(at);
                        let after = before | filter.get(w);
                        if after != before {
                            words.write(at, after);
                        }
                        sum += after.count_ones();
                        w += threads;
                    }
                    sum = warp::reduce_add(warp::FULL_MASK, sum);
                    if warp::lane_id() == 0 {
                        sums.set(t / 32, sum);
                    }
                    thread::sync_threads();
                    if t == 0 {
                        let mut total = 0;
                        for w in 0..threads / 32 {
                            total += sums.get(w);
                        }
                        ones.write(bucket as usize, total);
                    }
                }
            }
            bucket += thread::grid_dim_x() as u64;
        }
    }

    /// Raises `most` to the greatest of `n` words.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid, blocks of whole warps, no shared memory.
    /// - `values`: valid for `n` words, not written while the kernel runs; `most`: one word, only accessed atomically.
    pub unsafe fn rao_most(values: Global<u32>, n: usize, most: GlobalMut<u32>) {
        let mut greatest = 0;
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`.
            greatest = greatest.max(unsafe { values.read_nc(i) });
        }
        // SAFETY: the loop has ended for all lanes, and none has left; `most` is one word.
        unsafe {
            greatest = warp::reduce_max(warp::FULL_MASK, greatest);
            if warp::lane_id() == 0 {
                atomic::reduce_max(most, greatest);
            }
        }
    }

    /// Restores a filter if `most`, the set bits of its fullest bucket, is above `limit`.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size, no shared memory.
    /// - `words`, `ones`: valid for `n` and `buckets` words, used by this launch alone; `saved_words`, `saved_ones`: as
    ///   long; `most`: one word; these are not written while the kernel runs.
    pub unsafe fn rao_restore(
        words: GlobalMut<u32>, saved_words: Global<u32>, n: usize, ones: GlobalMut<u32>, saved_ones: Global<u32>,
        buckets: usize, most: Global<u32>, limit: u32,
    ) {
        // SAFETY: `most` is one word; indices are below the lengths.
        unsafe {
            if most.read_nc(0) <= limit {
                return;
            }
            for i in thread::grid_stride(n) {
                words.write(i, saved_words.read_nc(i));
            }
            for i in thread::grid_stride(buckets) {
                ones.write(i, saved_ones.read_nc(i));
            }
        }
    }

    /// Writes the hashes of `n` keys, marks the keys that the filter does not contain, and lets each of them claim its
    /// hash: the first half of test-and-insert.
    ///
    /// # Safety
    /// - Launch, `words`, `keys`, `string_hashes`: as for [`rao_contains`].
    /// - `hashes`: valid for `n` writes, `absent` for [`results::words`] of the form of bits; used by this launch
    ///   alone.
    /// - `table`: as [`Claims::new`] asks, all words [`EMPTY`](crate::bloom::claims::EMPTY) at the start.
    #[launch_bounds(256, 4)]
    pub unsafe fn rao_dedup_claim(
        words: Global<u32>, parameters: Parameters, keys: Global<u64>, kind: KeyKind, spread: u64,
        string_hashes: Global<u32>, n: usize, hashes: GlobalMut<u64>, absent: GlobalMut<u64>, table: GlobalMut<u64>,
        table_bits: u32,
    ) {
        let i = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
        let probes = Keys { keys, kind, spread, string_hashes };
        // SAFETY: `i < n`; buckets are below their number; claims hold indices below `n`; all threads reach `put`.
        unsafe {
            let mut is_absent = false;
            if i < n {
                let (hash, buckets) = probes.probe(parameters, i);
                hashes.write(i, hash);
                is_absent = !contains_one(words, parameters.shape, hash, buckets);
                if is_absent {
                    Claims::new(table, table_bits).claim(hash, i, |j| mix_at(keys, kind, spread, j));
                }
            }
            warp::sync_warp(warp::FULL_MASK);
            results::put(results::BITS, absent, i, n, is_absent);
        }
    }

    /// Resolves claims: of the keys marked by [`rao_dedup_claim`] leaves marked the winners of their hashes, the new
    /// keys. Writes the answers to `out` if it takes bytes. The second half of test-and-insert.
    ///
    /// # Safety
    /// - Launch: as for [`rao_dedup_claim`], which has run with the same `n` and `table`.
    /// - `hashes`: as it wrote them, not written while the kernel runs; `new`: its marks, used by this launch alone.
    /// - `out`: one byte per key if `form` is [`results::BYTES`], used by this launch alone; otherwise it is not looked
    ///   at.
    #[launch_bounds(256, 6)]
    pub unsafe fn rao_dedup_resolve(
        hashes: Global<u64>, n: usize, new: GlobalMut<u64>, form: u32, out: GlobalMut<u64>, table: GlobalMut<u64>,
        table_bits: u32,
    ) {
        let i = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
        // SAFETY: `i < n`; claims hold indices below `n`; all threads reach `put`.
        unsafe {
            let mut is_new = false;
            if i < n && results::get(results::BITS, new, i) {
                let hash = hashes.read_nc(i);
                is_new = Claims::new(table, table_bits).winner(hash, |j| hashes.read_nc(j)) == i;
            }
            warp::sync_warp(warp::FULL_MASK); // one word of `new` holds bits of all lanes
            results::put(results::BITS, new, i, n, is_new);
            if form == results::BYTES {
                results::put(results::BYTES, out, i, n, is_new);
            }
        }
    }
}

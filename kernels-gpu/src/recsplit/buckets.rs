//! Assignment of keys to buckets: hashing, and the bounds of the buckets of sorted keys.
//!
//! Source: sections 5.1 and 5.9 of the thesis, which sorts on the host. Here every key becomes a pair of its bucket and
//! the low half of its hash, and a radix sort orders the pairs by bucket. Later kernels need only the bounds of a
//! bucket.

#[cfg(feature = "bodies")]
use crate::batch::hash128::hash128_at;
use crate::batch::keys::KeyKind;
#[cfg(feature = "bodies")]
use crate::recsplit::memory::row_at;
use warpset_core::recsplit::hash::bucket_of;
use warpset_simt::{Global, GlobalMut, atomic, thread, warp};

/// Threads of a block, in every kernel of this module.
pub const BLOCK: u32 = 256;

/// Words of [`recsplit_counts`] for observations.
pub const SEEN: usize = 2;
/// Word of [`SEEN`] for the keys of the largest bucket.
pub const LARGEST: usize = 0;
/// Word of [`SEEN`] for the inverse of the first bucket that is too large: 0 if there is none.
pub const TOO_LARGE: usize = 1;

/// Destination of selected keys.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct Room {
    capacity: u64,
    taken: GlobalMut<u64>,
    bucket_of_key: GlobalMut<u32>,
    lows: GlobalMut<u64>,
}

/// Appends those of `n` pairs of bucket and low half with a bucket among the `count` from `first` on; buckets are
/// counted from there. A warp takes places for `ROWS` rows of 32 keys at a time, since one word counts them for the
/// whole grid.
///
/// # Safety
/// The contract of [`recsplit_select`]; `pair` is called below `n`.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn select<const ROWS: usize>(pair: impl Fn(usize) -> (u64, u64), n: usize, first: u64, count: u64, room: Room) {
    let step = thread::grid_dim_x() as usize * BLOCK as usize * ROWS;
    let lane = warp::lane_id() as usize;
    let mut start = (thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize - lane) * ROWS;
    // Equal for all lanes of a warp, so that they loop equally often.
    while start < n {
        let (mut lows, mut buckets, mut inside) = ([0; ROWS], [0; ROWS], [0; ROWS]);
        let mut all = 0;
        // SAFETY: `pair` is called below `n`; all lanes of the warp reach the votes and the shuffle; each place below
        // the capacity was taken for this lane alone.
        unsafe {
            for row in 0..ROWS {
                let (i, mut bucket) = (start + 32 * row + lane, count);
                if i < n {
                    let (of_key, low) = pair(i);
                    lows[row] = low;
                    bucket = of_key.wrapping_sub(first);
                }
                buckets[row] = bucket as u32;
                inside[row] = warp::ballot(warp::FULL_MASK, bucket < count);
                all += inside[row].count_ones() as u64;
            }
            let mut place = 0;
            if lane == 0 && all != 0 {
                place = atomic::fetch_add(room.taken, all);
            }
            place = warp::shuffle_idx(warp::FULL_MASK, place, 0);
            for row in 0..ROWS {
                let at = place + (inside[row] & warp::lane_mask_lt()).count_ones() as u64;
                if inside[row] >> lane & 1 != 0 && at < room.capacity {
                    room.bucket_of_key.write(at as usize, buckets[row]);
                    room.lows.write(at as usize, lows[row]);
                }
                place += inside[row].count_ones() as u64;
            }
        }
        start += step;
    }
}

kernel! {
    /// Computes the bucket and the low half of every key.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size, no shared memory.
    /// - `keys`: `n` keys of a kind that `hash128_at` takes, not written while the kernel runs.
    /// - `bucket_of_key`, `lows`: `n` places each, used by this launch alone. `buckets` is at most 2^32.
    pub unsafe fn recsplit_hash(
        keys: Global<u64>, kind: KeyKind, seed: u64, n: usize, buckets: u64, bucket_of_key: GlobalMut<u32>,
        lows: GlobalMut<u64>,
    ) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n` belongs to this thread.
            unsafe {
                let hash = hash128_at(keys, kind, seed, i);
                bucket_of_key.write(i, bucket_of(hash.high, buckets) as u32);
                lows.write(i, hash.low);
            }
        }
    }

    /// Writes bucket and low half of the keys with a bucket, of `buckets`, among the `count` from `first` on; buckets
    /// are counted from there. The order of keys is undetermined. Keys past the capacity are counted and left out.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid of blocks of [`BLOCK`] threads, no shared memory.
    /// - `keys`: as for [`recsplit_hash`]. `count` is at most 2^32.
    /// - `taken`: one word, only accessed atomically.
    /// - `bucket_of_key`, `lows`: `capacity` places each; places from the old value of `taken` on are used by this
    ///   launch, and by others with the same `taken`, alone.
    #[launch_bounds(256, 4)]
    pub unsafe fn recsplit_select(
        keys: Global<u64>, kind: KeyKind, seed: u64, n: usize, buckets: u64, first: u64, count: u64, capacity: u64,
        taken: GlobalMut<u64>, bucket_of_key: GlobalMut<u32>, lows: GlobalMut<u64>,
    ) {
        let hash = |i| {
            // SAFETY: `i < n`.
            let hash = unsafe { hash128_at(keys, kind, seed, i) };
            (bucket_of(hash.high, buckets), hash.low)
        };
        // SAFETY: the caller keeps this kernel's contract.
        unsafe { select::<4>(hash, n, first, count, Room { capacity, taken, bucket_of_key, lows }) }
    }

    /// Runs [`recsplit_select`] for `n` keys whose buckets and low halves [`recsplit_hash`] has written.
    ///
    /// # Safety
    /// The contract of [`recsplit_select`], with `all_buckets` and `all_lows`, `n` each and not written while the
    /// kernel runs, for the keys.
    #[launch_bounds(256, 4)]
    pub unsafe fn recsplit_pick(
        all_buckets: Global<u32>, all_lows: Global<u64>, n: usize, first: u64, count: u64, capacity: u64,
        taken: GlobalMut<u64>, bucket_of_key: GlobalMut<u32>, lows: GlobalMut<u64>,
    ) {
        // SAFETY: `i < n`.
        let pair = |i| unsafe { (all_buckets.read_nc(i) as u64, all_lows.read_nc(i)) };
        // SAFETY: the caller keeps this kernel's contract.
        unsafe { select::<8>(pair, n, first, count, Room { capacity, taken, bucket_of_key, lows }) }
    }

    /// Finds the bounds of `buckets` buckets among `n` sorted keys.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size, no shared memory.
    /// - `bucket_of_key`: `n` ascending numbers below `buckets`, not written while the kernel runs; `n < 2^32`.
    /// - `bounds`: `buckets + 1` places, used by this launch alone.
    pub unsafe fn recsplit_bounds(bucket_of_key: Global<u32>, n: usize, buckets: usize, bounds: GlobalMut<u32>) {
        for i in thread::grid_stride(n + 1) {
            // SAFETY: keys are read below `n`. A bucket begins at one key only, and `bucket <= here <= buckets`.
            unsafe {
                let here = if i < n { bucket_of_key.read_nc(i) as usize } else { buckets };
                let mut bucket = if i > 0 { bucket_of_key.read_nc(i - 1) as usize + 1 } else { 0 };
                while bucket <= here {
                    bounds.write(bucket, i as u32);
                    bucket += 1;
                }
            }
        }
    }

    /// Writes the count of numbers of each bucket's tree, and 0 after the last one, and the number of keys before the
    /// end of each bucket. Buckets of more than `largest` keys have no tree.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid of blocks of [`BLOCK`] threads, no shared memory.
    /// - `bounds`: `buckets + 1` ascending words, `rows`: four words per number of keys up to `largest`; nothing writes
    ///   either while the kernel runs.
    /// - `counts`, `keys_before`: `buckets + 1` and `buckets` places, used by this launch alone.
    /// - `seen`: [`SEEN`] words, zero at the start, only accessed atomically.
    pub unsafe fn recsplit_counts(
        bounds: Global<u32>, buckets: usize, rows: Global<u32>, largest: u32, base: u64, counts: GlobalMut<u32>,
        keys_before: GlobalMut<u64>, seen: GlobalMut<u64>,
    ) {
        let mut most = 0;
        for bucket in thread::grid_stride(buckets + 1) {
            // SAFETY: bounds are read up to `buckets`; the places of `bucket` belong to this thread.
            unsafe {
                let mut count = 0;
                if bucket < buckets {
                    let end = bounds.read_nc(bucket + 1);
                    let keys = end - bounds.read_nc(bucket);
                    keys_before.write(bucket, base + end as u64);
                    most = if most < keys { keys } else { most };
                    if keys > largest {
                        atomic::reduce_max(seen.at(TOO_LARGE), !(bucket as u64));
                    } else {
                        count = row_at(rows, keys).nodes as u32;
                    }
                }
                counts.write(bucket, count);
            }
        }
        // SAFETY: all lanes come here together; `seen` is accessed atomically.
        unsafe {
            let most = warp::reduce_max(warp::FULL_MASK, most) as u64;
            if warp::lane_id() == 0 && atomic::load_relaxed(seen.at(LARGEST)) < most {
                atomic::reduce_max(seen.at(LARGEST), most);
            }
        }
    }

    /// Finds the indices of the keys with this bucket and this low half, in any order, up to the capacity.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size, no shared memory.
    /// - `keys`: as for [`recsplit_hash`].
    /// - `found`: a word for their number, zero at the start and only accessed atomically, and `capacity` places for
    ///   indices after it.
    pub unsafe fn recsplit_positions(
        keys: Global<u64>, kind: KeyKind, seed: u64, n: usize, first: u64, buckets: u64, bucket: u64, low: u64,
        capacity: u64, found: GlobalMut<u64>,
    ) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`; a place below the capacity was taken for this thread alone.
            unsafe {
                let hash = hash128_at(keys, kind, seed, i);
                if hash.low == low && bucket_of(hash.high, buckets) == bucket {
                    let place = atomic::fetch_add(found, 1);
                    if place < capacity {
                        found.write(1 + place as usize, first + i as u64);
                    }
                }
            }
        }
    }
}

//! Lookups in exact static sets and maps: one key per thread for the pilot, four threads per bucket.
//!
//! A bucket is 64 bytes. Four lanes that read 16 bytes each cost no more memory traffic than one that reads 32 bytes;
//! one that reads 64 bytes takes twice as long. So four neighbouring lanes read the buckets of each other's keys, one
//! after the other, and all four reads precede the first comparison.

use warpset_core::static_set::{Shape, hash};
use warpset_simt::warp::{self, FULL_MASK};
use warpset_simt::{Global, GlobalMut, multiply_high, thread};

#[cfg(feature = "bodies")]
use crate::batch::keys::word_at;
use crate::batch::keys::{KeyClass, KeyKind};
use crate::batch::results;

/// Threads of a block.
pub const BLOCK: u32 = 256;

/// Membership only.
pub const NOTHING: u32 = 0;
/// Numbers of keys.
pub const NUMBERS: u32 = 1;
/// Values of 32 bits.
pub const VALUES_32: u32 = 2;
/// Values of 64 bits.
pub const VALUES_64: u32 = 3;

/// Lanes that read a bucket together.
const LANES: u32 = 4;

/// Parameters of a set for lookups.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Plan {
    /// Seed, prepared for hashes.
    pub spread: u64,
    /// Numbers of shards, groups and buckets.
    pub shape: Shape,
    /// 8 keys per bucket, or 16.
    pub slots: u32,
    /// 1 if buckets far exceed the L2 cache: they are then evicted first, and pilots stay. Else 0.
    pub exceeds_cache: u64,
}

const _: () = assert!(size_of::<Plan>() == 32);

/// Returns the votes of the lane's own four lanes.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn votes(is: bool) -> u32 {
    // SAFETY: the whole warp arrives together, by this function's contract.
    let votes = unsafe { warp::ballot(FULL_MASK, is) };
    votes >> (warp::lane_id() & !(LANES - 1)) & ((1 << LANES) - 1)
}

/// Returns the slot of each lane's key in its bucket, if it is there; the whole warp works together.
///
/// # Safety
/// - All lanes of the warp arrive together.
/// - `keys` is valid for the bucket of every lane, 16-byte aligned, not written while the kernel runs.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn find<const NARROW: bool, const ONCE: bool>(keys: Global<u64>, bucket: u32, key: u64) -> Option<u32> {
    let lane = warp::lane_id();
    let (part, first) = (lane % LANES, lane & !(LANES - 1));
    let mut held = [[0u64; 2]; LANES as usize];
    let mut found = None;
    // SAFETY: the whole warp is here; sources are lanes of the own four; buckets are valid, by this function's
    // contract.
    unsafe {
        for j in 0..LANES as usize {
            let bucket = warp::shuffle_idx(FULL_MASK, bucket, first + j as u32);
            let at = bucket as usize * 8 + part as usize * 2;
            held[j] = if ONCE { keys.read2_nc_once(at) } else { keys.read2_nc(at) };
        }
        for j in 0..LANES as usize {
            if NARROW {
                let key = warp::shuffle_idx(FULL_MASK, key as u32, first + j as u32);
                // Part `p` of the line holds slots `4 p` to `4 p + 3`. Free slots repeat the first one, and the lowest
                // match counts.
                for i in (0..4u32).rev() {
                    let here = (held[j][i as usize / 2] >> (i % 2 * 32)) as u32;
                    let votes = votes(here == key);
                    if part == j as u32 && votes != 0 {
                        found = Some(4 * votes.trailing_zeros() + i);
                    }
                }
            } else {
                let low = warp::shuffle_idx(FULL_MASK, key as u32, first + j as u32);
                let high = warp::shuffle_idx(FULL_MASK, (key >> 32) as u32, first + j as u32);
                let key = (high as u64) << 32 | low as u64;
                for i in (0..2u32).rev() {
                    let votes = votes(held[j][i as usize] == key);
                    if part == j as u32 && votes != 0 {
                        found = Some(2 * votes.trailing_zeros() + i);
                    }
                }
            }
        }
    }
    found
}

kernel! {
    /// Looks up `n` keys, one per thread: writes whether each is in the set, in the form `form`, and its number or
    /// value, or zero.
    ///
    /// # Safety
    /// - Launch: 1-D, `n.div_ceil(BLOCK)` blocks of [`BLOCK`] threads, no shared memory.
    /// - `pilots`: a byte per group of the plan's shape; `keys`: 8 words per bucket, 16-byte aligned; `values`: a
    ///   value per slot, of 4 bytes for [`VALUES_32`], of 8 for [`VALUES_64`]. They are valid for the shards of all
    ///   keys, and nothing writes them while the kernel runs.
    /// - `queries`: `n > 0` keys of `kind`, not written while the kernel runs.
    /// - `answers`: the words of the form (see [`crate::batch::results`]); `out`: `n` numbers or values, as `wanted`
    ///   says. Both are used by this launch alone, except that counts are added atomically.
    #[launch_bounds(256, 6)]
    pub unsafe fn static_set_lookup(
        pilots: Global<u8>, keys: Global<u64>, values: Global<u64>, plan: Plan, queries: Global<u64>, kind: KeyKind,
        n: usize, form: u32, answers: GlobalMut<u64>, wanted: u32, out: GlobalMut<u64>,
    ) {
        let i = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
        // SAFETY: keys are read below `n` and answered for `i < n`; groups, buckets and slots are within the plan's
        // shape; all threads reach every vote; the rest is this kernel's contract.
        unsafe {
            // Threads without a key take the last one: in a part of a map another one's bucket may not be there.
            let key = word_at(queries, kind.class, i.min(n - 1));
            let narrow = plan.slots == 16;
            let is_key = i < n && !matches!(kind.class, KeyClass::Hashes | KeyClass::Hashes128);
            let may_be = is_key && !(narrow && key >> 32 != 0);
            let hash = hash(key, plan.spread);
            let (mut bucket, mut found) = (0, None);
            if plan.shape.buckets != 0 {
                let pilot = pilots.read_nc(plan.shape.group_by(hash, multiply_high) as usize);
                bucket = plan.shape.bucket_by(hash, pilot as u32, multiply_high);
                found = match (narrow, plan.exceeds_cache != 0) {
                    (false, false) => find::<false, false>(keys, bucket, key),
                    (false, true) => find::<false, true>(keys, bucket, key),
                    (true, false) => find::<true, false>(keys, bucket, key),
                    (true, true) => find::<true, true>(keys, bucket, key),
                };
                found = found.filter(|_| may_be);
            }
            if wanted != NOTHING && i < n {
                let slot = bucket as usize * plan.slots as usize + found.unwrap_or(0) as usize;
                match wanted {
                    NUMBERS => out.write(i, if found.is_some() { slot as u64 } else { 0 }),
                    VALUES_32 => {
                        let value = if found.is_some() { values.cast::<u32>().read_nc(slot) } else { 0 };
                        out.cast::<u32>().write(i, value);
                    }
                    _ => out.write(i, if found.is_some() { values.read_nc(slot) } else { 0 }),
                }
            }
            results::put(form, answers, i, n, found.is_some());
        }
    }
}

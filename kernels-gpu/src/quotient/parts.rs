//! Fingerprints a little longer than 32 bits, distributed by their highest bits to parts in which 32 bits suffice:
//! words of 32 bits are sorted in half the time of words of 64.
//!
//! The order within a part depends on the order of blocks. After the sort it is the same for every order.

use warpset_simt::shared::{self, Shared};
use warpset_simt::warp::{self, FULL_MASK};
use warpset_simt::{Global, GlobalMut, atomic, thread};

use crate::batch::keys::KeyKind;
#[cfg(feature = "bodies")]
use crate::quotient::keys::fingerprint_at;
use crate::quotient::memory::Parameters;

/// Threads of a block, in both kernels.
pub const BLOCK: u32 = 256;
/// Keys per block of [`quotient_fingerprints_in_parts`].
pub const TILE: usize = BLOCK as usize * ITEMS;
/// Words per thread of [`quotient_widen`].
pub const WIDENED: usize = 4;
/// Number of parts; fingerprints of 33 bits use the first two.
pub const PARTS: usize = 4;
/// Bytes of dynamic shared memory of [`quotient_fingerprints_in_parts`].
pub const SHARED_BYTES: u32 = 8 * (WARPS + PARTS as u32);

const ITEMS: usize = 16;
const WARPS: u32 = BLOCK / 32;

/// Returns for each part the lanes of the warp with a fingerprint of it.
///
/// # Safety
/// All lanes of the warp come here together.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
unsafe fn lanes_by_part(there: bool, part: u32) -> [u32; PARTS] {
    // SAFETY: the contract is the same.
    unsafe {
        let there = warp::ballot(FULL_MASK, there);
        let (odd, upper) = (warp::ballot(FULL_MASK, part & 1 != 0), warp::ballot(FULL_MASK, part & 2 != 0));
        [there & !odd & !upper, there & odd & !upper, there & !odd & upper, there & odd & upper]
    }
}

/// Packs the numbers of lanes, 16 bits for each part.
#[cfg(feature = "bodies")]
#[inline(always)]
fn numbers([a, b, c, d]: [u32; PARTS]) -> u64 {
    let number = |lanes: u32, part: u32| (lanes.count_ones() as u64) << (16 * part);
    number(a, 0) | number(b, 1) | number(c, 2) | number(d, 3)
}

/// Returns the number of one part.
#[cfg(feature = "bodies")]
#[inline(always)]
fn of_part(numbers: u64, part: u32) -> u64 {
    numbers >> (16 * part) & 0xffff
}

kernel! {
    /// Writes the lower 32 bits of each key's fingerprint to the part of its higher bits. Parts 0 and 1 share the first
    /// `room` places, 0 from the first one upwards, 1 from the last one downwards; 2 and 3 share the next.
    ///
    /// # Safety
    /// - Launch: 1-D, one block of [`BLOCK`] threads for each [`TILE`] keys, [`SHARED_BYTES`] of dynamic shared memory.
    /// - `keys`: `n` keys of `kind`, one that [`fingerprint_at`] takes, not written while the kernel runs; a key
    ///   without a fingerprint gets a zero.
    /// - Fingerprints of these [`Parameters`] have 33 or 34 bits.
    /// - `lens`: [`PARTS`] numbers of fingerprints per part from earlier launches; used by this launch alone.
    /// - `out`: `room` places for 33 bits, twice as many for 34, used by this launch alone; `room` is at least the
    ///   number of keys of these launches.
    #[launch_bounds(256, 4)]
    pub unsafe fn quotient_fingerprints_in_parts(
        keys: Global<u64>, kind: KeyKind, spread: u64, n: usize, parameters: u32, lens: GlobalMut<u64>,
        out: GlobalMut<u32>, room: usize,
    ) {
        let split = Parameters(parameters).split();
        let (t, w) = (thread::thread_idx_x(), thread::thread_idx_x() / 32);
        let first = thread::block_idx_x() as usize * TILE + t as usize;
        let by_warp: Shared<u64> = shared::dynamic(0);
        let begins: Shared<u64> = shared::dynamic(8 * WARPS);
        let (mut words, mut parts, mut held) = ([0u32; ITEMS], 0u32, 0u64);
        // SAFETY: places of keys are below `n`; shared words are written by one thread each, and read after a barrier;
        // the lanes of a warp go through the loops together; each fingerprint has its own place, because a block takes
        // as many as it has fingerprints.
        unsafe {
            for k in 0..ITEMS {
                let i = first + k * BLOCK as usize;
                let fingerprint =
                    if i < n { fingerprint_at(keys, kind, spread, split, i).unwrap_or(0) } else { 0 };
                words[k] = fingerprint as u32;
                let part = (fingerprint >> 32) as u32;
                parts |= part << (2 * k);
                held += numbers(lanes_by_part(i < n, part));
            }
            if t % 32 == 0 {
                by_warp.set(w, held);
            }
            thread::sync_threads();
            if t < PARTS as u32 {
                let mut all = 0;
                for warp in 0..WARPS {
                    all += of_part(by_warp.get(warp), t);
                }
                begins.set(t, atomic::fetch_add(lens.at(t as usize), all));
            }
            thread::sync_threads();
            let mut before = 0;
            for warp in 0..WARPS {
                if warp < w {
                    before += by_warp.get(warp);
                }
            }
            for k in 0..ITEMS {
                let part = parts >> (2 * k) & 3;
                let there = first + k * (BLOCK as usize) < n;
                let lanes = lanes_by_part(there, part);
                let [a, b, c, d] = lanes;
                let mine = match part {
                    0 => a,
                    1 => b,
                    2 => c,
                    _ => d,
                };
                let rank = (mine & warp::lane_mask_lt()).count_ones() as u64;
                let place = (begins.get(part) + of_part(before, part) + rank) as usize;
                if there {
                    let in_half = if part & 1 == 0 { place } else { room - 1 - place };
                    out.write((part >> 1) as usize * room + in_half, words[k]);
                }
                before += numbers(lanes);
            }
        }
    }
}

kernel! {
    /// Writes 32-bit words as 64-bit words with `high` above them.
    ///
    /// # Safety
    /// - Launch: 1-D, blocks of [`BLOCK`] threads, one thread per [`WIDENED`] words.
    /// - `low`: `n` words, not written while the kernel runs.
    /// - `out`: `n` words, used by this launch alone.
    pub unsafe fn quotient_widen(low: Global<u32>, n: usize, high: u32, out: GlobalMut<u64>) {
        let first = thread::block_idx_x() as usize * (BLOCK as usize * WIDENED) + thread::thread_idx_x() as usize;
        for k in 0..WIDENED {
            let i = first + k * BLOCK as usize;
            if i < n {
                // SAFETY: `i < n`.
                unsafe { out.write(i, (high as u64) << 32 | low.read_nc(i) as u64) };
            }
        }
    }
}

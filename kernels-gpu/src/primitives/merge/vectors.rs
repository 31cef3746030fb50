//! Tiles of keys without values, moved 16 bytes at a time.
//!
//! The parts of the two runs begin anywhere. In shared memory each keeps its distance from a multiple of 16 bytes in
//! global memory, so that whole vectors can be copied; those at the ends include neighbours that do not belong to the
//! tile.

use warpset_simt::shared::Shared;
use warpset_simt::{Global, GlobalMut, warp};

use crate::primitives::merge_path::MergeKey;
#[cfg(feature = "bodies")]
use crate::primitives::merge_path::Tile;

/// Keys that move 16 bytes at a time.
pub trait Vectors: MergeKey {
    /// Keys of 16 bytes.
    type Vector: Copy + Default;
    /// Number of keys of a vector.
    const LANES: u32;
    /// Reads keys from `i` on.
    ///
    /// # Safety
    /// They are valid for reads, not written while the kernel runs, and begin at a multiple of 16 bytes.
    unsafe fn read(from: Global<Self>, i: usize) -> Self::Vector;
    /// Writes keys from `i` on.
    ///
    /// # Safety
    /// The places are valid for writes, used by this launch alone, and begin at a multiple of 16 bytes.
    unsafe fn write(to: GlobalMut<Self>, i: usize, vector: Self::Vector);
    /// Returns keys from `i` on.
    ///
    /// # Safety
    /// They are in shared memory, nothing writes them meanwhile, and they begin at a multiple of 16 bytes.
    unsafe fn get(from: Shared<Self>, i: u32) -> Self::Vector;
    /// Sets keys from `i` on.
    ///
    /// # Safety
    /// The places are in shared memory, used by this launch alone, and begin at a multiple of 16 bytes.
    unsafe fn set(to: Shared<Self>, i: u32, vector: Self::Vector);
}

macro_rules! vectors {
    ($($key:ty: $lanes:literal, $read:ident, $write:ident, $get:ident, $set:ident;)*) => {$(
        impl Vectors for $key {
            type Vector = [$key; $lanes];
            const LANES: u32 = $lanes;
            #[inline(always)]
            #[track_caller]
            unsafe fn read(from: Global<Self>, i: usize) -> Self::Vector {
                // SAFETY: the contract of this function.
                unsafe { from.$read(i) }
            }
            #[inline(always)]
            #[track_caller]
            unsafe fn write(to: GlobalMut<Self>, i: usize, vector: Self::Vector) {
                // SAFETY: as above.
                unsafe { to.$write(i, vector) }
            }
            #[inline(always)]
            #[track_caller]
            unsafe fn get(from: Shared<Self>, i: u32) -> Self::Vector {
                // SAFETY: as above.
                unsafe { from.$get(i) }
            }
            #[inline(always)]
            #[track_caller]
            unsafe fn set(to: Shared<Self>, i: u32, vector: Self::Vector) {
                // SAFETY: as above.
                unsafe { to.$set(i, vector) }
            }
        }
    )*};
}
vectors! {
    u32: 4, read4_nc, write4, get4, set4;
    u64: 2, read2_nc, write2, get2, set2;
}

impl Vectors for u128 {
    type Vector = u128;
    const LANES: u32 = 1;
    #[inline(always)]
    #[track_caller]
    unsafe fn read(from: Global<Self>, i: usize) -> u128 {
        // SAFETY: the contract of this function.
        unsafe { from.read_nc(i) }
    }
    #[inline(always)]
    #[track_caller]
    unsafe fn write(to: GlobalMut<Self>, i: usize, key: u128) {
        // SAFETY: as above.
        unsafe { to.write(i, key) }
    }
    #[inline(always)]
    #[track_caller]
    unsafe fn get(from: Shared<Self>, i: u32) -> u128 {
        // SAFETY: as above.
        unsafe { from.get(i) }
    }
    #[inline(always)]
    #[track_caller]
    unsafe fn set(to: Shared<Self>, i: u32, key: u128) {
        // SAFETY: as above.
        unsafe { to.set(i, key) }
    }
}

/// Tile's part of a run.
#[derive(Clone, Copy)]
pub struct Part<K> {
    /// Whole run.
    pub run: Global<K>,
    /// Length of the run.
    pub run_len: usize,
    /// Beginning of the part in the run.
    pub start: usize,
    /// Keys between the last multiple of 16 bytes and the run.
    pub run_skew: u32,
}

impl<K: Vectors> Part<K> {
    /// Returns the number of keys between the last multiple of 16 bytes and the part.
    #[inline(always)]
    fn skew(self) -> u32 {
        (self.run_skew + self.start as u32) % K::LANES
    }

    /// Returns the number of vectors with a key of the part's first `len`.
    #[inline(always)]
    fn vectors(self, len: u32) -> u32 {
        (self.skew() + len).div_ceil(K::LANES)
    }

    /// Whether these vectors are all inside the run.
    #[inline(always)]
    fn inside(self, vectors: u32) -> bool {
        let skew = self.skew() as usize;
        self.start >= skew && self.start - skew + (vectors * K::LANES) as usize <= self.run_len
    }
}

/// Returns the keys that a tile may take in shared memory beyond its own: the distances of both parts, and the end of
/// the last vector.
#[cfg(not(target_arch = "nvptx64"))]
pub const fn slack<K: Vectors>() -> u32 {
    3 * K::LANES
}

/// Loads the tile's parts of both runs into shared memory, and returns their beginnings there.
///
/// # Safety
/// - All threads of the block call this together.
/// - The parts are valid for reads of the tile's items, and nothing writes their runs meanwhile.
/// - Shared memory holds the tile and its slack, and nothing else accesses it.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
pub unsafe fn load<K: Vectors, const THREADS: u32, const ITEMS: usize>(
    tile: Tile<THREADS, ITEMS>,
    a: Part<K>,
    b: Part<K>,
    keys: Shared<K>,
) -> (u32, u32) {
    let Tile { t, a_len, len } = tile;
    let items = THREADS * ITEMS as u32;
    let b_len = len - a_len;
    let (a_vectors, b_vectors) = (a.vectors(a_len), b.vectors(b_len));
    let (a_at, b_at) = (a.skew(), a_vectors * K::LANES + b.skew());
    // SAFETY: whole vectors are read if all of them are inside their runs, single keys otherwise; each vector and each
    // key has its own place in shared memory, the last one less than the slack after the tile's length.
    unsafe {
        if len == items && a.inside(a_vectors) && b.inside(b_vectors) {
            let (from_a, from_b) = (a.run.at(a.start - a.skew() as usize), b.run.at(b.start - b.skew() as usize));
            let vectors = a_vectors + b_vectors;
            // For any distances, a tile has at least this number of vectors, and at most three more: none of single
            // keys.
            let least = items / K::LANES;
            let rounds =
                const { (THREADS * ITEMS as u32 / K::LANES + if K::LANES == 1 { 0 } else { 3 }).div_ceil(THREADS) };
            let mut loaded = [K::Vector::default(); ITEMS];
            for u in 0..rounds {
                let v = t + u * THREADS;
                if (u + 1) * THREADS <= least || v < vectors {
                    let (from, first) = if v < a_vectors { (from_a, v) } else { (from_b, v - a_vectors) };
                    loaded[u as usize] = K::read(from, (first * K::LANES) as usize);
                }
            }
            for u in 0..rounds {
                let v = t + u * THREADS;
                if (u + 1) * THREADS <= least || v < vectors {
                    K::set(keys, v * K::LANES, loaded[u as usize]);
                }
            }
        } else {
            let mut i = t;
            while i < len {
                if i < a_len {
                    keys.set(a_at + i, a.run.read_nc(a.start + i as usize));
                } else {
                    keys.set(b_at + i - a_len, b.run.read_nc(b.start + (i - a_len) as usize));
                }
                i += THREADS;
            }
        }
    }
    (a_at, b_at)
}

/// Writes a whole tile to `out`. Each warp's items are neighbours there, and are exchanged in its own part of shared
/// memory.
///
/// # Safety
/// - All threads of the block call this together.
/// - `shared` is valid for a tile, and no thread reads it any more.
/// - `out` is valid for the tile, used by this launch alone, and begins at a multiple of 16 bytes.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
pub unsafe fn store<K: Vectors, const THREADS: u32, const ITEMS: usize>(
    tile: Tile<THREADS, ITEMS>,
    shared: Shared<K>,
    merged: [K; ITEMS],
    out: GlobalMut<K>,
) {
    let of_warp = 32 * ITEMS as u32;
    let (first, lane) = (tile.t / 32 * of_warp, warp::lane_id());
    let own = shared.at(first);
    let vectors = of_warp / K::LANES;
    // SAFETY: each warp has a part of its own, and in it each lane its places; after a warp barrier, each vector
    // belongs to one lane. Parts of warps begin at multiples of 16 bytes.
    unsafe {
        for u in 0..ITEMS {
            own.set(lane * ITEMS as u32 + u as u32, merged[u]);
        }
        warp::sync_warp(warp::FULL_MASK);
        for u in 0..const { (32 * ITEMS as u32 / K::LANES).div_ceil(32) } {
            let v = lane + 32 * u;
            if (u + 1) * 32 <= vectors || v < vectors {
                K::write(out, (first + v * K::LANES) as usize, K::get(own, v * K::LANES));
            }
        }
    }
}

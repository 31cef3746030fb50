//! Kernels around the hashes of all keys: from keys, back to their words, and where each shard's begin.

use warpset_core::fuse::hash::{mix, shard_of, unmix};
use warpset_simt::{Global, GlobalMut, thread};

use crate::batch::keys::KeyKind;
#[cfg(feature = "bodies")]
use crate::batch::keys::word_at;

/// Threads of a block, in all kernels here.
pub const BLOCK: u32 = 256;

/// Returns the place of this thread in a 1-D grid.
#[cfg(feature = "bodies")]
#[inline(always)]
fn own_place() -> usize {
    thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize
}

kernel! {
    /// Hashes keys under a seed.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per key, [`BLOCK`] threads per block.
    /// - `keys`: `n` keys of `kind`, of another class than `Hashes128`, not written while the kernel runs.
    /// - `out`: `n` words, used by this launch alone.
    pub unsafe fn fuse_hash(keys: Global<u64>, kind: KeyKind, n: usize, seed: u64, out: GlobalMut<u64>) {
        let i = own_place();
        if i < n {
            // SAFETY: `i < n`.
            unsafe { out.write(i, mix(word_at(keys, kind.class, i), seed)) };
        }
    }
}

kernel! {
    /// Turns hashes under a seed back to the words of their keys, in place.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per hash, [`BLOCK`] threads per block.
    /// - `hashes`: `n` words, used by this launch alone.
    pub unsafe fn fuse_unhash(hashes: GlobalMut<u64>, n: usize, seed: u64) {
        let i = own_place();
        if i < n {
            // SAFETY: `i < n`, and each `i` belongs to one thread.
            unsafe { hashes.write(i, unmix(hashes.read(i), seed)) };
        }
    }
}

kernel! {
    /// Finds the first hash of each shard: `begins[s]` becomes the number of hashes of shards before `s`.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread for each of `shards + 1` numbers, [`BLOCK`] threads per block.
    /// - `hashes`: `n` words with ascending high halves, not written while the kernel runs.
    /// - `begins`: `shards + 1` words, used by this launch alone.
    pub unsafe fn fuse_shard_begins(hashes: Global<u64>, n: usize, shards: u64, begins: GlobalMut<u64>) {
        let shard = own_place();
        if shard as u64 <= shards {
            let (mut first, mut last) = (0, n);
            while first < last {
                let middle = first + (last - first) / 2;
                // SAFETY: `middle < last <= n`.
                if shard_of(unsafe { hashes.read_nc(middle) }, shards) < shard as u64 {
                    first = middle + 1;
                } else {
                    last = middle;
                }
            }
            // SAFETY: `shard <= shards`.
            unsafe { begins.write(shard, first as u64) };
        }
    }
}

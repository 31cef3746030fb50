//! Lookups in binary fuse filters, one thread per key.

use warpset_core::fuse::Graph;
use warpset_core::fuse::hash::{mix, shard_of, within_shard};
use warpset_simt::{Global, GlobalMut, thread};

use crate::batch::keys::KeyKind;
#[cfg(feature = "bodies")]
use crate::batch::keys::word_at;
use crate::batch::results;
use crate::fuse::slot::Slot;

/// Threads of a block.
pub const BLOCK: u32 = 256;

/// Whether the exclusive or of a key's slots is its fingerprint.
///
/// # Safety
/// `slots` holds the graph's slots from `first` on, which nothing writes while the kernel runs.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn is_at<const ARITY: usize, F: Slot>(slots: Global<F>, first: usize, graph: Graph, hash: u64) -> bool {
    let positions = graph.positions::<ARITY>(hash);
    // SAFETY: positions are below the graph's slots.
    let values = positions.map(|at| unsafe { slots.read_nc(first + at as usize) });
    values.into_iter().fold(F::of_hash(hash), |sum, value| sum ^ value) == F::of(0)
}

kernel! {
    /// Looks each key up in a filter with fingerprints of type `F`.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per key, [`BLOCK`] threads per block.
    /// - `slots`: the slots of `graph`, or for `shards > 0` those of `shards` such graphs, one after the other;
    ///   `shard_seeds`: a byte per shard. Neither is written while the kernel runs. A graph without slots has no keys.
    ///   They are valid for the shards of all keys.
    /// - `arity` is 3 or 4.
    /// - `keys`: `n` keys of `kind`, of another class than `Hashes128`, not written while the kernel runs.
    /// - `out`: as for [`results::put`].
    #[launch_bounds(256)]
    pub unsafe fn fuse_contains<F>(
        slots: Global<F>, shard_seeds: Global<u8>, graph: Graph, arity: u32, shards: u64, seed: u64,
        keys: Global<u64>, kind: KeyKind, n: usize, form: u32, out: GlobalMut<u64>,
    ) for [u8 => fuse_contains_u8, u16 => fuse_contains_u16, u32 => fuse_contains_u32] {
        let i = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
        let mut yes = false;
        // SAFETY: `i < n` where it is read; a shard's number is below `shards`; all threads arrive at `put`.
        unsafe {
            if i < n && graph.starts > 0 {
                let mut hash = mix(word_at(keys, kind.class, i), seed);
                let mut first = 0;
                if shards > 0 {
                    let shard = shard_of(hash, shards) as usize;
                    hash = within_shard(hash, shard_seeds.read_nc(shard));
                    first = shard * graph.slots(arity) as usize;
                }
                yes = if arity == 3 {
                    is_at::<3, F>(slots, first, graph, hash)
                } else {
                    is_at::<4, F>(slots, first, graph, hash)
                };
            }
            results::put(form, out, i, n, yes);
        }
    }
}

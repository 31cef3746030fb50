//! Kernels of static functions: contents of keys, packed slots, lookups of values.

use warpset_core::bits::lowest;
use warpset_core::fuse::Graph;
use warpset_core::fuse::value::content;
use warpset_simt::{Global, GlobalMut, atomic, thread};

use crate::batch::keys::KeyKind;
#[cfg(feature = "bodies")]
use crate::batch::keys::word_at;
use crate::batch::results;
#[cfg(feature = "bodies")]
use crate::fuse::device_query::FunctionQuery;

/// Threads of a block, in all kernels here.
pub const BLOCK: u32 = 256;

/// Returns the place of this thread in a 1-D grid.
#[cfg(feature = "bodies")]
#[inline(always)]
fn own_place() -> usize {
    thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize
}

kernel! {
    /// Computes the contents of keys from their hashes and values. With `wide` all bits of each, otherwise 32 bits from
    /// bit `shift` on.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per key, [`BLOCK`] threads per block.
    /// - `hashes`: `n` words; `values`: `n` values of `width` bytes, 1, 2, 4 or 8. Neither is written while the kernel
    ///   runs.
    /// - `most`: accessed by atomics alone; becomes the greatest value with more than `value_bits` bits, if any.
    /// - `out`: `n` words, or `n` half words, used by this launch alone.
    pub unsafe fn fuse_contents(
        hashes: Global<u64>, values: Global<u64>, width: u32, n: usize, value_bits: u32, shift: u32, wide: u32,
        most: GlobalMut<u64>, out: GlobalMut<u32>,
    ) {
        let i = own_place();
        if i < n {
            // SAFETY: `i < n`.
            unsafe {
                let value = match width {
                    1 => values.cast::<u8>().read_nc(i) as u64,
                    2 => values.cast::<u16>().read_nc(i) as u64,
                    4 => values.cast::<u32>().read_nc(i) as u64,
                    _ => values.read_nc(i),
                };
                if value.unbounded_shr(value_bits) != 0 {
                    atomic::fetch_max(most, value);
                }
                let content = content(hashes.read_nc(i), value, value_bits);
                if wide != 0 {
                    out.cast::<u64>().write(i, content);
                } else {
                    out.write(i, (content >> shift) as u32);
                }
            }
        }
    }
}

kernel! {
    /// Finds a key with several values: `found` becomes the greatest `i` for which hash `i` is that of `i - 1` and its
    /// value is another; unchanged if there is none.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per hash, [`BLOCK`] threads per block.
    /// - `hashes`: `n` ascending words; `values`: `n` words; neither is written while the kernel runs.
    /// - `found`: accessed by atomics alone.
    pub unsafe fn fuse_conflicts(hashes: Global<u64>, values: Global<u64>, n: usize, found: GlobalMut<u64>) {
        let i = own_place();
        // SAFETY: `0 < i < n` where `i` and `i - 1` are read.
        unsafe {
            if i > 0 && i < n && hashes.read_nc(i) == hashes.read_nc(i - 1) && values.read_nc(i) != values.read_nc(i - 1)
            {
                atomic::fetch_max(found, i as u64);
            }
        }
    }
}

kernel! {
    /// Packs slots of 32 bits, or of 64 in two arrays of halves, into fields of `bits` bits.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per word, [`BLOCK`] threads per block.
    /// - `low`: `slots` half words; `high`: as many if `bits > 32`. Neither is written while the kernel runs.
    /// - `out`: words for the fields, used by this launch alone.
    pub unsafe fn fuse_pack(low: Global<u32>, high: Global<u32>, slots: u64, bits: u32, out: GlobalMut<u64>) {
        let (first, end) = (64 * own_place() as u64, slots * bits as u64);
        if first < end {
            let (mut slot, mut word) = (first / bits as u64, 0);
            while slot < slots && slot * (bits as u64) < first + 64 {
                // SAFETY: `slot < slots`; fields begin before `end`, so the word is one of theirs.
                let mut content = unsafe { low.read_nc(slot as usize) } as u64;
                if bits > 32 {
                    // SAFETY: as above.
                    content |= (unsafe { high.read_nc(slot as usize) } as u64) << 32;
                }
                content &= lowest(bits);
                let at = slot * bits as u64;
                word |= if at < first { content >> (first - at) } else { content << (at - first) };
                slot += 1;
            }
            // SAFETY: as above.
            unsafe { out.write((first / 64) as usize, word) };
        }
    }
}

kernel! {
    /// Looks up the value of each key, of `width` bytes; zero for keys without one.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per key, [`BLOCK`] threads per block.
    /// - `words`: the slots of `graph`, of `bits` bits, or for `shards > 0` those of `shards` such graphs in sequence;
    ///   `shard_seeds`: a byte per shard. Neither is written while the kernel runs. A graph without slots has no
    ///   keys. `value_bits` are at most `bits`, and at least `bits - 32`. Slots and seeds are valid for the
    ///   shards of all keys.
    /// - `arity` is 3 or 4.
    /// - `keys`: `n` keys of `kind`, of another class than `Hashes128`, not written while the kernel runs.
    /// - `found`: as for [`results::put`]; `out`: `n` values of `width` bytes, 1, 2, 4 or 8, used by this launch alone.
    #[launch_bounds(256)]
    pub unsafe fn fuse_values(
        words: Global<u64>, shard_seeds: Global<u8>, graph: Graph, arity: u32, shards: u64, seed: u64, bits: u32,
        value_bits: u32, keys: Global<u64>, kind: KeyKind, n: usize, form: u32, found: GlobalMut<u64>, width: u32,
        out: GlobalMut<u64>,
    ) {
        let i = own_place();
        let mut value = None;
        // SAFETY: `i < n` where it is read; the contract of this kernel; all threads arrive at `put`.
        unsafe {
            if i < n {
                let query = FunctionQuery { shards, seed, shard_seeds: 0, graph, arity, bits, value_bits };
                value = query.get_with(words, shard_seeds, word_at(keys, kind.class, i));
            }
            results::put(form, found, i, n, value.is_some());
            if i < n {
                let value = value.unwrap_or(0);
                match width {
                    1 => out.cast::<u8>().write(i, value as u8),
                    2 => out.cast::<u16>().write(i, value as u16),
                    4 => out.cast::<u32>().write(i, value as u32),
                    _ => out.write(i, value),
                }
            }
        }
    }
}

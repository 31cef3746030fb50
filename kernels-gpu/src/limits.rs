//! Measurements of the device's limits: streams, random sectors, random atomics, integer arithmetic, trial hashes of
//! RecSplit.
//!
//! Benchmarks run these beside the structures and state a structure's rate as a fraction of the limit that binds it.

use warpset_core::bloom::reduce64;
use warpset_core::hash::finalise;
use warpset_core::recsplit::{Remix, hash};
use warpset_simt::{Global, GlobalMut, atomic, multiply_high, thread};

/// Threads of a block, in every kernel of this module.
pub const BLOCK: u32 = 256;

/// Permutes cheaply: good enough to make addresses random, and far from being the bottleneck.
#[cfg(feature = "bodies")]
#[inline(always)]
fn scramble(mut x: u64) -> u64 {
    x = x.wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^= x >> 32;
    x = x.wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ (x >> 32)
}

/// Combines by exclusive or the `16 * QUADS` bytes of record `i`.
///
/// # Safety
/// The record is in `memory`, which is 16-byte aligned and not written while the kernel runs.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn read_record<const QUADS: usize>(memory: Global<u32>, i: u64) -> u32 {
    let mut sum = 0;
    for q in 0..QUADS {
        // SAFETY: inside the record.
        let v = unsafe { memory.read4_nc((i as usize * QUADS + q) * 4) };
        sum ^= v[0] ^ v[1] ^ v[2] ^ v[3];
    }
    sum
}

kernel! {
    /// Writes `n` distinct keys: [`finalise`](warpset_core::hash::finalise) of the numbers from `first` on.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size.
    /// - `keys`: valid for `n` writes, used by this launch alone.
    pub unsafe fn limits_generate_keys(keys: GlobalMut<u64>, n: usize, first: u64) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n` belongs to this thread.
            unsafe { keys.write(i, finalise(first.wrapping_add(i as u64))) };
        }
    }

    /// Copies `n` records of 16 bytes.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size.
    /// - Both are valid for `4 * n` words, 16-byte aligned, and do not overlap; nothing else accesses `to`.
    pub unsafe fn limits_copy(from: Global<u32>, to: GlobalMut<u32>, n: usize) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n` belongs to this thread.
            unsafe { to.write4(i * 4, from.read4_nc(i * 4)) };
        }
    }

    /// Does the work of any lookup in 32-byte blocks: reads `n` keys of 8 bytes and a random sector per key, and writes
    /// one byte per key.
    ///
    /// # Safety
    /// - Launch: 1-D, `n.div_ceil(BLOCK)` blocks of [`BLOCK`] threads.
    /// - `memory`: valid for `records > 0` records of 32 bytes, aligned, `keys` for `n`; neither is written meanwhile.
    /// - `out`: valid for `n` bytes, used by this launch alone.
    #[launch_bounds(256, 8)]
    pub unsafe fn limits_lookup_32(
        memory: Global<u32>, records: u64, keys: Global<u64>, n: usize, out: GlobalMut<u8>,
    ) {
        let i = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
        if i < n {
            // SAFETY: `i < n`; `reduce64` stays below `records`.
            unsafe {
                let key = keys.read_nc(i);
                let sum = read_record::<2>(memory, reduce64(scramble(key), records));
                out.write(i, (sum == key as u32) as u8);
            }
        }
    }

    /// Performs `n` atomic ORs of one bit in random 32-bit words, results unused.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size.
    /// - `memory`: valid for `words > 0` words, only accessed atomically meanwhile.
    #[launch_bounds(256, 8)]
    pub unsafe fn limits_atomic_or_32(memory: GlobalMut<u32>, words: u64, n: usize, seed: u64) {
        for i in thread::grid_stride(n) {
            let random = scramble(i as u64 ^ seed);
            // SAFETY: `reduce64` stays below `words`.
            unsafe { atomic::reduce_or(memory.at(reduce64(random, words) as usize), 1 << (random & 31)) };
        }
    }

    /// Performs `rounds` times 8 multiply-adds and 8 exclusive-or-shifts of 32 bits per thread, in eight independent
    /// chains.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size; `sink`: one word, used by this launch alone.
    #[launch_bounds(256, 8)]
    pub unsafe fn limits_integer(rounds: u32, seed: u32, sink: GlobalMut<u32>) {
        let mut chains = [0u32; 8];
        for (c, chain) in chains.iter_mut().enumerate() {
            *chain = thread::index_1d() ^ seed.wrapping_add(c as u32);
        }
        let mut round = 0;
        while round < rounds {
            for c in 0..8 {
                chains[c] = chains[c].wrapping_mul(0x9e37_79b1).wrapping_add(seed);
                chains[c] ^= chains[c] >> 15;
            }
            round += 1;
        }
        let mut sum = 0;
        for c in 0..8 {
            sum ^= chains[c];
        }
        if sum == 0x1234_5678 {
            // SAFETY: `sink` is one word, only accessed atomically.
            unsafe { atomic::store_relaxed(sink, sum) };
        }
    }

    /// Computes `rounds` trial hashes of 16 keys per thread, each turned into a position, like a brute-force search;
    /// the keys stay in registers.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size; `positions` is at most 32; `sink`: one word, used by this launch alone.
    #[launch_bounds(256, 4)]
    pub unsafe fn limits_trial_hashes(rounds: u32, positions: u32, start: u32, sink: GlobalMut<u32>) {
        let mut keys = [0u64; 16];
        warpset_simt::unroll!(16, i, {
            keys[i] = scramble((thread::block_idx_x() as u64) << 8 | (start as u64).wrapping_add(i as u64));
        });
        let mut found = 0u32;
        let mut round = 0;
        while round < rounds {
            let trial = (round * BLOCK + thread::thread_idx_x()) as u64;
            let mut taken = 0u32;
            warpset_simt::unroll!(16, i, {
                let hash = hash::trial_hash(Remix::Bits32, keys[i], start, trial);
                let position = multiply_high(hash & 0xffff_0000, positions);
                // SAFETY: positions are below their number. So the amount of the shift is not masked.
                unsafe { core::hint::assert_unchecked(position < 32) };
                taken |= 1 << position;
            });
            found += (taken.count_ones() == 16) as u32;
            round += 1;
        }
        if found == u32::MAX {
            // SAFETY: `sink` is one word, only accessed atomically.
            unsafe { atomic::store_relaxed(sink, found) };
        }
    }
}

//! Kernels on the words of any Bloom filter: union, intersection, fill, rate of false positives, folding.

use warpset_core::bloom::blocked::BlockShape;
use warpset_core::hash::mix_spread;
use warpset_simt::{Global, GlobalMut, atomic, thread, warp};

/// Threads of a block, in every kernel of this module.
pub const BLOCK: u32 = 256;

kernel! {
    /// Sets `words |= other`.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size, no shared memory.
    /// - Both are valid for `n` words and do not overlap; nothing else accesses `words`, nothing writes `other`.
    pub unsafe fn words_or(words: GlobalMut<u32>, other: Global<u32>, n: usize) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n` belongs to this thread.
            unsafe { words.write(i, words.read(i) | other.read_nc(i)) };
        }
    }

    /// Sets `words &= other`.
    ///
    /// # Safety
    /// The contract of [`words_or`].
    pub unsafe fn words_and(words: GlobalMut<u32>, other: Global<u32>, n: usize) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n` belongs to this thread.
            unsafe { words.write(i, words.read(i) & other.read_nc(i)) };
        }
    }

    /// Adds the number of set bits to `total`.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid, blocks of whole warps, no shared memory.
    /// - `words`: valid for `n` words, not written while the kernel runs; `total`: one word, only accessed atomically.
    pub unsafe fn words_count_ones(words: Global<u32>, n: usize, total: GlobalMut<u64>) {
        let mut sum = 0u64;
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`.
            sum += unsafe { words.read_nc(i) }.count_ones() as u64;
        }
        let mut distance = 16;
        while distance > 0 {
            // SAFETY: the loop above has ended for all lanes, and none has left.
            sum += unsafe { warp::shuffle_xor(warp::FULL_MASK, sum, distance) };
            distance /= 2;
        }
        if warp::lane_id() == 0 && sum != 0 {
            // SAFETY: `total` is one word, only accessed atomically.
            unsafe { atomic::reduce_add(total, sum) };
        }
    }

    /// Combines parts of `words` by OR: part `part` of unit `u` of `folded` is unit `u * unit_step + part * part_step`
    /// of `words`.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size, no shared memory; `unit > 0`.
    /// - `folded`: valid for `n` words, `n` a multiple of `unit`, used by this launch alone; `words`: for all parts of
    ///   all units, not written while the kernel runs; they do not overlap.
    pub unsafe fn words_fold(
        words: Global<u32>, unit: u32, unit_step: u64, part_step: u64, parts: u64, folded: GlobalMut<u32>, n: usize,
    ) {
        for i in thread::grid_stride(n) {
            let (u, w) = ((i / unit as usize) as u64, i % unit as usize);
            let mut bits = 0;
            for part in 0..parts {
                let from = (u * unit_step + part * part_step) as usize;
                // SAFETY: `u < n / unit` and `part < parts`.
                bits |= unsafe { words.read_nc(from * unit as usize + w) };
            }
            // SAFETY: `i < n` belongs to this thread.
            unsafe { folded.write(i, bits) };
        }
    }

    /// Counts the set bits of each unit, one warp a unit.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid, blocks of whole warps, no shared memory.
    /// - `words`: valid for `unit * units` words, not written while the kernel runs; `ones`: for `units`, used by this
    ///   launch alone.
    pub unsafe fn words_unit_ones(words: Global<u32>, unit: u32, ones: GlobalMut<u32>, units: usize) {
        let lane = warp::lane_id();
        let warps = thread::grid_dim_x() as usize * (thread::block_dim_x() / 32) as usize;
        let mut u = thread::block_idx_x() as usize * (thread::block_dim_x() / 32) as usize + warp::warp_id() as usize;
        while u < units {
            let mut sum = 0;
            let mut w = lane;
            while w < unit {
                // SAFETY: `u < units` and `w < unit`.
                sum += unsafe { words.read_nc(u * unit as usize + w as usize) }.count_ones();
                w += 32;
            }
            // SAFETY: `u` is the same for the whole warp; `ones[u]` belongs to it.
            unsafe {
                sum = warp::reduce_add(warp::FULL_MASK, sum);
                if lane == 0 {
                    ones.write(u, sum);
                }
            }
            u += warps;
        }
    }

    /// Sums, for each part of `part` blocks, the probability over its blocks that a random key has all its bits there:
    /// the product over sectors of `(ones / bits) ^ bits of a key`, in a fixed order, so that every run gives one
    /// number.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid, blocks of whole warps, no shared memory; `part > 0`.
    /// - `words`: valid for `blocks` blocks of `shape`, not written while the kernel runs.
    /// - `sums`: valid for `blocks.div_ceil(part)` words, used by this launch alone.
    pub unsafe fn words_block_rates(words: Global<u32>, shape: BlockShape, blocks: usize, part: usize, sums: GlobalMut<f64>) {
        let lane = warp::lane_id() as usize;
        let warps = thread::grid_dim_x() as usize * (thread::block_dim_x() / 32) as usize;
        let mut p = thread::block_idx_x() as usize * (thread::block_dim_x() / 32) as usize + warp::warp_id() as usize;
        let in_block = (shape.block_bits() / 32) as usize;
        let in_sector = (shape.sector_bits() / 32) as usize;
        let scale = 1.0 / shape.sector_bits() as f64;
        while p * part < blocks {
            let end = blocks.min((p + 1) * part);
            let mut sum = 0.0;
            let mut block = p * part + lane;
            while block < end {
                let mut rate = 1.0;
                for sector in 0..shape.sectors() {
                    let mut ones = 0;
                    for w in 0..in_sector {
                        // SAFETY: `block < blocks`, and the sectors of a block are its words.
                        let word = unsafe { words.read_nc(block * in_block + sector as usize * in_sector + w) };
                        ones += word.count_ones();
                    }
                    let fill = ones as f64 * scale;
                    for _ in 0..shape.hashes_in_sector(sector) {
                        rate *= fill;
                    }
                }
                sum += rate;
                block += 32;
            }
            let mut distance = 16;
            while distance > 0 {
                // SAFETY: `p` is the same for the whole warp, so all lanes are here.
                unsafe {
                    warp::sync_warp(warp::FULL_MASK);
                    sum += warp::shuffle_xor(warp::FULL_MASK, sum, distance);
                }
                distance /= 2;
            }
            if lane == 0 {
                // SAFETY: `sums[p]` belongs to this warp.
                unsafe { sums.write(p, sum) };
            }
            p += warps;
        }
    }

    /// Writes `n` sampled hashes: those of the numbers from `first` on.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size, no shared memory.
    /// - `hashes`: valid for `n` writes, used by this launch alone.
    pub unsafe fn words_sample_hashes(hashes: GlobalMut<u64>, n: usize, first: u64, spread: u64) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n` belongs to this thread.
            unsafe { hashes.write(i, mix_spread(first + i as u64, spread)) };
        }
    }
}

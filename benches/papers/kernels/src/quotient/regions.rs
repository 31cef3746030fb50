//! Insertion by regions (algorithm 9 of Geil, Farach-Colton, Owens, "Quotient Filters: Approximate Membership Queries
//! on the GPU", IPDPS 2018, section V-B). Ascending fingerprints are in queues, one per block. A region is some blocks,
//! and one thread works off its queues, one fingerprint per iteration. The thread halts where an insertion would reach
//! into another region. Every 16 iterations regions grow by a block.
//!
//! Removal follows the proposal at the end of section V-C.
//!
//! Departures: the 16 iterations between which regions stay the same are one launch, because regions do not meet. A
//! queue ends where the next fingerprint has another block, and its next place is not counted in a second array.

use warpset_core::bits::{ByHalves, ReadWords, WriteWords};
use warpset_core::quotient::rank_select::{Blocks, Changed};
use warpset_simt::{Global, GlobalMut, thread};

#[cfg(any(feature = "emulator", target_arch = "nvptx64"))]
use warpset_kernels::quotient::memory::put_counts;
use warpset_kernels::quotient::memory::{Fingerprint, Parameters};

/// Threads of a block, in all kernels here.
pub const BLOCK: u32 = 128;
/// Iterations between which regions grow.
pub const ITERATIONS: u32 = 16;
/// Mark of an empty queue.
pub const EMPTY: u32 = !0;

/// Words of blocks that belong to one thread.
struct Exclusive(GlobalMut<u64>);

impl ReadWords for Exclusive {
    #[inline(always)]
    fn word(&self, index: u64) -> u64 {
        // SAFETY: walks stay within the blocks of the thread's region; every kernel here requires a sound filter that
        // nothing else accesses.
        unsafe { self.0.read(index as usize) }
    }
}

impl WriteWords for Exclusive {
    #[inline(always)]
    fn replace(&mut self, index: u64, mask: u64, bits: u64) {
        let word = self.word(index) & !mask | bits;
        // SAFETY: as above.
        unsafe { self.0.write(index as usize, word) }
    }
}

/// Finds the queues of [`quotient_rank_select_queues`].
///
/// # Safety
/// The contract of [`quotient_rank_select_queues`].
#[inline(always)]
unsafe fn queues<F: Fingerprint>(fingerprints: Global<F>, n: usize, parameters: Parameters, queues: GlobalMut<u32>) {
    let i = thread::index_1d();
    let split = parameters.split();
    if (i as usize) < n {
        // SAFETY: `i < n`; a block's word is written by the thread of the first fingerprint in it.
        unsafe {
            let block = |i: u32| split.quotient(fingerprints.read_nc(i as usize).bits()) / 64;
            if i == 0 || block(i) != block(i - 1) {
                queues.write(block(i) as usize, i);
            }
        }
    }
}

/// Processes the queues of a region.
///
/// # Safety
/// The contract of [`quotient_rank_select_insert_regions`].
#[cfg(any(feature = "emulator", target_arch = "nvptx64"))]
#[inline(always)]
unsafe fn work_off<F: Fingerprint, const REMOVES: bool>(
    fingerprints: Global<F>,
    n: usize,
    words: GlobalMut<u64>,
    blocks: u64,
    parameters: Parameters,
    size: u64,
    queues: GlobalMut<u32>,
    changed: GlobalMut<u64>,
) {
    let split = parameters.split();
    let mut block = thread::index_1d() as u64 * size;
    let to = Ord::min(block + size, blocks);
    let is_last = to == blocks;
    // The last slot of a region can be filled, that of the filter cannot.
    let end = to * 64 - is_last as u64;
    let mut region = Blocks::with_fields(Exclusive(words), to, split.remainder_bits, 0).within(0, end);
    let (mut done, mut failed, mut more) = (0u64, 0u64, 0u64);
    let mut iteration = 0;
    // SAFETY: blocks are below `to`, and the region's queues and words are this thread's; fingerprints are below `n`.
    unsafe {
        while iteration < ITERATIONS {
            let mut next = EMPTY;
            while block < to {
                next = queues.read(block as usize);
                if next != EMPTY {
                    break;
                }
                block += 1;
            }
            if next == EMPTY {
                break;
            }
            let fingerprint = fingerprints.read_nc(next as usize).bits();
            let (quotient, remainder) = (split.quotient(fingerprint), split.remainder(fingerprint));
            let outcome = if REMOVES {
                region.remove(quotient, remainder, ByHalves)
            } else {
                region.insert(quotient, remainder, parameters.keeps_duplicates(), ByHalves)
            };
            match outcome {
                Changed::Done => done += 1,
                Changed::Unchanged => {}
                Changed::Outside if is_last => failed += 1,
                // The thread halts until regions are larger.
                Changed::Outside => break,
            }
            next += 1;
            let goes_on =
                (next as usize) < n && split.quotient(fingerprints.read_nc(next as usize).bits()) / 64 == block;
            queues.write(block as usize, if goes_on { next } else { EMPTY });
            iteration += 1;
        }
        while block < to && more == 0 {
            more = (queues.read(block as usize) != EMPTY) as u64;
            block += 1;
        }
        put_counts(changed, [done, failed, more]);
    }
}

kernel! {
    /// Finds the first fingerprint of each block that has one (`FINDBLOCKSTARTINDICES`).
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per fingerprint, [`BLOCK`] threads per block; `n` below 2^32 - 1.
    /// - `fingerprints`: `n`, ascending, with these [`Parameters`], not written while the kernel runs.
    /// - `queues`: one word per block of slots, used by this launch alone; [`EMPTY`] at the start.
    pub unsafe fn quotient_rank_select_queues<F>(
        fingerprints: Global<F>, n: usize, parameters: u32, queues: GlobalMut<u32>,
    ) for [u32 => quotient_rank_select_queues_u32, u64 => quotient_rank_select_queues_u64] {
        // SAFETY: the caller keeps this kernel's contract.
        unsafe { self::queues(fingerprints, n, Parameters(parameters), queues) }
    }
}

kernel! {
    /// Runs sixteen iterations of insertions into regions of `size` blocks (`INSERTINTOREGIONS`).
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per region, [`BLOCK`] threads per block.
    /// - `fingerprints`: `n`, ascending, not written while the kernel runs.
    /// - `words`: a sound filter of `blocks` blocks with these [`Parameters`], used by this launch alone.
    /// - `size`: above zero.
    /// - `queues`: per block of slots, the place of its next fingerprint or [`EMPTY`]; used by this launch alone.
    /// - `changed`: three words. The numbers of fingerprints stored, of fingerprints without a slot, and of regions
    ///   with more work are added to them.
    #[launch_bounds(128, 4)]
    pub unsafe fn quotient_rank_select_insert_regions<F>(
        fingerprints: Global<F>, n: usize, words: GlobalMut<u64>, blocks: u64, parameters: u32, size: u64,
        queues: GlobalMut<u32>, changed: GlobalMut<u64>,
    ) for [u32 => quotient_rank_select_insert_regions_u32, u64 => quotient_rank_select_insert_regions_u64] {
        // SAFETY: the caller keeps this kernel's contract.
        unsafe { work_off::<_, false>(fingerprints, n, words, blocks, Parameters(parameters), size, queues, changed) }
    }
}

kernel! {
    /// Removes fingerprints of the batch from one parity of regions.
    ///
    /// # Safety
    /// The contract of [`quotient_rank_select_insert_regions`].
    #[launch_bounds(128, 4)]
    pub unsafe fn quotient_rank_select_remove_regions<F>(
        fingerprints: Global<F>, n: usize, words: GlobalMut<u64>, blocks: u64, parameters: u32, size: u64,
        queues: GlobalMut<u32>, changed: GlobalMut<u64>,
    ) for [u32 => quotient_rank_select_remove_regions_u32, u64 => quotient_rank_select_remove_regions_u64] {
        // SAFETY: the caller keeps this kernel's contract.
        unsafe { work_off::<_, true>(fingerprints, n, words, blocks, Parameters(parameters), size, queues, changed) }
    }
}

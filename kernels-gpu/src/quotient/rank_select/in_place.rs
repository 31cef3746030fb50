//! Insertion into rank-and-select quotient filters and removal from them in place, for an ascending batch.
//!
//! Every fingerprint walks to the start of its supercluster, or of its cluster for a removal
//! ([`quotient_rank_select_begins`]). Fingerprints with the same start are neighbours in the batch and make a group,
//! which one thread works off. The thread reads no bit of slots or quotients before that start, and no offset that
//! depends on them, so changes by others there do not matter. It writes none from the start of the next group on. So a
//! group may fill the empty slots up to there, not only the one that ends its supercluster. Fingerprints that would go
//! further wait for the next round.
//!
//! Departure from section V-B of Geil, Farach-Colton, Owens, IPDPS 2018, which parallelises over blocks: there are many
//! more superclusters than blocks, and they need no queues. `benches/papers` has the paper's regions.

use warpset_core::bits::ByHalves;
use warpset_core::quotient::rank_select::{Blocks, Changed};
use warpset_simt::{Global, GlobalMut, atomic, thread};

use crate::quotient::memory::{Fingerprint, Parameters, ReadOnly};
#[cfg(feature = "bodies")]
use crate::quotient::memory::{Owned, put_counts};

/// Threads of a block, in all kernels here.
pub const BLOCK: u32 = 128;
/// Most fingerprints of a group that one round inserts: one thread would work off a long one alone.
const AT_ONCE: usize = 64;

/// Finds the starts of [`quotient_rank_select_begins`].
///
/// # Safety
/// The contract of [`quotient_rank_select_begins`].
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn begins<F: Fingerprint>(
    fingerprints: Global<F>,
    n: usize,
    words: Global<u64>,
    blocks: u64,
    parameters: Parameters,
    removes: bool,
    begins: GlobalMut<u64>,
) {
    let i = thread::index_1d() as usize;
    if i < n {
        let split = parameters.split();
        let blocks = Blocks::with_fields(ReadOnly(words), blocks, split.remainder_bits, 0);
        // SAFETY: `i < n`.
        unsafe {
            let quotient = split.quotient(fingerprints.read_nc(i).bits());
            let begin = if removes { blocks.cluster_start(quotient) } else { blocks.supercluster_start(quotient) };
            begins.write(i, begin);
        }
    }
}

/// Inserts the groups of [`quotient_rank_select_insert_groups`].
///
/// # Safety
/// The contract of [`quotient_rank_select_insert_groups`].
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn insert_groups<F: Fingerprint>(
    fingerprints: Global<F>,
    n: usize,
    words: GlobalMut<u64>,
    blocks: u64,
    parameters: Parameters,
    begins: Global<u64>,
    left: GlobalMut<u64>,
    changed: GlobalMut<u64>,
) {
    let first = thread::index_1d() as usize;
    let split = parameters.split();
    let (mut done, mut over, mut failed) = (0u64, 0u64, 0u64);
    // SAFETY: fingerprints from `first` on are below `n` where they are read; groups have no written bit in common.
    unsafe {
        if first < n {
            let begin = begins.read_nc(first);
            if first == 0 || begins.read_nc(first - 1) != begin {
                let mut end = first + 1;
                while end < n && begins.read_nc(end) == begin {
                    end += 1;
                }
                let all = blocks * 64 - 1;
                let limit = if end < n { begins.read_nc(end) } else { all };
                let mut blocks =
                    Blocks::with_fields(Owned(words), blocks, split.remainder_bits, 0).within(begin, limit);
                for i in first..end {
                    let fingerprint = fingerprints.read_nc(i).bits();
                    let (quotient, remainder) = (split.quotient(fingerprint), split.remainder(fingerprint));
                    let outcome = if i - first < AT_ONCE {
                        blocks.insert(quotient, remainder, parameters.keeps_duplicates(), ByHalves)
                    } else {
                        Changed::Outside
                    };
                    match outcome {
                        Changed::Done => done += 1,
                        Changed::Unchanged => {}
                        Changed::Outside if limit == all && i - first < AT_ONCE => failed += 1,
                        Changed::Outside => {
                            over += 1;
                            atomic::reduce_or(left.at(i / 64), 1 << (i % 64));
                        }
                    }
                }
            }
        }
        put_counts(changed, [done, failed, over]);
    }
}

/// Removes the groups of [`quotient_rank_select_remove_groups`].
///
/// # Safety
/// The contract of [`quotient_rank_select_remove_groups`].
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn remove_groups<F: Fingerprint>(
    fingerprints: Global<F>,
    n: usize,
    words: GlobalMut<u64>,
    blocks: u64,
    parameters: Parameters,
    begins: Global<u64>,
    changed: GlobalMut<u64>,
) {
    let first = thread::index_1d() as usize;
    let split = parameters.split();
    let mut done = 0u64;
    // SAFETY: as for insertions.
    unsafe {
        if first < n {
            let begin = begins.read_nc(first);
            if first == 0 || begins.read_nc(first - 1) != begin {
                let limit = blocks * 64 - 1;
                let mut blocks =
                    Blocks::with_fields(Owned(words), blocks, split.remainder_bits, 0).within(begin, limit);
                let mut i = first;
                loop {
                    let fingerprint = fingerprints.read_nc(i).bits();
                    let (quotient, remainder) = (split.quotient(fingerprint), split.remainder(fingerprint));
                    if blocks.remove(quotient, remainder, ByHalves) == Changed::Done {
                        done += 1;
                    }
                    i += 1;
                    if i >= n || begins.read_nc(i) != begin {
                        break;
                    }
                }
            }
        }
        put_counts(changed, [done, 0, 0]);
    }
}

kernel! {
    /// Finds the start of the supercluster of each of `n` `F` fingerprints; for a removal, of its cluster.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per fingerprint, [`BLOCK`] threads per block; `n` below 2^32.
    /// - `fingerprints`: `n`, with these [`Parameters`], not written while the kernel runs.
    /// - `words`: a sound filter of `blocks` blocks, not written while the kernel runs.
    /// - `out`: `n` words, used by this launch alone.
    pub unsafe fn quotient_rank_select_begins<F>(
        fingerprints: Global<F>, n: usize, words: Global<u64>, blocks: u64, parameters: u32, removes: u32,
        out: GlobalMut<u64>,
    ) for [u32 => quotient_rank_select_begins_u32, u64 => quotient_rank_select_begins_u64] {
        // SAFETY: the caller keeps this kernel's contract.
        unsafe { begins(fingerprints, n, words, blocks, Parameters(parameters), removes != 0, out) }
    }
}

kernel! {
    /// Inserts the ascending `F` fingerprints, one thread per group.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per fingerprint, [`BLOCK`] threads per block; `n` below 2^32.
    /// - `fingerprints`: `n`, ascending, not written while the kernel runs; `begins`: theirs in this filter.
    /// - `words`: a sound filter of `blocks` blocks with these [`Parameters`], used by this launch alone.
    /// - `left`: one bit per fingerprint in 64-bit words, zero at the start; set if it waits for the next round. Used
    ///   by this launch alone.
    /// - `changed`: three words. The numbers of fingerprints that were stored, that found no slot, and that wait are
    ///   added to them.
    #[launch_bounds(128, 5)]
    pub unsafe fn quotient_rank_select_insert_groups<F>(
        fingerprints: Global<F>, n: usize, words: GlobalMut<u64>, blocks: u64, parameters: u32, begins: Global<u64>,
        left: GlobalMut<u64>, changed: GlobalMut<u64>,
    ) for [u32 => quotient_rank_select_insert_groups_u32, u64 => quotient_rank_select_insert_groups_u64] {
        // SAFETY: the caller keeps this kernel's contract.
        unsafe { insert_groups(fingerprints, n, words, blocks, Parameters(parameters), begins, left, changed) }
    }
}

kernel! {
    /// Removes the ascending `F` fingerprints, one thread per group.
    ///
    /// # Safety
    /// The contract of [`quotient_rank_select_insert_groups`], without `left`; `begins` are those of clusters.
    #[launch_bounds(128, 5)]
    pub unsafe fn quotient_rank_select_remove_groups<F>(
        fingerprints: Global<F>, n: usize, words: GlobalMut<u64>, blocks: u64, parameters: u32, begins: Global<u64>,
        changed: GlobalMut<u64>,
    ) for [u32 => quotient_rank_select_remove_groups_u32, u64 => quotient_rank_select_remove_groups_u64] {
        // SAFETY: the caller keeps this kernel's contract.
        unsafe { remove_groups(fingerprints, n, words, blocks, Parameters(parameters), begins, changed) }
    }
}

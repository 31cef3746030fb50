//! Insertion and removal in place for an ascending batch, without a pass over the filter.
//!
//! Every fingerprint walks to the start of its supercluster ([`quotient_update_regions`]). Those of one supercluster
//! are neighbours in the batch, so the first of them owns it without bidding. A removal leaves a supercluster (which
//! for removals is a cluster) where it is, so one thread works off all fingerprints in it. An insertion fills the empty
//! slot at its end, and the others wait for the next round.
//!
//! Departure from algorithms 3 and 7, which flag all slots and label all superclusters every round: here the cost of a
//! round grows with the batch.

use warpset_core::quotient::slots::{ByteSlots, Container, PackedSlots, Slots};
use warpset_simt::{Global, GlobalMut, atomic, thread};

use crate::quotient::memory::{Fingerprint, Parameters, ReadOnly};
#[cfg(feature = "bodies")]
use crate::quotient::standard::change::{change, put_changed, put_left};

/// Returns the first slot of the supercluster of a quotient; for removals, the quotient's slot itself if it is empty.
#[cfg(feature = "bodies")]
#[inline(always)]
fn region<S: Slots>(slots: &S, quotient: u64, removes: bool) -> u64 {
    if removes { slots.cluster_start(quotient) } else { slots.supercluster_start(quotient) }
}

/// Finds the superclusters of [`quotient_update_regions`].
///
/// # Safety
/// The contract of [`quotient_update_regions`].
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn regions<F: Fingerprint>(
    fingerprints: Global<F>,
    n: usize,
    words: Global<u64>,
    slots: u64,
    parameters: Parameters,
    removes: bool,
    regions: GlobalMut<u64>,
) {
    let i = thread::index_1d() as usize;
    let split = parameters.split();
    let words = ReadOnly(words);
    if i < n {
        // SAFETY: `i < n`.
        unsafe {
            let quotient = split.quotient(fingerprints.read_nc(i).bits());
            let first = match parameters.container() {
                Container::Bytes => region(&ByteSlots::new(words, slots, split.remainder_bits), quotient, removes),
                Container::Packed => region(&PackedSlots::new(words, slots, split.remainder_bits), quotient, removes),
            };
            regions.write(i, first);
        }
    }
}

/// Inserts for [`quotient_update_insert_sorted`].
///
/// # Safety
/// The contract of [`quotient_update_insert_sorted`].
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn insert_sorted<F: Fingerprint>(
    fingerprints: Global<F>,
    n: usize,
    words: GlobalMut<u64>,
    slots: u64,
    parameters: Parameters,
    regions: Global<u64>,
    left: GlobalMut<u32>,
    changed: GlobalMut<u64>,
) {
    let i = thread::index_1d() as usize;
    let (mut is_left, mut done) = (false, false);
    // SAFETY: `i < n` where it is read; no two threads have a supercluster in common; all threads reach the vote and
    // the barrier.
    unsafe {
        if i < n {
            let fingerprint = fingerprints.read_nc(i);
            if i == 0 || regions.read_nc(i) != regions.read_nc(i - 1) {
                done = change::<false>(words, slots, parameters, fingerprint.bits(), changed);
            } else {
                // In a set an equal fingerprint before it suffices.
                is_left = parameters.keeps_duplicates() || fingerprint != fingerprints.read_nc(i - 1);
            }
        }
        put_left(n, left, is_left);
        put_changed(changed, done);
    }
}

/// Removes for [`quotient_update_remove_sorted`].
///
/// # Safety
/// The contract of [`quotient_update_remove_sorted`].
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn remove_sorted<F: Fingerprint>(
    fingerprints: Global<F>,
    n: usize,
    words: GlobalMut<u64>,
    slots: u64,
    parameters: Parameters,
    regions: Global<u64>,
    changed: GlobalMut<u64>,
) {
    let mut i = thread::index_1d() as usize;
    // SAFETY: `i < n` where it is read; no two threads have a cluster in common.
    unsafe {
        let mut removed = 0u64;
        if i < n {
            let region = regions.read_nc(i);
            if i == 0 || region != regions.read_nc(i - 1) {
                loop {
                    let fingerprint = fingerprints.read_nc(i).bits();
                    removed += change::<true>(words, slots, parameters, fingerprint, changed) as u64;
                    i += 1;
                    if i >= n || regions.read_nc(i) != region {
                        break;
                    }
                }
            }
        }
        if removed != 0 {
            atomic::reduce_add(changed, removed);
        }
    }
}

kernel! {
    /// Finds the first slot of the supercluster of each of `n` `F` fingerprints.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per fingerprint, [`BLOCK`](super::BLOCK) threads per block; `n` below 2^32.
    /// - `fingerprints`: `n`, with these [`Parameters`], not written while the kernel runs.
    /// - `words`: a sound filter of `slots` slots, not written while the kernel runs.
    /// - `regions`: `n` words, used by this launch alone.
    pub unsafe fn quotient_update_regions<F>(
        fingerprints: Global<F>, n: usize, words: Global<u64>, slots: u64, parameters: u32, removes: u32,
        out: GlobalMut<u64>,
    ) for [u32 => quotient_update_regions_u32, u64 => quotient_update_regions_u64] {
        // SAFETY: the caller keeps this kernel's contract.
        unsafe { regions(fingerprints, n, words, slots, Parameters(parameters), removes != 0, out) }
    }
}

kernel! {
    /// Inserts one of the ascending `F` fingerprints of each supercluster.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per fingerprint, [`BLOCK`](super::BLOCK) threads per block; `n` below 2^32.
    /// - `fingerprints`: `n`, ascending, not written while the kernel runs; `regions`: theirs in this filter.
    /// - `words`: a sound filter of `slots` slots with these [`Parameters`], used by this launch alone.
    /// - `left`: one bit per fingerprint in 64-bit words, set if it waits for the next round; used by this launch
    ///   alone.
    /// - `changed`: two words. The numbers of fingerprints that were stored and that found no slot are added to them.
    #[launch_bounds(256, 4)]
    pub unsafe fn quotient_update_insert_sorted<F>(
        fingerprints: Global<F>, n: usize, words: GlobalMut<u64>, slots: u64, parameters: u32,
        regions: Global<u64>, left: GlobalMut<u32>, changed: GlobalMut<u64>,
    ) for [u32 => quotient_update_insert_sorted_u32, u64 => quotient_update_insert_sorted_u64] {
        // SAFETY: the caller keeps this kernel's contract.
        unsafe {
            insert_sorted(fingerprints, n, words, slots, Parameters(parameters), regions, left, changed)
        }
    }
}

kernel! {
    /// Removes all of the ascending `F` fingerprints, one thread per cluster.
    ///
    /// # Safety
    /// The contract of [`quotient_update_insert_sorted`], without `left`.
    #[launch_bounds(256)]
    pub unsafe fn quotient_update_remove_sorted<F>(
        fingerprints: Global<F>, n: usize, words: GlobalMut<u64>, slots: u64, parameters: u32,
        regions: Global<u64>, changed: GlobalMut<u64>,
    ) for [u32 => quotient_update_remove_sorted_u32, u64 => quotient_update_remove_sorted_u64] {
        // SAFETY: the caller keeps this kernel's contract.
        unsafe { remove_sorted(fingerprints, n, words, slots, Parameters(parameters), regions, changed) }
    }
}

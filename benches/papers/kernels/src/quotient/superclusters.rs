//! A round of supercluster inserts and deletes into standard quotient filters. [`quotient_update_flag`] marks the
//! starts of superclusters, a scan of the counts labels them, [`quotient_update_bid`] lets the batch bid for them, and
//! [`quotient_update_insert_winners`] or [`quotient_update_remove_winners`] works off one fingerprint in each.
//!
//! For insertions a supercluster begins after an empty slot and ends with the next one, which the insertion may fill.
//! For removals it begins with an unshifted remainder: items before it cannot move into it, and it does not move into
//! items after it (section IV-D).
//!
//! Source: Geil, Farach-Colton, Owens, "Quotient Filters: Approximate Membership Queries on the GPU", IPDPS 2018,
//! sections IV-B (supercluster inserts, algorithm 3) and IV-D (supercluster deletes, algorithm 7).
//!
//! Departure from the paper: flags are bits, 64 slots to a word, and the scan is one of the words' counts; a label is
//! a count and a popcount. The paper's arrays of 32 bits per slot are as good and 32 times as large.

use warpset_core::quotient::slots::{ByteSlots, Container, PackedSlots, Slots};
use warpset_simt::{Global, GlobalMut, atomic, thread};

use warpset_kernels::quotient::memory::{Fingerprint, Parameters, ReadOnly};
#[cfg(any(feature = "emulator", target_arch = "nvptx64"))]
use warpset_kernels::quotient::standard::change::{change, put_changed, put_left};

/// Threads of a block, in all kernels here.
pub const BLOCK: u32 = 256;

/// Marks the slots of a block where a supercluster begins (`LOCATESUPERCLUSTERS`, `LOCATEDELETESUPERCLUSTERS`).
#[inline(always)]
fn starts<S: Slots>(slots: &S, block: u64, removes: bool) -> u64 {
    let [occupied, _, shifted] = slots.metadata_words(block);
    if removes {
        // Such a slot is not empty and not shifted.
        return occupied & !shifted;
    }
    let used = occupied | shifted;
    let before = block > 0 && slots.metadata(block * 64 - 1) != 0;
    !(used << 1 | before as u64)
}

kernel! {
    /// Marks starts of superclusters: for each block of 64 slots one bit per slot, and their number.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per block of slots, [`BLOCK`] threads per block.
    /// - `words`: a sound filter of `slots` slots with these [`Parameters`], not written while the kernel runs.
    /// - `flags`, `counts`: one per block of slots, used by this launch alone.
    pub unsafe fn quotient_update_flag(
        words: Global<u64>, slots: u64, parameters: u32, removes: u32, flags: GlobalMut<u64>, counts: GlobalMut<u32>,
    ) {
        let parameters = Parameters(parameters);
        let bits = parameters.split().remainder_bits;
        let block = thread::index_1d() as u64;
        if block < slots / 64 {
            let words = ReadOnly(words);
            let flagged = match parameters.container() {
                Container::Bytes => starts(&ByteSlots::new(words, slots, bits), block, removes != 0),
                Container::Packed => starts(&PackedSlots::new(words, slots, bits), block, removes != 0),
            };
            // SAFETY: there is one place per block of slots.
            unsafe {
                flags.write(block as usize, flagged);
                counts.write(block as usize, flagged.count_ones());
            }
        }
    }
}

/// Returns the number of superclusters that start at or before a quotient's slot.
///
/// # Safety
/// `flags` and `labels` have a place for the quotient's block and are not written while the kernel runs.
#[inline(always)]
unsafe fn label(flags: Global<u64>, labels: Global<u32>, quotient: u64) -> u32 {
    let block = (quotient / 64) as usize;
    // SAFETY: the contract is the same.
    unsafe { labels.read_nc(block) + (flags.read_nc(block) & (!0 >> (63 - quotient % 64))).count_ones() }
}

/// Bids for [`quotient_update_bid`].
///
/// # Safety
/// The contract of [`quotient_update_bid`].
#[inline(always)]
unsafe fn bid<F: Fingerprint>(
    fingerprints: Global<F>,
    n: usize,
    parameters: u32,
    flags: Global<u64>,
    labels: Global<u32>,
    winners: GlobalMut<u32>,
) {
    let i = thread::index_1d();
    if (i as usize) < n {
        // SAFETY: `i < n`, quotients have slots, labels are below the number of superclusters and one.
        unsafe {
            let quotient = Parameters(parameters).split().quotient(fingerprints.read_nc(i as usize).bits());
            atomic::store_relaxed(winners.at(label(flags, labels, quotient) as usize), i);
        }
    }
}

/// Processes the winners of superclusters.
///
/// # Safety
/// The contract of [`quotient_update_insert_winners`].
#[cfg(any(feature = "emulator", target_arch = "nvptx64"))]
#[inline(always)]
unsafe fn work_off<F: Fingerprint, const REMOVES: bool>(
    fingerprints: Global<F>,
    n: usize,
    words: GlobalMut<u64>,
    slots: u64,
    parameters: Parameters,
    flags: Global<u64>,
    labels: Global<u32>,
    winners: Global<u32>,
    left: GlobalMut<u32>,
    changed: GlobalMut<u64>,
) {
    let i = thread::index_1d() as usize;
    let (mut won, mut done) = (true, false);
    // SAFETY: `i < n` where it is read; winners of two superclusters touch no slot in common; all threads reach the
    // vote and the barrier.
    unsafe {
        if i < n {
            let fingerprint = fingerprints.read_nc(i).bits();
            let label = label(flags, labels, parameters.split().quotient(fingerprint));
            // A fingerprint without a cluster before it is not stored, and there is nothing to remove.
            let is_nowhere = REMOVES && label == 0;
            won = is_nowhere || winners.read_nc(label as usize) as usize == i;
            if won && !is_nowhere {
                done = change::<REMOVES>(words, slots, parameters, fingerprint, changed);
            }
        }
        put_left(n, left, !won);
        put_changed(changed, done);
    }
}

kernel! {
    /// Bids for superclusters, one per `F` fingerprint of `n` (`BIDDING`): the last one written wins.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per fingerprint, [`BLOCK`] threads per block; `n` below 2^32.
    /// - `fingerprints`: `n`, with these [`Parameters`], not written while the kernel runs.
    /// - `flags`: those of [`quotient_update_flag`], `labels` the exclusive sums of its counts; not written
    ///   meanwhile.
    /// - `winners`: one word per supercluster and one more, used by this launch alone.
    pub unsafe fn quotient_update_bid<F>(
        fingerprints: Global<F>, n: usize, parameters: u32, flags: Global<u64>, labels: Global<u32>,
        winners: GlobalMut<u32>,
    ) for [u32 => quotient_update_bid_u32, u64 => quotient_update_bid_u64] {
        // SAFETY: the caller keeps this kernel's contract.
        unsafe { bid(fingerprints, n, parameters, flags, labels, winners) }
    }
}

kernel! {
    /// Inserts the `F` fingerprints that won their supercluster, one thread each (`INSERTITEMS`).
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per fingerprint, [`BLOCK`] threads per block; `n` below 2^32.
    /// - `fingerprints`, `flags`, `labels`, `winners`: as for the bidding, before this launch, with the same
    ///   filter; not written while the kernel runs.
    /// - `words`: a sound filter of `slots` slots with these [`Parameters`], used by this launch alone.
    /// - `left`: one bit per fingerprint in 64-bit words, set if it did not win; used by this launch alone.
    /// - `changed`: two words. The numbers of fingerprints that were stored and that found no slot are added to them.
    #[launch_bounds(256, 4)]
    pub unsafe fn quotient_update_insert_winners<F>(
        fingerprints: Global<F>, n: usize, words: GlobalMut<u64>, slots: u64, parameters: u32,
        flags: Global<u64>, labels: Global<u32>, winners: Global<u32>, left: GlobalMut<u32>,
        changed: GlobalMut<u64>,
    ) for [u32 => quotient_update_insert_winners_u32, u64 => quotient_update_insert_winners_u64] {
        let parameters = Parameters(parameters);
        // SAFETY: the caller keeps this kernel's contract.
        unsafe {
            work_off::<_, false>(
                fingerprints, n, words, slots, parameters, flags, labels, winners, left, changed,
            )
        }
    }
}

kernel! {
    /// Removes the `F` fingerprints that won their supercluster, one thread each (`DELETEITEMS`); fingerprints in no
    /// supercluster are done.
    ///
    /// # Safety
    /// The contract of [`quotient_update_insert_winners`], with flags for removal.
    #[launch_bounds(256, 4)]
    pub unsafe fn quotient_update_remove_winners<F>(
        fingerprints: Global<F>, n: usize, words: GlobalMut<u64>, slots: u64, parameters: u32,
        flags: Global<u64>, labels: Global<u32>, winners: Global<u32>, left: GlobalMut<u32>,
        changed: GlobalMut<u64>,
    ) for [u32 => quotient_update_remove_winners_u32, u64 => quotient_update_remove_winners_u64] {
        let parameters = Parameters(parameters);
        // SAFETY: the caller keeps this kernel's contract.
        unsafe {
            work_off::<_, true>(
                fingerprints, n, words, slots, parameters, flags, labels, winners, left, changed,
            )
        }
    }
}

//! Kernels of the paper's layouts of a standard quotient filter: their common parts, and segmented layouts.
//!
//! Source: Geil, Farach-Colton, Owens, "Quotient Filters: Approximate Membership Queries on the GPU", IPDPS 2018,
//! section IV-C and algorithm 6. Parallel merging (algorithm 4) and sequential shifting (algorithm 5) are scans of the
//! quotients by `warpset_primitives::non_associative`.
//!
//! Departures from algorithm 6: an empty segment passes on items that reach through it, where the paper's passes on
//! nothing; a segment reports a change when it passes on another number than before, where the paper compares its
//! input.

use warpset_core::quotient::slots::Appender;
use warpset_core::quotient::standard as core;
use warpset_simt::{Global, GlobalMut, atomic, thread};

#[cfg(any(feature = "emulator", target_arch = "nvptx64"))]
use warpset_kernels::quotient::memory::Shareable;
use warpset_kernels::quotient::memory::{Fingerprint, Parameters};

/// Threads of a block, in all kernels here.
pub const BLOCK: u32 = 256;
/// Items per thread of [`quotient_write`].
pub const WRITE_ITEMS: usize = 8;

/// Segments of segmented layouts (section IV-C3): `log2(2^q) = q` slots each.
pub mod segments {
    /// Returns the number of segments of a filter with quotients of that many bits.
    #[inline]
    pub const fn count(quotient_bits: u32) -> u64 {
        (1u64 << quotient_bits).div_ceil(quotient_bits as u64)
    }

    /// Returns the quotients of a segment: the first, and the one after the last. The last segment may be shorter.
    #[inline]
    pub const fn range(quotient_bits: u32, segment: u64) -> (u64, u64) {
        let (quotients, length) = (1u64 << quotient_bits, quotient_bits as u64);
        let first = segment * length;
        (first, if quotients - first < length { quotients } else { first + length })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn segments_cover_the_quotients() {
            for q in 1..20 {
                let mut next = 0;
                for segment in 0..count(q) {
                    let (first, end) = range(q, segment);
                    assert!(first == next && first < end && end - first <= q as u64);
                    next = end;
                }
                assert_eq!(next, 1 << q);
            }
        }
    }
}

/// Returns the thread's number in a 1-D grid.
#[inline(always)]
fn index() -> usize {
    thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize
}

/// Returns the place of the first of `n` ascending fingerprints with a quotient of at least `quotient`.
///
/// # Safety
/// `fingerprints` is valid for `n` reads.
#[inline(always)]
unsafe fn first_of<F: Fingerprint>(fingerprints: Global<F>, n: usize, remainder_bits: u32, quotient: u64) -> usize {
    let (mut first, mut count) = (0, n);
    while count > 0 {
        let half = count / 2;
        // SAFETY: `first + half < n`.
        if unsafe { fingerprints.read_nc(first + half) }.bits() >> remainder_bits < quotient {
            first += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    first
}

/// Lays out one segment (algorithm 6, `LAYOUT`); with `slots`, writes the slots of its items.
///
/// # Safety
/// The contract of [`quotient_layout`].
#[inline(always)]
unsafe fn lay_out<F: Fingerprint>(
    fingerprints: Global<F>,
    parameters: Parameters,
    starts: Global<u64>,
    segments: usize,
    incoming: Global<u64>,
    outgoing: GlobalMut<u64>,
    change: GlobalMut<u32>,
    slots: GlobalMut<F>,
    last_round: bool,
) {
    let segment = index();
    if segment >= segments {
        return;
    }
    let split = parameters.split();
    let (first_slot, end_slot) = segments::range(split.quotient_bits, segment as u64);
    // SAFETY: `segment < segments`, and `starts` has one entry more, so `first..end` are fingerprints; `incoming` and
    // `outgoing` have one entry per segment, by the contract of `quotient_layout`. One thread has each segment, and
    // with it the entry of `outgoing` and the slots of its items.
    unsafe {
        let (first, end) = (starts.read(segment) as usize, starts.read(segment + 1) as usize);
        let shift = if segment > 0 { incoming.read(segment - 1) } else { 0 };
        let mut free = first_slot + shift;
        for i in first..end {
            let quotient = fingerprints.read(i).bits() >> split.remainder_bits;
            let slot = core::place(free, quotient);
            free = slot + 1;
            if last_round {
                slots.write(i, F::of(slot));
            }
        }
        if !last_round {
            let overflow = free.saturating_sub(end_slot);
            outgoing.write(segment, overflow);
            if overflow != incoming.read(segment) {
                atomic::store_relaxed(change, 1);
            }
        }
    }
}

/// Writes remainders and metadata of some items, given their slots.
///
/// # Safety
/// The contract of [`quotient_write`].
#[cfg(any(feature = "emulator", target_arch = "nvptx64"))]
#[inline(always)]
unsafe fn write<F: Fingerprint>(
    fingerprints: Global<F>,
    slots: Global<F>,
    n: usize,
    parameters: Parameters,
    words: GlobalMut<u64>,
) {
    let split = parameters.split();
    let first = index() * WRITE_ITEMS;
    let mut target = Appender::new(Shareable(words), parameters.container(), split.remainder_bits);
    for i in first..Ord::min(first + WRITE_ITEMS, n) {
        // SAFETY: `i < n`, and the slots are the filter's.
        let (item, slot) = unsafe { (fingerprints.read_nc(i).bits(), slots.read_nc(i).bits()) };
        let quotient = split.quotient(item);
        // SAFETY: as above.
        let follows = i > 0 && unsafe { fingerprints.read_nc(i - 1) }.bits() >> split.remainder_bits == quotient;
        if !follows {
            target.occupy(quotient);
        }
        target.item(slot, core::item_metadata(slot, quotient, follows), split.remainder(item));
    }
    target.finish();
}

kernel! {
    /// Writes the quotients, the canonical slots, of `F` fingerprints.
    ///
    /// # Safety
    /// - Launch: 1-D, `n.div_ceil(BLOCK)` blocks of [`BLOCK`] threads.
    /// - `fingerprints`: `n`, not written while the kernel runs; `out`: `n` words, used by this launch alone.
    pub unsafe fn quotient_quotients<F>(
        fingerprints: Global<F>, n: usize, parameters: u32, out: GlobalMut<F>,
    ) for [u32 => quotient_quotients_u32, u64 => quotient_quotients_u64] {
        let remainder_bits = Parameters(parameters).split().remainder_bits;
        let i = index();
        if i < n {
            // SAFETY: `i < n`.
            unsafe { out.write(i, fingerprints.read_nc(i) >> remainder_bits) };
        }
    }
}

kernel! {
    /// Finds the start of each segment of ascending `F` fingerprints.
    ///
    /// # Safety
    /// - Launch: 1-D, `(segments + 1).div_ceil(BLOCK)` blocks of [`BLOCK`] threads.
    /// - `fingerprints`: `n`, ascending, not written while the kernel runs; `starts`: one place per segment and one
    ///   more, used by this launch alone. The number of `segments` is that of these [`Parameters`].
    pub unsafe fn quotient_starts<F>(
        fingerprints: Global<F>, n: usize, parameters: u32, segments: usize, starts: GlobalMut<u64>,
    ) for [u32 => quotient_starts_u32, u64 => quotient_starts_u64] {
        let split = Parameters(parameters).split();
        let segment = index();
        // SAFETY: the place is a thread's own.
        unsafe {
            if segment < segments {
                let (first, _) = segments::range(split.quotient_bits, segment as u64);
                starts.write(segment, first_of(fingerprints, n, split.remainder_bits, first) as u64);
            } else if segment == segments {
                starts.write(segment, n as u64);
            }
        }
    }
}

kernel! {
    /// Runs an iteration of segmented layouts of `F` fingerprints: one thread per segment.
    ///
    /// # Safety
    /// - Launch: 1-D, `segments.div_ceil(BLOCK)` blocks of [`BLOCK`] threads.
    /// - `fingerprints`, ascending, and where each of the `segments` of these [`Parameters`] begins, and the last
    ///   ends; not written while the kernel runs.
    /// - `incoming` and `outgoing`: one place per segment, the first not written while the kernel runs, the second and
    ///   `change`, one word, used by this launch alone.
    /// - `slots`: with `last_round`, one place per fingerprint, used by this launch alone, and `outgoing` and `change`
    ///   are not touched; else not touched.
    pub unsafe fn quotient_layout<F>(
        fingerprints: Global<F>, parameters: u32, starts: Global<u64>, segments: usize,
        incoming: Global<u64>, outgoing: GlobalMut<u64>, change: GlobalMut<u32>, slots: GlobalMut<F>,
        last_round: u32,
    ) for [u32 => quotient_layout_u32, u64 => quotient_layout_u64] {
        let parameters = Parameters(parameters);
        // SAFETY: the caller keeps this kernel's contract.
        unsafe {
            lay_out(
                fingerprints, parameters, starts, segments, incoming, outgoing, change, slots, last_round != 0,
            )
        }
    }
}

kernel! {
    /// Writes `F` fingerprints to their slots.
    ///
    /// # Safety
    /// - Launch: 1-D, a thread for each [`WRITE_ITEMS`] of `n` items, blocks of [`BLOCK`] threads.
    /// - `fingerprints`: `n`, ascending; `slots`: theirs; not written while the kernel runs.
    /// - `words`: a filter with these [`Parameters`] that has these slots, zero at the start, used by this launch
    ///   alone.
    pub unsafe fn quotient_write<F>(
        fingerprints: Global<F>, slots: Global<F>, n: usize, parameters: u32, words: GlobalMut<u64>,
    ) for [u32 => quotient_write_u32, u64 => quotient_write_u64] {
        // SAFETY: the caller keeps this kernel's contract.
        unsafe { write(fingerprints, slots, n, Parameters(parameters), words) }
    }
}

//! Kernel that builds a standard quotient filter by the layout of sorted fingerprints
//! ([`layout`](crate::quotient::layout)).
//!
//! Source: Geil, Farach-Colton, Owens, "Quotient Filters: Approximate Membership Queries on the GPU", IPDPS 2018,
//! section IV-C.

use warpset_core::quotient::slots::{Appender, Container};
use warpset_core::quotient::standard as core;
use warpset_simt::shared::Shared;
use warpset_simt::{Global, GlobalMut};

#[cfg(feature = "bodies")]
use crate::quotient::layout::lay_out;
use crate::quotient::layout::{Form, Items, Part, Slot};
use crate::quotient::memory::Parameters;
#[cfg(feature = "bodies")]
use crate::quotient::memory::Shareable;

#[cfg(feature = "bodies")]
mod window;

#[cfg(feature = "bodies")]
use window::Writer;

/// Slots with three bits of metadata.
#[cfg(feature = "bodies")]
struct Standard;

#[cfg(feature = "bodies")]
impl Form for Standard {
    #[inline(always)]
    unsafe fn compose<F: Slot>(
        items: &Items<F>,
        parameters: Parameters,
        _slots: u64,
        base: F,
        free: F,
        part: Part,
        window: Shared<u32>,
        words: GlobalMut<u64>,
    ) {
        // SAFETY: the contract is the same; the container is the same for all threads.
        unsafe {
            match parameters.container() {
                Container::Bytes => compose::<F, false>(items, parameters, base, free, part, window, words),
                Container::Packed => compose::<F, true>(items, parameters, base, free, part, window, words),
            }
        }
    }

    #[inline(always)]
    unsafe fn add<F: Slot>(items: &Items<F>, parameters: Parameters, slots: u64, free: F, words: GlobalMut<u64>) {
        let split = parameters.split();
        let mut target = Appender::new(Shareable(words), parameters.container(), split.remainder_bits);
        let mut free = free.bits();
        items.for_each(|item, begins| {
            let (quotient, remainder) = (split.quotient(item.bits()), split.remainder(item.bits()));
            let slot = core::place(free, quotient);
            free = slot + 1;
            if begins {
                target.occupy(quotient);
            }
            if slot < slots {
                target.item(slot, core::item_metadata(slot, quotient, !begins), remainder);
            }
        });
        target.finish();
    }
}

/// Composes items as [`Form::compose`] does, in one of the containers.
///
/// # Safety
/// The contract of [`Form::compose`].
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn compose<F: Slot, const PACKED: bool>(
    items: &Items<F>,
    parameters: Parameters,
    base: F,
    free: F,
    part: Part,
    window: Shared<u32>,
    words: GlobalMut<u64>,
) {
    let split = parameters.split();
    let remainder_bits = split.remainder_bits;
    let mut target = Writer::<PACKED>::new(window, remainder_bits);
    let mut free = free.larger(base).bits().wrapping_sub(base.bits()) as u32;
    items.for_each(|item, begins| {
        let quotient = item.quotient(remainder_bits);
        // Before the tile's first slot there are quotients, but no slots.
        let is_before = quotient < base;
        let canonical = quotient.bits().wrapping_sub(base.bits()) as u32;
        let slot = if is_before { free } else { free.max(canonical) };
        free = slot + 1;
        // SAFETY: words of slots of the part are the window's.
        unsafe {
            if begins && is_before && part.from == 0 {
                let mut far = Appender::new(Shareable(words), parameters.container(), remainder_bits);
                far.occupy(quotient.bits());
                far.finish();
            } else if begins && !is_before && part.has(canonical) {
                target.occupy(canonical - part.from);
            }
            if part.has(slot) {
                let remainder = F::of(split.remainder(item.bits()));
                target.item(slot - part.from, is_before || slot != canonical, !begins, remainder);
            }
        }
    });
    // SAFETY: as above.
    unsafe { target.finish() };
}

kernel! {
    /// Writes a filter of `n` ascending `F` fingerprints.
    ///
    /// # Safety
    /// - Launch: 1-D, one block of [`BLOCK`](crate::quotient::layout::BLOCK) threads for each [`TILE_U32`] or
    ///   [`TILE_U64`] fingerprints,
    ///   [`SHARED_BYTES`] of dynamic shared memory; `n > 0`, for 32 bits at most [`MOST_U32`].
    /// - `fingerprints`: `n`, ascending, with these [`Parameters`], not written while the kernel runs, at a multiple of
    ///   16 bytes.
    /// - `look_back`: [`look_back_words`] of the tiles, at a multiple of 16 bytes, and `ticket` one
    ///   word: zero at the start, used by this launch alone.
    /// - `words`: those of `slots` slots, zero at the start, used by this launch alone. Items that belong to other
    ///   slots are left out.
    /// - `totals`: two words, set to the number of fingerprints stored and to the slot after the last.
    #[launch_bounds(256, 5)]
    pub unsafe fn quotient_build<F>(
        fingerprints: Global<F>, n: usize, parameters: u32, slots: u64, look_back: GlobalMut<u64>,
        ticket: GlobalMut<u32>, words: GlobalMut<u64>, totals: GlobalMut<u64>,
    ) for [u32 => quotient_build_u32, u64 => quotient_build_u64] {
        // SAFETY: the caller keeps this kernel's contract.
        unsafe {
            lay_out::<F, Standard, { F::ITEMS }>(
                fingerprints, fingerprints.cast(), n, Parameters(parameters), slots, look_back, ticket, words, totals,
            )
        }
    }
}

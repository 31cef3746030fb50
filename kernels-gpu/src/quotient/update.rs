//! Kernels that insert into and remove from standard quotient filters: by superclusters as in the paper
//! ([`superclusters`]), in place for an ascending batch ([`in_place`]), and by rewriting the filter ([`rebuild`],
//! [`rebuild_relative`]).
//!
//! Source: Geil, Farach-Colton, Owens, "Quotient Filters: Approximate Membership Queries on the GPU", IPDPS 2018:
//! sections IV-B (supercluster inserts), IV-D (supercluster deletes) and IV-E (merging).

use warpset_core::quotient::slots::{ByteSlots, Container, PackedSlots, SlotsMut};
use warpset_core::quotient::standard::{self as core, Inserted};
use warpset_simt::{GlobalMut, atomic};

use crate::quotient::memory::{Owned, Parameters};

pub mod in_place;
pub mod rebuild;
pub mod rebuild_relative;
pub mod superclusters;

/// Threads of a block, in all kernels here but [`rebuild`]'s.
pub const BLOCK: u32 = 256;

/// Does something with the slots of a filter that are changed.
///
/// # Safety
/// `words` are those of a sound filter of `slots` slots, accessed by atomic operations alone while the kernel runs.
#[inline(always)]
unsafe fn with_slots<T>(
    words: GlobalMut<u64>,
    slots: u64,
    parameters: Parameters,
    on_bytes: impl FnOnce(ByteSlots<Owned>) -> T,
    on_packed: impl FnOnce(PackedSlots<Owned>) -> T,
) -> T {
    let bits = parameters.split().remainder_bits;
    match parameters.container() {
        Container::Bytes => on_bytes(ByteSlots::new(Owned(words), slots, bits)),
        Container::Packed => on_packed(PackedSlots::new(Owned(words), slots, bits)),
    }
}

/// Inserts or removes a fingerprint: says whether that changed the filter. An insertion that finds no slot is counted
/// in the second word of `changed`.
///
/// # Safety
/// - As [`with_slots`].
/// - The fingerprint's supercluster is this thread's alone, and `changed` has two words that are accessed atomically.
#[inline(always)]
unsafe fn change<const REMOVES: bool>(
    words: GlobalMut<u64>,
    slots: u64,
    parameters: Parameters,
    fingerprint: u64,
    changed: GlobalMut<u64>,
) -> bool {
    // SAFETY: the caller's promise is the same.
    let outcome = unsafe {
        with_slots(
            words,
            slots,
            parameters,
            |mut slots| change_slots::<_, REMOVES>(&mut slots, parameters, fingerprint),
            |mut slots| change_slots::<_, REMOVES>(&mut slots, parameters, fingerprint),
        )
    };
    if outcome == Inserted::NoSlot {
        // SAFETY: the caller's promise.
        unsafe { atomic::reduce_add(changed.at(1), 1) };
    }
    outcome == Inserted::Stored
}

#[inline(always)]
fn change_slots<S: SlotsMut, const REMOVES: bool>(slots: &mut S, parameters: Parameters, fingerprint: u64) -> Inserted {
    let split = parameters.split();
    let (quotient, remainder) = (split.quotient(fingerprint), split.remainder(fingerprint));
    if !REMOVES {
        core::insert(slots, quotient, remainder, parameters.keeps_duplicates())
    } else if core::remove(slots, quotient, remainder) {
        Inserted::Stored
    } else {
        Inserted::Present
    }
}

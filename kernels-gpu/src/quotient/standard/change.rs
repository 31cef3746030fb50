//! Changes of single fingerprints in a standard quotient filter, and reports on a batch.

use warpset_core::quotient::slots::{ByteSlots, Container, PackedSlots, SlotsMut};
use warpset_core::quotient::standard::{self as core, Inserted};
use warpset_simt::{GlobalMut, atomic, thread, warp};

use crate::quotient::memory::{Owned, Parameters};

/// Runs `work` on the slots of a filter, for changes.
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

/// Inserts or removes a fingerprint. Returns whether that changed the filter. An insertion without a slot is counted in
/// the second word of `changed`.
///
/// # Safety
/// - The contract of `with_slots`, for the same slots.
/// - No other thread accesses the fingerprint's supercluster; `changed` has two words that are accessed atomically.
#[inline(always)]
pub unsafe fn change<const REMOVES: bool>(
    words: GlobalMut<u64>,
    slots: u64,
    parameters: Parameters,
    fingerprint: u64,
    changed: GlobalMut<u64>,
) -> bool {
    // SAFETY: the contract is the same.
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
        // SAFETY: the contract is the same.
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

/// Sets the bit of each of `n` items that waits for the next round, one per thread.
///
/// # Safety
/// - All threads of the warp come here together, one thread per item in the order of the grid.
/// - `left` has one bit per item, in words of 64 bits.
#[inline(always)]
pub unsafe fn put_left(n: usize, left: GlobalMut<u32>, is_left: bool) {
    let i = thread::index_1d() as usize;
    // SAFETY: a warp writes its own half of a word, and a word is written if its first item is below `n`.
    unsafe {
        let bits = warp::ballot(warp::FULL_MASK, is_left);
        if warp::lane_id() == 0 && (i & !63) < n {
            left.write(i / 32, bits);
        }
    }
}

/// Adds the number of threads of the block that changed the filter.
///
/// # Safety
/// - All threads of the block come here together.
/// - `changed` is one word that is accessed atomically.
#[inline(always)]
pub unsafe fn put_changed(changed: GlobalMut<u64>, done: bool) {
    let count = thread::sync_threads_count(done);
    if thread::thread_idx_x() == 0 && count != 0 {
        // SAFETY: the contract is the same.
        unsafe { atomic::reduce_add(changed, count as u64) };
    }
}

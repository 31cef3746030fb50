//! A round of a change in place.

use warpset_core::quotient::slots::{ByteSlots, Container, PackedSlots, Slots};
use warpset_kernels::quotient::standard::update::in_place::{
    quotient_update_insert_sorted, quotient_update_regions, quotient_update_remove_sorted,
};

use crate::gpu::fingerprints::{Fingerprints, with_width};
use crate::gpu::launch::{grid, parameters};
use crate::gpu::update::crossover::InPlaceRule;
use crate::gpu::update::in_place::Round;
use crate::slot_kind::Change;
use crate::standard::with_slots;
use crate::{Error, Layout};

/// Rules for standard slots. At loads of 0.75 and more clusters are so long that filters are always rewritten.
pub(super) const RULES: [InPlaceRule; 2] = [
    InPlaceRule { below_load: 0.75, slots: 1 << 28, insert_slots_per_key: 128, remove_slots_per_key: 96 },
    InPlaceRule { below_load: 0.75, slots: 1 << 24, insert_slots_per_key: 288, remove_slots_per_key: 160 },
];

/// Returns the first free slot after the quotients; see
/// [`DeviceSlots::free_after_quotients`](crate::gpu::slot_kind::DeviceSlots::free_after_quotients).
pub(super) fn free_after_quotients(layout: &Layout, tail: &[u64], first_slot: u64) -> u64 {
    let len = layout.slots() - first_slot;
    with_slots!(layout, tail, len, |slots| slots.empty_from(layout.quotients() - first_slot))
}

/// Queues a round; see [`DeviceSlots::change_round`](crate::gpu::slot_kind::DeviceSlots::change_round).
///
/// # Safety
/// The conditions of [`DeviceSlots::change_round`](crate::gpu::slot_kind::DeviceSlots::change_round).
pub(super) unsafe fn change_round(round: Round<'_>) -> Result<(), Error> {
    let Round { stream, layout, words, batch, n, change, begins, left, changed } = round;
    let (slots, parameters, removes) = (layout.slots(), parameters(layout), (change == Change::Remove) as u32);
    // SAFETY: the batch has at least `n` fingerprints, and `round` as many places; the words are those of the layout;
    // the rest is the contract of this function.
    with_width!(batch, |batch| unsafe {
        let (fingerprints, words_read, out) = (batch.slice(..n).global(), words.as_const(), begins);
        quotient_update_regions { fingerprints, n, words: words_read, slots, parameters, removes, out }
            .launch(stream, grid(n))?;
        let regions = begins.as_const();
        match change {
            Change::Insert => {
                let left = left.cast();
                quotient_update_insert_sorted { fingerprints, n, words, slots, parameters, regions, left, changed }
                    .launch(stream, grid(n))?;
            }
            Change::Remove => {
                quotient_update_remove_sorted { fingerprints, n, words, slots, parameters, regions, changed }
                    .launch(stream, grid(n))?;
            }
        }
    });
    Ok(())
}

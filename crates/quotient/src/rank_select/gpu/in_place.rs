//! A round of a change in place.

use warpset_core::bits::Portable;
use warpset_core::quotient::rank_select::Blocks;
use warpset_gpu::LaunchConfig;
use warpset_kernels::quotient::rank_select::in_place::{
    BLOCK, quotient_rank_select_begins, quotient_rank_select_insert_groups, quotient_rank_select_remove_groups,
};

use crate::gpu::fingerprints::{Fingerprints, with_width};
use crate::gpu::launch::parameters;
use crate::gpu::update::crossover::InPlaceRule;
use crate::gpu::update::in_place::Round;
use crate::slot_kind::Change;
use crate::{Error, Layout};

/// Rules for blocks with rank and select.
pub(super) const RULES: [InPlaceRule; 3] = [
    InPlaceRule { below_load: 0.8, slots: 1 << 23, insert_slots_per_key: 128, remove_slots_per_key: 96 },
    InPlaceRule { below_load: 0.92, slots: 1 << 25, insert_slots_per_key: 512, remove_slots_per_key: 256 },
    InPlaceRule { below_load: 1.0, slots: 1 << 25, insert_slots_per_key: 1024, remove_slots_per_key: 512 },
];

/// Returns the first free slot after the quotients; see
/// [`DeviceSlots::free_after_quotients`](crate::gpu::slot_kind::DeviceSlots::free_after_quotients).
pub(super) fn free_after_quotients(layout: &Layout, tail: &[u64], first_slot: u64) -> u64 {
    let blocks = Blocks::new(tail, layout.blocks - first_slot / 64, layout.remainder_bits());
    blocks.free_after(layout.quotients() - 1 - first_slot, Portable)
}

/// Queues a round; see [`DeviceSlots::change_round`](crate::gpu::slot_kind::DeviceSlots::change_round).
///
/// # Safety
/// The conditions of [`DeviceSlots::change_round`](crate::gpu::slot_kind::DeviceSlots::change_round).
pub(super) unsafe fn change_round(round: Round<'_>) -> Result<(), Error> {
    let Round { stream, layout, words, batch, n, change, begins: out, left, changed } = round;
    let (blocks, parameters, removes) = (layout.blocks, parameters(layout), (change == Change::Remove) as u32);
    let grid = LaunchConfig::new(n.div_ceil(BLOCK as usize) as u32, BLOCK);
    // SAFETY: the batch has at least `n` fingerprints, and `round` as many places; the words are those of the layout;
    // the rest is the contract of this function.
    with_width!(batch, |batch| unsafe {
        let (fingerprints, words_read) = (batch.slice(..n).global(), words.as_const());
        quotient_rank_select_begins { fingerprints, n, words: words_read, blocks, parameters, removes, out }
            .launch(stream, grid)?;
        let begins = out.as_const();
        macro_rules! change {
            ($kernel:ident $(, $left:ident)?) => {
                $kernel { fingerprints, n, words, blocks, parameters, begins, $($left,)? changed }.launch(stream, grid)?
            };
        }
        match change {
            Change::Insert => change!(quotient_rank_select_insert_groups, left),
            Change::Remove => change!(quotient_rank_select_remove_groups),
        }
    });
    Ok(())
}

//! Validation of slots in bytes from outside.

use rayon::prelude::*;
use warpset_core::quotient::slots::{
    BLOCK_SLOTS, ByteSlots, CONTINUATION, Container, OCCUPIED, PackedSlots, SHIFTED, Slots,
};
use warpset_core::quotient::standard as core;

use super::with_slots;
use crate::{Error, FileError, Layout, StandardQuotientFilterView};

/// Blocks per task.
const TASK: u64 = 1 << 10;

/// Checks the slots from the first empty one at or after `first` up to the first empty one at or after `end`, and
/// counts their items.
fn check<S: Slots>(layout: &Layout, slots: &S, first: u64, end: u64) -> Result<u64, Error> {
    let split = layout.split;
    let begin = if first == 0 { 0 } else { slots.empty_from(first) };
    let end = slots.empty_from(end);
    if begin >= end {
        return Ok(0);
    }
    let mut items = 0;
    let mut quotient = 0; // of the last run
    let mut last = 0; // the last remainder of it
    let mut in_cluster = false;
    for slot in begin..end {
        let invalid = Err(Error::InvalidSlots { slot });
        let (metadata, remainder) = (slots.metadata(slot), slots.remainder(slot));
        if metadata == 0 {
            // All quotients up to here must have had their runs.
            let waiting = in_cluster && slots.occupied_from(quotient + 1) < slot;
            if waiting || remainder != 0 {
                return invalid;
            }
            in_cluster = false;
            continue;
        }
        let follows = metadata & CONTINUATION != 0;
        if !follows {
            quotient = if in_cluster { slots.occupied_from(quotient + 1) } else { slot };
        } else if !in_cluster || remainder < last || (remainder == last && !layout.keeps_duplicates()) {
            return invalid;
        }
        in_cluster = true;
        let fits = quotient <= slot
            && quotient < split.quotients()
            && slots.metadata(quotient) & OCCUPIED != 0
            && metadata & (CONTINUATION | SHIFTED) == core::item_metadata(slot, quotient, follows)
            && (metadata & OCCUPIED == 0 || slot < split.quotients())
            && split.remainder(remainder) == remainder;
        if !fits {
            return invalid;
        }
        last = remainder;
        items += 1;
    }
    if in_cluster && slots.occupied_from(quotient + 1) < end {
        return Err(Error::InvalidSlots { slot: end });
    }
    Ok(items)
}

/// Refuses slots that are not those of a filter with as many items as the view claims.
pub(super) fn validate(view: &StandardQuotientFilterView<'_>) -> Result<(), Error> {
    let layout = *view.layout();
    let (blocks, slots) = (layout.blocks, layout.slots());
    let last = with_slots!(&layout, view.words(), slots, |all| all.metadata(slots - 1));
    if last != 0 {
        return Err(Error::InvalidSlots { slot: slots - 1 });
    }
    let tasks = (0..blocks.div_ceil(TASK)).into_par_iter();
    let items: Result<Vec<u64>, Error> = tasks
        .map(|task| {
            let first = task * TASK * BLOCK_SLOTS;
            let end = ((task + 1) * TASK).min(blocks) * BLOCK_SLOTS;
            with_slots!(&layout, view.words(), slots, |all| check(&layout, &all, first, end))
        })
        .collect();
    let items = items?.iter().sum::<u64>();
    if items == view.len() {
        Ok(())
    } else {
        Err(FileError::InvalidHeader { field: "items", value: view.len() }.into())
    }
}

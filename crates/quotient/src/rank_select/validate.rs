//! Whether blocks are those of a filter: for bytes from outside.

use rayon::prelude::*;
use warpset_core::bits::{Portable, range};
use warpset_core::quotient::rank_select::Blocks;

use super::blocks;
use crate::{Error, FileError, Layout, RankSelectView};

/// Blocks that one task checks.
const TASK: u64 = 1 << 10;

/// The first block whose offset is not that of the runs before it. Each offset is used only once those before it are
/// known to be right, so that damaged ones cost no time.
fn check_offsets(blocks: &Blocks<&[u64]>) -> Result<(), Error> {
    let mut free = 0u64;
    for block in 0..blocks.blocks() {
        let first = 64 * block;
        let metadata = blocks.metadata(block);
        if metadata.offset != free.saturating_sub(first) {
            return Err(Error::InvalidSlots { slot: first });
        }
        if metadata.occupieds != 0 {
            free = blocks.free_after(first + 63, Portable);
        }
        if free >= blocks.slots() {
            return Err(Error::InvalidSlots { slot: first });
        }
    }
    Ok(())
}

/// Checks the runs of the quotients of the blocks `first..end`, whose offsets are right, and the empty slots between them;
/// counts their items.
fn check(layout: &Layout, blocks: &Blocks<&[u64]>, first: u64, end: u64) -> Result<u64, Error> {
    let split = layout.split;
    let mut items = 0;
    let mut free = (64 * first).saturating_add(blocks.metadata(first).offset);
    // Slots between runs are empty.
    let check_empty =
        |from: u64, to: u64| match (from..to).find(|&slot| blocks.remainder(slot) != 0 || blocks.is_runend(slot)) {
            Some(slot) => Err(Error::InvalidSlots { slot }),
            None => Ok(()),
        };
    for block in first..end {
        let mut left = blocks.metadata(block).occupieds;
        if left & range(split.quotients().saturating_sub(64 * block).min(64) as u32, 64) != 0 {
            return Err(Error::InvalidSlots { slot: 64 * block });
        }
        while left != 0 {
            let quotient = 64 * block + left.trailing_zeros() as u64;
            left &= left - 1;
            check_empty(free, quotient)?;
            let mut slot = free.max(quotient);
            let mut last = None;
            loop {
                if slot + 1 >= blocks.slots() {
                    return Err(Error::InvalidSlots { slot });
                }
                let remainder = blocks.remainder(slot);
                let ascends =
                    last.is_none_or(|last| remainder > last || remainder == last && layout.keeps_duplicates());
                if !ascends {
                    return Err(Error::InvalidSlots { slot });
                }
                last = Some(remainder);
                items += 1;
                slot += 1;
                if blocks.is_runend(slot - 1) {
                    break;
                }
            }
            free = slot;
        }
    }
    check_empty(free, 64 * end)?;
    Ok(items)
}

/// An error unless the slots are those of a filter with as many items as the view says.
pub(super) fn validate(view: &RankSelectView<'_>) -> Result<(), Error> {
    let layout = *view.layout();
    let blocks = blocks(&layout, view.words());
    check_offsets(&blocks)?;
    let items: Result<Vec<u64>, Error> = (0..layout.blocks.div_ceil(TASK))
        .into_par_iter()
        .map(|task| check(&layout, &blocks, task * TASK, ((task + 1) * TASK).min(layout.blocks)))
        .collect();
    let items = items?.iter().sum::<u64>();
    if items == view.len() {
        Ok(())
    } else {
        Err(FileError::InvalidHeader { field: "items", value: view.len() }.into())
    }
}

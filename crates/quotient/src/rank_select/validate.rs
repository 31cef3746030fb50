//! Validation of blocks in bytes from outside.

use warpset_base::parallel;
use warpset_core::bits::{Portable, range};
use warpset_core::quotient::rank_select::{Blocks, counters};

use super::{blocks, counted_blocks};
use crate::slot_kind::Counts;
use crate::{Error, FileError, Layout, RankSelectQuotientFilterView};

/// Blocks per task.
const TASK: u64 = 1 << 10;

/// Finds the first block with an offset that is not that of the runs before it. An offset is used only after those
/// before it have been checked, so damaged ones cost no time.
fn check_offsets<const COUNTED: bool>(blocks: &Blocks<&[u64], COUNTED>) -> Result<(), Error> {
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

/// Check of the slots of a run from `first` on: remainders ascend, and digits are those of a counter. It returns the
/// slot after the run, and the contents.
trait CheckRun {
    fn check_run(&self, layout: &Layout, first: u64) -> Result<(u64, Counts), Error>;
    /// Whether a slot is empty.
    fn is_empty(&self, slot: u64) -> bool;
}

impl CheckRun for Blocks<&[u64], false> {
    fn check_run(&self, layout: &Layout, first: u64) -> Result<(u64, Counts), Error> {
        let (mut slot, mut last) = (first, None);
        loop {
            let remainder = self.remainder(slot);
            let ascends = last.is_none_or(|last| remainder > last || remainder == last && layout.keeps_duplicates());
            if slot + 1 >= self.slots() || !ascends {
                return Err(Error::InvalidSlots { slot });
            }
            last = Some(remainder);
            slot += 1;
            if self.is_runend(slot - 1) {
                return Ok((slot, (slot - first).into()));
            }
        }
    }

    fn is_empty(&self, slot: u64) -> bool {
        self.remainder(slot) == 0 && !self.is_runend(slot)
    }
}

impl CheckRun for Blocks<&[u64], true> {
    fn check_run(&self, layout: &Layout, first: u64) -> Result<(u64, Counts), Error> {
        let (mut slot, mut last, mut held) = (first, None, Counts::default());
        loop {
            let remainder = self.remainder(slot);
            let ascends = last.is_none_or(|last| remainder > last);
            if slot + 1 >= self.slots() || !ascends || self.is_digit(slot) {
                return Err(Error::InvalidSlots { slot });
            }
            last = Some(remainder);
            let (copies, after) = self.count_from(slot);
            // No run ends within a counter, and no counter has a digit too many or more copies than filters hold.
            let ends_within = (slot..after - 1).any(|slot| self.is_runend(slot));
            let sound = after - slot == counters::slots(copies, layout.remainder_bits()) && copies < 1 << 63;
            if after >= self.slots() || ends_within || !sound {
                return Err(Error::InvalidSlots { slot });
            }
            held.slots += after - slot;
            held.copies = held.copies.checked_add(copies).ok_or(Error::InvalidSlots { slot })?;
            slot = after;
            if self.is_runend(slot - 1) {
                return Ok((slot, held));
            }
        }
    }

    fn is_empty(&self, slot: u64) -> bool {
        self.remainder(slot) == 0 && !self.is_runend(slot) && !self.is_digit(slot)
    }
}

/// Checks the runs of the quotients of blocks `first..end`, which have right offsets, and the empty slots in between.
/// Adds up the contents.
fn check<const COUNTED: bool>(
    layout: &Layout,
    blocks: &Blocks<&[u64], COUNTED>,
    first: u64,
    end: u64,
) -> Result<Counts, Error>
where
    for<'a> Blocks<&'a [u64], COUNTED>: CheckRun,
{
    let split = layout.split;
    let mut held = Counts::default();
    let mut free = (64 * first).saturating_add(blocks.metadata(first).offset);
    // Slots between runs are empty.
    let check_empty = |from: u64, to: u64| match (from..to).find(|&slot| !blocks.is_empty(slot)) {
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
            let (after, run) = blocks.check_run(layout, free.max(quotient))?;
            free = after;
            held = Counts {
                copies: held.copies.checked_add(run.copies).ok_or(Error::InvalidSlots { slot: quotient })?,
                slots: held.slots + run.slots,
            };
        }
    }
    check_empty(free, 64 * end)?;
    Ok(held)
}

fn validate_blocks<const COUNTED: bool>(
    view: &RankSelectQuotientFilterView<'_>,
    blocks: Blocks<&[u64], COUNTED>,
) -> Result<(), Error>
where
    for<'a> Blocks<&'a [u64], COUNTED>: CheckRun,
{
    let layout = *view.layout();
    check_offsets(&blocks)?;
    let parts = parallel::map(0..layout.blocks.div_ceil(TASK), |task| {
        check(&layout, &blocks, task * TASK, ((task + 1) * TASK).min(layout.blocks))
    });
    let parts: Result<Vec<Counts>, Error> = parts.into_iter().collect();
    let sum = |of: fn(&Counts) -> u64, parts: &[Counts]| parts.iter().map(|part| u128::from(of(part))).sum::<u128>();
    let (parts, held) = (parts?, view.held());
    if sum(|part| part.copies, &parts) != held.copies.into() {
        return Err(FileError::InvalidHeader { field: "items", value: held.copies }.into());
    }
    if sum(|part| part.slots, &parts) != held.slots.into() {
        return Err(FileError::InvalidHeader { field: "slots in use", value: held.slots }.into());
    }
    Ok(())
}

/// Refuses slots that are not those of a filter with the contents that the view claims.
pub(super) fn validate(view: &RankSelectQuotientFilterView<'_>) -> Result<(), Error> {
    let layout = view.layout();
    if layout.is_counted() {
        validate_blocks(view, counted_blocks(layout, view.words()))
    } else {
        validate_blocks(view, blocks(layout, view.words()))
    }
}

//! Standard quotient filter on slots: lookup, insertion, removal, iteration over all fingerprints.
//!
//! Source: section III-A and the serial parts of algorithms 1, 3, 7 and 8. A *run* is the remainders of one quotient,
//! in ascending order; a *cluster* is an unshifted slot and the shifted ones after it; a *supercluster* reaches from
//! one empty slot to the next. There is no wrap-around: slots after those of the quotients take items that spill over
//! the end.
//!
//! Departures from the paper: the runs to skip are counted before they are skipped, where algorithm 1 goes back and
//! forth; the search of a run ends at the first larger remainder.

use super::Split;
use super::slots::{CONTINUATION, SHIFTED, Slots, SlotsMut};

/// Returns the first slot of an occupied quotient's run (algorithm 1, `FINDRUNSTART`).
#[inline]
pub fn find_run_start<S: Slots>(slots: &S, quotient: u64) -> u64 {
    let start = slots.cluster_start(quotient);
    slots.skip_runs(start, slots.runs_between(start, quotient))
}

/// Finds a remainder in a run that starts at `start`: the first slot with one that is not smaller, or the end of the
/// run; and whether it is equal.
#[inline]
fn find_in_run<S: Slots>(slots: &S, start: u64, remainder: u64) -> (u64, bool) {
    let mut slot = start;
    loop {
        let stored = slots.remainder(slot);
        if stored >= remainder {
            return (slot, stored == remainder);
        }
        slot += 1;
        if slot >= slots.len() || !slots.is_continuation(slot) {
            return (slot, false);
        }
    }
}

/// Whether a fingerprint is stored (algorithm 1, `LOOKUP`).
#[inline]
pub fn contains<S: Slots>(slots: &S, quotient: u64, remainder: u64) -> bool {
    slots.is_occupied(quotient) && find_in_run(slots, find_run_start(slots, quotient), remainder).1
}

/// Returns the number of copies of a fingerprint.
#[inline]
pub fn count<S: Slots>(slots: &S, quotient: u64, remainder: u64) -> u64 {
    if !slots.is_occupied(quotient) {
        return 0;
    }
    let (first, found) = find_in_run(slots, find_run_start(slots, quotient), remainder);
    if !found {
        return 0;
    }
    let mut slot = first + 1;
    while slot < slots.len() && slots.is_continuation(slot) && slots.remainder(slot) == remainder {
        slot += 1;
    }
    slot - first
}

/// Outcome of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// The fingerprint takes one more slot.
    Stored,
    /// The fingerprint was there, and is stored once.
    Present,
    /// No slot after its quotient is empty; nothing was written.
    NoSlot,
}

/// Stores a fingerprint (algorithm 3, `INSERTITEMS`); one that is there is stored again only with `duplicates`.
///
/// It writes from the fingerprint's place up to the first empty slot, the end of its supercluster.
#[inline]
pub fn insert<S: SlotsMut>(slots: &mut S, quotient: u64, remainder: u64, duplicates: bool) -> Inserted {
    if slots.metadata(quotient) == 0 {
        if quotient + 1 >= slots.len() {
            return Inserted::NoSlot; // the last slot of all stays empty
        }
        slots.set_item(quotient, 0, remainder);
        slots.set_occupied(quotient, true);
        return Inserted::Stored;
    }
    let cluster = slots.cluster_start(quotient);
    let runs = slots.runs_between(cluster, quotient);
    let occupied = slots.is_occupied(quotient);
    // Without a run of its own, the quotient's run would begin after all runs of smaller quotients.
    let start = slots.skip_runs(cluster, if occupied { runs } else { runs + 1 });
    let (place, found) = if occupied { find_in_run(slots, start, remainder) } else { (start, false) };
    if found && !duplicates {
        return Inserted::Present;
    }
    let empty = slots.empty_from(place);
    if empty + 1 >= slots.len() {
        return Inserted::NoSlot;
    }
    // Items move right by one slot; `is_occupied` stays.
    let mut to = empty;
    while to > place {
        let (item, remainder) = (slots.metadata(to - 1), slots.remainder(to - 1));
        // The head of the quotient's own run, if it moves, follows the new head.
        let follows = if occupied && to - 1 == start { CONTINUATION } else { item & CONTINUATION };
        slots.set_item(to, follows | SHIFTED, remainder);
        to -= 1;
    }
    slots.set_item(place, item_metadata(place, quotient, occupied && place != start), remainder);
    slots.set_occupied(quotient, true);
    Inserted::Stored
}

/// Whether insertion and removal of this quotient touch only these slots, a part of a filter: its cluster begins here,
/// and a later slot is empty.
#[inline]
pub fn is_inside<S: Slots>(slots: &S, quotient: u64) -> bool {
    let start = slots.cluster_start(quotient);
    (start > 0 || slots.metadata(0) & SHIFTED == 0) && slots.empty_from(quotient) + 1 < slots.len()
}

/// Removes a fingerprint once (algorithm 7, `DELETEITEMS`). Returns `false`, and writes nothing, if it is not there.
///
/// Later items of its cluster move left by one slot; those of later clusters stay.
#[inline]
pub fn remove<S: SlotsMut>(slots: &mut S, quotient: u64, remainder: u64) -> bool {
    if !slots.is_occupied(quotient) {
        return false;
    }
    let start = find_run_start(slots, quotient);
    let (place, found) = find_in_run(slots, start, remainder);
    if !found {
        return false;
    }
    let len = slots.len();
    let mut head = place == start; // the next of the run, if any, becomes its head
    if head && !(place + 1 < len && slots.is_continuation(place + 1)) {
        slots.set_occupied(quotient, false);
        head = false;
    }
    let mut current = quotient; // the quotient of the item that moves
    let mut to = place;
    loop {
        let item = if to + 1 < len { slots.metadata(to + 1) } else { 0 };
        if item & SHIFTED == 0 {
            break; // empty, or in its canonical slot
        }
        let mut continuation = item & CONTINUATION;
        if continuation == 0 {
            current = slots.occupied_from(current + 1);
        } else if head {
            continuation = 0;
        }
        head = false;
        let remainder = slots.remainder(to + 1);
        slots.set_item(to, item_metadata(to, current, continuation != 0), remainder);
        to += 1;
    }
    // Its `is_occupied` is clear: the run of a quotient `to` would begin here, unshifted, and would not have moved.
    slots.set_item(to, 0, 0);
    true
}

/// Fingerprints of a filter in ascending order, from a quotient on.
#[derive(Clone, Debug)]
pub struct Fingerprints<S> {
    slots: S,
    split: Split,
    quotient: u64,
    slot: u64,
}

impl<S: Slots> Fingerprints<S> {
    /// Starts at the first fingerprint with a quotient of at least `from`.
    #[inline]
    pub fn from_quotient(slots: S, split: Split, from: u64) -> Fingerprints<S> {
        let quotient = slots.occupied_from(from);
        let slot = if quotient < split.quotients() { find_run_start(&slots, quotient) } else { slots.len() };
        Fingerprints { slots, split, quotient, slot }
    }
}

impl<S: Slots> Iterator for Fingerprints<S> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        // Only damaged memory has a quotient past the end.
        if self.slot >= self.slots.len() || self.quotient >= self.split.quotients() {
            return None;
        }
        let fingerprint = self.split.join(self.quotient, self.slots.remainder(self.slot));
        self.slot += 1;
        if self.slot >= self.slots.len() || !self.slots.is_continuation(self.slot) {
            self.quotient = self.slots.occupied_from(self.quotient + 1);
            // The next run begins where this one ended, unless it is in its canonical slot after a gap.
            self.slot = self.slot.max(self.quotient);
        }
        Some(fingerprint)
    }
}

/// Returns the slot of a fingerprint after others: the first free one, or its canonical one (section IV-C: `max(slot(i
/// - 1) + 1, quotient)`).
#[inline]
pub const fn place(free: u64, quotient: u64) -> u64 {
    if free > quotient { free } else { quotient }
}

/// Returns the metadata of an item in `slot`, without `is_occupied`; `follows` if the item before has the same
/// quotient.
#[inline]
pub const fn item_metadata(slot: u64, quotient: u64, follows: bool) -> u64 {
    (if follows { CONTINUATION } else { 0 }) | (if slot != quotient { SHIFTED } else { 0 })
}

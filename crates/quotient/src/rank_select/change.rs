//! Insertion and removal of fingerprints: a fast path on the host for those near their quotients, and the code of all
//! backends for others.

use warpset_base::processor::Pdep;
use warpset_core::bits::{Portable, Select};
use warpset_core::quotient::Split;
use warpset_core::quotient::rank_select::counters::{self, Recounted};
use warpset_core::quotient::rank_select::{Blocks, Changed as CoreChanged};

use super::blocks_mut::BlocksMut;
use crate::Layout;
use crate::slot_kind::{Change, Changed, Counts};

/// Runs the body with the processor's way to select ones.
macro_rules! with_select {
    (|$select:ident| $body:expr) => {
        match Pdep::detect() {
            Some($select) => $select.run(
                #[inline(always)]
                || $body,
            ),
            None => {
                let $select = Portable;
                $body
            }
        }
    };
}
pub(super) use with_select;

/// Change of one fingerprint, with quotient and remainder in `parts`.
pub(super) trait Edit: Copy {
    /// Outcome of the change.
    type Done;

    /// Stores or removes. Returns `None` if that reaches the last block or is not for the fast code; then nothing was
    /// written.
    fn change_blocks(
        self,
        words: &mut [u64],
        split: Split,
        parts: (u64, u64),
        change: Change,
        select: impl Select,
    ) -> Option<Self::Done>;

    /// Stores or removes over any blocks.
    fn far(
        self,
        layout: &Layout,
        words: &mut [u64],
        parts: (u64, u64),
        change: Change,
        select: impl Select,
    ) -> Self::Done;

    /// Tries the fast code, then the general one.
    #[inline(always)]
    fn apply(
        self,
        layout: &Layout,
        words: &mut [u64],
        parts: (u64, u64),
        change: Change,
        select: impl Select,
    ) -> Self::Done {
        match self.change_blocks(words, layout.split, parts, change, select) {
            Some(done) => done,
            None => self.far(layout, words, parts, change, select),
        }
    }
}

/// Change of one copy, in blocks without counters.
#[derive(Clone, Copy)]
pub(super) struct One {
    /// Whether a stored fingerprint is stored again.
    pub(super) duplicates: bool,
}

impl Edit for One {
    type Done = Changed;

    #[inline(always)]
    fn change_blocks(
        self,
        words: &mut [u64],
        split: Split,
        (quotient, remainder): (u64, u64),
        change: Change,
        select: impl Select,
    ) -> Option<Changed> {
        let mut blocks = BlocksMut::<false>::new(words, split);
        match change {
            Change::Insert => blocks.insert(quotient, remainder, self.duplicates, select),
            Change::Remove => blocks.remove(quotient, remainder, select),
        }
    }

    #[inline(never)]
    fn far(
        self,
        layout: &Layout,
        words: &mut [u64],
        (quotient, remainder): (u64, u64),
        change: Change,
        select: impl Select,
    ) -> Changed {
        let part = words.len() as u64 / layout.block_words();
        let mut blocks = Blocks::new(words, part, layout.split.remainder_bits);
        let changed = match change {
            Change::Insert => blocks.insert(quotient, remainder, self.duplicates, select),
            Change::Remove => blocks.remove(quotient, remainder, select),
        };
        match changed {
            CoreChanged::Done => Changed::Done,
            CoreChanged::Unchanged => Changed::Unchanged,
            CoreChanged::Outside => Changed::NoSlot,
        }
    }
}

/// Change of that many copies, in blocks with counters. Its outcome is `None` without slots for it.
#[derive(Clone, Copy)]
pub(super) struct Many(pub(super) u64);

impl Edit for Many {
    type Done = Option<Counts>;

    #[inline(always)]
    fn change_blocks(
        self,
        words: &mut [u64],
        split: Split,
        (quotient, remainder): (u64, u64),
        change: Change,
        select: impl Select,
    ) -> Option<Option<Counts>> {
        let mut blocks = BlocksMut::<true>::new(words, split);
        let done = match change {
            Change::Insert => blocks.add(quotient, remainder, self.0, select),
            Change::Remove => blocks.subtract(quotient, remainder, self.0, select),
        };
        done.map(Some)
    }

    #[inline(never)]
    fn far(
        self,
        layout: &Layout,
        words: &mut [u64],
        (quotient, remainder): (u64, u64),
        change: Change,
        select: impl Select,
    ) -> Option<Counts> {
        let part = words.len() as u64 / layout.block_words();
        let mut blocks = Blocks::counted(words, part, layout.split.remainder_bits);
        let done = match change {
            Change::Insert => blocks.add(quotient, remainder, self.0, select),
            Change::Remove => blocks.subtract(quotient, remainder, self.0, select),
        };
        let slots = |count| counters::slots(count, layout.split.remainder_bits);
        match done {
            Recounted::Done { before, after } => {
                Some(Counts { copies: after.abs_diff(before), slots: slots(after).abs_diff(slots(before)) })
            }
            Recounted::TooMany | Recounted::Outside => None,
        }
    }
}

/// Stores or removes one fingerprint. The functions for the processor's instructions and for any processor take few
/// arguments: more than there are registers would double the cost.
#[inline(always)]
pub(super) fn apply_one<E: Edit, const REMOVES: bool>(
    layout: &Layout,
    words: &mut [u64],
    fingerprint: u64,
    edit: E,
) -> E::Done {
    #[inline(always)]
    fn change_blocks<E: Edit, const REMOVES: bool>(
        words: &mut [u64],
        split: Split,
        fingerprint: u64,
        edit: E,
        select: impl Select,
    ) -> Option<E::Done> {
        let parts = (split.quotient(fingerprint), split.remainder(fingerprint));
        edit.change_blocks(words, split, parts, change::<REMOVES>(), select)
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
    fn fast<E: Edit, const REMOVES: bool>(
        words: &mut [u64],
        split: Split,
        fingerprint: u64,
        edit: E,
        pdep: Pdep,
    ) -> Option<E::Done> {
        change_blocks::<E, REMOVES>(words, split, fingerprint, edit, pdep)
    }
    #[inline(never)]
    fn portable<E: Edit, const REMOVES: bool>(
        words: &mut [u64],
        split: Split,
        fingerprint: u64,
        edit: E,
    ) -> Option<E::Done> {
        change_blocks::<E, REMOVES>(words, split, fingerprint, edit, Portable)
    }
    #[cfg(target_arch = "x86_64")]
    let near = match Pdep::detect() {
        // SAFETY: a `Pdep` exists only where the processor has these instructions.
        Some(pdep) => unsafe { fast::<E, REMOVES>(words, layout.split, fingerprint, edit, pdep) },
        None => portable::<E, REMOVES>(words, layout.split, fingerprint, edit),
    };
    #[cfg(not(target_arch = "x86_64"))]
    let near = portable::<E, REMOVES>(words, layout.split, fingerprint, edit);
    match near {
        Some(done) => done,
        None => apply_far::<E, REMOVES>(layout, words, fingerprint, edit),
    }
}

#[cold]
#[inline(never)]
fn apply_far<E: Edit, const REMOVES: bool>(layout: &Layout, words: &mut [u64], fingerprint: u64, edit: E) -> E::Done {
    let parts = (layout.split.quotient(fingerprint), layout.split.remainder(fingerprint));
    with_select!(|select| edit.far(layout, words, parts, change::<REMOVES>(), select))
}

const fn change<const REMOVES: bool>() -> Change {
    if REMOVES { Change::Remove } else { Change::Insert }
}

//! Lookups in a standard quotient filter by whole windows of slots: a thread reads a window at once, with one bit per
//! slot in registers for each of the metadata bits.
//!
//! Source: algorithm 1 of Geil, Farach-Colton, Owens, "Quotient Filters: Approximate Membership Queries on the GPU",
//! IPDPS 2018. It goes to the start of the cluster and skips as many runs as it has counted quotients on the way. Here
//! the slots between the start and the canonical slot are counted, not walked: the runs of the quotients up to the
//! searched one, less those that begin up to the canonical slot, are left to skip after it. With clusters of a few
//! slots nearly every lookup begins and ends in one window.
//!
//! Slots of three, five, six and seven bytes straddle sectors and words; they are read one by one.

use core::ops::{BitAnd, Not};

use warpset_core::bits::select_short;
use warpset_core::quotient::slots::{ByteSlots, bytes_of_slot};
use warpset_core::quotient::standard;

use crate::quotient::memory::Pairs;

#[cfg(feature = "bodies")]
mod bytes;
mod packed;

#[cfg(feature = "bodies")]
pub use bytes::ByteWindows;
#[cfg(feature = "bodies")]
pub use packed::PackedWindows;
pub use packed::fields;

/// Set of slots, one bit each.
pub trait Mask: Copy + Eq + BitAnd<Output = Self> + Not<Output = Self> {
    /// The empty set.
    const NONE: Self;
    /// Returns the slots up to this one, inclusive.
    fn up_to(at: u32) -> Self;
    /// Returns the slots after this one.
    fn behind(at: u32) -> Self;
    /// Whether this slot is in the set.
    fn has(self, at: u32) -> bool;
    /// Returns the number of slots.
    fn count(self) -> u32;
    /// Returns the last slot; there is one.
    fn last(self) -> u32;
    /// Returns the first slot; there is one.
    fn first(self) -> u32;
    /// Returns the slot with that many before it; there is one.
    fn select(self, rank: u32) -> u32;
}

macro_rules! masks {
    ($($word:ty: |$self:ident, $rank:ident| $select:expr;)*) => {$(
        impl Mask for $word {
            const NONE: Self = 0;
            #[inline(always)]
            fn up_to(at: u32) -> Self {
                !0 >> (Self::BITS - 1 - at)
            }
            #[inline(always)]
            fn behind(at: u32) -> Self {
                !1 << at
            }
            #[inline(always)]
            fn has(self, at: u32) -> bool {
                self >> at & 1 != 0
            }
            #[inline(always)]
            fn count(self) -> u32 {
                self.count_ones()
            }
            #[inline(always)]
            fn last(self) -> u32 {
                Self::BITS - 1 - self.leading_zeros()
            }
            #[inline(always)]
            fn first(self) -> u32 {
                self.trailing_zeros()
            }
            #[inline(always)]
            fn select($self, $rank: u32) -> u32 {
                $select
            }
        }
    )*};
}
masks! {
    u32: |self, rank| select_short(self, rank);
    u64: |self, rank| {
        let (low, high) = (self as u32, (self >> 32) as u32);
        let count = low.count_ones();
        let (half, rank, at) = if rank < count { (low, rank, 0) } else { (high, rank - count, 32) };
        at + half.select(rank)
    };
}

/// Metadata of a window.
#[derive(Clone, Copy, Debug)]
pub struct Window<M, R> {
    /// `is_occupied`.
    pub occupied: M,
    /// `is_continuation`.
    pub continuations: M,
    /// `is_shifted`.
    pub shifted: M,
    /// Words that were read with them.
    pub rest: R,
}

/// Slots by windows of [`SLOTS`](Windows::SLOTS).
pub trait Windows {
    /// Set of slots of a window.
    type Mask: Mask;
    /// Words that are read with the metadata.
    type Rest: Copy;
    /// Number of slots of a window.
    const SLOTS: u32;
    /// Set of all slots.
    const ALL: Self::Mask;

    /// Returns the number of windows.
    fn count(&self) -> u64;
    /// Reads a window.
    fn read(&self, window: u64) -> Window<Self::Mask, Self::Rest>;
    /// Whether one of the slots `from..to`, at least one, has this remainder.
    fn stores(&self, window: u64, rest: Self::Rest, from: u32, to: u32, remainder: u64) -> bool;
}

/// Whether a fingerprint is stored.
#[inline(always)]
pub fn contains<W: Windows>(slots: &W, quotient: u64, remainder: u64) -> bool {
    let (mut window, at) = (quotient / W::SLOTS as u64, (quotient % W::SLOTS as u64) as u32);
    let Window { occupied, mut continuations, shifted, mut rest } = slots.read(window);
    if !occupied.has(at) {
        return false;
    }
    let up_to = W::Mask::up_to(at);
    let unshifted = !shifted & up_to;
    // These runs begin after slot `at`, up to the quotient's.
    let mut runs = if unshifted == W::Mask::NONE {
        runs_left(slots, window, at, occupied, continuations)
    } else {
        let start = unshifted.last();
        let between = up_to & W::Mask::behind(start);
        ((occupied & between).count() + (continuations & between).count() - (at - start)) as u64
    };
    let mut begins_before = false;
    let from = if runs == 0 {
        let heads = !continuations & up_to;
        begins_before = heads == W::Mask::NONE;
        if begins_before { 0 } else { heads.last() }
    } else {
        let mut heads = !continuations & W::Mask::behind(at) & W::ALL;
        loop {
            let count = heads.count() as u64;
            if runs <= count {
                break heads.select(runs as u32 - 1);
            }
            runs -= count;
            window += 1;
            if window >= slots.count() {
                return false;
            }
            Window { continuations, rest, .. } = slots.read(window);
            heads = !continuations & W::ALL;
        }
    };
    let ends = !continuations & W::Mask::behind(from) & W::ALL;
    let goes_on = ends == W::Mask::NONE;
    let to = if goes_on { W::SLOTS } else { ends.first() };
    slots.stores(window, rest, from, to, remainder)
        || goes_on && stored_behind(slots, window, remainder)
        || begins_before && stored_before(slots, window, remainder)
}

/// Returns the number of runs to skip for a quotient whose cluster begins before its window.
#[inline(always)]
fn runs_left<W: Windows>(slots: &W, mut window: u64, at: u32, occupied: W::Mask, continuations: W::Mask) -> u64 {
    let up_to = W::Mask::up_to(at);
    let mut more = ((occupied & up_to).count() + (continuations & up_to).count()) as u64;
    let mut less = at as u64 + 1;
    while window > 0 {
        window -= 1;
        let Window { occupied, continuations, shifted, .. } = slots.read(window);
        let unshifted = !shifted & W::ALL;
        let begins = unshifted != W::Mask::NONE;
        let between = if begins { W::Mask::behind(unshifted.last()) & W::ALL } else { W::ALL };
        more += ((occupied & between).count() + (continuations & between).count()) as u64;
        less += between.count() as u64;
        if begins {
            break;
        }
    }
    more.saturating_sub(less)
}

/// Whether the run at the end of a window has this remainder in the windows after it.
#[inline(always)]
fn stored_behind<W: Windows>(slots: &W, mut window: u64, remainder: u64) -> bool {
    loop {
        window += 1;
        if window >= slots.count() {
            return false;
        }
        let Window { continuations, rest, .. } = slots.read(window);
        let ends = !continuations & W::ALL;
        let goes_on = ends == W::Mask::NONE;
        let to = if goes_on { W::SLOTS } else { ends.first() };
        if to > 0 && slots.stores(window, rest, 0, to, remainder) {
            return true;
        }
        if !goes_on {
            return false;
        }
    }
}

/// Whether the run at the start of a window, which began before it, has this remainder in the windows before.
#[inline(always)]
fn stored_before<W: Windows>(slots: &W, mut window: u64, remainder: u64) -> bool {
    while window > 0 {
        window -= 1;
        let Window { continuations, rest, .. } = slots.read(window);
        let heads = !continuations & W::ALL;
        let begins = heads != W::Mask::NONE;
        let from = if begins { heads.last() } else { 0 };
        if slots.stores(window, rest, from, W::SLOTS, remainder) {
            return true;
        }
        if begins {
            return false;
        }
    }
    false
}

/// Whether a fingerprint is stored in slots of one byte.
#[cfg(feature = "bodies")]
#[inline(always)]
pub fn in_single_bytes<P: Pairs>(words: P, slots: u64, quotient: u64, remainder: u64) -> bool {
    contains(&ByteWindows::<1, 2, _>::new(words, slots), quotient, remainder)
}

/// Whether a fingerprint is stored in slots of two bytes and more, by the width of remainders.
#[cfg(feature = "bodies")]
#[inline(always)]
pub fn in_wide_slots<P: Pairs>(words: P, slots: u64, remainder_bits: u32, quotient: u64, remainder: u64) -> bool {
    match bytes_of_slot(remainder_bits) {
        2 => contains(&ByteWindows::<2, 2, _>::new(words, slots), quotient, remainder),
        4 => contains(&ByteWindows::<4, 4, _>::new(words, slots), quotient, remainder),
        8 => contains(&ByteWindows::<8, 4, _>::new(words, slots), quotient, remainder),
        _ => standard::contains(&ByteSlots::new(words, slots, remainder_bits), quotient, remainder),
    }
}

#[cfg(test)]
mod tests;

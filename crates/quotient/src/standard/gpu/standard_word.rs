//! The kernels of standard quotient filters for fingerprints of 32 and of 64 bits.

use warpset_kernels::quotient::build::quotient_build;
use warpset_kernels::quotient::extract::quotient_extract;
use warpset_kernels::quotient::paper_builds::{quotient_layout, quotient_quotients, quotient_starts, quotient_write};
use warpset_kernels::quotient::update::in_place::{
    quotient_update_insert_sorted, quotient_update_regions, quotient_update_remove_sorted,
};
use warpset_kernels::quotient::update::rebuild::quotient_update_rebuild;
use warpset_kernels::quotient::update::rebuild_relative::{
    quotient_update_insert_bytes, quotient_update_insert_packed, quotient_update_remove_bytes,
    quotient_update_remove_packed,
};
use warpset_kernels::quotient::update::superclusters::{
    quotient_update_bid, quotient_update_insert_winners, quotient_update_remove_winners,
};
use warpset_primitives::non_associative::{NextSlot, NonAssociativeKernels};
use warpset_primitives::{select, sort};
use warpset_simt::EntryOf;

/// A word that holds a fingerprint or its slot, for which standard quotient filters have all their kernels.
pub trait StandardWord:
    sort::SortKey
    + select::Item
    + EntryOf<quotient_build<Self>>
    + EntryOf<quotient_extract<Self>>
    + EntryOf<quotient_quotients<Self>>
    + EntryOf<quotient_starts<Self>>
    + EntryOf<quotient_layout<Self>>
    + EntryOf<quotient_write<Self>>
    + EntryOf<quotient_update_bid<Self>>
    + EntryOf<quotient_update_insert_winners<Self>>
    + EntryOf<quotient_update_remove_winners<Self>>
    + EntryOf<quotient_update_regions<Self>>
    + EntryOf<quotient_update_insert_sorted<Self>>
    + EntryOf<quotient_update_remove_sorted<Self>>
    + EntryOf<quotient_update_rebuild<Self>>
    + EntryOf<quotient_update_insert_packed<Self>>
    + EntryOf<quotient_update_insert_bytes<Self>>
    + EntryOf<quotient_update_remove_packed<Self>>
    + EntryOf<quotient_update_remove_bytes<Self>>
{
    /// The paper's scan, over slots of this width.
    type NextSlot: NonAssociativeKernels<Item = Self, Value = Self>;

    /// As 64 bits.
    fn wide(self) -> u64;
}

impl StandardWord for u32 {
    type NextSlot = NextSlot<u32>;

    fn wide(self) -> u64 {
        self.into()
    }
}

impl StandardWord for u64 {
    type NextSlot = NextSlot<u64>;

    fn wide(self) -> u64 {
        self
    }
}

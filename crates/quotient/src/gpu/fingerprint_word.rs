//! Words that hold fingerprints: of 32 and of 64 bits.

use warpset_kernels::quotient::build::quotient_fingerprints;
use warpset_kernels::quotient::counts::{quotient_counts_check, quotient_counts_combine, quotient_counts_repeat};
use warpset_kernels::quotient::extract::{quotient_count, quotient_equals};
use warpset_kernels::quotient::layout;
use warpset_primitives::{select, sort};
use warpset_simt::EntryOf;

use crate::rank_select::gpu::RankSelectWord;
use crate::standard::gpu::standard_word::StandardWord;

/// A word that holds a fingerprint, for which there are the kernels of all kinds of slots.
pub trait FingerprintWord:
    sort::SortKey
    + select::Item
    + EntryOf<quotient_fingerprints<Self>>
    + EntryOf<quotient_equals<Self>>
    + EntryOf<quotient_count<Self>>
    + EntryOf<quotient_counts_check<Self>>
    + EntryOf<quotient_counts_combine<Self>>
    + EntryOf<quotient_counts_repeat<Self>>
    + StandardWord
    + RankSelectWord
{
    /// Items of a tile of the layout.
    const TILE: usize;
    /// The most that are laid out at once.
    const MOST: usize;
}

impl FingerprintWord for u32 {
    const TILE: usize = layout::TILE_U32;
    const MOST: usize = layout::MOST_U32;
}

impl FingerprintWord for u64 {
    const TILE: usize = layout::TILE_U64;
    const MOST: usize = usize::MAX;
}

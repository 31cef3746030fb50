//! Words that hold fingerprints: of 32 and of 64 bits.

use warpset_kernels::quotient::build::quotient_fingerprints;
use warpset_kernels::quotient::extract::{quotient_count, quotient_equals};
use warpset_primitives::{select, sort};
use warpset_simt::EntryOf;

use crate::standard::gpu::standard_word::StandardWord;

/// A word that holds a fingerprint, for which there are the kernels of all kinds of slots.
pub trait FingerprintWord:
    sort::SortKey
    + select::Item
    + EntryOf<quotient_fingerprints<Self>>
    + EntryOf<quotient_equals<Self>>
    + EntryOf<quotient_count<Self>>
    + StandardWord
{
}

impl FingerprintWord for u32 {}
impl FingerprintWord for u64 {}

//! Lookups: one key ([`single`]), or many ([`bulk`]).
//!
//! Source: section 4.4.2 (fast queries). A lookup is bound by the latency of its chain: the code of a node says which
//! child comes next, and that says where its code is. So:
//! - Everything about a node that does not need its code is in one row of 32 bytes ([`node_rows`]), and the next positions are
//!   computed while the code is still being read.
//! - Both ends of a unary part come from one `pdep`, and rotations from the stored number, not from its remainder.
//! - Unary parts of the higher levels stand before all others of a bucket, so that the long way over the subtrees to the
//!   left is skipped once, not on each level.
//! - Levels have loops of their own, whose branches are easy to predict.
//!
//! Batches ([`batch_simd`], or [`batch_scalar`] without its vectors) take many lookups through each stage together.

mod batch_scalar;
#[cfg(target_arch = "x86_64")]
mod batch_simd;
mod bulk;
mod node_rows;
#[cfg(target_arch = "x86_64")]
mod node_rows_simd;
mod single;

use crate::elias_fano::Lists;
use crate::format::{self, Header};
use node_rows::{Levels, Row};
use std::sync::Arc;
use warpset_base::file::FileError;

pub(crate) use bulk::in_chunks;

/// What a function's header says, and the tables that follow from it.
#[derive(Clone)]
pub(crate) struct Parameters {
    pub(crate) header: Header,
    lists: Lists,
    /// First bit of the trees within the words.
    trees: u64,
    /// All values are below.
    values: u64,
    levels: Levels,
    /// Rows for up to the largest bucket.
    rows: Arc<[Row]>,
}

impl Parameters {
    /// Those of a function in these words, which are checked. What passes all checks may still be wrong, and then gives
    /// wrong numbers below the number of values, but does no harm.
    pub(crate) fn of(words: &[u64]) -> Result<Self, FileError> {
        format::parse(words).map(Self::trusted)
    }

    /// Those of a header that is known to be right.
    pub(crate) fn trusted(header: Header) -> Self {
        let lists = Lists::at(header.layout, format::HEADER_WORDS + header.tree_bits.div_ceil(64));
        let (levels, rows) = node_rows::rows(&header.shape, header.largest_bucket);
        let values = header.shape.base(header.keys, header.layout.buckets);
        Self { header, lists, trees: format::HEADER_WORDS * 64, values, levels, rows }
    }

    /// Number of keys.
    pub(crate) fn keys(&self) -> u64 {
        self.header.keys
    }

    /// All values are below.
    pub(crate) fn values(&self) -> u64 {
        self.values
    }

    /// Where the space goes.
    pub(crate) fn space(&self) -> crate::Space {
        crate::Space { trees: self.header.tree_bits, buckets: self.header.layout.words() * 64 }
    }
}

/// A function to look keys up in.
#[derive(Clone, Copy)]
pub(crate) struct Lookup<'a> {
    pub(crate) words: &'a [u64],
    pub(crate) parameters: &'a Parameters,
}

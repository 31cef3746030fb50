//! Lookups: one key ([`single`]), or many ([`bulk`]).
//!
//! How a lookup goes is in `warpset_core::recsplit::lookup`, which the device's kernels share.
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
use crate::windows::HostWords;
use node_rows::Row;
use std::sync::Arc;
use warpset_base::file::FileError;
use warpset_core::recsplit::lookup::{Function, Plan};

pub(crate) use bulk::in_chunks;

/// What a function's header says, and the tables that follow from it.
#[derive(Clone)]
pub(crate) struct Parameters {
    pub(crate) header: Header,
    lists: Lists,
    pub(crate) plan: Plan,
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
        let plan = Plan {
            keys: header.keys,
            values: header.shape.base(header.keys, header.layout.buckets),
            buckets: header.layout.buckets,
            trees: format::HEADER_WORDS * 64,
            lists: lists.places,
            rows: rows.len() as u32,
            leaf: header.shape.leaf(),
            positions: header.shape.positions(),
            levels,
        };
        Self { header, lists, plan, rows }
    }

    /// Number of keys.
    pub(crate) fn keys(&self) -> u64 {
        self.header.keys
    }

    /// All values are below.
    pub(crate) fn values(&self) -> u64 {
        self.plan.values
    }

    /// The rows of nodes, by number of keys.
    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
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

impl<'a> Function for Lookup<'a> {
    type Words = HostWords<'a>;
    type Row = &'a Row;

    #[inline(always)]
    fn words(&self) -> HostWords<'a> {
        HostWords(self.words)
    }
    #[inline(always)]
    fn plan(&self) -> &Plan {
        &self.parameters.plan
    }
    #[inline(always)]
    fn row(&self, keys: u32) -> &'a Row {
        &self.parameters.rows[keys as usize]
    }
}

//! Lookups of one key ([`single`]) or many ([`batch`]).
//!
//! The walk is that of `warpset_core::recsplit::lookup`, which the device's kernels share.
//!
//! Batches ([`batch_simd`], or [`batch_scalar`] without its vectors) take many lookups through each stage together.

mod batch;
mod batch_scalar;
#[cfg(target_arch = "x86_64")]
mod batch_simd;
mod node_rows;
#[cfg(target_arch = "x86_64")]
mod node_rows_simd;
mod single;

use super::RecSplitKind;
use crate::elias_fano::Lists;
use crate::format::{self, Header};
use crate::windows::HostWords;
use node_rows::Row;
use std::sync::Arc;
use warpset_core::recsplit::lookup::{Function, Plan};

/// A function to look keys up in.
pub(crate) type Lookup<'a> = crate::function::Lookup<'a, RecSplitKind>;
/// Fields of a function's header, and tables derived from them.
pub(crate) type Parameters = crate::function::Parameters<RecSplitKind>;

/// Plan of lookups, and the rows of the trees' nodes.
#[derive(Clone)]
pub struct Tables {
    pub(crate) plan: Plan,
    /// Rows for up to the largest bucket.
    rows: Arc<[Row]>,
}

impl Tables {
    pub(super) fn new(header: &Header<RecSplitKind>, lists: &Lists) -> Self {
        let shape = &header.code.shape;
        let (levels, rows) = node_rows::rows(shape, header.largest_bucket);
        let plan = Plan {
            keys: header.keys,
            values: shape.base(header.keys, header.layout.buckets),
            buckets: header.layout.buckets,
            trees: format::HEADER_WORDS * 64,
            lists: lists.places,
            rows: rows.len() as u32,
            leaf: shape.leaf(),
            positions: shape.positions(),
            levels,
        };
        Self { plan, rows }
    }

    /// Returns the rows of nodes, by number of keys.
    #[cfg(feature = "gpu")]
    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }
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
        &self.parameters.tables.plan
    }
    #[inline(always)]
    fn row(&self, keys: u32) -> &'a Row {
        &self.parameters.tables.rows[keys as usize]
    }
}

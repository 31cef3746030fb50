//! Queries for kernels of other crates.

pub use warpset_kernels::quotient::rank_select::device_query::RankSelectQuery;

use crate::RankSelect;
use crate::gpu::QuotientFilter;

impl QuotientFilter<RankSelect> {
    /// Returns the query that a kernel asks this filter with, beside its [`words`](QuotientFilter::words): see
    /// [`warpset_kernels::quotient::rank_select::device_query`], and the chapter on kernels of your own in the
    /// project's documentation.
    pub fn query(&self) -> RankSelectQuery {
        let layout = &self.layout;
        RankSelectQuery::new(layout.blocks, layout.split, layout.seed(), layout.is_counted(), layout.exact)
    }
}

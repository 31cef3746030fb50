//! Queries of a filter by kernels of other crates.

pub use warpset_kernels::bloom::device_query::{BlockedQuery, SplitBlockQuery};

use super::{BlockedBloom, SplitBlockBloom};

impl SplitBlockBloom {
    /// Returns the parameters of queries by a kernel, which reads the [`words`](SplitBlockBloom::words): see
    /// [`warpset_kernels::bloom::device_query`], and the chapter on kernels of your own in the project's documentation.
    pub fn query(&self) -> SplitBlockQuery {
        SplitBlockQuery::new(crate::Layout::blocks(&self.layout), self.layout.is_int32())
    }
}

impl BlockedBloom {
    /// Returns the parameters of queries by a kernel, which reads the [`words`](BlockedBloom::words): see
    /// [`warpset_kernels::bloom::device_query`], and the chapter on kernels of your own in the project's documentation.
    pub fn query(&self) -> BlockedQuery {
        BlockedQuery::new(crate::Layout::blocks(&self.layout), self.layout.shape(), self.layout.seed())
    }
}

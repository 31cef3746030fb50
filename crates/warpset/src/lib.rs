#![doc = include_str!("../README.md")]

pub use warpset_bloom as bloom;
#[cfg(feature = "cust")]
pub use warpset_cust as cust;
pub use warpset_gpu as gpu;
pub use warpset_lsm as lsm;
pub use warpset_primitives as primitives;
pub use warpset_quotient as quotient;
pub use warpset_recsplit as recsplit;

/// What most programs need: `use warpset::prelude::*;`
pub mod prelude {
    pub use crate::bloom::{BlockedBloom, Bytes, Filter, Hashed, Insert, RaoBloom, SplitBlockBloom, TestAndInsert};
    pub use crate::gpu::{Backend, Device, Devices};
    pub use crate::lsm::{Lsm, SortedArray};
    pub use crate::quotient::{Count, Duplicates, RankSelectQuotientFilter, Remove, StandardQuotientFilter};
    pub use crate::recsplit::{RecSplit, StaticFilter};
}

/// The examples of the guide are tests.
#[cfg(doctest)]
#[doc = include_str!("../guide.md")]
pub struct Guide;

#[cfg(doctest)]
pub mod promises;

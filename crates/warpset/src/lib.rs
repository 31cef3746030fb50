//! [docs/guide.md]: crate::guide
//! [docs/bloom.md]: crate::bloom
//! [docs/quotient.md]: crate::quotient
//! [docs/lsm.md]: crate::lsm
//! [docs/recsplit.md]: crate::recsplit
//! [docs/primitives.md]: crate::primitives
#![doc = include_str!("../README.md")]
// Links of the README name files of the repository; of two definitions of a link the first one counts.

pub use warpset_bloom as bloom;
#[cfg(feature = "cust")]
pub use warpset_cust as cust;
pub use warpset_gpu as gpu;
pub use warpset_lsm as lsm;
pub use warpset_primitives as primitives;
pub use warpset_quotient as quotient;
pub use warpset_recsplit as recsplit;

pub mod guide;

/// What most programs need: `use warpset::prelude::*;`
pub mod prelude {
    pub use crate::bloom::{BlockedBloom, Bytes, Filter, Hashed, Insert, RaoBloom, SplitBlockBloom, TestAndInsert};
    pub use crate::gpu::{Backend, Device, Devices};
    pub use crate::lsm::{Lsm, SortedArray};
    pub use crate::quotient::{Count, Duplicates, RankSelectQuotientFilter, Remove, StandardQuotientFilter};
    pub use crate::recsplit::{RecSplit, StaticFilter};
}

#[cfg(doctest)]
pub mod promises;

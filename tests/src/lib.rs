//! Bodies of the integration tests, generic over backends; `tests/` runs them on each.

pub mod bloom;
pub mod files;

/// Pages of the documentation that are compiled and run as tests, besides those that belong to `warpset`.
pub const PAGES: [&str; 6] =
    ["docs/bloom.md", "docs/consensus.md", "docs/lsm.md", "docs/placement.md", "docs/quotient.md", "docs/recsplit.md"];

/// The programs of these pages.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../docs/bloom.md")]
    struct Bloom;
    #[doc = include_str!("../../docs/consensus.md")]
    struct Consensus;
    #[doc = include_str!("../../docs/lsm.md")]
    struct Lsm;
    #[doc = include_str!("../../docs/placement.md")]
    struct Placement;
    #[doc = include_str!("../../docs/quotient.md")]
    struct Quotient;
    #[doc = include_str!("../../docs/recsplit.md")]
    struct RecSplit;
}

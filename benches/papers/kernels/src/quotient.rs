//! Kernels of builds and updates of quotient filters.
//!
//! Source: Geil, Farach-Colton, Owens, "Quotient Filters: Approximate Membership Queries on the GPU", IPDPS 2018.
//! `papers-quotient` puts the launches together.

pub mod builds;
pub mod regions;
pub mod superclusters;

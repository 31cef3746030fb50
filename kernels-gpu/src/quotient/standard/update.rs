//! Kernels that insert into and remove from standard quotient filters: in place for an ascending batch ([`in_place`]),
//! and by rewriting the filter ([`rebuild`], [`rebuild_relative`]).
//!
//! Source of the latter: Geil, Farach-Colton, Owens, "Quotient Filters: Approximate Membership Queries on the GPU",
//! IPDPS 2018, section IV-E (merging).

pub mod in_place;
pub mod rebuild;
pub mod rebuild_relative;

/// Threads of a block, in all kernels here but [`rebuild`]'s.
pub const BLOCK: u32 = 256;

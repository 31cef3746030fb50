//! The GPU LSM exactly as published: the yardstick of `warpset_lsm::Lsm`, which programs use.
//!
//! Source: Ashkiani, Li, Farach-Colton, Amenta, Owens, "GPU LSM: A Dynamic Dictionary Data Structure for the GPU",
//! IPDPS 2018, section III for the structure and IV for its operations. Implementations name their sections and steps.
//!
//! - A *key variable* is the original key, shifted by one, and the *status bit*: one word, so original keys have 31 or
//!   63 bits.
//! - Batches have exactly `b` elements; shorter ones are padded with copies of their last element. Level `i` holds `2^i
//!   b` elements or none: the full levels are the set bits of the number of batches. All are in one array.
//! - A batch is sorted by key variables, so that tombstones (status 0) come first, and merged with one full level after
//!   the other by original keys.
//! - Lookups go by the individual approach or by the bulk approach ([`LookupMethod`]); count and range have five steps;
//!   a cleanup pads with *placebos* and cuts the rest into levels again.
//!
//! The algorithms are written once, over steps of the host and of devices: sorts, merges, scans, searches and
//! compactions are those of `warpset-primitives` on devices, and of `primitives` on the host.
//!
//! Departures from the text:
//! - The array grows by a level when all are full; the paper allocates it once. That copies nothing, because all levels
//!   are merged then.
//! - The paper lets any of several insertions of a key in one batch count. Here the last one counts, because batches
//!   are packed from their end; so answers are those of `warpset_lsm::Lsm`.
//! - Figure 3 empties a level as soon as it is merged, and names the level before the buffer as operands of the merge.
//!   Here levels are emptied once the new one is written, so that a failure changes nothing; and newer elements come
//!   first, as section IV-A says.
//! - Figure 2 counts `u - l + 1` candidates; `u`, the first index with `k > k2`, makes that `u - l`.
//! - Marks of valid elements are not written over the status bits that the marking of neighbours reads, but to another
//!   array: for a range to the input of the sort, for a cleanup to a bitmap.
//!
//! A cleanup's placebos are tombstones of the largest key. That key can be used nevertheless: its element precedes them
//! in the same level.

mod builder;
mod cpu;
mod element;
mod error;
pub mod gpu;
mod host;
mod invariants;
mod primitives;
mod query;
mod steps;
mod tree;

pub use builder::{Builder, DeviceBuilder};
pub use cpu::Lsm;
pub use element::{PackedKey, PairValue};
pub use error::Error;
pub use query::LookupMethod;

#[cfg(test)]
mod tests;

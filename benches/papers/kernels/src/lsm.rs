//! Kernels of the GPU LSM as published: the steps between its primitives (sort, merge, scan, search, segmented sort,
//! compaction).
//!
//! Source: Ashkiani, Li, Farach-Colton, Amenta, Owens, "GPU LSM: A Dynamic Dictionary Data Structure for the GPU",
//! IPDPS 2018, section IV. `papers-lsm` puts the steps together and lists the departures.

pub mod layout;
pub mod lookup;
pub mod ranges;
pub mod updates;

/// Threads per block, in every kernel here.
pub const BLOCK: u32 = 256;

//! RecSplit minimal perfect hashing: the arithmetic that every backend shares.
//!
//! Sources: Esposito, Mueller Graf, Vigna, "RecSplit: Minimal Perfect Hashing via Recursive Splitting", ALENEX 2020;
//! D. Bez, "Perfect Hash Function Generation on the GPU with RecSplit", master's thesis, KIT 2022 (section numbers in
//! these modules are the thesis's).
//!
//! - [`hash`]: bucket of a key, trial hashes, child and leaf position of a hash value.
//! - [`shape`]: the splitting tree as a function of the number of keys, rotation groups, Golomb parameters.
//! - [`place`]: position of a node's code, from the index of its number.
//! - [`elias_fano`]: bits that a list keeps verbatim, and the line that tree positions are relative to.
//! - [`fingerprint`]: bits of a key in a static filter.
//! - [`lookup`]: from a key's hash to its number.
//! - [`candidate`]: the trial hash and the rotations that a stored number encodes.
//!
//! Each module opens with its departures from the thesis, and their reasons.

#[cfg(feature = "recsplit")]
pub mod candidate;
#[cfg(any(feature = "recsplit", feature = "range"))]
pub mod elias_fano;
#[cfg(feature = "recsplit")]
pub mod fingerprint;
pub mod hash;
#[cfg(feature = "recsplit")]
pub mod lookup;
#[cfg(feature = "recsplit")]
pub mod place;
#[cfg(feature = "recsplit")]
pub mod shape;

pub use hash::{Hash128, Remix};
#[cfg(feature = "recsplit")]
pub use shape::{Level, Method, Node, TreeShape};

//! RecSplit minimal perfect hashing: the arithmetic that every backend shares.
//!
//! Sources: Esposito, Mueller Graf, Vigna, "RecSplit: Minimal Perfect Hashing via Recursive Splitting", ALENEX 2020;
//! D. Bez, "Perfect Hash Function Generation on the GPU with RecSplit", master's thesis, KIT 2022 (section numbers in
//! these modules are the thesis's).
//!
//! - [`hash`]: bucket of a key, trial hashes, child and leaf position of a hash value.
//! - [`shape`]: the splitting tree as a function of the number of keys, rotation groups, Golomb parameters.
//! - [`elias_fano`]: how many bits a list keeps verbatim.
//!
//! Departures from the thesis, each with its reason, stand at the head of the module that they touch.

pub mod elias_fano;
pub mod hash;
pub mod shape;

pub use hash::{Hash128, Remix};
pub use shape::{Level, Method, Node, TreeShape};

//! Binary fuse filters: hashes, graphs and shards, one copy for every backend.
//!
//! Every key has three or four slots, in neighbouring segments of an array of fingerprints; it is in the filter if
//! their exclusive or is the key's own fingerprint. Source: Graf, Lemire, "Binary Fuse Filters: Fast and Smaller Than
//! Xor Filters", ACM Journal of Experimental Algorithmics 27, 2022. Hash, positions and fingerprint of the three-wise
//! filter are those of the authors' published arrays, bit for bit; the third offset of the four-wise one is ours, as
//! it has no published array.
//!
//! A filter is built by peeling: a slot with one remaining key takes that key, which leaves its other slots. Peeling
//! runs in rounds, and a key with several such slots at the start of a round takes the first of them. So the bytes
//! follow from the set of keys, and not from the order in which threads find them.
//!
//! | module | holds |
//! | --- | --- |
//! | [`graph`] | the slots of a key |
//! | [`hash`] | its hash under the seeds of a filter and of a shard, and its fingerprint |
//! | [`value`] | contents of slots that have values |
//! | [`cell`] | what a slot says of its remaining keys while a graph is peeled on a device |

pub mod cell;
pub mod graph;
pub mod hash;
pub mod value;

pub use graph::Graph;

/// Most slots of a shard: its state fits in the shared memory of a thread block.
pub const SHARD_SLOTS: u32 = 1 << 14;
/// Rounds after which a shard is abandoned under one seed: about three times the most that were measured.
pub const SHARD_ROUNDS: u32 = 1 << 10;
/// Seeds of a shard: the values of a byte.
pub const SHARD_SEEDS: u32 = 1 << 8;

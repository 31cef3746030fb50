//! Minimal perfect hashing with Consensus: the arithmetic that every backend shares.
//!
//! Source: Lehmann, Sanders, Walzer, Ziegler, "Combined Search and Encoding for Seeds, with an Application to Minimal
//! Perfect Hashing", ESA 2025 (arXiv 2502.05613).
//!
//! The keys of a bucket are split in halves, level by level, until at most [`tree::LEAF`] are left, which get their
//! positions from one more hash: each splitting and each leaf is a *task*, which needs a *seed* that solves it. All
//! tasks of a bucket, in the order of levels, share one string of bits. Each adds as many bits as its own share, a
//! fixed number that may be fractional, and its seed is the last 32 bits of the string so far. So a task that has no
//! solution among its own bits gets others from the task before, and the string is hardly longer than the entropy of
//! all tasks together.
//!
//! - [`hash`]: seeds, and what they make of a key.
//! - [`tree`]: the nodes of a bucket's tree and where their bits end, all by arithmetic.
//! - [`lookup`]: from a key's hash to its number.
//!
//! Departures from the paper:
//! - Splittings are of any number of keys, halves that differ by one with a threshold that is as uneven, so that
//!   buckets need not have a power of two of keys, and no function above them spreads keys evenly.
//! - Leaves of up to five keys instead of two: a third of the tasks, which leaves each three times the bits to spare.
//! - Bits to spare go to tasks by what their search costs, not evenly.
//! - Level by level, not in preorder: the expensive tasks stand together at the beginning, so that the search goes
//!   back through them rarely, and positions of bits follow from two sizes per level.
//! - A bucket begins with a number of its own in a few bits, and depends on no other bucket.

pub mod hash;
pub mod lookup;
pub mod tree;

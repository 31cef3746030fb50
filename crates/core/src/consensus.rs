//! Minimal perfect hashing with Consensus: the arithmetic that every backend shares.
//!
//! Source: Lehmann, Sanders, Walzer, Ziegler, "Combined Search and Encoding for Seeds, with an Application to Minimal
//! Perfect Hashing", ESA 2025 (arXiv 2502.05613).
//!
//! **Problem.** A minimal perfect hash function for the keys of a bucket is a tree of *tasks*: each splitting in
//! halves, and each leaf of at most [`tree::LEAF`] keys, needs a *seed* that solves it. Storing each seed by itself
//! wastes space: a task that a random seed solves with probability `p` carries `log2(1/p)` bits of information, but the
//! first seed that solves it has an entropy of about 1.44 bits more.
//!
//! **Idea.** All tasks of a bucket, in the order of levels, share one string of bits. Task `i` adds its own fixed share
//! of `b_i` bits, which may be fractional, and its seed is the last 32 bits of the string so far:
//!
//! ```text
//! bits of  | root | task 0 | task 1 | task 2 | …
//! seed of task 0  [=======]
//! seed of task 1      [===========]      ends with the bits of task 1, begins in those of the tasks before
//! ```
//!
//! The search tries the `2^b_i` values of a task's own bits. If none solves the task, it goes back, takes the next
//! solution of the task before, which changes the seeds of all later tasks, and goes on. It is a depth-first search.
//!
//! **Bound.** With `b_i = log2(1/p_i) + ε`, an expected `2^ε > 1` solutions per task keep the search alive. The string
//! **Bound.** With `b_i = log2(1/p_i) + ε`, an expected `2^ε > 1` solutions per task keep the search alive. The string
//! is longer than the entropy of all tasks only by the shares `ε`, and the expected work per task is proportional to
//! `1/ε`. Lookups compute every `b_i`: shares follow from numbers of keys alone.
//! - [`hash`]: seeds, and what they make of a key.
//!
//! - [`hash`]: seeds, and the hashes of keys under them.
//! - [`lookup`]: from a key's hash to its number.
//!
//! Departures from the paper:
//! - Splittings are of any number of keys; halves that differ by one have an equally uneven threshold. So buckets need
//!   not have a power of two of keys, and no function above them has to spread keys evenly.
//! - Leaves have up to five keys instead of two: a third of the tasks, so each has three times the bits to spare.
//! - Bits to spare are assigned by the cost of a task's search, not evenly.
//! - Tasks are ordered level by level, not in preorder. The expensive tasks are together at the beginning, so the
//!   search rarely goes back through them, and positions of bits follow from two sizes per level.
//! - A bucket begins with a number of its own in a few bits, and is independent of all other buckets.

pub mod hash;
pub mod lookup;
pub mod tree;

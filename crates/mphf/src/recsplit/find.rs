//! Search for the numbers of trees, nearly all of the work of a build.
//!
//! A finder takes the keys of consecutive buckets and writes the number of every node of their trees to a flat array;
//! [`super::encode`] makes bits of the numbers afterwards. Each number is the *smallest* that solves its node, so all
//! finders, also those of devices, give the same function.
//!
//! **Order of numbers.** Bucket after bucket; within a bucket in preorder: the number of a node, then all numbers of
//! its first child's subtree, then of its second child's, and so on. Nodes that store nothing have no number. The
//! subtree of `k` keys therefore has `nodes[k].nodes` consecutive numbers, and the numbers of child `c` begin `1 + c *
//! nodes[unit].nodes` after that of its parent. So a finder may also go level by level, from lists of nodes, and write
//! each number to its place.
//!
//! Files: [`cpu`] is the finder for CPUs; [`walk`] goes from node to node; [`node`] defines the problem of one node;
//! [`one_by_one`], [`simd_leaf`] and [`simd_splitting`] search it.

pub(crate) mod cpu;
mod node;
mod one_by_one;
mod portable;
mod rotation_match;
mod simd_hash;
mod simd_leaf;
mod simd_splitting;
pub(super) mod walk;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(crate) use crate::kind::{Buckets, SearchFailure};

use std::sync::Arc;
use warpset_core::recsplit::{Node, Remix, TreeShape};

/// Properties that all trees of a function share.
#[derive(Clone)]
pub(crate) struct Trees {
    pub shape: TreeShape,
    pub remix: Remix,
    /// Nodes by number of keys, up to that of the largest bucket.
    nodes: Arc<[Node]>,
    len: usize,
    /// Trials after which a search gives up, by number of keys.
    pub budgets: Vec<u64>,
    /// Expected hashes of the whole subtree, by number of keys.
    pub works: Vec<f64>,
}

impl Trees {
    /// Makes the properties of trees of at most `largest` keys.
    pub(crate) fn new(shape: TreeShape, remix: Remix, largest: u32) -> Self {
        let (nodes, len) = (super::shape_tables::nodes(&shape, largest), largest as usize + 1);
        let (budgets, works) = (budgets(&shape, &nodes[..len]), works(&shape, &nodes[..len]));
        Self { shape, remix, nodes, len, budgets, works }
    }

    /// Returns the nodes by number of keys, up to that of the largest bucket.
    #[inline]
    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes[..self.len]
    }

    /// Counts the numbers of buckets with these bounds; fails with the first bucket that is too large.
    pub(crate) fn count(&self, bounds: &[u32]) -> Result<usize, SearchFailure> {
        let nodes = self.nodes();
        let of = |(bucket, bounds): (usize, &[u32])| match nodes.get((bounds[1] - bounds[0]) as usize) {
            Some(node) => Ok(usize::from(node.nodes)),
            None => Err(SearchFailure { bucket }),
        };
        bounds.windows(2).enumerate().map(of).sum()
    }
}

/// Instructions that search for numbers. All choices give the same function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Simd {
    /// The fastest of the others on this CPU.
    #[default]
    Auto,
    /// One trial at a time, without vectors.
    Sequential,
    /// Portable vectors of eight trials (crate `wide`).
    Portable,
    /// AVX2; falls back to `Portable` without it.
    Avx2,
    /// AVX-512 with population count; falls back to `Avx2` without it.
    Avx512,
}

/// Computes [`Trees::works`].
fn works(shape: &TreeShape, nodes: &[Node]) -> Vec<f64> {
    let mut works: Vec<f64> = Vec::with_capacity(nodes.len());
    for (keys, node) in nodes.iter().enumerate() {
        let trials = if keys > 1 { shape.expected_candidates(keys as u32) / f64::from(node.candidates) } else { 0.0 };
        let full = usize::from(node.fanout).saturating_sub(1);
        let last = works.get(keys - full * usize::from(node.unit)).copied().unwrap_or(0.0);
        let units = works.get(usize::from(node.unit)).map_or(0.0, |unit| unit * full as f64);
        works.push(trials * keys as f64 + units + last);
    }
    works
}

/// Computes [`Trees::budgets`]. A search exceeds them with probability e^-64, unless the keys have equal hashes. They
/// are multiples of every vector's length.
fn budgets(shape: &TreeShape, nodes: &[Node]) -> Vec<u64> {
    let budget = |(keys, node): (usize, &Node)| {
        ((shape.expected_candidates(keys as u32) / f64::from(node.candidates)) as u64 + 64) * 64
    };
    nodes.iter().enumerate().map(budget).collect()
}

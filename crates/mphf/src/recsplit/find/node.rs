//! Search problem of one node.

use warpset_core::recsplit::hash;
use warpset_core::recsplit::{Node, Remix};

/// Failure of a node within its budget of trials: two of its keys have equal hashes, or, far less likely than a
/// hardware fault, no trial solved it. Either way the keys are compared or hashed with another seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoSolution;

/// One node to solve.
#[derive(Clone, Copy)]
pub(super) struct Task<'a> {
    /// Low halves of the keys, in the order of their lowest byte for a splitting with `node.groups > 1`.
    pub keys: &'a [u64],
    pub node: &'a Node,
    /// Positions of a leaf; one per key in a minimal function.
    pub positions: u32,
    /// Start seed of the node's level.
    pub start: u32,
    pub remix: Remix,
    /// Trials after which the search gives up.
    pub budget: u64,
}

impl Task<'_> {
    /// Returns the bounds of a splitting's rotation groups within the keys.
    pub(super) fn group_bounds(&self) -> [usize; 8] {
        let groups = u32::from(self.node.groups);
        let mut bounds = [self.keys.len(); 8];
        bounds[0] = 0;
        if groups > 1 {
            for group in 1..groups {
                bounds[group as usize] = self.keys.partition_point(|&key| hash::group_of(key, groups) < group);
            }
        }
        bounds
    }
}

/// Search method for nodes. All of them find the same numbers.
pub(super) trait NodeSearch: Copy + Send + Sync {
    /// Finds the smallest number that makes a bijection of the leaf's keys.
    fn leaf(self, task: &Task) -> Result<u64, NoSolution>;
    /// Finds the smallest number that splits the keys according to the shape.
    fn splitting(self, task: &Task) -> Result<u64, NoSolution>;
}

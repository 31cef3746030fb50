//! One node: what is searched for, and what a number means.

use warpset_core::recsplit::hash::{self, LEVEL_FIRST, LEVEL_LEAF, LEVEL_SECOND};
use warpset_core::recsplit::{Level, Node, Remix, TreeShape};

/// A node has no solution within its budget of trials: two of its keys have the same hash, or, far less likely than any
/// hardware fault, the trial hashes are against us. Either way the keys are looked at or hashed with another seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoSolution;

/// One node to solve.
#[derive(Clone, Copy)]
pub(super) struct Task<'a> {
    /// Low halves of the keys, in the order of their lowest byte for a splitting with `node.groups > 1`.
    pub keys: &'a [u64],
    pub node: &'a Node,
    /// Positions of a leaf; as many as keys unless the function is not minimal.
    pub positions: u32,
    /// Start seed of the node's level.
    pub start: u32,
    pub remix: Remix,
    /// Trials after which the search gives up.
    pub budget: u64,
}

impl Task<'_> {
    /// Bounds of a splitting's rotation groups within the keys.
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

/// The trial hash and the rotation of each group that a stored number stands for.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    pub trial: u64,
    index: u32,
}

impl Candidate {
    #[inline(always)]
    pub(super) fn of(number: u64, node: &Node) -> Self {
        if node.groups == 1 {
            return Self { trial: number, index: 0 };
        }
        let trial = hash::trial_of(number, u32::from(node.radix), u32::from(node.groups));
        Self { trial, index: number.wrapping_sub(trial.wrapping_mul(u64::from(node.candidates))) as u32 }
    }

    /// Rotation of `group`: a digit of the index.
    #[inline(always)]
    pub(super) fn rotation(&self, group: u32, radix: u32) -> u32 {
        hash::rotation_of(self.index, radix, group)
    }
}

/// The child that `number` sends a key to.
#[inline]
pub(super) fn child(low: u64, node: &Node, start: u32, remix: Remix, number: u64) -> u32 {
    let candidate = Candidate::of(number, node);
    let hash = hash::trial_hash(remix, low, start, candidate.trial);
    let radix = u32::from(node.radix);
    let rotation = candidate.rotation(hash::group_of(low, u32::from(node.groups)), radix);
    child_of_hash(hash, node, rotation)
}

/// The child that a trial hash picks under a rotation.
#[inline]
pub(super) fn child_of_hash(hash: u32, node: &Node, rotation: u32) -> u32 {
    if node.fanout == 2 {
        // Mirroring complements the hash.
        u32::from(hash ^ 0_u32.wrapping_sub(rotation) >= node.scale)
    } else {
        let child = hash::child_of(hash, node.scale);
        let radix = u32::from(node.radix);
        if rotation == 0 || child >= radix {
            return child;
        }
        let turned = child + rotation;
        if turned >= radix { turned - radix } else { turned }
    }
}

/// The start seed of a node: `depth` counts the higher levels from the root.
#[inline]
pub(super) fn start_of(shape: &TreeShape, keys: u32, depth: u32) -> u32 {
    hash::start_seed(match shape.level(keys) {
        Level::Leaf => LEVEL_LEAF,
        Level::First => LEVEL_FIRST,
        Level::Second => LEVEL_SECOND,
        Level::Higher => hash::LEVEL_ROOT + depth,
    })
}

/// A way to search nodes. All of them find the same numbers.
pub(super) trait NodeSearch: Copy + Send + Sync {
    /// The smallest number that makes a bijection of the leaf's keys.
    fn leaf(self, task: &Task) -> Result<u64, NoSolution>;
    /// The smallest number that splits the keys as the shape says.
    fn splitting(self, task: &Task) -> Result<u64, NoSolution>;
}

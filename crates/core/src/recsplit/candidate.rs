//! Meaning of a stored number: a trial hash, and a rotation per group.
//!
//! Source: sections 5.5 (rotation of one group of a leaf) and 5.2 (start seeds). Rotations of several groups, and of
//! splittings, are described in `docs/recsplit.md`.

use super::hash::{self, LEVEL_FIRST, LEVEL_LEAF, LEVEL_ROOT, LEVEL_SECOND};
use super::{Level, Node, Remix, TreeShape};

/// The trial hash and the rotation of each group that a stored number encodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Trial hash.
    pub trial: u64,
    index: u32,
}

impl Candidate {
    /// Splits a node's stored number into trial and rotations.
    #[inline(always)]
    pub fn of(number: u64, node: &Node) -> Self {
        if node.groups == 1 {
            return Self { trial: number, index: 0 };
        }
        let trial = hash::trial_of(number, u32::from(node.radix), u32::from(node.groups));
        Self { trial, index: number.wrapping_sub(trial.wrapping_mul(u64::from(node.candidates))) as u32 }
    }

    /// Returns the rotation of `group`, a digit of the index.
    #[inline(always)]
    pub fn rotation(&self, group: u32, radix: u32) -> u32 {
        hash::rotation_of(self.index, radix, group)
    }

    /// Returns the child of a splitting that a key goes to.
    #[inline(always)]
    pub fn child(&self, low: u64, node: &Node, start: u32, remix: Remix) -> u32 {
        let hash = hash::trial_hash(remix, low, start, self.trial);
        child_of_hash(hash, node, self.rotation(hash::group_of(low, u32::from(node.groups)), u32::from(node.radix)))
    }
}

/// Returns the child that a trial hash picks under a rotation.
#[inline(always)]
pub fn child_of_hash(hash: u32, node: &Node, rotation: u32) -> u32 {
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

/// Returns the start seed of a node of `keys` keys; `depth` counts the nodes of the higher levels above it.
#[inline]
pub fn start_of(shape: &TreeShape, keys: u32, depth: u32) -> u32 {
    hash::start_seed(match shape.level(keys) {
        Level::Leaf => LEVEL_LEAF,
        Level::First => LEVEL_FIRST,
        Level::Second => LEVEL_SECOND,
        Level::Higher => LEVEL_ROOT + depth,
    })
}

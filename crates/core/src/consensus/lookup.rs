//! Lookups: from a key's hash to its number, one copy for hosts and devices.

use super::hash::{SEED_BITS, leaf_position, multiplier, task_hash};
use super::tree::{FRACTION, Node, Row, depth};
use crate::bits::Select;
use crate::recsplit::hash::{Hash128, bucket_of};
use crate::recsplit::lookup::Words;
use crate::recsplit::lookup::lists::{Entry, Lists};

/// First level on which all seeds have their full length: 31 tasks precede it, with more than a bit each.
pub const FULL_SEEDS: u32 = 5;

/// Fields of a function's header, as lookups need them.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Plan {
    /// Keys.
    pub keys: u64,
    /// Buckets.
    pub buckets: u64,
    /// First bit of the codes within the words.
    pub codes: u64,
    /// Positions of the buckets' keys and codes.
    pub lists: Lists,
    /// Rows of splittings, one per number of keys from 0 on. Those of leaves follow.
    pub rows: u32,
    /// Bits of the number at the beginning of a bucket.
    pub root_bits: u32,
}

/// A lookup on its way down a tree.
#[derive(Clone, Copy, Debug, Default)]
pub struct Walk {
    /// The low half of the key's hash.
    pub low: u64,
    /// Keys in the buckets before.
    pub keys_before: u64,
    /// First bit of the bucket's code within the words.
    pub start: u64,
    /// Keys of the bucket.
    pub keys: u32,
    /// Position of the level's first bit, in parts of a bit.
    pub base: u32,
    /// The node's index on its level.
    pub index: u32,
}

/// A function to look keys up in.
pub trait Function: Copy {
    /// Reader of the words.
    type Words: Words;

    /// Returns the words.
    fn words(&self) -> Self::Words;
    /// Returns the fields of the header.
    fn plan(&self) -> &Plan;
    /// Returns the row at this place: splittings by the smaller number of keys, then leaves.
    fn row(&self, place: u32) -> Row;

    /// Returns a walk at the root of a bucket's tree.
    #[inline(always)]
    fn enter(&self, entry: Entry, low: u64) -> Walk {
        let plan = self.plan();
        // Only damaged words have a bucket that is larger than the largest.
        let keys = if entry.keys < u64::from(plan.rows) { entry.keys as u32 } else { 0 };
        let start = plan.codes.wrapping_add(entry.bits_before);
        Walk { low, keys_before: entry.keys_before, start, keys, base: plan.root_bits << FRACTION, index: 0 }
    }

    /// Returns the number of the walk's key, with this hash at its leaf.
    #[inline(always)]
    fn number(&self, walk: &Walk, leaf: Node, hash: u32) -> u64 {
        let position = leaf.begin + leaf_position(hash, leaf.keys());
        // Only damaged words that pass the checks make it too large.
        walk.keys_before.wrapping_add(position.into()).min(self.plan().keys - 1)
    }

    /// Goes down by a splitting.
    #[inline(always)]
    fn split(&self, walk: &mut Walk, level: u32) {
        let row = self.row(walk.keys >> level);
        let node = Node::new(walk.keys, level, walk.index);
        let multiplier = self.multiplier_of(walk, &row, level, walk.index, node.end);
        walk.index = 2 * walk.index + u32::from(task_hash(walk.low, multiplier) >= node.threshold(&row));
        walk.base = walk.base.wrapping_add(row.all(level, walk.keys));
    }

    /// Ends a walk at its leaf, and returns the key's number.
    #[inline(always)]
    fn finish(&self, walk: &Walk, level: u32) -> u64 {
        let row = self.row(self.plan().rows + (walk.keys >> level));
        let node = Node::new(walk.keys, level, walk.index);
        self.number(walk, node, task_hash(walk.low, self.multiplier_of(walk, &row, level, walk.index, node.end)))
    }

    /// Returns the row of `level`; `depth` is the level of the leaves.
    #[inline(always)]
    fn row_of(&self, keys: u32, level: u32, depth: u32) -> Row {
        let leaves = if level == depth { self.plan().rows } else { 0 };
        self.row(leaves + (keys >> level))
    }

    /// Returns the multiplier of a node, for the seed that ends with the node's bits.
    #[inline(always)]
    fn multiplier_of(&self, walk: &Walk, row: &Row, level: u32, index: u32, keys_before_end: u32) -> u32 {
        let end = walk.base.wrapping_add(row.end(index, keys_before_end)) >> FRACTION;
        let bits =
            self.words().bits_from(walk.start.wrapping_add(u64::from(end)).wrapping_sub(SEED_BITS.into())) as u32;
        if level >= FULL_SEEDS {
            return multiplier(bits, level);
        }
        // Masks the bits before the bucket's code, which are not part of its seeds.
        let missing = SEED_BITS.saturating_sub(end);
        multiplier(((u64::from(bits) >> missing) << missing) as u32, level)
    }

    /// Returns the value of the key with this hash under the function's seed, below the number of keys; 0 if there are
    /// none.
    ///
    /// The end of a node's bits follows from its index. So the seeds of both children are loaded while the hash that
    /// decides between them is still being computed: the loads of two levels overlap.
    #[inline(always)]
    fn value_of(&self, hash: Hash128, select: impl Select) -> u64 {
        let plan = self.plan();
        if plan.keys == 0 {
            return 0;
        }
        let words = self.words();
        let bucket = bucket_of(hash.high, plan.buckets);
        let jump = plan.lists.jump_to(words, bucket);
        let mut walk = self.enter(plan.lists.get(words, bucket, jump, select), hash.low);
        let (keys, depth) = (walk.keys, depth(walk.keys));
        let mut row = self.row_of(keys, 0, depth);
        let mut node = Node::new(keys, 0, 0);
        let mut multiplier = self.multiplier_of(&walk, &row, 0, 0, keys);
        for level in 0..depth {
            let right = u32::from(task_hash(walk.low, multiplier) >= node.threshold(&row));
            walk.base = walk.base.wrapping_add(row.all(level, keys));
            row = self.row_of(keys, level + 1, depth);
            let index = 2 * walk.index;
            let left_multiplier = self.multiplier_of(&walk, &row, level + 1, index, node.middle);
            let right_multiplier = self.multiplier_of(&walk, &row, level + 1, index + 1, node.end);
            // No branch, since it would be unpredictable.
            let either = |left: u32, of_right: u32| left ^ ((left ^ of_right) & 0_u32.wrapping_sub(right));
            multiplier = either(left_multiplier, right_multiplier);
            walk.index = index + right;
            node = Node {
                begin: either(node.begin, node.middle),
                middle: ((2 * walk.index + 1) * keys) >> (level + 2),
                end: either(node.middle, node.end),
            };
        }
        self.number(&walk, node, task_hash(walk.low, multiplier))
    }
}

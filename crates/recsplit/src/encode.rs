//! Encoding trees: the numbers of their nodes become Golomb-Rice codes.
//!
//! Source: section 4.4 (fixed and unary parts apart, in preorder). Departure: the unary parts of a bucket's higher levels
//! stand before all of its other unary parts, so that a lookup has the long way over whole subtrees once (`query.rs`).
//!
//! ```text
//! a bucket: fixed parts of all nodes, unary parts of the higher levels, unary parts of the other levels
//! ```

use crate::bit_vec::BitVec;
use crate::elias_fano::Least;
use crate::find::Trees;
use warpset_core::recsplit::Node;

/// What a bucket has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bucket {
    pub keys: u32,
    /// Bits of its tree.
    pub bits: u32,
}

/// Encoded trees of consecutive buckets.
#[derive(Default)]
pub(crate) struct Part {
    /// Number of buckets.
    pub buckets: usize,
    /// Keys in all buckets, and in the largest.
    pub keys: u64,
    pub largest: u32,
    /// The trees, one after the other.
    pub bits: BitVec,
}

/// Encodes parts, one after the other.
#[derive(Default)]
pub(crate) struct Encoder {
    /// Unary parts of a tree's higher levels, and of its other levels.
    higher: BitVec,
    unary: BitVec,
    /// Of all buckets so far.
    pub least: Least,
}

/// A tree on its way from numbers to codes.
struct Codes<'a> {
    nodes: &'a [Node],
    /// Nodes of more keys are of the higher levels.
    second_unit: u32,
    numbers: std::slice::Iter<'a, u64>,
    fixed: &'a mut BitVec,
    higher: &'a mut BitVec,
    unary: &'a mut BitVec,
}

impl Encoder {
    /// Encodes the trees of consecutive buckets, whose keys begin and end at `bounds`, from their `numbers` in the order
    /// that [`crate::find`] describes. Says in `found` what each bucket has.
    pub(crate) fn encode(&mut self, trees: &Trees, bounds: &[u32], numbers: &[u64], found: &mut [Bucket]) -> Part {
        let mut bits = BitVec::default();
        let (mut begin, mut largest) = (0, 0);
        let mut codes = Codes {
            nodes: trees.nodes(),
            second_unit: trees.shape.second_unit(),
            numbers: numbers.iter(),
            fixed: &mut bits,
            higher: &mut self.higher,
            unary: &mut self.unary,
        };
        for (bounds, bucket) in bounds.windows(2).zip(&mut *found) {
            let keys = bounds[1] - bounds[0];
            codes.tree(keys);
            let end = codes.fixed.len();
            *bucket = Bucket { keys, bits: (end - begin) as u32 };
            self.least.see(keys as usize, end - begin);
            largest = largest.max(keys);
            begin = end;
        }
        let keys = bounds.last().map_or(0, |&keys| keys.into());
        Part { buckets: found.len(), keys, largest, bits }
    }
}

impl Codes<'_> {
    /// A bucket's whole tree.
    #[inline]
    fn tree(&mut self, keys: u32) {
        let node = &self.nodes[keys as usize];
        if node.nodes <= 1 {
            // A single code has its parts beside each other.
            if node.nodes == 1 {
                let number = self.next();
                self.fixed.push(number, node.golomb.into());
                self.fixed.push_unary(number >> node.golomb);
            }
            return;
        }
        self.unary.clear();
        self.higher.clear();
        self.subtree(keys);
        if keys > self.second_unit {
            self.fixed.append(self.higher);
        }
        self.fixed.append(self.unary);
    }

    fn subtree(&mut self, keys: u32) {
        let (nodes, is_higher) = (self.nodes, keys > self.second_unit);
        let node = &nodes[keys as usize];
        if node.fanout == 0 {
            return self.leaf(node);
        }
        self.code(node, is_higher);
        let (full, unit) = (u32::from(node.fanout) - 1, u32::from(node.unit));
        let (child, rest) = (&nodes[unit as usize], keys - full * unit);
        if child.fanout == 0 {
            (0..full).for_each(|_| self.leaf(child));
            self.leaf(&nodes[rest as usize]);
        } else {
            (0..full).for_each(|_| self.subtree(unit));
            self.subtree(rest);
        }
    }

    #[inline(always)]
    fn leaf(&mut self, node: &Node) {
        if node.nodes > 0 {
            self.code(node, false);
        }
    }

    /// The code of one node.
    #[inline(always)]
    fn code(&mut self, node: &Node, is_higher: bool) {
        let number = self.next();
        self.fixed.push(number, node.golomb.into());
        let unary = if is_higher { &mut *self.higher } else { &mut *self.unary };
        unary.push_unary(number >> node.golomb);
    }

    #[inline(always)]
    fn next(&mut self) -> u64 {
        self.numbers.next().copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpset_core::bits::field;
    use warpset_core::recsplit::{Method, Remix, TreeShape};

    #[test]
    fn parts_stand_where_lookups_expect_them() {
        // Leaves of 2 keys, 2 and 2 children: a node of the higher levels above two of the second level.
        let shape = TreeShape::new(2, 2, 2, Method::BruteForce).unwrap();
        let trees = Trees::new(shape, Remix::Bits32, 16);
        let bounds = [0, 1, 3, 19];
        let count = trees.count(&bounds).unwrap();
        let golomb = |keys: usize| u32::from(trees.nodes()[keys].golomb);
        // One leaf in the second bucket; in the third 1 + 2 * (1 + 2 * (1 + 2)) nodes. Unary parts of 0, 1, 2, …
        assert_eq!(count, 1 + 15);
        let preorder = [2, 16, 8, 4, 2, 2, 4, 2, 2, 8, 4, 2, 2, 4, 2, 2];
        let numbers: Vec<u64> = (0..).zip(preorder).map(|(unary, keys)| unary << golomb(keys) | (unary & 1)).collect();
        let mut found = [Bucket::default(); 3];
        let part = Encoder::default().encode(&trees, &bounds, &numbers, &mut found);
        assert_eq!((part.buckets, part.keys, part.largest), (3, 19, 16));
        assert_eq!(part.bits.len(), found.iter().map(|bucket| u64::from(bucket.bits)).sum::<u64>());
        assert_eq!(found.map(|bucket| bucket.keys), [1, 2, 16]);
        assert_eq!((found[0].bits, found[1].bits), (0, golomb(2) + 1));
        let words: Vec<u64> = part.bits.words().chain([0]).collect();
        let mut at = u64::from(found[1].bits);
        for (unary, &keys) in (1..16).zip(&preorder[1..]) {
            let width = golomb(keys);
            let fixed = unary << width | (unary & 1);
            assert_eq!(field(&words, at, width), fixed & ((1 << width) - 1), "{unary}");
            at += u64::from(width);
        }
        for unary in 1..16 {
            assert_eq!(field(&words, at, unary + 1), 1 << unary);
            at += u64::from(unary) + 1;
        }
        assert_eq!(at, part.bits.len());
    }
}

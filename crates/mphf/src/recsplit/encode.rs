//! Encoding of trees: the numbers of their nodes become Golomb-Rice codes.
//!
//! Source: section 4.4 (fixed and unary parts apart, in preorder). Departure: the unary parts of a bucket's higher
//! levels precede all of its other unary parts, so a lookup skips whole subtrees once, not on each level (`query.rs`).
//!
//! ```text
//! a bucket: fixed parts of all nodes, unary parts of the higher levels, unary parts of the other levels
//! ```

use super::find::Trees;
use crate::bit_vec::BitVec;
use crate::elias_fano::Least;
use crate::kind::{Bucket, Part};

/// Golomb-Rice parameters of all nodes of a tree without higher levels, in preorder, by number of keys.
pub(crate) struct CodeTable {
    parameters: Vec<u8>,
    /// Start of the list of each number of keys, and the end of the last one.
    bounds: Vec<usize>,
}

impl CodeTable {
    pub(crate) fn new(trees: &Trees) -> Self {
        let (nodes, second_unit) = (trees.nodes(), trees.shape.second_unit() as usize);
        let (mut parameters, mut bounds) = (Vec::new(), vec![0]);
        for (keys, node) in nodes.iter().enumerate().take(second_unit + 1) {
            if node.nodes > 0 {
                parameters.push(node.golomb);
            }
            let (full, unit) = (usize::from(node.fanout).saturating_sub(1), usize::from(node.unit));
            if node.fanout > 0 {
                (0..full).for_each(|_| parameters.extend_from_within(bounds[unit]..bounds[unit + 1]));
                let rest = keys - full * unit;
                parameters.extend_from_within(bounds[rest]..bounds[rest + 1]);
            }
            bounds.push(parameters.len());
        }
        Self { parameters, bounds }
    }

    /// Returns the parameters of a tree of `keys` keys; `None` if it has higher levels.
    #[inline]
    fn get(&self, keys: u32) -> Option<&[u8]> {
        let keys = keys as usize;
        self.parameters.get(*self.bounds.get(keys)?..*self.bounds.get(keys + 1)?)
    }
}

/// Encoder of parts, one after the other.
#[derive(Default)]
pub(crate) struct Encoder {
    /// Unary parts of a tree's higher levels, and of its other levels.
    higher: BitVec,
    unary: BitVec,
}

impl Encoder {
    /// Encodes the trees of consecutive buckets with the key bounds `bounds`, from their `numbers` in the order of
    /// [`super::find`]. Writes the sizes of each bucket to `found`, and adds it to `least`.
    pub(crate) fn encode(
        &mut self,
        (trees, table): (&Trees, &CodeTable),
        bounds: &[u32],
        mut numbers: &[u64],
        found: &mut [Bucket],
        least: &mut Least,
    ) -> Part {
        let mut bits = BitVec::default();
        let (mut begin, mut largest) = (0, 0);
        for (bounds, bucket) in bounds.windows(2).zip(&mut *found) {
            let keys = bounds[1] - bounds[0];
            if let Some(parameters) = table.get(keys) {
                let (of_tree, rest) = numbers.split_at(parameters.len());
                numbers = rest;
                let codes = || of_tree.iter().zip(parameters);
                codes().for_each(|(&number, &golomb)| bits.push(number, golomb.into()));
                codes().for_each(|(&number, &golomb)| bits.push_unary(number >> golomb));
            } else {
                self.higher.clear();
                self.unary.clear();
                self.subtree((trees, table), keys, &mut numbers, &mut bits);
                bits.append(&self.higher);
                bits.append(&self.unary);
            }
            let end = bits.len();
            *bucket = Bucket { keys, bits: (end - begin) as u32 };
            least.see(keys as usize, end - begin);
            largest = largest.max(keys);
            begin = end;
        }
        let keys = bounds.last().map_or(0, |&keys| keys.into());
        Part { buckets: found.len(), keys, largest, bits }
    }

    /// Appends the fixed parts of a subtree to `fixed`, and its unary parts to those of their levels.
    fn subtree(&mut self, (trees, table): (&Trees, &CodeTable), keys: u32, numbers: &mut &[u64], fixed: &mut BitVec) {
        if let Some(parameters) = table.get(keys) {
            let (of_subtree, rest) = numbers.split_at(parameters.len());
            *numbers = rest;
            for (&number, &golomb) in of_subtree.iter().zip(parameters) {
                fixed.push(number, golomb.into());
                self.unary.push_unary(number >> golomb);
            }
            return;
        }
        let node = &trees.nodes()[keys as usize];
        let Some((&number, rest)) = numbers.split_first() else { return };
        *numbers = rest;
        fixed.push(number, node.golomb.into());
        self.higher.push_unary(number >> node.golomb);
        let unit = u32::from(node.unit);
        self.subtree((trees, table), unit, numbers, fixed);
        self.subtree((trees, table), keys - unit, numbers, fixed);
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
        let (table, least) = (CodeTable::new(&trees), &mut Least::default());
        let part = Encoder::default().encode((&trees, &table), &bounds, &numbers, &mut found, least);
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

//! Nodes of a bucket's tree, and the ends of their bits.
//!
//! Node `i` of level `l` in a bucket of `s` keys has those from `i s / 2^l` on to `(i + 1) s / 2^l`, both rounded down:
//! all nodes of a level have `s / 2^l` keys, rounded down, or one more. Let `q` be the smaller size, `b` bits its
//! share, and `b + d` the share of the larger size. If `k` keys precede node `i`, the first `i` nodes take `i b + (k -
//! i q) d = i (b - q d) + k d` bits. So a level has two factors, which follow from `q`.

/// The most keys of a leaf.
pub const LEAF: u32 = 5;

/// Fractional bits of a position: positions count parts of `1 / 2^FRACTION` bit.
pub const FRACTION: u32 = 12;

/// Returns the level of the leaves in a bucket of `keys` keys: the first one with nodes of at most [`LEAF`] keys.
#[inline(always)]
pub const fn depth(keys: u32) -> u32 {
    u32::BITS - (keys.saturating_sub(1) / LEAF).leading_zeros()
}

/// Levels with nodes of `keys` keys or one more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Share per preceding node, in parts of a bit; modulo 2^32, as the other factor.
    pub per_node: u32,
    /// Additional share per preceding key.
    pub per_key: u32,
    /// Distance between half of all hashes and the threshold of the odd one of the two sizes: below half if the smaller
    /// half is on the left, above if it is on the right. The threshold of the even size is half of all hashes.
    pub odd: u32,
}

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Keys of the bucket before those of the node.
    pub begin: u32,
    /// Keys before the right half.
    pub middle: u32,
    /// Keys before the next node.
    pub end: u32,
}

impl Node {
    /// Returns node `index` of `level` in a bucket of `keys` keys.
    #[inline(always)]
    pub const fn new(keys: u32, level: u32, index: u32) -> Self {
        // Indices are below 2^14 and keys below 2^16.
        Self {
            begin: (index * keys) >> level,
            middle: ((2 * index + 1) * keys) >> (level + 1),
            end: ((index + 1) * keys) >> level,
        }
    }

    /// Returns the node's number of keys.
    #[inline(always)]
    pub const fn keys(self) -> u32 {
        self.end - self.begin
    }

    /// Returns the threshold: keys with a hash below it go left.
    #[inline(always)]
    pub const fn threshold(self, row: &Row) -> u32 {
        // 1, 0 or -1, without an unpredictable branch.
        let uneven = self.begin.wrapping_add(self.end).wrapping_sub(2 * self.middle);
        (1_u32 << 31).wrapping_sub(uneven.wrapping_mul(row.odd))
    }
}

impl Row {
    /// Returns the row as two words.
    pub const fn to_words(self) -> [u64; 2] {
        [self.per_node as u64 | (self.per_key as u64) << 32, self.odd as u64]
    }

    /// Makes the row of these words.
    #[inline(always)]
    pub const fn from_words([factors, odd]: [u64; 2]) -> Self {
        Self { per_node: factors as u32, per_key: (factors >> 32) as u32, odd: odd as u32 }
    }

    /// Returns the end of the bits of node `index`, relative to the level's first bit; `keys_before_end` keys precede
    /// the node's right end.
    #[inline(always)]
    pub const fn end(&self, index: u32, keys_before_end: u32) -> u32 {
        ((index + 1).wrapping_mul(self.per_node)).wrapping_add(keys_before_end.wrapping_mul(self.per_key))
    }

    /// Returns the bits of a whole level of a bucket of `keys` keys.
    #[inline(always)]
    pub const fn all(&self, level: u32, keys: u32) -> u32 {
        (self.per_node << level).wrapping_add(keys.wrapping_mul(self.per_key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_two_sizes_and_halves_are_halves() {
        for keys in (1..700).chain([1999, 2000, 2048, 2049, 65_535]) {
            let depth = depth(keys);
            assert!(keys.div_ceil(1 << depth) <= LEAF && (depth == 0 || keys.div_ceil(1 << (depth - 1)) > LEAF));
            for level in 0..=depth {
                let mut before = 0;
                for index in 0..1 << level {
                    let node = Node::new(keys, level, index);
                    let q = keys >> level;
                    assert!(node.begin == before && (node.keys() == q || node.keys() == q + 1));
                    let left = node.middle - node.begin;
                    assert!(left.abs_diff(node.end - node.middle) <= 1);
                    if level < depth {
                        let child = Node::new(keys, level + 1, 2 * index);
                        assert_eq!((child.begin, child.end), (node.begin, node.middle));
                    }
                    before = node.end;
                }
                assert_eq!(before, keys);
            }
        }
        assert_eq!(depth(0), 0);
    }
}

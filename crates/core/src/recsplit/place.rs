//! Position of a node's code in its bucket, from the index of its number in preorder. With it every lane of a GPU
//! encodes a number of its own.
//!
//! Source: sections 4.4.1 and 5.10. Departure: the thesis encodes with one thread per bucket, which goes from node to
//! node. Here a walk down from the root finds each number, in three to ten steps, because the subtrees of a node's
//! children have equal numbers of nodes, except the last.

use super::Node;

/// Fields of a node that a walk needs, in one row of 16 bytes. The rows of a tree are indexed by number of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C)]
pub struct CodeRow {
    /// Bits of the fixed parts of the subtree.
    pub fixed_bits: u32,
    /// Keys in each child but the last.
    pub unit: u16,
    /// Numbers of the subtree.
    pub nodes: u16,
    /// Golomb-Rice parameter of the node's own number.
    pub golomb: u8,
    /// Children; 0 for a leaf.
    pub fanout: u8,
    /// 1 for a splitting of the higher levels; their unary parts precede all others.
    pub is_higher: u8,
    /// Padding to 16 bytes.
    pub unused: [u8; 5],
}

const _: () = assert!(size_of::<CodeRow>() == 16);

impl CodeRow {
    /// Makes the row of a node.
    pub const fn new(node: &Node, is_higher: bool) -> Self {
        Self {
            fixed_bits: node.fixed_bits,
            unit: node.unit,
            nodes: node.nodes,
            golomb: node.golomb,
            fanout: node.fanout,
            is_higher: is_higher as u8,
            unused: [0; 5],
        }
    }

    /// Returns the four words from which a device reads the row.
    pub const fn to_words(self) -> [u32; 4] {
        let small = self.golomb as u32 | (self.fanout as u32) << 8 | (self.is_higher as u32) << 16;
        [self.fixed_bits, self.unit as u32 | (self.nodes as u32) << 16, small, 0]
    }

    /// Makes the row of the words that [`CodeRow::to_words`] returned.
    #[inline(always)]
    pub const fn from_words([fixed_bits, sizes, small, _]: [u32; 4]) -> Self {
        Self {
            fixed_bits,
            unit: sizes as u16,
            nodes: (sizes >> 16) as u16,
            golomb: small as u8,
            fanout: (small >> 8) as u8,
            is_higher: (small >> 16) as u8,
            unused: [0; 5],
        }
    }
}

/// Position of a number's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Golomb-Rice parameter of the number.
    pub golomb: u32,
    /// Bits of fixed parts before the number's own.
    pub fixed_at: u32,
    /// Whether the unary part is among those of the higher levels.
    pub is_higher: bool,
}

/// Finds the place of number `index` of a tree with the root row `root`; the tree has more than `index` numbers.
/// `row_of` returns the rows of fewer keys, `keys` are those of the root.
#[inline(always)]
pub fn place_of(row_of: impl Fn(u32) -> CodeRow, keys: u32, root: CodeRow, index: u32) -> Place {
    let (mut keys, mut row, mut left, mut fixed_at) = (keys, root, index, 0);
    while left > 0 && row.fanout > 0 {
        left -= 1;
        fixed_at += row.golomb as u32;
        let (full, unit) = (row.fanout as u32 - 1, row.unit as u32);
        let child = row_of(unit);
        let nodes = child.nodes as u32;
        // Skips the children that store nothing.
        let passed = left.checked_div(nodes).unwrap_or(full).min(full);
        left -= passed * nodes;
        fixed_at += passed * child.fixed_bits;
        if passed < full {
            keys = unit;
            row = child;
        } else {
            keys -= full * unit;
            row = row_of(keys);
        }
    }
    Place { golomb: row.golomb as u32, fixed_at, is_higher: row.is_higher != 0 }
}

#[cfg(test)]
mod tests {
    use super::super::{Level, Method, TreeShape};
    use super::*;

    const KEYS: usize = 400;

    /// Lists all places of a subtree in preorder, node by node.
    fn places(
        shape: &TreeShape,
        rows: &[CodeRow],
        keys: usize,
        at: &mut u32,
        found: &mut [Option<Place>],
        count: &mut usize,
    ) {
        let row = rows[keys];
        if row.nodes == 0 {
            return;
        }
        let is_higher = shape.level(keys as u32) == Level::Higher;
        found[*count] = Some(Place { golomb: row.golomb.into(), fixed_at: *at, is_higher });
        *at += u32::from(row.golomb);
        *count += 1;
        let full = usize::from(row.fanout).saturating_sub(1);
        for _ in 0..full {
            places(shape, rows, row.unit.into(), at, found, count);
        }
        if row.fanout > 0 {
            places(shape, rows, keys - full * usize::from(row.unit), at, found, count);
        }
    }

    #[test]
    fn walks_find_the_places_of_preorder() {
        let shapes = [
            TreeShape::new(2, 2, 2, Method::BruteForce).unwrap(),
            TreeShape::new(8, 6, 4, Method::Grouped).unwrap(),
            TreeShape::new(5, 3, 1, Method::Rotation).unwrap(),
            TreeShape::new(4, 4, 2, Method::Grouped).unwrap().with_positions(1).unwrap(),
        ];
        for shape in shapes {
            let mut nodes = [Node::default(); KEYS];
            let mut rows = [CodeRow::default(); KEYS];
            for keys in 0..KEYS {
                nodes[keys] = shape.node(keys as u32, &nodes[..keys]);
                rows[keys] = CodeRow::new(&nodes[keys], shape.level(keys as u32) == Level::Higher);
                assert_eq!(CodeRow::from_words(rows[keys].to_words()), rows[keys]);
            }
            for keys in 0..KEYS {
                let (mut found, mut at, mut count) = ([None; KEYS], 0, 0);
                places(&shape, &rows, keys, &mut at, &mut found, &mut count);
                assert_eq!((count, at), (rows[keys].nodes.into(), rows[keys].fixed_bits));
                for (index, &expected) in found.iter().enumerate().take(count) {
                    let place = place_of(|keys| rows[keys as usize], keys as u32, rows[keys], index as u32);
                    assert_eq!(Some(place), expected, "{shape:?} {keys} {index}");
                }
            }
        }
    }
}

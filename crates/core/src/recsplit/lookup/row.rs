//! Properties of nodes and of the shape that lookups need (the table of section 4.4.3).

use super::super::hash::{self, RECIPROCALS};
use super::super::{Level, Node, TreeShape};

/// Properties of a node: a row of the table of section 4.4.3.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(32))]
pub struct Row {
    /// [`reciprocal`] of the candidates.
    pub reciprocal: u64,
    /// [`Node::scale`]; of a leaf: its positions.
    pub scale: u32,
    /// Golomb-Rice parameter: bits of the fixed part.
    pub golomb: u8,
    /// Number of the last child.
    pub last: u8,
    /// Rotation groups.
    pub groups: u8,
    /// Rotations of one group; 0 if nothing is stored.
    pub radix: u8,
    /// Bits of the fixed parts of the whole subtree of each child except the last.
    pub child_fixed_bits: u32,
    /// Values of a child; of a leaf: positions.
    pub values: u32,
    /// Bits of the fixed parts of the whole subtree.
    pub fixed_bits: u32,
    /// Keys in a child.
    pub unit: u16,
    /// Unary parts of a child's subtree; in the higher levels only those of its higher levels.
    pub child_codes: u16,
}

const _: () = assert!(size_of::<Row>() == 32);

impl Row {
    /// Makes the row of nodes with `keys` keys from the table of nodes.
    pub fn of(shape: &TreeShape, keys: u32, nodes: &[Node]) -> Self {
        let node = &nodes[keys as usize];
        if node.nodes == 0 {
            return Self::default();
        }
        let unit = u32::from(node.unit);
        let child = &nodes[unit as usize];
        let higher = shape.level(keys) == Level::Higher;
        let values = if unit == 0 { shape.leaf_positions(keys) } else { unit / shape.leaf() * shape.positions() };
        Self {
            reciprocal: reciprocal(u64::from(node.candidates)),
            scale: if unit == 0 { values } else { node.scale },
            golomb: node.golomb,
            last: node.fanout.saturating_sub(1),
            groups: node.groups,
            radix: node.radix,
            child_fixed_bits: child.fixed_bits,
            values,
            fixed_bits: node.fixed_bits,
            unit: node.unit,
            child_codes: if higher { (unit / shape.second_unit()) as u16 - 1 } else { child.nodes },
        }
    }

    /// Returns the four words from which a device reads the row.
    pub const fn to_words(self) -> [u64; 4] {
        let small = [self.golomb, self.last, self.groups, self.radix];
        [
            self.reciprocal,
            self.scale as u64 | (u32::from_le_bytes(small) as u64) << 32,
            self.child_fixed_bits as u64 | (self.values as u64) << 32,
            self.fixed_bits as u64 | (self.unit as u64) << 32 | (self.child_codes as u64) << 48,
        ]
    }

    /// Makes the row of the words that [`Row::to_words`] returned.
    #[inline(always)]
    pub const fn from_words([reciprocal, first, second, third]: [u64; 4]) -> Self {
        let [golomb, last, groups, radix] = ((first >> 32) as u32).to_le_bytes();
        Self {
            reciprocal,
            scale: first as u32,
            golomb,
            last,
            groups,
            radix,
            child_fixed_bits: second as u32,
            values: (second >> 32) as u32,
            fixed_bits: third as u32,
            unit: (third >> 32) as u16,
            child_codes: (third >> 48) as u16,
        }
    }

    /// Returns the trial of a stored number: `stored / candidates`. Exact for numbers below 2^39, far above any result
    /// of a search.
    #[inline(always)]
    pub fn trial(&self, stored: u64) -> u64 {
        ((u128::from(stored << 1) * u128::from(self.reciprocal)) >> 64) as u64
    }

    /// Computes [`Row::trial`] for the higher levels, where the number of candidates is a power of two.
    #[inline(always)]
    pub fn halving_trial(&self, stored: u64) -> u64 {
        stored >> (u32::from(self.groups) - 1)
    }

    /// Returns all ones if a key's group is mirrored in a splitting of the higher levels, else 0.
    #[inline(always)]
    pub fn mirror(&self, stored: u64, low: u64) -> u32 {
        0_u32.wrapping_sub((stored << 1 >> hash::group_of(low, u32::from(self.groups))) as u32 & 1)
    }

    /// Returns the child of a splitting in two, in which groups may be mirrored.
    #[inline(always)]
    pub fn half_of(hash: u32, scale: u32, rotation: u32) -> u32 {
        u32::from(hash ^ 0_u32.wrapping_sub(rotation) >= scale)
    }

    /// Returns the child of a splitting in more parts.
    #[inline(always)]
    pub fn part_of(hash: u32, scale: u32, rotation: u32, radix: u32) -> u32 {
        let child = hash::child_of(hash, scale);
        let turned = child + rotation;
        let turned = if turned >= radix { turned.wrapping_sub(radix) } else { turned };
        if child < radix { turned } else { child }
    }

    /// Returns the rotation of `group` that a stored number encodes: [`hash::rotation_of`] of the number's remainder.
    /// Multiples of the candidates are multiples of the radix's powers too, so the remainder need not be taken.
    #[inline(always)]
    pub fn rotation(&self, stored: u64, group: u32) -> u32 {
        let fraction = stored.wrapping_mul(POWERS[(usize::from(self.radix) * 8 + group as usize) % POWERS.len()]);
        ((u128::from(fraction) * u128::from(self.radix)) >> 64) as u32
    }
}

/// Returns slightly more than `2^63 / divisor`, for divisors up to 2^23. The whole part of its product with a number
/// below 2^39 is the quotient. It has at most 53 bits, so it is also exact as a float. The relative excess is at least
/// 2^-46, more than products of floats lose, and at most 2^-39.
pub const fn reciprocal(divisor: u64) -> u64 {
    let exact = (1 << 63) / divisor;
    let more = exact + (exact >> 45) + 2;
    let surplus = 11_u32.saturating_sub(more.leading_zeros());
    more.div_ceil(1 << surplus) << surplus
}

/// [`RECIPROCALS`] in one row, padded to eight entries per radix.
static POWERS: [u64; 256] = {
    let mut table = [0; 256];
    let mut radix = 0;
    while radix < 25 {
        let mut digit = 0;
        while digit < 6 {
            table[radix * 8 + digit] = RECIPROCALS[radix][digit];
            digit += 1;
        }
        radix += 1;
    }
    table
};

/// Properties of the shape.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Levels {
    /// Keys of a full leaf.
    pub leaf: u32,
    /// Keys of a full node of the first level.
    pub first_unit: u32,
    /// Keys of a full node of the second level.
    pub second_unit: u32,
    /// A full leaf, the child of nodes of the first level.
    pub first: Child,
    /// A full node of the first level, the child of nodes of the second level.
    pub second: Child,
    /// Unary parts of a full node of the second level.
    pub second_codes: u32,
    /// Slightly more than `2^32 / second_unit`.
    pub second_reciprocal: u32,
    /// Leaves by their number of keys. The four bytes of a word, lowest first: positions, bits of the fixed part,
    /// groups, radix.
    pub leaves: [u32; 32],
}

/// Whole subtree of each child of a level's nodes, except the last child.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Child {
    /// Values.
    pub values: u32,
    /// Bits of the fixed parts.
    pub fixed_bits: u32,
    /// Unary parts.
    pub codes: u32,
}

impl Levels {
    /// Derives the properties from the table of nodes.
    pub fn of(shape: &TreeShape, nodes: &[Node]) -> Self {
        // If there is no node of that size, no larger node exists either.
        let child = |keys: u32| {
            let node = nodes.get(keys as usize).copied().unwrap_or_default();
            let values = keys / shape.leaf() * shape.positions();
            Child { values, fixed_bits: node.fixed_bits, codes: node.nodes.into() }
        };
        let second_unit = shape.second_unit();
        let mut leaves = [0; 32];
        for (keys, leaf) in (0..=shape.leaf()).zip(&mut leaves).take(nodes.len()) {
            let row = Row::of(shape, keys, nodes);
            *leaf = u32::from_le_bytes([row.values as u8, row.golomb, row.groups, row.radix]);
        }
        Self {
            leaf: shape.leaf(),
            first_unit: shape.first_unit(),
            second_unit,
            first: child(shape.leaf()),
            second: child(shape.first_unit()),
            second_codes: child(second_unit).codes,
            second_reciprocal: ((1_u64 << 32) / u64::from(second_unit) + 1) as u32,
            leaves,
        }
    }

    /// Returns the number of nodes of the higher levels in a bucket of `keys` keys, `(keys - 1) / second_unit`: exact
    /// while the product of the two is below 2^32.
    #[inline(always)]
    pub fn higher(&self, keys: u64) -> u64 {
        ((keys.saturating_sub(1) & 0xffff_ffff) * u64::from(self.second_reciprocal)) >> 32
    }
}

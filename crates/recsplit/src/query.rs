//! Look-ups: one key, or many in turns.
//!
//! Source: section 4.4.2 (fast queries). A look-up is bound by the latency of its chain: the code of a node says which
//! child comes next, and that says where its code is. So:
//! - Everything about a node that does not need its code is in one row of 32 bytes ([`Row`]), and the next positions are
//!   computed while the code is still being read.
//! - Both ends of a unary part come from one `pdep`, and rotations from the stored number, not from its remainder.
//! - Unary parts of the higher levels stand before all others of a bucket, so that the long way over the subtrees to the
//!   left is skipped once, not on each level.
//! - Levels have loops of their own, whose branches are easy to predict.
//!
//! Batches ([`wide`], or [`batch`] without its vectors) take many look-ups through each stage together.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
pub(crate) mod batch;
#[cfg(target_arch = "x86_64")]
pub(crate) mod lanes;
#[cfg(all(test, target_arch = "x86_64"))]
mod plain;
#[cfg(target_arch = "x86_64")]
pub(crate) mod vectors;
#[cfg(target_arch = "x86_64")]
pub(crate) mod wide;

use crate::elias_fano::Entry;
use crate::function::{RecSplit, Words};
use crate::key::Hash128;
use crate::read::{Select, bits_from, scan};
use warpset_core::recsplit::hash::{self, LEVEL_FIRST, LEVEL_LEAF, LEVEL_ROOT, LEVEL_SECOND, RECIPROCALS, start_seed};
use warpset_core::recsplit::{Level, Node, Remix, Shape};

/// What a look-up needs to know of a node: a row of the table of section 4.4.3.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(32))]
pub(crate) struct Row {
    /// [`reciprocal`] of the candidates.
    reciprocal: u64,
    /// [`Node::scale`]; of a leaf: its positions.
    scale: u32,
    golomb: u8,
    /// Number of the last child.
    last: u8,
    groups: u8,
    /// Rotations of one group; 0 if nothing is stored.
    radix: u8,
    /// Bits of the fixed parts of a child's whole subtree, of any child but the last.
    child_fixed_bits: u32,
    /// Values of a child; of a leaf: positions.
    values: u32,
    /// Bits of the fixed parts of the whole subtree.
    fixed_bits: u32,
    /// Keys in a child.
    unit: u16,
    /// Unary parts of a child's subtree; in the higher levels those of its higher levels.
    child_codes: u16,
}

const _: () = assert!(size_of::<Row>() == 32);

impl Row {
    /// The row of nodes with `keys` keys, from the table of nodes.
    pub(crate) fn of(shape: &Shape, keys: u32, nodes: &[Node]) -> Self {
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

    /// The trial of a stored number: `stored / candidates`. Exact for numbers below 2^39, far above any that a search gives.
    #[inline(always)]
    fn trial(&self, stored: u64) -> u64 {
        ((u128::from(stored << 1) * u128::from(self.reciprocal)) >> 64) as u64
    }

    /// [`Row::trial`] in the higher levels: all numbers are bits.
    #[inline(always)]
    fn halving_trial(&self, stored: u64) -> u64 {
        stored >> (u32::from(self.groups) - 1)
    }

    /// All ones if a key's group is mirrored in a splitting of the higher levels, else 0.
    #[inline(always)]
    fn mirror(&self, stored: u64, low: u64) -> u32 {
        0_u32.wrapping_sub((stored << 1 >> hash::group_of(low, u32::from(self.groups))) as u32 & 1)
    }

    /// The child of a splitting in two, whose groups are mirrored or not.
    #[inline(always)]
    fn half_of(hash: u32, scale: u32, rotation: u32) -> u32 {
        u32::from(hash ^ 0_u32.wrapping_sub(rotation) >= scale)
    }

    /// The child of a splitting in more parts.
    #[inline(always)]
    fn part_of(hash: u32, scale: u32, rotation: u32, radix: u32) -> u32 {
        let child = hash::child_of(hash, scale);
        let turned = child + rotation;
        let turned = if turned >= radix { turned.wrapping_sub(radix) } else { turned };
        if child < radix { turned } else { child }
    }

    /// The rotation of `group` that a stored number stands for: [`hash::rotation_of`] of the number's remainder. Whole
    /// multiples of the candidates are whole multiples of the radix's powers too, so the remainder need not be taken.
    #[inline(always)]
    fn rotation(&self, stored: u64, group: u32) -> u32 {
        let fraction = stored.wrapping_mul(POWERS[(usize::from(self.radix) * 8 + group as usize) % POWERS.len()]);
        ((u128::from(fraction) * u128::from(self.radix)) >> 64) as u32
    }
}

/// `2^63 / divisor` and a little more, for divisors up to 2^23: its products with numbers below 2^39 have the quotients as
/// their whole parts. It has at most 53 bits, so that it is also a float. The excess is at least 2^-46 of it, which is more
/// than products of floats lose, and at most 2^-39.
const fn reciprocal(divisor: u64) -> u64 {
    let exact = (1 << 63) / divisor;
    let more = exact + (exact >> 45) + 2;
    let surplus = 11_u32.saturating_sub(more.leading_zeros());
    more.div_ceil(1 << surplus) << surplus
}

/// [`RECIPROCALS`] in one row, with space after each radix.
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

/// Trials that regroup leaves differently; more come of damaged words only.
const MOST_TRIALS: u64 = (1 << 31) * hash::REGROUP - 1;

/// Unary parts that one window of bits has as a rule.
const NEAR_CODES: u32 = 24;

/// What look-ups need to know of the shape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Levels {
    leaf: u32,
    first_unit: u32,
    second_unit: u32,
    /// A full leaf, the child of nodes of the first level.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    first: Child,
    /// A full node of the first level, the child of nodes of the second level.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    second: Child,
    /// Unary parts of a full node of the second level.
    second_codes: u32,
    /// `2^32 / second_unit` and a little more.
    second_reciprocal: u32,
    /// Of leaves by their number of keys, a byte each, the lowest first: positions, bits of the fixed part, groups, radix.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    leaves: [u32; 32],
}

/// A whole subtree that all nodes of a level have as their children, but for the last one.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
struct Child {
    values: u32,
    fixed_bits: u32,
    /// Unary parts.
    codes: u32,
}

impl Levels {
    pub(crate) fn of(shape: &Shape, nodes: &[Node]) -> Self {
        // Without a node of that size nothing is above.
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

    /// Nodes of the higher levels in a bucket of `keys` keys, that is `(keys - 1) / second_unit`: exact while the product of the
    /// two is below 2^32.
    #[inline(always)]
    fn higher(&self, keys: u64) -> u64 {
        ((keys.saturating_sub(1) & 0xffff_ffff) * u64::from(self.second_reciprocal)) >> 32
    }
}

/// A look-up on its way down a tree.
#[derive(Clone, Copy, Default)]
struct Walk {
    low: u64,
    /// Values below all that this subtree can give.
    value: u64,
    /// Where the next fixed part begins.
    fixed: u64,
    /// Where the unary parts that were not skipped yet begin.
    unary: u64,
    /// Unary parts to skip.
    skip: u32,
    /// Keys of the node.
    keys: u32,
}

/// What is above the second level of a look-up.
#[derive(Clone, Copy, Default)]
struct Above {
    /// Where the bucket's unary parts begin.
    unary: u64,
    /// Unary parts from there to those of the second-level node.
    codes: u32,
}

/// The length of the unary part after `skip` others from `at` on, and where it ends.
#[inline(always)]
fn unary_part(words: &[u64], at: u64, skip: u32, select: impl Select) -> (u64, u64) {
    // With the end of the part before, whose length is between two ones.
    let bits = bits_from(words, at) << 1 | 1;
    if skip < 58 {
        let ends = select.pair(bits, skip);
        let second = ends & ends.wrapping_sub(1);
        if second != 0 {
            let (begin, end) = (u64::from(ends.trailing_zeros()), u64::from(second.trailing_zeros()));
            return (end - begin - 1, at.wrapping_add(end));
        }
    }
    far_unary_part(words, at, skip)
}

/// As `unary_part`, however far it is.
#[cold]
#[inline(never)]
fn far_unary_part(words: &[u64], at: u64, skip: u32) -> (u64, u64) {
    use crate::read::Portable;
    let begin = if skip == 0 { at } else { scan::<1>(words, at, skip - 1, Portable).wrapping_add(1) };
    let end = scan::<1>(words, begin, 0, Portable);
    // Damaged words can say that it begins past the end.
    (end.saturating_sub(begin), end.wrapping_add(1))
}

impl<W: Words> RecSplit<W> {
    /// The stored number of the walk's node, which is passed.
    #[inline(always)]
    fn stored(&self, words: &[u64], walk: &mut Walk, row: &Row, select: impl Select) -> u64 {
        let (zeros, end) = unary_part(words, walk.unary, walk.skip, select);
        let fixed = bits_from(words, walk.fixed) & ((1 << row.golomb) - 1);
        walk.fixed = walk.fixed.wrapping_add(u64::from(row.golomb));
        walk.unary = end;
        zeros << row.golomb | fixed
    }

    /// The root of a bucket's tree.
    #[inline(always)]
    fn enter(&self, bucket: u64, entry: Entry, low: u64) -> Walk {
        // A bucket larger than the largest exists in damaged words only.
        let keys = if entry.keys < self.rows.len() as u64 { entry.keys as u32 } else { 0 };
        let fixed = self.trees.wrapping_add(entry.bits_before);
        let unary = fixed.wrapping_add(u64::from(self.rows[keys as usize].fixed_bits));
        let value = self.header.shape.base(entry.keys_before.min(self.header.keys), bucket);
        Walk { low, value, keys, skip: 0, fixed, unary }
    }

    /// What is to be skipped once the higher levels are passed.
    #[inline(always)]
    fn above(&self, walk: &Walk) -> Above {
        Above { unary: walk.unary, codes: self.levels.higher(walk.keys.into()) as u32 }
    }

    /// Goes down by a splitting of the higher levels.
    #[inline(always)]
    fn halve(&self, words: &[u64], walk: &mut Walk, above: &mut Above, start: u32, remix: Remix, select: impl Select) {
        let row = &self.rows[walk.keys as usize];
        let stored = self.stored(words, walk, row, select);
        let hash = hash::trial_hash(remix, walk.low, start, row.halving_trial(stored));
        let right = u32::from(hash ^ row.mirror(stored, walk.low) >= row.scale);
        self.move_half(walk, above, 0_u32.wrapping_sub(right));
    }

    /// Moves a walk to the left child if `right` is 0, to the right one if it is all ones.
    #[inline(always)]
    fn move_half(&self, walk: &mut Walk, above: &mut Above, right: u32) {
        let row = &self.rows[walk.keys as usize];
        let (unit, codes) = (u32::from(row.unit), u32::from(row.child_codes));
        walk.value = walk.value.wrapping_add(u64::from(row.values & right));
        walk.fixed = walk.fixed.wrapping_add(u64::from(row.child_fixed_bits & right));
        walk.skip = codes & right;
        above.codes += ((codes + 1) * self.levels.second_codes) & right;
        walk.keys = if right != 0 { walk.keys - unit } else { unit };
    }

    /// From the higher levels to the second.
    #[inline(always)]
    fn land(&self, words: &[u64], walk: &mut Walk, above: &Above, select: impl Select) {
        let rank = above.codes.wrapping_sub(1);
        walk.skip = 0;
        if rank < NEAR_CODES {
            let one = select.pair(bits_from(words, above.unary), rank);
            if one != 0 {
                walk.unary = above.unary.wrapping_add(u64::from(one.trailing_zeros()) + 1);
                return;
            }
        }
        walk.unary = scan::<8>(words, above.unary, rank, select).wrapping_add(1);
    }

    /// Goes down by a splitting of an aggregation level.
    #[inline(always)]
    fn split(&self, words: &[u64], walk: &mut Walk, level: u32, remix: Remix, select: impl Select) {
        let row = &self.rows[walk.keys as usize];
        let stored = self.stored(words, walk, row, select);
        let rotation = row.rotation(stored, hash::group_of(walk.low, u32::from(row.groups)));
        let hash = hash::trial_hash(remix, walk.low, start_seed(level), row.trial(stored));
        self.move_to(
            walk,
            match row.last {
                1 => Row::half_of(hash, row.scale, rotation),
                _ => Row::part_of(hash, row.scale, rotation, u32::from(row.radix)),
            },
        );
    }

    /// Moves a walk to a child.
    #[inline(always)]
    fn move_to(&self, walk: &mut Walk, child: u32) {
        let row = &self.rows[walk.keys as usize];
        let unit = u32::from(row.unit);
        walk.value = walk.value.wrapping_add(u64::from(child * row.values));
        walk.fixed = walk.fixed.wrapping_add(u64::from(child * row.child_fixed_bits));
        walk.skip = child * u32::from(row.child_codes);
        walk.keys = if child == u32::from(row.last) { walk.keys - child * unit } else { unit };
    }

    /// Ends a walk at its leaf.
    #[inline(always)]
    fn finish(&self, words: &[u64], walk: &mut Walk, remix: Remix, select: impl Select) -> u64 {
        let row = &self.rows[walk.keys as usize];
        if row.radix == 0 {
            return self.value(walk, row, 0);
        }
        let stored = self.stored(words, walk, row, select);
        let trial = row.trial(stored);
        let multiplier = hash::leaf_group_multiplier(trial & MOST_TRIALS);
        let rotation = row.rotation(stored, hash::leaf_group_of(walk.low, multiplier, u32::from(row.groups)));
        let hash = hash::trial_hash(remix, walk.low, start_seed(LEVEL_LEAF), trial);
        self.value(walk, row, hash::leaf_position(hash, row.values) + rotation)
    }

    /// The value at a leaf's position, still below twice the positions. Only damaged words that were made to pass the checks
    /// make it too large.
    #[inline(always)]
    fn value(&self, walk: &Walk, row: &Row, position: u32) -> u64 {
        let turned = position.wrapping_sub(row.values);
        let position = if position >= row.values { turned } else { position };
        walk.value.wrapping_add(u64::from(position)).min(self.values - 1)
    }

    /// The value of one key.
    #[inline(always)]
    pub(crate) fn get_one(&self, hash: Hash128, remix: Remix, select: impl Select) -> u64 {
        if self.header.keys == 0 {
            return 0;
        }
        let words = self.words.words();
        let bucket = hash::bucket_of(hash.high, self.header.layout.buckets);
        let near = self.lists.near(words, bucket);
        let mut walk = self.enter(bucket, self.lists.get(words, bucket, near, select), hash.low);
        let levels = &self.levels;
        if walk.keys > levels.second_unit {
            let mut above = self.above(&walk);
            let mut level = LEVEL_ROOT;
            while walk.keys > levels.second_unit {
                self.halve(words, &mut walk, &mut above, start_seed(level), remix, select);
                level += 1;
            }
            self.land(words, &mut walk, &above, select);
        }
        if walk.keys > levels.first_unit {
            self.split(words, &mut walk, LEVEL_SECOND, remix, select);
        }
        if walk.keys > levels.leaf {
            self.split(words, &mut walk, LEVEL_FIRST, remix, select);
        }
        self.finish(words, &mut walk, remix, select)
    }
}

//! Lookups: from a key's hash to its number, one copy for hosts and devices.
//!
//! Source: section 4.4.2 (fast queries). The latency of one chain bounds a lookup: the code of a node selects the
//! child, and the child determines where the next code is. Therefore:
//! - Everything about a node that does not need its code is in one row of 32 bytes ([`row`]), and the next positions
//!   are computed while the code is still being read.
//! - One selection finds both ends of a unary part. Rotations come from the stored number itself, not from its
//!   remainder.
//! - Unary parts of the higher levels precede all others of a bucket. The long way over the subtrees to the left is
//!   skipped once, not on each level.
//! - Levels have loops of their own: on a processor their branches are easy to predict, and on a device the threads of
//!   a warp stay together.
//!
//! A backend implements [`Words`] and [`Function`]; backends differ only in reading memory. Whatever the words hold, no
//! lookup reads past their end, and every number is below the number of values.

pub mod lists;
pub mod row;
mod words;

use core::borrow::Borrow;

use super::hash::{self, Hash128, LEVEL_FIRST, LEVEL_LEAF, LEVEL_ROOT, LEVEL_SECOND, Remix, start_seed};
use super::shape::value_base;
use crate::bits::Select;
use lists::{Entry, Lists};
use row::{Levels, Row};
pub use words::{Words, scan};

/// The largest trial number that regroups a leaf's keys in a way of its own; only damaged words give larger ones.
pub const MOST_TRIALS: u64 = (1 << 31) * hash::REGROUP - 1;

/// Unary parts that usually fit one window of bits.
pub const NEAR_CODES: u32 = 24;

/// Fields of a function's header, as lookups need them.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Plan {
    /// Keys.
    pub keys: u64,
    /// Upper bound: all values are below it.
    pub values: u64,
    /// Buckets.
    pub buckets: u64,
    /// First bit of the trees within the words.
    pub trees: u64,
    /// Positions of the buckets' keys and trees.
    pub lists: Lists,
    /// Number of rows, one per number of keys from 0 on.
    pub rows: u32,
    /// Keys of a full leaf.
    pub leaf: u32,
    /// Positions of a full leaf.
    pub positions: u32,
    /// Properties of the levels.
    pub levels: Levels,
}

/// A lookup on its way down a tree.
#[derive(Clone, Copy, Debug, Default)]
pub struct Walk {
    /// The low half of the key's hash.
    pub low: u64,
    /// Values below all that this subtree can give.
    pub value: u64,
    /// Position of the next fixed part.
    pub fixed: u64,
    /// Position of the first unary part that was not skipped yet.
    pub unary: u64,
    /// Unary parts to skip.
    pub skip: u32,
    /// Keys of the node.
    pub keys: u32,
}

/// State of a lookup above the second level.
#[derive(Clone, Copy, Debug, Default)]
pub struct Above {
    /// Position of the bucket's unary parts.
    pub unary: u64,
    /// Unary parts from there to those of the second-level node.
    pub codes: u32,
}

/// Returns the length of the unary part after `skip` others from `at` on, and the position of its end.
#[inline(always)]
fn unary_part(words: impl Words, at: u64, skip: u32, select: impl Select) -> (u64, u64) {
    // Includes the end of the preceding part: the length is the distance between two ones.
    let bits = words.bits_from(at) << 1 | 1;
    if skip < 58 {
        let ends = select.pair(bits, skip);
        let second = ends & ends.wrapping_sub(1);
        if second != 0 {
            let (begin, end) = (u64::from(ends.trailing_zeros()), u64::from(second.trailing_zeros()));
            return (end - begin - 1, at.wrapping_add(end));
        }
    }
    words.far_unary_part(at, skip)
}

/// A function to look keys up in.
pub trait Function: Copy {
    /// Reader of the words.
    type Words: Words;
    /// A row, or a reference to one.
    type Row: Borrow<Row>;

    /// Returns the words.
    fn words(&self) -> Self::Words;
    /// Returns the fields of the header.
    fn plan(&self) -> &Plan;
    /// Returns the row of a node of `keys` keys, `keys < plan().rows`.
    fn row(&self, keys: u32) -> Self::Row;

    /// Returns the stored number of the walk's node, and moves the walk past it.
    #[inline(always)]
    fn stored(&self, walk: &mut Walk, row: &Row, select: impl Select) -> u64 {
        let words = self.words();
        let (zeros, end) = unary_part(words, walk.unary, walk.skip, select);
        let fixed = words.bits_from(walk.fixed) & ((1 << row.golomb) - 1);
        walk.fixed = walk.fixed.wrapping_add(u64::from(row.golomb));
        walk.unary = end;
        zeros << row.golomb | fixed
    }

    /// Returns a walk at the root of a bucket's tree.
    #[inline(always)]
    fn enter(&self, bucket: u64, entry: Entry, low: u64) -> Walk {
        let plan = self.plan();
        // Only damaged words have a bucket that is larger than the largest.
        let keys = if entry.keys < u64::from(plan.rows) { entry.keys as u32 } else { 0 };
        let fixed = plan.trees.wrapping_add(entry.bits_before);
        let unary = fixed.wrapping_add(u64::from(self.row(keys).borrow().fixed_bits));
        let value = value_base(plan.leaf, plan.positions, entry.keys_before.min(plan.keys), bucket);
        Walk { low, value, keys, skip: 0, fixed, unary }
    }

    /// Returns the unary parts to skip once the higher levels are passed.
    #[inline(always)]
    fn above(&self, walk: &Walk) -> Above {
        Above { unary: walk.unary, codes: self.plan().levels.higher(walk.keys.into()) as u32 }
    }

    /// Goes down by a splitting of the higher levels.
    #[inline(always)]
    fn halve(&self, walk: &mut Walk, above: &mut Above, start: u32, remix: Remix, select: impl Select) {
        let row = self.row(walk.keys);
        let row = row.borrow();
        let stored = self.stored(walk, row, select);
        let hash = hash::trial_hash(remix, walk.low, start, row.halving_trial(stored));
        let right = u32::from(hash ^ row.mirror(stored, walk.low) >= row.scale);
        self.move_half(walk, above, 0_u32.wrapping_sub(right));
    }

    /// Moves a walk to the left child if `right` is 0, to the right one if it is all ones.
    #[inline(always)]
    fn move_half(&self, walk: &mut Walk, above: &mut Above, right: u32) {
        let row = self.row(walk.keys);
        let row = row.borrow();
        let (unit, codes) = (u32::from(row.unit), u32::from(row.child_codes));
        walk.value = walk.value.wrapping_add(u64::from(row.values & right));
        walk.fixed = walk.fixed.wrapping_add(u64::from(row.child_fixed_bits & right));
        walk.skip = codes & right;
        above.codes += ((codes + 1) * self.plan().levels.second_codes) & right;
        walk.keys = if right != 0 { walk.keys - unit } else { unit };
    }

    /// Moves a walk from the higher levels to the second.
    #[inline(always)]
    fn land(&self, walk: &mut Walk, above: &Above, select: impl Select) {
        let words = self.words();
        let rank = above.codes.wrapping_sub(1);
        walk.skip = 0;
        if rank < NEAR_CODES {
            let one = select.pair(words.bits_from(above.unary), rank);
            if one != 0 {
                walk.unary = above.unary.wrapping_add(u64::from(one.trailing_zeros()) + 1);
                return;
            }
        }
        walk.unary = words.scan::<8>(above.unary, rank, select).wrapping_add(1);
    }

    /// Goes down by a splitting of an aggregation level.
    #[inline(always)]
    fn split(&self, walk: &mut Walk, level: u32, remix: Remix, select: impl Select) {
        let row = self.row(walk.keys);
        let row = row.borrow();
        let stored = self.stored(walk, row, select);
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

    /// Moves a walk to child number `child`.
    #[inline(always)]
    fn move_to(&self, walk: &mut Walk, child: u32) {
        let row = self.row(walk.keys);
        let row = row.borrow();
        let unit = u32::from(row.unit);
        walk.value = walk.value.wrapping_add(u64::from(child * row.values));
        walk.fixed = walk.fixed.wrapping_add(u64::from(child * row.child_fixed_bits));
        walk.skip = child * u32::from(row.child_codes);
        walk.keys = if child == u32::from(row.last) { walk.keys - child * unit } else { unit };
    }

    /// Ends a walk at its leaf, and returns the key's value.
    #[inline(always)]
    fn finish(&self, walk: &mut Walk, remix: Remix, select: impl Select) -> u64 {
        let row = self.row(walk.keys);
        let row = row.borrow();
        if row.radix == 0 {
            return self.value(walk, row, 0);
        }
        let stored = self.stored(walk, row, select);
        let trial = row.trial(stored);
        let multiplier = hash::leaf_group_multiplier(trial & MOST_TRIALS);
        let rotation = row.rotation(stored, hash::leaf_group_of(walk.low, multiplier, u32::from(row.groups)));
        let hash = hash::trial_hash(remix, walk.low, start_seed(LEVEL_LEAF), trial);
        self.value(walk, row, hash::leaf_position(hash, row.values) + rotation)
    }

    /// Returns the value at a leaf's position, which may be up to twice the number of positions. Only damaged words
    /// that pass the checks make the value too large; it is limited then.
    #[inline(always)]
    fn value(&self, walk: &Walk, row: &Row, position: u32) -> u64 {
        let turned = position.wrapping_sub(row.values);
        let position = if position >= row.values { turned } else { position };
        walk.value.wrapping_add(u64::from(position)).min(self.plan().values - 1)
    }

    /// Returns the value of the key with this hash under the function's seed, below the number of values; 0 if there
    /// are no keys.
    #[inline(always)]
    fn value_of(&self, hash: Hash128, remix: Remix, select: impl Select) -> u64 {
        let plan = self.plan();
        if plan.keys == 0 {
            return 0;
        }
        let words = self.words();
        let bucket = hash::bucket_of(hash.high, plan.buckets);
        let jump = plan.lists.jump_to(words, bucket);
        let mut walk = self.enter(bucket, plan.lists.get(words, bucket, jump, select), hash.low);
        let levels = &plan.levels;
        if walk.keys > levels.second_unit {
            let mut above = self.above(&walk);
            let mut level = LEVEL_ROOT;
            while walk.keys > levels.second_unit {
                self.halve(&mut walk, &mut above, start_seed(level), remix, select);
                level += 1;
            }
            self.land(&mut walk, &above, select);
        }
        if walk.keys > levels.first_unit {
            self.split(&mut walk, LEVEL_SECOND, remix, select);
        }
        if walk.keys > levels.leaf {
            self.split(&mut walk, LEVEL_FIRST, remix, select);
        }
        self.finish(&mut walk, remix, select)
    }
}

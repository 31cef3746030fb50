//! The lookup of one key, stage by stage.

use super::node_rows::Row;
use super::{Lookup, Parameters};
use crate::elias_fano::Entry;
use crate::windows::{bits_from, scan};
use warpset_base::key::Hash128;
use warpset_core::bits::{Portable, Select};
use warpset_core::recsplit::Remix;
use warpset_core::recsplit::hash::{self, LEVEL_FIRST, LEVEL_LEAF, LEVEL_ROOT, LEVEL_SECOND, start_seed};

/// The largest trial for which leaves are regrouped differently; only damaged words give more.
pub(super) const MOST_TRIALS: u64 = (1 << 31) * hash::REGROUP - 1;

/// Unary parts that one window of bits usually holds.
pub(super) const NEAR_CODES: u32 = 24;

/// A lookup on its way down a tree.
#[derive(Clone, Copy, Default)]
pub(super) struct Walk {
    pub(super) low: u64,
    /// Values below all that this subtree can give.
    pub(super) value: u64,
    /// Where the next fixed part begins.
    pub(super) fixed: u64,
    /// Where the unary parts that were not skipped yet begin.
    pub(super) unary: u64,
    /// Unary parts to skip.
    pub(super) skip: u32,
    /// Keys of the node.
    pub(super) keys: u32,
}

/// What a lookup remembers of the levels above the second.
#[derive(Clone, Copy, Default)]
pub(super) struct Above {
    /// Where the bucket's unary parts begin.
    pub(super) unary: u64,
    /// Unary parts from there to those of the second-level node.
    pub(super) codes: u32,
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
pub(super) fn far_unary_part(words: &[u64], at: u64, skip: u32) -> (u64, u64) {
    let begin = if skip == 0 { at } else { scan::<1>(words, at, skip - 1, Portable).wrapping_add(1) };
    let end = scan::<1>(words, begin, 0, Portable);
    // Damaged words can say that it begins past the end.
    (end.saturating_sub(begin), end.wrapping_add(1))
}

impl Lookup<'_> {
    /// The number of the key with this hash under the function's seed.
    #[inline(always)]
    pub(crate) fn get(self, hash: Hash128) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if crate::processor::known_fast_pdep() {
            // SAFETY: the processor has the instructions.
            return unsafe { get_pdep(self.words, self.parameters, hash) };
        }
        get_elsewhere(self.words, self.parameters, hash)
    }

    #[inline(always)]
    fn get_with(self, hash: Hash128, select: impl Select) -> u64 {
        // The remix is a constant in each arm.
        match self.parameters.header.remix {
            Remix::Bits32 => self.get_one(hash, Remix::Bits32, select),
            Remix::Bits64 => self.get_one(hash, Remix::Bits64, select),
        }
    }
}

/// [`Lookup::get`] with `pdep` for selection. Its arguments travel in registers.
///
/// # Safety
/// - The processor has BMI1, BMI2, LZCNT and POPCNT.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
unsafe fn get_pdep(words: &[u64], parameters: &Parameters, hash: Hash128) -> u64 {
    // SAFETY: the caller says so.
    Lookup { words, parameters }.get_with(hash, unsafe { warpset_base::processor::Pdep::assume() })
}

/// [`Lookup::get`] before it is known what the processor has, and without special instructions. A function of its own, so
/// that the other way has no registers to save.
#[cold]
#[inline(never)]
fn get_elsewhere(words: &[u64], parameters: &Parameters, hash: Hash128) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if crate::processor::has_fast_pdep() {
        // SAFETY: the processor has the instructions.
        return unsafe { get_pdep(words, parameters, hash) };
    }
    Lookup { words, parameters }.get_with(hash, Portable)
}

impl Lookup<'_> {
    /// The stored number of the walk's node, which is passed.
    #[inline(always)]
    pub(super) fn stored(self, words: &[u64], walk: &mut Walk, row: &Row, select: impl Select) -> u64 {
        let (zeros, end) = unary_part(words, walk.unary, walk.skip, select);
        let fixed = bits_from(words, walk.fixed) & ((1 << row.golomb) - 1);
        walk.fixed = walk.fixed.wrapping_add(u64::from(row.golomb));
        walk.unary = end;
        zeros << row.golomb | fixed
    }

    /// The root of a bucket's tree.
    #[inline(always)]
    pub(super) fn enter(self, bucket: u64, entry: Entry, low: u64) -> Walk {
        // Only damaged words have a bucket that is larger than the largest.
        let keys = if entry.keys < self.parameters.rows.len() as u64 { entry.keys as u32 } else { 0 };
        let fixed = self.parameters.trees.wrapping_add(entry.bits_before);
        let unary = fixed.wrapping_add(u64::from(self.parameters.rows[keys as usize].fixed_bits));
        let value = self.parameters.header.shape.base(entry.keys_before.min(self.parameters.header.keys), bucket);
        Walk { low, value, keys, skip: 0, fixed, unary }
    }

    /// What is to be skipped once the higher levels are passed.
    #[inline(always)]
    pub(super) fn above(self, walk: &Walk) -> Above {
        Above { unary: walk.unary, codes: self.parameters.levels.higher(walk.keys.into()) as u32 }
    }

    /// Goes down by a splitting of the higher levels.
    #[inline(always)]
    pub(super) fn halve(
        self,
        words: &[u64],
        walk: &mut Walk,
        above: &mut Above,
        start: u32,
        remix: Remix,
        select: impl Select,
    ) {
        let row = &self.parameters.rows[walk.keys as usize];
        let stored = self.stored(words, walk, row, select);
        let hash = hash::trial_hash(remix, walk.low, start, row.halving_trial(stored));
        let right = u32::from(hash ^ row.mirror(stored, walk.low) >= row.scale);
        self.move_half(walk, above, 0_u32.wrapping_sub(right));
    }

    /// Moves a walk to the left child if `right` is 0, to the right one if it is all ones.
    #[inline(always)]
    pub(super) fn move_half(self, walk: &mut Walk, above: &mut Above, right: u32) {
        let row = &self.parameters.rows[walk.keys as usize];
        let (unit, codes) = (u32::from(row.unit), u32::from(row.child_codes));
        walk.value = walk.value.wrapping_add(u64::from(row.values & right));
        walk.fixed = walk.fixed.wrapping_add(u64::from(row.child_fixed_bits & right));
        walk.skip = codes & right;
        above.codes += ((codes + 1) * self.parameters.levels.second_codes) & right;
        walk.keys = if right != 0 { walk.keys - unit } else { unit };
    }

    /// From the higher levels to the second.
    #[inline(always)]
    pub(super) fn land(self, words: &[u64], walk: &mut Walk, above: &Above, select: impl Select) {
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
    pub(super) fn split(self, words: &[u64], walk: &mut Walk, level: u32, remix: Remix, select: impl Select) {
        let row = &self.parameters.rows[walk.keys as usize];
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
    pub(super) fn move_to(self, walk: &mut Walk, child: u32) {
        let row = &self.parameters.rows[walk.keys as usize];
        let unit = u32::from(row.unit);
        walk.value = walk.value.wrapping_add(u64::from(child * row.values));
        walk.fixed = walk.fixed.wrapping_add(u64::from(child * row.child_fixed_bits));
        walk.skip = child * u32::from(row.child_codes);
        walk.keys = if child == u32::from(row.last) { walk.keys - child * unit } else { unit };
    }

    /// Ends a walk at its leaf.
    #[inline(always)]
    pub(super) fn finish(self, words: &[u64], walk: &mut Walk, remix: Remix, select: impl Select) -> u64 {
        let row = &self.parameters.rows[walk.keys as usize];
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

    /// The value at a leaf's position, which may still be up to twice the number of positions. Only damaged words that were
    /// made to pass the checks make the value too large.
    #[inline(always)]
    pub(super) fn value(self, walk: &Walk, row: &Row, position: u32) -> u64 {
        let turned = position.wrapping_sub(row.values);
        let position = if position >= row.values { turned } else { position };
        walk.value.wrapping_add(u64::from(position)).min(self.parameters.values - 1)
    }

    /// The value of one key.
    #[inline(always)]
    pub(super) fn get_one(self, hash: Hash128, remix: Remix, select: impl Select) -> u64 {
        if self.parameters.header.keys == 0 {
            return 0;
        }
        let words = self.words;
        let bucket = hash::bucket_of(hash.high, self.parameters.header.layout.buckets);
        let jump = self.parameters.lists.jump_to(words, bucket);
        let mut walk = self.enter(bucket, self.parameters.lists.get(words, bucket, jump, select), hash.low);
        let levels = &self.parameters.levels;
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

//! Lookups of many keys without vector types: [`BATCH`] at a time, through each stage together.
//!
//! Every load is prefetched a stage ahead, and the chains of different keys overlap. A processor looks only a few
//! hundred instructions ahead, so each level of the trees is three short loops over the keys: codes are read, hashes
//! are mixed and mapped to children (this loop becomes vectors), walks are moved. No branch in them depends on a key.

use super::Lookup;
use super::node_rows::{Levels, Row};
use crate::batch::BATCH;
use crate::windows::prefetch;
use std::array::from_fn;
use warpset_base::key::Hash128;
use warpset_core::bits::Select;
use warpset_core::recsplit::Remix;
use warpset_core::recsplit::hash::{self, LEVEL_FIRST, LEVEL_LEAF, LEVEL_ROOT, LEVEL_SECOND, remix32, start_seed};
use warpset_core::recsplit::lookup::lists::Jump;
use warpset_core::recsplit::lookup::{Above, Function, MOST_TRIALS, Walk};

/// One number per lookup of a batch, from one loop to the next.
type Lane = [u32; BATCH];

/// Walks on a level, in the first places.
#[derive(Clone, Copy)]
struct On {
    places: [u8; BATCH],
    count: usize,
}

impl On {
    fn everyone(count: usize) -> Self {
        Self { places: from_fn(|i| i as u8), count }
    }

    /// Keeps only walks at nodes of more than `keys` keys.
    #[inline(always)]
    fn keep_above(&mut self, walks: &[Walk; BATCH], keys: u32) {
        let mut kept = 0;
        for i in 0..self.count.min(BATCH) {
            let place = self.places[i];
            self.places[kept] = place;
            kept += usize::from(walks[usize::from(place) % BATCH].keys > keys);
        }
        self.count = kept;
    }

    /// Returns the places, each below [`BATCH`].
    #[inline(always)]
    fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.places[..self.count].iter().map(|&place| usize::from(place) % BATCH)
    }
}

/// Computes the part of a trial hash that depends on the remix: the mixed 64 bits, or the folded ones, not yet mixed.
#[inline(always)]
fn unmixed(remix: Remix, low: u64, start: u32, trial: u64) -> u32 {
    match remix {
        Remix::Bits32 => {
            let sum = low.wrapping_add(trial);
            (sum >> 32) as u32 ^ sum as u32 ^ start
        }
        Remix::Bits64 => hash::trial_hash(remix, low, start, trial),
    }
}

/// Completes the trial hash from `unmixed`.
#[inline(always)]
fn mixed(remix: Remix, x: u32) -> u32 {
    match remix {
        Remix::Bits32 => remix32(x),
        Remix::Bits64 => x,
    }
}

/// Prefetches a bucket's tree: all of the fixed parts and most of the unary parts.
#[inline(always)]
pub(super) fn prefetch_tree(words: &[u64], fixed: u64, unary: u64) {
    for line in 0..=unary.wrapping_sub(fixed) / 352 {
        prefetch(words, fixed / 64 + line * 8);
    }
}

impl Lookup<'_> {
    /// Whether the function is too large for the nearer caches.
    #[inline(always)]
    pub(super) fn is_far(self) -> bool {
        /// Words that fit the nearer caches.
        const NEAR: usize = 1 << 16;
        self.words.len() > NEAR
    }

    /// Looks up at most [`BATCH`] keys.
    #[inline(always)]
    pub(super) fn get_batch(self, hashes: &[Hash128], values: &mut [u64], remix: Remix, select: impl Select) {
        if self.parameters.header.keys == 0 {
            values.fill(0);
            return;
        }
        let words = self.words;
        let mut walks = self.enter_all(words, hashes, select);
        let Levels { leaf, first_unit, second_unit, .. } = self.parameters.tables.plan.levels;
        let mut on = On::everyone(hashes.len());
        on.keep_above(&walks, second_unit);
        if on.count > 0 {
            let highest = on;
            let mut aboves = walks.map(|walk| self.above(&walk));
            let mut level = LEVEL_ROOT;
            while on.count > 0 {
                self.halve_all(&mut walks, &mut aboves, &on, (start_seed(level), remix), select);
                on.keep_above(&walks, second_unit);
                level += 1;
            }
            for place in highest.iter() {
                self.land(&mut walks[place], &aboves[place], select);
            }
        }
        for (above, level) in [(first_unit, LEVEL_SECOND), (leaf, LEVEL_FIRST)] {
            on = On::everyone(hashes.len());
            on.keep_above(&walks, above);
            if on.count > 0 {
                self.split_all(&mut walks, &on, (start_seed(level), remix), select);
            }
        }
        self.finish_all(&mut walks[..hashes.len()], values, remix, select);
    }

    /// Returns the roots of the keys' buckets.
    #[inline(always)]
    fn enter_all(self, words: &[u64], hashes: &[Hash128], select: impl Select) -> [Walk; BATCH] {
        let (lists, far) = (&self.parameters.lists, self.is_far());
        let mut buckets = [0_u64; BATCH];
        for (bucket, hash) in buckets.iter_mut().zip(hashes) {
            *bucket = hash::bucket_of(hash.high, self.parameters.header.layout.buckets);
            if far {
                lists.prefetch_first(words, *bucket);
            }
        }
        let mut jumps = [Jump::default(); BATCH];
        for (jump, &bucket) in jumps.iter_mut().zip(&buckets[..hashes.len()]) {
            *jump = lists.places.jump_to(self.words(), bucket);
            if far {
                lists.prefetch_second(words, *jump);
            }
        }
        let mut walks = [Walk::default(); BATCH];
        for (((walk, &jump), bucket), hash) in walks.iter_mut().zip(&jumps).zip(buckets).zip(hashes) {
            *walk = self.enter(bucket, lists.places.get(self.words(), bucket, jump, select), hash.low);
            if far {
                prefetch_tree(words, walk.fixed, walk.unary);
            }
        }
        walks
    }

    /// Runs [`Lookup::halve`] for the walks that are `on`.
    #[inline(always)]
    fn halve_all(
        self,
        walks: &mut [Walk; BATCH],
        aboves: &mut [Above; BATCH],
        on: &On,
        (start, remix): (u32, Remix),
        select: impl Select,
    ) {
        let [mut x, mut mirror, mut scale, mut right]: [Lane; 4] = [[0; BATCH]; 4];
        for (((place, x), mirror), scale) in on.iter().zip(&mut x).zip(&mut mirror).zip(&mut scale) {
            let walk = &mut walks[place];
            let row = &self.parameters.tables.rows[walk.keys as usize];
            let stored = self.stored(walk, row, select);
            *x = unmixed(remix, walk.low, start, row.halving_trial(stored));
            *mirror = row.mirror(stored, walk.low);
            *scale = row.scale;
        }
        for (((right, x), mirror), scale) in right.iter_mut().zip(x).zip(mirror).zip(scale) {
            *right = 0_u32.wrapping_sub(u32::from(mixed(remix, x) ^ mirror >= scale));
        }
        for (place, right) in on.iter().zip(right) {
            self.move_half(&mut walks[place], &mut aboves[place], right);
        }
    }

    /// Runs [`Lookup::split`] for the walks that are `on`.
    #[inline(always)]
    fn split_all(self, walks: &mut [Walk; BATCH], on: &On, (start, remix): (u32, Remix), select: impl Select) {
        let [mut x, mut rotation, mut scale, mut radix, mut binary, mut child]: [Lane; 6] = [[0; BATCH]; 6];
        let lanes = x.iter_mut().zip(&mut rotation).zip(&mut scale).zip(&mut radix).zip(&mut binary);
        for (place, ((((x, rotation), scale), radix), binary)) in on.iter().zip(lanes) {
            let walk = &mut walks[place];
            let row = &self.parameters.tables.rows[walk.keys as usize];
            let stored = self.stored(walk, row, select);
            *x = unmixed(remix, walk.low, start, row.trial(stored));
            *rotation = row.rotation(stored, hash::group_of(walk.low, u32::from(row.groups)));
            *scale = row.scale;
            *radix = u32::from(row.radix);
            *binary = u32::from(row.last == 1);
        }
        for i in 0..BATCH {
            let hash = mixed(remix, x[i]);
            let half = Row::half_of(hash, scale[i], rotation[i]);
            // A threshold is no scale.
            let scale = if binary[i] == 1 { 0 } else { scale[i] };
            let part = Row::part_of(hash, scale, rotation[i], radix[i]);
            child[i] = if binary[i] == 1 { half } else { part };
        }
        for (place, child) in on.iter().zip(child) {
            self.move_to(&mut walks[place], child);
        }
    }

    /// Runs [`Lookup::finish`] for all walks.
    #[inline(always)]
    fn finish_all(self, walks: &mut [Walk], values: &mut [u64], remix: Remix, select: impl Select) {
        let mut numbers = [0_u64; BATCH];
        let [mut x, mut low, mut regroup, mut groups, mut positions]: [Lane; 5] = [[0; BATCH]; 5];
        let lanes = x.iter_mut().zip(&mut low).zip(&mut regroup).zip(&mut groups).zip(&mut positions);
        for ((((((x, low), regroup), groups), positions), walk), number) in lanes.zip(&mut *walks).zip(&mut numbers) {
            let row = &self.parameters.tables.rows[walk.keys as usize];
            // Nodes that store nothing have rows of zeros, which give position 0 for any bits.
            let stored = self.stored(walk, row, select);
            let trial = row.trial(stored);
            *number = stored;
            *x = unmixed(remix, walk.low, start_seed(LEVEL_LEAF), trial);
            *low = walk.low as u32;
            *regroup = ((trial & MOST_TRIALS) / hash::REGROUP) as u32;
            *groups = u32::from(row.groups);
            *positions = row.values;
        }
        let [mut position, mut group]: [Lane; 2] = [[0; BATCH]; 2];
        for i in 0..BATCH {
            position[i] = hash::leaf_position(mixed(remix, x[i]), positions[i]);
            let multiplier = hash::leaf_group_multiplier(u64::from(regroup[i]) * hash::REGROUP);
            group[i] = hash::leaf_group_of(u64::from(low[i]), multiplier, groups[i]);
        }
        for (i, (value, walk)) in values.iter_mut().zip(walks).enumerate().take(BATCH) {
            let row = &self.parameters.tables.rows[walk.keys as usize];
            *value = self.value(walk, row, position[i] + row.rotation(numbers[i], group[i]));
        }
    }
}

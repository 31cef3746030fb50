//! Batches with AVX-512: as [`super::batch`], in loops over lanes of 64 bits that become vectors, loads included.
//!
//! The loops are plain Rust, so that they can be tested on any processor; what makes them fast are the features of the
//! function that they are inlined into. There is no `pdep` for vectors: ones are selected by halves and population counts.

use super::batch::BATCH;
use super::{Above, MOST_TRIALS, POWERS, Row, Walk, far_unary_part};
use crate::function::{RecSplit, Words};
use crate::key::Hash128;
use crate::read::Select;
use warpset_core::recsplit::hash::{
    LEVEL_FIRST, LEVEL_LEAF, LEVEL_ROOT, LEVEL_SECOND, MULTIPLIER_1, MULTIPLIER_2, REGROUP, leaf_group_multiplier,
    start_seed,
};

/// A number for each look-up of a batch.
type Lane = [u64; BATCH];

const LOW: u64 = 0xffff_ffff;

/// The walks of a batch, each field in lanes.
struct Walks {
    low: Lane,
    value: Lane,
    fixed: Lane,
    unary: Lane,
    skip: Lane,
    keys: Lane,
}

/// The fields of a row that a level needs, unpacked.
#[derive(Clone, Copy)]
struct Fields {
    reciprocal: u64,
    scale: u64,
    child_fixed_bits: u64,
    values: u64,
    unit: u64,
    child_codes: u64,
    golomb: u64,
    last: u64,
    groups: u64,
    radix: u64,
}

/// Rows and words, for loads in lanes.
#[derive(Clone, Copy)]
struct Memory<'a> {
    rows: &'a [Row],
    words: &'a [u64],
}

impl Memory<'_> {
    #[inline(always)]
    fn row(self, keys: u64) -> Fields {
        let index = (keys as usize).min(self.rows.len() - 1);
        // SAFETY: the index is within the rows, which are 32 bytes of integers without padding, aligned for words.
        let [a, b, c, d] = unsafe { self.rows.as_ptr().cast::<[u64; 4]>().add(index).read() };
        // In the order of `Row`, little-endian.
        Fields {
            reciprocal: a,
            scale: b & LOW,
            child_fixed_bits: c & LOW,
            values: c >> 32,
            unit: d & 0xffff,
            child_codes: d >> 16 & 0xffff,
            golomb: d >> 32 & 0xff,
            last: d >> 40 & 0xff,
            groups: d >> 48 & 0xff,
            radix: d >> 56,
        }
    }

    /// [`crate::read::bits_from`].
    #[inline(always)]
    fn bits_from(self, at: u64) -> u64 {
        let limit = self.words.len() as u64 * 8 - 8;
        let byte = at >> 3;
        let within = if byte < limit { byte } else { 0 };
        // SAFETY: the eight bytes are within the words, of which there is one at least.
        let bits = unsafe { self.words.as_ptr().cast::<u8>().add(within as usize).cast::<u64>().read_unaligned() };
        if byte < limit { bits >> (at & 7) } else { 0 }
    }
}

/// High half of a product, from products of halves, which vectors have.
#[inline(always)]
fn multiply_high(a: u64, b: u64) -> u64 {
    let (a0, a1, b0, b1) = (a & LOW, a >> 32, b & LOW, b >> 32);
    let middle = a1 * b0 + ((a0 * b0) >> 32);
    let other = a0 * b1 + (middle & LOW);
    a1 * b1 + (middle >> 32) + (other >> 32)
}

/// Position of the one of `word` with `rank` ones below it, of those that there are.
#[inline(always)]
fn select(word: u64, rank: u64) -> u64 {
    let (mut word, mut rank, mut at) = (word, rank, 0);
    let mut width = 32;
    while width > 0 {
        let ones = u64::from((word & ((1 << width) - 1)).count_ones());
        let above = rank >= ones;
        rank = if above { rank - ones } else { rank };
        word = if above { word >> width } else { word };
        at = if above { at + width } else { at };
        width /= 2;
    }
    at
}

/// [`warpset_core::recsplit::hash::trial_hash`] with the 32-bit remix.
#[inline(always)]
fn trial_hash(low: u64, start: u32, trial: u64) -> u64 {
    let sum = low.wrapping_add(trial);
    let folded = (sum >> 32 ^ sum ^ u64::from(start)) & LOW;
    let mixed = (folded * u64::from(MULTIPLIER_1)) & LOW;
    let mixed = mixed ^ mixed >> 15;
    (mixed * u64::from(MULTIPLIER_2)) & LOW
}

impl Fields {
    /// [`Row::rotation`].
    #[inline(always)]
    fn rotation(&self, stored: u64, group: u64) -> u64 {
        let fraction = stored.wrapping_mul(POWERS[((self.radix * 8 + group) & 255) as usize]);
        ((fraction >> 32) * self.radix + (((fraction & LOW) * self.radix) >> 32)) >> 32
    }

    /// The group of a key of a splitting.
    #[inline(always)]
    fn group(&self, low: u64) -> u64 {
        ((low & 0xff) * self.groups) >> 8
    }
}

impl<W: Words> RecSplit<W> {
    /// The values of at most [`BATCH`] keys, with the 32-bit remix; there are keys.
    #[inline(always)]
    pub(crate) fn get_wide(&self, hashes: &[Hash128], values: &mut [u64], select: impl Select) {
        let words = self.words.words();
        let memory = Memory { rows: &self.rows, words };
        let entered = self.enter_all(words, hashes, select);
        let lane = |field: fn(&Walk) -> u64| -> Lane { std::array::from_fn(|i| field(&entered[i])) };
        let mut walks = Walks {
            low: lane(|walk| walk.low),
            value: lane(|walk| walk.value),
            fixed: lane(|walk| walk.fixed),
            unary: lane(|walk| walk.unary),
            skip: lane(|walk| u64::from(walk.skip)),
            keys: lane(|walk| u64::from(walk.keys)),
        };
        let levels = &self.levels;
        let above = |walks: &Walks, keys: u32| walks.keys.iter().any(|&of| of > u64::from(keys));
        if above(&walks, levels.second_unit) {
            let root = walks.unary;
            let mut codes: Lane =
                std::array::from_fn(|i| walks.keys[i].saturating_sub(1) / u64::from(levels.second_unit));
            let high: [bool; BATCH] = std::array::from_fn(|i| walks.keys[i] > u64::from(levels.second_unit));
            let mut level = LEVEL_ROOT;
            while above(&walks, levels.second_unit) {
                self.halve_wide(memory, &mut walks, &mut codes, start_seed(level));
                level += 1;
            }
            for i in (0..hashes.len()).filter(|&i| high[i]) {
                let mut walk = Walk::default();
                self.land(words, &mut walk, &Above { unary: root[i], codes: codes[i] as u32 }, select);
                (walks.unary[i], walks.skip[i]) = (walk.unary, 0);
            }
        }
        for (keys, level) in [(levels.first_unit, LEVEL_SECOND), (levels.leaf, LEVEL_FIRST)] {
            if above(&walks, keys) {
                self.split_wide(memory, &mut walks, u64::from(keys), start_seed(level));
            }
        }
        let numbers = self.finish_wide(memory, &mut walks);
        values.copy_from_slice(&numbers[..values.len()]);
    }

    /// The stored numbers of all nodes of more than `least` keys, which are passed.
    #[inline(always)]
    fn stored_wide(&self, memory: Memory, walks: &mut Walks, least: u64) -> Lane {
        // Results go to arrays that nothing else can point to, which is what lets the loop become vectors.
        let [mut stored, mut fixed_of, mut unary_of]: [Lane; 3] = [[0; BATCH]; 3];
        let mut missing = [0_u8; BATCH];
        for i in 0..BATCH {
            let golomb = memory.row(walks.keys[i]).golomb;
            let bits = memory.bits_from(walks.unary[i]) << 1 | 1;
            let found = walks.skip[i] + 1 < u64::from(bits.count_ones());
            let begin = select(bits, walks.skip[i]);
            let rest = bits >> (begin & 63) >> 1;
            let zeros = u64::from((!rest & rest.wrapping_sub(1)).count_ones());
            let on = walks.keys[i] > least;
            missing[i] = u8::from(!found & on);
            let fixed = memory.bits_from(walks.fixed[i]) & ((1 << (golomb & 63)) - 1);
            stored[i] = zeros << (golomb & 63) | fixed;
            fixed_of[i] = walks.fixed[i].wrapping_add(if on { golomb } else { 0 });
            unary_of[i] = walks.unary[i].wrapping_add(if on & found { begin + zeros + 1 } else { 0 });
        }
        (walks.fixed, walks.unary) = (fixed_of, unary_of);
        if missing != [0; BATCH] {
            for i in (0..BATCH).filter(|&i| missing[i] != 0) {
                let golomb = memory.row(walks.keys[i]).golomb;
                let (zeros, end) = far_unary_part(memory.words, walks.unary[i], walks.skip[i] as u32);
                let fixed = memory.bits_from(walks.fixed[i].wrapping_sub(golomb)) & ((1 << golomb) - 1);
                (stored[i], walks.unary[i]) = (zeros << golomb | fixed, end);
            }
        }
        stored
    }

    /// `halve` for all walks on the higher levels.
    #[inline(always)]
    fn halve_wide(&self, memory: Memory, walks: &mut Walks, codes: &mut Lane, start: u32) {
        let least = u64::from(self.levels.second_unit);
        let second_codes = u64::from(self.levels.second_codes);
        let stored = self.stored_wide(memory, walks, least);
        let [mut value, mut fixed, mut skip, mut keys_of, mut codes_of]: [Lane; 5] = [[0; BATCH]; 5];
        for i in 0..BATCH {
            let keys = walks.keys[i];
            let row = memory.row(keys);
            let trial = stored[i] >> (row.groups.wrapping_sub(1) & 63);
            let mirror = 0_u64.wrapping_sub((stored[i] << 1 >> row.group(walks.low[i])) & 1) & LOW;
            let right = trial_hash(walks.low[i], start, trial) ^ mirror >= row.scale;
            let on = keys > least;
            let right_of = |x: u64| if right & on { x } else { 0 };
            value[i] = walks.value[i].wrapping_add(right_of(row.values));
            fixed[i] = walks.fixed[i].wrapping_add(right_of(row.child_fixed_bits));
            skip[i] = if on { right_of(row.child_codes) } else { walks.skip[i] };
            codes_of[i] = codes[i] + right_of((row.child_codes + 1) * second_codes);
            let next = if right { keys.wrapping_sub(row.unit) } else { row.unit };
            keys_of[i] = if on { next } else { keys };
        }
        (walks.value, walks.fixed, walks.skip, walks.keys) = (value, fixed, skip, keys_of);
        *codes = codes_of;
    }

    /// `split` for all walks whose nodes have more than `least` keys.
    #[inline(always)]
    fn split_wide(&self, memory: Memory, walks: &mut Walks, least: u64, start: u32) {
        let stored = self.stored_wide(memory, walks, least);
        let [mut value, mut fixed, mut skip, mut keys_of]: [Lane; 4] = [[0; BATCH]; 4];
        for i in 0..BATCH {
            let keys = walks.keys[i];
            let row = memory.row(keys);
            let rotation = row.rotation(stored[i], row.group(walks.low[i]));
            let hash = trial_hash(walks.low[i], start, multiply_high(stored[i] << 1, row.reciprocal));
            let half = u64::from(hash ^ (0_u64.wrapping_sub(rotation) & LOW) >= row.scale);
            let part = ((hash >> 16) * (row.scale & 0xffff)) >> 28;
            let turned = part + rotation;
            let turned = if turned >= row.radix { turned.wrapping_sub(row.radix) } else { turned };
            let part = if part < row.radix { turned } else { part };
            let child = if row.last == 1 { half } else { part };
            let on = keys > least;
            let child_of = |x: u64| if on { child * x } else { 0 };
            value[i] = walks.value[i].wrapping_add(child_of(row.values));
            fixed[i] = walks.fixed[i].wrapping_add(child_of(row.child_fixed_bits));
            skip[i] = if on { child * row.child_codes } else { walks.skip[i] };
            let next = if child == row.last { keys.wrapping_sub(child * row.unit) } else { row.unit };
            keys_of[i] = if on { next } else { keys };
        }
        (walks.value, walks.fixed, walks.skip, walks.keys) = (value, fixed, skip, keys_of);
    }

    /// `finish` for all walks.
    #[inline(always)]
    fn finish_wide(&self, memory: Memory, walks: &mut Walks) -> Lane {
        let stored = self.stored_wide(memory, walks, 0);
        let mut numbers = [0; BATCH];
        for i in 0..BATCH {
            let row = memory.row(walks.keys[i]);
            let low = walks.low[i];
            let trial = multiply_high(stored[i] << 1, row.reciprocal);
            // `leaf_group_multiplier` in two steps.
            let regroup = (trial & MOST_TRIALS) / REGROUP;
            let multiplier = (u64::from(leaf_group_multiplier(0)) * (2 * regroup + 1)) & LOW;
            let group = ((((low & LOW) * multiplier) & LOW) >> 24) * row.groups >> 8;
            let hash = trial_hash(low, start_seed(LEVEL_LEAF), trial);
            let position = (((hash >> 16) * row.values) >> 16) + row.rotation(stored[i], group);
            let turned = position.wrapping_sub(row.values);
            let position = if position >= row.values { turned } else { position };
            numbers[i] = walks.value[i].wrapping_add(position).min(self.values - 1);
        }
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::Portable;
    use crate::{Builder, Key, Method};

    #[test]
    fn lanes_agree_with_single_look_ups() {
        for (leaf, bucket, method) in [
            (5, 5, Method::Rotation),
            (8, 100, Method::BruteForce),
            (8, 2000, Method::Rotation),
            (12, 9, Method::Grouped),
            (16, 2000, Method::Grouped),
            (20, 300, Method::Grouped),
            (3, 2000, Method::Grouped),
        ] {
            let keys: Vec<u64> = (0..3000).collect();
            let builder = Builder::new().leaf_size(leaf).bucket_size(bucket).method(method);
            for builder in [builder.clone(), builder.clone().load_factor(0.8), builder.keys_per_value(leaf)] {
                let function = builder.build(&keys).unwrap();
                for keys in keys.chunks(BATCH) {
                    let hashes: Vec<Hash128> = keys.iter().map(|key| key.hash128(function.seed())).collect();
                    let mut values = vec![u64::MAX; keys.len()];
                    function.get_wide(&hashes, &mut values, Portable);
                    assert!(keys.iter().zip(values).all(|(key, value)| function.get(key) == value), "{leaf} {bucket}");
                }
            }
        }
    }

    #[test]
    fn arithmetic_of_lanes() {
        for a in [0, 1, 0xffff_ffff, u64::MAX, 0x1234_5678_9abc_def0] {
            for b in [0, 3, u64::MAX, 0xfedc_ba98_7654_3210, 1 << 63] {
                assert_eq!(multiply_high(a, b), ((u128::from(a) * u128::from(b)) >> 64) as u64);
            }
            for rank in 0..a.count_ones() {
                assert_eq!(select(a, rank.into()) as u32, warpset_core::recsplit::bits::select(a, rank));
            }
        }
    }
}

//! Tasks: their solutions, and the moves of their keys.

use crate::u32_vector::{U32Vector, lanes_below};
use warpset_core::consensus::hash::{FACTORS, LEVEL_FACTOR, SEED_BITS, multiplier, next_seed};
use warpset_core::consensus::tree::LEAF;

/// Words that may be read or written after a level's keys.
pub(super) const PADDING: usize = 16;
/// Values to evaluate at a time; a multiple of every vector's lanes.
pub(super) const VALUES: u32 = 32;

/// A splitting or a leaf.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    /// Keys of the bucket before the task's own.
    pub(super) begin: u32,
    pub(super) keys: u32,
    /// Keys that go left; none for leaves.
    pub(super) left: u32,
    /// Keys with a hash below it go left.
    pub(super) threshold: u32,
    pub(super) level: u32,
    /// Bits of the task's own share.
    pub(super) bits: u32,
}

/// Halves of keys on all levels.
#[derive(Clone, Copy)]
pub(super) struct Levels {
    pub(super) lows: *mut u32,
    pub(super) highs: *mut u32,
    /// Distance between levels in words.
    pub(super) stride: usize,
}

impl Levels {
    /// Returns the first keys of a task.
    ///
    /// # Safety
    /// - The task is of the bucket that the levels are for.
    #[inline(always)]
    unsafe fn of(self, level: u32, begin: u32) -> (*mut u32, *mut u32) {
        let at = level as usize * self.stride + begin as usize;
        // SAFETY: the task is within the level, by this function's contract.
        unsafe { (self.lows.add(at), self.highs.add(at)) }
    }
}

/// Computes the multipliers of seeds.
///
/// # Safety
/// - The processor has the instructions of `V`.
#[inline(always)]
unsafe fn multipliers<V: U32Vector>(seeds: V, level: u32) -> V {
    // SAFETY: the processor has the instructions, by this function's contract.
    unsafe {
        let x = seeds.xor(V::splat(level.wrapping_mul(LEVEL_FACTOR)));
        let x = x.xor(x.shr::<16>()).mul(V::splat(FACTORS[0]));
        x.xor(x.shr::<15>()).mul(V::splat(FACTORS[1]))
    }
}

/// Seeds to evaluate a task under, one after another, and the place of the first.
#[derive(Clone, Copy)]
pub(super) struct Before {
    pub(super) seeds: *const u32,
    pub(super) count: u32,
    pub(super) place: u32,
}

/// Adds the seeds that solve a task after the seeds `before` to `found`, in the order of `before` and of their values.
/// `origins` gets the place of the preceding seed of each. The values begin at `from`; [`VALUES`] of them are
/// evaluated, or fewer if the task's bits allow fewer. Returns the number of seeds.
///
/// # Safety
/// - The processor has the instructions of `V`.
/// - The task is of the bucket that the levels are for, and its keys are on its level.
/// - `before.seeds` is valid for reads of its seeds and of [`PADDING`] more words.
/// - `found` and `origins` are valid for writes of `VALUES` words per seed of `before` and [`PADDING`] more, and
///   overlap nothing else.
#[inline(always)]
pub(super) unsafe fn solve<V: U32Vector>(
    levels: Levels,
    task: &Task,
    before: Before,
    from: u32,
    (mut found, mut origins): (*mut u32, *mut u32),
) -> usize {
    let (begin, bits) = (found, task.bits);
    // SAFETY: this function's contract; `PADDING` readable words follow a level's keys.
    unsafe {
        let (keys, shift) = (levels.of(task.level, task.begin), V::splat(SEED_BITS - bits));
        if V::N > 1 << bits {
            // All values after several seeds fit one vector.
            let (in_one, by) = ((V::N >> bits) as u32, V::splat(bits));
            let (seed_of, values) = (V::iota().shrv(by), V::iota().and(V::splat((1 << bits) - 1)));
            let mut at = 0;
            while at < before.count {
                let seeds = V::table(&*before.seeds.add(at as usize).cast());
                let some = in_one.min(before.count - at);
                let origin = seed_of.add(V::splat(before.place + at));
                let seeds = V::look_up(seeds, seed_of).shrv(by).or(values.shlv(shift));
                let solved = solved::<V>(keys, task, seeds, (some << bits) as usize);
                // No branch on the result, since it would be unpredictable.
                seeds.compress(solved, found);
                origin.compress(solved, origins);
                found = found.add(solved.count_ones() as usize);
                origins = origins.add(solved.count_ones() as usize);
                at += in_one;
            }
        } else {
            let values = (1_u32 << bits).min(from + VALUES);
            for at in 0..before.count {
                let seed = V::splat(next_seed(*before.seeds.add(at as usize), 0, bits));
                let origin = V::splat(before.place + at);
                let mut value = from;
                while value < values {
                    let seeds = seed.or(V::iota().add(V::splat(value)).shlv(shift));
                    let solved = solved::<V>(keys, task, seeds, V::N);
                    seeds.compress(solved, found);
                    origin.store(origins);
                    found = found.add(solved.count_ones() as usize);
                    origins = origins.add(solved.count_ones() as usize);
                    value += V::N as u32;
                }
            }
        }
        found.offset_from(begin) as usize
    }
}

/// Returns the mask of the first `count` seeds that solve a task.
///
/// # Safety
/// - As for [`solve`]; the pointers are to the task's keys.
#[inline(always)]
unsafe fn solved<V: U32Vector>(keys: (*mut u32, *mut u32), task: &Task, seeds: V, count: usize) -> u32 {
    // SAFETY: this function's contract.
    unsafe {
        let multipliers = multipliers(seeds, task.level);
        let solved = match task.keys {
            _ if task.left > 0 => split::<V>(keys, task, multipliers, count),
            1 => lanes_below(V::N),
            2 => leaf::<V, 2>(keys, multipliers),
            3 => leaf::<V, 3>(keys, multipliers),
            4 => leaf::<V, 4>(keys, multipliers),
            _ => leaf::<V, { LEAF as usize }>(keys, multipliers),
        };
        solved & lanes_below(count)
    }
}

/// Returns the mask of multipliers that give each of `M` keys a position of its own.
///
/// # Safety
/// - The processor has the instructions of `V`; the pointers are valid for `M` reads.
#[inline(always)]
unsafe fn leaf<V: U32Vector, const M: usize>((lows, highs): (*mut u32, *mut u32), multipliers: V) -> u32 {
    // SAFETY: this function's contract.
    unsafe {
        let (mut taken, one) = (V::splat(0), V::splat(1));
        for at in 0..M {
            let hash = V::splat(*lows.add(at)).mul(multipliers).add(V::splat(*highs.add(at)));
            let position = match M {
                2 => hash.shr::<31>(),
                4 => hash.shr::<30>(),
                _ => hash.mul_high_halves(V::splat((M as u32) << 16)).shr::<16>(),
            };
            taken = taken.or(one.shlv(position));
        }
        taken.eq(V::splat((1 << M) - 1))
    }
}

/// Returns the mask of the first `count` multipliers that send the right number of keys left.
///
/// # Safety
/// - The processor has the instructions of `V`; the pointers are valid for reads of the task's keys and of a vector
///   from the last one on.
#[inline(always)]
unsafe fn split<V: U32Vector>((lows, highs): (*mut u32, *mut u32), task: &Task, multipliers: V, count: usize) -> u32 {
    let keys = task.keys as usize;
    // SAFETY: this function's contract.
    unsafe {
        let threshold = V::splat(task.threshold);
        // Chooses by the number of instructions of both ways.
        if count * (6 + 4 * keys.div_ceil(V::N)) > 4 * keys {
            let (mut lefts, one) = (V::splat(0), V::splat(1));
            for at in 0..keys {
                let hash = V::splat(*lows.add(at)).mul(multipliers).add(V::splat(*highs.add(at)));
                lefts = lefts.add_if_less(hash, threshold, one);
            }
            return lefts.eq(V::splat(task.left));
        }
        let mut each = [0_u32; 16];
        multipliers.store(each.as_mut_ptr());
        let mut solved = 0;
        for (seed, &multiplier) in each[..count].iter().enumerate() {
            let (multiplier, mut lefts, mut at) = (V::splat(multiplier), 0, 0);
            while at < keys {
                let hash = V::load(lows.add(at)).mul(multiplier).add(V::load(highs.add(at)));
                lefts += (hash.less(threshold) & lanes_below(keys - at)).count_ones();
                at += V::N;
            }
            solved |= u32::from(lefts == task.left) << seed;
        }
        solved
    }
}

/// Moves the keys of a splitting to the next level.
///
/// # Safety
/// - The processor has the instructions of `V`.
/// - The task is of the bucket that the levels are for, its keys are on its level, and `seed` solves it.
#[inline(always)]
pub(super) unsafe fn divide<V: U32Vector>(levels: Levels, task: &Task, seed: u32) {
    let keys = task.keys as usize;
    // SAFETY: this function's contract. The right half is written after the left one, whose padding may cover the right
    // half's place. It may itself cover the places of later tasks, which are written when these are solved, or
    // `PADDING`.
    unsafe {
        let (lows, highs) = levels.of(task.level, task.begin);
        let multiplier = V::splat(multiplier(seed, task.level));
        let threshold = V::splat(task.threshold);
        let mut to = levels.of(task.level + 1, task.begin);
        for flip in [0, u32::MAX] {
            let mut at = 0;
            while at < keys {
                let (low, high) = (V::load(lows.add(at)), V::load(highs.add(at)));
                let mask = (low.mul(multiplier).add(high).less(threshold) ^ flip) & lanes_below((keys - at).min(V::N));
                low.compress(mask, to.0);
                high.compress(mask, to.1);
                let moved = mask.count_ones() as usize;
                to = (to.0.add(moved), to.1.add(moved));
                at += V::N;
            }
        }
    }
}

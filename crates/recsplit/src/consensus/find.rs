//! The search for the code of a bucket.
//!
//! Tasks are solved in their order. A visit of a task evaluates the seeds that its own bits make, a vector of them at a
//! time, to a mask of those that solve it, and goes on with the first. When a task has none left, the one before takes
//! its next one. So the code is the first one in the order of the tasks' own bits, whatever evaluates them; numbers at
//! the beginning of a bucket are tried one after the other. Keys move from level to level, each in memory of its own, so
//! that going back needs nothing to be restored.

use super::budget::Rows;
use crate::Simd;
use crate::u32_vector::portable::Portable;
use crate::u32_vector::{U32Vector, lanes_below};
use warpset_core::consensus::hash::{FACTOR, LEVEL_FACTOR, SEED_BITS, multiplier, next_seed};
use warpset_core::consensus::tree::{FRACTION, LEAF, Node, depth};

/// What all buckets of a function have in common.
#[derive(Debug)]
pub(crate) struct Tasks {
    pub(crate) rows: Rows,
    pub(crate) root_bits: u32,
    /// How often a task may be entered after one number at the beginning of a bucket: sixty times as often as tasks are
    /// on average. More is a sign of keys that have no solution, so that the search tries another number.
    pub(crate) entries: u32,
}

/// A splitting or a leaf.
#[derive(Clone, Copy, Debug)]
struct Task {
    /// Keys of the bucket that are before its own.
    begin: u32,
    keys: u32,
    /// Keys that go left; none for leaves.
    left: u32,
    /// Keys go left whose hash is below.
    threshold: u32,
    level: u32,
    /// Bits of its own.
    bits: u32,
}

/// Where the search is in a task.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// The seed of the task before.
    before: u32,
    /// Its own bits, as they are.
    value: u32,
    /// The first value that was not evaluated.
    next: u32,
    /// Those of the evaluated ones, the last vector, that solve the task and were not taken yet.
    left: u32,
    /// How often the task was entered.
    entries: u32,
}

/// Space that a thread keeps from search to search.
#[derive(Default)]
pub struct Scratch {
    tasks: Vec<Task>,
    states: Vec<State>,
    /// Keys of the bucket that the tasks are for.
    planned: u32,
    /// Low and high halves of keys, a copy for each level.
    lows: Vec<u32>,
    highs: Vec<u32>,
}

/// There is no code, or none is found in reasonable time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoCode;

/// Words that may be read or written after a level's keys.
const PADDING: usize = 16;
/// Numbers at the beginning that may end without an answer.
const MOST_UNFINISHED: u32 = 4;

impl Tasks {
    pub(crate) fn new(largest: u32, slack: u32, root_bits: u32) -> Self {
        let rows = Rows::new(largest, slack);
        Self { rows, root_bits, entries: 64 + 16 * (1 << 16) / slack }
    }

    /// Bits of the code of a bucket of `keys` keys.
    #[inline]
    pub(crate) fn bits(&self, keys: u32) -> u32 {
        if keys < 2 { 0 } else { self.root_bits + (self.rows.bucket(keys) >> FRACTION) }
    }
}

impl Scratch {
    /// The tasks of a bucket of `keys` keys.
    fn plan(&mut self, tasks: &Tasks, keys: u32) {
        if self.planned == keys {
            return;
        }
        self.planned = keys;
        self.tasks.clear();
        let (mut base, mut before, depth) = (0_u32, 0, depth(keys));
        for level in 0..=depth {
            let row = tasks.rows.of(keys >> level, level == depth);
            for index in 0..1 << level {
                let node = Node::new(keys, level, index);
                let end = base.wrapping_add(row.end(index, node.end)) >> FRACTION;
                self.tasks.push(Task {
                    begin: node.begin,
                    keys: node.keys(),
                    left: if level == depth { 0 } else { node.middle - node.begin },
                    threshold: node.threshold(&row),
                    level,
                    bits: end - before,
                });
                before = end;
            }
            base = base.wrapping_add(row.all(level, keys));
        }
        self.states.clear();
        self.states.resize(self.tasks.len(), State::default());
        let words = (depth as usize + 1) * (keys as usize + PADDING);
        if self.lows.len() < words {
            self.lows.resize(words, 0);
            self.highs.resize(words, 0);
        }
    }

    /// The parts of the code that was found, in order: values and their bits.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.states.iter().zip(&self.tasks).map(|(state, task)| (state.value, task.bits))
    }
}

/// Finds the code of a bucket of at least two keys, and returns the number that it begins with.
///
/// # Safety
/// - The processor has the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn find<V: U32Vector>(tasks: &Tasks, keys: &[u64], scratch: &mut Scratch) -> Result<u32, NoCode> {
    scratch.plan(tasks, keys.len() as u32);
    for (&key, (low, high)) in keys.iter().zip(scratch.lows.iter_mut().zip(&mut scratch.highs)) {
        (*low, *high) = (key as u32, (key >> 32) as u32);
    }
    let mut unfinished = 0;
    for root in 0..1 << tasks.root_bits {
        // SAFETY: the caller vouches for the instructions.
        match unsafe { chain::<V>(next_seed(0, root, tasks.root_bits), keys.len(), tasks.entries, scratch) } {
            Chain::Solved => return Ok(root),
            Chain::Unsolvable => {}
            Chain::Unfinished => {
                unfinished += 1;
                if unfinished == MOST_UNFINISHED || have_duplicates(keys) {
                    return Err(NoCode);
                }
            }
        }
    }
    Err(NoCode)
}

#[cold]
fn have_duplicates(keys: &[u64]) -> bool {
    let mut keys = keys.to_vec();
    keys.sort_unstable();
    keys.windows(2).any(|pair| pair[0] == pair[1])
}

enum Chain {
    Solved,
    Unsolvable,
    Unfinished,
}

/// Solves all tasks after a number at the beginning, each of them entered at most `most` times.
///
/// # Safety
/// - The processor has the instructions of `V`.
/// - `scratch` was planned for a bucket of `keys` keys, which are on its first level.
#[inline(always)]
unsafe fn chain<V: U32Vector>(root: u32, keys: usize, most: u32, scratch: &mut Scratch) -> Chain {
    let Scratch { tasks, states, lows, highs, .. } = scratch;
    let stride = keys + PADDING;
    let levels = Levels { lows: lows.as_mut_ptr(), highs: highs.as_mut_ptr(), stride };
    states.iter_mut().for_each(|state| state.entries = 0);
    let (mut at, mut seed) = (0, root);
    loop {
        // A new task, after the one with `seed`.
        let task = &tasks[at];
        let entries = states[at].entries + 1;
        if entries > most {
            return Chain::Unfinished;
        }
        // SAFETY: the caller vouches for the instructions; tasks are within the levels.
        let mut left = unsafe { evaluate::<V>(levels, task, seed, 0) };
        let mut state = State { before: seed, value: 0, next: V::N as u32, left, entries };
        // The next solution of this task, or of one before.
        loop {
            let task = &tasks[at];
            if left != 0 {
                break;
            }
            if state.next >> task.bits == 0 {
                // SAFETY: as above.
                left = unsafe { evaluate::<V>(levels, task, state.before, state.next) };
                state.next += V::N as u32;
                continue;
            }
            states[at].entries = state.entries;
            if at == 0 {
                return Chain::Unsolvable;
            }
            at -= 1;
            state = states[at];
            left = state.left;
        }
        let task = &tasks[at];
        state.value = state.next - V::N as u32 + left.trailing_zeros();
        state.left = left & (left - 1);
        seed = next_seed(state.before, state.value, task.bits);
        states[at] = state;
        at += 1;
        if at == tasks.len() {
            return Chain::Solved;
        }
        if task.left > 0 {
            // SAFETY: as above.
            unsafe { divide::<V>(levels, task, seed) };
        }
    }
}

/// The halves of keys on all levels.
#[derive(Clone, Copy)]
struct Levels {
    lows: *mut u32,
    highs: *mut u32,
    /// Words from level to level.
    stride: usize,
}

impl Levels {
    /// The first keys of a task.
    ///
    /// # Safety
    /// - The task is of the bucket that the levels are for.
    #[inline(always)]
    unsafe fn of(self, level: u32, begin: u32) -> (*mut u32, *mut u32) {
        let at = level as usize * self.stride + begin as usize;
        // SAFETY: within the level, by the caller's promise.
        unsafe { (self.lows.add(at), self.highs.add(at)) }
    }
}

/// The multipliers of seeds.
///
/// # Safety
/// - The processor has the instructions of `V`.
#[inline(always)]
unsafe fn multipliers<V: U32Vector>(seeds: V, level: u32) -> V {
    // SAFETY: the caller vouches for the instructions.
    unsafe {
        let x = seeds.xor(V::splat(level.wrapping_mul(LEVEL_FACTOR))).mul(V::splat(FACTOR));
        x.xor(x.shr::<15>())
    }
}

/// Which of the values `first`, `first + 1`, … solve a task after the seed `before`, one bit for each lane of a vector.
///
/// # Safety
/// - The processor has the instructions of `V`.
/// - The task is of the bucket that the levels are for, and its keys are on its level.
#[inline(always)]
unsafe fn evaluate<V: U32Vector>(levels: Levels, task: &Task, before: u32, first: u32) -> u32 {
    // SAFETY: the caller vouches for the instructions; a level's keys are followed by `PADDING` words that may be read.
    unsafe {
        let values = V::iota().add(V::splat(first));
        let own = values.shlv(V::splat(SEED_BITS - task.bits));
        let seeds = V::splat(next_seed(before, 0, task.bits)).or(own);
        let multipliers = multipliers(seeds, task.level);
        let (lows, highs) = levels.of(task.level, task.begin);
        let count = (1_u64 << task.bits).min(V::N as u64) as usize;
        let solved = match task.keys {
            _ if task.left > 0 => split::<V>((lows, highs), task, multipliers, count),
            1 => lanes_below(V::N),
            2 => leaf::<V, 2>((lows, highs), multipliers),
            3 => leaf::<V, 3>((lows, highs), multipliers),
            4 => leaf::<V, 4>((lows, highs), multipliers),
            _ => leaf::<V, { LEAF as usize }>((lows, highs), multipliers),
        };
        solved & lanes_below(count)
    }
}

/// Which multipliers give each of `M` keys a position of its own.
///
/// # Safety
/// - The processor has the instructions of `V`; the pointers are valid for `M` reads.
#[inline(always)]
unsafe fn leaf<V: U32Vector, const M: usize>((lows, highs): (*mut u32, *mut u32), multipliers: V) -> u32 {
    // SAFETY: the caller's promises.
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

/// Which of the first `count` multipliers send as many keys left as there should be.
///
/// # Safety
/// - The processor has the instructions of `V`; the pointers are valid for reads of the task's keys and of a vector
///   from the last one on.
#[inline(always)]
unsafe fn split<V: U32Vector>((lows, highs): (*mut u32, *mut u32), task: &Task, multipliers: V, count: usize) -> u32 {
    let keys = task.keys as usize;
    // SAFETY: the caller's promises.
    unsafe {
        let threshold = V::splat(task.threshold);
        if 3 * count * keys.div_ceil(V::N) > 2 * keys {
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
unsafe fn divide<V: U32Vector>(levels: Levels, task: &Task, seed: u32) {
    let keys = task.keys as usize;
    // SAFETY: the caller's promises; the right half comes after the left one, which may write over the right half's
    // place, and may itself write over keys of later tasks, which get there when these are solved, or `PADDING`.
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

/// What the processor has, and the settings ask for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Instructions {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2(x86::Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(x86::Avx512),
}

impl Instructions {
    pub(crate) fn of(simd: Simd) -> Self {
        match simd {
            Simd::Sequential | Simd::Portable => Self::Portable,
            #[cfg(target_arch = "x86_64")]
            simd => {
                let avx512 = if simd == Simd::Avx2 { None } else { x86::Avx512::detect() };
                avx512.map(Self::Avx512).or_else(|| x86::Avx2::detect().map(Self::Avx2)).unwrap_or(Self::Portable)
            }
            #[cfg(not(target_arch = "x86_64"))]
            _ => Self::Portable,
        }
    }

    /// [`find`] with the instructions.
    pub(crate) fn find(self, tasks: &Tasks, keys: &[u64], scratch: &mut Scratch) -> Result<u32, NoCode> {
        match self {
            // SAFETY: portable vectors need no instruction beyond the target's.
            Self::Portable => unsafe { find::<Portable>(tasks, keys, scratch) },
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(avx2) => avx2.find(tasks, keys, scratch),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(avx512) => avx512.find(tasks, keys, scratch),
        }
    }
}

/// The search, compiled for AVX-512 and for AVX2.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{NoCode, Scratch, Tasks};
    use crate::u32_vector::x86::{V256, V512};

    macro_rules! instance {
        ($name:ident, $vector:ty, $features:literal, $detect:path) => {
            /// Proof that the processor has the features: only `detect` makes one.
            #[derive(Clone, Copy, Debug)]
            pub(crate) struct $name(());

            impl $name {
                /// If the processor has the features.
                pub(super) fn detect() -> Option<Self> {
                    $detect().then_some(Self(()))
                }

                /// [`super::find`].
                pub(super) fn find(self, tasks: &Tasks, keys: &[u64], scratch: &mut Scratch) -> Result<u32, NoCode> {
                    #[target_feature(enable = $features)]
                    fn find(tasks: &Tasks, keys: &[u64], scratch: &mut Scratch) -> Result<u32, NoCode> {
                        // SAFETY: the features are enabled here.
                        unsafe { super::find::<$vector>(tasks, keys, scratch) }
                    }
                    // SAFETY: a value of this type exists, so the processor has the features.
                    unsafe { find(tasks, keys, scratch) }
                }
            }
        };
    }

    instance!(
        Avx512,
        V512,
        "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,popcnt",
        crate::processor::has_avx512
    );
    instance!(Avx2, V256, "avx2,bmi1,bmi2,lzcnt,popcnt", crate::processor::has_avx2);
}

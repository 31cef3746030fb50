//! Search for the code of a bucket.
//!
//! The tasks of a bucket form a chain (`warpset_core::consensus`). Each task is solved by the first values of its own
//! bits from which all later tasks can be solved too; numbers at the beginning of a bucket are tried in ascending
//! order:
//!
//! ```text
//! root = 0, 1, 2, …            for each number at the beginning of the bucket
//!   task 0: values 0, 1, …     the first value under which the task holds …
//!     task 1: values 0, 1, …   … and so on; without one: back to the next value of task 0
//! ```
//!
//! So the code is the first one in the order of its bits, whatever instructions search.
//!
//! The search goes level by level ([`level`]). Within a level keys stay in place, and the search goes back and forth
//! over seeds alone. When all tasks of a level are solved, their keys move to the next level, in memory of its own, so
//! going back restores nothing.

mod level;
mod task;

use super::budget::Rows;
use crate::Simd;
use crate::u32_vector::U32Vector;
use crate::u32_vector::portable::Portable;
use level::{Level, Path};
use std::ops::Range;
use task::{Levels, PADDING, Task, divide};
use warpset_core::consensus::hash::next_seed;
use warpset_core::consensus::tree::{FRACTION, Node, depth};

/// Shared, immutable part of the search for all buckets of a function.
#[derive(Debug)]
pub(crate) struct Tasks {
    pub(crate) rows: Rows,
    pub(crate) root_bits: u32,
    /// Limit of the visits of a task per number at the beginning: sixty times the average. More suggests keys without a
    /// solution, and the search tries another number.
    pub(crate) entries: u32,
}

/// Memory that a thread reuses from search to search.
#[derive(Default)]
pub struct Scratch {
    tasks: Vec<Task>,
    /// Visits of each task.
    entries: Vec<u32>,
    levels: Vec<Level>,
    /// Keys of the bucket that was planned.
    planned: u32,
    /// Low and high halves of keys, a copy per level.
    lows: Vec<u32>,
    highs: Vec<u32>,
}

/// Failure: there is no code, or none was found within the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoCode;

/// Numbers at the beginning that may end undecided.
const MOST_UNFINISHED: u32 = 4;

impl Tasks {
    pub(crate) fn new(largest: u32, slack: u32, root_bits: u32) -> Self {
        let rows = Rows::new(largest, slack);
        Self { rows, root_bits, entries: 64 + 16 * (1 << 16) / slack }
    }

    /// Returns the bits of the code of a bucket of `keys` keys.
    #[inline]
    pub(crate) fn bits(&self, keys: u32) -> u32 {
        if keys < 2 { 0 } else { self.root_bits + (self.rows.bucket(keys) >> FRACTION) }
    }
}

impl Scratch {
    /// Plans the tasks of a bucket of `keys` keys.
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
        self.entries.resize(self.tasks.len(), 0);
        self.levels.resize_with(depth as usize + 1, Level::default);
        let words = (depth as usize + 1) * (keys as usize + PADDING);
        if self.lows.len() < words {
            self.lows.resize(words, 0);
            self.highs.resize(words, 0);
        }
    }

    /// Returns the parts of the code that was found, in order: values and their bits.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.levels.iter().enumerate().flat_map(|(level, found)| found.values(&self.tasks[tasks_of(level)]))
    }
}

/// Returns the tasks of a level.
fn tasks_of(level: usize) -> Range<usize> {
    (1 << level) - 1..(2 << level) - 1
}

/// Finds the code of a bucket of at least two keys, and returns the number at its beginning.
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
        // SAFETY: the processor has the instructions, by this function's contract.
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

/// Solves all tasks after a number at the beginning, and visits each of them at most `most` times.
///
/// # Safety
/// - The processor has the instructions of `V`.
/// - `scratch` was planned for a bucket of `keys` keys, and its first level holds them.
#[inline(always)]
unsafe fn chain<V: U32Vector>(root: u32, keys: usize, most: u32, scratch: &mut Scratch) -> Chain {
    let Scratch { tasks, entries, levels, lows, highs, .. } = scratch;
    let places = Levels { lows: lows.as_mut_ptr(), highs: highs.as_mut_ptr(), stride: keys + PADDING };
    entries.fill(0);
    levels[0].start(root, tasks_of(0).len());
    let (mut at, leaves) = (0, levels.len() - 1);
    loop {
        let own = &tasks[tasks_of(at)];
        let level = &mut levels[at];
        // SAFETY: the processor has the instructions, by this function's contract; tasks are within the levels.
        match unsafe { level.next_path::<V>(places, own, &mut entries[tasks_of(at)], most) } {
            Path::Unfinished => return Chain::Unfinished,
            Path::None if at == 0 => return Chain::Unsolvable,
            Path::None => at -= 1,
            Path::Ends(seed) => {
                let changed = level.follow();
                if at == leaves {
                    return Chain::Solved;
                }
                for (task, seed) in own.iter().zip(level.seeds()).skip(changed) {
                    // SAFETY: the processor has the instructions, by this function's contract; tasks are within the
                    // levels.
                    unsafe { divide::<V>(places, task, seed) };
                }
                at += 1;
                levels[at].start(seed, tasks_of(at).len());
            }
        }
    }
}

/// Instructions of the processor, as far as the settings allow.
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

    /// Runs [`find`] with these instructions.
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

/// Search compiled for AVX-512 and for AVX2.
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
                /// Returns the proof if the processor has the features.
                pub(super) fn detect() -> Option<Self> {
                    $detect().then_some(Self(()))
                }

                /// Runs [`super::find`].
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

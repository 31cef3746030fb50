//! Memory of a searching warp: the keys of all levels but the first, and the lists of waiting seeds.
//!
//! A list belongs to a place between two tasks of a level: the solutions of the task before, in their order. The
//! solutions of up to [`TOGETHER`] seeds were found together, so a list consists of those seeds and a word of bits, one
//! bit per value after each of them; a solution's seed follows from its place in the word.

use warpset_core::consensus::hash::next_seed;
use warpset_core::consensus::tree::depth;
use warpset_simt::warp::{self, FULL_MASK};
use warpset_simt::{Global, GlobalMut};

use crate::consensus::tree::Level;

/// The most seeds under which a task is evaluated together.
pub const TOGETHER: u32 = 8;
/// The most bits of values in a word of solutions: more values are evaluated in parts of 32.
pub const WORD_BITS: u32 = 5;

/// Words of a list.
const LIST: u32 = 16;
/// Word of a list for its solutions; the next task's first value to evaluate, the first value of the list's own, and
/// the origins follow.
const SOLUTIONS: u32 = TOGETHER;
/// Word for the visits of the task after the list.
const ENTRIES: u32 = SOLUTIONS + 4;
/// Word for the seed of the last path.
const PATH_SEED: u32 = ENTRIES + 1;
/// Word for the origin of the last path's seed.
const PATH_ORIGIN: u32 = ENTRIES + 2;

/// Returns the words of 64 bits of a slot for buckets of up to `largest` keys.
pub const fn slot_words(largest: u32) -> u64 {
    let depth = depth(largest);
    let lists = (2 << depth) + depth as u64;
    (depth as u64 * stride(largest) as u64 + lists * LIST as u64 / 2).next_multiple_of(8)
}

/// Returns the distance between levels in keys.
const fn stride(keys: u32) -> u32 {
    keys.next_multiple_of(2)
}

/// Waiting solutions.
#[derive(Clone, Copy)]
pub struct List {
    /// Seeds before the solutions: lane `i` has number `i % TOGETHER`.
    pub seeds: u32,
    /// Solutions that were not followed yet: those of the first seed, by value, then those of the second one.
    pub solutions: u32,
    /// The next task's first value to evaluate after the first solution.
    pub from: u32,
    /// First value of the solutions.
    pub base: u32,
    /// Origins of the seeds: the places of their predecessors in the list before, four bits each.
    pub origins: u32,
}

#[cfg(feature = "bodies")]
impl List {
    /// Makes the list of one seed before all tasks.
    #[inline(always)]
    pub fn of(seed: u32) -> Self {
        Self { seeds: seed, solutions: 1, from: 0, base: 0, origins: 0 }
    }

    /// Returns the place of solution number `number`, below [`TOGETHER`], of those that were not followed; any place
    /// below 32 if there are fewer.
    #[inline(always)]
    pub fn place_of(&self, number: u32) -> u32 {
        let mut rest = self.solutions;
        for before in 1..TOGETHER {
            if number >= before {
                rest &= rest.wrapping_sub(1);
            }
        }
        rest.trailing_zeros() % 32
    }

    /// Returns the place of the seed before the solution at this place, if the task before has this many bits.
    #[inline(always)]
    pub fn origin(place: u32, bits: u32) -> u32 {
        place >> bits.min(WORD_BITS)
    }

    /// Returns the solution at a place, each lane's own.
    ///
    /// # Safety
    /// All lanes of the warp come here together.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn solution(&self, place: u32, bits: u32) -> u32 {
        let value = self.base + (place & ((1 << bits.min(WORD_BITS)) - 1));
        // SAFETY: this function's contract.
        next_seed(unsafe { warp::shuffle_idx(FULL_MASK, self.seeds, Self::origin(place, bits)) }, value, bits)
    }
}

/// Keys of a level.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
pub struct Keys {
    /// Keys, from a multiple of 16 bytes on.
    pub keys: Global<u64>,
    /// Position of the bucket's first key.
    pub first: u32,
}

/// Memory of a warp for a bucket.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
pub struct Slot {
    keys: GlobalMut<u64>,
    lists: GlobalMut<u32>,
    stride: u32,
}

#[cfg(feature = "bodies")]
impl Slot {
    /// Makes a slot of the memory from `words` on, which has [`slot_words`] for a bucket of `keys` keys.
    #[inline(always)]
    pub fn new(words: GlobalMut<u64>, keys: u32) -> Self {
        let stride = stride(keys);
        Self { keys: words, lists: words.at(depth(keys) as usize * stride as usize).cast(), stride }
    }

    /// Returns the keys of a level, not the first.
    #[inline(always)]
    pub fn keys_of(self, level: u32) -> GlobalMut<u64> {
        self.keys.at((level - 1) as usize * self.stride as usize)
    }

    /// Returns the words of the list before a task, or after the last one.
    #[inline(always)]
    fn list(self, level: &Level, task: u32) -> GlobalMut<u32> {
        // Each preceding level has one list more than tasks.
        self.lists.at(((level.tasks() - 1 + level.level + task) * LIST) as usize)
    }

    /// Resets all counts of visits, and forgets paths, for a bucket of `keys` keys.
    ///
    /// # Safety
    /// All lanes of the warp come here together; the slot belongs to the warp, and is large enough for the bucket.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn clear(self, keys: u32) {
        let depth = depth(keys);
        let (mut list, lists) = (warp::lane_id(), (2 << depth) + depth);
        // SAFETY: this function's contract.
        unsafe {
            warp::sync_warp(FULL_MASK);
            while list < lists {
                self.lists.write4((list * LIST + ENTRIES) as usize, [0; 4]);
                list += 32;
            }
            warp::sync_warp(FULL_MASK);
        }
    }

    /// Writes a list.
    ///
    /// # Safety
    /// All lanes of the warp come here together, with the same arguments; the slot belongs to the warp, and has the
    /// list.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn store(self, level: &Level, task: u32, list: &List) {
        let words = self.list(level, task);
        let lane = warp::lane_id();
        // SAFETY: this function's contract; each word is written by one lane.
        unsafe {
            warp::sync_warp(FULL_MASK);
            if lane < TOGETHER {
                words.write(lane as usize, list.seeds);
            }
            if lane == 0 {
                words.write4(SOLUTIONS as usize, [list.solutions, list.from, list.base, list.origins]);
            }
        }
    }

    /// Reads a list that was written.
    ///
    /// # Safety
    /// The contract of [`Slot::store`].
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load(self, level: &Level, task: u32) -> List {
        let words = self.list(level, task);
        // SAFETY: this function's contract.
        unsafe {
            warp::sync_warp(FULL_MASK);
            let seeds = words.read((warp::lane_id() % TOGETHER) as usize);
            let [solutions, from, base, origins] = words.read4(SOLUTIONS as usize);
            List { seeds, solutions, from, base, origins }
        }
    }

    /// Returns the number of visits of a task.
    ///
    /// # Safety
    /// The contract of [`Slot::store`].
    #[inline(always)]
    #[track_caller]
    pub unsafe fn entries(self, level: &Level, task: u32) -> u32 {
        // SAFETY: this function's contract.
        unsafe {
            warp::sync_warp(FULL_MASK);
            self.list(level, task).read(ENTRIES as usize)
        }
    }

    /// Sets the number of visits of a task.
    ///
    /// # Safety
    /// The contract of [`Slot::store`].
    #[inline(always)]
    #[track_caller]
    pub unsafe fn set_entries(self, level: &Level, task: u32, entries: u32) {
        // SAFETY: this function's contract.
        unsafe {
            warp::sync_warp(FULL_MASK);
            if warp::lane_id() == 0 {
                self.list(level, task).write(ENTRIES as usize, entries);
            }
        }
    }

    /// Goes back over a path of seeds; the last one is `seed`, after the seed at `origin` in the list after all tasks.
    /// Returns the number of tasks at the beginning with the same seeds as in the path before, limited to lists up to
    /// the one before task `least`, which have kept their seeds.
    ///
    /// Lanes hold consecutive lists, from the last one on, and exchange the origins of seeds in turn.
    ///
    /// # Safety
    /// The contract of [`Slot::store`]; all lists of the level are there.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn follow(self, level: &Level, least: u32, mut seed: u32, mut origin: u32) -> u32 {
        let (mut last, lane) = (level.tasks(), warp::lane_id());
        // SAFETY: this function's contract; lanes without a list read the one before the first task, and write nothing.
        unsafe {
            warp::sync_warp(FULL_MASK);
            loop {
                let (count, list) = (last.min(32), last.saturating_sub(lane));
                let words = self.list(level, list);
                let (origins, before) = (words.read(SOLUTIONS as usize + 3), words.read(PATH_ORIGIN as usize));
                // The origin of the seed after this lane's list, and finally that of the seed after the next lists.
                let (mut own, mut step) = (origin, 0);
                while step < count {
                    if lane == step {
                        own = origin;
                    }
                    origin = warp::shuffle_idx(FULL_MASK, origins, step) >> (4 * origin) & 15;
                    step += 1;
                }
                // The seed of this lane's list is the one after the list before.
                let next = words.read(own as usize);
                let after = warp::shuffle_up(FULL_MASK, next, 1);
                let after = if lane == 0 { seed } else { after };
                seed = warp::shuffle_idx(FULL_MASK, next, count - 1);
                // Everything before a seed with an unchanged origin is unchanged.
                let kept = warp::ballot(FULL_MASK, list <= least && lane < count && before == own);
                let written = if kept == 0 { count } else { kept.trailing_zeros() + 1 };
                warp::sync_warp(FULL_MASK);
                if lane < written {
                    words.write(PATH_SEED as usize, after);
                    words.write(PATH_ORIGIN as usize, own);
                }
                last -= written;
                if kept != 0 || last == 0 {
                    warp::sync_warp(FULL_MASK);
                    return last;
                }
            }
        }
    }

    /// Returns the seed of a task in the last path.
    ///
    /// # Safety
    /// The slot belongs to the calling warp and has the task, and nothing has written its path since all lanes
    /// synchronised.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn path_seed(self, level: &Level, task: u32) -> u32 {
        // SAFETY: this function's contract.
        unsafe { self.list(level, task + 1).read(PATH_SEED as usize) }
    }
}

//! Search for the codes of buckets, one warp per bucket.
//!
//! Source: section 4 of "Combined Search and Encoding for Seeds, with an Application to Minimal Perfect Hashing"
//! (Lehmann, Sanders, Walzer, Ziegler, ESA 2025), with one thread on a host. The order of the search is that of
//! `warpset-mphf` on the host, level by level, and so are its bits: a code is the first one in the order of bits, and
//! the limit of visits is the same. The number of seeds evaluated together changes neither: when a task is visited, all
//! earlier seeds have led to nothing.
//!
//! A warp has the seeds of one task in its lanes, of several preceding seeds if each has few values. Waiting solutions
//! are in global memory, and the last lists stay in the first-level cache: [`slot`](crate::consensus::slot).

#[cfg(feature = "bodies")]
use crate::consensus::slot::{Keys, Slot};
use crate::consensus::slot::{List, TOGETHER, WORD_BITS};
#[cfg(feature = "bodies")]
use crate::consensus::solve::{divide, is_by_keys, leaf, split_by_keys, split_by_seeds};
use crate::consensus::tree::{Level, Task, Trees};
#[cfg(feature = "bodies")]
use crate::recsplit::memory::put;
use warpset_core::consensus::hash::{SEED_BITS, multiplier, next_seed};
use warpset_simt::warp::{self, FULL_MASK, lane_id};
use warpset_simt::{Global, GlobalMut, atomic, thread};

/// Threads of a block.
pub const BLOCK: u32 = 64;

/// Numbers at the beginning that may end undecided.
pub const MOST_UNFINISHED: u32 = 4;

/// Parameters of the search for all buckets.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct SearchPlan {
    /// Words per warp's slot: [`slot_words`](crate::consensus::slot::slot_words) of the largest bucket.
    pub slot_words: u64,
    /// Rows of splittings.
    pub splits: u32,
    /// Bits of the number at the beginning of a bucket.
    pub root_bits: u32,
    /// Limit of the visits of a task per number at the beginning.
    pub entries: u32,
}

/// A bucket and its warp's memory.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct Bucket {
    trees: Trees,
    /// Its keys, in their initial order.
    own: Keys,
    keys: u32,
    slot: Slot,
}

/// Result of a search after one number at the beginning.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chain {
    Solved,
    Unsolvable,
    Unfinished,
}

/// Returns how many of the `waiting` seeds visit a task together, each with values of `in_word` bits, and whether lanes
/// then hold keys.
#[cfg(feature = "bodies")]
#[inline(always)]
fn seeds_of(level: &Level, task: &Task, waiting: u32, in_word: u32) -> (u32, bool) {
    let count = waiting.min(32 >> in_word).min(TOGETHER);
    if level.is_leaves {
        return (count, false);
    }
    let keys = task.end - task.begin;
    // The seeds after the first may not be needed.
    let count = if is_by_keys(keys, 2 << in_word) { 1 } else { count };
    (count, is_by_keys(keys, count << in_word))
}

#[cfg(feature = "bodies")]
impl Bucket {
    /// Returns the keys of a level.
    #[inline(always)]
    fn keys_of(&self, level: u32) -> Keys {
        if level == 0 { self.own } else { Keys { keys: self.slot.keys_of(level).as_const(), first: 0 } }
    }

    /// Solves all tasks after a seed, and visits each of them at most `most` times.
    ///
    /// # Safety
    /// All lanes of the warp come here together, with the same arguments. The slot belongs to the warp and is large
    /// enough for the bucket, and nothing writes the bucket's keys.
    #[inline(always)]
    #[track_caller]
    unsafe fn chain(&self, root: u32, most: u32) -> Chain {
        let Self { trees, slot, .. } = *self;
        // SAFETY: this function's contract. All conditions of branches are the same in all lanes.
        unsafe {
            slot.clear(self.keys);
            let mut level = trees.first(self.keys);
            let (mut list, mut at, mut least) = (List::of(root), 0, 0);
            loop {
                if list.solutions == 0 {
                    if at > 0 {
                        at -= 1;
                    } else {
                        if level.level == 0 {
                            return Chain::Unsolvable;
                        }
                        level = trees.before(&level);
                        at = level.tasks();
                        least = at;
                    }
                    list = slot.load(&level, at);
                    continue;
                }
                if at < least {
                    least = at;
                }
                let bits_before = level.bits_before(at);
                let last_bits = if at == 0 { 0 } else { bits_before - level.bits_before(at - 1) };
                if at == level.tasks() {
                    let place = list.solutions.trailing_zeros();
                    let seed = list.solution(place, last_bits);
                    list.solutions &= list.solutions - 1;
                    slot.store(&level, at, &list);
                    let changed = slot.follow(&level, least, seed, List::origin(place, last_bits));
                    if level.is_leaves {
                        return Chain::Solved;
                    }
                    self.divide_from(&level, changed);
                    level = trees.after(&level);
                    (list, at, least) = (List::of(seed), 0, 0);
                    continue;
                }
                let (task, bits) = (level.task(at), level.bits_before(at + 1) - bits_before);
                let in_word = bits.min(WORD_BITS);
                let (mut count, by_keys) = seeds_of(&level, &task, list.solutions.count_ones(), in_word);
                let (from, entries) = (list.from, slot.entries(&level, at));
                let place = list.place_of(lane_id() % TOGETHER);
                let parents = list.solution(place, last_bits);
                let parent = lane_id() >> in_word;
                let value = from + (lane_id() & ((1 << in_word) - 1));
                let seed = next_seed(warp::shuffle_idx(FULL_MASK, parents, parent), value, bits);
                let mut solutions = self.solutions(&level, &task, seed, count << in_word, by_keys);
                // Only now, so that the count is loaded while seeds are evaluated.
                if from == 0 {
                    if entries + count > most {
                        count = most - entries;
                        if count == 0 {
                            return Chain::Unfinished;
                        }
                        solutions &= ((1_u64 << (count << in_word)) - 1) as u32;
                    }
                    slot.set_entries(&level, at, entries + count);
                }
                if bits > WORD_BITS && (from + 32) >> bits == 0 {
                    list.from = from + 32;
                } else {
                    let last = warp::shuffle_idx(FULL_MASK, place, count - 1);
                    list.solutions &= !(((2_u64 << last) - 1) as u32);
                    list.from = 0;
                }
                if solutions != 0 {
                    slot.store(&level, at, &list);
                    let origin = List::origin(place, last_bits);
                    let origins = if lane_id() < TOGETHER { origin << (4 * lane_id()) } else { 0 };
                    let origins = warp::reduce_or(FULL_MASK, origins);
                    list = List { seeds: parents, solutions, from: 0, base: from, origins };
                    at += 1;
                }
            }
        }
    }

    /// Returns the mask of lanes with a seed, of the first `seeds`, that solves a task.
    ///
    /// # Safety
    /// The contract of [`Bucket::chain`]; the task's keys are on its level.
    #[inline(always)]
    #[track_caller]
    unsafe fn solutions(&self, level: &Level, task: &Task, seed: u32, seeds: u32, by_keys: bool) -> u32 {
        let (keys, multiplier, is_asked) =
            (self.keys_of(level.level), multiplier(seed, level.level), lane_id() < seeds);
        // SAFETY: this function's contract.
        unsafe {
            if level.is_leaves {
                leaf(keys, task, multiplier, is_asked)
            } else if by_keys {
                split_by_keys(keys, task, multiplier, seeds)
            } else {
                split_by_seeds(keys, task, multiplier, is_asked)
            }
        }
    }

    /// Moves the keys of the level's tasks from `changed` on to the next level, by the last path.
    ///
    /// # Safety
    /// The contract of [`Bucket::chain`]; the level was solved, and is one of splittings.
    #[inline(always)]
    #[track_caller]
    unsafe fn divide_from(&self, level: &Level, changed: u32) {
        let (from, to) = (self.keys_of(level.level), self.slot.keys_of(level.level + 1));
        // SAFETY: this function's contract.
        unsafe {
            warp::sync_warp(FULL_MASK);
            let mut task = changed;
            while task < level.tasks() {
                let multiplier = multiplier(self.slot.path_seed(level, task), level.level);
                divide(from, &level.task(task), multiplier, to);
                task += 1;
            }
            warp::sync_warp(FULL_MASK);
        }
    }

    /// Writes the bits of the paths of all levels from bit `at` on.
    ///
    /// # Safety
    /// The contract of [`Bucket::chain`], which has solved all levels; `words` are valid there, zero, and only accessed
    /// atomically.
    #[inline(always)]
    #[track_caller]
    unsafe fn write(&self, words: GlobalMut<u64>, at: u64) {
        // SAFETY: this function's contract.
        unsafe {
            let mut level = self.trees.first(self.keys);
            loop {
                let mut task = lane_id();
                while task < level.tasks() {
                    let before = level.bits_before(task);
                    let bits = level.bits_before(task + 1) - before;
                    // Two shifts: there may be no bits.
                    let value = self.slot.path_seed(&level, task) >> 1 >> (SEED_BITS - 1 - bits);
                    put(words, at + before as u64, value as u64);
                    task += 32;
                }
                if level.is_leaves {
                    break;
                }
                level = self.trees.after(&level);
            }
            warp::sync_warp(FULL_MASK);
        }
    }

    /// Whether two keys are equal.
    ///
    /// # Safety
    /// The contract of [`Bucket::chain`].
    #[inline(always)]
    #[track_caller]
    unsafe fn has_duplicates(&self) -> bool {
        let mut first = 0;
        // SAFETY: this function's contract; keys are read below their number.
        unsafe {
            while first < self.keys {
                let (place, mut other, mut equal) = (first + lane_id(), 0, false);
                let key = self.own.keys.read((self.own.first + place.min(self.keys - 1)) as usize);
                while other < first + 32 && other < self.keys {
                    let is_equal = key == self.own.keys.read((self.own.first + other) as usize);
                    equal |= is_equal && other < place && place < self.keys;
                    other += 1;
                }
                if warp::any(FULL_MASK, equal) {
                    return true;
                }
                first += 32;
            }
        }
        false
    }

    /// Finds the code, and writes it from bit `at` on. Returns whether there is one.
    ///
    /// # Safety
    /// The contracts of [`Bucket::chain`] and [`Bucket::write`].
    #[inline(always)]
    #[track_caller]
    unsafe fn find(&self, plan: &SearchPlan, words: GlobalMut<u64>, at: u64) -> bool {
        let (mut root, mut unfinished) = (0, 0);
        // SAFETY: this function's contract.
        unsafe {
            while root >> plan.root_bits == 0 {
                let chain = self.chain(next_seed(0, root, plan.root_bits), plan.entries);
                if chain == Chain::Solved {
                    if lane_id() == 0 {
                        put(words, at, root as u64);
                    }
                    self.write(words, at + plan.root_bits as u64);
                    return true;
                }
                if chain == Chain::Unfinished {
                    unfinished += 1;
                    if unfinished == MOST_UNFINISHED || self.has_duplicates() {
                        return false;
                    }
                }
                root += 1;
            }
        }
        false
    }
}

kernel! {
    /// Finds the codes of the `count` buckets from `first` on, and writes the bits of each from its word of `first_bit`
    /// on. The least bucket without a code goes to `failure`; the codes of some buckets after it are then missing.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid of blocks of [`BLOCK`] threads, no shared memory.
    /// - `lows`: the keys of all buckets, each bucket's from its word of `bounds` on; `first_bit`: a word per bucket;
    ///   `rows`: two words per row of buckets up to the size of the largest, from a multiple of 16 bytes on. Nothing
    ///   writes these while the kernel runs, and `lows` begin at a multiple of 16 bytes.
    /// - `space`: `plan.slot_words` words per warp, from a multiple of 16 bytes on, used by this launch alone.
    /// - `next`: zero at the start; `failure`: all ones, or a bucket; both only accessed atomically.
    /// - `words`: valid for the bits of these buckets, zero there, and only accessed atomically.
    #[launch_bounds(64, 12)]
    pub unsafe fn consensus_search(
        lows: Global<u64>, bounds: Global<u32>, first_bit: Global<u64>, first: usize, count: u32, rows: Global<u64>,
        plan: SearchPlan, space: GlobalMut<u64>, next: GlobalMut<u32>, failure: GlobalMut<u32>, words: GlobalMut<u64>,
    ) {
        let warp = (thread::block_idx_x() * (BLOCK / 32) + thread::thread_idx_x() / 32) as usize;
        let space = space.at(warp * plan.slot_words as usize);
        let trees = Trees { rows, splits: plan.splits };
        loop {
            // SAFETY: this kernel's contract; buckets are taken below their number, each by one warp, and its lanes
            // stay together.
            unsafe {
                let mut index = 0;
                if lane_id() == 0 {
                    // Buckets are taken in ascending order: all that are left come after one that failed.
                    index = if atomic::load_relaxed(failure) == !0 { atomic::fetch_add(next, 1) } else { count };
                }
                index = warp::shuffle_idx(FULL_MASK, index, 0);
                if index >= count {
                    break;
                }
                let bucket = first + index as usize;
                let begin = bounds.read_nc(bucket);
                let keys = bounds.read_nc(bucket + 1) - begin;
                if keys < 2 {
                    continue;
                }
                // From an even place on, for reads of two keys.
                let own = Keys { keys: lows.at((begin - begin % 2) as usize), first: begin % 2 };
                let slot = Slot::new(space, keys);
                if !(Bucket { trees, own, keys, slot }).find(&plan, words, first_bit.read_nc(bucket)) && lane_id() == 0 {
                    atomic::reduce_min(failure, bucket as u32);
                }
            }
        }
    }
}

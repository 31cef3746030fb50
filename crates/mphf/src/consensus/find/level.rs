//! Search within a level: over seeds alone, since the keys of all of its tasks are known.
//!
//! Solutions of a task are followed in their order, each before the next solution of the task before: a depth-first
//! search. But several solutions of one task are evaluated together, so the processor works on them at the same time
//! and seldom waits for a misprediction. The order of results is unchanged, since solutions are kept in their order.

use super::task::{Before, Levels, PADDING, Task, VALUES, solve};
use crate::u32_vector::U32Vector;
use warpset_core::consensus::hash::SEED_BITS;

/// Seeds under which a task is evaluated together.
const TOGETHER: u32 = 4;
/// The most keys for which that pays: larger tasks keep the processor busy by themselves.
const MOST_KEYS: u32 = 40;

/// Solutions of a task that wait, and the one being followed.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    /// The first solution that was not followed yet, as a place in `found`.
    next: u32,
    /// End of this task's solutions.
    end: u32,
    /// The first value of the next task that was not evaluated after solution `next`.
    from: u32,
}

/// The search within one level.
#[derive(Default)]
pub(super) struct Level {
    /// Seeds that solve tasks: the one before the level, then solutions of its first task, its second one, and so on,
    /// as far as the search is.
    found: Vec<u32>,
    /// Place of the preceding seed of each.
    origins: Vec<u32>,
    /// First for the seed before the level, then by task.
    waiting: Vec<Waiting>,
    /// Tasks before the search.
    at: usize,
    /// The least number of tasks before the search since the last path.
    least: usize,
    /// Places of the last path's seeds, beginning with the one before the level.
    path: Vec<u32>,
}

/// Next result of the search.
pub(super) enum Path {
    /// A seed per task; this is the last task's.
    Ends(u32),
    /// No further path.
    None,
    /// A task was entered too often.
    Unfinished,
}

impl Level {
    /// Restarts after the seed `before`.
    pub(super) fn start(&mut self, before: u32, tasks: usize) {
        if self.found.is_empty() {
            self.found.resize(1, 0);
            self.origins.resize(1, 0);
        }
        self.found[0] = before;
        self.waiting.resize(tasks + 1, Waiting::default());
        self.path.resize(tasks + 1, 0);
        self.waiting[0] = Waiting { next: 0, end: 1, from: 0 };
        (self.at, self.least) = (0, 0);
    }

    /// Finds the next seeds for all tasks of the level, and visits each task at most `most` times.
    ///
    /// # Safety
    /// - The processor has the instructions of `V`.
    /// - The tasks are those of a level of the bucket that `levels` are for, and their keys are there.
    #[inline(always)]
    pub(super) unsafe fn next_path<V: U32Vector>(
        &mut self,
        levels: Levels,
        tasks: &[Task],
        entries: &mut [u32],
        most: u32,
    ) -> Path {
        let mut at = self.at;
        loop {
            let Waiting { next, end, from } = self.waiting[at];
            if next == end {
                if at == 0 {
                    return Path::None;
                }
                at -= 1;
                continue;
            }
            self.least = self.least.min(at);
            let Some(task) = tasks.get(at) else {
                self.waiting[at].next += 1;
                self.at = at;
                return Path::Ends(self.found[next as usize]);
            };
            let is_small = task.bits <= VALUES.ilog2();
            let together = if is_small && task.keys <= MOST_KEYS { TOGETHER } else { 1 };
            let mut count = 1;
            if from == 0 {
                count = together.min(end - next).min(most - entries[at]);
                if count == 0 {
                    return Path::Unfinished;
                }
                entries[at] += count;
            }
            let room = end as usize + count as usize * VALUES as usize + PADDING;
            if self.found.len() < room {
                self.found.resize(2 * room, 0);
                self.origins.resize(2 * room, 0);
            }
            let (found, origins) = (self.found.as_mut_ptr(), self.origins.as_mut_ptr());
            // SAFETY: this function's contract; after `end` there are places for all values of each seed and for
            // `PADDING`.
            let solutions = unsafe {
                let before = Before { seeds: found.add(next as usize), count, place: next };
                solve::<V>(levels, task, before, from, (found.add(end as usize), origins.add(end as usize)))
            };
            let waiting = &mut self.waiting[at];
            let from = from + VALUES;
            *waiting = if from >> task.bits == 0 {
                Waiting { next, end, from }
            } else {
                Waiting { next: next + count, end, from: 0 }
            };
            if solutions > 0 {
                at += 1;
                self.waiting[at] = Waiting { next: end, end: end + solutions as u32, from: 0 };
            }
        }
    }

    /// Goes back over the path found last, and returns how many tasks at the beginning have the same seeds as in the
    /// path before.
    pub(super) fn follow(&mut self) -> usize {
        let mut place = self.waiting[self.at].next - 1;
        let mut at = self.path.len() - 1;
        // Seeds up to the least position of the search are still where they were.
        while at > 0 && (at > self.least || self.path[at] != place) {
            self.path[at] = place;
            place = self.origins[place as usize];
            at -= 1;
        }
        self.least = self.at;
        at
    }

    /// Returns the seeds of the path, by task.
    pub(super) fn seeds(&self) -> impl Iterator<Item = u32> + '_ {
        self.path[1..].iter().map(|&place| self.found[place as usize])
    }

    /// Returns the values that the path's seeds added to the string, and their bits.
    pub(super) fn values<'a>(&'a self, tasks: &'a [Task]) -> impl Iterator<Item = (u32, u32)> + 'a {
        self.seeds().zip(tasks).map(|(seed, task)| ((u64::from(seed) >> (SEED_BITS - task.bits)) as u32, task.bits))
    }
}

//! The search within a level: over seeds alone, since the keys of all of its tasks are known.
//!
//! Solutions of a task are entered in their order, each before the next one of the task before, as a search does that
//! goes as deep as it can. But several solutions of one task are entered together: the processor works on them at the
//! same time, and seldom waits for what it could not predict. What is found first stays first, since solutions are kept
//! in their order.

use super::task::{Before, Levels, PADDING, Task, VALUES, solve};
use crate::u32_vector::U32Vector;
use warpset_core::consensus::hash::SEED_BITS;

/// Seeds that a task is entered with at a time.
const TOGETHER: u32 = 4;
/// Keys up to which that pays: larger tasks keep the processor busy by themselves.
const MOST_KEYS: u32 = 40;

/// The solutions of a task that wait, or of which one is being followed.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    /// The first solution that was not followed yet, as a place in `found`.
    next: u32,
    /// Where those of this task end.
    end: u32,
    /// The first value of the next task that was not evaluated after solution `next`.
    from: u32,
}

/// The search within one level.
#[derive(Default)]
pub(super) struct Level {
    /// Seeds that solve tasks: that before the level, then solutions of its first task, its second one, and so on, as
    /// far as the search is.
    found: Vec<u32>,
    /// The place of the seed before each.
    origins: Vec<u32>,
    /// First for the seed before the level, then by task.
    waiting: Vec<Waiting>,
    /// Tasks before the search.
    at: usize,
    /// The least number of tasks before the search since the last path.
    least: usize,
    /// The places of the last path's seeds, from that before the level on.
    path: Vec<u32>,
}

/// What comes next.
pub(super) enum Path {
    /// A seed for each task, the last one of which is this.
    Ends(u32),
    /// Nothing.
    None,
    /// A task was entered too often.
    Unfinished,
}

impl Level {
    /// Starts over, after the seed `before`.
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

    /// The next seeds for all tasks of the level, which are entered at most `most` times each.
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
            // SAFETY: the caller's promises; after `end` there is room for all values of each seed and for `PADDING`.
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

    /// Goes back over the path that was found last, and returns how many tasks at the beginning have the seeds that
    /// they had in the path before.
    pub(super) fn follow(&mut self) -> usize {
        let mut place = self.waiting[self.at].next - 1;
        let mut at = self.path.len() - 1;
        // Seeds up to those that the search did not go back behind are still where they were.
        while at > 0 && (at > self.least || self.path[at] != place) {
            self.path[at] = place;
            place = self.origins[place as usize];
            at -= 1;
        }
        self.least = self.at;
        at
    }

    /// The seeds of the path, by task.
    pub(super) fn seeds(&self) -> impl Iterator<Item = u32> + '_ {
        self.path[1..].iter().map(|&place| self.found[place as usize])
    }

    /// What the path's seeds have added to the string of bits, and how many bits.
    pub(super) fn values<'a>(&'a self, tasks: &'a [Task]) -> impl Iterator<Item = (u32, u32)> + 'a {
        self.seeds().zip(tasks).map(|(seed, task)| ((u64::from(seed) >> (SEED_BITS - task.bits)) as u32, task.bits))
    }
}

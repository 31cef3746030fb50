//! Weak memory: relaxed stores that arrive late, and relaxed loads of old values.
//!
//! A relaxed store or reduction may wait in a buffer until its thread fences or passes a barrier, until the launch
//! ends, or until the scheduler commits it. Stores to different words may be committed in any order. A relaxed load may
//! return the value before one of the last few changes, if its thread has not fenced since and has seen no newer value
//! of that word.
use super::engine::ThreadRef;
use super::memory::Region;
use super::races::Released;
use crate::host::word::Modify;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Largest number of waiting stores.
const MOST_WAITING: usize = 128;

/// Largest number of changes that a load may miss.
const REMEMBERED: usize = 32;

/// Number of seen words that are remembered before all threads are brought up to date.
const MOST_SEEN: usize = 4096;

/// Changes a word by the arithmetic of one type; returns the old bits.
///
/// # Safety
/// The pointer is to a valid word of that type.
pub type Commit = unsafe fn(*mut u8, Modify, u64) -> u64;

/// A store that its thread has performed and others do not see.
#[derive(Debug)]
pub struct Waiting {
    pub owner: ThreadRef,
    pub address: usize,
    pub pointer: *mut u8,
    pub size: usize,
    pub modify: Modify,
    pub operand: u64,
    pub commit: Commit,
    pub released: Option<Released>,
    /// Keeps the memory while the store waits.
    pub _region: Arc<Region>,
}

/// A change of a word that relaxed loads may not have seen.
#[derive(Debug)]
struct Change {
    at: u64,
    by: ThreadRef,
    address: usize,
    size: usize,
    old: u64,
    /// Knowledge that the old value passed on.
    released: Option<Released>,
}

#[derive(Debug)]
pub struct Weak {
    waiting: VecDeque<Waiting>,
    changes: VecDeque<Change>,
    now: u64,
    /// Earliest time whose values a thread may see, by slot and thread.
    floors: Vec<Vec<u64>>,
    floor: u64,
    seen: HashMap<(ThreadRef, usize), u64>,
}

impl Weak {
    pub fn new(slots: usize, threads: usize) -> Self {
        Self {
            waiting: VecDeque::new(),
            changes: VecDeque::new(),
            now: 1,
            floors: vec![vec![0; threads]; slots],
            floor: 0,
            seen: HashMap::new(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn has_room(&self) -> bool {
        self.waiting.len() < MOST_WAITING
    }

    pub fn push(&mut self, waiting: Waiting) {
        self.waiting.push_back(waiting);
    }

    /// Takes the first store that satisfies `wanted`.
    pub fn take(&mut self, wanted: impl Fn(&Waiting) -> bool) -> Option<Waiting> {
        let at = self.waiting.iter().position(wanted)?;
        self.waiting.remove(at)
    }

    /// Takes the oldest of the stores to the word, and by the thread, of the one at `at`, modulo their number.
    pub fn take_any(&mut self, at: usize) -> Option<Waiting> {
        let chosen = self.waiting.get(at % self.waiting.len().max(1))?;
        let (owner, address) = (chosen.owner, chosen.address);
        self.take(|w| w.owner == owner && w.address == address)
    }

    /// Notes that `by` has changed the word from `old`.
    pub fn changed(&mut self, by: ThreadRef, address: usize, size: usize, old: u64, released: Option<Released>) {
        self.now += 1;
        if self.changes.len() == REMEMBERED {
            self.changes.pop_front();
        }
        self.changes.push_back(Change { at: self.now, by, address, size, old, released });
        self.saw(by, address, self.now);
    }

    fn saw(&mut self, who: ThreadRef, address: usize, at: u64) {
        if self.seen.len() >= MOST_SEEN {
            self.seen.clear();
            self.floor = self.now;
        }
        self.seen.insert((who, address), at);
    }

    /// Notes that `who` has seen the word's newest value.
    pub fn saw_newest(&mut self, who: ThreadRef, address: usize) {
        if self.changes.iter().any(|change| change.address == address) {
            self.saw(who, address, self.now);
        }
    }

    /// Returns an older value that `who` may still see, with the knowledge it passes on. `pick` draws a number below
    /// its argument.
    pub fn stale(
        &mut self,
        who: ThreadRef,
        address: usize,
        size: usize,
        pick: impl FnOnce(usize) -> usize,
    ) -> Option<(u64, Option<Released>)> {
        let floor = self.floor.max(self.floors[who.slot as usize][who.thread as usize]);
        let floor = floor.max(self.seen.get(&(who, address)).copied().unwrap_or(0));
        let candidate = |c: &&Change| c.at > floor && c.address == address;
        let candidates = self.changes.iter().filter(candidate).count();
        if candidates == 0 {
            return None;
        }
        let chosen = self.changes.iter().filter(candidate).nth(pick(candidates))?;
        if chosen.size != size || chosen.by == who {
            return None;
        }
        let (at, value, released) = (chosen.at, chosen.old, chosen.released.clone());
        self.saw(who, address, at - 1);
        Some((value, released))
    }

    /// Lets `who` see everything that has been committed.
    pub fn catch_up(&mut self, who: ThreadRef) {
        self.floors[who.slot as usize][who.thread as usize] = self.now;
    }

    /// Does the work of [`catch_up`](Self::catch_up) for all threads of a block.
    pub fn catch_up_block(&mut self, slot: u32) {
        self.floors[slot as usize].fill(self.now);
    }
}

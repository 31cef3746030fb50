//! Knowledge of a thread about the others' past: the happens-before order of a launch.
//!
//! A launch runs on one host thread, so one counter dates all events. *A knows B up to t* means: B's actions at times
//! up to t happened before A's next action. A full table of this relation would be quadratic. But a block barrier makes
//! all threads of a block know each other up to one time, and a warp barrier all lanes of a warp. So the knowledge of a
//! thread is: one time for its block, one for its warp, rarely one per lane, and a [`Clock`] for the knowledge gained
//! by acquiring.
use std::rc::Rc;

/// A time; 0 is before everything.
pub type Time = u32;

/// Entries that a clock may have before it is rounded up.
const MOST_ENTRIES: usize = 4096;

const BLOCK: u64 = 1 << 40;
const WARP: u64 = 2 << 40;

/// The threads that a piece of knowledge is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subject(u64);

impl Subject {
    pub fn thread(thread: u32) -> Self {
        Self(u64::from(thread))
    }

    pub fn warp(first_thread: u32) -> Self {
        Self(WARP | u64::from(first_thread))
    }

    pub fn block(block: u32) -> Self {
        Self(BLOCK | u64::from(block))
    }
}

/// Knowledge that was passed on by a release: sorted by subject.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    entries: Vec<(Subject, Time)>,
    /// All threads are known up to here. Only raised when a clock grows too long, which
    /// can hide a race and cannot invent one.
    everybody: Time,
}

impl Clock {
    pub fn knows(&self, subject: Subject, time: Time) -> bool {
        time <= self.everybody
            || self.entries.binary_search_by_key(&subject, |e| e.0).is_ok_and(|at| time <= self.entries[at].1)
    }

    pub fn learn(&mut self, subject: Subject, time: Time) {
        if time <= self.everybody {
            return;
        }
        match self.entries.binary_search_by_key(&subject, |e| e.0) {
            Ok(at) => self.entries[at].1 = self.entries[at].1.max(time),
            Err(at) => self.entries.insert(at, (subject, time)),
        }
        self.round_up();
    }

    fn merge(&mut self, other: &Clock) {
        let mut merged = Vec::with_capacity(self.entries.len() + other.entries.len());
        let (mut a, mut b) = (self.entries.iter().peekable(), other.entries.iter().peekable());
        while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
            match x.0.cmp(&y.0) {
                std::cmp::Ordering::Less => merged.extend(a.next()),
                std::cmp::Ordering::Greater => merged.extend(b.next()),
                std::cmp::Ordering::Equal => {
                    merged.push((x.0, x.1.max(y.1)));
                    a.next();
                    b.next();
                }
            }
        }
        merged.extend(a.chain(b));
        self.entries = merged;
        self.everybody = self.everybody.max(other.everybody);
        self.round_up();
    }

    fn round_up(&mut self) {
        if self.entries.len() > MOST_ENTRIES {
            let mut times: Vec<Time> = self.entries.iter().map(|e| e.1).collect();
            let (_, median, _) = times.select_nth_unstable(MOST_ENTRIES / 2);
            self.everybody = self.everybody.max(*median);
            let everybody = self.everybody;
            self.entries.retain(|e| e.1 > everybody);
        }
    }
}

/// Knowledge that may be shared; none is the empty clock.
pub type Known = Option<Rc<Clock>>;

/// Adds `other` to `known`, sharing where one of them is enough.
pub fn join(known: &mut Known, other: &Known) {
    match (known.as_mut(), other) {
        (_, None) => {}
        (None, Some(_)) => known.clone_from(other),
        (Some(mine), Some(theirs)) if Rc::ptr_eq(mine, theirs) => {}
        (Some(mine), Some(theirs)) => Rc::make_mut(mine).merge(theirs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joining_keeps_the_later_time() {
        let mut a = Clock::default();
        a.learn(Subject::thread(1), 5);
        a.learn(Subject::block(1), 7);
        let mut b = Clock::default();
        b.learn(Subject::thread(1), 9);
        b.learn(Subject::warp(32), 2);
        let mut known = Some(Rc::new(a));
        join(&mut known, &Some(Rc::new(b)));
        let known = known.unwrap();
        assert!(known.knows(Subject::thread(1), 9) && !known.knows(Subject::thread(1), 10));
        assert!(known.knows(Subject::block(1), 7) && known.knows(Subject::warp(32), 2));
        assert!(!known.knows(Subject::thread(2), 1));
    }

    #[test]
    fn a_long_clock_forgets_by_knowing_more() {
        let mut clock = Clock::default();
        for thread in 0..2 * MOST_ENTRIES as u32 {
            clock.learn(Subject::thread(thread), thread + 1);
        }
        assert!(clock.entries.len() <= MOST_ENTRIES);
        for thread in 0..2 * MOST_ENTRIES as u32 {
            assert!(clock.knows(Subject::thread(thread), thread + 1));
        }
    }
}

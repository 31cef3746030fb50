//! Threads for work on several devices. They are kept, because a new one takes milliseconds to start on some systems.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{mem, process, thread};

use rayon::Yield;

use crate::faults;

/// Wait of an idle thread of a pool before it looks for the pool's work again.
const IDLE: Duration = Duration::from_micros(50);

/// Work for another thread.
struct Job {
    work: Box<dyn FnOnce() + Send>,
    /// Dropped after the work, which has then been consumed.
    end: Sender<()>,
}

impl Job {
    /// Works, and runs `then` before the end is seen.
    fn run(self, then: impl FnOnce()) {
        let Self { work, end } = self;
        work();
        then();
        drop(end);
    }
}

/// Senders to idle threads of the process with this number: the threads of a process do not exist in its forks.
static IDLE_THREADS: Mutex<(u32, Vec<Sender<Job>>)> = Mutex::new((0, Vec::new()));

/// Returns the idle threads of this process.
fn idle_threads() -> MutexGuard<'static, (u32, Vec<Sender<Job>>)> {
    let mut idle = IDLE_THREADS.lock().unwrap_or_else(PoisonError::into_inner);
    let here = process::id();
    if mem::replace(&mut idle.0, here) != here {
        idle.1.clear();
    }
    idle
}

/// Jobs under way. Dropping this waits until all have ended.
struct Ends(Receiver<()>);

impl Ends {
    /// Waits until all jobs have ended. A thread of a rayon pool does the pool's work meanwhile, which jobs may wait
    /// for.
    fn wait(&self) {
        while self.0.try_recv() != Err(TryRecvError::Disconnected) {
            // Nothing is ever sent, so these wait for the last end, or for a time.
            match rayon::yield_now() {
                Some(Yield::Executed) => {}
                Some(Yield::Idle) => drop(self.0.recv_timeout(IDLE)),
                None => drop(self.0.recv()),
            }
        }
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.wait();
    }
}

/// Runs `work` for each number below `count`, at least one: for zero on this thread, and for each other on a thread of
/// its own. Returns the results in the order of the numbers. A panic comes through after all have ended. A thread of a
/// rayon pool does the pool's work while it waits for the others, which may wait for that work.
pub fn on_threads<R: Send>(count: usize, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let work = |number| catch_unwind(AssertUnwindSafe(|| work(number)));
    let (faults, (to, results), (end, ends)) = (faults::of_this_thread(), channel(), channel());
    // Dropped in the opposite order: the last sender before the wait for all senders.
    let (ends, end) = (Ends(ends), end);
    for number in 1..count {
        let (work, faults, to) = (&work, faults.clone(), to.clone());
        let job: Box<dyn FnOnce() + Send + '_> = Box::new(move || {
            faults::share(faults);
            // The receiver is there until all jobs have ended.
            let _ = to.send((number, work(number)));
        });
        // SAFETY: only the lifetime changes. The closure is consumed, with all that it borrows, before its job's `end`
        // is dropped. `ends` was declared after `work`, `to` and `results`, so on every way out of this function it is
        // dropped before them, and waits until no `end` is left.
        let work = unsafe { mem::transmute::<Box<dyn FnOnce() + Send + '_>, Box<dyn FnOnce() + Send>>(job) };
        start(Job { work, end: end.clone() });
    }
    let mut all = vec![(0, work(0))];
    drop(end);
    ends.wait();
    all.extend(results.try_iter());
    all.sort_by_key(|(number, _)| *number);
    all.into_iter().map(|(_, result)| result.unwrap_or_else(|panic| resume_unwind(panic))).collect()
}

/// Starts a job on an idle thread, on a new one if there is none, and on this one if there cannot be more.
fn start(job: Job) {
    let idle = idle_threads().1.pop();
    let refused = match idle.or_else(new_thread) {
        Some(thread) => thread.send(job).err().map(|refused| refused.0),
        None => Some(job),
    };
    if let Some(job) = refused {
        job.run(|| {});
    }
}

/// Starts a thread that works until the process ends; none if the system has no more.
fn new_thread() -> Option<Sender<Job>> {
    let (to, jobs) = channel::<Job>();
    let own = to.clone();
    // Idle before the end of its job is seen, because the caller may start its next job at once.
    let work = move || jobs.into_iter().for_each(|job| job.run(|| idle_threads().1.push(own.clone())));
    thread::Builder::new().name("warpset-device".into()).spawn(work).ok().map(|_| to)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn calls_within_calls_and_after_panics_return_all_results() {
        for round in 0..20 {
            let sums = on_threads(4, |i| on_threads(3, |j| 10 * i + j + round).iter().sum::<usize>());
            assert_eq!(sums, [3, 33, 63, 93].map(|sum| sum + 3 * round));
            let caught = catch_unwind(|| on_threads(3, |i| assert_ne!(i, 2, "a worker that panics")));
            assert!(caught.is_err());
        }
    }

    /// Checks that calls for one thread leave the pool's other work alone: done within a call, it would nest.
    #[test]
    fn a_call_for_one_thread_does_no_work_of_the_pool() {
        let depth = AtomicUsize::new(0);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        pool.scope(|scope| {
            for _ in 0..100 {
                scope.spawn(|_| {
                    assert_eq!(depth.fetch_add(1, Ordering::Relaxed), 0, "a task within a task");
                    on_threads(1, |_| ());
                    depth.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
    }
}

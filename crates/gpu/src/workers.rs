//! Threads for work on several devices. They are kept, because a new one takes milliseconds to start on some systems.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rayon::Yield;

use crate::faults;

/// Wait of an idle thread of a pool before it looks for the pool's work again.
const IDLE: Duration = Duration::from_micros(50);

/// Work for another thread, which calls the argument when it is about to end.
type Job<'a> = Box<dyn FnOnce(&dyn Fn()) + Send + 'a>;

/// Ways to the threads that have no work.
static WAITING: Mutex<Vec<Sender<Job<'static>>>> = Mutex::new(Vec::new());

/// Results of jobs under way, each with its number. Dropping this waits until all jobs have ended.
struct Results<R>(Receiver<(usize, thread::Result<R>)>);

impl<R> Results<R> {
    /// Waits for the next result. A thread of a rayon pool does the pool's work meanwhile, which jobs may wait for.
    fn next(&self) -> Option<(usize, thread::Result<R>)> {
        loop {
            let wait = match rayon::yield_now() {
                Some(Yield::Executed) => Duration::ZERO,
                Some(Yield::Idle) => IDLE,
                None => return self.0.recv().ok(),
            };
            match self.0.recv_timeout(wait) {
                Err(RecvTimeoutError::Timeout) => {}
                received => return received.ok(),
            }
        }
    }
}

impl<R> Drop for Results<R> {
    fn drop(&mut self) {
        while self.next().is_some() {}
    }
}

/// Runs `work` for each number below `count`, at least one: for zero on this thread, and for each other on a thread of
/// its own. Returns the results in the order of the numbers. A panic comes through after all have ended. A thread of a
/// rayon pool does the pool's work while it waits for the others, which may wait for that work.
pub fn on_threads<R: Send>(count: usize, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let work = |number| catch_unwind(AssertUnwindSafe(|| work(number)));
    let (faults, (to, results)) = (faults::of_this_thread(), channel());
    let (results, to) = (Results(results), to);
    for number in 1..count {
        let (work, faults, to) = (&work, faults.clone(), to.clone());
        let job: Job<'_> = Box::new(move |ends| {
            faults::share(faults);
            let result = work(number);
            // Before the caller goes on, which may start the next job at once.
            ends();
            // The receiver is there: dropping it waits for the end of this.
            let _ = to.send((number, result));
        });
        // SAFETY: only the lifetime changes. The job borrows `work` alone, and drops its sender when it has ended.
        // `results` is dropped before `work` on every way out of this function, and waits until no sender is left.
        start(unsafe { std::mem::transmute::<Job<'_>, Job<'static>>(job) });
    }
    drop(to);
    let mut all = vec![(0, work(0))];
    all.extend(std::iter::from_fn(|| results.next()));
    all.sort_by_key(|(number, _)| *number);
    all.into_iter().map(|(_, result)| result.unwrap_or_else(|panic| resume_unwind(panic))).collect()
}

/// Starts a job on a thread that has no work, on a new one if there is none, and on this one if there cannot be more.
fn start(job: Job<'static>) {
    let waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let refused = match waiting.or_else(new_thread) {
        Some(thread) => thread.send(job).err().map(|refused| refused.0),
        None => Some(job),
    };
    if let Some(job) = refused {
        job(&|| {});
    }
}

/// Starts a thread that works until the process ends; none if the system has no more.
fn new_thread() -> Option<Sender<Job<'static>>> {
    let (to, jobs) = channel::<Job<'static>>();
    let own = to.clone();
    let wait = move || WAITING.lock().unwrap_or_else(PoisonError::into_inner).push(own.clone());
    let work = move || jobs.into_iter().for_each(|job| job(&wait));
    thread::Builder::new().name("warpset-device".into()).spawn(work).ok().map(|_| to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_within_calls_and_after_panics_return_all_results() {
        for round in 0..20 {
            let sums = on_threads(4, |i| on_threads(3, |j| 10 * i + j + round).iter().sum::<usize>());
            assert_eq!(sums, [3, 33, 63, 93].map(|sum| sum + 3 * round));
            let caught = catch_unwind(|| on_threads(3, |i| assert_ne!(i, 2, "a worker that panics")));
            assert!(caught.is_err());
        }
        let kept = WAITING.lock().unwrap().len();
        assert!((2..100).contains(&kept), "{kept} threads");
    }
}

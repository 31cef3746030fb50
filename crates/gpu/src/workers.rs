//! Threads for work on several devices, and beside work on one. They are kept, because a new one takes milliseconds to
//! start on some systems.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
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

/// A job under way. Dropping this waits until it has ended.
struct End(Receiver<()>);

impl Drop for End {
    fn drop(&mut self) {
        // Nothing is ever sent.
        receive(&self.0);
    }
}

/// Waits for a value; none if all senders are gone. A thread of a rayon pool does the pool's work meanwhile, which the
/// sender may wait for.
pub(crate) fn receive<T>(from: &Receiver<T>) -> Option<T> {
    loop {
        match from.try_recv() {
            Err(TryRecvError::Empty) => {}
            received => return received.ok(),
        }
        match rayon::yield_now() {
            Some(Yield::Executed) => {}
            Some(Yield::Idle) => match from.recv_timeout(IDLE) {
                Err(RecvTimeoutError::Timeout) => {}
                received => return received.ok(),
            },
            None => return from.recv().ok(),
        }
    }
}

/// Runs `there` on another thread and `here` on this one, at the same time, and returns both results. A panic comes
/// through after both have ended. A thread of a rayon pool does the pool's work while it waits for the other, which may
/// wait for that work.
///
/// # Errors
/// Both, if the system has no more threads: neither has run.
pub fn beside<A: Send, B, F: FnOnce() -> A + Send, G: FnOnce() -> B>(there: F, here: G) -> Result<(A, B), (F, G)> {
    let idle = idle_threads().1.pop();
    let Some(thread) = idle.or_else(new_thread) else { return Err((there, here)) };
    let (faults, (to, result), (end, ended)) = (faults::of_this_thread(), channel(), channel());
    let ended = End(ended);
    let work: Box<dyn FnOnce() + Send + '_> = Box::new(move || {
        faults::share(faults);
        // The receiver is there until the job has ended.
        let _ = to.send(catch_unwind(AssertUnwindSafe(there)));
    });
    // SAFETY: only the lifetime changes. The closure is consumed, with all that it borrows, before its job's `end` is
    // dropped. `ended` was declared after what the caller lent, so on every way out of this function it is dropped
    // before that, and waits until `end` is gone.
    let work = unsafe { mem::transmute::<Box<dyn FnOnce() + Send + '_>, Box<dyn FnOnce() + Send>>(work) };
    if let Err(refused) = thread.send(Job { work, end }) {
        // Threads never end before the process does.
        refused.0.run(|| {});
    }
    let own = here();
    drop(ended);
    match result.recv() {
        Ok(other) => Ok((other.unwrap_or_else(|panic| resume_unwind(panic)), own)),
        Err(_) => unreachable!("a job sends its result before it ends"),
    }
}

/// Runs `work` for each number below `count`, at least one: for zero on this thread, and for each other on a thread of
/// its own, as [`beside`] does. Returns the results in the order of the numbers.
pub fn on_threads<R: Send>(count: usize, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    fn up_to<R: Send>(last: usize, work: &(impl Fn(usize) -> R + Sync)) -> Vec<R> {
        if last == 0 {
            return vec![work(0)];
        }
        let both = beside(|| work(last), || up_to(last - 1, work));
        let (own, mut all) = both.unwrap_or_else(|(there, here)| (there(), here()));
        all.push(own);
        all
    }
    up_to(count.saturating_sub(1), &work)
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

//! Threads for work on several devices, and beside work on one. They are kept, because a new one takes milliseconds to
//! start on some systems.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{mem, process, thread};

use rayon::Yield;

use crate::faults;

/// Wait of an idle thread of a pool before it looks for the pool's work again.
const IDLE: Duration = Duration::from_micros(50);

/// Items on their way from one thread to another. Channels of the standard library would make a program with one filter
/// 100 KB larger.
pub(crate) struct Queue<T> {
    /// The items, and whether no more will come.
    state: Mutex<(VecDeque<T>, bool)>,
    changed: Condvar,
}

/// Closes a queue when dropped.
pub(crate) struct Close<'q, T>(&'q Queue<T>);

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::default(), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, (VecDeque<T>, bool)> {
        // No operation leaves the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, item: T) {
        self.state().0.push_back(item);
        self.changed.notify_one();
    }

    /// Returns a guard that closes the queue.
    pub(crate) fn close_at_end(&self) -> Close<'_, T> {
        Close(self)
    }

    /// Waits for an item; none if the queue is empty and closed. A thread of a rayon pool does the pool's work
    /// meanwhile, which the other thread may wait for.
    pub(crate) fn pop(&self) -> Option<T> {
        loop {
            let mut state = self.state();
            match state.0.pop_front() {
                None if !state.1 => drop(state),
                item => return item,
            }
            let must_wait = |state: &mut (VecDeque<T>, bool)| state.0.is_empty() && !state.1;
            match rayon::yield_now() {
                Some(Yield::Executed) => {}
                Some(Yield::Idle) => drop(self.changed.wait_timeout_while(self.state(), IDLE, must_wait)),
                None => drop(self.changed.wait_while(self.state(), must_wait)),
            }
        }
    }
}

impl<T> Drop for Close<'_, T> {
    fn drop(&mut self) {
        self.0.state().1 = true;
        self.0.changed.notify_all();
    }
}

/// Work for another thread.
struct Job {
    work: Box<dyn FnOnce() + Send>,
    /// Gets an item after the work, which has then been consumed.
    end: Arc<Queue<()>>,
}

/// Jobs of idle threads of the process with this number: the threads of a process do not exist in its forks.
static IDLE_THREADS: Mutex<(u32, Vec<Arc<Queue<Job>>>)> = Mutex::new((0, Vec::new()));

/// Returns the idle threads of this process.
fn idle_threads() -> MutexGuard<'static, (u32, Vec<Arc<Queue<Job>>>)> {
    let mut idle = IDLE_THREADS.lock().unwrap_or_else(PoisonError::into_inner);
    let here = process::id();
    if mem::replace(&mut idle.0, here) != here {
        idle.1.clear();
    }
    idle
}

/// A job under way. Dropping this waits until it has ended.
struct End(Arc<Queue<()>>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.pop();
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
    let (faults, result, end) = (faults::of_this_thread(), Mutex::new(None), Arc::new(Queue::new()));
    let work: Box<dyn FnOnce() + Send + '_> = Box::new(|| {
        faults::share(faults);
        let done = catch_unwind(AssertUnwindSafe(there));
        *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
    });
    // SAFETY: only the lifetime changes. The closure is consumed, with all that it borrows, before its job's `end` gets
    // an item. `ended` is declared after what the closure borrows, so on every way out of this function it is dropped
    // before that, and waits for the item.
    let work = unsafe { mem::transmute::<Box<dyn FnOnce() + Send + '_>, Box<dyn FnOnce() + Send>>(work) };
    let ended = End(end.clone());
    thread.push(Job { work, end });
    let own = here();
    drop(ended);
    match result.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(other) => Ok((other.unwrap_or_else(|panic| resume_unwind(panic)), own)),
        None => unreachable!("a job leaves its result before it ends"),
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

/// Starts a thread that works until the process ends, and returns the queue of its jobs; none if the system has no more
/// threads.
fn new_thread() -> Option<Arc<Queue<Job>>> {
    let jobs = Arc::new(Queue::<Job>::new());
    let own = jobs.clone();
    let work = move || {
        while let Some(Job { work, end }) = own.pop() {
            work();
            // Idle before the end of the job is seen, because the caller may start its next job at once.
            idle_threads().1.push(own.clone());
            end.push(());
        }
    };
    thread::Builder::new().name("warpset-device".into()).spawn(work).ok().map(|_| jobs)
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

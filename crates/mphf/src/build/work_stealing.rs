//! A parallel loop whose threads take items one by one, and steal from each other.
//!
//! Rayon's own iterators halve the items repeatedly, and each thread that halved waits for both halves: at the end of a
//! loop, threads wake each other one after the other, which takes long. Here every thread begins with a block of items
//! and then takes items from the ends of other threads' blocks. Only the thread that began the loop waits for the
//! others.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time for which the first thread polls for the others' end before it sleeps; waking up takes as long.
const AWAKE: Duration = Duration::from_micros(100);

/// Results of finished items, and the spaces of finished threads.
struct Done<S, R, E> {
    results: Vec<Option<R>>,
    spaces: Vec<S>,
    failure: Option<E>,
}

/// Counter of threads at work, correct even if one panics.
struct Working<'a>(&'a AtomicUsize);

impl<'a> Working<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `work` for each of `items` on the threads of the pool. Every thread has a space of its own, which it reuses
/// from item to item. Returns the results in the order of items, and the spaces; or a failure, after which no further
/// item begins.
pub(crate) fn for_each<I, S, R, E>(
    items: I,
    work: impl Fn(&mut S, I::Item) -> Result<R, E> + Sync,
) -> Result<(Vec<R>, Vec<S>), E>
where
    I: ExactSizeIterator<Item: Send>,
    S: Default + Send,
    R: Send,
    E: Send,
{
    let count = items.len();
    let results = std::iter::repeat_with(|| None).take(count).collect();
    let done = Mutex::new(Done { results, spaces: Vec::new(), failure: None });
    let threads = rayon::current_num_threads().clamp(1, count.max(1));
    // Neighbours are close in memory, so each thread gets a block of them.
    let mut items = items.enumerate();
    let mut block = || Mutex::new(items.by_ref().take(count.div_ceil(threads)).collect::<VecDeque<_>>());
    let blocks: Vec<_> = (0..threads).map(|_| block()).collect();
    let (stop, working) = (AtomicBool::new(false), AtomicUsize::new(0));
    let run = |thread: usize| {
        let _working = Working::new(&working);
        let next = || {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            let (before, own) = blocks.split_at(thread);
            // The lock is released before another one is taken.
            let next = lock(&own[0]).pop_front();
            next.or_else(|| own[1..].iter().chain(before).find_map(|block| lock(block).pop_back()))
        };
        let (mut space, mut results, mut failure) = (S::default(), Vec::new(), None);
        while let Some((index, item)) = next() {
            match work(&mut space, item) {
                Ok(result) => results.push((index, result)),
                Err(error) => {
                    stop.store(true, Ordering::Relaxed);
                    failure = Some(error);
                }
            }
        }
        let mut done = lock(&done);
        results.into_iter().for_each(|(index, result)| done.results[index] = Some(result));
        done.spaces.push(space);
        done.failure = failure.or(done.failure.take());
    };
    rayon::in_place_scope(|scope| {
        let run = &run;
        (1..threads).for_each(|thread| scope.spawn(move |_| run(thread)));
        run(0);
        // Helpers that have not begun by now find no items.
        let since = Instant::now();
        while working.load(Ordering::Acquire) > 0 && since.elapsed() < AWAKE {
            std::hint::spin_loop();
        }
    });
    let Done { results, spaces, failure } = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    match failure {
        Some(failure) => Err(failure),
        None => Ok((results.into_iter().flatten().collect(), spaces)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_once_and_in_order() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
        for count in [0, 1, 2, 5, 1000] {
            let work = |sum: &mut usize, item: usize| {
                *sum += item;
                Ok::<_, ()>(item * 2)
            };
            let (results, sums) = pool.install(|| for_each(0..count, work)).unwrap();
            assert_eq!(results, (0..count).map(|i| i * 2).collect::<Vec<_>>());
            assert_eq!(sums.iter().sum::<usize>(), (0..count).sum::<usize>());
        }
    }

    #[test]
    fn a_failure_ends_it() {
        let begun = AtomicUsize::new(0);
        let work = |(): &mut (), item| {
            begun.fetch_add(1, Ordering::Relaxed);
            if item == 10 { Err(item) } else { Ok(()) }
        };
        let many = 1_000_000;
        assert_eq!(for_each(0..many, work), Err(10));
        assert!(begun.into_inner() < many);
    }

    #[test]
    #[should_panic(expected = "item 7")]
    fn a_panic_comes_through() {
        let work = |(): &mut (), item: usize| {
            assert_ne!(item, 7, "item 7");
            Ok::<_, ()>(())
        };
        let _ = for_each(0..100, work);
    }
}

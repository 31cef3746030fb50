//! Work in parts, on the threads of the current rayon pool.
//!
//! Rayon's iterators instantiate some thirty functions for each closure and each type of item; in a program with many
//! structures that was up to half of the code. Here the pool sees numbers of parts and one function, compiled once. A
//! part must be worth a lock and a call: thousands of elements, not one.

use std::sync::Mutex;

use rayon::prelude::*;

/// The most threads that are started at once, unless the machine has more: beyond that they cost more than they bring.
pub const MOST_THREADS: usize = 256;

/// Returns the number of threads to start if `asked` are wanted; 0 asks for all of the machine. At most one per piece
/// of work, at most [`MOST_THREADS`] or the machine's number, whichever is larger, and at least one.
pub fn threads_for(asked: usize, pieces: u64) -> usize {
    let machine = std::thread::available_parallelism().map_or(1, usize::from);
    let wanted = if asked == 0 { machine } else { asked };
    wanted.min(MOST_THREADS.max(machine)).min(usize::try_from(pieces).unwrap_or(usize::MAX)).max(1)
}

/// Runs `task` with each number below `count`, in no order. Under Miri on the caller's thread: the threads of a pool
/// never end, which the interpreter reports as a leak.
pub fn numbers(count: usize, task: &(dyn Fn(usize) + Sync)) {
    match count {
        0 => {}
        1 => task(0),
        _ if cfg!(miri) => (0..count).for_each(task),
        _ => (0..count).into_par_iter().for_each(task),
    }
}

/// Runs `own` on the caller's thread, and `task` beside it on up to `helpers` threads of the pool; waits for all. The
/// pool's other work determines how many helpers start, and when, so `own` must not wait for a result of `task`. Miri
/// has no other worker threads.
pub fn beside<R>(helpers: usize, task: &(dyn Fn() + Sync), own: impl FnOnce() -> R) -> R {
    rayon::in_place_scope(|scope| {
        wake(scope, 0, if cfg!(miri) { 0 } else { helpers }, task);
        own()
    })
}

/// Wakes the next helpers, for helper number `caller`; 0 is the caller. Waking a thread takes microseconds, so each
/// thread wakes three.
fn wake<'s>(scope: &rayon::Scope<'s>, caller: usize, helpers: usize, task: &'s (dyn Fn() + Sync)) {
    for helper in 3 * caller + 1..=(3 * caller + 3).min(helpers) {
        scope.spawn(move |scope| {
            wake(scope, helper, helpers, task);
            task();
        });
    }
}

/// Runs `task` with each part, in no order.
pub fn for_each<T: Send>(parts: impl IntoIterator<Item = T>, task: impl Fn(T) + Sync) {
    let mut waiting = Vec::new();
    for part in parts {
        waiting.push(Mutex::new(Some(part)));
    }
    numbers(waiting.len(), &|number| {
        if let Some(part) = take(&waiting[number]) {
            task(part);
        }
    });
}

/// Nanoseconds of work that are done sooner by the calling thread than with help: waking a thread takes some ten
/// microseconds until it works. None under Miri, so that its small inputs are divided too.
const ALONE_NS: f64 = if cfg!(miri) { 0.0 } else { 60_000.0 };
/// Nanoseconds that each further task costs the call: to wake a thread for it, and to hand it out.
const TASK_NS: f64 = 1_000.0;
/// Nanoseconds of the longest task, so that threads finish at the same time.
const LONGEST_NS: f64 = 100_000.0;

/// Returns the number of items per task of a batch of `items`, each `item_ns` nanoseconds of work: a multiple of 64, or
/// all if one thread is as fast. All batches are divided by this rule.
///
/// Work `w` in `n` tasks of different threads takes `w / n + n * TASK_NS`, least for `n = sqrt(w / TASK_NS)`.
pub fn task_len(items: usize, item_ns: f64) -> usize {
    let work = items as f64 * item_ns;
    if work < ALONE_NS || rayon::current_num_threads() == 1 {
        return items.max(1);
    }
    let task_ns = (work * TASK_NS).sqrt().min(LONGEST_NS);
    ((task_ns / item_ns) as usize + 1).next_multiple_of(64)
}

/// Returns the number of threads that share such a batch, by [`task_len`]; 1 if one thread is as fast.
pub fn threads_of(items: usize, item_ns: f64) -> usize {
    items.div_ceil(task_len(items, item_ns)).clamp(1, rayon::current_num_threads())
}

/// Runs `work` on items, each `item_ns` nanoseconds of work, with the answers of each task: one answer for every
/// `per_answer` items, a divisor of 64.
pub fn answer<Q: Sync, A: Send>(
    items: &[Q],
    answers: &mut [A],
    (item_ns, per_answer): (f64, usize),
    work: impl Fn(&[Q], &mut [A]) + Sync,
) {
    let task = task_len(items.len(), item_ns);
    if task >= items.len() {
        return work(items, answers);
    }
    for_each(items.chunks(task).zip(answers.chunks_mut(task / per_answer)), |(items, answers)| work(items, answers));
}

/// Calls `task` with each part and returns the results in the order of the parts.
pub fn map<T: Send, R: Send>(parts: impl IntoIterator<Item = T>, task: impl Fn(T) -> R + Sync) -> Vec<R> {
    let mut places = Vec::new();
    for part in parts {
        places.push((Mutex::new(Some(part)), Mutex::new(None)));
    }
    numbers(places.len(), &|number| {
        let (part, result) = &places[number];
        if let Some(part) = take(part) {
            let made = task(part);
            if let Ok(mut result) = result.lock() {
                *result = Some(made);
            }
        }
    });
    let mut results = Vec::with_capacity(places.len());
    for (_, result) in places {
        if let Ok(Some(result)) = result.into_inner() {
            results.push(result);
        }
    }
    results
}

/// Runs `task` with each part, in no order, and returns the error of the first part, in order, that failed. All parts
/// run, also after an error.
///
/// # Errors
/// The errors of `task`.
pub fn try_for_each<T: Send, E: Send>(
    parts: impl IntoIterator<Item = T>,
    task: impl Fn(T) -> Result<(), E> + Sync,
) -> Result<(), E> {
    map(parts, task).into_iter().collect()
}

/// Does the work of [`map`] with scratch memory: each call of `task` has exclusive use of one, reused or made by
/// `scratch`.
pub fn map_with<S: Send, T: Send, R: Send>(
    scratch: impl Fn() -> S + Sync,
    parts: impl IntoIterator<Item = T>,
    task: impl Fn(&mut S, T) -> R + Sync,
) -> Vec<R> {
    let idle = Mutex::new(Vec::new());
    map(parts, |part| {
        let used = idle.lock().ok().and_then(|mut idle| idle.pop());
        let mut used = used.unwrap_or_else(&scratch);
        let result = task(&mut used, part);
        if let Ok(mut idle) = idle.lock() {
            idle.push(used);
        }
        result
    })
}

/// Fills an empty vector with `len` items, constructed in place by all threads, because the first write to fresh memory
/// is what costs. A task makes at least `together` items.
pub fn fill<T: Send>(items: &mut Vec<T>, len: usize, together: usize, make: impl Fn(usize) -> T + Sync + Send) {
    match len > together && !cfg!(miri) {
        true => (0..len).into_par_iter().with_min_len(together).map(make).collect_into_vec(items),
        false => items.extend((0..len).map(make)),
    }
}

/// Does the work of [`for_each`] for small parts: hands out `together` of them at a time.
pub fn for_each_small<T: Send>(together: usize, parts: impl IntoIterator<Item = T>, task: impl Fn(T) + Sync) {
    let mut parts = parts.into_iter();
    let groups = std::iter::from_fn(|| {
        let group: Vec<T> = parts.by_ref().take(together).collect();
        (!group.is_empty()).then_some(group)
    });
    for_each(groups, |group| group.into_iter().for_each(&task));
}

/// Takes the part out, for the one caller that has its number.
fn take<T>(place: &Mutex<Option<T>>) -> Option<T> {
    place.lock().ok().and_then(|mut place| place.take())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_bounded_by_work_and_machine() {
        let machine = std::thread::available_parallelism().map_or(1, usize::from);
        assert_eq!([0, 1, 7, usize::MAX].map(|asked| threads_for(asked, 0)), [1; 4]);
        assert_eq!(threads_for(0, u64::MAX), machine);
        assert_eq!([1, 7, 100].map(|asked| threads_for(asked, 50)), [1, 7, 50]);
        for asked in [1 << 40, usize::MAX] {
            assert_eq!(threads_for(asked, u64::MAX), MOST_THREADS.max(machine));
        }
    }

    #[test]
    fn each_part_once_and_in_order() {
        for count in [0, 1, 2, 3, 100, if cfg!(miri) { 200 } else { 5000 }] {
            let mut data: Vec<usize> = vec![0; count * 3];
            for_each(data.chunks_mut(3).enumerate(), |(i, part)| part.iter_mut().for_each(|place| *place += i + 1));
            assert!(data.iter().enumerate().all(|(i, &value)| value == i / 3 + 1));
            assert_eq!(map(0..count, |i| i * i), (0..count).map(|i| i * i).collect::<Vec<_>>());
            let failed = try_for_each(0..count, |i| if i < 7 { Ok(()) } else { Err(i) });
            for_each_small(16, data.iter_mut(), |place| *place = 0);
            assert!(data.iter().all(|&value| value == 0));
            let with_scratch = map_with(Vec::new, 0..count, |scratch, i| {
                scratch.push(i);
                i
            });
            assert_eq!(with_scratch, (0..count).collect::<Vec<_>>());
            assert_eq!(failed, if count > 7 { Err(7) } else { Ok(()) });
        }
    }

    #[test]
    fn helpers_end_before_the_caller_goes_on() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        for helpers in [0, 1, 3, 4, 20] {
            let (next, done, runs) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
            let work = || {
                runs.fetch_add(1, Ordering::Relaxed);
                while next.fetch_add(1, Ordering::Relaxed) < 1000 {
                    done.fetch_add(1, Ordering::Relaxed);
                }
            };
            let own = beside(helpers, &work, || {
                work();
                7
            });
            assert_eq!((own, done.into_inner()), (7, 1000));
            assert_eq!(runs.into_inner(), if cfg!(miri) { 1 } else { 1 + helpers });
        }
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        let caught = std::panic::catch_unwind(|| for_each(0..10, |i| assert!(i != 5, "five")));
        assert!(caught.is_err());
        let caught = std::panic::catch_unwind(|| map(0..10, |i| assert!(i != 5, "five")));
        assert!(caught.is_err());
    }
}

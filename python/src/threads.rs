//! Work detached from the interpreter, on a number of threads that the caller chooses.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, RwLock, TryLockError};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyCFunction};
use rayon::{ThreadPool, ThreadPoolBuilder};
use warpset_base::parallel::threads_for;

use crate::error::{Failure, Result};

/// Most keys for work on the caller's thread with the interpreter attached: detaching costs as much.
pub const FEW_KEYS: usize = 256;

/// Marks work on a device in place of a number of keys. The caller's thread waits for the device, detached from the
/// interpreter: another thread would first have to wake up.
pub const ON_DEVICE: usize = usize::MAX;

/// Whether this process is a fork of a process with the module. A fork has no threads in rayon's own pool, which work
/// on the caller's thread may use.
static IS_FORKED: AtomicBool = AtomicBool::new(false);

/// Registers a callback for forks.
pub fn hear_of_forks(py: Python<'_>) -> PyResult<()> {
    let Some(register) = py.import("os")?.getattr_opt("register_at_fork")? else { return Ok(()) };
    let forked = PyCFunction::new_closure(py, None, None, |_, _| IS_FORKED.store(true, Ordering::Relaxed))?;
    register.call((), Some(&[("after_in_child", forked)].into_py_dict(py)?))?;
    Ok(())
}

/// Whether work on `keys` keys stays on the caller's thread.
fn is_short(keys: usize) -> bool {
    keys <= FEW_KEYS && !IS_FORKED.load(Ordering::Relaxed)
}

/// Pools of this process by number of threads. A fork has none of its parent's threads, so the process id is part of
/// the key.
static POOLS: Mutex<Option<Pools>> = Mutex::new(None);

/// Pools by process id and number of threads.
type Pools = HashMap<(u32, usize), Arc<ThreadPool>>;

/// Value of the argument `threads`; 0, as `None`, selects all threads of the machine.
#[derive(Clone, Copy, Default)]
pub struct Threads(pub usize);

impl FromPyObject<'_, '_> for Threads {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Threads> {
        match object.extract::<isize>()? {
            number if number < 0 => Err(PyValueError::new_err(format!(
                "threads={number}: pass a number of threads, or None for all of the machine"
            ))),
            number => Ok(Threads(number as usize)),
        }
    }
}

/// Returns the pool of `threads` threads.
fn pool(Threads(threads): Threads) -> Result<Arc<ThreadPool>> {
    let threads = threads_for(threads, u64::MAX);
    let build = || {
        let name = |number| format!("warpset-{number}");
        let pool = ThreadPoolBuilder::new().num_threads(threads).thread_name(name).build();
        pool.map(Arc::new).map_err(|error| Failure::internal(format!("{threads} threads cannot be started: {error}")))
    };
    match POOLS.try_lock() {
        Ok(mut pools) => {
            let (pools, key) = (pools.get_or_insert_default(), (std::process::id(), threads));
            if let Some(pool) = pools.get(&key) {
                return Ok(pool.clone());
            }
            // The parent's pools have no threads in this process, so dropping one would wait forever.
            pools.retain(|&(process, _), pool| {
                let is_ours = process == key.0;
                if !is_ours {
                    std::mem::forget(pool.clone());
                }
                is_ours
            });
            let pool = build()?;
            pools.insert(key, pool.clone());
            Ok(pool)
        }
        // Another thread holds the lock, or held it at the fork.
        Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => build(),
    }
}

/// Abandons a pool to the work that it does; later calls get another one.
fn retire(pool: &Arc<ThreadPool>) {
    // If another thread holds the lock, later calls wait for this pool.
    if let Ok(mut pools) = POOLS.try_lock() {
        pools.get_or_insert_default().retain(|_, known| !Arc::ptr_eq(known, pool));
    }
}

/// Runs `work` on the caller's thread if there are few keys, else detached from the interpreter on `threads` threads.
pub fn run<R: Send>(
    py: Python<'_>,
    threads: Option<Threads>,
    keys: usize,
    work: impl FnOnce() -> Result<R> + Send,
) -> Result<R> {
    if is_short(keys) {
        return work();
    }
    let pool = pool(threads.unwrap_or_default())?;
    py.detach(|| pool.install(work))
}

/// Progress of watched work, and whether it has to stop.
#[derive(Default)]
pub struct Watch {
    done: AtomicU64,
    total: AtomicU64,
    is_stopped: AtomicBool,
}

impl Watch {
    /// Records the progress, with a `total` of 0 if it is unknown; returns whether to continue.
    pub fn note(&self, done: u64, total: u64) -> ControlFlow<()> {
        self.done.store(done, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
        if self.is_stopped.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Time between two checks of signals and progress.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Time for work to stop after an exception.
const TO_STOP: Duration = Duration::from_millis(500);

/// Runs long `work` on `threads` threads. Meanwhile the caller's thread checks signals, such as Ctrl-C, and calls
/// `progress`. An exception in either stops the work when it next records its progress, and is raised. Work that does
/// not stop in time continues to its end on threads that later calls do not use, and its result is dropped.
pub fn run_watched<R: Send + 'static>(
    py: Python<'_>,
    threads: Option<Threads>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Arc<Watch>) -> Result<R> + Send + 'static,
) -> PyResult<R> {
    let (pool, watch) = (pool(threads.unwrap_or_default())?, Arc::<Watch>::default());
    let (sender, mut receiver) = mpsc::sync_channel(1);
    let watched = watch.clone();
    pool.spawn(move || {
        // After a panic the sender is dropped unused, which the receiver notices.
        if let Ok(result) = panic::catch_unwind(AssertUnwindSafe(|| work(&watched))) {
            // The caller is gone if the work did not stop in time.
            let _ = sender.send(result);
        }
    });
    let mut told = (0, 0);
    let mut look = |done, total| {
        py.check_signals()?;
        if let Some(progress) = progress
            && std::mem::replace(&mut told, (done, total)) != (done, total)
        {
            progress.call1((done, total))?;
        }
        Ok(())
    };
    let mut exception: Option<(PyErr, Instant)> = None;
    loop {
        let receiver = &mut receiver;
        match (py.detach(move || receiver.recv_timeout(BETWEEN_LOOKS)), exception.take()) {
            (Err(RecvTimeoutError::Timeout), None) => {
                let (done, total) = (watch.done.load(Ordering::Relaxed), watch.total.load(Ordering::Relaxed));
                exception = look(done, total).err().map(|error| (error, Instant::now()));
                watch.is_stopped.store(exception.is_some(), Ordering::Relaxed);
            }
            (Err(RecvTimeoutError::Timeout), Some((error, since))) if since.elapsed() < TO_STOP => {
                exception = Some((error, since));
            }
            (result, Some((error, _))) => {
                if matches!(result, Err(RecvTimeoutError::Timeout)) {
                    retire(&pool);
                }
                return Err(error);
            }
            // The work panicked.
            (Err(RecvTimeoutError::Disconnected), None) => return Err(poisoned(()).into()),
            (Ok(result), None) => {
                let (result, total) = (result?, watch.total.load(Ordering::Relaxed));
                return look(total, total).map(|()| result);
            }
        }
    }
}

/// Value that threads of Python share.
pub trait Placed: Send + Sync {
    /// Whether its methods wait for a device, even for one key.
    fn waits(&self) -> bool;
}

/// Value under a lock. Neither the lock nor a device is waited for with the interpreter attached, since the thread that
/// holds the lock may wait for the interpreter.
pub struct Shared<T>(RwLock<T>);

fn poisoned<T>(_: T) -> Failure {
    Failure::internal("an earlier call on this object failed by a defect of this library: make it again")
}

impl<T: Placed> Shared<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Shared<T> {
        Shared(RwLock::new(value))
    }

    /// Runs `work` with the value while nothing changes it.
    pub fn read<R: Send>(
        &self,
        py: Python<'_>,
        threads: Option<Threads>,
        keys: usize,
        work: impl FnOnce(&T) -> Result<R> + Send,
    ) -> Result<R> {
        if is_short(keys) {
            match self.0.try_read() {
                Ok(value) if !value.waits() => return work(&value),
                Err(TryLockError::Poisoned(error)) => return Err(poisoned(error)),
                // No return here, because the lock may still be held.
                Ok(_) | Err(TryLockError::WouldBlock) => {}
            }
            return py.detach(|| work(&*self.0.read().map_err(poisoned)?));
        }
        if keys == ON_DEVICE {
            return py.detach(|| work(&*self.0.read().map_err(poisoned)?));
        }
        // Threads of the pool never wait for the lock, which is taken first.
        let pool = pool(threads.unwrap_or_default())?;
        py.detach(|| {
            let value = &*self.0.read().map_err(poisoned)?;
            pool.install(|| work(value))
        })
    }

    /// Runs `work` with the value while nothing else reads it.
    pub fn write<R: Send>(
        &self,
        py: Python<'_>,
        threads: Option<Threads>,
        keys: usize,
        work: impl FnOnce(&mut T) -> Result<R> + Send,
    ) -> Result<R> {
        if is_short(keys) {
            match self.0.try_write() {
                Ok(mut value) if !value.waits() => return work(&mut value),
                Err(TryLockError::Poisoned(error)) => return Err(poisoned(error)),
                // No return here, because the lock may still be held.
                Ok(_) | Err(TryLockError::WouldBlock) => {}
            }
            return py.detach(|| work(&mut *self.0.write().map_err(poisoned)?));
        }
        if keys == ON_DEVICE {
            return py.detach(|| work(&mut *self.0.write().map_err(poisoned)?));
        }
        let pool = pool(threads.unwrap_or_default())?;
        py.detach(|| {
            let value = &mut *self.0.write().map_err(poisoned)?;
            pool.install(|| work(value))
        })
    }
}

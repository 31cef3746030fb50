//! The coroutines in which kernel threads run.
//!
//! A worker runs threads one after another, and a thread that never suspends costs no
//! switch: the worker takes the next one itself. Only when a thread suspends does the
//! scheduler get control, and the worker stays with that thread until it ends.
//! Workers, with their stacks, are kept for the next launch of the same host thread.
use super::engine;
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, Yielder};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Address space for a thread's stack; pages are only used when touched.
const STACK_BYTES: usize = 256 << 10;

/// Idle workers that a host thread keeps.
const KEPT: usize = 2048;

/// Stacks of the process past which idle workers are not kept: a system has tens of
/// thousands of memory mappings per process, and a stack with its guard page takes two.
const MANY: usize = 8192;

/// Time to wait for stacks that other host threads' launches give back.
const PATIENCE: Duration = Duration::from_secs(10);

static STACKS: AtomicUsize = AtomicUsize::new(0);

type Body = Coroutine<(), (), ()>;

/// A coroutine that runs kernel threads. Boxed by corosensei: moving it moves a pointer.
pub struct Worker(Body, Counted);

/// Counts a stack until it is dropped.
struct Counted;

impl Counted {
    fn new() -> Self {
        STACKS.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        STACKS.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Worker")
    }
}

/// Places in a page at which stacks are hot.
const COLOURS: usize = 16;

thread_local! {
    static COLOUR: Cell<usize> = const { Cell::new(0) };
    static IDLE: RefCell<Vec<Worker>> = const { RefCell::new(Vec::new()) };
    static YIELDER: Cell<*const Yielder<(), ()>> = const { Cell::new(std::ptr::null()) };
}

impl Worker {
    /// Takes an idle worker of this host thread, or makes a new one.
    pub fn take() -> std::io::Result<Self> {
        if let Some(worker) = IDLE.with_borrow_mut(Vec::pop) {
            return Ok(worker);
        }
        let stack = new_stack()?;
        let colour = COLOUR.get();
        COLOUR.set((colour + 1) % COLOURS);
        Ok(Self(Coroutine::with_stack(stack, move |yielder, ()| deeper(colour, yielder)), Counted::new()))
    }

    /// Gives back a worker that has no thread.
    pub fn give(self) {
        IDLE.with_borrow_mut(|idle| {
            if idle.len() < KEPT && STACKS.load(Ordering::Relaxed) < MANY {
                idle.push(self);
            }
        });
    }

    /// Runs until a thread suspends or no further one can be started here.
    pub fn resume(&mut self) {
        self.0.resume(());
    }
}

/// Allocates a stack; if the system refuses, waits for other launches to give some back.
fn new_stack() -> std::io::Result<DefaultStack> {
    let start = Instant::now();
    loop {
        match DefaultStack::new(STACK_BYTES) {
            Err(_) if start.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(1)),
            result => return result,
        }
    }
}

/// Runs threads forever, `levels` small frames further down. All stacks begin at the
/// start of a page, so without the frames their hot parts would share a few cache sets.
#[inline(never)]
fn deeper(levels: usize, yielder: &Yielder<(), ()>) {
    let frame = MaybeUninit::<[u8; 4096 / COLOURS]>::uninit();
    black_box(&frame);
    if levels > 0 {
        deeper(levels - 1, yielder);
    } else {
        loop {
            YIELDER.set(yielder);
            engine::run_threads();
            yielder.suspend(());
        }
    }
    black_box(&frame);
}

/// Suspends the calling kernel thread until the scheduler resumes its worker.
pub fn suspend() {
    let yielder = YIELDER.get();
    // SAFETY: set by the worker that runs this code, whose coroutine is alive while it runs.
    unsafe { (*yielder).suspend(()) };
    YIELDER.set(yielder);
}

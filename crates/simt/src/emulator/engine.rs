//! One launch: the choice of the next thread, and the meetings of threads.
//!
//! A launch runs entirely on the host thread that called it. Kernel code reaches the engine through a thread-local
//! pointer, always in short borrows that end before any thread is suspended or resumed.
use super::block::Block;
use super::fault::{CallSite, Fault, FaultKind, Other};
use super::memory::{Memory, Region};
use super::order::{Accesses, Operation};
use super::races::Races;
use super::random::Random;
use super::weak::Weak;
use super::worker::{self, Worker};
use super::{Config, MAX_BLOCK_THREADS, MAX_SHARED_BYTES};
use crate::host::operation::Shape;
use crate::{Dim3, KernelInfo, LaunchConfig};
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::sync::Arc;

pub use super::access::{
    check_pair, fence, global_access, global_atomic, preempt, shared_access, shared_atomic, shared_volatile,
};

pub use super::meeting::{barrier, collective};

/// Number of candidate blocks for the next free slot: the start order is shuffled this far.
const WINDOW: usize = 8;

/// Accesses of a thread before others get their turn.
const FUEL: u32 = 1 << 17;

/// Scheduling steps that a used-up fuel counts as.
const FUEL_STEPS: u64 = 10_000;

thread_local! {
    static ENGINE: Cell<*mut Engine> = const { Cell::new(std::ptr::null_mut()) };
}

/// A thread of a resident block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadRef {
    pub slot: u32,
    pub thread: u32,
}

pub struct Engine {
    pub shape: Shape,
    info: &'static KernelInfo,
    pub(super) config: Config,
    launch: u64,
    body: *const (dyn Fn() + Sync),
    pub(super) random: Random,
    pub(super) slots: Vec<Block>,
    pub(super) current: ThreadRef,
    pub(super) ready: Vec<ThreadRef>,
    /// Thread that a worker drew but could not start itself.
    handoff: Option<ThreadRef>,
    /// Whether the worker that returned has no thread left.
    worker_is_idle: bool,
    upcoming: Vec<u64>,
    next_block: u64,
    blocks: u64,
    shared_bytes: u32,
    fault: Option<Fault>,
    steps: u64,
    steps_since_progress: u64,
    pub(super) polls: u64,
    pub(super) fuel: u32,
    pub(super) memory: Arc<Memory>,
    pub(super) regions: Vec<Arc<Region>>,
    pub(super) races: Option<Races>,
    pub(super) weak: Option<Weak>,
    /// Accesses of earlier operations, and the operation that this launch is, where their order is checked.
    pub(super) order: Option<(Operation, Accesses)>,
    policy: Policy,
}

/// Policy for drawing the next thread. Every ready thread has a chance in all of them.
#[derive(Clone, Copy, Debug)]
enum Policy {
    /// Each with equal probability.
    Uniform,
    /// Mostly the one that became ready last: threads run far ahead of each other.
    LatestFirst,
    /// Mostly none of the warps whose number has this remainder modulo 3.
    Starve(u32),
}

/// The payload with which a faulty or cancelled thread unwinds.
struct Unwind;

/// Borrows the engine of the launch that runs on this host thread.
///
/// # Panics
/// If there is none: a function for kernels was called by host code.
#[inline]
pub fn with<R>(f: impl FnOnce(&mut Engine) -> R) -> R {
    let engine = ENGINE.get();
    assert!(!engine.is_null(), "this function is for kernels, and no kernel is running on this thread");
    // SAFETY: `run` keeps the engine alive while the pointer is set; the closures in this
    // module and its siblings neither call `with` nor switch coroutines, so this is the only borrow.
    f(unsafe { &mut *engine })
}

/// Runs a launch to its end.
pub fn run(
    config: &Config,
    memory: &Arc<Memory>,
    info: &'static KernelInfo,
    launch_config: LaunchConfig,
    body: &(dyn Fn() + Sync),
    launch: u64,
    order: Option<(&Operation, &mut Accesses)>,
) -> Result<(), Fault> {
    let refuse =
        |kind| Fault { kernel: info.name, block: None, thread: None, location: None, seed: config.seed, launch, kind };
    check_launch(info, launch_config, config.resident_blocks.max(1)).map_err(refuse)?;
    if !ENGINE.get().is_null() {
        return Err(refuse(FaultKind::BadLaunch { reason: "a kernel thread cannot launch kernels".into() }));
    }
    if unwinding() {
        return Err(refuse(FaultKind::BadLaunch { reason: "the host thread is panicking".into() }));
    }
    let threads = launch_config.block.count() as u32;
    let blocks = launch_config.grid.count();
    let resident = u64::from(config.resident_blocks.max(1)).min(blocks);
    // The detector numbers the threads of a launch with 32 bits.
    let numbered = blocks.saturating_mul(u64::from(threads)) <= u64::from(u32::MAX);
    let zero = Dim3::new(0, 0, 0);
    let (in_order, lender) = match order {
        Some((operation, accesses)) => {
            let taken = std::mem::replace(accesses, Accesses::new());
            (Some((operation.clone(), taken)), Some(accesses))
        }
        None => (None, None),
    };
    let mut engine = Engine {
        shape: Shape {
            thread_idx: zero,
            block_idx: zero,
            block_dim: launch_config.block,
            grid_dim: launch_config.grid,
            lane: 0,
        },
        info,
        config: config.clone(),
        launch,
        body: erase(body),
        random: Random::new(config.seed ^ launch.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        slots: (0..resident).map(|_| Block::new(threads, launch_config.shared_bytes)).collect(),
        current: ThreadRef { slot: 0, thread: 0 },
        ready: Vec::with_capacity(resident as usize * threads as usize),
        handoff: None,
        worker_is_idle: false,
        upcoming: Vec::with_capacity(WINDOW),
        next_block: 0,
        blocks,
        shared_bytes: launch_config.shared_bytes,
        fault: None,
        steps: 0,
        steps_since_progress: 0,
        polls: 0,
        fuel: FUEL,
        memory: memory.clone(),
        regions: Vec::new(),
        races: (config.detect_races && numbered).then(|| Races::new(resident as usize, threads)),
        weak: config.reorder_relaxed.then(|| Weak::new(resident as usize, threads as usize)),
        order: in_order,
        policy: Policy::Uniform,
    };
    engine.policy = match engine.random.below(4) {
        0 | 1 => Policy::Uniform,
        2 => Policy::LatestFirst,
        _ => Policy::Starve(engine.random.below(3) as u32),
    };
    for slot in 0..resident as u32 {
        engine.start_block(slot);
    }
    let engine_pointer = &raw mut engine;
    ENGINE.set(engine_pointer);
    schedule();
    ENGINE.set(std::ptr::null_mut());
    // SAFETY: `schedule` has returned, so nothing else borrows the engine.
    let engine = unsafe { &mut *engine_pointer };
    engine.commit_where(|_| true);
    if let (Some(lender), Some((_, accesses))) = (lender, engine.order.take()) {
        *lender = accesses;
    }
    engine.fault.take().map_or(Ok(()), Err)
}

/// Removes the lifetime of the body: the engine that holds it is gone before `run` returns.
fn erase<'a>(body: &'a (dyn Fn() + Sync + 'a)) -> *const (dyn Fn() + Sync + 'static) {
    // SAFETY: only the lifetime bound changes, and only `run_threads` dereferences the
    // pointer, while `run` still borrows the body.
    unsafe { std::mem::transmute(body) }
}

fn check_launch(info: &KernelInfo, config: LaunchConfig, resident_blocks: u32) -> Result<(), FaultKind> {
    let bad = |reason: String| Err(FaultKind::BadLaunch { reason });
    let (grid, block) = (config.grid, config.block);
    if grid.count() == 0 || block.count() == 0 {
        return bad(format!("grid {grid} or block {block} has no extent"));
    }
    if grid.x > i32::MAX as u32 || grid.y > 65535 || grid.z > 65535 {
        return bad(format!("grid {grid} exceeds (2147483647, 65535, 65535)"));
    }
    if block.count() > u64::from(MAX_BLOCK_THREADS) || block.z > 64 {
        return bad(format!("block {block} exceeds {MAX_BLOCK_THREADS} threads or (1024, 1024, 64)"));
    }
    if config.shared_bytes > MAX_SHARED_BYTES {
        return bad(format!("{} bytes of shared memory exceed {MAX_SHARED_BYTES}", config.shared_bytes));
    }
    if config.cooperative && grid.count() > u64::from(resident_blocks) {
        return bad(format!("{} blocks that wait for each other, and {resident_blocks} run at once", grid.count()));
    }
    match info.launch_bounds {
        Some(bounds) if block.count() > u64::from(bounds.max_threads) => {
            Err(FaultKind::LaunchBounds { threads: block.count(), max_threads: bounds.max_threads })
        }
        _ => Ok(()),
    }
}

/// Resumes one thread after another until all blocks are done.
fn schedule() {
    while let Some((next, worker)) = with(Engine::next_to_resume) {
        let mut worker = match worker.map_or_else(Worker::take, Ok) {
            Ok(worker) => worker,
            Err(error) => {
                with(|engine| engine.stop(FaultKind::NoStack { message: error.to_string() }, None));
                break;
            }
        };
        with(|engine| engine.make_current(next));
        worker.resume();
        with(|engine| engine.take_back(worker));
    }
    // After a fault, suspended threads are unwound, so that their workers can be used again.
    while let Some((next, mut worker)) = with(Engine::next_to_cancel) {
        with(|engine| engine.make_current(next));
        worker.resume();
        worker.give();
    }
}

/// Runs the current thread to its end, then as many others as have not started and are drawn next. A worker calls it
/// when it is resumed without a suspended thread.
pub fn run_threads() {
    loop {
        let body = with(|engine| engine.body);
        // SAFETY: `run` borrows the body while the engine is set.
        let body = unsafe { &*body };
        let outcome = catch_unwind(AssertUnwindSafe(body));
        if !with(|engine| engine.thread_ended(outcome)) {
            return;
        }
    }
}

/// Lets other threads run until one of them makes the current one ready. After a fault it unwinds instead.
pub(super) fn suspend() {
    worker::suspend();
    if with(|engine| engine.fault.is_some()) {
        resume_unwind(Box::new(Unwind));
    }
}

/// Whether the current thread unwinds. Its destructors must neither wait nor unwind
/// again, so they pass barriers, collectives and switches as if these were not there.
pub(super) fn unwinding() -> bool {
    std::thread::panicking()
}

/// Lets other threads run and comes back.
pub(super) fn switch() {
    if unwinding() {
        return;
    }
    if with(|engine| {
        if engine.ready.is_empty() {
            engine.commit_some();
            engine.steps_since_progress += 1;
            if engine.steps_since_progress > engine.config.max_steps {
                engine.stop(FaultKind::Livelock { steps: engine.steps_since_progress }, None);
                return true;
            }
            return false;
        }
        engine.ready.push(engine.current);
        true
    }) {
        suspend();
    }
}

/// Ends the current thread, and with it the launch.
pub(super) fn raise(kind: FaultKind, place: CallSite) -> ! {
    with(|engine| engine.stop(kind, Some(place)));
    resume_unwind(Box::new(Unwind));
}

#[track_caller]
pub fn trap() -> ! {
    raise(FaultKind::Panic { message: "trap".into() }, Location::caller())
}

#[track_caller]
pub fn spin() {
    if unwinding() {
        return;
    }
    let place = Location::caller();
    let deadlock = with(|engine| {
        engine.polls += 1;
        let waiting = engine.ready.len() + 1;
        let stuck = engine.polls > engine.config.max_polls.saturating_mul(waiting as u64);
        (stuck && !engine.commit_where(|_| true)).then_some(FaultKind::Deadlock { waiting, polls: engine.polls })
    });
    if let Some(kind) = deadlock {
        raise(kind, place);
    }
    switch();
}

impl Engine {
    pub fn steps(&self) -> u64 {
        self.steps
    }

    pub fn shared_bytes(&self) -> u32 {
        self.shared_bytes
    }

    pub(super) fn thread_mut(&mut self, at: ThreadRef) -> &mut super::block::Thread {
        &mut self.slots[at.slot as usize].threads[at.thread as usize]
    }

    #[inline]
    pub(super) fn thread_index(&self, thread: u32) -> Dim3 {
        if thread < self.shape.block_dim.x {
            Dim3::new(thread, 0, 0)
        } else {
            self.shape.block_dim.index(u64::from(thread))
        }
    }

    pub(super) fn other(&self, slot: u32, thread: u32, location: Option<CallSite>) -> Other {
        Other { block: self.slots[slot as usize].index, thread: self.thread_index(thread), location }
    }

    /// Records the fault of the current thread, if it is the first.
    pub(super) fn stop(&mut self, kind: FaultKind, place: Option<CallSite>) {
        if self.fault.is_none() {
            self.fault = Some(Fault {
                kernel: self.info.name,
                block: Some(self.shape.block_idx),
                thread: Some(self.shape.thread_idx),
                location: place,
                seed: self.config.seed,
                launch: self.launch,
                kind,
            });
        }
    }

    /// Notes a change that other threads may wait for.
    #[inline]
    pub(super) fn wrote(&mut self) {
        self.polls = 0;
    }

    pub(super) fn progressed(&mut self) {
        self.polls = 0;
        self.steps_since_progress = 0;
    }

    /// Puts the next block, in shuffled order, into `slot`. Returns `false` when all have started.
    pub(super) fn start_block(&mut self, slot: u32) -> bool {
        while self.upcoming.len() < WINDOW && self.next_block < self.blocks {
            self.upcoming.push(self.next_block);
            self.next_block += 1;
        }
        if self.upcoming.is_empty() {
            return false;
        }
        let linear = self.upcoming.swap_remove(self.random.below(self.upcoming.len()));
        let block = &mut self.slots[slot as usize];
        block.start(linear, self.shape.grid_dim);
        let threads = block.threads.len() as u32;
        self.ready.extend((0..threads).map(|thread| ThreadRef { slot, thread }));
        if let Some(races) = &mut self.races {
            races.start_block(slot, linear as u32);
        }
        if let Some(weak) = &mut self.weak {
            weak.catch_up_block(slot);
        }
        true
    }

    #[inline]
    fn draw(&mut self) -> Option<ThreadRef> {
        if self.ready.is_empty() {
            return None;
        }
        self.steps += 1;
        self.steps_since_progress += 1;
        let drawn = match self.policy {
            Policy::LatestFirst if !self.random.one_in(8) => self.ready.len() - 1,
            Policy::Starve(remainder) => {
                let drawn = self.random.below(self.ready.len());
                let starved = self.ready[drawn].thread / 32 % 3 == remainder && !self.random.one_in(8);
                if starved { self.random.below(self.ready.len()) } else { drawn }
            }
            _ => self.random.below(self.ready.len()),
        };
        Some(self.ready.swap_remove(drawn))
    }

    fn next_to_resume(&mut self) -> Option<(ThreadRef, Option<Worker>)> {
        if self.steps_since_progress > self.config.max_steps {
            self.stop(FaultKind::Livelock { steps: self.steps_since_progress }, None);
        }
        if self.fault.is_some() {
            return None;
        }
        let next = match self.handoff.take() {
            Some(next) => next,
            None => match self.draw() {
                Some(next) => next,
                None => {
                    self.check_stuck();
                    return None;
                }
            },
        };
        Some((next, self.thread_mut(next).worker.take()))
    }

    fn next_to_cancel(&mut self) -> Option<(ThreadRef, Worker)> {
        for slot in 0..self.slots.len() {
            for thread in 0..self.slots[slot].threads.len() {
                if let Some(worker) = self.slots[slot].threads[thread].worker.take() {
                    return Some((ThreadRef { slot: slot as u32, thread: thread as u32 }, worker));
                }
            }
        }
        None
    }

    #[inline]
    pub(super) fn make_current(&mut self, next: ThreadRef) {
        self.current = next;
        self.shape.block_idx = self.slots[next.slot as usize].index;
        self.shape.thread_idx = self.thread_index(next.thread);
        self.shape.lane = next.thread & 31;
        self.fuel = FUEL;
        self.commit_some();
    }

    /// Takes the worker back, with the current thread suspended in it, or idle.
    fn take_back(&mut self, worker: Worker) {
        if std::mem::take(&mut self.worker_is_idle) {
            worker.give();
        } else {
            self.thread_mut(self.current).worker = Some(worker);
        }
    }

    /// Accounts for the end of the current thread. Returns `true` if the worker has to run the thread that is now
    /// current.
    fn thread_ended(&mut self, outcome: Result<(), Box<dyn Any + Send>>) -> bool {
        self.worker_is_idle = true;
        if let Err(payload) = outcome
            && !payload.is::<Unwind>()
        {
            self.stop(FaultKind::Panic { message: panic_message(&*payload) }, None);
        }
        if self.fault.is_some() {
            return false;
        }
        if let Err(kind) = self.leave_block() {
            self.stop(kind, None);
            return false;
        }
        self.progressed();
        let Some(next) = self.draw() else { return false };
        if self.thread_mut(next).worker.is_some() {
            self.handoff = Some(next);
            return false;
        }
        self.worker_is_idle = false;
        self.make_current(next);
        true
    }

    /// Counts a thread's used fuel as steps in which nothing progressed, and refuels.
    pub(super) fn refuel(&mut self) {
        self.fuel = FUEL;
        self.steps_since_progress += FUEL_STEPS;
    }
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "with a payload that is no text".to_owned()
    }
}

//! Streams of an emulated device that run as late as a program allows.
//!
//! A GPU executes queued work some time after the call that queued it. If two streams, or a stream and the host, lack
//! an order, the fault shows on a GPU only while the device is busy. Here it always shows. Queued work is executed when
//! something waits for it, in an order that the seed chooses; only frees and allocations are executed as soon as their
//! stream reaches them.
//!
//! ```text
//! stream 1   [merge reads A]            merge has not run: nothing has waited for it
//! stream 2   [free A]                   runs at once, and A is poison
//! host       synchronize(stream 1)      merge runs now: fault, `merge` and the free have no order
//! ```
//!
//! Each operation has a time up to which it is ordered after each other stream, and so does the host. The emulator
//! compares the accesses of operations by these times ([`Operation`]), so a fault names both.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use warpset_simt::emulator::{Clock, Fault, Operation, join};

use super::EmulatedDevice;
use super::work::Work;
use crate::error::{GpuError, Result};

/// Stream of operations that the host executes and waits for.
pub(super) const OF_HOST: u32 = 0;
/// Stream of frees that come after all streams.
pub(super) const OF_FREES: u32 = 1;

/// A position on a stream: everything that the stream held when it was taken.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    stream: u32,
    time: u32,
    known: Arc<Clock>,
}

impl Point {
    /// Raises `clock` to the knowledge gained once this point has been passed.
    fn join_into(&self, clock: &mut Clock) {
        let own = self.stream as usize;
        join(clock, &self.known);
        if clock.len() <= own {
            clock.resize(own + 1, 0);
        }
        clock[own] = clock[own].max(self.time);
    }
}

/// The queues of a device.
pub(super) struct Deferred(Mutex<State>);

struct State {
    random: u64,
    queues: Vec<Queue>,
    /// Operations that the host has waited for, and the number of its waits.
    host: Clock,
    waits: u64,
    /// First fault. It stays, as an error of a CUDA device does.
    failed: Option<Fault>,
}

#[derive(Default)]
struct Queue {
    pending: VecDeque<Pending>,
    /// Time of the operation that was queued last, and of the one that was executed last.
    queued: u32,
    passed: u32,
    /// Operations of other streams that precede the next queued operation.
    known: Arc<Clock>,
    /// Number of waits of the host that `known` includes.
    waits: u64,
    has_owner: bool,
}

struct Pending {
    time: u32,
    known: Arc<Clock>,
    step: Step,
}

enum Step {
    Work(Work),
    Wait(Point),
}

impl Deferred {
    pub(super) fn new(seed: u64) -> Self {
        let queues = (0..2).map(|_| Queue { has_owner: true, ..Queue::default() }).collect();
        Self(Mutex::new(State { random: seed, queues, host: Clock::new(), waits: 0, failed: None }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic of a test leaves queues that are only dropped.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of a new stream.
    pub(super) fn open(&self) -> u32 {
        let state = &mut *self.state();
        let host = &state.host;
        // The host has waited for all work of this stream, so operations queued from now on come after it anyway.
        let is_over = |(i, queue): (usize, &Queue)| {
            !queue.has_owner && queue.pending.is_empty() && host.get(i).copied().unwrap_or(0) >= queue.queued
        };
        let free = state.queues.iter().enumerate().position(is_over);
        let number = free.unwrap_or_else(|| {
            state.queues.push(Queue::default());
            state.queues.len() - 1
        });
        state.queues[number].has_owner = true;
        number as u32
    }

    /// Drops a stream. Its queued work is still executed.
    pub(super) fn close(&self, stream: u32) {
        self.state().queues[stream as usize].has_owner = false;
    }

    /// Queues an operation.
    pub(super) fn queue(&self, device: &EmulatedDevice, stream: u32, work: Work) -> Result<()> {
        let state = &mut *self.state();
        state.check()?;
        state.push(stream, Step::Work(work));
        state.settle(device);
        Ok(())
    }

    /// Queues a free behind everything that the device holds.
    pub(super) fn free_behind_everything(&self, device: &EmulatedDevice, work: Work) {
        let state = &mut *self.state();
        for stream in 0..state.queues.len() as u32 {
            let point = state.end(stream);
            state.wait(OF_FREES, point);
        }
        state.push(OF_FREES, Step::Work(work));
        state.settle(device);
    }

    /// Returns the end of the work of a stream.
    pub(super) fn end(&self, stream: u32) -> Point {
        self.state().end(stream)
    }

    /// Makes later work on `stream` wait for a point of this device.
    pub(super) fn wait(&self, device: &EmulatedDevice, stream: u32, point: Point) {
        let state = &mut *self.state();
        state.wait(stream, point);
        state.settle(device);
    }

    /// Executes everything before a point.
    pub(super) fn synchronize(&self, device: &EmulatedDevice, point: &Point) -> Result<()> {
        let state = &mut *self.state();
        while !state.has_passed(point) && state.failed.is_none() {
            // Another stream may get on meanwhile.
            if state.draw(4) == 0 {
                let any = state.draw(state.queues.len());
                state.advance(device, any as u32);
            }
            state.advance(device, point.stream);
        }
        state.host_waited(point);
        state.check()
    }

    /// Executes everything.
    pub(super) fn synchronize_all(&self, device: &EmulatedDevice) -> Result<()> {
        let state = &mut *self.state();
        while state.failed.is_none() {
            let busy: Vec<u32> =
                (0..).zip(&state.queues).filter(|(_, q)| !q.pending.is_empty()).map(|(i, _)| i).collect();
            let Some(&stream) = busy.get(state.draw(busy.len().max(1))) else { break };
            state.advance(device, stream);
        }
        for stream in 0..state.queues.len() as u32 {
            let end = state.end(stream);
            state.host_waited(&end);
        }
        state.check()
    }

    /// Whether a point has been passed. Asking lets the device get on now and then.
    pub(super) fn is_done(&self, device: &EmulatedDevice, point: &Point) -> Result<bool> {
        let state = &mut *self.state();
        if !state.has_passed(point) && state.draw(2) == 0 {
            state.advance(device, point.stream);
        }
        state.check()?;
        let is_done = state.has_passed(point);
        if is_done {
            state.host_waited(point);
        }
        Ok(is_done)
    }
}

impl State {
    fn check(&self) -> Result<()> {
        self.failed.clone().map_or(Ok(()), |fault| Err(GpuError::Emulator(fault)))
    }

    /// Draws a number below `bound`, which is positive (splitmix64).
    fn draw(&mut self, bound: usize) -> usize {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ self.random >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed ^ mixed >> 27) >> 33) as usize % bound
    }

    fn has_passed(&self, point: &Point) -> bool {
        self.queues[point.stream as usize].passed >= point.time
    }

    fn host_waited(&mut self, point: &Point) {
        point.join_into(&mut self.host);
        self.waits += 1;
    }

    /// Returns the queue of a stream, after passing on the host's knowledge to it.
    fn informed(&mut self, stream: u32) -> &mut Queue {
        let queue = &mut self.queues[stream as usize];
        if queue.waits != self.waits {
            queue.waits = self.waits;
            join(Arc::make_mut(&mut queue.known), &self.host);
        }
        queue
    }

    fn end(&mut self, stream: u32) -> Point {
        let queue = self.informed(stream);
        Point { stream, time: queue.queued, known: queue.known.clone() }
    }

    fn push(&mut self, stream: u32, step: Step) {
        let queue = self.informed(stream);
        queue.queued += 1;
        let (time, known) = (queue.queued, queue.known.clone());
        queue.pending.push_back(Pending { time, known, step });
    }

    fn wait(&mut self, stream: u32, point: Point) {
        if point.stream == stream {
            return;
        }
        let queue = self.informed(stream);
        point.join_into(Arc::make_mut(&mut queue.known));
        if !self.has_passed(&point) {
            self.push(stream, Step::Wait(point));
        }
    }

    /// Executes the next operation of a stream, or the next one that it waits for.
    fn advance(&mut self, device: &EmulatedDevice, mut stream: u32) {
        while let Some(Pending { step: Step::Wait(point), .. }) = self.queues[stream as usize].pending.front()
            && !self.has_passed(point)
        {
            stream = point.stream;
        }
        self.execute_next(device, stream);
        self.settle(device);
    }

    /// Executes the first operation of a stream, which waits for nothing, if there is one.
    fn execute_next(&mut self, device: &EmulatedDevice, stream: u32) {
        let queue = &mut self.queues[stream as usize];
        let Some(Pending { time, known, step }) = queue.pending.pop_front() else { return };
        queue.passed = time;
        if let (Step::Work(work), None) = (step, &self.failed) {
            let operation = Operation { name: work.name(), stream, time, known };
            let perform = || device.perform(work, Some(&operation)).err();
            self.failed = if std::thread::panicking() {
                // Kernels run on threads that do not panic; a failing test waits here for its queued work.
                std::thread::scope(|scope| scope.spawn(perform).join()).unwrap_or_default()
            } else {
                perform()
            };
        }
    }

    /// Executes what takes no time: waits that are over, and prompt operations.
    fn settle(&mut self, device: &EmulatedDevice) {
        let mut any = true;
        while std::mem::take(&mut any) {
            for stream in 0..self.queues.len() {
                while let Some(Pending { step, .. }) = self.queues[stream].pending.front()
                    && match step {
                        Step::Wait(point) => self.has_passed(point),
                        Step::Work(work) => work.is_prompt(),
                    }
                {
                    self.execute_next(device, stream as u32);
                    any = true;
                }
            }
        }
    }
}

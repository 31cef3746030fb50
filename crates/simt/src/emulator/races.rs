//! The race detector: happens-before by barriers, warp barriers, release and acquire.
//!
//! Two accesses to a word by different threads, at least one a write and not both atomic, are a race unless one
//! happened before the other. The order in which this run executed them does not matter: the detector finds a missing
//! barrier even if the schedule hid it.
use super::clock::{Known, Subject, Time, join};
use super::fault::CallSite;
use super::shadow::{Record, Shadow};
use crate::host::operation::{AccessKind, Scope};
use std::collections::HashMap;
use std::rc::Rc;

/// A resident thread.
#[derive(Clone, Copy, Debug)]
pub struct Who {
    pub slot: u32,
    pub thread: u32,
}

/// Knowledge that an atomic write passes on to threads that read it and acquire.
#[derive(Clone, Debug, Default)]
pub struct Released {
    device: Known,
    /// To readers in the writer's block.
    block: Known,
    writer_block: u32,
}

#[derive(Clone, Debug, Default)]
struct ThreadClock {
    /// Knowledge it has acquired.
    known: Known,
    /// Knowledge it has read from atomics and acquires at a fence, at device and at block scope.
    pending: Known,
    pending_block: Known,
    /// Knowledge at its last fence, at device and at any scope.
    fenced: Known,
    fenced_block: Known,
    /// Time up to which it knows the lanes of its warp, after warp barriers with partial masks.
    lanes: Option<Box<[Time; 32]>>,
}

#[derive(Debug)]
struct SlotClock {
    block: u32,
    /// Before this time the slot, and its shared memory, belonged to another block.
    born: Time,
    /// The last block barrier.
    barrier: Time,
    /// The last barrier of each whole warp.
    warps: Vec<Time>,
    threads: Vec<ThreadClock>,
    /// Clocks released through shared memory, by offset.
    released: HashMap<usize, Released>,
}

/// An unordered earlier access.
#[derive(Clone, Copy, Debug)]
pub struct Conflict {
    pub theirs: AccessKind,
    pub block: u32,
    pub thread: u32,
    pub place: Option<CallSite>,
}

#[derive(Debug)]
pub struct Races {
    now: Time,
    block_threads: u32,
    shadow: Shadow,
    slots: Vec<SlotClock>,
    released: HashMap<usize, Released>,
}

/// Addresses of shared memory in the shadow: above those of user space.
const SHARED: usize = 1 << 63;
const SLOT_SHIFT: u32 = 32;

impl Races {
    pub fn new(slots: usize, block_threads: u32) -> Self {
        let slot = || SlotClock {
            block: 0,
            born: 0,
            barrier: 0,
            warps: vec![0; block_threads.div_ceil(32) as usize],
            threads: vec![ThreadClock::default(); block_threads as usize],
            released: HashMap::new(),
        };
        Self {
            now: 1,
            block_threads,
            shadow: Shadow::new(),
            slots: (0..slots).map(|_| slot()).collect(),
            released: HashMap::new(),
        }
    }

    /// Advances the time, which stays below 2³¹: after that, all accesses count as ordered.
    fn tick(&mut self) {
        self.now = (self.now + 1).min(Time::MAX >> 1);
    }

    pub fn start_block(&mut self, slot: u32, block: u32) {
        let now = self.now;
        let slot = &mut self.slots[slot as usize];
        slot.block = block;
        slot.born = now;
        slot.barrier = now;
        slot.warps.fill(0);
        slot.threads.fill(ThreadClock::default());
        slot.released.clear();
        self.tick();
    }

    #[inline]
    fn number(&self, who: Who) -> u32 {
        self.slots[who.slot as usize].block.wrapping_mul(self.block_threads).wrapping_add(who.thread)
    }

    /// Checks and records an access to global memory.
    #[inline]
    pub fn global(
        &mut self,
        who: Who,
        address: usize,
        size: usize,
        kind: AccessKind,
        place: CallSite,
    ) -> Result<(), Conflict> {
        self.access(who, address, size, kind, place, 0)
    }

    /// Checks and records an access to the block's shared memory.
    #[inline]
    pub fn shared(
        &mut self,
        who: Who,
        offset: u32,
        size: usize,
        kind: AccessKind,
        place: CallSite,
    ) -> Result<(), Conflict> {
        let address = SHARED | (who.slot as usize) << SLOT_SHIFT | offset as usize;
        self.access(who, address, size, kind, place, self.slots[who.slot as usize].born)
    }

    #[inline]
    fn access(
        &mut self,
        who: Who,
        address: usize,
        size: usize,
        kind: AccessKind,
        place: CallSite,
        born: Time,
    ) -> Result<(), Conflict> {
        let me = self.number(who);
        let slot = &self.slots[who.slot as usize];
        let own = &slot.threads[who.thread as usize];
        let first_in_block = me - who.thread;
        let block_threads = self.block_threads;
        let warp_time = slot.warps[(who.thread / 32) as usize];
        let (write, atomic) = kind.parts();
        let ordered = |theirs: Record| {
            let (thread, time) = (theirs.thread, theirs.time());
            if thread == me || time <= born {
                return true;
            }
            let in_block = thread.wrapping_sub(first_in_block);
            if in_block < block_threads {
                if time <= slot.barrier {
                    return true;
                }
                if in_block / 32 == who.thread / 32
                    && (time <= warp_time || own.lanes.as_ref().is_some_and(|l| time <= l[in_block as usize % 32]))
                {
                    return true;
                }
            }
            own.known.as_ref().is_some_and(|known| {
                let block = thread / block_threads;
                known.knows(Subject::thread(thread), time)
                    || known.knows(Subject::block(block), time)
                    || known.knows(Subject::warp(thread - thread % block_threads % 32), time)
            })
        };
        let mine = Record::new(me, self.now, atomic, place);
        let lane = who.thread % 32;
        self.shadow.access(address, size, write, mine, (me - lane, lane), ordered).map_err(|(theirs, wrote)| Conflict {
            theirs: AccessKind::of_parts(wrote, theirs.atomic()),
            block: theirs.thread / self.block_threads,
            thread: theirs.thread % self.block_threads,
            place: theirs.place(),
        })
    }

    /// Orders all threads of a block, which have met.
    pub fn barrier(&mut self, slot: u32) {
        let now = self.now;
        let slot = &mut self.slots[slot as usize];
        slot.barrier = now;
        let mut all: Known = None;
        for thread in &slot.threads {
            join(&mut all, &thread.known);
        }
        if all.is_some() {
            for thread in &mut slot.threads {
                thread.known.clone_from(&all);
            }
        }
        self.tick();
    }

    /// Orders the lanes of `mask` in the warp that begins at `first`, which have met.
    pub fn warp_barrier(&mut self, slot: u32, first: u32, mask: u32) {
        let now = self.now;
        let slot = &mut self.slots[slot as usize];
        let lanes = (slot.threads.len() as u32 - first).min(32);
        let whole = if lanes == 32 { !0 } else { (1 << lanes) - 1 };
        let threads = &mut slot.threads[first as usize..(first + lanes) as usize];
        let members = move || (0..32usize).filter(move |&lane| mask >> lane & 1 == 1);
        let mut all: Known = None;
        for lane in members() {
            join(&mut all, &threads[lane].known);
        }
        if all.is_some() {
            for lane in members() {
                threads[lane].known.clone_from(&all);
            }
        }
        if mask == whole {
            slot.warps[(first / 32) as usize] = now;
        } else {
            let mut met = [0; 32];
            for lane in members() {
                if let Some(times) = &threads[lane].lanes {
                    for (met, time) in met.iter_mut().zip(times.iter()) {
                        *met = (*met).max(*time);
                    }
                }
            }
            for lane in members() {
                met[lane] = now;
            }
            for lane in members() {
                threads[lane].lanes = Some(Box::new(met));
            }
        }
        self.tick();
    }

    /// Returns the knowledge of `who`, itself included.
    fn snapshot(&self, who: Who) -> Known {
        let me = self.number(who);
        let slot = &self.slots[who.slot as usize];
        let own = &slot.threads[who.thread as usize];
        let mut clock = own.known.as_deref().cloned().unwrap_or_default();
        let lane = who.thread % 32;
        clock.learn(Subject::block(slot.block), slot.barrier);
        let warp = slot.warps[(who.thread / 32) as usize];
        if warp > slot.barrier {
            clock.learn(Subject::warp(me - lane), warp);
        }
        if let Some(times) = &own.lanes {
            for (other, &time) in times.iter().enumerate() {
                if time > slot.barrier && time > warp {
                    clock.learn(Subject::thread(me - lane + other as u32), time);
                }
            }
        }
        clock.learn(Subject::thread(me), self.now);
        Some(Rc::new(clock))
    }

    /// Performs a fence by `who`: knowledge that it has read becomes its own, and its own can be passed on.
    pub fn fence(&mut self, who: Who, scope: Scope) {
        let own = &mut self.slots[who.slot as usize].threads[who.thread as usize];
        let block = own.pending_block.take();
        join(&mut own.known, &block);
        if scope == Scope::Device {
            let device = own.pending.take();
            join(&mut own.known, &device);
        }
        let snapshot = self.snapshot(who);
        let own = &mut self.slots[who.slot as usize].threads[who.thread as usize];
        if scope == Scope::Device {
            own.fenced.clone_from(&snapshot);
        }
        own.fenced_block = snapshot;
        self.tick();
    }

    /// Returns the knowledge that an atomic write by `who` passes on: all of it if the write releases, else that at its
    /// last fence.
    pub fn what_is_released(&mut self, who: Who, releases: bool) -> Released {
        let writer_block = self.slots[who.slot as usize].block;
        if releases {
            let now = self.snapshot(who);
            self.tick();
            return Released { device: now.clone(), block: now, writer_block };
        }
        let own = &self.slots[who.slot as usize].threads[who.thread as usize];
        Released { device: own.fenced.clone(), block: own.fenced_block.clone(), writer_block }
    }

    fn released_at(&mut self, slot: Option<u32>) -> &mut HashMap<usize, Released> {
        match slot {
            Some(slot) => &mut self.slots[slot as usize].released,
            None => &mut self.released,
        }
    }

    /// Notes a store to the word at `address` (of the shared memory of `slot`, or global), or its modification, after
    /// which it still passes on the earlier knowledge.
    pub fn release(&mut self, slot: Option<u32>, address: usize, released: Released, modifies: bool) {
        let map = self.released_at(slot);
        if released.device.is_none() && released.block.is_none() {
            if !modifies {
                map.remove(&address);
            }
            return;
        }
        match map.get_mut(&address) {
            Some(before) if modifies => {
                join(&mut before.device, &released.device);
                if before.writer_block == released.writer_block {
                    join(&mut before.block, &released.block);
                } else {
                    before.block = released.block;
                    before.writer_block = released.writer_block;
                }
            }
            _ => {
                map.insert(address, released);
            }
        }
    }

    /// Returns the knowledge that the word passes on.
    pub fn passed_on(&mut self, slot: Option<u32>, address: usize) -> Option<Released> {
        self.released_at(slot).get(&address).cloned()
    }

    /// Notes that `who` has read an atomic word that passes on `released`.
    pub fn observe(&mut self, who: Who, released: &Released, acquires: bool) {
        let slot = &mut self.slots[who.slot as usize];
        let own = &mut slot.threads[who.thread as usize];
        if acquires {
            join(&mut own.known, &released.device);
        } else {
            join(&mut own.pending, &released.device);
        }
        if released.writer_block == slot.block {
            if acquires {
                join(&mut own.known, &released.block);
            } else {
                join(&mut own.pending_block, &released.block);
            }
        }
    }
}

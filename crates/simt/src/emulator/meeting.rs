//! Meetings of threads: block barriers and warp collectives, and threads that can no longer arrive.
use super::block::{Warp, compute};
use super::engine::{Engine, ThreadRef, raise, suspend, unwinding, with};
use super::fault::{CallSite, FaultKind, Whereabouts};
use crate::host::operation::{BarrierOp, Collective};
use std::panic::Location;

/// Consequence of an arrival for the thread.
enum Arrival {
    Goes(u64),
    Waits,
}

#[track_caller]
pub fn barrier(op: BarrierOp, predicate: bool) -> u32 {
    if unwinding() {
        return 0;
    }
    let place = Location::caller();
    match with(|engine| engine.arrive_at_barrier(op, predicate, place)) {
        Ok(Arrival::Goes(result)) => result as u32,
        Ok(Arrival::Waits) => {
            suspend();
            with(|engine| engine.slots[engine.current.slot as usize].barrier.result)
        }
        Err(kind) => raise(kind, place),
    }
}

#[track_caller]
pub fn collective(op: Collective, mask: u32, value: u64, operand: u32) -> u64 {
    if unwinding() {
        return 0;
    }
    let place = Location::caller();
    match with(|engine| engine.arrive_at_collective(op, mask, value, operand, place)) {
        Ok(Arrival::Goes(result)) => result,
        Ok(Arrival::Waits) => {
            suspend();
            with(|engine| engine.thread_mut(engine.current).result)
        }
        Err(kind) => raise(kind, place),
    }
}

/// Whether two places are equal; most often they are one reference.
fn same_place(a: CallSite, b: CallSite) -> bool {
    std::ptr::eq(a, b) || a == b
}

fn lane_of(thread: u32) -> u32 {
    thread & 31
}

/// Iterates over the lanes in `mask`, in order.
fn lanes(mask: u32) -> impl Iterator<Item = u32> {
    let mut left = mask;
    std::iter::from_fn(move || {
        let lane = left.trailing_zeros();
        left &= left.wrapping_sub(1);
        (lane < 32).then_some(lane)
    })
}

impl Engine {
    fn warp_mut(&mut self) -> &mut Warp {
        &mut self.slots[self.current.slot as usize].warps[(self.current.thread / 32) as usize]
    }

    /// Ends the current thread; reports a fault if others of its block wait for it.
    pub(super) fn leave_block(&mut self) -> Result<(), FaultKind> {
        let ThreadRef { slot, thread } = self.current;
        self.warp_mut().exited |= 1 << (thread & 31);
        let block = &mut self.slots[slot as usize];
        block.live -= 1;
        if block.barrier.arrived > 0 {
            let waiting = block.find(|warp| warp.at_barrier);
            let other = self.other(slot, thread, None);
            let kind = FaultKind::DivergentBarrier { other, whereabouts: Whereabouts::Exited };
            return Err(self.blame(waiting, kind));
        }
        self.check_awaited(Whereabouts::Exited)?;
        if self.slots[slot as usize].live == 0 {
            self.start_block(slot);
        }
        Ok(())
    }

    /// Records `kind` as the fault of the thread `waiting`, at the place where it waits.
    fn blame(&mut self, waiting: Option<u32>, kind: FaultKind) -> FaultKind {
        if let Some(waiting) = waiting {
            let place = self.slots[self.current.slot as usize].threads[waiting as usize].place;
            self.shape.thread_idx = self.thread_index(waiting);
            self.stop(kind.clone(), place);
        }
        kind
    }

    /// Reports a fault if a lane of the current warp waits in a collective for the current thread, which can never
    /// arrive.
    fn check_awaited(&mut self, whereabouts: Whereabouts) -> Result<(), FaultKind> {
        let ThreadRef { slot, thread } = self.current;
        let in_collective = self.warp_mut().in_collective;
        if in_collective == 0 {
            return Ok(());
        }
        let first = thread & !31;
        let threads = &self.slots[slot as usize].threads;
        let awaits = |lane: &u32| threads[(first + lane) as usize].mask >> (thread & 31) & 1 == 1;
        let Some(lane) = lanes(in_collective).find(awaits) else { return Ok(()) };
        let mask = threads[(first + lane) as usize].mask;
        let location = if whereabouts == Whereabouts::Exited { None } else { threads[thread as usize].place };
        let kind = FaultKind::DivergentCollective { mask, other: self.other(slot, thread, location), whereabouts };
        Err(self.blame(Some(first + lane), kind))
    }

    /// Reports a deadlock if threads are left and none can run.
    pub(super) fn check_stuck(&mut self) {
        for slot in 0..self.slots.len() as u32 {
            let block = &self.slots[slot as usize];
            if block.live == 0 {
                continue;
            }
            let Some(thread) = block.find(|warp| warp.in_collective) else { continue };
            let waiting = &block.threads[thread as usize];
            let (mask, first) = (waiting.mask, thread & !31);
            let elsewhere = |lane: &u32| {
                let t = &block.threads[(first + lane) as usize];
                t.mask != mask || t.collective != waiting.collective
            };
            let there = first + lanes(mask).find(elsewhere).unwrap_or(lane_of(thread));
            let other = self.other(slot, there, block.threads[there as usize].place);
            self.make_current(ThreadRef { slot, thread });
            let kind = FaultKind::DivergentCollective { mask, other, whereabouts: Whereabouts::InCollective };
            self.blame(Some(thread), kind);
            return;
        }
    }

    fn arrive_at_barrier(&mut self, op: BarrierOp, predicate: bool, place: CallSite) -> Result<Arrival, FaultKind> {
        let ThreadRef { slot, thread } = self.current;
        self.thread_mut(self.current).place = Some(place);
        self.commit_own();
        self.check_awaited(Whereabouts::AtBarrier)?;
        let block = &mut self.slots[slot as usize];
        let threads = block.threads.len() as u32;
        if block.live < threads {
            // Lanes that do not exist come after all threads, so the first one found has exited.
            let gone = block.find(|warp| warp.exited).unwrap_or(0);
            let other = self.other(slot, gone, None);
            return Err(FaultKind::DivergentBarrier { other, whereabouts: Whereabouts::Exited });
        }
        let barrier = &mut block.barrier;
        if barrier.arrived == 0 {
            (barrier.op, barrier.place, barrier.count) = (op, Some(place), 0);
        } else if barrier.op != op || !barrier.place.is_some_and(|there| same_place(there, place)) {
            let there = block.find(|warp| warp.at_barrier).unwrap_or(0);
            let other = self.other(slot, there, self.slots[slot as usize].threads[there as usize].place);
            return Err(FaultKind::DivergentBarrier { other, whereabouts: Whereabouts::AtBarrier });
        }
        barrier.arrived += 1;
        barrier.count += u32::from(predicate);
        if barrier.arrived < threads {
            self.warp_mut().at_barrier |= 1 << (thread & 31);
            return Ok(Arrival::Waits);
        }
        barrier.arrived = 0;
        barrier.result = match op {
            BarrierOp::Plain => 0,
            BarrierOp::Count => barrier.count,
            BarrierOp::And => u32::from(barrier.count == threads),
            BarrierOp::Or => u32::from(barrier.count > 0),
        };
        let result = barrier.result;
        for (first, warp) in (0..).step_by(32).zip(&mut block.warps) {
            let waiting = std::mem::take(&mut warp.at_barrier);
            self.ready.extend(lanes(waiting).map(|lane| ThreadRef { slot, thread: first + lane }));
        }
        if let Some(races) = &mut self.races {
            races.barrier(slot);
        }
        if let Some(weak) = &mut self.weak {
            weak.catch_up_block(slot);
        }
        self.progressed();
        Ok(Arrival::Goes(u64::from(result)))
    }

    fn arrive_at_collective(
        &mut self,
        op: Collective,
        mask: u32,
        value: u64,
        operand: u32,
        place: CallSite,
    ) -> Result<Arrival, FaultKind> {
        let ThreadRef { slot, thread } = self.current;
        let (first, lane) = (thread & !31, lane_of(thread));
        if mask >> lane & 1 == 0 {
            return Err(FaultKind::MaskWithoutCaller { mask, lane });
        }
        let warp = *self.warp_mut();
        if mask & warp.exited != 0 {
            return Err(FaultKind::MaskNamesExitedLane { mask, lane: (mask & warp.exited).trailing_zeros() });
        }
        if op == Collective::Sync {
            self.commit_own();
        }
        let own = self.thread_mut(self.current);
        (own.place, own.collective, own.mask, own.value, own.operand) = (Some(place), op, mask, value, operand);
        let threads = &self.slots[slot as usize].threads;
        let of = |lane: u32| &threads[(first + lane) as usize];
        if mask & warp.at_barrier != 0 {
            let there = (mask & warp.at_barrier).trailing_zeros();
            let other = self.other(slot, first + there, of(there).place);
            return Err(FaultKind::DivergentCollective { mask, other, whereabouts: Whereabouts::AtBarrier });
        }
        let waiting = warp.in_collective;
        let same = |lane: &u32| {
            let t = of(*lane);
            t.mask == mask && t.collective == op
        };
        let uniform = waiting == 0 || warp.uniform && same(&waiting.trailing_zeros());
        let here = if uniform {
            waiting
        } else {
            // Two lanes that name each other at different calls will both wait forever. If
            // only I name the other, it may come here later.
            let mutual = |lane: &u32| !same(lane) && of(*lane).mask >> lane_of(thread) & 1 == 1;
            if let Some(there) = lanes(waiting & mask).find(mutual) {
                let other = self.other(slot, first + there, of(there).place);
                return Err(FaultKind::DivergentCollective { mask, other, whereabouts: Whereabouts::InCollective });
            }
            lanes(waiting & mask).filter(same).fold(0, |here, lane| here | 1 << lane)
        };
        if here | 1 << lane != mask {
            let warp = self.warp_mut();
            warp.uniform = uniform;
            warp.in_collective |= 1 << lane;
            return Ok(Arrival::Waits);
        }
        self.warp_mut().in_collective &= !mask;
        let threads = &mut self.slots[slot as usize].threads;
        let end = threads.len().min(first as usize + 32);
        compute(&mut threads[first as usize..end], mask, op);
        let result = threads[thread as usize].result;
        let others = lanes(mask & !(1 << lane)).map(|lane| ThreadRef { slot, thread: first + lane });
        self.ready.extend(others);
        if op == Collective::Sync {
            if let Some(races) = &mut self.races {
                races.warp_barrier(slot, first, mask);
            }
            if let Some(weak) = &mut self.weak {
                for lane in lanes(mask) {
                    weak.catch_up(ThreadRef { slot, thread: first + lane });
                }
            }
        }
        self.polls = 0;
        Ok(Arrival::Goes(result))
    }
}

//! Order between launches, copies and frees of several streams.
//!
//! Within a launch, `races` finds threads that nothing orders. This module does that for whole operations: each belongs
//! to a stream, has a time on it, and a time up to which it comes after every other stream. Two operations that access
//! a byte, one of them writing, are a fault unless one is ordered after the other. The order in which this run executed
//! them does not matter.
//!
//! ```text
//! stream 1   copy (1,1)   merge (1,2)
//!                             \ wait
//! stream 2   fill (2,1)        sort (2,2)   knows: stream 1 up to 2, so sort comes after copy and merge
//! ```
use super::fault::{CallSite, Fault, FaultKind, Unordered};
use super::memory::Memory;
use super::shadow::{Record, Shadow};
use crate::host::operation::AccessKind;
use std::collections::HashMap;
use std::panic::Location;
use std::sync::Arc;

/// Times up to which an operation comes after each stream, by the stream's number; 0 where it has not waited.
pub type Clock = Vec<u32>;

/// Raises each time of `clock` to that of `other`.
pub fn join(clock: &mut Clock, other: &[u32]) {
    if clock.len() < other.len() {
        clock.resize(other.len(), 0);
    }
    clock.iter_mut().zip(other).for_each(|(mine, theirs)| *mine = (*mine).max(*theirs));
}

/// An operation on a stream: a launch, a copy, a fill, an allocation or a free.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Name for messages: the kernel's, or "copy to the device".
    pub name: &'static str,
    /// Number of its stream.
    pub stream: u32,
    /// Position on its stream, from 1.
    pub time: u32,
    /// Operations of other streams that come before it.
    pub known: Arc<Clock>,
}

/// Accesses of earlier operations to the memory of a device.
#[derive(Debug)]
pub struct Accesses {
    shadow: Shadow,
    names: HashMap<(u32, u32), &'static str>,
}

impl Accesses {
    pub fn new() -> Self {
        Self { shadow: Shadow::new(), names: HashMap::new() }
    }

    /// Notes an operation before its accesses.
    pub fn begin(&mut self, operation: &Operation) {
        self.names.insert((operation.stream, operation.time), operation.name);
    }

    /// Checks an access against all earlier ones, and records it.
    #[inline]
    pub fn access(
        &mut self,
        operation: &Operation,
        address: usize,
        size: usize,
        kind: AccessKind,
        place: CallSite,
        memory: &Memory,
    ) -> Result<(), FaultKind> {
        let Operation { stream, time, ref known, .. } = *operation;
        let ordered = |theirs: Record| {
            theirs.thread == stream || known.get(theirs.thread as usize).is_some_and(|&known| theirs.time() <= known)
        };
        let (writes, atomic) = kind.parts();
        let mine = Record::new(stream, time, atomic, place);
        let lane = stream % 32;
        let found = self.shadow.access(address, size, writes, mine, (stream - lane, lane), ordered);
        found.map_err(|(theirs, wrote)| {
            let start = memory.find(address).map_or(0, |region| region.start);
            FaultKind::Unordered(Box::new(Unordered {
                byte: address - start,
                mine: kind,
                stream,
                theirs: AccessKind::of_parts(wrote, theirs.atomic()),
                other: self.names.get(&(theirs.thread, theirs.time())).copied().unwrap_or("an operation"),
                other_stream: theirs.thread,
                other_location: theirs.place().filter(|place| *place != no_place()),
            }))
        })
    }

    /// Forgets all accesses to a range that has been allocated again.
    pub fn forget(&mut self, address: usize, bytes: usize) {
        self.shadow.forget(address, bytes);
    }

    /// Checks an operation that accesses a range as a whole: a copy, a fill, a free.
    pub fn whole(
        &mut self,
        operation: &Operation,
        address: usize,
        bytes: usize,
        kind: AccessKind,
        memory: &Memory,
    ) -> Result<(), FaultKind> {
        self.access(operation, address, bytes, kind, no_place(), memory)
    }
}

/// Returns the place of accesses that no kernel made.
fn no_place() -> CallSite {
    static PLACE: &Location<'static> = Location::caller();
    PLACE
}

/// Makes the fault of an operation that is no launch.
pub(super) fn fault(operation: &Operation, seed: u64, launch: u64, kind: FaultKind) -> Fault {
    Fault { kernel: operation.name, block: None, thread: None, location: None, seed, launch, kind }
}

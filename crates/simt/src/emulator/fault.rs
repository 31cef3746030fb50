//! Reports of the emulator.
use crate::Dim3;
use crate::host::operation::AccessKind;
use std::fmt;
use std::panic::Location;

/// A place in the source of a kernel.
pub(super) type CallSite = &'static Location<'static>;

/// A fault of a kernel or of its launch, found by the emulator.
///
/// Printed, it names kernel, block, thread and source line, and the seed that replays it.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The kernel's name.
    pub kernel: &'static str,
    /// The block of the thread that committed the fault, where one did.
    pub block: Option<Dim3>,
    /// The thread that committed the fault, by its index in the block.
    pub thread: Option<Dim3>,
    /// Source location of the access.
    pub location: Option<&'static Location<'static>>,
    /// The emulator's seed.
    pub seed: u64,
    /// The number of this launch on its emulator, from 0.
    pub launch: u64,
    /// Kind of the access.
    pub kind: FaultKind,
}

/// Memory of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Device memory.
    Global,
    /// The block's shared memory.
    Shared,
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Space::Global => "global",
            Space::Shared => "shared",
        })
    }
}

impl fmt::Display for AccessKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AccessKind::Read => "read",
            AccessKind::Write => "write",
            AccessKind::AtomicRead => "atomic read",
            AccessKind::AtomicWrite => "atomic write",
        })
    }
}

impl AccessKind {
    /// Whether it writes, and whether it is atomic.
    pub(super) fn parts(self) -> (bool, bool) {
        match self {
            AccessKind::Read => (false, false),
            AccessKind::Write => (true, false),
            AccessKind::AtomicRead => (false, true),
            AccessKind::AtomicWrite => (true, true),
        }
    }

    /// Returns the access with these [`parts`](Self::parts).
    pub(super) fn of_parts(writes: bool, atomic: bool) -> Self {
        match (writes, atomic) {
            (false, false) => AccessKind::Read,
            (true, false) => AccessKind::Write,
            (false, true) => AccessKind::AtomicRead,
            (true, true) => AccessKind::AtomicWrite,
        }
    }
}

/// Two operations of different streams that access the same byte, one of them writing, while no event, wait or
/// synchronisation orders them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unordered {
    /// Byte of the buffer.
    pub byte: usize,
    /// Access by the operation that the fault names.
    pub mine: AccessKind,
    /// Stream of that operation.
    pub stream: u32,
    /// Access by the other operation.
    pub theirs: AccessKind,
    /// Name of the other operation.
    pub other: &'static str,
    /// Stream of the other operation.
    pub other_stream: u32,
    /// Place in the source of the other operation's kernel, if it is one.
    pub other_location: Option<&'static Location<'static>>,
}

impl fmt::Display for Unordered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { byte, mine, stream, theirs, other, other_stream, other_location } = self;
        write!(f, "{mine} of byte {byte} of a buffer on stream {stream}; unordered {theirs} by `{other}`")?;
        if let Some(location) = other_location {
            write!(f, " ({location})")?;
        }
        write!(f, " on stream {other_stream}: let one stream wait for the other, or the host for one of them")
    }
}

impl std::error::Error for Unordered {}

/// Another thread that has a part in a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Other {
    /// Its block.
    pub block: Dim3,
    /// Its index in the block.
    pub thread: Dim3,
    /// Source location, if known.
    pub location: Option<&'static Location<'static>>,
}

impl fmt::Display for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {}, thread {}", self.block, self.thread)?;
        match self.location {
            Some(location) => write!(f, " at {location}"),
            None => Ok(()),
        }
    }
}

/// State of a thread that others wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// It has returned from the kernel.
    Exited,
    /// It waits at another block barrier.
    AtBarrier,
    /// It waits in a warp collective of another kind or mask, or at another place.
    InCollective,
}

impl fmt::Display for Whereabouts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Whereabouts::Exited => "has exited",
            Whereabouts::AtBarrier => "is at another barrier",
            Whereabouts::InCollective => "is in another warp collective",
        })
    }
}

/// Kind of a fault.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FaultKind {
    /// An access to elements outside of the handle or its buffer.
    #[error("global memory out of bounds: {count} element(s) of {size} bytes at index {index} of {len}")]
    GlobalOutOfBounds {
        /// The first element's index.
        index: usize,
        /// Elements accessed at once.
        count: usize,
        /// Elements of the handle.
        len: usize,
        /// Bytes of an element.
        size: usize,
    },
    /// An access to an address that no buffer of this emulator has.
    #[error("address {address:#x} is in no device buffer (host memory, or another device's?)")]
    UnknownAddress {
        /// The address.
        address: usize,
    },
    /// An access to a buffer that has been freed.
    #[error("use after free: byte {offset} of a freed buffer of {bytes} bytes")]
    UseAfterFree {
        /// The byte in the buffer.
        offset: usize,
        /// The buffer's size.
        bytes: usize,
    },
    /// An access outside the block's shared memory.
    #[error("shared memory out of bounds: {size} bytes at offset {offset} of {shared_bytes}")]
    SharedOutOfBounds {
        /// The byte offset.
        offset: u32,
        /// Bytes accessed.
        size: usize,
        /// Requested bytes of shared memory.
        shared_bytes: u32,
    },
    /// An address that is not a multiple of the access's size.
    #[error("misaligned access to {space} memory: address {address:#x} is not a multiple of {align}")]
    Misaligned {
        /// Memory of the access.
        space: Space,
        /// The address, or the offset in shared memory.
        address: usize,
        /// The alignment that the access needs.
        align: usize,
    },
    /// Some threads of a block wait at a barrier that another thread can no longer reach.
    #[error("divergent barrier: {other} {whereabouts}")]
    DivergentBarrier {
        /// A thread that is elsewhere.
        other: Other,
        /// State of the thread.
        whereabouts: Whereabouts,
    },
    /// Some lanes are in a warp collective that another lane of the mask can no longer reach.
    #[error("divergent warp collective (mask {mask:#010x}): {other} {whereabouts}")]
    DivergentCollective {
        /// The collective's mask.
        mask: u32,
        /// A lane that is elsewhere.
        other: Other,
        /// State of the thread.
        whereabouts: Whereabouts,
    },
    /// A mask that does not name the calling lane.
    #[error("the mask {mask:#010x} does not name the calling lane {lane}")]
    MaskWithoutCaller {
        /// The mask.
        mask: u32,
        /// The caller's lane.
        lane: u32,
    },
    /// A mask that names a lane which has exited or never existed.
    #[error("the mask {mask:#010x} names lane {lane}, which has exited or does not exist")]
    MaskNamesExitedLane {
        /// The mask.
        mask: u32,
        /// The lane.
        lane: u32,
    },
    /// Two threads accessed one word, one of them writing, with nothing that orders them.
    #[error("race on {space} memory, byte {byte}: {mine} here; unordered {theirs} by {other}")]
    Race {
        /// Memory of the access.
        space: Space,
        /// The byte of the buffer, or of the block's shared memory.
        byte: usize,
        /// This thread's access.
        mine: AccessKind,
        /// The earlier access.
        theirs: AccessKind,
        /// Who made it.
        other: Other,
    },
    /// Two operations of different streams accessed one byte, one of them writing, with nothing that orders them.
    #[error("operations without order: {0}")]
    Unordered(Box<Unordered>),
    /// All threads wait, and nothing that they wait for can happen any more.
    #[error("deadlock: {waiting} thread(s) spin, and no thread has written anything for {polls} polls")]
    Deadlock {
        /// Threads that are still there.
        waiting: usize,
        /// Polls since the last write.
        polls: u64,
    },
    /// Threads run, but none has made progress for the number of steps that the configuration allows.
    #[error("livelock: {steps} steps without a thread that ended or a barrier that was passed")]
    Livelock {
        /// Scheduling steps taken.
        steps: u64,
    },
    /// A block larger than the kernel's launch bounds.
    #[error("a block of {threads} threads exceeds the kernel's launch bounds of {max_threads}")]
    LaunchBounds {
        /// Threads of a block.
        threads: u64,
        /// The kernel's limit.
        max_threads: u32,
    },
    /// A launch shape that no device takes.
    #[error("bad launch configuration: {reason}")]
    BadLaunch {
        /// The violated rule.
        reason: String,
    },
    /// A kernel thread panicked.
    #[error("panic: {message}")]
    Panic {
        /// The panic's message.
        message: String,
    },
    /// The host has no memory for more threads' stacks.
    #[error("no memory for the stack of another thread: {message}")]
    NoStack {
        /// Message of the system.
        message: String,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel `{}`", self.kernel)?;
        if let Some(block) = self.block {
            write!(f, ", block {block}")?;
        }
        if let Some(thread) = self.thread {
            write!(f, ", thread {thread}")?;
        }
        if let Some(location) = self.location {
            write!(f, ", {location}")?;
        }
        write!(f, ": {} [launch {}; replay with {}={:#x}]", self.kind, self.launch, super::SEED_VARIABLE, self.seed)
    }
}

impl std::error::Error for Fault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.kind)
    }
}

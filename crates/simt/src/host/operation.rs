//! Operations of a thread that the engine performs.
use super::word::Modify;
use crate::Dim3;

/// One side of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// A plain load.
    Read,
    /// A plain store.
    Write,
    /// An atomic or volatile load.
    AtomicRead,
    /// An atomic or volatile store, or a read-modify-write.
    AtomicWrite,
}

/// An atomic operation on a word.
#[derive(Clone, Copy, Debug)]
pub enum Atomic<T> {
    Load,
    Store(T),
    Modify(Modify, T),
    /// From the first to the second.
    CompareExchange(T, T),
}

/// Order that a load or store gives other accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Relaxed,
    /// Acquire for a load, release for a store.
    Ordered,
}

/// Reach of a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Block,
    Device,
}

/// Result that a barrier computes from the predicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarrierOp {
    Plain,
    Count,
    And,
    Or,
}

/// Result that a warp collective computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collective {
    Sync,
    ShuffleIdx,
    ShuffleUp,
    ShuffleDown,
    ShuffleXor,
    Ballot,
    Any,
    All,
    MatchAny,
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
}

/// Position of the running thread and shape of its launch.
pub struct Shape {
    pub thread_idx: Dim3,
    pub block_idx: Dim3,
    pub block_dim: Dim3,
    pub grid_dim: Dim3,
    pub lane: u32,
}

//! Predicates of selections and partitions, one copy for kernels and the host.

use core::ops::BitAnd;

/// Says of an item whether to keep it.
///
/// ```
/// use warpset_kernels::primitives::predicate::{BitsEqual, InRange, Predicate};
/// assert!(InRange { from: 3, to: 5 }.keep(4u32) && !InRange { from: 3, to: 5 }.keep(5u32));
/// assert!(BitsEqual { mask: 1, bits: 0 }.keep(6u64)); // even
/// ```
pub trait Predicate<T>: Copy + Send + Sync {
    /// Whether `item` is kept.
    fn keep(self, item: T) -> bool;
}

/// Keeps what is at least `from` and less than `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InRange<T> {
    /// The least that is kept.
    pub from: T,
    /// The least above that is not.
    pub to: T,
}

/// Keeps items whose bits under `mask` are `bits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitsEqual<T> {
    /// The bits that count.
    pub mask: T,
    /// What they are.
    pub bits: T,
}

/// Keeps items whose bits under `mask` are not `bits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitsDiffer<T> {
    /// The bits that count.
    pub mask: T,
    /// What they are not.
    pub bits: T,
}

impl<T: Copy + Send + Sync + PartialOrd> Predicate<T> for InRange<T> {
    #[inline(always)]
    fn keep(self, item: T) -> bool {
        self.from <= item && item < self.to
    }
}

impl<T: Copy + Send + Sync + PartialEq + BitAnd<Output = T>> Predicate<T> for BitsEqual<T> {
    #[inline(always)]
    fn keep(self, item: T) -> bool {
        item & self.mask == self.bits
    }
}

impl<T: Copy + Send + Sync + PartialEq + BitAnd<Output = T>> Predicate<T> for BitsDiffer<T> {
    #[inline(always)]
    fn keep(self, item: T) -> bool {
        item & self.mask != self.bits
    }
}

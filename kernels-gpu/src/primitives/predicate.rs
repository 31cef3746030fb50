//! Predicates of selections and partitions, one copy for kernels and the host.

use core::ops::BitAnd;

/// Predicate that selects items.
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

/// Keeps items that are at least `from` and less than `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InRange<T> {
    /// Least item that is kept.
    pub from: T,
    /// Least item above that is not kept.
    pub to: T,
}

/// Keeps items whose bits under `mask` are `bits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitsEqual<T> {
    /// Compared bits.
    pub mask: T,
    /// Required values of these bits.
    pub bits: T,
}

/// Keeps items whose bits under `mask` are not `bits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitsDiffer<T> {
    /// Compared bits.
    pub mask: T,
    /// Excluded values of these bits.
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

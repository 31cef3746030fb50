//! Ascending fingerprints from filters and slices, merged and subtracted on the way.
//!
//! A source can be read from any fingerprint on, so that parts of a filter are written independently of each other, and
//! twice, so that nothing has to be stored between.

use rayon::prelude::*;
use warpset_core::quotient::slots::{ByteSlots, Container};
use warpset_core::quotient::standard::Fingerprints;

use super::View;
use super::packed::{Packed, PackedWalk};

/// Ascending fingerprints.
pub(crate) trait Source: Sync {
    /// What reads them.
    type Iter<'a>: Iterator<Item = u64>
    where
        Self: 'a;

    /// Those that are at least `first`, in ascending order.
    fn from(&self, first: u64) -> Self::Iter<'_>;
}

/// A slice in ascending order.
pub(crate) struct Sorted<'s>(pub &'s [u64]);

impl Source for Sorted<'_> {
    type Iter<'a>
        = std::iter::Copied<std::slice::Iter<'a, u64>>
    where
        Self: 'a;

    fn from(&self, first: u64) -> Self::Iter<'_> {
        self.0[self.0.partition_point(|&fingerprint| fingerprint < first)..].iter().copied()
    }
}

/// What a filter stores, each fingerprint without its lowest `dropped` bits.
pub(crate) struct Stored<'v> {
    view: View<'v>,
    dropped: u32,
}

/// The fingerprints of a filter, cut to `dropped` bits fewer.
pub(crate) fn stored(view: View<'_>, dropped: u32) -> Stored<'_> {
    Stored { view, dropped }
}

enum Walk<'a> {
    Bytes(Fingerprints<ByteSlots<&'a [u64]>>),
    Packed(PackedWalk<'a>),
}

/// The fingerprints of a [`Stored`] from some one on.
pub(crate) struct StoredFrom<'a> {
    walk: Walk<'a>,
    dropped: u32,
    first: u64,
}

impl Iterator for StoredFrom<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        loop {
            let fingerprint = match &mut self.walk {
                Walk::Bytes(walk) => walk.next()?,
                Walk::Packed(walk) => walk.next()?,
            };
            let fingerprint = fingerprint >> self.dropped;
            // Only the run in which the walk began can have smaller ones.
            if fingerprint >= self.first {
                return Some(fingerprint);
            }
        }
    }
}

impl<'v> Stored<'v> {
    /// [`Source::from`] with the lifetime of the words.
    pub(crate) fn from(&self, first: u64) -> StoredFrom<'v> {
        let layout = *self.view.layout();
        let (split, len) = (layout.split, layout.slots());
        let quotient = split.quotient(first << self.dropped);
        let words = self.view.words();
        let walk = match layout.container {
            Container::Bytes => {
                let slots = ByteSlots::new(words, len, split.remainder_bits);
                Walk::Bytes(Fingerprints::from_quotient(slots, split, quotient))
            }
            Container::Packed => Walk::Packed(PackedWalk::from_quotient(Packed::new(words, split), quotient)),
        };
        StoredFrom { walk, dropped: self.dropped, first }
    }
}

impl Source for Stored<'_> {
    type Iter<'a>
        = StoredFrom<'a>
    where
        Self: 'a;

    fn from(&self, first: u64) -> StoredFrom<'_> {
        Stored::from(self, first)
    }
}

/// How two sources become one, in the terms of multisets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// All of both.
    Sum,
    /// Those of the first; each one of the second cancels one that is equal.
    Difference,
    /// Those of the first that have an equal in the second, one for one.
    Common,
}

/// Two sources as one.
pub(crate) struct Combined<A, B> {
    pub rule: Rule,
    pub a: A,
    pub b: B,
}

/// The fingerprints of a [`Combined`].
pub(crate) struct CombinedFrom<A, B> {
    rule: Rule,
    a: A,
    b: B,
    next_a: Option<u64>,
    next_b: Option<u64>,
}

impl<A: Iterator<Item = u64>, B: Iterator<Item = u64>> Iterator for CombinedFrom<A, B> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        loop {
            let Some(a) = self.next_a else {
                let b = if self.rule == Rule::Sum { self.next_b } else { None };
                self.next_b = self.b.next();
                return b;
            };
            match self.next_b {
                Some(b) if b < a => {
                    self.next_b = self.b.next();
                    if self.rule == Rule::Sum {
                        return Some(b);
                    }
                }
                Some(b) if b == a && self.rule != Rule::Sum => {
                    self.next_a = self.a.next();
                    self.next_b = self.b.next();
                    if self.rule == Rule::Common {
                        return Some(a);
                    }
                }
                _ => {
                    self.next_a = self.a.next();
                    if self.rule != Rule::Common {
                        return Some(a);
                    }
                }
            }
        }
    }
}

impl<A: Source, B: Source> Source for Combined<A, B> {
    type Iter<'a>
        = CombinedFrom<A::Iter<'a>, B::Iter<'a>>
    where
        Self: 'a;

    fn from(&self, first: u64) -> Self::Iter<'_> {
        let (mut a, mut b) = (self.a.from(first), self.b.from(first));
        let (next_a, next_b) = (a.next(), b.next());
        CombinedFrom { rule: self.rule, a, b, next_a, next_b }
    }
}

/// Ranges of fingerprints, inclusive, that together are `0..=last`: enough of them for all threads.
fn ranges(last: u64) -> impl IndexedParallelIterator<Item = (u64, u64)> {
    let parts = if rayon::current_num_threads() == 1 { 1 } else { 256.min(last.saturating_add(1)) };
    // In 128 bits, as the number of fingerprints of 64 bits has 65.
    let bound = move |i: u64| ((last as u128 + 1) * i as u128 / parts as u128) as u64;
    (0..parts as u32).into_par_iter().map(move |i| {
        let i = i as u64;
        (bound(i), if i + 1 == parts { last } else { bound(i + 1) - 1 })
    })
}

/// How many fingerprints up to `last` there are.
pub(crate) fn count(source: &impl Source, last: u64) -> u64 {
    ranges(last).map(|(first, last)| source.from(first).take_while(|&f| f <= last).count() as u64).sum()
}

/// How many different fingerprints up to `last` there are.
pub(crate) fn count_distinct(source: &impl Source, last: u64) -> u64 {
    let distinct = |(first, last): (u64, u64)| {
        let mut before = None;
        let changes = source.from(first).take_while(|&f| f <= last).filter(|&f| before.replace(f) != Some(f));
        changes.count() as u64
    };
    ranges(last).map(distinct).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multisets_combine() {
        let (a, b) = ([1, 2, 2, 2, 5, 9], [0, 2, 2, 3, 5, 5, 9, 9]);
        let all = |rule| Combined { rule, a: Sorted(&a), b: Sorted(&b) }.from(0).collect::<Vec<_>>();
        assert_eq!(all(Rule::Sum), [0, 1, 2, 2, 2, 2, 2, 3, 5, 5, 5, 9, 9, 9]);
        assert_eq!(all(Rule::Difference), [1, 2]);
        assert_eq!(all(Rule::Common), [2, 2, 5, 9]);
        let late = Combined { rule: Rule::Sum, a: Sorted(&a), b: Sorted(&b) };
        assert_eq!(late.from(6).collect::<Vec<_>>(), [9, 9, 9]);
        assert_eq!(count(&late, 5), 11);
        assert_eq!(count_distinct(&late, u64::MAX), 6);
        let none = Combined { rule: Rule::Sum, a: Sorted(&[]), b: Sorted(&[]) };
        assert_eq!(count(&none, 100), 0);
    }
}

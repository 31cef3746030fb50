//! Ascending fingerprints from filters and slices, merged and subtracted on the way.
//!
//! A source can be read from any fingerprint on, so that parts of a filter are written independently of each other, and
//! twice, so that nothing has to be stored between.

use rayon::prelude::*;
use warpset_core::quotient::slots::{ByteSlots, Container};
use warpset_core::quotient::standard::Fingerprints;

use super::View;
use super::packed::{Packed, PackedWalk};

/// Ascending fingerprints, some at a time.
pub(crate) trait Ascending {
    /// Those that come next, none only at the end.
    fn ready(&mut self) -> &[u64];

    /// Goes past the first `count` of those that are ready.
    fn advance(&mut self, count: usize);
}

/// Where ascending fingerprints come from.
pub(crate) trait Source: Sync {
    /// What reads them.
    type Run<'a>: Ascending
    where
        Self: 'a;

    /// Those that are at least `first`, in ascending order.
    fn from(&self, first: u64) -> Self::Run<'_>;
}

/// Ascending fingerprints one by one.
pub(crate) struct Each<A>(pub A);

impl<A: Ascending> Iterator for Each<A> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        let next = self.0.ready().first().copied();
        self.0.advance(next.is_some() as usize);
        next
    }
}

/// A slice in ascending order.
pub(crate) struct Sorted<'s>(pub &'s [u64]);

impl Source for Sorted<'_> {
    type Run<'a>
        = &'a [u64]
    where
        Self: 'a;

    fn from(&self, first: u64) -> Self::Run<'_> {
        &self.0[self.0.partition_point(|&fingerprint| fingerprint < first)..]
    }
}

impl Ascending for &[u64] {
    #[inline]
    fn ready(&mut self) -> &[u64] {
        self
    }

    #[inline]
    fn advance(&mut self, count: usize) {
        *self = &self[count..];
    }
}

/// A few fingerprints on the way, filled anew whenever all have gone.
struct Buffer {
    fingerprints: [u64; 64],
    next: usize,
    end: usize,
}

impl Buffer {
    const EMPTY: Buffer = Buffer { fingerprints: [0; 64], next: 0, end: 0 };

    #[inline]
    fn left(&self) -> &[u64] {
        self.fingerprints.get(self.next..self.end).unwrap_or(&[])
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
    buffer: Buffer,
}

impl StoredFrom<'_> {
    fn fill(&mut self) {
        let Buffer { fingerprints, next, end } = &mut self.buffer;
        *next = 0;
        *end = match &mut self.walk {
            Walk::Bytes(walk) => {
                let places = fingerprints.iter_mut().zip(walk);
                places.map(|(place, fingerprint)| *place = fingerprint).count()
            }
            Walk::Packed(walk) => walk.next_block(fingerprints),
        };
        if self.dropped > 0 {
            fingerprints[..*end].iter_mut().for_each(|fingerprint| *fingerprint >>= self.dropped);
        }
    }
}

impl Ascending for StoredFrom<'_> {
    #[inline]
    fn ready(&mut self) -> &[u64] {
        while self.buffer.next >= self.buffer.end {
            self.fill();
            if self.buffer.end == 0 {
                break;
            }
            // Only the run in which the walk began can have smaller ones.
            self.buffer.next = self.buffer.left().partition_point(|&fingerprint| fingerprint < self.first);
        }
        self.buffer.left()
    }

    #[inline]
    fn advance(&mut self, count: usize) {
        self.buffer.next += count;
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
        StoredFrom { walk, dropped: self.dropped, first, buffer: Buffer::EMPTY }
    }
}

impl Source for Stored<'_> {
    type Run<'a>
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
    buffer: Buffer,
}

impl<A: Ascending, B: Ascending> CombinedFrom<A, B> {
    #[inline]
    fn fill(&mut self) {
        let Buffer { fingerprints, next, end } = &mut self.buffer;
        (*next, *end) = (0, 0);
        while *end < fingerprints.len() {
            let (a, b) = (self.a.ready(), self.b.ready());
            if a.is_empty() && (b.is_empty() || self.rule != Rule::Sum) {
                break;
            }
            let places = &mut fingerprints[*end..];
            let (from_a, from_b, put) = match self.rule {
                _ if b.is_empty() || a.is_empty() => {
                    let rest = if b.is_empty() { a } else { b };
                    let count = rest.len().min(places.len());
                    let put = if self.rule == Rule::Common { 0 } else { count };
                    places[..put].copy_from_slice(&rest[..put]);
                    if b.is_empty() { (count, 0, put) } else { (0, count, put) }
                }
                Rule::Sum => merge(a, b, places),
                Rule::Difference => cancel(a, b, places, false),
                Rule::Common => cancel(a, b, places, true),
            };
            self.a.advance(from_a);
            self.b.advance(from_b);
            *end += put;
        }
    }
}

/// Merges until one of `a` and `b` has gone or the places are full; says how many went from each and how many came.
#[inline]
fn merge(a: &[u64], b: &[u64], places: &mut [u64]) -> (usize, usize, usize) {
    let (mut i, mut j) = (0, 0);
    while let (Some(&x), Some(&y), Some(place)) = (a.get(i), b.get(j), places.get_mut(i + j)) {
        // Which is smaller is anybody's guess, so it is no branch.
        *place = x.min(y);
        i += (x <= y) as usize;
        j += (x > y) as usize;
    }
    (i, j, i + j)
}

/// Those of `a` that have an equal in `b`, or those that have none, one for one, until one of them has gone or the places
/// are full; says how many went from each and how many came.
#[inline]
fn cancel(a: &[u64], b: &[u64], places: &mut [u64], common: bool) -> (usize, usize, usize) {
    let (mut i, mut j, mut put) = (0, 0, 0);
    while let (Some(&x), Some(&y), Some(place)) = (a.get(i), b.get(j), places.get_mut(put)) {
        *place = x;
        put += if common { x == y } else { x < y } as usize;
        i += (x <= y) as usize;
        j += (x >= y) as usize;
    }
    (i, j, put)
}

impl<A: Ascending, B: Ascending> Ascending for CombinedFrom<A, B> {
    #[inline]
    fn ready(&mut self) -> &[u64] {
        if self.buffer.next >= self.buffer.end {
            self.fill();
        }
        self.buffer.left()
    }

    #[inline]
    fn advance(&mut self, count: usize) {
        self.buffer.next += count;
    }
}

impl<A: Source, B: Source> Source for Combined<A, B> {
    type Run<'a>
        = CombinedFrom<A::Run<'a>, B::Run<'a>>
    where
        Self: 'a;

    fn from(&self, first: u64) -> Self::Run<'_> {
        CombinedFrom { rule: self.rule, a: self.a.from(first), b: self.b.from(first), buffer: Buffer::EMPTY }
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
    ranges(last).map(|(first, last)| Each(source.from(first)).take_while(|&f| f <= last).count() as u64).sum()
}

/// How many different fingerprints up to `last` there are.
pub(crate) fn count_distinct(source: &impl Source, last: u64) -> u64 {
    let distinct = |(first, last): (u64, u64)| {
        let mut before = None;
        let changes = Each(source.from(first)).take_while(|&f| f <= last).filter(|&f| before.replace(f) != Some(f));
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
        let all = |rule| Each(Combined { rule, a: Sorted(&a), b: Sorted(&b) }.from(0)).collect::<Vec<_>>();
        assert_eq!(all(Rule::Sum), [0, 1, 2, 2, 2, 2, 2, 3, 5, 5, 5, 9, 9, 9]);
        assert_eq!(all(Rule::Difference), [1, 2]);
        assert_eq!(all(Rule::Common), [2, 2, 5, 9]);
        let late = Combined { rule: Rule::Sum, a: Sorted(&a), b: Sorted(&b) };
        assert_eq!(Each(late.from(6)).collect::<Vec<_>>(), [9, 9, 9]);
        assert_eq!(count(&late, 5), 11);
        assert_eq!(count_distinct(&late, u64::MAX), 6);
        let none = Combined { rule: Rule::Sum, a: Sorted(&[]), b: Sorted(&[]) };
        assert_eq!(count(&none, 100), 0);
    }
}

//! Ascending fingerprints from filters and slices, combined on the way.
//!
//! A source can be read from any fingerprint on, so that parts of a filter are written independently of each other, and
//! twice, so that nothing has to be stored between.

use rayon::prelude::*;
use warpset_core::quotient::combine::{Combination, Step};

use crate::View;
use crate::slot_kind::{SlotKind, Walk};

/// Ascending fingerprints, a few at a time.
pub(crate) trait Ascending {
    /// Those that come next; none only at the end.
    fn ready(&mut self) -> &[u64];

    /// Skips the first `count` of those that are ready.
    fn advance(&mut self, count: usize);
}

/// Where ascending fingerprints come from.
pub(crate) trait Source: Sync {
    /// What reads them.
    type Run<'a>: Ascending
    where
        Self: 'a;

    /// Those that are at least `first`, in ascending order.
    fn read_from(&self, first: u64) -> Self::Run<'_>;
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

    fn read_from(&self, first: u64) -> Self::Run<'_> {
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

/// A few fingerprints on their way, refilled whenever all have gone.
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
pub(crate) struct Stored<'v, S> {
    view: View<'v, S>,
    dropped: u32,
}

/// The fingerprints of a filter, `dropped` bits shorter.
pub(crate) fn stored<S: SlotKind>(view: View<'_, S>, dropped: u32) -> Stored<'_, S> {
    Stored { view, dropped }
}

/// The fingerprints of a [`Stored`] from a given one on.
pub(crate) struct StoredFrom<W> {
    walk: W,
    dropped: u32,
    first: u64,
    buffer: Buffer,
}

impl<W: Walk> Ascending for StoredFrom<W> {
    #[inline]
    fn ready(&mut self) -> &[u64] {
        while self.buffer.next >= self.buffer.end {
            let Buffer { fingerprints, next, end } = &mut self.buffer;
            (*next, *end) = (0, self.walk.next_block(fingerprints));
            if *end == 0 {
                break;
            }
            if self.dropped > 0 {
                fingerprints[..*end].iter_mut().for_each(|fingerprint| *fingerprint >>= self.dropped);
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

impl<'v, S: SlotKind> Stored<'v, S> {
    /// [`Source::read_from`] with the lifetime of the words.
    pub(crate) fn read_from(&self, first: u64) -> StoredFrom<S::Walk<'v>> {
        let layout = self.view.layout();
        let quotient = layout.split.quotient(first << self.dropped);
        let walk = S::walk(layout, self.view.words(), quotient);
        StoredFrom { walk, dropped: self.dropped, first, buffer: Buffer::EMPTY }
    }
}

impl<S: SlotKind> Source for Stored<'_, S> {
    type Run<'a>
        = StoredFrom<S::Walk<'a>>
    where
        Self: 'a;

    fn read_from(&self, first: u64) -> Self::Run<'_> {
        Stored::read_from(self, first)
    }
}

/// Two sources as one; in a union, too, equal fingerprints of both stay, for whoever lays them out to drop.
pub(crate) struct Combined<A, B> {
    pub combination: Combination,
    pub first: A,
    pub second: B,
}

/// The fingerprints of a [`Combined`].
pub(crate) struct CombinedFrom<A, B> {
    combination: Combination,
    first: A,
    second: B,
    buffer: Buffer,
}

impl<A: Ascending, B: Ascending> CombinedFrom<A, B> {
    #[inline]
    fn fill(&mut self) {
        let Buffer { fingerprints, next, end } = &mut self.buffer;
        (*next, *end) = (0, 0);
        while *end < fingerprints.len() {
            let (first, second) = (self.first.ready(), self.second.ready());
            let places = &mut fingerprints[*end..];
            let moved = if first.is_empty() || second.is_empty() {
                if first.is_empty() && (second.is_empty() || !self.combination.keeps_second()) {
                    break;
                }
                move_rest(self.combination, first, second, places)
            } else {
                // Each in a loop of its own.
                match self.combination {
                    Combination::Union | Combination::Sum => combine(Combination::Sum, first, second, places),
                    Combination::Difference => combine(Combination::Difference, first, second, places),
                    Combination::Intersection => combine(Combination::Intersection, first, second, places),
                }
            };
            self.first.advance(moved.from_first);
            self.second.advance(moved.from_second);
            *end += moved.put;
        }
    }
}

/// How many fingerprints went from two slices, and how many came of them.
struct Moved {
    from_first: usize,
    from_second: usize,
    put: usize,
}

/// Combines until one of the slices has gone or the places are full.
#[inline(always)]
fn combine(combination: Combination, first: &[u64], second: &[u64], places: &mut [u64]) -> Moved {
    let (mut i, mut j, mut put) = (0, 0, 0);
    while let (Some(&x), Some(&y), Some(place)) = (first.get(i), second.get(j), places.get_mut(put)) {
        // No processor predicts which is smaller, so this does not branch.
        let Step { take_first, take_second, keep } = combination.step(x, y);
        *place = x.min(y);
        i += take_first as usize;
        j += take_second as usize;
        put += keep as usize;
    }
    Moved { from_first: i, from_second: j, put }
}

/// The same where one of the slices is empty, up to the number of places.
fn move_rest(combination: Combination, first: &[u64], second: &[u64], places: &mut [u64]) -> Moved {
    let (rest, kept) =
        if second.is_empty() { (first, combination.keeps_first()) } else { (second, combination.keeps_second()) };
    let count = rest.len().min(places.len());
    let put = if kept { count } else { 0 };
    places[..put].copy_from_slice(&rest[..put]);
    let (from_first, from_second) = if second.is_empty() { (count, 0) } else { (0, count) };
    Moved { from_first, from_second, put }
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

    fn read_from(&self, first: u64) -> Self::Run<'_> {
        let Combined { combination, first: a, second: b } = self;
        let (a, b) = (a.read_from(first), b.read_from(first));
        CombinedFrom { combination: *combination, first: a, second: b, buffer: Buffer::EMPTY }
    }
}

/// Ranges of fingerprints, inclusive, that together are `0..=last`: enough of them for all threads.
fn ranges(last: u64) -> impl IndexedParallelIterator<Item = (u64, u64)> {
    let parts = if rayon::current_num_threads() == 1 { 1 } else { 256.min(last.saturating_add(1)) };
    // In 128 bits, as the number of 64-bit fingerprints takes 65.
    let bound = move |i: u64| ((last as u128 + 1) * i as u128 / parts as u128) as u64;
    (0..parts as u32).into_par_iter().map(move |i| {
        let i = i as u64;
        (bound(i), if i + 1 == parts { last } else { bound(i + 1) - 1 })
    })
}

/// How many fingerprints up to `last` there are.
pub(crate) fn count(source: &impl Source, last: u64) -> u64 {
    ranges(last).map(|(first, last)| Each(source.read_from(first)).take_while(|&f| f <= last).count() as u64).sum()
}

/// How many different fingerprints up to `last` there are.
pub(crate) fn count_distinct(source: &impl Source, last: u64) -> u64 {
    let distinct = |(first, last): (u64, u64)| {
        let mut before = None;
        let changes =
            Each(source.read_from(first)).take_while(|&f| f <= last).filter(|&f| before.replace(f) != Some(f));
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
        let both = |combination| Combined { combination, first: Sorted(&a), second: Sorted(&b) };
        let all = |combination| Each(both(combination).read_from(0)).collect::<Vec<_>>();
        assert_eq!(all(Combination::Sum), [0, 1, 2, 2, 2, 2, 2, 3, 5, 5, 5, 9, 9, 9]);
        assert_eq!(all(Combination::Difference), [1, 2]);
        assert_eq!(all(Combination::Intersection), [2, 2, 5, 9]);
        let sum = both(Combination::Sum);
        assert_eq!(Each(sum.read_from(6)).collect::<Vec<_>>(), [9, 9, 9]);
        assert_eq!(count(&sum, 5), 11);
        assert_eq!(count_distinct(&sum, u64::MAX), 6);
        let none = Combined { combination: Combination::Sum, first: Sorted(&[]), second: Sorted(&[]) };
        assert_eq!(count(&none, 100), 0);
    }
}

//! Ascending fingerprints from filters and slices, combined while they are read.
//!
//! A source can be read from any fingerprint on, so parts of a filter are written independently of each other. It can
//! be read twice, so nothing is stored in between. It yields fingerprints one by one, copies included, or each once
//! with its number of copies: an [`Item`] is one or the other.

use std::marker::PhantomData;

use warpset_base::parallel;
use warpset_base::words::{OutOfMemory, zeroed_vec};
use warpset_core::quotient::combine::{Combination, Step};

use crate::View;
use crate::slot_kind::{Copies, SlotKind, Walk};

/// Fingerprint, alone or with its copies.
pub(crate) trait Item: Copy + Default + Send + Sync + 'static {
    /// Whether the item has all copies of its fingerprint.
    const COUNTED: bool;
    fn fingerprint(self) -> u64;
    fn copies(self) -> u64;
    /// Returns this item without its lowest bits.
    fn dropping(self, bits: u32) -> Self;
    /// Returns this item with that many copies in all. Only counted items are asked.
    fn with_copies(self, copies: u64) -> Self;
    /// Reads the next items of a walk.
    fn next(walk: &mut impl Walk, into: &mut [Self; 64]) -> usize;
    /// Combines until one of the slices is used up or the places are full.
    fn combine(combination: Combination, first: &[Self], second: &[Self], places: &mut [Self]) -> Moved;
}

impl Item for u64 {
    const COUNTED: bool = false;
    #[inline(always)]
    fn fingerprint(self) -> u64 {
        self
    }
    #[inline(always)]
    fn copies(self) -> u64 {
        1
    }
    #[inline(always)]
    fn dropping(self, bits: u32) -> u64 {
        self >> bits
    }
    #[inline(always)]
    fn with_copies(self, _: u64) -> u64 {
        self
    }
    #[inline(always)]
    fn next(walk: &mut impl Walk, into: &mut [u64; 64]) -> usize {
        walk.next_block(into)
    }
    #[inline(always)]
    fn combine(combination: Combination, first: &[u64], second: &[u64], places: &mut [u64]) -> Moved {
        // Each combination has a loop of its own.
        match combination {
            Combination::Union | Combination::Sum => combine(Combination::Sum, first, second, places),
            Combination::Difference => combine(Combination::Difference, first, second, places),
            Combination::Intersection => combine(Combination::Intersection, first, second, places),
        }
    }
}

impl Item for Copies {
    const COUNTED: bool = true;
    #[inline(always)]
    fn fingerprint(self) -> u64 {
        self.fingerprint
    }
    #[inline(always)]
    fn copies(self) -> u64 {
        self.copies
    }
    #[inline(always)]
    fn dropping(self, bits: u32) -> Copies {
        Copies { fingerprint: self.fingerprint >> bits, ..self }
    }
    #[inline(always)]
    fn with_copies(self, copies: u64) -> Copies {
        Copies { copies, ..self }
    }
    #[inline(always)]
    fn next(walk: &mut impl Walk, into: &mut [Copies; 64]) -> usize {
        walk.next_copies(into)
    }
    fn combine(combination: Combination, first: &[Copies], second: &[Copies], places: &mut [Copies]) -> Moved {
        let (mut i, mut j, mut put) = (0, 0, 0);
        while let (Some(&x), Some(&y), Some(place)) = (first.get(i), second.get(j), places.get_mut(put)) {
            let (x_comes, y_comes) = (x.fingerprint <= y.fingerprint, y.fingerprint <= x.fingerprint);
            let copies = match (x_comes, y_comes) {
                (true, true) => match combination {
                    // The sum does not overflow: filters hold fewer than 2^63 copies.
                    Combination::Sum => x.copies + y.copies,
                    Combination::Union => x.copies.max(y.copies),
                    Combination::Difference => x.copies.saturating_sub(y.copies),
                    Combination::Intersection => x.copies.min(y.copies),
                },
                (true, false) if combination.keeps_first() => x.copies,
                (false, _) if combination.keeps_second() => y.copies,
                _ => 0,
            };
            *place = Copies { fingerprint: x.fingerprint.min(y.fingerprint), copies };
            i += x_comes as usize;
            j += y_comes as usize;
            put += (copies > 0) as usize;
        }
        Moved { from_first: i, from_second: j, put }
    }
}

/// Reader of ascending fingerprints, a few at a time.
pub(crate) trait Ascending {
    /// Type of the fingerprints.
    type Item: Item;

    /// Returns the next fingerprints; none only at the end.
    fn ready(&mut self) -> &[Self::Item];

    /// Skips the first `count` ready fingerprints.
    fn advance(&mut self, count: usize);
}

/// Source of ascending fingerprints.
pub(crate) trait AscendingSource: Sync {
    /// Type of the fingerprints.
    type Item: Item;
    /// Reader of the source.
    type Run<'a>: Ascending<Item = Self::Item>
    where
        Self: 'a;

    /// Reads the fingerprints that are at least `first`, in ascending order.
    fn read_from(&self, first: u64) -> Self::Run<'_>;
}

/// Iterator over ascending fingerprints.
pub(crate) struct Each<A>(pub A);

impl<A: Ascending> Iterator for Each<A> {
    type Item = A::Item;

    #[inline]
    fn next(&mut self) -> Option<A::Item> {
        let next = self.0.ready().first().copied();
        self.0.advance(next.is_some() as usize);
        next
    }

    #[inline]
    fn fold<B, F: FnMut(B, A::Item) -> B>(mut self, init: B, mut f: F) -> B {
        let mut folded = init;
        loop {
            let ready = self.0.ready();
            let count = ready.len();
            if count == 0 {
                return folded;
            }
            for &item in ready {
                folded = f(folded, item);
            }
            self.0.advance(count);
        }
    }
}

/// Slice in ascending order.
pub(crate) struct Sorted<'s, T = u64>(pub &'s [T]);

impl<T: Item> AscendingSource for Sorted<'_, T> {
    type Item = T;
    type Run<'a>
        = &'a [T]
    where
        Self: 'a;

    fn read_from(&self, first: u64) -> Self::Run<'_> {
        &self.0[self.0.partition_point(|item| item.fingerprint() < first)..]
    }
}

impl<T: Item> Ascending for &[T] {
    type Item = T;

    #[inline]
    fn ready(&mut self) -> &[T] {
        self
    }

    #[inline]
    fn advance(&mut self, count: usize) {
        *self = &self[count..];
    }
}

/// Small buffer of fingerprints, refilled when it is empty.
pub(super) struct Buffer<T> {
    pub(super) items: [T; 64],
    pub(super) next: usize,
    pub(super) end: usize,
}

impl<T: Item> Buffer<T> {
    pub(super) fn empty() -> Buffer<T> {
        Buffer { items: [T::default(); 64], next: 0, end: 0 }
    }

    #[inline]
    pub(super) fn left(&self) -> &[T] {
        self.items.get(self.next..self.end).unwrap_or(&[])
    }
}

/// Fingerprints of a filter, each without its lowest `dropped` bits.
pub(crate) struct Stored<'v, S, T> {
    view: View<'v, S>,
    dropped: u32,
    item: PhantomData<T>,
}

/// Returns a source of a filter's fingerprints, `dropped` bits shorter: copy by copy, or counted, whether or not the
/// filter has counters.
pub(crate) fn stored<S: SlotKind, T: Item>(view: View<'_, S>, dropped: u32) -> Stored<'_, S, T> {
    Stored { view, dropped, item: PhantomData }
}

/// Reader of a [`Stored`] from a fingerprint on.
pub(crate) struct StoredFrom<W, T> {
    walk: W,
    dropped: u32,
    first: u64,
    buffer: Buffer<T>,
    /// Last fingerprint read, to which the walk may add copies.
    pending: Option<T>,
}

impl<W: Walk, T: Item> StoredFrom<W, T> {
    /// Combines equal neighbours. The last one is kept back for further copies. Unchecked bytes may hold more copies
    /// than a number can, so the sum saturates.
    fn add_up(&mut self) {
        let Buffer { items, end, .. } = &mut self.buffer;
        let read = *items;
        let (count, mut put) = (*end, 0);
        for &item in &read[..count] {
            match self.pending {
                Some(last) if last.fingerprint() == item.fingerprint() => {
                    self.pending = Some(last.with_copies(last.copies().saturating_add(item.copies())));
                }
                Some(last) => {
                    items[put] = last;
                    put += 1;
                    self.pending = Some(item);
                }
                None => self.pending = Some(item),
            }
        }
        if count == 0
            && let Some(last) = self.pending.take()
        {
            items[0] = last;
            put = 1;
        }
        *end = put;
    }
}

impl<W: Walk, T: Item> Ascending for StoredFrom<W, T> {
    type Item = T;

    #[inline]
    fn ready(&mut self) -> &[T] {
        while self.buffer.next >= self.buffer.end {
            let Buffer { items, next, end } = &mut self.buffer;
            (*next, *end) = (0, T::next(&mut self.walk, items));
            let is_end = *end == 0;
            if self.dropped > 0 {
                items[..*end].iter_mut().for_each(|item| *item = item.dropping(self.dropped));
            }
            if T::COUNTED {
                self.add_up();
            }
            if is_end && self.buffer.end == 0 {
                break;
            }
            // Only the run in which the walk began can have smaller fingerprints.
            self.buffer.next = self.buffer.left().partition_point(|item| item.fingerprint() < self.first);
        }
        self.buffer.left()
    }

    #[inline]
    fn advance(&mut self, count: usize) {
        self.buffer.next += count;
    }
}

impl<'v, S: SlotKind, T: Item> Stored<'v, S, T> {
    /// Reads like [`AscendingSource::read_from`], with the lifetime of the words.
    pub(crate) fn read_from(&self, first: u64) -> StoredFrom<S::Walk<'v>, T> {
        let layout = self.view.layout();
        let quotient = layout.split.quotient(first << self.dropped);
        let walk = S::walk(layout, self.view.words(), quotient);
        StoredFrom { walk, dropped: self.dropped, first, buffer: Buffer::empty(), pending: None }
    }
}

impl<S: SlotKind, T: Item> AscendingSource for Stored<'_, S, T> {
    type Item = T;
    type Run<'a>
        = StoredFrom<S::Walk<'a>, T>
    where
        Self: 'a;

    fn read_from(&self, first: u64) -> Self::Run<'_> {
        Stored::read_from(self, first)
    }
}

/// Fingerprints of two filters as one source.
pub(crate) type BothStored<'v, S, T> = Combined<Stored<'v, S, T>, Stored<'v, S, T>>;

/// Two sources as one. In a union, equal fingerprints of both stay; the layout drops them.
pub(crate) struct Combined<A, B> {
    pub combination: Combination,
    pub first: A,
    pub second: B,
}

/// Reader of a [`Combined`].
pub(crate) struct CombinedFrom<A: Ascending, B> {
    combination: Combination,
    first: A,
    second: B,
    buffer: Buffer<A::Item>,
}

impl<A: Ascending, B: Ascending<Item = A::Item>> CombinedFrom<A, B> {
    #[inline]
    fn fill(&mut self) {
        let Buffer { items, next, end } = &mut self.buffer;
        (*next, *end) = (0, 0);
        while *end < items.len() {
            let (first, second) = (self.first.ready(), self.second.ready());
            let places = &mut items[*end..];
            let moved = if first.is_empty() || second.is_empty() {
                if first.is_empty() && (second.is_empty() || !self.combination.keeps_second()) {
                    break;
                }
                move_rest(self.combination, first, second, places)
            } else {
                A::Item::combine(self.combination, first, second, places)
            };
            self.first.advance(moved.from_first);
            self.second.advance(moved.from_second);
            *end += moved.put;
        }
    }
}

/// Numbers of fingerprints taken from two slices, and written.
pub(crate) struct Moved {
    from_first: usize,
    from_second: usize,
    put: usize,
}

/// Combines until one of the slices is used up or the places are full.
#[inline(always)]
fn combine(combination: Combination, first: &[u64], second: &[u64], places: &mut [u64]) -> Moved {
    let (mut i, mut j, mut put) = (0, 0, 0);
    while let (Some(&x), Some(&y), Some(place)) = (first.get(i), second.get(j), places.get_mut(put)) {
        // The comparison is unpredictable, so this does not branch.
        let Step { take_first, take_second, keep } = combination.step(x, y);
        *place = x.min(y);
        i += take_first as usize;
        j += take_second as usize;
        put += keep as usize;
    }
    Moved { from_first: i, from_second: j, put }
}

/// Moves the fingerprints that a combination keeps of the slice that is not empty, up to the number of places.
fn move_rest<T: Item>(combination: Combination, first: &[T], second: &[T], places: &mut [T]) -> Moved {
    let (rest, kept) =
        if second.is_empty() { (first, combination.keeps_first()) } else { (second, combination.keeps_second()) };
    let count = rest.len().min(places.len());
    let put = if kept { count } else { 0 };
    places[..put].copy_from_slice(&rest[..put]);
    let (from_first, from_second) = if second.is_empty() { (count, 0) } else { (0, count) };
    Moved { from_first, from_second, put }
}

impl<A: Ascending, B: Ascending<Item = A::Item>> Ascending for CombinedFrom<A, B> {
    type Item = A::Item;

    #[inline]
    fn ready(&mut self) -> &[A::Item] {
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

impl<A: AscendingSource, B: AscendingSource<Item = A::Item>> AscendingSource for Combined<A, B> {
    type Item = A::Item;
    type Run<'a>
        = CombinedFrom<A::Run<'a>, B::Run<'a>>
    where
        Self: 'a;

    fn read_from(&self, first: u64) -> Self::Run<'_> {
        let Combined { combination, first: a, second: b } = self;
        let (a, b) = (a.read_from(first), b.read_from(first));
        CombinedFrom { combination: *combination, first: a, second: b, buffer: Buffer::empty() }
    }
}

/// Splits `0..=last` into inclusive ranges, enough for all threads.
fn ranges(last: u64) -> impl Iterator<Item = (u64, u64)> {
    let parts = if rayon::current_num_threads() == 1 { 1 } else { 256.min(last.saturating_add(1)) };
    // The arithmetic has 128 bits, because the number of 64-bit fingerprints takes 65.
    let bound = move |i: u64| ((last as u128 + 1) * i as u128 / parts as u128) as u64;
    (0..parts).map(move |i| (bound(i), if i + 1 == parts { last } else { bound(i + 1) - 1 }))
}

/// Fingerprints of a source with at least a number of copies.
pub(crate) struct Kept<A> {
    pub source: A,
    pub least: u64,
}

/// Reader of a [`Kept`].
pub(crate) struct KeptFrom<A> {
    run: A,
    least: u64,
    buffer: Buffer<Copies>,
}

impl<A: Ascending<Item = Copies>> Ascending for KeptFrom<A> {
    type Item = Copies;

    fn ready(&mut self) -> &[Copies] {
        while self.buffer.next >= self.buffer.end {
            let ready = self.run.ready();
            let count = ready.len().min(self.buffer.items.len());
            if count == 0 {
                break;
            }
            (self.buffer.next, self.buffer.end) = (0, 0);
            for &item in ready[..count].iter().filter(|item| item.copies >= self.least) {
                self.buffer.items[self.buffer.end] = item;
                self.buffer.end += 1;
            }
            self.run.advance(count);
        }
        self.buffer.left()
    }

    fn advance(&mut self, count: usize) {
        self.buffer.next += count;
    }
}

impl<A: AscendingSource<Item = Copies>> AscendingSource for Kept<A> {
    type Item = Copies;
    type Run<'a>
        = KeptFrom<A::Run<'a>>
    where
        Self: 'a;

    fn read_from(&self, first: u64) -> Self::Run<'_> {
        KeptFrom { run: self.source.read_from(first), least: self.least, buffer: Buffer::empty() }
    }
}

/// Sums `of` over all fingerprints up to `last`. The sum saturates at `u64::MAX`, because the bytes of a filter may not
/// have been checked.
fn sum<A: AscendingSource>(source: &A, last: u64, of: impl Fn(A::Item) -> u64 + Sync) -> u64 {
    let items =
        |first: u64, last: u64| Each(source.read_from(first)).take_while(move |item| item.fingerprint() <= last);
    let sums = parallel::map(ranges(last), |(first, last)| items(first, last).map(&of).fold(0, u64::saturating_add));
    sums.into_iter().fold(0, u64::saturating_add)
}

/// Counts the fingerprints up to `last`, copies included.
pub(crate) fn count(source: &impl AscendingSource, last: u64) -> u64 {
    sum(source, last, Item::copies)
}

/// Counts the different fingerprints up to `last`.
pub(crate) fn count_distinct(source: &impl AscendingSource<Item = Copies>, last: u64) -> u64 {
    sum(source, last, |_| 1)
}

/// Entries of a histogram that each part counts by itself: nearly all fingerprints have few copies.
const NEAR: usize = 512;

/// Counts the fingerprints of a filter by number of copies up to `most`; the last entry includes those with more.
pub(crate) fn histogram<S: SlotKind>(view: View<'_, S>, most: usize) -> Result<Vec<u64>, OutOfMemory> {
    let mut all: Vec<u64> = zeroed_vec((most as u64).saturating_add(1))?;
    let source = stored::<S, Copies>(view, 0);
    let parts = parallel::map(ranges(view.layout().last_fingerprint()), |(first, last)| {
        let (mut near, mut far) = ([0; NEAR], Vec::new());
        for item in Each(source.read_from(first)).take_while(|item| item.fingerprint <= last) {
            let entry = item.copies.min(most as u64) as usize;
            near.get_mut(entry).map_or_else(|| far.push(entry), |count| *count += 1);
        }
        (near, far)
    });
    for (near, far) in parts {
        all.iter_mut().zip(near).for_each(|(all, near)| *all += near);
        far.into_iter().for_each(|entry| all[entry] += 1);
    }
    Ok(all)
}

/// Counts the different fingerprints of a filter.
pub(crate) fn distinct<S: SlotKind>(view: View<'_, S>) -> u64 {
    count_distinct(&stored::<S, Copies>(view, 0), view.layout().last_fingerprint())
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
        let none = Combined { combination: Combination::Sum, first: Sorted::<u64>(&[]), second: Sorted(&[]) };
        assert_eq!(count(&none, 100), 0);
    }

    #[test]
    fn counted_multisets_combine() {
        let of = |pairs: &[(u64, u64)]| -> Vec<Copies> {
            pairs.iter().map(|&(fingerprint, copies)| Copies { fingerprint, copies }).collect()
        };
        let (a, b) = (of(&[(1, 1), (2, 3), (5, 1), (9, 1)]), of(&[(0, 1), (2, 2), (3, 1), (5, 2), (9, 2)]));
        let both = |combination| Combined { combination, first: Sorted(&a), second: Sorted(&b) };
        let all = |combination| Each(both(combination).read_from(0)).collect::<Vec<_>>();
        assert_eq!(all(Combination::Sum), of(&[(0, 1), (1, 1), (2, 5), (3, 1), (5, 3), (9, 3)]));
        assert_eq!(all(Combination::Difference), of(&[(1, 1), (2, 1)]));
        assert_eq!(all(Combination::Intersection), of(&[(2, 2), (5, 1), (9, 1)]));
        assert_eq!(all(Combination::Union), of(&[(0, 1), (1, 1), (2, 3), (3, 1), (5, 2), (9, 2)]));
        assert_eq!((count(&both(Combination::Sum), 5), count_distinct(&both(Combination::Sum), u64::MAX)), (11, 6));
    }
}

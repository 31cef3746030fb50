//! Iteration in the order of the keys: merges pieces of the levels, a few thousand elements at a time.

use super::few::{FEW, few_into};
use crate::merge::Folder;
use crate::run::Run;
use crate::{OrderedKey, Value};

/// Largest number of elements of a level, besides copies of one key, that are merged at a time.
const STEP: usize = 1 << 10;
/// Number of elements of all levels that are merged at once: in steps, every level would end one.
const AT_ONCE: usize = 4 * STEP;

/// Live elements of a range of keys, ascending: the result of `range` and `iter`.
pub struct Range<'a, K, V> {
    /// Pieces that are still to be merged, the newest first.
    pieces: Vec<Run<'a, K, V>>,
    folder: Folder<K, V>,
    keys: Vec<K>,
    values: Vec<V>,
    at: usize,
}

impl<'a, K: OrderedKey, V: Value> Range<'a, K, V> {
    pub(crate) fn new(pieces: Vec<Run<'a, K, V>>) -> Self {
        let mut range = Range { pieces, folder: Folder::default(), keys: Vec::new(), values: Vec::new(), at: 0 };
        let candidates = range.pieces.iter().map(Run::len).sum::<usize>();
        if candidates <= FEW {
            range.keys.resize(candidates, K::MIN);
            range.values.resize(candidates, V::NONE);
            let live = few_into(&range.pieces, &mut range.keys, &mut range.values);
            range.keys.truncate(live);
            range.values.truncate(live);
            range.pieces.clear();
        }
        range
    }

    /// Merges the next elements into the buffer; returns false if there are none left.
    fn refill(&mut self) -> bool {
        self.keys.clear();
        self.values.clear();
        self.at = 0;
        while self.keys.is_empty() {
            self.pieces.retain(|piece| !piece.is_empty());
            if self.pieces.is_empty() {
                return false;
            }
            if self.pieces.iter().map(Run::len).sum::<usize>() <= AT_ONCE {
                let (keys, values) = self.folder.live(&self.pieces);
                self.keys.extend_from_slice(keys);
                self.values.extend_from_slice(values);
                self.pieces.clear();
                continue;
            }
            // Merges all elements up to the least key that some level has `STEP` places ahead.
            let last = self.pieces.iter().map(|piece| piece.keys[piece.len().min(STEP) - 1]).min().unwrap_or(K::MAX);
            let next: Vec<Run<'a, K, V>> = self
                .pieces
                .iter_mut()
                .map(|piece| {
                    let end = piece.upper_bound(last);
                    let next = piece.slice(0..end);
                    *piece = piece.slice(end..piece.len());
                    next
                })
                .filter(|next| !next.is_empty())
                .collect();
            if next.is_empty() {
                // In a damaged file that was opened unverified, keys may be unsorted.
                self.pieces.clear();
            }
            let (keys, values) = self.folder.live(&next);
            self.keys.extend_from_slice(keys);
            self.values.extend_from_slice(values);
        }
        true
    }
}

impl<K: OrderedKey, V: Value> Iterator for Range<'_, K, V> {
    type Item = (K, V);

    #[inline]
    fn next(&mut self) -> Option<(K, V)> {
        if self.at == self.keys.len() && !self.refill() {
            return None;
        }
        let item = (self.keys[self.at], self.values[self.at]);
        self.at += 1;
        Some(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let ready = self.keys.len() - self.at;
        (ready, Some(ready + self.pieces.iter().map(Run::len).sum::<usize>()))
    }

    fn fold<B, F: FnMut(B, (K, V)) -> B>(mut self, init: B, mut f: F) -> B {
        let mut folded = init;
        loop {
            let ready = self.keys[self.at..].iter().copied().zip(self.values[self.at..].iter().copied());
            folded = ready.fold(folded, &mut f);
            if !self.refill() {
                return folded;
            }
        }
    }
}

impl<K: OrderedKey, V: Value> std::iter::FusedIterator for Range<'_, K, V> {}

impl<K: OrderedKey, V: Value> std::fmt::Debug for Range<'_, K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Range").field("at_most", &self.size_hint().1).finish_non_exhaustive()
    }
}

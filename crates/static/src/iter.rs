//! Iterators over all keys, in the order of their numbers.

use std::iter::FusedIterator;

use crate::{MapValue, StaticKey, StaticMapView, Value};

/// The keys of a set or map, in the order of their numbers.
#[derive(Clone, Debug)]
pub struct Keys<'a, K: StaticKey, V: Value> {
    view: StaticMapView<'a, K, V>,
    next: u64,
}

impl<'a, K: StaticKey, V: Value> Keys<'a, K, V> {
    pub(crate) fn new(view: StaticMapView<'a, K, V>) -> Self {
        Keys { view, next: 0 }
    }

    /// Returns the next key and its number.
    fn next_numbered(&mut self) -> Option<(u64, K)> {
        while self.next < self.view.slots() {
            let number = self.next;
            self.next += 1;
            if let Some(key) = self.view.key_at(number) {
                return Some((number, key));
            }
        }
        None
    }

    /// Bounds the length by the number of slots left.
    fn hint(&self) -> (usize, Option<usize>) {
        let most = self.view.slots().saturating_sub(self.next);
        (0, usize::try_from(most).ok())
    }
}

impl<K: StaticKey, V: Value> Iterator for Keys<'_, K, V> {
    type Item = K;

    fn next(&mut self) -> Option<K> {
        self.next_numbered().map(|(_, key)| key)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.hint()
    }
}

impl<K: StaticKey, V: Value> FusedIterator for Keys<'_, K, V> {}

/// The keys of a map with their values, in the order of the keys' numbers.
#[derive(Clone, Debug)]
pub struct Iter<'a, K: StaticKey, V: MapValue>(Keys<'a, K, V>);

impl<'a, K: StaticKey, V: MapValue> Iter<'a, K, V> {
    pub(crate) fn new(view: StaticMapView<'a, K, V>) -> Self {
        Iter(Keys::new(view))
    }
}

impl<K: StaticKey, V: MapValue> Iterator for Iter<'_, K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        let (number, key) = self.0.next_numbered()?;
        Some((key, self.0.view.value_at(number as usize)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.hint()
    }
}

impl<K: StaticKey, V: MapValue> FusedIterator for Iter<'_, K, V> {}

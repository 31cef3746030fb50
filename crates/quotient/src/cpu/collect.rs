//! Filters from iterators of keys, and keys from iterators into filters: they grow as needed.

use super::QuotientFilter;
use crate::slot_kind::SlotKind;
use crate::{Builder, Error, Hashed, Key, Layout};

/// Keys that are inserted at a time.
const BATCH: usize = 1 << 16;

fn hashes<K: Key>(layout: &Layout, keys: impl Iterator<Item = K>) -> Vec<Hashed> {
    keys.map(|key| Hashed(layout.seed.hash(&key))).collect()
}

/// The fingerprints of some keys; panics if a key has none, as [`Extend`] says.
fn fingerprints<K: Key>(layout: &Layout, keys: impl Iterator<Item = K>) -> Vec<u64> {
    let of = layout.fingerprints_of();
    let of_key = |key: K| layout.expect_fingerprint(of.of(&key));
    keys.map(of_key).collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{error}"))
}

/// Inserts all keys, and doubles the filter whenever it is full: its layout changes, its rate of false positives grows
/// with its keys. A trait of the standard library that cannot return an error, so it is the one place where input can
/// panic.
///
/// ```
/// use warpset_quotient::StandardQuotientFilter;
///
/// let mut filter = StandardQuotientFilter::builder(100).fpr(1e-6).build()?;
/// filter.extend(0..1000u64);
/// assert!(filter.len() >= 999 && filter.contains(7u64));
/// # Ok::<(), warpset_quotient::Error>(())
/// ```
///
/// # Panics
/// As `Vec` does when there is no memory; when the filter is exact and a key is too wide; and when the filter is full
/// but remainders have one bit left, so that it cannot double and every second answer is wrong.
/// [`Insert::insert_bulk`](crate::Insert::insert_bulk) returns errors instead.
impl<S: SlotKind, K: Key> Extend<K> for QuotientFilter<S> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        let mut keys = keys.into_iter();
        loop {
            let batch = fingerprints(&self.layout, keys.by_ref().take(BATCH));
            if batch.is_empty() {
                return;
            }
            while let Err(error) = self.insert_fingerprints_bulk(&batch) {
                let doubled = match error {
                    Error::Full { .. } | Error::OverflowRegionFull { .. } => self.double(),
                    other => Err(other),
                };
                doubled.unwrap_or_else(|error| panic!("a quotient filter cannot grow further: {error}"));
            }
        }
    }
}

/// A filter with all settings at their defaults, of the size that the keys need.
///
/// ```
/// use warpset_quotient::StandardQuotientFilter;
///
/// let filter: StandardQuotientFilter = ["north", "south"].into_iter().collect();
/// assert!(filter.contains("north"));
/// ```
///
/// # Panics
/// When there is no memory, as `Vec` does.
impl<S: SlotKind, K: Key> FromIterator<K> for QuotientFilter<S> {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> QuotientFilter<S> {
        let builder = |keys: usize| Builder::<S>::with_capacity(keys.max(1) as u64);
        let defaults = builder(1).layout().expect("defaults are valid");
        let hashes = hashes(&defaults, keys.into_iter());
        let empty = builder(hashes.len()).build();
        let mut filter = empty.unwrap_or_else(|error| panic!("no quotient filter of {} keys: {error}", hashes.len()));
        filter.extend(hashes);
        filter
    }
}

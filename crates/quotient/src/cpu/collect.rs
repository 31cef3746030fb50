//! Filters from iterators of keys; they grow as needed.

use super::QuotientFilter;
use crate::slot_kind::SlotKind;
use crate::{Builder, Error, Hashed, Key, Layout};

/// Keys per insertion.
const BATCH: usize = 1 << 16;

fn hashes<K: Key>(layout: &Layout, keys: impl Iterator<Item = K>) -> Vec<Hashed> {
    keys.map(|key| Hashed(layout.seed.hash(&key))).collect()
}

/// Returns the fingerprints of keys; panics if a key has none, as documented at [`Extend`].
fn fingerprints<K: Key>(layout: &Layout, keys: impl Iterator<Item = K>) -> Vec<u64> {
    let of = layout.fingerprints_of();
    let of_key = |key: K| layout.expect_fingerprint(of.of(&key));
    keys.map(of_key).collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{error}"))
}

/// Inserts all keys and doubles the filter whenever it is full. Its layout changes, and its rate of false positives
/// grows with its keys. The trait of the standard library cannot return an error, so this is the only place where input
/// can panic.
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
/// Panics without memory, as `Vec` does; if the filter is exact and a key is too wide; and if the filter is full with
/// one remainder bit left, so that it cannot double and every second answer is wrong.
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

/// Builds a filter of the size that the keys need, with default settings.
///
/// ```
/// use warpset_quotient::StandardQuotientFilter;
///
/// let filter: StandardQuotientFilter = ["north", "south"].into_iter().collect();
/// assert!(filter.contains("north"));
/// ```
///
/// # Panics
/// Panics without memory, as `Vec` does.
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

//! The standard quotient filter: three metadata bits a slot (section III-A of the paper).
//!
//! Source: Geil, Farach-Colton, Owens, "Quotient Filters: Approximate Membership Queries on the GPU", IPDPS 2018;
//! algorithms 1, 3, 7 and 8. The arithmetic on slots is in `warpset_core::quotient`.

use std::fmt;

use warpset_core::quotient::slots::{ByteSlots, Container};
use warpset_core::quotient::standard::{self as core, Inserted};

use crate::Words;
use crate::key::Seed;
use crate::{Error, Key, Layout};

mod batch;
pub(crate) mod format;
pub mod gpu;
mod packed;
mod paper_builds;
mod rebuild;
#[cfg(feature = "serde")]
mod serde;
mod source;
mod validate;
mod view;

use packed::PackedMut;
pub use paper_builds::BuildMethod;
pub use view::View;

/// Runs the body with the slots of these words, whichever container they are in.
macro_rules! with_slots {
    ($layout:expr, $words:expr, $len:expr, |$slots:ident| $body:expr) => {{
        let layout: &crate::Layout = $layout;
        let bits = layout.split.remainder_bits;
        match layout.container {
            Container::Bytes => {
                #[allow(unused_mut)]
                let mut $slots = ByteSlots::new($words, $len, bits);
                $body
            }
            Container::Packed => {
                #[allow(unused_mut)]
                let mut $slots = PackedSlots::new($words, $len, bits);
                $body
            }
        }
    }};
}
pub(crate) use with_slots;

/// A standard quotient filter in host memory: an approximate set, or multiset, of fingerprints.
///
/// - **Memory**: `r + 3` bits a slot; at a load of 0.9 a rate of false positives of 1% takes 10.5 bits a key, 0.1% 13.9.
/// - **Cost**: all operations read the cluster around a key's slot: a few slots at a load of one half, some hundred at
///   0.95.
/// - **Limits**: at most `layout().limit()` fingerprints; more are the error [`Error::Full`], and change nothing.
///
/// Single-key operations are the paper's serial algorithms. Operations on many keys sort them and then either do the same
/// in parallel, each thread in its own part of the filter, or write the filter anew; both give the same bytes, as the
/// layout of a set of fingerprints is unique.
///
/// ```
/// use warpset_quotient::{Duplicates, StandardQuotientFilter};
///
/// let mut words = StandardQuotientFilter::builder(1000).fpr(1e-6).duplicates(Duplicates::Kept).build()?;
/// words.insert("filter")?;
/// words.insert("filter")?;
/// assert_eq!(words.count("filter"), 2);
/// assert!(words.remove("filter") && words.contains("filter"));
/// assert!(words.remove("filter") && !words.contains("filter"));
/// assert!(!words.remove("filter"));
/// # Ok::<(), warpset_quotient::Error>(())
/// ```
#[derive(Clone)]
pub struct StandardQuotientFilter {
    layout: Layout,
    words: Words,
    /// Fingerprints stored.
    items: u64,
}

impl StandardQuotientFilter {
    /// An empty filter with these parameters.
    pub fn with_layout(layout: Layout) -> Result<StandardQuotientFilter, Error> {
        Ok(StandardQuotientFilter { layout, words: Words::zeroed(layout.words())?, items: 0 })
    }

    /// The words hold `items` fingerprints in this layout.
    pub(crate) fn from_parts(layout: Layout, words: Words, items: u64) -> StandardQuotientFilter {
        debug_assert_eq!(words.as_slice().len() as u64, layout.words());
        StandardQuotientFilter { layout, words, items }
    }

    /// The parameters.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The words, little-endian, block by block: the memory image that every backend shares.
    pub fn words(&self) -> &[u64] {
        self.words.as_slice()
    }

    /// A borrow that answers queries.
    pub fn view(&self) -> View<'_> {
        View::new(self.layout, self.words(), self.items)
    }

    /// How many fingerprints are stored, repetitions included.
    pub fn len(&self) -> u64 {
        self.items
    }

    /// Whether no fingerprint is stored.
    pub fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// Fingerprints stored, as a share of the quotients: `α` in the paper.
    pub fn load_factor(&self) -> f64 {
        self.view().load_factor()
    }

    /// Bytes of memory that the slots take.
    pub fn memory_bytes(&self) -> u64 {
        8 * self.layout.words()
    }

    /// Bits of memory a stored fingerprint.
    pub fn bits_per_item(&self) -> f64 {
        8.0 * self.memory_bytes() as f64 / self.items as f64
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.words.as_mut_slice().fill(0);
        self.items = 0;
    }

    /// Stores a key's fingerprint; `false` if it is there already and duplicates are dropped.
    pub fn insert(&mut self, key: impl Key) -> Result<bool, Error> {
        self.insert_fingerprint(self.layout.fingerprint(key))
    }

    /// [`StandardQuotientFilter::insert`] for a fingerprint.
    pub fn insert_fingerprint(&mut self, fingerprint: u64) -> Result<bool, Error> {
        self.check(fingerprint)?;
        let layout = self.layout;
        if self.items == layout.limit && (layout.keeps_duplicates() || !self.contains_fingerprint(fingerprint)) {
            return Err(Error::Full { items: self.items + 1, limit: layout.limit });
        }
        let inserted = self.store(fingerprint);
        match inserted {
            Inserted::Stored => {
                self.items += 1;
                Ok(true)
            }
            Inserted::Present => Ok(false),
            Inserted::NoSlot => {
                let last = layout.slots() - 1;
                Err(Error::OverflowRegionFull { slot: last, limit: last })
            }
        }
    }

    /// Removes a key's fingerprint, one copy of it in a multiset; `false` if it is not there.
    ///
    /// Remove only keys that were inserted: another key may have the same fingerprint. In a set even that one is then
    /// lost; in a multiset both have a copy.
    pub fn remove(&mut self, key: impl Key) -> bool {
        self.remove_fingerprint(self.layout.fingerprint(key))
    }

    /// [`StandardQuotientFilter::remove`] for a fingerprint.
    pub fn remove_fingerprint(&mut self, fingerprint: u64) -> bool {
        if self.check(fingerprint).is_err() {
            return false;
        }
        let removed = self.take_out(fingerprint);
        self.items -= removed as u64;
        removed
    }

    /// Whether the key may be in the filter. Never false for a key that was inserted and not removed.
    #[inline]
    pub fn contains(&self, key: impl Key) -> bool {
        self.view().contains(key)
    }

    /// Whether this fingerprint is stored.
    #[inline]
    pub fn contains_fingerprint(&self, fingerprint: u64) -> bool {
        self.view().contains_fingerprint(fingerprint)
    }

    /// How many copies of the key's fingerprint are stored.
    pub fn count(&self, key: impl Key) -> u64 {
        self.view().count(key)
    }

    /// One answer a key, in the order of the keys.
    pub fn contains_bulk<K: Key>(&self, keys: &[K]) -> Vec<bool> {
        self.view().contains_bulk(keys)
    }

    /// [`StandardQuotientFilter::contains_bulk`] into a slice of the same length.
    pub fn contains_bulk_into<K: Key>(&self, keys: &[K], answers: &mut [bool]) -> Result<(), Error> {
        self.view().contains_bulk_into(keys, answers)
    }

    /// [`StandardQuotientFilter::count`] of every key.
    pub fn count_bulk<K: Key>(&self, keys: &[K]) -> Vec<u64> {
        self.view().count_bulk(keys)
    }

    /// How many of the keys may be in the filter.
    pub fn count_contained<K: Key>(&self, keys: &[K]) -> usize {
        self.view().count_contained(keys)
    }

    /// The stored fingerprints in ascending order.
    pub fn fingerprints(&self) -> impl Iterator<Item = u64> + '_ {
        source::Each(source::stored(self.view(), 0).from(0))
    }

    /// How many different fingerprints are stored.
    pub fn distinct(&self) -> u64 {
        self.view().distinct()
    }

    /// The rate of false positives of the filter as it is: the share of all fingerprints that are stored. Exact, if the
    /// hashes of the keys asked for are uniform.
    pub fn fpr(&self) -> f64 {
        self.view().fpr()
    }

    /// The rate of false positives to expect, were `keys` different keys in the filter.
    pub fn expected_fpr(&self, keys: u64) -> f64 {
        crate::fpr::expected(keys, self.layout.fingerprint_bits())
    }

    /// The fraction of `samples` random hashes, drawn with `seed`, that the filter claims to contain.
    pub fn measured_fpr(&self, samples: u64, seed: u64) -> f64 {
        self.view().measured_fpr(samples, seed)
    }

    /// Writes a fingerprint into its slot; the number of items is the caller's to change.
    fn store(&mut self, fingerprint: u64) -> Inserted {
        let (layout, split) = (self.layout, self.layout.split);
        let (quotient, remainder) = (split.quotient(fingerprint), split.remainder(fingerprint));
        let words = self.words.as_mut_slice();
        match layout.container {
            Container::Packed => {
                PackedMut::new(words, split).insert_one(quotient, remainder, layout.keeps_duplicates())
            }
            Container::Bytes => {
                let mut slots = ByteSlots::new(words, layout.slots(), split.remainder_bits);
                core::insert(&mut slots, quotient, remainder, layout.keeps_duplicates())
            }
        }
    }

    /// Takes a fingerprint out of its slot; the number of items is the caller's to change.
    fn take_out(&mut self, fingerprint: u64) -> bool {
        let (layout, split) = (self.layout, self.layout.split);
        let (quotient, remainder) = (split.quotient(fingerprint), split.remainder(fingerprint));
        let words = self.words.as_mut_slice();
        match layout.container {
            Container::Packed => PackedMut::new(words, split).remove_one(quotient, remainder),
            Container::Bytes => {
                let mut slots = ByteSlots::new(words, layout.slots(), split.remainder_bits);
                core::remove(&mut slots, quotient, remainder)
            }
        }
    }

    fn check(&self, fingerprint: u64) -> Result<(), Error> {
        if fingerprint > self.layout.last_fingerprint() {
            return Err(Error::InvalidFingerprint { fingerprint, bits: self.layout.fingerprint_bits() });
        }
        Ok(())
    }

    fn seed(&self) -> Seed {
        Seed::new(self.layout.seed)
    }
}

/// Same parameters, same bytes.
impl PartialEq for StandardQuotientFilter {
    fn eq(&self, other: &StandardQuotientFilter) -> bool {
        self.layout == other.layout && self.words() == other.words()
    }
}
impl Eq for StandardQuotientFilter {}

impl fmt::Debug for StandardQuotientFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StandardQuotientFilter").field("layout", &self.layout).field("items", &self.items).finish()
    }
}

#[cfg(test)]
mod tests;

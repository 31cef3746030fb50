//! Queries over saved bytes, such as a memory-mapped file.

use crate::cpu::Dictionary;
use crate::format::{directory, view};
use crate::level::Sorted;
use crate::policy::ReadOnlyPolicy;
use crate::run::Run;
use crate::search_index::SearchIndex;
use crate::{Error, OrderedKey, Value};

/// Saved [`Lsm`](crate::Lsm) or [`SortedArray`](crate::SortedArray) in borrowed bytes: answers every query without a
/// copy of the elements.
///
/// ```
/// use warpset_lsm::{SortedArray, View};
///
/// let saved = SortedArray::<u32, u64>::builder().build_from(&[1, 2], &[10, 20])?.to_bytes();
/// let words: Vec<u64> = bytemuck::pod_collect_to_vec(&saved); // at a multiple of 8
/// let view = View::<u32, u64>::from_bytes(bytemuck::cast_slice(&words))?;
/// assert_eq!(view.get(2), Some(20));
/// # Ok::<(), warpset_lsm::Error>(())
/// ```
pub type View<'a, K, V> = Dictionary<K, V, ReadOnlyPolicy, Borrowed<'a, K, V>>;
/// Saved [`Lsm`](crate::Lsm) in borrowed bytes: a [`View`].
pub type LsmView<'a, K, V> = View<'a, K, V>;
/// Saved [`SortedArray`](crate::SortedArray) in borrowed bytes: a [`View`].
pub type SortedArrayView<'a, K, V> = View<'a, K, V>;

/// Level in borrowed memory.
pub struct Borrowed<'a, K, V> {
    run: Run<'a, K, V>,
    search_index: SearchIndex<K>,
}

impl<K: OrderedKey, V: Value> Sorted<K, V> for Borrowed<'_, K, V> {
    fn run(&self) -> Run<'_, K, V> {
        self.run
    }

    fn search_index(&self) -> &SearchIndex<K> {
        &self.search_index
    }
}

impl<'a, K: OrderedKey, V: Value> View<'a, K, V> {
    /// Opens a dictionary in saved bytes without a copy ([`map`](Dictionary::map) does the same with a file). Checks
    /// everything, including checksum and order of the keys, and reads the bytes twice for that.
    ///
    /// The payload must be aligned to 8 bytes; it is in a mapping that starts at a page.
    ///
    /// # Errors
    /// [`Error::File`], [`Error::Invalid`].
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, Error> {
        Self::open(view::<K, V>(bytes, true)?)
    }

    /// Opens as [`View::from_bytes`] does, without checking checksum and order: in constant time, reading only the
    /// directory of the levels. Damaged elements cause wrong answers, nothing worse.
    ///
    /// # Errors
    /// The errors of [`View::from_bytes`].
    pub fn from_bytes_unverified(bytes: &'a [u8]) -> Result<Self, Error> {
        Self::open(view::<K, V>(bytes, false)?)
    }

    fn open(words: &'a [u64]) -> Result<Self, Error> {
        let places = directory::<K, V>(words)?;
        let level = |run| Borrowed { run, search_index: SearchIndex::default() };
        Ok(Dictionary::from_levels(ReadOnlyPolicy(()), places.iter().map(|place| level(place.run(words))).collect()))
    }
}

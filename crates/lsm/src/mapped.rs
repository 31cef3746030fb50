//! Dictionaries in memory-mapped files.

use std::path::Path;
use std::sync::Arc;

use warpset_base::file::{self, MappedWords, at_path};

use crate::cpu::Dictionary;
use crate::format::{LevelExtent, SavedPolicy, directory};
use crate::level::Sorted;
use crate::policy::ReadOnlyPolicy;
use crate::run::Run;
use crate::search_index::SearchIndex;
use crate::{Error, OrderedKey, Value};

/// Dictionary in a memory-mapped file, opened by [`Dictionary::map`]. Answers every query; processes that map the same
/// file share its memory.
pub type Mapped<K, V> = Dictionary<K, V, ReadOnlyPolicy, InFile<K>>;
/// [`Lsm`](crate::Lsm) in a memory-mapped file.
pub type MappedLsm<K, V> = Mapped<K, V>;
/// [`SortedArray`](crate::SortedArray) in a memory-mapped file.
pub type MappedSortedArray<K, V> = Mapped<K, V>;

/// Level in a memory-mapped file.
pub struct InFile<K> {
    words: Arc<MappedWords<u64>>,
    place: LevelExtent,
    search_index: SearchIndex<K>,
}

impl<K: OrderedKey, V: Value> Sorted<K, V> for InFile<K> {
    #[inline]
    fn run(&self) -> Run<'_, K, V> {
        self.place.run((*self.words).as_ref())
    }

    fn search_index(&self) -> &SearchIndex<K> {
        &self.search_index
    }
}

/// Mapping.
impl<K: OrderedKey, V: Value, P: SavedPolicy> Dictionary<K, V, P> {
    /// Maps a saved dictionary into memory: nothing is copied, and processes share the memory. The whole file is read
    /// twice, for its checksum and the order of the keys.
    ///
    /// ```
    /// use warpset_lsm::Lsm;
    ///
    /// let path = std::env::temp_dir().join("warpset-lsm-map.warpset");
    /// Lsm::<u32, u64>::builder().build_from(&[3, 1, 2], &[30, 10, 20])?.save(&path)?;
    /// // SAFETY: no process changes the file as long as it is mapped; `save` would replace it.
    /// let prices = unsafe { Lsm::<u32, u64>::map(&path)? };
    /// assert_eq!(prices.range(2..).collect::<Vec<_>>(), [(2, 20), (3, 30)]);
    /// # std::fs::remove_file(&path).ok();
    /// # Ok::<(), warpset_lsm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::File`] with the path and the reason.
    ///
    /// # Safety
    /// - No process changes or truncates the file until the returned dictionary is dropped. Replacing it, as `save`
    ///   does, or removing it is allowed: the map keeps the old file.
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<Mapped<K, V>, Error> {
        // SAFETY: the contract of this function.
        unsafe { Self::map_as(path.as_ref(), true) }
    }

    /// Maps a saved dictionary as [`map`](Self::map) does, without checking checksum and order: opens in constant time
    /// and reads only the header and the directory of the levels. Damaged elements cause wrong answers, nothing worse.
    ///
    /// # Errors
    /// [`Error::File`] with the path and the reason.
    ///
    /// # Safety
    /// - The contract of [`map`](Self::map).
    pub unsafe fn map_unverified(path: impl AsRef<Path>) -> Result<Mapped<K, V>, Error> {
        // SAFETY: the contract of this function.
        unsafe { Self::map_as(path.as_ref(), false) }
    }

    /// Maps a file, and checks its checksum and the order of its keys if `verified`.
    ///
    /// # Safety
    /// No process changes or truncates the file until the dictionary is dropped.
    unsafe fn map_as(path: &Path, verified: bool) -> Result<Mapped<K, V>, Error> {
        // SAFETY: the contract of this function.
        let (_, words) = unsafe { file::map::<Self>(path, verified)? };
        let words = Arc::new(words);
        let places = at_path(path, "map", || directory::<K, V>((*words).as_ref()))?;
        let level = |place| InFile { words: words.clone(), place, search_index: SearchIndex::default() };
        Ok(Dictionary::from_levels(ReadOnlyPolicy(()), places.into_iter().map(level).collect()))
    }
}

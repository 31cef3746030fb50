//! Sets and maps in memory-mapped files.

use std::fmt;
use std::path::Path;

use warpset_base::file::{self, MappedWords};

use crate::{Error, Layout, StaticKey, StaticMap, StaticMapView, Value};

/// A [`StaticMap`] in a memory-mapped file, opened by [`StaticMap::map`]: answers every query, and processes that map
/// the same file share its memory.
pub struct MappedStaticMap<K: StaticKey, V: Value> {
    layout: Layout<K, V>,
    words: MappedWords<u64>,
}

/// A [`StaticSet`](crate::StaticSet) in a memory-mapped file.
pub type MappedStaticSet<K> = MappedStaticMap<K, ()>;

impl<K: StaticKey, V: Value> MappedStaticMap<K, V> {
    /// A borrow that answers queries.
    #[inline]
    pub fn view(&self) -> StaticMapView<'_, K, V> {
        StaticMapView::new(self.layout, self.words.as_ref())
    }

    /// The parameters.
    pub fn layout(&self) -> &Layout<K, V> {
        &self.layout
    }

    /// # Safety
    /// No process changes or cuts the file until the map is dropped.
    unsafe fn open(path: &Path, verified: bool) -> Result<Self, Error> {
        // SAFETY: this function's contract.
        let (layout, words) = unsafe { file::map::<StaticMap<K, V>>(path, verified)? };
        Ok(MappedStaticMap { layout, words })
    }
}

/// Mapping.
impl<K: StaticKey, V: Value> StaticMap<K, V> {
    /// Maps a saved set or map into memory: nothing is copied, and processes share the memory. The whole file is read
    /// twice, for its checksum and the places of the keys.
    ///
    /// ```
    /// use warpset_static::StaticSet;
    ///
    /// let path = std::env::temp_dir().join("warpset-static-map.warpset");
    /// StaticSet::<u64>::builder().build_from(&[1, 2, 3])?.save(&path)?;
    /// // SAFETY: no process changes the file as long as it is mapped; `save` would replace it.
    /// let set = unsafe { StaticSet::<u64>::map(&path)? };
    /// assert!(set.contains(3) && !set.contains(4));
    /// # std::fs::remove_file(&path).ok();
    /// # Ok::<(), warpset_static::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::File`] with the path and what is wrong.
    ///
    /// # Safety
    /// - No process changes or cuts the file until what this returns is dropped. To replace it, as `save` does, or to
    ///   remove it is allowed: the map keeps the old one.
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<MappedStaticMap<K, V>, Error> {
        // SAFETY: this function's contract.
        unsafe { MappedStaticMap::open(path.as_ref(), true) }
    }

    /// [`map`](Self::map) without checksum and places: opens in constant time and reads the header only. Damaged words
    /// make wrong answers, nothing worse.
    ///
    /// # Errors
    /// [`Error::File`] with the path and what is wrong.
    ///
    /// # Safety
    /// - As for [`map`](Self::map).
    pub unsafe fn map_unverified(path: impl AsRef<Path>) -> Result<MappedStaticMap<K, V>, Error> {
        // SAFETY: this function's contract.
        unsafe { MappedStaticMap::open(path.as_ref(), false) }
    }
}

impl<K: StaticKey, V: Value> fmt::Debug for MappedStaticMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MappedStaticMap").field("layout", &self.layout).finish_non_exhaustive()
    }
}

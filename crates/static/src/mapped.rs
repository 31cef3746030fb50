//! Sets and maps in memory-mapped files.

use crate::{Error, Layout, StaticKey, StaticMap, StaticMapView, Value};

warpset_base::mapped! {
    /// A [`StaticMap`] in a memory-mapped file, opened by [`StaticMap::map`]. It has every lookup, and processes that
    /// map the same file share its memory.
    [K: StaticKey, V: Value] MappedStaticMap<K, V> as MappedStaticMap of StaticMap<K, V>, Error;
    layout: Layout<K, V> = |layout| layout;
    view: StaticMapView<'_, K, V> = |layout, words| StaticMapView::new(layout, words, &[]);
    /// Maps a saved set or map into memory: nothing is copied, and processes share the memory. Reads the whole file
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
    fn map;
}

/// A [`StaticSet`](crate::StaticSet) in a memory-mapped file.
pub type MappedStaticSet<K> = MappedStaticMap<K, ()>;

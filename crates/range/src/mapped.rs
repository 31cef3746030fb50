//! Filters in memory-mapped files.

use crate::{Error, Layout, RangeFilter, RangeFilterView, RangeKey};

warpset_base::mapped! {
    /// A [`RangeFilter`] in a memory-mapped file, opened by [`RangeFilter::map`]. It answers every query; processes
    /// that map the same file share its memory.
    [K: RangeKey + ?Sized] MappedRangeFilter<K> as MappedRangeFilter of RangeFilter<K>, Error;
    layout: Layout = |layout| layout;
    view: RangeFilterView<'_, K> = |layout, words| RangeFilterView::new(layout, words);
    /// Maps a saved filter into memory: nothing is copied, and processes share the memory. The whole file is read once,
    /// for its checksum.
    ///
    /// ```
    /// use warpset_range::RangeFilter;
    ///
    /// let path = std::env::temp_dir().join("warpset-range-map.warpset");
    /// RangeFilter::<u64>::builder().build_from(&[1, 2, 3_000])?.save(&path)?;
    /// // SAFETY: no process changes the file as long as it is mapped; `save` would replace it.
    /// let filter = unsafe { RangeFilter::<u64>::map(&path)? };
    /// assert!(filter.may_contain(2_500..3_500) && !filter.may_contain(3_001..));
    /// # std::fs::remove_file(&path).ok();
    /// # Ok::<(), warpset_range::Error>(())
    /// ```
    fn map;
}

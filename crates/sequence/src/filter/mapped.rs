//! Filters in memory-mapped files.

use crate::{Error, Layout, SequenceFilter, SequenceFilterView};

warpset_base::mapped! {
    /// Filter in a memory-mapped file, opened by [`SequenceFilter::map`]. It answers every query; processes that map
    /// one file share its memory.
    [] MappedSequenceFilter as MappedSequenceFilter of SequenceFilter, Error;
    layout: Layout = |layout| layout;
    view: SequenceFilterView<'_> = |layout, words| SequenceFilterView::new(layout, words);
    /// Maps a saved filter into memory: nothing is copied, and processes share the memory. Reads the whole file once
    /// to verify its checksum.
    ///
    /// ```
    /// use warpset_sequence::SequenceFilter;
    ///
    /// let path = std::env::temp_dir().join("warpset-sequence-map.warpset");
    /// SequenceFilter::builder(10).k(9).build_from(&["GATTACACC"])?.save(&path)?;
    /// // SAFETY: no process changes the file as long as it is mapped; `save` would replace it.
    /// let filter = unsafe { SequenceFilter::map(&path)? };
    /// assert!(filter.contains("GGTGTAATC")?); // the other strand
    /// # std::fs::remove_file(&path).ok();
    /// # Ok::<(), warpset_sequence::Error>(())
    /// ```
    fn map;
}

//! Filters in memory-mapped files.

use crate::slot_kind::SlotKind;
use crate::{Error, Layout, QuotientFilter, RankSelect, Standard, View};

warpset_base::mapped! {
    /// A filter in a memory-mapped file, opened by [`QuotientFilter::map`]. It answers every query; processes that map
    /// the same file share its memory.
    [S: SlotKind] Mapped<S> as Mapped of QuotientFilter<S>, Error;
    layout: Layout = |saved| &saved.0;
    view: View<'_, S> = |saved, words| View::new(saved.0, words, saved.1);
    /// Maps a saved filter into memory: nothing is copied, and processes share the memory. The whole file is read
    /// twice, for its checksum and its slots.
    ///
    /// ```
    /// use warpset_quotient::RankSelectQuotientFilter;
    ///
    /// let path = std::env::temp_dir().join("warpset-quotient-map.warpset");
    /// RankSelectQuotientFilter::builder(100).build_from(&["a", "b"])?.save(&path)?;
    /// // SAFETY: no process changes the file as long as it is mapped; `save` would replace it.
    /// let filter = unsafe { RankSelectQuotientFilter::map(&path)? };
    /// assert!(filter.contains("a") && filter.contains("b"));
    /// # std::fs::remove_file(&path).ok();
    /// # Ok::<(), warpset_quotient::Error>(())
    /// ```
    fn map;
}

/// A [`StandardQuotientFilter`](crate::StandardQuotientFilter) in a memory-mapped file.
pub type MappedStandardQuotientFilter = Mapped<Standard>;
/// A [`RankSelectQuotientFilter`](crate::RankSelectQuotientFilter) in a memory-mapped file.
pub type MappedRankSelectQuotientFilter = Mapped<RankSelect>;

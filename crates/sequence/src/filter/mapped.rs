//! Filters in memory-mapped files.

use std::fmt;
use std::path::Path;

use warpset_base::file::{self, MappedWords};

use crate::{Error, Layout, SequenceFilter, SequenceFilterView};

/// A filter in a memory-mapped file, opened by [`SequenceFilter::map`]: answers every query, and processes that map the
/// same file share its memory.
pub struct MappedSequenceFilter {
    layout: Layout,
    words: MappedWords<u64>,
}

impl MappedSequenceFilter {
    /// The parameters.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// A borrow that answers queries.
    #[inline]
    pub fn view(&self) -> SequenceFilterView<'_> {
        SequenceFilterView::new(self.layout, self.words.as_ref())
    }

    /// # Safety
    /// No process changes or cuts the file until the filter is dropped.
    unsafe fn open(path: &Path, verified: bool) -> Result<MappedSequenceFilter, Error> {
        // SAFETY: the caller's promise.
        let (layout, words) = unsafe { file::map::<SequenceFilter>(path, verified)? };
        Ok(MappedSequenceFilter { layout, words })
    }
}

/// Mapping.
impl SequenceFilter {
    /// Maps a saved filter into memory: nothing is copied, and processes share the memory. The whole file is read
    /// once, for its checksum.
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
    ///
    /// # Errors
    /// [`Error::File`] with the path and what is wrong.
    ///
    /// # Safety
    /// - No process changes or cuts the file until what this returns is dropped. To replace it, as `save` does, or to
    ///   remove it is allowed: the map keeps the old one.
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<MappedSequenceFilter, Error> {
        // SAFETY: the caller's promise.
        unsafe { MappedSequenceFilter::open(path.as_ref(), true) }
    }

    /// [`map`](Self::map) without the checksum: opens in constant time and reads the header only. Damaged words make
    /// wrong answers, nothing worse.
    ///
    /// # Errors
    /// [`Error::File`] with the path and what is wrong.
    ///
    /// # Safety
    /// - As for [`map`](Self::map).
    pub unsafe fn map_unverified(path: impl AsRef<Path>) -> Result<MappedSequenceFilter, Error> {
        // SAFETY: the caller's promise.
        unsafe { MappedSequenceFilter::open(path.as_ref(), false) }
    }
}

impl fmt::Debug for MappedSequenceFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MappedSequenceFilter").field("layout", &self.layout).finish_non_exhaustive()
    }
}

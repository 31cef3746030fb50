//! Filters in memory-mapped files.

use std::fmt;
use std::path::Path;

use warpset_base::file::{self, MappedWords};

use crate::{Error, Layout, SequenceFilter, SequenceFilterView};

/// Filter in a memory-mapped file, opened by [`SequenceFilter::map`]. It answers every query, and processes that map
/// one file share its memory.
pub struct MappedSequenceFilter {
    layout: Layout,
    words: MappedWords<u64>,
}

impl MappedSequenceFilter {
    /// Returns the parameters.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Borrows the filter for queries.
    #[inline]
    pub fn view(&self) -> SequenceFilterView<'_> {
        SequenceFilterView::new(self.layout, self.words.as_ref())
    }

    /// Maps a file, and verifies its checksum if `verified`.
    ///
    /// # Safety
    /// No process changes or truncates the file until the filter is dropped.
    unsafe fn open(path: &Path, verified: bool) -> Result<MappedSequenceFilter, Error> {
        // SAFETY: the file does not change while it is mapped, by the contract of this function.
        let (layout, words) = unsafe { file::map::<SequenceFilter>(path, verified)? };
        Ok(MappedSequenceFilter { layout, words })
    }
}

/// Memory-mapped files.
impl SequenceFilter {
    /// Maps a saved filter into memory: nothing is copied, and processes share the memory. Reads the whole file once to
    /// verify its checksum.
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
    /// [`File`](crate::Error::File) with the path and the fault.
    ///
    /// # Safety
    /// - No process changes or truncates the file until the returned filter is dropped. Replacing it, as `save` does,
    ///   or removing it is allowed: the mapping keeps the old file.
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<MappedSequenceFilter, Error> {
        // SAFETY: the caller keeps the contract of `open`, which is that of this function.
        unsafe { MappedSequenceFilter::open(path.as_ref(), true) }
    }

    /// Maps as [`map`](Self::map) does, without the checksum: in constant time, reading only the header. Damaged words
    /// give wrong answers and no other harm.
    ///
    /// # Errors
    /// [`File`](crate::Error::File) with the path and the fault.
    ///
    /// # Safety
    /// - As for [`map`](Self::map).
    pub unsafe fn map_unverified(path: impl AsRef<Path>) -> Result<MappedSequenceFilter, Error> {
        // SAFETY: the caller keeps the contract of `open`, which is that of this function.
        unsafe { MappedSequenceFilter::open(path.as_ref(), false) }
    }
}

impl fmt::Debug for MappedSequenceFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MappedSequenceFilter").field("layout", &self.layout).finish_non_exhaustive()
    }
}

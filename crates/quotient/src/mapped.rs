//! Filters in memory-mapped files.

use std::fmt;
use std::marker::PhantomData;
use std::path::Path;

use warpset_base::file::{self, MappedWords};

use crate::slot_kind::{Counts, SlotKind};
use crate::{Error, Layout, QuotientFilter, RankSelect, Standard, View};

/// Filter in a memory-mapped file, opened by [`QuotientFilter::map`]. It answers every query, and processes that map
/// the same file share its memory.
pub struct Mapped<S> {
    layout: Layout,
    words: MappedWords<u64>,
    held: Counts,
    slots: PhantomData<S>,
}

/// A [`StandardQuotientFilter`](crate::StandardQuotientFilter) in a memory-mapped file.
pub type MappedStandardQuotientFilter = Mapped<Standard>;
/// A [`RankSelectQuotientFilter`](crate::RankSelectQuotientFilter) in a memory-mapped file.
pub type MappedRankSelectQuotientFilter = Mapped<RankSelect>;

impl<S: SlotKind> Mapped<S> {
    /// Returns the parameters.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns a borrow that answers queries.
    #[inline]
    pub fn view(&self) -> View<'_, S> {
        View::new(self.layout, self.words.as_ref(), self.held)
    }

    /// Returns the number of stored fingerprints, copies included.
    pub fn len(&self) -> u64 {
        self.held.copies
    }

    /// Whether no fingerprint is stored.
    pub fn is_empty(&self) -> bool {
        self.held.copies == 0
    }
}

/// Mapping.
impl<S: SlotKind> QuotientFilter<S> {
    /// Maps a saved filter into memory. Nothing is copied, and processes share the memory. The whole file is read
    /// twice, to check its checksum and its slots.
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
    ///
    /// # Errors
    /// [`Error::File`] with the path and what is wrong.
    ///
    /// # Safety
    /// - No process changes or truncates the file until the result is dropped. Replacing it, as `save` does, and
    ///   removing it are allowed: the map keeps the old file.
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<Mapped<S>, Error> {
        // SAFETY: the contract is the same.
        unsafe { Mapped::open(path.as_ref(), true) }
    }

    /// Maps a saved filter like [`map`](Self::map) in constant time: only the header is checked. Damaged words cause
    /// wrong answers and nothing worse.
    ///
    /// # Errors
    /// [`Error::File`] with the path and what is wrong.
    ///
    /// # Safety
    /// - The contract of [`map`](Self::map).
    pub unsafe fn map_unverified(path: impl AsRef<Path>) -> Result<Mapped<S>, Error> {
        // SAFETY: the contract is the same.
        unsafe { Mapped::open(path.as_ref(), false) }
    }
}

impl<S: SlotKind> Mapped<S> {
    /// Maps a file.
    ///
    /// # Safety
    /// No process changes or truncates the file until the filter is dropped.
    unsafe fn open(path: &Path, verified: bool) -> Result<Mapped<S>, Error> {
        // SAFETY: the contract is the same.
        let ((layout, held), words) = unsafe { file::map::<QuotientFilter<S>>(path, verified)? };
        Ok(Mapped { layout, words, held, slots: PhantomData })
    }
}

impl<S: SlotKind> fmt::Debug for Mapped<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mapped")
            .field("slots", &S::NAME)
            .field("layout", &self.layout)
            .field("held", &self.held)
            .finish()
    }
}

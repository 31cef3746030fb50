//! Filters in memory-mapped files.

use std::fmt;
use std::path::Path;

use warpset_base::file::{self, MappedWords};

use crate::cpu::Bloom;
use crate::{BlockedLayout, Error, Layout, RaoLayout, SplitBlockLayout, View};

/// A filter in a memory-mapped file, opened by [`Bloom::map`](crate::cpu::Bloom::map): answers every query, and
/// processes that map the same file share its memory.
pub struct Mapped<L> {
    layout: L,
    words: MappedWords<u32>,
}

/// A [`SplitBlockBloom`](crate::SplitBlockBloom) in a memory-mapped file.
pub type MappedSplitBlockBloom = Mapped<SplitBlockLayout>;
/// A [`BlockedBloom`](crate::BlockedBloom) in a memory-mapped file.
pub type MappedBlockedBloom = Mapped<BlockedLayout>;
/// A [`RaoBloom`](crate::RaoBloom) in a memory-mapped file.
pub type MappedRaoBloom = Mapped<RaoLayout>;

impl<L: Layout> Mapped<L> {
    /// The parameters.
    pub fn layout(&self) -> &L {
        &self.layout
    }

    /// A borrow that can answer queries.
    #[inline]
    pub fn view(&self) -> View<'_, L> {
        View::new(self.layout, bytemuck::cast_slice(self.words.as_ref()))
    }

    /// Bytes of the file that the bits take.
    pub fn memory_bytes(&self) -> u64 {
        4 * self.layout.words()
    }

    /// Bits per key, were `keys` in the filter.
    pub fn bits_per_key(&self, keys: u64) -> f64 {
        self.view().bits_per_key(keys)
    }
}

/// Mapping.
impl<L: Layout> Bloom<L> {
    /// Maps a saved filter into memory: nothing is copied, and processes share the memory. The whole file is read once,
    /// for its checksum.
    ///
    /// ```
    /// use warpset_bloom::SplitBlockBloom;
    ///
    /// let path = std::env::temp_dir().join("warpset-bloom-map.warpset");
    /// SplitBlockBloom::builder(100).build_from(&["a", "b"])?.save(&path)?;
    /// // SAFETY: no process changes the file as long as it is mapped; `save` would replace it.
    /// let filter = unsafe { SplitBlockBloom::map(&path)? };
    /// assert!(filter.contains("a") && filter.contains("b"));
    /// # std::fs::remove_file(&path).ok();
    /// # Ok::<(), warpset_bloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::File`] with the path and what is wrong.
    ///
    /// # Safety
    /// - No process changes or cuts the file until what this returns is dropped. To replace it, as `save` does, or to
    ///   remove it is allowed: the map keeps the old one.
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<Mapped<L>, Error> {
        // SAFETY: the caller's promise.
        unsafe { Mapped::open(path.as_ref(), true) }
    }

    /// [`map`](Self::map) without the checksum: opens in constant time and reads the header only. Damaged words make
    /// wrong answers, nothing worse.
    ///
    /// # Errors
    /// [`Error::File`] with the path and what is wrong.
    ///
    /// # Safety
    /// - As for [`map`](Self::map).
    pub unsafe fn map_unverified(path: impl AsRef<Path>) -> Result<Mapped<L>, Error> {
        // SAFETY: the caller's promise.
        unsafe { Mapped::open(path.as_ref(), false) }
    }
}

impl<L: Layout> Mapped<L> {
    /// # Safety
    /// No process changes or cuts the file until the filter is dropped.
    unsafe fn open(path: &Path, verified: bool) -> Result<Mapped<L>, Error> {
        // SAFETY: the caller's promise.
        let (layout, words) = unsafe { file::map::<Bloom<L>>(path, verified)? };
        Ok(Mapped { layout, words })
    }
}

impl<L: Layout> fmt::Debug for Mapped<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mapped").field("of", &L::NAME).field("layout", &self.layout).finish()
    }
}

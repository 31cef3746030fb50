//! Filters in memory-mapped files.

use std::fmt;
use std::marker::PhantomData;
use std::path::Path;

use warpset_base::file::{self, MappedWords};

use crate::width::Width;
use crate::{BinaryFuse, Error, Layout, View};

/// A filter in a memory-mapped file, opened by [`BinaryFuse::map`]: answers every query, and processes that map the
/// same file share its memory.
pub struct Mapped<F> {
    layout: Layout,
    words: MappedWords<u64>,
    width: PhantomData<F>,
}

/// A [`BinaryFuse8`](crate::BinaryFuse8) in a memory-mapped file.
pub type MappedBinaryFuse8 = Mapped<u8>;
/// A [`BinaryFuse16`](crate::BinaryFuse16) in a memory-mapped file.
pub type MappedBinaryFuse16 = Mapped<u16>;
/// A [`BinaryFuse32`](crate::BinaryFuse32) in a memory-mapped file.
pub type MappedBinaryFuse32 = Mapped<u32>;

impl<F: Width> Mapped<F> {
    /// The parameters.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// A borrow that answers queries.
    #[inline]
    pub fn view(&self) -> View<'_, F> {
        View::new(self.layout, self.words.as_ref())
    }

    /// How many different keys are in the filter.
    pub fn len(&self) -> u64 {
        self.layout.keys
    }

    /// Whether no key is in the filter.
    pub fn is_empty(&self) -> bool {
        self.layout.keys == 0
    }
}

/// Mapping.
impl<F: Width> BinaryFuse<F> {
    /// Maps a saved filter into memory: nothing is copied, and processes share the memory. The whole file is read
    /// once, for its checksum.
    ///
    /// ```
    /// use warpset_fuse::BinaryFuse8;
    ///
    /// let path = std::env::temp_dir().join("warpset-fuse-map.warpset");
    /// BinaryFuse8::builder().build_from(&["a", "b"])?.save(&path)?;
    /// // SAFETY: no process changes the file as long as it is mapped; `save` would replace it.
    /// let filter = unsafe { BinaryFuse8::map(&path)? };
    /// assert!(filter.contains("a") && filter.contains("b"));
    /// # std::fs::remove_file(&path).ok();
    /// # Ok::<(), warpset_fuse::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::File`] with the path and what is wrong.
    ///
    /// # Safety
    /// - No process changes or cuts the file until what this returns is dropped. To replace it, as `save` does, or to
    ///   remove it is allowed: the map keeps the old one.
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<Mapped<F>, Error> {
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
    pub unsafe fn map_unverified(path: impl AsRef<Path>) -> Result<Mapped<F>, Error> {
        // SAFETY: the caller's promise.
        unsafe { Mapped::open(path.as_ref(), false) }
    }
}

impl<F: Width> Mapped<F> {
    /// # Safety
    /// No process changes or cuts the file until the filter is dropped.
    unsafe fn open(path: &Path, verified: bool) -> Result<Mapped<F>, Error> {
        // SAFETY: the caller's promise.
        let (layout, words) = unsafe { file::map::<BinaryFuse<F>>(path, verified)? };
        Ok(Mapped { layout, words, width: PhantomData })
    }
}

impl<F: Width> fmt::Debug for Mapped<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mapped").field("layout", &self.layout).finish_non_exhaustive()
    }
}

//! Filters in memory-mapped files.

use crate::width::Width;
use crate::{BinaryFuse, Error, Layout, View};

warpset_base::mapped! {
    /// A filter in a memory-mapped file, opened by [`BinaryFuse::map`]. It answers every query; processes that map the
    /// same file share its memory.
    [F: Width] Mapped<F> as Mapped of BinaryFuse<F>, Error;
    layout: Layout = |layout| layout;
    view: View<'_, F> = |layout, words| View::new(layout, words);
    /// Maps a saved filter into memory: nothing is copied, and processes share the memory. The whole file is read once,
    /// for its checksum.
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
    fn map;
}

/// A [`BinaryFuse8`](crate::BinaryFuse8) in a memory-mapped file.
pub type MappedBinaryFuse8 = Mapped<u8>;
/// A [`BinaryFuse16`](crate::BinaryFuse16) in a memory-mapped file.
pub type MappedBinaryFuse16 = Mapped<u16>;
/// A [`BinaryFuse32`](crate::BinaryFuse32) in a memory-mapped file.
pub type MappedBinaryFuse32 = Mapped<u32>;

//! Filters in memory-mapped files.

use crate::cpu::Bloom;
use crate::{BlockedLayout, Error, Layout, RaoLayout, SplitBlockLayout, View};

warpset_base::mapped! {
    /// A filter in a memory-mapped file, opened by [`Bloom::map`](crate::cpu::Bloom::map). It answers every query;
    /// processes that map the same file share its memory.
    [L: Layout] Mapped<L> as Mapped of Bloom<L>, Error;
    layout: L = |layout| layout;
    view: View<'_, L> = |layout, words| View::new(layout, bytemuck::cast_slice(words));
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
    fn map;
}

/// A [`SplitBlockBloom`](crate::SplitBlockBloom) in a memory-mapped file.
pub type MappedSplitBlockBloom = Mapped<SplitBlockLayout>;
/// A [`BlockedBloom`](crate::BlockedBloom) in a memory-mapped file.
pub type MappedBlockedBloom = Mapped<BlockedLayout>;
/// A [`RaoBloom`](crate::RaoBloom) in a memory-mapped file.
pub type MappedRaoBloom = Mapped<RaoLayout>;

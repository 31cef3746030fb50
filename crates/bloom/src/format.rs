//! Saved filters: the header of [`warpset_base::file`], structures 1 to 3, then the words as they lie in memory.
//!
//! Parameters, by structure: `docs/formats.md`. The payload of a split-block filter is the Parquet bitset.

use warpset_base::file::{FIELDS, FileKind, Payload, Saved};

use crate::cpu::Bloom;
use crate::{AlignedWords, Error, Layout, View};

pub(crate) mod milvus;
pub(crate) mod parquet;
mod velox;

impl<L: Layout> Saved for Bloom<L> {
    const STRUCTURE: FileKind = L::STRUCTURE;
    const NAME: &'static str = L::NAME;
    type Word = u32;
    type Layout = L;
    type Error = Error;

    fn layout_of(fields: [u64; FIELDS]) -> Result<L, Error> {
        L::from_fields(fields)
    }

    fn words_of(layout: &L) -> u64 {
        layout.words()
    }

    fn fields(&self) -> [u64; FIELDS] {
        self.layout().to_fields()
    }

    fn payload(&self) -> impl Payload + '_ {
        bytemuck::cast_slice::<u32, u8>(self.words())
    }

    fn from_saved(layout: L, words: AlignedWords<u32>) -> Result<Bloom<L>, Error> {
        Ok(Bloom::from_parts(layout, words))
    }
}

warpset_base::saved_methods! {
    [L: Layout] Bloom<L>, Error;
}

warpset_base::viewed! {
    ['a, L: Layout] View<'a, L>, Bloom<L>, Error;
    |layout, words| View::new(layout, bytemuck::cast_slice(words));
    /// Requires a payload aligned to 4 bytes, as in a mapping that starts at a page.
    ///
    /// ```
    /// use warpset_bloom::{SplitBlockBloom, SplitBlockBloomView};
    ///
    /// let filter: SplitBlockBloom = ["a", "b"].into_iter().collect();
    /// let bytes = filter.to_bytes();
    /// let view = SplitBlockBloomView::from_bytes(&bytes)?;
    /// assert!(view.contains("a"));
    /// # Ok::<(), warpset_bloom::Error>(())
    /// ```
    fn from_bytes;
}

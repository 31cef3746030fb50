//! Saved filters: the header of [`warpset_base::file`], then the words of memory.
//!
//! Parameters in the header: `docs/formats.md`. Any words form a valid filter, so the checksum is all there is to
//! check.

use warpset_base::file::{FIELDS, FileKind, Payload, Saved};
use warpset_base::words::AlignedWords;

use super::layout::Layout;
use crate::{Error, SequenceFilter, SequenceFilterView};

impl Saved for SequenceFilter {
    const STRUCTURE: FileKind = FileKind::SEQUENCE_FILTER;
    const NAME: &'static str = "sequence filter";
    type Word = u64;
    type Layout = Layout;
    type Error = Error;

    fn layout_of(fields: [u64; FIELDS]) -> Result<Layout, Error> {
        Layout::from_fields(fields)
    }

    fn words_of(layout: &Layout) -> u64 {
        layout.words()
    }

    fn fields(&self) -> [u64; FIELDS] {
        self.layout().to_fields()
    }

    fn payload(&self) -> impl Payload + '_ {
        bytemuck::cast_slice::<u64, u8>(self.words())
    }

    fn from_saved(layout: Layout, words: AlignedWords<u64>) -> Result<SequenceFilter, Error> {
        Ok(SequenceFilter::from_parts(layout, words))
    }
}

warpset_base::saved_methods! {
    [] SequenceFilter, Error;
}

warpset_base::viewed! {
    ['a] SequenceFilterView<'a>, SequenceFilter, Error;
    |layout, words| SequenceFilterView::new(layout, words);
    /// Requires a payload aligned to 8 bytes, as in a mapping that starts at a page.
    ///
    /// ```
    /// use warpset_sequence::{SequenceFilter, SequenceFilterView};
    ///
    /// let saved = SequenceFilter::builder(10).k(9).build_from(&["GATTACACC"])?.to_bytes();
    /// let words: Vec<u64> = bytemuck::pod_collect_to_vec(&saved); // at a multiple of 8
    /// let view = SequenceFilterView::from_bytes(bytemuck::cast_slice(&words))?;
    /// assert!(view.contains("GATTACACC")?);
    /// # Ok::<(), warpset_sequence::Error>(())
    /// ```
    fn from_bytes;
}

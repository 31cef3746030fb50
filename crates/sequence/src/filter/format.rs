//! Saved filters: the header of [`warpset_base::file`], then the words as they lie in memory.
//!
//! The parameters: `docs/formats.md`. Any words are those of some filter, so that the checksum is all there is to
//! check.

use warpset_base::file::{self, FIELDS, Payload, Saved, Structure};
use warpset_base::words::AlignedWords;

use super::layout::Layout;
use crate::{Error, SequenceFilter, SequenceFilterView};

impl Saved for SequenceFilter {
    const STRUCTURE: Structure = Structure::SEQUENCE_FILTER;
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

/// Views of saved bytes.
impl<'a> SequenceFilterView<'a> {
    /// A filter in saved bytes, without a copy ([`map`](SequenceFilter::map) does the same with a file): checks
    /// everything, for which it reads the bytes once.
    ///
    /// The payload must be aligned to 8 bytes; it is in a mapping that starts at a page.
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
    ///
    /// # Errors
    /// [`Error::File`] if the bytes are not such a filter, are damaged or not aligned.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<SequenceFilterView<'a>, Error> {
        file::view::<SequenceFilter>(bytes).map(|(layout, words)| SequenceFilterView::new(layout, words))
    }

    /// [`SequenceFilterView::from_bytes`] without the checksum: opens in constant time and touches the header only.
    /// Damaged words make wrong answers, nothing worse.
    ///
    /// # Errors
    /// [`Error::File`] if the header is not that of such a filter, or the bytes are too few or not aligned.
    pub fn from_bytes_unverified(bytes: &'a [u8]) -> Result<SequenceFilterView<'a>, Error> {
        file::view_unverified::<SequenceFilter>(bytes).map(|(layout, words)| SequenceFilterView::new(layout, words))
    }
}

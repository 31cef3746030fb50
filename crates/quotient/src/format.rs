//! Saved filters: the header of [`warpset_base::file`], then the words as they lie in memory.
//!
//! `docs/formats.md` lists the parameters. A loader checks the slots too, not only the checksum, so no bytes make a
//! filter that breaks its invariants.

use warpset_base::file::{FIELDS, FileError, FileKind, Payload, Saved};
use warpset_base::words::AlignedWords;

use crate::slot_kind::{Counts, SlotKind};
use crate::{Error, Layout, QuotientFilter, View};

/// Parameter with the number of fingerprints; the next one is the number of slots that they take, if they are counted.
const ITEMS_FIELD: usize = 6;

impl<S: SlotKind> Saved for QuotientFilter<S> {
    const STRUCTURE: FileKind = S::STRUCTURE;
    const NAME: &'static str = S::NAME;
    type Word = u64;
    /// Contents of the header besides the parameters.
    type Layout = (Layout, Counts);
    type Error = Error;

    fn layout_of(fields: [u64; FIELDS]) -> Result<(Layout, Counts), Error> {
        let invalid = |field, value| Err(FileError::InvalidHeader { field, value }.into());
        let layout = Layout::from_fields(fields)?;
        if !S::lies_in(layout.container) {
            return invalid("container", layout.container as u64);
        }
        if layout.is_counted() && !S::COUNTS {
            return invalid("duplicates", layout.duplicates as u64);
        }
        let (items, slots) = (fields[ITEMS_FIELD], fields[ITEMS_FIELD + 1]);
        let held = if layout.is_counted() { Counts { copies: items, slots } } else { items.into() };
        if !layout.is_counted() && slots != 0 {
            return invalid("slots in use", slots);
        }
        if held.slots > layout.limit() {
            return invalid("items", items);
        }
        Ok((layout, held))
    }

    fn words_of((layout, _): &(Layout, Counts)) -> u64 {
        layout.words()
    }

    fn fields(&self) -> [u64; FIELDS] {
        let mut fields = self.layout().to_fields();
        fields[ITEMS_FIELD] = self.len();
        if self.layout().is_counted() {
            fields[ITEMS_FIELD + 1] = self.held().slots;
        }
        fields
    }

    fn payload(&self) -> impl Payload + '_ {
        bytemuck::cast_slice::<u64, u8>(self.words())
    }

    fn check(&(layout, held): &(Layout, Counts), words: &[u64]) -> Result<(), Error> {
        S::validate(&View::new(layout, words, held))
    }

    fn from_saved((layout, held): (Layout, Counts), words: AlignedWords<u64>) -> Result<QuotientFilter<S>, Error> {
        Ok(QuotientFilter::from_parts(layout, words, held))
    }
}

warpset_base::saved_methods! {
    [S: SlotKind] QuotientFilter<S>, Error;
}

warpset_base::viewed! {
    ['a, S: SlotKind] View<'a, S>, QuotientFilter<S>, Error;
    |(layout, held), words| View::new(layout, words, held);
    /// Requires a payload aligned to 8 bytes, as in a mapping that starts at a page.
    ///
    /// ```
    /// use warpset_quotient::{StandardQuotientFilter, StandardQuotientFilterView};
    ///
    /// let saved = StandardQuotientFilter::builder(10).build_from(&["a", "b"])?.to_bytes();
    /// let words: Vec<u64> = bytemuck::pod_collect_to_vec(&saved); // at a multiple of 8
    /// let view = StandardQuotientFilterView::from_bytes(bytemuck::cast_slice(&words))?;
    /// assert!(view.contains("a"));
    /// # Ok::<(), warpset_quotient::Error>(())
    /// ```
    fn from_bytes;
}

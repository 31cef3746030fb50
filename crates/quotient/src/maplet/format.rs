//! Saved maplets: the header of [`warpset_base::file`], then the words as they lie in memory.
//!
//! Parameters are those of a filter with the same fingerprints, with the bits of a value in bits 24 to 31 of the form.

use warpset_base::file::{FIELDS, FileError, FileKind, Payload, Saved};
use warpset_base::words::AlignedWords;

use super::{Maplet, MapletLayout, MapletView};
use crate::slot_kind::Counts;
use crate::{Error, Layout, QuotientFilter, RankSelect, View};

/// Parameter with container, duplicates, whether the maplet is exact, and the bits of a value.
const FORM_FIELD: usize = 2;
/// Place of the bits of a value in the form.
const VALUE_BITS_AT: u32 = 24;

type Filter = QuotientFilter<RankSelect>;

impl Saved for Maplet {
    const STRUCTURE: FileKind = FileKind::MAPLET;
    const NAME: &'static str = "maplet";
    type Word = u64;
    /// Contents of the header besides the parameters.
    type Layout = (MapletLayout, Counts);
    type Error = Error;

    fn layout_of(mut fields: [u64; FIELDS]) -> Result<(MapletLayout, Counts), Error> {
        let value_bits = fields[FORM_FIELD] >> VALUE_BITS_AT;
        fields[FORM_FIELD] &= (1 << VALUE_BITS_AT) - 1;
        let (keys, held): (Layout, Counts) = Filter::layout_of(fields)?;
        let layout = MapletLayout::new(keys, value_bits.min(64) as u32)
            .map_err(|_| FileError::InvalidHeader { field: "value bits", value: value_bits })?;
        Ok((layout, held))
    }

    fn words_of((layout, _): &(MapletLayout, Counts)) -> u64 {
        layout.words()
    }

    fn fields(&self) -> [u64; FIELDS] {
        let (mut fields, of_keys) = (self.filter().fields(), self.layout().keys().to_fields());
        fields[..=FORM_FIELD].copy_from_slice(&of_keys[..=FORM_FIELD]);
        fields[FORM_FIELD] |= u64::from(self.layout().value_bits()) << VALUE_BITS_AT;
        fields
    }

    fn payload(&self) -> impl Payload + '_ {
        self.filter().payload()
    }

    fn check(&(layout, held): &(MapletLayout, Counts), words: &[u64]) -> Result<(), Error> {
        Filter::check(&(layout.pairs(), held), words)
    }

    fn from_saved((layout, held): (MapletLayout, Counts), words: AlignedWords<u64>) -> Result<Maplet, Error> {
        Ok(Maplet::from_parts(layout, Filter::from_parts(layout.pairs(), words, held)))
    }
}

warpset_base::saved_methods! {
    [] Maplet, Error;
}

fn view((layout, held): (MapletLayout, Counts), words: &[u64]) -> MapletView<'_> {
    MapletView::new(layout, View::new(layout.pairs(), words, held))
}

warpset_base::viewed! {
    ['a] MapletView<'a>, Maplet, Error;
    |saved, words| view(saved, words);
    /// Requires a payload aligned to 8 bytes, as in a mapping that starts at a page.
    fn from_bytes;
}

#[cfg(feature = "mmap")]
warpset_base::mapped! {
    /// A maplet in a memory-mapped file, opened by [`Maplet::map`]. It answers every query; processes that map the same
    /// file share its memory.
    [] MappedMaplet as MappedMaplet of Maplet, Error;
    layout: MapletLayout = |saved| &saved.0;
    view: MapletView<'_> = |saved, words| view(saved, words);
    /// Maps a saved maplet into memory: nothing is copied, and processes share the memory. The whole file is read
    /// twice, for its checksum and its slots.
    fn map;
}

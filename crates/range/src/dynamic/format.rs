//! Saved dynamic filters: the header of [`warpset_base::file`], then the words as they are in memory.
//!
//! Parameters are those of the quotient filter, with the type of keys from bit 8 of the bits of a remainder on.

use warpset_base::file::{FIELDS, FileError, FileKind, Payload, Saved};
use warpset_base::words::AlignedWords;
use warpset_quotient::{Duplicates, RankSelectQuotientFilter, RankSelectQuotientFilterView};

use super::{DynamicRangeFilter, DynamicRangeFilterView};
use crate::layout::expect_type;
use crate::{Error, RangeKey};

/// Parameter with the bits of a remainder and the type of keys.
const TYPE_FIELD: usize = 1;
/// Place of the type of keys.
const TYPE_AT: u32 = 8;

/// Contents of the header.
type Header = <RankSelectQuotientFilter as Saved>::Layout;

impl<K: RangeKey + ?Sized> Saved for DynamicRangeFilter<K> {
    const STRUCTURE: FileKind = FileKind::DYNAMIC_RANGE_FILTER;
    const NAME: &'static str = "dynamic range filter";
    type Word = u64;
    type Layout = Header;
    type Error = Error;

    fn layout_of(mut fields: [u64; FIELDS]) -> Result<Header, Error> {
        expect_type::<K>(Self::STRUCTURE, fields[TYPE_FIELD] >> TYPE_AT)?;
        fields[TYPE_FIELD] &= (1 << TYPE_AT) - 1;
        let header = RankSelectQuotientFilter::layout_of(fields)?;
        let layout = &header.0;
        match layout.duplicates() == Duplicates::Kept && !layout.is_exact() {
            true => Ok(header),
            false => Err(FileError::InvalidHeader { field: "duplicates", value: fields[2] }.into()),
        }
    }

    fn words_of(header: &Header) -> u64 {
        RankSelectQuotientFilter::words_of(header)
    }

    fn fields(&self) -> [u64; FIELDS] {
        let mut fields = self.slots.fields();
        fields[TYPE_FIELD] |= K::TYPE << TYPE_AT;
        fields
    }

    fn payload(&self) -> impl Payload + '_ {
        self.slots.payload()
    }

    fn check(header: &Header, words: &[u64]) -> Result<(), Error> {
        Ok(RankSelectQuotientFilter::check(header, words)?)
    }

    fn from_saved(header: Header, words: AlignedWords<u64>) -> Result<Self, Error> {
        Ok(DynamicRangeFilter::from_slots(RankSelectQuotientFilter::from_saved(header, words)?))
    }
}

warpset_base::saved_methods! {
    [K: RangeKey + ?Sized] DynamicRangeFilter<K>, Error;
}

warpset_base::viewed! {
    ['a, K: RangeKey + ?Sized] DynamicRangeFilterView<'a, K>, DynamicRangeFilter<K>, Error;
    |saved, words| DynamicRangeFilterView::of_saved(saved, words);
    /// Requires a payload aligned to 8 bytes, as in a mapping that starts at a page.
    fn from_bytes;
}

impl<'a, K: RangeKey + ?Sized> DynamicRangeFilterView<'a, K> {
    /// Makes a view of the parts of a file.
    pub(super) fn of_saved((layout, held): Header, words: &'a [u64]) -> DynamicRangeFilterView<'a, K> {
        DynamicRangeFilterView::new(RankSelectQuotientFilterView::new(layout, words, held))
    }
}

#[cfg(feature = "mmap")]
warpset_base::mapped! {
    /// A [`DynamicRangeFilter`] in a memory-mapped file, opened by [`DynamicRangeFilter::map`]. It answers every query;
    /// processes that map the same file share its memory.
    [K: RangeKey + ?Sized] MappedDynamicRangeFilter<K> as MappedDynamicRangeFilter of DynamicRangeFilter<K>, Error;
    layout: warpset_quotient::Layout = |saved| &saved.0;
    view: DynamicRangeFilterView<'_, K> = |saved, words| DynamicRangeFilterView::of_saved(saved, words);
    /// Maps a saved filter into memory: nothing is copied, and processes share the memory. The whole file is read
    /// twice, for its checksum and its slots.
    fn map;
}

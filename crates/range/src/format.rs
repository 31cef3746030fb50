//! Saved filters: the header of [`warpset_base::file`], then the words as they are in memory. `docs/formats.md` lists
//! every byte.

use warpset_base::file::{FIELDS, FileKind, Payload, Saved};
use warpset_base::words::AlignedWords;

use crate::{Error, Layout, RangeFilter, RangeFilterView, RangeKey};

impl<K: RangeKey + ?Sized> Saved for RangeFilter<K> {
    const STRUCTURE: FileKind = FileKind::RANGE_FILTER;
    const NAME: &'static str = "range filter";
    type Word = u64;
    type Layout = Layout;
    type Error = Error;

    fn layout_of(fields: [u64; FIELDS]) -> Result<Layout, Error> {
        Layout::from_fields::<K>(fields)
    }

    fn words_of(layout: &Layout) -> u64 {
        layout.words()
    }

    fn fields(&self) -> [u64; FIELDS] {
        self.layout().to_fields::<K>()
    }

    fn payload(&self) -> impl Payload + '_ {
        bytemuck::cast_slice::<u64, u8>(self.words())
    }

    fn from_saved(layout: Layout, words: AlignedWords<u64>) -> Result<Self, Error> {
        RangeFilter::from_parts(layout, words)
    }
}

warpset_base::saved_methods! {
    [K: RangeKey + ?Sized] RangeFilter<K>, Error;
}

warpset_base::viewed! {
    ['a, K: RangeKey + ?Sized] RangeFilterView<'a, K>, RangeFilter<K>, Error;
    |layout, words| RangeFilterView::new(layout, words);
    /// Requires a payload aligned to 8 bytes, as in a mapping that starts at a page.
    fn from_bytes;
}

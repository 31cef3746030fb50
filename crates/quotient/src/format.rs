//! Saved filters: the header of [`warpset_base::file`], then the words as they lie in memory.
//!
//! The parameters: `docs/formats.md`. A loader checks the slots too, not only the checksum: no bytes make a filter that
//! breaks its invariants.

use std::io::{Read, Write};
use std::path::Path;

use warpset_base::file::{self, FIELDS, FileError, Saved};
use warpset_base::words::AlignedWords;

use crate::slot_kind::SlotKind;
use crate::{Error, Layout, QuotientFilter, View};

/// Which parameter is the number of fingerprints.
const ITEMS_FIELD: usize = 6;

impl<S: SlotKind> Saved for QuotientFilter<S> {
    const STRUCTURE: u16 = S::STRUCTURE;
    const NAME: &'static str = S::NAME;
    type Word = u64;
    /// And the number of fingerprints.
    type Layout = (Layout, u64);
    type Error = Error;

    fn layout_of(fields: [u64; FIELDS]) -> Result<(Layout, u64), Error> {
        let invalid = |field, value| Err(FileError::InvalidHeader { field, value }.into());
        if fields[ITEMS_FIELD + 1] != 0 {
            return invalid("parameter 7", fields[ITEMS_FIELD + 1]);
        }
        let layout = Layout::from_fields(fields)?;
        if !S::lies_in(layout.container) {
            return invalid("container", layout.container as u64);
        }
        let items = fields[ITEMS_FIELD];
        if items > layout.limit() {
            return invalid("items", items);
        }
        Ok((layout, items))
    }

    fn words_of((layout, _): &(Layout, u64)) -> u64 {
        layout.words()
    }

    fn fields(&self) -> [u64; FIELDS] {
        let mut fields = self.layout().to_fields();
        fields[ITEMS_FIELD] = self.len();
        fields
    }

    fn saved_words(&self) -> &[u64] {
        self.words()
    }

    fn check(&(layout, items): &(Layout, u64), words: &[u64]) -> Result<(), Error> {
        S::validate(&View::new(layout, words, items))
    }

    fn from_saved((layout, items): (Layout, u64), words: AlignedWords<u64>) -> QuotientFilter<S> {
        QuotientFilter::from_parts(layout, words, items)
    }
}

/// Saving and loading.
impl<S: SlotKind> QuotientFilter<S> {
    /// Writes header and payload.
    pub fn write_to<W: Write>(&self, mut writer: W) -> Result<(), Error> {
        file::write_to(self, &mut writer)
    }

    /// Reads what [`QuotientFilter::write_to`] wrote, and not a byte more. Memory grows with what arrives, whatever the
    /// header claims.
    pub fn read_from<R: Read>(mut reader: R) -> Result<QuotientFilter<S>, Error> {
        file::read_from(&mut reader, 0)
    }

    /// The saved form in memory.
    pub fn to_bytes(&self) -> Vec<u8> {
        file::to_bytes(self)
    }

    /// Reads the saved form; bytes after its end are an error.
    pub fn from_bytes(bytes: &[u8]) -> Result<QuotientFilter<S>, Error> {
        file::from_bytes(bytes)
    }

    /// Writes a file: under another name first, then renamed, so that a reader never sees half of it.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        file::save(self, path.as_ref())
    }

    /// Reads a file.
    pub fn load(path: impl AsRef<Path>) -> Result<QuotientFilter<S>, Error> {
        file::load(path.as_ref())
    }
}

/// Views of saved bytes.
impl<'a, S: SlotKind> View<'a, S> {
    /// A filter in saved bytes, such as a memory-mapped file, without a copy: checks everything, checksum and slots
    /// included, for which it reads the bytes twice.
    ///
    /// The payload must be aligned to 8 bytes; it is in a mapping that starts at a page.
    ///
    /// ```
    /// use warpset_quotient::{StandardQuotientFilter, StandardView};
    ///
    /// let mut filter = StandardQuotientFilter::builder(10).build()?;
    /// filter.insert_bulk(&["a", "b"])?;
    /// let path = std::env::temp_dir().join("warpset-quotient-view.filter");
    /// filter.save(&path)?;
    ///
    /// let file: Vec<u64> = bytes_of(&std::fs::read(&path)?); // or memmap2::Mmap
    /// let view = StandardView::from_bytes(bytemuck::cast_slice(&file))?;
    /// assert!(view.contains("a"));
    /// # std::fs::remove_file(&path)?;
    /// # fn bytes_of(bytes: &[u8]) -> Vec<u64> { bytemuck::pod_collect_to_vec(bytes) }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_bytes(bytes: &'a [u8]) -> Result<View<'a, S>, Error> {
        file::view::<QuotientFilter<S>>(bytes).map(|((layout, items), words)| View::new(layout, words, items))
    }

    /// [`View::from_bytes`] without checksum and slots: opens in constant time and touches the header only. Damaged words
    /// make wrong answers, nothing worse.
    pub fn from_bytes_unverified(bytes: &'a [u8]) -> Result<View<'a, S>, Error> {
        file::view_unverified::<QuotientFilter<S>>(bytes)
            .map(|((layout, items), words)| View::new(layout, words, items))
    }
}

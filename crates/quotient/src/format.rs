//! Saved filters: the header of [`warpset_base::file`], then the words as they lie in memory.
//!
//! The parameters: `docs/formats.md`. A loader checks the slots too, not only the checksum: no bytes make a filter that
//! breaks its invariants.

use std::io::{Read, Write};
use std::path::Path;

use warpset_base::file::{self, FIELDS, FileError, Saved};
use warpset_base::words::AlignedWords;

use crate::slot_kind::{SlotKind, Tally};
use crate::{Error, Layout, QuotientFilter, View};

/// Which parameter is the number of fingerprints; the next one is the number of slots that they take, if they are counted.
const ITEMS_FIELD: usize = 6;

impl<S: SlotKind> Saved for QuotientFilter<S> {
    const STRUCTURE: u16 = S::STRUCTURE;
    const NAME: &'static str = S::NAME;
    type Word = u64;
    /// And what the filter holds.
    type Layout = (Layout, Tally);
    type Error = Error;

    fn layout_of(fields: [u64; FIELDS]) -> Result<(Layout, Tally), Error> {
        let invalid = |field, value| Err(FileError::InvalidHeader { field, value }.into());
        let layout = Layout::from_fields(fields)?;
        if !S::lies_in(layout.container) {
            return invalid("container", layout.container as u64);
        }
        if layout.is_counted() && !S::COUNTS {
            return invalid("duplicates", layout.duplicates as u64);
        }
        let (items, slots) = (fields[ITEMS_FIELD], fields[ITEMS_FIELD + 1]);
        let tally = if layout.is_counted() { Tally { copies: items, slots } } else { items.into() };
        if !layout.is_counted() && slots != 0 {
            return invalid("slots in use", slots);
        }
        if tally.slots > layout.limit() {
            return invalid("items", items);
        }
        Ok((layout, tally))
    }

    fn words_of((layout, _): &(Layout, Tally)) -> u64 {
        layout.words()
    }

    fn fields(&self) -> [u64; FIELDS] {
        let mut fields = self.layout().to_fields();
        fields[ITEMS_FIELD] = self.len();
        if self.layout().is_counted() {
            fields[ITEMS_FIELD + 1] = self.tally().slots;
        }
        fields
    }

    fn saved_words(&self) -> &[u64] {
        self.words()
    }

    fn check(&(layout, tally): &(Layout, Tally), words: &[u64]) -> Result<(), Error> {
        S::validate(&View::new(layout, words, tally))
    }

    fn from_saved((layout, tally): (Layout, Tally), words: AlignedWords<u64>) -> QuotientFilter<S> {
        QuotientFilter::from_parts(layout, words, tally)
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
        file::view::<QuotientFilter<S>>(bytes).map(|((layout, tally), words)| View::new(layout, words, tally))
    }

    /// [`View::from_bytes`] without checksum and slots: opens in constant time and touches the header only. Damaged words
    /// make wrong answers, nothing worse.
    pub fn from_bytes_unverified(bytes: &'a [u8]) -> Result<View<'a, S>, Error> {
        file::view_unverified::<QuotientFilter<S>>(bytes)
            .map(|((layout, tally), words)| View::new(layout, words, tally))
    }
}

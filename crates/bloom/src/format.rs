//! Saved filters: the header of [`warpset_base::file`], structures 1 to 3, then the words as they lie in memory.
//!
//! Parameters, by structure: `docs/formats.md`. The payload of a split-block filter is the Parquet bitset.

use std::io::{Read, Write};
use std::path::Path;

use warpset_base::file::{self, FIELDS, Saved};

use crate::cpu::Bloom;
use crate::{AlignedWords, Error, Layout, View};

pub(crate) mod parquet;
#[cfg(feature = "serde")]
mod serde;
mod velox;

impl<L: Layout> Saved for Bloom<L> {
    const STRUCTURE: u16 = L::STRUCTURE;
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

    fn saved_words(&self) -> &[u32] {
        self.words()
    }

    fn from_saved(layout: L, words: AlignedWords<u32>) -> Bloom<L> {
        Bloom::from_parts(layout, words)
    }
}

/// Saving and loading.
impl<L: Layout> Bloom<L> {
    /// Writes header and payload.
    pub fn write_to<W: Write>(&self, mut writer: W) -> Result<(), Error> {
        file::write_to(self, &mut writer)
    }

    /// Reads what [`Bloom::write_to`] wrote, and no byte after it. Memory grows with what arrives, whatever the header
    /// claims.
    pub fn read_from<R: Read>(mut reader: R) -> Result<Bloom<L>, Error> {
        file::read_from(&mut reader, 0)
    }

    /// The saved form in memory.
    pub fn to_bytes(&self) -> Vec<u8> {
        file::to_bytes(self)
    }

    /// Reads the saved form; bytes after its end are an error.
    pub fn from_bytes(bytes: &[u8]) -> Result<Bloom<L>, Error> {
        file::from_bytes(bytes)
    }

    /// Writes a file: under another name first, then renamed, so that a reader never sees half of it.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        file::save(self, path.as_ref())
    }

    /// Reads a file.
    pub fn load(path: impl AsRef<Path>) -> Result<Bloom<L>, Error> {
        file::load(path.as_ref())
    }
}

/// Views of saved bytes.
impl<'a, L: Layout> View<'a, L> {
    /// A filter in saved bytes, such as a memory-mapped file, without a copy: checks everything, the checksum included,
    /// for which it reads the bytes once.
    ///
    /// The payload must be aligned to 4 bytes; it is in a mapping that starts at a page, or any allocation that starts
    /// at a multiple of 4.
    ///
    /// ```
    /// use warpset_bloom::{SplitBlockBloom, SplitBlockLayout, View};
    ///
    /// let filter: SplitBlockBloom = ["a", "b"].into_iter().collect();
    /// let file = filter.to_bytes(); // or memmap2::Mmap
    /// let view = View::<SplitBlockLayout>::from_bytes(&file)?;
    /// assert!(view.contains("a"));
    /// # Ok::<(), warpset_bloom::Error>(())
    /// ```
    pub fn from_bytes(bytes: &'a [u8]) -> Result<View<'a, L>, Error> {
        file::view::<Bloom<L>>(bytes).map(|(layout, words)| View::new(layout, bytemuck::cast_slice(words)))
    }

    /// [`View::from_bytes`] without the checksum: opens in constant time and touches the header only. Damaged words make
    /// wrong answers, nothing worse.
    pub fn from_bytes_unverified(bytes: &'a [u8]) -> Result<View<'a, L>, Error> {
        file::view_unverified::<Bloom<L>>(bytes).map(|(layout, words)| View::new(layout, bytemuck::cast_slice(words)))
    }
}

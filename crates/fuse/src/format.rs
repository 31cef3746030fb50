//! Saved filters: the header of [`warpset_base::file`], then the words as they lie in memory.
//!
//! The parameters: `docs/formats.md`. Any words are those of some filter, so that the checksum is all there is to
//! check.

use warpset_base::file::{self, FIELDS, FileKind, Payload, Saved};
use warpset_base::words::AlignedWords;

use crate::width::Width;
use crate::{BinaryFuse, Error, Layout, View};

impl<F: Width> Saved for BinaryFuse<F> {
    const STRUCTURE: FileKind = F::STRUCTURE;
    const NAME: &'static str = F::NAME;
    type Word = u64;
    type Layout = Layout;
    type Error = Error;

    fn layout_of(fields: [u64; FIELDS]) -> Result<Layout, Error> {
        Layout::from_fields(F::BITS..=F::BITS, 0..=0, fields)
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

    fn from_saved(layout: Layout, words: AlignedWords<u64>) -> Result<BinaryFuse<F>, Error> {
        Ok(BinaryFuse::from_parts(layout, words))
    }
}

warpset_base::saved_methods! {
    [F: Width] BinaryFuse<F>, Error;
}

/// Views of saved bytes.
impl<'a, F: Width> View<'a, F> {
    /// Views a filter in saved bytes, without a copy ([`map`](BinaryFuse::map) does the same with a file). Checks
    /// everything and reads the bytes once.
    ///
    /// The payload must be aligned to 8 bytes; it is in a mapping that starts at a page.
    ///
    /// ```
    /// use warpset_fuse::{BinaryFuse8, BinaryFuse8View};
    ///
    /// let saved = BinaryFuse8::builder().build_from(&["a", "b"])?.to_bytes();
    /// let words: Vec<u64> = bytemuck::pod_collect_to_vec(&saved); // at a multiple of 8
    /// let view = BinaryFuse8View::from_bytes(bytemuck::cast_slice(&words))?;
    /// assert!(view.contains("a"));
    /// # Ok::<(), warpset_fuse::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::File`] if the bytes are not such a filter, are damaged or not aligned.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<View<'a, F>, Error> {
        file::view::<BinaryFuse<F>>(bytes).map(|(layout, words)| View::new(layout, words))
    }

    /// Views saved bytes without the checksum: opens in constant time and reads the header only. Damaged words give
    /// wrong answers, nothing worse. See [`View::from_bytes`].
    ///
    /// # Errors
    /// [`Error::File`] if the header is not that of such a filter, or the bytes are too few or not aligned.
    pub fn from_bytes_unverified(bytes: &'a [u8]) -> Result<View<'a, F>, Error> {
        file::view_unverified::<BinaryFuse<F>>(bytes).map(|(layout, words)| View::new(layout, words))
    }
}

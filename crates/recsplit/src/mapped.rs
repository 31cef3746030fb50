//! Saved structures in memory-mapped files.

use crate::query::{Lookup, Parameters};
use crate::static_filter::{self, StaticFilterView};
use crate::storage::as_words;
use crate::view::function_methods;
use crate::{Error, RecSplit, StaticFilter, View};
use std::fs::File;
use std::path::Path;
use warpset_base::file::FileError;

/// A mapped file of words.
struct Words(memmap2::Mmap);

impl Words {
    /// # Safety
    /// - The file is not changed or cut while the words are there.
    unsafe fn map(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(FileError::from)?;
        // SAFETY: the caller keeps the file as it is.
        let map = unsafe { memmap2::Mmap::map(&file).map_err(FileError::from)? };
        as_words(&map)?;
        Ok(Self(map))
    }

    #[inline]
    fn get(&self) -> &[u64] {
        // `map` checked length and alignment; a mapping does not move.
        bytemuck::try_cast_slice(&self.0).unwrap_or(&[])
    }
}

/// A function in a memory-mapped file, made by [`RecSplit::map`].
pub struct MappedRecSplit {
    words: Words,
    parameters: Parameters,
}

impl RecSplit {
    /// Maps a saved function into memory: nothing is copied, and processes share the memory. The whole file is read once, for its
    /// checksum.
    ///
    /// # Safety
    /// - No process changes or cuts the file until the function is dropped.
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<MappedRecSplit, Error> {
        // SAFETY: the caller keeps the file as it is.
        let words = unsafe { Words::map(path.as_ref())? };
        let parameters = Parameters::of(words.get())?;
        Ok(MappedRecSplit { words, parameters })
    }
}

impl MappedRecSplit {
    /// The function, borrowed.
    pub fn view(&self) -> View<'_> {
        View::of(self.words.get(), &self.parameters)
    }

    /// The words, in the saved form.
    pub fn words(&self) -> &[u64] {
        self.words.get()
    }

    #[inline(always)]
    fn lookup(&self) -> Lookup<'_> {
        Lookup { words: self.words.get(), parameters: &self.parameters }
    }
}

function_methods!([] MappedRecSplit);

/// A filter in a memory-mapped file, made by [`StaticFilter::map`].
pub struct MappedStaticFilter {
    words: Words,
    parameters: static_filter::Parameters,
}

impl StaticFilter {
    /// Maps a saved filter into memory: nothing is copied, and processes share the memory. The whole file is read once, for its
    /// checksum.
    ///
    /// # Safety
    /// - No process changes or cuts the file until the filter is dropped.
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<MappedStaticFilter, Error> {
        // SAFETY: the caller keeps the file as it is.
        let words = unsafe { Words::map(path.as_ref())? };
        let parameters = static_filter::Parameters::of(words.get())?;
        Ok(MappedStaticFilter { words, parameters })
    }
}

impl MappedStaticFilter {
    /// The filter, borrowed.
    pub fn view(&self) -> StaticFilterView<'_> {
        StaticFilterView::of(self.words.get(), &self.parameters)
    }

    /// The words, in the saved form.
    pub fn words(&self) -> &[u64] {
        self.words.get()
    }

    #[inline(always)]
    fn lookup(&self) -> static_filter::Lookup<'_> {
        static_filter::Lookup { words: self.words.get(), parameters: &self.parameters }
    }
}

static_filter::filter_methods!([] MappedStaticFilter);

//! Saving, loading, mapping.

use crate::format::{self, COMMON_WORDS};
use crate::function::Words;
use crate::{Error, RecSplit};
use bytemuck::{cast_slice, cast_slice_mut};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use warpset_base::file::{self, FileError, HEADER_BYTES};

/// Writes words as they lie in memory.
pub(crate) fn write_words(words: &[u64], mut to: impl Write) -> Result<(), Error> {
    to.write_all(cast_slice(words)).map_err(FileError::from)?;
    Ok(())
}

/// Reads a whole structure, and not a byte more. Memory grows with what is really there, whatever the header claims.
pub(crate) fn read_words(mut from: impl Read, structure: u16) -> Result<Vec<u64>, Error> {
    /// Words read at a time.
    const CHUNK: usize = 1 << 16;
    let mut words = vec![0; COMMON_WORDS];
    file::read_exact(&mut from, cast_slice_mut(&mut words), 0, HEADER_BYTES as u64)?;
    let payload = format::parse_common(&words, structure)?.payload_bytes;
    let needed = HEADER_BYTES as u64 + payload;
    let mut left = payload / 8;
    while left > 0 {
        let begin = words.len();
        let now = left.min(CHUNK as u64);
        words.resize(begin + now as usize, 0);
        file::read_exact(&mut from, cast_slice_mut(&mut words[begin..]), 8 * begin as u64, needed)?;
        left -= now;
    }
    Ok(words)
}

/// Saving.
impl<W: Words> RecSplit<W> {
    /// Writes the function in the form that `docs/formats.md` describes.
    pub fn write_to(&self, to: impl Write) -> Result<(), Error> {
        write_words(self.as_words(), to)
    }

    /// The saved form in memory.
    pub fn to_bytes(&self) -> Vec<u8> {
        cast_slice(self.as_words()).to_vec()
    }

    /// Writes a file: under another name first, then renamed, so that a reader never sees half of it.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        file::replace(path.as_ref(), |file| self.write_to(file))
    }
}

/// Loading.
impl RecSplit {
    /// Reads what [`RecSplit::write_to`] wrote, and not a byte more. Memory grows with what arrives, whatever the header
    /// claims.
    pub fn read_from(from: impl Read) -> Result<Self, Error> {
        Self::from_words(read_words(from, format::STRUCTURE)?)
    }

    /// Reads a file.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        file::whole(path.as_ref(), |file, _| Self::read_from(file))
    }
}

/// Views of saved bytes.
impl<'a> RecSplit<&'a [u64]> {
    /// Opens bytes of a saved function without copying them. They must lie at an address that is a multiple of 8.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, Error> {
        Self::from_words(as_words(bytes)?)
    }
}

/// Bytes as the words that they are.
fn as_words(bytes: &[u8]) -> Result<&[u64], FileError> {
    let whole = &bytes[..bytes.len() - bytes.len() % 8];
    let words = bytemuck::try_cast_slice(whole).map_err(|_| FileError::Misaligned { alignment: 8 })?;
    if whole.len() < bytes.len() {
        let needed = bytes.len().next_multiple_of(8) as u64;
        return Err(FileError::Truncated { needed, found: bytes.len() as u64 });
    }
    Ok(words)
}

/// A memory-mapped file of words.
#[derive(Debug)]
pub struct Mapped(memmap2::Mmap);

impl Words for Mapped {
    #[inline]
    fn words(&self) -> &[u64] {
        // `open` checked length and alignment; a mapping does not move.
        bytemuck::try_cast_slice(&self.0).unwrap_or(&[])
    }
}

impl RecSplit<Mapped> {
    /// Maps a saved function into memory: nothing is copied, and processes share the memory. The whole file is read once, for its
    /// checksum.
    ///
    /// # Safety
    /// The file must not be changed or cut while the function lives.
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<Self, Error> {
        let file = File::open(path).map_err(FileError::from)?;
        // SAFETY: the caller keeps the file as it is.
        let map = unsafe { memmap2::Mmap::map(&file).map_err(FileError::from)? };
        as_words(&map)?;
        Self::from_words(Mapped(map))
    }
}

/// Serde: the saved form as bytes.
#[cfg(feature = "serde")]
mod serde_impl {
    use super::*;
    use crate::StaticFilter;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    impl<W: Words> Serialize for RecSplit<W> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_bytes(cast_slice(self.as_words()))
        }
    }

    impl Serialize for StaticFilter {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_bytes(&self.to_bytes())
        }
    }

    impl<'de> Deserialize<'de> for RecSplit {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RecSplit, D::Error> {
            file::deserialize_with(deserializer, "RecSplit function", |bytes| RecSplit::read_from(bytes))
        }
    }
    impl<'de> Deserialize<'de> for StaticFilter {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<StaticFilter, D::Error> {
            file::deserialize_with(deserializer, "static filter", |bytes| StaticFilter::read_from(bytes))
        }
    }
}

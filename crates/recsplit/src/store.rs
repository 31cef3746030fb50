//! Saving, loading, mapping.

use crate::format;
use crate::function::Words;
use crate::{Error, RecSplit};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

/// Writes words as little-endian bytes.
pub(crate) fn write_words(words: &[u64], mut to: impl Write) -> Result<(), Error> {
    if cfg!(target_endian = "little") {
        to.write_all(bytemuck::cast_slice(words))?;
    } else {
        for word in words {
            to.write_all(&word.to_le_bytes())?;
        }
    }
    Ok(())
}

/// Reads `count` words. Memory grows with what is really there, whatever `count` says.
pub(crate) fn read_words(mut from: impl Read, count: u64, words: &mut Vec<u64>) -> Result<(), Error> {
    /// Words read at a time.
    const CHUNK: u64 = 1 << 16;
    let mut left = count;
    while left > 0 {
        let begin = words.len();
        let now = left.min(CHUNK);
        words.resize(begin + now as usize, 0);
        from.read_exact(bytemuck::cast_slice_mut(&mut words[begin..])).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => Error::InvalidFormat("it ends too early"),
            _ => Error::Io(error),
        })?;
        for word in &mut words[begin..] {
            *word = u64::from_le(*word);
        }
        left -= now;
    }
    Ok(())
}

impl<W: Words> RecSplit<W> {
    /// Writes the function; [`RecSplit::load`] reads it. The form is described in `docs/formats.md`.
    pub fn save(&self, to: impl Write) -> Result<(), Error> {
        write_words(self.as_words(), to)
    }
}

impl RecSplit {
    /// Reads a function that [`RecSplit::save`] wrote, and nothing behind it. Damaged or hostile bytes are an error; memory
    /// for them is not taken before they are there.
    pub fn load(mut from: impl Read) -> Result<Self, Error> {
        let mut words = Vec::new();
        read_words(&mut from, format::COMMON_WORDS as u64, &mut words)?;
        let payload = format::check_preamble(&words, format::STRUCTURE)?;
        read_words(from, payload, &mut words)?;
        Self::from_words(words)
    }
}

impl<'a> RecSplit<&'a [u64]> {
    /// Opens bytes of a saved function without copying them. They must lie at an address that is a multiple of 8, on a
    /// little-endian machine.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, Error> {
        let words = bytemuck::try_cast_slice(bytes)
            .map_err(|_| Error::InvalidFormat("the bytes are not aligned whole words"))?;
        if cfg!(target_endian = "big") {
            return Err(Error::InvalidFormat("a big-endian machine must load, it cannot map"));
        }
        Self::from_words(words)
    }
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
    /// Maps a saved function into memory: nothing is copied, and processes share the memory.
    ///
    /// # Safety
    /// The file must not be changed or cut while the function lives.
    pub unsafe fn map(path: &Path) -> Result<Self, Error> {
        if cfg!(target_endian = "big") {
            return Err(Error::InvalidFormat("a big-endian machine must load, it cannot map"));
        }
        // SAFETY: the caller keeps the file as it is.
        let map = unsafe { memmap2::Mmap::map(&File::open(path)?)? };
        if map.len() % 8 != 0 {
            return Err(Error::InvalidFormat("it has no whole number of words"));
        }
        Self::from_words(Mapped(map))
    }
}

/// Serde: the saved form as bytes.
#[cfg(feature = "serde")]
mod serde_impl {
    use super::*;
    use serde::de::{self, SeqAccess, Visitor};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    impl<W: Words> Serialize for RecSplit<W> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let bytes: Vec<u8> = self.as_words().iter().flat_map(|word| word.to_le_bytes()).collect();
            serializer.serialize_bytes(&bytes)
        }
    }

    impl<'de> Deserialize<'de> for RecSplit {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Bytes;
            impl<'de> Visitor<'de> for Bytes {
                type Value = RecSplit;

                fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                    f.write_str("the bytes of a saved RecSplit function")
                }

                fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<RecSplit, E> {
                    RecSplit::load(bytes).map_err(E::custom)
                }

                fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<RecSplit, A::Error> {
                    let mut bytes = Vec::new();
                    while let Some(byte) = seq.next_element::<u8>()? {
                        bytes.push(byte);
                    }
                    self.visit_bytes(&bytes)
                }
            }
            deserializer.deserialize_bytes(Bytes)
        }
    }
}

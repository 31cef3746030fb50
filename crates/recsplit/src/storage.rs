//! Saving and loading: structures whose words are their saved form.

use crate::Error;
use crate::format::{self, COMMON_WORDS};
use bytemuck::cast_slice_mut;
use std::io::Read;
use warpset_base::file::{self, FileError, HEADER_BYTES};

/// Reads the words of a whole structure, and not a byte more. Memory grows with what arrives, whatever the header claims.
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

/// Bytes as the words that they are.
pub(crate) fn as_words(bytes: &[u8]) -> Result<&[u64], FileError> {
    let whole = &bytes[..bytes.len() - bytes.len() % 8];
    let words = bytemuck::try_cast_slice(whole).map_err(|_| FileError::Misaligned { alignment: 8 })?;
    if whole.len() < bytes.len() {
        let needed = bytes.len().next_multiple_of(8) as u64;
        return Err(FileError::Truncated { needed, found: bytes.len() as u64 });
    }
    Ok(words)
}

/// Saving and loading of a structure that has `words` and `from_words`; its number in headers, and its name in messages.
macro_rules! saving {
    ($structure:ty, $number:expr, $name:literal) => {
        /// Saving and loading.
        impl $structure {
            /// Writes the saved form, which `docs/formats.md` describes.
            pub fn write_to(&self, mut to: impl std::io::Write) -> Result<(), $crate::Error> {
                to.write_all(bytemuck::cast_slice(self.words())).map_err(warpset_base::file::FileError::from)?;
                Ok(())
            }

            /// Reads what `write_to` wrote, and not a byte more. Memory grows with what arrives, whatever the header
            /// claims.
            pub fn read_from(from: impl std::io::Read) -> Result<Self, $crate::Error> {
                Self::from_words($crate::storage::read_words(from, $number)?)
            }

            /// The saved form in memory.
            pub fn to_bytes(&self) -> Vec<u8> {
                bytemuck::cast_slice(self.words()).to_vec()
            }

            /// Copies the saved form, which may lie at any address.
            pub fn from_bytes(mut bytes: &[u8]) -> Result<Self, $crate::Error> {
                let structure = Self::read_from(&mut bytes)?;
                match bytes.len() as u64 {
                    0 => Ok(structure),
                    extra => Err(warpset_base::file::FileError::TrailingBytes { extra }.into()),
                }
            }

            /// Writes a file: under another name first, then renamed, so that a reader never sees half of it.
            pub fn save(&self, path: impl AsRef<std::path::Path>) -> Result<(), $crate::Error> {
                warpset_base::file::replace(path.as_ref(), |file| self.write_to(file))
            }

            /// Reads a file.
            pub fn load(path: impl AsRef<std::path::Path>) -> Result<Self, $crate::Error> {
                warpset_base::file::whole(path.as_ref(), |file, _| Self::read_from(file))
            }
        }

        #[cfg(feature = "serde")]
        impl serde::Serialize for $structure {
            /// The saved form as bytes.
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_bytes(bytemuck::cast_slice(self.words()))
            }
        }

        #[cfg(feature = "serde")]
        impl<'de> serde::Deserialize<'de> for $structure {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                warpset_base::file::deserialize_with(deserializer, $name, |bytes| Self::read_from(bytes))
            }
        }
    };
}
pub(crate) use saving;

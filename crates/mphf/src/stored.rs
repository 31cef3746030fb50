//! Immutable structures as the words of their saved form: owned, borrowed, or in a mapped file.

use crate::Error;
use crate::format::{self, COMMON_WORDS};
use bytemuck::{cast_slice, cast_slice_mut};
use std::fmt;
use std::io::{Read, Write};
use std::path::Path;
#[cfg(feature = "mmap")]
use warpset_base::file::MappedWords;
use warpset_base::file::{self, FileError, HEADER_BYTES};

/// Contents of stored words: a [`Function`](crate::Function), or [`Fingerprints`](crate::Fingerprints) after one.
/// Sealed.
pub trait StoredParts: sealed::StoredParts {}

pub(crate) mod sealed {
    use super::*;

    pub trait StoredParts: 'static {
        /// Number in headers, with the version of the format.
        const STRUCTURE: file::FileKind;
        /// Name in messages: "static filter".
        const NAME: &'static str;
        /// Fields of the header, and tables derived from them.
        type Parameters: Clone + Send + Sync;

        /// Parses the words of a whole structure. Everything but the checksum is checked. Damaged words that pass give
        /// wrong answers, but do no harm.
        fn parse(words: &[u64]) -> Result<Self::Parameters, FileError>;

        /// Returns the number of keys.
        fn keys(parameters: &Self::Parameters) -> u64;

        /// Returns the seed of the keys' hash.
        fn seed(parameters: &Self::Parameters) -> u64;

        /// Shows the parameters.
        fn debug(parameters: &Self::Parameters, f: &mut fmt::DebugStruct<'_, '_>);
    }
}

/// Immutable structure as the words of its saved form in `W`: `Vec<u64>` owns them, `&[u64]` borrows them, and `Mapped`
/// is a memory-mapped file. All have the same lookups.
///
/// [`PerfectHash`](crate::PerfectHash) and [`StaticFilter`](crate::StaticFilter) are the structures.
pub struct StoredFunction<S: StoredParts, W = Vec<u64>> {
    words: W,
    parameters: S::Parameters,
}

/// The words of a saved structure in a memory-mapped file.
#[cfg(feature = "mmap")]
pub type Mapped = MappedWords<u64>;

impl<S: StoredParts, W: AsRef<[u64]>> StoredFunction<S, W> {
    /// Opens the words of any storage without copying them. They are checked: damaged or foreign words are an error.
    /// Even words made to pass the checks can only give wrong numbers within the valid range. (Words in device memory
    /// may lack their checksums and fail the check: `to_host` of a structure on a device computes them.)
    ///
    /// # Errors
    /// [`Error::WordCount`] for too few or too many words; [`Error::File`].
    pub fn from_words(words: W) -> Result<Self, Error> {
        let found = words.as_ref().len() as u64;
        // Errors that speak of files are replaced.
        Self::verified(words).map_err(|error| match error {
            FileError::Truncated { needed, .. } => Error::WordCount { needed: needed / 8, found },
            FileError::TrailingBytes { extra } => Error::WordCount { needed: found - extra / 8, found },
            other => other.into(),
        })
    }

    fn verified(words: W) -> Result<Self, FileError> {
        let stored = Self::unverified(words)?;
        format::verify(stored.words())?;
        Ok(stored)
    }

    fn unverified(words: W) -> Result<Self, FileError> {
        let parameters = S::parse(words.as_ref())?;
        Ok(Self { words, parameters })
    }

    /// Joins words and the parameters that describe them.
    pub(crate) fn trusted(words: W, parameters: S::Parameters) -> Self {
        Self { words, parameters }
    }

    #[inline(always)]
    pub(crate) fn parameters(&self) -> &S::Parameters {
        &self.parameters
    }

    /// Borrows the structure.
    pub fn view(&self) -> StoredFunction<S, &[u64]> {
        StoredFunction { words: self.words(), parameters: self.parameters.clone() }
    }

    /// Returns the words, in the saved form.
    #[inline(always)]
    pub fn words(&self) -> &[u64] {
        self.words.as_ref()
    }

    /// Returns the number of keys.
    pub fn len(&self) -> u64 {
        S::keys(&self.parameters)
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the seed of the keys' hash.
    pub fn seed(&self) -> u64 {
        S::seed(&self.parameters)
    }

    /// Returns the bytes of the words, without the table that functions of one shape share in memory.
    pub fn memory_bytes(&self) -> u64 {
        size_of_val(self.words()) as u64
    }

    /// Returns the bits of the words per key.
    pub fn bits_per_key(&self) -> f64 {
        self.memory_bytes() as f64 * 8.0 / self.len().max(1) as f64
    }

    /// Writes the saved form, which `docs/formats.md` describes.
    ///
    /// # Errors
    /// [`Error::File`] if `to` fails.
    pub fn write_to(&self, mut to: impl Write) -> Result<(), Error> {
        to.write_all(cast_slice(self.words())).map_err(FileError::from)?;
        Ok(())
    }

    /// Returns the saved form as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        cast_slice(self.words()).to_vec()
    }

    /// Writes a file. An existing regular file, also behind a link, is replaced at once, so a reader never sees half of
    /// it; a pipe or a device gets the bytes as they are written.
    ///
    /// # Errors
    /// [`Error::File`] with the path and the system's reason.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        file::replace(path.as_ref(), |file| self.write_to(file))
    }
}

impl<S: StoredParts> StoredFunction<S> {
    pub(crate) fn into_parts(self) -> (Vec<u64>, S::Parameters) {
        (self.words, self.parameters)
    }

    /// Reads exactly the bytes that [`write_to`](Self::write_to) wrote. Memory grows with the bytes that arrive,
    /// whatever the header claims.
    ///
    /// # Errors
    /// [`Error::File`]: these are not the bytes of such a structure, or reading failed.
    pub fn read_from(from: impl Read) -> Result<Self, Error> {
        Ok(Self::verified(read_words(from, S::STRUCTURE)?)?)
    }

    /// Copies the saved form from bytes at any address.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn from_bytes(mut bytes: &[u8]) -> Result<Self, Error> {
        let structure = Self::read_from(&mut bytes)?;
        match bytes.len() as u64 {
            0 => Ok(structure),
            extra => Err(FileError::TrailingBytes { extra }.into()),
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`Error::File`] with the path and what is wrong.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        file::whole(path.as_ref(), |file, _| Self::read_from(file))
    }
}

/// Saved structures in memory-mapped files.
#[cfg(feature = "mmap")]
impl<S: StoredParts> StoredFunction<S> {
    /// Maps a saved structure into memory: nothing is copied, and processes share the memory. Reads the whole file
    /// once, for its checksum.
    ///
    /// ```
    /// use warpset_mphf::RecSplit;
    ///
    /// let path = std::env::temp_dir().join("warpset-mphf-map.warpset");
    /// let function = RecSplit::builder().build_from(&["a", "b"])?;
    /// function.save(&path)?;
    /// // SAFETY: no process changes the file as long as it is mapped; `save` would replace it.
    /// let mapped = unsafe { RecSplit::map(&path)? };
    /// assert_eq!(mapped.get("b"), function.get("b"));
    /// # std::fs::remove_file(&path).ok();
    /// # Ok::<(), warpset_mphf::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::File`] with the path and what is wrong.
    ///
    /// # Safety
    /// - No process changes or truncates the file until the result is dropped. Replacing it, as `save` does, or
    ///   removing it is allowed: the map keeps the old file.
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<StoredFunction<S, Mapped>, Error> {
        // SAFETY: the file stays unchanged until the result is dropped, by this function's contract.
        unsafe { Self::map_as(path.as_ref(), StoredFunction::verified) }
    }

    /// Maps like [`map`](Self::map), without the checksum: opens in constant time and reads the header only. Damaged
    /// words give wrong answers, nothing worse.
    ///
    /// # Errors
    /// [`Error::File`] with the path and what is wrong.
    ///
    /// # Safety
    /// - As for [`map`](Self::map).
    pub unsafe fn map_unverified(path: impl AsRef<Path>) -> Result<StoredFunction<S, Mapped>, Error> {
        // SAFETY: the file stays unchanged until the result is dropped, by this function's contract.
        unsafe { Self::map_as(path.as_ref(), StoredFunction::unverified) }
    }

    /// Maps a file, and opens it by `stored`.
    ///
    /// # Safety
    /// No process changes or truncates the file until the structure is dropped.
    unsafe fn map_as(
        path: &Path,
        stored: fn(Mapped) -> Result<StoredFunction<S, Mapped>, FileError>,
    ) -> Result<StoredFunction<S, Mapped>, Error> {
        Ok(file::at_path(path, "map", || {
            // SAFETY: the file stays unchanged until the map is dropped, by this function's contract.
            let map = unsafe { Mapped::open(path)? };
            as_words(map.bytes(), S::STRUCTURE)?;
            stored(map)
        })?)
    }
}

impl<'a, S: StoredParts> StoredFunction<S, &'a [u64]> {
    /// Opens the bytes of the saved form without copying them; they are checked as in [`from_words`](Self::from_words).
    /// Their address must be a multiple of 8.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, Error> {
        Ok(Self::verified(as_words(bytes, S::STRUCTURE)?)?)
    }

    /// Opens like [`from_bytes`](Self::from_bytes), without the checksum: reads the header only. Damaged words give
    /// wrong answers, nothing worse.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn from_bytes_unverified(bytes: &'a [u8]) -> Result<Self, Error> {
        Ok(Self::unverified(as_words(bytes, S::STRUCTURE)?)?)
    }
}

impl<S: StoredParts, W: Clone> Clone for StoredFunction<S, W> {
    fn clone(&self) -> Self {
        Self { words: self.words.clone(), parameters: self.parameters.clone() }
    }
}

/// Compares bit for bit.
impl<S: StoredParts, W: AsRef<[u64]>> PartialEq for StoredFunction<S, W> {
    fn eq(&self, other: &Self) -> bool {
        self.words() == other.words()
    }
}

impl<S: StoredParts, W: AsRef<[u64]>> fmt::Debug for StoredFunction<S, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct(S::NAME);
        f.field("len", &self.len());
        S::debug(&self.parameters, &mut f);
        f.finish_non_exhaustive()
    }
}

#[cfg(feature = "serde")]
impl<S: StoredParts, W: AsRef<[u64]>> serde::Serialize for StoredFunction<S, W> {
    /// Serialises the saved form as bytes.
    fn serialize<T: serde::Serializer>(&self, serializer: T) -> Result<T::Ok, T::Error> {
        serializer.serialize_bytes(cast_slice(self.words()))
    }
}

#[cfg(feature = "serde")]
impl<'de, S: StoredParts> serde::Deserialize<'de> for StoredFunction<S> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        file::deserialize_with(deserializer, S::NAME, |bytes| Self::read_from(bytes))
    }
}

/// Reads exactly the words of a whole structure. Memory grows with the bytes that arrive, whatever the header claims.
fn read_words(mut from: impl Read, structure: file::FileKind) -> Result<Vec<u64>, Error> {
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

/// Casts bytes to words. Bytes that end within a word are cut, or belong to another structure.
fn as_words(bytes: &[u8], structure: file::FileKind) -> Result<&[u64], FileError> {
    let whole = &bytes[..bytes.len() - bytes.len() % 8];
    let words = bytemuck::try_cast_slice(whole).map_err(|_| FileError::Misaligned { alignment: 8 })?;
    if whole.len() < bytes.len() {
        format::parse_common(words, structure)?;
        let needed = bytes.len().next_multiple_of(8) as u64;
        return Err(FileError::Truncated { needed, found: bytes.len() as u64 });
    }
    Ok(words)
}

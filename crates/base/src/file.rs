//! Saved structures: a header of 128 bytes, then the words as they lie in memory.
//!
//! ```text
//!    0  magic "WARPSET\0"                     8 bytes
//!    8  version of the structure's format     u16
//!   10  structure                             u16
//!   12  header bytes, 128                     u32
//!   16  payload bytes                         u64
//!   24  parameters                            8 x u64
//!   88  zero                                  32 bytes
//!  120  XXH3-64 of bytes 0..120 and payload   u64
//!  128  payload: the words
//! ```
//!
//! All little-endian. Numbers and parameters of the structures: `docs/formats.md`.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use bytemuck::Pod;
use xxhash_rust::xxh3::Xxh3;

use crate::words::AlignedWords;

mod call;
mod error;
mod file_kind;
#[cfg(feature = "mmap")]
mod map;
mod payload;
mod reader;
mod replace;
#[cfg(feature = "serde")]
mod serde;
mod together;
pub use call::{CallFiles, SameFile};
pub use error::{FileError, SavedError, at_path};
pub use file_kind::{BYTE_STRING, FLOAT, FileKind, SIGNED, SavedType};
#[cfg(feature = "mmap")]
pub use map::{InMap, MappedWords, map};
pub use payload::Payload;
use payload::{save_payload, write_payload_to};
pub use reader::PayloadReader;
pub use replace::{Replacement, abandon, replace};
#[cfg(feature = "serde")]
pub use serde::{deserialize, deserialize_with, serialize};

/// Bytes of the header; the payload starts here, so that it is aligned in a memory-mapped file.
pub const HEADER_BYTES: usize = 128;
/// Parameters in a header.
pub const FIELDS: usize = 8;

const MAGIC: [u8; 8] = *b"WARPSET\0";
/// Offset of the checksum, which covers all bytes before it, and the payload.
const CHECKSUM_AT: usize = 120;
/// Reading from a stream grows the memory from this size on, so that a header alone cannot make it large.
const FIRST_READ_BYTES: u64 = 1 << 20;

/// Size in bytes from which on words use huge pages, because they are accessed at random.
const HUGE_BYTES: u64 = 1 << 25;

/// A structure that can be saved: words, and parameters that determine their number and meaning.
pub trait Saved: Sized {
    /// Its number in headers, with the version of its format.
    const STRUCTURE: FileKind;
    /// For messages: "split-block Bloom filter".
    const NAME: &'static str;
    /// Word type of the payload.
    type Word: Pod;
    /// The parameters, checked.
    type Layout: Copy;
    /// The errors of the structure.
    type Error: SavedError;

    /// Checks the parameters of a header and converts them.
    ///
    /// # Errors
    /// [`FileError::InvalidHeader`], and the structure's own errors.
    fn layout_of(fields: [u64; FIELDS]) -> Result<Self::Layout, Self::Error>;
    /// Returns the number of words of a structure with these parameters.
    fn words_of(layout: &Self::Layout) -> u64;
    /// Returns the parameters for the header.
    fn fields(&self) -> [u64; FIELDS];
    /// Returns the words as they are saved, in one piece of memory or in several.
    fn payload(&self) -> impl Payload + '_;
    /// Whether these can be the words of such a structure, for structures that can tell beyond the checksum.
    ///
    /// # Errors
    /// The structure's error for words that it cannot have produced.
    fn check(_layout: &Self::Layout, _words: &[Self::Word]) -> Result<(), Self::Error> {
        Ok(())
    }
    /// Puts a structure together; [`Saved::check`] has passed.
    ///
    /// # Errors
    /// If there is no memory for it.
    fn from_saved(layout: Self::Layout, words: AlignedWords<Self::Word>) -> Result<Self, Self::Error>;
    /// Reads the payload, verifies and checks it, and builds the structure. Structures whose parts have memory of their
    /// own read each part into it, so that the payload is never in memory twice.
    ///
    /// # Errors
    /// The errors of [`read_from`].
    fn read(layout: Self::Layout, payload: &mut PayloadReader<'_>) -> Result<Self, Self::Error> {
        let words = payload.words(Self::words_of(&layout))?;
        payload.verify()?;
        Self::check(&layout, words.as_slice())?;
        Self::from_saved(layout, words)
    }
}

/// A header's bytes.
pub type HeaderBytes = [u8; HEADER_BYTES];

const fn word_bytes<S: Saved>() -> u64 {
    size_of::<S::Word>() as u64
}

/// Contents of every header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes after the header.
    pub payload_bytes: u64,
    /// The parameters.
    pub fields: [u64; FIELDS],
    /// The checksum, [`Header::checksum_of`] if nothing is damaged.
    pub checksum: u64,
}

impl Header {
    /// Reads a header of this structure; the checksum is not compared.
    ///
    /// # Errors
    /// [`FileError::BadMagic`], [`FileError::WrongStructure`], [`FileError::UnsupportedVersion`],
    /// [`FileError::InvalidHeader`].
    pub fn parse(bytes: &HeaderBytes, structure: FileKind) -> Result<Header, FileError> {
        let invalid = |field, value| Err(FileError::InvalidHeader { field, value });
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        if bytes[..8] != MAGIC {
            return Err(FileError::BadMagic);
        }
        let found = u16_at(10);
        let fields = std::array::from_fn(|i| u64_at(24 + 8 * i));
        if found != structure.number {
            return Err(FileKind::mismatch(structure, found, fields));
        }
        let version = u16_at(8);
        if version != structure.version {
            return Err(FileError::UnsupportedVersion { found: version, supported: structure.version });
        }
        let header_bytes = u64_at(12) as u32 as u64;
        if header_bytes != HEADER_BYTES as u64 {
            return invalid("header bytes", header_bytes);
        }
        if let Some(&value) = bytes[88..CHECKSUM_AT].iter().find(|&&b| b != 0) {
            return invalid("reserved bytes", value as u64);
        }
        Ok(Header { payload_bytes: u64_at(16), fields, checksum: u64_at(CHECKSUM_AT) })
    }

    /// Returns the bytes of the header of this structure.
    pub fn to_bytes(&self, structure: FileKind) -> HeaderBytes {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&structure.version.to_le_bytes());
        bytes[10..12].copy_from_slice(&structure.number.to_le_bytes());
        bytes[12..16].copy_from_slice(&(HEADER_BYTES as u32).to_le_bytes());
        bytes[16..24].copy_from_slice(&self.payload_bytes.to_le_bytes());
        for (field, to) in self.fields.iter().zip(bytes[24..88].chunks_exact_mut(8)) {
            to.copy_from_slice(&field.to_le_bytes());
        }
        bytes[CHECKSUM_AT..].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }

    /// Hashes a header's bytes before the checksum, and the payload, by XXH3-64.
    pub fn checksum_of<T: Pod>(header: &HeaderBytes, payload: &[T]) -> u64 {
        let mut hasher = Xxh3::new();
        hasher.update(&header[..CHECKSUM_AT]);
        hasher.update(bytemuck::cast_slice(payload));
        hasher.digest()
    }

    /// Compares the checksum.
    ///
    /// # Errors
    /// [`FileError::Corrupted`].
    pub fn verify<T: Pod>(&self, header: &HeaderBytes, payload: &[T]) -> Result<(), FileError> {
        let found = Header::checksum_of(header, payload);
        if found != self.checksum {
            return Err(FileError::Corrupted { expected: self.checksum, found });
        }
        Ok(())
    }
}

/// Header of a structure, checked except for the checksum.
struct HeaderOf<S: Saved> {
    layout: S::Layout,
    header: Header,
}

impl<S: Saved> HeaderOf<S> {
    fn parse(bytes: &HeaderBytes) -> Result<HeaderOf<S>, S::Error> {
        let header = Header::parse(bytes, S::STRUCTURE)?;
        let layout = S::layout_of(header.fields)?;
        let value = header.payload_bytes;
        if Some(value) != S::words_of(&layout).checked_mul(word_bytes::<S>()) {
            return Err(FileError::InvalidHeader { field: "payload bytes", value }.into());
        }
        Ok(HeaderOf { layout, header })
    }

    fn verify(&self, header: &HeaderBytes, payload: &[S::Word]) -> Result<(), S::Error> {
        self.header.verify(header, payload)?;
        S::check(&self.layout, payload)
    }
}

/// Fills the buffer, or reports the number of bytes that exist: `before` were read already, and `needed` is the total.
///
/// # Errors
/// [`FileError::Truncated`], [`FileError::Io`].
pub fn read_exact(
    reader: &mut (impl Read + ?Sized),
    buffer: &mut [u8],
    before: u64,
    needed: u64,
) -> Result<(), FileError> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => return Err(FileError::Truncated { needed, found: before + filled as u64 }),
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Reads `len` words, and allocates memory as bytes arrive. `available` bytes certainly exist; `before` bytes were read
/// already.
///
/// # Errors
/// [`FileError::Truncated`], [`FileError::OutOfMemory`], [`FileError::Io`].
pub fn read_words<T: Pod>(
    reader: &mut (impl Read + ?Sized),
    len: u64,
    available: u64,
    before: u64,
) -> Result<AlignedWords<T>, FileError> {
    let size = size_of::<T>() as u64;
    let needed = before + size * len;
    let mut words = AlignedWords::zeroed(len.min(available.max(FIRST_READ_BYTES) / size))?;
    if size * len >= HUGE_BYTES {
        words = words.in_huge_pages();
    }
    let mut filled = 0;
    loop {
        let free = &mut words.as_mut_slice()[filled..];
        read_exact(reader, bytemuck::cast_slice_mut(free), before + size * filled as u64, needed)?;
        filled = words.as_slice().len();
        if filled as u64 == len {
            return Ok(words);
        }
        let mut larger = AlignedWords::zeroed(len.min(2 * filled as u64))?;
        larger.as_mut_slice()[..filled].copy_from_slice(words.as_slice());
        words = larger;
    }
}

/// Writes header and payload.
///
/// # Errors
/// [`FileError::Io`].
pub fn write_to<S: Saved>(structure: &S, writer: &mut impl Write) -> Result<(), S::Error> {
    Ok(write_payload_to(S::STRUCTURE, structure.fields(), &structure.payload(), writer)?)
}

/// Reads what [`write_to`] wrote, and no byte after it; `available`: bytes of payload that are surely there. Memory
/// grows with what arrives, whatever the header claims.
///
/// # Errors
/// Any [`FileError`] but [`FileError::TrailingBytes`], and the structure's own errors.
pub fn read_from<S: Saved>(reader: &mut impl Read, available: u64) -> Result<S, S::Error> {
    let mut bytes = [0; HEADER_BYTES];
    read_exact(reader, &mut bytes, 0, HEADER_BYTES as u64)?;
    let HeaderOf { layout, header } = HeaderOf::<S>::parse(&bytes)?;
    S::read(layout, &mut PayloadReader::new(reader, &bytes, &header, available))
}

/// Returns the saved form in memory.
pub fn to_bytes<S: Saved>(structure: &S) -> Vec<u8> {
    let payload = structure.payload();
    let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.bytes() as usize);
    // Writing to memory cannot fail.
    let _ = write_payload_to(S::STRUCTURE, structure.fields(), &payload, &mut bytes);
    bytes
}

/// Reads the saved form; bytes after its end are an error.
///
/// # Errors
/// Any [`FileError`], and the structure's own errors.
pub fn from_bytes<S: Saved>(mut bytes: &[u8]) -> Result<S, S::Error> {
    let available = bytes.len().saturating_sub(HEADER_BYTES) as u64;
    if let Some(head) = bytes.first_chunk() {
        let payload = HeaderOf::<S>::parse(head)?.header.payload_bytes;
        if available > payload {
            return Err(FileError::TrailingBytes { extra: available - payload }.into());
        }
    }
    read_from(&mut bytes, available)
}

/// Writes a file as [`replace`] does. A thread of its own computes the checksum of a large structure meanwhile.
///
/// # Errors
/// [`FileError::At`].
pub fn save<S: Saved>(structure: &S, path: &Path) -> Result<(), S::Error> {
    Ok(save_payload(S::STRUCTURE, structure.fields(), &structure.payload(), path)?)
}

/// Reads a file.
///
/// # Errors
/// [`FileError::At`] with any other [`FileError`].
pub fn load<S: Saved>(path: &Path) -> Result<S, S::Error> {
    whole(path, |file, available| read_from(file, available))
}

/// Lets `read` read a file, given the bytes after its header, and makes sure that nothing is left of it.
///
/// # Errors
/// [`FileError::At`] with the errors of the system and of `read`, and with [`FileError::TrailingBytes`].
pub fn whole<T, E: SavedError>(path: &Path, read: impl FnOnce(&mut File, u64) -> Result<T, E>) -> Result<T, E> {
    at_path(path, "read", || {
        let mut file = File::open(path).map_err(FileError::from)?;
        let available = file.metadata().map_err(FileError::from)?.len().saturating_sub(HEADER_BYTES as u64);
        let structure = read(&mut file, available)?;
        match io::copy(&mut file, &mut io::sink()).map_err(FileError::from)? {
            0 => Ok(structure),
            extra => Err(FileError::TrailingBytes { extra }.into()),
        }
    })
}

/// Parameters and words of a structure in saved bytes.
pub type Viewed<'a, S> = (<S as Saved>::Layout, &'a [<S as Saved>::Word]);

/// Returns the parameters and the words in saved bytes, without a copy. Checks everything, so it reads all words.
///
/// # Errors
/// Any [`FileError`], and the structure's own errors.
pub fn view<S: Saved>(bytes: &[u8]) -> Result<Viewed<'_, S>, S::Error> {
    let (header, head, payload) = parse_view::<S>(bytes)?;
    header.verify(head, payload)?;
    Ok((header.layout, payload))
}

/// Does the work of [`view`] but reads the header only.
///
/// # Errors
/// Any [`FileError`] but [`FileError::Corrupted`], and the structure's own errors.
pub fn view_unverified<S: Saved>(bytes: &[u8]) -> Result<Viewed<'_, S>, S::Error> {
    parse_view::<S>(bytes).map(|(header, _, payload)| (header.layout, payload))
}

type Parsed<'a, S> = (HeaderOf<S>, &'a HeaderBytes, &'a [<S as Saved>::Word]);

fn parse_view<S: Saved>(bytes: &[u8]) -> Result<Parsed<'_, S>, S::Error> {
    let found = bytes.len() as u64;
    let truncated = |needed| FileError::Truncated { needed, found };
    let (head, payload) = bytes.split_first_chunk().ok_or(truncated(HEADER_BYTES as u64))?;
    let header = HeaderOf::<S>::parse(head)?;
    let needed = HEADER_BYTES as u64 + header.header.payload_bytes;
    if found < needed {
        return Err(truncated(needed).into());
    }
    if found > needed {
        return Err(FileError::TrailingBytes { extra: found - needed }.into());
    }
    let words =
        bytemuck::try_cast_slice(payload).map_err(|_| FileError::Misaligned { alignment: align_of::<S::Word>() })?;
    Ok((header, head, words))
}

/// Gives a [`Saved`] type the methods that write and read it, and with the feature `serde` of its crate the traits of
/// serde. Documentation shows the methods as the type's own.
///
/// Each line names generic parameters, the type, and the error of its crate.
#[doc(hidden)]
#[macro_export]
macro_rules! saved_methods {
    ($([$($generics:tt)*] $structure:ty, $error:ty;)*) => {$(
        /// Saving and loading.
        impl<$($generics)*> $structure {
            /// Writes header and payload.
            ///
            /// # Errors
            /// [`FileError::Io`](crate::FileError::Io) with the writer's error.
            pub fn write_to<W: ::std::io::Write>(&self, mut writer: W) -> Result<(), $error> {
                $crate::file::write_to(self, &mut writer)
            }

            /// Reads what [`write_to`](Self::write_to) wrote, and no byte after it. Memory grows with what arrives,
            /// whatever the header claims.
            ///
            /// # Errors
            /// [`FileError`](crate::FileError): the bytes end early, are damaged, or hold another structure or
            /// version.
            pub fn read_from<R: ::std::io::Read>(mut reader: R) -> Result<Self, $error> {
                $crate::file::read_from(&mut reader, 0)
            }

            /// Returns the saved form in memory.
            pub fn to_bytes(&self) -> Vec<u8> {
                $crate::file::to_bytes(self)
            }

            /// Reads the saved form; bytes after its end are an error.
            ///
            /// # Errors
            /// The errors of [`read_from`](Self::read_from), and bytes after the end.
            pub fn from_bytes(bytes: &[u8]) -> Result<Self, $error> {
                $crate::file::from_bytes(bytes)
            }

            /// Writes a file. A regular file at this path, or at the end of a link there, is replaced atomically, so
            /// that a reader never sees a half-written one; a pipe or a device receives the bytes as they are written.
            ///
            /// # Errors
            /// [`FileError::At`](crate::FileError::At) with the path and the system's error.
            pub fn save(&self, path: impl AsRef<::std::path::Path>) -> Result<(), $error> {
                $crate::file::save(self, path.as_ref())
            }

            /// Reads a file.
            ///
            /// # Errors
            /// [`FileError::At`](crate::FileError::At) with the path and the cause: the errors of
            /// [`from_bytes`](Self::from_bytes), or the system's error.
            pub fn load(path: impl AsRef<::std::path::Path>) -> Result<Self, $error> {
                $crate::file::load(path.as_ref())
            }
        }

        /// The saved form as bytes: compact in binary formats.
        #[cfg(feature = "serde")]
        impl<$($generics)*> ::serde::Serialize for $structure {
            fn serialize<Format: ::serde::Serializer>(&self, serializer: Format) -> Result<Format::Ok, Format::Error> {
                $crate::file::serialize(self, serializer)
            }
        }

        /// Checks the bytes as [`from_bytes`](Self::from_bytes) does.
        #[cfg(feature = "serde")]
        impl<'de, $($generics)*> ::serde::Deserialize<'de> for $structure {
            fn deserialize<Format: ::serde::Deserializer<'de>>(deserializer: Format) -> Result<Self, Format::Error> {
                $crate::file::deserialize(deserializer)
            }
        }
    )*};
}

/// Gives a view of a [`Saved`] structure the functions that open saved bytes.
///
/// The documentation of `fn from_bytes` follows the text for all views.
#[doc(hidden)]
#[macro_export]
macro_rules! viewed {
    (
        [$a:lifetime $(, $($generics:tt)*)?] $view:ty, $of:ty, $error:ty;
        |$saved:pat_param, $words:ident| $made:expr;
        $(#[$doc:meta])*
        fn from_bytes;
    ) => {
        /// Views of saved bytes.
        impl<$a $(, $($generics)*)?> $view {
            /// Opens saved bytes without a copy, with the checks of loading. `map` does so with a file.
            ///
            $(#[$doc])*
            ///
            /// # Errors
            /// The errors of loading, and [`FileError::Misaligned`](crate::FileError::Misaligned).
            pub fn from_bytes(bytes: &$a [u8]) -> Result<Self, $error> {
                $crate::file::view::<$of>(bytes).map(|($saved, $words)| $made)
            }

            /// Opens as [`from_bytes`](Self::from_bytes) does, in constant time: only the header is checked. Damaged
            /// words give wrong answers, nothing worse.
            ///
            /// # Errors
            /// [`FileError`](crate::FileError): the header is that of something else, or the bytes are too few or not
            /// aligned.
            pub fn from_bytes_unverified(bytes: &$a [u8]) -> Result<Self, $error> {
                $crate::file::view_unverified::<$of>(bytes).map(|($saved, $words)| $made)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_structure_has_a_version_of_its_own() {
        let header = Header { payload_bytes: 40, fields: [3; FIELDS], checksum: 5 };
        let [first, second] = [7, 8].map(|number| FileKind::new(number, 1, "test"));
        let next = FileKind { version: 2, ..first };
        let old = Header::parse(&header.to_bytes(first), next).unwrap_err();
        assert!(matches!(old, FileError::UnsupportedVersion { found: 1, supported: 2 }));
        assert!(old.to_string().contains("version 1") && old.to_string().contains("version 2"), "{old}");
        assert_eq!(Header::parse(&header.to_bytes(next), next).unwrap(), header);
        assert_eq!(Header::parse(&header.to_bytes(second), second).unwrap(), header);
        // A version belongs to one structure.
        let other = Header::parse(&header.to_bytes(next), second).unwrap_err();
        let FileError::WrongStructure { expected, found } = other else { panic!("{other}") };
        assert_eq!([expected.number, found.number], [8, 7]);
    }

    #[test]
    fn damage_changes_the_checksum() {
        let (kind, payload) = (FileKind::new(7, 1, "test"), [1u64, 2, 3]);
        let mut header = Header { payload_bytes: 24, fields: [3; FIELDS], checksum: 0 };
        header.checksum = Header::checksum_of(&header.to_bytes(kind), &payload);
        let bytes = header.to_bytes(kind);
        header.verify(&bytes, &payload).unwrap();
        let mut damaged = bytes;
        damaged[30] ^= 1;
        for refused in [header.verify(&bytes, &[1u64, 2, 2]), header.verify(&damaged, &payload)] {
            assert!(matches!(refused, Err(FileError::Corrupted { expected, .. }) if expected == header.checksum));
        }
    }
}

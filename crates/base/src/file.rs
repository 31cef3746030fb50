//! Saved structures: a header of 128 bytes, then the words as they lie in memory.
//!
//! ```text
//!    0  magic "WARPSET\0"                     8 bytes
//!    8  format version, 1                     u16
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

use crate::words::{AlignedWords, OutOfMemory};

mod payload;
#[cfg(feature = "serde")]
mod serde;
pub use payload::{Payload, save_payload, write_payload_to};
#[cfg(feature = "serde")]
pub use serde::{deserialize, deserialize_with, serialize};

/// Bytes of the header; the payload starts here, so that it is aligned in a memory-mapped file.
pub const HEADER_BYTES: usize = 128;
/// The version that this build writes.
pub const FORMAT_VERSION: u16 = 1;
/// Parameters in a header.
pub const FIELDS: usize = 8;

const MAGIC: [u8; 8] = *b"WARPSET\0";
/// Where the checksum is; it covers all before it, and the payload.
const CHECKSUM_AT: usize = 120;
/// Reading from a stream grows the memory from this size on, so that a header alone cannot make it large.
const FIRST_READ_BYTES: u64 = 1 << 20;

/// Why bytes could not be read as a structure, or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The bytes end too early.
    #[error("{needed} bytes needed, {found} found: the file was cut short")]
    Truncated {
        /// Bytes that the header announces.
        needed: u64,
        /// Bytes there are.
        found: u64,
    },
    /// More bytes than the header announces.
    #[error("{extra} bytes after the end of the structure: pass its bytes alone")]
    TrailingBytes {
        /// Bytes too many.
        extra: u64,
    },
    /// The bytes do not start with Warpset's magic.
    #[error("not a Warpset file: pass what `save`, `write_to` or `to_bytes` wrote")]
    BadMagic,
    /// The bytes are of a version that this build does not read.
    #[error(
        "format version {found}; this build reads version {supported}: read the file with the release that wrote it"
    )]
    UnsupportedVersion {
        /// The version in the header.
        found: u16,
        /// The version that this build reads.
        supported: u16,
    },
    /// The bytes hold another structure.
    #[error("expected structure {expected}, found {found}: read it as the type that saved it")]
    WrongStructure {
        /// The number of the type that was to be read.
        expected: u16,
        /// The number in the header.
        found: u16,
    },
    /// The checksum does not match.
    #[error("checksum {found:#018x} instead of {expected:#018x}: the file is damaged, copy or build it again")]
    Corrupted {
        /// The checksum in the header.
        expected: u64,
        /// The checksum of the bytes.
        found: u64,
    },
    /// A header field has a value that no structure has.
    #[error("header: {field} cannot be {value}; the file is damaged, copy or build it again")]
    InvalidHeader {
        /// The field.
        field: &'static str,
        /// Its value.
        value: u64,
    },
    /// The bytes cannot be viewed in place because their address is not aligned.
    #[error("the words start at an address that is not a multiple of {alignment}: copy the bytes to one that is")]
    Misaligned {
        /// The alignment needed.
        alignment: usize,
    },
    /// There is no memory for what the file holds.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// Reading or writing failed.
    #[error("input or output failed: {0}")]
    Io(#[from] io::Error),
}

/// A structure that can be saved: words, and parameters that say how many and what they mean.
pub trait Saved: Sized {
    /// The number of the structure in headers.
    const STRUCTURE: u16;
    /// For messages: "split-block Bloom filter".
    const NAME: &'static str;
    /// What the payload consists of.
    type Word: Pod;
    /// The parameters, checked.
    type Layout: Copy;
    /// The errors of the structure.
    type Error: From<FileError>;

    /// The parameters of a header, if they are those of such a structure.
    fn layout_of(fields: [u64; FIELDS]) -> Result<Self::Layout, Self::Error>;
    /// The number of words of a structure with these parameters.
    fn words_of(layout: &Self::Layout) -> u64;
    /// The parameters for the header.
    fn fields(&self) -> [u64; FIELDS];
    /// The words.
    fn saved_words(&self) -> &[Self::Word];
    /// Whether these can be the words of such a structure, for structures that can tell beyond the checksum.
    fn check(_layout: &Self::Layout, _words: &[Self::Word]) -> Result<(), Self::Error> {
        Ok(())
    }
    /// Puts a structure together; [`Saved::check`] has passed.
    fn from_saved(layout: Self::Layout, words: AlignedWords<Self::Word>) -> Self;
}

/// A header's bytes.
pub type HeaderBytes = [u8; HEADER_BYTES];

const fn word_bytes<S: Saved>() -> u64 {
    size_of::<S::Word>() as u64
}

/// What every header says.
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
    pub fn parse(bytes: &HeaderBytes, structure: u16) -> Result<Header, FileError> {
        let invalid = |field, value| Err(FileError::InvalidHeader { field, value });
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        if bytes[..8] != MAGIC {
            return Err(FileError::BadMagic);
        }
        let version = u16_at(8);
        if version != FORMAT_VERSION {
            return Err(FileError::UnsupportedVersion { found: version, supported: FORMAT_VERSION });
        }
        let found = u16_at(10);
        if found != structure {
            return Err(FileError::WrongStructure { expected: structure, found });
        }
        let header_bytes = u64_at(12) as u32 as u64;
        if header_bytes != HEADER_BYTES as u64 {
            return invalid("header bytes", header_bytes);
        }
        if let Some(&value) = bytes[88..CHECKSUM_AT].iter().find(|&&b| b != 0) {
            return invalid("reserved bytes", value as u64);
        }
        let fields = std::array::from_fn(|i| u64_at(24 + 8 * i));
        Ok(Header { payload_bytes: u64_at(16), fields, checksum: u64_at(CHECKSUM_AT) })
    }

    /// The bytes of the header of this structure.
    pub fn to_bytes(&self, structure: u16) -> HeaderBytes {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[10..12].copy_from_slice(&structure.to_le_bytes());
        bytes[12..16].copy_from_slice(&(HEADER_BYTES as u32).to_le_bytes());
        bytes[16..24].copy_from_slice(&self.payload_bytes.to_le_bytes());
        for (field, to) in self.fields.iter().zip(bytes[24..88].chunks_exact_mut(8)) {
            to.copy_from_slice(&field.to_le_bytes());
        }
        bytes[CHECKSUM_AT..].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }

    /// XXH3-64 of a header's bytes before the checksum, and of the payload.
    pub fn checksum_of<T: Pod>(header: &HeaderBytes, payload: &[T]) -> u64 {
        let mut hasher = Xxh3::new();
        hasher.update(&header[..CHECKSUM_AT]);
        hasher.update(bytemuck::cast_slice(payload));
        hasher.digest()
    }

    /// Compares the checksum.
    pub fn verify<T: Pod>(&self, header: &HeaderBytes, payload: &[T]) -> Result<(), FileError> {
        let found = Header::checksum_of(header, payload);
        if found != self.checksum {
            return Err(FileError::Corrupted { expected: self.checksum, found });
        }
        Ok(())
    }
}

/// A header of a structure, of which all but the checksum has been checked.
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

/// The header of a structure, with its checksum.
fn header_of<S: Saved>(structure: &S) -> HeaderBytes {
    let words = structure.saved_words();
    let mut header = Header { payload_bytes: size_of_val(words) as u64, fields: structure.fields(), checksum: 0 };
    header.checksum = Header::checksum_of(&header.to_bytes(S::STRUCTURE), words);
    header.to_bytes(S::STRUCTURE)
}

/// Fills the buffer, or says how many bytes there were: `before` of them read already, `needed` in all.
pub fn read_exact(reader: &mut impl Read, buffer: &mut [u8], before: u64, needed: u64) -> Result<(), FileError> {
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

/// Reads `len` words, allocating in step with what arrives. `available` is how many bytes are surely there, `before` how
/// many were read already.
pub fn read_words<T: Pod>(
    reader: &mut impl Read,
    len: u64,
    available: u64,
    before: u64,
) -> Result<AlignedWords<T>, FileError> {
    let size = size_of::<T>() as u64;
    let needed = before + size * len;
    let mut words = AlignedWords::zeroed(len.min(available.max(FIRST_READ_BYTES) / size))?;
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
pub fn write_to<S: Saved>(structure: &S, writer: &mut impl Write) -> Result<(), S::Error> {
    let payload: &[u8] = bytemuck::cast_slice(structure.saved_words());
    Ok(write_payload_to(S::STRUCTURE, structure.fields(), payload, writer)?)
}

/// Reads what [`write_to`] wrote, and no byte after it; `available`: bytes of payload that are surely there. Memory grows
/// with what arrives, whatever the header claims.
pub fn read_from<S: Saved>(reader: &mut impl Read, available: u64) -> Result<S, S::Error> {
    let mut bytes = [0; HEADER_BYTES];
    read_exact(reader, &mut bytes, 0, HEADER_BYTES as u64)?;
    let header = HeaderOf::<S>::parse(&bytes)?;
    let words = read_words(reader, S::words_of(&header.layout), available, HEADER_BYTES as u64)?;
    header.verify(&bytes, words.as_slice())?;
    Ok(S::from_saved(header.layout, words))
}

/// The saved form in memory.
pub fn to_bytes<S: Saved>(structure: &S) -> Vec<u8> {
    let payload = bytemuck::cast_slice(structure.saved_words());
    let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
    bytes.extend_from_slice(&header_of(structure));
    bytes.extend_from_slice(payload);
    bytes
}

/// Reads the saved form; bytes after its end are an error.
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

/// Writes a file: under another name first, then renamed, so that a reader never sees half of it. A thread of its own computes the
/// checksum of a large structure meanwhile.
pub fn save<S: Saved>(structure: &S, path: &Path) -> Result<(), S::Error> {
    let payload: &[u8] = bytemuck::cast_slice(structure.saved_words());
    Ok(save_payload(S::STRUCTURE, structure.fields(), payload, path)?)
}

/// Lets `write` write a file under another name, and renames it.
pub fn replace<E: From<FileError>>(path: &Path, write: impl FnOnce(&mut File) -> Result<(), E>) -> Result<(), E> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let write = || -> Result<(), E> {
        let mut file = File::create(&part).map_err(FileError::from)?;
        write(&mut file)?;
        file.sync_all().and_then(|()| std::fs::rename(&part, path)).map_err(FileError::from)?;
        Ok(())
    };
    let written = write();
    if written.is_err() {
        // Nothing to add to the error that is returned.
        let _ = std::fs::remove_file(&part);
    }
    written
}

/// Reads a file.
pub fn load<S: Saved>(path: &Path) -> Result<S, S::Error> {
    whole(path, |file, available| read_from(file, available))
}

/// Lets `read` read a file, given the bytes after its header, and makes sure that nothing is left of it.
pub fn whole<T, E: From<FileError>>(path: &Path, read: impl FnOnce(&mut File, u64) -> Result<T, E>) -> Result<T, E> {
    let mut file = File::open(path).map_err(FileError::from)?;
    let available = file.metadata().map_err(FileError::from)?.len().saturating_sub(HEADER_BYTES as u64);
    let structure = read(&mut file, available)?;
    match io::copy(&mut file, &mut io::sink()).map_err(FileError::from)? {
        0 => Ok(structure),
        extra => Err(FileError::TrailingBytes { extra }.into()),
    }
}

/// Parameters and words of a structure in saved bytes.
pub type Viewed<'a, S> = (<S as Saved>::Layout, &'a [<S as Saved>::Word]);

/// The parameters and the words in saved bytes, without a copy: everything checked, for which it reads the words.
pub fn view<S: Saved>(bytes: &[u8]) -> Result<Viewed<'_, S>, S::Error> {
    let (header, head, payload) = parse_view::<S>(bytes)?;
    header.verify(head, payload)?;
    Ok((header.layout, payload))
}

/// [`view`] that touches the header only.
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

//! Saved filters: a header of 128 bytes, then the words as they lie in memory.
//!
//! ```text
//!    0  magic "WARPSET\0"                     8 bytes
//!    8  format version, 1                     u16
//!   10  structure: 24                         u16
//!   12  header bytes, 128                     u32
//!   16  payload bytes                         u64
//!   24  parameters                            8 x u64
//!   88  zero                                  32 bytes
//!  120  XXH3-64 of bytes 0..120 and payload   u64
//!  128  payload: the words
//! ```
//!
//! All little-endian. The parameters: `docs/formats.md`. A loader checks the slots too, not only the checksum: no bytes
//! make a filter that breaks its invariants.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use xxhash_rust::xxh3::Xxh3;

use super::validate::validate;
use super::{StandardQuotientFilter, View};
use crate::layout::FIELDS;
use crate::words::Words;
use crate::{Error, Layout};

/// Bytes of the header; the payload starts here, so that it is aligned in a memory-mapped file.
pub const HEADER_BYTES: usize = 128;
/// The version that this build writes.
pub const FORMAT_VERSION: u16 = 1;

const MAGIC: [u8; 8] = *b"WARPSET\0";
/// The number of this structure in headers.
const STRUCTURE: u16 = 24;
/// Which parameter is the number of fingerprints.
const ITEMS_FIELD: usize = 6;
/// Where the checksum is; it covers all before it, and the payload.
const CHECKSUM_AT: usize = 120;
/// Reading from a stream grows the memory from this size on, so that a header alone cannot make it large.
const FIRST_READ_WORDS: u64 = 1 << 17;

/// The header, checked but for the checksum.
struct Header {
    layout: Layout,
    items: u64,
    checksum: u64,
}

fn u64_at(bytes: &[u8; HEADER_BYTES], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

impl Header {
    fn parse(bytes: &[u8; HEADER_BYTES]) -> Result<Header, Error> {
        if bytes[..8] != MAGIC {
            return Err(Error::BadMagic);
        }
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let version = u16_at(8);
        if version != FORMAT_VERSION {
            return Err(Error::UnsupportedVersion { found: version });
        }
        let structure = u16_at(10);
        if structure != STRUCTURE {
            return Err(Error::WrongStructure { expected: STRUCTURE, found: structure });
        }
        let header_bytes = u64_at(bytes, 12) as u32 as u64;
        if header_bytes != HEADER_BYTES as u64 {
            return Err(Error::InvalidHeader { field: "header bytes", value: header_bytes });
        }
        if let Some(&value) = bytes[88..CHECKSUM_AT].iter().find(|&&b| b != 0) {
            return Err(Error::InvalidHeader { field: "reserved bytes", value: value as u64 });
        }
        let fields: [u64; FIELDS] = std::array::from_fn(|i| u64_at(bytes, 24 + 8 * i));
        if fields[ITEMS_FIELD + 1] != 0 {
            return Err(Error::InvalidHeader { field: "parameter 7", value: fields[ITEMS_FIELD + 1] });
        }
        let layout = Layout::from_fields(fields)?;
        let items = fields[ITEMS_FIELD];
        if items > layout.limit() {
            return Err(Error::InvalidHeader { field: "items", value: items });
        }
        let payload = u64_at(bytes, 16);
        if payload != 8 * layout.words() {
            return Err(Error::InvalidHeader { field: "payload bytes", value: payload });
        }
        Ok(Header { layout, items, checksum: u64_at(bytes, CHECKSUM_AT) })
    }

    /// The header of a filter, with its checksum.
    fn of(filter: &StandardQuotientFilter) -> [u8; HEADER_BYTES] {
        let layout = filter.layout();
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[10..12].copy_from_slice(&STRUCTURE.to_le_bytes());
        bytes[12..16].copy_from_slice(&(HEADER_BYTES as u32).to_le_bytes());
        bytes[16..24].copy_from_slice(&(8 * layout.words()).to_le_bytes());
        let mut fields = layout.to_fields();
        fields[ITEMS_FIELD] = filter.len();
        for (field, to) in fields.iter().zip(bytes[24..88].chunks_exact_mut(8)) {
            to.copy_from_slice(&field.to_le_bytes());
        }
        let sum = checksum(&bytes, filter.words());
        bytes[CHECKSUM_AT..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn verify(&self, header: &[u8; HEADER_BYTES], payload: &[u64]) -> Result<(), Error> {
        let found = checksum(header, payload);
        if found != self.checksum {
            return Err(Error::Corrupted { expected: self.checksum, found });
        }
        validate(&View::new(self.layout, payload, self.items))
    }
}

fn checksum(header: &[u8; HEADER_BYTES], payload: &[u64]) -> u64 {
    let mut hasher = Xxh3::new();
    hasher.update(&header[..CHECKSUM_AT]);
    hasher.update(bytemuck::cast_slice(payload));
    hasher.digest()
}

/// Fills the buffer, or says how many bytes there were.
fn read_exact(reader: &mut impl Read, buffer: &mut [u8], read_before: u64, needed: u64) -> Result<(), Error> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => return Err(Error::Truncated { needed, found: read_before + filled as u64 }),
            Ok(n) => filled += n,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Reads `len` words, allocating in step with what arrives. `available` is how many bytes are surely there.
fn read_words(reader: &mut impl Read, len: u64, available: u64) -> Result<Words, Error> {
    let needed = HEADER_BYTES as u64 + 8 * len;
    let mut words = Words::zeroed(len.min((available / 8).max(FIRST_READ_WORDS)))?;
    let mut filled = 0;
    loop {
        let free = &mut words.as_mut_slice()[filled..];
        let before = HEADER_BYTES as u64 + 8 * filled as u64;
        read_exact(reader, bytemuck::cast_slice_mut(free), before, needed)?;
        filled = words.as_slice().len();
        if filled as u64 == len {
            return Ok(words);
        }
        let mut larger = Words::zeroed(len.min(2 * filled as u64))?;
        larger.as_mut_slice()[..filled].copy_from_slice(words.as_slice());
        words = larger;
    }
}

/// Saving and loading.
impl StandardQuotientFilter {
    /// Writes header and payload.
    pub fn write_to<W: Write>(&self, mut writer: W) -> Result<(), Error> {
        writer.write_all(&Header::of(self))?;
        writer.write_all(bytemuck::cast_slice(self.words()))?;
        Ok(())
    }

    /// Reads what [`StandardQuotientFilter::write_to`] wrote, and not a byte more. Memory grows with what arrives,
    /// whatever the header claims.
    pub fn read_from<R: Read>(reader: R) -> Result<StandardQuotientFilter, Error> {
        Self::read_with(reader, 0)
    }

    /// `available`: bytes of payload that are surely there.
    fn read_with<R: Read>(mut reader: R, available: u64) -> Result<StandardQuotientFilter, Error> {
        let mut bytes = [0; HEADER_BYTES];
        read_exact(&mut reader, &mut bytes, 0, HEADER_BYTES as u64)?;
        let header = Header::parse(&bytes)?;
        let words = read_words(&mut reader, header.layout.words(), available)?;
        header.verify(&bytes, words.as_slice())?;
        Ok(StandardQuotientFilter::from_parts(header.layout, words, header.items))
    }

    /// The saved form in memory.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.memory_bytes() as usize);
        bytes.extend_from_slice(&Header::of(self));
        bytes.extend_from_slice(bytemuck::cast_slice(self.words()));
        bytes
    }

    /// Reads the saved form; bytes after its end are an error.
    pub fn from_bytes(bytes: &[u8]) -> Result<StandardQuotientFilter, Error> {
        let available = bytes.len().saturating_sub(HEADER_BYTES) as u64;
        if let Some(head) = bytes.first_chunk() {
            let payload = 8 * Header::parse(head)?.layout.words();
            if available > payload {
                return Err(Error::TrailingBytes { extra: available - payload });
            }
        }
        Self::read_with(bytes, available)
    }

    /// Writes a file: under another name first, then renamed, so that a reader never sees half of it.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.part", std::process::id()));
        let part = path.with_file_name(name);
        let written = File::create(&part).map_err(Error::from).and_then(|file| {
            self.write_to(&file)?;
            file.sync_all()?;
            std::fs::rename(&part, path)?;
            Ok(())
        });
        if written.is_err() {
            // Nothing to add to the error that is returned.
            let _ = std::fs::remove_file(&part);
        }
        written
    }

    /// Reads a file.
    pub fn load(path: impl AsRef<Path>) -> Result<StandardQuotientFilter, Error> {
        let mut file = File::open(path)?;
        let available = file.metadata()?.len().saturating_sub(HEADER_BYTES as u64);
        let filter = Self::read_with(&mut file, available)?;
        let extra = std::io::copy(&mut file, &mut std::io::sink())?;
        if extra == 0 { Ok(filter) } else { Err(Error::TrailingBytes { extra }) }
    }
}

/// Views of saved bytes.
impl<'a> View<'a> {
    /// A filter in saved bytes, such as a memory-mapped file, without a copy: checks everything, checksum and slots
    /// included, for which it reads the bytes twice.
    ///
    /// The payload must be aligned to 8 bytes; it is in a mapping that starts at a page.
    ///
    /// ```
    /// use warpset_quotient::{StandardQuotientFilter, View};
    ///
    /// let mut filter = StandardQuotientFilter::builder(10).build()?;
    /// filter.insert_bulk(&["a", "b"])?;
    /// let path = std::env::temp_dir().join("warpset-quotient-view.filter");
    /// filter.save(&path)?;
    ///
    /// let file: Vec<u64> = bytes_of(&std::fs::read(&path)?); // or memmap2::Mmap
    /// let view = View::from_bytes(bytemuck::cast_slice(&file))?;
    /// assert!(view.contains("a"));
    /// # std::fs::remove_file(&path)?;
    /// # fn bytes_of(bytes: &[u8]) -> Vec<u64> { bytemuck::pod_collect_to_vec(bytes) }
    /// # Ok::<(), warpset_quotient::Error>(())
    /// ```
    pub fn from_bytes(bytes: &'a [u8]) -> Result<View<'a>, Error> {
        let (view, header) = Self::parse(bytes)?;
        let head = bytes.first_chunk().ok_or(Error::BadMagic)?;
        header.verify(head, view.words())?;
        Ok(view)
    }

    /// [`View::from_bytes`] without checksum and slots: opens in constant time and touches the header only. Damaged words
    /// make wrong answers, nothing worse.
    pub fn from_bytes_unverified(bytes: &'a [u8]) -> Result<View<'a>, Error> {
        Self::parse(bytes).map(|(view, _)| view)
    }

    fn parse(bytes: &'a [u8]) -> Result<(View<'a>, Header), Error> {
        let found = bytes.len() as u64;
        let head = bytes.first_chunk().ok_or(Error::Truncated { needed: HEADER_BYTES as u64, found })?;
        let header = Header::parse(head)?;
        let needed = HEADER_BYTES as u64 + 8 * header.layout.words();
        if found < needed {
            return Err(Error::Truncated { needed, found });
        }
        if found > needed {
            return Err(Error::TrailingBytes { extra: found - needed });
        }
        let payload =
            bytemuck::try_cast_slice(&bytes[HEADER_BYTES..]).map_err(|_| Error::Misaligned { alignment: 8 })?;
        Ok((View::new(header.layout, payload, header.items), header))
    }
}

//! Files of indexes: a header with the windows and the kind, with the filter in front of an exact index as its payload;
//! then the saved set or filter, with its own header and checksum. Byte for byte in `docs/formats.md`.

use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::Path;

use warpset_base::file;
use warpset_base::file::{FIELDS, FileError, FileKind, HEADER_BYTES, Header, HeaderBytes, MappedWords, Replacement};
use warpset_fuse::{BinaryFuse16, BinaryFuse32};
use warpset_sequence::{SequenceFilter, SequenceFilterView};
use warpset_static::{StaticSet, StaticSetView};

use super::members::{Mapped, Members};
use super::{Index, check, deacon, front};
use crate::long::{Long, View};
use crate::recognise::recognise;
use crate::wide::Wide;
use crate::word::MOST_SHORT;
use crate::{Error, IndexKind};

/// Returns the number of the structure after the header for a kind of index of k-mers of `k` bases.
fn structure(kind: IndexKind, k: u32) -> FileKind {
    match kind {
        IndexKind::Exact if k > MOST_SHORT => FileKind::KMERS_LONG,
        IndexKind::Exact => FileKind::STATIC_MAP,
        IndexKind::Fuse16 => FileKind::BINARY_FUSE_16,
        IndexKind::Fuse32 => FileKind::BINARY_FUSE_32,
        IndexKind::Sequences => FileKind::SEQUENCE_FILTER,
    }
}

const KINDS: [IndexKind; 4] = [IndexKind::Exact, IndexKind::Fuse16, IndexKind::Fuse32, IndexKind::Sequences];
/// Message for headers that contradict each other.
const DISAGREE: &str = "its headers and its length do not agree: it is damaged, copy or build it again";

/// Parameters of the header.
struct Parameters {
    k: u32,
    w: u32,
    len: u64,
    kind: IndexKind,
}

impl Parameters {
    fn of(index: &Index) -> Parameters {
        Parameters { k: index.k, w: index.w, len: index.len, kind: index.kind() }
    }

    /// Returns the words of the filter in front.
    fn front(&self) -> u64 {
        if self.kind == IndexKind::Exact { front::words_for(self.len) } else { 0 }
    }

    fn to_header(&self, front: &[u64]) -> HeaderBytes {
        let mut fields = [0; FIELDS];
        fields[..4].copy_from_slice(&[
            self.k.into(),
            self.w.into(),
            self.len,
            structure(self.kind, self.k).number.into(),
        ]);
        let header = Header { payload_bytes: 8 * self.front(), fields, checksum: 0 };
        let checksum = Header::checksum_of(&header.to_bytes(FileKind::KMERS_INDEX), front);
        Header { checksum, ..header }.to_bytes(FileKind::KMERS_INDEX)
    }

    /// Parses a header, and checks all of it except the checksum.
    fn parse(head: &HeaderBytes) -> Result<(Parameters, Header), FileError> {
        let header = Header::parse(head, FileKind::KMERS_INDEX)?;
        let [k, w, len, number, unused @ ..] = header.fields;
        let invalid = |field, value| Err(FileError::InvalidHeader { field, value });
        let small = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let Ok((k, w)) = check(small(k), small(w)) else { return invalid("bases per k-mer", k) };
        let Some(kind) = KINDS.into_iter().find(|&kind| u64::from(structure(kind, k).number) == number) else {
            return invalid("the structure of the minimizers", number);
        };
        if let Some(value) = unused.into_iter().find(|&value| value != 0) {
            return invalid("unused parameters", value);
        }
        let parameters = Parameters { k, w, len, kind };
        match Some(header.payload_bytes) == parameters.front().checked_mul(8) {
            true => Ok((parameters, header)),
            false => invalid("payload bytes", header.payload_bytes),
        }
    }
}

/// Opens a file that may be an index or labels, and reads its head; `refused` makes the error for a pipe.
pub(crate) fn open(path: &Path, refused: impl Fn(&Path, &'static str) -> Error) -> Result<(File, u64, Vec<u8>), Error> {
    let failed = |source| Error::Read { path: path.to_owned(), source };
    // Checked before the file is opened, because opening a pipe waits for its other end.
    let there = fs::metadata(path).map_err(failed)?;
    if !there.is_file() && !there.is_dir() {
        return Err(refused(path, "it is no regular file"));
    }
    let mut file = File::open(path).map_err(failed)?;
    let mut head = Vec::new();
    Read::by_ref(&mut file).take(HEADER_BYTES as u64).read_to_end(&mut head).map_err(failed)?;
    Ok((file, there.len(), head))
}

fn not_index(path: &Path, reason: impl ToString) -> Error {
    Error::NotIndex { path: path.to_owned(), reason: reason.to_string() }
}

/// Returns the error for a file with this begin that is no index.
fn no_index(path: &Path, head: &[u8]) -> Error {
    match recognise(head) {
        Some((found, _)) if !found.starts_with("an index") => {
            let needed = "an index is needed, which `kmers index` writes".to_owned();
            Error::OtherKind { path: path.to_owned(), found, needed }
        }
        _ => not_index(path, "it is neither what `kmers index` nor what Deacon writes"),
    }
}

/// Whether a file begins as an index of ours or of Deacon, or as another saved structure.
pub(super) fn begins_as_index(path: &Path) -> bool {
    path != Path::new("-")
        && open(path, not_index).is_ok_and(|(_, _, head)| {
            head.starts_with(b"WARPSET\0")
                || head.starts_with(b"DBF")
                || head.first().is_some_and(|&version| version < 9)
        })
}

/// Returns the parameters of an index of ours; `None` for other files.
fn parameters<'h>(path: &Path, head: &'h [u8]) -> Result<Option<(Parameters, Header, &'h HeaderBytes)>, Error> {
    match head.first_chunk() {
        Some(head) if head.starts_with(b"WARPSET\0") => match Parameters::parse(head) {
            Ok((parameters, header)) => Ok(Some((parameters, header, head))),
            Err(FileError::WrongStructure { .. }) => Err(no_index(path, head)),
            Err(error) => Err(not_index(path, error)),
        },
        _ => Ok(None),
    }
}

pub(super) fn load(path: &Path) -> Result<Index, Error> {
    let (mut file, len, head) = open(path, not_index)?;
    let Some((parameters, header, head)) = parameters(path, &head)? else {
        return match deacon::load(path, &mut file, &head, len)? {
            Some(index) => Ok(index),
            None => Err(no_index(path, &head)),
        };
    };
    let failed = |source| Error::Read { path: path.to_owned(), source };
    let mut file = Wide::new(file).map_err(failed)?;
    let Parameters { k, w, len: minimizers, kind } = parameters;
    let available = len.saturating_sub(HEADER_BYTES as u64);
    let words = file::read_words::<u64>(&mut file, parameters.front(), available, HEADER_BYTES as u64);
    let words = words.map_err(|error| not_index(path, error))?;
    header.verify(head, words.as_slice()).map_err(|error| not_index(path, error))?;
    let front = (kind == IndexKind::Exact).then_some(words);
    let rest = available.saturating_sub(header.payload_bytes + HEADER_BYTES as u64);
    let members = match kind {
        IndexKind::Exact if k > MOST_SHORT => {
            file::read_from::<Long>(&mut file, rest).map(Members::Long).map_err(|error| not_index(path, error))?
        }
        IndexKind::Exact => file::read_from::<StaticSet<u64>>(&mut file, rest)
            .map(Members::Static)
            .map_err(|error| not_index(path, error))?,
        IndexKind::Fuse16 => file::read_from::<BinaryFuse16>(&mut file, rest)
            .map(Members::Fuse16)
            .map_err(|error| not_index(path, error))?,
        IndexKind::Fuse32 => file::read_from::<BinaryFuse32>(&mut file, rest)
            .map(Members::Fuse32)
            .map_err(|error| not_index(path, error))?,
        IndexKind::Sequences => file::read_from::<SequenceFilter>(&mut file, rest)
            .map(Members::Sequences)
            .map_err(|error| not_index(path, error))?,
    };
    let mut after = Vec::new();
    file.take(1).read_to_end(&mut after).map_err(failed)?;
    let index = Index { k, w, len: minimizers, members, front };
    match after.is_empty() && index.count() == minimizers && index.is_of_its_k() {
        true => Ok(index),
        false => Err(not_index(path, DISAGREE)),
    }
}

/// Maps an index of ours, or reads one of Deacon.
///
/// # Safety
/// The contract of [`Index::map`].
pub(super) unsafe fn map(path: &Path) -> Result<Index, Error> {
    let (_, _, head) = open(path, not_index)?;
    let Some((parameters, ..)) = parameters(path, &head)? else { return load(path) };
    let Parameters { k, w, len, kind } = parameters;
    // SAFETY: the file does not change while it is mapped, by the contract of this function.
    let file = unsafe { MappedWords::<u64>::open(path) }.map_err(|error| not_index(path, error))?;
    let mapped = Mapped::new(file, (kind, k > MOST_SHORT), parameters.front() as usize);
    let bytes = mapped.structure();
    let viewed = match kind {
        IndexKind::Exact if k > MOST_SHORT => View::from_bytes_unverified(bytes).map(|_| ()).map_err(|e| e.to_string()),
        IndexKind::Exact => StaticSetView::<u64>::from_bytes_unverified(bytes).map(|_| ()).map_err(|e| e.to_string()),
        IndexKind::Fuse16 => {
            warpset_fuse::View::<u16>::from_bytes_unverified(bytes).map(|_| ()).map_err(|e| e.to_string())
        }
        IndexKind::Fuse32 => {
            warpset_fuse::View::<u32>::from_bytes_unverified(bytes).map(|_| ()).map_err(|e| e.to_string())
        }
        IndexKind::Sequences => SequenceFilterView::from_bytes_unverified(bytes).map(|_| ()).map_err(|e| e.to_string()),
    };
    viewed.map_err(|error| not_index(path, error))?;
    let index = Index { k, w, len, members: Members::Mapped(mapped), front: None };
    if index.is_of_its_k() { Ok(index) } else { Err(not_index(path, DISAGREE)) }
}

impl Index {
    /// Returns the number of minimizers according to the set.
    fn count(&self) -> u64 {
        match &self.members {
            Members::Lines(lines) => lines.len(),
            Members::Static(set) => set.len(),
            Members::Long(long) => long.len(),
            // Indexes made of one of Deacon's do not record it.
            Members::Fuse16(_) | Members::Fuse32(_) | Members::Sequences(_) | Members::Mapped(_) => self.len,
        }
    }

    /// Whether k-mers have the length of those of the index, and a filter of all k-mers has windows of one k-mer.
    fn is_of_its_k(&self) -> bool {
        self.members.long().is_none_or(|long| long.k() == self.k() && long.is_set())
            && self.members.sequences().is_none_or(|filter| filter.layout().k() == self.k && self.w == 1)
    }
}

/// Writes a file by `write`, through a buffer.
pub(crate) fn write(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&mut File>) -> std::io::Result<()>,
) -> Result<(), Error> {
    let written = || {
        let mut replacement = Replacement::create(path)?;
        let mut buffer = BufWriter::with_capacity(1 << 20, replacement.file());
        write(&mut buffer)?;
        buffer.flush()?;
        drop(buffer);
        replacement.sync()?;
        replacement.finish()
    };
    written().map_err(|source| Error::Write { path: path.to_owned(), source })
}

pub(super) fn save(index: &Index, path: &Path) -> Result<(), Error> {
    if let Members::Lines(lines) = &index.members {
        // Indexes of Deacon are converted to our form.
        let kmers: Vec<u64> = lines.iter().collect();
        return save(&Index::from_kmers((index.k, index.w), vec![kmers], (IndexKind::Exact, false))?, path);
    }
    write(path, |to| {
        let front = match (&index.front, &index.members) {
            (Some(words), _) => words.as_slice(),
            (None, Members::Mapped(mapped)) => mapped.front(),
            (None, _) => &[],
        };
        to.write_all(&Parameters::of(index).to_header(front))?;
        to.write_all(bytemuck::cast_slice(front))?;
        let failed = std::io::Error::other::<Box<dyn std::error::Error + Send + Sync>>;
        match &index.members {
            Members::Static(set) => set.write_to(to).map_err(|error| failed(error.into())),
            Members::Long(long) => file::write_to(long, to).map_err(|error| failed(error.into())),
            Members::Fuse16(filter) => filter.write_to(to).map_err(|error| failed(error.into())),
            Members::Fuse32(filter) => filter.write_to(to).map_err(|error| failed(error.into())),
            Members::Sequences(filter) => filter.write_to(to).map_err(|error| failed(error.into())),
            Members::Mapped(mapped) => to.write_all(mapped.structure()),
            Members::Lines(_) => unreachable!("they have been made an index of our own"),
        }
    })
}

pub(super) fn save_for_deacon(index: &Index, path: &Path) -> Result<(), Error> {
    if index.kind() == IndexKind::Sequences {
        return Err(Error::NotForDeacon);
    }
    deacon::takes(index.k, index.w)?;
    let of = (index.k, index.w, index.len);
    if index.k > MOST_SHORT {
        return match index.members.kmers::<u128>() {
            Some(mut kmers) => write(path, |to| deacon::write_exact(index.k, index.w, &mut kmers, to)),
            None => Err(Error::LongFilterForDeacon { k: index.k }),
        };
    }
    if let Some(mut kmers) = index.members.kmers::<u64>() {
        return write(path, |to| deacon::write_exact(index.k, index.w, &mut kmers, to));
    }
    write(path, |to| match &index.members {
        Members::Fuse16(filter) => deacon::write_filter(of, filter, to),
        Members::Fuse32(filter) => deacon::write_filter(of, filter, to),
        Members::Mapped(mapped) => {
            let failed = std::io::Error::other;
            match mapped.kind {
                IndexKind::Fuse16 => {
                    let filter = BinaryFuse16::from_bytes(mapped.structure()).map_err(failed)?;
                    deacon::write_filter(of, &filter, to)
                }
                _ => {
                    let filter = BinaryFuse32::from_bytes(mapped.structure()).map_err(failed)?;
                    deacon::write_filter(of, &filter, to)
                }
            }
        }
        Members::Lines(_) | Members::Static(_) | Members::Long(_) | Members::Sequences(_) => {
            unreachable!("exact indexes have their minimizers, and sequence filters have been refused")
        }
    })
}

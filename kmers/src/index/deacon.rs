//! Indexes of Deacon 0.11 to 0.19: version 3 of its exact indexes, and version 1 of its binary fuse filters.
//!
//! ```text
//! exact     version 3, k, w: a byte each; number of minimizers, u64; ceil(k / 4) bytes for each, ascending or not
//! filter    "DBF"; bits of a fingerprint, 16 or 32, version 1, k, w: a byte each; number of minimizers, u64; then the
//!           filter as `bincode` writes one of the crate `xorf`, with integers of fixed size
//! ```
//!
//! All numbers are little-endian. Minimizers are canonical k-mers as in [`warpset_core::minimizer`].

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use rayon::prelude::*;
use warpset_base::words::zeroed_vec;
use warpset_fuse::{BinaryFuse, Bincode, Width};

use super::lines::Lines;
use super::members::Members;
use super::{Index, check};
use crate::word::{MOST_SHORT, Word};
use crate::{Error, IndexKind};

/// Versions of the formats.
const EXACT: u8 = 3;
const FILTER: u8 = 1;
/// Bytes of an exact index before its minimizers, and of a filter file before the filter.
const EXACT_HEADER: usize = 11;
const FILTER_HEADER: usize = 15;
const FILTER_MAGIC: &[u8] = b"DBF";
/// Minimizers per task.
const TASK: u64 = 1 << 17;

/// Whether a file with this begin is an index of Deacon: `None` if not, or the reason why it cannot be read.
fn recognise(head: &[u8], len: u64) -> Option<Result<(), String>> {
    if head.starts_with(FILTER_MAGIC) && head.len() >= FILTER_HEADER {
        return Some(match (head[4], head[3]) {
            (FILTER, 16 | 32) => Ok(()),
            (FILTER, bits) => Err(format!("its fingerprints have {bits} bits, and can have 16 or 32")),
            (version, _) => Err(format!("it is a filter of Deacon in version {version}, and version {FILTER} is read")),
        });
    }
    let [version @ 1..=EXACT, k, w, ..] = head[..] else { return None };
    if head.len() < EXACT_HEADER || k % 2 == 0 || w % 2 == 0 {
        return None;
    }
    if version < EXACT {
        return Some(Err(format!(
            "it is an index of Deacon in version {version}, and version {EXACT} is read: build it again by Deacon 0.11 or later"
        )));
    }
    let (count, bytes) = (u64_at(head, 3), u64::from(k).div_ceil(4));
    let needed = count.saturating_mul(bytes).saturating_add(EXACT_HEADER as u64);
    Some(if needed == len { Ok(()) } else { Err(format!("its header says {needed} bytes, and it has {len}")) })
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("8 bytes"))
}

/// Fails unless Deacon reads indexes with such windows.
pub(super) fn takes(k: u32, w: u32) -> Result<(), Error> {
    if k > 61 || k.saturating_add(w) > 96 { Err(Error::WindowForDeacon { k, w }) } else { Ok(()) }
}

/// Loads an index of Deacon; `None` if the file is none.
pub(super) fn load(path: &Path, file: &mut File, head: &[u8], len: u64) -> Result<Option<Index>, Error> {
    let damaged = |reason| Error::NotIndex { path: path.to_owned(), reason };
    match recognise(head, len) {
        None => return Ok(None),
        Some(Err(reason)) => return Err(damaged(reason)),
        Some(Ok(())) => {}
    }
    let failed = |source| Error::Read { path: path.to_owned(), source };
    if !head.starts_with(FILTER_MAGIC) {
        let (k, w) = check(head[1].into(), head[2].into())?;
        let (count, bytes) = (u64_at(head, 3), usize::from(head[1]).div_ceil(4));
        if k > MOST_SHORT {
            let mut kmers: Vec<u128> = zeroed_vec(count)?;
            Minimizers { path, k, bytes }.read_long(file, &mut kmers)?;
            let index = Index::from_kmers((k, w), vec![kmers], (IndexKind::Exact, false))?;
            return match index.len() == count {
                true => Ok(Some(index)),
                false => Err(damaged(differs(index.len(), count))),
            };
        }
        let lines = exact(path, (k, bytes), count)?;
        if lines.len() != count {
            return Err(damaged(differs(lines.len(), count)));
        }
        return Ok(Some(Index { k, w, len: count, members: Members::Lines(lines), front: None }));
    }
    let ((k, w), count) = (check(head[5].into(), head[6].into())?, u64_at(head, 7));
    if k > MOST_SHORT {
        return Err(damaged(format!("it is a filter of {k}-mers, and those of Deacon have k up to {MOST_SHORT}")));
    }
    file.seek(SeekFrom::Start(FILTER_HEADER as u64)).map_err(failed)?;
    let rest = len - FILTER_HEADER as u64;
    let members = match head[3] {
        16 => Members::Fuse16(filter(path, file, rest)?),
        _ => Members::Fuse32(filter(path, file, rest)?),
    };
    Ok(Some(Index { k, w, len: count, members, front: None }))
}

fn differs(found: u64, count: u64) -> String {
    format!("it has {found} different minimizers, and its header says {count}")
}

fn filter<F: Width>(path: &Path, file: &mut File, bytes: u64) -> Result<BinaryFuse<F>, Error> {
    let read = BinaryFuse::read_xorf_bincode(file, bytes);
    read.map_err(|error| Error::NotIndex { path: path.to_owned(), reason: error.to_string() })
}

/// Reads the minimizers of an exact index, each of `bytes` bytes, on all threads of the current pool.
///
/// If tasks begin with ascending lines, as Deacon writes them, each task owns the lines up to the first one of the next
/// task. Minimizers of other lines are inserted after all tasks.
fn exact(path: &Path, (k, bytes): (u32, usize), count: u64) -> Result<Lines, Error> {
    let failed = |source| Error::Read { path: path.to_owned(), source };
    let reader = Minimizers { path, k, bytes };
    Lines::filled(count, |filling| {
        let mut file = File::open(path).map_err(failed)?;
        let (mut kmers, mut begins) = (Vec::new(), Vec::new());
        for task in 0..count.div_ceil(TASK) {
            reader.read(&mut file, (task * TASK, 1), &mut Vec::new(), &mut kmers)?;
            begins.push(if task == 0 { 0 } else { filling.line_of(kmers[0]) });
        }
        let is_in_order = begins.is_sorted();
        begins.push(usize::MAX);
        let left = (0..count.div_ceil(TASK)).into_par_iter().map_init(
            || (File::open(path), Vec::new()),
            |(file, packed), task| {
                let file = file.as_mut().map_err(|error| io::Error::new(error.kind(), error.to_string()));
                let (first, mut kmers) = (task * TASK, Vec::new());
                reader.read(file.map_err(failed)?, (first, TASK.min(count - first)), packed, &mut kmers)?;
                if is_in_order {
                    filling
                        .insert_own(&mut kmers, begins[task as usize]..begins[task as usize + 1].min(filling.lines()));
                    kmers.shrink_to_fit();
                } else {
                    filling.insert(&kmers);
                    kmers = Vec::new();
                }
                Ok(kmers)
            },
        );
        let left: Vec<Vec<u64>> = left.collect::<Result<_, Error>>()?;
        left.par_iter().for_each(|kmers| filling.insert(kmers));
        Ok(())
    })
}

/// Packing of minimizers in a file.
#[derive(Clone, Copy)]
struct Minimizers<'a> {
    path: &'a Path,
    k: u32,
    bytes: usize,
}

impl Minimizers<'_> {
    /// Reads `len` minimizers from number `first` on.
    fn read(
        self,
        file: &mut File,
        (first, len): (u64, u64),
        packed: &mut Vec<u8>,
        kmers: &mut Vec<u64>,
    ) -> Result<(), Error> {
        let Minimizers { path, k, bytes } = self;
        // Padded, so that 8 bytes can be read from the last minimizer on.
        packed.resize(len as usize * bytes + 8, 0);
        let mut read = || {
            file.seek(SeekFrom::Start(EXACT_HEADER as u64 + first * bytes as u64))?;
            file.read_exact(&mut packed[..len as usize * bytes])
        };
        read().map_err(|source| Error::Read { path: path.to_owned(), source })?;
        let mask = !0 >> (64 - 8 * bytes);
        kmers.clear();
        match bytes {
            8 => kmers.extend(packed.as_chunks().0[..len as usize].iter().map(|bytes| u64::from_le_bytes(*bytes))),
            _ => kmers.extend((0..len as usize).map(|i| u64_at(packed, i * bytes) & mask)),
        }
        // No canonical k-mer is all G.
        let is_none = |kmer: u64| kmer >> (2 * k) != 0 || kmer == u64::MAX >> 2;
        let (mut all, mut most) = (0, 0);
        for &kmer in &*kmers {
            (all, most) = (all | kmer, most.max(kmer));
        }
        if all >> (2 * k) == 0 && most < u64::MAX >> 2 {
            return Ok(());
        }
        Err(self.not_kmer(kmers.iter().copied().find(|&kmer| is_none(kmer)).unwrap_or(0).into()))
    }

    /// Reads all minimizers, of more than 32 bases.
    fn read_long(self, file: &mut File, kmers: &mut [u128]) -> Result<(), Error> {
        let Minimizers { path, k, bytes } = self;
        let failed = |source| Error::Read { path: path.to_owned(), source };
        file.seek(SeekFrom::Start(EXACT_HEADER as u64)).map_err(failed)?;
        let mut packed = vec![0; bytes * kmers.len().min(TASK as usize)];
        for kmers in kmers.chunks_mut(TASK as usize) {
            let packed = &mut packed[..bytes * kmers.len()];
            file.read_exact(packed).map_err(failed)?;
            for (kmer, packed) in kmers.iter_mut().zip(packed.chunks_exact(bytes)) {
                let mut wide = [0; 16];
                wide[..bytes].copy_from_slice(packed);
                *kmer = u128::from_le_bytes(wide);
                if *kmer >> (2 * k) != 0 {
                    return Err(self.not_kmer(*kmer));
                }
            }
        }
        Ok(())
    }

    fn not_kmer(self, kmer: u128) -> Error {
        let reason = format!("it has a minimizer {kmer:#x}, which is no canonical {}-mer", self.k);
        Error::NotIndex { path: self.path.to_owned(), reason }
    }
}

/// Writes an exact index as Deacon does, with ascending minimizers.
pub(super) fn write_exact<W: Word>(k: u32, w: u32, kmers: &mut [W], to: &mut impl Write) -> io::Result<()> {
    kmers.par_sort_unstable();
    to.write_all(&[EXACT, k as u8, w as u8])?;
    to.write_all(&(kmers.len() as u64).to_le_bytes())?;
    let bytes = (k as usize).div_ceil(4);
    kmers.iter().try_for_each(|kmer| to.write_all(&kmer.wide().to_le_bytes()[..bytes]))
}

/// Writes a filter as Deacon does.
pub(super) fn write_filter<F: Width>(
    (k, w, len): (u32, u32, u64),
    filter: &BinaryFuse<F>,
    to: &mut impl Write,
) -> io::Result<()> {
    let bytes = filter.to_xorf_bincode(Bincode::Legacy).map_err(io::Error::other)?;
    to.write_all(FILTER_MAGIC)?;
    to.write_all(&[8 * size_of::<F>() as u8, FILTER, k as u8, w as u8])?;
    to.write_all(&len.to_le_bytes())?;
    to.write_all(&bytes)
}

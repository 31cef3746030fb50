//! Indexes of Deacon 0.11 to 0.19: version 3 of its exact ones, and version 1 of its binary fuse filters.
//!
//! ```text
//! exact     version 3, k, w: a byte each; number of minimizers, u64; ceil(k / 4) bytes for each, ascending or not
//! filter    "DBF"; bits of a fingerprint, 16 or 32, version 1, k, w: a byte each; number of minimizers, u64; then the
//!           filter as `bincode` writes one of the crate `xorf`, with integers of fixed size
//! ```
//!
//! All little-endian. Minimizers are canonical k-mers as [`warpset_core::minimizer`] has them.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::AtomicU64;

use rayon::prelude::*;
use warpset_base::words::AlignedWords;
use warpset_fuse::{BinaryFuse, Bincode, Width};

use super::front;
use super::lines::Lines;
use super::members::Members;
use super::{Index, check};
use crate::Error;

/// Versions of the formats.
const EXACT: u8 = 3;
const FILTER: u8 = 1;
/// Bytes of an exact index before its minimizers, and of a filter before it.
const EXACT_HEADER: usize = 11;
const FILTER_HEADER: usize = 15;
const FILTER_MAGIC: &[u8] = b"DBF";
/// Minimizers that one task reads.
const TASK: u64 = 1 << 17;

/// Whether a file that begins like this is an index of Deacon: `None` if it is not, or why it cannot be read.
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
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

/// The index in a file of Deacon; `None` if it is none.
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
        let mut front = AlignedWords::zeroed(front::words_for(count))?.in_huge_pages();
        let lines = exact(path, (k, bytes), count, front::shared(front.as_mut_slice()))?;
        if lines.len() != count {
            return Err(damaged(format!("it has {} different minimizers, and its header says {count}", lines.len())));
        }
        return Ok(Some(Index { k, w, len: count, members: Members::Lines(lines), front: Some(front) }));
    }
    let ((k, w), count) = (check(head[5].into(), head[6].into())?, u64_at(head, 7));
    file.seek(SeekFrom::Start(FILTER_HEADER as u64)).map_err(failed)?;
    let rest = len - FILTER_HEADER as u64;
    let members = match head[3] {
        16 => Members::Fuse16(filter(path, file, rest)?),
        _ => Members::Fuse32(filter(path, file, rest)?),
    };
    Ok(Some(Index { k, w, len: count, members, front: None }))
}

fn filter<F: Width>(path: &Path, file: &mut File, bytes: u64) -> Result<BinaryFuse<F>, Error> {
    let read = BinaryFuse::read_xorf_bincode(file, bytes);
    read.map_err(|error| Error::NotIndex { path: path.to_owned(), reason: error.to_string() })
}

/// The minimizers of an exact index, each of `bytes` bytes, read by all threads of the current pool.
fn exact(path: &Path, (k, bytes): (u32, usize), count: u64, front: &[AtomicU64]) -> Result<Lines, Error> {
    let failed = |source| Error::Read { path: path.to_owned(), source };
    Lines::filled(count, |filling| {
        (0..count.div_ceil(TASK)).into_par_iter().try_for_each_init(
            || (File::open(path), Vec::new(), Vec::new()),
            |(file, packed, kmers), task| {
                let (begin, end) = (task * TASK, count.min((task + 1) * TASK));
                packed.resize((end - begin) as usize * bytes, 0);
                let mut read = || {
                    let file = file.as_mut().map_err(|error| io::Error::new(error.kind(), error.to_string()))?;
                    file.seek(SeekFrom::Start(EXACT_HEADER as u64 + begin * bytes as u64))?;
                    file.read_exact(packed)
                };
                read().map_err(failed)?;
                kmers.clear();
                kmers.extend(packed.chunks_exact(bytes).map(|packed| {
                    let mut kmer = [0; 8];
                    kmer[..bytes].copy_from_slice(packed);
                    u64::from_le_bytes(kmer)
                }));
                if let Some(kmer) = kmers.iter().find(|&&kmer| kmer >> (2 * k) != 0 || kmer == u64::MAX >> 2) {
                    let reason = format!("it has a minimizer {kmer:#x}, which is no canonical {k}-mer");
                    return Err(Error::NotIndex { path: path.to_owned(), reason });
                }
                filling.insert(kmers);
                front::insert(front, kmers);
                Ok(())
            },
        )
    })
}

/// Writes an exact index as Deacon does, minimizers ascending.
pub(super) fn write_exact(k: u32, w: u32, kmers: &mut [u64], to: &mut impl Write) -> io::Result<()> {
    kmers.par_sort_unstable();
    to.write_all(&[EXACT, k as u8, w as u8])?;
    to.write_all(&(kmers.len() as u64).to_le_bytes())?;
    let bytes = (k as usize).div_ceil(4);
    kmers.iter().try_for_each(|kmer| to.write_all(&kmer.to_le_bytes()[..bytes]))
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

//! FASTA and FASTQ, plain or gzip, as batches of letters.

use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use needletail::FastxReader;
use needletail::errors::{ParseError, ParseErrorKind};

use crate::roll::{K, is_line_end};
use crate::{Error, Progress};

/// Bytes of a batch, about: it stays in a core's own cache; tests have several batches sooner.
const BATCH: usize = if cfg!(test) { 1 << 12 } else { 1 << 18 };

/// The records of a file.
pub(crate) struct Records<'a> {
    path: &'a Path,
    reader: Box<dyn FastxReader + 'a>,
}

impl<'a> Records<'a> {
    /// Opens a file; gzip is detected by its first bytes.
    pub(crate) fn open(path: &'a Path, progress: &Progress) -> Result<Records<'a>, Error> {
        let failed = |source| Error::Read { path: path.to_owned(), source };
        Records::read(path, progress.open(path).map_err(failed)?)
    }

    /// The same of anything that can be read; `path` is for messages.
    pub(crate) fn read(path: &'a Path, input: impl Read + Send + 'a) -> Result<Records<'a>, Error> {
        let failed = |source| Error::Read { path: path.to_owned(), source };
        let mut input = BufReader::with_capacity(1 << 18, input);
        // One look is not enough: a pipe may give one byte at a time.
        let mut magic = Vec::new();
        input.by_ref().take(2).read_to_end(&mut magic).map_err(failed)?;
        let is_gzip = magic == [0x1f, 0x8b];
        let input = Cursor::new(magic).chain(input);
        let input: Box<dyn BufRead + Send> = if is_gzip {
            Box::new(BufReader::with_capacity(1 << 18, MultiGzDecoder::new(input)))
        } else {
            Box::new(input)
        };
        let reader = needletail::parse_fastx_reader(input).map_err(|error| broken(path, error))?;
        Ok(Records { path, reader })
    }

    /// Visits each record: its bytes as they stand in the file, without the last line end, and its letters with line ends.
    pub(crate) fn each(mut self, mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), Error>) -> Result<(), Error> {
        while let Some(record) = self.reader.next() {
            let record = record.map_err(|error| broken(self.path, error))?;
            visit(record.all(), record.raw_seq())?;
        }
        Ok(())
    }
}

pub(crate) fn broken(path: &Path, error: ParseError) -> Error {
    let path = path.to_owned();
    match error.kind {
        ParseErrorKind::Io => Error::Read { path, source: std::io::Error::other(error.msg) },
        ParseErrorKind::EmptyFile => Error::NotSequence { path, reason: "it is empty".to_owned() },
        _ => Error::NotSequence { path, reason: error.to_string() },
    }
}

/// Hands out the letters of all records in batches, such that each window of `k` bases lies in exactly one. A line end is no
/// letter; a zero byte stands between sequences.
pub(crate) fn batches(
    records: Records<'_>,
    k: K,
    mut take: impl FnMut(Vec<u8>) -> Result<(), Error>,
) -> Result<(), Error> {
    let fresh = || Vec::with_capacity(BATCH + (BATCH >> 2));
    let mut batch = fresh();
    records.each(|_, letters| {
        let mut rest = letters;
        while batch.len() + rest.len() > BATCH {
            let (now, later) = rest.split_at(BATCH.saturating_sub(batch.len()).min(rest.len()));
            batch.extend_from_slice(now);
            // The windows that reach into what comes later begin with bases that both batches have.
            let overlap = last_bases(&batch, k.get() as usize - 1);
            take(std::mem::replace(&mut batch, fresh()))?;
            batch.extend(overlap.into_iter().rev());
            rest = later;
        }
        batch.extend_from_slice(rest);
        batch.push(0);
        Ok(())
    })?;
    if batch.is_empty() { Ok(()) } else { take(batch) }
}

/// The last `count` letters of the last sequence, or fewer if it has fewer, the last one first; line ends are none.
fn last_bases(batch: &[u8], count: usize) -> Vec<u8> {
    let sequence = batch.iter().rev().copied().take_while(|&letter| letter != 0);
    sequence.filter(|&letter| !is_line_end(letter)).take(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Roll;

    fn batched(fasta: &[u8], k: u32) -> (usize, Vec<u64>) {
        let k = K::new(k).unwrap();
        let (mut kmers, mut count) = (Vec::new(), 0);
        batches(Records::read(Path::new("x"), fasta).unwrap(), k, |batch| {
            Roll::new(k).each(&batch, |kmer| kmers.push(kmer));
            count += 1;
            Ok(())
        })
        .unwrap();
        (count, kmers)
    }

    /// Sequences longer than a batch, with short lines, and as long as batches to the byte.
    #[test]
    fn no_window_is_lost_or_counted_twice() {
        for (len, line) in [(3 * BATCH + 7, 61), (2 * BATCH, usize::MAX), (BATCH - 1, usize::MAX), (BATCH, 1000)] {
            let base = |i| b"ACGT"[(warpset_core::hash::finalise(i) & 3) as usize];
            let sequence: Vec<u8> = (0..len as u64).map(base).collect();
            let lines = sequence.chunks(line).collect::<Vec<_>>().join(&b"\r\n"[..]);
            let fasta = [b">a\n", &lines[..], b"\n>b\nACG\nT\n>c\n", &lines[..], b"\n"].concat();
            for k in [1, 2, 31, 32] {
                let mut wanted = Vec::new();
                for sequence in [&sequence[..], b"ACGT", &sequence[..]] {
                    Roll::new(K::new(k).unwrap()).each(sequence, |kmer| wanted.push(kmer));
                }
                let (count, kmers) = batched(&fasta, k);
                assert!(count > 1 && kmers == wanted, "{len} {line} {k}: {} {}", kmers.len(), wanted.len());
            }
        }
    }

    #[test]
    fn bad_files_are_errors() {
        let read =
            |bytes: &'static [u8]| -> Result<(), Error> { Records::read(Path::new("x"), bytes)?.each(|_, _| Ok(())) };
        for bytes in [&b""[..], b">", b"hello\n", b"@a\nACGT\n+\nII\n", b"@a\nACGT\n"] {
            assert!(matches!(read(bytes), Err(Error::NotSequence { .. })), "{bytes:?}: {:?}", read(bytes));
        }
        assert!(read(b"\x1f\x8b\x08\x00damaged").is_err());
    }
}

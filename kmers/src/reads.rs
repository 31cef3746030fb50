//! Records of FASTA and FASTQ, plain or compressed, as batches of letters.

use std::borrow::Cow;
use std::io::{self, Cursor, Read};
use std::path::Path;

use memchr::memchr;
use needletail::FastxReader;
use needletail::errors::{ParseError, ParseErrorKind};

use crate::odd::OddLetters;
use crate::packing::unpacked;
use crate::recognise::{HEAD, is_empty, mark_of, no_sequences};
use crate::roll::{K, is_white};
use crate::screen::{Batch, Format, Input};
use crate::{Error, Progress};

/// Bytes per batch, about, so that it stays in a core's own cache; small in tests, so that they have several batches.
const BATCH: usize = if cfg!(test) { 1 << 12 } else { 1 << 18 };

/// Records of a file.
pub(crate) struct Records<'a> {
    path: &'a Path,
    reader: Reader<'a>,
}

enum Reader<'a> {
    /// File without records.
    Empty,
    /// FASTA, with one sequence in memory at a time.
    Fasta(Box<dyn FastxReader + 'a>),
    Fastq(Input<'a>),
}

impl<'a> Records<'a> {
    /// Opens a file; its first bytes show the form of compression.
    pub(crate) fn open(path: &'a Path, progress: &Progress) -> Result<Records<'a>, Error> {
        let failed = |source| Error::Read { path: path.to_owned(), source };
        Records::read(path, progress.open(path).map_err(failed)?)
    }

    /// Reads the records of any input; `path` is for messages.
    pub(crate) fn read(path: &'a Path, input: impl Read + Send + 'a) -> Result<Records<'a>, Error> {
        let failed = |source| Error::Read { path: path.to_owned(), source };
        // The callers have one thread per file.
        let mut input = unpacked(input, 1).map_err(failed)?;
        // One read is not enough: a pipe may give one byte at a time.
        let mut head = Vec::new();
        input.by_ref().take(HEAD as u64).read_to_end(&mut head).map_err(failed)?;
        if is_empty(&head) {
            return Ok(Records { path, reader: Reader::Empty });
        }
        let reader = match mark_of(&head).and_then(Format::of).ok_or_else(|| no_sequences(path, &head))? {
            Format::Fasta => {
                // Comments before the first record become those of a record without letters.
                let mark: &[u8] = if head.first() == Some(&b';') { b">\n" } else { b"" };
                let input = Ended { text: mark.chain(Cursor::new(head)).chain(input), last: 0, end: None };
                Reader::Fasta(needletail::parse_fastx_reader(input).map_err(|error| broken(path, error))?)
            }
            format => Reader::Fastq(Input::new(path, input, format, head)),
        };
        Ok(Records { path, reader })
    }

    /// Visits each record: its bytes as stored, without the last line end, and its letters with white space.
    pub(crate) fn each(mut self, mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), Error>) -> Result<Seen, Error> {
        let mut seen = Seen { any: !matches!(self.reader, Reader::Empty), ..Seen::default() };
        match &mut self.reader {
            Reader::Empty => {}
            Reader::Fasta(reader) => {
                while let Some(record) = reader.next() {
                    match record {
                        Ok(record) => {
                            let letters = without_comments(record.raw_seq());
                            seen.add(&letters);
                            visit(record.all(), &letters)?;
                        }
                        Err(end) if end.kind == ParseErrorKind::UnexpectedEnd => break,
                        Err(error) => return Err(broken(self.path, error)),
                    }
                }
            }
            Reader::Fastq(input) => loop {
                let batch = input.batch(BATCH, usize::MAX, 1)?;
                if batch.len() == 0 {
                    break;
                }
                seen.add_batch(&batch);
                for record in 0..batch.len() {
                    let (begin, end) = batch.bytes(record);
                    visit(&batch.text()[begin..end], batch.letters(record))?;
                }
            },
        }
        Ok(seen)
    }
}

/// FASTA with the start of one more record at its end. The parser accepts a name without a sequence only if another
/// record follows; the added record it reports as an unexpected end.
struct Ended<R> {
    text: R,
    /// Last byte of the text so far.
    last: u8,
    /// Bytes left to read after the text.
    end: Option<&'static [u8]>,
}

impl<R: Read> Read for Ended<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.end.is_none() {
            let read = self.text.read(buffer)?;
            if let Some(&last) = buffer[..read].last() {
                self.last = last;
            }
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
        }
        self.end.get_or_insert(if self.last == b'\n' { b">" } else { b"\n>" }).read(buffer)
    }
}

/// Replaces lines that begin with `;` by spaces.
fn without_comments(letters: &[u8]) -> Cow<'_, [u8]> {
    if memchr(b';', letters).is_none() {
        return letters.into();
    }
    let mut letters = letters.to_vec();
    letters
        .split_mut(|&byte| byte == b'\n')
        .filter(|line| line.first() == Some(&b';'))
        .for_each(|line| line.fill(b' '));
    letters.into()
}

/// Converts an error of the parser of FASTA, which accepts any text.
fn broken(path: &Path, error: ParseError) -> Error {
    let path = path.to_owned();
    match error.kind {
        ParseErrorKind::Io => Error::Read { path, source: io::Error::other(error.msg) },
        _ => Error::NotSequence { path, reason: format!("{} at line {}", error.msg, error.position.line) },
    }
}

/// Hands out the letters of all records in batches, such that each window of `k` bases lies in exactly one. White space
/// is skipped; a zero byte separates sequences. Returns statistics of the letters.
pub(crate) fn batches(
    records: Records<'_>,
    k: K,
    mut take: impl FnMut(Vec<u8>) -> Result<(), Error>,
) -> Result<Seen, Error> {
    let fresh = || Vec::with_capacity(BATCH + (BATCH >> 2));
    let mut batch = fresh();
    let seen = records.each(|_, letters| {
        let mut rest = letters;
        while batch.len() + rest.len() > BATCH {
            let (now, later) = rest.split_at(BATCH.saturating_sub(batch.len()).min(rest.len()));
            batch.extend_from_slice(now);
            // Windows across the border of two batches begin with bases that both batches have.
            let overlap = last_bases(&batch, k.get() as usize - 1);
            take(std::mem::replace(&mut batch, fresh()))?;
            batch.extend(overlap.into_iter().rev());
            rest = later;
        }
        batch.extend_from_slice(rest);
        batch.push(0);
        Ok(())
    })?;
    if !batch.is_empty() {
        take(batch)?;
    }
    Ok(seen)
}

/// Statistics of letters.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// Whether there were records, with letters or without.
    pub(crate) any: bool,
    pub(crate) odd: OddLetters,
}

impl Seen {
    pub(crate) fn add(&mut self, letters: &[u8]) {
        self.odd += OddLetters::of(letters);
    }

    /// Adds all letters of a batch.
    pub(crate) fn add_batch(&mut self, batch: &Batch) {
        self.odd += batch.odd_letters();
    }

    pub(crate) fn plus(&mut self, other: Seen) {
        self.any |= other.any;
        self.odd += other.odd;
    }
}

/// Returns the last `count` letters of the last sequence, or all if it has fewer, the last one first, without line
/// ends.
fn last_bases(batch: &[u8], count: usize) -> Vec<u8> {
    let sequence = batch.iter().rev().copied().take_while(|&letter| letter != 0);
    sequence.filter(|&letter| !is_white(letter)).take(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Roll;

    fn batched(fasta: &[u8], k: u32) -> (usize, Vec<u128>) {
        let k = K::new(k).unwrap();
        let (mut kmers, mut count) = (Vec::new(), 0);
        batches(Records::read(Path::new("x"), fasta).unwrap(), k, |batch| {
            Roll::of(k).each(&batch, |kmer| kmers.push(kmer));
            count += 1;
            Ok(())
        })
        .unwrap();
        (count, kmers)
    }

    /// Checks sequences longer than a batch, with short lines, and exactly as long as batches.
    #[test]
    fn no_window_is_lost_or_counted_twice() {
        for (len, line) in [(3 * BATCH + 7, 61), (2 * BATCH, usize::MAX), (BATCH - 1, usize::MAX), (BATCH, 1000)] {
            let base = |i| b"ACGT"[(warpset_core::hash::finalise(i) & 3) as usize];
            let sequence: Vec<u8> = (0..len as u64).map(base).collect();
            let lines = sequence.chunks(line).collect::<Vec<_>>().join(&b"\r\n"[..]);
            let fasta = [b">a\n", &lines[..], b"\n>b\nACG\nT\n>c\n", &lines[..], b"\n"].concat();
            for k in [1, 2, 31, 63] {
                let mut wanted = Vec::<u128>::new();
                for sequence in [&sequence[..], b"ACGT", &sequence[..]] {
                    Roll::of(K::new(k).unwrap()).each(sequence, |kmer| wanted.push(kmer));
                }
                let (count, kmers) = batched(&fasta, k);
                assert!(count > 1 && kmers == wanted, "{len} {line} {k}: {} {}", kmers.len(), wanted.len());
            }
        }
    }

    #[test]
    fn bad_files_are_errors() {
        let read = |bytes: &'static [u8]| -> Result<(), Error> {
            Records::read(Path::new("x"), bytes)?.each(|_, _| Ok(())).map(|_| ())
        };
        for (bytes, said) in [
            (&b"\n>a\nACGT\n"[..], "it begins with '\\n', not"),
            (b"hello\n", "it begins with 'h', not"),
            (b"@", "it ends at line 1, within record \"\""),
            (b"@a\nACGT\n+\nIIII\n\nACGT\n+\nIIII\n", "line 5 does not begin with `@`"),
            (b"@a\nACGT\n-\nIIII\n", "line 3 of record \"a\" does not begin with `+`"),
            (b"@a b\nACGT\n+\nII\n", "at line 1, \"a\", has 2 qualities for 4 letters"),
            (b"@a\nACGT\n", "it ends at line 3, within record \"a\""),
        ] {
            let Err(error @ Error::NotSequence { .. }) = read(bytes) else { panic!("{bytes:?}") };
            assert!(error.to_string().contains(said), "{error}");
        }
        assert!(read(b"\x1f\x8b\x08\x00damaged").is_err());
    }
    /// Checks that records without letters, wherever they are, come out unchanged.
    #[test]
    fn records_may_be_empty() {
        let text = ">a\nACGT\n>b\n>c\r\n\n>\n>d";
        for end in ["", "\n", "\r\n", "\nAC", "\nAC\n"] {
            let text = format!("{text}{end}");
            let mut copy = String::new();
            let records = Records::read(Path::new("x"), text.as_bytes()).unwrap();
            records
                .each(|bytes, _| {
                    copy += std::str::from_utf8(bytes).unwrap();
                    copy += "\n";
                    Ok(())
                })
                .unwrap();
            assert_eq!(copy.trim_end_matches('\n'), text.trim_end_matches('\n'));
        }
    }

    #[test]
    fn compressed_files_may_be_cut_anywhere() {
        use std::io::Write;
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(b"@a\nACGT\n+\nIIII\n").unwrap();
        let gzip = gzip.finish().unwrap();
        let text = &b"@a\nACGT\n+\nIIII\n"[..];
        let zstd = ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest);
        for (packed, known_by) in [(gzip, 2), (zstd, 4)] {
            let read = |len: usize| {
                let mut names = 0;
                let records = Records::read(Path::new("x"), &packed[..len])?;
                records.each(|_, _| {
                    names += 1;
                    Ok(())
                })?;
                Ok::<_, Error>(names)
            };
            for len in known_by..packed.len() {
                let cut = read(len);
                assert!(matches!(cut, Err(Error::Read { .. })), "{len}: {cut:?}");
            }
            assert_eq!(read(packed.len()).unwrap(), 1);
        }
    }
}

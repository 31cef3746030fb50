//! Plain FASTA and FASTQ cut into pieces, which threads read and parse side by side.
//!
//! A piece has the lines of FASTA, or the records of FASTQ, that begin in its range of bytes, wherever they end. So
//! pieces are independent, and cuts may be anywhere. Compressed files and pipes can only be read from their start:
//! [`reads`](crate::reads).

mod fasta;
mod fastq;

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use crate::reads::Seen;
use crate::recognise::{HEAD, mark_of};
use crate::screen::Format;
use crate::{Error, K};

/// Bytes per read, about; small in tests, so that they read several times.
const BLOCK: usize = if cfg!(test) { 1 << 8 } else { 1 << 18 };
/// Pieces per thread, if these are as large as blocks.
const PIECES_PER_THREAD: u64 = 16;
/// Largest number of bytes per piece.
const LARGEST: u64 = 1 << 22;

/// Input that can be read from any place.
pub(crate) trait Input: Read + Seek + Send {}
impl<T: Read + Seek + Send> Input for T {}

/// Source of a text.
#[derive(Clone, Copy)]
pub(crate) enum Text<'a> {
    File(&'a Path),
    Bytes(&'a [u8]),
}

impl<'a> Text<'a> {
    /// Returns the name for messages.
    pub(crate) fn path(self) -> &'a Path {
        match self {
            Text::File(path) => path,
            Text::Bytes(_) => Path::new("input"),
        }
    }

    pub(crate) fn open(self) -> io::Result<Box<dyn Input + 'a>> {
        Ok(match self {
            Text::File(path) => Box::new(File::open(path)?),
            Text::Bytes(bytes) => Box::new(Cursor::new(bytes)),
        })
    }

    pub(crate) fn failed(self, source: io::Error) -> Error {
        Error::Read { path: self.path().to_owned(), source }
    }
}

/// Text that can be cut.
#[derive(Clone, Copy)]
pub(crate) struct Plain<'a> {
    text: Text<'a>,
    format: Format,
    len: u64,
}

impl<'a> Plain<'a> {
    /// Finds out whether a text can be cut. Returns `None` if it can only be read from its start, or if its first bytes
    /// are not sound: the reader from the start then reports the fault.
    pub(crate) fn find(text: Text<'a>) -> Result<Option<Plain<'a>>, Error> {
        let failed = |source| text.failed(source);
        if let Text::File(path) = text
            && (path == Path::new("-") || !path.metadata().map_err(failed)?.is_file())
        {
            return Ok(None);
        }
        let mut input = text.open().map_err(failed)?;
        let len = input.seek(SeekFrom::End(0)).map_err(failed)?;
        let mut head = [0; HEAD];
        let read = read_from(&mut *input, 0, &mut head).map_err(failed)?;
        let format = mark_of(&head[..read]).and_then(Format::of);
        Ok(format.map(|format| Plain { text, format, len }))
    }

    /// Cuts all bytes into ranges of similar size, several per thread.
    pub(crate) fn cut(&self, threads: usize) -> impl Iterator<Item = Range<u64>> + use<> {
        let (len, piece) = (self.len, self.len / (PIECES_PER_THREAD * threads as u64));
        let piece = piece.clamp(BLOCK as u64, LARGEST);
        (0..len.div_ceil(piece)).map(move |i| i * piece..len.min((i + 1) * piece))
    }

    /// Opens the piece that begins in `range`.
    pub(crate) fn piece(&self, range: Range<u64>, k: K) -> Result<Piece<'a>, Error> {
        let opened = |source| self.text.failed(source);
        let input = self.text.open().map_err(opened)?;
        let reader = match self.format {
            Format::Fasta => Reader::Fasta(fasta::Lines::new(input, range, k).map_err(opened)?),
            Format::Fastq => Reader::Fastq(fastq::Reads::new(input, self.text, (range, self.len)).map_err(opened)?),
        };
        Ok(Piece { text: self.text, reader, seen: Seen { any: true, ..Seen::default() } })
    }
}

/// Piece that is being read.
pub(crate) struct Piece<'a> {
    text: Text<'a>,
    reader: Reader<'a>,
    seen: Seen,
}

enum Reader<'a> {
    Fasta(fasta::Lines<'a>),
    Fastq(fastq::Reads<'a>),
}

impl Piece<'_> {
    /// Reads about one more block and visits its sequences, or stretches of them that contain all windows; letters
    /// include line ends. Returns whether there may be more.
    pub(crate) fn step(&mut self, mut visit: impl FnMut(&[u8])) -> Result<bool, Error> {
        match &mut self.reader {
            Reader::Fasta(lines) => lines.step(&mut visit, &mut self.seen).map_err(|source| self.text.failed(source)),
            Reader::Fastq(reads) => reads.step(&mut visit, &mut self.seen),
        }
    }

    /// Returns statistics of the letters of lines or records that began in the piece, so far.
    pub(crate) fn seen(&self) -> Seen {
        self.seen
    }
}

/// Fills the buffer from a place of the input on. Returns the number of bytes.
fn read_from(input: &mut dyn Input, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
    input.seek(SeekFrom::Start(at))?;
    fill(input, buffer)
}

/// Fills the buffer, unless the input ends. Returns the number of bytes.
fn fill(input: &mut dyn Input, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Roll;
    use crate::reads::{Records, batches};

    /// Returns all k-mers, sorted, read from the start as compressed files are.
    fn serial(text: &[u8], k: K) -> Result<Vec<u128>, String> {
        let mut kmers = Vec::new();
        Records::read(Path::new("input"), text)
            .and_then(|records| {
                batches(records, k, |batch| {
                    Roll::of(k).each(&batch, |kmer| kmers.push(kmer));
                    Ok(())
                })
            })
            .map_err(|error| error.to_string())?;
        kmers.sort_unstable();
        Ok(kmers)
    }

    /// Returns all k-mers in ascending order, read in pieces of `size` bytes.
    fn in_pieces(text: &[u8], k: K, size: u64) -> Result<Vec<u128>, String> {
        let mut kmers = Vec::new();
        let mut count = || -> Result<(), Error> {
            let plain = Plain::find(Text::Bytes(text))?.expect("text that can be cut");
            for begin in (0..text.len() as u64).step_by(size as usize) {
                let mut piece = plain.piece(begin..text.len().min((begin + size) as usize) as u64, k)?;
                while piece.step(|letters| Roll::of(k).each(letters, |kmer| kmers.push(kmer)))? {}
            }
            Ok(())
        };
        count().map_err(|error| error.to_string())?;
        kmers.sort_unstable();
        Ok(kmers)
    }

    fn same(text: &[u8], size: u64) -> Result<(), TestCaseError> {
        for k in [1, 2, 16, 31, 32, 55, 63].map(|k| K::new(k).unwrap()) {
            let (pieces, serial) = (in_pieces(text, k, size), serial(text, k));
            prop_assert!(pieces == serial, "{k:?}, {size}, {:?}: {pieces:?} {serial:?}", String::from_utf8_lossy(text));
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn fasta_has_the_same_kmers_in_pieces(
            records in prop::collection::vec(("[ -~]{0,20}", "[ACGTacgtN]{0,300}"), 1..9),
            line in prop::sample::select(vec![1usize, 7, 31, 61, 1000]),
            end in prop::sample::select(vec!["\n", "\r\n"]),
            ends in 0usize..3,
            comments in prop::sample::select(vec!["", ";", ";ACGT>", ";ACGTTGCA;>ACGTTTTTGCACCATGAGGGATCC"]),
            size in prop::sample::select(vec![1u64, 2, 13, 64, 255, 256, 1000]),
        ) {
            let comment = if comments.is_empty() { String::new() } else { format!("{comments}{end}") };
            let mut text = comment.clone();
            for (name, sequence) in &records {
                text += &format!(">{name}{end}");
                let lines: Vec<&str> = sequence.as_bytes().chunks(line).map(|line| std::str::from_utf8(line).unwrap()).collect();
                text += &(lines.join(&format!("{end}{comment}")) + end);
            }
            let text = text.trim_end_matches(['\r', '\n']).to_owned() + &end.repeat(ends);
            same(text.as_bytes(), size)?;
        }

        /// Uses qualities that begin like names, and like the line before them.
        #[test]
        fn fastq_has_the_same_kmers_in_pieces(
            records in prop::collection::vec(("[ -~]{0,20}", "[ACGTacgtN]{1,300}", "[@+I>]{1,2}"), 1..9),
            end in prop::sample::select(vec!["\n", "\r\n"]),
            ends in 0usize..3,
            size in prop::sample::select(vec![1u64, 2, 13, 64, 255, 256, 1000]),
        ) {
            let mut text = String::new();
            for (name, sequence, quality) in &records {
                let quality = &quality.repeat(sequence.len())[..sequence.len()];
                text += &format!("@{name}{end}{sequence}{end}+{end}{quality}{end}");
            }
            let text = text.trim_end().to_owned() + &"\n".repeat(ends);
            same(text.as_bytes(), size)?;
        }
    }

    #[test]
    fn damage_is_an_error_wherever_it_is() {
        let read = |i: usize| format!("@{i}\n{}\n+\n{}\n", "ACGT".repeat(20), "IIII".repeat(20));
        let k = K::new(5).unwrap();
        for damaged in [0, 3, 7, 9] {
            for (from, to) in
                [("+\n", "-\n"), ("IIII\n", "III\n"), ("IIII\n", ""), ("@", "#"), ("ACGT\n+", "ACGT\n\n+")]
            {
                let one = |i| if i == damaged { read(i).replacen(from, to, 1) } else { read(i) };
                let text: String = (0..10).map(one).collect();
                if text.starts_with('@') {
                    assert!(serial(text.as_bytes(), k).is_err(), "{text}");
                    for size in [50, 100, 333, 10_000] {
                        assert!(in_pieces(text.as_bytes(), k, size).is_err(), "{damaged} {from:?} {size}");
                    }
                }
            }
        }
        for text in [&b""[..], b"hello\n", b"\x1f\x8b\x08"] {
            assert!(Plain::find(Text::Bytes(text)).unwrap().is_none(), "{text:?}");
        }
        assert!(Plain::find(Text::File(Path::new("-"))).unwrap().is_none());
    }

    /// Checks that lines are counted from the start of the file, whichever piece they are in.
    #[test]
    fn damage_is_told_by_its_line() {
        let one = |i| format!("@{i}\nACGT\n+\n{}\n", if i == 500 { "III" } else { "IIII" });
        let text: String = (0..1000).map(one).collect();
        for size in [100, 1000, 100_000] {
            for told in
                [in_pieces(text.as_bytes(), K::new(5).unwrap(), size), serial(text.as_bytes(), K::new(5).unwrap())]
            {
                let told = told.unwrap_err();
                assert!(told.contains("line 2001, \"500\""), "{size}: {told}");
            }
        }
    }

    #[test]
    fn pieces_cover_a_file() {
        for len in [1, 255, 256, 257, 100_000, 1 << 33] {
            let plain = Plain { text: Text::Bytes(b""), format: Format::Fasta, len };
            for threads in [1, 3, 16] {
                let mut end = 0;
                for range in plain.cut(threads) {
                    assert!(range.start == end && range.end > end && range.end - end <= LARGEST);
                    end = range.end;
                }
                assert_eq!(end, len);
            }
        }
    }
}

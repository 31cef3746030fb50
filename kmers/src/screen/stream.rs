//! Batches of pairs, and of files that can only be read from their start.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::batch::{Batch, Format, name_of};
use super::source::{Pairing, unsound};
use crate::packing::{Text, unpacked};
use crate::recognise::{HEAD, is_empty, mark_of, no_sequences};
use crate::{Error, Progress};

/// File that is being read.
pub(crate) struct Input<'a> {
    path: &'a Path,
    text: Text<'a>,
    format: Format,
    /// Bytes that have been read and not parsed.
    rest: Vec<u8>,
    is_end: bool,
    /// Number of records so far.
    records: u64,
}

/// Hands the records of a file, or of two files of mates, to `take`, in batches of about `bytes`, until it declines.
pub(super) fn batches(
    group: &[PathBuf],
    (pairing, any_mates): (Pairing, bool),
    (bytes, threads): (usize, usize),
    progress: &Progress,
    mut take: impl FnMut(Batch) -> bool,
) -> Result<(), Error> {
    let mates = if pairing == Pairing::Interleaved { 2 } else { 1 };
    let mut first = Input::open(&group[0], progress, threads)?;
    let mut second = match (group, pairing) {
        ([_, second], Pairing::Files) => Some(Input::open(second, progress, threads)?),
        _ => None,
    };
    let mut pairs = 0;
    loop {
        let mut batch = first.batch(bytes, usize::MAX, mates)?;
        if let Some(second) = &mut second {
            let other = second.batch(0, batch.len(), 1)?;
            if other.len() < batch.len() {
                return Err(unpaired(second, first.path));
            }
            batch.pair_with(&other);
        }
        if pairing != Pairing::Single && !any_mates {
            let second = second.as_ref().map_or(first.path, |second| second.path);
            check_names(&batch, pairs, first.path, second)?;
            pairs += batch.units() as u64;
        }
        if batch.len() == 0 {
            if let Some(second) = &mut second
                && second.batch(0, 1, 1)?.len() > 0
            {
                return Err(unpaired(&first, second.path));
            }
            return Ok(());
        }
        if !take(batch) {
            return Ok(());
        }
    }
}

/// Checks that the reads of a batch, which `pairs` pairs precede, have names of mates.
fn check_names(batch: &Batch, pairs: u64, path: &Path, mates: &Path) -> Result<(), Error> {
    for unit in 0..batch.units() {
        let [name, other] = [2 * unit, 2 * unit + 1].map(|record| batch.name(record));
        if !are_mates(name, other) {
            let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
            return Err(Error::OtherMate {
                path: path.to_owned(),
                mates: mates.to_owned(),
                pair: pairs + unit as u64 + 1,
                name: text(name),
                other: text(other),
            });
        }
    }
    Ok(())
}

/// Whether names are equal, except for a 1 and a 2 after a mark at their ends.
fn are_mates(name: &[u8], other: &[u8]) -> bool {
    let stem = |name: &[u8]| match name {
        [.., mark, b'1' | b'2'] if b"/._-:".contains(mark) => Some(name.len() - 1),
        _ => None,
    };
    let is_numbered = stem(name).is_some_and(|len| stem(other) == Some(len) && name[..len] == other[..len]);
    is_numbered || name == other
}

/// Returns the error for a file with fewer reads than that of their mates.
fn unpaired(input: &Input<'_>, mates: &Path) -> Error {
    Error::Unpaired { path: input.path.to_owned(), mates: mates.to_owned(), reads: input.records }
}

impl<'a> Input<'a> {
    fn open(path: &'a Path, progress: &Progress, threads: usize) -> Result<Input<'a>, Error> {
        let failed = |source| Error::Read { path: path.to_owned(), source };
        let mut text = progress.open(path).and_then(|file| unpacked(file, threads)).map_err(failed)?;
        let mut rest = Vec::new();
        text.by_ref().take(HEAD as u64).read_to_end(&mut rest).map_err(failed)?;
        if is_empty(&rest) {
            return Ok(Input { path, text, format: Format::Fasta, rest: Vec::new(), is_end: true, records: 0 });
        }
        let format = mark_of(&rest).and_then(Format::of).ok_or_else(|| no_sequences(path, &rest))?;
        Ok(Input::new(path, text, format, rest))
    }

    /// Creates the input of a text that begins with `head`, which has been read.
    pub(crate) fn new(path: &'a Path, text: Text<'a>, format: Format, head: Vec<u8>) -> Input<'a> {
        Input { path, text, format, rest: head, is_end: false, records: 0 }
    }

    /// Returns the next records: those of about `bytes`, or `most` records whatever their bytes. There are fewer than
    /// `most` only at the end, and always a multiple of `mates`.
    pub(crate) fn batch(&mut self, bytes: usize, most: usize, mates: usize) -> Result<Batch, Error> {
        let mut batch = Batch::default();
        batch.clear(mates > 1);
        *batch.text_mut() = std::mem::take(&mut self.rest);
        let mut at = 0;
        loop {
            at = self.parse(&mut batch, at, most)?;
            let is_filled = match most {
                usize::MAX => batch.len() >= mates && at >= bytes / 2,
                most => batch.len() == most,
            };
            if is_filled || self.is_end {
                break;
            }
            if let Err(source) = self.read(batch.text_mut(), bytes) {
                // Records before it are counted, and may have a fault themselves.
                self.parse(&mut batch, at, usize::MAX)?;
                return Err(self.failed(source, batch.len()));
            }
        }
        if !batch.len().is_multiple_of(mates) {
            if self.is_end {
                let reads = self.records + batch.len() as u64;
                return Err(Error::OddReads { path: self.path.to_owned(), reads });
            }
            at = batch.pop();
        }
        self.rest = batch.text_mut().split_off(at);
        self.records += batch.len() as u64;
        Ok(batch)
    }

    /// Parses up to `most` records of a batch from `at` on. Returns the begin of the first record that is not whole.
    fn parse(&self, batch: &mut Batch, at: usize, most: usize) -> Result<usize, Error> {
        batch.parse(self.format, at, self.is_end, most - batch.len()).map_err(|fault| {
            let before = self.records + batch.len() as u64;
            // Only FASTQ has faults after its first byte: four lines per record.
            unsound(self.path, &fault, 4 * before, name_of(&batch.text()[fault.at..]))
        })
    }

    /// Reads all that is available, and at least `bytes`.
    fn read(&mut self, text: &mut Vec<u8>, bytes: usize) -> io::Result<()> {
        let (begin, more) = (text.len(), text.len().max(bytes).max(1 << 16));
        text.resize(begin + more, 0);
        let mut filled = begin;
        let read = loop {
            match self.text.read(&mut text[filled..]) {
                Ok(0) => {
                    self.is_end = filled < text.len();
                    break Ok(());
                }
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        text.truncate(filled);
        read
    }

    /// Returns the error of reading, with the number of records before it.
    fn failed(&self, source: io::Error, parsed: usize) -> Error {
        let path = self.path.to_owned();
        let records = self.records + parsed as u64;
        let said = format!("{source}, after {records} whole {}", if records == 1 { "record" } else { "records" });
        Error::Read { path, source: io::Error::new(source.kind(), said) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mates_are_known_by_their_names() {
        let text = |name: &str| name.as_bytes().to_vec();
        for (name, other) in [("a", "a"), ("a/1", "a/2"), ("a/2", "a/1"), ("S.1.1", "S.1.2"), ("a_1", "a_2"), ("", "")]
        {
            assert!(are_mates(&text(name), &text(other)), "{name} {other}");
        }
        for (name, other) in [
            ("a", "b"),
            ("a1", "a2"),
            ("a/1", "b/2"),
            ("a/1", "a_2"),
            ("a/1", "a"),
            ("a/1", "a/3"),
            ("S.1", "S.12"),
            ("/1", ""),
        ] {
            assert!(!are_mates(&text(name), &text(other)), "{name} {other}");
        }
    }
}

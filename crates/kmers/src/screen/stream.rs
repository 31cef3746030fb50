//! Batches of what can only be read from its start, and of pairs.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::batch::{Batch, Format, name_of};
use super::source::{Pairing, unsound};
use crate::packing::{Text, unpacked};
use crate::{Error, Progress};

/// A file that is being read.
struct Input<'a> {
    path: &'a Path,
    text: Text<'a>,
    format: Format,
    /// What has been read and not parsed.
    rest: Vec<u8>,
    is_end: bool,
    /// Records so far.
    records: u64,
}

/// Hands the records of a file, or of two files of mates, to `take`, in batches of about `bytes`, until it declines.
pub(super) fn batches(
    group: &[PathBuf],
    pairing: Pairing,
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
    loop {
        let mut batch = first.batch(bytes, usize::MAX, mates)?;
        if let Some(second) = &mut second {
            let other = second.batch(0, batch.len(), 1)?;
            if other.len() < batch.len() {
                return Err(unpaired(second, first.path));
            }
            batch.pair_with(&other);
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

/// The error for a file that has fewer reads than that of their mates.
fn unpaired(input: &Input<'_>, mates: &Path) -> Error {
    Error::Unpaired { path: input.path.to_owned(), mates: mates.to_owned(), reads: input.records }
}

impl<'a> Input<'a> {
    fn open(path: &'a Path, progress: &Progress, threads: usize) -> Result<Input<'a>, Error> {
        let failed = |source| Error::Read { path: path.to_owned(), source };
        let mut text = progress.open(path).and_then(|file| unpacked(file, threads)).map_err(failed)?;
        let mut rest = Vec::new();
        text.by_ref().take(1).read_to_end(&mut rest).map_err(failed)?;
        let unsound = |reason| Error::NotSequence { path: path.to_owned(), reason };
        let Some(&mark) = rest.first() else { return Err(unsound("it is empty".to_owned())) };
        let begins = || unsound(format!("it begins with {:?}, not with `>` or `@`", char::from(mark)));
        let format = Format::of(mark).ok_or_else(begins)?;
        Ok(Input { path, text, format, rest, is_end: false, records: 0 })
    }

    /// The next records: those of about `bytes`, or `most`, which then are read whatever bytes they have. There are
    /// fewer than `most` only at the end, and a multiple of `mates`.
    fn batch(&mut self, bytes: usize, most: usize, mates: usize) -> Result<Batch, Error> {
        let mut batch = Batch::default();
        batch.clear(mates > 1);
        *batch.text_mut() = std::mem::take(&mut self.rest);
        let mut at = 0;
        loop {
            at = batch.parse(self.format, at, self.is_end, most - batch.len()).map_err(|fault| {
                let before = self.records + batch.len() as u64;
                // Only FASTQ has faults after its first byte: four lines per record.
                unsound(self.path, &fault, 4 * before, name_of(&batch.text()[fault.at..]))
            })?;
            let is_filled = match most {
                usize::MAX => batch.len() >= mates && at >= bytes / 2,
                most => batch.len() == most,
            };
            if is_filled || self.is_end {
                break;
            }
            self.read(batch.text_mut(), bytes).map_err(|source| self.failed(source, batch.len()))?;
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

    /// Reads more: as much as there is, and at least `bytes`.
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

    /// The error of reading, with how many records came before it.
    fn failed(&self, source: io::Error, parsed: usize) -> Error {
        let path = self.path.to_owned();
        let records = self.records + parsed as u64;
        let said = format!("{source}, after {records} whole {}", if records == 1 { "record" } else { "records" });
        Error::Read { path, source: io::Error::new(source.kind(), said) }
    }
}

//! Source of batches: records of all inputs, in order, for threads that ask for them.
//!
//! Plain files are cut where records begin, and the thread that gets a part reads and parses it. Compressed files,
//! pipes and pairs can only be read from their start: one thread per file parses ahead.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::Scope;

use memchr::memchr;

use super::batch::{Batch, Fault, Format, What, name_of};
use super::stream;
use crate::pieces::Text;
use crate::recognise::{HEAD, mark_of};
use crate::{Error, Progress};

/// Bytes of the first read in the search for a cut.
const WINDOW: usize = if cfg!(test) { 16 } else { 1 << 12 };
/// Batches parsed ahead.
const AHEAD: usize = 4;

/// Pairing of reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pairing {
    /// Single reads.
    #[default]
    Single,
    /// Adjacent mates in each file.
    Interleaved,
    /// Mates in two files, which are named one after the other.
    Files,
}

/// Files that are read together: one, or two of mates.
type Group<'s> = &'s [PathBuf];

/// Source of batches for threads.
pub(crate) struct Source<'s, 'e> {
    scope: &'s Scope<'s, 'e>,
    progress: &'e Progress,
    pairing: (Pairing, bool),
    bytes: usize,
    threads: usize,
    state: Mutex<State<'e>>,
}

struct State<'e> {
    groups: std::slice::Chunks<'e, PathBuf>,
    current: Current<'e>,
    next: u64,
}

enum Current<'e> {
    None,
    Plain(Plain<'e>),
    Stream(Receiver<Result<Batch, Error>>),
}

/// Plain file, of which the first `at` bytes have been handed out.
struct Plain<'e> {
    path: &'e Path,
    format: Format,
    file: File,
    at: u64,
    len: u64,
}

impl<'s, 'e: 's> Source<'s, 'e> {
    /// Creates a source of batches of about `bytes` bytes; `threads` may unpack blocked gzip. `pairing` has the pairing
    /// of mates, and whether they may have any names.
    pub(crate) fn new(
        scope: &'s Scope<'s, 'e>,
        files: &'e [PathBuf],
        pairing: (Pairing, bool),
        (bytes, threads): (usize, usize),
        progress: &'e Progress,
    ) -> Source<'s, 'e> {
        let groups = files.chunks(if pairing.0 == Pairing::Files { 2 } else { 1 });
        let state = Mutex::new(State { groups, current: Current::None, next: 0 });
        Source { scope, progress, pairing, bytes, threads, state }
    }

    /// Puts the next records into a batch. Returns its number, from 0 on; `None` at the end.
    pub(crate) fn next(&self, batch: &mut Batch) -> Result<Option<u64>, Error> {
        let mut locked = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *locked;
        loop {
            match &mut state.current {
                Current::None => {
                    let Some(group) = state.groups.next() else { return Ok(None) };
                    state.current = self.open(group)?;
                }
                Current::Stream(receiver) => match receiver.recv() {
                    Ok(parsed) => {
                        *batch = parsed?;
                        state.next += 1;
                        return Ok(Some(state.next - 1));
                    }
                    Err(_) => state.current = Current::None,
                },
                Current::Plain(plain) if plain.at == plain.len => state.current = Current::None,
                Current::Plain(plain) => {
                    let failed = |source| Error::Read { path: plain.path.to_owned(), source };
                    let begin = plain.at;
                    plain.at =
                        cut(&mut plain.file, plain.format, begin + self.bytes as u64, plain.len).map_err(failed)?;
                    let (path, format, range) = (plain.path, plain.format, (begin, plain.at, plain.at == plain.len));
                    state.next += 1;
                    let number = state.next - 1;
                    drop(locked);
                    read(Text::File(path), format, range, batch)?;
                    self.progress.advance(range.1 - range.0)?;
                    return Ok(Some(number));
                }
            }
        }
    }

    fn open(&self, group: Group<'e>) -> Result<Current<'e>, Error> {
        if let ([path], Pairing::Single) = (group, self.pairing.0)
            && let Some(plain) = Plain::open(path)?
        {
            return Ok(Current::Plain(plain));
        }
        let (sender, receiver): (SyncSender<_>, _) = sync_channel(AHEAD);
        let (progress, bytes, threads, pairing) = (self.progress, self.bytes, self.threads, self.pairing);
        self.scope.spawn(move || {
            let send = |batch| sender.send(Ok(batch)).is_ok();
            if let Err(error) = stream::batches(group, pairing, (bytes, threads), progress, send) {
                // If the receiver is gone, another error is reported.
                let _ = sender.send(Err(error));
            }
        });
        Ok(Current::Stream(receiver))
    }
}

impl<'e> Plain<'e> {
    /// Opens a plain file. Returns `None` for a file that must be read from its start, where a fault is also reported.
    fn open(path: &'e Path) -> Result<Option<Plain<'e>>, Error> {
        let failed = |source| Error::Read { path: path.to_owned(), source };
        if path == Path::new("-") || !path.metadata().map_err(failed)?.is_file() {
            return Ok(None);
        }
        let mut file = File::open(path).map_err(failed)?;
        let len = file.metadata().map_err(failed)?.len();
        let mut head = Vec::new();
        file.by_ref().take(HEAD as u64).read_to_end(&mut head).map_err(failed)?;
        let format = mark_of(&head).and_then(Format::of);
        Ok(format.map(|format| Plain { path, format, file, at: 0, len }))
    }
}

/// Returns the begin of the first record from `at` on; `len` if there is none.
pub(crate) fn cut(file: &mut (impl Read + Seek + ?Sized), format: Format, at: u64, len: u64) -> io::Result<u64> {
    let mut window = WINDOW;
    loop {
        if at >= len {
            return Ok(len);
        }
        // The byte before may end a line.
        file.seek(SeekFrom::Start(at - 1))?;
        let mut text = Vec::with_capacity(window);
        Read::take(&mut *file, window as u64).read_to_end(&mut text)?;
        if let Some(place) = first_record(&text, format) {
            return Ok(at - 1 + place as u64);
        }
        if at - 1 + text.len() as u64 >= len {
            return Ok(len);
        }
        window *= 4;
    }
}

/// Returns the first line that begins a record, after the first line end.
///
/// A line of qualities may begin with `@` as a record does. But the second line after it begins with `+` only for a
/// record; after qualities that line is the sequence of the next record.
fn first_record(text: &[u8], format: Format) -> Option<usize> {
    let next_line = |at: usize| memchr(b'\n', text.get(at..)?).map(|len| at + len + 1);
    let mut line = next_line(0)?;
    loop {
        let is_record = match (format, text.get(line)?) {
            (Format::Fasta, b'>') => true,
            (Format::Fastq, b'@') => *text.get(next_line(next_line(line)?)?)? == b'+',
            _ => false,
        };
        if is_record {
            return Some(line);
        }
        line = next_line(line)?;
    }
}

/// Reads and parses a part of a file, which ends where a record does.
pub(crate) fn read(
    text: Text<'_>,
    format: Format,
    (begin, end, is_last): (u64, u64, bool),
    batch: &mut Batch,
) -> Result<(), Error> {
    let failed = |source| text.failed(source);
    let read = |part: &mut Vec<u8>| {
        let mut input = text.open()?;
        input.seek(SeekFrom::Start(begin))?;
        part.resize((end - begin) as usize, 0);
        input.read_exact(part)
    };
    batch.clear(false);
    read(batch.text_mut()).map_err(failed)?;
    let fault = match batch.parse(format, 0, true, usize::MAX) {
        Ok(at) if is_last || at == batch.text().len() => return Ok(()),
        Ok(at) => Fault { at, line: 0, what: What::Start },
        Err(fault) => fault,
    };
    let lines = || {
        let mut before = io::BufReader::with_capacity(1 << 18, text.open()?.take(begin + fault.at as u64));
        let mut lines = 0u64;
        while !io::BufRead::fill_buf(&mut before)?.is_empty() {
            io::BufRead::skip_until(&mut before, b'\n')?;
            lines += 1;
        }
        Ok(lines)
    };
    let lines = lines().map_err(failed)?;
    Err(unsound(text.path(), &fault, lines, name_of(&batch.text()[fault.at..])))
}

/// Returns the error for a fault in the record after `lines` lines.
pub(super) fn unsound(path: &Path, fault: &Fault, lines: u64, name: &[u8]) -> Error {
    let (record, line) = (lines + 1, lines + 1 + fault.line as u64);
    let name = String::from_utf8_lossy(name);
    let reason = match fault.what {
        What::Start => format!("line {line} does not begin with `@`"),
        What::Separator => format!(
            "line {line} of record {name:?} does not begin with `+`; records of FASTQ have four lines, and their sequences are \
             not wrapped"
        ),
        What::Lengths { letters, qualities } => {
            format!("the record at line {record}, {name:?}, has {qualities} qualities for {letters} letters")
        }
        What::End => format!("it ends at line {line}, within record {name:?}"),
    };
    Error::NotSequence { path: path.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that cuts are where records begin, for every place.
    #[test]
    fn cuts_are_where_records_begin() {
        let fastq: String = (0..40).map(|i| format!("@{i}\nAC{}\n+\n@@{}\n", "G".repeat(i), "+".repeat(i))).collect();
        let fasta: String = (0..40).map(|i| format!(">{i} >\nAC\n{}\n", "G".repeat(i))).collect();
        for (format, text, mark) in [(Format::Fastq, fastq, "@"), (Format::Fasta, fasta, ">")] {
            let begins: Vec<u64> = (0..40)
                .map(|i| {
                    let head = format!("\n{mark}{i}{}", if mark == ">" { " " } else { "\n" });
                    if i == 0 { 0 } else { text.find(&head).unwrap() as u64 + 1 }
                })
                .collect();
            let len = text.len() as u64;
            for at in 1..=len {
                let wanted = begins.iter().copied().find(|&begin| begin >= at).unwrap_or(len);
                assert_eq!(cut(&mut io::Cursor::new(&text), format, at, len).unwrap(), wanted, "{format:?} {at}");
            }
        }
    }
}

//! Reads split by how many of their k-mers a table has.
//!
//! One thread parses, all others look k-mers up, a batch of reads at a time, and the reads are written in their order.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use rayon::prelude::*;
use warpset_base::parallel::threads_for;

use crate::count::{pieces_of_work, pool};
use crate::pieces::Text;
use crate::reads::Records;
use crate::{Error, Progress, Roll, Table};

/// Bytes of reads that are looked up together, about.
const BATCH: usize = 1 << 22;
/// Bytes of reads that one thread looks up at a time, about.
const SHARE: usize = 1 << 16;

/// How to split reads; each setter states its default.
#[derive(Clone, Debug)]
#[must_use = "nothing is screened until `run`"]
pub struct Screening<'a> {
    table: &'a Table,
    min_hits: u64,
    matched: Option<PathBuf>,
    unmatched: Option<PathBuf>,
    threads: usize,
    progress: Progress,
}

/// How many reads there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Screened {
    /// Reads with at least as many k-mers of the table as asked for.
    pub matched: u64,
    /// Reads with fewer.
    pub unmatched: u64,
}

/// Reads as they stand in their file, and their letters.
#[derive(Default)]
struct Reads {
    bytes: Vec<u8>,
    /// For each read, the end of its bytes, and where its letters begin and end.
    ends: Vec<(usize, usize, usize)>,
}

impl<'a> Screening<'a> {
    /// By the k-mers of this table.
    pub fn new(table: &'a Table) -> Screening<'a> {
        Screening { table, min_hits: 1, matched: None, unmatched: None, threads: 0, progress: Progress::hidden() }
    }

    /// How many windows of a read must be k-mers of the table for the read to match. Default: 1.
    pub fn min_hits(mut self, min_hits: u64) -> Self {
        self.min_hits = min_hits;
        self
    }

    /// The file for reads that match. Default: they are only counted.
    pub fn matched(mut self, path: impl Into<PathBuf>) -> Self {
        self.matched = Some(path.into());
        self
    }

    /// The file for reads that do not. Default: they are only counted.
    pub fn unmatched(mut self, path: impl Into<PathBuf>) -> Self {
        self.unmatched = Some(path.into());
        self
    }

    /// Threads that look k-mers up; 0 for all of the machine. No more are started than one for every 4 KiB of input,
    /// nor than share a batch of reads, 64. Default: all of the machine.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Where to show how far reading is. Default: nowhere.
    pub fn progress(mut self, progress: Progress) -> Self {
        self.progress = progress;
        self
    }

    /// Reads all files and writes each read, as it stands there, to one of the two.
    ///
    /// # Errors
    /// [`Error::NoInput`]; [`Error::SameFile`] if a file would be read and written; [`Error::Read`],
    /// [`Error::NotSequence`], [`Error::Write`]; [`Error::Threads`] if the threads cannot be started;
    /// [`Error::Interrupted`].
    pub fn run(&self, files: &[PathBuf]) -> Result<Screened, Error> {
        self.progress.outcome(self.screen(files))
    }

    fn screen(&self, files: &[PathBuf]) -> Result<Screened, Error> {
        if files.is_empty() {
            return Err(Error::NoInput);
        }
        self.check_files(files)?;
        // Before anything is written: a file that is no FASTA at all leaves the outputs alone.
        let first = Records::open(&files[0], &self.progress)?;
        let mut outputs = [Output::create(self.matched.as_deref())?, Output::create(self.unmatched.as_deref())?];
        let texts: Vec<Text<'_>> = files.iter().map(|path| Text::File(path)).collect();
        let pool = pool(threads_for(self.threads, pieces_of_work(&texts).min((BATCH / SHARE) as u64)))?;
        let mut screened = Screened::default();
        self.progress.say("screening");
        thread::scope(|scope| {
            let (sender, receiver) = sync_channel(2);
            let parser = scope.spawn(move || self.parse(first, &files[1..], &sender));
            for reads in receiver {
                let answers = pool.install(|| self.answers(&reads));
                for (i, &matches) in answers.iter().enumerate() {
                    *(if matches { &mut screened.matched } else { &mut screened.unmatched }) += 1;
                    outputs[usize::from(!matches)].write(reads.read(i))?;
                }
            }
            parser.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        outputs.into_iter().try_for_each(Output::finish)?;
        Ok(screened)
    }

    /// An error if an output is named twice, or is an input.
    fn check_files(&self, files: &[PathBuf]) -> Result<(), Error> {
        let outputs = [&self.matched, &self.unmatched];
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let mut named: Vec<PathBuf> = files.iter().map(|path| real(path)).collect();
        for path in outputs.into_iter().flatten() {
            // It may not exist yet, but its folder does.
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let path_of = path.file_name().map(|name| real(folder).join(name)).unwrap_or_else(|| path.clone());
            if named.contains(&real(path)) || named.contains(&path_of) {
                return Err(Error::SameFile { path: path.clone() });
            }
            named.push(path_of);
        }
        Ok(())
    }

    fn parse(&self, first: Records<'_>, files: &[PathBuf], sender: &SyncSender<Reads>) -> Result<(), Error> {
        let mut reads = Reads::default();
        self.parse_one(first, &mut reads, sender)?;
        for path in files {
            self.parse_one(Records::open(path, &self.progress)?, &mut reads, sender)?;
        }
        send(sender, reads)
    }

    fn parse_one(&self, records: Records<'_>, reads: &mut Reads, sender: &SyncSender<Reads>) -> Result<(), Error> {
        records.each(|bytes, letters| {
            reads.push(bytes, letters);
            if reads.bytes.len() >= BATCH {
                send(sender, std::mem::take(reads))?;
            }
            Ok(())
        })
    }

    /// Whether each read matches.
    fn answers(&self, reads: &Reads) -> Vec<bool> {
        let share = (reads.ends.len() * SHARE / reads.bytes.len().max(1)).max(1);
        let of_share = |(i, ends): (usize, &[(usize, usize, usize)])| {
            let (mut kmers, mut lens) = (Vec::new(), Vec::with_capacity(ends.len()));
            for i in i * share..i * share + ends.len() {
                Roll::new(self.table.k()).each(reads.letters(i), |kmer| kmers.push(kmer));
                lens.push(kmers.len());
            }
            let hits = self.table.filter().contains_bulk(&kmers);
            let mut begin = 0;
            lens.into_iter()
                .map(|end| {
                    let hits = hits[std::mem::replace(&mut begin, end)..end].iter().filter(|hit| **hit).count();
                    hits as u64 >= self.min_hits
                })
                .collect::<Vec<bool>>()
        };
        reads.ends.par_chunks(share).enumerate().flat_map_iter(of_share).collect()
    }
}

/// Where nobody receives any more, writing has failed, which is the error that counts; this one only stops the parser.
fn send(sender: &SyncSender<Reads>, reads: Reads) -> Result<(), Error> {
    sender.send(reads).map_err(|_| Error::NoInput)
}

impl Reads {
    fn push(&mut self, bytes: &[u8], letters: &[u8]) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        if self.bytes.last() != Some(&b'\n') {
            self.bytes.push(b'\n');
        }
        // The letters are a part of the bytes, so their place is known by the addresses.
        let at = begin + (letters.as_ptr() as usize).saturating_sub(bytes.as_ptr() as usize).min(bytes.len());
        self.ends.push((self.bytes.len(), at, (at + letters.len()).min(self.bytes.len())));
    }

    fn read(&self, i: usize) -> &[u8] {
        let begin = if i == 0 { 0 } else { self.ends[i - 1].0 };
        &self.bytes[begin..self.ends[i].0]
    }

    fn letters(&self, i: usize) -> &[u8] {
        let (_, begin, end) = self.ends[i];
        &self.bytes[begin..end]
    }
}

/// A file for reads, or none.
struct Output<'p> {
    file: Option<(&'p Path, BufWriter<File>)>,
}

impl<'p> Output<'p> {
    fn create(path: Option<&'p Path>) -> Result<Output<'p>, Error> {
        let create = |path: &'p Path| match File::create(path) {
            Ok(file) => Ok((path, BufWriter::with_capacity(1 << 18, file))),
            Err(source) => Err(Error::Write { path: path.to_owned(), source }),
        };
        Ok(Output { file: path.map(create).transpose()? })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let Some((path, file)) = &mut self.file else { return Ok(()) };
        file.write_all(bytes).map_err(|source| Error::Write { path: path.to_owned(), source })
    }

    fn finish(self) -> Result<(), Error> {
        let Some((path, mut file)) = self.file else { return Ok(()) };
        file.flush().map_err(|source| Error::Write { path: path.to_owned(), source })
    }
}

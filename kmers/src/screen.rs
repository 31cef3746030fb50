//! Reads split by how much of them a table of k-mers or an index of minimizers has.
//!
//! Threads take batches of reads ([`source`]), decide them ([`decide`]), and bring what is written of them to the sinks
//! ([`sink`]), which put everything into its order again.

mod batch;
mod decide;
mod device;
mod lines;
mod minimizers;
mod rule;
mod sequences;
mod sink;
mod source;
mod stream;
mod summary;
mod windows;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use warpset_base::file::CallFiles;
use warpset_base::parallel::threads_for;
use warpset_gpu::{Backend as Found, Device};

use crate::count::{bytes_of, pieces_of_work, pool};
use crate::pieces::Text;
use crate::settings::Executor;
use crate::{Backend, Error, Index, OddLetters, Progress, Table};

pub(crate) use batch::{Batch, Format};
use decide::{Decider, Decision, Failure};
use device::OnDevice;
use minimizers::ByMinimizers;
pub use rule::Rule;
use sequences::{BySequences, BySequencesOnDevice};
use sink::{Destination, Sink};
pub use source::Pairing;
pub(crate) use source::{Source, cut, read};
pub(crate) use stream::Input;
use windows::ByWindows;

/// What reads are looked up in.
#[derive(Clone, Copy, Debug)]
enum By<'a> {
    Table(&'a Table),
    Index(&'a Index),
}

/// How to split reads; each setter states its default.
///
/// ```
/// use warpset_kmers::{Indexing, Screening};
///
/// # let folder = tempfile::tempdir()?;
/// # let [host, reads, clean] = ["host.fa", "reads.fq", "clean.fq"].map(|name| folder.path().join(name));
/// # let letters = "GATTACACCGGTTAACTTGCATGCACGATCGGCTAGCTAAGCTAGCTTTGCGACGACTTACGTTCAAACGTC";
/// # std::fs::write(&host, format!(">host\n{letters}\n"))?;
/// # std::fs::write(&reads, format!("@host\n{letters}\n+\n{letters}\n@other\nACGT\n+\nIIII\n"))?;
/// let index = Indexing::new(31, 15)?.run(&[host])?;
/// let screened = Screening::by_index(&index).unmatched(&clean).run(&[reads])?;
/// assert_eq!((screened.matched, screened.unmatched), (1, 1));
/// assert_eq!(std::fs::read_to_string(clean)?, "@other\nACGT\n+\nIIII\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is screened until `run`"]
pub struct Screening<'a> {
    by: By<'a>,
    rule: Rule,
    prefix: usize,
    pairing: Pairing,
    any_mates: bool,
    outputs: [Option<PathBuf>; OUTPUTS],
    summary: Option<(PathBuf, Instant)>,
    index_file: Option<PathBuf>,
    level: u32,
    threads: usize,
    progress: Progress,
    place: Executor,
}

/// Bytes of input from which on it pays to open a GPU, if the index to be copied to it is not larger.
const LEAST_FOR_DEVICE: u64 = 1 << 30;

/// Bytes of text that are parsed at a time, about: they stay in a core's cache until they are decided.
const BATCH: usize = if cfg!(test) { 1 << 12 } else { 1 << 20 };

/// Reads that match, their mates, reads that do not, their mates, counts.
const OUTPUTS: usize = 5;
const MATCHED: usize = 0;
const UNMATCHED: usize = 2;
const COUNTS: usize = 4;

/// How many reads and bases there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Screened {
    /// Reads that match, both mates of pairs.
    pub matched: u64,
    /// Reads that do not.
    pub unmatched: u64,
    /// Letters of reads that match.
    pub matched_bases: u64,
    /// Letters of reads that do not.
    pub unmatched_bases: u64,
    /// Letters of all reads that are no A, C, G, T.
    pub odd_letters: OddLetters,
}

impl<'a> Screening<'a> {
    fn new_by(by: By<'a>, rule: Rule) -> Screening<'a> {
        Screening {
            by,
            rule,
            prefix: usize::MAX,
            pairing: Pairing::Single,
            any_mates: false,
            outputs: Default::default(),
            summary: None,
            index_file: None,
            level: 2,
            threads: 0,
            progress: Progress::hidden(),
            place: Executor::Backend(Backend::default()),
        }
    }

    /// By the k-mers of this table: all windows of `k` bases are looked up. A read matches with one hit unless
    /// [told otherwise](Screening::rule).
    pub fn new(table: &'a Table) -> Screening<'a> {
        Screening::new_by(By::Table(table), Rule::ONE)
    }

    /// By the minimizers of this index: a read matches if the index has two different minimizers of it, and 1 % of
    /// them, unless [told otherwise](Screening::rule).
    pub fn by_index(index: &'a Index) -> Screening<'a> {
        Screening::new_by(By::Index(index), Rule::DEACON)
    }

    /// When a read matches. Default: one hit in a table; two in an index, and 1 %.
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rule = rule;
        self
    }

    /// How many hits a read needs to match; 0 for all reads to match. The share stays what it is. Default: as that of
    /// [`rule`](Screening::rule).
    pub fn min_hits(mut self, min_hits: u64) -> Self {
        self.rule = self.rule.with_hits(min_hits);
        self
    }

    /// The rule that is set.
    pub fn current_rule(&self) -> Rule {
        self.rule
    }

    /// Looks at this many bases of each read, from its start; 0 for all. Default: all.
    pub fn prefix(mut self, bases: usize) -> Self {
        self.prefix = if bases == 0 { usize::MAX } else { bases };
        self
    }

    /// Which reads are mates, which match or do not match together: by all hits of both. Default: none.
    pub fn pairing(mut self, pairing: Pairing) -> Self {
        self.pairing = pairing;
        self
    }

    /// Whether reads are mates whatever their names. Unless they are, names have to be equal, but for a 1 and a 2 at
    /// their ends, after a `/`, `.`, `_`, `-` or `:`. Default: `false`.
    pub fn any_mates(mut self, any: bool) -> Self {
        self.any_mates = any;
        self
    }

    /// The file for reads that match: `.gz` and `.zst` are compressed, `-` is the standard output. Default: they are
    /// only counted.
    pub fn matched(self, path: impl Into<PathBuf>) -> Self {
        self.output(MATCHED, path)
    }

    /// The file for second mates that match. Default: they follow the first ones in [`matched`](Screening::matched).
    pub fn matched_mates(self, path: impl Into<PathBuf>) -> Self {
        self.output(MATCHED + 1, path)
    }

    /// The file for reads that do not match. Default: they are only counted.
    pub fn unmatched(self, path: impl Into<PathBuf>) -> Self {
        self.output(UNMATCHED, path)
    }

    /// The file for second mates that do not match. Default: they follow the first ones in
    /// [`unmatched`](Screening::unmatched).
    pub fn unmatched_mates(self, path: impl Into<PathBuf>) -> Self {
        self.output(UNMATCHED + 1, path)
    }

    /// The file for counts: a line per read or pair with its name, hits, all that was looked up, and whether it
    /// matches, 1 or 0, with tabs between them. All minimizers are looked up then. Default: none.
    pub fn counts(self, path: impl Into<PathBuf>) -> Self {
        self.output(COUNTS, path)
    }

    /// The file for the [`summary`](Screening::summary), which gets its name together with the others; time counts from
    /// `start` on. Default: none.
    pub fn summary_file(mut self, path: impl Into<PathBuf>, start: Instant) -> Self {
        self.summary = Some((path.into(), start));
        self
    }

    /// The file of the table or the index, for the summary, and so that no output replaces it. Default: unknown.
    pub fn index_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.index_file = Some(path.into());
        self
    }

    fn output(mut self, which: usize, path: impl Into<PathBuf>) -> Self {
        self.outputs[which] = Some(path.into());
        self
    }

    /// How hard gzip compresses, 1 to 9; Zstandard has one level. Default: 2.
    pub fn compression(mut self, level: u32) -> Self {
        self.level = level.clamp(1, 9);
        self
    }

    /// Threads that look up and compress; 0 for all of the machine. Compressed files and pipes are parsed by one thread
    /// more. No more are started than one for every 4 KiB of input. Default: all of the machine.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Where to show how far reading is. Default: nowhere.
    pub fn progress(mut self, progress: Progress) -> Self {
        self.progress = progress;
        self
    }

    /// What decides; all decide alike. Only an index of minimizers can be asked on a GPU. [`Backend::Auto`] takes one
    /// for a gigabyte of files and an index of no more bytes than they have, if CUDA answers and its memory holds the
    /// index. Default: [`Backend::Auto`].
    pub fn backend(mut self, backend: Backend) -> Self {
        self.place = Executor::Backend(backend);
        self
    }

    /// Whether [`Backend::Auto`] looks for a GPU for an index of `index_bytes` bytes: whoever opens one while the index
    /// is still being read finds it open then.
    pub fn pays_on_device(index_bytes: u64, files: &[PathBuf]) -> bool {
        let texts: Vec<Text<'_>> = files.iter().map(|path| Text::File(path)).collect();
        bytes_of(&texts).is_some_and(|bytes| bytes >= LEAST_FOR_DEVICE.max(index_bytes))
    }

    /// This device decides, instead of one that is opened for it.
    pub fn on(mut self, device: &Device) -> Self {
        self.place = Executor::Device(device.clone());
        self
    }

    /// Reads all files and writes each read, as it stands there, to one of the outputs. They get their names together
    /// when all is written; after an error none does.
    ///
    /// # Errors
    /// [`Error::NoInput`]; [`Error::SameFile`] if a file would be read and written; [`Error::WrongEnding`];
    /// [`Error::Read`], [`Error::NotSequence`], [`Error::OtherKind`], [`Error::Write`]; [`Error::OddFiles`],
    /// [`Error::OddReads`], [`Error::Unpaired`], [`Error::OtherMate`],
    /// [`Error::NoMates`] for pairs; [`Error::Threads`] if the threads cannot be started; [`Error::Interrupted`];
    /// [`Error::TableOnDevice`], [`Error::IndexTooLarge`] and [`Error::Device`] where a GPU is asked for.
    pub fn run(&self, files: &[PathBuf]) -> Result<Screened, Error> {
        self.progress.outcome(self.screen(files))
    }

    fn screen(&self, files: &[PathBuf]) -> Result<Screened, Error> {
        if files.is_empty() {
            return Err(Error::NoInput);
        }
        if self.pairing == Pairing::Files && files.len() % 2 == 1 {
            return Err(Error::OddFiles { files: files.len() });
        }
        if let Some(path) = self.outputs[MATCHED + 1].as_ref().or(self.outputs[UNMATCHED + 1].as_ref())
            && self.pairing == Pairing::Single
        {
            return Err(Error::NoMates { path: path.clone() });
        }
        self.files(files).check()?;
        match self.by {
            By::Table(_) if matches!(self.place, Executor::Device(_) | Executor::Backend(Backend::Cuda)) => {
                Err(Error::TableOnDevice)
            }
            By::Table(table) => self.decided(files, &ByWindows { table, rule: self.rule, prefix: self.prefix }),
            By::Index(index) => match self.on_device(index, files)? {
                Some(decider) => self.decided(files, &*decider),
                None => {
                    if let Some(filter) = index.sequences() {
                        let (rule, prefix) = (self.rule, self.prefix);
                        return self.decided(files, &BySequences { filter, rule, prefix });
                    }
                    let counts = self.outputs[COUNTS].is_some();
                    self.decided(files, &ByMinimizers { index, rule: self.rule, prefix: self.prefix, counts })
                }
            },
        }
    }

    /// The index on a device, if one is to decide.
    fn on_device<'i>(&self, index: &'i Index, files: &[PathBuf]) -> Result<Option<Box<dyn Decider + 'i>>, Error> {
        let how = (self.rule, self.prefix, self.outputs[COUNTS].is_some());
        let there = |device: &Device| -> Result<Box<dyn Decider + 'i>, Error> {
            Ok(match index.sequences() {
                Some(filter) => Box::new(BySequencesOnDevice::new(index, filter, device, (self.rule, self.prefix))?),
                None => Box::new(OnDevice::new(index, device, how)?),
            })
        };
        let found = || match Found::auto() {
            Found::Cuda(device) => there(&device),
            Found::Cpu(why) => Err(why.into()),
        };
        match &self.place {
            Executor::Device(device) => there(device).map(Some),
            Executor::Backend(Backend::Cuda) => found().map(Some),
            Executor::Backend(Backend::Auto) if Screening::pays_on_device(index.memory_bytes(), files) => match found()
            {
                Err(error) if error.asks_for_cpu() => Ok(None),
                decider => decider.map(Some),
            },
            Executor::Backend(Backend::Cpu | Backend::Auto) => Ok(None),
        }
    }

    /// Returns all files of a run.
    fn files(&self, files: &[PathBuf]) -> CallFiles {
        let outputs = self.outputs.iter().flatten().chain(self.summary.as_ref().map(|(path, _)| path));
        CallFiles::new().reads(files).reads(&self.index_file).writes(outputs)
    }

    /// Runs the threads.
    fn decided(&self, files: &[PathBuf], decider: &dyn Decider) -> Result<Screened, Error> {
        let texts: Vec<Text<'_>> = files.iter().map(|path| Text::File(path)).collect();
        let pool = pool(threads_for(self.threads, pieces_of_work(&texts)))?;
        let threads = pool.current_num_threads();
        self.progress.say("screening");
        thread::scope(|scope| {
            let pairing = (self.pairing, self.any_mates);
            let source = Source::new(scope, files, pairing, (BATCH, threads), &self.progress);
            // Before anything is written: what is no FASTA at all leaves the outputs alone, whatever they are.
            let mut first = Batch::default();
            let first = Mutex::new(source.next(&mut first)?.map(|number| (number, first)));
            let mut sinks: [Option<Sink>; OUTPUTS] = Default::default();
            let most_waiting = threads * (4 + decider.most_held());
            for (sink, path) in sinks.iter_mut().zip(&self.outputs) {
                *sink = path.as_ref().map(|path| Sink::create(path, self.level, most_waiting)).transpose()?;
            }
            let summary = self.summary.as_ref().map(|(path, _)| Sink::create(path, self.level, 0)).transpose()?;
            let shared = Shared {
                source: &source,
                first,
                sinks: &sinks,
                failure: Mutex::new(None),
                stop: AtomicBool::new(false),
            };
            let counted = pool.broadcast(|_| {
                let mut sum = Screened::default();
                if let Err((number, error)) = shared.work(decider, &mut sum) {
                    shared.fail(number, error);
                }
                sum
            });
            if let Some((_, error)) = shared.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
                // What is parsed ahead is not needed any more.
                drop(source);
                return Err(error);
            }
            let screened = counted.into_iter().fold(Screened::default(), Screened::plus);
            if let (Some(sink), Some((_, start))) = (&summary, &self.summary) {
                sink.put(0, (self.summary(files, &screened, start.elapsed()) + "\n").into_bytes())?;
            }
            let written = sinks.into_iter().chain([summary]).flatten().map(Sink::end);
            Destination::finish_all(written.collect::<Result<Vec<_>, _>>()?)?;
            Ok(screened)
        })
    }
}

/// What the threads share.
struct Shared<'a, 's, 'e> {
    source: &'a Source<'s, 'e>,
    first: Mutex<Option<(u64, Batch)>>,
    sinks: &'a [Option<Sink>; OUTPUTS],
    /// The error that the first batch of all that failed has.
    failure: Mutex<Option<(u64, Error)>>,
    stop: AtomicBool,
}

impl Shared<'_, '_, '_> {
    /// One thread's part, until there is nothing more or some thread has failed.
    fn work(&self, decider: &dyn Decider, sum: &mut Screened) -> Result<(), Failure> {
        let _unless_it_panics = Panicking(self);
        // Text that was held back has left the cache.
        let may_move = decider.most_held() > 0;
        let keeps_text = self.sinks.iter().any(Option::is_some);
        let mut worker = decider.worker(keeps_text).map_err(|error| (0, error))?;
        let mut done = |number, batch: &mut Batch, decisions: &[Decision]| {
            sum.add(batch, decisions);
            self.write(number, batch, decisions, may_move).map_err(|error| (number, error))
        };
        while !self.stop.load(Ordering::Relaxed) {
            let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
            let (number, batch) = match first {
                Some(first) => first,
                None => {
                    let mut batch = worker.empty();
                    match self.source.next(&mut batch).map_err(|error| (u64::MAX, error))? {
                        Some(number) => (number, batch),
                        None => return worker.finish(&mut done),
                    }
                }
            };
            worker.decide(number, batch, &mut done)?;
        }
        Ok(())
    }

    /// Brings what is written of a batch to the sinks.
    fn write(&self, number: u64, batch: &mut Batch, decisions: &[Decision], may_move: bool) -> Result<(), Error> {
        let texts = written(batch, decisions, (self.sinks, may_move));
        for (sink, text) in self.sinks.iter().zip(texts) {
            if let Some(sink) = sink {
                sink.put(number, text)?;
            }
        }
        Ok(())
    }

    fn fail(&self, number: u64, error: Error) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.as_ref().is_none_or(|(earlier, _)| number < *earlier) {
            *failure = Some((number, error));
        }
        self.stop.store(true, Ordering::Relaxed);
        self.sinks.iter().flatten().for_each(Sink::give_up);
    }
}

/// Lets the other threads end where one panics, so that the panic is seen.
struct Panicking<'a, 'b, 's, 'e>(&'a Shared<'b, 's, 'e>);

impl Drop for Panicking<'_, '_, '_, '_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.stop.store(true, Ordering::Relaxed);
            self.0.sinks.iter().flatten().for_each(Sink::give_up);
        }
    }
}

/// What goes to each output. Where text `may_move`, one that goes to an output as it stands is moved, not copied: the
/// batch gets other memory for its next one, which is not in the cache of this core.
fn written(
    batch: &mut Batch,
    decisions: &[Decision],
    (sinks, may_move): (&[Option<Sink>; OUTPUTS], bool),
) -> [Vec<u8>; OUTPUTS] {
    let mut texts: [Vec<u8>; OUTPUTS] = Default::default();
    if let Some(sink) = &sinks[COUNTS] {
        let text = &mut texts[COUNTS];
        *text = sink.spare();
        text.clear();
        for (unit, decision) in decisions.iter().enumerate() {
            let Decision { matches, hits, total } = *decision;
            text.extend_from_slice(batch.name(unit * batch.mates()));
            text.extend_from_slice(format!("\t{hits}\t{total}\t{}\n", u8::from(matches)).as_bytes());
        }
    }
    for (first, mate) in [(MATCHED, false), (MATCHED, true), (UNMATCHED, false), (UNMATCHED, true)] {
        let which = first + usize::from(mate);
        let Some(sink) = &sinks[which] else { continue };
        // Mates are written together unless they have a file of their own.
        let of_unit: &[usize] = match (batch.mates(), mate, sinks[first + 1].is_some()) {
            (1, false, _) | (2, false, true) => &[0],
            (2, false, false) => &[0, 1],
            (2, true, _) => &[1],
            _ => &[],
        };
        let text = &mut texts[which];
        *text = sink.spare();
        let chosen = |decision: &Decision| decision.matches == (first == MATCHED);
        if may_move && of_unit.len() == batch.mates() && batch.is_in_order() && decisions.iter().all(chosen) {
            // No other output has anything of it.
            *text = batch.replace_text(std::mem::take(text));
            continue;
        }
        text.clear();
        // Records that lie one after the other are copied together.
        let mut run = (0, 0);
        for (unit, _) in decisions.iter().enumerate().filter(|(_, decision)| chosen(decision)) {
            for mate in of_unit {
                let (begin, end) = batch.bytes(unit * batch.mates() + mate);
                if begin == run.1 {
                    run.1 = end;
                } else {
                    text.extend_from_slice(&batch.text()[run.0..run.1]);
                    run = (begin, end);
                }
            }
        }
        text.extend_from_slice(&batch.text()[run.0..run.1]);
        if text.last().is_some_and(|&last| last != b'\n') {
            text.push(b'\n');
        }
    }
    texts
}

impl Screened {
    fn add(&mut self, batch: &Batch, decisions: &[Decision]) {
        self.odd_letters += batch.odd_letters();
        for (unit, decision) in decisions.iter().enumerate() {
            let mates = unit * batch.mates()..(unit + 1) * batch.mates();
            let bases = mates.map(|record| batch.letters_len(record) as u64).sum::<u64>();
            let (reads, letters) = match decision.matches {
                true => (&mut self.matched, &mut self.matched_bases),
                false => (&mut self.unmatched, &mut self.unmatched_bases),
            };
            *reads += batch.mates() as u64;
            *letters += bases;
        }
    }

    fn plus(self, other: Screened) -> Screened {
        let mut odd_letters = self.odd_letters;
        odd_letters += other.odd_letters;
        Screened {
            odd_letters,
            matched: self.matched + other.matched,
            unmatched: self.unmatched + other.unmatched,
            matched_bases: self.matched_bases + other.matched_bases,
            unmatched_bases: self.unmatched_bases + other.unmatched_bases,
        }
    }
}

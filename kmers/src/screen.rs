//! Screening: reads split by their k-mers in a table or in labels, or their minimizers in an index. Settings, and
//! checks of a call.

mod batch;
mod choice;
mod decide;
mod device;
mod lines;
mod minimizers;
mod rule;
mod sequences;
mod sink;
mod source;
mod split;
mod stream;
mod summary;
mod threads;
mod windows;

use std::path::PathBuf;
use std::time::Instant;

use warpset_base::file::CallFiles;
use warpset_gpu::Device;

use crate::settings::{Executor, reading_setters};
use crate::{BackendChoice, Error, Index, Labels, Progress, Table};

pub(crate) use batch::{Batch, Format};
pub use rule::Rule;
pub use source::Pairing;
pub(crate) use source::{cut, read};
use split::{COUNTS, MATCHED, OUTPUTS, UNMATCHED};
pub(crate) use stream::Input;
pub use summary::Screened;

/// Structure in which reads are looked up.
#[derive(Clone, Copy, Debug)]
enum By<'a> {
    Table(&'a Table),
    Index(&'a Index),
    Labels(&'a Labels),
}

/// Settings of a screening; each setter states its default.
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
            place: Executor::Backend(BackendChoice::default()),
        }
    }

    /// Screens by the k-mers of a table: all windows of `k` bases are looked up. A read matches with one hit unless
    /// [`rule`](Screening::rule) says otherwise.
    pub fn new(table: &'a Table) -> Screening<'a> {
        Screening::new_by(By::Table(table), Rule::ONE)
    }

    /// Screens by an index of minimizers: a read matches if the index has two of its different minimizers, and 1 % of
    /// them, unless [`rule`](Screening::rule) says otherwise.
    pub fn by_index(index: &'a Index) -> Screening<'a> {
        Screening::new_by(By::Index(index), Rule::DEACON)
    }

    /// Screens by labels: a read matches if one genome has more votes than each other one, at least two, and those of
    /// 1 % of its windows of `k` bases, unless [`rule`](Screening::rule) says otherwise. A genome has the votes of the
    /// windows that it alone has; mates vote together.
    pub fn by_labels(labels: &'a Labels) -> Screening<'a> {
        Screening::new_by(By::Labels(labels), Rule::DEACON)
    }

    /// Sets the rule by which a read matches. Default: one hit in a table; two hits and 1 % otherwise.
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rule = rule;
        self
    }

    /// Sets the hits that a read needs to match, and keeps the share of the rule. With 0 all reads match. Default: that
    /// of [`rule`](Screening::rule).
    pub fn min_hits(mut self, min_hits: u64) -> Self {
        self.rule = self.rule.with_hits(min_hits);
        self
    }

    /// Returns the rule.
    pub fn current_rule(&self) -> Rule {
        self.rule
    }

    /// Limits lookups to the first `bases` bases of each read; 0 for all. Default: all.
    pub fn prefix(mut self, bases: usize) -> Self {
        self.prefix = if bases == 0 { usize::MAX } else { bases };
        self
    }

    /// Sets which reads are mates. Mates are decided together, by the hits of both. Default: single reads.
    pub fn pairing(mut self, pairing: Pairing) -> Self {
        self.pairing = pairing;
        self
    }

    /// Accepts mates with any names. Otherwise the names of mates must be equal, except for a 1 and a 2 at their ends,
    /// after a `/`, `.`, `_`, `-` or `:`. Default: `false`.
    pub fn any_mates(mut self, any: bool) -> Self {
        self.any_mates = any;
        self
    }

    /// Sets the file for reads that match: `.gz` and `.zst` are compressed, `-` is the standard output. Default: these
    /// reads are only counted.
    pub fn matched(self, path: impl Into<PathBuf>) -> Self {
        self.output(MATCHED, path)
    }

    /// Sets the file for second mates that match. Default: they follow the first mates in
    /// [`matched`](Screening::matched).
    pub fn matched_mates(self, path: impl Into<PathBuf>) -> Self {
        self.output(MATCHED + 1, path)
    }

    /// Sets the file for reads that do not match. Default: these reads are only counted.
    pub fn unmatched(self, path: impl Into<PathBuf>) -> Self {
        self.output(UNMATCHED, path)
    }

    /// Sets the file for second mates that do not match. Default: they follow the first mates in
    /// [`unmatched`](Screening::unmatched).
    pub fn unmatched_mates(self, path: impl Into<PathBuf>) -> Self {
        self.output(UNMATCHED + 1, path)
    }

    /// Sets the file for counts: one line per read or pair with its name, hits, lookups, and 1 if it matches, else 0,
    /// separated by tabs. All minimizers are looked up then. By labels a line has the name, the genome or `-`, the
    /// votes for it, the k-mers of several genomes, all k-mers, and the votes per genome, as `3:97,1:2`, or `-`:
    /// genomes are numbered from 1 on, those with most votes first. Default: none.
    pub fn counts(self, path: impl Into<PathBuf>) -> Self {
        self.output(COUNTS, path)
    }

    /// Sets the file for the [`summary`](Screening::summary), which appears together with the other outputs. Its time
    /// is that since `start`. Default: none.
    pub fn summary_file(mut self, path: impl Into<PathBuf>, start: Instant) -> Self {
        self.summary = Some((path.into(), start));
        self
    }

    /// Names the file of the table, index or labels: it appears in the summary, and no output may replace it. Default:
    /// unknown.
    pub fn index_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.index_file = Some(path.into());
        self
    }

    fn output(mut self, which: usize, path: impl Into<PathBuf>) -> Self {
        self.outputs[which] = Some(path.into());
        self
    }

    /// Sets the effort of gzip, 1 to 9; Zstandard has one level. Default: 2.
    pub fn compression(mut self, level: u32) -> Self {
        self.level = level.clamp(1, 9);
        self
    }

    reading_setters!();

    /// Sets the backend; all backends decide alike. Only an index can be asked on a GPU, not a table or
    /// labels.
    /// [`BackendChoice::Auto`] takes a GPU for at least 3 GiB of files and an index that is no larger than they
    /// are, if CUDA answers and its memory holds the index. Default: [`BackendChoice::Auto`].
    pub fn backend(mut self, backend: BackendChoice) -> Self {
        self.place = Executor::Backend(backend);
        self
    }

    /// Decides on this device instead of one that is opened for the call.
    pub fn on(mut self, device: &Device) -> Self {
        self.place = Executor::Device(device.clone());
        self
    }

    /// Reads all files and writes each read unchanged to one of the outputs. All outputs appear together at the end;
    /// after an error none does.
    ///
    /// # Errors
    /// [`Error::NoInput`]; [`Error::SameFile`] if a file would be read and written; [`Error::WrongEnding`];
    /// [`Error::Read`], [`Error::NotSequence`], [`Error::OtherKind`], [`Error::Write`]; [`Error::OddFiles`],
    /// [`Error::OddReads`], [`Error::Unpaired`], [`Error::OtherMate`], [`Error::NoMates`] for pairs; [`Error::Threads`]
    /// if the threads cannot be started; [`Error::Interrupted`]; [`Error::TableOnDevice`], [`Error::IndexTooLarge`] and
    /// [`Error::Device`] where a GPU is requested.
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
        self.split(files, &*self.decider(files)?)
    }

    /// Returns all files of a run.
    fn files(&self, files: &[PathBuf]) -> CallFiles {
        let outputs = self.outputs.iter().flatten().chain(self.summary.as_ref().map(|(path, _)| path));
        CallFiles::new().reads(files).reads(&self.index_file).writes(outputs)
    }
}

//! The program `kmers`. Its help and `docs/kmers.md` describe it.

mod cli;
mod signals;

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use warpset_base::file::{CallFiles, Replacement};
use warpset_kmers::{
    Error, Index, IndexKind, Indexing, Label, Labels, OddLetters, Packing, Pairing, Progress, Rule, Screening,
    Settings, Table, checksum, count_files, label_files,
};

use cli::{Cli, Command, Kind, On};

/// Number of queues between a process and a GPU. The driver makes eight, in 0.08 s; counting is as fast with one.
const CONNECTIONS: &str = "CUDA_DEVICE_MAX_CONNECTIONS";

/// Error that ends the program.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Kmers(#[from] Error),
    #[error("{0}")]
    Usage(String),
}

type Done = Result<(), Failure>;

/// Messages on the error stream, unless the call is quiet.
#[derive(Clone, Copy)]
struct Voice {
    is_quiet: bool,
}

impl Voice {
    fn say(self, text: impl std::fmt::Display) {
        if !self.is_quiet {
            tell(text);
        }
    }

    /// Mentions letters other than A, C, G, T.
    fn say_odd(self, odd: OddLetters) {
        if odd.uracils > 0 {
            self.say(format_args!("{} letters U were read as T", odd.uracils));
        }
        if odd.others > 0 {
            self.say(format_args!("{} letters are none of A, C, G, T, U, and ended k-mers", odd.others));
        }
    }

    fn progress(self, files: &[PathBuf]) -> Progress {
        if self.is_quiet { Progress::hidden() } else { Progress::of_files(files) }
    }
}

/// Writes a line to the error stream. A closed or full one changes neither results nor the exit status.
fn tell(text: impl std::fmt::Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

fn main() -> ExitCode {
    let Cli { quiet, command } = Cli::parse();
    if matches!(command, Command::Count(_)) && std::env::var_os(CONNECTIONS).is_none() {
        // SAFETY: this is the only thread yet.
        unsafe { std::env::set_var(CONNECTIONS, "1") };
    }
    signals::watch();
    let voice = Voice { is_quiet: quiet };
    let done = match command {
        Command::Count(args) => count(&args, voice),
        Command::Index(args) => index(&args, voice),
        Command::Screen(args) => screen(&args, load, voice),
        Command::Label(args) => label(&args, voice),
        Command::Which(args) => screen(&args.into(), |path, _| Ok(Loaded::Labels(Labels::load(path)?)), voice),
        Command::Info(args) => info(&args),
        Command::Merge(args) => merge(&args, voice),
        Command::Histogram(args) => histogram(&args),
        Command::List(args) => list(&args),
        Command::Generate(args) => generate(&args, voice),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(format_args!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Returns the error for an option that would have no effect.
fn without_effect(option: &str, why: &str) -> Failure {
    Failure::Usage(format!("{option} has no effect: {why}; leave it out"))
}

/// Checks the files of a call before any is opened, and removes the leftovers of runs that died.
fn prepare(reads: &[&[PathBuf]], writes: &[&PathBuf]) -> Done {
    let files = reads.iter().fold(CallFiles::new(), |files, reads| files.reads(*reads)).writes(writes.iter().copied());
    files.check().map_err(Error::from)?;
    files.remove_abandoned();
    Ok(())
}

/// Returns the path of an output that is written at the end, or an error now if it cannot be written.
fn output(path: &Path) -> Result<&Path, Failure> {
    if path == Path::new("-") {
        return Ok(Path::new("/dev/stdout"));
    }
    if !Packing::of_name(path).is_ok_and(|packing| packing == Packing::Plain) {
        let ending = path.extension().unwrap_or_default().to_string_lossy().into_owned();
        let written = "tables, indexes and labels are written unpacked";
        return Err(Error::WrongEnding { path: path.to_owned(), ending, written }.into());
    }
    // A pipe is opened once.
    if fs::metadata(path).map_or(true, |there| there.is_file() || there.is_dir()) {
        Replacement::create(path).map_err(|source| Error::Write { path: path.to_owned(), source })?;
    }
    Ok(path)
}

/// Refuses the standard input for files that are read twice.
fn check_is_file(path: &Path, what: &str) -> Done {
    match path == Path::new("-") {
        true => Err(Failure::Usage(format!("{what} cannot be the standard input (`-`): name its file"))),
        false => Ok(()),
    }
}

fn load_table(path: &Path) -> Result<Table, Failure> {
    check_is_file(path, "a table")?;
    Ok(Table::load(path)?)
}

/// Limits the threads that read and save files: those of the global pool, which is not started yet.
fn limit_threads(asked: Option<usize>) {
    if let Some(threads) = asked {
        let threads = warpset_base::parallel::threads_for(threads, u64::MAX);
        // This is the only call.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
    }
}

fn count(args: &cli::Count, voice: Voice) -> Done {
    let start = Instant::now();
    limit_threads(args.threads);
    prepare(&[&args.files], &[&args.output])?;
    let output = output(&args.output)?;
    let progress = voice.progress(&args.files);
    let mut settings = Settings::new(args.k)?.least(args.min_count).progress(progress.clone());
    settings = settings.backend(args.backend.into());
    if let Some(threads) = args.threads {
        settings = settings.threads(threads);
    }
    if let Some(memory) = args.max_memory {
        settings = settings.memory(memory);
    }
    let counted = count_files(&args.files, &settings);
    progress.finish();
    let table = counted?;
    table.save(output)?;
    voice.say_odd(progress.odd_letters());
    voice.say(of_table(&table, &args.output));
    voice.say(format_args!("{:.2} s", start.elapsed().as_secs_f64()));
    Ok(())
}

fn of_table(table: &Table, path: &Path) -> String {
    let (distinct, total, k) = (table.distinct(), table.total(), table.k().get());
    let bytes = table.memory_bytes();
    format!("{}: {distinct} different {k}-mers, {total} in all, {bytes} bytes", path.display())
}

fn label(args: &cli::Label, voice: Voice) -> Done {
    let start = Instant::now();
    limit_threads(args.threads);
    prepare(&[&args.files], &[&args.output])?;
    let output = output(&args.output)?;
    let progress = voice.progress(&args.files);
    let mut settings = Settings::new(args.k)?.threads(args.threads.unwrap_or(0)).progress(progress.clone());
    if let Some(memory) = args.max_memory {
        settings = settings.memory(memory);
    }
    let labelled = label_files(&args.files, &settings, args.filter_bits);
    progress.finish();
    let labels = labelled?;
    labels.save(output)?;
    voice.say_odd(progress.odd_letters());
    voice.say(of_labels(&labels, &args.output));
    voice.say(format_args!("{:.2} s", start.elapsed().as_secs_f64()));
    Ok(())
}

fn of_labels(labels: &Labels, path: &Path) -> String {
    let (len, k, genomes, bytes) = (labels.len(), labels.k().get(), labels.genomes().len(), labels.memory_bytes());
    let several = labels.kmers(Label::Several);
    let path = path.display();
    format!("{path}: {len} {k}-mers of {genomes} genomes, {several} of several, {bytes} bytes")
}

fn index(args: &cli::IndexArgs, voice: Voice) -> Done {
    let start = Instant::now();
    limit_threads(args.threads);
    prepare(&[&args.files, &args.without], &[&args.output])?;
    let output = output(&args.output)?;
    let kind = match args.kind {
        Kind::Exact => IndexKind::Exact,
        Kind::Fuse16 => IndexKind::Fuse16,
        Kind::Fuse32 => IndexKind::Fuse32,
        Kind::Sequences => IndexKind::Sequences,
    };
    match kind {
        IndexKind::Sequences if args.for_deacon => return Err(Error::NotForDeacon.into()),
        IndexKind::Fuse16 | IndexKind::Fuse32 if args.for_deacon && args.k > 32 => {
            return Err(Error::LongFilterForDeacon { k: args.k }.into());
        }
        IndexKind::Sequences if args.w.is_some() => {
            return Err(without_effect("-w", "an index of kind sequences has all k-mers"));
        }
        IndexKind::Sequences => {}
        _ if args.bits_per_kmer.is_some() => {
            return Err(without_effect("--bits-per-kmer", "only an index of --kind sequences has a choice"));
        }
        _ => {}
    }
    let progress = voice.progress(&args.files);
    let mut indexing = Indexing::new(args.k, args.w.unwrap_or(15))?.kind(kind).without(args.without.iter().cloned());
    if let Some(bits) = args.bits_per_kmer {
        indexing = indexing.bits_per_kmer(bits);
    }
    let indexing = indexing.for_deacon(args.for_deacon);
    let indexing = indexing.threads(args.threads.unwrap_or(0)).progress(progress.clone());
    let indexed = indexing.run(&args.files);
    progress.finish();
    let index = indexed?;
    if args.for_deacon { index.save_for_deacon(output) } else { index.save(output) }?;
    voice.say_odd(progress.odd_letters());
    voice.say(of_index(&index, &args.output));
    voice.say(format_args!("{:.2} s", start.elapsed().as_secs_f64()));
    Ok(())
}

fn of_index(index: &Index, path: &Path) -> String {
    let (len, k, w, kind, bytes) = (index.len(), index.k().get(), index.w(), index.kind(), index.memory_bytes());
    let path = path.display();
    match kind {
        // Above a million k-mers an estimate.
        IndexKind::Sequences => format!("{path}: about {len} k-mers, k = {k}, {kind}, {bytes} bytes"),
        _ => format!("{path}: {len} minimizers, k = {k}, w = {w}, {kind}, {bytes} bytes"),
    }
}

/// Structure by which reads are screened.
enum Loaded {
    Table(Table),
    Index(Index),
    Labels(Labels),
}

fn load(path: &Path, map: bool) -> Result<Loaded, Failure> {
    check_is_file(path, "an index")?;
    let is_table = Table::is_in(path);
    if is_table || Labels::is_in(path) {
        return match (map, is_table) {
            (true, _) => Err(without_effect("--map", "tables and labels are read")),
            (false, true) => Ok(Loaded::Table(Table::load(path)?)),
            (false, false) => Ok(Loaded::Labels(Labels::load(path)?)),
        };
    }
    if map && !Index::can_be_mapped(path) {
        return Err(without_effect("--map", "only indexes that `kmers index` wrote are mapped"));
    }
    // SAFETY: the help of `--map` tells the user that the file must not change.
    let index = if map { unsafe { Index::map(path) } } else { Index::load(path) };
    Ok(Loaded::Index(index?))
}

fn info(args: &cli::Info) -> Done {
    let said = match load(&args.file, false)? {
        Loaded::Table(table) => of_table(&table, &args.file),
        Loaded::Index(index) => of_index(&index, &args.file),
        Loaded::Labels(labels) => {
            let genomes = labels.genomes().iter().enumerate();
            let line = |(i, name): (usize, &String)| format!("{}\t{}\t{name}\n", i + 1, labels.kmers(Label::Genome(i)));
            let lines: String = genomes.map(line).collect();
            printing(|out| out.write_all(lines.as_bytes()))?;
            of_labels(&labels, &args.file)
        }
    };
    tell(format_args!("{said}, checksum {}", checksum(&args.file)?));
    Ok(())
}

fn screen(args: &cli::Screen, load: impl FnOnce(&Path, bool) -> Result<Loaded, Failure>, voice: Voice) -> Done {
    let start = Instant::now();
    let reads = &args.reads;
    type Output<'a> = fn(Screening<'a>, PathBuf) -> Screening<'a>;
    let outputs: [(&Option<PathBuf>, Output<'_>); 5] = [
        (&args.matched, Screening::matched),
        (&args.matched_mates, Screening::matched_mates),
        (&args.unmatched, Screening::unmatched),
        (&args.unmatched_mates, Screening::unmatched_mates),
        (&args.counts, Screening::counts),
    ];
    let written: Vec<&PathBuf> = outputs.iter().filter_map(|(path, _)| path.as_ref()).chain(&args.summary).collect();
    check_is_file(&args.index, "an index")?;
    prepare(&[std::slice::from_ref(&args.index), &reads.files], &written)?;
    let is_gzip = |path: &&PathBuf| Packing::of_name(path).is_ok_and(|packing| packing == Packing::Gzip);
    if reads.compression.is_some() && !written.iter().any(is_gzip) {
        return Err(without_effect("--compression", "no output is a file of gzip"));
    }
    // A driver takes some tenths of a second to start; the index is read meanwhile. The device stays open to the end.
    let bytes = args.index.metadata().map_or(0, |file| file.len());
    let asks = match args.backend {
        On::Auto => Screening::pays_on_device(bytes, &reads.files),
        On::Cpu => false,
        On::Cuda => true,
    };
    let opening = asks.then(|| std::thread::spawn(warpset_gpu::Backend::auto));
    limit_threads(reads.threads);
    let loaded = load(&args.index, args.map)?;
    let mut screening = match &loaded {
        Loaded::Table(table) => Screening::new(table),
        Loaded::Index(index) => Screening::by_index(index),
        Loaded::Labels(labels) => Screening::by_labels(labels),
    };
    let rule = screening.current_rule();
    let rule = Rule::new(reads.min_hits.unwrap_or(rule.hits()), reads.min_share.unwrap_or(rule.share()))?;
    let progress = voice.progress(&reads.files);
    let pairing = match (reads.paired, reads.interleaved) {
        (true, _) => Pairing::Files,
        (_, true) => Pairing::Interleaved,
        _ => Pairing::Single,
    };
    screening = screening.rule(rule).prefix(reads.prefix).pairing(pairing).any_mates(reads.any_mates);
    screening = screening.compression(reads.compression.unwrap_or(2)).index_file(&args.index);
    screening = screening.threads(reads.threads.unwrap_or(0)).progress(progress.clone()).backend(args.backend.into());
    for (path, output) in outputs {
        if let Some(path) = path {
            screening = output(screening, path.clone());
        }
    }
    if let Some(path) = &args.summary {
        screening = screening.summary_file(path, start);
    }
    let opened = opening.map(std::thread::JoinHandle::join);
    let screened = screening.run(&reads.files);
    drop(opened);
    progress.finish();
    let screened = match screened {
        // The reader of the only output has closed it.
        Err(Error::Write { source, .. }) if source.kind() == io::ErrorKind::BrokenPipe && written.len() == 1 => {
            return Ok(());
        }
        screened => screened?,
    };
    let (matched, unmatched) = (screened.matched, screened.unmatched);
    match pairing {
        Pairing::Single => voice.say(format_args!("{matched} reads match, {unmatched} do not")),
        _ => voice.say(format_args!(
            "{} pairs match, {} do not: {} reads in all",
            matched / 2,
            unmatched / 2,
            matched + unmatched
        )),
    }
    voice.say_odd(OddLetters { others: 0, ..screened.odd_letters });
    if written.is_empty() {
        voice.say("nothing was written: --matched, --unmatched, --counts and --summary name files for that");
    }
    Ok(())
}

fn merge(args: &cli::Merge, voice: Voice) -> Done {
    prepare(&[&args.tables], &[&args.output])?;
    let output = output(&args.output)?;
    let (first, rest) = args.tables.split_first().ok_or(Error::NoInput)?;
    let mut sum = load_table(first)?;
    for path in rest {
        let table = load_table(path)?;
        let failed = |error| Failure::Usage(format!("cannot add {} to the tables before it: {error}", path.display()));
        sum.merge(&table).map_err(failed)?;
    }
    sum.keep(args.min_count)?;
    sum.save(output)?;
    voice.say(of_table(&sum, &args.output));
    Ok(())
}

fn generate(args: &cli::Generate, voice: Voice) -> Done {
    let failed = |source| Error::Write { path: args.folder.clone(), source };
    cli::generate(&args.folder).map_err(failed)?.iter().for_each(|file| voice.say(file.display()));
    Ok(())
}

/// Calls `print` with the standard output.
fn printing(print: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Done {
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    match print(&mut out).and_then(|()| out.flush()) {
        // The reader of the output has closed it.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => Ok(done.map_err(|source| Error::Write { path: "the standard output".into(), source })?),
    }
}

fn histogram(args: &cli::Histogram) -> Done {
    let histogram = load_table(&args.table)?.histogram(args.most as usize)?;
    printing(|out| {
        let lines = histogram.iter().enumerate().filter(|(_, kmers)| **kmers > 0);
        for (copies, kmers) in lines {
            writeln!(out, "{copies}\t{kmers}")?;
        }
        Ok(())
    })
}

fn list(args: &cli::List) -> Done {
    let table = load_table(&args.table)?;
    let counts = table.counts()?;
    printing(|out| {
        for (kmer, copies) in counts.filter(|(_, copies)| *copies >= args.min_count) {
            writeln!(out, "{kmer}\t{copies}")?;
        }
        Ok(())
    })
}

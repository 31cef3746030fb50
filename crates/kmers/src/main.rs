//! The program `kmers`; `kmers --help` says what it does, `docs/kmers.md` more.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::{Args, Parser, Subcommand, ValueEnum};
use warpset_kmers::{
    Backend, Error, Index, IndexKind, Indexing, Pairing, Progress, Rule, Screening, Settings, Table, count_files,
};

/// Counts the k-mers of genomes and reads exactly, and screens reads by them
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Count the canonical k-mers of FASTA and FASTQ files, plain, gzip or Zstandard
    Count(Count),
    /// Index the minimizers of sequences, or unite indexes
    Index(IndexArgs),
    /// Split reads by how many of their minimizers an index has, or how many of their k-mers a table has
    Screen(Screen),
    /// Say what an index or a table has
    Info(Info),
    /// Add up tables
    Merge(Merge),
    /// Print how many different k-mers there are with each number of copies
    Histogram(Histogram),
    /// Print all k-mers with their numbers of copies, in no order
    List(List),
}

#[derive(Args)]
struct Count {
    /// Files; `-` is the standard input
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Bases per k-mer, 1 to 32
    #[arg(short, long, default_value_t = 31)]
    k: u32,
    /// The file for the table
    #[arg(short, long)]
    output: PathBuf,
    /// Leave out k-mers of which there are fewer copies
    #[arg(long, default_value_t = 1)]
    min_count: u64,
    /// Memory that may be used, in bytes or with K, M or G (2^10, 2^20, 2^30); default: no limit
    #[arg(long, value_parser = bytes)]
    max_memory: Option<u64>,
    /// Threads; default: all
    #[arg(short, long)]
    threads: Option<usize>,
    /// What counts; all give the same table
    #[arg(long, value_enum, default_value_t = On::Auto)]
    backend: On,
}

#[derive(Clone, Copy, ValueEnum)]
enum On {
    /// A GPU if CUDA answers, the input is large enough for it to pay, and no --max-memory is given; else the CPU
    Auto,
    /// The CPU
    Cpu,
    /// A GPU; an error if none answers
    Cuda,
}

impl From<On> for Backend {
    fn from(on: On) -> Backend {
        match on {
            On::Auto => Backend::Auto,
            On::Cpu => Backend::Cpu,
            On::Cuda => Backend::Cuda,
        }
    }
}

#[derive(Args)]
struct IndexArgs {
    /// Sequences (`-` is the standard input), and exact indexes of this program or of Deacon
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The file for the index
    #[arg(short, long)]
    output: PathBuf,
    /// Bases per k-mer, odd, 1 to 31
    #[arg(short, long, default_value_t = 31)]
    k: u32,
    /// K-mers per window, of which one is taken: odd, 1 to 63; not used for sequences
    #[arg(short, long, default_value_t = 15)]
    w: u32,
    /// How the index answers
    #[arg(long, value_enum, default_value_t = Kind::Exact)]
    kind: Kind,
    /// Bits of memory per k-mer of an index of kind sequences [default: 16]
    #[arg(long)]
    bits_per_kmer: Option<f64>,
    /// Leave out the minimizers of this file, sequences or an exact index; for sequences its k-mers, and a table
    /// instead of an index; may be given several times
    #[arg(long)]
    without: Vec<PathBuf>,
    /// Write an index that Deacon reads
    #[arg(long)]
    for_deacon: bool,
    /// Threads; default: all
    #[arg(short, long)]
    threads: Option<usize>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    /// Exactly, 80 bits per minimizer
    Exact,
    /// With a rate of false positives of 2^-16, 18 bits
    Fuse16,
    /// With a rate of false positives of 2^-32, 36 bits
    Fuse32,
    /// All k-mers instead of minimizers, 16 bits per k-mer (about 128 per minimizer): k from 9 on
    Sequences,
}

#[derive(Args)]
struct Screen {
    /// An index that `index` or Deacon wrote, or a table that `count` or `merge` wrote
    index: PathBuf,
    /// Files of reads; `-` is the standard input
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The file for reads that match; `.gz` and `.zst` are compressed, `-` is the standard output
    #[arg(long)]
    matched: Option<PathBuf>,
    /// The file for second mates that match; default: they follow the first ones
    #[arg(long, requires = "matched")]
    matched_mates: Option<PathBuf>,
    /// The file for reads that do not match
    #[arg(long)]
    unmatched: Option<PathBuf>,
    /// The file for second mates that do not; default: they follow the first ones
    #[arg(long, requires = "unmatched")]
    unmatched_mates: Option<PathBuf>,
    /// The file for the hits of each read: name, hits, all that was looked up, whether it matches
    #[arg(long)]
    counts: Option<PathBuf>,
    /// The file for a summary as JSON
    #[arg(long)]
    summary: Option<PathBuf>,
    /// How many different minimizers of a read the index must have for it to match, or how many k-mers the table or an
    /// index of sequences [default: 2, of a table 1]
    #[arg(long)]
    min_hits: Option<u64>,
    /// Which share of its minimizers the index must have, or of its k-mers the table [default: 0.01, of a table 0]
    #[arg(long)]
    min_share: Option<f64>,
    /// Bases of each read that are looked at, from its start; 0 for all
    #[arg(long, default_value_t = 0)]
    prefix: usize,
    /// Files are named two by two, with mates in both
    #[arg(long, conflicts_with = "interleaved")]
    paired: bool,
    /// Mates follow one another in each file
    #[arg(long)]
    interleaved: bool,
    /// Map the index into memory instead of reading and checking it: for small inputs; it must not change meanwhile
    #[arg(long)]
    map: bool,
    /// What decides, for an index of minimizers; all decide alike. Auto takes a GPU for a gigabyte of files and more,
    /// if the index fits into its memory
    #[arg(long, value_enum, default_value_t = On::Auto)]
    backend: On,
    /// How hard gzip compresses
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=9))]
    compression: u32,
    /// Threads; default: all
    #[arg(short, long)]
    threads: Option<usize>,
}

#[derive(Args)]
struct Info {
    /// An index or a table
    file: PathBuf,
}

#[derive(Args)]
struct Merge {
    /// Tables of the same k
    #[arg(required = true)]
    tables: Vec<PathBuf>,
    /// The file for their sum
    #[arg(short, long)]
    output: PathBuf,
    /// Leave out k-mers of which there are fewer copies in all
    #[arg(long, default_value_t = 1)]
    min_count: u64,
}

#[derive(Args)]
struct Histogram {
    /// A table
    table: PathBuf,
    /// The last line counts k-mers with that many copies and more
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    most: u32,
}

#[derive(Args)]
struct List {
    /// A table
    table: PathBuf,
    /// Leave out k-mers of which there are fewer copies
    #[arg(long, default_value_t = 1)]
    min_count: u64,
}

/// A number of bytes.
fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match text[digits.len()..].to_ascii_uppercase().trim_end_matches(['B', 'I']) {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err("write a number of bytes, or one with K, M or G after it".to_owned()),
    };
    let number: u64 = digits.parse().map_err(|_| "write a whole number, then K, M or G".to_owned())?;
    number.checked_mul(1 << shift).ok_or_else(|| "that is more than 2^64 bytes".to_owned())
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Count(args) => count(&args),
        Command::Index(args) => index(&args),
        Command::Screen(args) => screen(&args),
        Command::Info(args) => info(&args),
        Command::Merge(args) => merge(&args),
        Command::Histogram(args) => histogram(&args),
        Command::List(args) => list(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads our output has enough of it.
        Err(Error::Write { source, .. }) if source.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn count(args: &Count) -> Result<(), Error> {
    let start = Instant::now();
    let progress = Progress::of_files(&args.files);
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
    table.save(&args.output)?;
    say(&table, &args.output);
    eprintln!("{:.2} s", start.elapsed().as_secs_f64());
    Ok(())
}

fn say(table: &Table, path: &Path) {
    let (distinct, total, k) = (table.distinct(), table.total(), table.k().get());
    let bytes = table.filter().memory_bytes();
    eprintln!("{}: {distinct} different {k}-mers, {total} in all, {bytes} bytes", path.display());
}

fn index(args: &IndexArgs) -> Result<(), Error> {
    let start = Instant::now();
    let progress = Progress::of_files(&args.files);
    let kind = match args.kind {
        Kind::Exact => IndexKind::Exact,
        Kind::Fuse16 => IndexKind::Fuse16,
        Kind::Fuse32 => IndexKind::Fuse32,
        Kind::Sequences => IndexKind::Sequences,
    };
    if args.for_deacon && kind == IndexKind::Sequences {
        return Err(Error::NotForDeacon);
    }
    let mut indexing = Indexing::new(args.k, args.w)?.kind(kind).without(args.without.iter().cloned());
    if let Some(bits) = args.bits_per_kmer {
        indexing = indexing.bits_per_kmer(bits);
    }
    let indexing = indexing.threads(args.threads.unwrap_or(0)).progress(progress.clone());
    let indexed = indexing.run(&args.files);
    progress.finish();
    let index = indexed?;
    if args.for_deacon { index.save_for_deacon(&args.output) } else { index.save(&args.output) }?;
    say_index(&index, &args.output);
    eprintln!("{:.2} s", start.elapsed().as_secs_f64());
    Ok(())
}

fn say_index(index: &Index, path: &Path) {
    let (len, k, w, kind, bytes) = (index.len(), index.k().get(), index.w(), index.kind(), index.memory_bytes());
    let path = path.display();
    match kind {
        // Beyond a million they are an estimate.
        IndexKind::Sequences => eprintln!("{path}: about {len} k-mers, k = {k}, {kind}, {bytes} bytes"),
        _ => eprintln!("{path}: {len} minimizers, k = {k}, w = {w}, {kind}, {bytes} bytes"),
    }
}

/// What reads are screened by.
enum Loaded {
    Table(Table),
    Index(Index),
}

fn load(path: &Path, map: bool) -> Result<Loaded, Error> {
    if Table::is_in(path) {
        return Table::load(path).map(Loaded::Table);
    }
    // SAFETY: whoever asks for it has been told that the file must not change.
    let index = if map { unsafe { Index::map(path) } } else { Index::load(path) };
    index.map(Loaded::Index)
}

fn info(args: &Info) -> Result<(), Error> {
    match load(&args.file, false)? {
        Loaded::Table(table) => say(&table, &args.file),
        Loaded::Index(index) => say_index(&index, &args.file),
    }
    Ok(())
}

fn screen(args: &Screen) -> Result<(), Error> {
    let start = Instant::now();
    // A driver takes some tenths of a second to start, in which the index is read; the device stays open to the end.
    let bytes = args.index.metadata().map_or(0, |file| file.len());
    let asks = match args.backend {
        On::Auto => Screening::pays_on_device(bytes, &args.files),
        On::Cpu => false,
        On::Cuda => true,
    };
    let opening = asks.then(|| std::thread::spawn(warpset_gpu::Backend::auto));
    if let Some(threads) = args.threads {
        // The index is read by the pool of the process, which nothing has started yet.
        let threads = warpset_base::parallel::threads_for(threads, u64::MAX);
        let _ = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
    }
    let loaded = load(&args.index, args.map)?;
    let mut screening = match &loaded {
        Loaded::Table(table) => Screening::new(table),
        Loaded::Index(index) => Screening::by_index(index),
    };
    let rule = screening.current_rule();
    let rule = Rule::new(args.min_hits.unwrap_or(rule.hits()), args.min_share.unwrap_or(rule.share()))?;
    let progress = Progress::of_files(&args.files);
    let pairing = match (args.paired, args.interleaved) {
        (true, _) => Pairing::Files,
        (_, true) => Pairing::Interleaved,
        _ => Pairing::Single,
    };
    screening = screening.rule(rule).prefix(args.prefix).pairing(pairing).compression(args.compression);
    screening = screening.threads(args.threads.unwrap_or(0)).progress(progress.clone()).backend(args.backend.into());
    type Output<'a> = fn(Screening<'a>, PathBuf) -> Screening<'a>;
    let outputs: [(&Option<PathBuf>, Output<'_>); 5] = [
        (&args.matched, Screening::matched),
        (&args.matched_mates, Screening::matched_mates),
        (&args.unmatched, Screening::unmatched),
        (&args.unmatched_mates, Screening::unmatched_mates),
        (&args.counts, Screening::counts),
    ];
    for (path, output) in outputs {
        if let Some(path) = path {
            screening = output(screening, path.clone());
        }
    }
    let opened = opening.map(std::thread::JoinHandle::join);
    let screened = screening.run(&args.files);
    drop(opened);
    progress.finish();
    let screened = screened?;
    if let Some(path) = &args.summary {
        let summary = screening.summary(&args.files, &screened, start.elapsed()) + "\n";
        std::fs::write(path, summary).map_err(|source| Error::Write { path: path.clone(), source })?;
    }
    eprintln!("{} reads match, {} do not", screened.matched, screened.unmatched);
    Ok(())
}

fn merge(args: &Merge) -> Result<(), Error> {
    let (first, rest) = args.tables.split_first().ok_or(Error::NoInput)?;
    let mut sum = Table::load(first)?;
    for path in rest {
        sum.merge(&Table::load(path)?)?;
    }
    sum.keep(args.min_count)?;
    sum.save(&args.output)?;
    say(&sum, &args.output);
    Ok(())
}

/// Runs `print` with the standard output.
fn printing(print: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Error> {
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let done = print(&mut out).and_then(|()| out.flush());
    done.map_err(|source| Error::Write { path: "the standard output".into(), source })
}

fn histogram(args: &Histogram) -> Result<(), Error> {
    let histogram = Table::load(&args.table)?.histogram(args.most as usize)?;
    printing(|out| {
        let lines = histogram.iter().enumerate().filter(|(_, kmers)| **kmers > 0);
        for (copies, kmers) in lines {
            writeln!(out, "{copies}\t{kmers}")?;
        }
        Ok(())
    })
}

fn list(args: &List) -> Result<(), Error> {
    let table = Table::load(&args.table)?;
    let counts = table.counts()?;
    printing(|out| {
        for (kmer, copies) in counts.filter(|(_, copies)| *copies >= args.min_count) {
            writeln!(out, "{kmer}\t{copies}")?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn sizes_are_read() {
        let sizes = ["17", "2K", "3M", "4g", "1GiB", "5kb"].map(|text| bytes(text).unwrap());
        assert_eq!(sizes, [17, 2 << 10, 3 << 20, 4 << 30, 1 << 30, 5 << 10]);
        for text in ["", "G", "1.5G", "-1", "3X", "99999999999G", "1µ"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}

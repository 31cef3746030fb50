//! Reads screened by an index of minimizers, as `kmers screen` does by default (k = 31, w = 15, two hits and 1 %):
//! FASTQ in the page cache, decisions counted. Genome and reads are random bases, reads of 150 bases pieces of the
//! genome or foreign.
//!
//! The peer is what one would write for it: `needletail` parses, `simd-minimizers` finds, a hash set of the standard
//! library is asked. Deacon, which is made of such parts, has no library that screens by an index in memory;
//! `docs/kmers.md` has it beside `kmers` as programs. The limit is that of a random read of as much memory per
//! minimizer of the reads; reads that match are decided before all of theirs are looked up, so their rates may pass it.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::FixedState;
use simd_minimizers::packed_seq::{PackedNSeqVec, SeqVec};
use simd_minimizers::seq_hash::NtHasher;
use tempfile::TempDir;
use warpset::gpu::Device;
use warpset::sequence::Minimizers;
use warpset_kmers::{BackendChoice, Index, IndexKind, Indexing, Screened, Screening};

use bench_frame::clock::Effort;
use bench_frame::input::genome::random_letters;
use bench_frame::limits::Access;
use bench_frame::machine;
use bench_frame::suite::{Generated, Session, Step, Target, Threads, sizes_on};
use bench_record::Record;

/// Bases of a k-mer, and k-mers of a window.
const WINDOW: (u32, u32) = (31, 15);
/// Bases of a read.
const READ: usize = 150;
/// Hits that a read needs, and the share of its minimizers.
const RULE: (usize, f64) = (2, 0.01);
/// Foreign reads that may match a filter of 16 bits by chance: two of some twenty minimizers have to.
const BY_CHANCE: u64 = 3;

/// The benches of screening.
pub const SCREEN: Generated = Generated { name: "screen", host: steps, device: steps_on };

fn title(bases: usize) -> String {
    format!("screen: reads of {READ} bases, a genome of {bases}")
}

fn steps(effort: Effort) -> Vec<Step> {
    let sizes: &[usize] = match effort {
        Effort::Quick => &[1 << 22],
        Effort::Standard => &[1 << 22, 1 << 27],
        Effort::Full => &[1 << 22, 1 << 27, 800_000_000],
    };
    sizes.iter().map(|&bases| Step::new(title(bases), move |session| on_host(session, bases))).collect()
}

fn steps_on(device: &Device, effort: Effort) -> Vec<Step> {
    let sizes: &[usize] = match effort {
        _ if device.is_emulator() => &[10_000],
        Effort::Quick => &[1 << 24],
        Effort::Standard => &[1 << 27],
        Effort::Full => &[1 << 27, 800_000_000],
    };
    sizes_on(device, sizes, title, on_device)
}

/// A genome, pieces of it, and foreign reads, in files.
struct Input {
    folder: TempDir,
    /// Bases of either kind of reads.
    bases: usize,
    /// Minimizers of the genome, and of either kind of reads.
    minimizers: usize,
    asked: [usize; 2],
}

/// The reads, and whether they match.
const KINDS: [(&str, bool); 2] = [("absent", false), ("present", true)];

impl Input {
    fn new(genome: usize, bases: usize) -> anyhow::Result<Input> {
        let folder = tempfile::tempdir()?;
        let letters = random_letters(genome, 4);
        let mut fasta = BufWriter::new(File::create(folder.path().join("genome.fa"))?);
        fasta.write_all(b">genome\n")?;
        fasta.write_all(&letters)?;
        fasta.write_all(b"\n")?;
        fasta.flush()?;
        let minimizers = Minimizers::deacon(WINDOW.0, WINDOW.1)?;
        let found = |letters: &[u8]| {
            let mut count = 0;
            for read in letters.chunks(READ) {
                count += minimizers.find(read).len();
            }
            count
        };
        let foreign = random_letters(bases, 5);
        let asked = [found(&foreign), found(&letters[..bases])];
        for ((name, _), reads) in KINDS.iter().zip([&foreign[..], &letters[..bases]]) {
            write_fastq(&folder.path().join(name), reads)?;
        }
        Ok(Input { folder, bases, minimizers: minimizers.find(&letters).len(), asked })
    }

    fn genome(&self) -> PathBuf {
        self.folder.path().join("genome.fa")
    }

    fn reads(&self, kind: &str) -> PathBuf {
        self.folder.path().join(kind)
    }

    /// Whether the decisions on reads are right, those of an exact index or of a filter.
    fn is_right(&self, screened: Screened, present: bool, is_exact: bool) -> bool {
        let reads = self.bases.div_ceil(READ) as u64;
        // The last read may be too short to match.
        let wrong = if present { screened.unmatched.saturating_sub(1) } else { screened.matched };
        screened.matched + screened.unmatched == reads && wrong <= if is_exact { 0 } else { BY_CHANCE }
    }

    fn row(&self, operation: &str, n: usize, seconds: f64) -> Record {
        let row = Record::new("screen", operation, n).time(seconds).param("kmers", self.minimizers);
        row.param("read", READ).param("input", "generated").param("key", "minimizer of 31 bases")
    }
}

/// Writes reads of 150 letters as FASTQ.
fn write_fastq(path: &Path, letters: &[u8]) -> anyhow::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let qualities = [b'I'; READ];
    for (i, read) in letters.chunks(READ).enumerate() {
        writeln!(file, "@{i}")?;
        file.write_all(read)?;
        file.write_all(b"\n+\n")?;
        file.write_all(&qualities[..read.len()])?;
        file.write_all(b"\n")?;
    }
    Ok(file.flush()?)
}

/// Names of the kinds of indexes in rows.
const INDEXES: [(IndexKind, &str); 2] =
    [(IndexKind::Exact, "exact index"), (IndexKind::Fuse16, "binary fuse index, 16 bits")];

fn threads_of(threads: Threads) -> usize {
    if threads == Threads::One { 1 } else { machine::threads() }
}

fn on_host(session: &mut Session, genome: usize) -> anyhow::Result<()> {
    let input = Input::new(genome, genome)?;
    let mut peer = None;
    for &threads in session.threads(true) {
        for (kind, name) in INDEXES {
            let indexing = Indexing::new(WINDOW.0, WINDOW.1)?.kind(kind).threads(threads_of(threads));
            let (seconds, index) = session.made(threads, || Ok(indexing.run(&[input.genome()])?))?;
            let bits = 8.0 * index.memory_bytes() as f64 / index.len() as f64;
            let mut row = input.row("index", genome, seconds).by(name, false);
            row.bits_per_item = Some(bits);
            session.add(&Target::Cpu, threads, row, index.len() as usize <= input.minimizers);
            loaded(session, &input, threads, &index, name)?;
            for (i, (reads, present)) in KINDS.into_iter().enumerate() {
                let screening = Screening::by_index(&index).backend(BackendChoice::Cpu).threads(threads_of(threads));
                let path = input.reads(reads);
                let (seconds, screened) = session.made(threads, || Ok(screening.run(std::slice::from_ref(&path))?))?;
                let bytes = (index.memory_bytes() as usize).next_power_of_two();
                let limit = session.random_limit(threads, Access::Read, bytes);
                let mut row = input.row(&format!("screen, {reads} reads"), input.bases, seconds).by(name, false);
                row.bits_per_item = Some(bits);
                row.limit_fraction = Some(input.asked[i] as f64 / seconds / limit);
                let right = input.is_right(screened, present, kind == IndexKind::Exact);
                session.add(&Target::Cpu, threads, row, right);
            }
        }
        by_peer(session, &input, threads, &mut peer)?;
    }
    Ok(())
}

/// Saves the index and loads it again: read and verified.
fn loaded(session: &mut Session, input: &Input, threads: Threads, index: &Index, name: &str) -> anyhow::Result<()> {
    let path = input.folder.path().join("index");
    index.save(&path)?;
    let bytes = path.metadata()?.len() as usize;
    let (seconds, again) = session.made(threads, || Ok(Index::load(&path)?))?;
    let copied = session.copy_limit(threads, bytes.next_power_of_two());
    let row = input.row("load", index.len() as usize, seconds).bytes(bytes, Some(copied)).by(name, false);
    session.add(&Target::Cpu, threads, row, again.len() == index.len() && again.kind() == index.kind());
    Ok(())
}

/// Minimizers in a hash set.
type Set = HashSet<u64, FixedState>;

/// State of one thread that finds minimizers.
struct Finder {
    text: PackedNSeqVec,
    hasher: NtHasher<true, 1>,
    positions: Vec<u32>,
    kmers: Vec<u64>,
}

impl Finder {
    fn new() -> Finder {
        Finder {
            text: PackedNSeqVec { seq: Default::default(), ambiguous: Default::default() },
            hasher: NtHasher::new(WINDOW.0 as usize),
            positions: Vec::new(),
            kmers: Vec::new(),
        }
    }

    fn find(&mut self, letters: &[u8]) -> &mut Vec<u64> {
        let (k, w) = (WINDOW.0 as usize, WINDOW.1 as usize);
        self.kmers.clear();
        if letters.len() >= k + w - 1 {
            self.text.seq.clear();
            self.text.ambiguous.clear();
            self.positions.clear();
            self.text.seq.push_ascii(letters);
            self.text.ambiguous.push_ascii(letters);
            let found = simd_minimizers::canonical_minimizers(k, w)
                .hasher(&self.hasher)
                .run_skip_ambiguous_windows(self.text.as_slice(), &mut self.positions);
            self.kmers.extend(found.pos_and_values_u64().map(|(_, kmer)| kmer));
        }
        &mut self.kmers
    }

    /// Whether a read matches.
    fn matches(&mut self, read: &[u8], set: &Set) -> bool {
        let kmers = self.find(read);
        kmers.sort_unstable();
        kmers.dedup();
        let hits = kmers.iter().filter(|kmer| set.contains(*kmer)).count();
        hits >= RULE.0 && hits as f64 >= RULE.1 * kmers.len() as f64
    }
}

/// Fills the set on one thread.
fn set_of(genome: &Path) -> anyhow::Result<Set> {
    let (mut set, mut finder) = (Set::default(), Finder::new());
    let mut reader = needletail::parse_fastx_file(genome)?;
    while let Some(record) = reader.next() {
        set.extend(finder.find(&record?.seq()).iter());
    }
    Ok(set)
}

/// Reads that one task of the peer takes.
const TASK: usize = 4096;

/// Counts reads that match: one thread parses, all decide.
fn screened_by(set: &Set, reads: &Path, threads: Threads) -> anyhow::Result<Screened> {
    let (matched, unmatched) = (AtomicU64::new(0), AtomicU64::new(0));
    let decide = |finder: &mut Finder, read: &[u8]| {
        let count = if finder.matches(read, set) { &matched } else { &unmatched };
        count.fetch_add(1, Ordering::Relaxed);
    };
    let mut reader = needletail::parse_fastx_file(reads)?;
    if threads == Threads::One {
        let mut finder = Finder::new();
        while let Some(record) = reader.next() {
            decide(&mut finder, &record?.seq());
        }
    } else {
        rayon::in_place_scope(|scope| {
            loop {
                let (mut letters, mut ends) = (Vec::with_capacity(TASK * READ), Vec::with_capacity(TASK));
                while ends.len() < TASK
                    && let Some(record) = reader.next()
                {
                    letters.extend_from_slice(&record?.seq());
                    ends.push(letters.len());
                }
                if ends.is_empty() {
                    return anyhow::Ok(());
                }
                scope.spawn(move |_| {
                    let (mut finder, mut begin) = (Finder::new(), 0);
                    for end in ends {
                        decide(&mut finder, &letters[begin..end]);
                        begin = end;
                    }
                });
            }
        })?;
    }
    Ok(Screened { matched: matched.into_inner(), unmatched: unmatched.into_inner(), ..Default::default() })
}

fn by_peer(session: &mut Session, input: &Input, threads: Threads, set: &mut Option<Set>) -> anyhow::Result<()> {
    let lanes = if cfg!(target_feature = "avx2") { "" } else { ", compiled without AVX2" };
    let version = machine::version("simd-minimizers");
    let name = format!("needletail, simd-minimizers {version}{lanes}, HashSet");
    let genome = input.genome();
    if threads == Threads::One {
        let (seconds, made) = session.made(threads, || set_of(&genome))?;
        let row = input.row("index", input_len(&genome)?, seconds).by(name.clone(), true);
        session.add(&Target::Cpu, threads, row, made.len() <= input.minimizers);
        *set = Some(made);
    }
    let Some(set) = set else { return Ok(()) };
    for (reads, present) in KINDS {
        let path = input.reads(reads);
        let (seconds, screened) = session.made(threads, || screened_by(set, &path, threads))?;
        let row = input.row(&format!("screen, {reads} reads"), input.bases, seconds).by(name.clone(), true);
        session.add(&Target::Cpu, threads, row, input.is_right(screened, present, true));
    }
    Ok(())
}

/// Returns the number of bases of a genome in one line, after a line with its name.
fn input_len(genome: &Path) -> anyhow::Result<usize> {
    Ok(genome.metadata()?.len() as usize - ">genome\n\n".len())
}

/// Measures decisions on a device, including the transfer of reads and index.
fn on_device(session: &mut Session, device: &Device, genome: usize) -> anyhow::Result<()> {
    let input = Input::new(genome, if device.is_emulator() { genome / 8 } else { genome })?;
    let target = Target::Gpu(device.clone());
    for (kind, name) in INDEXES {
        let index = Indexing::new(WINDOW.0, WINDOW.1)?.kind(kind).run(&[input.genome()])?;
        for (reads, present) in KINDS {
            let screening = Screening::by_index(&index).on(device);
            let path = input.reads(reads);
            let (seconds, screened) = session.made(Threads::All, || Ok(screening.run(std::slice::from_ref(&path))?))?;
            let mut row = input.row(&format!("screen, {reads} reads"), input.bases, seconds).by(name, false);
            row.bits_per_item = Some(8.0 * index.memory_bytes() as f64 / index.len() as f64);
            session.add(&target, Threads::All, row, input.is_right(screened, present, kind == IndexKind::Exact));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench_frame::suite::{Setup, Suite};

    #[test]
    fn both_decide_alike() {
        let rows = Session::rows_of(vec![Step::new("screen", |session| on_host(session, 30_000))]);
        let ours: Vec<&Record> = rows.iter().filter(|row| row.structure == "screen").collect();
        assert!(ours.iter().all(|row| row.checked));
        let one = |name: &str| {
            let of = |row: &&&Record| row.operation == name && row.number("threads") == Some(1.0);
            ours.iter().filter(of).count()
        };
        assert_eq!(
            [one("index"), one("load"), one("screen, absent reads"), one("screen, present reads")],
            [3, 2, 3, 3]
        );
        let exact = |row: &&&Record| row.name() == "exact index" && row.operation == "screen, absent reads";
        assert!(ours.iter().find(exact).unwrap().peer_ratio.is_some());
    }

    #[test]
    fn on_the_emulator() {
        let rows = Session::rows_of(SCREEN.generated(&Setup::emulator()));
        let ours: Vec<&Record> = rows.iter().filter(|row| row.structure == "screen").collect();
        assert!(ours.len() == 4 && ours.iter().all(|row| row.checked));
    }
}

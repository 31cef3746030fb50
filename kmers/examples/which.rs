//! Labels of generated genomes beside a hash map from k-mers to genomes: processor time, memory and answers. Results:
//! `docs/log/kmers.md`.
//!
//! ```sh
//! cargo run --release --example which -- [GENOMES] [BASES]
//! ```
//!
//! Genomes are random, and a tenth of each is a stretch that all have. Reads have 150 bases with 1 % of errors; a fifth
//! is of no genome.

use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::hash::{BuildHasherDefault, Hasher};
use std::path::Path;
use std::time::Duration;

use warpset_kmers::{K, Roll, Screening, Settings, label_files};

#[path = "../tests/whole/reads.rs"]
mod reads;

const READS: usize = 400_000;
const SEVERAL: u8 = 0;

/// Hash of a k-mer that costs as little as that of other fast maps.
#[derive(Default)]
struct Fast(u64);

impl Hasher for Fast {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("k-mers are integers");
    }

    fn write_u64(&mut self, kmer: u64) {
        self.0 = warpset_core::hash::finalise(kmer);
    }
}

/// Returns the most memory of the process since the last call, in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0");
    // Without the permission, peaks only grow.
    let _ = fs::write("/proc/self/clear_refs", "5");
    line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0) << 10
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<usize>());
    let (count, bases) = (args.next().unwrap_or(Ok(16))?, args.next().unwrap_or(Ok(2_000_000))?);
    let k = K::new(31)?;
    let hash = |i: u64| warpset_core::hash::finalise(i);
    let letters = |seed: u64, len: usize| (0..len as u64).map(move |i| b"ACGT"[(hash(seed << 40 | i) >> 62) as usize]);
    let shared: Vec<u8> = letters(999, bases / 10).collect();
    let genomes: Vec<Vec<u8>> =
        (0..count).map(|g| shared.iter().copied().chain(letters(g as u64, bases - bases / 10)).collect()).collect();
    let folder = std::env::temp_dir().join(format!("kmers-which-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let write = |(i, genome): (usize, &Vec<u8>)| {
        let path = folder.join(format!("{i}.fa"));
        fs::write(&path, [b">g\n", &genome[..], b"\n"].concat()).map(|()| path)
    };
    let paths = genomes.iter().enumerate().map(write).collect::<Result<Vec<_>, _>>()?;
    let made: Vec<Vec<u8>> = (0..READS as u64)
        .map(|i| {
            let (at, genome) = (hash(i << 20) as usize, &genomes[hash(i) as usize % count]);
            let mut read = genome[at % (bases - 150)..][..150].to_vec();
            if i % 5 == 0 {
                read = letters(1000 + i, 150).collect();
            } else if i % 2 == 0 {
                reads::reverse_complement(&mut read);
            }
            for (j, letter) in read.iter_mut().enumerate() {
                if hash(i << 8 | j as u64) % 100 == 0 {
                    *letter = b'A';
                }
            }
            read
        })
        .collect();
    let (file, lines) = (folder.join("reads.fq"), folder.join("genomes.tsv"));
    fs::write(&file, reads::fastq(&made))?;
    let done = compared(k, &genomes, &paths, (&file, &lines), &made);
    fs::remove_dir_all(folder)?;
    done
}

fn compared(
    k: K,
    genomes: &[Vec<u8>],
    paths: &[std::path::PathBuf],
    (file, lines): (&Path, &Path),
    made: &[Vec<u8>],
) -> Result<(), Box<dyn Error>> {
    for threads in [1, 2] {
        peak();
        let before = resident();
        let start = processor()?;
        let labels = label_files(paths, &Settings::new(31)?.threads(threads), 12)?;
        let (built, most) = ((processor()? - start), peak() - before);
        let per_kmer = |bytes: u64| bytes as f64 / labels.len() as f64;
        println!(
            "labels, {threads} threads: {} k-mers, {:.0} ns of processor time per k-mer, {:.1} bits per k-mer, at most {:.1} bytes while built",
            labels.len(),
            built.as_nanos() as f64 / labels.len() as f64,
            8.0 * per_kmer(labels.memory_bytes()),
            per_kmer(most),
        );
        let start = processor()?;
        let screened = Screening::by_labels(&labels).threads(threads).counts(lines).run(&[file.to_owned()])?;
        println!(
            "  {} of {READS} reads have a genome, {:.0} ns per read",
            screened.matched,
            per_read(processor()? - start)
        );
    }
    let before = resident();
    let (start, mut map) = (processor()?, HashMap::<u64, u8, BuildHasherDefault<Fast>>::default());
    for (genome, number) in genomes.iter().zip(1..) {
        Roll::new(k)?.each(genome, |kmer| {
            let label = map.entry(kmer).or_insert(number);
            *label = if *label == number { number } else { SEVERAL };
        });
    }
    let (built, most) = ((processor()? - start), peak() - before);
    let per = |number: f64| number / map.len() as f64;
    println!(
        "map, 1 thread: {:.0} ns of processor time per k-mer, {:.1} bits per k-mer, at most {:.1} bytes while built",
        per(built.as_nanos() as f64),
        per(8.0 * (resident() - before) as f64),
        per(most as f64)
    );
    let (start, mut named) = (processor()?, Vec::new());
    for read in made {
        let (mut votes, mut total) = ([0u32; 256], 0);
        Roll::new(k)?.each(read, |kmer| {
            total += 1;
            if let Some(&label) = map.get(&kmer) {
                votes[usize::from(label)] += 1;
            }
        });
        let most = votes[1..].iter().copied().max().unwrap_or(0);
        let is_won = votes[1..].iter().filter(|votes| **votes == most).count() == 1 && most >= 2 && 100 * most >= total;
        named.push(if is_won { votes[1..].iter().position(|&votes| votes == most) } else { None });
    }
    println!(
        "  {} of {READS} reads have a genome, {:.0} ns per read",
        named.iter().flatten().count(),
        per_read(processor()? - start)
    );
    let text = fs::read_to_string(lines)?;
    let name = |genome: Option<usize>| genome.map_or("-".into(), |genome| paths[genome].to_string_lossy());
    let differ = text.lines().zip(&named).filter(|(line, named)| line.split('\t').nth(1) != Some(&*name(**named)));
    println!("  reads that the two give to different genomes: {}", differ.count());
    Ok(())
}

/// Returns the processor time of all threads of the process.
fn processor() -> Result<Duration, Box<dyn Error>> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).map(str::parse::<u64>).sum::<Result<u64, _>>()?;
    Ok(Duration::from_millis(10 * ticks))
}

fn per_read(time: Duration) -> f64 {
    time.as_nanos() as f64 / READS as f64
}

/// Returns the memory of the process in bytes.
fn resident() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    pages.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) << 12
}

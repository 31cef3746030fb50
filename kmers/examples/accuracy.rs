//! Sensitivity and specificity of an index: reads of a host that are found, and bacterial reads that are not. Results:
//! `docs/kmers.md`.
//!
//! ```sh
//! cargo run --release --example accuracy -- FOLDER BACTERIUM.fa.gz
//! ```
//!
//! The folder gets the generated genomes and reads, so that other programs can be compared, tables (`accuracy.md`) and
//! a plot (`accuracy.svg`).
//!
//! The host is like human DNA in what matters to k-mers: half of it is copies of repeats, which differ by 2 to 20 %;
//! stretches of 100,000 bases have 36 to 55 % of G and C; few C are followed by G; 2 % is short tandem repeats. Reads
//! are of an individual with a variant per 1000 bases. Short reads have errors as Illumina's have: few at the start,
//! ten times as many at the end, and five times as many in a tenth of the reads. Long reads have substitutions,
//! insertions and deletions, half of the latter in runs of a base.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use warpset_kmers::{Index, IndexKind, Indexing, Rule, Screening};

#[path = "../tests/whole/reads.rs"]
mod reads;

use reads::{fastq, reverse_complement};

/// Bases of the host's genome.
const HOST: usize = 20_000_000;
/// Short and long reads of each kind.
const SHORT: usize = 100_000;
const LONG: usize = 4_000;
const SHORT_LEN: usize = 150;

/// Generator of equal numbers in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.next()) * limit as u128) >> 64) as usize
    }

    fn chance(&mut self, probability: f64) -> bool {
        ((self.next() >> 11) as f64) < probability * (1u64 << 53) as f64
    }

    fn base(&mut self) -> u8 {
        b"ACGT"[self.below(4)]
    }

    fn other(&mut self, base: u8) -> u8 {
        let bases: Vec<u8> = b"ACGT".iter().copied().filter(|&other| other != base).collect();
        bases[self.below(3)]
    }
}

/// Appends random bases with this share of G and C.
fn unique(random: &mut Random, len: usize, gc: f64, to: &mut Vec<u8>) {
    for _ in 0..len {
        let base = if random.chance(gc) { b"CG"[random.below(2)] } else { b"AT"[random.below(2)] };
        let is_rare = base == b'G' && to.last() == Some(&b'C') && random.chance(0.8);
        to.push(if is_rare { b'A' } else { base });
    }
}

/// Returns a copy with substitutions, and one insertion or deletion per ten of them.
fn changed(random: &mut Random, bases: &[u8], rate: f64) -> Vec<u8> {
    let mut copy = Vec::with_capacity(bases.len());
    for &base in bases {
        if random.chance(rate / 10.0) {
            if random.chance(0.5) {
                continue;
            }
            copy.push(random.base());
        }
        copy.push(if random.chance(rate) { random.other(base) } else { base });
    }
    copy
}

fn host(random: &mut Random) -> Vec<u8> {
    let families: Vec<Vec<u8>> = [300, 300, 300, 6000, 6000, 2000, 900, 500]
        .iter()
        .map(|&len| {
            let mut family = Vec::new();
            unique(random, len, 0.45, &mut family);
            family
        })
        .collect();
    let mut genome = Vec::with_capacity(HOST + 10_000);
    let mut gc = 0.41;
    while genome.len() < HOST {
        if genome.len() % 100_000 < 1_000 {
            gc = 0.36 + 0.19 * random.below(100) as f64 / 100.0;
        }
        let len = 200 + random.below(1500);
        unique(random, len, gc, &mut genome);
        let family = &families[random.below(families.len())];
        // Most copies of long repeats are their ends.
        let begin = if family.len() > 1000 { random.below(family.len() - 500) } else { 0 };
        let rate = 0.02 + 0.18 * random.below(100) as f64 / 100.0;
        let copy = changed(random, &family[begin..], rate);
        genome.extend_from_slice(&copy);
        if random.below(25) == 0 {
            let unit: Vec<u8> = (0..1 + random.below(6)).map(|_| random.base()).collect();
            let repeat = unit.repeat(20 + random.below(60));
            genome.extend(changed(random, &repeat, 0.01));
        }
    }
    genome
}

/// Returns a stretch of a genome, of either strand.
fn stretch(random: &mut Random, genome: &[u8], len: usize) -> Vec<u8> {
    let begin = random.below(genome.len() - len);
    let mut bases = genome[begin..begin + len].to_vec();
    if random.chance(0.5) {
        reverse_complement(&mut bases);
    }
    bases
}

/// Returns a short read; `rate` is the mean rate of errors.
fn short(random: &mut Random, genome: &[u8], rate: f64) -> Vec<u8> {
    let mut read = stretch(random, genome, SHORT_LEN);
    let factor = if random.chance(0.1) { 5.0 } else { 1.0 } / 1.4;
    for (i, base) in read.iter_mut().enumerate() {
        // From 0.3 at the start to 3 at the end; 1 on average.
        let place = i as f64 / SHORT_LEN as f64;
        let rate = (rate * factor * (0.3 + 2.8 * place * place * place)).min(0.75);
        if random.chance(rate) {
            *base = if random.chance(0.02) { b'N' } else { random.other(*base) };
        }
    }
    read
}

/// Returns a long read.
fn long(random: &mut Random, genome: &[u8], rate: f64) -> Vec<u8> {
    let len = 500 + (0..4).map(|_| random.below(2500)).sum::<usize>();
    let bases = stretch(random, genome, len);
    let mut read = Vec::with_capacity(len + len / 10);
    let mut last = 0;
    for base in bases {
        let in_run = if base == last { 2.0 } else { 0.7 };
        last = base;
        if random.chance(rate * 0.3 * in_run) {
            continue;
        }
        if random.chance(rate * 0.3 * in_run) {
            read.push(if random.chance(0.5) { base } else { random.base() });
        }
        read.push(if random.chance(rate * 0.4) { random.other(base) } else { base });
    }
    read
}

/// Returns the share of reads that match.
fn share(index: &Index, rule: Rule, path: &Path) -> Result<f64, Box<dyn Error>> {
    let screened = Screening::by_index(index).rule(rule).run(&[path.to_owned()])?;
    Ok(screened.matched as f64 / (screened.matched + screened.unmatched) as f64)
}

/// Draws lines over rates of errors as SVG.
fn plot(lines: &[(String, Vec<(f64, f64)>)]) -> String {
    const COLORS: [&str; 5] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#999999"];
    let (width, height, left, bottom) = (640.0, 360.0, 60.0, 40.0);
    let x = |rate: f64| left + rate / 0.2 * (width - left - 150.0);
    let y = |share: f64| 15.0 + (1.0 - share) * (height - bottom - 15.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\"><rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for step in 0..=4 {
        let (rate, share) = (f64::from(step) * 0.05, f64::from(step) * 0.25);
        let _ = writeln!(
            svg,
            "<line x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{1:.1}\" y2=\"{2:.1}\" stroke=\"#ddd\"/><text x=\"{0:.1}\" y=\"{3:.1}\" \
             text-anchor=\"middle\">{4:.0} %</text><line x1=\"{5:.1}\" x2=\"{6:.1}\" y1=\"{7:.1}\" y2=\"{7:.1}\" \
             stroke=\"#ddd\"/><text x=\"{8:.1}\" y=\"{9:.1}\" text-anchor=\"end\">{10:.0} %</text>",
            x(rate),
            y(1.0),
            y(0.0),
            y(0.0) + 16.0,
            100.0 * rate,
            x(0.0),
            x(0.2),
            y(share),
            left - 6.0,
            y(share) + 4.0,
            100.0 * share,
        );
    }
    for ((name, points), color) in lines.iter().zip(COLORS) {
        let path: Vec<String> = points.iter().map(|&(rate, share)| format!("{:.1},{:.1}", x(rate), y(share))).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>",
            path.join(" ")
        );
        let place = lines.iter().position(|(other, _)| other == name).unwrap_or(0) as f64;
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"{color}\">{name}</text>",
            x(0.2) + 8.0,
            30.0 + 20.0 * place
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">mean rate of errors</text></svg>",
        x(0.1),
        height - 6.0
    );
    svg
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [folder, bacterium] = &args[..] else { return Err("usage: accuracy FOLDER BACTERIUM.fa.gz".into()) };
    fs::create_dir_all(folder)?;
    if fs::read_dir(folder)?.next().is_some() {
        return Err(format!("{} has files, which might be replaced: name a new folder", folder.display()).into());
    }
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(fs::File::open(bacterium)?).read_to_string(&mut text)?;
    let bacterium: Vec<u8> = text.lines().filter(|line| !line.starts_with('>')).collect::<String>().into_bytes();
    let mut random = Random(1);
    let genome = host(&mut random);
    let individual = changed(&mut random, &genome, 0.001);
    let host_file = folder.join("host.fa");
    fs::write(&host_file, [b">host\n", &genome[..], b"\n"].concat())?;
    let exact = Indexing::new(31, 15)?.run(std::slice::from_ref(&host_file))?;
    let fuse = Indexing::new(31, 15)?.kind(IndexKind::Fuse16).run(std::slice::from_ref(&host_file))?;
    let sequences = Indexing::new(31, 15)?.kind(IndexKind::Sequences).run(std::slice::from_ref(&host_file))?;
    let rules = [("1 hit", 1, 0.0), ("2 hits, 1 %", 2, 0.01), ("3 hits, 10 %", 3, 0.1)];
    let head = format!(
        "| reads | errors | {} |\n| --- | --- |{}\n",
        rules.map(|(name, ..)| name).join(" | "),
        " --- |".repeat(rules.len())
    );
    let (mut table, mut of_kmers) = (head.clone(), head);
    type Make = fn(&mut Random, &[u8], f64) -> Vec<u8>;
    let kinds: [(&str, Make, usize, &[f64]); 2] =
        [("150 bases", short, SHORT, &[0.003, 0.01, 0.03]), ("500 to 10,500 bases", long, LONG, &[0.01, 0.05, 0.1])];
    for (name, make, count, rates) in kinds {
        for &rate in rates {
            let mut make = |genome: &[u8], from: &str| -> Result<PathBuf, Box<dyn Error>> {
                let reads: Vec<Vec<u8>> = (0..count).map(|_| make(&mut random, genome, rate)).collect();
                let path = folder.join(format!("{from}-{}-{rate}.fq", if count == SHORT { "short" } else { "long" }));
                fs::write(&path, fastq(&reads))?;
                Ok(path)
            };
            let (found, other) = (make(&individual, "host")?, make(&bacterium, "bacterium")?);
            let mut row = format!("| {name} | {} % |", 100.0 * rate);
            let mut row_of_kmers = row.clone();
            for (_, hits, least) in rules {
                let rule = Rule::new(hits, least)?;
                let (sensitivity, taken) = (share(&exact, rule, &found)?, share(&exact, rule, &other)?);
                let by_filter = share(&fuse, rule, &other)?;
                let _ = write!(
                    row,
                    " {:.2} / {:.3} / {:.3} |",
                    100.0 * sensitivity,
                    100.0 * (1.0 - taken),
                    100.0 * (1.0 - by_filter)
                );
                let (found, taken) = (share(&sequences, rule, &found)?, share(&sequences, rule, &other)?);
                let _ = write!(row_of_kmers, " {:.2} / {:.3} |", 100.0 * found, 100.0 * (1.0 - taken));
            }
            table += &(row + "\n");
            of_kmers += &(row_of_kmers + "\n");
        }
    }
    let tables = format!("{table}\nAll k-mers, by a sequence filter:\n\n{of_kmers}");
    print!("{tables}");
    fs::write(folder.join("accuracy.md"), tables)?;
    let path = folder.join("plot.fq");
    let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for (name, make, count) in [("150", short as Make, SHORT / 10), ("5,500", long, LONG / 10)] {
        for (of_rule, hits, least) in rules.iter().take(if count == LONG / 10 { 2 } else { 3 }) {
            lines.push((format!("{name} bases, {of_rule}"), Vec::new()));
            for step in 0..=20 {
                let rate = f64::from(step) * 0.01;
                let reads: Vec<Vec<u8>> = (0..count).map(|_| make(&mut random, &individual, rate)).collect();
                fs::write(&path, fastq(&reads))?;
                let found = share(&exact, Rule::new(*hits, *least)?, &path)?;
                lines.last_mut().into_iter().for_each(|line| line.1.push((rate, found)));
            }
        }
    }
    fs::remove_file(path)?;
    fs::write(folder.join("accuracy.svg"), plot(&lines))?;
    Ok(())
}

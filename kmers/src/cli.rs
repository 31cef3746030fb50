//! Command line of the program.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use warpset_kmers::BackendChoice;

/// Counts the k-mers of genomes and reads exactly, and screens reads by them
#[derive(Parser)]
#[command(name = "kmers", version, max_term_width = 100, after_help = examples::ALL)]
pub struct Cli {
    /// Print nothing but results and errors
    #[arg(short, long, global = true)]
    pub quiet: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Count the canonical k-mers of FASTA and FASTQ files, plain, gzip or Zstandard
    #[command(after_help = examples::COUNT)]
    Count(Count),
    /// Index the minimizers of sequences, or unite indexes
    #[command(after_help = examples::INDEX)]
    Index(IndexArgs),
    /// Split reads by how many of their minimizers an index has, or how many of their k-mers a table or labels have
    #[command(after_help = examples::SCREEN)]
    Screen(Screen),
    /// Label the k-mers of up to 255 genomes with the genome that has them
    #[command(after_help = examples::LABEL)]
    Label(Label),
    /// Print the genome that each read is of, by the labels of its k-mers
    #[command(after_help = examples::WHICH)]
    Which(Which),
    /// Describe an index, a table or labels
    #[command(after_help = examples::INFO)]
    Info(Info),
    /// Add up tables
    #[command(after_help = examples::MERGE)]
    Merge(Merge),
    /// Print the number of different k-mers for each number of copies
    #[command(after_help = examples::HISTOGRAM)]
    Histogram(Histogram),
    /// Print all k-mers with their numbers of copies, in no order
    #[command(after_help = examples::LIST)]
    List(List),
    /// Write man pages and shell completions
    #[command(hide = true, after_help = examples::GENERATE)]
    Generate(Generate),
}

#[derive(Args)]
pub struct Count {
    /// Files of sequences; `-` is the standard input
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Bases per k-mer, 1 to 63
    #[arg(short, long, default_value_t = 31)]
    pub k: u32,
    /// File for the table; `-` is the standard output
    #[arg(short, long)]
    pub output: PathBuf,
    /// Leave out k-mers with fewer copies
    #[arg(long, default_value_t = 1)]
    pub min_count: u64,
    /// Largest memory, in bytes or as 800M or 1.5G (K, M, G: 2^10, 2^20, 2^30); default: no limit
    #[arg(long, value_parser = bytes)]
    pub max_memory: Option<u64>,
    /// Threads; default: all
    #[arg(short, long)]
    pub threads: Option<usize>,
    /// Device that counts; all give the same table
    #[arg(long, value_enum, default_value_t = On::Auto)]
    pub backend: On,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum On {
    /// A GPU if CUDA answers, the input is large enough for it to pay, and no --max-memory is given; else the CPU
    Auto,
    /// The CPU
    Cpu,
    /// A GPU; an error if none answers
    Cuda,
}

impl From<On> for BackendChoice {
    fn from(on: On) -> BackendChoice {
        match on {
            On::Auto => BackendChoice::Auto,
            On::Cpu => BackendChoice::Cpu,
            On::Cuda => BackendChoice::Cuda,
        }
    }
}

#[derive(Args)]
pub struct IndexArgs {
    /// Sequences (`-` is the standard input), and exact indexes of this program or of Deacon
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// File for the index; `-` is the standard output
    #[arg(short, long)]
    pub output: PathBuf,
    /// Bases per k-mer, odd, 1 to 63
    #[arg(short, long, default_value_t = 31)]
    pub k: u32,
    /// K-mers per window, one of which is selected: odd, 1 to 63; not for an index of kind sequences [default: 15]
    #[arg(short, long)]
    pub w: Option<u32>,
    /// Kind of answers that the index gives
    #[arg(long, value_enum, default_value_t = Kind::Exact)]
    pub kind: Kind,
    /// Bits of memory per k-mer of an index of kind sequences [default: 16]
    #[arg(long)]
    pub bits_per_kmer: Option<f64>,
    /// Leave out the minimizers of this file, sequences or an exact index; for sequences its k-mers, and a table
    /// instead of an index; may be given several times
    #[arg(long)]
    pub without: Vec<PathBuf>,
    /// Write an index that Deacon reads
    #[arg(long)]
    pub for_deacon: bool,
    /// Threads; default: all
    #[arg(short, long)]
    pub threads: Option<usize>,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Kind {
    /// Exactly, 80 bits per minimizer
    Exact,
    /// With a rate of false positives of 2^-16, 19 bits
    Fuse16,
    /// With a rate of false positives of 2^-32, 38 bits
    Fuse32,
    /// All k-mers instead of minimizers, 16 bits per k-mer (about 128 per minimizer): k from 9 on
    Sequences,
}

/// Reads, and the way to look at them.
#[derive(Args)]
pub struct Reads {
    /// Files of reads; `-` is the standard input
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Least hits of a read that matches: different minimizers in the index; k-mers in the table or in an index of
    /// kind sequences; by labels k-mers of one genome alone [default: 2; tables: 1]
    #[arg(long)]
    pub min_hits: Option<u64>,
    /// Least share of hits among its minimizers, or k-mers [default: 0.01; tables: 0]
    #[arg(long)]
    pub min_share: Option<f64>,
    /// Number of bases of each read to look at, from its start; 0 for all
    #[arg(long, default_value_t = 0)]
    pub prefix: usize,
    /// Files are named two by two, with mates in both
    #[arg(long, group = "pairs")]
    pub paired: bool,
    /// Mates follow one another in each file
    #[arg(long, group = "pairs")]
    pub interleaved: bool,
    /// Accept any two reads as mates; default: names of mates are equal, except for a 1 and a 2 at their ends
    #[arg(long, requires = "pairs")]
    pub any_mates: bool,
    /// Effort of gzip, 1 to 9 [default: 2]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=9))]
    pub compression: Option<u32>,
    /// Threads; default: all
    #[arg(short, long)]
    pub threads: Option<usize>,
}

#[derive(Args)]
pub struct Label {
    /// Genomes, one per file, at most 255; `-` is the standard input
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// File for the labels; `-` is the standard output
    #[arg(short, long)]
    pub output: PathBuf,
    /// Bases per k-mer, 1 to 63
    #[arg(short, long, default_value_t = 31)]
    pub k: u32,
    /// Bits per k-mer against other k-mers, 1 to 32: one of 2^BITS gets a label
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=32))]
    pub filter_bits: u32,
    /// Largest memory, in bytes or as 800M or 1.5G (K, M, G: 2^10, 2^20, 2^30); default: no limit
    #[arg(long, value_parser = bytes)]
    pub max_memory: Option<u64>,
    /// Threads; default: all
    #[arg(short, long)]
    pub threads: Option<usize>,
}

#[derive(Args)]
pub struct Which {
    /// Labels that `label` wrote
    pub labels: PathBuf,
    #[command(flatten)]
    pub reads: Reads,
    /// File for a line per read or pair: name, genome or `-`, its k-mers, k-mers of several genomes, all k-mers, and
    /// k-mers per number of a genome; `.gz` and `.zst` are compressed, `-` is the standard output
    #[arg(short, long, default_value = "-")]
    pub output: PathBuf,
}

impl From<Which> for Screen {
    fn from(Which { labels, reads, output }: Which) -> Screen {
        Screen {
            index: labels,
            reads,
            matched: None,
            matched_mates: None,
            unmatched: None,
            unmatched_mates: None,
            counts: Some(output),
            summary: None,
            map: false,
            backend: On::Cpu,
        }
    }
}

#[derive(Args)]
pub struct Screen {
    /// An index that `index` or Deacon wrote, a table that `count` or `merge` wrote, or labels that `label` wrote
    pub index: PathBuf,
    #[command(flatten)]
    pub reads: Reads,
    /// File for reads that match; `.gz` and `.zst` are compressed, `-` is the standard output
    #[arg(long)]
    pub matched: Option<PathBuf>,
    /// File for second mates that match; default: they follow the first mates
    #[arg(long, requires = "matched")]
    pub matched_mates: Option<PathBuf>,
    /// File for reads that do not match; all outputs take the names and `-` of --matched
    #[arg(long)]
    pub unmatched: Option<PathBuf>,
    /// File for second mates that do not match; default: they follow the first mates
    #[arg(long, requires = "unmatched")]
    pub unmatched_mates: Option<PathBuf>,
    /// File for the hits of each read: name, hits, lookups, 1 if it matches, else 0; by labels as `which` prints it
    #[arg(long)]
    pub counts: Option<PathBuf>,
    /// File for a summary as JSON
    #[arg(long)]
    pub summary: Option<PathBuf>,
    /// Map the index into memory instead of reading and checking it: for small inputs; the file must not change
    /// meanwhile
    #[arg(long)]
    pub map: bool,
    /// Device that decides, for an index; all devices decide alike. Auto takes a GPU for at least 3 GiB of files,
    /// if the index fits into its memory
    #[arg(long, value_enum, default_value_t = On::Auto)]
    pub backend: On,
}

#[derive(Args)]
pub struct Info {
    /// An index, a table or labels
    pub file: PathBuf,
}

#[derive(Args)]
pub struct Merge {
    /// Tables of the same k
    #[arg(required = true)]
    pub tables: Vec<PathBuf>,
    /// File for the sum; `-` is the standard output
    #[arg(short, long)]
    pub output: PathBuf,
    /// Leave out k-mers with fewer copies in all
    #[arg(long, default_value_t = 1)]
    pub min_count: u64,
}

#[derive(Args)]
pub struct Histogram {
    /// A table
    pub table: PathBuf,
    /// Number of copies in the last line, which counts k-mers with this many or more
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub most: u32,
}

#[derive(Args)]
pub struct List {
    /// A table
    pub table: PathBuf,
    /// Leave out k-mers with fewer copies
    #[arg(long, default_value_t = 1)]
    pub min_count: u64,
}

#[derive(Args)]
pub struct Generate {
    /// Folder to write to, such as /usr/share or ~/.local/share
    pub folder: PathBuf,
}

/// Writes the man pages of all commands, and completions for bash, zsh and fish, below a `share` folder, to the places
/// where these programs look for them. Returns the files.
pub fn generate(share: &Path) -> io::Result<Vec<PathBuf>> {
    let mut cli = Cli::command();
    cli.build();
    let mut files = Vec::new();
    let mut write = |name: &str, bytes: Vec<u8>| {
        let path = share.join(name);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(&path, bytes)?;
        files.push(path);
        io::Result::Ok(())
    };
    for command in std::iter::once(&cli).chain(cli.get_subcommands()) {
        if command.is_hide_set() || command.get_name() == "help" {
            continue;
        }
        let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
        let mut page = Vec::new();
        clap_mangen::Man::new(command.clone().display_name(&name)).render(&mut page)?;
        write(&format!("man/man1/{name}.1"), page)?;
    }
    for (shell, name) in [
        (Shell::Bash, "bash-completion/completions/kmers"),
        (Shell::Zsh, "zsh/site-functions/_kmers"),
        (Shell::Fish, "fish/vendor_completions.d/kmers.fish"),
    ] {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut cli, "kmers", &mut script);
        write(name, script)?;
    }
    Ok(files)
}

/// Parses a number of bytes.
fn bytes(text: &str) -> Result<u64, String> {
    let number = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match text[number.len()..].to_ascii_uppercase().trim_end_matches(['B', 'I']) {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err("write a number of bytes, or one with K, M or G after it, as 1.5G".to_owned()),
    };
    let is_decimal = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let bytes = number.parse::<f64>().ok().filter(|_| is_decimal).map(|number| number * (1u64 << shift) as f64);
    match bytes {
        None => Err("write a number, then K, M or G, as 1.5G".to_owned()),
        Some(bytes) if bytes >= u64::MAX as f64 => Err("that is more than 2^64 bytes".to_owned()),
        Some(bytes) => Ok(bytes as u64),
    }
}

/// Examples at the ends of help texts.
mod examples {
    pub const ALL: &str = "\
Examples:
  kmers index host.fa.gz -o host.index
  kmers screen host.index reads.fq.gz --unmatched clean.fq.gz
  kmers count -k 31 genome.fa.gz -o genome.kmers";
    pub const COUNT: &str = "\
Examples:
  kmers count -k 31 genome.fa.gz -o genome.kmers
  kmers count -k 21 r1.fq.gz r2.fq.gz --min-count 2 --max-memory 1.5G -o reads.kmers
  xz -dc genome.fa.xz | kmers count - -o genome.kmers";
    pub const INDEX: &str = "\
Examples:
  kmers index host.fa.gz -o host.index
  kmers index host.fa.gz --without bacteria.fa.gz --kind fuse16 -o host.index
  kmers index first.index second.index -o both.index";
    pub const SCREEN: &str = "\
Examples:
  kmers screen host.index reads.fq.gz --unmatched clean.fq.gz --summary clean.json
  kmers screen host.index r1.fq.gz r2.fq.gz --paired --unmatched c1.fq.gz --unmatched-mates c2.fq.gz
  kmers screen genome.kmers reads.fq --min-hits 3 --matched - | next-program";
    pub const LABEL: &str = "\
Examples:
  kmers label genomes/*.fa.gz -o genomes.labels
  kmers label -k 21 --filter-bits 16 --max-memory 8G one.fa other.fa -o both.labels";
    pub const WHICH: &str = "\
Examples:
  kmers which genomes.labels reads.fq.gz -o genomes.tsv.gz
  kmers which genomes.labels r1.fq.gz r2.fq.gz --paired | cut -f 2 | sort | uniq -c
  kmers which genomes.labels reads.fq --min-hits 10 --min-share 0.3";
    pub const INFO: &str = "\
Examples:
  kmers info host.index
  kmers info genome.kmers";
    pub const MERGE: &str = "\
Examples:
  kmers merge monday.kmers tuesday.kmers -o both.kmers
  kmers merge *.kmers --min-count 2 -o all.kmers";
    pub const HISTOGRAM: &str = "\
Examples:
  kmers histogram reads.kmers
  kmers histogram reads.kmers --most 100 > copies.tsv";
    pub const LIST: &str = "\
Examples:
  kmers list genome.kmers | sort > sorted.tsv
  kmers list reads.kmers --min-count 10";
    pub const GENERATE: &str = "\
Examples:
  kmers generate ~/.local/share";
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the command line, and that the help of each command ends with examples.
    #[test]
    fn the_command_line_is_sound() {
        let mut cli = Cli::command();
        cli.clone().debug_assert();
        cli.build();
        for command in std::iter::once(&cli).chain(cli.get_subcommands()).filter(|command| command.get_name() != "help")
        {
            let help = command.clone().render_help().to_string();
            assert!(help.contains("Examples:\n  kmers "), "{help}");
        }
    }

    /// Checks that each command has a man page with its examples, and that completions contain all commands.
    #[test]
    fn man_pages_and_completions_are_written() {
        let share = std::env::temp_dir().join(format!("kmers-share-{}", std::process::id()));
        let files = generate(&share).unwrap();
        let text = |path: &PathBuf| fs::read_to_string(path).unwrap();
        let (pages, scripts): (Vec<_>, Vec<_>) = files.iter().partition(|path| path.extension() == Some("1".as_ref()));
        let names = ["kmers", "kmers-count", "kmers-index", "kmers-screen", "kmers-info", "kmers-merge"];
        for name in names.into_iter().chain(["kmers-histogram", "kmers-list", "kmers-label", "kmers-which"]) {
            let page = text(pages.iter().find(|path| path.file_stem() == Some(name.as_ref())).unwrap());
            assert!(page.contains(&format!(".TH {name} 1")) && page.contains("Examples:"), "{page}");
        }
        assert_eq!((pages.len(), scripts.len()), (10, 3));
        for script in scripts.into_iter().map(text) {
            assert!(["count", "screen", "unmatched-mates"].iter().all(|word| script.contains(word)), "{script}");
        }
        fs::remove_dir_all(share).unwrap();
    }

    #[test]
    fn sizes_are_read() {
        let sizes = ["17", "2K", "3M", "4g", "1GiB", "5kb", "1.5G", "0.5K"].map(|text| bytes(text).unwrap());
        assert_eq!(sizes, [17, 2 << 10, 3 << 20, 4 << 30, 1 << 30, 5 << 10, 3 << 29, 512]);
        for text in ["", "G", "1.5.5G", "-1", "3X", "99999999999G", "1µ", "1e3", "inf", "NaN", "."] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}

//! `cargo xtask bench`: verifies and measures every structure on this machine.
//!
//! A run is a list of steps: first each structure's on real input, then on generated input. The
//! answers of every measured operation are verified; one wrong answer fails the run. Limits of the
//! machine and other libraries are measured in the same process.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use bench_frame::input::genome::Genome;
use bench_frame::input::shipped;
use bench_frame::input::text::Lines;
use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use warpset::gpu;

use bench_frame::clock::{Counted, Effort};
use bench_frame::progress::Progress;
use bench_frame::suite::{Input, Session, Setup, Step, Suite, Target, emulator};
use bench_frame::{machine, table};
use bench_record::file::{About, Output, Run};
use bench_report::{Page, headline};

/// Returns every suite, with the settings that a user may give it.
fn suites(log2_slots: Option<u32>, shapes: Vec<bench_recsplit::Settings>) -> Vec<Box<dyn Suite>> {
    vec![
        Box::new(bench_bloom::Bloom),
        Box::new(bench_fuse::FUSE),
        Box::new(bench_lsm::Lsm),
        Box::new(bench_sequence::MINIMIZERS),
        Box::new(bench_primitives::Primitives),
        Box::new(bench_quotient::Quotient { log2_slots }),
        Box::new(bench_range::RANGE),
        Box::new(bench_recsplit::RecSplit { shapes }),
        Box::new(bench_sequence::SCREEN),
        Box::new(bench_sequence::SEQUENCE_FILTERS),
        Box::new(bench_static::StaticSets),
    ]
}

/// Other libraries that are measured in the same process, and those that only feature `peers` compiles.
const PEERS: [&str; 4] = ["fastbloom", "qfilter", "boomphf", "xorf"];
const HEAVY_PEERS: [&str; 7] = ["grafite", "parquet", "range-filters", "redb", "ph", "ptr_hash", "sux"];

/// Returns the peers of this executable.
fn peers() -> impl Iterator<Item = &'static str> {
    let heavy = if cfg!(feature = "peers") { &HEAVY_PEERS[..] } else { &[] };
    PEERS.into_iter().chain(heavy.iter().copied())
}

/// The arguments of `bench`.
#[derive(clap::Args)]
pub struct Args {
    /// Structures to measure; all of them if none is named
    #[arg(value_parser = PossibleValuesParser::new(suites(None, Vec::new()).iter().map(|suite| suite.name())))]
    structure: Vec<String>,
    /// Targets; may be given again. Default: the CPU, and CUDA where a device answers
    #[arg(long, value_enum)]
    backend: Vec<Backend>,
    /// About a minute on two cores, without studies and figures of papers
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// Every size, up to what a large GPU holds
    #[arg(long)]
    full: bool,
    /// CPU rows: the least time of the repeats instead of the median, processor time on one thread. For a machine that
    /// others use too
    #[arg(long)]
    least: bool,
    /// Only the steps whose title has this in it; may be given again. The progress lines show the titles
    #[arg(long, value_name = "TEXT")]
    step: Vec<String>,
    /// Quotient filters of 2^N slots instead of the sizes of the effort
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(10..=28))]
    log2_slots: Option<u32>,
    /// Minimal perfect hash functions of this shape instead of those of the effort; may be given again. METHOD is
    /// `brute`, `rotation` or `grouped`
    #[arg(long, value_name = "METHOD:LEAF:BUCKET[:FANOUT:FANOUT]")]
    shape: Vec<bench_recsplit::Settings>,
    /// Makes one first call and prints its seconds
    #[arg(long, hide = true)]
    first_call: Option<String>,
    /// Print every table and every row, not one screen of them
    #[arg(long)]
    all: bool,
    /// Write all rows to this file instead of `target/warpset/bench.json`
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the page to this file instead of `target/warpset/bench.html`
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Keys of your own instead of the shipped words: one per line, any length, plain or gzip. Given again: keys to
    /// look up in them; without, as many others are made
    #[arg(long, value_name = "FILE")]
    input: Vec<PathBuf>,
    /// Genomes of your own (FASTA or FASTQ, plain or gzip): a reference, then samples to screen against it
    #[arg(long, value_name = "FILE", num_args = 2..)]
    fasta: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Backend {
    /// The host algorithms
    Cpu,
    /// A GPU; an error if none answers
    Cuda,
    /// The kernels on emulated threads: small sizes, for tests, never for speed
    Emulator,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(name) = &args.first_call {
        return crate::first_use::call(name);
    }
    let effort = match (args.quick, args.full) {
        (true, _) => Effort::Quick,
        (_, true) => Effort::Full,
        _ => Effort::Standard,
    };
    let outputs = Outputs::create(args)?;
    let input = read_input(args)?;
    let targets = targets(&args.backend)?;
    print_machine(&targets);

    let setup = Setup { effort, targets, own_keys: !args.input.is_empty() };
    let chosen: Vec<Box<dyn Suite>> = suites(args.log2_slots, args.shape.clone())
        .into_iter()
        .filter(|suite| args.structure.is_empty() || args.structure.iter().any(|name| name == suite.name()))
        .collect();
    let mut steps: Vec<_> = chosen.iter().flat_map(|suite| suite.real(&setup)).collect();
    // In turns: where time runs out, every structure has some.
    steps.extend(in_turns(chosen.iter().map(|suite| suite.generated(&setup)).collect()));
    if args.structure.is_empty() {
        steps.extend(crate::first_use::steps(&setup));
    }
    let all = steps.len();
    if !args.step.is_empty() {
        steps.retain(|step| args.step.iter().any(|text| step.title.contains(text)));
        ensure!(!steps.is_empty(), "no step has {} in its title", args.step.join(" or "));
    } else if args.quick {
        steps.retain(|step| step.in_quick);
    }
    let studies = if args.quick { all - steps.len() } else { 0 };
    let mut session = Session::new(effort, machine::processor(), Progress::new(steps.len()), input)?;
    session.counted = if args.least { Counted::Least } else { Counted::Median };
    session.shows_studies = args.all;
    let about = about(args, &setup);
    let mut late = Vec::new();
    let outcome = steps.into_iter().try_for_each(|step| {
        if args.quick && args.step.is_empty() && session.elapsed() > QUICK {
            late.push(step.title);
            return Ok(());
        }
        session.run(step)
    });
    let (mut rows, failures, time) = session.finish();
    // The machine's own rows last: they explain the column "of limit".
    rows.sort_by_key(|row| row.structure == "machine");
    let run = Run { about: About { date: machine::now(), seconds: time.as_secs_f64(), ..about }, rows };
    if args.all {
        println!("\n{}\n", table::render(&run.rows));
    }
    println!("{}", headline::screen(&run));
    if args.quick && args.step.is_empty() {
        let mut said = format!("Left out of a quick run: {studies} steps of studies and figures of papers");
        if !late.is_empty() {
            let shown = late.len().min(4);
            said +=
                &format!("; as {} s were over, {} steps: {}", QUICK.as_secs(), late.len(), late[..shown].join("; "));
            said += if shown < late.len() { "; …" } else { "" };
        }
        println!("\n{}", headline::wrap(&format!("{said}. `cargo xtask bench` has all."), "", ""));
    }
    outputs.write(run)?;
    outcome?;
    if !failures.is_empty() {
        bail!("{} wrong results:\n  {}", failures.len(), failures.join("\n  "));
    }
    Ok(())
}

/// Time after which a quick run begins no further step. The longest step takes about ten seconds on a busy machine.
const QUICK: Duration = Duration::from_secs(60);

/// Merges lists of steps: one of each list in turn.
fn in_turns(lists: Vec<Vec<Step>>) -> Vec<Step> {
    let mut lists: Vec<_> = lists.into_iter().map(Vec::into_iter).collect();
    let mut steps = Vec::new();
    while lists.iter().any(|list| list.len() > 0) {
        steps.extend(lists.iter_mut().filter_map(Iterator::next));
    }
    steps
}

/// Files for the rows and the page.
struct Outputs {
    json: Output,
    html: Output,
}

impl Outputs {
    /// Makes sure, before minutes of work, that both can be written.
    fn create(args: &Args) -> anyhow::Result<Outputs> {
        // A run of some structures leaves the files of other runs alone.
        let name = [&["bench".to_owned()], &args.structure[..]].concat().join("-");
        let path = |asked: &Option<PathBuf>, ending| match asked {
            Some(path) => Ok(path.clone()),
            None => Ok::<_, anyhow::Error>(default_folder()?.join(&name).with_extension(ending)),
        };
        Ok(Outputs {
            json: Output::create(&path(&args.json, "json")?)?,
            html: Output::create(&path(&args.html, "html")?)?,
        })
    }

    fn write(self, run: Run) -> anyhow::Result<()> {
        let (rows, seconds) = (run.rows.len(), run.about.seconds);
        let json = self.json.write(&run.to_json()?)?;
        let html = self.html.write(&Page::of(vec![run]).html(true))?;
        println!("\n{rows} rows in {seconds:.1} s\nall rows   {}\nas a page  {}", json.display(), html.display());
        if !cfg!(feature = "peers") {
            let left_out = HEAVY_PEERS.join(", ");
            let told = format!("not compared with {left_out}: `cargo xtask-peers bench` compiles them, for minutes");
            println!("{}", headline::wrap(&told, "", "           "));
        }
        Ok(())
    }
}

/// Returns `target/warpset` of the repository; creates the folder.
fn default_folder() -> anyhow::Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    // Asked at run time, so that a packed executable follows the folder into which it was packed.
    let package = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    let root = Path::new(&package).parent().context("the package has a folder above it")?;
    let folder = root.join(target).join("warpset");
    let made = std::fs::create_dir_all(&folder);
    made.with_context(|| format!("cannot make {}; `--json FILE --html FILE` name other places", folder.display()))?;
    Ok(folder)
}

/// Describes the run whose rows follow.
fn about(args: &Args, setup: &Setup) -> About {
    let mut devices = BTreeMap::new();
    for target in &setup.targets {
        let device = match target {
            Target::Cpu => machine::processor(),
            Target::Gpu(device) => machine::gpu(device),
        };
        devices.entry(target.name().to_owned()).or_insert(device);
    }
    // The host is part of a device's figures too.
    devices.entry("cpu".to_owned()).or_insert_with(machine::processor);
    About {
        version: env!("CARGO_PKG_VERSION").into(),
        effort: setup.effort.name().into(),
        counted: if args.least { "least" } else { "median" }.into(),
        arguments: std::env::args().skip_while(|word| word != "bench").skip(1).collect(),
        devices,
        threads: machine::threads(),
        driver: machine::driver(),
        peers: peers().map(|peer| (peer.to_owned(), machine::version(peer).to_owned())).collect(),
        ..About::default()
    }
}

fn read_input(args: &Args) -> anyhow::Result<Input> {
    let genomes = match args.fasta.is_empty() {
        true => vec![shipped::mg1655()?, shipped::dh1()?],
        false => args.fasta.iter().map(|path| Genome::open(path)).collect::<Result<_, _>>()?,
    };
    let (present, asked) = match &args.input[..] {
        [] => (shipped::words()?, shipped::words_large()?),
        [set] => (Lines::open(set)?, Lines::default()),
        [set, asked] => (Lines::open(set)?, Lines::open(asked)?),
        more => bail!("--input was given {} times: pass the keys of the set, and then those to look up", more.len()),
    };
    Ok(Input { genomes, present, asked })
}

/// Checks that the requested backends are available.
fn targets(asked: &[Backend]) -> anyhow::Result<Vec<Target>> {
    let mut targets = Vec::new();
    if asked.is_empty() || asked.contains(&Backend::Cpu) {
        targets.push(Target::Cpu);
    }
    if asked.is_empty() || asked.contains(&Backend::Cuda) {
        match gpu::Backend::auto() {
            gpu::Backend::Cuda(device) => targets.push(Target::Gpu(device)),
            gpu::Backend::Cpu(why) if asked.is_empty() => {
                println!("{}", headline::wrap(&format!("no GPU rows: {why}"), "", "  "));
            }
            gpu::Backend::Cpu(why) => return Err(why).context("no CUDA device for `--backend cuda`"),
        }
    }
    if asked.contains(&Backend::Emulator) {
        targets.push(Target::Gpu(emulator()?));
    }
    Ok(targets)
}

/// Prints the machine that the figures below are measured on.
fn print_machine(targets: &[Target]) {
    println!("Warpset {}", env!("CARGO_PKG_VERSION"));
    println!("cpu       {}", machine::processor());
    for target in targets {
        if let Target::Gpu(device) = target {
            println!("{:9} {}", target.name(), machine::gpu(device));
        }
    }
    let names: Vec<String> = peers().map(|peer| format!("{peer} {}", machine::version(peer))).collect();
    println!("{}\n", headline::wrap(&names.join(", "), "peers     ", "          "));
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn bad_arguments_are_refused() {
        for bad in [&["treap"][..], &["--quick", "--full"], &["--backend", "abacus"], &["--fasta", "one"], &["--json"]]
        {
            assert!(Line::try_parse_from([&["bench"], bad].concat()).is_err(), "{bad:?}");
        }
        assert!(
            Line::try_parse_from(["bench", "bloom", "--quick", "--backend", "cpu", "--fasta", "a", "b", "c"]).is_ok()
        );
    }

    #[test]
    fn bad_files_end_a_run_before_it_starts() {
        let thrice = [&["bench"][..], &["--input", "/no/such/file"].repeat(3)].concat();
        let told = run(&Line::try_parse_from(thrice).unwrap().args).unwrap_err().to_string();
        assert!(told.contains("given 3 times"), "{told}");
        for bad in [["--input", "/no/such/file"], ["--json", "/no/such/folder/x.json"], ["--step", "no such step"]] {
            let line = Line::try_parse_from([&["bench", "--quick"][..], &bad].concat()).unwrap();
            assert!(run(&line.args).is_err());
        }
    }
}

//! `cargo xtask soak`: the tests that launch kernels on emulated GPUs, again and again, each round with another seed.
//!
//! A seed overrides that of every emulator of a process, so that each launch has another schedule: which thread goes on
//! at each barrier, atomic and fence, which stores arrive late. The race detector is on wherever a test does not turn
//! it off. A round that fails keeps its output in `target/soak`, with the seed that replays it, and the others go on.
//! Shards have different seeds, so that several machines share the work. A line per run in `target/soak/log.txt` says
//! what was done.
//!
//! Among the tests are mixes of operations as programs have them, whose input follows from the seed too: a day of a
//! dictionary, for one, with eight threads that read snapshots (`cargo xtask soak --test a_day_goes_on`).

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use crate::dist::{Executable, parse_messages};

/// Variable that gives every emulator of a process its seed; an executable that can launch kernels names it.
const SEED_VARIABLE: &str = "WARPSET_EMULATOR_SEED";

/// Variable that names the file to which emulators add the number of their launches.
const COUNT_VARIABLE: &str = "WARPSET_EMULATOR_COUNT";

/// Packages with tests about certain seeds: those of the emulator itself.
const ABOUT_SEEDS: [&str; 2] = ["warpset-simt", "warpset-gpu"];

/// The arguments of `soak`.
#[derive(clap::Args)]
pub struct Args {
    /// Seconds to run; the round that is running then is finished
    #[arg(long, default_value_t = 600)]
    seconds: u64,
    /// Executables that run side by side; default: one per processor
    #[arg(long)]
    jobs: Option<usize>,
    /// The first seed; each round takes the next
    #[arg(long, default_value_t = 1)]
    first_seed: u64,
    /// This machine's part of the seeds, as `2/8`: the second of eight
    #[arg(long, default_value = "1/1", value_parser = shard)]
    shard: (u64, u64),
    /// Only tests whose name has this in it; may be given again
    #[arg(long, value_name = "TEXT")]
    test: Vec<String>,
    /// Run the test executables of this folder instead of building them, as `cargo xtask dist` packs them
    #[arg(long, value_name = "FOLDER")]
    executables: Option<PathBuf>,
}

fn shard(text: &str) -> Result<(u64, u64), String> {
    let parts = text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
    match parts {
        Some((number, of)) if 1 <= number && number <= of => Ok((number, of)),
        _ => Err(format!("{text} is no part such as 2/8")),
    }
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let root = crate::workspace_root().canonicalize()?;
    let folder = root.join("target/soak");
    fs::create_dir_all(&folder)?;
    let executables = match &args.executables {
        Some(packed) => listed(&root, packed)?,
        None => built(&root)?,
    };
    ensure!(!executables.is_empty(), "no test executable to run");
    let jobs = args.jobs.or_else(|| std::thread::available_parallelism().ok().map(Into::into)).unwrap_or(1);
    let soak = Soak {
        args,
        count: folder.join(format!("schedules-{}-{}.txt", args.shard.0, args.shard.1)),
        folder,
        executables,
        end: Instant::now() + Duration::from_secs(args.seconds),
        next: AtomicU64::new(0),
        runs: AtomicU64::new(0),
        failures: AtomicU64::new(0),
    };
    let _ = fs::remove_file(&soak.count);
    let started = Instant::now();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(|| soak.work())).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("workers do not panic"))
    })?;
    let schedules = sum(&soak.count)?;
    let (runs, failures) = (soak.runs.into_inner(), soak.failures.into_inner());
    let (last, (number, of)) = (soak.next.into_inner().saturating_sub(1) / soak.executables.len() as u64, args.shard);
    let line = format!(
        "{schedules} schedules in {runs} runs of {} executables, {failures} failures; rounds 0 to {last} of part {number}/{of} from seed {}; {} s",
        soak.executables.len(),
        args.first_seed,
        started.elapsed().as_secs(),
    );
    println!("{line}");
    writeln!(OpenOptions::new().append(true).create(true).open(soak.folder.join("log.txt"))?, "{line}")?;
    ensure!(failures == 0, "{failures} runs have failed; what they printed is in {}", soak.folder.display());
    Ok(())
}

/// Builds the test executables of the workspace.
fn built(root: &Path) -> anyhow::Result<Vec<Executable>> {
    let output = crate::cargo()
        .current_dir(root)
        .args(["test", "--workspace", "--no-run", "--message-format", "json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    ensure!(output.status.success(), "the workspace does not build");
    let all = parse_messages(&String::from_utf8(output.stdout).context("Cargo's messages are not UTF-8")?)?;
    all.into_iter().filter_map(launching).collect()
}

/// Lists the executables of a folder, whose files are named as `cargo xtask dist` names them: by package, and target.
fn listed(root: &Path, folder: &Path) -> anyhow::Result<Vec<Executable>> {
    let mut executables = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path().canonicalize()?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let package = package_of(&name);
        let short = package.trim_start_matches("warpset-");
        let places = ["crates", "examples", "."].map(|place| root.join(place).join(short));
        let package = places.into_iter().find(|place| place.is_dir()).unwrap_or_else(|| root.join("kernels-gpu"));
        executables.extend(launching(Executable { name, path, package, is_test: true }).transpose()?);
    }
    executables.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(executables)
}

/// Returns the executable, if it is a test that can launch kernels and passes with any seed.
fn launching(executable: Executable) -> Option<anyhow::Result<Executable>> {
    if !executable.is_test || ABOUT_SEEDS.contains(&package_of(&executable.name)) {
        return None;
    }
    let bytes = fs::read(&executable.path).with_context(|| format!("cannot read {}", executable.path.display()));
    let names = |bytes: Vec<u8>| bytes.windows(SEED_VARIABLE.len()).any(|window| window == SEED_VARIABLE.as_bytes());
    bytes.map(|bytes| names(bytes).then_some(executable)).transpose()
}

/// Returns the package of a test executable, by its name.
fn package_of(name: &str) -> &str {
    name.split("--").next().unwrap_or(name)
}

/// State shared by the workers.
struct Soak<'a> {
    args: &'a Args,
    folder: PathBuf,
    count: PathBuf,
    executables: Vec<Executable>,
    end: Instant,
    next: AtomicU64,
    runs: AtomicU64,
    failures: AtomicU64,
}

impl Soak<'_> {
    /// Takes one run after the other until time is up.
    fn work(&self) -> anyhow::Result<()> {
        while Instant::now() < self.end {
            let run = self.next.fetch_add(1, Ordering::Relaxed);
            let (round, executable) = (run / self.executables.len() as u64, run % self.executables.len() as u64);
            let (number, of) = self.args.shard;
            let seed = self.args.first_seed + round * of + number - 1;
            let executable = &self.executables[executable as usize];
            let output = Command::new(&executable.path)
                .current_dir(&executable.package)
                .args(["--test-threads", "1"])
                .args(&self.args.test)
                .env("CARGO_MANIFEST_DIR", &executable.package)
                .env("RAYON_NUM_THREADS", "1")
                // Emulated devices alone.
                .env("CUDA_VISIBLE_DEVICES", "")
                .env(SEED_VARIABLE, format!("{seed:#x}"))
                .env(COUNT_VARIABLE, &self.count)
                .output()
                .with_context(|| format!("cannot start {}", executable.path.display()))?;
            self.runs.fetch_add(1, Ordering::Relaxed);
            if !output.status.success() {
                self.failures.fetch_add(1, Ordering::Relaxed);
                let path = self.folder.join(format!("{}-{seed:#x}.txt", executable.name));
                fs::write(&path, [&output.stdout[..], &output.stderr[..]].concat())?;
                eprintln!("failed with {SEED_VARIABLE}={seed:#x}: {} ({})", executable.name, path.display());
            }
        }
        Ok(())
    }
}

/// Adds up the lines of a file; zero if no emulator has ended.
fn sum(file: &Path) -> anyhow::Result<u64> {
    let text = if file.exists() { fs::read_to_string(file)? } else { String::new() };
    text.lines().map(|line| line.parse::<u64>().with_context(|| format!("{line} is no number of launches"))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_those_of_the_emulator() {
        use warpset_simt::emulator;
        assert_eq!((SEED_VARIABLE, COUNT_VARIABLE), (emulator::SEED_VARIABLE, emulator::COUNT_VARIABLE));
    }

    #[test]
    fn parts_are_named_by_number_and_count() {
        assert_eq!(shard("2/8"), Ok((2, 8)));
        for wrong in ["0/8", "9/8", "2", "a/b", ""] {
            assert!(shard(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn schedules_are_added_up() {
        let file = std::env::temp_dir().join(format!("warpset-soak-{}", std::process::id()));
        assert_eq!(sum(&file).expect("no file"), 0);
        fs::write(&file, "12\n0\n30\n").expect("writable");
        assert_eq!(sum(&file).expect("numbers"), 42);
        fs::remove_file(&file).expect("own file");
    }
}

//! Interface between the bench and its suites.
//!
//! A suite is one type that implements [`Suite`], in a crate of its own, with its own settings. This file depends on no
//! structure.

use std::sync::Arc;
use std::time::Duration;

use crate::input::genome::Genome;
use crate::input::text::Lines;
use anyhow::Context;
use rayon::{ThreadPool, ThreadPoolBuilder};
use warpset::gpu::Device;

use super::clock::{self, Counted, Effort};
use super::gpu_limits::{GpuAccess, GpuLimits};
use super::limits::{Access, Limits};
use super::machine;
use super::progress::Progress;
use super::table::{parameters, pivot};
use bench_record::Record;

/// Makes an emulated device.
///
/// # Errors
/// This executable was compiled without the feature `emulator`.
pub fn emulator() -> anyhow::Result<Device> {
    #[cfg(feature = "emulator")]
    return Ok(Device::emulator(Default::default()));
    #[cfg(not(feature = "emulator"))]
    anyhow::bail!(
        "compiled without the emulator: `cargo xtask bench --backend emulator` compiles it, the feature `emulator`"
    )
}

/// The benches of one structure.
pub trait Suite: Sync {
    /// Returns the word on the command line.
    fn name(&self) -> &'static str;

    /// Returns the steps on real input. Those of all structures run first.
    fn real(&self, _setup: &Setup) -> Vec<Step> {
        Vec::new()
    }

    /// Returns the steps on generated input.
    fn generated(&self, setup: &Setup) -> Vec<Step>;
}

/// The benches of a structure on generated input alone: in host memory, and on devices.
pub struct Generated {
    /// The word on the command line.
    pub name: &'static str,
    /// Steps in host memory.
    pub host: fn(Effort) -> Vec<Step>,
    /// Steps on a device.
    pub device: fn(&Device, Effort) -> Vec<Step>,
}

impl Suite for Generated {
    fn name(&self) -> &'static str {
        self.name
    }

    fn generated(&self, setup: &Setup) -> Vec<Step> {
        let mut steps = if setup.cpu() { (self.host)(setup.effort) } else { Vec::new() };
        steps.extend(setup.devices().flat_map(|device| (self.device)(device, setup.effort)));
        steps
    }
}

/// Makes one step per size on a device, from its title and its measurement.
pub fn sizes_on(
    device: &Device,
    sizes: &[usize],
    title: impl Fn(usize) -> String,
    measure: fn(&mut Session, &Device, usize) -> anyhow::Result<()>,
) -> Vec<Step> {
    let place = if device.is_emulator() { "emulator" } else { "GPU" };
    let step = |&n: &usize| {
        let device = device.clone();
        Step::new(format!("{} on the {place}", title(n)), move |session| measure(session, &device, n))
    };
    sizes.iter().map(step).collect()
}

/// One step of a run: seconds of work, some rows.
pub struct Step {
    /// Title, for the progress line.
    pub title: String,
    /// The work.
    pub run: StepFn,
    /// Whether quick runs have it too.
    pub in_quick: bool,
}

/// The work of a step.
pub type StepFn = Box<dyn FnOnce(&mut Session) -> anyhow::Result<()>>;

impl Step {
    /// Makes a step.
    pub fn new(title: impl Into<String>, run: impl FnOnce(&mut Session) -> anyhow::Result<()> + 'static) -> Self {
        Self { title: title.into(), run: Box::new(run), in_quick: true }
    }

    /// Leaves the step out of quick runs, unless `--step` names it: studies, and figures of papers.
    pub fn except_quick(self) -> Self {
        Self { in_quick: false, ..self }
    }
}

/// Settings of a run.
pub struct Setup {
    /// Time budget.
    pub effort: Effort,
    /// Targets, the CPU first.
    pub targets: Vec<Target>,
    /// Whether the user brought keys of their own.
    pub own_keys: bool,
}

impl Setup {
    /// Makes the settings of a quick run on the emulator.
    pub fn emulator() -> Self {
        let targets = vec![Target::Gpu(emulator().expect("tests have the feature `emulator`"))];
        Self { effort: Effort::Quick, targets, own_keys: false }
    }

    /// Whether the CPU is among the targets.
    pub fn cpu(&self) -> bool {
        self.targets.contains(&Target::Cpu)
    }

    /// Returns the devices among the targets, emulators included.
    pub fn devices(&self) -> impl Iterator<Item = &Device> {
        self.targets.iter().filter_map(|target| match target {
            Target::Cpu => None,
            Target::Gpu(device) => Some(device),
        })
    }
}

/// Place of a measurement.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// The structure's own host algorithm.
    Cpu,
    /// The kernels, on a GPU or on the emulator.
    Gpu(Device),
}

impl Target {
    /// Returns `cpu`, `cuda` or `emulator`.
    pub fn name(&self) -> &'static str {
        match self {
            Target::Cpu => "cpu",
            Target::Gpu(device) if device.is_emulator() => "emulator",
            Target::Gpu(_) => "cuda",
        }
    }

    /// Whether kernels run on emulated threads.
    pub fn is_emulator(&self) -> bool {
        matches!(self, Target::Gpu(device) if device.is_emulator())
    }
}

/// Number of threads of a CPU row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// One.
    One,
    /// All that the process may use.
    All,
}

/// State shared by the steps of one run: input, limits, rows.
pub struct Session {
    /// Time budget.
    pub effort: Effort,
    /// Statistic of the repeats, on the CPU.
    pub counted: Counted,
    /// Whether studies print their tables.
    pub shows_studies: bool,
    /// CPU limits measured so far.
    pub limits: Limits,
    gpu_limits: GpuLimits,
    /// Devices with measured limits.
    devices: Vec<Device>,
    progress: Progress,
    processor: String,
    one: ThreadPool,
    all: ThreadPool,
    records: Vec<Record>,
    failures: Vec<String>,
    input: Arc<Input>,
}

/// Real input: what the user named, else what ships.
#[derive(Default)]
pub struct Input {
    /// Genomes: the reference, then samples to screen against it.
    pub genomes: Vec<Genome>,
    /// Keys of any length that are inserted.
    pub present: Lines,
    /// Keys of any length, some of them among `present`.
    pub asked: Lines,
}

impl Session {
    /// Starts a run without rows.
    ///
    /// # Errors
    /// The system refuses threads.
    pub fn new(effort: Effort, processor: String, progress: Progress, input: Input) -> anyhow::Result<Self> {
        let pool = |threads| ThreadPoolBuilder::new().num_threads(threads).build().context("cannot start threads");
        Ok(Self {
            effort,
            counted: Counted::Median,
            shows_studies: false,
            limits: Limits::default(),
            gpu_limits: GpuLimits::default(),
            devices: Vec::new(),
            progress,
            processor,
            one: pool(1)?,
            all: pool(machine::threads())?,
            records: Vec::new(),
            failures: Vec::new(),
            input: Arc::new(input),
        })
    }

    /// Returns the real input.
    pub fn input(&self) -> Arc<Input> {
        self.input.clone()
    }

    /// Returns the thread pool of a CPU row.
    pub fn pool(&self, threads: Threads) -> &ThreadPool {
        match threads {
            Threads::One => &self.one,
            Threads::All => &self.all,
        }
    }

    /// Measures `work` on CPU threads: the median, or the statistic of the run.
    pub fn time<S: Send>(
        &self,
        threads: Threads,
        state: &mut S,
        work: impl FnMut(&mut S) -> anyhow::Result<()> + Send,
    ) -> anyhow::Result<f64> {
        self.time_after(threads, state, |_| Ok(()), work)
    }

    /// Measures `make`, and returns its last result.
    pub fn made<T: Send>(
        &self,
        threads: Threads,
        mut make: impl FnMut() -> anyhow::Result<T> + Send,
    ) -> anyhow::Result<(f64, T)> {
        let mut made = None;
        let seconds = self.time(threads, &mut made, |made| {
            *made = Some(make()?);
            Ok(())
        })?;
        Ok((seconds, made.expect("work is repeated at least once")))
    }

    /// Measures a change: before each repeat `state` becomes `before` again, untimed.
    pub fn time_change<S: Send + Sync + Clone>(
        &self,
        threads: Threads,
        before: &S,
        state: &mut S,
        work: impl FnMut(&mut S) -> anyhow::Result<()> + Send,
    ) -> anyhow::Result<f64> {
        let again = |state: &mut S| {
            state.clone_from(before);
            Ok(())
        };
        self.time_after(threads, state, again, work)
    }

    /// Measures `work`, with `prepare` before each repeat, untimed.
    pub fn time_after<S: Send>(
        &self,
        threads: Threads,
        state: &mut S,
        prepare: impl FnMut(&mut S) -> anyhow::Result<()> + Send,
        work: impl FnMut(&mut S) -> anyhow::Result<()> + Send,
    ) -> anyhow::Result<f64> {
        let (effort, counted) = (self.effort, self.counted);
        self.pool(threads).install(|| match counted {
            Counted::Median => clock::median_seconds(effort, state, prepare, work),
            Counted::Least => clock::least_seconds(effort, threads == Threads::One, state, prepare, work),
        })
    }

    /// Measures random accesses per second to `bytes` of memory.
    pub fn random_limit(&mut self, threads: Threads, access: Access, bytes: usize) -> f64 {
        let pool = if threads == Threads::One { &self.one } else { &self.all };
        let (limits, effort) = (&mut self.limits, self.effort);
        pool.install(|| limits.random(access, bytes, effort))
    }

    /// Measures accesses per second to `bytes` of a device's memory.
    pub fn gpu_limit(&mut self, device: &Device, access: GpuAccess, bytes: usize) -> anyhow::Result<f64> {
        if !self.devices.contains(device) {
            self.devices.push(device.clone());
        }
        self.gpu_limits.rate(device, access, bytes, self.effort)
    }

    /// Measures the bytes per second that repeated copies of `bytes` move, read and written bytes both counted.
    pub fn copy_limit(&mut self, threads: Threads, bytes: usize) -> f64 {
        let pool = if threads == Threads::One { &self.one } else { &self.all };
        let (limits, effort) = (&mut self.limits, self.effort);
        pool.install(|| limits.copy(bytes, effort))
    }

    /// Returns the threads of rows: one, and all if that is more than one and the work is parallel.
    pub fn threads(&self, parallel: bool) -> &'static [Threads] {
        if parallel && !self.skips(Threads::All) { &[Threads::One, Threads::All] } else { &[Threads::One] }
    }

    /// Whether rows on all threads would repeat those on one.
    pub fn skips(&self, threads: Threads) -> bool {
        threads == Threads::All && self.all.current_num_threads() == 1
    }

    /// Adds a row that was measured on `target`; the threads count on the CPU only.
    pub fn push_on(&mut self, target: &Target, mut record: Record, threads: Threads) {
        record.backend = target.name().into();
        match target {
            Target::Cpu => {
                record.device.clone_from(&self.processor);
                let threads = self.pool(threads).current_num_threads();
                record = record.param("threads", threads);
            }
            Target::Gpu(device) => record.device = machine::gpu(device),
        }
        self.records.push(record);
    }

    /// Adds a row that was measured on `target`. `right` says whether its answers are as they must be; if not, the run
    /// fails at its end.
    pub fn add(&mut self, target: &Target, threads: Threads, mut row: Record, right: bool) {
        row.checked = self.verify(right, || {
            format!("{} {} of {} items on {}, {}", row.structure, row.operation, row.n, target.name(), parameters(&row))
        });
        self.push_on(target, row, threads);
    }

    /// Prints the rows of a study that `wanted` takes, one line per operation and implementation.
    pub fn show(
        &self,
        study: &str,
        title: &str,
        wanted: impl Fn(&Record) -> bool,
        column: impl Fn(&Record) -> String,
        cell: impl Fn(&Record) -> String,
    ) {
        let rows: Vec<&Record> = self.study(study).into_iter().filter(|row| wanted(row)).collect();
        let Some(first) = rows.first() else { return };
        let one = rows.iter().all(|row| row.operation == first.operation);
        let line = |row: &Record| if one { row.name() } else { format!("{}, {}", row.operation, row.name()) };
        self.print(&pivot(title, &rows, line, column, cell));
    }

    /// Returns the rows of a study so far.
    pub fn study(&self, name: &str) -> Vec<&Record> {
        self.records.iter().filter(|row| row.text("study") == Some(name)).collect()
    }

    /// Records whether a row's answers were right; a wrong one fails the run at its end. Returns `right`, for the row's
    /// `checked`.
    pub fn verify(&mut self, right: bool, what: impl FnOnce() -> String) -> bool {
        if !right {
            let what = what();
            self.progress.print(&format!("WRONG: {what}"));
            self.failures.push(what);
        }
        right
    }

    /// Runs `steps` as a quick run, with `input`; every answer has to be right.
    pub fn rows_with(input: Input, steps: Vec<Step>) -> Vec<Record> {
        let progress = Progress::new(steps.len());
        let mut session = Session::new(Effort::Quick, "a processor".into(), progress, input).unwrap();
        assert!(!steps.is_empty());
        steps.into_iter().for_each(|step| session.run(step).unwrap());
        let (rows, failures, _) = session.finish();
        assert!(failures.is_empty(), "{failures:?}");
        rows
    }

    /// Runs steps as [`Self::rows_with`] does, without real input.
    pub fn rows_of(steps: Vec<Step>) -> Vec<Record> {
        Self::rows_with(Input::default(), steps)
    }

    /// Returns a callback that shows the progress of a part of the current step, if there is a bar: [`Progress::part`].
    pub fn progress(&self) -> Option<impl Fn(u64, u64) + Clone + Send + Sync + use<>> {
        self.progress.part()
    }

    /// Prints a study's results at once, above the progress bar, if studies print.
    pub fn print(&self, text: &str) {
        if self.shows_studies {
            self.progress.print(text);
        }
    }

    /// Returns the time since the run began.
    pub fn elapsed(&self) -> Duration {
        self.progress.elapsed()
    }

    /// Runs a step, with its progress line.
    ///
    /// # Errors
    /// The step's, with its title.
    pub fn run(&mut self, step: Step) -> anyhow::Result<()> {
        self.progress.begin(&step.title);
        (step.run)(self).with_context(|| step.title)?;
        self.progress.finish_step();
        Ok(())
    }

    /// Returns all rows, with the limits and the ratios to peers filled in, the failures, and the run's time.
    pub fn finish(mut self) -> (Vec<Record>, Vec<String>, Duration) {
        let rows = self.limits.rows().into_iter().map(|row| Record { device: self.processor.clone(), ..row });
        self.records.extend(rows);
        self.records.extend(self.devices.iter().flat_map(|device| self.gpu_limits.rows(device)));
        bench_record::compare_with_peers(&mut self.records);
        (self.records, self.failures, self.progress.finish())
    }
}

//! Choice of a set: every set and filter, of the same keys, with the same lookups; filters at the same rate of false
//! positives, that of eight bits.
//!
//! Rows of this study are of the structure `sets`, whatever they measure; the page draws one figure of them.

use warpset::bloom::{BlockedBloom, RaoBloom, SplitBlockBloom};
use warpset::gpu::{Device, DeviceSlice, DeviceVec};
use warpset::mphf::{RecSplitKind, StaticFilter};
use warpset::prelude::{DeviceFilter, Filter};
use warpset::quotient::{Duplicates, RankSelectQuotientFilter, StandardQuotientFilter};
use warpset::static_sets::StaticSet;

use super::device::{keys, waited};
use super::{ABSENT, PRESENT, SEED, queries};
use bench_frame::clock::Effort;
use bench_frame::gpu_limits;
use bench_frame::input::keys::KeySpace;
use bench_frame::suite::{Session, Setup, Step, Target, Threads};
use bench_frame::table::rate as per_second;
use bench_record::Record;

/// The study of its rows.
pub const STUDY: &str = "all sets";
/// The rate of false positives of the filters.
const RATE: f64 = 1.0 / 256.0;
/// Tree shape of the static filter: the fast one.
const LEAF: u32 = 8;
const BUCKET: u32 = 100;

/// Makes a step for the CPU and one for each device.
pub fn steps(setup: &Setup) -> Vec<Step> {
    let mut steps = Vec::new();
    if setup.cpu() {
        let n = if setup.effort == Effort::Quick { 500_000 } else { 10_000_000 };
        steps.push(Step::new(format!("static: all sets on the CPU, {n} keys"), move |session| on_cpu(session, n)));
    }
    for device in setup.devices() {
        let n = match setup.effort {
            _ if device.is_emulator() => 1_000,
            Effort::Quick => 10_000_000,
            _ => 100_000_000,
        };
        let (place, device) = (if device.is_emulator() { "emulator" } else { "GPU" }, device.clone());
        let title = format!("static: all sets on the {place}, {n} keys");
        steps.push(Step::new(title, move |session| on_device(session, &device, n)));
    }
    steps
}

/// Name of a set, and its possible changes once it is built.
#[derive(Clone, Copy)]
struct About {
    name: &'static str,
    changes: &'static str,
}

const SPLIT_BLOCK: About = About { name: "split-block Bloom", changes: "keys added" };
const BLOCKED: About = About { name: "blocked Bloom", changes: "keys added" };
const RAO: About = About { name: "Rao's Bloom", changes: "keys added" };
const STANDARD: About = About { name: "standard quotient", changes: "keys added and removed, filters merged" };
const RANK_SELECT: About = About { name: "rank-and-select quotient", changes: "keys added, removed and counted" };
const STATIC_FILTER: About = About { name: "static filter (RecSplit)", changes: "no" };
const EXACT: About = About { name: "exact set", changes: "no" };

fn row(about: About, operation: &str, keys: usize, n: usize, seconds: f64, bits: f64, fpr: f64) -> Record {
    let row = Record::new("sets", operation, n).time(seconds).by(about.name, false).param("study", STUDY);
    let mut row = row.param("key", "u64").param("keys", keys).param("changes", about.changes);
    (row.bits_per_item, row.fpr) = (Some(bits), Some(fpr));
    row
}

/// Whether that many of the absent keys may pass a filter of [`RATE`]; of an exact set none may.
fn is_right(about: About, passed: usize, asked: usize) -> bool {
    let most = RATE * asked as f64;
    if about.name == EXACT.name { passed == 0 } else { (passed as f64) < 1.5 * most + 5.0 * most.sqrt() + 3.0 }
}

fn on_cpu(session: &mut Session, n: usize) -> anyhow::Result<()> {
    let stream = |number| KeySpace::new(SEED).stream(number);
    let asked = queries(session.effort, n);
    let (keys, absent) = (stream(PRESENT).u64_keys(n), stream(ABSENT).u64_keys(asked));
    let count = n as u64;
    let study = OnCpu { keys: &keys, absent: &absent };
    study.run(session, SPLIT_BLOCK, || Ok(SplitBlockBloom::builder(count).fpr(RATE).build_from(&keys)?))?;
    study.run(session, BLOCKED, || Ok(BlockedBloom::builder(count).fpr(RATE).build_from(&keys)?))?;
    study.run(session, RAO, || Ok(RaoBloom::builder(count).fpr(RATE).build_from(&keys)?))?;
    study.run(session, STANDARD, || {
        let builder = StandardQuotientFilter::builder(count).fpr(RATE).duplicates(Duplicates::Dropped);
        Ok(builder.build_from(&keys)?)
    })?;
    study.run(session, RANK_SELECT, || {
        let builder = RankSelectQuotientFilter::builder(count).fpr(RATE).duplicates(Duplicates::Dropped);
        Ok(builder.build_from(&keys)?)
    })?;
    study.run(session, STATIC_FILTER, || {
        Ok(StaticFilter::builder_of_kind(RecSplitKind)
            .fpr(RATE)
            .leaf_size(LEAF)
            .bucket_size(BUCKET)
            .build_from(&keys)?)
    })?;
    study.run(session, EXACT, || Ok(StaticSet::<u64>::builder().build_from(&keys)?))?;
    show(session, "Keys per second of all sets, one thread", |row| row.number("threads") == Some(1.0));
    Ok(())
}

/// Prints the rows that `wanted` takes.
fn show(session: &Session, title: &str, wanted: impl Fn(&Record) -> bool) {
    let cell = |row: &Record| row.items_per_second.map_or_else(String::new, per_second);
    session.show(STUDY, title, wanted, |row| row.backend.clone(), cell);
}

#[derive(Clone, Copy)]
struct OnCpu<'a> {
    keys: &'a [u64],
    absent: &'a [u64],
}

impl OnCpu<'_> {
    fn run<F: Filter + Send + Sync>(
        self,
        session: &mut Session,
        about: About,
        build: impl Fn() -> anyhow::Result<F> + Send + Sync,
    ) -> anyhow::Result<()> {
        let OnCpu { keys, absent } = self;
        let n = keys.len();
        for &threads in session.threads(true) {
            let (seconds, set) = session.made(threads, &build)?;
            let bits = 8.0 * set.memory_bytes() as f64 / n as f64;
            let ask = |session: &Session, asked: &[u64]| -> anyhow::Result<(f64, usize)> {
                let mut answers = vec![false; asked.len()];
                let ask = |answers: &mut Vec<bool>| Ok(set.contains_bulk_into(asked, answers)?);
                let seconds = session.time(threads, &mut answers, ask)?;
                Ok((seconds, answers.into_iter().filter(|&yes| yes).count()))
            };
            let present = &keys[..absent.len()];
            let ((hit, found), (miss, passed)) = (ask(session, present)?, ask(session, absent)?);
            let fpr = passed as f64 / absent.len() as f64;
            let right = found == present.len() && is_right(about, passed, absent.len());
            let times =
                [("build", n, seconds), ("contains hit", present.len(), hit), ("contains miss", absent.len(), miss)];
            for (operation, items, seconds) in times {
                session.add(&Target::Cpu, threads, row(about, operation, n, items, seconds, bits, fpr), right);
            }
        }
        Ok(())
    }
}

fn on_device(session: &mut Session, device: &Device, n: usize) -> anyhow::Result<()> {
    let (present, absent) = (keys(device, PRESENT, n)?, keys(device, ABSENT, n)?);
    let (there, count) = (present.as_slice(), n as u64);
    let study = OnDevice { device, present: &present, absent: &absent };
    study.run(session, SPLIT_BLOCK, || {
        Ok(SplitBlockBloom::builder(count).fpr(RATE).on(device).build_from_device(there)?)
    })?;
    study
        .run(session, BLOCKED, || Ok(BlockedBloom::builder(count).fpr(RATE).on(device).build_from_device(there)?))?;
    study.run(session, RAO, || Ok(RaoBloom::builder(count).fpr(RATE).on(device).build_from_device(there)?))?;
    study.run(session, STANDARD, || {
        let builder = StandardQuotientFilter::builder(count).fpr(RATE).duplicates(Duplicates::Dropped);
        Ok(builder.on(device).build_from_device(there)?)
    })?;
    study.run(session, RANK_SELECT, || {
        let builder = RankSelectQuotientFilter::builder(count).fpr(RATE).duplicates(Duplicates::Dropped);
        Ok(builder.on(device).build_from_device(there)?)
    })?;
    study.run(session, STATIC_FILTER, || {
        let builder = StaticFilter::builder_of_kind(RecSplitKind).fpr(RATE).leaf_size(LEAF).bucket_size(BUCKET);
        Ok(builder.on(device).build_from_device(there)?)
    })?;
    study.run(session, EXACT, || Ok(StaticSet::<u64>::builder().on(device).build_from_device(there)?))?;
    show(session, "Keys per second of all sets on a device", |row| row.backend != "cpu");
    Ok(())
}

#[derive(Clone, Copy)]
struct OnDevice<'a> {
    device: &'a Device,
    present: &'a DeviceVec<u64>,
    absent: &'a DeviceVec<u64>,
}

impl OnDevice<'_> {
    fn run<F>(self, session: &mut Session, about: About, build: impl Fn() -> anyhow::Result<F>) -> anyhow::Result<()>
    where
        F: for<'k> DeviceFilter<DeviceSlice<'k, u64>>,
    {
        let OnDevice { device, present, absent } = self;
        let (n, effort, stream) = (present.len(), session.effort, device.new_stream()?);
        let (seconds, set) = waited(device, effort, build)?;
        let bits = 8.0 * set.memory_bytes() as f64 / n as f64;
        let mut answers: DeviceVec<u8> = device.alloc_uninit(n)?;
        let mut ask = |asked: &DeviceVec<u64>| -> anyhow::Result<(f64, usize)> {
            // SAFETY: all memory lives until the stream has been waited for, and nothing else uses it.
            let queue = || unsafe { Ok(set.contains_async(&stream, asked.as_slice(), answers.as_mut_slice())?) };
            let seconds = gpu_limits::repeated(device, &stream, effort, queue)?;
            Ok((seconds, answers.to_vec()?.iter().filter(|&&answer| answer == 1).count()))
        };
        let ((hit, found), (miss, passed)) = (ask(present)?, ask(absent)?);
        let fpr = passed as f64 / n as f64;
        let right = found == n && is_right(about, passed, n);
        for (operation, seconds) in [("build", seconds), ("contains hit", hit), ("contains miss", miss)] {
            let row = row(about, operation, n, n, seconds, bits, fpr);
            session.add(&Target::Gpu(device.clone()), Threads::All, row, right);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_is_measured_on_host_and_device() {
        let device = Setup::emulator().devices().next().unwrap().clone();
        let steps = vec![
            Step::new("cpu", |session| on_cpu(session, 3_000)),
            Step::new("emulator", move |session| on_device(session, &device, 500)),
        ];
        let rows = Session::rows_of(steps);
        let rows: Vec<&Record> = rows.iter().filter(|row| row.structure == "sets").collect();
        assert!(rows.iter().all(|row| row.checked && row.bits_per_item.is_some()));
        let of = |backend: &str| rows.iter().filter(|row| row.backend == backend).count();
        assert_eq!((of("emulator"), of("cpu") % (3 * 7)), (3 * 7, 0));
    }
}

//! Loads that the paper's tables leave out: keys and values of 64 bits, keys of a Zipf distribution, many copies of
//! each key, lookups between the batches, short batches. Keys and values are host slices, on devices too.

use std::collections::BTreeMap;

use bench_frame::input::keys::{KeySpace, mix64, zipf_rank};
use warpset::gpu::Device;
use warpset::lsm::gpu::Lsm as DeviceLsm;
use warpset::lsm::{Error, Lsm, OrderedMap, Sum};

use super::SEED;
use bench_frame::clock::Effort;
use bench_frame::gpu_limits;
use bench_frame::suite::{Session, Step, Target, Threads};
use bench_record::Record;

/// Copies of each key, where there are many.
const COPIES: u64 = 1000;
/// The name of loads without repeated keys.
const DIFFERENT: &str = "all different";
/// Streams of keys.
const LOADED: u64 = 2;

/// Stream of batches, and lookups.
struct Load {
    name: &'static str,
    batch: usize,
    keys: Vec<u64>,
    values: Vec<u64>,
    /// Keys to look up, as many as the load has; those of batch `i` are all in batches up to `i`, or in none.
    asked: Vec<u64>,
}

impl Load {
    /// Makes `n` keys by their numbers, in batches.
    fn new(name: &'static str, n: usize, batch: usize, number: impl Fn(u64) -> u64) -> Load {
        let stream = KeySpace::new(SEED).stream(LOADED);
        let keys: Vec<u64> = (0..n as u64).map(|i| stream.key(number(i))).collect();
        let asked = (0..n).map(|i| match i % 4 {
            // One of four was never inserted.
            0 => stream.key(1 << 39 | i as u64),
            _ => keys[(mix64(i as u64) % ((i / batch + 1) * batch).min(n) as u64) as usize],
        });
        Load { name, batch, asked: asked.collect(), values: (0..n as u64).collect(), keys }
    }

    /// Returns all loads of `n` elements, fewer where batches are short.
    fn all(n: usize) -> Vec<Load> {
        let random = |i: u64, n: u64| ((u128::from(mix64(i ^ SEED)) * u128::from(n)) >> 64) as u64;
        let batch = (1 << 16).min(n / 4);
        vec![
            Load::new(DIFFERENT, n, batch, |i| i),
            Load::new("Zipf", n, batch, |i| zipf_rank(n, mix64(i ^ SEED)) as u64),
            Load::new("1000 copies each", n, batch, |i| random(i, (n as u64).div_ceil(COPIES))),
            Load::new(DIFFERENT, n / 4, 1 << 10, |i| i),
            Load::new(DIFFERENT, n / 16, 1 << 6, |i| i),
        ]
    }

    /// Whether keys repeat, so that counting them is meaningful.
    fn repeats(&self) -> bool {
        self.name != DIFFERENT
    }

    fn batches(&self) -> impl Iterator<Item = (&[u64], &[u64], &[u64])> {
        let batches = self.keys.chunks(self.batch).zip(self.values.chunks(self.batch));
        batches.zip(self.asked.chunks(self.batch)).map(|((keys, values), asked)| (keys, values, asked))
    }

    /// Counts each of the keys that are looked up.
    fn occurrences(&self) -> Vec<Option<u64>> {
        let mut counts = BTreeMap::new();
        self.keys.iter().for_each(|&key| *counts.entry(key).or_insert(0) += 1);
        self.asked.iter().map(|key| counts.get(key).copied()).collect()
    }

    fn row(&self, operation: &str, items: usize, by: (&str, bool), slices: &str) -> Record {
        let row = Record::new("lsm", operation, items).by(by.0, by.1).param("key", "u64").param("value", "u64");
        let row = row.param("elements", self.keys.len()).param("batch", self.batch).param("keys", self.name);
        row.param("slices", slices)
    }
}

/// Makes the step of the loads on the CPU or on a device.
pub fn step(target: Target, effort: Effort) -> Step {
    Step::new(format!("lsm: loads on {}", target.name()), move |session| {
        let n = match (&target, effort) {
            (target, _) if target.is_emulator() => 1 << 10,
            (_, Effort::Quick) => 1 << 18,
            (Target::Cpu, Effort::Standard) => 1 << 20,
            _ => 1 << 22,
        };
        for load in Load::all(n) {
            measure(session, &target, &load)?;
        }
        Ok(())
    })
}

fn measure(session: &mut Session, target: &Target, load: &Load) -> anyhow::Result<()> {
    let mut map = BTreeMap::new();
    let mut between = Vec::new();
    // On devices the map only says what is right.
    let threads: &[Threads] = match target {
        Target::Cpu => {
            peer(session, load)?;
            session.threads(true)
        }
        Target::Gpu(_) => &[Threads::All],
    };
    for (keys, values, asked) in load.batches() {
        map.extend(keys.iter().copied().zip(values.iter().copied()));
        between.extend(asked.iter().map(|key| map.get(key).copied()));
    }
    let after: Vec<Option<u64>> = load.asked.iter().map(|key| map.get(key).copied()).collect();
    let expected = Expected { between, after, len: map.len() as u64 };
    let on_host = |of: &mut Lsm<u64, u64>, keys: &[u64], ones: &[u64]| of.upsert_bulk::<Sum<u64>>(keys, ones);
    let on_device = |of: &mut DeviceLsm<u64, u64>, keys: &[u64], ones: &[u64]| of.upsert_bulk::<Sum<u64>>(keys, ones);
    for &threads in threads {
        match target {
            Target::Cpu => {
                let mut lsm = rows(session, target, threads, load, &expected, Lsm::builder().build()?)?;
                counts(session, target, threads, load, &mut lsm, on_host)?;
            }
            Target::Gpu(device) => {
                let mut lsm = rows(session, target, threads, load, &expected, Lsm::builder().on(device).build()?)?;
                counts(session, target, threads, load, &mut lsm, on_device)?;
                in_device_memory(session, target, device, load, &expected)?;
            }
        }
    }
    Ok(())
}

/// Right answers.
struct Expected {
    /// To lookups between the batches.
    between: Vec<Option<u64>>,
    /// To the same lookups after all batches.
    after: Vec<Option<u64>>,
    len: u64,
}

/// Measures host slices.
fn rows<D: OrderedMap<u64, u64> + Send + Sync>(
    session: &mut Session,
    target: &Target,
    threads: Threads,
    load: &Load,
    expected: &Expected,
    mut of: D,
) -> anyhow::Result<D> {
    let n = load.keys.len();
    let mut answers = Vec::with_capacity(n);
    let mut state = (&mut of, &mut answers);
    let clear = |(of, answers): &mut (&mut D, &mut Vec<Option<u64>>)| {
        answers.clear();
        Ok(of.clear()?)
    };
    let mixed = session.time_after(threads, &mut state, clear, |(of, answers)| {
        for (keys, values, asked) in load.batches() {
            of.insert_bulk(keys, values)?;
            answers.extend(of.get_bulk(asked)?);
        }
        Ok(())
    })?;
    let right = answers == expected.between;
    session.add(target, threads, load.row("insert and get batches", 2 * n, ("lsm", false), "host").time(mixed), right);

    let inserting = session.time_after(
        threads,
        &mut of,
        |of| Ok(of.clear()?),
        |of| {
            for (keys, values, _) in load.batches() {
                of.insert_bulk(keys, values)?;
            }
            Ok(())
        },
    )?;
    let right = of.len()? == expected.len;
    session.add(target, threads, load.row("insert batches", n, ("lsm", false), "host").time(inserting), right);

    let (getting, answers) = session.made(threads, || Ok(of.get_bulk(&load.asked)?))?;
    let right = answers == expected.after;
    session.add(target, threads, load.row("get", n, ("lsm", false), "host").time(getting), right);
    Ok(of)
}

/// Counts each key by updates that add, from host slices.
fn counts<D: OrderedMap<u64, u64> + Send + Sync>(
    session: &mut Session,
    target: &Target,
    threads: Threads,
    load: &Load,
    of: &mut D,
    upsert: impl Fn(&mut D, &[u64], &[u64]) -> Result<(), Error> + Send + Sync,
) -> anyhow::Result<()> {
    if !load.repeats() {
        return Ok(());
    }
    let ones = vec![1; load.batch];
    let count =
        |of: &mut D| Ok(load.keys.chunks(load.batch).try_for_each(|keys| upsert(of, keys, &ones[..keys.len()]))?);
    let seconds = session.time_after(threads, &mut *of, |of| Ok(of.clear()?), |of| count(of))?;
    let right = of.get_bulk(&load.asked)? == load.occurrences();
    let row = load.row("count occurrences", load.keys.len(), ("lsm", false), "host").time(seconds);
    session.add(target, threads, row, right);
    Ok(())
}

/// Measures the standard library's map, key by key.
fn peer(session: &mut Session, load: &Load) -> anyhow::Result<()> {
    let n = load.keys.len();
    let mut state = (BTreeMap::new(), Vec::with_capacity(n));
    let clear = |(map, answers): &mut (BTreeMap<u64, u64>, Vec<Option<u64>>)| {
        map.clear();
        answers.clear();
        Ok(())
    };
    let mixed = session.time_after(Threads::One, &mut state, clear, |(map, answers)| {
        for (keys, values, asked) in load.batches() {
            map.extend(keys.iter().copied().zip(values.iter().copied()));
            answers.extend(asked.iter().map(|key| map.get(key).copied()));
        }
        Ok(())
    })?;
    let inserting = session.time_after(Threads::One, &mut state, clear, |(map, _)| {
        map.extend(load.keys.iter().copied().zip(load.values.iter().copied()));
        Ok(())
    })?;
    let getting = session.time(Threads::One, &mut state, |(map, answers)| {
        answers.clear();
        answers.extend(load.asked.iter().map(|key| map.get(key).copied()));
        Ok(())
    })?;
    let right = state.1.len() == n;
    let mut rows =
        vec![("insert and get batches", 2 * n, mixed), ("insert batches", n, inserting), ("get", n, getting)];
    if load.repeats() {
        let counting = session.time_after(Threads::One, &mut state, clear, |(map, _)| {
            load.keys.iter().for_each(|&key| *map.entry(key).or_insert(0) += 1);
            Ok(())
        })?;
        rows.push(("count occurrences", n, counting));
    }
    for (operation, items, seconds) in rows {
        let row = load.row(operation, items, ("BTreeMap", true), "host").time(seconds);
        session.add(&Target::Cpu, Threads::One, row, right);
    }
    Ok(())
}

/// Measures batches and lookups with keys in device memory, by the device's clock.
fn in_device_memory(
    session: &mut Session,
    target: &Target,
    device: &Device,
    load: &Load,
    expected: &Expected,
) -> anyhow::Result<()> {
    let n = load.keys.len();
    let stream = device.new_stream()?;
    let (keys, values) = (device.from_slice(&load.keys)?, device.from_slice(&load.values)?);
    let asked = device.from_slice(&load.asked)?;
    let mut found_values = device.alloc_zeroed::<u64>(n)?;
    let mut found = device.alloc_zeroed::<u64>(n.div_ceil(64))?;
    let lsm: std::cell::RefCell<DeviceLsm<u64, u64>> = Lsm::builder().on(device).build()?.into();
    let clear = || Ok(lsm.borrow_mut().clear()?);
    let inserting = gpu_limits::seconds(device, &stream, session.effort, clear, || {
        for first in (0..n).step_by(load.batch) {
            let batch = first..(first + load.batch).min(n);
            // SAFETY: keys and values live until the clock has waited.
            unsafe { lsm.borrow_mut().insert_async(&stream, keys.slice(batch.clone()), values.slice(batch))? };
        }
        Ok(())
    })?;
    let mut lsm = lsm.into_inner();
    let right = lsm.len()? == expected.len;
    let row = load.row("insert batches", n, ("lsm", false), "device").time(inserting);
    session.add(target, Threads::All, row, right);
    lsm.cleanup()?;
    lsm.prepare()?;
    let getting = gpu_limits::repeated(device, &stream, session.effort, || {
        let (values, found) = (found_values.as_mut_slice(), found.as_mut_slice());
        // SAFETY: all memory lives until the clock has waited.
        unsafe { lsm.get_async(&stream, asked.as_slice(), values, found)? };
        Ok(())
    })?;
    if load.repeats() {
        counts_in_device_memory(session, target, device, load, &mut lsm)?;
    }
    let (bits, values) = (found.to_vec()?, found_values.to_vec()?);
    let right = expected
        .after
        .iter()
        .enumerate()
        .all(|(i, expected)| (bits[i / 64] >> (i % 64) & 1 == 1).then_some(values[i]) == *expected);
    let row = load.row("get, after cleanup", n, ("lsm", false), "device").time(getting);
    session.add(target, Threads::All, row, right);
    Ok(())
}

/// Counts as [`counts`] does, for keys in device memory; by the host's clock, because these updates wait.
fn counts_in_device_memory(
    session: &mut Session,
    target: &Target,
    device: &Device,
    load: &Load,
    lsm: &mut DeviceLsm<u64, u64>,
) -> anyhow::Result<()> {
    let (n, keys) = (load.keys.len(), device.from_slice(&load.keys)?);
    let ones = device.from_slice(&vec![1u64; load.batch])?;
    let count = |lsm: &mut DeviceLsm<u64, u64>| {
        (0..n).step_by(load.batch).try_for_each(|first| {
            let keys = keys.slice(first..(first + load.batch).min(n));
            Ok(lsm.upsert_device::<Sum<u64>>(keys, ones.slice(..keys.len()))?)
        })
    };
    let seconds = session.time_after(Threads::All, &mut *lsm, |lsm| Ok(lsm.clear()?), |lsm| count(lsm))?;
    let right = lsm.get_bulk(&load.asked)? == load.occurrences();
    let row = load.row("count occurrences", n, ("lsm", false), "device").time(seconds);
    session.add(target, Threads::All, row, right);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_load_is_right_on_the_emulator() {
        let emulator = Target::Gpu(Device::emulator(Default::default()));
        let rows = Session::rows_of(vec![step(emulator, Effort::Quick)]);
        assert_eq!(rows.iter().filter(|row| row.structure == "lsm" && row.checked).count(), 5 * 5 + 2 * 2);
    }

    #[test]
    fn every_load_is_right_beside_its_peer() {
        let mut loads = Load::all(1 << 12);
        assert_eq!(loads[2].keys.iter().collect::<std::collections::HashSet<_>>().len(), 5);
        let run = Step::new("loads", move |session: &mut Session| {
            loads.drain(..).try_for_each(|load| measure(session, &Target::Cpu, &load))
        });
        let rows = Session::rows_of(vec![run]);
        let ours: Vec<&Record> = rows.iter().filter(|row| row.text("variant") == Some("lsm")).collect();
        assert!(ours.len() >= 15 && ours.iter().all(|row| row.checked));
        assert!(ours.iter().filter(|row| row.number("threads") == Some(1.0)).all(|row| row.peer_ratio.is_some()));
    }
}

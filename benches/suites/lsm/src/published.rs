//! The GPU LSM as it was published ([`papers_lsm`]), in the shapes and by the clocks of the rows of our
//! own tree.

use std::ops::RangeInclusive;
use std::time::Instant;

use bench_frame::input::keys::KeySpace;
use papers_lsm::{LookupMethod, Lsm};
use warpset::gpu::Device;

use super::{INSERTED, OTHERS, SEED, Shape, device, shapes};
use bench_frame::gpu_limits;
use bench_frame::suite::{Session, Setup, Step, Target, Threads};
use bench_record::Record;

/// Queries per call: on the host, on a device.
const QUERIES: [usize; 2] = [1 << 16, 1 << 24];
/// Expected lengths of ranges, and how many queries: on the host, on a device.
const LENGTHS: [(u64, [usize; 2]); 2] = [(8, [1 << 16, 1 << 22]), (1024, [1 << 10, 1 << 16])];
/// The approaches to lookups.
const METHODS: [(&str, LookupMethod); 2] = [("", LookupMethod::Individual), (", sorted queries", LookupMethod::Bulk)];

/// Makes one step per shape of our own tree, on every target.
pub fn steps(setup: &Setup) -> Vec<Step> {
    let mut steps = Vec::new();
    for target in &setup.targets {
        let shapes = match target {
            Target::Cpu => shapes(setup.effort),
            Target::Gpu(device) => device::shapes(device, setup.effort),
        };
        steps.extend(shapes.into_iter().map(|shape| step(shape, target.clone())));
    }
    steps
}

fn step(shape: Shape, target: Target) -> Step {
    let title = format!("lsm: as published, {} on {}", shape.name(), target.name());
    Step::new(title, move |session| {
        let bench = Bench::new(shape, target);
        match bench.target.clone() {
            Target::Cpu => bench.on_host(session),
            Target::Gpu(device) => bench.on_device(session, &device),
        }
    })
}

struct Bench {
    shape: Shape,
    target: Target,
    keys: Vec<u32>,
    present: Vec<u32>,
    absent: Vec<u32>,
    /// Column of the numbers of queries; on the emulator all are small.
    place: usize,
    most: usize,
}

/// Returns the first `n` keys of a stream with 31 bits, the width of original keys.
fn keys(stream: u64, n: usize) -> Vec<u32> {
    let enough = (2 * n + n / 8 + 1024).min(1 << 28);
    let mut keys = KeySpace::new(SEED).stream(stream).u32_keys(enough);
    keys.retain(|&key| key >> 31 == 0);
    keys.truncate(n);
    assert_eq!(keys.len(), n, "half of all keys have 31 bits");
    keys
}

impl Bench {
    fn new(shape: Shape, target: Target) -> Bench {
        let inserted = keys(INSERTED, shape.len());
        let place = usize::from(target != Target::Cpu);
        let most = if target.is_emulator() { 64 } else { usize::MAX };
        let queries = QUERIES[place].min(most);
        // In an order independent of the order of insertion.
        let nth = |i: u64| inserted[(i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16) as usize % inserted.len()];
        Bench {
            present: (0..queries as u64).map(nth).collect(),
            absent: keys(OTHERS, queries),
            keys: inserted,
            shape,
            target,
            place,
            most,
        }
    }

    fn add(
        &self,
        session: &mut Session,
        (operation, length): (&str, Option<u64>),
        n: usize,
        seconds: f64,
        right: bool,
    ) {
        let row = Record::new("lsm", operation, n)
            .by("as published", false)
            .param("elements", self.shape.len())
            .param("batch", self.shape.batch())
            .param("key", "u32");
        let row = if let Some(length) = length { row.param("length", length) } else { row };
        let threads = if self.target == Target::Cpu { Threads::One } else { Threads::All };
        session.add(&self.target, threads, row.time(seconds), right);
    }

    /// Returns the ends of ranges that hold `length` keys on average.
    fn ranges(&self, length: u64, count: [usize; 2]) -> (Vec<u32>, Vec<u32>) {
        let width = ((length << 31) / self.keys.len() as u64).min((1 << 31) - 1) as u32;
        let lows = &self.absent[..count[self.place].min(self.most)];
        (lows.to_vec(), lows.iter().map(|&low| low + width).collect())
    }

    /// Whether the length of what was listed is that of what was counted, and about what is expected.
    fn is_expected(&self, counted: u64, listed: usize, length: u64, queries: usize) -> bool {
        let least = length.min(self.keys.len() as u64 / 4) * queries as u64 / 2;
        counted == listed as u64 && (queries < 1000 || counted > least)
    }

    fn on_host(&self, session: &mut Session) -> anyhow::Result<()> {
        let (n, b) = (self.keys.len(), self.shape.batch());
        let empty = Lsm::<u32, u32>::builder().batch_size(b as u64).build()?;
        let mut lsm = empty.clone();
        let seconds = session.time_change(Threads::One, &empty, &mut lsm, |lsm| {
            self.keys.chunks(b).try_for_each(|keys| lsm.insert_bulk(keys, keys))?;
            Ok(())
        })?;
        self.add(session, ("insert batches", None), n, seconds, lsm.len()? == n as u64);
        for (name, method) in METHODS {
            for (operation, asked, hit) in [("get, present", &self.present, true), ("get, absent", &self.absent, false)]
            {
                let (seconds, values) = session.made(Threads::One, || Ok(lsm.get_bulk_with(asked, method)?))?;
                let right = values.iter().zip(asked).all(|(value, &key)| *value == hit.then_some(key));
                self.add(session, (&format!("{operation}{name}"), None), asked.len(), seconds, right);
            }
        }
        for (length, count) in LENGTHS {
            let (lows, highs) = self.ranges(length, count);
            let ranges: Vec<RangeInclusive<u32>> = lows.iter().zip(&highs).map(|(&low, &high)| low..=high).collect();
            let (counting, counts) = session.made(Threads::One, || Ok(lsm.count_range_bulk(&ranges)?))?;
            let (listing, listed) = session.made(Threads::One, || Ok(lsm.range_bulk(&ranges)?))?;
            let right = self.is_expected(counts.iter().sum(), listed.keys.len(), length, ranges.len());
            for (operation, seconds) in [("count", counting), ("range", listing)] {
                self.add(session, (operation, Some(length)), ranges.len(), seconds, right);
            }
        }
        let mut cleaned = lsm.clone();
        let seconds = session.time_change(Threads::One, &lsm, &mut cleaned, |lsm| Ok(lsm.cleanup()?))?;
        self.add(
            session,
            ("cleanup", None),
            n,
            seconds,
            cleaned.batches() == lsm.batches() && cleaned.len()? == n as u64,
        );
        let (seconds, built) = session
            .made(Threads::One, || Ok(Lsm::builder().batch_size(b as u64).build_from(&self.keys, &self.keys)?))?;
        self.add(session, ("build", None), n, seconds, built == cleaned);
        Ok(())
    }

    /// Measures by events on the device's clock; count, range and cleanup, which wait for numbers on the way, by
    /// wall-clock time.
    fn on_device(&self, session: &mut Session, device: &Device) -> anyhow::Result<()> {
        let (n, b) = (self.keys.len(), self.shape.batch());
        let there = device.from_slice(&self.keys)?;
        let mut lsm = Lsm::<u32, u32>::builder().batch_size(b as u64).on(device).build()?;
        let stream = lsm.stream().clone();
        let (start, end) = (device.new_event()?, device.new_event()?);
        let mut seconds = f64::INFINITY;
        // The first turn pays for the kernels.
        for _ in 0..if device.is_emulator() { 1 } else { 3 } {
            lsm.clear()?;
            start.record(&stream)?;
            for first in (0..n).step_by(b) {
                let batch = there.slice(first..first + b);
                // SAFETY: keys live until the event has been waited for; nothing else is done with the tree before.
                unsafe { lsm.insert_async(&stream, batch, batch)? };
            }
            end.record(&stream)?;
            seconds = seconds.min(f64::from(end.elapsed_ms(&start)?) * 1e-3);
        }
        self.add(session, ("insert batches", None), n, seconds, lsm.resident_len() == n as u64);

        let mut values = device.alloc_zeroed::<u32>(self.present.len())?;
        let mut found = device.alloc_zeroed::<u64>(self.present.len().div_ceil(64))?;
        for (name, method) in METHODS {
            for (operation, asked, hit) in [("get, present", &self.present, true), ("get, absent", &self.absent, false)]
            {
                let queries = device.from_slice(asked)?;
                let look_up = || {
                    let (values, found) = (values.as_mut_slice(), found.as_mut_slice());
                    // SAFETY: all memory lives until the clock has waited.
                    unsafe { lsm.get_async_with(&stream, queries.as_slice(), values, found, method)? };
                    Ok(())
                };
                let seconds = gpu_limits::repeated(device, &stream, session.effort, look_up)?;
                let bits: u64 = found.to_vec()?.iter().map(|word| u64::from(word.count_ones())).sum();
                let right = bits == if hit { asked.len() as u64 } else { 0 } && (!hit || values.to_vec()? == *asked);
                self.add(session, (&format!("{operation}{name}"), None), asked.len(), seconds, right);
            }
        }
        for (length, count) in LENGTHS {
            let (lows, highs) = self.ranges(length, count);
            let queries = lows.len();
            let (lows, highs) = (device.from_slice(&lows)?, device.from_slice(&highs)?);
            let mut counts = device.alloc_zeroed::<u64>(queries)?;
            let counting = second_turn(|| {
                Ok(lsm.count_range_device(lows.as_slice(), highs.as_slice(), counts.as_mut_slice())?)
            })?;
            let mut listed = 0;
            let listing = second_turn(|| {
                listed = lsm.range_device(lows.as_slice(), highs.as_slice())?.keys.len();
                Ok(())
            })?;
            let right = self.is_expected(counts.to_vec()?.iter().sum(), listed, length, queries);
            for (operation, seconds) in [("count", counting), ("range", listing)] {
                self.add(session, (operation, Some(length)), queries, seconds, right);
            }
        }
        let batches = lsm.batches();
        lsm.len()?; // loads the kernels
        let begin = Instant::now();
        lsm.cleanup()?;
        let seconds = begin.elapsed().as_secs_f64();
        self.add(session, ("cleanup", None), n, seconds, lsm.batches() == batches && lsm.len()? == n as u64);
        Ok(())
    }
}

/// Measures the wall-clock time of work that waits, once its kernels have been loaded.
fn second_turn(mut work: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    work()?;
    let begin = Instant::now();
    work()?;
    Ok(begin.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_right() {
        let emulator = Setup::emulator().targets[0].clone();
        for (target, least) in [(Target::Cpu, 11), (emulator, 10)] {
            let rows = Session::rows_of(vec![step(Shape { log2_n: 9, log2_batch: 6 }, target)]);
            assert!(
                rows.len() >= least && rows.iter().all(|row| row.checked || row.structure == "machine"),
                "{rows:?}"
            );
        }
        assert_eq!(keys(0, (1 << 20) - 1).len(), (1 << 20) - 1);
    }
}

//! The paper's own experiments (section V): tables II, III and IV, figure 4 and the text of section V-D, with its batch sizes.
//!
//! - Table II and figure 4: 2^27 elements are inserted from empty in batches of `b`, every batch timed.
//! - Table III: a tree of `r` batches, 2^24 elements at the most, is asked for as many keys as it has, all or none of
//!   them present.
//! - Table IV: the same trees are asked for ranges of 8 and of 1024 keys.
//! - Section V-D: cleanups of trees of which 10 % or 50 % is stale, and the lookups before and after.
//!
//! Departures. The paper takes every `r`; tables III and IV take up to [`STATES`] of them, the first and the last included.
//! Table IV asks fewer ranges than there are elements: as many of 1024 keys would have 2^34 results. Rates are minimum, maximum
//! and harmonic mean over the batches or over the `r`, as in the paper.

use serde_json::Value as Json;
use warpset::gpu::{Device, DeviceVec, Event, Stream};
use warpset::lsm::gpu::{LookupMethod, Lsm};
use warpset::lsm::{CleanupPolicy, Lsm as Host};
use warpset_benches::keys::mix32;

use super::super::clock::Effort;
use super::super::record::Record;
use super::super::suite::{Session, Step, Target, Threads};
use super::super::table::rate;

/// At most this many numbers of resident batches are measured for one batch size.
const STATES: usize = 48;
/// Every how many-th batch's time is kept for the figure, at the most.
const POINTS: usize = 256;
/// Ranges that are asked, by their expected lengths.
const RANGES: [(u64, usize); 2] = [(8, 1 << 20), (1024, 1 << 15)];

/// How large the experiments are, as base-two logarithms.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// Elements that are inserted, and the least batch.
    inserted: (u32, u32),
    /// Elements of the trees that are asked, and the least batch for lookups.
    asked: (u32, u32),
    /// The least and the largest batch of the trees that are asked for ranges.
    ranged: (u32, u32),
    /// Cleanups: batch, occupied levels, percent stale.
    cleaned: &'static [(u32, u32, u32)],
}

const OF_PAPER: Scale = Scale {
    inserted: (27, 15),
    asked: (24, 16),
    ranged: (16, 20),
    cleaned: &[(20, 6, 10), (20, 6, 50), (19, 7, 10), (19, 7, 50), (18, 7, 10)],
};
const SMALL: Scale = Scale { inserted: (9, 6), asked: (9, 6), ranged: (6, 7), cleaned: &[(6, 3, 10), (6, 3, 50)] };

/// The experiments on a device; beyond the paper's sizes with every effort but the least.
pub fn steps(device: &Device, effort: Effort) -> Vec<Step> {
    let scale = match (device.is_emulator(), effort) {
        (true, _) => SMALL,
        // Minutes of the quick run are for what users do.
        (false, Effort::Quick) => return Vec::new(),
        (false, _) => OF_PAPER,
    };
    let name = Target::Gpu(device.clone()).name();
    let step = |what: &str, run: fn(&mut Bench<'_>, Scale) -> anyhow::Result<()>| {
        let device = device.clone();
        Step::new(format!("lsm: paper tables: {what} on {name}"), move |session| {
            run(&mut Bench::new(session, &device)?, scale)
        })
    };
    let mut steps = vec![
        step("insertion", |bench, scale| bench.insertions(scale.inserted.0, scale.inserted.1..=scale.inserted.0)),
        step("lookup", |bench, scale| bench.lookups(scale)),
        step("count and range", |bench, scale| bench.ranges(scale)),
        step("cleanup", |bench, scale| bench.cleanups(scale)),
    ];
    if effort == Effort::Full && !device.is_emulator() {
        steps.push(step("insertion of 2^30", |bench, _| {
            [16, 20, 24, 30].into_iter().try_for_each(|log2_batch| bench.insertions(30, log2_batch..=log2_batch))
        }));
    }
    steps
}

/// Key number `i`: a bijection of 32-bit numbers, so no two are equal. Those of the upper half are never inserted, unless a table
/// needs more than half of all.
fn key(i: u32) -> u32 {
    mix32(i ^ 0x15_4d)
}

/// The number that is spread over `0..n`, in no order that has to do with the order of insertion.
fn spread(i: usize, n: usize) -> u32 {
    ((i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16) as u32 % n as u32
}

struct Bench<'a> {
    session: &'a mut Session,
    device: Device,
    stream: Stream,
    start: Event,
    end: Event,
}

/// Least, largest and harmonic mean of rates.
struct Rates {
    rates: Vec<f64>,
}

impl Rates {
    fn new() -> Self {
        Rates { rates: Vec::new() }
    }

    fn add(&mut self, n: usize, seconds: f64) {
        self.rates.push(n as f64 / seconds);
    }

    fn mean(&self) -> f64 {
        self.rates.len() as f64 / self.rates.iter().map(|rate| 1.0 / rate).sum::<f64>()
    }

    /// A row whose rate is the mean.
    fn row(&self, operation: &str, study: &str, n: usize, log2_batch: u32) -> Record {
        let row =
            Record::new("lsm", operation, n).by("lsm", false).param("study", study).param("batch", 1u64 << log2_batch);
        let least = self.rates.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = self.rates.iter().copied().fold(0.0, f64::max);
        row.param("min_rate", least).param("max_rate", largest).time(n as f64 / self.mean())
    }
}

impl<'a> Bench<'a> {
    fn new(session: &'a mut Session, device: &Device) -> anyhow::Result<Self> {
        let (stream, start, end) = (device.new_stream()?, device.new_event()?, device.new_event()?);
        Ok(Bench { session, device: device.clone(), stream, start, end })
    }

    fn add(&mut self, row: Record, right: bool) {
        self.session.add(&Target::Gpu(self.device.clone()), Threads::All, row, right);
    }

    fn empty(&self, log2_batch: u32) -> anyhow::Result<Lsm<u32, u32>> {
        let builder = Host::<u32, u32>::builder().batch_size(1 << log2_batch).cleanup(CleanupPolicy::Manual);
        Ok(builder.on(&self.device).build()?)
    }

    /// Keys `number(0)` to `number(n - 1)` on the device. They are their own values.
    fn keys(&self, n: usize, number: impl Fn(usize) -> u32 + Sync) -> anyhow::Result<DeviceVec<u32>> {
        use rayon::prelude::*;
        let keys: Vec<u32> = (0..n).into_par_iter().with_min_len(1 << 14).map(|i| key(number(i))).collect();
        Ok(self.device.from_slice(&keys)?)
    }

    /// Inserts batches from element `first` on until `len` elements are there.
    fn fill(&self, lsm: &mut Lsm<u32, u32>, keys: &DeviceVec<u32>, len: usize) -> anyhow::Result<()> {
        let batch = lsm.batch_size() as usize;
        for first in (lsm.resident_len() as usize..len).step_by(batch) {
            let keys = keys.slice(first..first + batch);
            // SAFETY: the keys live until the stream has been waited for, which every measurement does.
            unsafe { lsm.insert_async(&self.stream, keys, keys)? };
        }
        Ok(self.stream.synchronize()?)
    }

    /// Seconds of `work` on the device's clock, once.
    fn seconds(&self, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<f64> {
        self.start.record(&self.stream)?;
        work()?;
        self.end.record(&self.stream)?;
        Ok(f64::from(self.end.elapsed_ms(&self.start)?) * 1e-3)
    }

    /// Table II and figure 4.
    fn insertions(&mut self, log2_n: u32, batches: std::ops::RangeInclusive<u32>) -> anyhow::Result<()> {
        let n = 1usize << log2_n;
        let keys = self.keys(n, |i| i as u32)?;
        for log2_batch in batches {
            let batch = 1usize << log2_batch;
            let mut lsm = self.empty(log2_batch)?;
            let mut times = Vec::new();
            // The first turn, short, pays for the kernels.
            for len in [n.min(16 * batch), n] {
                lsm.clear()?;
                let mut events = Vec::with_capacity(len / batch + 1);
                for first in (0..len).step_by(batch) {
                    events.push(self.device.new_event()?);
                    events[events.len() - 1].record(&self.stream)?;
                    let keys = keys.slice(first..first + batch);
                    // SAFETY: the keys live until the last event has been waited for.
                    unsafe { lsm.insert_async(&self.stream, keys, keys)? };
                }
                events.push(self.device.new_event()?);
                events[events.len() - 1].record(&self.stream)?;
                events[events.len() - 1].synchronize()?;
                times.clear();
                for two in events.windows(2) {
                    times.push(f64::from(two[1].elapsed_ms(&two[0])?) * 1e-3);
                }
            }
            let mut rates = Rates::new();
            times.iter().for_each(|&time| rates.add(batch, time));
            // Figure 4: the time of single batches, and the rate so far whenever the number of elements has doubled.
            let milliseconds: Vec<Json> = times.iter().take(POINTS).map(|time| (time * 1e3).into()).collect();
            let mut sum = 0.0;
            let mut effective: Vec<Json> = Vec::new();
            for (i, time) in times.iter().enumerate() {
                sum += time;
                let resident = i + 1;
                if resident.is_power_of_two() || (resident & (resident - 1)).is_power_of_two() {
                    effective
                        .push(vec![Json::from(resident * batch), Json::from((resident * batch) as f64 / sum)].into());
                }
            }
            let mut row = rates.row("insert batches", "paper insertion", n, log2_batch);
            row = row.param("elements", n).param("effective", effective);
            if times.len() <= POINTS {
                row = row.param("milliseconds", milliseconds);
            }
            let right = self.holds(&lsm, n)?;
            self.add(row, right);
        }
        self.print("paper insertion", "Table II: insertion from empty, elements per second");
        Ok(())
    }

    /// Whether a tree of keys `0..n` has a few of them, and none of others.
    fn holds(&self, lsm: &Lsm<u32, u32>, n: usize) -> anyhow::Result<bool> {
        let asked = 1 << 12;
        let there: Vec<u32> = (0..asked).map(|i| key(spread(i, n))).collect();
        let mut right = lsm.resident_len() == n as u64;
        right &= lsm.get_bulk(&there)?.iter().zip(&there).all(|(value, key)| *value == Some(*key));
        let others: Vec<u32> = (0..asked).map(|i| key(u32::MAX - i as u32)).collect();
        Ok(right && lsm.count_contained_bulk(&others)? == 0)
    }

    /// Table III.
    fn lookups(&mut self, scale: Scale) -> anyhow::Result<()> {
        let (log2_n, least) = scale.asked;
        let n = 1usize << log2_n;
        let keys = self.keys(n, |i| i as u32)?;
        let absent = self.keys(n, |i| u32::MAX - i as u32)?;
        let mut values = self.device.alloc_zeroed::<u32>(n)?;
        let mut found = self.device.alloc_zeroed::<u64>(n.div_ceil(64))?;
        for log2_batch in least..=log2_n {
            let mut lsm = self.empty(log2_batch)?;
            let cases = [
                ("get, absent", "halving", LookupMethod::Halving),
                ("get, present", "halving", LookupMethod::Halving),
                ("get, absent", "prepared", LookupMethod::Auto),
                ("get, present", "prepared", LookupMethod::Auto),
            ];
            let mut rates = [(); 4].map(|()| Rates::new());
            let mut right = true;
            for (turn, r) in [1].into_iter().chain(states(n >> log2_batch)).enumerate() {
                let len = r << log2_batch;
                self.fill(&mut lsm, &keys, len)?;
                let present = self.keys(len, |i| spread(i, len))?;
                for ((operation, _, method), rates) in cases.iter().zip(&mut rates) {
                    let hit = *operation == "get, present";
                    let asked = if hit { &present } else { &absent };
                    if *method == LookupMethod::Auto {
                        lsm.prepare()?;
                    }
                    let seconds = self.seconds(|| {
                        let values = values.slice_mut(..len);
                        let found = found.slice_mut(..len.div_ceil(64));
                        // SAFETY: all memory lives until the event has been waited for.
                        unsafe { lsm.get_async_with(&self.stream, asked.slice(..len), values, found, *method)? };
                        Ok(())
                    })?;
                    // The first turn pays for the kernels.
                    if turn > 0 {
                        rates.add(len, seconds);
                    }
                    let bits: u64 =
                        found.slice(..len.div_ceil(64)).to_vec()?.iter().map(|word| u64::from(word.count_ones())).sum();
                    right &= bits == if hit { len as u64 } else { 0 };
                    if hit && (turn == 0 || len == n) {
                        right &= values.slice(..len).to_vec()? == present.to_vec()?;
                    }
                }
            }
            for ((operation, method, _), rates) in cases.iter().zip(&rates) {
                let row = rates.row(operation, "paper lookup", n, log2_batch).param("method", *method);
                self.add(row, right);
            }
        }
        self.print("paper lookup", "Table III: lookups per second, over the numbers of resident batches");
        Ok(())
    }

    /// Table IV.
    fn ranges(&mut self, scale: Scale) -> anyhow::Result<()> {
        let n = 1usize << scale.asked.0;
        let few = self.device.is_emulator();
        let keys = self.keys(n, |i| i as u32)?;
        for log2_batch in scale.ranged.0..=scale.ranged.1 {
            for (length, count) in RANGES {
                let (length, count) = if few { (length.min(32), 16) } else { (length, count) };
                let mut lsm = self.empty(log2_batch)?;
                let lows = self.keys(count, |i| u32::MAX - i as u32)?;
                let mut counts = self.device.alloc_zeroed::<u64>(count)?;
                let (mut counting, mut listing) = (Rates::new(), Rates::new());
                let mut right = true;
                for (turn, r) in [1].into_iter().chain(states(n >> log2_batch).into_iter().step_by(3)).enumerate() {
                    let len = r << log2_batch;
                    self.fill(&mut lsm, &keys, len)?;
                    lsm.prepare()?;
                    let width = ((length << 32) / len as u64) as u32;
                    let highs: Vec<u32> = lows.to_vec()?.iter().map(|low| low.saturating_add(width)).collect();
                    let highs = self.device.from_slice(&highs)?;
                    let counted = self.seconds(|| {
                        // SAFETY: all memory lives until the event has been waited for.
                        unsafe {
                            lsm.count_range_async(
                                &self.stream,
                                lows.as_slice(),
                                highs.as_slice(),
                                counts.as_mut_slice(),
                            )?
                        };
                        Ok(())
                    })?;
                    let begin = std::time::Instant::now();
                    let listed = lsm.range_device(lows.as_slice(), highs.as_slice())?;
                    let seconds = begin.elapsed().as_secs_f64();
                    if turn > 0 {
                        counting.add(count, counted);
                        listing.add(count, seconds);
                    }
                    let sum: u64 = counts.to_vec()?.iter().sum();
                    let expected = length as f64 * count as f64;
                    right &=
                        sum == listed.keys.len() as u64 && (few || (sum as f64 - expected).abs() < 0.05 * expected);
                    if turn == 0 {
                        right &= listed.keys.to_vec()? == listed.values.to_vec()?;
                    }
                }
                for (operation, rates) in [("count", counting), ("range", listing)] {
                    let row = rates.row(operation, "paper ranges", n, log2_batch).param("length", length);
                    self.add(row.param("ranges", count), right);
                }
            }
        }
        self.print("paper ranges", "Table IV: ranges per second, over the numbers of resident batches");
        Ok(())
    }

    /// Section V-D.
    fn cleanups(&mut self, scale: Scale) -> anyhow::Result<()> {
        for &(log2_batch, levels, stale) in scale.cleaned {
            let n = ((1usize << levels) - 1) << log2_batch;
            let live = n - n * stale as usize / 100;
            // The last batches overwrite the first elements, with the same values.
            let keys = self.keys(n, |i| (i % live) as u32)?;
            let queries = if self.device.is_emulator() { 64 } else { 1 << 25 };
            let asked = self.keys(queries, |i| spread(i, live))?;
            let mut values = self.device.alloc_zeroed::<u32>(queries)?;
            let mut found = self.device.alloc_zeroed::<u64>(queries.div_ceil(64))?;
            let mut lsm = self.empty(log2_batch)?;
            self.fill(&mut lsm, &keys, n)?;
            lsm.snapshot().cleanup()?; // loads the kernels
            let mut right = lsm.level_lens().len() == levels as usize;
            let row = |operation: &str, n: usize, seconds: f64| {
                let row = Record::new("lsm", operation, n).by("lsm", false).param("study", "paper cleanup");
                let row = row.param("batch", 1u64 << log2_batch).param("levels", levels).param("stale_percent", stale);
                row.time(seconds)
            };
            let mut rows = Vec::new();
            for after in [false, true] {
                if after {
                    let begin = std::time::Instant::now();
                    lsm.cleanup()?;
                    rows.push(row("cleanup", n, begin.elapsed().as_secs_f64()));
                    right &= lsm.len()? == live as u64 && lsm.resident_len() == live as u64;
                }
                for (method, name) in [(LookupMethod::Halving, "by halving"), (LookupMethod::Auto, "prepared")] {
                    if method == LookupMethod::Auto {
                        lsm.prepare()?;
                    }
                    let mut seconds = 0.0;
                    for _ in 0..2 {
                        seconds = self.seconds(|| {
                            let (values, found) = (values.as_mut_slice(), found.as_mut_slice());
                            // SAFETY: all memory lives until the event has been waited for.
                            unsafe { lsm.get_async_with(&self.stream, asked.as_slice(), values, found, method)? };
                            Ok(())
                        })?;
                    }
                    right &= values.to_vec()? == asked.to_vec()?;
                    let when = if after { "after" } else { "before" };
                    rows.push(row(&format!("get {when} cleanup, {name}"), queries, seconds));
                }
            }
            rows.into_iter().for_each(|row| self.add(row, right));
        }
        self.session.show(
            "paper cleanup",
            "Section V-D: cleanups, and 32 M lookups before and after; per second",
            |_| true,
            |row| {
                let number = |name| row.number(name).unwrap_or_default();
                format!(
                    "b = 2^{}, {} levels, {} % stale",
                    number("batch").log2(),
                    number("levels"),
                    number("stale_percent")
                )
            },
            |row| row.items_per_second.map_or_else(String::new, rate),
        );
        Ok(())
    }

    /// Minimum, maximum and mean by batch size.
    fn print(&self, study: &str, title: &str) {
        let name = |row: &Record| match (row.text("method"), row.number("length")) {
            (Some(method), _) => format!("{}, {method}", row.operation),
            (_, Some(length)) => format!("{}, L = {length}", row.operation),
            _ => format!("2^{} elements", row.n.ilog2()),
        };
        let rows = self.session.study(study);
        let column = |row: &Record| format!("b = 2^{}", row.number("batch").unwrap_or_default().log2());
        let cell = |row: &Record| {
            let number = |name| row.number(name).map_or_else(String::new, rate);
            format!(
                "{} / {} / {}",
                number("min_rate"),
                number("max_rate"),
                row.items_per_second.map_or_else(String::new, rate)
            )
        };
        self.session.print(&super::super::table::pivot(
            &format!("{title}: min / max / mean"),
            &rows,
            column,
            name,
            cell,
        ));
    }
}

/// Up to [`STATES`] numbers of resident batches from 1 to `most`, evenly spread, ascending.
fn states(most: usize) -> Vec<usize> {
    let count = most.min(STATES);
    (1..=count).map(|i| if count == 1 { most } else { 1 + (i - 1) * (most - 1) / (count - 1) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_right_on_the_emulator() {
        let device = Device::emulator(Default::default());
        let rows = Session::rows_of(steps(&device, Effort::Quick));
        assert!(rows.iter().all(|row| row.checked || row.structure == "machine"), "{rows:?}");
        for study in ["paper insertion", "paper lookup", "paper ranges", "paper cleanup"] {
            assert!(rows.iter().filter(|row| row.text("study") == Some(study)).count() >= 4, "{study}");
        }
        let inserted = rows.iter().find(|row| row.text("study") == Some("paper insertion")).unwrap();
        assert_eq!(inserted.params["milliseconds"].as_array().unwrap().len(), 8);
        assert_eq!(inserted.params["effective"].as_array().unwrap().len(), 7);
    }

    #[test]
    fn numbers_of_batches_are_spread_from_one_to_all() {
        assert_eq!(states(1), [1]);
        assert_eq!(states(4), [1, 2, 3, 4]);
        let many = states(1 << 10);
        assert_eq!((many.len(), many[0], many[STATES - 1]), (STATES, 1, 1 << 10));
        assert!(many.windows(2).all(|two| two[0] < two[1]));
    }

    #[test]
    fn the_mean_of_rates_is_harmonic() {
        let mut rates = Rates::new();
        rates.add(10, 1.0);
        rates.add(10, 3.0);
        assert!((rates.mean() - 5.0).abs() < 1e-9);
        let row = rates.row("insert", "s", 20, 4);
        assert!((row.seconds.unwrap() - 4.0).abs() < 1e-9);
        assert_eq!((row.number("max_rate"), row.number("batch")), (Some(10.0), Some(16.0)));
    }
}

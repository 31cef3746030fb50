//! The paper's own experiments (section V): tables II, III and IV, figure 4 and the text of section V-D, with its batch
//! sizes.
//!
//! - Table II and figure 4: 2^27 elements are inserted from empty in batches of `b`, every batch timed.
//! - Table III: a tree of `r` batches, 2^24 elements at the most, is asked for as many keys as it has, all or none of
//!   them present.
//! - Table IV: the same trees are asked for ranges of 8 and of 1024 keys.
//! - Section V-D: cleanups of trees of which 10 % or 50 % is stale, and the lookups before and after.
//!
//! Departures. The paper takes every `r`; tables III and IV take up to [`STATES`] of them, the first and the last
//! included, or a third of those. Table IV asks fewer ranges than there are elements: as many of 1024 keys would have
//! 2^34 results. Rates are minimum, maximum and harmonic mean over the batches or over the `r`, as in the paper.

mod cleanup;
mod insertion;
mod queries;

use bench_frame::input::keys::mix32;
use warpset::gpu::{Device, DeviceVec, Event, Stream};
use warpset::lsm::MergePolicy;
use warpset::lsm::gpu::{Dictionary, Lsm};
use warpset::lsm::{CleanupPolicy, Lsm as Host};

use bench_frame::clock::Effort;
use bench_frame::suite::{Session, Step, Target, Threads};
use bench_frame::table::rate;
use bench_record::Record;

/// At most this many numbers of resident batches are measured for one batch size.
const STATES: usize = 48;

/// Sizes of the experiments, as base-two logarithms.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// Elements that are inserted, and the least batch.
    inserted: (u32, u32),
    /// Elements of the trees, and the least batch for lookups.
    asked: (u32, u32),
    /// The least and the largest batch of the trees for range queries.
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

/// Makes the experiments on a device; beyond the paper's sizes in full runs.
pub fn steps(device: &Device, effort: Effort) -> Vec<Step> {
    let scale = if device.is_emulator() { SMALL } else { OF_PAPER };
    let name = Target::Gpu(device.clone()).name();
    let step = |what: &str, run: fn(&mut Bench<'_>, Scale) -> anyhow::Result<()>| {
        let device = device.clone();
        Step::new(format!("lsm: paper tables: {what} on {name}"), move |session| {
            run(&mut Bench::new(session, &device)?, scale)
        })
        .except_quick()
    };
    let mut steps = vec![
        step("insertion", |bench, scale| bench.insertions(scale.inserted.0, scale.inserted.1..=scale.inserted.0, true)),
        step("lookup", |bench, scale| bench.lookups(scale)),
        step("count and range", |bench, scale| bench.ranges(scale)),
        step("cleanup", |bench, scale| bench.cleanups(scale)),
    ];
    if effort == Effort::Full && !device.is_emulator() {
        steps.push(step("insertion of 2^30", |bench, _| {
            [16, 20, 24, 30].into_iter().try_for_each(|log2_batch| bench.insertions(30, log2_batch..=log2_batch, false))
        }));
    }
    steps
}

/// Returns key number `i`: a bijection of 32-bit numbers, so no two are equal. Keys of the upper half are never
/// inserted, unless a table needs more than half of all.
fn key(i: u32) -> u32 {
    mix32(i ^ 0x15_4d)
}

/// Spreads numbers over `0..n`, independently of the order of insertion.
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
#[derive(Default)]
struct Rates {
    rates: Vec<f64>,
}

impl Rates {
    fn add(&mut self, n: usize, seconds: f64) {
        self.rates.push(n as f64 / seconds);
    }

    fn mean(&self) -> f64 {
        self.rates.len() as f64 / self.rates.iter().map(|rate| 1.0 / rate).sum::<f64>()
    }

    /// Makes a row with the mean rate.
    fn row(&self, operation: &str, study: &str, n: usize, log2_batch: u32) -> Record {
        let row = Record::new("lsm", operation, n).param("study", study).param("batch", 1u64 << log2_batch);
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

    /// Copies keys `number(0)` to `number(n - 1)` to the device. They are their own values.
    fn keys(&self, n: usize, number: impl Fn(usize) -> u32 + Sync) -> anyhow::Result<DeviceVec<u32>> {
        use rayon::prelude::*;
        let keys: Vec<u32> = (0..n).into_par_iter().with_min_len(1 << 14).map(|i| key(number(i))).collect();
        Ok(self.device.from_slice(&keys)?)
    }

    /// Inserts batches of the keys, which are their own values, until `len` elements are there.
    fn fill<P: MergePolicy>(
        &self,
        of: &mut Dictionary<u32, u32, P>,
        keys: &DeviceVec<u32>,
        len: usize,
        log2_batch: u32,
    ) -> anyhow::Result<()> {
        for first in (of.resident_len() as usize..len).step_by(1 << log2_batch) {
            let keys = keys.slice(first..first + (1 << log2_batch));
            // SAFETY: the keys live until the stream has been waited for.
            unsafe { of.insert_async(&self.stream, keys, keys)? };
        }
        Ok(self.stream.synchronize()?)
    }

    /// Returns the seconds of `work`, run once, on the device's clock.
    fn seconds(&self, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<f64> {
        self.start.record(&self.stream)?;
        work()?;
        self.end.record(&self.stream)?;
        Ok(f64::from(self.end.elapsed_ms(&self.start)?) * 1e-3)
    }

    /// Prints minimum, maximum and mean by batch size.
    fn print(&self, study: &str, title: &str) {
        let name = |row: &Record| match (row.text("method"), row.number("length")) {
            (Some(method), _) => format!("{}, {}, {method}", row.name(), row.operation),
            (_, Some(length)) => format!("{}, L = {length}", row.operation),
            _ => format!("{}, 2^{} elements", row.name(), row.n.ilog2()),
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
        self.session.print(&bench_frame::table::pivot(
            &format!("{title}: min / max / mean"),
            &rows,
            column,
            name,
            cell,
        ));
    }
}

/// Returns up to [`STATES`] numbers of resident batches from 1 to `most`, evenly spread, ascending.
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
        let mut rates = Rates::default();
        rates.add(10, 1.0);
        rates.add(10, 3.0);
        assert!((rates.mean() - 5.0).abs() < 1e-9);
        let row = rates.row("insert", "s", 20, 4);
        assert!((row.seconds.unwrap() - 4.0).abs() < 1e-9);
        assert_eq!((row.number("max_rate"), row.number("batch")), (Some(10.0), Some(16.0)));
    }
}

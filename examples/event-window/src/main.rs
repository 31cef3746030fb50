//! A sliding window over readings of sensors: `event-window [SECONDS [READINGS_PER_SECOND]]`.
//!
//! Every second new readings arrive, some readings of the last seconds are corrected, and those older than ten seconds
//! are dropped. Then the program queries the readings of single tenths of a second, and the number of readings per
//! second. A second dictionary counts the readings of each sensor, few of which send most: an update adds to the stored
//! count.

use warpset_gpu::Backend;
use warpset_lsm::{Error, Lsm, OrderedMap, gpu};

/// Seconds that a reading is kept for.
const WINDOW: u64 = 10;

/// Returns a key that sorts by time: the millisecond, then the number of the reading within it.
fn key(millisecond: u64, number: u64) -> u64 {
    millisecond << 24 | number
}

/// Results of one second of the program.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Summary {
    /// Readings in the window.
    kept: u64,
    /// Readings that were dropped.
    dropped: usize,
    /// Readings of the window's last tenth of a second, and the sum of their values.
    last_tenth: (usize, u64),
    /// Readings of the window's first whole second.
    oldest_second: u64,
    /// Number of sensors that have sent, and of readings by the first three since the start.
    sensors: u64,
    busiest: [u64; 3],
}

/// Counters of sensors, on the host or on a device.
trait Counters: OrderedMap<u32, u64> {
    /// Adds one for each time that a sensor occurs.
    fn increment(&mut self, sensors: &[u32]) -> Result<(), Error>;
}

impl Counters for Lsm<u32, u64> {
    fn increment(&mut self, sensors: &[u32]) -> Result<(), Error> {
        self.increment_bulk(sensors)
    }
}

impl Counters for gpu::Lsm<u32, u64> {
    fn increment(&mut self, sensors: &[u32]) -> Result<(), Error> {
        self.increment_bulk(sensors)
    }
}

/// Returns the sensors of a second's readings: sensor `k` sends a share of about `1 / k`, by Zipf's law.
fn sensors(second: u64, per_second: u64) -> Vec<u32> {
    let uniform = |i: u64| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11) as f64 / (1u64 << 53) as f64;
    (0..per_second).map(|i| 100_000f64.powf(uniform(second * per_second + i)) as u32).collect()
}

/// Returns the `per_second` readings of a second, as keys and values.
fn arriving(second: u64, per_second: u64) -> (Vec<u64>, Vec<u64>) {
    let reading = |i: u64| (key(second * 1000 + i * 1000 / per_second, i), i % 100);
    (0..per_second).map(reading).unzip()
}

/// Goes on by one second.
fn step(
    readings: &mut impl OrderedMap<u64, u64>,
    counters: &mut impl Counters,
    second: u64,
    per_second: u64,
) -> anyhow::Result<Summary> {
    let oldest = (second + 1).saturating_sub(WINDOW);
    // All changes are one batch: old readings are removed, new ones inserted, and every tenth reading of the second
    // before is corrected. Everything older was removed a second ago. In tenths of a second, so that threads and warps
    // share the work.
    let tenths = (0..10).map(|tenth| oldest.saturating_sub(1) * 1000 + tenth * 100);
    let tenths: Vec<_> = tenths.map(|begin| key(begin, 0)..key(begin + 100, 0)).collect();
    let dropped = if oldest > 0 { readings.range_bulk(&tenths)?.keys } else { Vec::new() };
    let (mut keys, mut values) = arriving(second, per_second);
    if let Some(before) = second.checked_sub(1) {
        let corrected: Vec<u64> = arriving(before, per_second).0.into_iter().step_by(10).collect();
        values.extend(vec![1000; corrected.len()]);
        keys.extend(corrected);
    }
    let mut removed = vec![false; keys.len()];
    keys.extend(&dropped);
    values.resize(keys.len(), 0);
    removed.resize(keys.len(), true);
    readings.update_bulk(&keys, &values, &removed)?;
    counters.increment(&sensors(second, per_second))?;

    let end = (second + 1) * 1000;
    let found = readings.range_bulk(&[key(end - 100, 0)..=key(end, 0) - 1])?;
    let counts = readings.count_range_bulk(&[key(oldest * 1000, 0)..=key((oldest + 1) * 1000, 0) - 1])?;
    let busiest = counters.get_bulk(&[1, 2, 3])?;
    Ok(Summary {
        kept: readings.len()?,
        dropped: dropped.len(),
        last_tenth: (found.keys.len(), found.values.iter().sum()),
        oldest_second: counts[0],
        sensors: counters.len()?,
        busiest: std::array::from_fn(|i| busiest[i].unwrap_or(0)),
    })
}

fn run(
    mut readings: impl OrderedMap<u64, u64>,
    mut counters: impl Counters,
    seconds: u64,
    per_second: u64,
) -> anyhow::Result<()> {
    let start = std::time::Instant::now();
    for second in 0..seconds {
        let summary = step(&mut readings, &mut counters, second, per_second)?;
        let Summary { kept, dropped, last_tenth: (count, sum), oldest_second, sensors, busiest: [first, ..] } = summary;
        println!(
            "second {second:3}: {kept} kept, {dropped} dropped; last tenth: {count} readings, sum {sum}; oldest second: \
             {oldest_second}; {sensors} sensors, {first} readings of the first"
        );
    }
    let changes = (seconds * per_second) as f64 * 2.1;
    println!("{:.1} M changes and increments per second", changes * 1e-6 / start.elapsed().as_secs_f64());
    Ok(())
}

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse());
    let seconds = arguments.next().transpose()?.unwrap_or(30);
    let per_second = arguments.next().transpose()?.unwrap_or(100_000);
    anyhow::ensure!((1..1 << 24).contains(&per_second), "from 1 to 2^24 readings per second");
    match Backend::auto() {
        Backend::Cuda(device) => {
            let (readings, counters) = (Lsm::builder().on(&device).build()?, Lsm::builder().on(&device).build()?);
            run(readings, counters, seconds, per_second)
        }
        Backend::Cpu(_) => run(Lsm::builder().build()?, Lsm::builder().build()?, seconds, per_second),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use warpset_gpu::Device;

    use super::*;

    /// Computes the summaries with the standard library's maps.
    fn expected(seconds: u64, per_second: u64) -> Vec<Summary> {
        let (mut map, mut counters) = (BTreeMap::new(), BTreeMap::new());
        let step = |second: u64| {
            let oldest = (second + 1).saturating_sub(WINDOW);
            let kept = map.split_off(&key(oldest * 1000, 0));
            let dropped = std::mem::replace(&mut map, kept).len();
            let (keys, values) = arriving(second, per_second);
            map.extend(keys.into_iter().zip(values));
            if let Some(before) = second.checked_sub(1) {
                map.extend(arriving(before, per_second).0.into_iter().step_by(10).map(|key| (key, 1000)));
            }
            sensors(second, per_second).into_iter().for_each(|sensor| *counters.entry(sensor).or_insert(0) += 1);
            let last = map.range(key(second * 1000 + 900, 0)..);
            Summary {
                kept: map.len() as u64,
                dropped,
                last_tenth: last.fold((0, 0), |(count, sum), (_, value)| (count + 1, sum + value)),
                oldest_second: map.range(..key((oldest + 1) * 1000, 0)).count() as u64,
                sensors: counters.len() as u64,
                busiest: [1, 2, 3].map(|sensor| counters.get(&sensor).copied().unwrap_or(0)),
            }
        };
        (0..seconds).map(step).collect()
    }

    fn slides(mut readings: impl OrderedMap<u64, u64>, mut counters: impl Counters, seconds: u64, per_second: u64) {
        let steps = (0..seconds).map(|second| step(&mut readings, &mut counters, second, per_second).unwrap());
        assert_eq!(steps.collect::<Vec<_>>(), expected(seconds, per_second));
    }

    #[test]
    fn the_window_slides_on_the_cpu() {
        slides(Lsm::builder().build().unwrap(), Lsm::builder().build().unwrap(), 25, 2000);
    }

    #[test]
    fn the_window_slides_on_the_emulator() {
        let device = Device::emulator(Default::default());
        let counters = Lsm::builder().batch_size(64).on(&device).build().unwrap();
        slides(Lsm::builder().batch_size(64).on(&device).build().unwrap(), counters, 13, 50);
    }

    #[test]
    fn the_window_slides_on_a_device() {
        if let Backend::Cuda(device) = Backend::auto() {
            let counters = Lsm::builder().on(&device).build().unwrap();
            slides(Lsm::builder().on(&device).build().unwrap(), counters, 25, 2000);
        }
    }
}

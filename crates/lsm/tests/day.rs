//! A day of a dictionary, on the host and on every device in step, against `BTreeMap`: loads at night, counters in the
//! morning, short batches with lookups, ranges, removals by age, cleanups, saving and loading; meanwhile eight threads
//! read snapshots.
//!
//! The seed of the emulators (`WARPSET_EMULATOR_SEED`, as set by `cargo xtask soak`) is also that of the day.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use warpset_gpu::{Device, testing};
use warpset_lsm::gpu::{Lsm as DeviceLsm, Snapshot as DeviceSnapshot};
use warpset_lsm::{CleanupPolicy, Error, Lsm, OrderedMap, Snapshot, Sum};

type Model = BTreeMap<u64, u64>;
/// State of a dictionary on both sides, and its contents.
type Published = (Snapshot<u64, u64>, DeviceSnapshot<u64, u64>, Arc<Model>);

/// Threads that read snapshots.
const READERS: usize = 8;

struct Day {
    state: u64,
    /// Elements of a long batch; a short one has an eighth.
    batch: u64,
    model: Model,
    host: Lsm<u64, u64>,
    there: DeviceLsm<u64, u64>,
}

impl Day {
    fn new(device: &Device, seed: u64, batch: u64) -> Result<Day, Error> {
        let builder = Lsm::<u64, u64>::builder().batch_size(64).cleanup(CleanupPolicy::EveryBatches(23));
        let (host, there) = (builder.build()?, builder.on(device).build()?);
        Ok(Day { state: seed, batch, model: Model::new(), host, there })
    }

    fn below(&mut self, end: u64) -> u64 {
        self.state = self.state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        ((u128::from(self.state) * u128::from(end)) >> 64) as u64
    }

    /// Returns keys of events at a time of day, some of them late; few of them recur often.
    fn keys(&mut self, hour: u64, len: u64) -> Vec<u64> {
        (0..len)
            .map(|_| {
                let late = self.below(8) * self.below(2);
                let place = self.below(4 * self.batch);
                hour.saturating_sub(late) << 32 | if self.below(3) == 0 { place % 7 } else { place }
            })
            .collect()
    }

    fn insert(&mut self, hour: u64, len: u64) -> Result<(), Error> {
        let keys = self.keys(hour, len);
        let values: Vec<u64> = keys.iter().map(|_| self.below(1 << 40)).collect();
        let removed: Vec<bool> = keys.iter().map(|_| self.below(6) == 0).collect();
        for (i, &key) in keys.iter().enumerate() {
            if !removed[i] {
                self.model.insert(key, values[i]);
            }
        }
        keys.iter().zip(&removed).filter(|item| *item.1).for_each(|(key, _)| _ = self.model.remove(key));
        self.host.update_bulk(&keys, &values, &removed)?;
        self.there.update_bulk(&keys, &values, &removed)
    }

    fn count(&mut self, hour: u64, len: u64) -> Result<(), Error> {
        let keys = self.keys(hour, len);
        for key in &keys {
            let value = self.model.entry(*key).or_insert(0);
            *value = value.wrapping_add(1);
        }
        self.host.increment_bulk(&keys)?;
        self.there.increment_bulk(&keys)
    }

    fn add(&mut self, hour: u64, len: u64) -> Result<(), Error> {
        let keys = self.keys(hour, len);
        let values: Vec<u64> = keys.iter().map(|_| self.below(1 << 40)).collect();
        for (key, value) in keys.iter().zip(&values) {
            let sum = self.model.entry(*key).or_insert(0);
            *sum = sum.wrapping_add(*value);
        }
        self.host.upsert_bulk::<Sum<u64>>(&keys, &values)?;
        self.there.upsert_bulk::<Sum<u64>>(&keys, &values)
    }

    /// Runs the hour's part of the schedule.
    fn hour(&mut self, hour: u64) -> Result<(), Error> {
        let (long, short) = (self.batch, self.batch / 8);
        match hour % 24 {
            0 => {
                self.host.cleanup()?;
                self.there.cleanup()?;
            }
            1..5 => self.insert(hour, long)?,
            5..9 => self.count(hour, long)?,
            9..17 => (0..3).try_for_each(|_| self.insert(hour, short))?,
            17..19 => self.add(hour, long)?,
            19 => {
                // Entries older than a third of a day are removed.
                let cutoff = hour.saturating_sub(8) << 32;
                let before = self.model.len();
                self.model = self.model.split_off(&cutoff);
                let removed = (before - self.model.len()) as u64;
                assert_eq!((self.host.remove_range(..cutoff)?, self.there.remove_range(..cutoff)?), (removed, removed));
            }
            20 => {
                let keep = |key: u64, value: u64| !(key ^ value).is_multiple_of(5);
                self.model.retain(|key, value| keep(*key, *value));
                self.host.retain(keep)?;
                self.there.retain(keep)?;
                // An automatic cleanup on one side only: the same elements, on other levels.
                self.host.cleanup()?;
                self.there.cleanup()?;
            }
            21 => {
                let again = Lsm::from_bytes(&self.host.to_bytes())?;
                assert!(again == self.host);
                self.host = again;
            }
            22 => self.there = self.host.to_device(self.there.device())?,
            _ => self.host = self.there.to_host()?,
        }
        Ok(())
    }

    fn published(&self) -> Published {
        (self.host.snapshot(), self.there.snapshot(), Arc::new(self.model.clone()))
    }
}

/// Checks lookups, counts, ranges, neighbours.
fn agrees((host, there, model): &Published, salt: u64) {
    let keys: Vec<u64> =
        model.keys().copied().skip(salt as usize % 5).step_by(7).flat_map(|key| [key, key ^ 1]).collect();
    let expected: Vec<Option<u64>> = keys.iter().map(|key| model.get(key).copied()).collect();
    assert_eq!(host.get_bulk(&keys), expected);
    assert_eq!(there.get_bulk(&keys).unwrap(), expected);
    let last = model.last_key_value().map_or(0, |(key, _)| key >> 32);
    let ranges: Vec<_> =
        (0..3).map(|back| last.saturating_sub(back) << 32..last.saturating_sub(back) << 32 | 90).collect();
    let listed: Vec<(u64, u64)> =
        ranges.iter().flat_map(|range| model.range(range.clone())).map(|(&key, &value)| (key, value)).collect();
    for found in [host.range_bulk(&ranges).unwrap(), there.range_bulk(&ranges).unwrap()] {
        assert!(found.keys.iter().copied().zip(found.values.iter().copied()).eq(listed.iter().copied()));
    }
    let counts: Vec<u64> = ranges.iter().map(|range| model.range(range.clone()).count() as u64).collect();
    assert_eq!(host.count_range_bulk(&ranges), counts);
    assert_eq!(there.count_range_bulk(&ranges).unwrap(), counts);
    assert_eq!(there.first_key_value().unwrap(), model.first_key_value().map(|(&key, &value)| (key, value)));
    assert_eq!((host.len(), there.len().unwrap()), (model.len() as u64, model.len() as u64));
}

/// Runs one day: a writer, and readers of its published snapshots, without waiting for each other.
fn day(device: &Device, seed: u64, batch: u64, hours: u64) {
    let (send, receive) = mpsc::sync_channel::<Published>(READERS);
    let receive = Mutex::new(receive);
    thread::scope(|scope| {
        let receive = &receive;
        for reader in 0..READERS as u64 {
            scope.spawn(move || {
                loop {
                    let published = receive.lock().unwrap().recv();
                    let Ok(published) = published else { break };
                    agrees(&published, seed ^ reader);
                }
            });
        }
        let mut day = Day::new(device, seed, batch).unwrap();
        for hour in 0..hours {
            day.hour(hour).unwrap();
            if hour % 24 != 21 {
                // A failed reader ends the day.
                send.send(day.published()).unwrap();
            }
            if hour % 6 == 5 {
                assert!(day.there.to_host().unwrap() == day.host, "hour {hour}");
            }
        }
        agrees(&day.published(), seed);
        drop(send);
    });
}

#[test]
fn snapshots_answer_while_a_day_goes_on() {
    let seed = std::env::var(warpset_gpu::emulator::SEED_VARIABLE).ok();
    let seed = seed.and_then(|text| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()).unwrap_or(1);
    for device in testing::devices(seed) {
        let (batch, hours) = testing::sized(&device, (64, 24), (1000, 24), (20_000, 72));
        day(&device, seed, batch, hours);
    }
}

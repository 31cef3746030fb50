//! Times, checks and rows.

use std::cell::Cell;
use std::time::Instant;

use warpset_bloom::gpu::{self, DeviceKey, DeviceLayout};
use warpset_gpu::{Device, DeviceSlice, DeviceVec, Event, LaunchConfig, Stream};
use warpset_kernels::limits;

use crate::Outcome;

/// What a row measures itself against.
#[derive(Clone, Copy)]
pub struct Bound {
    pub name: &'static str,
    pub rate: f64,
}

pub struct Bench {
    pub device: Device,
    pub stream: Stream,
    start: Event,
    end: Event,
    pub repeats: usize,
    failures: Cell<usize>,
}

impl Bench {
    pub fn open(repeats: usize) -> Outcome<Bench> {
        let device = Device::cuda(0)?;
        let stream = device.new_stream()?;
        let (start, end) = (device.new_event()?, device.new_event()?);
        Ok(Bench { device, stream, start, end, repeats, failures: Cell::new(0) })
    }

    /// Median milliseconds of `run`, after `prepare`, which is not timed.
    pub fn time(
        &self,
        mut prepare: impl FnMut(&Stream) -> Outcome<()>,
        mut run: impl FnMut(&Stream) -> Outcome<()>,
    ) -> Outcome<f64> {
        let mut times = Vec::new();
        for repeat in 0..=self.repeats {
            prepare(&self.stream)?;
            self.stream.synchronize()?;
            self.stream.record(&self.start)?;
            run(&self.stream)?;
            self.stream.record(&self.end)?;
            self.stream.synchronize()?;
            if repeat > 0 {
                times.push(f64::from(self.end.elapsed_ms(&self.start)?));
            }
        }
        times.sort_by(f64::total_cmp);
        Ok(times[times.len() / 2])
    }

    /// Median milliseconds of `run`, which waits for the device itself, after `prepare`, which is not timed.
    pub fn wall(&self, mut prepare: impl FnMut() -> Outcome<()>, mut run: impl FnMut() -> Outcome<()>) -> Outcome<f64> {
        let mut times = Vec::new();
        for repeat in 0..=self.repeats {
            prepare()?;
            self.device.synchronize()?;
            let start = Instant::now();
            run()?;
            if repeat > 0 {
                times.push(start.elapsed().as_secs_f64() * 1e3);
            }
        }
        times.sort_by(f64::total_cmp);
        Ok(times[times.len() / 2])
    }

    /// The note, marked and counted as a failure unless `ok`.
    pub fn check(&self, ok: bool, note: impl Into<String>) -> String {
        let note = note.into();
        if ok {
            return note;
        }
        self.failures.set(self.failures.get() + 1);
        format!("WRONG: {note}")
    }

    /// Compares false positives among `n` keys that are not in the filter with theory: both 10% and five standard
    /// deviations away is a failure, from 10^6 keys on.
    pub fn check_rate(&self, yes: u64, n: usize, theory: f64) -> String {
        let expected = theory * n as f64;
        let off = (yes as f64 - expected).abs();
        let ok = n < 1_000_000 || off <= 0.1 * expected || off <= 5.0 * expected.max(1.0).sqrt();
        self.check(ok, format!("FPR {:.6}%, theory {:.6}%", 100.0 * yes as f64 / n as f64, 100.0 * theory))
    }

    /// How many of `keys` the filter claims to contain.
    pub fn count<L: DeviceLayout, K: DeviceKey>(
        &self,
        filter: &gpu::Bloom<L>,
        keys: DeviceSlice<'_, K>,
    ) -> Outcome<u64> {
        let mut count = self.device.alloc_zeroed::<u64>(1)?;
        // SAFETY: filter, keys and count live until the stream has been waited for, and nobody writes them.
        unsafe { filter.count_contained_async(&self.stream, keys, count.as_mut_slice())? };
        self.stream.synchronize()?;
        Ok(count.to_vec()?[0])
    }

    /// An error if any check has failed.
    pub fn verdict(&self) -> Outcome<()> {
        match self.failures.get() {
            0 => {
                println!("all checks passed");
                Ok(())
            }
            failures => Err(format!("{failures} checks failed: see the rows marked WRONG").into()),
        }
    }

    pub fn grid(&self, blocks_each: u32) -> LaunchConfig {
        LaunchConfig::new(self.device.properties().multiprocessors * blocks_each, limits::BLOCK)
    }

    /// Distinct keys; those of different streams differ.
    pub fn keys(&self, n: usize, stream: u64) -> Outcome<DeviceVec<u64>> {
        let mut keys = self.device.alloc_uninit::<u64>(n)?;
        // SAFETY: the vector holds `n` keys and lives until the stream has been waited for.
        unsafe {
            limits::limits_generate_keys::launch(&self.stream, self.grid(16), keys.global_mut(), n, stream << 40)?
        };
        self.stream.synchronize()?;
        Ok(keys)
    }
}

pub fn row(what: &str, parameters: &str, n: usize, ms: f64, bound: Option<Bound>, note: &str) {
    let rate = n as f64 / ms / 1e6;
    let share = bound.map_or(String::new(), |b| format!("{:6.3} of {}", rate / b.rate, b.name));
    println!("| {what:<34} | {parameters:<28} | {n:>11} | {ms:>9.4} | {rate:>7.2} | {share:<28} | {note} |");
}

pub fn head() {
    println!(
        "| what                               | parameters                   |           n |        ms |  G/s    | share of the limit           | note |"
    );
    println!("| --- | --- | ---: | ---: | ---: | --- | --- |");
}

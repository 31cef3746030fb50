//! One attempt at a function under one seed, and one device's part of it.

use std::ops::Range;

use warpset_gpu::{DeviceVec, Devices, Stream};

use super::join::{DevicePart, join};
use super::key_store::KeyStore;
use super::lists::Sums;
use super::plan::{AttemptError, Plan, part_of};
use super::source::Source;
use super::stage_timer::StageTimer;
use super::{DeviceHashKind, EncodedBuckets, PerfectHash};
use crate::build::Settings;
use crate::progress::{Interrupted, Meter, Reporter};
use crate::{Error, Stage};

/// A build under one seed.
pub(super) struct SeedAttempt<'a, M: DeviceHashKind, K> {
    settings: Settings<M>,
    options: M::DeviceOptions,
    devices: &'a Devices,
    /// One stream per device.
    streams: &'a [Stream],
    search: M::Search,
    plan: Plan,
    store: KeyStore<'a, K>,
    meter: Meter<'a>,
    timer: Option<&'a StageTimer>,
}

impl<'a, M: DeviceHashKind, K: Source> SeedAttempt<'a, M, K> {
    /// Prepares a build on these devices with their streams; `reporter` receives progress tagged with the attempt's
    /// number.
    pub(super) fn new(
        settings: Settings<M>,
        options: M::DeviceOptions,
        keys: &'a K,
        (devices, streams): (&'a Devices, &'a [Stream]),
        plan: Plan,
        (reporter, number): (&'a Reporter<'a>, u32),
    ) -> Self {
        let n = keys.len() as u64;
        let (buckets, meter) = (settings.buckets(n), reporter.meter(Stage::Hashing, n, number));
        let store = KeyStore { keys, hashing: M::hashing(settings.seed), buckets, meter, kept: Vec::new() };
        Self {
            settings,
            options,
            devices,
            streams,
            search: settings.search(n),
            plan,
            store,
            meter: reporter.meter(Stage::Building, n, number),
            timer: None,
        }
    }

    /// Times the stages on the first device.
    pub(super) fn time(&mut self, timer: Option<&'a StageTimer>) {
        self.timer = timer;
    }

    /// Ends a stage at the stream's current point, if stages are timed there.
    fn mark(&self, stream: &Stream, stage: &'static str) -> Result<(), Error> {
        if let Some(timer) = self.timer
            && stream.device() == self.devices.first()
        {
            timer.mark(stream, stage)?;
        }
        Ok(())
    }

    /// Builds the function, on the first device.
    pub(super) fn run(&mut self) -> Result<PerfectHash<M>, AttemptError> {
        if self.plan.are_kept {
            self.keep()?;
        }
        let several = self.streams.len() as u64;
        let buckets = |place| part_of(self.store.buckets, place as u64, several);
        let built = self.devices.each(|place, _| self.part(&self.streams[place], buckets(place)));
        let stream = &self.streams[0];
        join(&self.settings, self.store.keys.len() as u64, stream, all_of(built)?, |stage| self.mark(stream, stage))
    }

    /// Hashes all keys.
    fn keep(&mut self) -> Result<(), AttemptError> {
        let (n, all) = (self.store.keys.len(), 0..self.store.buckets);
        self.store.kept = match self.store.keys.home() {
            Some(home) => {
                let here = self.streams.iter().find(|stream| stream.device() == home);
                let stream = here.map_or_else(|| home.new_stream(), |stream| Ok(stream.clone()))?;
                vec![self.store.hashed(&stream, 0..n, all, n as u64)?]
            }
            None => {
                let of = |place| part_of(n as u64, place as u64, self.streams.len() as u64);
                let hashed = self.devices.each(|place, _| {
                    let which = of(place).start as usize..of(place).end as usize;
                    let room = which.len() as u64;
                    Ok(self.store.hashed(&self.streams[place], which, all.clone(), room)?)
                });
                all_of(hashed)?
            }
        };
        Ok(())
    }

    /// Finds the codes of some of the buckets on the device of `stream`.
    fn part(&self, stream: &Stream, all: Range<u64>) -> Result<DevicePart<M::Found>, AttemptError> {
        let search = M::device_search(stream, &self.settings, &self.search, self.options)?;
        let mut least = stream.alloc_uninit(M::largest(&search) as usize + 1)?;
        stream.fill_bytes(&mut least, 0xff)?;
        let buckets = all.end - all.start;
        let mut sums = Sums::new(stream, buckets as usize)?;
        let (mut pieces, mut found) = (Vec::<(Range<u64>, DeviceVec<u64>)>::new(), None);
        let (mut largest, mut keys, mut bits) = (0, 0, 0);
        for part in (0..self.plan.ranges).map(|part| part_of(buckets, part, self.plan.ranges)) {
            let range = all.start + part.start..all.start + part.end;
            let part = part.start as usize..part.end as usize;
            self.mark(stream, "start")?;
            let (hashes, count) = self.store.keys_of(stream, range)?;
            self.mark(stream, "hashing")?;
            let sorted = hashes.sorted(stream, count)?;
            self.mark(stream, "sorting")?;
            let keys_before = sums.keys.slice_mut(part.start + 1..part.end + 1);
            let mark = &|stage| self.mark(stream, stage);
            let mut reported = SearchProgress { meter: &self.meter, keys: count as u64, told: 0, mark };
            let codes = M::find(&search, stream, sorted, keys, keys_before, &mut reported)?;
            reported.finish()?;
            largest = largest.max(codes.largest());
            keys += count as u64;

            let places = part.start..part.end + 1;
            // SAFETY: all of these are freed in the order of the stream.
            unsafe { codes.queue_bits(stream, sums.bits.slice_mut(places.clone()), &mut least)? };
            let mut end = [0];
            stream.download(sums.bits.slice(part.end..places.end), &mut end)?;
            self.mark(stream, "sums of bits")?;
            let before = std::mem::replace(&mut bits, end[0]);
            if self.streams.len() as u64 * self.plan.ranges == 1 {
                found = Some(codes);
                break;
            }
            let origin = before / 64;
            let mut piece = stream.alloc_zeroed((bits.div_ceil(64) - origin) as usize)?;
            if before % 64 != 0
                && let Some((_, last)) = pieces.last()
            {
                stream.copy(piece.slice_mut(..1), last.slice(last.len() - 1..))?;
            }
            // SAFETY: the piece has places for all bits from its origin on, which includes those before.
            unsafe { codes.queue_words(stream, sums.bits.slice(places), origin * 64, piece.global_mut())? };
            pieces.push((before..bits, piece));
        }
        let mut table = vec![0; least.len()];
        stream.download(&least, &mut table)?;
        Ok(DevicePart { pieces, found, sums, least: table, largest, keys, bits })
    }
}

/// Progress of the search for the codes of some keys.
pub struct SearchProgress<'a> {
    meter: &'a Meter<'a>,
    keys: u64,
    told: u64,
    mark: &'a dyn Fn(&'static str) -> Result<(), Error>,
}

impl SearchProgress<'_> {
    /// Whether progress is reported.
    pub(crate) fn is_asked(&self) -> bool {
        self.meter.is_asked()
    }

    /// Reports the finished share of the search; fails if the build has been stopped.
    pub(crate) fn done(&mut self, share: f64) -> Result<(), Interrupted> {
        let now = ((self.keys as f64 * share) as u64).clamp(self.told, self.keys);
        self.meter.add(now - std::mem::replace(&mut self.told, now))
    }

    /// Ends a stage, if stages are timed.
    pub(crate) fn mark(&self, stage: &'static str) -> Result<(), Error> {
        (self.mark)(stage)
    }

    /// Reports the rest, for searches that reported nothing.
    fn finish(mut self) -> Result<(), Interrupted> {
        if self.is_asked() && self.told < self.keys { self.done(1.0) } else { Ok(()) }
    }
}

/// Returns the results of all devices, or the failure of the least rank.
fn all_of<T>(results: Vec<Result<T, AttemptError>>) -> Result<Vec<T>, AttemptError> {
    let mut all = Vec::new();
    let mut stopped: Option<AttemptError> = None;
    for result in results {
        match result {
            Ok(one) => all.push(one),
            Err(other) if stopped.as_ref().is_none_or(|before| other.rank() < before.rank()) => stopped = Some(other),
            Err(_) => {}
        }
    }
    stopped.map_or(Ok(all), Err)
}

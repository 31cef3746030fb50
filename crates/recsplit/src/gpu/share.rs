//! One attempt at a function, and the share of it that one device builds.

use std::ops::Range;
use std::sync::Arc;

use warpset_gpu::{DeviceVec, Devices, Stream};
use warpset_kernels::primitives::scan::{scan_sum_u32, scan_sum_u64};
use warpset_kernels::recsplit::buckets::{
    recsplit_bounds, recsplit_counts, recsplit_hash, recsplit_pick, recsplit_select,
};
use warpset_kernels::recsplit::join::{recsplit_add, recsplit_join};
use warpset_kernels::recsplit::lists::recsplit_lists;
use warpset_primitives::sort;
use warpset_simt::KernelInfo;

use super::buckets::Sorted;
use super::build::{Plan, Stopped, part_of};
use super::encode::{Found, Lanes};
use super::lists::Sums;
use super::rows::Rows;
use super::search::{self, Buckets, DeviceTrees};
use super::source::Source;
use super::supply::Supply;
use super::watch::Watch;
use super::{RecSplit, Strategy};
use crate::build::Settings;
use crate::find::Trees;
use crate::progress::{Meter, Reporter};
use crate::{Error, Stage};

/// A build under one seed.
pub(super) struct Attempt<'a, K> {
    pub(super) settings: Settings,
    strategy: Strategy,
    pub(super) devices: &'a Devices,
    /// One per device.
    pub(super) streams: &'a [Stream],
    trees: Trees,
    plan: Plan,
    supply: Supply<'a, K>,
    meter: Meter<'a>,
    watch: Option<&'a Watch>,
}

/// What one device has built.
pub(super) struct Built {
    /// The bits of each range, counted from the first one of the share, whose first word has the last bits of the range before.
    pub(super) pieces: Vec<(Range<u64>, DeviceVec<u64>)>,
    /// Instead of pieces, if there is one range on one device: trees that are not encoded yet.
    pub(super) found: Option<Found>,
    /// Sums over the buckets of the share.
    pub(super) sums: Sums,
    /// The least number of bits of a bucket by its number of keys.
    pub(super) least: Vec<u64>,
    pub(super) largest: u32,
    pub(super) keys: u64,
    pub(super) bits: u64,
}

impl<'a, K: Source> Attempt<'a, K> {
    /// On these devices with their streams; `reporter` hears of the attempt under its number.
    pub(super) fn new(
        settings: Settings,
        strategy: Strategy,
        keys: &'a K,
        (devices, streams): (&'a Devices, &'a [Stream]),
        plan: Plan,
        (reporter, number): (&'a Reporter<'a>, u32),
        watch: Option<&'a Watch>,
    ) -> Self {
        let n = keys.len() as u64;
        let (buckets, meter) = (settings.buckets(n), reporter.meter(Stage::Hashing, n, number));
        let supply = Supply { keys, seed: settings.seed, buckets, meter, kept: Vec::new() };
        let (meter, trees) = (reporter.meter(Stage::Building, n, number), settings.trees(n));
        Self { settings, strategy, devices, streams, trees, plan, supply, meter, watch }
    }

    /// All keys.
    pub(super) fn keys(&self) -> u64 {
        self.supply.keys.len() as u64
    }

    /// The buckets of the device at this place.
    pub(super) fn share_of(&self, place: usize) -> Range<u64> {
        part_of(self.supply.buckets, place as u64, self.streams.len() as u64)
    }

    /// The kernels for the device at this place, those that take longest to compile first.
    fn kernels(&self, place: usize) -> Vec<&'static KernelInfo> {
        let (n, several) = (self.keys(), self.streams.len() as u64);
        let lanes = Lanes::of(&self.trees, self.settings.bucket_size);
        let mut kernels = search::kernels(&self.trees);
        kernels.extend(sort::kernels_for_pairs_by_digits::<u32, u64>(n.div_ceil(several * self.plan.ranges) as usize));
        kernels.extend(lanes.kernels());
        let home = self.supply.keys.home();
        if home.is_none_or(|home| home == self.streams[place].device()) {
            let takes_all = several * self.plan.ranges == 1 || self.plan.are_kept;
            kernels.push(if takes_all { recsplit_hash::INFO } else { recsplit_select::INFO });
            kernels.extend(self.plan.are_kept.then_some(recsplit_pick::INFO));
        }
        kernels.extend([scan_sum_u64::INFO, scan_sum_u32::INFO]);
        if place == 0 {
            kernels.push(recsplit_lists::INFO);
            kernels.extend((several > 1).then_some([recsplit_join::INFO, recsplit_add::INFO]).into_iter().flatten());
        }
        kernels.extend([recsplit_counts::INFO, recsplit_bounds::INFO]);
        kernels
    }

    /// Ends a stage where the stream is now, if stages are timed there.
    pub(super) fn mark(&self, stream: &Stream, stage: &'static str) -> Result<(), Error> {
        match self.watch {
            Some(watch) if stream.device() == self.devices.first() => watch.mark(stream, stage),
            _ => Ok(()),
        }
    }

    /// The function, on the first device.
    pub(super) fn run(&mut self) -> Result<RecSplit, Stopped> {
        let devices = self.devices;
        let kernels: Vec<_> = (0..self.streams.len()).map(|place| self.kernels(place)).collect();
        devices.with_kernels(&kernels, || {
            if self.plan.are_kept {
                self.keep()?;
            }
            let built = devices.each(|place, _| self.share(&self.streams[place], self.share_of(place)));
            self.join(all_of(built)?)
        })
    }

    /// Hashes all keys.
    fn keep(&mut self) -> Result<(), Stopped> {
        let (n, all) = (self.supply.keys.len(), 0..self.supply.buckets);
        self.supply.kept = match self.supply.keys.home() {
            Some(home) => {
                let here = self.streams.iter().find(|stream| stream.device() == home);
                let stream = here.map_or_else(|| home.new_stream(), |stream| Ok(stream.clone()))?;
                vec![self.supply.hashed(&stream, 0..n, all, n as u64)?]
            }
            None => {
                let of = |place| part_of(n as u64, place as u64, self.streams.len() as u64);
                let hashed = self.devices.each(|place, _| {
                    let which = of(place).start as usize..of(place).end as usize;
                    let room = which.len() as u64;
                    Ok(self.supply.hashed(&self.streams[place], which, all.clone(), room)?)
                });
                all_of(hashed)?
            }
        };
        Ok(())
    }

    /// Builds the trees of a share of the buckets on the device of `stream`.
    fn share(&self, stream: &Stream, share: Range<u64>) -> Result<Built, Stopped> {
        let settings = &self.settings;
        let trees = DeviceTrees::new(stream, self.trees.clone())?;
        let lanes = Lanes::of(&trees.trees, settings.bucket_size);
        let rows = Arc::new(Rows::new(stream, &trees.trees)?);
        let mut least = stream.alloc_uninit(trees.trees.nodes().len())?;
        stream.fill_bytes(&mut least, 0xff)?;
        let buckets = share.end - share.start;
        let mut sums = Sums::new(stream, buckets as usize)?;
        let (mut pieces, mut found) = (Vec::<(Range<u64>, DeviceVec<u64>)>::new(), None);
        let (mut largest, mut keys, mut bits) = (0, 0, 0);
        for part in (0..self.plan.ranges).map(|part| part_of(buckets, part, self.plan.ranges)) {
            let range = share.start + part.start..share.start + part.end;
            let part = part.start as usize..part.end as usize;
            self.mark(stream, "start")?;
            let (hashes, count) = self.supply.keys_of(stream, range)?;
            self.mark(stream, "hashing")?;
            let mut sorted = hashes.sorted(stream, count)?;
            self.mark(stream, "sorting")?;
            let sizes = sorted.sizes(stream, &rows, keys, sums.keys.slice_mut(part.start + 1..part.end + 1))?;
            largest = largest.max(sizes.largest);
            let mut numbers = stream.alloc_uninit(sizes.numbers)?;
            self.mark(stream, "sizes")?;
            self.search(stream, &trees, &mut sorted, &sizes.first_number, &mut numbers)?;
            self.mark(stream, "search")?;
            keys += count as u64;

            let trees = Found { lanes, rows: rows.clone(), sorted, sizes, numbers };
            let places = part.start..part.end + 1;
            // SAFETY: all of these are freed in the order of the stream.
            unsafe { trees.queue_bits(stream, sums.bits.slice_mut(places.clone()), &mut least)? };
            let mut end = [0];
            stream.download(sums.bits.slice(part.end..places.end), &mut end)?;
            self.mark(stream, "sums of bits")?;
            let before = std::mem::replace(&mut bits, end[0]);
            if self.streams.len() as u64 * self.plan.ranges == 1 {
                found = Some(trees);
                break;
            }
            let origin = before / 64;
            let mut piece = stream.alloc_zeroed((bits.div_ceil(64) - origin) as usize)?;
            if before % 64 != 0
                && let Some((_, last)) = pieces.last()
            {
                stream.copy(piece.slice_mut(..1), last.slice(last.len() - 1..))?;
            }
            // SAFETY: the piece has room for all bits from its origin on, of which the first are those before.
            unsafe { trees.queue_words(stream, sums.bits.slice(places), origin * 64, piece.global_mut())? };
            pieces.push((before..bits, piece));
        }
        let mut table = vec![0; least.len()];
        stream.download(&least, &mut table)?;
        Ok(Built { pieces, found, sums, least: table, largest, keys, bits })
    }

    /// Finds the numbers of all nodes.
    fn search(
        &self,
        stream: &Stream,
        trees: &DeviceTrees,
        sorted: &mut Sorted,
        first_number: &DeviceVec<u32>,
        numbers: &mut DeviceVec<u64>,
    ) -> Result<(), Stopped> {
        let keys = sorted.lows.len() as u64;
        let mut told = 0;
        let mut report = |done: f64| {
            let now = ((keys as f64 * done) as u64).clamp(told, keys);
            self.meter.add(now - std::mem::replace(&mut told, now))
        };
        let is_asked = self.meter.is_asked();
        let asked = is_asked.then_some(&mut report as &mut dyn FnMut(f64) -> _);
        let buckets = Buckets { lows: &mut sorted.lows, bounds: &sorted.bounds, first_number };
        let found = search::find(stream, self.strategy, trees, buckets, numbers, asked)?;
        if let Err(unsolved) = found {
            return Err(Stopped::Seed(sorted.explain(stream, unsolved.bucket)?));
        }
        // Without lists nothing was told.
        if is_asked && told < keys {
            self.meter.add(keys - told)?;
        }
        Ok(())
    }
}

/// The results of all devices, or the reason that counts.
fn all_of<T>(results: Vec<Result<T, Stopped>>) -> Result<Vec<T>, Stopped> {
    let mut all = Vec::new();
    let mut stopped: Option<Stopped> = None;
    for result in results {
        match result {
            Ok(one) => all.push(one),
            Err(other) if stopped.as_ref().is_none_or(|before| other.rank() < before.rank()) => stopped = Some(other),
            Err(_) => {}
        }
    }
    stopped.map_or(Ok(all), Err)
}

//! Multisets and exact filters on a device: builds from keys that come in skewed numbers, counters beside a slot per
//! copy and beside sets; lookups in filters with counters, and in exact ones.

use bench_frame::input::keys::KeySpace;
use warpset::gpu::{Device, DeviceSlice};
use warpset::prelude::DeviceFilter;
use warpset::quotient::gpu::{DeviceSlotKind, QuotientFilter};
use warpset::quotient::{Builder, Count, Duplicates, Error, Insert, RankSelect, Standard};

use super::counted::Skew;
use super::device::{kind_name, making, push, upload, wanted};
use super::{INSERTED, MAX_LOAD, Point, SEED, Size};
use bench_frame::clock::median_seconds;
use bench_frame::gpu_limits;
use bench_frame::suite::Session;

/// The share of slots that different keys would take, one each, in multisets.
const DIFFERENT: f64 = 0.35;
/// Keys of a multiset on a GPU.
const KEYS: usize = 1 << 26;
/// The most keys per slot: with more of them, counters take more slots than there are.
const KEYS_PER_SLOT: usize = 8;
/// The most different keys.
const MOST_DIFFERENT: usize = 1 << 24;

/// Measures builds from multisets.
pub fn builds(session: &mut Session, device: &Device, size: Size, _: &[f64]) -> anyhow::Result<()> {
    for skew in [Skew::Even, Skew::Zipf, Skew::SteepZipf] {
        let different = size.keys(DIFFERENT).min(MOST_DIFFERENT);
        let most = KEYS.min(KEYS_PER_SLOT << size.quotient_bits);
        let n = if device.is_emulator() { size.keys(0.7) } else { most };
        let keys = skew.keys(different, n);
        let there = device.from_slice(&keys)?;
        let all = Multiset { size, skew, keys: there.as_slice(), on_host: &keys };
        all.build::<RankSelect>(session, device, Duplicates::Counted)?;
        for duplicates in [Duplicates::Dropped, Duplicates::Kept] {
            all.build::<RankSelect>(session, device, duplicates)?;
            all.build::<Standard>(session, device, duplicates)?;
        }
    }
    Ok(())
}

struct Multiset<'a> {
    size: Size,
    skew: Skew,
    keys: DeviceSlice<'a, u32>,
    on_host: &'a [u32],
}

impl Multiset<'_> {
    fn build<S: DeviceSlotKind>(
        &self,
        session: &mut Session,
        device: &Device,
        duplicates: Duplicates,
    ) -> anyhow::Result<()> {
        let Size { quotient_bits, remainder_bits } = self.size;
        let builder = Builder::<S>::with_bits(quotient_bits, remainder_bits).max_load(MAX_LOAD).duplicates(duplicates);
        // With a slot per copy, no more than this many fit.
        let n = if duplicates == Duplicates::Kept { self.keys.len().min(self.size.keys(0.7)) } else { self.keys.len() };
        let keys = self.keys.slice(..n);
        let build = || builder.on(device).build_from_device(keys);
        if let Err(Error::OverflowRegionFull { .. }) = build() {
            // One key takes more slots than come after its own.
            return Ok(());
        }
        let (seconds, filter) = making(session, device, || Ok(build()?))?;
        let wanted = wanted(self.size, || Ok(builder.build_from(&self.on_host[..n])?))?;
        let right = match wanted {
            Some(wanted) => filter.to_host()? == wanted,
            None => filter.count_contained_device(keys)? == n,
        };
        let point = Point { study: "build of multisets", size: self.size, load: filter.load_factor() };
        let kept = match duplicates {
            Duplicates::Dropped => "dropped",
            Duplicates::Kept => "kept",
            Duplicates::Counted => "counted",
        };
        let skew = if matches!(self.skew, Skew::Even) { "even" } else { self.skew.name() };
        let row = point.row("build", n, seconds).param("skew", skew).param("duplicates", kept);
        let mut row = row.by(kind_name::<S>(filter.layout()), false);
        row.bits_per_item = Some(8.0 * filter.memory_bytes() as f64 / n as f64);
        push(session, device, row, right);
        Ok(())
    }
}

/// Measures lookups and counts in filters with counters, in which every other key has two copies, and in exact filters.
pub fn lookups(session: &mut Session, device: &Device, size: Size, loads: &[f64]) -> anyhow::Result<()> {
    for &load in loads {
        // A key with one copy takes one slot, one with two takes two.
        let once = upload(device, INSERTED, size.keys(load / 1.5))?;
        let mut all = once.to_vec()?;
        all.extend_from_within(..once.len() / 2);
        let all = device.from_slice(&all)?;
        let Size { quotient_bits, remainder_bits } = size;
        let builder = Builder::<RankSelect>::with_bits(quotient_bits, remainder_bits).max_load(MAX_LOAD);
        let counted = builder.duplicates(Duplicates::Counted);
        let point = Point { study: "lookups with counters", size, load };
        lookups_of(session, device, point, counted, all.as_slice(), once.as_slice())?;

        let bits = quotient_bits + remainder_bits;
        let mask = u32::MAX >> 32u32.saturating_sub(bits);
        let keys: Vec<u32> = KeySpace::new(SEED).stream(INSERTED).u32_keys(size.keys(load));
        let keys = device.from_slice(&keys.into_iter().map(|key| key & mask).collect::<Vec<u32>>())?;
        let point = Point { study: "lookups in exact filters", size, load };
        lookups_of(session, device, point, builder.exact(bits), keys.as_slice(), keys.as_slice())?;
    }
    Ok(())
}

fn lookups_of(
    session: &mut Session,
    device: &Device,
    point: Point,
    builder: Builder<RankSelect>,
    inserted: DeviceSlice<'_, u32>,
    asked: DeviceSlice<'_, u32>,
) -> anyhow::Result<()> {
    let filter = builder.on(device).build_from_device(inserted)?;
    let stream = device.new_stream()?;
    let mut answers = device.alloc_uninit::<u8>(asked.len())?;
    let mut counts = device.alloc_uninit::<u64>(asked.len())?;
    let contains = gpu_limits::repeated(device, &stream, session.effort, || {
        // SAFETY: filter, keys and answers stay alive, and no other work touches them, until the stream has been
        // waited for.
        unsafe { filter.contains_async(&stream, asked, answers.as_mut_slice())? };
        Ok(())
    })?;
    let count = gpu_limits::repeated(device, &stream, session.effort, || {
        // SAFETY: as above.
        unsafe { filter.count_async(&stream, asked, counts.as_mut_slice())? };
        Ok(())
    })?;
    stream.synchronize()?;
    let (keys, mut on_host) = (inserted.to_vec()?, (builder.on(device).build()?, vec![0; inserted.len()]));
    let clear = |(filter, _): &mut (QuotientFilter<RankSelect>, Vec<u64>)| Ok(filter.clear()?);
    let insert = median_seconds(session.effort, &mut on_host, clear, |(filter, _)| {
        filter.insert_bulk(&keys)?;
        Ok(())
    })?;
    let ready = |_: &mut _| Ok(());
    let count_keys = median_seconds(session.effort, &mut on_host, ready, |(filter, counts)| {
        Ok(filter.count_bulk_into(&keys, counts)?)
    })?;
    let all_counted = |counts: &[u64]| counts.iter().all(|count| *count > 0);
    let (answers, counts) = (answers.to_vec()?, counts.to_vec()?);
    let right = answers.iter().all(|answer| *answer == 1);
    let name = if filter.layout().is_exact() { "rank-and-select, exact" } else { "rank-and-select, counted" };
    for (operation, n, seconds, right) in [
        ("contains hit", asked.len(), contains, right),
        ("count", asked.len(), count, all_counted(&counts)),
        ("insert from the host", keys.len(), insert, on_host.0.len() == filter.len()),
        ("count from the host", keys.len(), count_keys, all_counted(&on_host.1)),
    ] {
        let row = point.row(operation, n, seconds).by(name, false);
        push(session, device, row, right);
    }
    Ok(())
}

//! Quotient filters on a GPU (on the emulator: small sizes, for tests): lookups by the device's clock, as they wait for
//! nothing; everything else in wall-clock time as the caller sees it. Keys and answers are in device memory.

use papers_quotient::{PaperSlots, RankSelectBuild, StandardBuild, build_from_device};
use warpset::bloom::SplitBlockBloom;
use warpset::bloom::gpu as bloom;
use warpset::gpu::{Device, DeviceSlice, DeviceSliceMut, DeviceVec, Stream};
use warpset::prelude::{DeviceFilter, Filter, Insert};
use warpset::primitives::sort;
use warpset::quotient::gpu::{DeviceSlotKind, LookupMethod, QuotientFilter};
use warpset::quotient::{
    Builder, Container, Duplicates, Layout, QuotientFilter as HostFilter, RankSelect, SlotKind, Standard,
};

use super::subject::{Kind, container_name, layout};
use super::whole::WHOLE;
use super::{
    ABSENT, COMMON_LOAD, INSERTED, Point, Size, as_expected, device_counted, device_updates, keys, loads, maplets,
};
use bench_frame::clock::{Effort, median_seconds};
use bench_frame::gpu_limits::{self, GpuAccess};
use bench_frame::suite::{Session, Setup, Step, Target, Threads};
use bench_record::Record;

/// The largest filter whose bytes are compared with those of the CPU.
const COMPARED: u32 = 24;
/// Both forms of the slots.
const CONTAINERS: [Container; 2] = [Container::Packed, Container::Bytes];

/// Returns sizes: the paper's, within the L2 cache and beyond it; and one with the other remainder of its authors.
fn sizes(device: &Device, effort: Effort) -> Vec<Size> {
    match (device.is_emulator(), effort) {
        (true, _) => vec![Size::of(9)],
        (_, Effort::Quick) => vec![Size::of(20)],
        (_, Effort::Standard) => vec![Size::PAPER],
        (_, Effort::Full) => {
            vec![Size { quotient_bits: 18, remainder_bits: 13 }, Size::PAPER, Size::of(26), Size::of(28)]
        }
    }
}

/// Work of a step.
type Run = fn(&mut Session, &Device, Size, &[f64]) -> anyhow::Result<()>;

/// Makes the steps.
pub fn steps(setup: &Setup, log2_slots: Option<u32>) -> Vec<Step> {
    let mut steps = Vec::new();
    for device in setup.devices() {
        let name = if device.is_emulator() { "emulator" } else { "GPU" };
        let loads = if device.is_emulator() { &[0.5, 0.9] } else { loads(setup.effort) };
        let asked = log2_slots.filter(|_| !device.is_emulator()).map(|bits| vec![Size::of(bits)]);
        for size in asked.unwrap_or_else(|| sizes(device, setup.effort)) {
            let all: [(&str, Run); 10] = [
                ("builds", builds),
                ("lookups", lookups),
                ("lookups by batch", lookups_by_batch),
                ("counts", counts),
                ("builds of multisets", device_counted::builds),
                ("lookups with counters and in exact filters", device_counted::lookups),
                ("maplets", maplets::all),
                ("inserts and deletes", device_updates::over_load),
                ("inserts and deletes by batch", device_updates::by_batch),
                ("merging and resizing", whole_filters),
            ];
            for (what, run) in all {
                let device = device.clone();
                let title = format!("quotient: {what} on the {name}, {}", size.name());
                let step = Step::new(title, move |session| run(session, &device, size, loads));
                steps.push(if what.ends_with("by batch") { step.except_quick() } else { step });
            }
        }
        if !device.is_emulator() {
            let device = device.clone();
            let title = format!("quotient: lookups by width of the remainder on the {name}");
            steps.push(Step::new(title, move |session| lookups_by_width(session, &device)).except_quick());
        }
    }
    steps
}

/// Measures the wall-clock time of `work`, which waits for its end.
pub fn wall<S>(
    session: &Session,
    device: &Device,
    state: &mut S,
    mut prepare: impl FnMut(&mut S) -> anyhow::Result<()>,
    mut work: impl FnMut(&mut S) -> anyhow::Result<()>,
) -> anyhow::Result<f64> {
    if device.is_emulator() {
        prepare(state)?;
        let start = std::time::Instant::now();
        work(state)?;
        return Ok(start.elapsed().as_secs_f64());
    }
    let prepare = |state: &mut S| {
        prepare(state)?;
        Ok(device.synchronize()?)
    };
    median_seconds(session.effort, state, prepare, work)
}

/// Measures the wall-clock time of `make`, and returns its result.
pub fn making<T>(
    session: &Session,
    device: &Device,
    mut make: impl FnMut() -> anyhow::Result<T>,
) -> anyhow::Result<(f64, T)> {
    let mut made = None;
    let clear = |made: &mut Option<T>| {
        *made = None;
        Ok(())
    };
    let seconds = wall(session, device, &mut made, clear, |made| {
        *made = Some(make()?);
        Ok(())
    })?;
    made.map(|made| (seconds, made)).ok_or_else(|| anyhow::anyhow!("nothing was made"))
}

/// Adds a row measured on `device`.
pub fn push(session: &mut Session, device: &Device, row: Record, right: bool) {
    session.add(&Target::Gpu(device.clone()), Threads::All, row, right);
}

/// Copies keys of a stream to the device.
pub fn upload(device: &Device, stream: u64, n: usize) -> anyhow::Result<DeviceVec<u32>> {
    Ok(device.from_slice(&keys(stream, n))?)
}

/// Returns the host's filter, if it is small enough to be compared.
pub fn wanted<S>(
    size: Size,
    build: impl FnOnce() -> anyhow::Result<HostFilter<S>>,
) -> anyhow::Result<Option<HostFilter<S>>> {
    if size.quotient_bits > COMPARED { Ok(None) } else { build().map(Some) }
}

/// Whether the filter has the bytes that are wanted; where they are not known, whether it contains the keys that must
/// be there and none of those that must not.
pub fn is_wanted<S: DeviceSlotKind>(
    filter: &QuotientFilter<S>,
    wanted: Option<&HostFilter<S>>,
    inside: &[&DeviceVec<u32>],
    outside: &[&DeviceVec<u32>],
) -> anyhow::Result<bool> {
    if let Some(wanted) = wanted {
        return Ok(filter.to_host()? == *wanted);
    }
    let counts = |all: &[&DeviceVec<u32>], there: bool| -> anyhow::Result<bool> {
        for keys in all {
            if count(filter, keys.as_slice())? != if there { keys.len() } else { 0 } {
                return Ok(false);
            }
        }
        Ok(true)
    };
    Ok(counts(inside, true)? && counts(outside, false)?)
}

/// Counts the keys that the filter claims to contain.
fn count<S: DeviceSlotKind>(filter: &QuotientFilter<S>, keys: DeviceSlice<'_, u32>) -> anyhow::Result<usize> {
    let stream = filter.device().new_stream()?;
    filter.device().synchronize()?;
    let mut count = stream.alloc_zeroed::<u64>(1)?;
    // SAFETY: filter, keys and count stay alive, and no other work touches them, until the stream has been waited for.
    unsafe { filter.count_contained_async(&stream, keys, count.as_mut_slice())? };
    stream.synchronize()?;
    Ok(count.to_vec()?[0] as usize)
}

/// Returns the ways to build standard filters, by the names of their rows; those of the paper for packed slots.
fn build_methods(container: Container) -> Vec<(&'static str, StandardBuild)> {
    let name = |method: StandardBuild| match method {
        StandardBuild::Scan => "scan",
        StandardBuild::ParallelMerging => "parallel merging",
        StandardBuild::SequentialShifting => "sequential shifting",
        StandardBuild::SegmentedLayouts => "segmented layouts",
        StandardBuild::SuperclusterInserts => "supercluster inserts",
    };
    let all = StandardBuild::ALL.map(|method| (name(method), method));
    if container == Container::Packed { all.into() } else { all[..1].into() }
}

/// The ways to build rank-and-select filters.
const RANK_SELECT_BUILDS: [(&str, RankSelectBuild); 2] =
    [("scan", RankSelectBuild::Scan), ("region inserts", RankSelectBuild::RegionInserts)];

fn builds(session: &mut Session, device: &Device, size: Size, loads: &[f64]) -> anyhow::Result<()> {
    for &load in loads {
        let n = size.keys(load);
        let point = Point { study: "build over fill", size, load };
        let keys = upload(device, INSERTED, n)?;
        for container in CONTAINERS {
            for (duplicates, kept) in [(Duplicates::Dropped, "dropped"), (Duplicates::Kept, "kept")] {
                let of_filter = (layout(size, container, duplicates)?, kept);
                builds_of::<Standard>(session, device, point, of_filter, &keys, &build_methods(container))?;
                if container == Container::Packed {
                    builds_of::<RankSelect>(session, device, point, of_filter, &keys, &RANK_SELECT_BUILDS)?;
                }
            }
        }
        // Our Bloom filter for the same keys and rate, as the paper compares with one.
        let mut filter = empty_bloom(device, size, n)?;
        let stream = device.new_stream()?;
        let clear = |filter: &mut bloom::SplitBlockBloom| Ok(filter.clear()?);
        let seconds = wall(session, device, &mut filter, clear, |filter| {
            // SAFETY: filter and keys stay alive, and no other work touches them, until the stream has been waited for.
            unsafe { filter.insert_async(&stream, keys.as_slice())? };
            Ok(stream.synchronize()?)
        })?;
        let mut row = point.row("build", n, seconds).by(Kind::Bloom.name(), false);
        row.bits_per_item = Some(8.0 * filter.memory_bytes() as f64 / n as f64);
        let right = filter.count_contained_bulk(&keys.to_vec()?)? == n;
        push(session, device, row, right);
    }
    Ok(())
}

/// Measures builds of one kind of slots. Each layout is given with the name of its treatment of duplicates.
fn builds_of<S: PaperSlots>(
    session: &mut Session,
    device: &Device,
    point: Point,
    (layout, kept): (Layout, &str),
    keys: &DeviceVec<u32>,
    methods: &[(&str, S::Build)],
) -> anyhow::Result<()> {
    let builder = Builder::<S>::with_layout(layout);
    let wanted = wanted(point.size, || Ok(builder.build_from(&keys.to_vec()?)?))?;
    for &(name, method) in methods {
        let (seconds, filter) =
            making(session, device, || Ok(build_from_device(&builder.on(device), keys.as_slice(), method)?))?;
        let row = point.row("build", keys.len(), seconds).param("duplicates", kept);
        let mut row = row.by(format!("{}, {name}", kind_name::<S>(&layout)), false);
        row.bits_per_item = Some(8.0 * filter.memory_bytes() as f64 / keys.len() as f64);
        let right = is_wanted(&filter, wanted.as_ref(), &[keys], &[])?;
        push(session, device, row, right);
    }
    Ok(())
}

fn empty_bloom(device: &Device, size: Size, n: usize) -> anyhow::Result<bloom::SplitBlockBloom> {
    let fpr = 2f64.powi(-(size.remainder_bits as i32));
    let host = SplitBlockBloom::builder(n.max(1) as u64).fpr(fpr).build()?;
    Ok(bloom::SplitBlockBloom::from_host(device, &host)?)
}

/// Queues lookups of keys.
type Queue<'a> = dyn Fn(&Stream, DeviceSlice<'_, u32>, DeviceSliceMut<'_, u8>) -> anyhow::Result<()> + 'a;

/// Lookups on a device: `queue` queues lookups of all keys.
struct Asked<'a> {
    point: Point,
    name: String,
    bytes: u64,
    /// The rate of false positives, where the filter knows it exactly.
    fpr: Option<f64>,
    limit: Option<f64>,
    queue: &'a Queue<'a>,
}

impl Asked<'_> {
    /// Adds a row: the device's time for lookups of `keys`, all or none of which are in the filter.
    fn push(
        &self,
        session: &mut Session,
        device: &Device,
        keys: DeviceSlice<'_, u32>,
        there: bool,
    ) -> anyhow::Result<()> {
        let n = keys.len();
        let stream = device.new_stream()?;
        let mut answers = device.alloc_uninit::<u8>(n)?;
        let work = || (self.queue)(&stream, keys, answers.as_mut_slice());
        let seconds = gpu_limits::repeated(device, &stream, session.effort, work)?;
        stream.synchronize()?;
        let yes = answers.to_vec()?.into_iter().filter(|answer| *answer == 1).count();
        let operation = if there { "contains hit" } else { "contains miss" };
        let mut row = self.point.row(operation, n, seconds).by(self.name.clone(), false);
        row.bits_per_item = Some(8.0 * self.bytes as f64 / self.point.size.keys(self.point.load) as f64);
        row.limit_fraction = row.items_per_second.zip(self.limit).map(|(rate, limit)| rate / limit);
        let mut right = yes == n;
        if !there {
            row.fpr = Some(yes as f64 / n as f64);
            let expected = self.fpr.map(|fpr| fpr * n as f64);
            if let Some(expected) = expected {
                row = row.param("expected", expected);
            }
            right = expected.is_none_or(|expected| as_expected(yes, expected));
        }
        push(session, device, row, right);
        Ok(())
    }
}

/// Measures lookups by both methods, or by one, in a filter of each container.
fn ask(
    session: &mut Session,
    device: &Device,
    point: Point,
    (inserted, absent): (DeviceSlice<'_, u32>, Option<DeviceSlice<'_, u32>>),
    (containers, methods, asked): (&[Container], &[LookupMethod], &[usize]),
) -> anyhow::Result<()> {
    let limit = match device.is_emulator() {
        true => None,
        false => Some(session.gpu_limit(device, GpuAccess::Lookup, point.size.bytes())?),
    };
    for &container in containers {
        let of_filter = (layout(point.size, container, Duplicates::Dropped)?, limit);
        let keys = (inserted, absent);
        ask_kind::<Standard>(session, device, point, of_filter, keys, (methods, asked))?;
        if container == Container::Packed {
            ask_kind::<RankSelect>(session, device, point, of_filter, keys, (methods, asked))?;
        }
    }
    Ok(())
}

/// Returns a filter's name in rows.
pub fn kind_name<S: DeviceSlotKind>(layout: &Layout) -> &'static str {
    if S::NAME == Standard::NAME { container_name(layout.container()) } else { "rank-and-select" }
}

/// Measures lookups in filters with one kind of slots; each layout is given with its limit.
fn ask_kind<S: DeviceSlotKind>(
    session: &mut Session,
    device: &Device,
    point: Point,
    (layout, limit): (Layout, Option<f64>),
    (inserted, absent): (DeviceSlice<'_, u32>, Option<DeviceSlice<'_, u32>>),
    (methods, asked): (&[LookupMethod], &[usize]),
) -> anyhow::Result<()> {
    let filter = Builder::<S>::with_layout(layout).on(device).build_from_device(inserted)?;
    let fpr = filter.len() as f64 / 2f64.powi(layout.fingerprint_bits() as i32);
    for &method in methods {
        let sorted = if matches!(method, LookupMethod::Sorted) { ", sorted" } else { "" };
        let asked_here = Asked {
            point,
            name: format!("{}{sorted}", kind_name::<S>(&layout)),
            bytes: filter.memory_bytes(),
            fpr: Some(fpr),
            limit,
            queue: &|stream, keys, answers| {
                // SAFETY: filter, keys and answers stay alive, and no other work touches them, until `Asked::push` has
                // waited for the stream.
                unsafe { filter.contains_async_with(stream, keys, answers, method)? };
                Ok(())
            },
        };
        for &n in asked {
            asked_here.push(session, device, inserted.slice(..n), true)?;
            if let Some(absent) = absent {
                asked_here.push(session, device, absent.slice(..n), false)?;
            }
        }
    }
    Ok(())
}

/// Measures counts of each inserted key, in multisets of both kinds.
fn counts(session: &mut Session, device: &Device, size: Size, loads: &[f64]) -> anyhow::Result<()> {
    for &load in loads {
        let point = Point { study: "count over fill", size, load };
        let inserted = upload(device, INSERTED, size.keys(load))?;
        let layout = layout(size, Container::Packed, Duplicates::Kept)?;
        counts_of::<Standard>(session, device, point, layout, inserted.as_slice())?;
        counts_of::<RankSelect>(session, device, point, layout, inserted.as_slice())?;
    }
    Ok(())
}

fn counts_of<S: DeviceSlotKind>(
    session: &mut Session,
    device: &Device,
    point: Point,
    layout: Layout,
    keys: DeviceSlice<'_, u32>,
) -> anyhow::Result<()> {
    let filter = Builder::<S>::with_layout(layout).on(device).build_from_device(keys)?;
    let stream = device.new_stream()?;
    let mut counts = device.alloc_uninit::<u64>(keys.len())?;
    let work = || {
        // SAFETY: filter, keys and counts stay alive, and no other work touches them, until the stream has been waited
        // for.
        unsafe { filter.count_async(&stream, keys, counts.as_mut_slice())? };
        Ok(())
    };
    let seconds = gpu_limits::repeated(device, &stream, session.effort, work)?;
    stream.synchronize()?;
    let counts = counts.to_vec()?;
    let mut right = counts.iter().all(|count| *count > 0);
    if point.size.quotient_bits <= COMPARED {
        let host = filter.to_host()?;
        let keys = keys.to_vec()?;
        right &= keys.iter().zip(&counts).step_by(7).all(|(key, count)| host.count(*key) == *count);
    }
    let row = point.row("count", keys.len(), seconds).by(kind_name::<S>(&layout), false);
    push(session, device, row, right);
    Ok(())
}

const METHODS: [LookupMethod; 2] = [LookupMethod::Unsorted, LookupMethod::Sorted];

fn lookups(session: &mut Session, device: &Device, size: Size, loads: &[f64]) -> anyhow::Result<()> {
    for &load in loads {
        let n = size.keys(load);
        let point = Point { study: "lookup over fill", size, load };
        let (inserted, absent) = (upload(device, INSERTED, n)?, upload(device, ABSENT, n)?);
        let both = (inserted.as_slice(), Some(absent.as_slice()));
        ask(session, device, point, both, (&CONTAINERS, &METHODS, &[n]))?;
        let mut filter = empty_bloom(device, size, n)?;
        filter.insert_bulk(&inserted.to_vec()?)?;
        let asked = Asked {
            point,
            name: Kind::Bloom.name(),
            bytes: filter.memory_bytes(),
            fpr: None,
            limit: None,
            queue: &|stream, keys, answers| {
                // SAFETY: as for the quotient filter.
                unsafe { filter.contains_async(stream, keys, answers)? };
                Ok(())
            },
        };
        asked.push(session, device, inserted.as_slice(), true)?;
        asked.push(session, device, absent.as_slice(), false)?;
    }
    Ok(())
}

/// Measures both methods over the number of keys per call: at the common load, and in full runs at the load from which
/// sorting pays.
fn lookups_by_batch(session: &mut Session, device: &Device, size: Size, _: &[f64]) -> anyhow::Result<()> {
    let batches = |most: usize| -> Vec<usize> {
        (8..32).step_by(2).map(|log| 1 << log).take_while(|batch| *batch < most).chain([most]).collect()
    };
    let n = size.keys(COMMON_LOAD);
    let point = Point { study: "lookup over batch", size, load: COMMON_LOAD };
    let inserted = upload(device, INSERTED, n)?;
    ask(session, device, point, (inserted.as_slice(), None), (&CONTAINERS[..1], &METHODS, &batches(n)))?;
    if session.effort == Effort::Full && size == Size::PAPER {
        for load in [0.8, 0.9, 0.95, 0.97] {
            for remainder_bits in [5, 8, 13, 21, 29] {
                let size = Size { remainder_bits, ..size };
                let point = Point { study: "lookup over batch and load", size, load };
                let n = size.keys(load);
                let inserted = upload(device, INSERTED, n)?;
                ask(session, device, point, (inserted.as_slice(), None), (&CONTAINERS, &METHODS, &batches(n)))?;
            }
        }
    }
    Ok(())
}

/// Compares packed slots with slots of whole bytes, by the width of the remainder.
fn lookups_by_width(session: &mut Session, device: &Device) -> anyhow::Result<()> {
    for remainder_bits in [3, 5, 8, 13, 21, 29] {
        for load in [0.3, 0.5, 0.7, 0.75, 0.9] {
            let size = Size { remainder_bits, ..Size::PAPER };
            let n = size.keys(load);
            let point = Point { study: "containers", size, load };
            let (inserted, absent) = (upload(device, INSERTED, n)?, upload(device, ABSENT, n)?);
            let both = (inserted.as_slice(), Some(absent.as_slice()));
            ask(session, device, point, both, (&CONTAINERS, &METHODS[..1], &[n]))?;
        }
    }
    Ok(())
}

/// Measures merging two halves, doubling, halving, listing, counting the intersection; and, for comparison with builds,
/// sorting the fingerprints alone.
fn whole_filters(session: &mut Session, device: &Device, size: Size, _: &[f64]) -> anyhow::Result<()> {
    let loads: &[f64] = if session.effort == Effort::Full { &[0.4, COMMON_LOAD, 0.9, 0.95] } else { &[COMMON_LOAD] };
    for &load in loads {
        let point = Point { study: WHOLE, size, load };
        let all = upload(device, INSERTED, size.keys(load))?;
        for container in CONTAINERS {
            let layout = layout(size, container, Duplicates::Dropped)?;
            one_whole::<Standard>(session, device, point, layout, &all)?;
            if container == Container::Packed {
                one_whole::<RankSelect>(session, device, point, layout, &all)?;
            }
        }
        sort_alone(session, device, point, &all)?;
    }
    Ok(())
}

fn one_whole<S: DeviceSlotKind>(
    session: &mut Session,
    device: &Device,
    point: Point,
    layout: Layout,
    all: &DeviceVec<u32>,
) -> anyhow::Result<()> {
    let size = point.size;
    let build = |keys: DeviceSlice<'_, u32>| Builder::<S>::with_layout(layout).on(device).build_from_device(keys);
    let (low, high) = (all.slice(..all.len() / 2), all.slice(all.len() / 2..));
    let (mut filter, high) = (build(low)?, build(high)?);
    let again = |filter: &mut QuotientFilter<S>| {
        *filter = build(low)?;
        Ok(())
    };
    let push = |session: &mut Session, operation: &str, n: u64, seconds: f64, right: bool| {
        let row = point.row(operation, n as usize, seconds).by(kind_name::<S>(&layout), false);
        push(session, device, row, right);
    };
    let seconds = wall(session, device, &mut filter, again, |filter| Ok(filter.merge(&high)?))?;
    let whole = wanted(size, || Ok(Builder::<S>::with_layout(layout).build_from(&all.to_vec()?)?))?;
    let right = is_wanted(&filter, whole.as_ref(), &[all], &[])?;
    push(session, "merge", filter.len(), seconds, right);

    let (seconds, doubled) = making(session, device, || Ok(filter.resized(size.quotient_bits + 1)?))?;
    let right = match &whole {
        None => count(&doubled, all.as_slice())? == all.len(),
        Some(whole) => doubled.to_host()? == whole.resized(size.quotient_bits + 1)?,
    };
    push(session, "double", filter.len(), seconds, right);
    let (seconds, halved) = making(session, device, || Ok(doubled.resized(size.quotient_bits)?))?;
    let right = is_wanted(&halved, whole.as_ref(), &[all], &[])?;
    push(session, "halve", filter.len(), seconds, right);

    let (seconds, listed) = making(session, device, || Ok(filter.fingerprints_device()?))?;
    let right = match &whole {
        None => listed.len() as u64 == filter.len(),
        Some(whole) => listed.to_vec()?.into_iter().eq(whole.fingerprints()),
    };
    push(session, "list", filter.len(), seconds, right);
    let (seconds, common) = making(session, device, || Ok(filter.intersection_count(&high)?))?;
    push(session, "intersection count", filter.len(), seconds, common == high.len());
    Ok(())
}

/// Measures a sort of that many random numbers by the bits of fingerprints.
fn sort_alone(session: &mut Session, device: &Device, point: Point, all: &DeviceVec<u32>) -> anyhow::Result<()> {
    let (n, bits) = (all.len(), point.size.quotient_bits + point.size.remainder_bits);
    let stream = device.new_stream()?;
    let by = sort::By::ascending().bits(0..bits);
    let (seconds, right) = if bits <= 32 {
        let mut sorted = device.alloc_uninit::<u32>(n)?;
        let (seconds, ()) = making(session, device, || {
            // SAFETY: both stay alive, and no other work touches them, until the stream has been waited for.
            unsafe { sort::sort_keys_async(&stream, all.as_slice(), sorted.as_mut_slice(), by.clone())? };
            Ok(stream.synchronize()?)
        })?;
        (seconds, sorted.to_vec()?.is_sorted_by_key(|key| u64::from(*key) & ((1 << bits) - 1)))
    } else {
        let wide: Vec<u64> = all.to_vec()?.into_iter().map(|key| u64::from(key) << (bits - 32)).collect();
        let wide = device.from_slice(&wide)?;
        let mut sorted = device.alloc_uninit::<u64>(n)?;
        let (seconds, ()) = making(session, device, || {
            // SAFETY: as above.
            unsafe { sort::sort_keys_async(&stream, wide.as_slice(), sorted.as_mut_slice(), by.clone())? };
            Ok(stream.synchronize()?)
        })?;
        (seconds, sorted.to_vec()?.is_sorted())
    };
    push(session, device, point.row("sort alone", n, seconds).by("radix sort", false), right);
    Ok(())
}

//! The same on a GPU (on the emulator: small sizes, for tests): lookups by the device's clock, as they wait for nothing;
//! everything else in wall-clock time as the caller sees it. Keys and answers are in device memory.

use warpset::bloom::SplitBlockBloom;
use warpset::bloom::gpu as bloom;
use warpset::gpu::{Device, DeviceSlice, DeviceSliceMut, DeviceVec, Stream};
use warpset::quotient::gpu::{LookupMethod, StandardQuotientFilter, UpdateMethod};
use warpset::quotient::{BuildMethod, Container, Duplicates, StandardBuilder, StandardQuotientFilter as HostFilter};

use super::super::clock::{Effort, median_seconds};
use super::super::gpu_limits::{self, GpuAccess};
use super::super::record::Record;
use super::super::suite::{Session, Setup, Step, Target, Threads};
use super::subject::{Kind, container_name, layout, row};
use super::{ABSENT, BATCH, COMMON_LOAD, INSERTED, Size, as_expected, keys, loads, updates};

/// The largest filter whose bytes are compared with those of the CPU.
const COMPARED: u32 = 24;

/// Filters of the paper's size, in the L2 cache, and beyond it.
fn sizes(device: &Device, effort: Effort) -> Vec<Size> {
    match (device.is_emulator(), effort) {
        (true, _) => vec![Size::of(9)],
        (_, Effort::Quick) => vec![Size::of(20)],
        (_, Effort::Standard) => vec![Size::PAPER],
        (_, Effort::Full) => vec![Size::PAPER, Size::of(26), Size::of(28)],
    }
}

/// The steps.
pub fn steps(setup: &Setup) -> Vec<Step> {
    let mut steps = Vec::new();
    for device in setup.devices() {
        let name = if device.is_emulator() { "emulator" } else { "GPU" };
        let loads = if device.is_emulator() { &[0.5, 0.9] } else { loads(setup.effort) };
        let asked = setup.log2_slots.filter(|_| !device.is_emulator()).map(|bits| vec![Size::of(bits)]);
        for size in asked.unwrap_or_else(|| sizes(device, setup.effort)) {
            let mut add = |what: &str, run: fn(&mut Session, &Device, Size, &'static [f64]) -> anyhow::Result<()>| {
                let device = device.clone();
                let title = format!("quotient: {what} on the {name}, {}", size.name());
                steps.push(Step::new(title, move |session| run(session, &device, size, loads)));
            };
            add("builds", builds);
            add("lookups", lookups);
            add("lookups by batch", lookups_by_batch);
            add("inserts and deletes", updates);
            add("inserts and deletes by batch", updates_by_batch);
            add("merging and resizing", merging);
        }
    }
    steps
}

/// A row measured on `device`.
fn push(session: &mut Session, device: &Device, mut row: Record, right: bool) {
    let what = row.operation.clone();
    row.checked = session.verify(right, || format!("{what} on the device, {:?}: wrong", row.params));
    session.push_on(&Target::Gpu(device.clone()), row, Threads::All);
}

/// Wall-clock time of `work`, which waits for its end.
fn wall<S>(
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
    median_seconds(
        session.effort,
        state,
        |state| {
            prepare(state)?;
            Ok(device.synchronize()?)
        },
        work,
    )
}

/// Keys of a stream, on the device.
fn upload(device: &Device, stream: u64, n: usize) -> anyhow::Result<DeviceVec<u32>> {
    Ok(device.from_slice(&keys(stream, n))?)
}

/// The host's filter, where it is small enough to be compared.
fn wanted(size: Size, build: impl FnOnce() -> anyhow::Result<HostFilter>) -> anyhow::Result<Option<HostFilter>> {
    if size.quotient_bits > COMPARED { Ok(None) } else { build().map(Some) }
}

/// Whether the filter has the bytes that are wanted; where they are not known, whether it contains the keys that must be
/// there and none of those that must not.
fn is_wanted(
    filter: &StandardQuotientFilter,
    wanted: Option<&HostFilter>,
    inside: &[&DeviceVec<u32>],
    outside: &[&DeviceVec<u32>],
) -> anyhow::Result<bool> {
    if let Some(wanted) = wanted {
        return Ok(filter.to_host()? == *wanted);
    }
    for keys in inside {
        if count(filter, keys.as_slice())? != keys.len() {
            return Ok(false);
        }
    }
    for keys in outside {
        if count(filter, keys.as_slice())? != 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// How many of the keys the filter claims to contain.
fn count(filter: &StandardQuotientFilter, keys: DeviceSlice<'_, u32>) -> anyhow::Result<usize> {
    let stream = filter.device().new_stream()?;
    filter.device().synchronize()?;
    let mut count = stream.alloc_zeroed::<u64>(1)?;
    // SAFETY: the filter, the keys and the count live, and nobody else uses them, until the stream has been waited for.
    unsafe { filter.count_contained_async(&stream, keys, count.as_mut_slice())? };
    stream.synchronize()?;
    Ok(count.to_vec()?[0] as usize)
}

/// The ways to build, by the names of their rows; those of the paper for packed slots.
fn build_methods(container: Container) -> Vec<(&'static str, BuildMethod)> {
    let name = |method: BuildMethod| match method {
        BuildMethod::Scan => "scan",
        BuildMethod::ParallelMerging => "parallel merging",
        BuildMethod::SequentialShifting => "sequential shifting",
        BuildMethod::SegmentedLayouts => "segmented layouts",
        BuildMethod::SuperclusterInserts => "supercluster inserts",
        _ => "another method",
    };
    let all = BuildMethod::ALL.map(|method| (name(method), method));
    if container == Container::Packed { all.into() } else { all[..1].into() }
}

fn builds(session: &mut Session, device: &Device, size: Size, loads: &'static [f64]) -> anyhow::Result<()> {
    for &load in loads {
        let n = size.keys(load);
        let keys = upload(device, INSERTED, n)?;
        for container in [Container::Packed, Container::Bytes] {
            for duplicates in [Duplicates::Dropped, Duplicates::Kept] {
                let layout = layout(size, container, duplicates)?;
                let wanted = wanted(size, || Ok(StandardBuilder::with_layout(layout).build_from(&keys.to_vec()?)?))?;
                for (name, method) in build_methods(container) {
                    let mut built = None;
                    let seconds = wall(
                        session,
                        device,
                        &mut built,
                        |built| {
                            *built = None;
                            Ok(())
                        },
                        |built| {
                            let keys = keys.as_slice();
                            *built = Some(
                                StandardBuilder::with_layout(layout).on(device).build_from_device_with(keys, method)?,
                            );
                            Ok(())
                        },
                    )?;
                    let Some(filter) = built else { continue };
                    let kept = if duplicates == Duplicates::Kept { "kept" } else { "dropped" };
                    let mut row = row("build over fill", "build", n, size, load, seconds).param("duplicates", kept);
                    row = row.param("variant", format!("{}, {name}", container_name(container)));
                    row.bits_per_item = Some(8.0 * filter.memory_bytes() as f64 / n as f64);
                    let right = is_wanted(&filter, wanted.as_ref(), &[&keys], &[])?;
                    push(session, device, row, right);
                }
            }
        }
        build_bloom(session, device, size, load, &keys)?;
    }
    Ok(())
}

/// Our Bloom filter for as many keys and the same rate, as the paper has one beside its own.
fn build_bloom(
    session: &mut Session,
    device: &Device,
    size: Size,
    load: f64,
    keys: &DeviceVec<u32>,
) -> anyhow::Result<()> {
    let mut filter = empty_bloom(device, size, keys.len())?;
    let stream = device.new_stream()?;
    let seconds = wall(
        session,
        device,
        &mut filter,
        |filter| Ok(filter.clear()?),
        |filter| {
            // SAFETY: the filter and the keys live, and nobody else uses them, until the stream has been waited for.
            unsafe { filter.insert_bulk_async(&stream, keys.as_slice())? };
            Ok(stream.synchronize()?)
        },
    )?;
    let mut row = Kind::Bloom.row("build over fill", "build", keys.len(), size, load, seconds);
    row.bits_per_item = Some(8.0 * filter.memory_bytes() as f64 / keys.len() as f64);
    let right = filter.count_contained(&keys.to_vec()?)? == keys.len();
    push(session, device, row, right);
    Ok(())
}

fn empty_bloom(device: &Device, size: Size, n: usize) -> anyhow::Result<bloom::SplitBlockBloom> {
    let fpr = 2f64.powi(-(size.remainder_bits as i32));
    let host = SplitBlockBloom::builder(n.max(1) as u64).fpr(fpr).build()?;
    Ok(bloom::SplitBlockBloom::from_host(device, &host)?)
}

/// Queues lookups of all keys.
type Ask<'a> = &'a dyn Fn(&Stream, DeviceSlice<'_, u32>, DeviceSliceMut<'_, u8>) -> anyhow::Result<()>;

/// The device's time for lookups of these keys, and how many answers were yes.
fn ask(
    session: &Session,
    device: &Device,
    keys: DeviceSlice<'_, u32>,
    answers: &mut DeviceVec<u8>,
    ask: Ask<'_>,
) -> anyhow::Result<(f64, usize)> {
    let stream = device.new_stream()?;
    let seconds = gpu_limits::seconds(
        device,
        &stream,
        session.effort,
        || Ok(()),
        || ask(&stream, keys, answers.slice_mut(..keys.len())),
    )?;
    stream.synchronize()?;
    let yes = answers.slice(..keys.len()).to_vec()?.into_iter().filter(|answer| *answer == 1).count();
    Ok((seconds, yes))
}

/// The question that `filter` is asked by this method.
fn ask_by(
    filter: &StandardQuotientFilter,
    method: LookupMethod,
) -> impl Fn(&Stream, DeviceSlice<'_, u32>, DeviceSliceMut<'_, u8>) -> anyhow::Result<()> {
    move |stream, keys, answers| {
        // SAFETY: filter, keys and answers live, and nobody else uses them, until `ask` has waited for the stream.
        unsafe { filter.contains_async_with(stream, keys, answers, method)? };
        Ok(())
    }
}

fn lookups(session: &mut Session, device: &Device, size: Size, loads: &'static [f64]) -> anyhow::Result<()> {
    for &load in loads {
        let n = size.keys(load);
        let (inserted, absent) = (upload(device, INSERTED, n)?, upload(device, ABSENT, n)?);
        let mut answers = device.alloc_uninit::<u8>(n)?;
        let limit = match device.is_emulator() {
            true => None,
            false => Some(session.gpu_limit(device, GpuAccess::Lookup, size.bytes())?),
        };
        // Both kinds of keys, and a row each; `fpr` where the filter says what it must be.
        let mut rows = |session: &mut Session, name: Row, bytes: u64, fpr: Option<f64>, question: Ask<'_>| {
            for (operation, keys) in [("contains hit", &inserted), ("contains miss", &absent)] {
                let (seconds, yes) = ask(session, device, keys.as_slice(), &mut answers, question)?;
                let mut row = match name {
                    Row::Variant(name) => {
                        row("lookup over fill", operation, n, size, load, seconds).param("variant", name)
                    }
                    Row::Kind(kind) => kind.row("lookup over fill", operation, n, size, load, seconds),
                };
                row.bits_per_item = Some(8.0 * bytes as f64 / n as f64);
                row.limit_fraction = row.items_per_second.zip(limit).map(|(rate, limit)| rate / limit);
                let right = if operation == "contains hit" {
                    yes == n
                } else {
                    row.fpr = Some(yes as f64 / n as f64);
                    let expected = fpr.map(|fpr| fpr * n as f64);
                    if let Some(expected) = expected {
                        row = row.param("expected", expected);
                    }
                    expected.is_none_or(|expected| as_expected(yes, expected))
                };
                push(session, device, row, right);
            }
            anyhow::Ok(())
        };
        let contenders = [
            (Container::Packed, "packed", LookupMethod::Unsorted),
            (Container::Packed, "packed, sorted", LookupMethod::Sorted),
            (Container::Bytes, "bytes", LookupMethod::Unsorted),
            (Container::Bytes, "bytes, sorted", LookupMethod::Sorted),
        ];
        for (container, name, method) in contenders {
            let layout = layout(size, container, Duplicates::Dropped)?;
            let filter = StandardBuilder::with_layout(layout).on(device).build_from_device(inserted.as_slice())?;
            let fpr = filter.len() as f64 / 2f64.powi(layout.fingerprint_bits() as i32);
            rows(session, Row::Variant(name), filter.memory_bytes(), Some(fpr), &ask_by(&filter, method))?;
        }
        let mut bloom = empty_bloom(device, size, n)?;
        bloom.insert_bulk(&inserted.to_vec()?)?;
        rows(session, Row::Kind(Kind::Bloom), bloom.memory_bytes(), None, &|stream, keys, answers| {
            // SAFETY: filter, keys and answers live, and nobody else uses them, until `ask` has waited for the stream.
            unsafe { bloom.contains_bytes_async(stream, keys, answers)? };
            Ok(())
        })?;
    }
    Ok(())
}

/// What a row of lookups is called by.
#[derive(Clone, Copy)]
enum Row {
    Variant(&'static str),
    Kind(Kind),
}

fn lookups_by_batch(session: &mut Session, device: &Device, size: Size, _: &'static [f64]) -> anyhow::Result<()> {
    let inserted = upload(device, INSERTED, size.keys(COMMON_LOAD))?;
    let layout = layout(size, Container::Packed, Duplicates::Dropped)?;
    let filter = StandardBuilder::with_layout(layout).on(device).build_from_device(inserted.as_slice())?;
    let mut answers = device.alloc_uninit::<u8>(inserted.len())?;
    let most = inserted.len();
    let batches = (8..32).step_by(2).map(|log| 1 << log).take_while(|batch| *batch < most).chain([most]);
    for batch in batches {
        for (name, method) in [("packed", LookupMethod::Unsorted), ("packed, sorted", LookupMethod::Sorted)] {
            let keys = inserted.slice(..batch);
            let (seconds, yes) = ask(session, device, keys, &mut answers, &ask_by(&filter, method))?;
            let row = row("lookup over batch", "contains hit", batch, size, COMMON_LOAD, seconds);
            push(session, device, row.param("variant", name), yes == batch);
        }
    }
    Ok(())
}

/// The methods of an update, by the names of their rows: what callers get that do not ask for one, then each.
const METHODS: [(&str, UpdateMethod); 4] = [
    ("automatic", UpdateMethod::Automatic),
    ("superclusters", UpdateMethod::Superclusters),
    ("in place", UpdateMethod::InPlace),
    ("rebuild", UpdateMethod::Rebuild),
];

/// A batch that comes to a filter, or goes.
#[derive(Clone, Copy, PartialEq)]
enum Change {
    Insert,
    Remove,
}

impl Change {
    fn name(self) -> &'static str {
        match self {
            Change::Insert => "insert",
            Change::Remove => "remove",
        }
    }
}

/// A batch, what it does, and what the filter then is.
struct Batch<'a> {
    change: Change,
    keys: &'a DeviceVec<u32>,
    wanted: Option<HostFilter>,
}

/// Both changes of a filter of `inserted`: `new` come, `old` go.
fn batches<'a>(
    size: Size,
    container: Container,
    inserted: &[u32],
    new: &'a DeviceVec<u32>,
    old: &'a DeviceVec<u32>,
) -> anyhow::Result<[Batch<'a>; 2]> {
    let layout = layout(size, container, Duplicates::Dropped)?;
    let grown =
        wanted(size, || Ok(StandardBuilder::with_layout(layout).build_from(&[inserted, &new.to_vec()?].concat())?))?;
    let less =
        wanted(size, || updates::rest(&StandardBuilder::with_layout(layout).build()?, inserted, &old.to_vec()?))?;
    Ok([
        Batch { change: Change::Insert, keys: new, wanted: grown },
        Batch { change: Change::Remove, keys: old, wanted: less },
    ])
}

/// Times a change of a filter of `inserted`, and says whether it was right.
fn change(
    session: &mut Session,
    device: &Device,
    (size, container, method): (Size, Container, UpdateMethod),
    inserted: &DeviceVec<u32>,
    batch: &Batch<'_>,
) -> anyhow::Result<(f64, bool)> {
    let layout = layout(size, container, Duplicates::Dropped)?;
    let build = || StandardBuilder::with_layout(layout).on(device).build_from_device(inserted.as_slice());
    let mut filter = build()?;
    let seconds = wall(
        session,
        device,
        &mut filter,
        |filter| {
            *filter = build()?;
            Ok(())
        },
        |filter| {
            match batch.change {
                Change::Insert => filter.insert_device_with(batch.keys.as_slice(), method)?,
                Change::Remove => filter.remove_device_with(batch.keys.as_slice(), method)?,
            };
            Ok(())
        },
    )?;
    let right = match batch.change {
        Change::Insert => is_wanted(&filter, batch.wanted.as_ref(), &[inserted, batch.keys], &[])?,
        Change::Remove => is_wanted(&filter, batch.wanted.as_ref(), &[], &[batch.keys])?,
    };
    Ok((seconds, right))
}

fn updates(session: &mut Session, device: &Device, size: Size, loads: &'static [f64]) -> anyhow::Result<()> {
    let new = upload(device, BATCH, size.batch())?;
    for &load in loads {
        let host = keys(INSERTED, size.keys(load));
        let step = (host.len() / new.len()).max(1);
        let old: Vec<u32> = host.iter().copied().step_by(step).take(new.len()).collect();
        let (inserted, old) = (device.from_slice(&host)?, device.from_slice(&old)?);
        for container in [Container::Packed, Container::Bytes] {
            let batches = batches(size, container, &host, &new, &old)?;
            // Slots of whole bytes by what callers get that do not ask for a method.
            let methods = if container == Container::Packed { &METHODS[..] } else { &METHODS[..1] };
            for (&(name, method), batch) in methods.iter().flat_map(|method| batches.iter().map(move |b| (method, b))) {
                let (seconds, right) = change(session, device, (size, container, method), &inserted, batch)?;
                let row = row("update over fill", batch.change.name(), batch.keys.len(), size, load, seconds);
                let variant = format!("{}, {name}", container_name(container));
                push(session, device, row.param("variant", variant), right);
            }
        }
    }
    Ok(())
}

fn updates_by_batch(session: &mut Session, device: &Device, size: Size, _: &'static [f64]) -> anyhow::Result<()> {
    let host = keys(INSERTED, size.keys(COMMON_LOAD));
    let inserted = device.from_slice(&host)?;
    let most = 2_000_000.min(size.keys(0.24));
    let sizes = [1000, 10_000, 50_000, 100_000, 200_000, 400_000, 1_000_000];
    for n in sizes.into_iter().take_while(|batch| *batch < most).chain([most]) {
        let (new, old) = (upload(device, BATCH, n)?, device.from_slice(&host[..n.min(host.len())])?);
        let batches = batches(size, Container::Packed, &host, &new, &old)?;
        for (&(name, method), batch) in METHODS.iter().flat_map(|method| batches.iter().map(move |b| (method, b))) {
            let (seconds, right) = change(session, device, (size, Container::Packed, method), &inserted, batch)?;
            let row = row("insert over batch", batch.change.name(), batch.keys.len(), size, COMMON_LOAD, seconds);
            push(session, device, row.param("variant", format!("packed, {name}")), right);
        }
    }
    Ok(())
}

fn merging(session: &mut Session, device: &Device, size: Size, _: &'static [f64]) -> anyhow::Result<()> {
    let all = upload(device, INSERTED, size.keys(COMMON_LOAD))?;
    let middle = all.len() / 2;
    for container in [Container::Packed, Container::Bytes] {
        let layout = layout(size, container, Duplicates::Dropped)?;
        let build =
            |keys: DeviceSlice<'_, u32>| StandardBuilder::with_layout(layout).on(device).build_from_device(keys);
        let high = build(all.slice(middle..))?;
        let mut filter = build(all.slice(..middle))?;
        let seconds = wall(
            session,
            device,
            &mut filter,
            |filter| {
                *filter = build(all.slice(..middle))?;
                Ok(())
            },
            |filter| Ok(filter.merge(&high)?),
        )?;
        let variant = container_name(container);
        let whole = wanted(size, || Ok(StandardBuilder::with_layout(layout).build_from(&all.to_vec()?)?))?;
        let (items, right) = (filter.len() as usize, is_wanted(&filter, whole.as_ref(), &[&all], &[])?);
        let row = super::whole::row("merge", items, size, COMMON_LOAD, seconds).param("variant", variant);
        push(session, device, row, right);

        let mut doubled = None;
        let resize = |doubled: &mut Option<StandardQuotientFilter>| {
            *doubled = Some(filter.resized(size.quotient_bits + 1)?);
            Ok(())
        };
        let seconds = wall(session, device, &mut doubled, |_| Ok(()), resize)?;
        let Some(doubled) = doubled else { continue };
        let right = match size.quotient_bits > COMPARED {
            true => count(&doubled, all.as_slice())? == all.len(),
            false => doubled.to_host()? == filter.to_host()?.resized(size.quotient_bits + 1)?,
        };
        let row = super::whole::row("double", items, size, COMMON_LOAD, seconds).param("variant", variant);
        push(session, device, row, right);
    }
    Ok(())
}

//! The filters on a GPU (or, for small sizes, on the emulator): keys and answers stay in device memory, times are the
//! device's own.

use std::cell::RefCell;

use warpset::bloom::gpu::{Bloom, DeviceKeys, DeviceLayout};
use warpset::bloom::{BlockedLayout, BloomFilter, Builder, Insert, RaoLayout, SplitBlockLayout, cpu};
use warpset::gpu::{Device, DeviceSlice, DeviceSliceMut, DeviceVec, Stream};
use warpset::prelude::DeviceFilter;
use warpset_kernels::limits;
use warpset_simt::LaunchConfig;

use super::forms;
use super::variant::{self, Variant};
use super::{ABSENT, BITS_PER_KEY, INSERTED, plausible};
use bench_frame::clock::{Effort, median_seconds};
use bench_frame::gpu_limits::{self, GpuAccess};
use bench_frame::suite::{Session, Setup, Step, Target, Threads};
use bench_frame::table;
use bench_record::Record;

/// The largest filter whose bytes are compared with those of the CPU.
const COMPARED: usize = 1 << 26;
/// The most keys to insert, and to look up.
const MOST: usize = 1 << 31;
const ASKED: usize = 1 << 27;
/// Filters beyond it are inserted into and asked, no more: there is no room for another.
const LARGE: usize = 1 << 33;

/// Returns filter sizes: in the L2 cache, beyond it; the emulator gets a size for a test.
fn sizes(device: &Device, effort: Effort) -> &'static [usize] {
    match (device.is_emulator(), effort) {
        (true, _) => &[1 << 12],
        (_, Effort::Quick) => &[1 << 23, 1 << 25, 1 << 28],
        (_, Effort::Standard) => &[1 << 20, 1 << 23, 1 << 25, 1 << 27, 1 << 28, 1 << 30],
        (_, Effort::Full) => &[1 << 20, 1 << 23, 1 << 25, 1 << 26, 1 << 27, 1 << 28, 1 << 30, 1 << 32],
    }
}

/// Makes one step per filter size and variant for each device.
pub fn steps(setup: &Setup) -> Vec<Step> {
    let mut steps = Vec::new();
    for device in setup.devices() {
        let name = if device.is_emulator() { "emulator" } else { "GPU" };
        let mut add = |variant: Variant, bytes: usize| {
            let title = format!("bloom: {} on the {name}, {}", variant.name(), table::bytes(bytes as f64));
            let device = device.clone();
            steps.push(Step::new(title, move |session| match variant {
                Variant::SplitBlock => measure(session, &device, variant, variant::split_block(bytes)?),
                Variant::Blocked(block, word, hashes) => {
                    measure(session, &device, variant, variant::blocked(bytes, block, word, hashes)?)
                }
                Variant::Rao(choices) => measure(session, &device, variant, variant::rao_of_size(bytes, choices)?),
            }));
        };
        for &bytes in sizes(device, setup.effort) {
            Variant::for_devices(setup.effort).into_iter().for_each(|variant| add(variant, bytes));
        }
        if setup.effort == Effort::Full && !device.is_emulator() {
            // More than 2^32 blocks.
            add(Variant::Blocked(64, 64, 4), 40 << 30);
        }
        steps.extend(forms::steps(device, setup.effort));
    }
    steps
}

/// Changes of filters by keys in device memory, queued. (That Rao's filter did not overflow shows in the keys that it
/// holds.)
pub trait Queued: DeviceLayout + Copy + PartialEq {
    /// Inserts `keys`.
    ///
    /// # Safety
    /// Until `stream` has been waited for, filter and keys stay alive, and no other work touches them.
    unsafe fn insert<K: DeviceKeys>(filter: &mut Bloom<Self>, stream: &Stream, keys: K) -> anyhow::Result<()>;

    /// Inserts `keys` and says which were new.
    ///
    /// # Safety
    /// Until `stream` has been waited for, filter, keys and `new` stay alive, and no other work touches them.
    unsafe fn test_and_insert(
        filter: &mut Bloom<Self>,
        stream: &Stream,
        keys: DeviceSlice<'_, u64>,
        new: DeviceSliceMut<'_, u8>,
    ) -> anyhow::Result<()>;

    /// Inserts `keys` and waits.
    fn insert_waiting(filter: &mut Bloom<Self>, keys: DeviceSlice<'_, u64>) -> anyhow::Result<()>;
}

macro_rules! queued {
    ($($layout:ty),*) => {$(
        impl Queued for $layout {
            unsafe fn insert<K: DeviceKeys>(filter: &mut Bloom<Self>, stream: &Stream, keys: K) -> anyhow::Result<()> {
                // SAFETY: the caller's promise.
                let _ = unsafe { filter.insert_async(stream, keys)? };
                Ok(())
            }

            unsafe fn test_and_insert(
                filter: &mut Bloom<Self>,
                stream: &Stream,
                keys: DeviceSlice<'_, u64>,
                new: DeviceSliceMut<'_, u8>,
            ) -> anyhow::Result<()> {
                // SAFETY: the caller's promise.
                let _ = unsafe { filter.test_and_insert_async(stream, keys, new)? };
                Ok(())
            }

            fn insert_waiting(filter: &mut Bloom<Self>, keys: DeviceSlice<'_, u64>) -> anyhow::Result<()> {
                Ok(filter.insert_device(keys)?)
            }
        }
    )*};
}
queued!(SplitBlockLayout, BlockedLayout, RaoLayout);

/// A filter on a device, with the parameters of its rows.
pub struct OnDevice<L: Queued> {
    pub device: Device,
    pub stream: Stream,
    pub variant: Variant,
    pub filter: Bloom<L>,
    /// Keys that it is measured with.
    pub n: usize,
    study: Option<&'static str>,
}

impl<L: Queued> OnDevice<L> {
    /// Makes an empty filter.
    pub fn new(device: &Device, variant: Variant, layout: L, study: Option<&'static str>) -> anyhow::Result<Self> {
        let filter = Builder::with_layout(layout).on(device).build()?;
        let n = (filter.memory_bytes() as usize * 8 / BITS_PER_KEY).min(MOST);
        Ok(Self { device: device.clone(), stream: device.new_stream()?, variant, filter, n, study })
    }

    /// Makes a row of an operation on `n` keys.
    pub fn row(&self, operation: &str, n: usize, seconds: f64) -> Record {
        let bytes = self.filter.memory_bytes();
        let row = Record::new("bloom", operation, n).time(seconds).by(self.variant.name(), false);
        let row = row.param("input", "generated").param("key", "u64").param("filter_bytes", bytes);
        let mut row = row.param("hashes", self.filter.layout().hashes());
        if let Some(study) = self.study {
            row = row.param("study", study);
        }
        row.bits_per_item = Some(8.0 * bytes as f64 / self.n as f64);
        row
    }

    /// Adds a row; `limit` is the largest rate that the device reaches.
    pub fn push(&self, session: &mut Session, mut row: Record, limit: Option<f64>, right: bool) {
        row.limit_fraction = row.items_per_second.zip(limit).map(|(rate, limit)| rate / limit);
        session.add(&Target::Gpu(self.device.clone()), Threads::All, row, right);
    }

    /// Counts the `keys` that the filter claims to contain.
    pub fn count(&self, keys: &DeviceVec<u64>) -> anyhow::Result<usize> {
        Ok(self.filter.count_contained_device(keys.as_slice())?)
    }

    /// Measures, on the device's clock, the work that `work` queues, into a filter that is `emptied` before each repeat
    /// or stays unchanged.
    ///
    /// `work` may rely on this: no other work touches the filter until the stream has been waited for.
    pub fn seconds(
        &mut self,
        effort: Effort,
        emptied: bool,
        mut work: impl FnMut(&mut Bloom<L>, &Stream) -> anyhow::Result<()>,
    ) -> anyhow::Result<f64> {
        let (filter, stream) = (RefCell::new(&mut self.filter), &self.stream);
        let prepare = || {
            if emptied {
                // SAFETY: the filter stays alive, and only this stream uses it until it has been waited for.
                unsafe { filter.borrow_mut().clear_async(stream)? };
            }
            Ok(())
        };
        let seconds =
            gpu_limits::seconds(&self.device, stream, effort, prepare, || work(&mut filter.borrow_mut(), stream))?;
        stream.synchronize()?;
        Ok(seconds)
    }

    /// Generates the first keys of a stream on the device.
    pub fn keys(&self, number: u64, n: usize) -> anyhow::Result<DeviceVec<u64>> {
        let mut keys = self.device.alloc_uninit::<u64>(n)?;
        let config = LaunchConfig::new(self.device.properties().multiprocessors * 16, limits::BLOCK);
        // SAFETY: there is room for `n` keys, and the stream is waited for before anything else touches them.
        unsafe {
            limits::limits_generate_keys { keys: keys.global_mut(), n, first: number << 40 }
                .launch(&self.stream, config)?
        };
        self.stream.synchronize()?;
        Ok(keys)
    }
}

fn measure<L: Queued>(session: &mut Session, device: &Device, variant: Variant, layout: L) -> anyhow::Result<()>
where
    cpu::Bloom<L>: BloomFilter<Layout = L>,
{
    let bytes = 4 * layout.words() as usize;
    let mut subject = OnDevice::new(device, variant, layout, None)?;
    if bytes > LARGE {
        subject.n = 1 << 28;
    }
    let (n, effort) = (subject.n, session.effort);
    let limits = Limits::of(session, device, bytes)?;
    let keys = subject.keys(INSERTED, n)?;

    // SAFETY: the keys live to the end, and nothing else touches them; `seconds` says the rest.
    let work = |filter: &mut Bloom<L>, stream: &Stream| unsafe { L::insert(filter, stream, keys.as_slice()) };
    let seconds = subject.seconds(effort, true, work)?;
    let mut right = subject.count(&keys)? == n;
    if bytes <= COMPARED {
        let mut host = Builder::with_layout(layout).build()?;
        Insert::insert_bulk(&mut host, &keys.to_vec()?)?;
        right &= subject.filter.to_host()?.words() == host.words();
    }
    // Rao's filter does not group.
    let limit = if let Variant::Rao(_) = variant { limits.atomics } else { limits.inserts };
    subject.push(session, subject.row("insert", n, seconds), limit, right);
    if let Variant::Rao(_) = variant {
        let clear = |filter: &mut Bloom<L>| Ok(filter.clear()?);
        let wait = |filter: &mut Bloom<L>| L::insert_waiting(filter, keys.as_slice());
        let seconds = median_seconds(effort, &mut subject.filter, clear, wait)?;
        let right = subject.count(&keys)? == n;
        subject.push(session, subject.row("insert, waiting", n, seconds), limits.atomics, right);
    }
    contains(session, &mut subject, &keys, limits.lookups)?;
    if bytes <= LARGE {
        test_and_insert(session, &mut subject, &keys, &limits)?;
        union(session, &mut subject, &keys, limits.copies)?;
    }
    Ok(())
}

fn contains<L: Queued>(
    session: &mut Session,
    subject: &mut OnDevice<L>,
    keys: &DeviceVec<u64>,
    limit: Option<f64>,
) -> anyhow::Result<()> {
    let asked = keys.len().clamp(1 << 10, ASKED);
    let absent = subject.keys(ABSENT, asked)?;
    let mut answers = subject.device.alloc_uninit::<u8>(asked)?;
    for (operation, keys) in [("contains hit", keys), ("contains miss", &absent)] {
        let asked = keys.len().min(asked);
        let keys = keys.slice(..asked);
        let seconds = subject.seconds(session.effort, false, |filter, stream| {
            // SAFETY: keys and answers live to the end, and nothing else touches them; `seconds` says the rest.
            unsafe { filter.contains_async(stream, keys, answers.slice_mut(..asked))? };
            Ok(())
        })?;
        let yes = subject.filter.count_contained_device(keys)?;
        let sample = answers.slice(..asked.min(1 << 24)).to_vec()?;
        let in_sample = sample.iter().filter(|answer| **answer == 1).count();
        let mut row = subject.row(operation, asked, seconds);
        let right = if operation == "contains hit" {
            yes == asked && in_sample == sample.len()
        } else {
            row.fpr = Some(yes as f64 / asked as f64);
            let theory = subject.filter.expected_fpr(subject.n as u64);
            plausible(yes, theory * asked as f64) && plausible(in_sample, theory * sample.len() as f64)
        };
        subject.push(session, row, limit, right);
    }
    Ok(())
}

/// The limits of one filter size; none for the emulator, which is not about speed, and none where there is no room.
struct Limits {
    lookups: Option<f64>,
    /// For changes at random addresses.
    atomics: Option<f64>,
    /// For insertions: `atomics`, except for insertions that group their hashes first: these changes hit the cache.
    inserts: Option<f64>,
    copies: Option<f64>,
}

impl Limits {
    fn of(session: &mut Session, device: &Device, bytes: usize) -> anyhow::Result<Self> {
        if device.is_emulator() || bytes > LARGE {
            return Ok(Self { lookups: None, atomics: None, inserts: None, copies: None });
        }
        session.gpu_limit(device, GpuAccess::Integer, 0)?;
        let atomics = session.gpu_limit(device, GpuAccess::AtomicOr, bytes)?;
        Ok(Self {
            lookups: Some(session.gpu_limit(device, GpuAccess::Lookup, bytes)?),
            atomics: Some(atomics),
            inserts: (bytes <= device.properties().l2_bytes).then_some(atomics),
            copies: Some(session.gpu_limit(device, GpuAccess::Copy, bytes)?),
        })
    }
}

fn test_and_insert<L: Queued>(
    session: &mut Session,
    subject: &mut OnDevice<L>,
    keys: &DeviceVec<u64>,
    limits: &Limits,
) -> anyhow::Result<()> {
    // One batch: then each distinct key is new, none hidden by a false positive.
    let n = keys.len().min(warpset::bloom::TEST_AND_INSERT_BATCH);
    let mut answers = subject.device.alloc_uninit::<u8>(n)?;
    for (operation, emptied, wanted, limit) in [
        ("test_and_insert", true, n, limits.atomics),
        // Keys that are there change nothing.
        ("test_and_insert, none new", false, 0, limits.lookups),
    ] {
        let seconds = subject.seconds(session.effort, emptied, |filter, stream| {
            // SAFETY: as for lookups.
            unsafe { L::test_and_insert(filter, stream, keys.slice(..n), answers.as_mut_slice()) }
        })?;
        let new = answers.to_vec()?.iter().filter(|new| **new == 1).count();
        subject.push(session, subject.row(operation, n, seconds), limit, new == wanted);
    }
    Ok(())
}

/// Measures a union, and checks that the union of two halves is the whole.
fn union<L: Queued>(
    session: &mut Session,
    subject: &mut OnDevice<L>,
    keys: &DeviceVec<u64>,
    copies: Option<f64>,
) -> anyhow::Result<()> {
    let layout = *subject.filter.layout();
    let half = |keys| {
        let mut filter = Builder::with_layout(layout).on(&subject.device).build()?;
        L::insert_waiting(&mut filter, keys)?;
        anyhow::Ok(filter)
    };
    let middle = keys.len() / 2;
    let (mut low, high) = (half(keys.slice(..middle))?, half(keys.slice(middle..))?);
    // The method waits, so the host's clock includes one launch and one wait.
    let seconds = median_seconds(session.effort, &mut low, |_| Ok(()), |low| Ok(low.merge(&high)?))?;
    subject.filter.clear()?;
    L::insert_waiting(&mut subject.filter, keys.as_slice())?;
    let mut right = low.to_host()?.words() == subject.filter.to_host()?.words();
    if let Variant::Rao(2) = subject.variant {
        // With two choices a key may take one in a half and the other in the whole: only the answers must be right.
        subject.filter = low;
        right = subject.count(keys)? == keys.len();
    }
    // Two reads and a write for each byte, where a copy of 16 bytes is a read and a write.
    let bytes = subject.filter.memory_bytes() as f64;
    let limit = copies.map(|copies| 16.0 * copies / 1.5 / bytes * keys.len() as f64);
    subject.push(session, subject.row("union", keys.len(), seconds), limit, right);
    Ok(())
}

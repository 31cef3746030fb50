//! Lookups on a GPU: functions and static filters that fit the L2 cache, and ones that do not. Keys and answers are in
//! device memory and times are the device's own, but for host slices, which are timed as the caller sees them; the
//! host's batches in the same run are the peer. The limit is that of one random sector per key over as much memory.

use std::time::Instant;

use bench_frame::input::keys::KeySpace;
use warpset::gpu::{Device, DeviceVec};
use warpset::prelude::DeviceFilter;
use warpset_mphf::gpu::DeviceHashKind;
use warpset_mphf::{HashKind, Method, Placement, RecSplitKind, gpu};

use super::SEED;
use super::ours::Settings;
use bench_frame::clock::Effort;
use bench_frame::gpu_limits::{self, GpuAccess};
use bench_frame::suite::{Session, Setup, Step, Target, Threads};
use bench_record::Record;

/// Bits of the fingerprints.
const WIDTH: u32 = 8;

/// Returns shapes: small and large trees.
fn shapes(device: &Device) -> Vec<Settings> {
    let of = |leaf, bucket| Settings::new(leaf, bucket, Method::Grouped);
    if device.is_emulator() { vec![of(5, 50)] } else { vec![of(8, 100), of(14, 50), of(8, 2000), of(16, 2000)] }
}

/// Returns numbers of keys: functions within the L2 cache, and larger ones.
fn sizes(device: &Device, effort: Effort) -> &'static [usize] {
    match effort {
        _ if device.is_emulator() => &[2_000],
        Effort::Quick => &[10_000_000],
        Effort::Standard => &[10_000_000, 300_000_000],
        Effort::Full => &[1_000_000, 10_000_000, 100_000_000, 1_000_000_000],
    }
}

/// Makes the steps.
pub fn steps(setup: &Setup, chosen: &[Settings]) -> Vec<Step> {
    let mut steps = Vec::new();
    for device in setup.devices() {
        for &n in sizes(device, setup.effort) {
            let device = device.clone();
            let title = format!("recsplit: lookups on a device, placement, {n} keys");
            steps.push(Step::new(title, move |session| placement(session, &device, n)));
        }
        let asked = chosen.to_vec();
        for settings in if asked.is_empty() { shapes(device) } else { asked } {
            for &n in sizes(device, setup.effort) {
                let device = device.clone();
                let place = if device.is_emulator() { "emulator" } else { "GPU" };
                let Settings { leaf, bucket, .. } = settings;
                let title = format!("recsplit: lookups on the {place}, leaf {leaf}, bucket {bucket}, {n} keys");
                steps.push(Step::new(title, move |session| run(session, &device, settings, n)));
            }
        }
    }
    steps
}

/// Common parameters of the rows of one function or filter.
struct Rows<'d> {
    device: &'d Device,
    /// Shape of splitting trees; none for placement.
    settings: Option<Settings>,
    /// Number of keys, and bits per key.
    keys: usize,
    bits: f64,
    /// Random sectors per second over as much memory.
    limit: f64,
}

impl Rows<'_> {
    fn name(&self) -> String {
        self.settings.map_or("placement".into(), |settings| settings.name().to_string())
    }

    fn record(&self, operation: &str, asked: usize) -> Record {
        let row =
            Record::new("recsplit", operation, asked).param("study", "lookups on a device").param("keys", self.keys);
        match self.settings {
            Some(Settings { leaf, bucket, .. }) => row.param("leaf", leaf).param("bucket", bucket),
            None => row,
        }
    }

    fn add(&self, session: &mut Session, operation: &str, asked: usize, seconds: f64, right: bool) {
        let mut row = self.record(operation, asked).by(self.name(), false).time(seconds);
        row.bits_per_item = Some(self.bits);
        row.limit_fraction = row.items_per_second.map(|rate| rate / self.limit);
        session.add(&Target::Gpu(self.device.clone()), Threads::All, row, right);
    }
}

/// Returns random keys of the present ones.
fn random_order(keys: &[u64], asked: usize) -> Vec<u64> {
    let places = KeySpace::new(SEED).stream(1).u64_keys(asked);
    places.iter().map(|&place| keys[((u128::from(place) * keys.len() as u128) >> 64) as usize]).collect()
}

fn run(session: &mut Session, device: &Device, settings: Settings, n: usize) -> anyhow::Result<()> {
    let keys = KeySpace::new(SEED).stream(0).u64_keys(n);
    let asked = random_order(&keys, if device.is_emulator() { 1_000 } else { 1 << 26 });
    // Built there, which `device_build` checks against the host: the host takes a minute for the largest.
    let function = settings.builder().on(device).build_from(&keys)?;
    let there = functions(session, device, Some(settings), &function, &asked)?;
    drop(function);
    let filter = settings.filter_builder(WIDTH).on(device).build_from(&keys)?;
    filters(session, device, settings, &filter, &there)
}

/// Measures placement, which the host builds.
fn placement(session: &mut Session, device: &Device, n: usize) -> anyhow::Result<()> {
    let keys = KeySpace::new(SEED).stream(0).u64_keys(n);
    let asked = random_order(&keys, if device.is_emulator() { 1_000 } else { 1 << 26 });
    let function = Placement::builder().build_from(&keys)?.to_device(device)?;
    functions(session, device, None, &function, &asked).map(drop)
}

/// Measures a function, and returns the keys in device memory.
fn functions<K: HashKind + DeviceHashKind>(
    session: &mut Session,
    device: &Device,
    settings: Option<Settings>,
    function: &gpu::PerfectHash<K>,
    asked: &[u64],
) -> anyhow::Result<DeviceVec<u64>> {
    let (on_host, there, stream) = (function.to_host()?, device.from_slice(asked)?, device.new_stream()?);
    let expected = on_host.get_bulk(asked);
    let (effort, n) = (session.effort, function.len() as usize);
    let (bytes, bits) = (function.memory_bytes() as usize, function.bits_per_key());
    let limit = session.gpu_limit(device, GpuAccess::Lookup, bytes.next_power_of_two().max(1 << 12))?;
    let rows = Rows { device, settings, keys: n, bits, limit };

    let mut wide: DeviceVec<u64> = device.alloc_uninit(asked.len())?;
    // SAFETY: all memory lives until the stream has been waited for, and nothing else uses it.
    let queue = || unsafe { Ok(function.get_async(&stream, there.as_slice(), wide.as_mut_slice())?) };
    let seconds = gpu_limits::repeated(device, &stream, effort, queue)?;
    rows.add(session, "get", asked.len(), seconds, wide.to_vec()? == expected);

    let mut narrow: DeviceVec<u32> = device.alloc_uninit(asked.len())?;
    // SAFETY: as above.
    let queue = || unsafe { Ok(function.get_async(&stream, there.as_slice(), narrow.as_mut_slice())?) };
    let seconds = gpu_limits::repeated(device, &stream, effort, queue)?;
    let right = narrow.to_vec()?.iter().zip(&expected).all(|(&number, &expected)| u64::from(number) == expected);
    rows.add(session, "get u32", asked.len(), seconds, right);

    let table: Vec<u32> = (0..n as u32).map(|i| i.wrapping_mul(0x9e37_79b1)).collect();
    let table = device.from_slice(&table)?;
    // SAFETY: as above.
    let queue =
        || unsafe { Ok(function.gather_async(&stream, there.as_slice(), table.as_slice(), narrow.as_mut_slice())?) };
    let seconds = gpu_limits::repeated(device, &stream, effort, queue)?;
    let right =
        narrow.to_vec()?.iter().zip(&expected).all(|(&v, &number)| v == (number as u32).wrapping_mul(0x9e37_79b1));
    rows.add(session, "gather u32", asked.len(), seconds, right);

    let mut numbers = vec![0u64; asked.len()];
    let seconds = fastest(effort, || Ok(function.get_bulk_into(asked, &mut numbers)?))?;
    rows.add(session, "get from host slices", asked.len(), seconds, numbers == expected);
    let seconds = fastest(effort, || Ok(on_host.get_bulk_into(asked, &mut numbers)?))?;
    let row = rows.record("get", asked.len()).time(seconds);
    session.add(&Target::Cpu, Threads::All, row.by(format!("{} on the CPU, in batches", rows.name()), true), true);
    Ok(there)
}

/// Measures a static filter of the same keys with members and others.
fn filters(
    session: &mut Session,
    device: &Device,
    settings: Settings,
    filter: &gpu::StaticFilter<RecSplitKind>,
    present: &DeviceVec<u64>,
) -> anyhow::Result<()> {
    let n = present.len();
    let absent = device.from_slice(&KeySpace::new(SEED).stream(2).u64_keys(n))?;
    let stream = device.new_stream()?;
    let bytes = (filter.memory_bytes() as usize).next_power_of_two().max(1 << 12);
    let limit = session.gpu_limit(device, GpuAccess::Lookup, bytes)?;
    let rows =
        Rows { device, settings: Some(settings), keys: filter.len() as usize, bits: filter.bits_per_key(), limit };
    let mut answers: DeviceVec<u8> = device.alloc_uninit(n)?;
    for (name, keys, expected) in [("contains, members", present, 1.0), ("contains, others", &absent, filter.fpr())] {
        // SAFETY: all memory lives until the stream has been waited for, and nothing else uses it.
        let queue = || unsafe { Ok(filter.contains_async(&stream, keys.as_slice(), answers.as_mut_slice())?) };
        let seconds = gpu_limits::repeated(device, &stream, session.effort, queue)?;
        let passed = answers.to_vec()?.iter().filter(|&&answer| answer == 1).count() as f64 / n as f64;
        let right = (passed - expected).abs() <= if expected == 1.0 { 0.0 } else { 0.02 };
        rows.add(session, name, n, seconds, right);
    }
    Ok(())
}

/// Returns the shortest of a few times, as the caller sees them.
fn fastest(effort: Effort, mut work: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..if effort == Effort::Quick { 3 } else { 5 } {
        let start = Instant::now();
        work()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best)
}

//! On a GPU (or, for small sizes, on the emulator): keys and answers in device memory, times the device's own, but for
//! builds, which are timed as the caller sees them. Beside it, an open-addressing table with a slot of eight bytes for
//! half a key: twice the memory.

use std::time::Instant;

use papers_kernels::open_addressing::{self, FREE, WINDOW, open_addressing_contains, open_addressing_insert};
use warpset::gpu::{Device, DeviceSlice, DeviceVec, LaunchConfig, Stream};
use warpset::prelude::DeviceFilter;
use warpset::static_sets::{StaticMap, StaticSet};
use warpset_kernels::limits::{self, limits_generate_keys};

use super::{ABSENT, PRESENT, row};
use bench_frame::clock::{self, Effort};
use bench_frame::gpu_limits::{self, GpuAccess};
use bench_frame::suite::{Session, Step, Target, Threads};
use bench_record::Record;

/// Name of the peer.
const PEER: &str = "open addressing, half load";
/// Number of lookups.
const ASKED: usize = 1 << 26;

/// Returns numbers of keys: sets within the L2 cache, and larger ones.
pub fn sizes(device: &Device, effort: Effort) -> &'static [usize] {
    match (device.is_emulator(), effort) {
        (true, _) => &[2_000],
        (_, Effort::Quick) => &[2_000_000, 100_000_000],
        (_, Effort::Standard) => &[2_000_000, 10_000_000, 100_000_000],
        (_, Effort::Full) => &[2_000_000, 10_000_000, 100_000_000, 1_000_000_000],
    }
}

/// Makes the step of one size.
pub fn step(device: Device, n: usize) -> Step {
    let place = if device.is_emulator() { "emulator" } else { "GPU" };
    Step::new(format!("static: exact sets on the {place}, {n} keys"), move |session| run(session, &device, n))
}

/// Generates the first keys of a stream on the device.
pub(super) fn keys(device: &Device, number: u64, n: usize) -> anyhow::Result<DeviceVec<u64>> {
    let mut keys = device.alloc_uninit::<u64>(n)?;
    let config = LaunchConfig::new(device.properties().multiprocessors * 16, limits::BLOCK);
    let stream = device.new_stream()?;
    // SAFETY: there is room for `n` keys, and the stream is waited for before anything else touches them.
    unsafe { limits_generate_keys { keys: keys.global_mut(), n, first: number << 40 }.launch(&stream, config)? };
    stream.synchronize()?;
    Ok(keys)
}

/// Returns the median time of calls that wait, as the caller sees them, and the last result.
pub(super) fn waited<T>(
    device: &Device,
    effort: Effort,
    mut call: impl FnMut() -> anyhow::Result<T>,
) -> anyhow::Result<(f64, T)> {
    let repeats = if device.is_emulator() {
        1
    } else if effort == Effort::Quick {
        3
    } else {
        5
    };
    let mut times = Vec::new();
    let mut made = call()?;
    for _ in 0..repeats {
        drop(made);
        device.synchronize()?;
        let start = Instant::now();
        made = call()?;
        times.push(start.elapsed().as_secs_f64());
    }
    Ok((clock::median(&mut times), made))
}

/// Common parameters of the rows of one size.
struct Rows<'d> {
    device: &'d Device,
    keys: usize,
    /// Random sectors per second over as much memory as our set takes.
    limit: f64,
}

impl Rows<'_> {
    fn add(&self, session: &mut Session, row: Record, bits: f64, limited: bool, right: bool) {
        let mut row = row;
        row.bits_per_item = Some(bits);
        if limited {
            row.limit_fraction = row.items_per_second.map(|rate| rate / self.limit);
        }
        session.add(&Target::Gpu(self.device.clone()), Threads::All, row, right);
    }

    fn row(&self, operation: &str, n: usize, seconds: f64) -> Record {
        row(operation, n, self.keys, "u64", seconds)
    }
}

fn run(session: &mut Session, device: &Device, n: usize) -> anyhow::Result<()> {
    let present = keys(device, PRESENT, n)?;
    let absent = keys(device, ABSENT, n)?;
    let (effort, stream) = (session.effort, device.new_stream()?);
    let builder = StaticSet::<u64>::builder().on(device);
    let (seconds, set) = waited(device, effort, || Ok(builder.build_from_device(present.as_slice())?))?;
    let bytes = set.memory_bytes() as usize;
    let limit = session.gpu_limit(device, GpuAccess::Lookup, bytes.next_power_of_two().max(1 << 12))?;
    let rows = Rows { device, keys: n, limit };
    let right = set.len() == n as u64 && set.count_contained_device(present.as_slice())? == n;
    let bits = set.bits_per_key();
    rows.add(session, rows.row("build", n, seconds).by("exact set", false), bits, false, right);
    let (hits, misses) = (questions(&stream, &present)?, questions(&stream, &absent)?);
    let asked = hits.len();
    let mut answers: DeviceVec<u8> = device.alloc_uninit(asked)?;
    for (operation, keys, each) in [("contains hit", &hits, 1), ("contains miss", &misses, 0)] {
        // SAFETY: all memory lives until the stream has been waited for, and nothing else uses it.
        let queue = || unsafe { Ok(set.contains_async(&stream, keys.as_slice(), answers.as_mut_slice())?) };
        let seconds = gpu_limits::repeated(device, &stream, effort, queue)?;
        let right = all_are(&answers, each)?;
        rows.add(session, rows.row(operation, asked, seconds).by("exact set", false), bits, true, right);
    }
    drop(set);
    map(session, &rows, &stream, present.as_slice())?;
    open_addressing(session, &rows, &stream, &present, [&hits, &misses], &mut answers)
}

/// Returns the keys to look up. Keys of a small set are repeated, so that a launch is long enough to be timed.
fn questions(stream: &Stream, keys: &DeviceVec<u64>) -> anyhow::Result<DeviceVec<u64>> {
    let device = keys.device();
    let n = if device.is_emulator() { keys.len() } else { keys.len().next_multiple_of(ASKED).min(ASKED) };
    let mut questions = device.alloc_uninit::<u64>(n)?;
    let mut first = 0;
    while first < n {
        let len = keys.len().min(n - first);
        stream.copy(questions.slice_mut(first..first + len), keys.slice(..len))?;
        first += len;
    }
    stream.synchronize()?;
    Ok(questions)
}

fn all_are(answers: &DeviceVec<u8>, each: u8) -> anyhow::Result<bool> {
    Ok(answers.to_vec()?.iter().all(|&answer| answer == each))
}

/// Measures a map of the same keys to their numbers.
fn map(session: &mut Session, rows: &Rows<'_>, stream: &Stream, keys: DeviceSlice<'_, u64>) -> anyhow::Result<()> {
    let (device, n, effort) = (rows.device, rows.keys, session.effort);
    let asked = n.min(ASKED);
    let values = device.from_slice(&(0..n as u64).collect::<Vec<u64>>())?;
    let builder = StaticMap::<u64, u64>::builder().on(device);
    let (seconds, map) = waited(device, effort, || Ok(builder.build_from_device(keys, values.as_slice())?))?;
    let bits = map.bits_per_key();
    let of_map = |operation: &str, items: usize, seconds: f64| {
        rows.row(operation, items, seconds).by("exact map", false).param("value", "u64")
    };
    rows.add(session, of_map("build map", n, seconds), bits, false, map.len() == n as u64);
    let mut out: DeviceVec<u64> = device.alloc_uninit(asked)?;
    let mut found: DeviceVec<u64> = device.alloc_uninit(asked.div_ceil(64))?;
    let keys = keys.slice(..asked);
    // SAFETY: all memory lives until the stream has been waited for, and nothing else uses it.
    let queue = || unsafe { Ok(map.get_async(stream, keys, out.as_mut_slice(), found.as_mut_slice())?) };
    let seconds = gpu_limits::repeated(device, stream, effort, queue)?;
    let right = out.to_vec()?.iter().enumerate().all(|(i, &value)| value == i as u64);
    rows.add(session, of_map("get hit", asked, seconds), bits, true, right);
    Ok(())
}

/// Measures the yardstick.
fn open_addressing(
    session: &mut Session,
    rows: &Rows<'_>,
    stream: &Stream,
    present: &DeviceVec<u64>,
    [hits, misses]: [&DeviceVec<u64>; 2],
    answers: &mut DeviceVec<u8>,
) -> anyhow::Result<()> {
    let (device, n, effort) = (rows.device, rows.keys, session.effort);
    let asked = answers.len();
    let windows = (2 * n).div_ceil(WINDOW);
    let bits = 64.0 * (windows * WINDOW) as f64 / n as f64;
    let mut table: DeviceVec<u64> = device.alloc_uninit(windows * WINDOW)?;
    const { assert!(FREE == u64::MAX) };
    let (blocks, block) = (device.properties().multiprocessors * 32, open_addressing::BLOCK);
    let config = if device.is_emulator() { LaunchConfig::new(4, block) } else { LaunchConfig::new(blocks, block) };
    let mut fill = || {
        stream.fill_bytes(&mut table, 0xff)?;
        let (table, keys) = (table.global_mut(), present.global());
        // SAFETY: the table has two slots per key; all memory lives until the stream has been waited for.
        unsafe { open_addressing_insert { table, windows: windows as u64, keys, n }.launch(stream, config)? };
        Ok(())
    };
    let seconds = gpu_limits::repeated(device, stream, effort, &mut fill)?;
    rows.add(session, rows.row("build", n, seconds).by(PEER, true), bits, false, true);
    for (operation, keys, each) in [("contains hit", hits, 1), ("contains miss", misses, 0)] {
        let config = LaunchConfig::covering(asked, block);
        let queue = || {
            let (table, keys, out) = (table.global(), keys.global(), answers.global_mut());
            // SAFETY: the table has free slots; all lives until the stream has been waited for.
            unsafe {
                open_addressing_contains { table, windows: windows as u64, keys, n: asked, out }
                    .launch(stream, config)?;
            }
            Ok(())
        };
        let seconds = gpu_limits::repeated(device, stream, effort, queue)?;
        let right = all_are(answers, each)?;
        rows.add(session, rows.row(operation, asked, seconds).by(PEER, true), bits, true, right);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench_frame::suite::Setup;

    #[test]
    fn devices_answer_beside_the_yardstick() {
        let device = Setup::emulator().devices().next().unwrap().clone();
        let rows = Session::rows_of(vec![step(device, 1_000)]);
        let rows: Vec<&Record> = rows.iter().filter(|row| row.structure == "static").collect();
        assert!(rows.iter().all(|row| row.checked) && rows.len() == 8, "{}", rows.len());
        let with_peer = rows.iter().filter(|row| row.peer_ratio.is_some()).count();
        assert_eq!(with_peer, 3);
    }
}

//! Both kinds of functions on a device, from the space of the fastest builds to nearly the least: whole builds from
//! keys in device memory to words in device memory, by the host's clock, and lookups of the same functions by the
//! device's.

use std::ops::RangeInclusive;
use std::time::Instant;

use bench_frame::input::keys::KeySpace;
use warpset::gpu::{Device, DeviceVec};
use warpset_mphf::gpu::{DeviceHashKind, PerfectHash};
use warpset_mphf::{Builder, Consensus, Method};

use super::SEED;
use super::ours::Settings;
use bench_frame::clock::Effort;
use bench_frame::gpu_limits;
use bench_frame::suite::{Session, Setup, Step, Target, Threads};
use bench_record::Record;

/// The study's name in its rows.
pub const DEVICE_SPACES: &str = "spaces on a device";
/// Shapes of RecSplit, the fastest first.
const SHAPES: [(u32, u32); 8] =
    [(8, 100), (8, 500), (8, 2000), (12, 2000), (14, 2000), (16, 2000), (18, 2000), (20, 2000)];
/// Target bits per key of Consensus, and values between them, every hundredth.
const SPACES: [f64; 10] = [1.9, 1.8, 1.75, 1.7, 1.65, 1.58, 1.545, 1.494, 1.47, 1.455];
const BETWEEN: RangeInclusive<u32> = 146..=162;

fn keys(device: &Device, effort: Effort) -> usize {
    match effort {
        _ if device.is_emulator() => 1_000,
        Effort::Quick => 1_000_000,
        Effort::Standard => 10_000_000,
        Effort::Full => 100_000_000,
    }
}

/// Makes one step per device.
pub fn steps(setup: &Setup) -> Vec<Step> {
    let step = |device: &Device| {
        let (device, place) = (device.clone(), if device.is_emulator() { "emulator" } else { "GPU" });
        Step::new(format!("recsplit: Consensus beside RecSplit on the {place}, by space"), move |session| {
            run(session, &device)
        })
    };
    setup.devices().map(step).collect()
}

fn run(session: &mut Session, device: &Device) -> anyhow::Result<()> {
    let n = keys(device, session.effort);
    let keys = KeySpace::new(SEED).stream(0).u64_keys(n);
    let there = device.from_slice(&keys)?;
    let few = device.is_emulator();
    for &(leaf, bucket) in &SHAPES[..if few { 1 } else { SHAPES.len() }] {
        let settings = Settings::new(leaf, bucket, Method::Grouped);
        let row = |row: Record| row.by(settings.name(), false).param("leaf", leaf).param("bucket", bucket);
        measure(session, device, &there, &settings.builder(), row)?;
    }
    let mut spaces: Vec<f64> = SPACES[..if few { 1 } else { SPACES.len() }].into();
    if session.effort != Effort::Quick && !few {
        spaces.extend(BETWEEN.map(|hundredths| f64::from(hundredths) / 100.0));
        spaces.sort_by(|a, b| b.total_cmp(a));
        spaces.dedup();
    }
    for bits in spaces {
        let builder = Consensus::builder().for_space_on_device(bits, n as u64);
        measure(session, device, &there, &builder, |row| row.by("Consensus", false).param("asked_bits", bits))?;
    }
    let place = if few { "the emulator" } else { "a GPU" };
    for (operation, title) in [
        ("build", format!("Nanoseconds to build each of {n} keys on {place}, by bits per key")),
        ("get u32", format!("Nanoseconds to look up each of {n} keys on {place}, by bits per key")),
    ] {
        let wanted = |row: &Record| row.operation == operation;
        let bits = |row: &Record| format!("{:.4} bits", row.bits_per_item.unwrap_or_default());
        let cell = |row: &Record| row.items_per_second.map_or_else(String::new, |rate| format!("{:.3}", 1e9 / rate));
        session.show(DEVICE_SPACES, &title, wanted, bits, cell);
    }
    Ok(())
}

/// Builds a function, and asks it for all of its keys.
fn measure<M: DeviceHashKind>(
    session: &mut Session,
    device: &Device,
    keys: &DeviceVec<u64>,
    builder: &Builder<M>,
    by: impl Fn(Record) -> Record,
) -> anyhow::Result<()> {
    let (n, target) = (keys.len(), Target::Gpu(device.clone()));
    let (mut times, mut function): (Vec<f64>, Option<PerfectHash<M>>) = (Vec::new(), None);
    // The first one loads kernels.
    for _ in 0..if device.is_emulator() { 2 } else { 4 } {
        drop(function.take());
        let start = Instant::now();
        function = Some(builder.on(device).build_from_device(keys.as_slice())?);
        times.push(start.elapsed().as_secs_f64());
    }
    let Some(function) = function else { anyhow::bail!("nothing was built") };
    let seconds = bench_frame::clock::median(&mut times[1..]);

    let mut numbers: DeviceVec<u32> = device.alloc_uninit(n)?;
    let stream = device.new_stream()?;
    // SAFETY: all memory lives until the stream has been waited for, and nothing else uses it.
    let queue = || unsafe { Ok(function.get_async(&stream, keys.as_slice(), numbers.as_mut_slice())?) };
    let asked = gpu_limits::repeated(device, &stream, session.effort, queue)?;
    let mut seen = vec![false; n];
    let is_new = |number: u32| seen.get_mut(number as usize).is_some_and(|seen| !std::mem::replace(seen, true));
    let right = numbers.to_vec()?.into_iter().all(is_new);
    for (operation, seconds) in [("build", seconds), ("get u32", asked)] {
        let mut row = by(Record::new("recsplit", operation, n).param("study", DEVICE_SPACES).param("keys", "u64"));
        row = row.param("model_nanoseconds", builder.estimate()?.device_nanoseconds_per_key).time(seconds);
        row.bits_per_item = Some(function.bits_per_key());
        session.add(&target, Threads::All, row, right);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_are_rows_and_checked() {
        let rows = Session::rows_of(steps(&Setup::emulator()));
        for (variant, operation) in
            [("grouped", "build"), ("grouped", "get u32"), ("Consensus", "build"), ("Consensus", "get u32")]
        {
            let found = |row: &Record| row.operation == operation && row.text("variant") == Some(variant);
            assert!(rows.iter().any(|row| found(row) && row.checked), "{variant} {operation}");
        }
    }
}

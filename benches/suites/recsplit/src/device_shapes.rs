//! Whole builds on a GPU over the leaf sizes and bucket sizes of the thesis, with its methods and ours, over all
//! buckets at once and bucket by bucket as the thesis goes (figures 6.12, 6.18, 6.20 and 6.21, table 6.1): from keys in
//! device memory to words in device memory, by the host's clock. Of each function one thread of the host asks for keys
//! (figures 6.13 and 6.14). Beside them one thread of the host without vectors and rotation, which is what the thesis's
//! speed-ups refer to.

use std::time::Instant;

use bench_frame::input::keys::KeySpace;
use papers_mphf::PER_BUCKET;
use warpset::gpu::{Device, DeviceVec};
use warpset_mphf::{Method, RecSplit, Remix};

use super::ours::Settings;
use super::shapes::BUCKETS;
use super::{SEED, hash_limit, with_hashes};
use bench_frame::clock::Effort;
use bench_frame::suite::{Session, Setup, Step, Target, Threads};
use bench_record::Record;

/// The study, as its rows name it.
pub const STUDY: &str = "leaf sizes on a device";
/// Keys of the thesis's measurements, and fewer for what takes long.
const SIZES: &[usize] = &[1_000_000, 100_000, 10_000];
/// Keys for shapes that were asked for.
const ASKED: &[usize] = &[20_000_000, 8_000_000, 2_000_000, 1_000_000, 100_000, 10_000];
/// Trial hashes per second that are counted on, to choose a number of keys.
const HASHES: f64 = 0.6e12;
/// Seconds that the launches of a bucket take, where it has launches of its own.
const BUCKET: f64 = 3e-5;

/// Returns leaf sizes: those of the figures that there is time for.
fn leaves(device: &Device, effort: Effort) -> &'static [u32] {
    match effort {
        _ if device.is_emulator() => &[5],
        Effort::Quick => &[5, 8, 12, 14, 17],
        Effort::Standard => &[5, 8, 10, 12, 14, 15, 16, 17, 18],
        Effort::Full => &[3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 22, 24],
    }
}

/// Returns the most seconds of one build.
fn limit(effort: Effort) -> f64 {
    match effort {
        Effort::Quick => 0.1,
        Effort::Standard => 0.6,
        Effort::Full => 10.0,
    }
}

/// A kind of build.
#[derive(Clone, Copy)]
struct Kind {
    method: Method,
    /// Bucket by bucket, as the thesis goes.
    per_bucket: bool,
    remix: Remix,
}

/// Returns the kinds that are compared.
fn kinds() -> Vec<Kind> {
    let of = |method, per_bucket, remix| Kind { method, per_bucket, remix };
    let methods = [Method::BruteForce, Method::Rotation, Method::Grouped];
    let mut kinds: Vec<Kind> = methods.map(|method| of(method, false, Remix::Bits32)).into_iter().collect();
    // The thesis's own.
    for method in &methods[..2] {
        kinds.push(of(*method, true, Remix::Bits32));
        kinds.push(of(*method, false, Remix::Bits64));
    }
    kinds
}

/// Makes the steps: one per bucket size and device.
pub fn steps(setup: &Setup, chosen: &[Settings]) -> Vec<Step> {
    let mut steps = Vec::new();
    for device in setup.devices() {
        let asked = chosen.to_vec();
        if !asked.is_empty() {
            let device = device.clone();
            steps.push(Step::new("recsplit: your shapes, whole builds on a device", move |session| {
                asked.iter().try_for_each(|&settings| {
                    [false, true]
                        .into_iter()
                        .try_for_each(|per_bucket| run(session, &device, settings, per_bucket, ASKED))
                })
            }));
            continue;
        }
        for bucket in if device.is_emulator() { &BUCKETS[1..2] } else { &BUCKETS[..] } {
            let (device, bucket) = (device.clone(), *bucket);
            let title = format!("recsplit: all leaf sizes on a device, bucket {bucket} (figures 6.12 to 6.21)");
            steps.push(Step::new(title, move |session| shapes(session, &device, bucket)).except_quick());
        }
        if setup.effort == Effort::Quick && !device.is_emulator() {
            let (device, settings) = (device.clone(), Settings::new(14, 2000, Method::Grouped));
            steps.push(Step::new("recsplit: a small function on a device, leaf 14, bucket 2000", move |session| {
                run(session, &device, settings, false, SIZES)
            }));
        }
    }
    steps
}

fn shapes(session: &mut Session, device: &Device, bucket: u32) -> anyhow::Result<()> {
    for &leaf in leaves(device, session.effort) {
        for Kind { method, per_bucket, remix } in kinds() {
            run(session, device, Settings { remix, ..Settings::new(leaf, bucket, method) }, per_bucket, SIZES)?;
        }
        if !device.is_emulator() {
            original(session, Settings::new(leaf, bucket, Method::BruteForce).sequential())?;
        }
    }
    let wanted =
        |row: &Record| row.number("bucket") == Some(bucket.into()) && row.backend != "cpu" && row.operation == "build";
    let leaf = |row: &Record| format!("leaf {}", row.number("leaf").unwrap_or_default());
    let cell = |row: &Record| row.items_per_second.map_or_else(String::new, |rate| format!("{:.2}", 1e9 / rate));
    let title = format!("Nanoseconds to build each key on a device, bucket size {bucket} (empty: too slow)");
    session.show(STUDY, &title, wanted, leaf, cell);
    Ok(())
}

fn run(
    session: &mut Session,
    device: &Device,
    settings: Settings,
    per_bucket: bool,
    sizes: &[usize],
) -> anyhow::Result<()> {
    let hashes = settings.builder().estimate()?.hashes_per_key;
    let mut per_key = hashes / HASHES;
    if per_bucket {
        per_key += BUCKET / f64::from(settings.bucket);
    }
    let affordable = |n: &&usize| **n as f64 * per_key <= limit(session.effort);
    let n = if device.is_emulator() { Some(&1_000) } else { sizes.iter().find(affordable) };
    // A build that takes too long is no point of a figure.
    let Some(&n) = n else { return Ok(()) };
    let keys = KeySpace::new(SEED).stream(0).u64_keys(n);
    let there: DeviceVec<u64> = device.from_slice(&keys)?;
    let builder = settings.builder().on(device);
    let builder = if per_bucket { builder.strategy(PER_BUCKET) } else { builder };
    let (mut seconds, mut function) = (f64::INFINITY, None);
    for _ in 0..if device.is_emulator() { 1 } else { 3 } {
        let start = Instant::now();
        let built = builder.build_from_device(there.as_slice())?;
        seconds = seconds.min(start.elapsed().as_secs_f64());
        function = Some(built);
    }
    let Some(function) = function else { anyhow::bail!("nothing was built") };
    let function = function.to_host()?;
    let mut seen = vec![false; n];
    let is_new = |number: u64| seen.get_mut(number as usize).is_some_and(|seen| !std::mem::replace(seen, true));
    let right = function.get_bulk(&keys).into_iter().all(is_new);
    let mut name = settings.name();
    if per_bucket {
        name += ", bucket by bucket";
    }
    let row = Record::new("recsplit", "build", n).param("study", STUDY).param("keys", "u64");
    let row = row.param("leaf", settings.leaf).param("bucket", settings.bucket).by(name, false).time(seconds);
    let mut row = with_hashes(row, hashes, hash_limit(session, device)?);
    if per_bucket && let Some(queues) = work_queues() {
        row = row.param("work_queues", queues);
    }
    row.bits_per_item = Some(function.bits_per_key());
    session.add(&Target::Gpu(device.clone()), Threads::All, row, right);
    // The function does not depend on the order.
    if !per_bucket { ask(session, settings, &function, &keys) } else { Ok(()) }
}

/// Lookups by one thread of the host, one by one (figures 6.13 and 6.14).
const ASKED_FOR: usize = 1 << 16;

/// Measures queries of a built function.
fn ask(session: &mut Session, settings: Settings, function: &RecSplit, keys: &[u64]) -> anyhow::Result<()> {
    let asked = &keys[..keys.len().min(ASKED_FOR)];
    let (seconds, sum) = session
        .made(Threads::One, || Ok(asked.iter().fold(0, |sum: u64, key| sum.wrapping_add(function.get(*key)))))?;
    let right = sum == function.get_bulk(asked).into_iter().fold(0, u64::wrapping_add);
    let row = Record::new("recsplit", "query", asked.len()).param("study", STUDY).param("keys", keys.len());
    let row = row.param("leaf", settings.leaf).param("bucket", settings.bucket).by(settings.name(), false);
    let mut row = row.time(seconds);
    row.bits_per_item = Some(function.bits_per_key());
    session.add(&Target::Cpu, Threads::One, row, right);
    Ok(())
}

/// Returns the number of the driver's work queues (section 5.10.2) from the environment; the default is 8.
fn work_queues() -> Option<u32> {
    std::env::var("CUDA_DEVICE_MAX_CONNECTIONS").ok()?.parse().ok()
}

/// Target seconds of a build on one thread, and the least number of keys: searches differ tenfold in length.
const ORIGINAL: f64 = 3.0;
const FEWEST: usize = 1000;

/// Builds on one thread without vectors by brute force, with a number of keys that takes some seconds at most.
fn original(session: &mut Session, settings: Settings) -> anyhow::Result<()> {
    let n = ((ORIGINAL / settings.seconds_per_key()?) as usize).min(100_000);
    if n < FEWEST {
        return Ok(());
    }
    let keys = KeySpace::new(SEED).stream(0).u64_keys(n);
    let mut function = None;
    let seconds = session.pool(Threads::One).install(|| {
        let start = Instant::now();
        function = Some(settings.builder().build_from(&keys)?);
        Ok::<_, anyhow::Error>(start.elapsed().as_secs_f64())
    })?;
    let Some(function) = function else { anyhow::bail!("nothing was built") };
    let row = Record::new("recsplit", "build", n).param("study", STUDY).param("keys", "u64");
    let row = row.param("leaf", settings.leaf).param("bucket", settings.bucket).by(settings.name(), false);
    let mut row = row.time(seconds);
    row.bits_per_item = Some(function.bits_per_key());
    session.add(&Target::Cpu, Threads::One, row, function.get(keys[0]) < n as u64);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_row() {
        let rows = Session::rows_of(steps(&Setup::emulator(), &[]));
        for kind in kinds() {
            let Kind { method, remix, .. } = kind;
            let name = Settings { remix, ..Settings::new(5, 50, method) }.name();
            assert!(rows.iter().any(|row| row.text("variant") == Some(&name) && row.checked), "{name}");
        }
        assert!(rows.iter().any(|row| row.text("variant") == Some("rotation, bucket by bucket")));
        let builds = || rows.iter().filter(|row| row.operation == "build");
        assert!(builds().all(|row| row.number("hashes_per_second") > Some(0.0)));
        let asked = rows.iter().filter(|row| row.operation == "query" && row.backend == "cpu" && row.checked);
        assert_eq!(asked.count(), builds().filter(|row| !row.name().contains("bucket by bucket")).count());
    }
}

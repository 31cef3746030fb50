//! Building on a GPU, stage by stage, by the device's clock, from keys in device memory to words in device memory. A
//! stage's limit is a copy of the bytes that it must move; the limit of the search is a kernel that computes trial
//! hashes and nothing else.

use bench_frame::input::keys::KeySpace;
use warpset::gpu::Device;
use warpset_mphf::{Method, RecSplit};

use super::SEED;
use super::ours::Settings;
use bench_frame::clock::Effort;
use bench_frame::gpu_limits::GpuAccess;
use bench_frame::suite::{Session, Setup, Step, Target, Threads};
use bench_record::Record;

/// Repeats, of which the fastest counts for each stage.
const REPEATS: usize = 3;
/// Memory that the copy of the limit goes over: far more than the L2 cache.
const COPIED: usize = 1 << 30;

/// Returns shapes: usual ones, and small buckets, which need the most words in lists.
fn shapes(device: &Device) -> Vec<Settings> {
    let of = |leaf, bucket| Settings::new(leaf, bucket, Method::Grouped);
    if device.is_emulator() { vec![of(5, 50)] } else { vec![of(8, 100), of(8, 2000), of(5, 5)] }
}

fn keys(device: &Device, effort: Effort) -> usize {
    match effort {
        _ if device.is_emulator() => 2_000,
        Effort::Quick => 1_000_000,
        Effort::Standard => 10_000_000,
        Effort::Full => 100_000_000,
    }
}

/// Makes the steps.
pub fn steps(setup: &Setup, chosen: &[Settings]) -> Vec<Step> {
    let mut steps = Vec::new();
    for device in setup.devices() {
        let asked = chosen.to_vec();
        for settings in if asked.is_empty() { shapes(device) } else { asked } {
            let device = device.clone();
            let title = format!(
                "recsplit: building on the {}, leaf {}, bucket {}",
                if device.is_emulator() { "emulator" } else { "GPU" },
                settings.leaf,
                settings.bucket
            );
            steps.push(Step::new(title, move |session| run(session, &device, settings)));
        }
    }
    steps
}

/// Returns the bytes per key that a stage must read and write; `None` for stages with another bound.
fn bytes_per_key(stage: &str, function: &RecSplit) -> Option<f64> {
    let per_key = |bits: u64| bits as f64 / 8.0 / function.len() as f64;
    match stage {
        // A key, and its bucket and low half.
        "hashing" => Some(8.0 + 12.0),
        // One pass.
        "sorting" => Some(12.0 + 12.0),
        "encoding" => Some(per_key(function.space().trees)),
        "lists" => Some(per_key(function.space().buckets)),
        _ => None,
    }
}

fn run(session: &mut Session, device: &Device, settings: Settings) -> anyhow::Result<()> {
    let n = keys(device, session.effort);
    let keys = KeySpace::new(SEED).stream(0).u64_keys(n);
    let there = device.from_slice(&keys)?;
    let builder = settings.builder();
    let expected = builder.build_from(&keys)?;
    let mut best: Vec<(&'static str, f64)> = Vec::new();
    let mut right = true;
    for _ in 0..if device.is_emulator() { 1 } else { REPEATS } {
        let (function, stages) = builder.on(device).build_timed_device(there.as_slice())?;
        right &= function.to_host()? == expected;
        if best.is_empty() {
            best = stages;
        } else {
            best.iter_mut().zip(stages).for_each(|(best, (_, seconds))| best.1 = best.1.min(seconds));
        }
    }
    let copied =
        session.gpu_limit(device, GpuAccess::Copy, if device.is_emulator() { 1 << 12 } else { COPIED })? * 32.0;
    let (hashes, hashed) = (settings.builder().estimate()?.hashes_per_key, super::hash_limit(session, device)?);
    let target = Target::Gpu(device.clone());
    let row = |stage: &str, seconds: f64| {
        let row = Record::new("recsplit", stage, n).param("study", "building on a device").param("keys", "u64");
        row.param("leaf", settings.leaf).param("bucket", settings.bucket).by(settings.name(), false).time(seconds)
    };
    for &(stage, seconds) in &best {
        let mut row = row(stage, seconds);
        if let Some(bytes) = bytes_per_key(stage, &expected) {
            row = row.bytes((bytes * n as f64) as usize, Some(copied));
        }
        if stage == "search" {
            row = super::with_hashes(row, hashes, hashed);
        }
        session.add(&target, Threads::All, row, right);
    }
    let all = |wanted: &dyn Fn(&str) -> bool| -> f64 {
        best.iter().filter(|(stage, _)| wanted(stage)).map(|(_, seconds)| seconds).sum()
    };
    for (name, seconds) in [("all but the search", all(&|stage| stage != "search")), ("all stages", all(&|_| true))] {
        let mut row = row(name, seconds);
        row.bits_per_item = Some(expected.bits_per_key());
        session.add(&target, Threads::All, row, right);
    }
    session.show(
        "building on a device",
        &format!("ns per key, {n} keys, leaf {}, bucket {}", settings.leaf, settings.bucket),
        |row| row.number("leaf") == Some(settings.leaf.into()) && row.number("bucket") == Some(settings.bucket.into()),
        |_| "ns per key".into(),
        |row| row.seconds.map_or(String::new(), |seconds| format!("{:.4}", seconds * 1e9 / row.n as f64)),
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_rows_and_checked() {
        let rows = Session::rows_of(steps(&Setup::emulator(), &[]));
        for stage in ["hashing", "sorting", "search", "encoding", "lists", "all but the search", "all stages"] {
            assert!(rows.iter().any(|row| row.operation == stage && row.checked), "{stage}");
        }
        assert!(rows.iter().all(|row| row.backend == "emulator" && row.seconds.is_some()));
    }
}

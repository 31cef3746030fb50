//! Speed-up of builds by several GPUs: one, two, four and so on, up to all, from keys on the first of them and from
//! host slices. The clock is the host's, over the whole call; the function ends on the first GPU. A row's `of_linear`
//! is its rate over that of one GPU times their number.

use std::time::Instant;

use bench_frame::input::keys::KeySpace;
use warpset::gpu::{Device, Devices};
use warpset_mphf::{Method, RecSplit, gpu};

use super::SEED;
use super::ours::Settings;
use bench_frame::clock::Effort;
use bench_frame::suite::{Session, Setup, Step, Target, Threads, numbers_of_devices};
use bench_record::Record;

/// Repeats after the first, of which the fastest counts.
const REPEATS: usize = 2;

/// Returns shapes for 1.69, 1.58, 1.55 and 1.54 bits per key.
fn shapes(device: &Device) -> Vec<Settings> {
    let of = |leaf, bucket| Settings::new(leaf, bucket, Method::Grouped);
    if device.is_emulator() { vec![of(5, 50)] } else { vec![of(8, 2000), of(16, 2000), of(20, 2000), of(21, 5000)] }
}

fn keys(device: &Device, effort: Effort) -> usize {
    match effort {
        _ if device.is_emulator() => 1_000,
        Effort::Quick => 10_000_000,
        Effort::Standard => 100_000_000,
        Effort::Full => 1_000_000_000,
    }
}

/// Makes the steps: none where there is one GPU.
pub fn steps(setup: &Setup, chosen: &[Settings]) -> Vec<Step> {
    let Some(first) = setup.devices().next() else { return Vec::new() };
    let numbers = numbers_of_devices(first).unwrap_or_default();
    if numbers.is_empty() {
        return Vec::new();
    }
    let asked = chosen.to_vec();
    let shapes = if asked.is_empty() { shapes(first) } else { asked };
    let step = |settings: Settings| {
        let numbers = numbers.clone();
        let title =
            format!("recsplit: building on several devices, leaf {}, bucket {}", settings.leaf, settings.bucket);
        Step::new(title, move |session| run(session, &numbers, settings))
    };
    shapes.into_iter().map(step).collect()
}

/// Returns the least seconds of a build, and whether all had these words.
fn time(
    repeats: usize,
    expected: &RecSplit,
    build: impl Fn() -> Result<gpu::RecSplit, warpset_mphf::Error>,
) -> anyhow::Result<(f64, bool)> {
    let (mut least, mut right) = (f64::INFINITY, true);
    for repeat in 0..=repeats {
        let start = Instant::now();
        let function = build()?;
        // The first one loads kernels.
        if repeat > 0 || repeats == 0 {
            least = least.min(start.elapsed().as_secs_f64());
        }
        right &= function.to_host()? == *expected;
    }
    Ok((least, right))
}

fn run(session: &mut Session, numbers: &[Devices], settings: Settings) -> anyhow::Result<()> {
    let first = numbers[0].first();
    let n = keys(first, session.effort);
    let repeats = if first.is_emulator() { 0 } else { REPEATS };
    let keys = KeySpace::new(SEED).stream(0).u64_keys(n);
    let there = first.from_slice(&keys)?;
    let builder = settings.builder();
    let expected = builder.on(first).build_from_device(there.as_slice())?.to_host()?;
    let target = Target::Gpu(first.clone());
    let mut of_one = [0.0; 2];
    for devices in numbers {
        let (count, on_each) = (devices.all().len(), builder.on_each(devices));
        let times = [
            ("build from device keys", time(repeats, &expected, || on_each.build_from_device(there.as_slice()))?),
            ("build from host keys", time(repeats, &expected, || on_each.build_from(&keys))?),
        ];
        for ((operation, (seconds, right)), one) in times.into_iter().zip(&mut of_one) {
            if count == 1 {
                *one = seconds;
            }
            let mut row = Record::new("recsplit", operation, n).param("study", "several devices");
            row = row.param("keys", "u64").param("leaf", settings.leaf).param("bucket", settings.bucket);
            row = row.param("devices", count).param("of_linear", *one / count as f64 / seconds);
            row.bits_per_item = Some(expected.bits_per_key());
            session.add(&target, Threads::All, row.by(settings.name(), false).time(seconds), right);
        }
    }
    session.show(
        "several devices",
        &format!("ns per key, {n} keys, leaf {}, bucket {}", settings.leaf, settings.bucket),
        |row| row.number("leaf") == Some(settings.leaf.into()) && row.number("bucket") == Some(settings.bucket.into()),
        |row| row.number("devices").map_or(String::new(), |count| format!("{count} devices")),
        |row| row.seconds.map_or(String::new(), |seconds| format!("{:.4}", seconds * 1e9 / row.n as f64)),
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_of_devices_is_a_row_and_checked() {
        let rows = Session::rows_of(steps(&Setup::emulator(), &[]));
        for operation in ["build from device keys", "build from host keys"] {
            for count in [1.0, 2.0] {
                let is_it = |row: &&Record| row.operation == operation && row.number("devices") == Some(count);
                let row = rows.iter().find(is_it).expect("a row");
                assert!(row.checked && row.seconds.is_some() && row.number("of_linear").is_some());
            }
        }
    }
}

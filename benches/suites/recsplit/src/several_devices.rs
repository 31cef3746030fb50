//! Builds by several GPUs, from keys on the first of them and from host slices; the function ends on the first GPU.

use bench_frame::input::keys::KeySpace;
use warpset::gpu::{Device, Devices};
use warpset_mphf::Method;

use super::SEED;
use super::ours::Settings;
use bench_frame::clock::Effort;
use bench_frame::several_devices::{self, Rows};
use bench_frame::suite::{Session, Setup, Step};
use bench_record::Record;

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
    let first = setup.devices().next();
    let shapes = if chosen.is_empty() { first.map_or(Vec::new(), shapes) } else { chosen.to_vec() };
    let title = |shape: &Settings| {
        format!("recsplit: building on several devices, leaf {}, bucket {}", shape.leaf, shape.bucket)
    };
    several_devices::steps(first, shapes, title, run)
}

fn run(session: &mut Session, numbers: &[Devices], settings: &Settings) -> anyhow::Result<()> {
    let first = numbers[0].first();
    let n = keys(first, session.effort);
    let keys = KeySpace::new(SEED).stream(0).u64_keys(n);
    let there = first.from_slice(&keys)?;
    let builder = settings.builder();
    let expected = builder.on(first).build_from_device(there.as_slice())?.to_host()?;
    let mut rows = Rows::new(session, &numbers[0], |operation| {
        let mut row = Record::new("recsplit", operation, n).param("keys", "u64");
        row = row.param("leaf", settings.leaf).param("bucket", settings.bucket);
        row.bits_per_item = Some(expected.bits_per_key());
        row.by(settings.name(), false)
    });
    for devices in numbers {
        rows.on(devices);
        let on_each = builder.on_each(devices);
        let from_device = || Ok(on_each.build_from_device(there.as_slice())?);
        rows.call("build from device keys", from_device, |built| Ok(built.to_host()? == expected))?;
        let from_host = || Ok(on_each.build_from(&keys)?);
        rows.call("build from host keys", from_host, |built| Ok(built.to_host()? == expected))?;
    }
    let title = format!("{n} keys, leaf {}, bucket {}", settings.leaf, settings.bucket);
    rows.show(&title, |row| {
        row.number("leaf") == Some(settings.leaf.into()) && row.number("bucket") == Some(settings.bucket.into())
    });
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

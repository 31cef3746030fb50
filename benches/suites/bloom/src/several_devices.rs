//! Filters divided among several GPUs: keys on the first, a share on each, keys on the host.

use warpset::bloom::gpu::{DeviceFilter, DeviceInsert};
use warpset::bloom::{Builder, Filter, Insert};
use warpset::gpu::{Device, Devices};

use super::variant::split_block;
use super::{ABSENT, BITS_PER_KEY, INSERTED, SEED};
use bench_frame::clock::Effort;
use bench_frame::input::keys::KeySpace;
use bench_frame::several_devices::{self, OfOne, shares, time};
use bench_frame::suite::{Session, Setup, Step};
use bench_frame::table;
use bench_record::Record;

/// The most keys of a batch.
const MOST: usize = 1 << 28;

/// Returns the bytes of the whole filter: beyond the L2 cache of all GPUs.
fn sizes(device: &Device, effort: Effort) -> &'static [usize] {
    match (device.is_emulator(), effort) {
        (true, _) => &[1 << 12],
        (_, Effort::Quick) => &[1 << 30],
        (_, Effort::Standard) => &[1 << 30, 1 << 33],
        (_, Effort::Full) => &[1 << 28, 1 << 30, 1 << 33, 1 << 35],
    }
}

/// Makes the steps: none where there is one GPU.
pub fn steps(setup: &Setup) -> Vec<Step> {
    let first = setup.devices().next();
    let sizes = first.map_or(Vec::new(), |first| sizes(first, setup.effort).to_vec());
    several_devices::steps(
        first,
        sizes,
        |&bytes| format!("bloom: on several devices, {}", table::bytes(bytes as f64)),
        |session, numbers, &bytes| run(session, numbers, bytes),
    )
}

fn run(session: &mut Session, numbers: &[Devices], bytes: usize) -> anyhow::Result<()> {
    let first = numbers[0].first();
    let n = (bytes * 8 / BITS_PER_KEY).min(MOST);
    let [inserted, absent] = [INSERTED, ABSENT].map(|stream| KeySpace::new(SEED).stream(stream).u64_keys(n));
    let builder = Builder::with_layout(split_block(bytes)?);
    let plain = builder.on(first).build_from(&inserted)?;
    let (expected, passed) = (plain.count_ones()?, plain.count_contained_bulk(&absent)?);
    drop(plain);
    let mut of_one = OfOne::default();
    for devices in numbers {
        let mut filter = builder.sharded_on(devices).build()?;
        let (here, there) = (first.from_slice(&inserted)?, shares(devices, &inserted)?);
        let slices: Vec<_> = there.iter().map(|keys| keys.as_slice()).collect();
        let mut times = Vec::new();
        let (seconds, ()) = time(first, || Ok(filter.insert_device(here.as_slice())?))?;
        times.push(("insert from one device", seconds, filter.count_ones()? == expected));
        filter.clear()?;
        let (seconds, ()) = time(first, || Ok(filter.insert_each_device(&slices)?))?;
        times.push(("insert from all devices", seconds, filter.count_ones()? == expected));
        filter.clear()?;
        let (seconds, ()) = time(first, || Ok(filter.insert_bulk(&inserted)?))?;
        times.push(("insert from the host", seconds, filter.count_ones()? == expected));
        drop(slices);
        drop(there);
        let mut answers = first.alloc_zeroed::<u8>(n)?;
        let (seconds, ()) = time(first, || Ok(filter.contains_device(here.as_slice(), answers.as_mut_slice())?))?;
        times.push(("contains from one device", seconds, answers.to_vec()?.iter().all(|&yes| yes == 1)));
        let there = shares(devices, &absent)?;
        let mut answers = Vec::new();
        for keys in &there {
            answers.push(keys.device().alloc_zeroed::<u8>(keys.len())?);
        }
        let slices: Vec<_> = there.iter().map(|keys| keys.as_slice()).collect();
        let (seconds, ()) = time(first, || {
            let answers = answers.iter_mut().map(|answers| answers.as_mut_slice()).collect();
            Ok(filter.contains_each_device(&slices, answers)?)
        })?;
        let mut yes = 0;
        for answers in &answers {
            yes += answers.to_vec()?.iter().filter(|&&yes| yes == 1).count();
        }
        times.push(("contains from all devices", seconds, yes == passed));
        let (seconds, found) = time(first, || Ok(filter.count_contained_bulk(&absent)?))?;
        times.push(("contains from the host", seconds, found == passed));
        of_one.add(session, devices, times, |operation| {
            let row = Record::new("bloom", operation, n).param("keys", "u64").param("filter_bytes", bytes);
            row.by("split-block", false)
        });
    }
    several_devices::show(session, &format!("{n} keys, {}", table::bytes(bytes as f64)), |row| {
        row.number("filter_bytes") == Some(bytes as f64)
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_of_devices_is_a_row_and_checked() {
        let rows = Session::rows_of(steps(&Setup::emulator()));
        assert_eq!(rows.len(), 2 * 6);
        assert!(rows.iter().all(|row| row.checked && row.seconds.is_some()));
    }
}

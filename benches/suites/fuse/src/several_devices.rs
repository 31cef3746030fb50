//! Filters and functions divided among several GPUs: keys on the first, a share on each, keys on the host.

use warpset::fuse::gpu::{DeviceFilter, ShardedBinaryFuse, ShardedStaticFunction};
use warpset::fuse::{BinaryFuse8, Filter, StaticFunction};
use warpset::gpu::{Device, Devices};

use super::SEED;
use bench_frame::clock::Effort;
use bench_frame::input::keys::KeySpace;
use bench_frame::several_devices::{self, OfOne, shares, time};
use bench_frame::suite::{Session, Step};
use bench_record::Record;

fn sizes(device: &Device, effort: Effort) -> Vec<usize> {
    match (device.is_emulator(), effort) {
        (true, _) => vec![30_000],
        (_, Effort::Quick) => vec![1 << 26],
        (_, Effort::Standard) => vec![1 << 28],
        (_, Effort::Full) => vec![1 << 28, 1 << 30],
    }
}

/// Makes the steps: none where there is one GPU.
pub fn steps(device: &Device, effort: Effort) -> Vec<Step> {
    let title = |keys: &usize| format!("fuse: on several devices, {keys} keys");
    several_devices::steps(Some(device), sizes(device, effort), title, run)
}

fn run(session: &mut Session, numbers: &[Devices], &n: &usize) -> anyhow::Result<()> {
    let first = numbers[0].first();
    let keys = KeySpace::new(SEED).stream(0).u64_keys(n);
    let values: Vec<u16> = keys.iter().map(|key| (key >> 48) as u16).collect();
    let (filter, function) = {
        let there = first.from_slice(&keys)?;
        let filter = BinaryFuse8::builder().for_build().on(first).build_from_device(there.as_slice())?.to_host()?;
        let values = first.from_slice(&values)?;
        let builder = StaticFunction::<u16>::builder().for_build();
        (filter, builder.on(first).build_from_device(there.as_slice(), values.as_slice())?.to_host()?)
    };
    let mut of_one = OfOne::default();
    for devices in numbers {
        let (here, there) = (first.from_slice(&keys)?, shares(devices, &keys)?);
        let slices: Vec<_> = there.iter().map(|keys| keys.as_slice()).collect();
        let mut times = Vec::new();

        let (seconds, divided) = time(first, || Ok(ShardedBinaryFuse::from_host(devices, &filter)?))?;
        times.push(("divide", seconds, divided.to_host()? == filter));
        let mut answers = first.alloc_zeroed::<u8>(n)?;
        let (seconds, ()) = time(first, || Ok(divided.contains_device(here.as_slice(), answers.as_mut_slice())?))?;
        times.push(("contains from one device", seconds, answers.to_vec()?.iter().all(|&yes| yes == 1)));
        let mut answers = Vec::new();
        for keys in &there {
            answers.push(keys.device().alloc_zeroed::<u8>(keys.len())?);
        }
        let (seconds, ()) = time(first, || {
            let answers = answers.iter_mut().map(|answers| answers.as_mut_slice()).collect();
            Ok(divided.contains_each_device(&slices, answers)?)
        })?;
        let mut right = true;
        for answers in &answers {
            right &= answers.to_vec()?.iter().all(|&yes| yes == 1);
        }
        times.push(("contains from all devices", seconds, right));
        let (seconds, found) = time(first, || Ok(divided.count_contained_bulk(&keys)?))?;
        times.push(("contains from the host", seconds, found == n));
        drop((divided, answers));

        let divided = ShardedStaticFunction::from_host(devices, &function)?;
        times.extend(several_devices::lookups(
            devices,
            &keys,
            &values,
            |keys, (values, found)| Ok(divided.get_device(keys, values, found)?),
            |keys, answers| Ok(divided.get_each_device(keys, answers)?),
            |keys, out| Ok(divided.get_bulk_into(keys, out)?.count_ones()),
        )?);
        of_one.add(session, devices, times, |operation| {
            let row = Record::new("fuse", operation, n).param("key", "u64").param("keys", n);
            row.by("sharded", false)
        });
    }
    several_devices::show(session, &format!("{n} keys"), |row| row.number("keys") == Some(n as f64));
    Ok(())
}

#[cfg(test)]
mod tests {
    use bench_frame::suite::emulator;

    use super::*;

    #[test]
    fn each_number_of_devices_is_a_row_and_checked() {
        let rows = Session::rows_of(steps(&emulator().unwrap(), Effort::Quick));
        assert_eq!(rows.len(), 2 * 7);
        assert!(rows.iter().all(|row| row.checked && row.seconds.is_some() && row.number("of_linear").is_some()));
    }
}

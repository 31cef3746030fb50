//! Filters and functions divided among several GPUs: keys on the first, a share on each, keys on the host.

use warpset::fuse::gpu::{ShardedBinaryFuse, ShardedStaticFunction};
use warpset::fuse::{BinaryFuse8, Filter, StaticFunction};
use warpset::gpu::{Device, Devices};

use super::SEED;
use bench_frame::clock::Effort;
use bench_frame::input::keys::KeySpace;
use bench_frame::several_devices::{Batches, Rows, Sizes, Skew, values_of};
use bench_frame::suite::{Session, Step};
use bench_record::Record;

/// Makes the steps: none where there is one GPU.
pub fn steps(device: &Device, effort: Effort) -> Vec<Step> {
    let sizes = Sizes { emulator: &[30_000], quick: &[1 << 26], standard: &[1 << 28], full: &[1 << 28, 1 << 30] };
    sizes.steps(Some(device), effort, |keys| format!("fuse: on several devices, {keys} keys"), run)
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
    let mut rows = Rows::new(session, &numbers[0], |operation| {
        let row = Record::new("fuse", operation, n).param("key", "u64").param("keys", n);
        row.by("sharded", false)
    });
    for devices in numbers {
        rows.on(devices);
        let divided = rows.call(
            "divide",
            || Ok(ShardedBinaryFuse::from_host(devices, &filter)?),
            |divided| Ok(divided.to_host()? == filter),
        )?;
        let there = first.from_slice(&keys)?;
        let builder = BinaryFuse8::builder().for_build().sharded_on(devices);
        for (operation, from_host) in [("build from one device", false), ("build from the host", true)] {
            let build = || match from_host {
                true => Ok(builder.build_from(&keys)?),
                false => Ok(builder.build_from_each_device(&[there.as_slice()])?),
            };
            rows.call(operation, build, |built| Ok(built.to_host()? == filter))?;
        }
        drop(there);
        let values = ShardedStaticFunction::from_host(devices, &function)?;
        for skew in Skew::ALL {
            let asked = skew.keys(KeySpace::new(SEED).stream(0), n);
            let batches = Batches::new(devices, skew, &asked, &[])?;
            rows.lookups(
                "contains",
                &batches,
                |keys, answers| Ok(divided.contains_each_device(keys, values_of(answers))?),
                |answers: &[u8]| answers.iter().all(|&yes| yes == 1),
                |keys, _| Ok(divided.count_contained_bulk(keys)?),
                |found, _| found == n,
            )?;
            let right = |values: &[u16]| values.iter().zip(&asked).all(|(&value, key)| value == (key >> 48) as u16);
            rows.lookups(
                "get",
                &batches,
                |keys, answers| Ok(values.get_each_device(keys, answers)?),
                right,
                |keys, out| Ok(values.get_bulk_into(keys, out)?),
                |found, out| found.count_ones() == n && right(out),
            )?;
        }
    }
    rows.show(&format!("{n} keys"), |row| row.number("keys") == Some(n as f64));
    Ok(())
}

#[cfg(test)]
mod tests {
    use bench_frame::suite::emulator;

    use super::*;

    #[test]
    fn each_number_of_devices_is_a_row_and_checked() {
        let rows = Session::rows_of(steps(&emulator().unwrap(), Effort::Quick));
        assert_eq!(rows.len(), 2 * (3 + 2 * 6));
        assert!(rows.iter().all(|row| row.checked && row.seconds.is_some() && row.number("of_linear").is_some()));
    }
}

//! Maps built on and divided among several GPUs: keys on the first, a share on each, keys on the host.

use bench_frame::input::keys::KeySpace;
use bench_frame::several_devices::{Batches, Rows, Sizes, Skew};
use bench_frame::suite::{Session, Setup, Step};
use warpset::gpu::Devices;
use warpset::static_sets::StaticMap;
use warpset::static_sets::gpu::ShardedStaticMap;

use super::{PRESENT, SEED, row};

/// Makes the steps: none where there is one GPU.
pub fn steps(setup: &Setup) -> Vec<Step> {
    let sizes = Sizes { emulator: &[30_000], quick: &[1 << 24], standard: &[1 << 27], full: &[1 << 27, 1 << 29] };
    let title = |keys: &usize| format!("static: on several devices, {keys} keys");
    sizes.steps(setup.devices().next(), setup.effort, title, run)
}

fn run(session: &mut Session, numbers: &[Devices], &n: &usize) -> anyhow::Result<()> {
    let first = numbers[0].first();
    let keys = KeySpace::new(SEED).stream(PRESENT).u64_keys(n);
    let values: Vec<u32> = keys.iter().map(|key| (key >> 32) as u32).collect();
    let map = StaticMap::<u64, u32>::builder().on(first).build_from(&keys, &values)?.to_host()?;
    let mut rows = Rows::new(session, &numbers[0], |operation| row(operation, n, n, "u64", 0.0).by("sharded", false));
    for devices in numbers {
        rows.on(devices);
        let divided = rows.call(
            "divide",
            || Ok(ShardedStaticMap::from_host(devices, &map)?),
            |divided| Ok(divided.to_host()? == map),
        )?;
        let there = (first.from_slice(&keys)?, first.from_slice(&values)?);
        let builder = StaticMap::<u64, u32>::builder().sharded_on(devices);
        for (operation, from_host) in [("build from one device", false), ("build from the host", true)] {
            let build = || match from_host {
                true => Ok(builder.build_from(&keys, &values)?),
                false => Ok(builder.build_from_each_device(&[there.0.as_slice()], &[there.1.as_slice()])?),
            };
            rows.call(operation, build, |built| Ok(built.to_host()? == map))?;
        }
        drop(there);
        for skew in Skew::ALL {
            let asked = skew.keys(KeySpace::new(SEED).stream(PRESENT), n);
            let right = |values: &[u32]| values.iter().zip(&asked).all(|(&value, key)| value == (key >> 32) as u32);
            rows.lookups(
                "get",
                &Batches::new(devices, skew, &asked, &[])?,
                |keys, answers| Ok(divided.get_each_device(keys, answers)?),
                right,
                |keys, out| Ok(divided.get_bulk_into(keys, out)?),
                |found, out| found.count_ones() == n && right(out),
            )?;
        }
    }
    rows.show(&format!("{n} keys"), |row| row.number("keys") == Some(n as f64));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_of_devices_is_a_row_and_checked() {
        let rows = Session::rows_of(steps(&Setup::emulator()));
        assert_eq!(rows.len(), 2 * (3 + 2 * 3));
        assert!(rows.iter().all(|row| row.checked && row.seconds.is_some() && row.number("of_linear").is_some()));
    }
}

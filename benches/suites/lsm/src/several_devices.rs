//! Dictionaries divided among several GPUs: pairs on the first, a share on each, pairs on the host.

use warpset::gpu::Devices;
use warpset::lsm::Lsm;
use warpset::lsm::gpu::ShardedLsm;

use super::{INSERTED, SEED};
use bench_frame::input::keys::KeySpace;
use bench_frame::several_devices::{Batch, Batches, Rows, Sizes, Skew};
use bench_frame::suite::{Session, Setup, Step};
use bench_record::Record;

/// Batches of ascending keys.
const DRIFT: usize = 16;

/// Makes the steps: none where there is one GPU.
pub fn steps(setup: &Setup) -> Vec<Step> {
    let sizes = Sizes { emulator: &[1000], quick: &[1 << 25], standard: &[1 << 27], full: &[1 << 27, 1 << 29] };
    let title = |n: &usize| format!("lsm: on several devices, {n} pairs");
    sizes.steps(setup.devices().next(), setup.effort, title, run)
}

fn run(session: &mut Session, numbers: &[Devices], &n: &usize) -> anyhow::Result<()> {
    let keys = KeySpace::new(SEED).stream(INSERTED).u64_keys(n);
    let values: Vec<u64> = keys.iter().map(|key| !key).collect();
    let mut rows = Rows::new(session, &numbers[0], |operation| {
        Record::new("lsm", operation, n).by("sharded", false).param("key", "u64").param("elements", n)
    });
    for devices in numbers {
        rows.on(devices);
        let builder = Lsm::<u64, u64>::builder().batch_size((n / DRIFT).next_power_of_two().max(64) as u64);
        let mut lsm = builder.sharded_on(devices).build()?;
        let change = |lsm: &mut ShardedLsm<u64, u64>, batch: Batch<'_>| {
            match batch {
                Batch::Devices(keys, values) => lsm.insert_each_device(keys, values)?,
                Batch::Host(keys, values) => lsm.insert_bulk(keys, values)?,
            }
            Ok(())
        };
        let batches = Batches::new(devices, Skew::Uniform, &keys, &values)?;
        let is_whole = |lsm: &ShardedLsm<u64, u64>| Ok(lsm.resident_len() == n as u64);
        rows.changes("insert", &batches, &mut lsm, |lsm| Ok(lsm.clear()?), change, is_whole)?;
        drop(batches);
        for skew in Skew::ALL {
            let asked = skew.keys(KeySpace::new(SEED).stream(INSERTED), n);
            let right = |values: &[u64]| values.iter().zip(&asked).all(|(value, key)| *value == !key);
            rows.lookups(
                "get",
                &Batches::new(devices, skew, &asked, &[])?,
                |keys, answers| Ok(lsm.get_each_device(keys, answers)?),
                right,
                |keys, out| Ok(lsm.get_bulk_into(keys, out)?),
                |found, out| found.count_ones() == n && right(out),
            )?;
        }
        let ranges: Vec<_> =
            keys[..n / 16].iter().map(|&low| low..=low.saturating_add((8 << 60) / n as u64 * 16)).collect();
        let counts = rows.call(
            "count ranges",
            || Ok(lsm.count_range_bulk(&ranges)?),
            |counts| Ok(counts.iter().all(|&count| count > 0)),
        )?;
        let is_same =
            |found: &warpset::lsm::Ranges<u64, u64>| Ok(found.keys.len() as u64 == counts.iter().sum::<u64>());
        rows.call("list ranges", || Ok(lsm.range_bulk(&ranges)?), is_same)?;
        drop(lsm);

        let mut ascending = keys.clone();
        ascending.sort_unstable();
        rows.call(
            "insert ascending batches",
            || {
                let mut lsm = builder.sharded_on(devices).build()?;
                ascending.chunks(n.div_ceil(DRIFT)).try_for_each(|keys| lsm.insert_bulk(keys, keys))?;
                Ok(lsm)
            },
            |lsm| Ok(lsm.len()? == n as u64),
        )?;
    }
    rows.show(&format!("{n} pairs"), |row| row.number("elements") == Some(n as f64));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_of_devices_is_a_row_and_checked() {
        let rows = Session::rows_of(steps(&Setup::emulator()));
        assert_eq!(rows.len(), 2 * (3 + 2 * 3 + 2 + 1));
        assert!(rows.iter().all(|row| row.checked && row.seconds.is_some() && row.number("of_linear").is_some()));
    }
}

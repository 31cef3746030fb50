//! Filters divided among several GPUs: keys on the first, a share on each, keys on the host.

use warpset::bloom::{Builder, Filter, Insert};
use warpset::gpu::Devices;

use super::variant::split_block;
use super::{ABSENT, BITS_PER_KEY, INSERTED, SEED};
use bench_frame::input::keys::KeySpace;
use bench_frame::several_devices::{Batch, Batches, Rows, Sizes, Skew, values_of};
use bench_frame::suite::{Session, Setup, Step};
use bench_frame::table;
use bench_record::Record;

/// The most keys of a batch.
const MOST: usize = 1 << 28;

/// Makes the steps: none where there is one GPU.
pub fn steps(setup: &Setup) -> Vec<Step> {
    // Bytes of the whole filter: beyond the L2 cache of all GPUs.
    let sizes = Sizes {
        emulator: &[1 << 12],
        quick: &[1 << 30],
        standard: &[1 << 30, 1 << 33],
        full: &[1 << 28, 1 << 30, 1 << 33, 1 << 35],
    };
    let title = |&bytes: &usize| format!("bloom: on several devices, {}", table::bytes(bytes as f64));
    sizes.steps(setup.devices().next(), setup.effort, title, run)
}

fn run(session: &mut Session, numbers: &[Devices], &bytes: &usize) -> anyhow::Result<()> {
    let first = numbers[0].first();
    let n = (bytes * 8 / BITS_PER_KEY).min(MOST);
    let builder = Builder::with_layout(split_block(bytes)?);
    let mut rows = Rows::new(session, &numbers[0], |operation| {
        let row = Record::new("bloom", operation, n).param("keys", "u64").param("filter_bytes", bytes);
        row.by("split-block", false)
    });
    for skew in Skew::ALL {
        let [inserted, absent] = [INSERTED, ABSENT].map(|stream| skew.keys(KeySpace::new(SEED).stream(stream), n));
        let plain = builder.on(first).build_from(&inserted)?;
        let (expected, passed) = (plain.count_ones()?, plain.count_contained_bulk(&absent)?);
        drop(plain);
        for devices in numbers {
            rows.on(devices);
            let mut filter = builder.sharded_on(devices).build()?;
            rows.changes(
                "insert",
                &Batches::new(devices, skew, &inserted, &[])?,
                &mut filter,
                |filter| Ok(filter.clear()?),
                |filter, batch| match batch {
                    Batch::Devices(keys, _) => Ok(filter.insert_each_device(keys)?),
                    Batch::Host(keys, _) => Ok(filter.insert_bulk(keys)?),
                },
                |filter| Ok(filter.count_ones()? == expected),
            )?;
            rows.lookups(
                "contains",
                &Batches::new(devices, skew, &absent, &[])?,
                |keys, answers| Ok(filter.contains_each_device(keys, values_of(answers))?),
                |answers: &[u8]| answers.iter().filter(|&&yes| yes == 1).count() == passed,
                |keys, _| Ok(filter.count_contained_bulk(keys)?),
                |found, _| found == passed,
            )?;
        }
    }
    rows.show(&format!("{n} keys, {}", table::bytes(bytes as f64)), |row| {
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
        assert_eq!(rows.len(), 2 * 2 * 6);
        assert!(rows.iter().all(|row| row.checked && row.seconds.is_some()));
    }
}

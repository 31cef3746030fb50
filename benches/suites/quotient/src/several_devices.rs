//! Filters and maplets divided among several GPUs: keys on the first, a share on each, keys on the host.

use warpset::gpu::Devices;
use warpset::quotient::gpu::{ShardedMaplet, ShardedQuotientFilter};
use warpset::quotient::{Count, Insert, RankSelect, RankSelectBuilder};

use super::{INSERTED, SEED};
use bench_frame::input::keys::KeySpace;
use bench_frame::several_devices::{Batch, Batches, Rows, Sizes, Skew, values_of};
use bench_frame::suite::{Session, Setup, Step};
use bench_record::Record;

/// Bits of a remainder, and of a value.
const REMAINDER_BITS: u32 = 12;
const VALUE_BITS: u32 = 16;
/// Load of the filter.
const LOAD: f64 = 0.7;

/// Makes the steps: none where there is one GPU.
pub fn steps(setup: &Setup) -> Vec<Step> {
    let bits = Sizes { emulator: &[11], quick: &[25], standard: &[25, 28], full: &[25, 28, 30] };
    let title = |bits: &u32| format!("quotient: on several devices, 2^{bits} slots");
    bits.steps(setup.devices().next(), setup.effort, title, run)
}

fn run(session: &mut Session, numbers: &[Devices], &bits: &u32) -> anyhow::Result<()> {
    let first = numbers[0].first();
    let n = ((1u64 << bits) as f64 * LOAD) as usize;
    let filters = RankSelectBuilder::with_bits(bits, REMAINDER_BITS);
    let maplets = filters.values(VALUE_BITS);
    let mut rows = Rows::new(session, &numbers[0], |operation| {
        let row = Record::new("quotient", operation, n).param("keys", "u64").param("quotient_bits", bits);
        row.param("remainder_bits", REMAINDER_BITS).by("rank-and-select", false)
    });
    for skew in Skew::ALL {
        let keys = skew.keys(KeySpace::new(SEED).stream(INSERTED), n);
        let values: Vec<u64> = keys.iter().map(|key| key >> (64 - VALUE_BITS)).collect();
        let held = filters.on(first).build_from(&keys)?.len();
        for devices in numbers {
            rows.on(devices);
            let batches = Batches::new(devices, skew, &keys, &values)?;
            let mut filter: ShardedQuotientFilter<RankSelect> = filters.sharded_on(devices).build()?;
            rows.changes(
                "insert",
                &batches,
                &mut filter,
                |filter| Ok(filter.clear()?),
                |filter, batch| match batch {
                    Batch::Devices(keys, _) => Ok(filter.insert_each_device(keys).map(drop)?),
                    Batch::Host(keys, _) => Ok(filter.insert_bulk(keys).map(drop)?),
                },
                |filter| Ok(filter.len() == held),
            )?;
            let right = |counts: &[u64]| counts.iter().all(|&count| count == 1);
            rows.lookups(
                "count",
                &batches,
                |keys, counts| Ok(filter.count_each_device(keys, values_of(counts))?),
                right,
                |keys, out| Ok(filter.count_bulk_into(keys, out)?),
                |(), counts| right(counts),
            )?;
            drop(filter);

            let mut maplet: ShardedMaplet = maplets.sharded_on(devices).build()?;
            rows.changes(
                "insert pairs",
                &batches,
                &mut maplet,
                |maplet| Ok(maplet.clear()?),
                |maplet, batch| match batch {
                    Batch::Devices(keys, values) => Ok(maplet.insert_each_device(keys, values).map(drop)?),
                    Batch::Host(keys, values) => Ok(maplet.insert_bulk(keys, values).map(drop)?),
                },
                |maplet| Ok(maplet.len() >= held),
            )?;
            rows.lookups(
                "get",
                &batches,
                |keys, found| Ok(maplet.get_each_device(keys, values_of(found))?),
                // Two values of one fingerprint are rare; the least of them is found.
                |found: &[u64]| found.iter().zip(&values).all(|(found, value)| found <= value),
                |keys, _| Ok(maplet.get_bulk(keys)?),
                |found, _| found.iter().all(|found| found.is_some()),
            )?;
        }
    }
    rows.show(&format!("{n} keys, 2^{bits} slots"), |row| row.number("quotient_bits") == Some(f64::from(bits)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_of_devices_is_a_row_and_checked() {
        let rows = Session::rows_of(steps(&Setup::emulator()));
        assert_eq!(rows.len(), 2 * 2 * 12);
        assert!(rows.iter().all(|row| row.checked && row.seconds.is_some() && row.number("of_linear").is_some()));
    }
}

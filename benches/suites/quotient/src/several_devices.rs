//! Filters and maplets divided among several GPUs: keys on the first, a share on each, keys on the host.

use warpset::gpu::{Device, DeviceVec, Devices};
use warpset::quotient::gpu::{DeviceInsert, ShardedMaplet, ShardedQuotientFilter};
use warpset::quotient::{Count, Insert, RankSelect, RankSelectBuilder};

use super::{INSERTED, SEED};
use bench_frame::clock::Effort;
use bench_frame::input::keys::KeySpace;
use bench_frame::several_devices::{self, OfOne, shares, time};
use bench_frame::suite::{Session, Setup, Step};
use bench_record::Record;

/// Bits of a remainder, and of a value.
const REMAINDER_BITS: u32 = 12;
const VALUE_BITS: u32 = 16;
/// Load of the filter.
const LOAD: f64 = 0.7;

fn quotient_bits(device: &Device, effort: Effort) -> Vec<u32> {
    match (device.is_emulator(), effort) {
        (true, _) => vec![11],
        (_, Effort::Quick) => vec![25],
        (_, Effort::Standard) => vec![25, 28],
        (_, Effort::Full) => vec![25, 28, 30],
    }
}

/// Makes the steps: none where there is one GPU.
pub fn steps(setup: &Setup) -> Vec<Step> {
    let first = setup.devices().next();
    let sizes = first.map_or(Vec::new(), |first| quotient_bits(first, setup.effort));
    several_devices::steps(first, sizes, |bits| format!("quotient: on several devices, 2^{bits} slots"), run)
}

fn run(session: &mut Session, numbers: &[Devices], &bits: &u32) -> anyhow::Result<()> {
    let first = numbers[0].first();
    let n = ((1u64 << bits) as f64 * LOAD) as usize;
    let keys = KeySpace::new(SEED).stream(INSERTED).u64_keys(n);
    let values: Vec<u64> = keys.iter().map(|key| key >> (64 - VALUE_BITS)).collect();
    let filters = RankSelectBuilder::with_bits(bits, REMAINDER_BITS);
    let maplets = filters.values(VALUE_BITS);
    let held = filters.on(first).build_from(&keys)?.len();
    let mut of_one = OfOne::default();
    for devices in numbers {
        let (here, there) = (first.from_slice(&keys)?, shares(devices, &keys)?);
        let slices: Vec<_> = there.iter().map(|keys| keys.as_slice()).collect();
        let mut times = Vec::new();

        let mut filter: ShardedQuotientFilter<RankSelect> = filters.sharded_on(devices).build()?;
        let (seconds, _) = time(first, || {
            filter.clear()?;
            Ok(filter.insert_device(here.as_slice())?)
        })?;
        times.push(("insert from one device", seconds, filter.len() == held));
        let (seconds, _) = time(first, || {
            filter.clear()?;
            Ok(filter.insert_each_device(&slices)?)
        })?;
        times.push(("insert from all devices", seconds, filter.len() == held));
        let mut counts = first.alloc_zeroed::<u64>(n)?;
        let (seconds, ()) = time(first, || Ok(filter.count_device(here.as_slice(), counts.as_mut_slice())?))?;
        times.push(("count from one device", seconds, counts.to_vec()?.iter().all(|&count| count == 1)));
        let mut counts = zeroed(&there)?;
        let (seconds, ()) = time(first, || {
            let counts = counts.iter_mut().map(|counts| counts.as_mut_slice()).collect();
            Ok(filter.count_each_device(&slices, counts)?)
        })?;
        let mut right = true;
        for counts in &counts {
            right &= counts.to_vec()?.iter().all(|&count| count == 1);
        }
        times.push(("count from all devices", seconds, right));
        let (seconds, counts) = time(first, || Ok(filter.count_bulk(&keys)?))?;
        times.push(("count from the host", seconds, counts.iter().all(|&count| count == 1)));
        drop((filter, counts));

        let mut maplet: ShardedMaplet = maplets.sharded_on(devices).build()?;
        let (of_here, of_there) = (first.from_slice(&values)?, shares(devices, &values)?);
        let values_there: Vec<_> = of_there.iter().map(|values| values.as_slice()).collect();
        let (seconds, _) = time(first, || {
            maplet.clear()?;
            Ok(maplet.insert_each_device(&[here.as_slice()], &[of_here.as_slice()])?)
        })?;
        let stored = maplet.len();
        times.push(("insert pairs from one device", seconds, stored >= held));
        let (seconds, _) = time(first, || {
            maplet.clear()?;
            Ok(maplet.insert_each_device(&slices, &values_there)?)
        })?;
        times.push(("insert pairs from all devices", seconds, maplet.len() == stored));
        // Two values of one fingerprint are rare; the least of them is found.
        let is_found = |found: &[u64], values: &[u64]| found.iter().zip(values).all(|(found, value)| found <= value);
        let mut found = first.alloc_zeroed::<u64>(n)?;
        let (seconds, ()) = time(first, || Ok(maplet.get_device(here.as_slice(), found.as_mut_slice())?))?;
        times.push(("get from one device", seconds, is_found(&found.to_vec()?, &values)));
        let mut found = zeroed(&there)?;
        let (seconds, ()) = time(first, || {
            let found = found.iter_mut().map(|found| found.as_mut_slice()).collect();
            Ok(maplet.get_each_device(&slices, found)?)
        })?;
        let mut right = true;
        for (found, values) in found.iter().zip(&of_there) {
            right &= is_found(&found.to_vec()?, &values.to_vec()?);
        }
        times.push(("get from all devices", seconds, right));
        let (seconds, found) = time(first, || Ok(maplet.get_bulk(&keys)?))?;
        times.push(("get from the host", seconds, found.iter().all(|found| found.is_some())));
        of_one.add(session, devices, times, |operation| {
            let row = Record::new("quotient", operation, n).param("keys", "u64").param("quotient_bits", bits);
            row.param("remainder_bits", REMAINDER_BITS).by("rank-and-select", false)
        });
    }
    several_devices::show(session, &format!("{n} keys, 2^{bits} slots"), |row| {
        row.number("quotient_bits") == Some(f64::from(bits))
    });
    Ok(())
}

/// Returns a word for each item of these vectors, where they are.
fn zeroed(items: &[DeviceVec<u64>]) -> anyhow::Result<Vec<DeviceVec<u64>>> {
    items.iter().map(|items| Ok(items.device().alloc_zeroed(items.len())?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_of_devices_is_a_row_and_checked() {
        let rows = Session::rows_of(steps(&Setup::emulator()));
        assert_eq!(rows.len(), 2 * 10);
        assert!(rows.iter().all(|row| row.checked && row.seconds.is_some() && row.number("of_linear").is_some()));
    }
}

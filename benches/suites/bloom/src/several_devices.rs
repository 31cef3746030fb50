//! Filters divided among one, two, four and so on up to all GPUs: keys on the first, a share on each, keys on the host.
//! The clock is the host's, over the whole call. A row's `of_linear` is its rate over that of one GPU times their
//! number.

use std::time::Instant;

use warpset::bloom::gpu::{DeviceFilter, DeviceInsert};
use warpset::bloom::{Builder, Filter, Insert};
use warpset::gpu::{Device, Devices};

use super::variant::split_block;
use super::{ABSENT, BITS_PER_KEY, INSERTED, SEED};
use bench_frame::clock::Effort;
use bench_frame::input::keys::KeySpace;
use bench_frame::suite::{Session, Setup, Step, Target, Threads, numbers_of_devices};
use bench_frame::table;
use bench_record::Record;

/// Repeats after the first, of which the fastest counts.
const REPEATS: usize = 2;
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
    let Some(first) = setup.devices().next() else { return Vec::new() };
    let numbers = numbers_of_devices(first).unwrap_or_default();
    if numbers.is_empty() {
        return Vec::new();
    }
    let step = |&bytes: &usize| {
        let numbers = numbers.clone();
        let title = format!("bloom: on several devices, {}", table::bytes(bytes as f64));
        Step::new(title, move |session| run(session, &numbers, bytes))
    };
    sizes(first, setup.effort).iter().map(step).collect()
}

/// Returns the least seconds of a call; the first one loads kernels.
fn time(device: &Device, mut call: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let repeats = if device.is_emulator() { 0 } else { REPEATS };
    let mut least = f64::INFINITY;
    for repeat in 0..=repeats {
        let start = Instant::now();
        call()?;
        if repeat > 0 || repeats == 0 {
            least = least.min(start.elapsed().as_secs_f64());
        }
    }
    Ok(least)
}

fn run(session: &mut Session, numbers: &[Devices], bytes: usize) -> anyhow::Result<()> {
    let first = numbers[0].first();
    let n = (bytes * 8 / BITS_PER_KEY).min(MOST);
    let [inserted, absent] = [INSERTED, ABSENT].map(|stream| KeySpace::new(SEED).stream(stream).u64_keys(n));
    let builder = Builder::with_layout(split_block(bytes)?);
    let plain = builder.on(first).build_from(&inserted)?;
    let (expected, passed) = (plain.count_ones()?, plain.count_contained_bulk(&absent)?);
    drop(plain);
    let target = Target::Gpu(first.clone());
    let mut of_one = Vec::new();
    for devices in numbers {
        let (count, mut right) = (devices.all().len(), Vec::new());
        let mut filter = builder.sharded_on(devices).build()?;
        let share = |place: usize| n * place / count..n * (place + 1) / count;
        let shares = |keys: &[u64]| -> anyhow::Result<Vec<_>> {
            let there = devices.all().iter().enumerate();
            there.map(|(place, device)| Ok(device.from_slice(&keys[share(place)])?)).collect()
        };
        let (here, there) = (first.from_slice(&inserted)?, shares(&inserted)?);
        let slices: Vec<_> = there.iter().map(|keys| keys.as_slice()).collect();
        let mut times = Vec::new();
        times.push(("insert from one device", time(first, || Ok(filter.insert_device(here.as_slice())?))?));
        right.push(filter.count_ones()? == expected);
        filter.clear()?;
        times.push(("insert from all devices", time(first, || Ok(filter.insert_each_device(&slices)?))?));
        right.push(filter.count_ones()? == expected);
        filter.clear()?;
        times.push(("insert from the host", time(first, || Ok(filter.insert_bulk(&inserted)?))?));
        right.push(filter.count_ones()? == expected);
        drop(slices);
        drop(there);
        let mut answers = first.alloc_zeroed::<u8>(n)?;
        let asked = || Ok(filter.contains_device(here.as_slice(), answers.as_mut_slice())?);
        times.push(("contains from one device", time(first, asked)?));
        right.push(answers.to_vec()?.iter().all(|&yes| yes == 1));
        let there = shares(&absent)?;
        let mut answers = Vec::new();
        for keys in &there {
            answers.push(keys.device().alloc_zeroed::<u8>(keys.len())?);
        }
        let slices: Vec<_> = there.iter().map(|keys| keys.as_slice()).collect();
        let asked = || {
            let answers = answers.iter_mut().map(|answers| answers.as_mut_slice()).collect();
            Ok(filter.contains_each_device(&slices, answers)?)
        };
        times.push(("contains from all devices", time(first, asked)?));
        let mut yes = 0;
        for answers in &answers {
            yes += answers.to_vec()?.iter().filter(|&&yes| yes == 1).count();
        }
        right.push(yes == passed);
        let mut found = 0;
        let asked = || {
            found = filter.count_contained_bulk(&absent)?;
            Ok(())
        };
        times.push(("contains from the host", time(first, asked)?));
        right.push(found == passed);
        for (i, ((operation, seconds), right)) in times.into_iter().zip(right).enumerate() {
            if count == 1 {
                of_one.push(seconds);
            }
            let mut row = Record::new("bloom", operation, n).param("study", "several devices").param("keys", "u64");
            row = row.param("filter_bytes", bytes).param("devices", count);
            row = row.param("of_linear", of_one[i] / count as f64 / seconds);
            session.add(&target, Threads::All, row.by("split-block", false).time(seconds), right);
        }
    }
    session.show(
        "several devices",
        &format!("ns per key, {n} keys, {}", table::bytes(bytes as f64)),
        |row| row.number("filter_bytes") == Some(bytes as f64) && row.text("study") == Some("several devices"),
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
        let rows = Session::rows_of(steps(&Setup::emulator()));
        assert_eq!(rows.len(), 2 * 6);
        assert!(rows.iter().all(|row| row.checked && row.seconds.is_some() && row.number("of_linear").is_some()));
    }
}

//! Keys and answers in host memory: rates of a device with all copies, and the number of keys per call from which
//! copying to the device pays.

use bench_frame::input::keys::KeySpace;
use warpset::bloom::{Builder, SplitBlockBloom, gpu};
use warpset::gpu::Device;
use warpset::prelude::{Filter, Insert};

use super::variant::{self, Variant};
use super::{ABSENT, INSERTED, SEED, plausible};
use bench_frame::clock::{Effort, median_seconds};
use bench_frame::gpu_limits;
use bench_frame::suite::{Session, Setup, Step, Target, Threads};
use bench_frame::table;
use bench_record::Record;

/// Makes a step for each CUDA device.
pub fn steps(setup: &Setup) -> Vec<Step> {
    let devices = setup.devices().filter(|device| !device.is_emulator()).cloned();
    devices
        .map(|device| {
            Step::new("bloom: host slices, CPU and GPU", move |session| {
                end_to_end(session, &device)?;
                break_even(session, &device)
            })
        })
        .collect()
}

fn row(operation: &str, n: usize, bytes: usize, seconds: f64) -> Record {
    let row = Record::new("bloom", operation, n).time(seconds).by(Variant::SplitBlock.name(), false);
    row.param("filter_bytes", bytes).param("key", "u64").param("keys_in", "host memory")
}

/// Measures insertions and lookups of keys in ordinary memory, and bare uploads of the same bytes. The limit is an
/// upload from pinned memory.
fn end_to_end(session: &mut Session, device: &Device) -> anyhow::Result<()> {
    let n = 1 << if session.effort == Effort::Quick { 22 } else { 27 };
    let (effort, target) = (session.effort, Target::Gpu(device.clone()));
    let space = KeySpace::new(SEED);
    let (keys, absent) = (space.stream(INSERTED).u64_keys(n), space.stream(ABSENT).u64_keys(n));
    let mut on_device = device.alloc_uninit::<u64>(n)?;
    let stream = device.new_stream()?;
    let mut pinned = device.pinned::<u64>(n)?;
    pinned.copy_from_slice(&keys);
    let bare = gpu_limits::pinned_upload(device, effort, &pinned, &mut on_device)?;
    let right = on_device.to_vec()? == keys;
    on_device.fill_bytes(0)?;
    let staged = median_seconds(effort, &mut on_device, |_| Ok(()), |to| Ok(stream.upload(to, &keys)?))?;
    let mut limit = None;
    for (operation, seconds, right) in
        [("upload, pinned memory", bare, right), ("upload, ordinary memory", staged, on_device.to_vec()? == keys)]
    {
        let row = Record::new("machine", operation, n).param("key", "u64").time(seconds).bytes(8 * n, None);
        limit = limit.or(row.items_per_second);
        session.add(&target, Threads::All, row, right);
    }
    for bytes in [1 << 25, 1 << 30] {
        // A part of the keys, so that the small filter is not overfull.
        let part = n.min(bytes / 2);
        let mut filter = Builder::with_layout(variant::split_block(bytes)?).on(device).build()?;
        let push = |session: &mut Session, operation: &str, n: usize, seconds: f64, right: bool| {
            let mut row = row(operation, n, bytes, seconds).param("study", "host slices");
            row.limit_fraction = row.items_per_second.zip(limit).map(|(rate, limit)| rate / limit);
            session.add(&target, Threads::All, row, right);
        };
        let clear = |filter: &mut gpu::SplitBlockBloom| Ok(filter.clear()?);
        let seconds = median_seconds(effort, &mut filter, clear, |filter| Ok(filter.insert_bulk(&keys[..part])?))?;
        let right = filter.count_contained_bulk(&keys[..part])? == part;
        push(session, "insert", part, seconds, right);

        let mut bits = None;
        let seconds = median_seconds(
            effort,
            &mut bits,
            |_| Ok(()),
            |bits| {
                *bits = Some(filter.contains_bitmap_bulk(&keys)?);
                Ok(())
            },
        )?;
        let found = bits.iter().flat_map(|bits| bits.iter().take(part)).filter(|&yes| yes).count();
        push(session, "contains bitmap", n, seconds, found == part);

        let mut answers = vec![false; n];
        let ask = |answers: &mut Vec<bool>| Ok(filter.contains_bulk_into(&absent, answers)?);
        let seconds = median_seconds(effort, &mut answers, |_| Ok(()), ask)?;
        let yes = answers.iter().filter(|yes| **yes).count();
        push(session, "contains miss", n, seconds, plausible(yes, filter.expected_fpr(part as u64) * n as f64));
    }
    Ok(())
}

/// Measures by the number of keys per call, to find the number from which the GPU pays.
fn break_even(session: &mut Session, device: &Device) -> anyhow::Result<()> {
    let most = if session.effort == Effort::Quick { 22 } else { 26 };
    let keys = KeySpace::new(SEED).stream(INSERTED).u64_keys(1 << most);
    // A filter beyond the processor's caches.
    let layout = variant::split_block(1 << 27)?;
    let mut on_host: SplitBlockBloom = Builder::with_layout(layout).build()?;
    session.pool(Threads::All).install(|| on_host.insert_bulk(&keys))?;
    let on_device = gpu::Bloom::from_host(device, &on_host)?;
    let mut answers = vec![false; keys.len()];
    let mut ratios = Vec::new();
    for log_n in (8..=most).step_by(2) {
        let n = 1 << log_n;
        let (keys, answers) = (&keys[..n], &mut answers[..n]);
        let mut rates = [0.0; 2];
        for (rate, target) in rates.iter_mut().zip([Target::Cpu, Target::Gpu(device.clone())]) {
            answers.fill(false);
            let seconds = session.time(Threads::All, &mut &mut *answers, |answers| {
                match target {
                    Target::Cpu => on_host.contains_bulk_into(keys, answers)?,
                    Target::Gpu(_) => on_device.contains_bulk_into(keys, answers)?,
                }
                Ok(())
            })?;
            let row = row("contains hit", n, 1 << 27, seconds).param("study", "break-even");
            *rate = row.items_per_second.unwrap_or_default();
            session.add(&target, Threads::All, row, answers.iter().all(|answer| *answer));
        }
        ratios.push((n, rates[1] / rates[0]));
    }
    let title = "contains, keys and answers in host memory, 128 MiB filter: keys per second by keys per call";
    let call = |row: &Record| format!("{}, {}", indicatif::HumanCount(row.n), row.backend);
    let rate = |row: &Record| row.items_per_second.map_or_else(String::new, table::rate);
    session.show("break-even", title, |_| true, call, rate);
    session.print(&pays_from(&ratios));
    Ok(())
}

/// Describes the result: the number of keys per call from which the device is ahead, given its speed-up by number of
/// keys, and larger numbers at which it is slower again.
fn pays_from(ratios: &[(usize, f64)]) -> String {
    let count = |n: usize| indicatif::HumanCount(n as u64);
    let Some(first) = ratios.iter().position(|(_, ratio)| *ratio > 1.0) else {
        return "At none of these sizes the GPU answers sooner than all threads of the CPU: the way to it costs more."
            .into();
    };
    let mut text =
        format!("From {} keys per call on, the GPU answers sooner than all threads of the CPU", count(ratios[first].0));
    let slower = |(_, ratio): &&(usize, f64)| *ratio <= 1.0;
    let behind: Vec<String> = ratios[first..]
        .iter()
        .filter(slower)
        .map(|(n, ratio)| format!("{} ({ratio:.2} times the CPU's rate)", count(*n)))
        .collect();
    if !behind.is_empty() {
        text += &format!(", but not at {}", behind.join(", "));
        let last = ratios.iter().rposition(|(_, ratio)| *ratio <= 1.0).unwrap_or_default();
        match ratios.get(last + 1) {
            Some((n, _)) => text += &format!("; from {} on it stays ahead", count(*n)),
            None => text += ", the most that was measured",
        }
    }
    text + "."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn break_even_names_where_the_device_falls_behind_again() {
        let ratios = |ratios: &[f64]| {
            let rows: Vec<(usize, f64)> =
                ratios.iter().enumerate().map(|(i, ratio)| (256 << (2 * i), *ratio)).collect();
            pays_from(&rows)
        };
        assert!(ratios(&[0.1, 0.5, 0.9]).starts_with("At none"));
        assert!(
            ratios(&[0.1, 1.5, 1.9]).starts_with("From 1,024 keys per call on")
                && ratios(&[0.1, 1.5]).ends_with("CPU.")
        );
        let text = ratios(&[0.5, 1.5, 0.87, 1.5, 2.0]);
        assert!(text.contains("From 1,024 keys") && text.contains("not at 4,096 (0.87 times"), "{text}");
        assert!(text.ends_with("from 16,384 on it stays ahead."), "{text}");
        assert!(ratios(&[0.5, 1.5, 0.8]).ends_with("the most that was measured."));
    }
}

//! Host slices on a device: whole calls, by the host's clock, beside bare copies of the same bytes from pinned memory;
//! and short batches, of which a call's fixed costs decide.

use warpset::gpu::Device;
use warpset::lsm::gpu::Lsm;
use warpset::lsm::{CleanupPolicy, Lsm as Host};

use super::{INSERTED, OTHERS, SEED};
use bench_frame::clock::{Effort, median_seconds};
use bench_frame::gpu_limits;
use bench_frame::input::keys::KeySpace;
use bench_frame::suite::{Session, Step, Target, Threads};
use bench_record::Record;

/// Elements of the tree that short batches go to.
const RESIDENT: usize = 1 << 22;
/// Lengths of short batches.
const SHORT: [usize; 3] = [64, 256, 1024];

pub fn step(device: &Device) -> Step {
    let device = device.clone();
    let target = Target::Gpu(device.clone());
    Step::new(format!("lsm: host slices on {}", target.name()), move |session| {
        let lengths: &[u32] = match (device.is_emulator(), session.effort) {
            (true, _) => &[10],
            (_, Effort::Quick) => &[20, 22],
            _ => &[20, 22, 24],
        };
        for log2_n in lengths {
            long(session, &target, &device, 1 << log2_n)?;
        }
        short(session, &target, &device)
    })
}

fn row(operation: &str, n: usize, elements: usize) -> Record {
    Record::new("lsm", operation, n)
        .by("lsm", false)
        .param("elements", elements)
        .param("key", "u64")
        .param("value", "u64")
        .param("keys_in", "host memory")
}

/// Measures one call for all elements, into an empty tree and of a tree of that size.
fn long(session: &mut Session, target: &Target, device: &Device, n: usize) -> anyhow::Result<()> {
    let effort = session.effort;
    let keys = KeySpace::new(SEED).stream(INSERTED).u64_keys(n);
    let absent = KeySpace::new(SEED).stream(OTHERS).u64_keys(n);
    let values: Vec<u64> = keys.iter().map(|key| !key).collect();
    let mut pinned = device.pinned::<u64>(2 * n)?;
    pinned[..n].copy_from_slice(&keys);
    pinned[n..].copy_from_slice(&values);
    let mut there = device.alloc_uninit::<u64>(2 * n)?;
    let seconds = gpu_limits::pinned_upload(device, effort, &pinned, &mut there)?;
    let bare = Record::new("machine", "upload of keys and values, pinned memory", n).param("key", "u64");
    let bare = bare.time(seconds).bytes(16 * n, None);
    let limit = bare.items_per_second;
    session.add(target, Threads::All, bare, there.to_vec()?[..] == pinned[..]);
    drop(there);
    let push = |session: &mut Session, operation: &str, seconds: f64, right: bool| {
        let mut row = row(operation, n, n).time(seconds);
        row.limit_fraction = row.items_per_second.zip(limit).map(|(rate, limit)| rate / limit);
        session.add(target, Threads::All, row, right);
    };
    let builder = Host::<u64, u64>::builder().cleanup(CleanupPolicy::Manual);
    let mut lsm: Lsm<u64, u64> = builder.on(device).build()?;
    let empty = |lsm: &mut Lsm<u64, u64>| Ok(lsm.clear()?);
    let seconds = median_seconds(effort, &mut lsm, empty, |lsm| Ok(lsm.insert_bulk(&keys, &values)?))?;
    push(session, "insert, host slices", seconds, lsm.resident_len() == n as u64);
    lsm.prepare()?;
    let (mut out, mut found) = (vec![0u64; n], None);
    for (operation, asked, hit) in
        [("get, present, host slices", &keys, true), ("get, absent, host slices", &absent, false)]
    {
        out.fill(1);
        let seconds = median_seconds(
            effort,
            &mut (),
            |()| Ok(()),
            |()| {
                found = Some(lsm.get_bulk_into(asked, &mut out)?);
                Ok(())
            },
        )?;
        let count = found.iter().map(|bits| bits.count_ones()).sum::<usize>();
        let right = count == if hit { n } else { 0 } && (out == values) == hit;
        push(session, operation, seconds, right);
    }
    Ok(())
}

/// Measures many calls, one after the other: a row's seconds are those of one.
fn short(session: &mut Session, target: &Target, device: &Device) -> anyhow::Result<()> {
    let (effort, few) = (session.effort, device.is_emulator());
    let resident = if few { 1 << 10 } else { RESIDENT };
    let calls = if few { 2 } else { 200 };
    let keys = KeySpace::new(SEED).stream(INSERTED).u64_keys(resident);
    let builder = Host::<u64, u64>::builder().cleanup(CleanupPolicy::Manual);
    let full: Lsm<u64, u64> = builder.on(device).build_from(&keys, &keys)?;
    full.prepare()?;
    for n in SHORT {
        let new = KeySpace::new(SEED).stream(OTHERS).u64_keys(n * calls);
        let mut lsm = builder.on(device).build()?;
        let empty = |lsm: &mut Lsm<u64, u64>| Ok(lsm.clear()?);
        let seconds = median_seconds(effort, &mut lsm, empty, |lsm| {
            Ok(new.chunks(n).try_for_each(|batch| lsm.insert_bulk(batch, batch))?)
        })?;
        let right = lsm.resident_len() == new.len() as u64;
        let short = |operation: &str| row(operation, n, resident).param("study", "short host slices");
        let inserted = short("insert, short host slices").time(seconds / calls as f64);
        session.add(target, Threads::All, inserted, right);

        let mut out = vec![0; n];
        let (mut at, mut hits) = (0, 0);
        let seconds = median_seconds(
            effort,
            &mut (),
            |()| Ok(()),
            |()| {
                hits = 0;
                for _ in 0..calls {
                    at = if at + 2 * n > keys.len() { 0 } else { at + n };
                    let asked = &keys[at..keys.len().min(at + n)];
                    hits += full.get_bulk_into(asked, &mut out[..asked.len()])?.count_ones();
                }
                Ok(())
            },
        )?;
        let asked = short("get, short host slices").time(seconds / calls as f64);
        session.add(target, Threads::All, asked, hits == calls * n.min(resident));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_right_on_the_emulator() {
        let rows = Session::rows_of(vec![step(&Device::emulator(Default::default()))]);
        assert!(rows.len() >= 10 && rows.iter().all(|row| row.checked || row.structure == "machine"), "{rows:?}");
    }
}

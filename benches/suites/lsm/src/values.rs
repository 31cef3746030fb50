//! Values and keys of several sizes: what they cost beside values of 8 and keys of 4 bytes, on the CPU and, from device
//! memory, on devices.

use std::collections::BTreeMap;

use warpset::gpu::Device;
use warpset::lsm::gpu::{DeviceKey, DeviceValue, Lsm};
use warpset::lsm::{CleanupPolicy, Lsm as Host};
use warpset_core::hash::mix;

use super::{INSERTED, SEED};
use bench_frame::clock::Effort;
use bench_frame::gpu_limits;
use bench_frame::input::keys::KeySpace;
use bench_frame::suite::{Session, Step, Target, Threads};
use bench_record::Record;

/// A value of `WORDS` words of 64 bits, or of one word of 32.
trait Made: DeviceValue<Stored = Self> + Send {
    fn of(number: u64) -> Self;
}

impl Made for u32 {
    fn of(number: u64) -> u32 {
        number as u32
    }
}

impl<const WORDS: usize> Made for [u64; WORDS]
where
    [u64; WORDS]: DeviceValue<Stored = Self>,
{
    fn of(number: u64) -> Self {
        std::array::from_fn(|i| number.rotate_left(8 * i as u32))
    }
}

/// A key that is a random number.
trait Asked: DeviceKey<Stored = Self> {
    const NAME: &str;
    /// Makes distinct keys of distinct numbers.
    fn of(number: u32) -> Self;
}

impl Asked for u32 {
    const NAME: &str = "u32";
    fn of(number: u32) -> u32 {
        number
    }
}

impl Asked for u128 {
    const NAME: &str = "u128";
    fn of(number: u32) -> u128 {
        u128::from(mix(number.into(), 1)) << 64 | u128::from(mix(number.into(), 2))
    }
}

pub fn step(target: Target, effort: Effort) -> Step {
    Step::new(format!("lsm: values and keys of several sizes on {}", target.name()), move |session| {
        let log2_n = match (&target, effort) {
            (target, _) if target.is_emulator() => 10,
            (Target::Cpu, Effort::Quick) => 17,
            (Target::Cpu, _) => 20,
            (_, Effort::Quick) => 22,
            _ => 24,
        };
        sizes::<u32, u32>(session, &target, log2_n)?;
        sizes::<u32, [u64; 1]>(session, &target, log2_n)?;
        sizes::<u32, [u64; 2]>(session, &target, log2_n)?;
        sizes::<u32, [u64; 4]>(session, &target, log2_n)?;
        sizes::<u128, [u64; 1]>(session, &target, log2_n)
    })
}

fn sizes<K: Asked, V: Made>(session: &mut Session, target: &Target, log2_n: u32) -> anyhow::Result<()> {
    // One batch less than the power of two: every level is full.
    let batch = (1usize << log2_n) / 16;
    let n = (1 << log2_n) - batch;
    let numbers = KeySpace::new(SEED).stream(INSERTED).u32_keys(n);
    let keys: Vec<K> = numbers.iter().map(|&number| K::of(number)).collect();
    let values: Vec<V> = numbers.iter().map(|&number| V::of(number.into())).collect();
    let row = |operation: &str, by: &str, peer: bool| {
        Record::new("lsm", operation, n)
            .by(by, peer)
            .param("elements", n)
            .param("batch", batch)
            .param("key", K::NAME)
            .param("value_bytes", size_of::<V>())
    };
    match target {
        Target::Cpu => {
            let builder = Host::<K, V>::builder().batch_size(batch as u64).cleanup(CleanupPolicy::Manual);
            let batches = || keys.chunks(batch).zip(values.chunks(batch));
            let empty = builder.build()?;
            let mut lsm = empty.clone();
            let seconds = session.time_change(Threads::One, &empty, &mut lsm, |lsm| {
                Ok(batches().try_for_each(|(keys, values)| lsm.insert_bulk(keys, values))?)
            })?;
            let asked = &keys[..n / 4];
            let (asking, found) = session.made(Threads::One, || Ok(lsm.get_bulk(asked)))?;
            let right = found.iter().zip(&values).all(|(found, value)| *found == Some(*value));
            session.add(target, Threads::One, row("insert, value sizes", "lsm", false).time(seconds), right);
            let scale = n as f64 / asked.len() as f64;
            session.add(target, Threads::One, row("get, value sizes", "lsm", false).time(scale * asking), right);

            let mut tree = BTreeMap::new();
            let seconds = session.time(Threads::One, &mut tree, |tree| {
                *tree = keys.iter().copied().zip(values.iter().copied()).collect();
                Ok(())
            })?;
            let (asking, found) = session
                .made(Threads::One, || Ok(asked.iter().map(|key| tree.get(key).copied()).collect::<Vec<_>>()))?;
            let right = found.iter().zip(&values).all(|(found, value)| *found == Some(*value));
            session.add(target, Threads::One, row("insert, value sizes", "BTreeMap", true).time(seconds), right);
            session.add(target, Threads::One, row("get, value sizes", "BTreeMap", true).time(scale * asking), right);
        }
        Target::Gpu(device) => on_device::<K, V>(session, target, device, batch, (&keys, &values), row)?,
    }
    Ok(())
}

fn on_device<K: Asked, V: Made>(
    session: &mut Session,
    target: &Target,
    device: &Device,
    batch: usize,
    (keys, values): (&[K], &[V]),
    row: impl Fn(&str, &str, bool) -> Record,
) -> anyhow::Result<()> {
    let (n, effort) = (keys.len(), session.effort);
    let stream = device.new_stream()?;
    let (there, values_there) = (device.from_slice(keys)?, device.from_slice(values)?);
    let builder = Host::<K, V>::builder().batch_size(batch as u64).cleanup(CleanupPolicy::Manual);
    let lsm = std::cell::RefCell::new(builder.on(device).build()?);
    let emptied = || Ok(lsm.borrow_mut().clear()?);
    let seconds = gpu_limits::seconds(device, &stream, effort, emptied, || {
        for first in (0..n).step_by(batch) {
            let part = first..first + batch;
            let (keys, values) = (there.slice(part.clone()), values_there.slice(part));
            // SAFETY: keys and values live until the clock has waited; the tree is asked by this stream alone before.
            unsafe { lsm.borrow_mut().insert_async(&stream, keys, values)? };
        }
        Ok(())
    })?;
    let lsm: Lsm<K, V> = lsm.into_inner();
    let right = lsm.resident_len() == n as u64;
    session.add(target, Threads::All, row("insert, value sizes", "lsm", false).time(seconds), right);
    lsm.prepare()?;
    let mut out = device.alloc_zeroed::<V>(n)?;
    let mut found = device.alloc_zeroed::<u64>(n.div_ceil(64))?;
    let seconds = gpu_limits::repeated(device, &stream, effort, || {
        // SAFETY: all memory lives until the clock has waited.
        unsafe { lsm.get_async(&stream, there.as_slice(), out.as_mut_slice(), found.as_mut_slice())? };
        Ok(())
    })?;
    let right = out.to_vec()? == values;
    session.add(target, Threads::All, row("get, value sizes", "lsm", false).time(seconds), right);
    let (lows, highs) = (device.from_slice(&[K::MIN])?, device.from_slice(&[K::MAX])?);
    drop(lsm.range_device(lows.as_slice(), highs.as_slice())?); // loads the kernels
    let begin = std::time::Instant::now();
    let all = lsm.range_device(lows.as_slice(), highs.as_slice())?;
    let seconds = begin.elapsed().as_secs_f64();
    let right = all.keys.len() == n && all.values.len() == n;
    session.add(target, Threads::All, row("range of all, value sizes", "lsm", false).time(seconds), right);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_right() {
        for target in [Target::Cpu, Target::Gpu(Device::emulator(Default::default()))] {
            let rows = Session::rows_of(vec![step(target, Effort::Quick)]);
            assert!(rows.len() >= 15 && rows.iter().all(|row| row.checked || row.structure == "machine"), "{rows:?}");
        }
    }
}

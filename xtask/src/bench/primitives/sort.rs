//! Radix sort of random keys and pairs, and sorting segments of several lengths.

use warpset::gpu::DeviceVec;
use warpset::primitives::sort::{self, By, Key, Payload};
use warpset::primitives::{cpu, segmented_sort};
use warpset_benches::keys::KeySpace;

use super::super::suite::{Session, Setup, Step, Target};
use super::{on_cpu, on_device, row, steps_of};

pub fn steps(setup: &Setup) -> Vec<Step> {
    let mut steps = steps_of(setup, "sort", |session, target, n| {
        let (wide, narrow) = keys(n);
        of_keys(session, target, "u32", &narrow)?;
        of_keys(session, target, "u64", &wide)?;
        of_pairs::<u32, u32>(session, target, "u32, u32", &narrow)?;
        of_pairs::<u64, u32>(session, target, "u64, u32", &wide)
    });
    steps.extend(steps_of(setup, "segmented sort", |session, target, n| {
        let narrow = keys(n).1;
        [16, 128, 1024, 4097, n].into_iter().try_for_each(|length| of_segments(session, target, length, &narrow))
    }));
    steps
}

fn keys(n: usize) -> (Vec<u64>, Vec<u32>) {
    let wide = KeySpace::new(0x507).stream(0).u64_keys(n);
    let narrow = wide.iter().map(|key| (key >> 32) as u32).collect();
    (wide, narrow)
}

/// Bytes that sorting `n` items must move: keys once to be counted, items twice for each of their keys' bytes.
fn bytes(n: usize, key: usize, value: usize) -> usize {
    n * (key + 2 * key * (key + value))
}

fn of_keys<K: Key>(session: &mut Session, target: &Target, name: &str, keys: &[K]) -> anyhow::Result<()> {
    let mut expected = keys.to_vec();
    expected.sort_unstable(); // equal keys are the same
    let row = row("sort", name, keys.len());
    let bytes = bytes(keys.len(), size_of::<K>(), 0);
    match target {
        Target::Cpu => {
            let mut out = keys.to_vec();
            let work = |out: &mut Vec<K>| Ok(cpu::sort::sort_keys(keys, out, By::ascending())?);
            on_cpu(session, row, bytes, &mut out, work, |out| *out == expected)
        }
        Target::Gpu(device) => {
            let keys = device.from_slice(keys)?;
            let mut out = device.alloc_uninit(expected.len())?;
            let stream = device.new_stream()?;
            let work = |out: &mut DeviceVec<K>| {
                // SAFETY: both live, and nobody else uses them, until the stream has been waited for.
                unsafe { sort::sort_keys(&stream, keys.as_slice(), out, By::ascending())? };
                Ok(())
            };
            on_device(session, &stream, row, bytes, &mut out, work, |out| Ok(out.to_vec()? == expected))
        }
    }
}

/// The values count up, so that they show whether equal keys kept their order.
fn of_pairs<K: Key, V: Payload + PartialEq + TryFrom<usize>>(
    session: &mut Session,
    target: &Target,
    name: &str,
    keys: &[K],
) -> anyhow::Result<()> {
    let value = |i: usize| V::try_from(i).unwrap_or_else(|_| unreachable!("fewer than 2^32 pairs"));
    let values: Vec<V> = (0..keys.len()).map(value).collect();
    let mut expected: Vec<(K, V)> = keys.iter().copied().zip(values.iter().copied()).collect();
    expected.sort_by_key(|(key, _)| *key);
    let (expected_keys, expected_values): (Vec<K>, Vec<V>) = expected.into_iter().unzip();
    let row = row("sort", name, keys.len());
    let bytes = bytes(keys.len(), size_of::<K>(), size_of::<V>());
    match target {
        Target::Cpu => {
            let mut out = (keys.to_vec(), values.clone());
            let work = |(out, out_values): &mut (Vec<K>, Vec<V>)| {
                Ok(cpu::sort::sort_pairs(keys, &values, out, out_values, By::ascending())?)
            };
            let right = |(keys, values): &(Vec<K>, Vec<V>)| *keys == expected_keys && *values == expected_values;
            on_cpu(session, row, bytes, &mut out, work, right)
        }
        Target::Gpu(device) => {
            let (keys, values) = (device.from_slice(keys)?, device.from_slice(&values)?);
            let mut out = (device.alloc_uninit(keys.len())?, device.alloc_uninit(keys.len())?);
            let stream = device.new_stream()?;
            let work = |(out, out_values): &mut (DeviceVec<K>, DeviceVec<V>)| {
                let (keys, values) = (keys.as_slice(), values.as_slice());
                // SAFETY: all live, and nobody else uses them, until the stream has been waited for.
                unsafe { sort::sort_pairs(&stream, keys, values, out, out_values, By::ascending())? };
                Ok(())
            };
            let right = |(keys, values): &(DeviceVec<K>, DeviceVec<V>)| {
                Ok(keys.to_vec()? == expected_keys && values.to_vec()? == expected_values)
            };
            on_device(session, &stream, row, bytes, &mut out, work, right)
        }
    }
}

/// Segments of one length, and what is left over. A segment is read and written once at least.
fn of_segments(session: &mut Session, target: &Target, length: usize, keys: &[u32]) -> anyhow::Result<()> {
    let n = keys.len();
    let offsets: Vec<u64> = (0..n as u64).step_by(length).chain([n as u64]).collect();
    let mut expected = keys.to_vec();
    expected.chunks_mut(length).for_each(<[u32]>::sort_unstable);
    let row = row("segmented sort", "u32", n).param("segment", length);
    let bytes = 8 * n;
    match target {
        Target::Cpu => {
            let mut out = keys.to_vec();
            let work = |out: &mut Vec<u32>| Ok(cpu::segmented_sort::sort_keys(keys, &offsets, out, By::ascending())?);
            on_cpu(session, row, bytes, &mut out, work, |out| *out == expected)
        }
        Target::Gpu(device) => {
            let (keys, offsets) = (device.from_slice(keys)?, device.from_slice(&offsets)?);
            let mut out = device.alloc_uninit(n)?;
            let stream = device.new_stream()?;
            let work = |out: &mut DeviceVec<u32>| {
                let (keys, offsets) = (keys.as_slice(), offsets.as_slice());
                // SAFETY: all live, and nobody else uses them, until the stream has been waited for; offsets ascend to `n`.
                unsafe { segmented_sort::sort_keys(&stream, keys, offsets, out, By::ascending())? };
                Ok(())
            };
            on_device(session, &stream, row, bytes, &mut out, work, |out| Ok(out.to_vec()? == expected))
        }
    }
}

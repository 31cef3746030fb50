//! Scans, reductions, reductions by key, and scans by an operator that is not associative.

use warpset::gpu::DeviceVec;
use warpset::primitives::cpu;
use warpset::primitives::non_associative::{self, NextSlot};
use warpset::primitives::reduce::{self, ReduceKernels};
use warpset::primitives::scan::{self, Max, ScanKernels, Sum};
use warpset::primitives::select::Item;
use warpset_benches::keys::KeySpace;

use super::super::suite::{Session, Setup, Step, Target};
use super::{on_cpu, on_device, row, steps_of};

pub fn steps(setup: &Setup) -> Vec<Step> {
    let mut steps = steps_of(setup, "scan", |session, target, n| {
        let random = KeySpace::new(0x5ca9).stream(0).u64_keys(n);
        let narrow: Vec<u32> = random.iter().map(|&key| key as u32).collect();
        scans::<Sum<u32>>(session, target, "u32 sum", &narrow)?;
        runs(session, target, &narrow)?;
        drop(narrow);
        scans::<Max<i64>>(session, target, "i64 max", &random.into_iter().map(|key| key as i64).collect::<Vec<_>>())
    });
    steps.extend(steps_of(setup, "non-associative scan", |session, target, n| match target {
        // Past that the methods of the paper take memory and time that teach nothing more.
        Target::Gpu(_) if n > 1 << 24 => Ok(()),
        Target::Gpu(device) if device.is_emulator() => slots(session, target, n, &[0.1]),
        Target::Gpu(_) | Target::Cpu => slots(session, target, n, &[0.1, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98]),
    }));
    steps
}

/// Scans and reductions by `O`.
fn scans<O: ScanKernels<Value: Item + PartialEq> + ReduceKernels>(
    session: &mut Session,
    target: &Target,
    name: &str,
    items: &[O::Value],
) -> anyhow::Result<()> {
    let n = items.len();
    let bytes = 2 * size_of_val(items);
    let mut all = O::IDENTITY;
    let step = |&item: &O::Value| {
        all = O::combine(all, item);
        all
    };
    let inclusive: Vec<O::Value> = items.iter().map(step).collect();
    // A segment for each thousand items or so.
    let heads: Vec<u64> = KeySpace::new(0x5e6).stream(0).u64_keys(n.div_ceil(64));
    let heads: Vec<u64> = heads.into_iter().map(|word| if word % 16 == 0 { 1 << (word >> 58) } else { 0 }).collect();
    let mut before = O::IDENTITY;
    let step = |(i, &item): (usize, &O::Value)| {
        let first = heads[i / 64] >> (i % 64) & 1 != 0;
        before = O::combine(if first { O::IDENTITY } else { before }, item);
        before
    };
    let by_segment: Vec<O::Value> = items.iter().enumerate().map(step).collect();
    match target {
        Target::Cpu => {
            let out = &mut items.to_vec();
            let work = |out: &mut Vec<O::Value>| Ok(cpu::scan::inclusive::<O>(items, out)?);
            on_cpu(session, row("inclusive scan", name, n), bytes, out, work, |out| *out == inclusive)?;
            let work = |out: &mut Vec<O::Value>| Ok(cpu::scan::segmented_inclusive::<O>(items, &heads, out)?);
            on_cpu(session, row("scan by segments", name, n), bytes + n / 8, out, work, |out| *out == by_segment)?;
            let mut reduced = O::IDENTITY;
            let work = |out: &mut O::Value| {
                *out = cpu::reduce::reduce::<O>(items);
                Ok(())
            };
            on_cpu(session, row("reduce", name, n), bytes / 2, &mut reduced, work, |&out| out == all)
        }
        Target::Gpu(device) => {
            let (items, heads) = (device.from_slice(items)?, device.from_slice(&heads)?);
            let mut out = device.alloc_uninit::<O::Value>(n)?;
            let stream = device.new_stream()?;
            let items = items.as_slice();
            let work = |out: &mut DeviceVec<O::Value>| {
                // SAFETY: all vectors live, and nobody else uses them, until the stream has been waited for.
                unsafe { scan::inclusive::<O>(&stream, items, out.as_mut_slice())? };
                Ok(())
            };
            let right = |out: &DeviceVec<O::Value>| Ok(out.to_vec()? == inclusive);
            on_device(session, &stream, row("inclusive scan", name, n), bytes, &mut out, work, right)?;
            let work = |out: &mut DeviceVec<O::Value>| {
                // SAFETY: as above.
                unsafe { scan::segmented_inclusive::<O>(&stream, items, heads.as_slice(), out.as_mut_slice())? };
                Ok(())
            };
            let right = |out: &DeviceVec<O::Value>| Ok(out.to_vec()? == by_segment);
            on_device(session, &stream, row("scan by segments", name, n), bytes + n / 8, &mut out, work, right)?;
            let mut reduced = device.alloc_uninit::<O::Value>(1)?;
            let work = |out: &mut DeviceVec<O::Value>| {
                // SAFETY: as above.
                unsafe { reduce::reduce::<O>(&stream, items, out.as_mut_slice())? };
                Ok(())
            };
            let right = |out: &DeviceVec<O::Value>| Ok(out.to_vec()? == [all]);
            on_device(session, &stream, row("reduce", name, n), bytes / 2, &mut reduced, work, right)
        }
    }
}

/// Keys in runs of four on average, with values: reduced, and encoded by their lengths.
fn runs(session: &mut Session, target: &Target, values: &[u32]) -> anyhow::Result<()> {
    let n = values.len();
    let mut key = 0u32;
    let next = |value: &u32| {
        key += u32::from(value >> 30 == 0);
        key
    };
    let keys: Vec<u32> = values.iter().map(next).collect();
    let (mut expected_keys, mut expected_values, mut expected_lengths) = (Vec::new(), Vec::<u32>::new(), Vec::new());
    for (key, &value) in keys.iter().zip(values) {
        if expected_keys.last() != Some(key) {
            expected_keys.push(*key);
            expected_values.push(0);
            expected_lengths.push(0u64);
        }
        let last = expected_keys.len() - 1;
        expected_values[last] = expected_values[last].wrapping_add(value);
        expected_lengths[last] += 1;
    }
    let count = expected_keys.len();
    let (reduced, encoded) = (8 * (n + count), 4 * n + 12 * count);
    let (reduce_row, encode_row) = (row("reduce by key", "u32, u32 sum", n), row("run-length encode", "u32", n));
    match target {
        Target::Cpu => {
            let out = &mut (keys.clone(), values.to_vec(), 0);
            let work = |(out_keys, out_values, runs): &mut (Vec<u32>, Vec<u32>, usize)| {
                *runs = cpu::reduce::reduce_by_key::<Sum<u32>, u32>(&keys, values, out_keys, out_values)?;
                Ok(())
            };
            on_cpu(session, reduce_row, reduced, out, work, |(keys, values, runs)| {
                keys[..*runs] == expected_keys && values[..*runs] == expected_values
            })?;
            let out = &mut (keys.clone(), vec![0u64; n], 0);
            let work = |(out_keys, lengths, runs): &mut (Vec<u32>, Vec<u64>, usize)| {
                *runs = cpu::reduce::run_length_encode(&keys, out_keys, lengths)?;
                Ok(())
            };
            on_cpu(session, encode_row, encoded, out, work, |(keys, lengths, runs)| {
                keys[..*runs] == expected_keys && lengths[..*runs] == expected_lengths
            })
        }
        Target::Gpu(device) => {
            let (keys, values) = (device.from_slice(&keys)?, device.from_slice(values)?);
            let stream = device.new_stream()?;
            let (keys, values) = (keys.as_slice(), values.as_slice());
            type Out<V> = (DeviceVec<u32>, DeviceVec<V>, DeviceVec<u64>);
            let mut out: Out<u32> = (device.alloc_uninit(n)?, device.alloc_uninit(n)?, device.alloc_uninit(1)?);
            let work = |(out_keys, out_values, runs): &mut Out<u32>| {
                let (out_keys, out_values, runs) = (out_keys.into(), out_values.into(), runs.into());
                // SAFETY: all vectors live, and nobody else uses them, until the stream has been waited for.
                unsafe { reduce::reduce_by_key::<Sum<u32>, u32>(&stream, keys, values, out_keys, out_values, runs)? };
                Ok(())
            };
            let right = |(keys, values, runs): &Out<u32>| {
                Ok(runs.to_vec()? == [count as u64]
                    && keys.slice(..count).to_vec()? == expected_keys
                    && values.slice(..count).to_vec()? == expected_values)
            };
            on_device(session, &stream, reduce_row, reduced, &mut out, work, right)?;
            let mut out: Out<u64> = (device.alloc_uninit(n)?, device.alloc_uninit(n)?, device.alloc_uninit(1)?);
            let work = |(out_keys, lengths, runs): &mut Out<u64>| {
                let (out_keys, lengths, runs) = (out_keys.into(), lengths.into(), runs.into());
                // SAFETY: as above.
                unsafe { reduce::run_length_encode(&stream, keys, out_keys, lengths, runs)? };
                Ok(())
            };
            let right = |(keys, lengths, runs): &Out<u64>| {
                Ok(runs.to_vec()? == [count as u64]
                    && keys.slice(..count).to_vec()? == expected_keys
                    && lengths.slice(..count).to_vec()? == expected_lengths)
            };
            on_device(session, &stream, encode_row, encoded, &mut out, work, right)
        }
    }
}

/// The slots of a quotient filter's items, by each method, at several fills: the fuller, the rarer a chain breaks.
fn slots(session: &mut Session, target: &Target, n: usize, fills: &[f64]) -> anyhow::Result<()> {
    type R = NextSlot<u32>;
    for &fill in fills {
        let quotients = (n as f64 / fill) as u64;
        let mut items: Vec<u32> = KeySpace::new(0x107)
            .stream(0)
            .u64_keys(n)
            .into_iter()
            .map(|key| ((u128::from(key) * u128::from(quotients)) >> 64) as u32)
            .collect();
        items.sort_unstable();
        let mut expected = vec![0; n];
        cpu::non_associative::scan_sequentially::<R>(&items, &mut expected)?;
        let row = |method: &str| row("non-associative scan", "u32", n).param("method", method).param("fill", fill);
        let bytes = 8 * n;
        match target {
            Target::Cpu => {
                let out = &mut vec![0; n];
                let work = |out: &mut Vec<u32>| Ok(cpu::non_associative::scan::<R>(&items, out)?);
                on_cpu(session, row("lifted"), bytes, out, work, |out| *out == expected)?;
                let work = |out: &mut Vec<u32>| Ok(cpu::non_associative::scan_sequentially::<R>(&items, out)?);
                on_cpu(session, row("sequential"), bytes, out, work, |out| *out == expected)?;
            }
            Target::Gpu(device) => {
                let items = device.from_slice(&items)?;
                let items = items.as_slice();
                let stream = device.new_stream()?;
                let mut out = device.alloc_uninit::<u32>(n)?;
                type Method = unsafe fn(
                    &warpset::gpu::Stream,
                    warpset::gpu::DeviceSlice<'_, u32>,
                    warpset::gpu::DeviceSliceMut<'_, u32>,
                ) -> warpset::primitives::Result<usize>;
                let methods: [(&str, Method); 4] = [
                    ("lifted", |stream, items, out| {
                        // SAFETY: the caller's promise is the same.
                        unsafe { non_associative::scan::<R>(stream, items, out) }.map(|()| 1)
                    }),
                    ("parallel merging", non_associative::parallel_merging::<R>),
                    ("sequential shifting", non_associative::sequential_shifting::<R>),
                    ("segmented layouts", non_associative::segmented_layouts::<R>),
                ];
                for (name, method) in methods {
                    let work = |out: &mut DeviceVec<u32>| {
                        // SAFETY: both live, and nobody else uses them, until the stream has been waited for.
                        unsafe { method(&stream, items, out.as_mut_slice())? };
                        Ok(())
                    };
                    let right = |out: &DeviceVec<u32>| Ok(out.to_vec()? == expected);
                    on_device(session, &stream, row(name), bytes, &mut out, work, right)?;
                }
            }
        }
    }
    Ok(())
}

//! Scans, reductions, reductions by key, and scans by an operator that is not associative.

use bench_frame::input::keys::KeySpace;
use bytemuck::Pod;
use warpset::gpu::{Device, DeviceSlice, DeviceSliceMut, Stream};
use warpset::primitives;
use warpset::primitives::non_associative::{self, NextSlot, Recurrence};
use warpset::primitives::reduce::{self, ReduceKernels};
use warpset::primitives::scan::{self, Max, ScanKernels, Sum};

use super::case::{Case, blank};
use super::steps_of;
use bench_frame::suite::{Session, Setup, Step};

pub fn steps(setup: &Setup) -> Vec<Step> {
    let mut steps = steps_of(setup, "scan", |session, device, n| {
        let random = KeySpace::new(0x5ca9).stream(0).u64_keys(n);
        let narrow: Vec<u32> = random.iter().map(|&key| key as u32).collect();
        scans::<Sum<u32>>(session, device, "u32 sum", &narrow)?;
        runs(session, device, &narrow)?;
        drop(narrow);
        scans::<Max<i64>>(session, device, "i64 max", &random.into_iter().map(|key| key as i64).collect::<Vec<_>>())
    });
    let slots = steps_of(setup, "non-associative scan", |session, device, n| match n {
        // Past that the methods of the paper take memory and time that teach nothing more.
        _ if n > 1 << 24 => Ok(()),
        _ if device.is_emulator() => slots(session, device, n, &[0.1]),
        _ => slots(session, device, n, &[0.1, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98]),
    });
    steps.extend(slots.into_iter().map(Step::except_quick));
    steps
}

/// Computes the scan by a plain loop, exclusive or inclusive. `heads` has a bit for each first item of a segment.
fn sequential<O: ScanKernels>(items: &[O::Value], heads: &[u64], exclusive: bool) -> Vec<O::Value> {
    let mut sum = O::IDENTITY;
    let step = |(i, &item): (usize, &O::Value)| {
        if heads.get(i / 64).is_some_and(|word| word >> (i % 64) & 1 != 0) {
            sum = O::IDENTITY;
        }
        let before = sum;
        sum = O::combine(sum, item);
        if exclusive { before } else { sum }
    };
    items.iter().enumerate().map(step).collect()
}

/// Measures scans and reductions by `O`.
fn scans<O: ScanKernels<Value: Pod + PartialEq> + ReduceKernels>(
    session: &mut Session,
    device: &Device,
    name: &str,
    items: &[O::Value],
) -> anyhow::Result<()> {
    let n = items.len();
    let bytes = 2 * size_of_val(items);
    // A segment for each thousand items or so.
    let heads: Vec<u64> = KeySpace::new(0x5e6).stream(0).u64_keys(n.div_ceil(64));
    let heads: Vec<u64> = heads.into_iter().map(|word| if word % 16 == 0 { 1 << (word >> 58) } else { 0 }).collect();

    for (operation, exclusive) in [("inclusive scan", false), ("exclusive scan", true)] {
        let expected = sequential::<O>(items, &[], exclusive);
        Case::new(session, device, operation, name, n, bytes).run(
            items,
            blank::<O::Value>(n),
            |stream, items, out| {
                let (items, out) = (items.as_slice(), out.as_mut_slice());
                // SAFETY: `run` keeps both as the scan asks.
                unsafe {
                    match exclusive {
                        false => scan::inclusive_async::<O>(stream, items, out),
                        true => scan::exclusive_async::<O>(stream, items, out),
                    }
                }
            },
            |out| *out == expected,
        )?;
    }
    let expected = sequential::<O>(items, &heads, false);
    Case::new(session, device, "scan by segments", name, n, bytes + n / 8).run(
        (items, &heads[..]),
        blank::<O::Value>(n),
        // SAFETY: as above.
        |stream, (items, heads), out| unsafe {
            scan::segmented_inclusive_async::<O>(stream, items.as_slice(), heads.as_slice(), out.as_mut_slice())
        },
        |out| *out == expected,
    )?;
    let expected = items.iter().fold(O::IDENTITY, |sum, &item| O::combine(sum, item));
    Case::new(session, device, "reduce", name, n, bytes / 2).run(
        items,
        blank::<O::Value>(1),
        // SAFETY: as above.
        |stream, items, out| unsafe { reduce::reduce_async::<O>(stream, items.as_slice(), out.as_mut_slice()) },
        |out| out[0] == expected,
    )
}

/// Measures reduction by key and run-length encoding of keys in runs of four on average.
fn runs(session: &mut Session, device: &Device, values: &[u32]) -> anyhow::Result<()> {
    let n = values.len();
    let mut key = 0u32;
    let next = |value: &u32| {
        key += u32::from(value >> 30 == 0);
        key
    };
    let keys: Vec<u32> = values.iter().map(next).collect();
    let chunks = || keys.chunk_by(|a, b| a == b);
    let heads: Vec<u32> = chunks().map(|run| run[0]).collect();
    let lengths: Vec<u64> = chunks().map(|run| run.len() as u64).collect();
    let mut rest = values;
    let sums: Vec<u32> = chunks()
        .map(|run| {
            let (mine, others) = rest.split_at(run.len());
            rest = others;
            mine.iter().fold(0, |sum: u32, value| sum.wrapping_add(*value))
        })
        .collect();
    let count = heads.len();
    Case::new(session, device, "reduce by key", "u32, u32 sum", n, 8 * (n + count)).run(
        (&keys[..], values),
        (blank::<u32>(n), blank::<u32>(n), blank::<u64>(1)),
        |stream, (keys, values), (out_keys, out_values, runs)| {
            let (keys, values) = (keys.as_slice(), values.as_slice());
            let (out_keys, out_values, runs) = (out_keys.into(), out_values.into(), runs.into());
            // SAFETY: `run` keeps all of them as the reduction asks.
            unsafe { reduce::reduce_by_key_async::<Sum<u32>, u32>(stream, keys, values, out_keys, out_values, runs) }
        },
        |(keys, values, runs)| runs[0] == count as u64 && keys[..count] == heads && values[..count] == sums,
    )?;
    Case::new(session, device, "run-length encode", "u32", n, 4 * n + 12 * count).run(
        &keys[..],
        (blank::<u32>(n), blank::<u64>(n), blank::<u64>(1)),
        |stream, keys, (out_keys, lengths, runs)| {
            let (out_keys, lengths, runs) = (out_keys.into(), lengths.into(), runs.into());
            // SAFETY: as above.
            unsafe { reduce::run_length_encode_async(stream, keys.as_slice(), out_keys, lengths, runs) }
        },
        |(keys, found, runs)| runs[0] == count as u64 && keys[..count] == heads && found[..count] == lengths,
    )
}

/// Measures the slots of a quotient filter's items, by each method, at several fills: the fuller, the rarer a chain
/// breaks.
fn slots(session: &mut Session, device: &Device, n: usize, fills: &[f64]) -> anyhow::Result<()> {
    type R = NextSlot<u32>;
    type Method = unsafe fn(&Stream, DeviceSlice<'_, u32>, DeviceSliceMut<'_, u32>) -> primitives::Result<usize>;
    let methods: [(&str, Method); 4] = [
        // SAFETY: the caller's promise is the same.
        ("lifted", |stream, items, out| unsafe { non_associative::scan_async::<R>(stream, items, out) }.map(|()| 1)),
        ("parallel merging", non_associative::parallel_merging_async::<R>),
        ("sequential shifting", non_associative::sequential_shifting_async::<R>),
        ("segmented layouts", non_associative::segmented_layouts_async::<R>),
    ];
    for &fill in fills {
        let quotients = (n as f64 / fill) as u64;
        let keys = KeySpace::new(0x107).stream(0).u64_keys(n).into_iter();
        let mut items: Vec<u32> = keys.map(|key| ((u128::from(key) * u128::from(quotients)) >> 64) as u32).collect();
        items.sort_unstable();
        let mut expected: Vec<u32> = Vec::with_capacity(n);
        for &item in &items {
            expected.push(expected.last().map_or(item, |&before| R::step(before, item)));
        }
        for (name, method) in methods {
            let case = Case::new(session, device, "non-associative scan", "u32", n, 8 * n);
            case.param("method", name).param("fill", fill).run(
                &items[..],
                blank::<u32>(n),
                // SAFETY: `run` keeps both as the scan asks.
                |stream, items, out| unsafe { method(stream, items.as_slice(), out.as_mut_slice()) },
                |out| *out == expected,
            )?;
        }
    }
    Ok(())
}

//! Merging two sorted runs of random keys of half the items each.

use warpset::gpu::{DeviceSlice, DeviceVec, Stream};
use warpset::primitives::merge::{self, Pairs};
use warpset::primitives::sort::{self, By, Key, Payload};
use warpset::primitives::{KeyMask, cpu};
use warpset_benches::keys::KeySpace;

use super::super::suite::{Session, Setup, Step, Target};
use super::{on_cpu, on_device, row, steps_of};

pub fn steps(setup: &Setup) -> Vec<Step> {
    steps_of(setup, "merge", |session, target, n| {
        let keys = |stream| KeySpace::new(0x3e6).stream(stream).u64_keys(n / 2);
        let (mut a, mut b) = (keys(0), keys(1));
        rayon::join(|| a.sort_unstable(), || b.sort_unstable());
        let narrow = |keys: &[u64]| keys.iter().map(|key| (key >> 32) as u32).collect::<Vec<u32>>();
        let (narrow_a, narrow_b) = (narrow(&a), narrow(&b));
        of_keys(session, target, "u32", &narrow_a, &narrow_b)?;
        of_keys(session, target, "u64", &a, &b)?;
        of_many(session, target, "u32", &narrow_a, &narrow_b)?;
        of_many(session, target, "u64", &a, &b)?;
        of_pairs::<u32, u32>(session, target, "u32, u32", &narrow_a, &narrow_b)?;
        of_pairs::<u64, u32>(session, target, "u64, u32", &a, &b)?;
        of_pairs::<u64, u64>(session, target, "u64, u64", &a, &b)
    })
}

fn of_keys<K: Key>(session: &mut Session, target: &Target, name: &str, a: &[K], b: &[K]) -> anyhow::Result<()> {
    let mut expected = [a, b].concat();
    expected.sort_unstable(); // equal keys are the same
    let row = row("merge", name, expected.len());
    let bytes = 2 * expected.len() * size_of::<K>();
    let mask = KeyMask::all();
    match target {
        Target::Cpu => {
            let mut out = [b, a].concat();
            let work = |out: &mut Vec<K>| Ok(cpu::merge::merge_keys(a, b, mask, out)?);
            on_cpu(session, row, bytes, &mut out, work, |out| *out == expected)
        }
        Target::Gpu(device) => {
            let (a, b) = (device.from_slice(a)?, device.from_slice(b)?);
            let mut out = device.alloc_uninit(expected.len())?;
            let stream = device.new_stream()?;
            let work = |out: &mut DeviceVec<K>| {
                // SAFETY: all live, and nobody else uses them, until the stream has been waited for.
                unsafe { merge::merge_keys(&stream, a.as_slice(), b.as_slice(), mask, out)? };
                Ok(())
            };
            on_device(session, &stream, row, bytes, &mut out, work, |out| Ok(out.to_vec()? == expected))
        }
    }
}

/// Eight runs: every fourth key of each of the two. On a GPU also what the one pass stands for: seven merges of two, and a
/// sort of everything.
fn of_many<K: Key>(session: &mut Session, target: &Target, name: &str, a: &[K], b: &[K]) -> anyhow::Result<()> {
    let fourth = |keys: &[K], first: usize| keys.iter().skip(first).step_by(4).copied().collect::<Vec<K>>();
    let runs: Vec<Vec<K>> = (0..8).map(|r| fourth(if r < 4 { a } else { b }, r % 4)).collect();
    let all = runs.concat();
    let mut expected = all.clone();
    expected.sort_unstable();
    let n = all.len();
    let row = |method: &str| row("merge of eight runs", name, n).param("method", method);
    let bytes = 2 * n * size_of::<K>();
    let mask = KeyMask::all();
    match target {
        Target::Cpu => {
            let runs: Vec<&[K]> = runs.iter().map(Vec::as_slice).collect();
            let mut out = all;
            let work = |out: &mut Vec<K>| Ok(cpu::merge::merge_many_keys(&runs, mask, out)?);
            on_cpu(session, row("one pass"), bytes, &mut out, work, |out| *out == expected)
        }
        Target::Gpu(device) => {
            let (stream, all) = (device.new_stream()?, device.from_slice(&all)?);
            let ends = runs.iter().scan(0, |end, run| {
                *end += run.len();
                Some(*end)
            });
            let ends: Vec<usize> = [0].into_iter().chain(ends).collect();
            let mut out = (device.alloc_uninit(n)?, device.alloc_uninit(n)?);
            type Out<K> = (DeviceVec<K>, DeviceVec<K>);
            let right = |(_, out): &Out<K>| Ok(out.to_vec()? == expected);

            let runs: Vec<_> = ends.windows(2).map(|ends| all.slice(ends[0]..ends[1])).collect();
            let work = |(_, out): &mut Out<K>| {
                // SAFETY: all live, and nobody else uses them, until the stream has been waited for.
                unsafe { merge::merge_many_keys(&stream, &runs, mask, out)? };
                Ok(())
            };
            on_device(session, &stream, row("one pass"), bytes, &mut out, work, right)?;
            let work = |(between, out): &mut Out<K>| {
                // SAFETY: as above.
                unsafe {
                    merge_in_twos(&stream, all.as_slice(), &ends, 1, out)?;
                    merge_in_twos(&stream, out.as_slice(), &ends, 2, between)?;
                    merge_in_twos(&stream, between.as_slice(), &ends, 4, out)
                }
            };
            on_device(session, &stream, row("seven merges of two"), bytes, &mut out, work, right)?;
            let work = |(_, out): &mut Out<K>| {
                // SAFETY: as above.
                unsafe { sort::sort_keys(&stream, all.as_slice(), out, By::ascending())? };
                Ok(())
            };
            on_device(session, &stream, row("sort"), bytes, &mut out, work, right)
        }
    }
}

/// Merges neighbours among runs that are `width` of those between `ends` long.
///
/// # Safety
/// Both vectors live, and nobody else uses them, until the stream has been waited for.
unsafe fn merge_in_twos<K: Key>(
    stream: &Stream,
    from: DeviceSlice<'_, K>,
    ends: &[usize],
    width: usize,
    to: &mut DeviceVec<K>,
) -> anyhow::Result<()> {
    for first in (0..ends.len() - 1).step_by(2 * width) {
        let [begin, middle, end] = [ends[first], ends[first + width], ends[first + 2 * width]];
        let (a, b) = (from.slice(begin..middle), from.slice(middle..end));
        // SAFETY: the caller's promise is the same.
        unsafe { merge::merge_keys(stream, a, b, KeyMask::all(), to.slice_mut(begin..end))? };
    }
    Ok(())
}

/// The values count up, so that they say where a pair came from.
fn of_pairs<K: Key, V: Payload + PartialEq + TryFrom<usize>>(
    session: &mut Session,
    target: &Target,
    name: &str,
    a: &[K],
    b: &[K],
) -> anyhow::Result<()> {
    let value = |i: usize| V::try_from(i).unwrap_or_else(|_| unreachable!("fewer than 2^32 pairs"));
    let values: Vec<V> = (0..a.len() + b.len()).map(value).collect();
    let (a_values, b_values) = values.split_at(a.len());
    let mut expected: Vec<(K, V)> = a.iter().chain(b).copied().zip(values.iter().copied()).collect();
    expected.sort_by_key(|(key, _)| *key);
    let (expected_keys, expected_values): (Vec<K>, Vec<V>) = expected.into_iter().unzip();
    let row = row("merge", name, values.len());
    let bytes = 2 * values.len() * (size_of::<K>() + size_of::<V>());
    let mask = KeyMask::all();
    match target {
        Target::Cpu => {
            let mut out = ([b, a].concat(), values.clone());
            let work = |(keys, out): &mut (Vec<K>, Vec<V>)| {
                Ok(cpu::merge::merge_pairs((a, a_values), (b, b_values), mask, keys, out)?)
            };
            let right = |(keys, out): &(Vec<K>, Vec<V>)| *keys == expected_keys && *out == expected_values;
            on_cpu(session, row, bytes, &mut out, work, right)
        }
        Target::Gpu(device) => {
            let stream: Stream = device.new_stream()?;
            let (a, a_values) = (device.from_slice(a)?, device.from_slice(a_values)?);
            let (b, b_values) = (device.from_slice(b)?, device.from_slice(b_values)?);
            let mut out = (device.alloc_uninit(values.len())?, device.alloc_uninit(values.len())?);
            let work = |(keys, out): &mut (DeviceVec<K>, DeviceVec<V>)| {
                let (a, b) = (Pairs::new(&a, &a_values), Pairs::new(&b, &b_values));
                // SAFETY: all live, and nobody else uses them, until the stream has been waited for.
                unsafe { merge::merge_pairs(&stream, a, b, mask, keys, out)? };
                Ok(())
            };
            let right = |(keys, out): &(DeviceVec<K>, DeviceVec<V>)| {
                Ok(keys.to_vec()? == expected_keys && out.to_vec()? == expected_values)
            };
            on_device(session, &stream, row, bytes, &mut out, work, right)
        }
    }
}

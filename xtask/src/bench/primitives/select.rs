//! Selection and partition: half of the items kept, in no pattern, and the first of equal neighbours.

use warpset::gpu::DeviceVec;
use warpset::primitives::cpu;
use warpset::primitives::select::{self, DevicePredicate, InRange, Predicate};
use warpset::primitives::sort::Key;
use warpset_benches::keys::KeySpace;

use super::super::suite::{Session, Setup, Step, Target};
use super::{on_cpu, on_device, row, steps_of};

pub fn steps(setup: &Setup) -> Vec<Step> {
    steps_of(setup, "select", |session, target, n| {
        let keys = KeySpace::new(0x5e1).stream(0);
        let bitmap = keys.u64_keys(n.div_ceil(64));
        let flags: Vec<u8> = (0..n).map(|i| (bitmap[i / 64] >> (i % 64) & 1) as u8).collect();
        let narrow: Vec<u32> = (0..n as u32).collect();
        by_bitmap(session, target, "u32", &narrow, &bitmap)?;
        by_flags(session, target, "u32", &narrow, &flags)?;
        let wide = keys.u64_keys(n);
        by_bitmap(session, target, "u64", &wide, &bitmap)?;
        by_flags(session, target, "u64", &wide, &flags)?;
        drop(flags);
        by_predicate(session, target, "u64", &wide, InRange { from: 1 << 62, to: 3 << 62 })?;
        by_predicate(session, target, "u32", &low(&wide), InRange { from: 1 << 30, to: 3 << 30 })?;
        // Sorted keys, of which three quarters are the first of their kind.
        let mut sorted: Vec<u64> = wide.iter().map(|key| key % (1 << 63) / (1 << 61) + 4 * (key >> 63)).collect();
        drop(wide);
        let mut count = 0;
        for key in &mut sorted {
            count += u64::from(*key != 0 && *key != 4);
            *key = count;
        }
        unique(session, target, "u64", &sorted)?;
        unique(session, target, "u32", &low(&sorted))?;
        unique_by_key(session, target, "u32, u32", &low(&sorted), &narrow)
    })
}

fn low(keys: &[u64]) -> Vec<u32> {
    keys.iter().map(|&key| key as u32).collect()
}

/// What a plain loop keeps.
fn kept<T: Copy>(items: &[T], keep: impl Fn(usize) -> bool) -> Vec<T> {
    (0..items.len()).filter(|&i| keep(i)).map(|i| items[i]).collect()
}

fn by_bitmap<T: select::Item + PartialEq>(
    session: &mut Session,
    target: &Target,
    name: &str,
    items: &[T],
    bitmap: &[u64],
) -> anyhow::Result<()> {
    let expected = kept(items, |i| bitmap[i / 64] >> (i % 64) & 1 != 0);
    let row = row("select by bitmap", name, items.len());
    let bytes = (items.len() + expected.len()) * size_of::<T>() + 8 * bitmap.len();
    match target {
        Target::Cpu => {
            let mut out = (items.to_vec(), 0);
            let work = |(out, n): &mut (Vec<T>, usize)| {
                *n = cpu::select::select(items, bitmap, out)?;
                Ok(())
            };
            on_cpu(session, row, bytes, &mut out, work, |(out, n)| out[..*n] == expected)
        }
        Target::Gpu(device) => {
            let (items, bitmap) = (device.from_slice(items)?, device.from_slice(bitmap)?);
            let mut out = (device.alloc_uninit(items.len())?, device.alloc_uninit(1)?);
            let stream = device.new_stream()?;
            let work = |(out, count): &mut (DeviceVec<T>, DeviceVec<u64>)| {
                let (out, count) = (out.as_mut_slice(), count.as_mut_slice());
                // SAFETY: all four live, and nobody else uses them, until the stream has been waited for.
                unsafe { select::select(&stream, items.as_slice(), bitmap.as_slice(), out, count)? };
                Ok(())
            };
            on_device(session, &stream, row, bytes, &mut out, work, |(out, count)| is(out, count, &expected))
        }
    }
}

fn by_flags<T: select::Item + PartialEq>(
    session: &mut Session,
    target: &Target,
    name: &str,
    items: &[T],
    flags: &[u8],
) -> anyhow::Result<()> {
    let expected = kept(items, |i| flags[i] != 0);
    let others = kept(items, |i| flags[i] == 0);
    let n = items.len();
    for partition in [false, true] {
        let row = row(if partition { "partition by flags" } else { "select by flags" }, name, n);
        let bytes = (n + if partition { n } else { expected.len() }) * size_of::<T>() + n;
        match target {
            Target::Cpu => {
                let mut out = (items.to_vec(), items.to_vec(), 0);
                let work = |(out, rejected, count): &mut (Vec<T>, Vec<T>, usize)| {
                    *count = match partition {
                        false => cpu::select::select_flagged(items, flags, out)?,
                        true => cpu::select::partition_flagged(items, flags, out, rejected)?,
                    };
                    Ok(())
                };
                on_cpu(session, row, bytes, &mut out, work, |(out, rejected, count)| {
                    out[..*count] == expected && (!partition || rejected[..others.len()] == others)
                })?;
            }
            Target::Gpu(device) => {
                let (items, flags) = (device.from_slice(items)?, device.from_slice(flags)?);
                let mut out = (device.alloc_uninit(n)?, device.alloc_uninit(n)?, device.alloc_uninit(1)?);
                let stream = device.new_stream()?;
                let work = |(out, rejected, count): &mut (DeviceVec<T>, DeviceVec<T>, DeviceVec<u64>)| {
                    let (items, flags) = (items.as_slice(), flags.as_slice());
                    let (out, rejected, count) = (out.as_mut_slice(), rejected.as_mut_slice(), count.as_mut_slice());
                    // SAFETY: all live, and nobody else uses them, until the stream has been waited for.
                    unsafe {
                        match partition {
                            false => select::select_flagged(&stream, items, flags, out, count)?,
                            true => select::partition_flagged(&stream, items, flags, out, rejected, count)?,
                        }
                    }
                    Ok(())
                };
                on_device(session, &stream, row, bytes, &mut out, work, |(out, rejected, count)| {
                    let others_right = !partition || rejected.slice(..others.len()).to_vec()? == others;
                    Ok(is(out, count, &expected)? && others_right)
                })?;
            }
        }
    }
    Ok(())
}

fn by_predicate<T: select::Item + Key + PartialEq>(
    session: &mut Session,
    target: &Target,
    name: &str,
    items: &[T],
    range: InRange<T>,
) -> anyhow::Result<()>
where
    InRange<T>: DevicePredicate<T>,
{
    let n = items.len();
    let expected = kept(items, |i| range.keep(items[i]));
    let others = kept(items, |i| !range.keep(items[i]));
    let rows = [row("select by predicate", name, n), row("partition by predicate", name, n)];
    let [bytes, bytes_of_both] = [n + expected.len(), 2 * n].map(|items| items * size_of::<T>());
    match target {
        Target::Cpu => {
            let mut out = (items.to_vec(), items.to_vec(), 0);
            let [select_row, partition_row] = rows;
            type Out<T> = (Vec<T>, Vec<T>, usize);
            let work = |(out, _, count): &mut Out<T>| {
                *count = cpu::select::select_if(items, range, out)?;
                Ok(())
            };
            on_cpu(session, select_row, bytes, &mut out, work, |(out, _, count)| out[..*count] == expected)?;
            let work = |(out, rejected, count): &mut Out<T>| {
                *count = cpu::select::partition_if(items, range, out, rejected)?;
                Ok(())
            };
            on_cpu(session, partition_row, bytes_of_both, &mut out, work, |(out, rejected, count)| {
                out[..*count] == expected && rejected[..others.len()] == others
            })
        }
        Target::Gpu(device) => {
            let (items, stream) = (device.from_slice(items)?, device.new_stream()?);
            let items = items.as_slice();
            let mut out = (device.alloc_uninit(n)?, device.alloc_uninit(n)?, device.alloc_uninit(1)?);
            let [select_row, partition_row] = rows;
            type Out<T> = (DeviceVec<T>, DeviceVec<T>, DeviceVec<u64>);
            let work = |(out, _, count): &mut Out<T>| {
                let (out, count) = (out.as_mut_slice(), count.as_mut_slice());
                // SAFETY: all live, and nobody else uses them, until the stream has been waited for.
                unsafe { select::select_if(&stream, items, range, out, count)? };
                Ok(())
            };
            let right = |(out, _, count): &Out<T>| is(out, count, &expected);
            on_device(session, &stream, select_row, bytes, &mut out, work, right)?;
            let work = |(out, rejected, count): &mut Out<T>| {
                let (out, rejected, count) = (out.as_mut_slice(), rejected.as_mut_slice(), count.as_mut_slice());
                // SAFETY: as above.
                unsafe { select::partition_if(&stream, items, range, out, rejected, count)? };
                Ok(())
            };
            let right = |(out, rejected, count): &Out<T>| {
                Ok(is(out, count, &expected)? && rejected.slice(..others.len()).to_vec()? == others)
            };
            on_device(session, &stream, partition_row, bytes_of_both, &mut out, work, right)
        }
    }
}

fn unique<T: select::Item + PartialEq>(
    session: &mut Session,
    target: &Target,
    name: &str,
    items: &[T],
) -> anyhow::Result<()> {
    let expected = kept(items, |i| i == 0 || items[i] != items[i - 1]);
    let row = row("unique", name, items.len());
    let bytes = (items.len() + expected.len()) * size_of::<T>();
    match target {
        Target::Cpu => {
            let mut out = (items.to_vec(), 0);
            let work = |(out, count): &mut (Vec<T>, usize)| {
                *count = cpu::select::unique(items, out)?;
                Ok(())
            };
            on_cpu(session, row, bytes, &mut out, work, |(out, count)| out[..*count] == expected)
        }
        Target::Gpu(device) => {
            let (items, stream) = (device.from_slice(items)?, device.new_stream()?);
            let mut out = (device.alloc_uninit(items.len())?, device.alloc_uninit(1)?);
            let work = |(out, count): &mut (DeviceVec<T>, DeviceVec<u64>)| {
                let (out, count) = (out.as_mut_slice(), count.as_mut_slice());
                // SAFETY: all live, and nobody else uses them, until the stream has been waited for.
                unsafe { select::unique(&stream, items.as_slice(), out, count)? };
                Ok(())
            };
            on_device(session, &stream, row, bytes, &mut out, work, |(out, count)| is(out, count, &expected))
        }
    }
}

fn unique_by_key<K: select::Item + PartialEq, V: select::Item + PartialEq>(
    session: &mut Session,
    target: &Target,
    name: &str,
    keys: &[K],
    values: &[V],
) -> anyhow::Result<()> {
    let first = |i: usize| i == 0 || keys[i] != keys[i - 1];
    let (expected, expected_values) = (kept(keys, first), kept(values, first));
    let n = keys.len();
    let row = row("unique by key", name, n);
    let bytes = (n + expected.len()) * (size_of::<K>() + size_of::<V>());
    match target {
        Target::Cpu => {
            let mut out = (keys.to_vec(), values.to_vec(), 0);
            let work = |(out, out_values, count): &mut (Vec<K>, Vec<V>, usize)| {
                *count = cpu::select::unique_by_key(keys, values, out, out_values)?;
                Ok(())
            };
            on_cpu(session, row, bytes, &mut out, work, |(out, out_values, count)| {
                out[..*count] == expected && out_values[..*count] == expected_values
            })
        }
        Target::Gpu(device) => {
            let (keys, values, stream) = (device.from_slice(keys)?, device.from_slice(values)?, device.new_stream()?);
            type Out<K, V> = (DeviceVec<K>, DeviceVec<V>, DeviceVec<u64>);
            let mut out = (device.alloc_uninit(n)?, device.alloc_uninit(n)?, device.alloc_uninit(1)?);
            let work = |(out, out_values, count): &mut Out<K, V>| {
                let (out, out_values, count) = (out.as_mut_slice(), out_values.as_mut_slice(), count.as_mut_slice());
                let (keys, values) = (keys.as_slice(), values.as_slice());
                // SAFETY: all live, and nobody else uses them, until the stream has been waited for.
                unsafe { select::unique_by_key(&stream, keys, values, out, out_values, count)? };
                Ok(())
            };
            on_device(session, &stream, row, bytes, &mut out, work, |(out, out_values, count)| {
                let values_right = out_values.slice(..expected_values.len()).to_vec()? == expected_values;
                Ok(is(out, count, &expected)? && values_right)
            })
        }
    }
}

/// Whether a selection gave just this.
fn is<T: select::Item + PartialEq>(out: &DeviceVec<T>, count: &DeviceVec<u64>, expected: &[T]) -> anyhow::Result<bool> {
    let count = count.to_vec()?[0] as usize;
    Ok(count == expected.len() && out.slice(..count).to_vec()? == expected)
}

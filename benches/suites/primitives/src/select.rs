//! Selection and partition: half of the items kept, in no pattern, and the first of equal neighbours.

use bench_frame::input::keys::KeySpace;
use warpset::gpu::{Device, DeviceVec};
use warpset::primitives::select::{self, DevicePredicate, InRange, Item, Predicate};
use warpset::primitives::sort::SortKey;

use super::case::{Case, blank};
use super::steps_of;
use bench_frame::suite::{Session, Setup, Step};

pub fn steps(setup: &Setup) -> Vec<Step> {
    steps_of(setup, "select", |session, device, n| {
        let keys = KeySpace::new(0x5e1).stream(0);
        let bitmap = keys.u64_keys(n.div_ceil(64));
        let flags: Vec<u8> = (0..n).map(|i| (bitmap[i / 64] >> (i % 64) & 1) as u8).collect();
        let narrow: Vec<u32> = (0..n as u32).collect();
        by_bitmap(session, device, "u32", &narrow, &bitmap)?;
        by_flags(session, device, "u32", &narrow, &flags)?;
        let wide = keys.u64_keys(n);
        by_bitmap(session, device, "u64", &wide, &bitmap)?;
        by_flags(session, device, "u64", &wide, &flags)?;
        drop(flags);
        by_predicate(session, device, "u64", &wide, InRange { from: 1 << 62, to: 3 << 62 })?;
        by_predicate(session, device, "u32", &low(&wide), InRange { from: 1 << 30, to: 3 << 30 })?;
        // Sorted keys, of which three quarters are the first of their kind.
        let mut sorted: Vec<u64> = wide.iter().map(|key| key % (1 << 63) / (1 << 61) + 4 * (key >> 63)).collect();
        drop(wide);
        let mut count = 0;
        for key in &mut sorted {
            count += u64::from(*key != 0 && *key != 4);
            *key = count;
        }
        unique(session, device, "u64", &sorted)?;
        unique(session, device, "u32", &low(&sorted))?;
        unique_by_key(session, device, &low(&sorted), &narrow)
    })
}

fn low(keys: &[u64]) -> Vec<u32> {
    keys.iter().map(|&key| key as u32).collect()
}

/// Selects by a plain loop.
fn kept<T: Copy>(items: &[T], keep: impl Fn(usize) -> bool) -> Vec<T> {
    (0..items.len()).filter(|&i| keep(i)).map(|i| items[i]).collect()
}

/// Items kept, items rejected, and how many were kept.
type Out<T> = (Vec<T>, Vec<T>, Vec<u64>);
type DeviceOut<T> = (DeviceVec<T>, DeviceVec<T>, DeviceVec<u64>);

fn no_output<T: Item>(n: usize) -> Out<T> {
    (blank(n), blank(n), blank(1))
}

/// Whether just `kept` was kept and, where it matters, `rejected` rejected.
fn is<T: PartialEq>(out: &Out<T>, kept: &[T], rejected: Option<&[T]>) -> bool {
    out.2[0] == kept.len() as u64
        && out.0[..kept.len()] == *kept
        && rejected.is_none_or(|rejected| out.1[..rejected.len()] == *rejected)
}

fn by_bitmap<T: Item + PartialEq>(
    session: &mut Session,
    device: &Device,
    name: &str,
    items: &[T],
    bitmap: &[u64],
) -> anyhow::Result<()> {
    let n = items.len();
    let expected = kept(items, |i| bitmap[i / 64] >> (i % 64) & 1 != 0);
    let bytes = (n + expected.len()) * size_of::<T>() + 8 * bitmap.len();
    Case::new(session, device, "select by bitmap", name, n, bytes).run(
        (items, bitmap),
        no_output::<T>(n),
        // SAFETY: `run` keeps all of them as the selection asks.
        |stream, (items, bitmap), (out, _, count)| unsafe {
            select::select_async(stream, items.as_slice(), bitmap.as_slice(), out.as_mut_slice(), count.as_mut_slice())
        },
        |out| is(out, &expected, None),
    )
}

fn by_flags<T: Item + PartialEq>(
    session: &mut Session,
    device: &Device,
    name: &str,
    items: &[T],
    flags: &[u8],
) -> anyhow::Result<()> {
    let n = items.len();
    let (expected, others) = (kept(items, |i| flags[i] != 0), kept(items, |i| flags[i] == 0));
    for (operation, partition) in [("select by flags", false), ("partition by flags", true)] {
        let bytes = (n + if partition { n } else { expected.len() }) * size_of::<T>() + n;
        Case::new(session, device, operation, name, n, bytes).run(
            (items, flags),
            no_output::<T>(n),
            |stream, (items, flags), (out, rejected, count): &mut DeviceOut<T>| {
                let (items, flags) = (items.as_slice(), flags.as_slice());
                let (out, rejected, count) = (out.as_mut_slice(), rejected.as_mut_slice(), count.as_mut_slice());
                // SAFETY: `run` keeps all of them as the selection asks.
                unsafe {
                    match partition {
                        false => select::select_flagged_async(stream, items, flags, out, count),
                        true => select::partition_flagged_async(stream, items, flags, out, rejected, count),
                    }
                }
            },
            |out| is(out, &expected, partition.then_some(&others)),
        )?;
    }
    Ok(())
}

fn by_predicate<T: Item + SortKey>(
    session: &mut Session,
    device: &Device,
    name: &str,
    items: &[T],
    range: InRange<T>,
) -> anyhow::Result<()>
where
    InRange<T>: DevicePredicate<T>,
{
    let n = items.len();
    let (expected, others) = (kept(items, |i| range.keep(items[i])), kept(items, |i| !range.keep(items[i])));
    for (operation, partition) in [("select by predicate", false), ("partition by predicate", true)] {
        let bytes = (n + if partition { n } else { expected.len() }) * size_of::<T>();
        Case::new(session, device, operation, name, n, bytes).run(
            items,
            no_output::<T>(n),
            |stream, items, (out, rejected, count): &mut DeviceOut<T>| {
                let (out, rejected, count) = (out.as_mut_slice(), rejected.as_mut_slice(), count.as_mut_slice());
                // SAFETY: `run` keeps all of them as the selection asks.
                unsafe {
                    match partition {
                        false => select::select_if_async(stream, items.as_slice(), range, out, count),
                        true => select::partition_if_async(stream, items.as_slice(), range, out, rejected, count),
                    }
                }
            },
            |out| is(out, &expected, partition.then_some(&others)),
        )?;
    }
    Ok(())
}

fn unique<T: Item + PartialEq>(session: &mut Session, device: &Device, name: &str, items: &[T]) -> anyhow::Result<()> {
    let n = items.len();
    let expected = kept(items, |i| i == 0 || items[i] != items[i - 1]);
    Case::new(session, device, "unique", name, n, (n + expected.len()) * size_of::<T>()).run(
        items,
        no_output::<T>(n),
        // SAFETY: `run` keeps all of them as the selection asks.
        |stream, items, (out, _, count)| unsafe {
            select::unique_async(stream, items.as_slice(), out.as_mut_slice(), count.as_mut_slice())
        },
        |out| is(out, &expected, None),
    )
}

fn unique_by_key(session: &mut Session, device: &Device, keys: &[u32], values: &[u32]) -> anyhow::Result<()> {
    let n = keys.len();
    let first = |i: usize| i == 0 || keys[i] != keys[i - 1];
    let (expected, expected_values) = (kept(keys, first), kept(values, first));
    Case::new(session, device, "unique by key", "u32, u32", n, 8 * (n + expected.len())).run(
        (keys, values),
        no_output::<u32>(n),
        |stream, (keys, values), (out, out_values, count)| {
            let (out, out_values, count) = (out.as_mut_slice(), out_values.as_mut_slice(), count.as_mut_slice());
            // SAFETY: `run` keeps all of them as the selection asks.
            unsafe { select::unique_by_key_async(stream, keys.as_slice(), values.as_slice(), out, out_values, count) }
        },
        |out| is(out, &expected, Some(&expected_values)),
    )
}

//! Selection: half of the items kept, in no pattern.

use warpset::gpu::DeviceVec;
use warpset::primitives::{cpu, select};
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
        drop(narrow);
        let wide = keys.u64_keys(n);
        by_bitmap(session, target, "u64", &wide, &bitmap)?;
        by_flags(session, target, "u64", &wide, &flags)
    })
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

/// Whether a selection gave just this.
fn is<T: select::Item + PartialEq>(out: &DeviceVec<T>, count: &DeviceVec<u64>, expected: &[T]) -> anyhow::Result<bool> {
    let count = count.to_vec()?[0] as usize;
    Ok(count == expected.len() && out.slice(..count).to_vec()? == expected)
}

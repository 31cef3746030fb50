//! Search of as many needles as there are keys, in no order and sorted.

use warpset::gpu::DeviceVec;
use warpset::primitives::sort::Key;
use warpset::primitives::{KeyMask, cpu, search};
use warpset_benches::keys::KeySpace;

use super::super::suite::{Session, Setup, Step, Target};
use super::{on_cpu, on_device, row, steps_of};

pub fn steps(setup: &Setup) -> Vec<Step> {
    steps_of(setup, "search", |session, target, n| {
        // Half of the items are keys, half are needles.
        let keys = |stream| KeySpace::new(0x5ea).stream(stream).u64_keys(n / 2);
        let (mut haystack, needles) = (keys(0), keys(1));
        haystack.sort_unstable();
        let narrow = |keys: &[u64]| keys.iter().map(|key| (key >> 32) as u32).collect::<Vec<u32>>();
        of_keys(session, target, "u32", &narrow(&haystack), &narrow(&needles))?;
        of_keys(session, target, "u64", &haystack, &needles)
    })
}

fn of_keys<K: Key>(
    session: &mut Session,
    target: &Target,
    name: &str,
    keys: &[K],
    needles: &[K],
) -> anyhow::Result<()> {
    let mask = KeyMask::all();
    let mut ordered = needles.to_vec();
    ordered.sort_unstable();
    for (operation, needles, sorted) in
        [("lower bound", needles, false), ("lower bound, sorted needles", &ordered[..], true)]
    {
        let expected: Vec<u64> = needles.iter().map(|needle| keys.partition_point(|key| key < needle) as u64).collect();
        let row = row(operation, name, needles.len()).param("keys", keys.len());
        let bytes = size_of_val(keys) + size_of_val(needles) + 8 * needles.len();
        match target {
            Target::Cpu => {
                let mut out = vec![0; needles.len()];
                let work = |out: &mut Vec<u64>| {
                    match sorted {
                        false => cpu::search::lower_bound(keys, needles, mask, out)?,
                        true => cpu::search::lower_bound_sorted(keys, needles, mask, out)?,
                    }
                    Ok(())
                };
                on_cpu(session, row, bytes, &mut out, work, |out| *out == expected)?;
            }
            Target::Gpu(device) => {
                let (keys, needles) = (device.from_slice(keys)?, device.from_slice(needles)?);
                let mut out = device.alloc_uninit(needles.len())?;
                let stream = device.new_stream()?;
                let work = |out: &mut DeviceVec<u64>| {
                    let (keys, needles) = (keys.as_slice(), needles.as_slice());
                    // SAFETY: all live, and nobody else uses them, until the stream has been waited for.
                    unsafe {
                        match sorted {
                            false => search::lower_bound(&stream, keys, needles, mask, out)?,
                            true => search::lower_bound_sorted(&stream, keys, needles, mask, out)?,
                        }
                    }
                    Ok(())
                };
                on_device(session, &stream, row, bytes, &mut out, work, |out| Ok(out.to_vec()? == expected))?;
            }
        }
    }
    Ok(())
}

//! Builds and lookups in device memory.

use std::time::Instant;

use bench_frame::clock::Effort;
use bench_frame::gpu_limits::{self, GpuAccess};
use bench_frame::suite::{Session, Step, Target, Threads, sizes_on};
use warpset::gpu::Device;
use warpset::range::RangeFilter;

use super::{BITS, LENGTH, input, plausible, row};

/// Number of lookups.
const ASKED: usize = 1 << 26;

/// Makes one step per size: filters within the L2 cache, and larger ones.
pub fn steps(device: &Device, effort: Effort) -> Vec<Step> {
    let sizes: &[usize] = match effort {
        _ if device.is_emulator() => &[1_000],
        Effort::Quick => &[10_000_000],
        _ => &[10_000_000, 100_000_000],
    };
    sizes_on(device, sizes, |n| format!("range filters: {n} keys"), measure)
}

fn measure(session: &mut Session, device: &Device, n: usize) -> anyhow::Result<()> {
    let (keys, firsts) = input(n, if device.is_emulator() { 1_000 } else { ASKED });
    let lasts: Vec<u64> = firsts.iter().map(|first| first + LENGTH - 1).collect();
    let (keys, stream) = (device.from_slice(&keys)?, device.new_stream()?);
    let (firsts, lasts) = (device.from_slice(&firsts)?, device.from_slice(&lasts)?);
    let builder = RangeFilter::<u64>::builder().bits_per_key(BITS.into()).on(device);
    // The first call loads the kernels.
    let filter = builder.build_from_device(keys.as_slice())?;
    let mut times = Vec::new();
    for _ in 0..3 {
        let start = Instant::now();
        builder.build_from_device(keys.as_slice())?;
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    let mut found = device.alloc_zeroed::<u64>(firsts.len().div_ceil(64))?;
    let queue = || {
        // SAFETY: all memory lives until the stream has been waited for, and nothing else uses it.
        unsafe {
            Ok(filter.may_contain_bitmap_async(&stream, firsts.as_slice(), lasts.as_slice(), found.as_mut_slice())?)
        }
    };
    let seconds = gpu_limits::repeated(device, &stream, session.effort, queue)?;
    let passed = found.to_vec()?.iter().map(|word| word.count_ones() as usize).sum();
    let right = plausible(passed, firsts.len());
    let bytes = (filter.memory_bytes() as usize).next_power_of_two().max(1 << 12);
    let limit = session.gpu_limit(device, GpuAccess::Lookup, bytes)?;
    let target = Target::Gpu(device.clone());
    for (operation, n, seconds) in [("build", n, times[1]), ("range, batch", firsts.len(), seconds)] {
        let mut row = row(operation, n, seconds, filter.len() as usize).by("range filter", false);
        row.bits_per_item = Some(filter.bits_per_key());
        if operation != "build" {
            row.limit_fraction = row.items_per_second.map(|rate| rate / limit);
        }
        session.add(&target, Threads::All, row, right);
    }
    Ok(())
}

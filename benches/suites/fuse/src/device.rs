//! Filters on a GPU (or, for small sizes, on the emulator), built and asked there: keys and answers are in device
//! memory; lookups are timed on the device's clock, builds as the caller sees them. The limit is that of one random
//! sector per key over as much memory, of which a lookup reads three, four-wise four.

use std::time::Instant;

use bench_frame::input::keys::KeySpace;
use warpset::fuse::gpu::DeviceWidth;
use warpset::fuse::{Arity, BinaryFuse, Form};
use warpset::gpu::Device;
use warpset::prelude::DeviceFilter;

use super::{SEED, plausible, row};
use bench_frame::clock::Effort;
use bench_frame::gpu_limits::{self, GpuAccess};
use bench_frame::suite::{Session, Step, Target, Threads, sizes_on};

/// Number of lookups.
const ASKED: usize = 1 << 26;
/// The largest filters that are built on the host too, to compare the bytes.
const COMPARED: usize = 10_000_000;

/// Returns numbers of keys: filters within the L2 cache, and larger ones.
fn sizes(device: &Device, effort: Effort) -> &'static [usize] {
    match effort {
        _ if device.is_emulator() => &[1_000],
        Effort::Quick => &[10_000_000],
        Effort::Standard => &[1_000_000, 10_000_000, 100_000_000],
        Effort::Full => &[1_000_000, 10_000_000, 100_000_000, 1_000_000_000],
    }
}

/// Makes one step per size.
pub fn steps(device: &Device, effort: Effort) -> Vec<Step> {
    sizes_on(device, sizes(device, effort), |n| format!("fuse: {n} keys"), measure_all)
}

fn measure_all(session: &mut Session, device: &Device, n: usize) -> anyhow::Result<()> {
    let keys = KeySpace::new(SEED).stream(0).u64_keys(n);
    for form in [Form::Sharded, Form::OneGraph] {
        for arity in [Arity::Three, Arity::Four] {
            measure::<u8>(session, device, &keys, form, arity)?;
        }
        if session.effort != Effort::Quick {
            measure::<u16>(session, device, &keys, form, Arity::Three)?;
        }
    }
    Ok(())
}

fn measure<F: DeviceWidth>(
    session: &mut Session,
    device: &Device,
    keys: &[u64],
    form: Form,
    arity: Arity,
) -> anyhow::Result<()> {
    let builder = BinaryFuse::<F>::builder().form(form).arity(arity);
    let there = device.from_slice(keys)?;
    // The first call loads the kernels.
    let filter = builder.on(device).build_from_device(there.as_slice())?;
    let mut times = Vec::new();
    for _ in 0..3 {
        let start = Instant::now();
        builder.on(device).build_from_device(there.as_slice())?;
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    let mut right = filter.count_contained_device(there.as_slice())? == keys.len();
    if keys.len() <= COMPARED {
        right = right && filter.to_host()? == builder.build_from(keys)?;
    }
    let words = if arity == Arity::Three { "three" } else { "four" };
    let kind = if form == Form::OneGraph { "one graph" } else { "sharded" };
    let name = format!("{kind}, {words}-wise, {} bits", F::BITS);
    let bytes = filter.memory_bytes() as usize;
    let limit = session.gpu_limit(device, GpuAccess::Lookup, bytes.next_power_of_two().max(1 << 12))?;
    let target = Target::Gpu(device.clone());
    let add = |session: &mut Session, operation: &str, n: usize, seconds: f64, fpr: Option<f64>, right: bool| {
        let mut row = row(operation, n, seconds, F::BITS, keys.len()).by(name.clone(), false);
        (row.fpr, row.bits_per_item) = (fpr, Some(filter.bits_per_key()));
        if operation != "build" {
            row.limit_fraction = row.items_per_second.map(|rate| rate / limit);
        }
        session.add(&target, Threads::All, row, right);
    };
    add(session, "build", keys.len(), times[1], None, right);

    let asked = KeySpace::new(SEED).stream(1).u64_keys(if device.is_emulator() { 1_000 } else { ASKED });
    let (there, stream) = (device.from_slice(&asked)?, device.new_stream()?);
    let mut answers = device.alloc_zeroed::<u8>(asked.len())?;
    // SAFETY: all memory lives until the stream has been waited for, and nothing else uses it.
    let queue = || unsafe { Ok(filter.contains_async(&stream, there.as_slice(), answers.as_mut_slice())?) };
    let seconds = gpu_limits::repeated(device, &stream, session.effort, queue)?;
    let passed = answers.to_vec()?.iter().filter(|&&answer| answer == 1).count();
    let right = plausible(passed, asked.len(), filter.fpr());
    add(session, "contains, batch", asked.len(), seconds, Some(passed as f64 / asked.len() as f64), right);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::FUSE;
    use super::*;
    use bench_frame::suite::{Setup, Suite};

    #[test]
    fn filters_on_the_emulator() {
        let rows = Session::rows_of(FUSE.generated(&Setup::emulator()));
        assert!(rows.iter().filter(|row| row.structure == "fuse").all(|row| row.checked));
        assert_eq!(rows.iter().filter(|row| row.operation == "build").count(), 4);
        assert_eq!(rows.iter().filter(|row| row.operation == "function: get, batch").count(), 8);
    }
}

//! Filters on a GPU (or, for small sizes, on the emulator): letters and answers are in device memory, and times are of
//! the device's clock. The limit is that of one random sector per access; a run of neighbouring k-mers, six on average,
//! shares one, so rates pass it.

use bench_frame::input::genome::canonical_kmers;
use warpset::bloom::SplitBlockBloom;
use warpset::gpu::Device;
use warpset::prelude::DeviceFilter;
use warpset::sequence::{PackedSequences, SequenceFilter};

use super::{BITS, K, letters, row};
use bench_frame::clock::Effort;
use bench_frame::gpu_limits::{self, GpuAccess};
use bench_frame::suite::{Session, Step, Target, Threads, sizes_on};

/// Returns k-mers of filters in the L2 cache, and beyond it.
fn sizes(device: &Device, effort: Effort) -> &'static [usize] {
    match effort {
        _ if device.is_emulator() => &[10_000],
        Effort::Quick => &[1 << 24],
        Effort::Standard => &[1 << 24, 1 << 28],
        Effort::Full => &[1 << 20, 1 << 24, 1 << 28, 1 << 30],
    }
}

/// The largest size at which ready k-mers are looked up too.
const MOST_READY: usize = 1 << 28;

/// Makes one step per size.
pub fn steps(device: &Device, effort: Effort) -> Vec<Step> {
    sizes_on(device, sizes(device, effort), |n| format!("sequence filter: {n} k-mers"), measure)
}

fn measure(session: &mut Session, device: &Device, n: usize) -> anyhow::Result<()> {
    let (own, others) = (letters(n, 1), letters(n, 2));
    let (there, asked) = (device.from_slice(&own)?, device.from_slice(&others)?);
    let mut packed = PackedSequences::new();
    packed.push(&own);
    let (bases, breaks) = (device.from_slice(packed.bases())?, device.from_slice(packed.breaks())?);
    let mut found = device.alloc_zeroed::<u32>(packed.bases().len())?;
    let (stream, target) = (device.new_stream()?, Target::Gpu(device.clone()));
    let mut filter = SequenceFilter::builder(n as u64).k(K as u32).bits_per_key(BITS).on(device).build()?;
    let (bytes, bits) = (filter.memory_bytes() as usize, filter.bits_per_key(n as u64));
    let mut empty = SequenceFilter::builder(n as u64).k(K as u32).bits_per_key(BITS).on(device).build()?;
    let cell = std::cell::RefCell::new(&mut empty);
    let clear = || Ok(cell.borrow_mut().clear()?);
    // SAFETY, of all that is queued below: all memory lives until the stream has been waited for, and nothing else uses
    // it.
    let insert = gpu_limits::seconds(device, &stream, session.effort, clear, || {
        // SAFETY: as above.
        unsafe { Ok(cell.borrow_mut().insert_async(&stream, there.as_slice())?) }
    })?;
    let insert_packed = gpu_limits::seconds(device, &stream, session.effort, clear, || {
        // SAFETY: as above.
        unsafe { Ok(cell.borrow_mut().insert_packed_async(&stream, bases.as_slice(), breaks.as_slice())?) }
    })?;
    filter.insert_device(there.as_slice())?;
    let mut right = filter.words().to_vec()? == empty.words().to_vec()?;
    let hit = gpu_limits::repeated(device, &stream, session.effort, || {
        // SAFETY: as above.
        unsafe { Ok(filter.contains_windows_async(&stream, there.as_slice(), found.as_mut_slice())?) }
    })?;
    let count = |found: Vec<u32>| found.iter().map(|word| word.count_ones() as usize).sum::<usize>();
    right &= count(found.to_vec()?) == n;
    let packed_hit = gpu_limits::repeated(device, &stream, session.effort, || {
        let (bases, breaks) = (bases.as_slice(), breaks.as_slice());
        // SAFETY: as above.
        unsafe { Ok(filter.contains_windows_packed_async(&stream, bases, breaks, found.as_mut_slice())?) }
    })?;
    right &= count(found.to_vec()?) == n;
    let miss = gpu_limits::repeated(device, &stream, session.effort, || {
        // SAFETY: as above.
        unsafe { Ok(filter.contains_windows_async(&stream, asked.as_slice(), found.as_mut_slice())?) }
    })?;
    let passed = count(found.to_vec()?);
    right &= passed as f64 <= 1e-4 * n as f64 + 10.0;
    let bytes = bytes.next_power_of_two().max(1 << 12);
    let lookups = session.gpu_limit(device, GpuAccess::Lookup, bytes)?;
    for (operation, variant, seconds, limit) in [
        ("insert", "from letters", insert, None),
        ("insert", "from packed bases", insert_packed, None),
        ("contains hit", "from letters", hit, Some(lookups)),
        ("contains hit", "from packed bases", packed_hit, Some(lookups)),
        ("contains miss", "from letters", miss, Some(lookups)),
    ] {
        let mut row = row(operation, n, seconds, n).by(variant, false);
        (row.fpr, row.bits_per_item) = (Some(passed as f64 / n as f64), Some(bits));
        row.limit_fraction = row.items_per_second.zip(limit).map(|(rate, limit)| rate / limit);
        session.add(&target, Threads::All, row, right);
    }
    if n <= MOST_READY { of_kmers(session, device, &own, &others) } else { Ok(()) }
}

/// Measures our split-block filter of ready k-mers.
fn of_kmers(session: &mut Session, device: &Device, own: &[u8], others: &[u8]) -> anyhow::Result<()> {
    let (keys, asked): (Vec<u64>, Vec<u64>) = (canonical_kmers(own).collect(), canonical_kmers(others).collect());
    let (n, stream, target) = (keys.len(), device.new_stream()?, Target::Gpu(device.clone()));
    let (there, asked) = (device.from_slice(&keys)?, device.from_slice(&asked)?);
    let mut filter = SplitBlockBloom::builder(n as u64).bits_per_key(BITS).on(device).build()?;
    let mut found = device.alloc_zeroed::<u64>(n.div_ceil(64))?;
    let mut times = Vec::new();
    for _ in 0..4 {
        filter.clear()?;
        let start = std::time::Instant::now();
        filter.insert_device(there.as_slice())?;
        times.push(start.elapsed().as_secs_f64());
    }
    let insert = bench_frame::clock::median(&mut times[1..]);
    let miss = gpu_limits::repeated(device, &stream, session.effort, || {
        // SAFETY: all memory lives until the stream has been waited for, and nothing else uses it.
        unsafe { Ok(filter.contains_bitmap_async(&stream, asked.as_slice(), found.as_mut_slice())?) }
    })?;
    let passed: usize = found.to_vec()?.iter().map(|word| word.count_ones() as usize).sum();
    let right = filter.count_contained_device(there.as_slice())? == n;
    for (operation, seconds) in [("insert", insert), ("contains miss", miss)] {
        let mut row = row(operation, n, seconds, n).by("split-block Bloom filter of ready k-mers", false);
        (row.fpr, row.bits_per_item) = (Some(passed as f64 / n as f64), Some(filter.bits_per_key(n as u64)));
        session.add(&target, Threads::All, row, right);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::SEQUENCE_FILTERS;
    use super::*;
    use bench_frame::suite::{Setup, Suite};

    #[test]
    fn filters_on_the_emulator() {
        let rows = Session::rows_of(SEQUENCE_FILTERS.generated(&Setup::emulator()));
        let ours: Vec<_> = rows.iter().filter(|row| row.structure == "sequence-filter").collect();
        assert!(ours.len() == 7 && ours.iter().all(|row| row.checked));
    }
}

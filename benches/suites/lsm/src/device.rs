//! On a device, from device memory, by events on the device's clock: the tables of the paper.

use warpset::gpu::{Device, DeviceVec, Stream};
use warpset::lsm::gpu::{Dictionary, LookupMethod, Lsm};
use warpset::lsm::{CleanupPolicy, Lsm as Host, SortedArray};

use super::{INSERTED, OTHERS, SEED, Shape};
use bench_frame::clock::Effort;
use bench_frame::gpu_limits;
use bench_frame::input::keys::KeySpace;
use bench_frame::suite::{Session, Step, Target, Threads};
use bench_record::Record;

/// Queries per call.
const QUERIES: usize = 1 << 24;
/// Expected lengths of ranges, and how many queries.
const LENGTHS: [(u64, usize); 2] = [(8, 1 << 22), (1024, 1 << 16)];

pub fn step(shape: Shape, device: &Device) -> Step {
    let device = device.clone();
    let target = Target::Gpu(device.clone());
    let title = format!("lsm: {} on {}", shape.name(), target.name());
    Step::new(title, move |session| measure(session, &target, &device, shape))
}

/// Returns the shapes for a device; an emulated one only tests whether it works.
pub fn shapes(device: &Device, effort: Effort) -> Vec<Shape> {
    let shape = |log2_n, log2_batch| Shape { log2_n, log2_batch };
    match (device.is_emulator(), effort) {
        (true, _) => vec![shape(9, 6)],
        (_, Effort::Quick) => vec![shape(24, 16)],
        _ => vec![shape(24, 16), shape(24, 20), shape(27, 16), shape(27, 20)],
    }
}

fn row(shape: Shape, operation: &str, n: usize) -> Record {
    row_of(shape, "lsm", operation, n)
}

fn row_of(shape: Shape, by: &str, operation: &str, n: usize) -> Record {
    Record::new("lsm", operation, n)
        .by(by, false)
        .param("elements", shape.len())
        .param("batch", shape.batch())
        .param("key", "u32")
}

fn measure(session: &mut Session, target: &Target, device: &Device, shape: Shape) -> anyhow::Result<()> {
    let (n, few) = (shape.len(), device.is_emulator());
    let stream = device.new_stream()?;
    let keys = KeySpace::new(SEED).stream(INSERTED).u32_keys(n);
    let on_device = device.from_slice(&keys)?;
    let builder = Host::<u32, u32>::builder().batch_size(shape.batch() as u64).cleanup(CleanupPolicy::Manual);
    let mut lsm: Lsm<u32, u32> = builder.on(device).build()?;
    let (start, end) = (device.new_event()?, device.new_event()?);
    let mut seconds = f64::INFINITY;
    // The first turn pays for the kernels.
    for _ in 0..if few { 1 } else { 3 } {
        lsm.clear()?;
        start.record(&stream)?;
        for first in (0..n).step_by(shape.batch()) {
            let batch = on_device.slice(first..first + shape.batch());
            // SAFETY: keys live until the event has been waited for; the tree is asked by this stream alone before.
            unsafe { lsm.insert_async(&stream, batch, batch)? };
        }
        end.record(&stream)?;
        seconds = seconds.min(f64::from(end.elapsed_ms(&start)?) * 1e-3);
    }
    let right = lsm.resident_len() == n as u64;
    session.add(target, Threads::All, row(shape, "insert batches", n).time(seconds), right);

    let queries = if few { 64 } else { QUERIES };
    // In an order independent of the order of insertion.
    let present: Vec<u32> =
        (0..queries as u64).map(|i| keys[(i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16) as usize % n]).collect();
    let absent = KeySpace::new(SEED).stream(OTHERS).u32_keys(queries);
    let mut values = device.alloc_zeroed::<u32>(queries)?;
    let mut found = device.alloc_zeroed::<u64>(queries.div_ceil(64))?;
    let ascending = |keys: &[u32]| {
        let mut keys = keys.to_vec();
        keys.sort_unstable();
        keys
    };
    let (present_ascending, absent_ascending) = (ascending(&present), ascending(&absent));
    for (operation, asked, hit, method) in [
        ("get, present, by halving", &present, true, LookupMethod::Halving),
        ("get, absent, by halving", &absent, false, LookupMethod::Halving),
        ("get, present", &present, true, LookupMethod::Auto),
        ("get, absent", &absent, false, LookupMethod::Auto),
        ("get, present, sorted first", &present, true, LookupMethod::Sorted),
        ("get, absent, sorted first", &absent, false, LookupMethod::Sorted),
        ("get, present, ascending", &present_ascending, true, LookupMethod::Auto),
        ("get, absent, ascending", &absent_ascending, false, LookupMethod::Auto),
        ("get, present, ascending, flipped", &present_ascending, true, LookupMethod::Flipped),
        ("get, absent, ascending, flipped", &absent_ascending, false, LookupMethod::Flipped),
    ] {
        let asked_there = device.from_slice(asked)?;
        if method == LookupMethod::Auto {
            lsm.prepare()?;
        }
        let seconds = gpu_limits::repeated(device, &stream, session.effort, || {
            let (values, found) = (values.as_mut_slice(), found.as_mut_slice());
            // SAFETY: all memory lives until the clock has waited.
            unsafe { lsm.get_async_with(&stream, asked_there.as_slice(), values, found, method)? };
            Ok(())
        })?;
        let bits: u64 = found.to_vec()?.iter().map(|word| u64::from(word.count_ones())).sum();
        let right = bits == if hit { queries as u64 } else { 0 } && (!hit || values.to_vec()? == *asked);
        session.add(target, Threads::All, row(shape, operation, queries).time(seconds), right);
    }
    let asked = Asked { target, device, stream: &stream, shape, present: &present, absent: &absent };
    asked.ranges(session, "lsm", &lsm)?;
    lsm.snapshot().live_elements()?; // loads the kernels
    let begin = std::time::Instant::now();
    lsm.cleanup()?;
    let seconds = begin.elapsed().as_secs_f64();
    let right = lsm.len()? == n as u64 && lsm.level_lens().len() == 1;
    session.add(target, Threads::All, row(shape, "cleanup", n).time(seconds), right);
    drop(lsm);

    // All in one level: rows of the array are the same whatever the batch is.
    let array =
        SortedArray::<u32, u32>::builder().on(device).build_from_device(on_device.as_slice(), on_device.as_slice())?;
    asked.array(session, &array, (&mut values, &mut found))?;
    asked.ranges(session, "sorted array", &array)
}

/// Device, dictionary and keys of lookups.
struct Asked<'a> {
    target: &'a Target,
    device: &'a Device,
    stream: &'a Stream,
    shape: Shape,
    present: &'a [u32],
    absent: &'a [u32],
}

impl Asked<'_> {
    /// Measures lookups in one level, with the memory per element; the second pair of rows includes the index.
    fn array<P>(
        &self,
        session: &mut Session,
        array: &Dictionary<u32, u32, P>,
        (values, found): (&mut DeviceVec<u32>, &mut DeviceVec<u64>),
    ) -> anyhow::Result<()> {
        for (operation, asked, hit, method) in [
            ("get, present, by halving", self.present, true, LookupMethod::Halving),
            ("get, absent, by halving", self.absent, false, LookupMethod::Halving),
            ("get, present", self.present, true, LookupMethod::Auto),
            ("get, absent", self.absent, false, LookupMethod::Auto),
        ] {
            if method == LookupMethod::Auto {
                array.prepare()?;
            }
            let there = self.device.from_slice(asked)?;
            let seconds = gpu_limits::repeated(self.device, self.stream, session.effort, || {
                let (values, found) = (values.as_mut_slice(), found.as_mut_slice());
                // SAFETY: all memory lives until the clock has waited.
                unsafe { array.get_async_with(self.stream, there.as_slice(), values, found, method)? };
                Ok(())
            })?;
            let bits: u64 = found.to_vec()?.iter().map(|word| u64::from(word.count_ones())).sum();
            let right = bits == if hit { asked.len() as u64 } else { 0 } && (!hit || values.to_vec()? == *asked);
            let bytes = array.memory_bytes() as f64 / array.resident_len() as f64;
            let row = row_of(self.shape, "sorted array", operation, asked.len()).param("bytes per element", bytes);
            session.add(self.target, Threads::All, row.time(seconds), right);
        }
        Ok(())
    }

    /// Counts and lists ranges.
    fn ranges<P>(&self, session: &mut Session, by: &str, of: &Dictionary<u32, u32, P>) -> anyhow::Result<()> {
        let few = self.device.is_emulator();
        for (length, count) in LENGTHS {
            let count = if few { 16 } else { count };
            let width = ((length << 32) / self.shape.len() as u64) as u32;
            let lows = &self.absent[..count];
            let highs: Vec<u32> = lows.iter().map(|&low| low.saturating_add(width)).collect();
            let (lows, highs) = (self.device.from_slice(lows)?, self.device.from_slice(&highs)?);
            let mut counts = self.device.alloc_zeroed::<u64>(count)?;
            let counting = gpu_limits::repeated(self.device, self.stream, session.effort, || {
                let counts = counts.as_mut_slice();
                // SAFETY: all memory lives until the clock has waited.
                unsafe { of.count_range_async(self.stream, lows.as_slice(), highs.as_slice(), counts)? };
                Ok(())
            })?;
            drop(of.range_device(lows.as_slice(), highs.as_slice())?); // loads the kernels
            let begin = std::time::Instant::now();
            let listed = of.range_device(lows.as_slice(), highs.as_slice())?;
            let listing = begin.elapsed().as_secs_f64();
            let right = counts.to_vec()?.iter().sum::<u64>() == listed.keys.len() as u64
                && (few || listed.keys.len() as u64 > length * count as u64 / 2);
            for (operation, seconds) in [("count", counting), ("range", listing)] {
                let row = row_of(self.shape, by, operation, count).param("length", length).time(seconds);
                session.add(self.target, Threads::All, row, right);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_right_on_the_emulator() {
        let device = Device::emulator(Default::default());
        let steps = shapes(&device, Effort::Quick).into_iter().map(|shape| step(shape, &device)).collect();
        let rows = Session::rows_of(steps);
        assert!(rows.len() >= 8 && rows.iter().all(|row| row.checked || row.structure == "machine"), "{rows:?}");
    }
}

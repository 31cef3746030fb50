//! Limits of a GPU's memory, measured in the same run by kernels that do nothing else.

use std::collections::HashMap;

use crate::input::keys::KeySpace;
use warpset::gpu::{Device, DeviceVec, PinnedVec, Stream};
use warpset_kernels::limits as kernels;
use warpset_simt::LaunchConfig;

use super::clock::{self, Effort};
use super::machine;
use bench_record::Record;

/// Kind of access to device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GpuAccess {
    /// A `u64` key in, a random 32-byte sector read, a byte out: what any lookup in 32-byte blocks has to do.
    Lookup,
    /// Atomic ORs of random 32-bit words.
    AtomicOr,
    /// 16 bytes copied.
    Copy,
    /// A 32-bit multiply-add, a shift and an exclusive or; no memory.
    Integer,
    /// A trial hash of RecSplit, turned into a position; no memory.
    TrialHash,
}

impl GpuAccess {
    fn name(self) -> &'static str {
        match self {
            GpuAccess::Lookup => "key in, random 32-byte read, byte out",
            GpuAccess::AtomicOr => "random 32-bit atomic OR",
            GpuAccess::Copy => "memory copy, 16 bytes",
            GpuAccess::Integer => "multiply-add, shift, exclusive or",
            GpuAccess::TrialHash => "trial hash and position",
        }
    }
}

/// Limits already measured, by access and footprint; of one device.
#[derive(Default)]
pub struct GpuLimits {
    known: HashMap<(String, GpuAccess, usize), (usize, f64)>,
}

impl GpuLimits {
    /// Measures accesses per second to `bytes` of memory.
    pub fn rate(&mut self, device: &Device, access: GpuAccess, bytes: usize, effort: Effort) -> anyhow::Result<f64> {
        let key = (device.to_string(), access, bytes);
        if let Some((_, rate)) = self.known.get(&key) {
            return Ok(*rate);
        }
        let n = accesses(device, access, bytes);
        let rate = n as f64 / measure(device, access, bytes, n, effort)?;
        self.known.insert(key, (n, rate));
        Ok(rate)
    }

    /// Returns every limit of `device` measured so far, as rows.
    pub fn rows(&self, device: &Device) -> Vec<Record> {
        let name = device.to_string();
        let mut rows: Vec<Record> = self
            .known
            .iter()
            .filter(|((device, ..), _)| *device == name)
            .map(|((_, access, bytes), (n, rate))| Record {
                backend: if device.is_emulator() { "emulator" } else { "cuda" }.into(),
                device: machine::gpu(device),
                ..row(access.name(), *n, *bytes).time(*n as f64 / rate)
            })
            .collect();
        let place = |row: &Record| (row.operation.clone(), row.number("filter_bytes").map(|bytes| bytes as u64));
        rows.sort_by_key(place);
        rows
    }
}

/// Measures the seconds of a bare copy from pinned memory to a device, which limits calls with keys in host memory.
pub fn pinned_upload(
    device: &Device,
    effort: Effort,
    from: &PinnedVec<u64>,
    to: &mut DeviceVec<u64>,
) -> anyhow::Result<f64> {
    let stream = device.new_stream()?;
    clock::median_seconds(
        effort,
        to,
        |_| Ok(()),
        |to| {
            // SAFETY: the pinned memory outlives the copy, which is waited for.
            let queued = unsafe { stream.upload_async(to, &from[..]) };
            Ok(queued.and(stream.synchronize())?)
        },
    )
}

fn row(operation: &str, n: usize, bytes: usize) -> Record {
    let row = Record::new("machine", operation, n);
    if bytes > 0 { row.param("filter_bytes", bytes) } else { row }
}

fn accesses(device: &Device, access: GpuAccess, bytes: usize) -> usize {
    match (device.is_emulator(), access) {
        (_, GpuAccess::Integer) => {
            grid(device, 8).block.x as usize * grid(device, 8).grid.x as usize * 8 * ROUNDS as usize
        }
        (_, GpuAccess::TrialHash) => {
            grid(device, 8).block.x as usize * grid(device, 8).grid.x as usize * 16 * trial_rounds(device) as usize
        }
        (true, _) => 1 << 11,
        (false, GpuAccess::Copy) => bytes / 16,
        (false, _) => 1 << 26,
    }
}

/// Rounds of eight multiply-adds in one thread.
const ROUNDS: u32 = 1 << 14;

/// Returns the number of rounds of sixteen trial hashes in one thread.
fn trial_rounds(device: &Device) -> u32 {
    if device.is_emulator() { 1 } else { 1 << 11 }
}

/// Returns a launch of `blocks` thread blocks per multiprocessor.
fn grid(device: &Device, blocks: u32) -> LaunchConfig {
    LaunchConfig::new(device.properties().multiprocessors * blocks, kernels::BLOCK)
}

fn measure(device: &Device, access: GpuAccess, bytes: usize, n: usize, effort: Effort) -> anyhow::Result<f64> {
    let stream = device.new_stream()?;
    let time = |work: &mut dyn FnMut() -> anyhow::Result<()>| repeated(device, &stream, effort, work);
    match access {
        GpuAccess::Lookup => {
            let memory: DeviceVec<u32> = device.alloc_zeroed(bytes / 4)?;
            let keys = device.from_slice(&KeySpace::new(0x11).stream(0).u64_keys(n))?;
            let mut out: DeviceVec<u8> = device.alloc_uninit(n)?;
            let (config, records) = (LaunchConfig::covering(n, kernels::BLOCK), (bytes / 32) as u64);
            time(&mut || {
                let (memory, keys, out) = (memory.global(), keys.global(), out.global_mut());
                // SAFETY: the grid covers `n` keys; `memory` holds `records` records of 32 bytes, `keys` and `out` `n`
                // items each, and all live until the stream has been waited for.
                unsafe { kernels::limits_lookup_32 { memory, records, keys, n, out }.launch(&stream, config)? };
                Ok(())
            })
        }
        GpuAccess::AtomicOr => {
            let mut memory: DeviceVec<u32> = device.alloc_zeroed(bytes / 4)?;
            let (config, words) = (grid(device, 16), (bytes / 4) as u64);
            time(&mut || {
                let memory = memory.global_mut();
                // SAFETY: `memory` holds `words` words and lives until the stream has been waited for.
                unsafe { kernels::limits_atomic_or_32 { memory, words, n, seed: 1 << 33 }.launch(&stream, config)? };
                Ok(())
            })
        }
        GpuAccess::Integer => {
            let mut sink: DeviceVec<u32> = device.alloc_zeroed(1)?;
            let config = grid(device, 8);
            time(&mut || {
                // SAFETY: `sink` is one word and lives until the stream has been waited for.
                unsafe {
                    kernels::limits_integer { rounds: ROUNDS, seed: 3, sink: sink.global_mut() }
                        .launch(&stream, config)?
                };
                Ok(())
            })
        }
        GpuAccess::TrialHash => {
            let mut sink: DeviceVec<u32> = device.alloc_zeroed(1)?;
            let (config, rounds) = (grid(device, 8), trial_rounds(device));
            time(&mut || {
                // SAFETY: `sink` is one word and lives until the stream has been waited for; there are at most 32
                // positions.
                unsafe {
                    kernels::limits_trial_hashes { rounds, positions: 17, start: 3, sink: sink.global_mut() }
                        .launch(&stream, config)?
                };
                Ok(())
            })
        }
        GpuAccess::Copy => {
            let from: DeviceVec<u32> = device.alloc_zeroed(4 * n)?;
            let mut to: DeviceVec<u32> = device.alloc_uninit(4 * n)?;
            let config = grid(device, 16);
            time(&mut || {
                // SAFETY: both hold `n` records of 16 bytes and live until the stream has been waited for.
                unsafe {
                    kernels::limits_copy { from: from.global(), to: to.global_mut(), n }.launch(&stream, config)?
                };
                Ok(())
            })
        }
    }
}

/// Measures work that needs no preparation, as [`seconds`] does.
pub fn repeated(
    device: &Device,
    stream: &Stream,
    effort: Effort,
    work: impl FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<f64> {
    seconds(device, stream, effort, || Ok(()), work)
}

/// Returns the median time of `work` on the device's clock: one run untimed, then several, `prepare` before each.
pub fn seconds(
    device: &Device,
    stream: &Stream,
    effort: Effort,
    mut prepare: impl FnMut() -> anyhow::Result<()>,
    mut work: impl FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<f64> {
    let (start, end) = (device.new_event()?, device.new_event()?);
    let repeats = match (device.is_emulator(), effort) {
        (true, _) => 1,
        (_, Effort::Quick) => 5,
        _ => 11,
    };
    let mut times = Vec::new();
    for repeat in 0..=repeats {
        prepare()?;
        start.record(stream)?;
        work()?;
        end.record(stream)?;
        let time = f64::from(end.elapsed_ms(&start)?) * 1e-3;
        if repeat > 0 {
            times.push(time);
        }
    }
    Ok(clock::median(&mut times))
}

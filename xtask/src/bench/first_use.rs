//! First calls on a device, each in a process of its own without the driver's cache of compiled kernels: what a user
//! waits for on a machine that has never run the program. Each with the device code that comes with the kernels, and with PTX alone, as
//! on a device of another architecture.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use warpset::gpu::{Device, DeviceVec};
use warpset::lsm::CleanupPolicy;
use warpset::prelude::*;

use super::record::Record;
use super::suite::{Setup, Step, Target, Threads};

/// Keys of a first call, slots of a quotient filter and keys of a large Bloom filter; fewer on the emulator, which takes the
/// same kernels for them.
const KEYS: usize = if cfg!(test) { 12_000 } else { 100_000 };
const SLOTS: u64 = if cfg!(test) { 1 << 17 } else { 1 << 20 };
const MANY: u64 = if cfg!(test) { 1 << 22 } else { 1 << 30 };

/// What a first call is made on.
struct Input {
    device: Device,
    keys: Vec<u64>,
    other_keys: Vec<u64>,
    small: Vec<u32>,
}

/// Prepares what is not timed, and gives the call that is.
type Prepare = fn(Input) -> anyhow::Result<Box<dyn FnOnce() -> anyhow::Result<()>>>;

/// Makes the call from a preparation and a body.
macro_rules! first {
    (|$input:ident| $prepare:block, |$state:ident| $body:expr) => {
        |$input: Input| {
            #[allow(unused_mut)]
            let mut $state = $prepare;
            Ok(Box::new(move || {
                $body;
                Ok(())
            }))
        }
    };
}

/// Every operation, by name.
const CALLS: &[(&str, Prepare)] = &[
    ("split-block insert_bulk", first!(|i| { (split_block(&i)?, i.keys) }, |s| s.0.insert_bulk(&s.1)?)),
    ("split-block contains_bulk", first!(|i| { (split_block(&i)?, i.keys) }, |s| s.0.contains_bulk(&s.1)?)),
    (
        "split-block test_and_insert_bulk",
        first!(|i| { (split_block(&i)?, i.keys) }, |s| { s.0.test_and_insert_bulk(&s.1)? }),
    ),
    (
        "split-block test_and_insert_bulk, by parts",
        first!(|i| { (by_parts(split_block(&i)?), i.keys) }, |s| { s.0.test_and_insert_bulk(&s.1)? }),
    ),
    (
        "blocked test_and_insert_bulk, by parts",
        first!(|i| { (by_parts(BlockedBloom::builder(KEYS as u64).on(&i.device).build()?), i.keys) }, |s| {
            s.0.test_and_insert_bulk(&s.1)?
        }),
    ),
    (
        "split-block insert_bulk, 1 GiB",
        first!(|i| { (split_block_of(&i, MANY)?, i.keys) }, |s| { s.0.insert_bulk(&s.1)? }),
    ),
    (
        "split-block insert_device, grouped",
        first!(|i| { (grouped(&i)?, i.device.from_slice(&i.keys)?) }, |s| { s.0.insert_device(s.1.as_slice())? }),
    ),
    (
        "blocked insert_bulk",
        first!(|i| { (BlockedBloom::builder(KEYS as u64).on(&i.device).build()?, i.keys) }, |s| {
            s.0.insert_bulk(&s.1)?
        }),
    ),
    (
        "blocked contains_bulk",
        first!(|i| { (BlockedBloom::builder(KEYS as u64).on(&i.device).build()?, i.keys) }, |s| {
            s.0.contains_bulk(&s.1)?
        }),
    ),
    (
        "Rao insert_bulk",
        first!(|i| { (RaoBloom::builder(KEYS as u64).on(&i.device).build()?, i.keys) }, |s| { s.0.insert_bulk(&s.1)? }),
    ),
    (
        "Rao contains_bulk",
        first!(|i| { (RaoBloom::builder(KEYS as u64).on(&i.device).build()?, i.keys) }, |s| {
            s.0.contains_bulk(&s.1)?
        }),
    ),
    (
        "Rao test_and_insert_bulk",
        first!(|i| { (RaoBloom::builder(KEYS as u64).on(&i.device).build()?, i.keys) }, |s| {
            s.0.test_and_insert_bulk(&s.1)?
        }),
    ),
    (
        "quotient build_from",
        first!(|i| { i }, |s| { StandardQuotientFilter::builder(KEYS as u64).on(&s.device).build_from(&s.keys)? }),
    ),
    (
        "quotient build_from, 64-bit fingerprints",
        first!(|i| { i }, |s| {
            StandardQuotientFilter::builder(KEYS as u64).fpr(1e-9).on(&s.device).build_from(&s.keys)?
        }),
    ),
    ("quotient contains_bulk", first!(|i| { (quotient(&i, 1)?, i.small) }, |s| s.0.contains_bulk(&s.1)?)),
    ("quotient insert_bulk", first!(|i| { (quotient(&i, 1)?, i.other_keys) }, |s| s.0.insert_bulk(&s.1)?)),
    (
        "quotient insert_bulk, few keys",
        first!(|i| { (quotient(&i, 1)?, i.other_keys) }, |s| { s.0.insert_bulk(&s.1[..100])? }),
    ),
    ("quotient remove_bulk", first!(|i| { (quotient(&i, 1)?, i.keys) }, |s| s.0.remove_bulk(&s.1)?)),
    ("quotient count_bulk", first!(|i| { (quotient(&i, 1)?, i.small) }, |s| s.0.count_bulk(&s.1)?)),
    ("quotient merge", first!(|i| { (quotient(&i, 1)?, quotient(&i, 2)?) }, |s| s.0.merge(&s.1)?)),
    ("quotient intersect", first!(|i| { (quotient(&i, 1)?, quotient(&i, 2)?) }, |s| s.0.intersect(&s.1)?)),
    (
        "quotient intersection_count",
        first!(|i| { (quotient(&i, 1)?, quotient(&i, 2)?) }, |s| { s.0.intersection_count(&s.1)? }),
    ),
    ("quotient double", first!(|i| { (quotient(&i, 1)?,) }, |s| s.0.double()?)),
    ("recsplit build_from", first!(|i| { i }, |s| built(&s, 8, 100)?)),
    ("recsplit build_from, leaf 12", first!(|i| { i }, |s| built(&s, 12, 2000)?)),
    ("recsplit get_bulk", first!(|i| { (function(&i)?, i.keys) }, |s| s.0.get_bulk(&s.1)?)),
    ("static filter contains_bulk", first!(|i| { (static_filter(&i)?, i.keys) }, |s| s.0.contains_bulk(&s.1)?)),
    ("lsm build_from", first!(|i| { i }, |s| Lsm::<u64, u64>::builder().on(&s.device).build_from(&s.keys, &s.keys)?)),
    (
        "lsm build_from, then get_bulk",
        first!(|i| { i }, |s| {
            Lsm::<u32, u32>::builder().on(&s.device).build_from(&s.small, &s.small)?.get_bulk(&s.small)?
        }),
    ),
    ("lsm insert_bulk", first!(|i| { (tree(&i)?, i.small) }, |s| s.0.insert_bulk(&s.1, &s.1)?)),
    ("lsm remove_bulk", first!(|i| { (tree(&i)?, i.small) }, |s| s.0.remove_bulk(&s.1)?)),
    (
        "lsm update_bulk",
        first!(|i| { (tree(&i)?, i.small.iter().map(|key| key % 2 == 0).collect::<Vec<_>>(), i.small) }, |s| {
            s.0.update_bulk(&s.2, &s.2, &s.1)?
        }),
    ),
    ("lsm cleanup", first!(|i| { (tree(&i)?,) }, |s| s.0.cleanup()?)),
    ("lsm get_bulk", first!(|i| { (tree(&i)?, i.small) }, |s| s.0.get_bulk(&s.1)?)),
    ("lsm get_bulk, few keys", first!(|i| { (tree(&i)?, i.small) }, |s| s.0.get_bulk(&s.1[..100])?)),
    ("lsm count_range_bulk", first!(|i| { (tree(&i)?, ranges(&i)) }, |s| s.0.count_range_bulk(&s.1)?)),
    ("lsm range_bulk", first!(|i| { (tree(&i)?, ranges(&i)) }, |s| s.0.range_bulk(&s.1)?)),
    ("lsm successor_bulk", first!(|i| { (tree(&i)?, i.small) }, |s| s.0.successor_bulk(&s.1)?)),
    (
        "sorted array build_from, then get_bulk",
        first!(|i| { i }, |s| {
            SortedArray::<u32, u32>::builder().on(&s.device).build_from(&s.small, &s.small)?.get_bulk(&s.small)?
        }),
    ),
    ("sorted array insert_bulk", first!(|i| { (array(&i)?, i.small) }, |s| s.0.insert_bulk(&s.1, &s.1)?)),
    ("sorted array remove_bulk", first!(|i| { (array(&i)?, i.small) }, |s| s.0.remove_bulk(&s.1)?)),
    (
        "sort u32",
        first!(|i| { (i.device.new_stream()?, i.device.from_slice(&i.small)?) }, |s| {
            // SAFETY: the keys live until the stream has been waited for.
            unsafe {
                let by = warpset::primitives::sort::By::ascending();
                warpset::primitives::sort::sort_keys_in_place_async(&s.0, s.1.as_mut_slice(), by)?;
            }
            s.0.synchronize()?
        }),
    ),
];

/// Built there.
fn built(input: &Input, leaf: u32, bucket: u32) -> anyhow::Result<warpset::recsplit::gpu::RecSplit> {
    Ok(RecSplit::builder().leaf_size(leaf).bucket_size(bucket).on(&input.device).build_from(&input.keys)?)
}

/// Brought there: a build there has kernels of its own.
fn function(input: &Input) -> anyhow::Result<warpset::recsplit::gpu::RecSplit> {
    Ok(RecSplit::builder().leaf_size(5).build_from(&input.keys)?.to_device(&input.device)?)
}

fn static_filter(input: &Input) -> anyhow::Result<warpset::recsplit::gpu::StaticFilter> {
    Ok(warpset::recsplit::StaticFilter::builder(8).leaf_size(5).build_from(&input.keys)?.to_device(&input.device)?)
}

fn split_block(input: &Input) -> anyhow::Result<warpset::bloom::gpu::SplitBlockBloom> {
    Ok(SplitBlockBloom::builder(KEYS as u64).on(&input.device).build()?)
}

fn split_block_of(input: &Input, bytes: u64) -> anyhow::Result<warpset::bloom::gpu::SplitBlockBloom> {
    Ok(SplitBlockBloom::builder(bytes).bits_per_key(8.0).on(&input.device).build()?)
}

/// A filter that groups the hashes of what it inserts.
fn grouped(input: &Input) -> anyhow::Result<warpset::bloom::gpu::SplitBlockBloom> {
    let mut filter = split_block(input)?;
    filter.set_grouping(warpset::bloom::gpu::Grouping::Bits(6));
    Ok(filter)
}

/// A filter that divides whatever it tests and inserts.
fn by_parts<L: warpset::bloom::gpu::DeviceOneBlock>(
    mut filter: warpset::bloom::gpu::Bloom<L>,
) -> warpset::bloom::gpu::Bloom<L> {
    filter.set_grouping(warpset::bloom::gpu::Grouping::Bits(6));
    filter
}

/// A filter that holds keys, made on the host: no kernel has been launched.
fn quotient(input: &Input, first: u64) -> anyhow::Result<warpset::quotient::gpu::StandardQuotientFilter> {
    let keys: Vec<u64> = input.keys.iter().map(|key| key.wrapping_mul(first)).collect();
    let filter = StandardQuotientFilter::builder(SLOTS).build_from(&keys)?;
    Ok(filter.to_device(&input.device)?)
}

/// A tree of two levels, made on the host: no kernel has been launched.
fn tree(input: &Input) -> anyhow::Result<warpset::lsm::gpu::Lsm<u32, u32>> {
    let mut tree = Lsm::builder().batch_size(1024).cleanup(CleanupPolicy::Manual).build()?;
    tree.insert_bulk(&input.small, &input.small)?;
    tree.remove_bulk(&input.small[..500])?;
    Ok(tree.to_device(&input.device)?)
}

fn array(input: &Input) -> anyhow::Result<warpset::lsm::gpu::SortedArray<u32, u32>> {
    Ok(SortedArray::builder().build_from(&input.small, &input.small)?.to_device(&input.device)?)
}

fn ranges(input: &Input) -> Vec<std::ops::RangeInclusive<u32>> {
    input.small.iter().map(|&low| low..=low.saturating_add(1 << 16)).collect()
}

impl Input {
    fn on(device: &Device) -> Input {
        let keys: Vec<u64> = (0..KEYS as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let other_keys = keys.iter().map(|key| key ^ 0x5555).collect();
        let small = keys.iter().map(|key| (key >> 32) as u32).collect();
        Input { device: device.clone(), keys, other_keys, small }
    }
}

/// How many of the slowest kernels a row names.
const NAMED: usize = 6;

/// What a child process prints of a call.
#[derive(Serialize, Deserialize)]
struct Measured {
    /// Opening the device.
    opened: f64,
    /// The call.
    first: f64,
    /// The same call's kernels: how many, their PTX, and what the driver took to compile and load each.
    kernels: usize,
    ptx_bytes: usize,
    slowest: f64,
    in_all: f64,
    /// The slowest ones, with their milliseconds.
    slowest_names: String,
}

/// Makes one call, and prints what it took: what a child process does.
pub fn call(name: &str) -> anyhow::Result<()> {
    let (_, prepare) = CALLS.iter().find(|(known, _)| *known == name).context("no such call")?;
    let start = Instant::now();
    let device = Device::cuda(0)?;
    let warm: DeviceVec<u32> = device.alloc_zeroed(1)?;
    drop(warm);
    let opened = start.elapsed().as_secs_f64();
    let call = prepare(Input::on(&device))?;
    ensure!(device.loaded_kernels().is_empty(), "the preparation of {name} loads kernels");
    let start = Instant::now();
    call()?; // `device` outlives it: closing the device takes some 50 ms
    let first = start.elapsed().as_secs_f64();
    let loaded = device.loaded_kernels();
    let seconds = || loaded.iter().map(|kernel| kernel.time.as_secs_f64());
    let mut by_time: Vec<_> = loaded.iter().map(|kernel| (kernel.time.as_secs_f64() * 1e3, &kernel.name)).collect();
    by_time.sort_by(|a, b| b.0.total_cmp(&a.0));
    let slowest_names: Vec<String> =
        by_time.iter().take(NAMED).map(|(milliseconds, name)| format!("{name} {milliseconds:.0}")).collect();
    let measured = Measured {
        slowest_names: slowest_names.join(", "),
        opened,
        first,
        kernels: loaded.len(),
        ptx_bytes: loaded.iter().map(|kernel| kernel.ptx_bytes).sum(),
        slowest: seconds().fold(0.0, f64::max),
        in_all: seconds().sum(),
    };
    println!("{}", serde_json::to_string(&measured)?);
    Ok(())
}

/// Two rows per operation.
pub fn steps(setup: &Setup) -> Vec<Step> {
    let devices = setup.devices().filter(|device| !device.is_emulator() && device.properties().ordinal == 0).cloned();
    devices
        .map(|device| {
            Step::new("first calls without the driver's cache", move |session| {
                let from = [("device code", "0"), ("PTX", "1")];
                for ((name, _), (from, force)) in CALLS.iter().flat_map(|call| from.map(|from| (call, from))) {
                    let child = Command::new(std::env::current_exe()?)
                        .args(["bench", "--first-call", name])
                        .env("CUDA_CACHE_DISABLE", "1")
                        .env("CUDA_FORCE_PTX_JIT", force) // the driver then refuses device code
                        .output()?;
                    ensure!(child.status.success(), "{name}: {}", String::from_utf8_lossy(&child.stderr));
                    let measured: Measured = serde_json::from_slice(&child.stdout)?;
                    let milliseconds = |seconds: f64| (seconds * 1e4).round() / 10.0;
                    let mut row = Record::new("machine", "first call", 1)
                        .time(measured.first)
                        .param("call", *name)
                        .param("kernels_from", from)
                        .param("opened_ms", milliseconds(measured.opened))
                        .param("kernels", measured.kernels)
                        .param("ptx_bytes", measured.ptx_bytes)
                        .param("slowest_kernels", measured.slowest_names)
                        .param("slowest_kernel_ms", milliseconds(measured.slowest))
                        .param("all_kernels_ms", milliseconds(measured.in_all));
                    row.checked = true;
                    session.push_on(&Target::Gpu(device.clone()), row, Threads::All);
                }
                Ok(())
            })
        })
        .collect()
}

#[cfg(test)]
mod tests;

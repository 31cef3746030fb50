//! First calls on a device, each in a process of its own without the driver's cache of compiled kernels: what a user
//! waits for on a machine that has never run the program.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, ensure};
use warpset::gpu::{Device, DeviceVec};
use warpset::prelude::*;

use super::record::Record;
use super::suite::{Setup, Step, Target, Threads};

/// Keys of a first call.
const KEYS: usize = 100_000;

/// What a first call is made on.
struct Input {
    device: Device,
    keys: Vec<u64>,
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
    (
        "split-block insert_bulk",
        first!(|i| { (SplitBlockBloom::builder(KEYS as u64).on(&i.device).build()?, i.keys) }, |s| s
            .0
            .insert_bulk(&s.1)?),
    ),
    (
        "split-block contains_bulk",
        first!(|i| { (SplitBlockBloom::builder(KEYS as u64).on(&i.device).build()?, i.keys) }, |s| s
            .0
            .contains_bulk(&s.1)?),
    ),
    (
        "split-block test_and_insert_bulk",
        first!(|i| { (SplitBlockBloom::builder(KEYS as u64).on(&i.device).build()?, i.keys) }, |s| {
            s.0.test_and_insert_bulk(&s.1)?
        }),
    ),
    (
        "split-block insert_bulk, 1 GiB",
        first!(|i| { (SplitBlockBloom::builder(1 << 30).bits_per_key(8.0).on(&i.device).build()?, i.keys) }, |s| {
            s.0.insert_bulk(&s.1)?
        }),
    ),
    (
        "blocked insert_bulk",
        first!(|i| { (BlockedBloom::builder(KEYS as u64).on(&i.device).build()?, i.keys) }, |s| s
            .0
            .insert_bulk(&s.1)?),
    ),
    (
        "blocked contains_bulk",
        first!(|i| { (BlockedBloom::builder(KEYS as u64).on(&i.device).build()?, i.keys) }, |s| s
            .0
            .contains_bulk(&s.1)?),
    ),
    (
        "Rao insert_bulk",
        first!(|i| { (RaoBloom::builder(KEYS as u64).on(&i.device).build()?, i.keys) }, |s| s.0.insert_bulk(&s.1)?),
    ),
    (
        "Rao contains_bulk",
        first!(|i| { (RaoBloom::builder(KEYS as u64).on(&i.device).build()?, i.keys) }, |s| s.0.contains_bulk(&s.1)?),
    ),
    (
        "quotient build_from",
        first!(|i| { i }, |s| StandardQuotientFilter::builder(KEYS as u64).on(&s.device).build_from(&s.keys)?),
    ),
    (
        "quotient contains_bulk",
        first!(|i| { (StandardQuotientFilter::builder(KEYS as u64).on(&i.device).build()?, i.small) }, |s| {
            s.0.contains_bulk(&s.1)?
        }),
    ),
    (
        "quotient insert_bulk",
        first!(|i| { (StandardQuotientFilter::builder(1 << 22).on(&i.device).build()?, i.keys) }, |s| {
            s.0.insert_bulk(&s.1)?
        }),
    ),
    (
        "quotient remove_bulk",
        first!(|i| { (StandardQuotientFilter::builder(1 << 22).on(&i.device).build()?, i.keys) }, |s| {
            s.0.remove_bulk(&s.1)?
        }),
    ),
    (
        "quotient count_bulk",
        first!(|i| { (StandardQuotientFilter::builder(1 << 22).on(&i.device).build()?, i.keys) }, |s| {
            s.0.count_bulk(&s.1)?
        }),
    ),
    ("quotient merge", first!(|i| { quotient_pair(&i)? }, |s| s.0.merge(&s.1)?)),
    ("quotient intersection_count", first!(|i| { quotient_pair(&i)? }, |s| s.0.intersection_count(&s.1)?)),
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

fn quotient_pair(
    input: &Input,
) -> anyhow::Result<(warpset::quotient::gpu::StandardQuotientFilter, warpset::quotient::gpu::StandardQuotientFilter)> {
    let empty = || StandardQuotientFilter::builder(1 << 20).on(&input.device).build();
    Ok((empty()?, empty()?))
}

/// Makes one call, and prints its seconds: what a child process does.
pub fn call(name: &str) -> anyhow::Result<()> {
    let (_, prepare) = CALLS.iter().find(|(known, _)| *known == name).context("no such call")?;
    let start = Instant::now();
    let device = Device::cuda(0)?;
    let warm: DeviceVec<u32> = device.alloc_zeroed(1)?;
    drop(warm);
    let opened = start.elapsed().as_secs_f64();
    let keys: Vec<u64> = (0..KEYS as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let small = keys.iter().map(|key| (key >> 32) as u32).collect();
    let call = prepare(Input { device, keys, small })?;
    let start = Instant::now();
    call()?;
    println!("{opened} {}", start.elapsed().as_secs_f64());
    Ok(())
}

/// One row per operation.
pub fn steps(setup: &Setup) -> Vec<Step> {
    let devices = setup.devices().filter(|device| !device.is_emulator() && device.properties().ordinal == 0).cloned();
    devices
        .map(|device| {
            Step::new("first calls without the driver's cache", move |session| {
                for (name, _) in CALLS {
                    let child = Command::new(std::env::current_exe()?)
                        .args(["bench", "--first-call", name])
                        .env("CUDA_CACHE_DISABLE", "1")
                        .output()?;
                    ensure!(child.status.success(), "{name}: {}", String::from_utf8_lossy(&child.stderr));
                    let text = String::from_utf8(child.stdout)?;
                    let seconds: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
                    let [opened, first] = seconds[..] else { anyhow::bail!("{name} printed {text}") };
                    let mut row = Record::new("machine", "first call", 1).time(first);
                    row = row.param("call", *name).param("opened_ms", (opened * 1e3).round());
                    row.checked = true;
                    session.push_on(&Target::Gpu(device.clone()), row, Threads::All);
                }
                Ok(())
            })
        })
        .collect()
}

//! First calls on a device, each in a process of its own without the driver's cache of compiled kernels: what a user
//! waits for on a machine that has never run the program. With the device code that comes with the kernels and, unless
//! the run is quick, with PTX alone, as on a device of another architecture.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use warpset::gpu::Device;
use warpset::lsm::CleanupPolicy;
use warpset::prelude::*;

use bench_frame::clock::Effort;
use bench_frame::suite::{Setup, Step, Target, Threads};
use bench_record::Record;

/// Keys of a first call.
const KEYS: usize = 100_000;

/// Device and keys of a first call.
struct Input {
    device: Device,
    keys: Vec<u64>,
    small: Vec<u32>,
}

/// Prepares untimed state, and returns the call to time.
type Prepare = fn(Input) -> anyhow::Result<Box<dyn FnOnce() -> anyhow::Result<()>>>;

/// Makes the call from a preparation, which launches no kernel, and a body.
macro_rules! first {
    (|$input:ident| $prepare:expr, |$state:ident| $body:expr) => {
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

/// Operations by name; structures that they change or ask are made on the host.
const CALLS: &[(&str, Prepare)] = &[
    ("split-block insert_bulk", first!(|i| (split_block(&i)?, i.keys), |s| s.0.insert_bulk(&s.1)?)),
    ("split-block contains_bulk", first!(|i| (split_block(&i)?, i.keys), |s| s.0.contains_bulk(&s.1)?)),
    ("split-block test_and_insert_bulk", first!(|i| (split_block(&i)?, i.keys), |s| s.0.test_and_insert_bulk(&s.1)?)),
    (
        "Rao insert_bulk",
        first!(|i| (RaoBloom::builder(i.keys.len() as u64).on(&i.device).build()?, i.keys), |s| s
            .0
            .insert_bulk(&s.1)?),
    ),
    (
        "quotient build_from",
        first!(|i| i, |s| StandardQuotientFilter::builder(s.keys.len() as u64).on(&s.device).build_from(&s.keys)?),
    ),
    ("quotient contains_bulk", first!(|i| (quotient(&i, 1)?, i.small), |s| s.0.contains_bulk(&s.1)?)),
    ("quotient insert_bulk", first!(|i| (quotient(&i, 1)?, i.keys), |s| s.0.insert_bulk(&s.1)?)),
    ("quotient remove_bulk", first!(|i| (quotient(&i, 1)?, i.keys), |s| s.0.remove_bulk(&s.1)?)),
    ("quotient merge", first!(|i| (quotient(&i, 1)?, quotient(&i, 2)?), |s| s.0.merge(&s.1)?)),
    ("recsplit build_from", first!(|i| i, |s| RecSplit::builder().on(&s.device).build_from(&s.keys)?)),
    (
        "recsplit get_bulk",
        first!(|i| (RecSplit::builder().leaf_size(5).build_from(&i.keys)?.to_device(&i.device)?, i.keys), |s| {
            s.0.get_bulk(&s.1)?
        }),
    ),
    ("Consensus build_from", first!(|i| i, |s| Consensus::builder().on(&s.device).build_from(&s.keys)?)),
    (
        "Consensus get_bulk",
        first!(|i| (Consensus::builder().build_from(&i.keys)?.to_device(&i.device)?, i.keys), |s| s
            .0
            .get_bulk(&s.1)?),
    ),
    ("static set build_from", first!(|i| i, |s| StaticSet::<u64>::builder().on(&s.device).build_from(&s.keys)?)),
    (
        "static set contains_bulk",
        first!(|i| (StaticSet::<u64>::builder().build_from(&i.keys)?.to_device(&i.device)?, i.keys), |s| {
            s.0.contains_bulk(&s.1)?
        }),
    ),
    ("lsm build_from", first!(|i| i, |s| Lsm::<u64, u64>::builder().on(&s.device).build_from(&s.keys, &s.keys)?)),
    ("lsm insert_bulk", first!(|i| (tree(&i)?, i.small), |s| s.0.insert_bulk(&s.1, &s.1)?)),
    ("lsm get_bulk", first!(|i| (tree(&i)?, i.small), |s| s.0.get_bulk(&s.1)?)),
    (
        "lsm range_bulk",
        first!(
            |i| (tree(&i)?, i.small.iter().map(|&low| low..=low.saturating_add(1 << 16)).collect::<Vec<_>>()),
            |s| { s.0.range_bulk(&s.1)? }
        ),
    ),
    ("lsm cleanup", first!(|i| (tree(&i)?,), |s| s.0.cleanup()?)),
];

fn split_block(input: &Input) -> anyhow::Result<warpset::bloom::gpu::SplitBlockBloom> {
    Ok(SplitBlockBloom::builder(input.keys.len() as u64).on(&input.device).build()?)
}

/// Makes a filter that holds keys in an eighth of its slots.
fn quotient(input: &Input, factor: u64) -> anyhow::Result<warpset::quotient::gpu::StandardQuotientFilter> {
    let keys: Vec<u64> = input.keys.iter().map(|key| key.wrapping_mul(factor)).collect();
    Ok(StandardQuotientFilter::builder(8 * keys.len() as u64).build_from(&keys)?.to_device(&input.device)?)
}

/// Makes a tree of two levels.
fn tree(input: &Input) -> anyhow::Result<warpset::lsm::gpu::Lsm<u32, u32>> {
    let mut tree = Lsm::builder().batch_size(1024).cleanup(CleanupPolicy::Manual).build()?;
    tree.insert_bulk(&input.small, &input.small)?;
    tree.remove_bulk(&input.small[..500])?;
    Ok(tree.to_device(&input.device)?)
}

impl Input {
    fn new(device: &Device, keys: usize) -> Input {
        let keys: Vec<u64> = (0..keys as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let small = keys.iter().map(|key| (key >> 32) as u32).collect();
        Input { device: device.clone(), keys, small }
    }
}

/// Seconds of a call, as a child process prints them.
#[derive(Serialize, Deserialize)]
struct Measured {
    /// Opening the device.
    opened: f64,
    /// The call.
    first: f64,
}

/// Makes one call, and prints what it took: what a child process does.
pub fn call(name: &str) -> anyhow::Result<()> {
    let (_, prepare) = CALLS.iter().find(|(known, _)| *known == name).context("no such call")?;
    let start = Instant::now();
    let device = Device::cuda(0)?;
    drop(device.alloc_zeroed::<u32>(1)?);
    let opened = start.elapsed().as_secs_f64();
    let call = prepare(Input::new(&device, KEYS))?;
    let start = Instant::now();
    call()?; // `device` outlives it: closing the device takes some 50 ms
    let measured = Measured { opened, first: start.elapsed().as_secs_f64() };
    println!("{}", serde_json::to_string(&measured)?);
    Ok(())
}

/// Makes one step, with a row per operation and source of its kernels.
pub fn steps(setup: &Setup) -> Vec<Step> {
    let sources: &[_] = &[("device code", "0"), ("PTX", "1")];
    let sources = if setup.effort == Effort::Quick { &sources[..1] } else { sources };
    let devices = setup.devices().filter(|device| !device.is_emulator() && device.properties().ordinal == 0).cloned();
    devices
        .map(|device| {
            Step::new("first calls without the driver's cache", move |session| {
                for ((name, _), (from, force)) in
                    CALLS.iter().flat_map(|call| sources.iter().map(move |from| (call, from)))
                {
                    let child = Command::new(std::env::current_exe()?)
                        .args(["bench", "--first-call", name])
                        .env("CUDA_CACHE_DISABLE", "1")
                        .env("CUDA_FORCE_PTX_JIT", force) // the driver then refuses device code
                        .output()?;
                    ensure!(child.status.success(), "{name}: {}", String::from_utf8_lossy(&child.stderr));
                    let measured: Measured = serde_json::from_slice(&child.stdout)?;
                    let mut row = Record::new("machine", "first call", 1)
                        .time(measured.first)
                        .param("call", *name)
                        .param("kernels_from", *from)
                        .param("opened_ms", (measured.opened * 1e4).round() / 10.0);
                    row.checked = true;
                    session.push_on(&Target::Gpu(device.clone()), row, Threads::All);
                }
                Ok(())
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_is_possible() {
        for (name, prepare) in CALLS {
            let device = Device::emulator(Default::default());
            let call = prepare(Input::new(&device, 4096)).expect(name);
            call().expect(name);
        }
    }
}

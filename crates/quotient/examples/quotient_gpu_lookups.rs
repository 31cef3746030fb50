//! Lookups on a CUDA device over load, remainder, container, number of slots and size of the batch: by events, which time
//! the kernel alone, and in wall-clock time as the caller sees it. Every answer is checked.
//!
//! `cargo run --release -p warpset-quotient --features cuda --example quotient_gpu_lookups [loads] [remainders] [batches]`

use std::error::Error;
use std::time::Instant;

use warpset_gpu::{Device, DeviceSlice, DeviceVec, Stream};
use warpset_quotient::gpu::{LookupMethod, StandardQuotientFilter};
use warpset_quotient::{Builder, Container};

type Outcome<T> = Result<T, Box<dyn Error>>;

const REPEATS: usize = 7;
const CONTAINERS: [Container; 2] = [Container::Packed, Container::Bytes];

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// What one method takes for a batch.
struct Timing {
    /// Milliseconds by events.
    device: f64,
    /// Milliseconds until the caller has waited.
    wall: f64,
    answers: DeviceVec<u8>,
}

fn time(
    filter: &StandardQuotientFilter,
    stream: &Stream,
    keys: DeviceSlice<'_, u32>,
    method: LookupMethod,
) -> Outcome<Timing> {
    let device = filter.device();
    let (start, end) = (device.new_event()?, device.new_event()?);
    let mut answers = device.alloc_uninit::<u8>(keys.len())?;
    let (mut on_device, mut wall) = (Vec::new(), Vec::new());
    for i in 0..=REPEATS {
        stream.synchronize()?;
        let begun = Instant::now();
        start.record(stream)?;
        // SAFETY: all live until the stream has been waited for.
        unsafe { filter.contains_bytes_with(stream, keys, answers.as_mut_slice(), method)? };
        end.record(stream)?;
        stream.synchronize()?;
        if i > 0 {
            wall.push(begun.elapsed().as_secs_f64() * 1e3);
            on_device.push(f64::from(end.elapsed_ms(&start)?));
        }
    }
    Ok(Timing { device: median(on_device), wall: median(wall), answers })
}

fn found(answers: &DeviceVec<u8>) -> Outcome<usize> {
    Ok(answers.to_vec()?.iter().filter(|&&yes| yes == 1).count())
}

fn keys(device: &Device, from: u32, len: usize) -> Outcome<DeviceVec<u32>> {
    let keys: Vec<u32> = (0..len as u32).map(|i| i.wrapping_add(from).wrapping_mul(0x9e37_79b1)).collect();
    Ok(device.from_slice(&keys)?)
}

/// Rows of present and of absent keys, a container and a load each.
fn rates(device: &Device, q: u32, r: u32, loads: &[f64]) -> Outcome<()> {
    let stream = device.new_stream()?;
    let most = 1usize << q;
    let stored = keys(device, 0, most * 95 / 100)?;
    let absent = keys(device, 1 << 31, most.min(1 << 26))?;
    for container in CONTAINERS {
        for &load in loads {
            let n = (most as f64 * load) as usize;
            let layout = Builder::with_bits(q, r).max_load(0.96).container(container).layout()?;
            let filter = StandardQuotientFilter::build_from_device(device, layout, stored.slice(..n))?;
            let asked = n.min(absent.len());
            let present = time(&filter, &stream, stored.slice(..asked), LookupMethod::Unsorted)?;
            let others = time(&filter, &stream, absent.slice(..asked), LookupMethod::Unsorted)?;
            let positives = found(&others.answers)? as f64;
            let expected = asked as f64 * filter.len() as f64 / 2f64.powi((q + r) as i32);
            let right =
                found(&present.answers)? == asked && (positives - expected).abs() < 6.0 * (expected + 4.0).sqrt();
            let rate = |ms: f64| asked as f64 / ms / 1e6;
            println!(
                "| {q} | {r} | {container:?} | {load:.2} | {asked} | {:.2} | {:.2} | {:.2} | {:.2} | {} |",
                rate(present.device),
                rate(others.device),
                rate(present.wall),
                rate(others.wall),
                if right { "" } else { "WRONG" }
            );
        }
    }
    Ok(())
}

/// Rows of both methods over the size of the batch.
fn batches(device: &Device, q: u32, r: u32, containers: &[Container], loads: &[f64]) -> Outcome<()> {
    let stream = device.new_stream()?;
    let most = 1usize << q;
    let all = keys(device, 0, most.max(1 << 24))?;
    for &container in containers {
        for &load in loads {
            let n = (most as f64 * load) as usize;
            let layout = Builder::with_bits(q, r).max_load(0.98).container(container).layout()?;
            let filter = StandardQuotientFilter::build_from_device(device, layout, all.slice(..n))?;
            for bits in (16..=24).step_by(2) {
                let batch = all.slice(..1 << bits);
                let unsorted = time(&filter, &stream, batch, LookupMethod::Unsorted)?;
                let sorted = time(&filter, &stream, batch, LookupMethod::Sorted)?;
                let same = unsorted.answers.to_vec()? == sorted.answers.to_vec()?;
                println!(
                    "| {q} | {r} | {container:?} | {load:.2} | 2^{bits} | {:.4} | {:.4} | {:.3} | {} |",
                    unsorted.wall,
                    sorted.wall,
                    unsorted.wall / sorted.wall,
                    if same && found(&sorted.answers)? >= n.min(1 << bits) { "" } else { "WRONG" }
                );
            }
        }
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let device = Device::cuda(0)?;
    println!("{}", device.properties().name);
    let parts: Vec<String> = std::env::args().skip(1).collect();
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|name| name == part);
    let head = || {
        println!("| q | r | container | load | keys | present, G/s | absent | present, wall clock | absent | |");
        println!("| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |");
    };
    if wanted("loads") {
        head();
        rates(&device, 23, 5, &[0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])?;
        rates(&device, 26, 5, &[0.5, 0.7, 0.9])?;
        rates(&device, 28, 5, &[0.5, 0.7, 0.9])?;
    }
    if wanted("remainders") {
        head();
        rates(&device, 18, 13, &[0.5, 0.7, 0.9])?;
        for r in [3, 5, 8, 13, 21, 29] {
            rates(&device, 23, r, &[0.3, 0.5, 0.7, 0.9])?;
        }
    }
    if wanted("batches") {
        println!("| q | r | container | load | keys | unsorted, ms | sorted, ms | ratio | |");
        println!("| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | --- |");
        batches(&device, 23, 5, &[Container::Packed], &[0.7, 0.9, 0.95, 0.97])?;
        batches(&device, 23, 8, &[Container::Packed], &[0.95, 0.97])?;
        batches(&device, 23, 29, &[Container::Packed], &[0.95, 0.97])?;
        batches(&device, 26, 5, &[Container::Packed], &[0.95, 0.97])?;
        batches(&device, 23, 5, &[Container::Bytes], &[0.7, 0.9, 0.93, 0.95, 0.97])?;
        batches(&device, 26, 5, &[Container::Bytes], &[0.9, 0.95])?;
        batches(&device, 23, 13, &[Container::Bytes], &[0.7, 0.8, 0.85, 0.9, 0.95])?;
        batches(&device, 23, 29, &[Container::Bytes], &[0.8, 0.85, 0.9, 0.95])?;
        batches(&device, 23, 21, &[Container::Bytes], &[0.6, 0.7, 0.75, 0.8, 0.9])?;
    }
    Ok(())
}

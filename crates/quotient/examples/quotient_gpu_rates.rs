//! Rates of the standard quotient filter on a CUDA device: builds, lookups, batch inserts and merges at the sizes of the
//! paper and beyond, in wall-clock time as the caller sees it, keys in device memory. Every result is checked.
//!
//! `cargo run --release -p warpset-quotient --features cuda --example quotient_gpu_rates`

use std::error::Error;
use std::time::Instant;

use warpset_gpu::{Device, DeviceSlice};
use warpset_primitives::sort;
use warpset_quotient::gpu::StandardQuotientFilter;
use warpset_quotient::{Builder, Container, Duplicates};

type Outcome<T> = Result<T, Box<dyn Error>>;

const REPEATS: usize = 5;

/// The median of wall-clock milliseconds, after one run that is not counted.
fn wall<T>(device: &Device, mut run: impl FnMut() -> Outcome<T>) -> Outcome<(f64, T)> {
    let mut times = Vec::new();
    let mut last = run()?;
    for _ in 0..REPEATS {
        device.synchronize()?;
        let start = Instant::now();
        last = run()?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok((times[times.len() / 2], last))
}

fn row(what: &str, q: u32, load: f64, container: Container, n: usize, ms: f64, note: &str) {
    let container = match container {
        Container::Bytes => "bytes",
        Container::Packed => "packed",
    };
    let rate = n as f64 / ms / 1e6;
    println!("| {what} | {q} | {load:.2} | {container} | {n} | {ms:.4} | {rate:.3} | {note} |");
}

fn main() -> Outcome<()> {
    let device = Device::cuda(0)?;
    println!("{}", device.properties().name);
    println!("| operation | q | load | container | items | ms | G/s | note |");
    println!("| --- | ---: | ---: | --- | ---: | ---: | ---: | --- |");
    let stream = device.new_stream()?;
    for q in [23, 26] {
        let most = 1usize << q;
        let keys: Vec<u32> = (0..2 * most as u32).map(|i| i.wrapping_mul(0x9e37_79b1)).collect();
        let keys = device.from_slice(&keys)?;

        // What sorting fingerprints alone takes.
        let n = most * 9 / 10;
        let mut sorted = device.alloc_uninit::<u32>(n)?;
        let by = sort::By::ascending().bits(0..q + 5);
        let (ms, ()) = wall(&device, || {
            // SAFETY: both live until the stream has been waited for.
            unsafe { sort::sort_keys(&stream, keys.slice(..n), sorted.as_mut_slice(), by.clone())? };
            Ok(stream.synchronize()?)
        })?;
        row("sort of the fingerprints alone", q, 0.9, Container::Packed, n, ms, "");

        for container in [Container::Packed, Container::Bytes] {
            for load in [0.4, 0.7, 0.9, 0.95] {
                let n = (most as f64 * load) as usize;
                for duplicates in [Duplicates::Dropped, Duplicates::Kept] {
                    let builder = Builder::with_bits(q, 5).max_load(0.96).container(container).duplicates(duplicates);
                    let layout = builder.layout()?;
                    let mine = keys.slice(..n);
                    let (ms, filter) =
                        wall(&device, || Ok(StandardQuotientFilter::build_from_device(&device, layout, mine)?))?;
                    let note = format!("{:.2} bits an item", 8.0 * filter.memory_bytes() as f64 / filter.len() as f64);
                    let what = if duplicates == Duplicates::Kept { "build, all kept" } else { "build" };
                    row(what, q, load, container, n, ms, &note);
                    if duplicates == Duplicates::Kept {
                        continue;
                    }
                    let count = |keys: DeviceSlice<'_, u32>| -> Outcome<(f64, u64)> {
                        let mut found = device.alloc_zeroed::<u64>(1)?;
                        let (ms, ()) = wall(&device, || {
                            stream.fill_bytes(found.as_mut_slice(), 0)?;
                            // SAFETY: all live until the stream has been waited for.
                            unsafe { filter.count_contained_async(&stream, keys, found.as_mut_slice())? };
                            Ok(stream.synchronize()?)
                        })?;
                        Ok((ms, found.to_vec()?[0]))
                    };
                    let (ms, found) = count(mine)?;
                    row("lookup, present", q, load, container, n, ms, if found == n as u64 { "" } else { "WRONG" });
                    let (ms, found) = count(keys.slice(most..most + n))?;
                    let rate = found as f64 / n as f64;
                    let expected = filter.len() as f64 / 2f64.powi(q as i32 + 5);
                    let ok = (rate - expected).abs() < 5.0 * (expected / n as f64).sqrt();
                    let note = format!("{}FPR {:.4}%", if ok { "" } else { "WRONG " }, 100.0 * rate);
                    row("lookup, absent", q, load, container, n, ms, &note);
                }
            }
            // Batches on a filter at load 0.7; a merge of two half-filled filters.
            let builder = Builder::with_bits(q, 5).max_load(0.98).container(container);
            let layout = builder.layout()?;
            let n = most * 7 / 10;
            for batch in [100_000, 2_000_000] {
                let mut times = Vec::new();
                for _ in 0..REPEATS {
                    let mut filter = StandardQuotientFilter::build_from_device(&device, layout, keys.slice(..n))?;
                    device.synchronize()?;
                    let start = Instant::now();
                    filter.insert_bulk_device(keys.slice(most..most + batch))?;
                    times.push(start.elapsed().as_secs_f64() * 1e3);
                }
                times.sort_by(f64::total_cmp);
                row("insert a batch", q, 0.7, container, batch, times[REPEATS / 2], "written anew");
            }
            let half = n / 2;
            let other = StandardQuotientFilter::build_from_device(&device, layout, keys.slice(half..n))?;
            let mut times = Vec::new();
            let mut merged = 0;
            for _ in 0..REPEATS {
                let mut filter = StandardQuotientFilter::build_from_device(&device, layout, keys.slice(..half))?;
                device.synchronize()?;
                let start = Instant::now();
                filter.merge(&other)?;
                times.push(start.elapsed().as_secs_f64() * 1e3);
                merged = filter.len() as usize;
            }
            times.sort_by(f64::total_cmp);
            row("merge of two halves", q, 0.7, container, merged, times[REPEATS / 2], "");
        }
        // The host builds the same bytes.
        if q == 23 {
            let layout = Builder::with_bits(q, 5).max_load(0.96).layout()?;
            let n = most * 9 / 10;
            let all = keys.slice(..n).to_vec()?;
            let host = warpset_quotient::StandardQuotientFilter::build_from(layout, &all)?;
            let filter = StandardQuotientFilter::build_from_device(&device, layout, keys.slice(..n))?;
            println!("same bytes as the host: {}", filter.to_host()? == host);
        }
    }
    Ok(())
}

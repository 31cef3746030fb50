//! Rates of builds, extraction and merging of standard quotient filters on a CUDA device, in wall-clock time as the caller
//! sees it, keys in device memory. Every result is checked.
//!
//! `cargo run --release -p warpset-quotient --features cuda --example quotient_build_rates [q...] [once]`: sizes, by
//! default 18, 23 and 26; with `once`, each operation runs once, for a profiler. Remainders have 5 bits, for 2^18 slots 13, as in
//! the code of the paper's authors.

use std::error::Error;
use std::time::Instant;

use warpset_gpu::{Device, DeviceSlice};
use warpset_primitives::sort;
use warpset_quotient::gpu::StandardQuotientFilter;
use warpset_quotient::{BuildMethod, Builder, Container, Duplicates, Layout};

type Outcome<T> = Result<T, Box<dyn Error>>;

struct Timer {
    device: Device,
    repeats: usize,
}

impl Timer {
    /// The median of wall-clock milliseconds, after one run that is not counted.
    fn wall<T>(&self, mut run: impl FnMut() -> Outcome<T>) -> Outcome<(f64, T)> {
        let mut times = Vec::new();
        let mut last = run()?;
        for _ in 0..self.repeats {
            self.device.synchronize()?;
            let start = Instant::now();
            last = run()?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        Ok((times.get(times.len() / 2).copied().unwrap_or(0.0), last))
    }
}

fn row(what: &str, layout: &Layout, load: f64, n: usize, ms: f64, note: &str) {
    let container = if layout.container() == Container::Packed { "packed" } else { "bytes" };
    let kept = if layout.duplicates() == Duplicates::Kept { "kept" } else { "dropped" };
    let (q, r, rate) = (layout.quotient_bits(), layout.remainder_bits(), n as f64 / ms / 1e6);
    println!("| {what} | {q}, {r} | {load:.2} | {container} | {kept} | {n} | {ms:.4} | {rate:.2} | {note} |");
}

fn verdict(right: bool) -> &'static str {
    if right { "" } else { "WRONG" }
}

fn sort_alone<K: sort::Key>(timer: &Timer, keys: DeviceSlice<'_, K>, bits: u32) -> Outcome<(f64, ())> {
    let stream = timer.device.new_stream()?;
    let mut sorted = timer.device.alloc_uninit::<K>(keys.len())?;
    timer.wall(|| {
        // SAFETY: both live until the stream has been waited for.
        unsafe { sort::sort_keys(&stream, keys, sorted.as_mut_slice(), sort::By::ascending().bits(0..bits))? };
        Ok(stream.synchronize()?)
    })
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let once = arguments.iter().any(|argument| argument == "once");
    let mut sizes: Vec<u32> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = vec![18, 23, 26];
    }
    let device = Device::cuda(0)?;
    let timer = Timer { device: device.clone(), repeats: if once { 0 } else { 7 } };
    println!("{}", device.properties().name);
    println!("| operation | q, r | load | container | duplicates | items | ms | G/s | note |");
    println!("| --- | ---: | ---: | --- | --- | ---: | ---: | ---: | --- |");
    for q in sizes {
        let (most, r) = (1usize << q, if q == 18 { 13 } else { 5 });
        let keys: Vec<u32> = (0..most as u32).map(|i| i.wrapping_mul(0x9e37_79b1)).collect();
        let keys = device.from_slice(&keys)?;
        let layout = |container, duplicates| {
            Builder::with_bits(q, r).max_load(0.96).container(container).duplicates(duplicates).layout()
        };
        let packed = layout(Container::Packed, Duplicates::Dropped)?;
        let build = |layout, keys: DeviceSlice<'_, u32>, method| -> Outcome<StandardQuotientFilter> {
            Ok(StandardQuotientFilter::build_with_method_device(&device, layout, keys, method)?)
        };

        let loads: &[f64] = if once { &[0.9] } else { &[0.4, 0.7, 0.9, 0.95] };
        for &load in loads {
            let n = (most as f64 * load) as usize;
            // Fingerprints are sorted in 32 bits where they fit.
            let (ms, ()) = if q + r <= 32 {
                sort_alone(&timer, keys.slice(..n), q + r)?
            } else {
                let wide: Vec<u64> =
                    (0..n as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - q - r)).collect();
                sort_alone(&timer, device.from_slice(&wide)?.as_slice(), q + r)?
            };
            row("sort alone", &packed, load, n, ms, "");
            for container in [Container::Packed, Container::Bytes] {
                for duplicates in [Duplicates::Dropped, Duplicates::Kept] {
                    let layout = layout(container, duplicates)?;
                    let (ms, filter) = timer.wall(|| build(layout, keys.slice(..n), BuildMethod::Scan))?;
                    let differs = !once && load == 0.9 && q <= 24 && {
                        let mine = keys.slice(..n).to_vec()?;
                        filter.to_host()? != warpset_quotient::StandardQuotientFilter::build_from(layout, &mine)?
                    };
                    row("build", &layout, load, n, ms, verdict(!differs));
                }
            }
            if q <= 24 && load >= 0.7 {
                let expected = build(packed, keys.slice(..n), BuildMethod::Scan)?.to_host()?;
                for method in BuildMethod::ALL {
                    let (ms, filter) = timer.wall(|| build(packed, keys.slice(..n), method))?;
                    row(&format!("{method:?}"), &packed, load, n, ms, verdict(filter.to_host()? == expected));
                }
            }
            for container in [Container::Packed, Container::Bytes] {
                let layout = layout(container, Duplicates::Dropped)?;
                let half = n / 2;
                let whole = build(layout, keys.slice(..n), BuildMethod::Scan)?;
                let (ms, all) = timer.wall(|| Ok(whole.fingerprints_device()?))?;
                let right = all.len() as u64 == whole.len()
                    && (q > 24 || once || all.to_vec()?.into_iter().eq(whole.to_host()?.fingerprints()));
                row("extraction", &layout, load, all.len(), ms, verdict(right));
                let b = build(layout, keys.slice(half..n), BuildMethod::Scan)?;
                let mut times = Vec::new();
                let mut right = true;
                for _ in 0..timer.repeats + 1 {
                    let mut a = build(layout, keys.slice(..half), BuildMethod::Scan)?;
                    device.synchronize()?;
                    let start = Instant::now();
                    a.merge(&b)?;
                    times.push(start.elapsed().as_secs_f64() * 1e3);
                    right &= a.len() == whole.len() && (q > 24 || once || a.to_host()? == whole.to_host()?);
                }
                times.remove(0);
                times.sort_by(f64::total_cmp);
                let ms = times.get(times.len() / 2).copied().unwrap_or(0.0);
                row("merge of two halves", &layout, load, whole.len() as usize, ms, verdict(right));
                let (ms, common) = timer.wall(|| Ok(whole.intersection_count(&b)?))?;
                row("intersection count", &layout, load, whole.len() as usize, ms, verdict(common == b.len()));
                let (ms, halved) = timer.wall(|| Ok(b.resized(q - 1)))?;
                if let Ok(halved) = halved {
                    row("resizing", &layout, load / 2.0, b.len() as usize, ms, verdict(halved.len() == b.len()));
                }
            }
        }
    }
    Ok(())
}

//! Batches of insertions and removals by every method, and lookups by both, on a CUDA device: wall-clock time as the caller sees
//! it, keys in device memory. Every result is compared with that of the first method, and one with the host's.
//!
//! `cargo run --release -p warpset-quotient --features cuda --example quotient_gpu_updates [q,q] [batch,batch]`: sizes, by default
//! 23 and 26, and numbers of keys; with batches named, loads of 0.7 only, and no lookups.

use std::error::Error;
use std::time::Instant;

use warpset_gpu::{Device, DeviceSlice};
use warpset_quotient::gpu::{LookupMethod, StandardQuotientFilter, UpdateMethod};
use warpset_quotient::{Builder, Container, Duplicates};

type Outcome<T> = Result<T, Box<dyn Error>>;

const REPEATS: usize = 5;
const METHODS: [UpdateMethod; 4] =
    [UpdateMethod::Rebuild, UpdateMethod::InPlace, UpdateMethod::Superclusters, UpdateMethod::Automatic];

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() -> Outcome<()> {
    let device = Device::cuda(0)?;
    println!("{}", device.properties().name);
    println!("| operation | method | container | q | load | batch | ms | M/s |");
    println!("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |");
    let list = |place: usize| -> Outcome<Option<Vec<usize>>> {
        let list = std::env::args().nth(place);
        Ok(list.map(|list| list.split(',').map(str::parse).collect::<Result<_, _>>()).transpose()?)
    };
    let sizes = list(1)?.unwrap_or(vec![23, 26]);
    let named = list(2)?;
    let batches = named.clone().unwrap_or(vec![100, 1000, 10_000, 100_000, 400_000, 2_000_000]);
    for q in sizes.into_iter().map(|q| q as u32) {
        let most = 1usize << q;
        let keys: Vec<u32> = (0..2 * most as u32).map(|i| i.wrapping_mul(0x9e37_79b1)).collect();
        let keys = device.from_slice(&keys)?;
        for container in [Container::Packed, Container::Bytes] {
            let loads: &[f64] = match container {
                Container::Packed if named.is_none() => &[0.5, 0.7, 0.9],
                _ => &[0.7],
            };
            for &load in loads {
                let builder = Builder::with_bits(q, 5).max_load(0.96).container(container);
                let layout = builder.duplicates(Duplicates::Dropped).layout()?;
                let n = (most as f64 * load) as usize;
                let build = || StandardQuotientFilter::build_from_device(&device, layout, keys.slice(..n));
                if named.is_none() {
                    lookups(&device, &build()?, keys.slice(..n), keys.slice(most..most + n), load, container)?;
                }
                for batch in batches.iter().copied().filter(|&n| n <= most / 4) {
                    for removes in [false, true] {
                        if !removes && load + batch as f64 / most as f64 > 0.955 {
                            continue;
                        }
                        update(&build, removes, &keys, (n, most, batch), load, container)?;
                    }
                }
            }
        }
        if q == 23 {
            let layout = Builder::with_bits(q, 5).max_load(0.96).layout()?;
            let all = keys.slice(..most).to_vec()?;
            let mut host = warpset_quotient::StandardQuotientFilter::build_from(layout, &all[..most / 2])?;
            let mut filter = StandardQuotientFilter::from_host(&device, &host)?;
            filter.insert_bulk_device(keys.slice(most / 2..most / 10 * 9))?;
            host.insert_bulk(&all[most / 2..most / 10 * 9])?;
            let mut same = filter.to_host()? == host;
            filter.remove_bulk_device(keys.slice(1000..3_000_000))?;
            host.remove_bulk(&all[1000..3_000_000]);
            same &= filter.to_host()? == host;
            println!("same bytes as the host: {same}");
        }
    }
    Ok(())
}

/// One row a method; `sizes` are the keys in the filter, where absent ones begin, and those of the batch.
fn update(
    build: &impl Fn() -> Result<StandardQuotientFilter, warpset_quotient::Error>,
    removes: bool,
    keys: &warpset_gpu::DeviceVec<u32>,
    (stored, absent, batch): (usize, usize, usize),
    load: f64,
    container: Container,
) -> Outcome<()> {
    let mut first = None;
    for method in METHODS {
        let mut times = Vec::new();
        let mut last = build()?;
        for i in 0..REPEATS {
            let mut filter = build()?;
            let from = if removes { stored / 2 } else { absent };
            let keys = keys.slice(from..from + batch);
            filter.device().synchronize()?;
            let start = Instant::now();
            if removes {
                filter.remove_bulk_with(keys, method)?;
            } else {
                filter.insert_bulk_with(keys, method)?;
            }
            let time = start.elapsed().as_secs_f64() * 1e3;
            if i > 0 {
                times.push(time);
            }
            last = filter;
            if time > 300.0 {
                times.push(time);
                break;
            }
        }
        let result = (last.len(), last.words().to_vec()?);
        let same = *first.get_or_insert_with(|| result.clone()) == result;
        let ms = median(times);
        let q = last.layout().quotient_bits();
        let operation = if removes { "remove" } else { "insert" };
        let note = if same { "" } else { " WRONG" };
        let rate = batch as f64 / ms / 1e3;
        println!(
            "| {operation} | {method:?} | {container:?} | {q} | {load:.2} | {batch} | {ms:.4} | {rate:.1}{note} |"
        );
    }
    Ok(())
}

fn lookups(
    device: &Device,
    filter: &StandardQuotientFilter,
    present: DeviceSlice<'_, u32>,
    absent: DeviceSlice<'_, u32>,
    load: f64,
    container: Container,
) -> Outcome<()> {
    let stream = device.new_stream()?;
    let q = filter.layout().quotient_bits();
    for (what, keys) in [("present", present), ("absent", absent)] {
        for n in [100_000, 1_000_000, keys.len()].into_iter().filter(|&n| n <= keys.len()) {
            let keys = keys.slice(..n);
            let mut first = None;
            for method in [LookupMethod::Unsorted, LookupMethod::Sorted] {
                let mut answers = device.alloc_uninit::<u8>(n)?;
                let mut times = Vec::new();
                for _ in 0..=REPEATS {
                    stream.synchronize()?;
                    let start = Instant::now();
                    // SAFETY: all live until the stream has been waited for.
                    unsafe { filter.contains_bytes_with(&stream, keys, answers.as_mut_slice(), method)? };
                    stream.synchronize()?;
                    times.push(start.elapsed().as_secs_f64() * 1e3);
                }
                let answers = answers.to_vec()?;
                let found = answers.iter().map(|&yes| yes as usize).sum::<usize>();
                let ms = median(times.split_off(1));
                let same = *first.get_or_insert_with(|| answers.clone()) == answers;
                let note = if what == "present" && found != n || !same { " WRONG" } else { "" };
                let rate = n as f64 / ms / 1e3;
                println!(
                    "| lookup, {what} | {method:?} | {container:?} | {q} | {load:.2} | {n} | {ms:.4} | {rate:.1}{note} |"
                );
            }
        }
    }
    Ok(())
}

//! Rates of the crate without Python, for `bench.py`, which runs this: the same jobs, with one line of name and keys
//! per second per job.

use std::hint::black_box;
use std::time::Instant;

use rayon::ThreadPoolBuilder;
use warpset::bloom::{SplitBlockBloom, SplitBlockBuilder};
use warpset::gpu::Backend;
use warpset::prelude::*;

/// Error of any job.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Returns random numbers, the same as in `bench.py`.
fn keys(count: u64) -> Vec<u64> {
    (1..=count).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect()
}

/// Prints the best of five runs, in items per second.
fn rate(name: &str, items: usize, mut work: impl FnMut()) {
    work();
    let seconds = (0..5).map(|_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    });
    println!("{name}\t{:.0}", items as f64 / seconds.fold(f64::INFINITY, f64::min));
}

fn main() -> Result<(), Failure> {
    let count: u64 = std::env::args().nth(1).map_or(Ok(1 << 24), |text| text.parse())?;
    let keys = keys(count);
    let mut answers = vec![0u8; keys.len()];
    let builder = || SplitBlockBuilder::new(1 << 27).bits_per_key(16.0);
    let cores = std::thread::available_parallelism()?.get();
    for threads in [1, cores] {
        ThreadPoolBuilder::new().num_threads(threads).build()?.install(|| -> Result<(), Failure> {
            let mut bloom = builder().build()?;
            rate(&format!("add, 256 MiB, threads={threads}"), keys.len(), || {
                bloom.insert_bulk(&keys).expect("host memory");
            });
            rate(&format!("contains, 256 MiB, threads={threads}"), keys.len(), || {
                Filter::contains_bytes_bulk_into(&bloom, &keys, &mut answers).unwrap_or_default();
            });
            Ok(())
        })?;
    }
    let words: Vec<String> = (0..count / 4).map(|i| format!("a string of 32 bytes: {i:010}")).collect();
    let slices: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    let mut small: SplitBlockBloom = SplitBlockBuilder::new(1 << 20).bits_per_key(16.0).build()?;
    ThreadPoolBuilder::new().num_threads(1).build()?.install(|| {
        rate("strings added, threads=1", slices.len(), || {
            small.insert_bulk(&slices).expect("host memory");
        });
        rate("strings asked, threads=1", slices.len(), || {
            Filter::contains_bytes_bulk_into(&small, &slices, &mut answers[..slices.len()]).unwrap_or_default();
        });
    });
    rate("calls on ten keys", 100_000, || {
        for _ in 0..100_000 {
            let _ = black_box(Filter::contains_bulk(&small, black_box(&keys[..10])));
        }
    });
    if let Backend::Cuda(device) = Backend::auto() {
        for (name, n) in [("16 MiB", 1u64 << 23), ("256 MiB", 1 << 27)] {
            let mut bloom = SplitBlockBuilder::new(n).bits_per_key(16.0).on(&device).build()?;
            let there = device.from_slice(&keys)?;
            let mut answers = device.alloc_zeroed::<u8>(keys.len())?;
            rate(&format!("add, {name}, cuda"), keys.len(), || {
                bloom.insert_device(there.as_slice()).expect("memory of the device");
                device.synchronize().expect("the device");
            });
            rate(&format!("contains, {name}, cuda"), keys.len(), || {
                bloom.contains_device(there.as_slice(), answers.as_mut_slice()).expect("memory of the device");
                device.synchronize().expect("the device");
            });
        }
    }
    Ok(())
}

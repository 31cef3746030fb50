//! GPU threads per second in the emulator, with detection and without.
//!
//! `cargo bench -p warpset-benches --bench emulator`. Throughput counts GPU threads.
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::time::Duration;
use warpset_kernels::selftest::{TILE, block_scan, look_back_scan, saxpy};
use warpset_simt::LaunchConfig;
use warpset_simt::emulator::{Config, Emulator};

/// The settings to compare, by name.
fn settings() -> [(&'static str, Config); 3] {
    [
        ("no detection", Config::fast()),
        ("races", Config { reorder_relaxed: false, ..Config::default() }),
        ("races and reordering", Config::default()),
    ]
}

fn saxpy_threads(c: &mut Criterion) {
    const THREADS: u32 = 1 << 18;
    let mut group = c.benchmark_group("emulator/saxpy");
    group.throughput(Throughput::Elements(THREADS.into()));
    for (name, config) in settings() {
        let emulator = Emulator::new(config);
        let x = emulator.buffer_from(&vec![3u32; THREADS as usize]);
        let y = emulator.buffer_from(&vec![1u32; THREADS as usize]);
        let shape = LaunchConfig::new(THREADS / 256, 256);
        group.bench_function(BenchmarkId::from_parameter(name), |b| {
            // SAFETY: both have one word per thread.
            b.iter(|| unsafe {
                saxpy { a: 5, x: x.global(), y: y.global_mut(), n: THREADS as usize }.launch(&emulator, shape)
            });
        });
    }
}

/// 6 suspensions per thread: five shuffles and a barrier.
fn block_scan_threads(c: &mut Criterion) {
    const THREADS: u32 = 1 << 16;
    let mut group = c.benchmark_group("emulator/block_scan");
    group.throughput(Throughput::Elements(THREADS.into()));
    for (name, config) in settings() {
        let emulator = Emulator::new(config);
        let x = emulator.buffer_from(&vec![3u32; THREADS as usize]);
        let y = emulator.buffer::<u32>(THREADS as usize);
        let shape = LaunchConfig::new(THREADS / 256, 256).shared(128);
        group.bench_function(BenchmarkId::from_parameter(name), |b| {
            // SAFETY: both have one word per thread.
            b.iter(|| unsafe { block_scan { x: x.global(), y: y.global_mut() }.launch(&emulator, shape) });
        });
    }
}

/// Shuffles, four barriers, atomics, fences and look-back over the blocks before.
fn look_back_scan_threads(c: &mut Criterion) {
    const TILES: u32 = 256;
    const THREADS: usize = (TILES * TILE) as usize;
    let mut group = c.benchmark_group("emulator/look_back_scan");
    group.throughput(Throughput::Elements(THREADS as u64));
    for (name, config) in settings() {
        let emulator = Emulator::new(config);
        let x = emulator.buffer_from(&vec![3u32; THREADS]);
        let y = emulator.buffer::<u32>(THREADS);
        let (sums, prefixes) = (emulator.buffer(TILES as usize), emulator.buffer(TILES as usize));
        group.bench_function(BenchmarkId::from_parameter(name), |b| {
            b.iter(|| {
                let flags = emulator.buffer_from(&[0u32; TILES as usize]);
                let ticket = emulator.buffer_from(&[0u32]);
                // SAFETY: the sizes are those that the kernel asks for; flags and ticket are zero.
                unsafe {
                    look_back_scan {
                        x: x.global(),
                        y: y.global_mut(),
                        n: THREADS,
                        sums: sums.global_mut(),
                        prefixes: prefixes.global_mut(),
                        flags: flags.global_mut(),
                        ticket: ticket.global_mut(),
                    }
                    .launch(&emulator, LaunchConfig::new(TILES, TILE).shared(32))
                }
            });
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(500));
    targets = saxpy_threads, block_scan_threads, look_back_scan_threads
}
criterion_main!(benches);

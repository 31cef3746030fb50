//! The primitives on the CPU: on one thread and on all, 2^16 and 2^22 items.
//!
//! Device rows are measured by `cargo xtask bench primitives`, by events and in device memory.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use warpset_benches::keys::KeySpace;
use warpset_primitives::KeyMask;
use warpset_primitives::cpu::{merge, search, select};

fn pools() -> Vec<(&'static str, rayon::ThreadPool)> {
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    vec![("1 thread", pool(1)), ("all threads", pool(0))]
}

fn sorted(stream: u64, n: usize) -> Vec<u64> {
    let mut keys = KeySpace::new(3).stream(stream).u64_keys(n);
    keys.sort_unstable();
    keys
}

fn merges(c: &mut Criterion) {
    for (threads, pool) in pools() {
        let mut group = c.benchmark_group(format!("primitives/merge/{threads}"));
        for log2_n in [16, 22] {
            let n = 1 << log2_n;
            let (a, b) = (sorted(0, n / 2), sorted(1, n / 2));
            let (mut out, mut values) = (vec![0; n], vec![0; n]);
            group.throughput(Throughput::Elements(n as u64));
            group.bench_function(BenchmarkId::new("keys", log2_n), |bench| {
                pool.install(|| bench.iter(|| merge::merge_keys(&a, &b, KeyMask::all(), &mut out).unwrap()));
            });
            group.bench_function(BenchmarkId::new("pairs", log2_n), |bench| {
                let merge = || merge::merge_pairs((&a, &a), (&b, &b), KeyMask::all(), &mut out, &mut values).unwrap();
                pool.install(|| bench.iter(merge));
            });
        }
    }
}

fn selections(c: &mut Criterion) {
    for (threads, pool) in pools() {
        let mut group = c.benchmark_group(format!("primitives/select/{threads}"));
        for log2_n in [16, 22] {
            let n = 1 << log2_n;
            let items = KeySpace::new(3).stream(0).u64_keys(n);
            let bitmap = KeySpace::new(3).stream(1).u64_keys(n / 64);
            let mut out = items.clone();
            group.throughput(Throughput::Elements(n as u64));
            group.bench_function(BenchmarkId::new("bitmap", log2_n), |bench| {
                pool.install(|| bench.iter(|| select::select(&items, &bitmap, &mut out).unwrap()));
            });
        }
    }
}

fn searches(c: &mut Criterion) {
    for (threads, pool) in pools() {
        let mut group = c.benchmark_group(format!("primitives/lower bound/{threads}"));
        for log2_n in [16, 22] {
            let n = 1 << log2_n;
            let (keys, needles) = (sorted(0, n), sorted(1, n));
            let unsorted = KeySpace::new(3).stream(1).u64_keys(n);
            let mut out = vec![0; n];
            group.throughput(Throughput::Elements(n as u64));
            group.bench_function(BenchmarkId::new("any order", log2_n), |bench| {
                pool.install(|| {
                    bench.iter(|| search::lower_bound(&keys, &unsorted, KeyMask::all(), &mut out).unwrap())
                });
            });
            group.bench_function(BenchmarkId::new("sorted", log2_n), |bench| {
                let search = || search::lower_bound_sorted(&keys, &needles, KeyMask::all(), &mut out).unwrap();
                pool.install(|| bench.iter(search));
            });
        }
    }
}

criterion_group!(benches, merges, selections, searches);
criterion_main!(benches);

//! Quotient filters on the CPU: lookups, builds, batches in and out, merges; 2^16 slots (in the second-level cache) and 2^22,
//! remainders of 5 bits as in the paper. Peer: the crate `qfilter`, with fingerprints of the same length.
//!
//! Device rows are measured by `cargo xtask bench quotient`, with keys in device memory.

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use warpset_benches::keys::KeySpace;
use warpset_quotient::{Container, StandardBuilder, StandardQuotientFilter};

const REMAINDER_BITS: u32 = 5;
const LOADS: [f64; 3] = [0.5, 0.75, 0.9];
const SIZES: [u32; 2] = [16, 22];
const CONTAINERS: [(&str, Container); 2] = [("packed", Container::Packed), ("bytes", Container::Bytes)];

fn pools() -> Vec<(&'static str, rayon::ThreadPool)> {
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    vec![("1 thread", pool(1)), ("all threads", pool(0))]
}

fn keys(stream: u64, n: usize) -> Vec<u64> {
    KeySpace::new(5).stream(stream).u64_keys(n)
}

fn count(log2_slots: u32, load: f64) -> usize {
    ((1u64 << log2_slots) as f64 * load) as usize
}

fn builder(log2_slots: u32, container: Container) -> StandardBuilder {
    StandardBuilder::with_bits(log2_slots, REMAINDER_BITS).max_load(0.95).container(container)
}

fn qfilter(log2_slots: u32, keys: &[u64]) -> qfilter::Filter {
    let bits = (log2_slots + REMAINDER_BITS) as u8;
    let mut filter = qfilter::Filter::with_fingerprint_size(count(log2_slots, 0.95) as u64, bits).unwrap();
    for key in keys {
        filter.insert(key).unwrap();
    }
    filter
}

fn contains(c: &mut Criterion) {
    for (threads, pool) in pools() {
        let mut group = c.benchmark_group(format!("quotient/contains/{threads}"));
        for log2_slots in SIZES {
            for load in LOADS {
                let present = keys(0, count(log2_slots, load));
                let absent = keys(1, present.len());
                group.throughput(Throughput::Elements(present.len() as u64));
                for (which, asked) in [("present", &present), ("absent", &absent)] {
                    let id = |name: &str| BenchmarkId::new(format!("{name}/{which}"), format!("{log2_slots}/{load}"));
                    for (name, container) in CONTAINERS {
                        let filter = builder(log2_slots, container).build_from(&present).unwrap();
                        group.bench_function(id(name), |b| {
                            pool.install(|| b.iter(|| filter.count_contained_bulk(asked)))
                        });
                    }
                    if threads == "1 thread" {
                        let filter = qfilter(log2_slots, &present);
                        group.bench_function(id("qfilter"), |b| {
                            b.iter(|| asked.iter().filter(|key| filter.contains(key)).count());
                        });
                    }
                }
            }
        }
    }
}

fn build(c: &mut Criterion) {
    for (threads, pool) in pools() {
        let mut group = c.benchmark_group(format!("quotient/build/{threads}"));
        for log2_slots in SIZES {
            let keys = keys(0, count(log2_slots, 0.75));
            group.throughput(Throughput::Elements(keys.len() as u64));
            for (name, container) in CONTAINERS {
                let builder = builder(log2_slots, container);
                group.bench_function(BenchmarkId::new(name, log2_slots), |b| {
                    pool.install(|| b.iter(|| builder.build_from(&keys).unwrap()));
                });
            }
            if threads == "1 thread" {
                group
                    .bench_function(BenchmarkId::new("qfilter", log2_slots), |b| b.iter(|| qfilter(log2_slots, &keys)));
            }
        }
    }
}

/// A change of a filter that is made anew, untimed, for each.
fn updates(c: &mut Criterion) {
    type Change = fn(&mut StandardQuotientFilter, &[u64]);
    let changes: [(&str, Change); 3] = [
        ("insert", |filter, keys| _ = filter.insert_bulk(keys).unwrap()),
        ("insert one by one", |filter, keys| keys.iter().for_each(|key| _ = filter.insert(*key).unwrap())),
        ("remove", |filter, keys| _ = filter.remove_bulk(keys)),
    ];
    for (threads, pool) in pools() {
        let mut group = c.benchmark_group(format!("quotient/update/{threads}"));
        for log2_slots in SIZES {
            for load in LOADS {
                let present = keys(0, count(log2_slots, load));
                let new = keys(1, 1 << (log2_slots - 6));
                group.throughput(Throughput::Elements(new.len() as u64));
                let id = |name: String| BenchmarkId::new(name, format!("{log2_slots}/{load}"));
                for (name, container) in CONTAINERS {
                    let filter = builder(log2_slots, container).build_from(&present).unwrap();
                    for (what, change) in changes {
                        let batch = if what == "remove" { &present[..new.len()] } else { &new[..] };
                        group.bench_function(id(format!("{name}/{what}")), |b| {
                            let work = |mut filter: StandardQuotientFilter| {
                                change(&mut filter, batch);
                                filter
                            };
                            pool.install(|| b.iter_batched(|| filter.clone(), work, BatchSize::LargeInput));
                        });
                    }
                }
                if threads == "1 thread" {
                    let filter = qfilter(log2_slots, &present);
                    group.bench_function(id("qfilter/insert one by one".into()), |b| {
                        let work = |mut filter: qfilter::Filter| {
                            new.iter().for_each(|key| _ = filter.insert(key).unwrap());
                            filter
                        };
                        b.iter_batched(|| filter.clone(), work, BatchSize::LargeInput);
                    });
                }
            }
        }
    }
}

fn merge(c: &mut Criterion) {
    for (threads, pool) in pools() {
        let mut group = c.benchmark_group(format!("quotient/merge/{threads}"));
        for log2_slots in SIZES {
            let all = keys(0, count(log2_slots, 0.75));
            let (low, high) = all.split_at(all.len() / 2);
            group.throughput(Throughput::Elements(all.len() as u64));
            for (name, container) in CONTAINERS {
                let build = |keys| builder(log2_slots, container).build_from(keys).unwrap();
                let (low, high) = (build(low), build(high));
                group.bench_function(BenchmarkId::new(name, log2_slots), |b| {
                    let work = |mut filter: StandardQuotientFilter| {
                        filter.merge(&high).unwrap();
                        filter
                    };
                    pool.install(|| b.iter_batched(|| low.clone(), work, BatchSize::LargeInput));
                });
            }
            if threads == "1 thread" {
                let (low, high) = (qfilter(log2_slots, low), qfilter(log2_slots, high));
                group.bench_function(BenchmarkId::new("qfilter", log2_slots), |b| {
                    let work = |mut filter: qfilter::Filter| {
                        filter.merge(false, &high).unwrap();
                        filter
                    };
                    b.iter_batched(|| low.clone(), work, BatchSize::LargeInput);
                });
            }
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(std::time::Duration::from_millis(200))
        .measurement_time(std::time::Duration::from_millis(800));
    targets = contains, build, updates, merge
}
criterion_main!(benches);

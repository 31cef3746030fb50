//! Inner loops of quotient filters on one CPU thread, for whoever changes one: lookups, builds, batches in and out,
//! merges, in bulk and key by key; 2^16 slots (in the second-level cache) and 2^22, remainders of 5 bits.
//!
//! Rates beside other crates, on all threads and on devices: `cargo xtask bench quotient`.

use std::time::Duration;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use warpset_benches::keys::KeySpace;
use warpset_quotient::{Container, StandardBuilder, StandardQuotientFilter};

const SIZES: [u32; 2] = [16, 22];
const LOADS: [f64; 2] = [0.5, 0.9];
const CONTAINERS: [(&str, Container); 2] = [("packed", Container::Packed), ("bytes", Container::Bytes)];

type Filter = StandardQuotientFilter;
/// A change of a filter by a batch.
type Change = fn(&mut Filter, &[u64]);

const CHANGES: [(&str, Change); 4] = [
    ("insert", |filter, keys| _ = filter.insert_bulk(keys).unwrap()),
    ("insert one by one", |filter, keys| keys.iter().for_each(|key| _ = filter.insert(*key).unwrap())),
    ("remove", |filter, keys| _ = filter.remove_bulk(keys)),
    ("remove one by one", |filter, keys| keys.iter().for_each(|key| _ = filter.remove(*key))),
];

fn keys(stream: u64, n: usize) -> Vec<u64> {
    KeySpace::new(5).stream(stream).u64_keys(n)
}

fn quotient(c: &mut Criterion) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    for log2_slots in SIZES {
        for load in LOADS {
            let present = keys(0, ((1u64 << log2_slots) as f64 * load) as usize);
            let (absent, batch) = (keys(1, present.len()), keys(2, 1 << (log2_slots - 6)));
            for (name, container) in CONTAINERS {
                let builder = StandardBuilder::with_bits(log2_slots, 5).max_load(0.95).container(container);
                let filter = builder.build_from(&present).unwrap();
                let mut group = c.benchmark_group(format!("quotient/{name}"));
                let id = |what: &str| BenchmarkId::new(what, format!("2^{log2_slots}/{load}"));
                group.throughput(Throughput::Elements(present.len() as u64));
                for (which, asked) in [("present", &present), ("absent", &absent)] {
                    group.bench_function(id(&format!("contains {which}")), |b| {
                        pool.install(|| b.iter(|| filter.count_contained_bulk(asked)));
                    });
                    group.bench_function(id(&format!("contains {which} one by one")), |b| {
                        b.iter(|| asked.iter().filter(|key| filter.contains(**key)).count());
                    });
                }
                group.bench_function(id("build"), |b| {
                    pool.install(|| b.iter(|| builder.build_from(&present).unwrap()));
                });
                let (low, high) = present.split_at(present.len() / 2);
                let (low, high) = (builder.build_from(low).unwrap(), builder.build_from(high).unwrap());
                group.bench_function(id("merge"), |b| {
                    let merge = |mut filter: Filter| {
                        filter.merge(&high).unwrap();
                        filter
                    };
                    pool.install(|| b.iter_batched(|| low.clone(), merge, BatchSize::LargeInput));
                });
                group.throughput(Throughput::Elements(batch.len() as u64));
                for (what, change) in CHANGES {
                    let batch = if what.starts_with("remove") { &present[..batch.len()] } else { &batch[..] };
                    group.bench_function(id(what), |b| {
                        let work = |mut filter: Filter| {
                            change(&mut filter, batch);
                            filter
                        };
                        pool.install(|| b.iter_batched(|| filter.clone(), work, BatchSize::LargeInput));
                    });
                }
            }
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800));
    targets = quotient
}
criterion_main!(benches);

//! Construction and queries of minimal perfect hash functions on one CPU thread, one million `u64` keys, for whoever
//! changes a loop: (leaf, bucket) = (5, 5) for fast queries, (8, 100) for fast construction, (16, 2000) for little space.
//!
//! Rates of every shape beside other crates: `cargo xtask bench recsplit`.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use warpset_benches::keys::KeySpace;
use warpset_recsplit::{Method, RecSplit};

const KEYS: usize = 1_000_000;
const SHAPES: [(u32, u32, Method); 5] = [
    (5, 5, Method::Rotation),
    (5, 5, Method::Grouped),
    (8, 100, Method::Rotation),
    (8, 100, Method::Grouped),
    (16, 2000, Method::Grouped),
];

fn recsplit(c: &mut Criterion) {
    let keys = KeySpace::new(1).stream(0).u64_keys(KEYS);
    let asked = &keys[..1 << 16];
    let mut numbers = vec![0; asked.len()];
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    for (leaf, bucket, method) in SHAPES {
        let builder = RecSplit::builder().leaf_size(leaf).bucket_size(bucket).method(method).threads(1);
        let mut group = c.benchmark_group(format!("recsplit/{method:?}, leaf {leaf}, bucket {bucket}"));
        group.throughput(Throughput::Elements(KEYS as u64));
        group.bench_function("build", |b| b.iter(|| builder.build_from(&keys).unwrap()));
        let function = builder.build_from(&keys).unwrap();
        group.throughput(Throughput::Elements(asked.len() as u64));
        group.bench_function("one by one", |b| {
            b.iter(|| asked.iter().map(|key| function.get(key)).fold(0, u64::wrapping_add));
        });
        group.bench_function("batch", |b| {
            one.install(|| b.iter(|| function.get_bulk_into(asked, black_box(&mut numbers)).unwrap()));
        });
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800));
    targets = recsplit
}
criterion_main!(benches);

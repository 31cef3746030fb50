//! Minimal perfect hash functions on the CPU, one million u64 keys: construction and queries, one by one and in batches,
//! on one thread; construction on all threads too. Peers: PHastR of the crate `sux`, and `ptr_hash`, on the same keys.
//!
//! Shapes: (leaf, bucket) = (5, 5) for fast queries, (8, 100) for fast construction, (16, 2000) for little space, each with
//! the method of the thesis and with rotation of groups, as long as a construction takes less than a second.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dsi_progress_logger::no_logging;
use ptr_hash::hash::StrongerIntHash;
use ptr_hash::{DefaultPtrHash, PtrHashParams};
use sux::func::phastr::PHastR;
use warpset_benches::keys::KeySpace;
use warpset_recsplit::{Builder, Method, RecSplit};

const KEYS: usize = 1_000_000;
/// Keys that a peer is asked for together.
const BATCH: usize = 32;

type PtrHash = DefaultPtrHash<StrongerIntHash, u64>;

fn builders() -> Vec<(String, Builder)> {
    let builder = |leaf, bucket, method| Builder::new().leaf_size(leaf).bucket_size(bucket).method(method);
    [
        (5, 5, "rotation", Method::Rotation),
        (5, 5, "grouped", Method::Grouped),
        (8, 100, "rotation", Method::Rotation),
        (8, 100, "grouped", Method::Grouped),
        (16, 2000, "grouped", Method::Grouped),
    ]
    .map(|(leaf, bucket, name, method)| {
        (format!("{name}, leaf {leaf}, bucket {bucket}"), builder(leaf, bucket, method))
    })
    .into()
}

fn ptr_hash(keys: &[u64]) -> PtrHash {
    PtrHash::new(keys, PtrHashParams::default())
}

fn phastr(keys: &[u64]) -> PHastR<u64> {
    PHastR::try_par_new(keys, no_logging![]).unwrap()
}

fn build(c: &mut Criterion) {
    let keys = KeySpace::new(1).stream(0).u64_keys(KEYS);
    for threads in [1, 0] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let name = if threads == 1 { "1 thread" } else { "all threads" };
        let mut group = c.benchmark_group(format!("recsplit/build/{name}"));
        group.throughput(Throughput::Elements(KEYS as u64));
        for (name, builder) in builders() {
            group.bench_function(name, |b| b.iter(|| pool.install(|| builder.build(&keys).unwrap())));
        }
        group.bench_function("sux PHastR", |b| b.iter(|| pool.install(|| phastr(&keys))));
        group.bench_function("ptr_hash", |b| b.iter(|| pool.install(|| ptr_hash(&keys))));
        group.finish();
    }
}

fn query(c: &mut Criterion) {
    let keys = KeySpace::new(1).stream(0).u64_keys(KEYS);
    let asked = &keys[..1 << 16];
    let mut group = c.benchmark_group("recsplit/query");
    group.throughput(Throughput::Elements(asked.len() as u64));
    let mut numbers = vec![0; asked.len()];
    for (name, builder) in builders() {
        let function: RecSplit = builder.build(&keys).unwrap();
        group.bench_function(format!("{name}/one by one"), |b| {
            b.iter(|| asked.iter().map(|key| function.get(key)).fold(0, u64::wrapping_add))
        });
        group.bench_function(format!("{name}/batch"), |b| b.iter(|| function.get_many(asked, black_box(&mut numbers))));
    }
    let function = phastr(&keys);
    group.bench_function("sux PHastR/one by one", |b| {
        b.iter(|| asked.iter().map(|key| function.get(key)).fold(0, usize::wrapping_add))
    });
    group.bench_function("sux PHastR/batch", |b| {
        b.iter(|| {
            let batches = asked.as_chunks::<BATCH>().0.iter();
            batches.fold(0, |sum, keys| function.get_batch(keys.each_ref()).into_iter().fold(sum, usize::wrapping_add))
        })
    });
    let function = ptr_hash(&keys);
    group.bench_function("ptr_hash/one by one", |b| {
        b.iter(|| asked.iter().map(|key| function.index(key)).fold(0, usize::wrapping_add))
    });
    group.bench_function("ptr_hash/stream", |b| {
        b.iter(|| function.index_stream::<BATCH, _>(asked).fold(0, usize::wrapping_add))
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(std::time::Duration::from_millis(200))
        .measurement_time(std::time::Duration::from_millis(800));
    targets = build, query
}
criterion_main!(benches);

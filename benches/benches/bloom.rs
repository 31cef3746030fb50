//! Bloom filters on the CPU, against the crates `fastbloom` and `parquet`: 16 bits a key for all, u64 keys, filters of
//! 512 KiB (level-2 cache), 8 MiB and 256 MiB. Bulk operations on one thread and on all.
//!
//! `fastbloom` runs with the hasher `foldhash` (its default, SipHash, is slower) and as many hashes as our layouts, 8;
//! `parquet` has single-key operations only. Both are called key by key in a loop, on all threads through rayon where
//! their types allow it.
//!
//! Half of the keys asked for are in the filter.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fastbloom::{AtomicBloomFilter, BloomFilter};
use foldhash::fast::FixedState;
use parquet::bloom_filter::Sbbf;
use rayon::prelude::*;
use warpset_benches::keys::KeySpace;
use warpset_bloom::{BlockedBloom, RaoBloom, SplitBlockBloom};

/// Keys of one measured call.
const BATCH: usize = 1 << 20;
const BITS_PER_KEY: f64 = 16.0;

fn fill(n: usize, mut insert: impl FnMut(&[u64])) {
    let stream = KeySpace::new(1).stream(0);
    for first in (0..n).step_by(BATCH) {
        let keys: Vec<u64> = (first..n.min(first + BATCH)).map(|i| stream.key(i as u64)).collect();
        insert(&keys);
    }
}

/// Half of these were inserted by [`fill`], in random order.
fn queries(n: usize) -> Vec<u64> {
    let (inside, outside) = (KeySpace::new(1).stream(0), KeySpace::new(1).stream(1));
    let places = KeySpace::new(2).stream(0);
    (0..BATCH as u64)
        .map(|i| {
            let place = places.key(i);
            if place >> 63 == 0 { inside.key(place % n as u64) } else { outside.key(i) }
        })
        .collect()
}

fn pools() -> Vec<(&'static str, rayon::ThreadPool)> {
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    vec![("1 thread", pool(1)), ("all threads", pool(0))]
}

fn name(log2_n: u32) -> &'static str {
    match log2_n {
        18 => "512 KiB",
        22 => "8 MiB",
        _ => "256 MiB",
    }
}

fn bloom(c: &mut Criterion) {
    let pools = pools();
    for log2_n in [18, 22, 27] {
        let n = 1usize << log2_n;
        let queries = queries(n);
        let new_keys = KeySpace::new(1).stream(2).u64_keys(BATCH);

        let mut split = SplitBlockBloom::builder(n as u64).bits_per_key(BITS_PER_KEY).build().unwrap();
        fill(n, |keys| split.insert_bulk(keys));
        let blocked = |block_bits, word_bits| {
            BlockedBloom::builder(n as u64)
                .bits_per_key(BITS_PER_KEY)
                .block_bits(block_bits)
                .word_bits(word_bits)
                .hashes(8)
                .build()
                .unwrap()
        };
        let (mut blocked256, mut blocked512) = (blocked(256, 32), blocked(512, 64));
        fill(n, |keys| blocked256.insert_bulk(keys));
        fill(n, |keys| blocked512.insert_bulk(keys));
        let mut rao = RaoBloom::builder(n as u64).bits_per_key(BITS_PER_KEY).hashes(8).choices(1).build().unwrap();
        fill(n, |keys| rao.insert_bulk(keys).unwrap());
        let mut sbbf = Sbbf::new(split.bitset());
        let mut fast = BloomFilter::with_num_bits(n * 16).hasher(FixedState::with_seed(1)).hashes(8);
        fill(n, |keys| keys.iter().for_each(|key| _ = fast.insert(key)));
        let atomic = AtomicBloomFilter::with_num_bits(n * 16).hasher(FixedState::with_seed(1)).hashes(8);

        let mut group = c.benchmark_group(format!("bloom/contains/{}", name(log2_n)));
        group.throughput(Throughput::Elements(BATCH as u64));
        for (threads, pool) in &pools {
            macro_rules! bench {
                ($name:literal, $count:expr) => {
                    group.bench_function(BenchmarkId::new($name, threads), |b| {
                        pool.install(|| b.iter(|| black_box($count)))
                    });
                };
            }
            bench!("split-block", split.count_contained(&queries));
            bench!("blocked 256x32", blocked256.count_contained(&queries));
            bench!("blocked 512x64", blocked512.count_contained(&queries));
            bench!("rao", rao.count_contained(&queries));
            bench!("split-block, key by key", queries.iter().filter(|k| split.contains(*k)).count());
            bench!("parquet", {
                let count = |keys: &[u64]| keys.iter().filter(|k| sbbf.check(*k)).count();
                queries.par_chunks(1 << 14).map(count).sum::<usize>()
            });
            bench!("fastbloom", {
                let count = |keys: &[u64]| keys.iter().filter(|k| fast.contains(*k)).count();
                queries.par_chunks(1 << 14).map(count).sum::<usize>()
            });
        }
        group.finish();

        let mut group = c.benchmark_group(format!("bloom/insert/{}", name(log2_n)));
        group.throughput(Throughput::Elements(BATCH as u64));
        for (threads, pool) in &pools {
            macro_rules! bench {
                ($name:literal, $insert:expr) => {
                    group.bench_function(BenchmarkId::new($name, threads), |b| pool.install(|| b.iter(|| $insert)));
                };
            }
            bench!("split-block", split.insert_bulk(&new_keys));
            bench!("blocked 256x32", blocked256.insert_bulk(&new_keys));
            bench!("blocked 512x64", blocked512.insert_bulk(&new_keys));
            if *threads == "1 thread" {
                bench!("split-block, key by key", new_keys.iter().for_each(|key| split.insert(key)));
                bench!("parquet", new_keys.iter().for_each(|key| sbbf.insert(key)));
                bench!("fastbloom", new_keys.iter().for_each(|key| _ = fast.insert(key)));
            }
            bench!("fastbloom, atomic", {
                new_keys.par_chunks(1 << 14).for_each(|keys| keys.iter().for_each(|key| _ = atomic.insert(key)))
            });
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(std::time::Duration::from_millis(200))
        .measurement_time(std::time::Duration::from_millis(800));
    targets = bloom
}
criterion_main!(benches);

//! Loops of Bloom filters on the CPU, for whoever changes one: `u64` keys, 16 bits per key, filters of 64 KiB, 512 KiB
//! (in the second-level cache), 8 MiB and 256 MiB; in bulk on one thread, and key by key.
//!
//! Half of the keys asked for are in the filter, and half of those that are tested and inserted. Insertions go into the
//! full filter, an eighth of its capacity at most, so that no bucket of Rao's filter overflows.
//!
//! Rates beside other crates, on all threads and on devices: `cargo xtask bench bloom`.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use warpset_benches::keys::KeySpace;
use warpset_bloom::{BlockedBloom, RaoBloom, SplitBlockBloom};

const BITS_PER_KEY: f64 = 16.0;
const LOG2_KEYS: [u32; 4] = [15, 18, 22, 27];

/// Half of these are in a filter of `n` keys, in random order.
fn mixed(number: u64, n: usize, count: usize) -> Vec<u64> {
    let (inside, outside) = (KeySpace::new(1).stream(0), KeySpace::new(1).stream(number));
    let places = KeySpace::new(2).stream(number);
    let key = |i| match places.key(i) {
        place if place >> 63 == 0 => inside.key(place % n as u64),
        _ => outside.key(i),
    };
    (0..count as u64).map(key).collect()
}

/// One filter's rows; `$one` inserts a single key, which can fail in Rao's filter only.
macro_rules! rows {
    ($c:expr, $pool:expr, $name:expr, $n:expr, $filter:expr, $one:expr) => {{
        let (n, mut filter) = ($n, $filter);
        let stream = KeySpace::new(1).stream(0);
        for first in (0..n).step_by(1 << 20) {
            let keys: Vec<u64> = (first..n.min(first + (1 << 20))).map(|i| stream.key(i as u64)).collect();
            _ = filter.insert_bulk(&keys);
        }
        let inserted = (1 << 20).min(n / 8);
        let (queries, tested) = (mixed(1, n, 1 << 20), mixed(2, n, inserted));
        let new_keys = KeySpace::new(1).stream(3).u64_keys(inserted);
        let mut new = vec![false; inserted];
        let mut group = $c.benchmark_group(format!("bloom/{}/{} KiB", $name, n >> 9));
        group.throughput(Throughput::Elements(queries.len() as u64));
        group.bench_function("contains", |b| $pool.install(|| b.iter(|| filter.count_contained_bulk(&queries))));
        group.bench_function("contains, key by key", |b| {
            b.iter(|| queries.iter().filter(|key| filter.contains(**key)).count());
        });
        group.throughput(Throughput::Elements(inserted as u64));
        group.bench_function("insert", |b| $pool.install(|| b.iter(|| black_box(filter.insert_bulk(&new_keys)))));
        group.bench_function("insert, key by key", |b| {
            b.iter(|| new_keys.iter().for_each(|key| $one(&mut filter, *key)))
        });
        group.bench_function("test_and_insert", |b| {
            $pool.install(|| b.iter(|| filter.test_and_insert_bulk_into(&tested, &mut new).unwrap()));
        });
        group.finish();
    }};
}

fn bloom(c: &mut Criterion) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    for log2_keys in LOG2_KEYS {
        let n = 1usize << log2_keys;
        let split_block = SplitBlockBloom::builder(n as u64).bits_per_key(BITS_PER_KEY).build().unwrap();
        rows!(c, pool, "split block", n, split_block, |filter: &mut SplitBlockBloom, key| filter.insert(key));
        for (block, word) in [(256, 32), (512, 64)] {
            let builder = BlockedBloom::builder(n as u64).bits_per_key(BITS_PER_KEY);
            let filter = builder.block_bits(block).word_bits(word).hashes(8).build().unwrap();
            let name = format!("blocked {block}x{word}");
            rows!(c, pool, name, n, filter, |filter: &mut BlockedBloom, key| filter.insert(key));
        }
        let rao = RaoBloom::builder(n as u64).bits_per_key(BITS_PER_KEY).hashes(8).choices(1).build().unwrap();
        rows!(c, pool, "Rao", n, rao, |filter: &mut RaoBloom, key| filter.insert(key).unwrap());
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800));
    targets = bloom
}
criterion_main!(benches);

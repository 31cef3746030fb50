//! Bloom filters on the CPU, against the crates `fastbloom` and `parquet`: 16 bits a key for all, u64 keys, filters of
//! 64 KiB, 512 KiB (level-2 cache), 8 MiB and 256 MiB. Bulk operations on one thread and on all.
//!
//! `fastbloom` runs with the hasher `foldhash` (its default, SipHash, is slower) and as many hashes as our layouts, 8;
//! `parquet` has single-key operations only. Both are called key by key in a loop, on all threads through rayon where
//! their types allow it.
//!
//! Half of the keys asked for are in the filter, and half of those that are tested and inserted. Insertions go into the
//! full filter, an eighth of its capacity at most, so that no bucket of Rao's filter overflows.
//!
//! `cargo bench --bench bloom -- --ratios` measures all of them in turns, in short calls, takes the fastest call of each
//! and prints ratios: for machines that others use too. Numbers after it are the sizes to take, as logarithms of the
//! number of keys: 15, 18, 22, 27.

use std::hint::black_box;
use std::time::Instant;

use criterion::{Criterion, Throughput, criterion_group};
use fastbloom::{AtomicBloomFilter, BloomFilter};
use foldhash::fast::FixedState;
use parquet::bloom_filter::Sbbf;
use rayon::prelude::*;
use warpset_benches::keys::KeySpace;
use warpset_bloom::{BlockedBloom, RaoBloom, SplitBlockBloom};

const BITS_PER_KEY: f64 = 16.0;

/// Half of these are in a filter of `n` keys, in random order; other ones for each `number`.
fn queries(number: u64, n: usize, count: usize) -> Vec<u64> {
    let (inside, outside) = (KeySpace::new(1).stream(0), KeySpace::new(1).stream(2 * number + 1));
    let places = KeySpace::new(2).stream(number);
    (0..count as u64)
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
        15 => "64 KiB",
        18 => "512 KiB",
        22 => "8 MiB",
        _ => "256 MiB",
    }
}

/// One measured call.
type Operation<'a> = &'a mut (dyn FnMut() + Send);

/// The filters under test, filled alike.
struct Subjects {
    split: SplitBlockBloom,
    blocked256: BlockedBloom,
    blocked512: BlockedBloom,
    rao: RaoBloom,
    parquet: Sbbf,
    fast: BloomFilter<FixedState>,
    atomic: AtomicBloomFilter<FixedState>,
}

impl Subjects {
    fn filled(n: usize) -> Subjects {
        let blocked = |block_bits, word_bits| {
            let builder = BlockedBloom::builder(n as u64).bits_per_key(BITS_PER_KEY);
            builder.block_bits(block_bits).word_bits(word_bits).hashes(8).build().unwrap()
        };
        let rao = RaoBloom::builder(n as u64).bits_per_key(BITS_PER_KEY).hashes(8).choices(1).build().unwrap();
        let hasher = || FixedState::with_seed(1);
        let mut subjects = Subjects {
            split: SplitBlockBloom::builder(n as u64).bits_per_key(BITS_PER_KEY).build().unwrap(),
            blocked256: blocked(256, 32),
            blocked512: blocked(512, 64),
            rao,
            parquet: Sbbf::new(&[]),
            fast: BloomFilter::with_num_bits(n * 16).hasher(hasher()).hashes(8),
            atomic: AtomicBloomFilter::with_num_bits(n * 16).hasher(hasher()).hashes(8),
        };
        let stream = KeySpace::new(1).stream(0);
        for first in (0..n).step_by(1 << 20) {
            let keys: Vec<u64> = (first..n.min(first + (1 << 20))).map(|i| stream.key(i as u64)).collect();
            subjects.split.insert_bulk(&keys);
            subjects.blocked256.insert_bulk(&keys);
            subjects.blocked512.insert_bulk(&keys);
            subjects.rao.insert_bulk(&keys).unwrap();
            keys.iter().for_each(|key| _ = subjects.fast.insert(key));
        }
        subjects.parquet = Sbbf::new(subjects.split.bitset());
        subjects
    }

    /// Calls `measure` with the name of each operation and the operation itself.
    fn each(&mut self, batch: &Batch, parallel: bool, mut measure: impl FnMut(&str, Operation)) {
        let Subjects { split, blocked256, blocked512, rao, parquet, fast, atomic } = self;
        let Batch { queries, new_keys, mixed } = batch;
        let in_chunks = |count: &(dyn Fn(&[u64]) -> usize + Sync)| {
            if parallel { queries.par_chunks(1 << 12).map(count).sum() } else { count(queries) }
        };
        measure("contains/split-block", &mut || _ = black_box(split.count_contained_bulk(queries)));
        measure("contains/blocked 256x32", &mut || _ = black_box(blocked256.count_contained_bulk(queries)));
        measure("contains/blocked 512x64", &mut || _ = black_box(blocked512.count_contained_bulk(queries)));
        measure("contains/rao", &mut || _ = black_box(rao.count_contained_bulk(queries)));
        measure("contains/split-block, key by key", &mut || {
            _ = black_box(in_chunks(&|keys| keys.iter().filter(|k| split.contains(*k)).count()))
        });
        measure("contains/rao, key by key", &mut || {
            _ = black_box(in_chunks(&|keys| keys.iter().filter(|k| rao.contains(*k)).count()))
        });
        measure("contains/parquet", &mut || {
            _ = black_box(in_chunks(&|keys| keys.iter().filter(|k| parquet.check(*k)).count()))
        });
        measure("contains/fastbloom", &mut || {
            _ = black_box(in_chunks(&|keys| keys.iter().filter(|k| fast.contains(*k)).count()))
        });

        measure("insert/split-block", &mut || split.insert_bulk(new_keys));
        measure("insert/blocked 256x32", &mut || blocked256.insert_bulk(new_keys));
        measure("insert/blocked 512x64", &mut || blocked512.insert_bulk(new_keys));
        measure("insert/rao", &mut || rao.insert_bulk(new_keys).unwrap());
        if parallel {
            measure("insert/fastbloom, atomic", &mut || {
                new_keys.par_chunks(1 << 12).for_each(|keys| keys.iter().for_each(|key| _ = atomic.insert(key)))
            });
        } else {
            measure("insert/split-block, key by key", &mut || new_keys.iter().for_each(|key| split.insert(key)));
            measure("insert/rao, key by key", &mut || new_keys.iter().for_each(|key| rao.insert(key).unwrap()));
            measure("insert/parquet", &mut || new_keys.iter().for_each(|key| parquet.insert(key)));
            measure("insert/fastbloom", &mut || new_keys.iter().for_each(|key| _ = fast.insert(key)));
        }

        let mut new = vec![false; mixed.len()];
        let new = &mut new;
        measure("test_and_insert/split-block", &mut || split.test_and_insert_bulk_into(mixed, new).unwrap());
        measure("test_and_insert/blocked 256x32", &mut || blocked256.test_and_insert_bulk_into(mixed, new).unwrap());
        measure("test_and_insert/blocked 512x64", &mut || blocked512.test_and_insert_bulk_into(mixed, new).unwrap());
        measure("test_and_insert/rao", &mut || rao.test_and_insert_bulk_into(mixed, new).unwrap());
        if parallel {
            measure("test_and_insert/fastbloom, atomic", &mut || {
                mixed.par_chunks(1 << 12).zip(new.par_chunks_mut(1 << 12)).for_each(|(keys, new)| {
                    keys.iter().zip(new).for_each(|(key, new)| *new = !atomic.insert(key));
                })
            });
        } else {
            measure("test_and_insert/parquet", &mut || {
                mixed.iter().zip(&mut *new).for_each(|(key, new)| {
                    *new = !parquet.check(key);
                    parquet.insert(key);
                })
            });
            measure("test_and_insert/fastbloom", &mut || {
                mixed.iter().zip(&mut *new).for_each(|(key, new)| *new = !fast.insert(key))
            });
        }
    }
}

/// Added to a batch's number for its mixed keys.
const MIXED: u64 = 1 << 16;

/// The keys of one call of each operation.
struct Batch {
    queries: Vec<u64>,
    new_keys: Vec<u64>,
    /// Half in the filter, half new.
    mixed: Vec<u64>,
}

impl Batch {
    /// `keys` keys, other ones for each `number`, for filters of `n` keys.
    fn new(number: u64, n: usize, keys: usize) -> Batch {
        let inserted = keys.min(n / 8);
        Batch {
            queries: queries(number, n, keys),
            new_keys: KeySpace::new(1).stream(2 * number + 2).u64_keys(inserted),
            mixed: queries(number + MIXED, n, inserted),
        }
    }

    /// How many keys the operation of this name takes.
    fn keys_of(&self, name: &str) -> usize {
        if name.starts_with("contains") { self.queries.len() } else { self.new_keys.len() }
    }
}

/// Calls of each operation for `--ratios`.
const ROUNDS: usize = 60;
const LOG2_SIZES: [u32; 4] = [15, 18, 22, 27];

fn bloom(c: &mut Criterion) {
    let pools = pools();
    for log2_n in LOG2_SIZES {
        let n = 1usize << log2_n;
        // One batch again and again: from the second time on, all its keys are there.
        let batch = Batch::new(0, n, 1 << 20);
        let mut subjects = Subjects::filled(n);
        for (threads, pool) in &pools {
            let mut group = c.benchmark_group(format!("bloom/{}/{threads}", name(log2_n)));
            let parallel = pool.current_num_threads() > 1;
            subjects.each(&batch, parallel, |name, operation| {
                group.throughput(Throughput::Elements(batch.keys_of(name) as u64));
                group.bench_function(name, |b| b.iter(|| pool.install(&mut *operation)));
            });
            group.finish();
        }
    }
}

/// The fastest of many short calls of each operation, in turns.
fn ratios() {
    let asked: Vec<u32> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    for log2_n in LOG2_SIZES.into_iter().filter(|log2_n| asked.is_empty() || asked.contains(log2_n)) {
        let n = 1usize << log2_n;
        let mut subjects = Subjects::filled(n);
        // The largest has room for what is inserted; the others get their keys back before each round.
        let filled = (n < ROUNDS << 18).then(|| subjects.rao.clone());
        for (threads, pool) in pools() {
            let keys = if threads == "1 thread" { 1 << 14 } else { 1 << 18 };
            let mut best: Vec<(String, f64)> = Vec::new();
            pool.install(|| {
                for round in 0..ROUNDS as u64 {
                    // Other keys in each round, so that caches hold what they would in use.
                    let batch = Batch::new(round, n, keys);
                    if let Some(filled) = &filled {
                        subjects.rao = filled.clone();
                    }
                    subjects.each(&batch, rayon::current_num_threads() > 1, |name, operation| {
                        let start = Instant::now();
                        operation();
                        let rate = batch.keys_of(name) as f64 / start.elapsed().as_secs_f64() / 1e6;
                        match best.iter_mut().find(|(other, _)| other == name) {
                            Some((_, fastest)) => *fastest = fastest.max(rate),
                            None => best.push((name.to_owned(), rate)),
                        }
                    });
                }
            });
            for operation in ["contains/", "insert/", "test_and_insert/"] {
                let of_peers = best.iter().filter(|(name, _)| name.starts_with(operation));
                let peer = of_peers
                    .filter(|(name, _)| name.contains("parquet") || name.contains("fastbloom"))
                    .map(|(_, rate)| *rate)
                    .fold(0.0, f64::max);
                for (name, rate) in best.iter().filter(|(name, _)| name.starts_with(operation)) {
                    println!(
                        "{:8} {threads:12} {name:34} {rate:8.1} M/s {:6.2} of the best peer",
                        self::name(log2_n),
                        rate / peer
                    );
                }
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
    targets = bloom
}

fn main() {
    if std::env::args().any(|argument| argument == "--ratios") {
        return ratios();
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
}

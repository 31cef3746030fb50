//! One key at a time, on one thread of the host: a group per structure and operation, `structure/operation`, with the
//! library of others that does the same beside ours. Inner loops are groups of `inner`.
//!
//! `cd benches && cargo bench -p bench-criterion -- bloom/contains` runs one group.

#![allow(missing_docs, reason = "criterion's macro makes a function without")]

mod bloom;
mod dictionaries;
mod filters;
mod inner;
mod perfect_hash;
mod sequences;
mod static_sets;

use std::hint::black_box;

use bench_frame::input::keys::KeySpace;
use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};

/// Keys in a structure: most structures then exceed a second-level cache.
const KEYS: usize = 1 << 20;

/// Returns the first keys of a stream: 0 is inserted, 1 is not.
fn keys(stream: u64, n: usize) -> Vec<u64> {
    KeySpace::new(0x2026).stream(stream).u64_keys(n)
}

/// Times `operation` on the keys one by one, cyclically.
fn each<K: Copy, R>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: impl Into<String>,
    keys: &[K],
    mut operation: impl FnMut(K) -> R,
) {
    group.throughput(Throughput::Elements(1));
    let mut next = 0;
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            let key = keys[next];
            next = if next + 1 == keys.len() { 0 } else { next + 1 };
            operation(black_box(key))
        });
    });
}

/// Times `work` on the whole input, which `make` makes again before each repeat.
fn whole<I, R>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: impl Into<String>,
    items: usize,
    mut make: impl FnMut() -> I,
    mut work: impl FnMut(&mut I) -> R,
) {
    group.throughput(Throughput::Elements(items as u64));
    group.bench_function(name, |bencher| bencher.iter_batched_ref(&mut make, &mut work, BatchSize::LargeInput));
}

/// Returns a peer's name with its version.
fn peer(name: &str) -> String {
    format!("{name} {}", bench_frame::machine::version(name))
}

criterion_group! {
    name = all;
    config = Criterion::default().without_plots();
    targets = bloom::run, filters::quotient, filters::fuse, dictionaries::run, perfect_hash::run, static_sets::run,
        sequences::run, inner::run
}
criterion_main!(all);

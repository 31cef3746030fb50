//! The primitives' loops on one CPU thread, 2^16 and 2^22 items, for whoever changes one.
//!
//! Rates on all threads and on devices, against a copy of the same bytes: `cargo xtask bench primitives`.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use warpset_benches::keys::KeySpace;
use warpset_primitives::KeyMask;
use warpset_primitives::cpu::{merge, search, select, sort};
use warpset_primitives::sort::By;

fn primitives(c: &mut Criterion) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let mask = KeyMask::all();
    for log2_n in [16, 22] {
        let n = 1 << log2_n;
        let random = KeySpace::new(3).stream(0).u64_keys(n);
        let needles = KeySpace::new(3).stream(1).u64_keys(n);
        let (mut sorted, mut ordered) = (random.clone(), needles.clone());
        sorted.sort_unstable();
        ordered.sort_unstable();
        let (a, b) = (&sorted[..n / 2], &ordered[..n / 2]);
        let (mut out, mut values) = (vec![0; n], vec![0; n]);
        let mut group = c.benchmark_group("primitives");
        group.throughput(Throughput::Elements(n as u64));
        let mut bench = |name: &str, work: &mut (dyn FnMut(&mut [u64], &mut [u64]) + Send)| {
            group.bench_function(BenchmarkId::new(name, log2_n), |bench| {
                pool.install(|| bench.iter(|| work(&mut out, &mut values)));
            });
        };
        bench("merge/keys", &mut |out, _| merge::merge_keys(a, b, mask, out).unwrap());
        bench("merge/pairs", &mut |out, values| merge::merge_pairs((a, a), (b, b), mask, out, values).unwrap());
        bench("select/bitmap", &mut |out, _| _ = select::select(&random, &needles[..n / 64], out).unwrap());
        bench("lower bound/any order", &mut |out, _| search::lower_bound(&sorted, &needles, mask, out).unwrap());
        bench("lower bound/sorted", &mut |out, _| search::lower_bound_sorted(&sorted, &ordered, mask, out).unwrap());
        bench("sort/keys", &mut |out, _| sort::sort_keys(&random, out, By::ascending()).unwrap());
    }
}

criterion_group!(benches, primitives);
criterion_main!(benches);

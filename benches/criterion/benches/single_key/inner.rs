//! Inner loops that several structures share: hashing, select in a word, fields of bits, sorting.

use std::hash::BuildHasher;

use criterion::Criterion;
use warpset_base::sort::sort_by_rank;
use warpset_core::{bits, hash};

use super::{KEYS, each, keys, whole};

pub fn run(criterion: &mut Criterion) {
    let keys = keys(0, KEYS);
    let fold = foldhash::fast::FixedState::default();
    let mut group = criterion.benchmark_group("inner/hash of an integer");
    each(&mut group, "hash::mix", &keys, |key| hash::mix(key, 7));
    each(&mut group, "foldhash", &keys, |key| fold.hash_one(key));
    group.finish();

    let mut group = criterion.benchmark_group("inner/select in a word");
    each(&mut group, "bits::select", &keys, |word| bits::select(word, word.count_ones() / 2));
    each(&mut group, "a loop over set bits", &keys, |word| {
        let mut rest = word;
        (0..word.count_ones() / 2).for_each(|_| rest &= rest - 1);
        rest.trailing_zeros()
    });
    group.finish();

    let fields: Vec<u64> = (0..KEYS as u64).map(|i| hash::mix(i, 1) % (64 * KEYS as u64 - 64)).collect();
    let mut group = criterion.benchmark_group("inner/field of 13 bits");
    each(&mut group, "bits::field", &fields, |at| bits::field(&keys, at, 13));
    group.finish();

    let mut group = criterion.benchmark_group("inner/sort of integers");
    group.sample_size(10);
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    whole(
        &mut group,
        "sort_by_rank, one thread",
        KEYS,
        || keys.clone(),
        |keys| {
            one.install(|| sort_by_rank(keys, 64, |key| key));
        },
    );
    whole(&mut group, "slice::sort_unstable", KEYS, || keys.clone(), |keys| keys.sort_unstable());
    group.finish();
}

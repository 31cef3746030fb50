//! Bloom filters of 16 bits per key, beside `fastbloom` with the hasher that is its fastest.

use criterion::Criterion;
use fastbloom::BloomFilter;
use warpset::prelude::*;

use super::{KEYS, each, keys, peer};

pub fn run(criterion: &mut Criterion) {
    let (present, absent) = (keys(0, KEYS), keys(1, KEYS));
    let mut split = SplitBlockBloom::builder(KEYS as u64).bits_per_key(16.0).build().expect("memory");
    let mut blocked = BlockedBloom::builder(KEYS as u64).bits_per_key(16.0).build().expect("memory");
    let mut theirs =
        BloomFilter::with_num_bits(16 * KEYS).hasher(foldhash::fast::FixedState::default()).expected_items(KEYS);

    let mut group = criterion.benchmark_group("bloom/insert");
    each(&mut group, "SplitBlockBloom", &present, |key| split.insert(key));
    each(&mut group, "BlockedBloom", &present, |key| blocked.insert(key));
    each(&mut group, peer("fastbloom"), &present, |key| theirs.insert(&key));
    group.finish();
    // Whatever the measurements above have left out.
    present.iter().for_each(|&key| {
        split.insert(key);
        blocked.insert(key);
        theirs.insert(&key);
    });
    for (name, asked) in [("bloom/contains", &present), ("bloom/contains absent", &absent)] {
        let mut group = criterion.benchmark_group(name);
        each(&mut group, "SplitBlockBloom", asked, |key| split.contains(key));
        each(&mut group, "BlockedBloom", asked, |key| blocked.contains(key));
        each(&mut group, peer("fastbloom"), asked, |key| theirs.contains(&key));
        group.finish();
    }
}

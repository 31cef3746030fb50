//! Minimal perfect hash functions beside `boomphf`, and filters on top of them beside a filter of `xorf`.

use criterion::Criterion;
use warpset::prelude::*;

use super::{KEYS, each, keys, peer};

pub fn run(criterion: &mut Criterion) {
    let (present, absent) = (keys(0, KEYS), keys(1, KEYS));
    let consensus = Consensus::builder().build_from(&present).expect("distinct keys");
    let recsplit = RecSplit::builder().build_from(&present).expect("distinct keys");
    // Memory over keys as its documentation recommends.
    let theirs = boomphf::Mphf::new(1.7, &present);
    let mut group = criterion.benchmark_group("mphf/get");
    each(&mut group, "Consensus", &present, |key| consensus.get(key));
    each(&mut group, "RecSplit", &present, |key| recsplit.get(key));
    each(&mut group, peer("boomphf"), &present, |key| theirs.hash(&key));
    group.finish();

    let ours = StaticFilter::builder().build_from(&present).expect("distinct keys");
    let fuse = xorf::BinaryFuse8::try_from(&present).expect("distinct keys");
    for (name, asked) in [("fingerprints/contains", &present), ("fingerprints/contains absent", &absent)] {
        let mut group = criterion.benchmark_group(name);
        each(&mut group, "StaticFilter", asked, |key| ours.contains(key));
        each(&mut group, peer("xorf"), asked, |key| xorf::Filter::contains(&fuse, &key));
        group.finish();
    }
}

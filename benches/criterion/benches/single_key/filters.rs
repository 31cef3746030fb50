//! Quotient filters at a load of up to 0.9 beside `qfilter`, and binary fuse filters beside `xorf`.

use criterion::Criterion;
use warpset::prelude::*;
use warpset::quotient::{Builder, SlotKind};

use super::{KEYS, each, keys, peer};

/// The rate of false positives of all quotient filters.
const FPR: f64 = 0.01;

pub fn quotient(criterion: &mut Criterion) {
    fn filled<S: SlotKind>(builder: Builder<S>, keys: &[u64]) -> warpset::quotient::QuotientFilter<S> {
        builder.fpr(FPR).duplicates(Duplicates::Kept).build_from(keys).expect("memory")
    }
    let (present, absent) = (keys(0, KEYS), keys(1, KEYS));
    // Room for the keys that are inserted and removed again.
    let room = KEYS as u64 + 1;
    let mut standard = filled(StandardQuotientFilter::builder(room), &present);
    let mut rank_select = filled(RankSelectQuotientFilter::builder(room), &present);
    let mut theirs = qfilter::Filter::new(room, FPR).expect("memory");
    present.iter().for_each(|key| theirs.insert_duplicated(key).expect("room"));

    for (name, asked) in [("quotient/contains", &present), ("quotient/contains absent", &absent)] {
        let mut group = criterion.benchmark_group(name);
        each(&mut group, "StandardQuotientFilter", asked, |key| standard.contains(key));
        each(&mut group, "RankSelectQuotientFilter", asked, |key| rank_select.contains(key));
        each(&mut group, peer("qfilter"), asked, |key| theirs.contains(key));
        group.finish();
    }
    let mut group = criterion.benchmark_group("quotient/insert and remove");
    each(&mut group, "StandardQuotientFilter", &absent, |key| {
        standard.insert(key).expect("room");
        standard.remove(key)
    });
    each(&mut group, "RankSelectQuotientFilter", &absent, |key| {
        rank_select.insert(key).expect("room");
        rank_select.remove(key)
    });
    each(&mut group, peer("qfilter"), &absent, |key| {
        theirs.insert_duplicated(key).expect("room");
        theirs.remove(key)
    });
    group.finish();
}

pub fn fuse(criterion: &mut Criterion) {
    use xorf::Filter;

    let (present, absent) = (keys(0, KEYS), keys(1, KEYS));
    let ours = BinaryFuse8::builder().build_from(&present).expect("memory");
    let ours_16 = BinaryFuse16::builder().build_from(&present).expect("memory");
    let theirs = xorf::BinaryFuse8::try_from(&present).expect("distinct keys");
    let theirs_16 = xorf::BinaryFuse16::try_from(&present).expect("distinct keys");
    for (name, asked) in [("fuse/contains", &present), ("fuse/contains absent", &absent)] {
        let mut group = criterion.benchmark_group(name);
        each(&mut group, "BinaryFuse8", asked, |key| ours.contains(key));
        each(&mut group, format!("{}, 8 bits", peer("xorf")), asked, |key| theirs.contains(&key));
        each(&mut group, "BinaryFuse16", asked, |key| ours_16.contains(key));
        each(&mut group, format!("{}, 16 bits", peer("xorf")), asked, |key| theirs_16.contains(&key));
        group.finish();
    }
}

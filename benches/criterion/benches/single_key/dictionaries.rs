//! Ordered dictionaries beside the standard library's `BTreeMap`.

use std::collections::BTreeMap;

use criterion::Criterion;
use warpset::lsm::{Lsm, SortedArray};

use super::{KEYS, each, keys};

pub fn run(criterion: &mut Criterion) {
    let (present, absent) = (keys(0, KEYS), keys(1, KEYS));
    let mut lsm = Lsm::<u64, u64>::builder().build().expect("valid settings");
    lsm.insert_bulk(&present, &present).expect("memory");
    let mut array = SortedArray::<u64, u64>::builder().build().expect("valid settings");
    array.insert_bulk(&present, &present).expect("memory");
    let mut map: BTreeMap<u64, u64> = present.iter().map(|&key| (key, key)).collect();

    for (name, asked) in [("lsm/get", &present), ("lsm/get absent", &absent)] {
        let mut group = criterion.benchmark_group(name);
        each(&mut group, "Lsm", asked, |key| lsm.get(key));
        each(&mut group, "SortedArray", asked, |key| array.get(key));
        each(&mut group, "BTreeMap", asked, |key| map.get(&key).copied());
        group.finish();
    }
    let mut group = criterion.benchmark_group("lsm/successor");
    each(&mut group, "Lsm", &absent, |key| lsm.successor(key));
    each(&mut group, "SortedArray", &absent, |key| array.successor(key));
    each(&mut group, "BTreeMap", &absent, |key| map.range(key..).next().map(|(&key, &value)| (key, value)));
    group.finish();

    // Keys that are there: the number of elements stays.
    let mut group = criterion.benchmark_group("lsm/insert");
    each(&mut group, "Lsm", &present, |key| lsm.insert(key, key + 1).expect("memory"));
    each(&mut group, "BTreeMap", &present, |key| map.insert(key, key + 1));
    group.finish();
}

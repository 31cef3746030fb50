//! Exact sets and maps beside the standard library's hash tables with the hasher `foldhash`.

use std::collections::{HashMap, HashSet};

use criterion::Criterion;
use foldhash::fast::FixedState;
use warpset::static_sets::{StaticMap, StaticSet};

use super::{KEYS, each, keys};

pub fn run(criterion: &mut Criterion) {
    let (present, absent) = (keys(0, KEYS), keys(1, KEYS));
    let set = StaticSet::<u64>::builder().build_from(&present).expect("memory");
    let map = StaticMap::<u64, u64>::builder().build_from(&present, &present).expect("memory");
    let their_set: HashSet<u64, FixedState> = present.iter().copied().collect();
    let their_map: HashMap<u64, u64, FixedState> = present.iter().map(|&key| (key, key)).collect();
    for (name, asked) in [("static/contains", &present), ("static/contains absent", &absent)] {
        let mut group = criterion.benchmark_group(name);
        each(&mut group, "StaticSet", asked, |key| set.contains(key));
        each(&mut group, "HashSet", asked, |key| their_set.contains(&key));
        group.finish();
    }
    let mut group = criterion.benchmark_group("static/get");
    each(&mut group, "StaticMap", &present, |key| map.get(key));
    each(&mut group, "HashMap", &present, |key| their_map.get(&key).copied());
    group.finish();
}

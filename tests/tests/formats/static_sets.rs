//! Static sets and maps: fixtures, damage.

use warpset::static_sets::{StaticMap, StaticSet};
use warpset_tests::files::{damage, fixture};

fn keys(n: u64) -> Vec<u64> {
    (0..n).map(|i| i * i * 0x9e37_79b9).collect()
}

#[test]
fn fixtures_of_version_1() {
    let narrow: Vec<u32> = keys(200).iter().map(|&key| key as u32).collect();
    fixture("static_set.v1", &StaticSet::<u64>::builder().build_from(&keys(300)).unwrap());
    fixture("static_set_u32.v1", &StaticSet::<u32>::builder().seed(3).build_from(&narrow).unwrap());
    fixture("static_map.v1", &StaticMap::<u64, u32>::builder().build_from(&keys(200), &narrow).unwrap());
    fixture("static_map_u32_u64.v1", &StaticMap::<u32, u64>::builder().build_from(&narrow, &keys(200)).unwrap());
}

#[test]
fn damaged_bytes_are_refused() {
    let values: Vec<u32> = (0..300).collect();
    let map = StaticMap::<u64, u32>::builder().build_from(&keys(300), &values).unwrap();
    damage(&map, |at| vec![at as u32 % 8], |_, _| ());
}

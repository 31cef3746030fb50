//! Saved static sets and maps: fixtures of each version.
//!
//! `WARPSET_WRITE_FIXTURES=1 cargo test -p warpset-tests --test static_sets` writes the fixtures of a new version.

use std::path::PathBuf;

use warpset::static_sets::{StaticKey, StaticMap, StaticSet, Value};

fn keys(n: u64) -> Vec<u64> {
    (0..n).map(|i| i * i * 0x9e37_79b9).collect()
}

fn fixture<K: StaticKey, V: Value>(name: &str, built: &StaticMap<K, V>) {
    // At run time: packed tests run elsewhere than they were built.
    let package = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    let path = PathBuf::from(package).join("data").join(name);
    if std::env::var_os("WARPSET_WRITE_FIXTURES").is_some() {
        built.save(&path).unwrap();
    }
    assert!(StaticMap::<K, V>::load(&path).unwrap() == *built, "{name}: places or header changed");
    assert_eq!(std::fs::read(&path).unwrap(), built.to_bytes(), "{name}");
}

#[test]
fn fixtures_of_version_1() {
    let narrow: Vec<u32> = keys(200).iter().map(|&key| key as u32).collect();
    fixture("static_set.v1", &StaticSet::<u64>::builder().build_from(&keys(300)).unwrap());
    fixture("static_set_u32.v1", &StaticSet::<u32>::builder().seed(3).build_from(&narrow).unwrap());
    fixture("static_map.v1", &StaticMap::<u64, u32>::builder().build_from(&keys(200), &narrow).unwrap());
    fixture("static_map_u32_u64.v1", &StaticMap::<u32, u64>::builder().build_from(&narrow, &keys(200)).unwrap());
}

//! Saved range filters: fixtures, mapped files, hostile headers.
//!
//! `WARPSET_WRITE_FIXTURES=1 cargo test -p warpset-tests --test range_format` writes the fixtures of a new version.

use std::path::PathBuf;

use warpset::range::{
    DynamicRangeFilter, DynamicRangeFilterView, FileError, KeyOf, RangeFilter, RangeFilterView, RangeKey,
};

fn path_of(name: &str) -> PathBuf {
    // At run time: packed tests run elsewhere than they were built.
    let package = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    PathBuf::from(package).join("data").join(name)
}

macro_rules! compare {
    ($type:ty, $name:expr, $filter:expr, $keys:expr) => {
        let (name, filter, keys) = ($name, $filter, $keys);
        let path = path_of(name);
        if std::env::var_os("WARPSET_WRITE_FIXTURES").is_some() {
            filter.save(&path).unwrap();
        }
        assert!(<$type>::load(&path).unwrap() == filter, "{name}: codes, words or header changed");
        assert_eq!(std::fs::read(&path).unwrap(), filter.to_bytes(), "{name}");
        // SAFETY: nothing changes the file meanwhile.
        let (mapped, unverified) = unsafe { (<$type>::map(&path).unwrap(), <$type>::map_unverified(&path).unwrap()) };
        assert!(keys.iter().all(|&key| mapped.contains(key) && unverified.may_contain(key..=key)));
        assert_eq!((mapped.len(), mapped.memory_bytes()), (filter.len(), filter.memory_bytes()));
    };
}

fn fixture<K: RangeKey + ?Sized, Q: KeyOf<K> + Copy>(name: &str, bits: f64, keys: &[Q]) {
    let filter = RangeFilter::<K>::builder().bits_per_key(bits).seed(42).build_from(keys).unwrap();
    compare!(RangeFilter<K>, name, filter, keys);
}

fn dynamic_fixture<K: RangeKey + ?Sized, Q: KeyOf<K> + Copy>(name: &str, keys: &[Q]) {
    let builder = DynamicRangeFilter::<K>::builder(keys.len() as u64).fpr_at(0.001, 100).seed(42);
    compare!(DynamicRangeFilter<K>, name, builder.build_from(keys).unwrap(), keys);
}

#[test]
fn fixtures_of_version_1() {
    let numbers: Vec<u64> = (0..1500).map(|i| u64::wrapping_mul(i * i, 0x9e37_79b9_7f4a_7c15)).collect();
    fixture::<u64, _>("range_u64.v1", 12.5, &numbers);
    let dense: Vec<i32> = (-300..300).map(|i| i * 3).collect();
    fixture::<i32, _>("range_exact.v1", 16.0, &dense);
    fixture::<[u8], _>("range_strings.v1", 16.0, &["filter", "hello", "range", "the first of long keys", "world"]);
    dynamic_fixture::<u64, _>("range_dynamic.v1", &numbers);
    dynamic_fixture::<f64, _>("range_dynamic_f64.v1", &[-1.5, 0.25, 0.25, 1e300]);
}

#[test]
fn damage_of_dynamic_filters_is_noticed() {
    let keys: Vec<u64> =
        (0..3000).map(|i| if i < 500 { i } else { u64::wrapping_mul(i * i, 0x9e37_79b9_7f4a_7c15) }).collect();
    let filter = DynamicRangeFilter::<u64>::builder(3000).fpr_at(0.01, 256).build_from(&keys).unwrap();
    let saved = filter.to_bytes();
    for at in (0..saved.len()).step_by(61).chain(0..128) {
        let mut damaged = saved.clone();
        damaged[at] ^= 0x10;
        assert!(DynamicRangeFilter::<u64>::from_bytes(&damaged).is_err(), "byte {at}");
        // Without the checksum: an error or some answers.
        let words: Vec<u64> = bytemuck::pod_collect_to_vec(&damaged);
        if let Ok(view) = DynamicRangeFilterView::<u64>::from_bytes_unverified(bytemuck::cast_slice(&words)) {
            let ranges: Vec<_> = keys.iter().map(|&key| key..key.saturating_add(300)).collect();
            assert_eq!(view.may_contain_bulk(&ranges).len(), keys.len());
        }
    }
}

#[test]
fn damage_is_noticed() {
    let keys: Vec<u64> = (0..3000).map(|i| u64::wrapping_mul(i * i, 0x9e37_79b9_7f4a_7c15)).collect();
    let filter = RangeFilter::<u64>::builder().build_from(&keys).unwrap();
    let saved = filter.to_bytes();
    for at in (0..saved.len()).step_by(61).chain(0..128) {
        let mut damaged = saved.clone();
        damaged[at] ^= 0x10;
        assert!(RangeFilter::<u64>::from_bytes(&damaged).is_err(), "byte {at}");
        // Without the checksum: an error or some answers.
        let words: Vec<u64> = bytemuck::pod_collect_to_vec(&damaged);
        if let Ok(view) = RangeFilterView::<u64>::from_bytes_unverified(bytemuck::cast_slice(&words)) {
            let ranges: Vec<_> = keys.iter().map(|&key| key..key.saturating_add(1 << 20)).collect();
            assert_eq!(view.may_contain_bulk(&ranges).len(), view.count_at_most_bulk(&ranges).len());
        }
    }
    for len in [0, 1, 127, 128, saved.len() - 1] {
        assert!(RangeFilter::<u64>::from_bytes(&saved[..len]).is_err(), "{len} bytes");
    }
    let error = RangeFilter::<u64>::from_bytes(&[&saved[..], &[0]].concat()).unwrap_err();
    assert!(matches!(error, warpset::range::Error::File(FileError::TrailingBytes { extra: 1 })));
}

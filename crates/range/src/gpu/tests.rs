//! Filters in device memory against those of the host, on the emulator and on CUDA.

use warpset_core::hash::mix;
use warpset_gpu::Device;
use warpset_gpu::testing::{devices, sized};

use super::DeviceRangeKey;
use crate::{DynamicRangeFilter, Error, RangeFilter};

/// Compares builds and lookups of keys with those of the host.
fn as_on_the_host<K: DeviceRangeKey + std::fmt::Debug>(device: &Device, keys: &[K], bits: f64) {
    let builder = RangeFilter::<K>::builder().bits_per_key(bits).seed(5);
    let host = builder.build_from(keys).unwrap();
    let there = device.from_slice(keys).unwrap();
    let filter = builder.on(device).build_from_device(there.as_slice()).unwrap();
    assert!(filter.to_host().unwrap() == host, "{} keys at {bits}", keys.len());
    let lasts: Vec<K> = keys.iter().rev().copied().collect();
    let n = keys.len();
    let ranges: Vec<_> = keys.iter().copied().zip(lasts.iter().copied()).map(|(first, last)| first..=last).collect();
    assert_eq!(filter.may_contain_bulk(&ranges).unwrap(), host.may_contain_bulk(&ranges));
    assert_eq!(filter.count_at_most_bulk(&ranges).unwrap(), host.count_at_most_bulk(&ranges));
    assert!(filter.contains_bulk(keys).unwrap().iter().all(|&yes| yes));
    let ends = device.from_slice(&lasts).unwrap();
    let mut found = device.alloc_zeroed::<u64>(n.div_ceil(64)).unwrap();
    filter.may_contain_bitmap_device(there.as_slice(), ends.as_slice(), found.as_mut_slice()).unwrap();
    assert_eq!(found.to_vec().unwrap(), host.may_contain_bitmap_bulk(&ranges).as_words());
    let mut counts = device.alloc_zeroed::<u64>(n).unwrap();
    filter.count_at_most_device(there.as_slice(), ends.as_slice(), counts.as_mut_slice()).unwrap();
    assert_eq!(counts.to_vec().unwrap(), host.count_at_most_bulk(&ranges));
    filter.contains_bitmap_device(there.as_slice(), found.as_mut_slice()).unwrap();
    assert_eq!(found.to_vec().unwrap(), host.contains_bitmap_bulk(keys).as_words());
}

/// Returns random keys, clusters of keys, and keys with copies.
fn keys_of_every_pattern(n: u64, cluster: u64) -> [Vec<u64>; 3] {
    [
        (0..n).map(|i| mix(i, 1)).collect(),
        (0..n).map(|i| (mix(i / cluster, 2) >> 1) + i % cluster * 3).collect(),
        (0..n).map(|i| mix(mix(i, 3) % (1 + n / 5), 4)).collect(),
    ]
}

#[test]
fn builds_and_lookups_are_those_of_the_host() {
    for device in devices(51) {
        let most = sized(&device, 2_000, 5_000, 500_000);
        for n in [0, 1, 2, 255, 256, 257, 600, most].into_iter().step_by(sized(&device, 1, 7, 1)) {
            for keys in keys_of_every_pattern(n, 50) {
                as_on_the_host(&device, &keys, 3.0);
                as_on_the_host(&device, &keys, 14.5);
            }
        }
        let dense: Vec<u32> = (0..sized(&device, 700, 700, 100_000)).map(|i| 7 + 2 * i).collect();
        as_on_the_host(&device, &dense, 16.0);
    }
}

#[test]
fn every_type_of_key() {
    for device in &devices(52) {
        as_on_the_host(device, &[0u32, 1, 77, u32::MAX], 10.0);
        as_on_the_host(device, &[0u64, 1, 77, u64::MAX], 10.0);
        as_on_the_host(device, &[i32::MIN, -1, 0, i32::MAX], 10.0);
        as_on_the_host(device, &[i64::MIN, -1, 0, i64::MAX], 10.0);
        as_on_the_host(device, &[f32::NEG_INFINITY, -1.5, -0.0, 0.0, 1e30, f32::INFINITY], 10.0);
        as_on_the_host(device, &[f64::NEG_INFINITY, -1.5, -0.0, 0.0, 1e300, f64::INFINITY], 10.0);
    }
}

#[test]
fn lookups_that_cannot_be_are_errors() {
    for device in &devices(55) {
        let filter = RangeFilter::<u64>::builder().on(device).build_from(&[1, 2, u64::MAX]).unwrap();
        let keys = device.from_slice(&[1u64, 2, 3]).unwrap();
        let mut words = device.alloc_zeroed::<u64>(3).unwrap();
        let short = filter.may_contain_bitmap_device(keys.as_slice(), keys.slice(..2), words.as_mut_slice());
        assert!(matches!(short, Err(Error::LengthMismatch(_))));
        assert!(filter.contains_bitmap_device(keys.as_slice(), words.slice_mut(..0)).is_err());
        assert!(filter.count_at_most_device(keys.as_slice(), keys.as_slice(), words.slice_mut(..2)).is_err());
        let other = Device::emulator(Default::default());
        let foreign = other.from_slice(&[1u64]).unwrap();
        assert!(matches!(filter.contains_bitmap_device(foreign.as_slice(), words.as_mut_slice()), Err(Error::Gpu(_))));
        assert!(RangeFilter::<u64>::builder().on(device).build_from_device(foreign.as_slice()).is_err());
        assert!(RangeFilter::<u64>::builder().bits_per_key(1.0).on(device).build_from(&[1]).is_err());
    }
}

#[test]
fn damaged_words_lead_nowhere_else() {
    let keys: Vec<u64> = (0..500).map(|i| mix(i, 6)).collect();
    let host = RangeFilter::<u64>::builder().build_from(&keys).unwrap();
    let ranges: Vec<_> = keys.iter().map(|&key| key..key.saturating_add(key >> (key % 64))).collect();
    for device in devices(54) {
        for fill in [0, u64::MAX, 0x9e37_79b9_7f4a_7c15] {
            let words = device.from_slice(&vec![fill; host.words().len()]).unwrap();
            let filter = super::RangeFilter::<u64>::from_parts(&device, *host.layout(), words);
            let found = filter.may_contain_bulk(&ranges).unwrap().len();
            assert_eq!(found, filter.count_at_most_bulk(&ranges).unwrap().len());
        }
    }
}

/// Compares changes and lookups of a dynamic filter with those of the host.
fn dynamic_as_on_the_host<K: DeviceRangeKey + std::fmt::Debug>(device: &Device, keys: &[K], fpr: f64, length: u64) {
    let builder = DynamicRangeFilter::<K>::builder(keys.len() as u64).fpr_at(fpr, length).seed(5);
    let mut host = builder.build().unwrap();
    let mut filter = host.to_device(device).unwrap();
    let there = device.from_slice(keys).unwrap();
    let half = keys.len() / 2;
    let lasts: Vec<K> = keys.iter().rev().copied().collect();
    let ranges: Vec<_> = keys.iter().copied().zip(lasts.iter().copied()).map(|(first, last)| first..=last).collect();
    let check = |filter: &super::DynamicRangeFilter<K>, host: &DynamicRangeFilter<K>| {
        assert!(filter.to_host().unwrap() == *host && filter.len() == host.len(), "{} keys", keys.len());
        assert_eq!(filter.fpr_of(length), host.fpr_of(length));
        assert_eq!(filter.may_contain_bulk(&ranges).unwrap(), host.may_contain_bulk(&ranges));
        assert_eq!(filter.contains_bulk(keys).unwrap(), host.contains_bulk(keys));
        let ends = device.from_slice(&lasts).unwrap();
        let mut found = device.alloc_zeroed::<u64>(keys.len().div_ceil(64)).unwrap();
        filter.may_contain_bitmap_device(there.as_slice(), ends.as_slice(), found.as_mut_slice()).unwrap();
        assert_eq!(found.to_vec().unwrap(), host.may_contain_bitmap_bulk(&ranges).as_words());
        filter.contains_bitmap_device(there.as_slice(), found.as_mut_slice()).unwrap();
        assert_eq!(found.to_vec().unwrap(), host.contains_bitmap_bulk(keys).as_words());
    };
    check(&filter, &host);
    host.insert_bulk(&keys[..half]).unwrap();
    filter.insert_bulk(&keys[..half]).unwrap();
    check(&filter, &host);
    host.insert_bulk(&keys[half..]).unwrap();
    filter.insert_device(there.slice(half..)).unwrap();
    check(&filter, &host);
    assert_eq!(filter.remove_device(there.slice(..half)).unwrap(), host.remove_bulk(&keys[..half]).unwrap());
    check(&filter, &host);
    host.double().unwrap();
    filter.double().unwrap();
    let (other, more) = (host.clone(), host.to_device(device).unwrap());
    host.merge(&other).unwrap();
    filter.merge(&more).unwrap();
    check(&filter, &host);
    assert_eq!(filter.remove_bulk(keys).unwrap(), host.remove_bulk(keys).unwrap());
    check(&filter, &host);
}

#[test]
fn dynamic_filters_are_those_of_the_host() {
    for device in &devices(53) {
        let most = sized(device, 900, 900, 100_000);
        for n in [0, 1, 2, 255, 256, 257, most].into_iter().step_by(sized(device, 1, 6, 1)) {
            for keys in keys_of_every_pattern(n, 300) {
                dynamic_as_on_the_host(device, &keys, 0.1, 1);
                dynamic_as_on_the_host(device, &keys, 0.001, 200);
            }
        }
        dynamic_as_on_the_host(device, &[0u32, 1, 77, u32::MAX], 0.01, 10);
        dynamic_as_on_the_host(device, &[i64::MIN, -1, 0, i64::MAX], 0.01, 10);
        dynamic_as_on_the_host(device, &[f32::NEG_INFINITY, -1.5, -0.0, 0.0, 1e30, f32::INFINITY], 0.01, 10);
        dynamic_as_on_the_host(device, &[f64::NEG_INFINITY, -1.5, -0.0, 0.0, 1e300, f64::INFINITY], 0.01, 10);
    }
}

#[test]
fn changes_that_cannot_be_are_errors() {
    let other = Device::emulator(Default::default());
    let host = DynamicRangeFilter::<u64>::builder(3).build_from(&[1, 2, u64::MAX]).unwrap();
    for device in &devices(56) {
        let mut filter = host.to_device(device).unwrap();
        let foreign = other.from_slice(&[1u64]).unwrap();
        assert!(matches!(filter.insert_device(foreign.as_slice()), Err(Error::Gpu(_))));
        assert!(matches!(filter.remove_device(foreign.as_slice()), Err(Error::Gpu(_))));
        assert!(matches!(filter.insert_bulk(&[7u64; 40]), Err(Error::Slots(_))));
        assert!(matches!(
            filter.insert_device(device.from_slice(&[7u64; 40]).unwrap().as_slice()),
            Err(Error::Slots(_))
        ));
        assert!(filter.to_host().unwrap() == host);
    }
}

//! Refused operations, failures, rates of collisions, exact maplets, files.

use warpset_core::bits::lowest;
use warpset_core::hash::mix;
#[cfg(feature = "gpu")]
use warpset_gpu::testing::{devices, fail_each};

use super::empty;
#[cfg(feature = "gpu")]
use crate::maplet::gpu;
use crate::maplet::{Maplet, MapletView};
use crate::{Duplicates, Error, FileError, Filter, Max, RankSelectBuilder, RankSelectQuotientFilter, Sum};

#[cfg(feature = "gpu")]
#[test]
fn refused_on_devices() {
    for device in devices(1) {
        let builder = RankSelectBuilder::with_bits(8, 8).exact(16).values(4);
        let mut maplet = builder.on(&device).build().unwrap();
        let (keys, values) = (device.from_slice(&[1u64, 2]).unwrap(), device.from_slice(&[3u64, 16]).unwrap());
        let refused = maplet.insert_device(keys.as_slice(), values.as_slice());
        assert!(matches!(refused, Err(Error::ValueTooWide { value: 16, bits: 4 })));
        assert!(matches!(maplet.insert_device(keys.as_slice(), values.slice(1..)), Err(Error::LengthMismatch(_))));
        let wide = device.from_slice(&[1u64, 1 << 16]).unwrap();
        let small = device.from_slice(&[3u64, 4]).unwrap();
        assert!(matches!(maplet.insert_device(wide.as_slice(), small.as_slice()), Err(Error::KeyTooWide { bits: 16 })));
        assert!(maplet.is_empty());
        maplet.insert_device(keys.as_slice(), small.as_slice()).unwrap();
        assert_eq!(maplet.get_bulk(&[1u64, 1 << 16, 2, 3]).unwrap(), [Some(3), None, Some(4), None]);
        assert_eq!(maplet.contains_bulk(&[1u64, 1 << 16, 2, 3]).unwrap(), [true, false, true, false]);
        assert_eq!(maplet.remove_bulk(&[1u64, 1 << 16, 3]).unwrap(), 1);
        assert_eq!(maplet.remove_device(wide.as_slice()).unwrap(), 0);
        let same = builder.build_from(&[2u64], &[4u8]).unwrap();
        assert!(maplet.to_host().unwrap() == same);
    }
}

#[cfg(feature = "gpu")]
#[test]
fn failing_allocations_change_nothing() {
    for device in devices(6) {
        change_nothing_by_failing(&device);
    }
}

/// Checks that a maplet is unchanged by a failed operation, or has the result of a complete one.
#[cfg(feature = "gpu")]
fn change_nothing_by_failing(device: &warpset_gpu::Device) {
    let keys: Vec<u64> = (0..300).collect();
    let values: Vec<u64> = keys.iter().map(|key| key % 50).collect();
    let mut start = empty((9, 9, 8, Duplicates::Dropped));
    start.insert_bulk(&keys[..200], &values[..200]).unwrap();
    let mut other = empty((9, 11, 8, Duplicates::Dropped));
    other.insert_bulk(&keys[100..], &values[..200]).unwrap();
    let there = other.to_device(device).unwrap();
    let mut several = start.clone();
    several.insert_bulk(&keys[..200], &values[50..250]).unwrap();
    type Operation = fn(&mut gpu::Maplet, &gpu::Maplet, &[u64], &[u64]) -> Result<(), Error>;
    let operations: [Operation; 6] = [
        |maplet, _, keys, values| maplet.insert_bulk(keys, values).map(|_| ()),
        |maplet, _, keys, values| maplet.upsert_bulk::<Sum<u64>, _, _>(keys, values).map(|_| ()),
        |maplet, _, keys, _| maplet.remove_bulk(&keys[..50]).map(|_| ()),
        |maplet, other, _, _| maplet.merge(other),
        |maplet, other, _, _| maplet.merge_by::<Max<u64>>(other),
        |maplet, _, _, _| maplet.double(),
    ];
    let cases = [&start, &several].into_iter().flat_map(|before| (0..operations.len()).map(move |i| (before, i)));
    for (before, i) in cases {
        let operation = operations[i];
        let mut done = before.to_device(device).unwrap();
        operation(&mut done, &there, &keys, &values).unwrap();
        let done = done.to_host().unwrap();
        let mut state = before.to_device(device).unwrap();
        let failures = fail_each(
            &mut state,
            |maplet| operation(maplet, &there, &keys, &values),
            |maplet, result| {
                let now = maplet.to_host().unwrap();
                assert!(now == *if result.is_ok() { &done } else { before }, "{i}");
                *maplet = before.to_device(device).unwrap();
            },
        );
        assert!(failures > 2);
    }
}

/// Checks that a small batch with new and with stored keys takes memory for a second array of slots, and no third one.
#[cfg(feature = "gpu")]
#[test]
fn mixed_batches_take_two_arrays_of_slots() {
    let mut host = empty((14, 20, 24, Duplicates::Dropped));
    let stored: Vec<u64> = (0..10_000).collect();
    host.insert_bulk(&stored, &stored).unwrap();
    let options = warpset_gpu::EmulatorOptions::default().memory_bytes(host.memory_bytes() as usize / 2 * 5);
    let mut maplet = host.to_device(&warpset_gpu::Device::emulator_with(options)).unwrap();
    let (keys, values) = ([5u64, 20_000], [7u64, 8]);
    assert_eq!(maplet.upsert_bulk::<Sum<u64>, _, _>(&keys, &values).unwrap(), 1);
    host.upsert_bulk::<Sum<u64>, _, _>(&keys, &values).unwrap();
    assert!(maplet.to_host().unwrap() == host);
}

/// Checks that a stored key returns its value, and another key nothing, except for the stated rate of collisions.
#[test]
fn collisions_have_the_stated_rate() {
    let n = 200_000u64;
    for fpr in [0.02, 0.001] {
        let keys: Vec<u64> = (0..n).collect();
        let values: Vec<u64> = keys.iter().map(|&key| mix(key, 2) & 0xffff).collect();
        let maplet = RankSelectQuotientFilter::builder(n).fpr(fpr).values(16).build_from(&keys, &values).unwrap();
        let rate = maplet.expected_fpr(n);
        assert!(rate <= fpr);
        let is_near = |found: usize| {
            let expected = rate * n as f64;
            assert!((found as f64 - expected).abs() < 6.0 * expected.sqrt() + 1.0, "{found} of {expected}");
        };
        let others: Vec<u64> = (n..2 * n).collect();
        is_near(maplet.count_contained_bulk(&others).unwrap());
        is_near(keys.iter().filter(|&&key| maplet.values(key).len() > 1).count());
        assert!(keys.iter().zip(&values).all(|(&key, value)| maplet.values(key).contains(value)));
        // The least of several values is returned: that of the other key in half of the collisions.
        let wrong = keys.iter().zip(&values).filter(|&(&key, &value)| maplet.get(key) != Some(value)).count();
        assert!((wrong as f64) < 0.6 * rate * n as f64 + 10.0, "{wrong}");
    }
}

#[test]
fn exact_maplets_are_maps() {
    let keys: Vec<u64> = (0..5000u64).map(|i| (i * i * 7) & lowest(40)).collect();
    let values: Vec<u32> = (0..5000).collect();
    for value_bits in [13, 24] {
        let maplet =
            RankSelectQuotientFilter::builder(5000).exact(40).values(value_bits).build_from(&keys, &values).unwrap();
        let all = maplet.get_bulk(&keys);
        assert!(all.iter().zip(&values).all(|(found, &value)| *found == Some(value.into())));
        let mut entries: Vec<(u64, u64)> = maplet.entries().unwrap().collect();
        entries.sort();
        assert!(entries.into_iter().eq(keys.iter().copied().zip(values.iter().map(|&value| value.into()))));
        assert_eq!(maplet.get_bulk(&[1u64 << 40, u64::MAX, 3]), [None, None, None]);
        assert!(maplet.get("north").is_none() && maplet.expected_fpr(5000) == 0.0);
        assert_eq!(maplet.get(u128::from(keys[7])), Some(7));
    }
    let mut maplet = RankSelectQuotientFilter::builder(10).exact(40).values(4).build().unwrap();
    assert!(matches!(maplet.insert(1u64 << 40, 1), Err(Error::KeyTooWide { bits: 40 })));
    assert_eq!(maplet.remove(1u64 << 40), 0);
}

#[test]
fn single_operations_agree_with_batches() {
    for duplicates in [Duplicates::Dropped, Duplicates::Kept, Duplicates::Counted] {
        let (mut one, mut bulk) = (empty((6, 9, 7, duplicates)), empty((6, 9, 7, duplicates)));
        let keys: Vec<u64> = (0..50).map(|i| i % 31).collect();
        let values: Vec<u8> = (0..50).map(|i| i / 31).collect();
        for (&key, &value) in keys.iter().zip(&values) {
            one.insert(key, value.into()).unwrap();
        }
        bulk.insert_bulk(&keys, &values).unwrap();
        assert!(one == bulk);
        assert!(one.remove_value(3u64, 0) && !one.remove_value(3u64, 100) && !one.remove_value(3u64, 1 << 40));
        assert_eq!(one.values(3u64), [1]);
        assert_eq!((one.remove(3u64), one.remove(3u64)), (1, 0));
        if duplicates == Duplicates::Counted {
            assert!(matches!(one.upsert::<Sum<u64>>(1u64, 1), Err(Error::CountedValues)));
            assert!(matches!(one.merge_by::<Max<u64>>(&bulk), Err(Error::CountedValues)));
        } else {
            assert!(one.upsert::<Sum<u64>>(3u64, 127).unwrap() && !one.upsert::<Sum<u64>>(3u64, 3).unwrap());
            assert_eq!(one.value_counts(3u64), [(2, 1)]); // the sum wraps at seven bits
        }
        one.clear();
        assert!(one == empty((6, 9, 7, duplicates)));
    }
}

#[test]
fn refused_settings_and_values() {
    let builder = |v| RankSelectBuilder::with_bits(20, 10).values(v);
    for value_bits in [0, 35, u32::MAX] {
        let error = builder(value_bits).build().unwrap_err();
        assert!(matches!(error, Error::InvalidValueBits { most: 34, .. }), "{error}");
    }
    assert!(builder(34).layout().is_ok());
    let error = RankSelectBuilder::with_bits(3, 61).values(1).layout().unwrap_err();
    assert!(error.to_string().contains("a higher rate"), "{error}");
    let mut maplet = builder(4).build().unwrap();
    let error = maplet.insert_bulk(&[1u64, 2], &[15u8, 16]).unwrap_err();
    assert!(
        matches!(error, Error::ValueTooWide { value: 16, bits: 4 }) && error.to_string().contains("of 5 bits or more")
    );
    assert!(matches!(maplet.insert_bulk(&[1u64, 2], &[1u8]), Err(Error::LengthMismatch(_))) && maplet.is_empty());
    assert!(matches!(maplet.get_bulk_into(&[1u64], &mut []), Err(Error::LengthMismatch(_))));
    let other = builder(5).build().unwrap();
    assert!(matches!(maplet.merge(&other), Err(Error::Incompatible { field: "value bits", left: 4, right: 5 })));
    // Memory includes the values.
    let limited = RankSelectQuotientFilter::builder(1_000_000).memory_limit(4 << 20).values(8).build().unwrap();
    assert!(limited.memory_bytes() <= 4 << 20 && limited.expected_fpr(1_000_000) < 0.03);
    let refused = RankSelectQuotientFilter::builder(1_000_000).fpr(0.01).memory_limit(2 << 20).values(8).build();
    assert!(matches!(refused, Err(Error::OverMemoryLimit { .. })));
}

#[test]
fn a_panic_of_an_operator_changes_nothing() {
    let mut maplet = empty((8, 9, 7, Duplicates::Dropped));
    maplet.insert_bulk(&[1u64, 2], &[3u8, 4]).unwrap();
    let before = maplet.clone();
    let broken = std::panic::AssertUnwindSafe(|| maplet.upsert_bulk_with(&[5u64, 2], &[1u8, 1], |_, _| panic!("no")));
    assert!(std::panic::catch_unwind(broken).is_err());
    assert!(maplet == before);
}

#[test]
fn other_and_damaged_files_are_refused() {
    let mut maplet = empty((7, 9, 11, Duplicates::Kept));
    maplet.insert_bulk(&(0..100u64).collect::<Vec<_>>(), &(0..100u64).collect::<Vec<_>>()).unwrap();
    let bytes = maplet.to_bytes();
    let words: Vec<u64> = bytemuck::pod_collect_to_vec(&bytes);
    let other = RankSelectQuotientFilter::from_bytes(&bytes).unwrap_err();
    assert!(other.to_string().contains("`Maplet`"), "{other}");
    // Any bits of values but the right ones.
    for value_bits in (0..=255u8).filter(|&bits| bits != 11) {
        let mut damaged = bytes.clone();
        damaged[24 + 2 * 8 + 3] = value_bits;
        let error = Maplet::from_bytes(&damaged).unwrap_err();
        assert!(matches!(error, Error::File(_)), "{error}");
    }
    let mut damaged = words.clone();
    damaged[24 / 8 + 2] |= 1 << 40;
    let error = MapletView::from_bytes_unverified(bytemuck::cast_slice(&damaged)).unwrap_err();
    assert!(matches!(error, Error::File(FileError::InvalidHeader { field: "value bits", .. })), "{error}");
}

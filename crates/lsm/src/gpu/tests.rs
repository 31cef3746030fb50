//! Trees on the emulator, and on a CUDA device if there is one, against those on the host: same answers, same bytes.
//!
//! A pair of types takes seconds to compile, so only a few are tested here: each width of keys, and values of 0, 4 and
//! 8 bytes and in rows. `tests/everywhere` has the other types.

use warpset_base::testing::tier;
use warpset_core::hash::mix;
use warpset_gpu::{Device, testing};

use super::{DeviceKey, DeviceValue, LookupMethod};
use crate::{CleanupPolicy, Error, Lsm, OrderedKey};
use rows::{Row, row};

mod array;
mod faults;
mod flipped;
mod levels;
mod rows;
mod search;
pub(super) mod streams;

/// Returns numbers that make few different keys, and the ends of their range; some long keys differ only in one half.
fn key<K: OrderedKey>(i: u64, seed: u64) -> K {
    let few = u128::from(mix(i, seed) % 700);
    match few {
        0 => K::MIN,
        1 => K::MAX,
        2..300 => K::from_u128(few),
        300..400 => K::from_u128((few % 50) << 64 | (few % 3)),
        _ => K::from_u128(u128::from(mix(i, !seed)) << (few % 65)),
    }
}

fn streams_agree<K: DeviceKey<Stored = K>, V: DeviceValue>(
    device: &Device,
    (batch, steps): (u64, u64),
    policy: CleanupPolicy,
    value: fn(u64) -> V,
) {
    let builder = Lsm::<K, V>::builder().batch_size(batch).cleanup(policy);
    let mut host = builder.build().unwrap();
    let mut there = builder.on(device).build().unwrap();
    for step in 0..steps {
        let len = [batch, 1, batch / 3, 2 * batch + 1, 0, 40][step as usize % 6];
        let keys: Vec<K> = (0..len).map(|i| key(i, step)).collect();
        let values: Vec<V> = (0..len).map(|i| value(mix(i, step + 100))).collect();
        match step % 4 {
            0 | 1 => {
                host.insert_bulk(&keys, &values).unwrap();
                there.insert_bulk(&keys, &values).unwrap();
            }
            2 => {
                host.remove_bulk(&keys).unwrap();
                there.remove_bulk(&keys).unwrap();
            }
            _ => {
                let removed: Vec<bool> = (0..len).map(|i| mix(i, step + 7).is_multiple_of(3)).collect();
                host.update_bulk(&keys, &values, &removed).unwrap();
                there.update_bulk(&keys, &values, &removed).unwrap();
            }
        }
        if step == 6 {
            host.cleanup().unwrap();
            there.cleanup().unwrap();
        }
        assert_eq!(there.level_lens(), host.level_lens(), "step {step}");
        if step % 3 == 0 || step + 1 == steps {
            let copy = there.to_host().unwrap();
            copy.check_invariants().unwrap();
            assert_eq!(copy.to_bytes(), host.to_bytes(), "step {step}");
        }
    }
    let asked: Vec<K> = (0..120).map(|i| key(i % 64, i % steps)).collect();
    assert_eq!(there.get_bulk(&asked).unwrap(), host.get_bulk(&asked));
    assert_eq!(there.contains_bulk(&asked).unwrap(), host.contains_bulk(&asked));
    let ranges: Vec<_> = asked.chunks(2).map(|two| two[0]..=two[1]).chain([K::MIN..=K::MAX, K::MAX..=K::MIN]).collect();
    assert_eq!(there.count_range_bulk(&ranges).unwrap(), host.count_range_bulk(&ranges));
    assert_eq!(there.range_bulk(&ranges).unwrap(), host.range_bulk(&ranges).unwrap());
    assert_eq!(there.len().unwrap(), host.len());

    let mut again = host.to_device(device).unwrap();
    assert!(again.to_host().unwrap() == host);
    let snapshot = again.snapshot();
    again.clear().unwrap();
    assert!(again.is_empty().unwrap() && again.get_bulk(&asked).unwrap().iter().all(Option::is_none));
    assert_eq!(snapshot.get_bulk(&asked).unwrap(), host.get_bulk(&asked));
}

#[test]
fn streams_of_batches_as_on_the_host() {
    for device in testing::devices(11) {
        streams_agree::<u32, u32>(&device, (64, 12), CleanupPolicy::Manual, |n| n as u32);
        streams_agree::<u64, u64>(&device, (64, 8), CleanupPolicy::default(), |n| n);
        streams_agree::<u128, u128>(&device, (64, 12), CleanupPolicy::default(), |n| u128::from(n) << 50);
        streams_agree::<u32, ()>(&device, (64, 8), CleanupPolicy::default(), |_| ());
        streams_agree::<u32, Row>(&device, (128, 8), CleanupPolicy::EveryBatches(3), row);
    }
}

/// Tests batches that several threads upload: values arrive while keys are sorted; keys without values are uploaded and
/// sorted in parts.
#[test]
fn long_batches_as_on_the_host() {
    for device in testing::devices(15) {
        streams_agree::<u32, u32>(&device, (1 << 10, 4), CleanupPolicy::Manual, |n| n as u32);
        streams_agree::<u32, ()>(&device, (1 << 11, 4), CleanupPolicy::Manual, |_| ());
        if tier(false, true) {
            streams_agree::<u64, u64>(&device, (1 << 9, 4), CleanupPolicy::Manual, |n| n);
            streams_agree::<u32, Row>(&device, (1 << 9, 4), CleanupPolicy::Manual, row);
        }
    }
}

/// Tests short batches on top of tombstones, and beside a snapshot that shares the replaced levels.
#[test]
fn short_batches_leave_snapshots_as_they_were() {
    fn check<V: DeviceValue>(device: &Device, value: fn(u64) -> V) {
        let builder = Lsm::<u32, V>::builder().batch_size(256).cleanup(CleanupPolicy::Manual);
        let (mut host, mut there) = (builder.build().unwrap(), builder.on(device).build().unwrap());
        let keys: Vec<u32> = (0..100).map(|i| key(i, 5)).collect();
        let values: Vec<V> = (0..100).map(value).collect();
        host.insert_bulk(&keys, &values).unwrap();
        there.insert_bulk(&keys, &values).unwrap();
        host.remove_bulk(&keys[..30]).unwrap();
        there.remove_bulk(&keys[..30]).unwrap();
        let (before, wanted) = (there.snapshot(), host.get_bulk(&keys));
        for (keys, values) in keys[..90].rchunks(7).zip(values.chunks(7)) {
            let len = keys.len().min(values.len());
            host.insert_bulk(&keys[..len], &values[..len]).unwrap();
            there.insert_bulk(&keys[..len], &values[..len]).unwrap();
            assert_eq!(there.to_host().unwrap().to_bytes(), host.to_bytes());
        }
        assert_eq!(before.get_bulk(&keys).unwrap(), wanted);
        drop(before);
        assert_eq!(there.get_bulk(&keys).unwrap(), host.get_bulk(&keys));
    }
    for device in testing::devices(16) {
        check::<u32>(&device, |n| n as u32);
        check::<()>(&device, |_| ());
        check::<Row>(&device, row);
    }
}

#[test]
fn full_batches_fill_all_levels() {
    for device in testing::devices(12) {
        let builder = Lsm::<u32, u32>::builder().batch_size(64).cleanup(CleanupPolicy::Manual);
        let (mut host, mut there) = (builder.build().unwrap(), builder.on(&device).build().unwrap());
        for batch in 0..15u64 {
            let keys: Vec<u32> = (0..64).map(|i| (mix(i, batch) % 3000) as u32).collect();
            host.insert_bulk(&keys, &keys).unwrap();
            there.insert_bulk(&keys, &keys).unwrap();
        }
        assert_eq!(there.level_lens().len(), 4);
        assert!(there.to_host().unwrap() == host);
        // Long ranges, of which the warp takes 32 elements at a time once one level is left, and short ranges.
        let ranges: Vec<_> = (0..40u32).map(|i| 70 * i..=70 * i + i * i).collect();
        assert_eq!(there.count_range_bulk(&ranges).unwrap(), host.count_range_bulk(&ranges));
        there.cleanup().unwrap();
        assert_eq!(there.range_bulk(&ranges).unwrap(), host.range_bulk(&ranges).unwrap());
        host.cleanup().unwrap();
        assert!(there.to_host().unwrap() == host);
        let built = builder.on(&device).build_from(&[3, 1, 3], &[1, 2, 3]).unwrap();
        assert!(built.to_host().unwrap() == builder.build_from(&[3, 1, 3], &[1, 2, 3]).unwrap());
    }
}

/// Tests with and without filters and indexes, at lengths around those of a window, of a warp's chunk and of several
/// chunks.
#[test]
fn methods_agree() {
    fn check<K: DeviceKey<Stored = K> + DeviceValue<Stored = K>>(device: &Device, spread: fn(u64) -> K) {
        let builder = Lsm::<K, K>::builder().batch_size(256).cleanup(CleanupPolicy::Manual);
        let (mut host, mut there) = (builder.build().unwrap(), builder.on(device).build().unwrap());
        for batch in 0..7u64 {
            let keys: Vec<K> = (0..256).map(|i| spread(mix(i, batch) % 3000)).collect();
            let values: Vec<K> = (0..256).map(|i| K::from_u64(mix(i, batch))).collect();
            let removed: Vec<bool> = (0..256).map(|i| i % 5 == 0).collect();
            host.update_bulk(&keys, &values, &removed).unwrap();
            there.update_bulk(&keys, &values, &removed).unwrap();
        }
        let snapshot = there.snapshot();
        let before = there.memory_bytes();
        there.prepare().unwrap();
        assert!(there.memory_bytes() > before);
        let asked: Vec<K> = (0..400).map(|i| spread(i * 8)).collect();
        let on_device = device.from_slice(&asked).unwrap();
        let methods = [LookupMethod::Auto, LookupMethod::Halving, LookupMethod::Sorted, LookupMethod::Flipped];
        for method in methods.into_iter().chain([LookupMethod::Filtered]) {
            for tree in [&there.snapshot(), &snapshot] {
                let mut values = device.alloc_zeroed::<K>(400).unwrap();
                let mut found = device.alloc_zeroed::<u64>(7).unwrap();
                let keys = on_device.as_slice();
                tree.get_device_with(keys, values.as_mut_slice(), found.as_mut_slice(), method).unwrap();
                let (values, found) = (values.to_vec().unwrap(), found.to_vec().unwrap());
                for (i, expected) in host.get_bulk(&asked).into_iter().enumerate() {
                    let is_found = found[i / 64] >> (i % 64) & 1 != 0;
                    assert_eq!(
                        (is_found, values[i]),
                        (expected.is_some(), expected.unwrap_or(K::MIN)),
                        "{method:?} {i}"
                    );
                }
            }
        }
        let widths = [0, 1, 30, 60, 100, 500, 900, 2999, 3000];
        let ranges: Vec<_> = (0..90u64).map(|i| spread(i * 33)..=spread(i * 33 + widths[i as usize % 9])).collect();
        for tree in [&there.snapshot(), &snapshot] {
            assert_eq!(tree.count_range_bulk(&ranges).unwrap(), host.count_range_bulk(&ranges));
            assert_eq!(tree.range_bulk(&ranges).unwrap(), host.range_bulk(&ranges).unwrap());
        }
        there.insert_bulk(&asked, &[K::MAX; 400]).unwrap();
        assert!(there.get_bulk(&asked).unwrap().iter().all(|value| *value == Some(K::MAX)));
        assert_eq!(snapshot.get_bulk(&asked).unwrap(), host.get_bulk(&asked));
    }
    for device in testing::devices(14) {
        check::<u32>(&device, |i| i as u32);
        check::<u64>(&device, |i| i << 51 | i);
        check::<u128>(&device, |i| u128::from(i) << 115 | u128::from(i));
        if tier(false, true) {
            check::<u32>(&device, |i| if i % 2 == 0 { i as u32 } else { u32::MAX - 7 * i as u32 });
            // Keys that differ only in the lower halves, then in both.
            check::<u128>(&device, |i| 5 << 100 | u128::from(i) << 9);
            check::<u128>(&device, |i| u128::from(i) << 61);
        }
    }
}

/// Tests trees with known visibility: hidden elements and tombstones in all levels, ranges around the lengths of a
/// window, of a piece of the order, and of several pieces; then one level in which everything is visible. Also tests
/// trees that are prepared only for lookups, until enough ranges have been queried.
#[test]
fn ranges_of_prepared_trees() {
    fn check<K: DeviceKey<Stored = K>, V: DeviceValue>(
        device: &Device,
        batches: u64,
        spread: fn(u64) -> K,
        value: fn(u64) -> V,
    ) {
        let builder = Lsm::<K, V>::builder().batch_size(512).cleanup(CleanupPolicy::Manual);
        let (mut host, mut there) = (builder.build().unwrap(), builder.on(device).build().unwrap());
        let keys_of = 400 * batches;
        for batch in 0..batches {
            // The last batches are short, so that levels below those of a batch are occupied.
            let len = if batch + 2 < batches { 512 } else { 40 };
            let keys: Vec<K> = (0..len).map(|i| spread(mix(i, batch) % keys_of)).collect();
            let values: Vec<V> = (0..len).map(|i| value(mix(i, batch))).collect();
            let removed: Vec<bool> = (0..len).map(|i| i % 5 == 0 && batch % 3 != 0).collect();
            host.update_bulk(&keys, &values, &removed).unwrap();
            there.update_bulk(&keys, &values, &removed).unwrap();
        }
        let widths = [0, 1, 20, 40, 300, 600, 1100, 2500, keys_of];
        let ranges: Vec<_> = (0..18u64)
            .map(|i| (i * keys_of / 18, widths[i as usize % 9]))
            .map(|(low, width)| spread(low)..=spread((low + width).min(keys_of)))
            .chain([K::MIN..=K::MAX, K::MAX..=K::MIN, spread(3)..=K::MAX])
            .collect();
        for cleaned in [false, true] {
            let (unprepared, asked) = (there.snapshot(), there.snapshot());
            asked.prepare_lookups().unwrap();
            there.prepare().unwrap();
            assert_eq!(there.len().unwrap(), host.len());
            let few = &ranges[2..3];
            assert_eq!(asked.range_bulk(few).unwrap(), host.range_bulk(few).unwrap());
            for (tree, name) in [(&unprepared, "unprepared"), (&asked, "asked"), (&there.snapshot(), "prepared")] {
                assert_eq!(tree.count_range_bulk(&ranges).unwrap(), host.count_range_bulk(&ranges), "{name} {cleaned}");
                let (found, expected) = (tree.range_bulk(&ranges).unwrap(), host.range_bulk(&ranges).unwrap());
                assert_eq!(found.offsets, expected.offsets, "{name} {cleaned}");
                let differs = found.keys.iter().zip(&expected.keys).position(|(a, b)| a != b);
                assert_eq!(differs, None, "{name} {cleaned}: {:?}", expected.offsets);
                assert!(found == expected, "{name} {cleaned}: values");
            }
            host.cleanup().unwrap();
            there.cleanup().unwrap();
        }
    }
    for device in testing::devices(15) {
        check::<u32, u32>(&device, 33, |i| i as u32, |n| n as u32);
        check::<u32, ()>(&device, 12, |i| u32::MAX - (i as u32) * 5, |_| ());
        check::<u64, u64>(&device, 18, |i| i << 40 | i, |n| n);
        check::<u128, u128>(&device, 18, |i| u128::from(i) << 60, u128::from);
        check::<u32, Row>(&device, 12, |i| i as u32, row);
    }
}

#[test]
fn device_memory_and_streams_of_the_caller() {
    for device in testing::devices(13) {
        let builder = Lsm::<u32, u32>::builder().batch_size(64).cleanup(CleanupPolicy::Manual);
        let (mut host, mut there) = (builder.build().unwrap(), builder.on(&device).build().unwrap());
        let batches: Vec<Vec<u32>> = (0..6).map(|b| (0..70).map(|i| (mix(i, b) % 200) as u32).collect()).collect();
        let on_device: Vec<_> = batches.iter().map(|keys| device.from_slice(keys).unwrap()).collect();
        let stream = device.new_stream().unwrap();
        let mut found = device.alloc_zeroed::<u64>(2).unwrap();
        let mut values = device.alloc_zeroed::<u32>(70).unwrap();
        for (i, keys) in on_device.iter().enumerate() {
            // SAFETY: all memory lives until the stream has been waited for, below.
            unsafe {
                if i == 3 {
                    there.remove_async(&stream, keys.as_slice()).unwrap();
                    host.remove_bulk(&batches[i]).unwrap();
                } else {
                    there.insert_async(&stream, keys.as_slice(), keys.as_slice()).unwrap();
                    host.insert_bulk(&batches[i], &batches[i]).unwrap();
                }
            }
        }
        let asked = on_device[3].as_slice();
        // SAFETY: as above.
        unsafe { there.get_async(&stream, asked, values.as_mut_slice(), found.as_mut_slice()).unwrap() };
        stream.synchronize().unwrap();
        assert!(there.to_host().unwrap() == host);
        let expected = host.get_bulk(&batches[3]);
        assert_eq!(values.to_vec().unwrap(), expected.iter().map(|v| v.unwrap_or(0)).collect::<Vec<_>>());

        let removed: Vec<bool> = (0..70).map(|i| i % 2 == 0).collect();
        let flags = device.from_slice(&removed.iter().map(|&flag| flag.into()).collect::<Vec<u8>>()).unwrap();
        let keys = on_device[0].as_slice();
        there.update_device(keys, keys, flags.as_slice()).unwrap();
        host.update_bulk(&batches[0], &batches[0], &removed).unwrap();
        assert!(there.to_host().unwrap() == host);
        let found = there.range_device(keys, on_device[1].as_slice()).unwrap();
        let ranges: Vec<_> = batches[0].iter().zip(&batches[1]).map(|(&low, &high)| low..=high).collect();
        assert_eq!(found.keys.to_vec().unwrap(), host.range_bulk(&ranges).unwrap().keys);

        assert!(matches!(there.insert_device(keys, values.slice(1..)), Err(Error::LengthMismatch(_))));
        let elsewhere = Device::emulator(Default::default());
        let foreign = elsewhere.from_slice(&[1u32]).unwrap();
        assert!(matches!(there.remove_device(foreign.as_slice()), Err(Error::Gpu(_))));
        assert!(there.to_host().unwrap() == host);
    }
}

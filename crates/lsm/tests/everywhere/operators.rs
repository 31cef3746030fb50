//! Updates that combine with existing values: the same levels on every executor.

use std::collections::BTreeMap;

use warpset_gpu::testing;
use warpset_lsm::gpu::{ByKeyKernels, CombinedValue, DeviceKey};
use warpset_lsm::{BitOr, CleanupPolicy, Error, Lsm, Max, Min, Operator, Sum};

/// Tests streams of batches with copies of keys, combined by each operator with kernels, on the host and on devices:
/// the same levels. Lengths cross the parts of the host and the tiles of devices.
fn operators<K: DeviceKey, V: CombinedValue>(key: fn(u64) -> K, value: fn(u64) -> V)
where
    Sum<V>: Operator<Value = V> + ByKeyKernels<K::Stored>,
    Min<V>: Operator<Value = V> + ByKeyKernels<K::Stored>,
    Max<V>: Operator<Value = V> + ByKeyKernels<K::Stored>,
    BitOr<V>: Operator<Value = V> + ByKeyKernels<K::Stored>,
{
    for device in testing::devices(35) {
        let builder = Lsm::<K, V>::builder().batch_size(1024).cleanup(CleanupPolicy::EveryBatches(5));
        let (mut host, mut there) = (builder.build().unwrap(), builder.on(&device).build().unwrap());
        for (round, len) in [3u64, 700, 2049, 0, 1, 5000, 33, 4096].into_iter().enumerate() {
            // Few keys, some of them very often, as in streams of events.
            let mixed = |i: u64| (i + 977 * round as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            let keys: Vec<K> = (0..len).map(|i| key(mixed(i) % (1 + mixed(i + 1) % (len + 1)))).collect();
            let values: Vec<V> = (0..len).map(|i| value(mixed(i + 2))).collect();
            let stored = device.from_slice(&K::stored(&keys)).unwrap();
            let on_device = device.from_slice(&values).unwrap();
            match round % 5 {
                0 => {
                    host.upsert_bulk::<Sum<V>>(&keys, &values).unwrap();
                    there.upsert_bulk::<Sum<V>>(&keys, &values).unwrap();
                }
                1 => {
                    host.upsert_bulk::<Min<V>>(&keys, &values).unwrap();
                    there.upsert_device::<Min<V>>(stored.as_slice(), on_device.as_slice()).unwrap();
                }
                2 => {
                    host.upsert_bulk::<Max<V>>(&keys, &values).unwrap();
                    there.upsert_bulk::<Max<V>>(&keys, &values).unwrap();
                }
                3 => {
                    host.insert_new_bulk(&keys, &values).unwrap();
                    there.insert_new_bulk(&keys, &values).unwrap();
                    host.remove_bulk(&keys[..keys.len() / 3]).unwrap();
                    there.remove_bulk(&keys[..keys.len() / 3]).unwrap();
                }
                _ => {
                    host.upsert_bulk::<BitOr<V>>(&keys, &values).unwrap();
                    there.upsert_device::<BitOr<V>>(stored.as_slice(), on_device.as_slice()).unwrap();
                    host.insert_new_bulk(&keys, &values).unwrap();
                    there.insert_new_device(stored.as_slice(), on_device.as_slice()).unwrap();
                }
            }
            assert!(there.to_host().unwrap() == host, "round {round}");
        }
    }
}

#[test]
fn operators_give_the_same_levels_everywhere() {
    operators::<u64, u32>(|i| i << 31, |i| i as u32);
    operators::<i64, u64>(|i| 500 - i as i64, |i| i << 40 | i);
    operators::<i32, u64>(|i| i as i32 - 500, |i| i << 40 | i);
    operators::<[u8; 16], u64>(|i| (u128::from(i) << 62 | 5).to_be_bytes(), |i| i << 40 | i);
}

#[test]
fn updates_of_unequal_lengths_change_nothing() {
    for device in testing::devices(36) {
        let mut there = Lsm::<u64, u32>::builder().on(&device).build_from(&[1, 2, 3], &[1, 1, 1]).unwrap();
        let before = there.to_host().unwrap();
        assert!(matches!(there.upsert_bulk::<Sum<u32>>(&[1, 2], &[1]), Err(Error::LengthMismatch(_))));
        assert!(matches!(there.insert_new_bulk(&[1, 9], &[1]), Err(Error::LengthMismatch(_))));
        let mut host = before.clone();
        assert!(matches!(host.upsert_bulk::<Sum<u32>>(&[1, 2], &[1]), Err(Error::LengthMismatch(_))));
        assert!(matches!(host.insert_new_bulk(&[1, 9], &[1]), Err(Error::LengthMismatch(_))));
        assert!(there.to_host().unwrap() == before && host == before);
    }
}

/// Tests counts of keys with Zipf's distribution against the standard library's map.
#[test]
fn occurrences_are_counted() {
    let keys: Vec<u64> = (1..60_000u64).map(|i| 1000 / (1 + i.wrapping_mul(0x9e37_79b9) % 1000)).collect();
    let mut model = BTreeMap::new();
    keys.iter().for_each(|&key| *model.entry(key).or_insert(0u32) += 1);
    let mut counts = Lsm::<u64, u32>::builder().batch_size(1 << 12).build().unwrap();
    keys.chunks(7000).for_each(|keys| counts.increment_bulk(keys).unwrap());
    assert!(counts.iter().eq(model));
}

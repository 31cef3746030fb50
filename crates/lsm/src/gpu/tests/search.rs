//! Searches by nodes: lengths around whole nodes and buckets; keys spread evenly, in clusters and at both ends; one or
//! many copies of each; after each kind of preparation.

use warpset_core::hash::mix;
use warpset_gpu::{Device, testing};

use super::super::{DeviceKey, DeviceValue, Dictionary, LookupMethod};
use crate::{CleanupPolicy, Lsm, OrderedKey, SortedArray};

/// Returns the `i`-th of `n` keys, by the kind of the distribution.
fn spread<K: OrderedKey>(kind: u64, i: u64, n: u64) -> K {
    let top = K::MAX.to_u64();
    K::from_u64(match kind {
        0 => i,
        1 => top - i,
        2 => mix(i, 3) % top.saturating_add(1).max(1),
        // Half in one bucket, the others far apart.
        3 if i < n / 2 => top / 3 + i,
        3 => (i - n / 2) * (top / n) * 2,
        // Two clusters at the ends.
        _ if i.is_multiple_of(2) => i / 2,
        _ => top - i / 2,
    })
}

fn agrees<K: DeviceKey<Stored = K> + DeviceValue<Stored = K>, P, Q>(
    there: &Dictionary<K, K, P>,
    host: &crate::cpu::Dictionary<K, K, Q>,
    keys: &[K],
    what: &str,
) {
    let around = keys.iter().flat_map(|key| [key.below(), Some(*key), key.above()]).flatten();
    let asked: Vec<K> = around.chain([K::MIN, K::MAX]).collect();
    let ranges: Vec<_> = asked.iter().zip(asked.iter().skip(7)).map(|(&low, &high)| low..=high).collect();
    for step in ["unprepared", "prepared"] {
        let tree = there.snapshot();
        if step == "prepared" {
            tree.prepare().unwrap();
        }
        assert_eq!(tree.get_bulk(&asked).unwrap(), host.get_bulk(&asked), "{what}, {step}");
        assert_eq!(tree.count_range_bulk(&ranges).unwrap(), host.count_range_bulk(&ranges), "{what}, {step}");
        let on_device = there.device().from_slice(&asked).unwrap();
        let mut values = there.device().alloc_zeroed::<K>(asked.len()).unwrap();
        let mut found = there.device().alloc_zeroed::<u64>(asked.len().div_ceil(64)).unwrap();
        for method in [LookupMethod::Filtered, LookupMethod::Sorted] {
            tree.get_device_with(on_device.as_slice(), values.as_mut_slice(), found.as_mut_slice(), method).unwrap();
            let (values, found) = (values.to_vec().unwrap(), found.to_vec().unwrap());
            for (i, expected) in host.get_bulk(&asked).into_iter().enumerate() {
                let is_found = found[i / 64] >> (i % 64) & 1 != 0;
                assert_eq!(is_found.then_some(values[i]), expected, "{what}, {step}, {method:?}: {:?}", asked[i]);
            }
        }
        let some = &ranges[..ranges.len().min(60)];
        assert_eq!(tree.range_bulk(some).unwrap(), host.range_bulk(some).unwrap(), "{what}, {step}");
    }
}

fn check<K: DeviceKey<Stored = K> + DeviceValue<Stored = K>>(device: &Device, lens: &[u64]) {
    for &n in lens {
        for kind in 0..5 {
            let keys: Vec<K> = (0..n).map(|i| spread(kind, i, n)).collect();
            let values: Vec<K> = (0..n).map(|i| K::from_u64(mix(i, kind))).collect();
            let builder = SortedArray::<K, K>::builder();
            let host = builder.build_from(&keys, &values).unwrap();
            let there = builder.on(device).build_from(&keys, &values).unwrap();
            let some: Vec<K> =
                keys.iter().step_by(keys.len().div_ceil(40).max(1)).chain(keys.last()).copied().collect();
            agrees(&there, &host, &some, &format!("array of {n}, kind {kind}"));
        }
    }
    // Copies of keys in one level: the newest counts, wherever nodes begin.
    let builder = Lsm::<K, K>::builder().batch_size(64).cleanup(CleanupPolicy::Manual);
    for kinds in [1, 3, 50] {
        let (mut host, mut there) = (builder.build().unwrap(), builder.on(device).build().unwrap());
        for batch in 0..16u64 {
            let keys: Vec<K> = (0..64).map(|i| spread(2, i % kinds + (batch % 3) * 7, 1)).collect();
            let values: Vec<K> = (0..64).map(|i| K::from_u64(mix(i, batch))).collect();
            host.insert_bulk(&keys, &values).unwrap();
            there.insert_bulk(&keys, &values).unwrap();
        }
        let keys: Vec<K> = (0..70).map(|i| spread(2, i, 1)).collect();
        agrees(&there, &host, &keys, &format!("{kinds} keys"));
    }
}

#[test]
fn nodes_of_every_length() {
    for device in testing::devices(21) {
        check::<u32>(&device, &[0, 1, 7, 8, 255, 256, 257, 263, 264, 265, 300, 511, 4099]);
        check::<u64>(&device, &[1, 9, 256, 259, 264, 1000]);
    }
}

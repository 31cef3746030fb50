//! Flipped lookups: tiles and parts of one, queries that share a slot or a key, levels that are searched because they
//! have too many elements for the queries of a tile, and unsorted queries.

use warpset_base::testing::tier;
use warpset_core::hash::mix;
use warpset_gpu::{Device, testing};

use super::super::{DeviceKey, DeviceValue, LookupMethod};
use crate::{CleanupPolicy, Lsm};

/// Numbers of queries: part of a word of answers, a word, and more than a tile.
const LENGTHS: [u64; 4] = [1, 63, 400, 2500];

/// Distribution of queries: a name, and a function from `i` and `n` to query `i` of `n`.
type Spread = (&'static str, fn(u64, u64) -> u64);

fn check<K: DeviceKey<Stored = K>, V: DeviceValue>(device: &Device, spread: fn(u64) -> K, value: fn(u64) -> V) {
    let builder = Lsm::<K, V>::builder().batch_size(512).cleanup(CleanupPolicy::Manual);
    let (mut host, mut there) = (builder.build().unwrap(), builder.on(device).build().unwrap());
    for batch in 0..7u64 {
        let keys: Vec<K> = (0..512).map(|i| spread(mix(i, batch) % 6000)).collect();
        let values: Vec<V> = (0..512).map(|i| value(mix(i, batch))).collect();
        let removed: Vec<bool> = (0..512).map(|i| i % 5 == 0 && batch % 2 == 1).collect();
        host.update_bulk(&keys, &values, &removed).unwrap();
        there.update_bulk(&keys, &values, &removed).unwrap();
    }
    let spreads: [Spread; 4] = [
        ("even", |i, n| i * 6000 / n),
        ("few keys", |i, n| i * 5 / n * 1200),
        ("two ends", |i, n| if 2 * i < n { i % 64 } else { 5990 }),
        ("in no order", |i, _| mix(i, 3) % 6000),
    ];
    for cleaned in [false, true] {
        there.prepare().unwrap();
        for (n, (name, query)) in LENGTHS.iter().flat_map(|&n| spreads.map(|queries| (n, queries))) {
            let mut asked: Vec<K> = (0..n).map(|i| spread(query(i, n))).collect();
            if name != "in no order" {
                asked.sort_unstable();
            }
            let on_device = device.from_slice(&asked).unwrap();
            let expected = host.get_bulk(&asked);
            let sorts = name == "in no order" && n >= 400;
            for method in [LookupMethod::Flipped, LookupMethod::Sorted].into_iter().take(1 + usize::from(sorts)) {
                let mut values = vec![V::NONE; asked.len()];
                let stored = device.alloc_zeroed::<V::Stored>(if V::WORDS == 0 { 0 } else { asked.len() });
                let (mut stored, words) = (stored.unwrap(), asked.len().div_ceil(64));
                let mut found = device.from_slice(&vec![!0u64; words]).unwrap();
                there
                    .get_device_with(on_device.as_slice(), stored.as_mut_slice(), found.as_mut_slice(), method)
                    .unwrap();
                stored.copy_to_slice(V::stored_mut(&mut values)).unwrap();
                let found = found.to_vec().unwrap();
                for (i, expected) in expected.iter().enumerate() {
                    let is_found = found[i / 64] >> (i % 64) & 1 != 0;
                    let what = format!("{name} {n}: {method:?} {i} {cleaned}");
                    assert_eq!((is_found, values[i]), (expected.is_some(), expected.unwrap_or(V::NONE)), "{what}");
                }
                let rest = asked.len() % 64;
                assert!(rest == 0 || found[words - 1] >> rest == 0, "bits past the last query: {name} {n} {method:?}");
            }
        }
        host.cleanup().unwrap();
        there.cleanup().unwrap();
    }
}

#[test]
fn elements_look_for_their_queries() {
    for device in testing::devices(16) {
        check::<u32, u32>(&device, |i| i as u32 * 700_000, |n| n as u32);
        if tier(false, true) {
            check::<u32, ()>(&device, |i| i as u32, |_| ());
            check::<u64, u64>(&device, |i| i << 51 | i, |n| n);
        }
    }
}

/// Tests many queries by calls that wait: the lookup is flipped if and only if they ascend.
#[test]
fn many_ascending_queries_are_flipped() {
    for device in testing::devices(17) {
        let keys: Vec<u32> = (0..3000).map(|i| i * 1000).collect();
        let there = Lsm::<u32, u32>::builder().on(&device).build_from(&keys, &keys).unwrap();
        there.prepare().unwrap();
        let launched =
            || device.loaded_kernels().iter().any(|kernel| kernel.name == "lsm_lookup_flipped_u32" && kernel.launched);
        // Another test may have launched it on the same device.
        let launched_before = launched();
        let flipped = |keys: &[u32]| {
            there.get_bulk(keys).unwrap().iter().zip(keys).for_each(|(value, key)| {
                assert_eq!(*value, (key % 1000 == 0).then_some(*key));
            });
            launched()
        };
        let n = crate::gpu::query::lookup::FLIPPED_FROM as u32;
        let mut asked: Vec<u32> = (0..n).map(|i| (i / 100) * 500).collect();
        // Host slices are looked up in chunks, and ascending ones are flipped: none here.
        asked.reverse();
        assert!(!flipped(&asked) || launched_before);
        asked.reverse();
        assert!(flipped(&asked));
        let (mut values, mut found) =
            (device.alloc_zeroed(n as usize).unwrap(), device.alloc_zeroed(n as usize / 64).unwrap());
        let queries = device.from_slice(&asked).unwrap();
        there.get_device(queries.as_slice(), values.as_mut_slice(), found.as_mut_slice()).unwrap();
        assert!(values.to_vec().unwrap().iter().zip(&asked).all(|(v, k)| *v == if k % 1000 == 0 { *k } else { 0 }));
    }
}

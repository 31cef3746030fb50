//! The largest number of levels that kernels support, one lane each, with few elements: full ones would not fit in
//! memory.

use std::sync::Arc;

use warpset_gpu::{Device, testing};

use super::super::{DeviceKey, DeviceValue, LookupMethod};
use crate::level::{Level, LevelIndex};
use crate::{CleanupPolicy, Error, Lsm, cpu};

/// Returns a tree in which level `i` has a key that all levels have, a key of its own and, every third level, a
/// tombstone that hides the key of the next one.
fn tree<K: DeviceKey<Stored = K> + DeviceValue<Stored = K>>(levels: u32) -> cpu::Lsm<K, K> {
    let builder = Lsm::<K, K>::builder().batch_size(64).cleanup(CleanupPolicy::Manual);
    let level = |i: u32| {
        let keys = [5, 10 * i + 1, 10 * i + 11].map(|key| K::from_u64(u64::from(key)));
        let mut one = builder.build().unwrap();
        let few = if i.is_multiple_of(3) { 3 } else { 2 };
        let values = [i, 100 + i, 0].map(|value| K::from_u64(value.into()));
        one.update_bulk(&keys[..few], &values[..few], &[false, false, true][..few]).unwrap();
        let elements = Arc::into_inner(one.levels.pop().unwrap()).unwrap().elements;
        Arc::new(Level::new(LevelIndex(i), elements))
    };
    cpu::Dictionary::from_levels(builder.build().unwrap().policy, (0..levels).map(level).collect())
}

fn check<K: DeviceKey<Stored = K> + DeviceValue<Stored = K>>(device: &Device, levels: u32) {
    let mut host = tree::<K>(levels);
    host.check_invariants().unwrap();
    let mut there = host.to_device(device).unwrap();
    let asked: Vec<K> = (0..=10 * u64::from(levels) + 20).map(K::from_u64).collect();
    let ranges: Vec<_> = (0..12).map(|i| asked[3 * i]..=asked[3 * i + i * i]).chain([K::MIN..=K::MAX]).collect();
    let on_device = device.from_slice(&asked).unwrap();
    for step in ["unprepared", "prepared", "updated", "cleaned up"] {
        if step == "prepared" {
            there.prepare().unwrap();
        }
        if step == "updated" {
            // Into the first level, which is not full.
            host.update_bulk(&asked[..2], &asked[7..9], &[false, true]).unwrap();
            there.update_bulk(&asked[..2], &asked[7..9], &[false, true]).unwrap();
            assert_eq!(there.level_lens().len(), levels as usize);
        }
        if step == "cleaned up" {
            host.cleanup().unwrap();
            there.cleanup().unwrap();
        }
        let expected = host.get_bulk(&asked);
        for method in [LookupMethod::Auto, LookupMethod::Halving, LookupMethod::Flipped] {
            let tree = there.snapshot(); // unprepared as long as the tree is, whatever a method prepares
            let mut values = device.alloc_zeroed::<K>(asked.len()).unwrap();
            let mut found = device.alloc_zeroed::<u64>(asked.len().div_ceil(64)).unwrap();
            tree.get_device_with(on_device.as_slice(), values.as_mut_slice(), found.as_mut_slice(), method).unwrap();
            let values = values.to_vec().unwrap();
            assert!(values.iter().zip(&expected).all(|(v, e)| *v == e.unwrap_or(K::MIN)), "{step} {method:?}");
        }
        let tree = there.snapshot();
        assert_eq!(tree.count_range_bulk(&ranges).unwrap(), host.count_range_bulk(&ranges), "{step}");
        assert_eq!(tree.range_bulk(&ranges).unwrap(), host.range_bulk(&ranges).unwrap(), "{step}");
        assert_eq!(tree.successor_bulk(&asked[..40]).unwrap(), host.successor_bulk(&asked[..40]), "{step}");
        assert!(there.to_host().unwrap() == host, "{step}");
    }
}

#[test]
fn as_many_levels_as_lanes() {
    for device in testing::devices(18) {
        check::<u32>(&device, 32);
        check::<u64>(&device, 31);
    }
}

#[test]
fn more_levels_than_lanes_are_refused() {
    for device in testing::devices(19) {
        let refused = tree::<u32>(33).to_device(&device);
        assert!(matches!(refused, Err(Error::Primitive(_))), "{refused:?}");
    }
}

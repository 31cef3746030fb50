//! Sorted arrays on devices against those on the host: same answers, same bytes, after every kind of update.

use warpset_base::filter::LengthMismatch;
use warpset_core::hash::mix;
use warpset_gpu::{Device, testing};

use super::{DeviceKey, DeviceValue, key};
use crate::{Error, Lsm, SortedArray};

fn streams_agree<K: DeviceKey<Stored = K>, V: DeviceValue>(device: &Device, value: fn(u64) -> V) {
    let builder = SortedArray::<K, V>::builder();
    let (mut host, mut there) = (builder.build().unwrap(), builder.on(device).build().unwrap());
    assert!(there.to_host().unwrap() == host && there.is_empty().unwrap());
    for (step, len) in [100, 1, 33, 700, 0, 65].into_iter().enumerate() {
        let keys: Vec<K> = (0..len).map(|i| key(i, step as u64)).collect();
        let values: Vec<V> = (0..len).map(|i| value(mix(i, 100))).collect();
        let removed: Vec<bool> = (0..len).map(|i| mix(i, 7).is_multiple_of(3)).collect();
        match step % 3 {
            0 => {
                host.insert_bulk(&keys, &values).unwrap();
                there.insert_bulk(&keys, &values).unwrap();
            }
            1 => {
                host.remove_bulk(&keys).unwrap();
                there.remove_bulk(&keys).unwrap();
            }
            _ => {
                host.update_bulk(&keys, &values, &removed).unwrap();
                there.update_bulk(&keys, &values, &removed).unwrap();
            }
        }
        assert_eq!(there.to_host().unwrap().to_bytes(), host.to_bytes(), "step {step}");
        assert_eq!((there.len().unwrap(), there.resident_len()), (host.len(), host.resident_len()));
    }
    let asked: Vec<K> = (0..120).map(|i| key(i % 64, i % 6)).collect();
    let ranges: Vec<_> = asked.chunks(2).map(|two| two[0]..=two[1]).chain([K::MIN..=K::MAX, K::MAX..=K::MIN]).collect();
    for prepared in [false, true] {
        if prepared {
            there.prepare().unwrap();
        }
        assert_eq!(there.get_bulk(&asked).unwrap(), host.get_bulk(&asked));
        assert_eq!(there.count_range_bulk(&ranges).unwrap(), host.count_range_bulk(&ranges));
        assert_eq!(there.range_bulk(&ranges).unwrap(), host.range_bulk(&ranges).unwrap());
    }
    assert!(there.iter().unwrap().map(Result::unwrap).eq(&host));
    let (keys, values): (Vec<K>, Vec<V>) = host.iter().unzip();
    assert!(builder.on(device).build_from(&keys, &values).unwrap().to_host().unwrap() == host);
    let before = there.snapshot();
    there.clear().unwrap();
    assert!(there.is_empty().unwrap() && there.get_bulk(&asked).unwrap().iter().all(Option::is_none));
    assert_eq!(before.get_bulk(&asked).unwrap(), host.get_bulk(&asked));
    assert!(host.to_device(device).unwrap().to_host().unwrap() == host);
}

#[test]
fn updates_as_on_the_host() {
    for device in testing::devices(21) {
        streams_agree::<u32, u32>(&device, |n| n as u32);
        streams_agree::<u64, u64>(&device, |n| n);
        streams_agree::<u32, ()>(&device, |_| ());
    }
}

/// Tests queued updates of arrays and trees, all three kinds, before and after a cleanup.
#[test]
fn queued_updates_answer_at_once_and_are_cleaned_up_later() {
    for device in testing::devices(22) {
        let keys: Vec<u32> = (0..90).map(|i| (mix(i, 5) % 60) as u32).collect();
        let removed: Vec<u8> = (0..90).map(|i| u8::from(i % 4 == 0)).collect();
        let flags: Vec<bool> = removed.iter().map(|&flag| flag != 0).collect();
        let mut host = SortedArray::<u32, u32>::builder().build_from(&keys[..40], &keys[..40]).unwrap();
        host.insert_bulk(&keys, &keys).unwrap();
        host.remove_bulk(&keys[3..9]).unwrap();
        host.update_bulk(&keys, &keys, &flags).unwrap();

        let (on_device, there_removed) = (device.from_slice(&keys).unwrap(), device.from_slice(&removed).unwrap());
        let all = on_device.as_slice();
        let first = all.slice(..40);
        let mut array = SortedArray::builder().on(&device).build_from_device(first, first).unwrap();
        let mut tree = Lsm::builder().batch_size(64).on(&device).build_from_device(first, first).unwrap();
        let built = array.resident_len();
        let stream = device.new_stream().unwrap();
        // SAFETY: all memory lives until the stream has been waited for.
        unsafe {
            array.insert_async(&stream, all, all).unwrap();
            array.remove_async(&stream, all.slice(3..9)).unwrap();
            array.update_async(&stream, all, all, there_removed.as_slice()).unwrap();
            tree.insert_async(&stream, all, all).unwrap();
            tree.remove_async(&stream, all.slice(3..9)).unwrap();
            tree.update_async(&stream, all, all, there_removed.as_slice()).unwrap();
        }
        stream.synchronize().unwrap();
        let asked: Vec<u32> = (0..70).collect();
        assert_eq!(array.resident_len(), built + 90 + 6 + 90, "nothing has been dropped");
        assert_eq!(array.get_bulk(&asked).unwrap(), host.get_bulk(&asked));
        assert_eq!(tree.get_bulk(&asked).unwrap(), host.get_bulk(&asked));
        assert!(array.to_host().unwrap() == host, "a copy on the host has live elements only");
        assert_eq!(array.len().unwrap(), host.len());
        array.cleanup().unwrap();
        assert_eq!(array.resident_len(), host.len());
        assert!(array.to_host().unwrap() == host);
        for live in [array.live_elements().unwrap(), tree.live_elements().unwrap()] {
            assert_eq!((live.len(), live.is_empty()), (host.keys().len(), false));
            assert_eq!(live.keys().to_vec().unwrap(), host.keys());
            assert_eq!(live.values().to_vec().unwrap(), host.values());
        }
        assert!(tree.iter().unwrap().map(Result::unwrap).eq(&host));
        let told = SortedArray::<u32, u32>::builder().on(&device).build_from_device(all, first);
        assert!(matches!(told, Err(Error::LengthMismatch(LengthMismatch { needed: 90, found: 40, .. }))));
    }
}

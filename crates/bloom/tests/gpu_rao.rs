//! Rao's filter on a device against the same filter on the host: equal bytes, equal answers, equal overflows.
//!
//! Runs on the emulator, and with the feature `cuda` also on a CUDA device if one is present; `WARPSET_REQUIRE_CUDA=1`
//! requires one.

#![cfg(feature = "gpu")]

use std::collections::HashSet;
use warpset_bloom::Filter;
use warpset_bloom::gpu::DeviceFilter;

use warpset_base::testing::keys;
use warpset_bloom::gpu::{self, DeviceKeys, StringVec};
use warpset_bloom::{BucketShape, Builder, Error, FirstLevel, Insert, Key, RaoLayout, StringHash, TestAndInsert, cpu};
use warpset_gpu::testing::devices;
use warpset_gpu::{Device, EmulatorOptions, GpuError};

/// Makes Rao's filter with either kind of assignment, of several batches.
fn rao(choices: u32, first_level: FirstLevel) -> cpu::RaoBloom {
    let builder = cpu::RaoBloom::builder(3000).choices(choices).bucket_words(128).load_factor(0.6);
    builder.first_level(first_level).build().unwrap()
}

#[test]
fn raos_filters_agree() {
    for device in devices(8) {
        for choices in [1, 2] {
            for first_level in [FirstLevel::Mixed, FirstLevel::String(StringHash::Bkdr)] {
                let mut on_host = rao(choices, first_level);
                let mut on_device = gpu::RaoBloom::from_host(&device, &on_host).unwrap();
                on_device.set_chunk_keys(256);
                let present = keys(900, 1);
                on_host.insert_bulk(&present).unwrap();
                on_device.insert_bulk(&present).unwrap();
                assert!(on_device.to_host().unwrap() == on_host, "{choices} {first_level:?}");
                assert_eq!(on_device.bucket_ones().to_vec().unwrap(), on_host.bucket_ones());
                let asked: Vec<u64> = keys(300, 2).into_iter().chain(present[..77].iter().copied()).collect();
                assert_eq!(on_device.contains_bulk(&asked).unwrap(), on_host.contains_bulk(&asked).unwrap());
                let text: Vec<String> = (0..400).map(|i| format!("key {}", i % 333)).collect();
                on_host.insert_bulk(&text).unwrap();
                on_device.insert_bulk(&text).unwrap();
                assert!(on_device.to_host().unwrap() == on_host, "{choices} {first_level:?}: strings");
                assert!(on_device.contains_bulk(&text).unwrap().into_iter().all(|yes| yes));
                let stream: Vec<u32> = (0..500).map(|i| i % 222).collect();
                let expected = on_host.test_and_insert_bulk(&stream).unwrap();
                assert_eq!(on_device.test_and_insert_bulk(&stream).unwrap(), expected);
                assert!(on_device.to_host().unwrap() == on_host, "{choices} {first_level:?}: test and insert");
            }
        }
    }
}

#[test]
fn raos_filter_takes_device_slices_between_queries() {
    for device in devices(9) {
        for choices in [1, 2] {
            let mut on_host = rao(choices, FirstLevel::Mixed);
            let mut on_device = gpu::RaoBloom::from_host(&device, &on_host).unwrap();
            let present = keys(800, 1);
            for batch in present.chunks(300) {
                on_host.insert_bulk(batch).unwrap();
                on_device.insert_device(device.from_slice(batch).unwrap().as_slice()).unwrap();
                assert!(on_device.contains_bulk(batch).unwrap().into_iter().all(|yes| yes));
            }
            assert!(on_device.to_host().unwrap() == on_host);
            let other = on_device.try_clone().unwrap();
            on_device.merge(&other).unwrap();
            assert!(on_device.to_host().unwrap() == on_host);
            assert_eq!(matches!(on_device.intersect(&other), Err(Error::NoIntersection)), choices == 2);
        }
    }
}

#[test]
fn raos_filter_restarts_and_overflows_as_on_the_host() {
    for device in devices(10) {
        let keys: Vec<u64> = (0..600).collect();
        for choices in [1, 2] {
            let mut on_host = cpu::RaoBloom::builder(250).choices(choices).bucket_words(64).build().unwrap();
            let mut on_device = gpu::RaoBloom::from_host(&device, &on_host).unwrap();
            if choices == 1 {
                let expected = on_host.insert_bulk(&keys).unwrap_err().to_string();
                assert_eq!(on_device.insert_bulk(&keys).unwrap_err().to_string(), expected);
                assert!(on_device.to_host().unwrap() == on_host && on_device.count_ones().unwrap() == 0);
            }
            on_host.insert_bulk(&keys[..200]).unwrap();
            on_device.insert_bulk(&keys[..200]).unwrap();
            assert!(on_device.to_host().unwrap() == on_host);
            let expected = on_host.insert_bulk(&keys).unwrap_err().to_string();
            assert_eq!(on_device.insert_bulk(&keys).unwrap_err().to_string(), expected);
            assert!(on_device.to_host().unwrap() == on_host);
        }
    }
}

/// Whether each key is neither in `filter` nor among the keys before it: what test-and-insert must call new,
/// when all fit in one sub-batch.
fn new_keys<K: Key + std::hash::Hash + Eq>(filter: &cpu::RaoBloom, keys: &[K]) -> Vec<bool> {
    let contained = filter.contains_bulk(keys).unwrap();
    let mut seen = HashSet::new();
    keys.iter().zip(contained).map(|(key, contained)| seen.insert(key) && !contained).collect()
}

/// Queues insertion, test-and-insert in both forms, and queries, without waits in between.
fn stream_agrees<K: Key + std::hash::Hash + Eq, D: DeviceKeys>(
    device: &Device,
    filter: &cpu::RaoBloom,
    present: (&[K], D),
    asked: (&[K], D),
) {
    let n = asked.0.len();
    let mut on_host = filter.clone();
    on_host.insert_bulk(present.0).unwrap();
    let expected = on_host.test_and_insert_bulk(asked.0).unwrap();
    let mut inserted = filter.clone();
    inserted.insert_bulk(present.0).unwrap();
    assert_eq!(expected, new_keys(&inserted, asked.0));

    let stream = device.new_stream().unwrap();
    let [mut by_bytes, mut by_bits] = [0; 2].map(|_| filter.to_device(device).unwrap());
    let mut bytes = device.alloc_uninit::<u8>(n).unwrap();
    let mut bits = device.alloc_uninit::<u64>(n.div_ceil(64)).unwrap();
    let mut places = device.alloc_uninit::<u64>(n).unwrap();
    let mut counts = device.alloc_zeroed::<u64>(3).unwrap();
    // SAFETY: everything is allocated until the stream has been waited for.
    let queued = unsafe {
        let (places, contained) = (places.as_mut_slice(), counts.slice_mut(..1));
        let inserted = by_bytes.insert_async(&stream, present.1).unwrap();
        by_bytes.retain_contained_indices_async(&stream, asked.1, places, contained).unwrap();
        by_bytes.count_contained_async(&stream, asked.1, counts.slice_mut(1..2)).unwrap();
        let tested = by_bytes.test_and_insert_async(&stream, asked.1, bytes.as_mut_slice()).unwrap();
        by_bytes.count_contained_async(&stream, asked.1, counts.slice_mut(2..)).unwrap();
        let other = by_bits.insert_async(&stream, present.1).unwrap();
        let again = by_bits.test_and_insert_bitmap_async(&stream, asked.1, bits.as_mut_slice()).unwrap();
        [inserted, tested, other, again]
    };
    for insertion in queued {
        assert_eq!(insertion.limit(), filter.layout().shape().most_ones());
        insertion.finish().unwrap();
    }
    assert!(by_bytes.to_host().unwrap() == on_host && by_bits.to_host().unwrap() == on_host, "{filter:?}");
    assert_eq!(by_bytes.bucket_ones().to_vec().unwrap(), on_host.bucket_ones());
    assert!(bytes.to_vec().unwrap().iter().map(|&byte| byte == 1).eq(expected.iter().copied()));
    let bits = bits.to_vec().unwrap();
    assert!((0..n).map(|i| bits[i / 64] >> (i % 64) & 1 == 1).eq(expected));
    let contained = inserted.contains_bulk(asked.0).unwrap();
    let contained: Vec<u64> = (0..n as u64).filter(|&i| contained[i as usize]).collect();
    assert_eq!(counts.to_vec().unwrap(), [contained.len() as u64, contained.len() as u64, n as u64]);
    assert_eq!(places.slice(..contained.len()).to_vec().unwrap(), contained);
}

#[test]
fn raos_filter_on_a_stream_agrees_with_the_host() {
    for device in devices(14) {
        for choices in [1, 2] {
            for first_level in [FirstLevel::Mixed, FirstLevel::String(StringHash::Js)] {
                let mut filter = rao(choices, first_level);
                let narrow: Vec<u32> = (0..400).map(|i| i % 190).collect();
                let text: Vec<String> = (0..300).map(|i| format!("{} key", i % 140)).collect();
                let (wide_keys, narrow_keys) = (keys(400, 1), device.from_slice(&narrow).unwrap());
                let wide = device.from_slice(&wide_keys).unwrap();
                let strings = StringVec::from_slice(&device, &text).unwrap();
                let parts = |n: usize| (narrow_keys.slice(..n), narrow_keys.as_slice());
                let (some, all) = parts(100);
                stream_agrees(&device, &filter, (&narrow[..100], some), (&narrow, all));
                if choices == 2 {
                    filter.insert_bulk(&wide_keys).unwrap();
                    let (first, all) = (strings.as_strings().slice(0..64), strings.as_strings());
                    stream_agrees(&device, &filter, (&text[..64], first), (&text, all));
                    let (all, some) = (wide.as_slice(), wide.slice(30..31));
                    stream_agrees(&device, &filter, (&wide_keys, all), (&wide_keys[30..31], some));
                }
            }
        }
    }
}

#[test]
fn raos_filter_has_few_and_many_buckets_and_tiles_of_several_keys() {
    // With few buckets and many keys, buckets are counted in shared memory: on the emulator's one multiprocessor a
    // thread takes two keys from 2,049 on.
    for device in devices(15) {
        for (buckets, n) in [(3u64, 9000u64), (300, 9000), (1, 1), (3, 0)] {
            let shape = BucketShape::new(if buckets == 300 { 40 } else { 3000 }, 3).unwrap();
            let layout = RaoLayout::new(buckets, shape, 1, FirstLevel::Mixed, 3).unwrap();
            let present = keys(n, 4);
            let mut on_host = Builder::with_layout(layout).build().unwrap();
            let mut on_device = Builder::with_layout(layout).on(&device).build().unwrap();
            on_host.insert_bulk(&present).unwrap();
            on_device.insert_device(device.from_slice(&present).unwrap().as_slice()).unwrap();
            assert!(on_device.to_host().unwrap() == on_host, "{buckets} buckets, {n} keys");
        }
    }
}

#[test]
fn what_overflows_on_a_stream_is_undone_there() {
    for device in devices(16) {
        let (few, many): (Vec<u64>, Vec<u64>) = ((0..100).collect(), (0..900).collect());
        for choices in [1, 2] {
            for already in [0, 60] {
                let builder = cpu::RaoBloom::builder(250).choices(choices).bucket_words(64).load_factor(0.7);
                let mut on_host = builder.build().unwrap();
                on_host.insert_bulk(&few[..already]).unwrap();
                let mut on_device = on_host.to_device(&device).unwrap();
                let stream = device.new_stream().unwrap();
                let (few_there, many_there) = (device.from_slice(&few).unwrap(), device.from_slice(&many).unwrap());
                let mut bytes = device.alloc_uninit::<u8>(many.len()).unwrap();
                let mut counts = device.alloc_zeroed::<u64>(2).unwrap();
                // SAFETY: everything is allocated until the stream has been waited for.
                let [too_many, again, fine] = unsafe {
                    let too_many = on_device.insert_async(&stream, many_there.as_slice()).unwrap();
                    on_device.count_ones_async(&stream, counts.slice_mut(..1)).unwrap();
                    let bytes = bytes.as_mut_slice();
                    let again = on_device.test_and_insert_async(&stream, many_there.as_slice(), bytes).unwrap();
                    on_device.count_ones_async(&stream, counts.slice_mut(1..)).unwrap();
                    let fine = on_device.insert_async(&stream, few_there.as_slice()).unwrap();
                    [too_many, again, fine]
                };
                let (ones, limit) = (too_many.fullest().to_vec().unwrap()[0], too_many.limit());
                assert!(ones > limit);
                for undone in [too_many, again] {
                    let error = undone.finish().unwrap_err();
                    assert!(
                        matches!(error, Error::BucketOverflow { attempts: 1, ones, .. } if ones > limit),
                        "{error}"
                    );
                }
                fine.finish().unwrap();
                assert_eq!(counts.to_vec().unwrap(), [on_host.count_ones(); 2]);
                on_host.insert_bulk(&few).unwrap();
                assert!(on_device.to_host().unwrap() == on_host);
                assert_eq!(on_device.bucket_ones().to_vec().unwrap(), on_host.bucket_ones());
                // From the host the same keys end in the host's error.
                let expected = on_host.test_and_insert_bulk(&many).unwrap_err().to_string();
                assert_eq!(on_device.test_and_insert_bulk(&many).unwrap_err().to_string(), expected);
                assert!(on_device.to_host().unwrap() == on_host);
            }
        }
    }
}

#[test]
fn test_and_insert_restarts_an_empty_filter() {
    for device in devices(17) {
        let layout = cpu::RaoBloom::builder(300).bucket_words(32).load_factor(0.8).layout().unwrap();
        let mut restarted = 0;
        // Somewhere between what always fits and what never does.
        for different in (300..500).step_by(3) {
            let present: Vec<u64> = (0..600).map(|i| i % different).collect();
            let mut on_host = Builder::with_layout(layout).build().unwrap();
            let Ok(expected) = on_host.test_and_insert_bulk(&present) else { continue };
            if on_host.layout().attempt() > 0 && restarted < 3 {
                let mut on_device = Builder::with_layout(layout).on(&device).build().unwrap();
                assert_eq!(on_device.test_and_insert_bulk(&present).unwrap(), expected);
                assert!(on_device.to_host().unwrap() == on_host, "{different} keys");
                restarted += 1;
            }
        }
        assert!(restarted > 0);
    }
}

#[test]
fn raos_filter_without_memory_stays_as_it_was() {
    let device = Device::emulator_with(EmulatorOptions::default().memory_bytes(220_000));
    let mut filter: gpu::RaoBloom = cpu::RaoBloom::builder(40_000).fpr(0.05).on(&device).build().unwrap();
    filter.insert_bulk(&keys(100, 1)).unwrap();
    let before = filter.to_host().unwrap();
    let many = keys(9000, 2);
    let out_of_memory = |error: Error| matches!(error, Error::Gpu(error) if error.is_out_of_memory());
    assert!(out_of_memory(filter.insert_bulk(&many).unwrap_err()));
    assert!(out_of_memory(filter.test_and_insert_bulk(&many).unwrap_err()));
    let stream = device.new_stream().unwrap();
    let on_device = device.from_slice(&many).unwrap();
    // SAFETY: everything is allocated until the stream has been waited for.
    let queued = unsafe { filter.insert_async(&stream, on_device.as_slice()) };
    assert!(out_of_memory(queued.unwrap_err()));
    drop(on_device);
    assert!(filter.to_host().unwrap() == before);
    filter.insert_bulk(&many[..100]).unwrap();
    assert_eq!(filter.count_contained_bulk(&many[..100]).unwrap(), 100);
}

#[test]
fn memory_of_another_device_is_refused_and_changes_nothing() {
    let (here, elsewhere) = (Device::emulator(Default::default()), Device::emulator(Default::default()));
    let mut filter = cpu::RaoBloom::builder(1000).on(&here).build_from(&keys(500, 1)).unwrap();
    let before = filter.to_host().unwrap();
    let there = elsewhere.from_slice(&keys(50, 2)).unwrap();
    let mut bytes = elsewhere.alloc_uninit::<u8>(50).unwrap();
    let mut bits = elsewhere.alloc_uninit::<u64>(1).unwrap();
    let near = here.from_slice(&keys(50, 2)).unwrap();
    let stream = elsewhere.new_stream().unwrap();
    // SAFETY: everything is allocated until the streams have been waited for; on the emulator calls wait.
    let results = unsafe {
        [
            filter.insert_device(there.as_slice()),
            filter.insert_async(&stream, near.as_slice()).map(drop),
            filter.insert_async(&here.new_stream().unwrap(), there.as_slice()).map(drop),
            filter.test_and_insert_device(near.as_slice(), bytes.as_mut_slice()),
            filter.test_and_insert_device(there.as_slice(), bytes.as_mut_slice()),
            filter.test_and_insert_bitmap_device(near.as_slice(), bits.as_mut_slice()),
            filter.test_and_insert_async(&here.new_stream().unwrap(), near.as_slice(), bytes.as_mut_slice()).map(drop),
            filter.test_and_insert_bitmap_async(&stream, near.as_slice(), bits.as_mut_slice()).map(drop),
            filter.contains_device(near.as_slice(), bytes.as_mut_slice()),
        ]
    };
    for result in results {
        assert!(matches!(result, Err(Error::Gpu(GpuError::OtherDevice { .. }))), "{result:?}");
    }
    assert!(filter.to_host().unwrap() == before);
}

#[test]
fn waiting_test_and_insert_on_the_device_follows_the_hosts_rule() {
    for device in devices(18) {
        for choices in [1, 2] {
            let builder = cpu::RaoBloom::builder(2000).choices(choices).bucket_words(64);
            let (mut on_host, mut on_device) = (builder.build().unwrap(), builder.on(&device).build().unwrap());
            for asked in [keys(700, 1), [keys(300, 1), keys(300, 2), keys(300, 2)].concat()] {
                let there = device.from_slice(&asked).unwrap();
                let mut new = device.alloc_uninit::<u8>(asked.len()).unwrap();
                on_device.test_and_insert_device(there.as_slice(), new.as_mut_slice()).unwrap();
                let expected = on_host.test_and_insert_bulk(&asked).unwrap();
                assert!(new.to_vec().unwrap().iter().map(|byte| *byte == 1).eq(expected), "{choices}");
                assert!(on_device.to_host().unwrap() == on_host);
            }
            let there = device.from_slice(&keys(100, 3)).unwrap();
            let mut new = device.alloc_uninit::<u64>(2).unwrap();
            on_device.test_and_insert_bitmap_device(there.as_slice(), new.as_mut_slice()).unwrap();
            let expected = on_host.test_and_insert_bulk(&keys(100, 3)).unwrap();
            let words = new.to_vec().unwrap();
            assert!((0..100).map(|i| words[i / 64] >> (i % 64) & 1 == 1).eq(expected));
            // Far too many keys: an error, and no change.
            let many = device.from_slice(&keys(9000, 4)).unwrap();
            let mut new = device.alloc_uninit::<u8>(9000).unwrap();
            let result = on_device.test_and_insert_device(many.as_slice(), new.as_mut_slice());
            assert!(matches!(result, Err(Error::BucketOverflow { attempts: 1, .. })), "{result:?}");
            assert!(on_device.to_host().unwrap() == on_host);
        }
    }
}

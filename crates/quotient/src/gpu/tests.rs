//! Bytes are those of the host, whatever the schedule; on CUDA too where there is a device.

use warpset_base::filter::Filter;
use warpset_core::hash::mix;
use warpset_core::quotient::slots::Container;
use warpset_gpu::testing::devices;
use warpset_kernels::batch::results;
use warpset_kernels::quotient::layout::TILE_U32 as TILE;
use warpset_primitives::DeviceFilter;

use super::{LookupMethod, StandardQuotientFilter};
use crate::{Duplicates, Error, Hashed, Layout, LengthMismatch, StandardBuilder};

pub(super) fn keys(n: usize, seed: u64) -> Vec<u64> {
    (0..n as u64).map(|i| mix(i, seed)).collect()
}

pub(super) fn layouts(q: u32, load: f64) -> Vec<Layout> {
    let mut all = Vec::new();
    for (r, container, duplicates) in [
        (5, Container::Packed, Duplicates::Dropped),
        (5, Container::Bytes, Duplicates::Kept),
        (13, Container::Bytes, Duplicates::Dropped),
        (40, Container::Packed, Duplicates::Kept),
        (33, Container::Bytes, Duplicates::Dropped),
    ] {
        let builder = StandardBuilder::with_bits(q, r).max_load(load).container(container).duplicates(duplicates);
        all.push(builder.layout().unwrap());
    }
    all
}

#[test]
fn builds_are_the_hosts() {
    for device in devices(1) {
        for (q, load, n) in [(1, 0.9, 1), (5, 0.9, 20), (7, 0.95, 121), (11, 0.95, 1945), (12, 0.9, 100)] {
            for layout in layouts(q, load) {
                let some = keys(n.min(layout.limit() as usize), 3);
                let built = StandardBuilder::with_layout(layout).on(&device).build_from(&some).unwrap();
                let expected = StandardBuilder::with_layout(layout).build_from(&some).unwrap();
                assert_eq!(built.len(), expected.len());
                assert!(built.to_host().unwrap() == expected, "{layout:?}");
                assert_eq!(built.count_contained_bulk(&some).unwrap(), some.len());
                let others = keys(500, 4);
                assert_eq!(built.contains_bulk(&others).unwrap(), expected.contains_bulk(&others));
            }
        }
    }
}

#[test]
fn tiles_and_schedules_change_nothing() {
    for seed in 0..2 {
        for device in devices(seed) {
            for layout in [layouts(14, 0.95)[0], layouts(14, 0.95)[3]] {
                for n in [TILE - 1, TILE, TILE + 1, 3 * TILE + 77] {
                    // Some keys twice, so that duplicates lie across tiles too.
                    let mut some = keys(n - n / 8, 9);
                    some.extend_from_within(..n / 8);
                    let built = StandardBuilder::with_layout(layout).on(&device).build_from(&some).unwrap();
                    assert!(
                        built.to_host().unwrap() == StandardBuilder::with_layout(layout).build_from(&some).unwrap()
                    );
                }
            }
        }
    }
}

#[test]
fn one_long_run_across_tiles() {
    for device in devices(5) {
        for container in [Container::Packed, Container::Bytes] {
            let builder =
                StandardBuilder::with_bits(12, 20).max_load(0.95).container(container).duplicates(Duplicates::Kept);
            let layout = builder.layout().unwrap();
            // Everything in one cluster from the first quotient on, with long runs of equal fingerprints.
            let hashes: Vec<Hashed> = (0..3800u64).map(|i| Hashed((i / 900) << 52 | (i % 3) << 35)).collect();
            let built = StandardBuilder::with_layout(layout).on(&device).build_from(&hashes).unwrap();
            let expected = StandardBuilder::with_layout(layout).build_from(&hashes).unwrap();
            assert!(built.to_host().unwrap() == expected);
            let doubled = built.resized(13).unwrap();
            assert!(doubled.to_host().unwrap() == expected.resized(13).unwrap());
        }
    }
}

#[test]
fn batches_and_merges_are_the_hosts() {
    for device in devices(2) {
        for layout in layouts(11, 0.95) {
            let (some, more, rest) = (keys(700, 1), keys(600, 2), keys(500, 3));
            let mut filter = StandardQuotientFilter::with_layout(&device, layout).unwrap();
            let mut expected = crate::StandardQuotientFilter::with_layout(layout).unwrap();
            for batch in [&some, &more, &some[..50].to_vec(), &vec![]] {
                let stored = filter.insert_bulk(batch).unwrap();
                assert_eq!(stored, expected.insert_bulk(batch).unwrap());
                assert!(filter.to_host().unwrap() == expected);
            }
            let other = StandardBuilder::with_bits(10, layout.remainder_bits() + 1).duplicates(layout.duplicates());
            let other = other.build_from(&rest).unwrap();
            filter.merge(&StandardQuotientFilter::from_host(&device, &other).unwrap()).unwrap();
            expected.merge(&other).unwrap();
            assert!(filter.to_host().unwrap() == expected);
            // Too many: an error, and nothing changed.
            let error = filter.insert_bulk(&keys(1000, 7)).unwrap_err();
            assert!(matches!(error, Error::Full { .. }), "{error}");
            assert!(filter.to_host().unwrap() == expected);
            filter.clear().unwrap();
            assert!(filter.is_empty() && filter.to_host().unwrap().fingerprints().next().is_none());
        }
    }
}

#[test]
fn every_kind_of_key() {
    for device in devices(3) {
        let layout = StandardBuilder::with_bits(9, 20).seed(77).layout().unwrap();
        let build = |host: crate::StandardQuotientFilter, on_device: StandardQuotientFilter| {
            assert!(on_device.to_host().unwrap() == host);
        };
        let words: Vec<String> = (0..300).map(|i| format!("word {i}")).collect();
        let small: Vec<u32> = (0..301).collect();
        build(
            StandardBuilder::with_layout(layout).build_from(&words).unwrap(),
            StandardBuilder::with_layout(layout).on(&device).build_from(&words).unwrap(),
        );
        build(
            StandardBuilder::with_layout(layout).build_from(&small).unwrap(),
            StandardBuilder::with_layout(layout).on(&device).build_from(&small).unwrap(),
        );
        let on_device = device.from_slice(&small).unwrap();
        let mut filter =
            StandardBuilder::with_layout(layout).on(&device).build_from_device(on_device.slice(..100)).unwrap();
        filter.insert_device(on_device.slice(100..)).unwrap();
        assert!(filter.to_host().unwrap() == StandardBuilder::with_layout(layout).build_from(&small).unwrap());
        let stream = device.new_stream().unwrap();
        let mut answers = device.alloc_uninit::<u8>(301).unwrap();
        let mut count = device.alloc_zeroed::<u64>(1).unwrap();
        // SAFETY: all live until they are read, which waits.
        unsafe {
            filter.contains_async(&stream, on_device.as_slice(), answers.as_mut_slice()).unwrap();
            filter.count_contained_async(&stream, on_device.as_slice(), count.as_mut_slice()).unwrap();
            let short = filter.contains_async(&stream, on_device.as_slice(), answers.slice_mut(1..));
            assert!(matches!(short, Err(Error::LengthMismatch(LengthMismatch { needed: 301, found: 300, .. }))));
        }
        assert_eq!(answers.to_vec().unwrap(), vec![1; 301]);
        assert_eq!(count.to_vec().unwrap(), [301]);
    }
}

#[test]
fn what_does_not_fit_is_an_error() {
    for device in devices(4) {
        let layout = StandardBuilder::with_bits(10, 8).duplicates(Duplicates::Kept).layout().unwrap();
        let many = keys(layout.limit() as usize + 1, 1);
        let error = StandardBuilder::with_layout(layout).on(&device).build_from(&many).unwrap_err();
        assert!(matches!(error, Error::Full { items, .. } if items == layout.limit() + 1), "{error}");
        let layout = StandardBuilder::with_bits(14, 8).duplicates(Duplicates::Kept).layout().unwrap();
        let last = vec![Hashed(u64::MAX); 3000];
        let error = StandardBuilder::with_layout(layout).on(&device).build_from(&last).unwrap_err();
        assert!(matches!(error, Error::OverflowRegionFull { .. }), "{error}");
    }
}

#[test]
fn sorted_lookups_answer_in_the_order_of_the_keys() {
    for device in devices(6) {
        for layout in layouts(9, 0.9) {
            let stored = keys(layout.limit() as usize, 3);
            let filter = StandardBuilder::with_layout(layout).on(&device).build_from(&stored).unwrap();
            for n in [1, 63, 257, 700] {
                // Present and absent ones in turn, and some twice.
                let mut asked = [&stored[..n.min(400)], &keys(n, 4)[..]].concat();
                asked.extend_from_within(..n / 3);
                asked.sort_unstable_by_key(|&key| mix(key, 5));
                let expected = StandardBuilder::with_layout(layout).build_from(&stored).unwrap().contains_bulk(&asked);
                let on_device = device.from_slice(&asked).unwrap();
                let stream = device.new_stream().unwrap();
                for method in [LookupMethod::Sorted, LookupMethod::Unsorted, LookupMethod::Auto] {
                    let mut answers = device.alloc_uninit::<u8>(asked.len()).unwrap();
                    let mut count = device.alloc_zeroed::<u64>(1).unwrap();
                    let mut bits = device.alloc_uninit::<u64>(results::words(results::BITS, asked.len())).unwrap();
                    // SAFETY: all live until they are read, which waits.
                    unsafe {
                        let keys = on_device.as_slice();
                        filter.contains_async_with(&stream, keys, answers.as_mut_slice(), method).unwrap();
                        filter.count_contained_async_with(&stream, keys, count.as_mut_slice(), method).unwrap();
                        filter.contains_bitmap_async(&stream, keys, bits.as_mut_slice()).unwrap();
                    }
                    let answers: Vec<bool> = answers.to_vec().unwrap().iter().map(|&yes| yes == 1).collect();
                    assert_eq!(answers, expected, "{method:?}");
                    assert_eq!(count.to_vec().unwrap()[0], expected.iter().filter(|&&yes| yes).count() as u64);
                    let bits = bits.to_vec().unwrap();
                    assert!(
                        (0..64 * bits.len())
                            .all(|i| (bits[i / 64] >> (i % 64) & 1 != 0) == expected.get(i).is_some_and(|&yes| yes))
                    );
                }
            }
        }
    }
}

//! Bytes are those of the host, for every schedule; on CUDA too where there is a device.

use warpset_base::filter::Filter;
use warpset_core::hash::mix;
use warpset_core::quotient::slots::Container;
use warpset_gpu::Device;
use warpset_gpu::testing::devices;
use warpset_kernels::batch::results;
use warpset_kernels::quotient::layout::{TILE_U32, TILE_U64};
use warpset_primitives::DeviceFilter;

use super::{DeviceSlotKind, LookupMethod, QuotientFilter};
use crate::slot_kind::SlotKind;
use crate::{
    Builder, Duplicates, Error, Hashed, Insert, Key, Layout, LengthMismatch, QuotientFilter as HostFilter, RankSelect,
    RankSelectBuilder, Remove, Standard, StandardBuilder,
};

pub(crate) fn keys(n: usize, seed: u64) -> Vec<u64> {
    (0..n as u64).map(|i| mix(i, seed)).collect()
}

pub(crate) fn hashed(keys: &[u64]) -> Vec<Hashed> {
    keys.iter().map(|&key| Hashed(key)).collect()
}

/// Width of the remainders, container, setting for duplicates.
type Form = (u32, Container, Duplicates);

const STANDARD: [Form; 5] = [
    (5, Container::Packed, Duplicates::Dropped),
    (5, Container::Bytes, Duplicates::Kept),
    (13, Container::Bytes, Duplicates::Dropped),
    (40, Container::Packed, Duplicates::Kept),
    (33, Container::Bytes, Duplicates::Dropped),
];
const RANK_SELECT: [Form; 4] = [
    (5, Container::Packed, Duplicates::Dropped),
    (8, Container::Packed, Duplicates::Kept),
    (40, Container::Packed, Duplicates::Dropped),
    (40, Container::Packed, Duplicates::Kept),
];

fn layout<S: DeviceSlotKind>(q: u32, load: f64, (r, container, duplicates): Form) -> Layout {
    if S::NAME == Standard::NAME {
        let builder = StandardBuilder::with_bits(q, r).max_load(load).container(container).duplicates(duplicates);
        return builder.layout().unwrap();
    }
    RankSelectBuilder::with_bits(q, r).max_load(load).duplicates(duplicates).layout().unwrap()
}

pub(crate) fn layouts(q: u32, load: f64) -> Vec<Layout> {
    STANDARD.map(|form| layout::<Standard>(q, load, form)).into()
}

/// Builds a filter on the device, and checks it against the host's. Returns both.
pub(crate) fn build<S: DeviceSlotKind>(
    device: &Device,
    layout: Layout,
    keys: &[impl Key],
) -> (HostFilter<S>, QuotientFilter<S>) {
    let host = Builder::<S>::with_layout(layout).build_from(keys).unwrap();
    let filter = Builder::<S>::with_layout(layout).on(device).build_from(keys).unwrap();
    same(&filter, &host);
    (host, filter)
}

/// Checks bytes and fingerprints.
pub(crate) fn same<S: DeviceSlotKind>(filter: &QuotientFilter<S>, host: &HostFilter<S>) {
    assert_eq!(filter.len(), host.len(), "{:?}", host.layout());
    assert!(filter.to_host().unwrap() == *host, "{:?}", host.layout());
    assert!(filter.fingerprints().unwrap().into_iter().eq(host.fingerprints()), "{:?}", host.layout());
}

/// Bits of the quotients, load, keys.
type Size = (u32, f64, usize);

const SMALL: [Size; 5] = [(1, 0.9, 1), (3, 0.9, 0), (5, 0.9, 20), (7, 0.95, 121), (9, 0.99, 506)];
const LARGE: [Size; 2] = [(11, 0.95, 1945), (12, 0.9, 100)];

fn builds<S: DeviceSlotKind>(device: &Device, sizes: &[Size], forms: &[Form]) {
    for &(q, load, n) in sizes {
        for &form in forms.iter().filter(|form| q + form.0 <= 64) {
            let layout = layout::<S>(q, load, form);
            // Some keys occur twice.
            let most = layout.limit() as usize;
            let mut some = keys(n.min(most), 3);
            some.extend_from_within(..some.len().min(most - some.len()) / 4);
            let (host, filter) = build::<S>(device, layout, &some);
            assert_eq!(filter.count_contained_bulk(&some).unwrap(), some.len());
            let others = keys(500, 4);
            assert_eq!(filter.contains_bulk(&others).unwrap(), host.contains_bulk(&others).unwrap());
        }
    }
}

#[test]
fn builds_and_lists_are_the_hosts() {
    let widths = [1, 2, 5, 8, 13, 16, 23, 28, 31, 32, 33, 40, 47, 61].map(|r| {
        let duplicates = if r % 3 == 2 { Duplicates::Kept } else { Duplicates::Dropped };
        (r, Container::Packed, duplicates)
    });
    for device in devices(1) {
        builds::<Standard>(&device, &[&SMALL[..], &LARGE].concat(), &STANDARD);
        builds::<RankSelect>(&device, &SMALL, &widths);
    }
}

fn tiles<S: DeviceSlotKind>(device: &Device, forms: &[Form]) {
    for &form in forms {
        let tile = if form.0 + 14 <= 32 { TILE_U32 } else { TILE_U64 };
        for n in [tile - 1, tile, tile + 1, 3 * tile + 77] {
            // Some keys occur twice, so that duplicates lie across tiles too.
            let mut some = keys(n - n / 8, 9);
            some.extend_from_within(..n / 8);
            build::<S>(device, layout::<S>(14, 0.95, form), &some);
        }
    }
}

#[test]
fn tiles_and_schedules_change_nothing() {
    for seed in 0..2 {
        for device in devices(seed) {
            tiles::<Standard>(&device, &[STANDARD[0], STANDARD[3]]);
            tiles::<RankSelect>(&device, &[RANK_SELECT[0], RANK_SELECT[1], RANK_SELECT[3]]);
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
            // Everything is in one cluster from the first quotient on, with long runs of equal fingerprints.
            let hashes: Vec<Hashed> = (0..3800u64).map(|i| Hashed((i / 900) << 52 | (i % 3) << 35)).collect();
            let built = StandardBuilder::with_layout(layout).on(&device).build_from(&hashes).unwrap();
            let expected = StandardBuilder::with_layout(layout).build_from(&hashes).unwrap();
            assert!(built.to_host().unwrap() == expected);
            let doubled = built.resized(13).unwrap();
            assert!(doubled.to_host().unwrap() == expected.resized(13).unwrap());
        }
    }
}

fn batches_and_merges<S: DeviceSlotKind>(device: &Device, form: Form) {
    let (layout, (r, _, duplicates)) = (layout::<S>(11, 0.95, form), form);
    let (some, more, rest) = (keys(700, 1), keys(600, 2), keys(500, 3));
    let mut filter = QuotientFilter::<S>::with_layout(device, layout).unwrap();
    let mut host = HostFilter::<S>::with_layout(layout).unwrap();
    for batch in [&some, &more, &some[..50].to_vec(), &vec![]] {
        assert_eq!(filter.insert_bulk(batch).unwrap(), host.insert_bulk(batch).unwrap());
        same(&filter, &host);
    }
    for batch in [&more[..200], &keys(300, 8), &some[100..400]] {
        assert_eq!(filter.remove_bulk(batch).unwrap(), host.remove_bulk(batch).unwrap());
        same(&filter, &host);
    }
    // The other filter has fewer quotients, and longer fingerprints, which lose a bit.
    let other = Builder::<S>::with_bits(10, r + 2).duplicates(duplicates).build_from(&rest).unwrap();
    let on_device = other.to_device(device).unwrap();
    assert_eq!(filter.union_count(&on_device).unwrap(), host.union_count(&other).unwrap());
    filter.merge(&on_device).unwrap();
    host.merge(&other).unwrap();
    same(&filter, &host);
    assert_eq!(filter.intersection_count(&on_device).unwrap(), host.intersection_count(&other).unwrap());
    let third = Builder::<S>::with_layout(layout).build_from(&some[300..600]).unwrap();
    let on_device = third.to_device(device).unwrap();
    assert_eq!(filter.intersection_count(&on_device).unwrap(), host.intersection_count(&third).unwrap());
    let (mut common, mut host_common) = (filter.try_clone().unwrap(), host.clone());
    common.intersect(&on_device).unwrap();
    host_common.intersect(&third).unwrap();
    same(&common, &host_common);
    filter.subtract(&on_device).unwrap();
    host.subtract(&third).unwrap();
    same(&filter, &host);
    // Too many keys are an error, and nothing is changed.
    let error = filter.insert_bulk(&keys(1946, 7)).unwrap_err();
    assert!(matches!(error, Error::Full { .. }), "{error}");
    same(&filter, &host);
    for quotient_bits in [12, 13] {
        same(&filter.resized(quotient_bits).unwrap(), &host.resized(quotient_bits).unwrap());
    }
    same(&common.resized(10).unwrap(), &host_common.resized(10).unwrap());
    filter.clear().unwrap();
    assert!(filter.is_empty() && filter.to_host().unwrap().fingerprints().next().is_none());
}

#[test]
fn batches_and_merges_are_the_hosts() {
    for device in devices(2) {
        STANDARD.into_iter().for_each(|form| batches_and_merges::<Standard>(&device, form));
        RANK_SELECT.into_iter().for_each(|form| batches_and_merges::<RankSelect>(&device, form));
    }
}

#[test]
fn every_kind_of_key() {
    for device in devices(3) {
        let layout = StandardBuilder::with_bits(9, 20).seed(77).layout().unwrap();
        let words: Vec<String> = (0..300).map(|i| format!("word {i}")).collect();
        let small: Vec<u32> = (0..301).collect();
        build::<Standard>(&device, layout, &words);
        build::<Standard>(&device, layout, &small);
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

fn does_not_fit<S: DeviceSlotKind>(device: &Device) {
    let built = |layout, hashes: &[Hashed]| Builder::<S>::with_layout(layout).on(device).build_from(hashes);
    let small = layout::<S>(10, 0.9, (8, Container::Packed, Duplicates::Kept));
    let error = built(small, &hashed(&keys(small.limit() as usize + 1, 1))).unwrap_err();
    assert!(matches!(error, Error::Full { items, .. } if items == small.limit() + 1), "{error}");
    for r in [8, 40] {
        let layout = layout::<S>(14, 0.9, (r, Container::Packed, Duplicates::Kept));
        let error = built(layout, &[Hashed(u64::MAX); 3000]).unwrap_err();
        assert!(matches!(error, Error::OverflowRegionFull { .. }), "{error}");
    }
}

#[test]
fn what_does_not_fit_is_an_error() {
    for device in devices(4) {
        does_not_fit::<Standard>(&device);
        does_not_fit::<RankSelect>(&device);
    }
}

#[test]
fn sorted_lookups_answer_in_the_order_of_the_keys() {
    for device in devices(6) {
        for layout in layouts(9, 0.9) {
            let stored = keys(layout.limit() as usize, 3);
            let filter = StandardBuilder::with_layout(layout).on(&device).build_from(&stored).unwrap();
            for n in [1, 63, 257, 700] {
                // The queries are stored and absent fingerprints in turn, some twice.
                let mut asked = [&stored[..n.min(400)], &keys(n, 4)[..]].concat();
                asked.extend_from_within(..n / 3);
                asked.sort_unstable_by_key(|&key| mix(key, 5));
                let expected =
                    StandardBuilder::with_layout(layout).build_from(&stored).unwrap().contains_bulk(&asked).unwrap();
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

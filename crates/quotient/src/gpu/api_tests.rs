//! Properties of every public operation: memory of another device is refused, empty input does nothing, and forms of
//! answers and ways to change agree; on CUDA too where there is a device.

use warpset_base::filter::{Count, Filter, Insert, Remove};
use warpset_base::testing::keys;
use warpset_gpu::batch::StringVec;
use warpset_gpu::testing::devices;
use warpset_gpu::{Device, GpuError};
use warpset_primitives::DeviceFilter;

use super::fingerprints::Fingerprints;
use super::{LookupMethod, QuotientFilter, StandardQuotientFilter};
use crate::cpu::exact_tests::test_and_insert_behaves_like_a_map;
use crate::slot_kind::Change;
use crate::{
    Duplicates, Error, LengthMismatch, RankSelectQuotientFilter, Standard, StandardBuilder,
    StandardQuotientFilter as HostFilter,
};

fn is_refused<T>(result: Result<T, Error>) {
    match result {
        Err(Error::Gpu(GpuError::OtherDevice { .. })) => {}
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("memory of another device was taken"),
    }
}

#[test]
fn memory_of_another_device_is_refused() {
    let (here, there) = (Device::emulator(Default::default()), Device::emulator(Default::default()));
    let builder = HostFilter::builder(100);
    let mut filter = builder.on(&here).build_from(&[1u64, 2, 3]).unwrap();
    let before = filter.to_host().unwrap();
    let (ours, theirs) = (here.from_slice(&[1u64, 2]).unwrap(), there.from_slice(&[1u64, 2]).unwrap());
    let (ours, theirs) = (ours.as_slice(), theirs.as_slice());
    let mut bytes_here = here.alloc_zeroed::<u8>(2).unwrap();
    let mut bytes_there = there.alloc_zeroed::<u8>(2).unwrap();
    let mut words_here = here.alloc_zeroed::<u64>(2).unwrap();
    let mut words_there = there.alloc_zeroed::<u64>(2).unwrap();
    let (stream, stream_there) = (here.new_stream().unwrap(), there.new_stream().unwrap());

    is_refused(builder.on(&here).build_from_device(theirs));
    is_refused(filter.insert_device(theirs));
    is_refused(filter.insert_device_with(theirs, super::UpdateMethod::InPlace));
    is_refused(filter.remove_device(theirs));
    is_refused(filter.remove_device_with(theirs, super::UpdateMethod::Rebuild));
    is_refused(filter.contains_device(theirs, bytes_here.as_mut_slice()));
    is_refused(filter.contains_device(ours, bytes_there.as_mut_slice()));
    is_refused(filter.contains_device_with(theirs, bytes_here.as_mut_slice(), LookupMethod::Sorted));
    is_refused(filter.contains_bitmap_device(theirs, words_here.as_mut_slice()));
    is_refused(filter.contains_bitmap_device(ours, words_there.as_mut_slice()));
    is_refused(filter.count_contained_device(theirs));
    is_refused(filter.count_contained_device_with(theirs, LookupMethod::Unsorted));
    is_refused(filter.count_device(theirs, words_here.as_mut_slice()));
    is_refused(filter.count_device(ours, words_there.as_mut_slice()));
    // SAFETY: nothing is queued.
    unsafe {
        is_refused(filter.contains_async(&stream_there, ours, bytes_here.as_mut_slice()));
        is_refused(filter.contains_bitmap_async(&stream_there, ours, words_here.as_mut_slice()));
        is_refused(filter.count_contained_async(&stream, ours, words_there.as_mut_slice()));
        is_refused(filter.count_contained_async(&stream, theirs, words_here.as_mut_slice()));
        is_refused(filter.count_async(&stream_there, ours, words_here.as_mut_slice()));
    }
    let other = builder.on(&there).build_from(&[1u64]).unwrap();
    is_refused(filter.merge(&other));
    is_refused(filter.intersect(&other));
    is_refused(filter.subtract(&other));
    is_refused(filter.intersection_count(&other));
    is_refused(filter.union_count(&other));
    assert!(filter.to_host().unwrap() == before);
}

#[test]
fn empty_input_does_nothing_on_any_device() {
    let (here, there) = (Device::emulator(Default::default()), Device::emulator(Default::default()));
    let none = there.from_slice::<u64>(&[]).unwrap();
    let builder = HostFilter::builder(100);
    let mut filter = builder.on(&here).build_from_device(none.as_slice()).unwrap();
    assert!(filter.is_empty());
    filter.insert_bulk(&[1u64]).unwrap();
    assert_eq!(filter.insert_device(none.as_slice()).unwrap(), 0);
    assert_eq!(filter.remove_device(none.as_slice()).unwrap(), 0);
    assert_eq!(filter.insert_bulk::<u64>(&[]).unwrap() + filter.remove_bulk::<u64>(&[]).unwrap(), 0);
    assert_eq!(filter.count_contained_device(none.as_slice()).unwrap(), 0);
    filter.contains_device(none.as_slice(), there.alloc_zeroed(0).unwrap().as_mut_slice()).unwrap();
    filter.count_device(none.as_slice(), there.alloc_zeroed(0).unwrap().as_mut_slice()).unwrap();
    assert!(filter.contains_bulk::<u64>(&[]).unwrap().is_empty() && filter.count_bulk::<u64>(&[]).unwrap().is_empty());
    assert!(filter.contains_bitmap_bulk::<u64>(&[]).unwrap().is_empty());
    assert_eq!((filter.len(), filter.count_contained_bulk::<u64>(&[]).unwrap()), (1, 0));
}

#[test]
fn all_forms_of_answers_agree() {
    for device in devices(21) {
        for r in [9, 40] {
            let builder = StandardBuilder::with_bits(10, r).duplicates(Duplicates::Kept);
            let mut stored = keys(500, 1);
            stored.extend_from_within(..200);
            stored.extend_from_within(..50);
            let host = builder.build_from(&stored).unwrap();
            let filter = builder.on(&device).build_from(&stored).unwrap();
            let asked = [&stored[..300], &keys(333, 2)[..]].concat();
            let (wanted, counts) = (host.contains_bulk(&asked).unwrap(), host.count_bulk(&asked).unwrap());
            assert_eq!(filter.contains_bulk(&asked).unwrap(), wanted);
            assert_eq!(filter.contains_bitmap_bulk(&asked).unwrap(), host.contains_bitmap_bulk(&asked).unwrap());
            assert!(host.contains_bitmap_bulk(&asked).unwrap().iter().eq(wanted.iter().copied()));
            assert_eq!(filter.count_bulk(&asked).unwrap(), counts);
            let on_device = device.from_slice(&asked).unwrap();
            let mut bytes = device.alloc_zeroed::<u8>(asked.len()).unwrap();
            filter.contains_device(on_device.as_slice(), bytes.as_mut_slice()).unwrap();
            assert!(bytes.to_vec().unwrap().iter().map(|&byte| byte == 1).eq(wanted.iter().copied()));
            let mut bits = device.alloc_zeroed::<u64>(asked.len().div_ceil(64)).unwrap();
            filter.contains_bitmap_device(on_device.as_slice(), bits.as_mut_slice()).unwrap();
            assert_eq!(bits.to_vec().unwrap(), host.contains_bitmap_bulk(&asked).unwrap().as_words());
            let mut counted = device.alloc_zeroed::<u64>(asked.len()).unwrap();
            filter.count_device(on_device.as_slice(), counted.as_mut_slice()).unwrap();
            assert_eq!(counted.to_vec().unwrap(), counts);
            let yes = wanted.iter().filter(|yes| **yes).count();
            assert_eq!(filter.count_contained_device(on_device.as_slice()).unwrap(), yes);
            assert_eq!(filter.count_contained_bulk(&asked).unwrap(), yes);
            let copy = filter.try_clone().unwrap();
            assert!(copy.to_host().unwrap() == host && copy.bits_per_key() == host.bits_per_key());
            let short = filter.count_device(on_device.as_slice(), counted.slice_mut(1..));
            assert!(matches!(short, Err(Error::LengthMismatch(LengthMismatch { needed: 633, found: 632, .. }))));
        }
    }
}

/// Rebuilds a kind of slots that has no rebuild in one pass.
fn update_by_default(filter: &mut StandardQuotientFilter, fingerprints: &[u64], change: Change) -> Result<u64, Error> {
    let layout = *filter.layout();
    let stream = filter.device().new_stream()?;
    let batch = Fingerprints::from_host(&layout, &stream, fingerprints)?.sorted(&layout, &stream)?;
    let before = filter.len();
    *filter = filter.rewritten_with(&stream, &batch, change)?;
    Ok(filter.len().abs_diff(before))
}

#[test]
fn the_way_that_every_kind_has_gives_the_same_bytes() {
    for device in devices(22) {
        for duplicates in [Duplicates::Dropped, Duplicates::Kept] {
            let builder = StandardBuilder::with_bits(9, 12).duplicates(duplicates);
            let layout = builder.layout().unwrap();
            let mut host = builder.build_from(&keys(200, 1)).unwrap();
            let mut filter = QuotientFilter::<Standard>::from_host(&device, &host).unwrap();
            let mut batch: Vec<u64> = keys(150, 2).iter().filter_map(|key| layout.fingerprint(key)).collect();
            batch.extend_from_within(..40);
            let inserted = update_by_default(&mut filter, &batch, Change::Insert).unwrap();
            assert_eq!(inserted, host.insert_fingerprints_bulk(&batch).unwrap());
            assert!(filter.to_host().unwrap() == host);
            let removed = update_by_default(&mut filter, &batch[20..], Change::Remove).unwrap();
            assert_eq!(removed, host.remove_fingerprints_bulk(&batch[20..]).unwrap());
            assert!(filter.to_host().unwrap() == host);
        }
    }
}

#[test]
fn strings_on_the_device_are_the_strings_of_the_host() {
    for device in devices(24) {
        let words: Vec<String> = (0..200).map(|i| format!("word {i}")).collect();
        let strings = StringVec::from_slice(&device, &words).unwrap();
        let strings = strings.as_strings();
        let builder = HostFilter::builder(1000).seed(9).duplicates(Duplicates::Kept);
        let mut host = builder.build_from(&words).unwrap();
        let mut filter = builder.on(&device).build_from_device(strings).unwrap();
        assert!(filter.to_host().unwrap() == host);
        assert_eq!(filter.insert_device(strings.slice(50..100)).unwrap(), 50);
        host.insert_bulk(&words[50..100]).unwrap();
        assert_eq!(filter.remove_device(strings.slice(0..10)).unwrap(), host.remove_bulk(&words[..10]).unwrap());
        assert!(filter.to_host().unwrap() == host);
        let mut counts = device.alloc_zeroed::<u64>(200).unwrap();
        filter.count_device(strings, counts.as_mut_slice()).unwrap();
        assert_eq!(counts.to_vec().unwrap(), host.count_bulk(&words).unwrap());
        assert_eq!(filter.count_contained_device(strings).unwrap(), host.count_contained_bulk(&words).unwrap());
    }
}

#[test]
fn test_and_insert_on_devices() {
    for device in devices(41) {
        for duplicates in [Duplicates::Dropped, Duplicates::Kept, Duplicates::Counted] {
            let builder = RankSelectQuotientFilter::builder(500).duplicates(duplicates).exact(32);
            test_and_insert_behaves_like_a_map(builder.on(&device).build().unwrap(), duplicates);
        }
        let builder = HostFilter::builder(500).exact(32);
        test_and_insert_behaves_like_a_map(builder.on(&device).build().unwrap(), Duplicates::Dropped);
    }
}

#[test]
fn copies_are_removed_in_batches() {
    for device in devices(42) {
        for duplicates in [Duplicates::Dropped, Duplicates::Kept, Duplicates::Counted] {
            let builder = RankSelectQuotientFilter::builder(1200).duplicates(duplicates).exact(32);
            let inserted: Vec<u64> = keys(1000, 5).into_iter().map(|key| key % 600).collect();
            let mut host = builder.build_from(&inserted).unwrap();
            let mut there = builder.on(&device).build_from(&inserted).unwrap();
            let gone: Vec<u64> = keys(300, 6).into_iter().map(|key| key % 700).chain([1 << 50]).collect();
            let copies: Vec<u64> = (0..301).map(|i| if i % 50 == 7 { u64::MAX } else { i % 4 }).collect();
            let removed = host.remove_counted_bulk(&gone, &copies).unwrap();
            assert_eq!(there.remove_counted_bulk(&gone, &copies).unwrap(), removed);
            assert!(there.to_host().unwrap() == host, "{duplicates:?}");
            assert!(matches!(there.remove_counted_bulk(&gone, &[]), Err(Error::LengthMismatch(_))));
            assert_eq!(there.remove_counted_bulk::<u64>(&[], &[]).unwrap(), 0);
        }
    }
}

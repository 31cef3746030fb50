//! Filters on several devices, compared with those of the host.

use warpset_core::hash::mix;
use warpset_gpu::testing::{deferred, fail_each, unequal_lists};
use warpset_gpu::{Device, GpuError};

use super::*;
use crate::gpu::DeviceFilter;
use crate::{Duplicates, Filter, RankSelectBuilder, StandardBuilder};

/// Compares bytes and answers with those of the host's filter, for keys of `key_bits` bits.
fn behaves_as_on_the_host<S: DeviceSlotKind>(devices: &Devices, builder: &Builder<S>, key_bits: u32) {
    let key = |i: u64| mix(i, 1) >> (64 - key_bits);
    let keys: Vec<u64> = (0..900).map(|i| key(i % 700)).collect();
    let (held, more) = keys.split_at(400);
    let mut on_host = builder.build_from(held).unwrap();
    let mut filter = builder.sharded_on(devices).build_from(held).unwrap();
    assert_eq!(filter.devices().all().len(), 1 << devices.all().len().ilog2());
    assert!(filter.to_host().unwrap() == on_host);
    filter.set_chunk_keys(128);
    let last = filter.devices().all().last().unwrap().clone();
    let there = last.from_slice(more).unwrap();
    let here = devices.first().from_slice(held).unwrap();
    let everywhere = [here.as_slice(), there.as_slice()];
    assert_eq!(DeviceInsert::insert_device(&mut filter, there.as_slice()).unwrap(), on_host.insert_bulk(more).unwrap());
    assert!(filter.to_host().unwrap() == on_host && filter.len() == on_host.len());
    // An exact filter has no fingerprint for the last ones.
    let asked: Vec<u64> = (0..1_400).map(key).chain((0..100).map(|i| mix(i, 7))).collect();
    let expected = on_host.contains_bulk(&asked).unwrap();
    assert_eq!(filter.contains_bulk(&asked).unwrap(), expected);
    let (on_last, mut answers) = (last.from_slice(&asked).unwrap(), last.alloc_zeroed(asked.len()).unwrap());
    filter.contains_device(on_last.as_slice(), answers.as_mut_slice()).unwrap();
    assert!(answers.to_vec().unwrap().into_iter().eq(expected.iter().map(|&yes| u8::from(yes))));

    let copies = on_host.count_bulk(&asked).unwrap();
    assert_eq!(filter.count_bulk(&asked).unwrap(), copies);
    let mut counts = last.alloc_zeroed(asked.len()).unwrap();
    filter.count_device(on_last.as_slice(), counts.as_mut_slice()).unwrap();
    assert_eq!(counts.to_vec().unwrap(), copies);
    let shares: Vec<_> = filter.devices().all().iter().map(|device| device.from_slice(&asked).unwrap()).collect();
    let batches: Vec<_> = shares.iter().map(|keys| keys.as_slice()).collect();
    let mut counts: Vec<_> =
        batches.iter().map(|keys| keys.device().alloc_zeroed::<u64>(keys.len()).unwrap()).collect();
    filter.count_each_device(&batches, counts.iter_mut().map(|counts| counts.as_mut_slice()).collect()).unwrap();
    assert!(counts.iter().all(|counts| counts.to_vec().unwrap() == copies));
    let mut answers: Vec<_> =
        batches.iter().map(|keys| keys.device().alloc_zeroed::<u8>(keys.len()).unwrap()).collect();
    filter.contains_each_device(&batches, answers.iter_mut().map(|yes| yes.as_mut_slice()).collect()).unwrap();
    for answers in answers {
        assert!(answers.to_vec().unwrap().into_iter().eq(expected.iter().map(|&yes| u8::from(yes))));
    }

    let copy = ShardedQuotientFilter::from_host(devices, &on_host).unwrap();
    assert!(copy.to_host().unwrap() == on_host);
    assert_eq!(filter.remove_bulk(&keys[..300]).unwrap(), on_host.remove_bulk(&keys[..300]).unwrap());
    let some = [more, &asked[1_450..]].concat();
    let on_last = last.from_slice(&some).unwrap();
    assert_eq!(filter.remove_device(on_last.as_slice()).unwrap(), on_host.remove_bulk(&some).unwrap());
    let some = [&asked[1_400..], &keys[..30]].concat();
    assert_eq!(filter.remove_bulk(&some).unwrap(), on_host.remove_bulk(&some).unwrap());
    assert!(filter.to_host().unwrap() == on_host);
    filter.merge(&copy).unwrap();
    on_host.merge(&copy.to_host().unwrap()).unwrap();
    assert!(filter.to_host().unwrap() == on_host);
    assert_eq!(filter.remove_each_device(&everywhere).unwrap(), on_host.remove_bulk(&keys).unwrap());
    assert!(filter.to_host().unwrap() == on_host);
    let other = builder.build_from(&asked[200..500]).unwrap();
    refuses_what_the_host_does(&mut filter, &asked);
    let there = ShardedQuotientFilter::from_host(devices, &other).unwrap();
    assert_eq!(there.union_count(&copy).unwrap(), other.union_count(&copy.to_host().unwrap()).unwrap());
    for combine in 0..2 {
        let (mut filter, mut on_host) = (ShardedQuotientFilter::from_host(devices, &other).unwrap(), other.clone());
        let other = copy.to_host().unwrap();
        assert_eq!(filter.intersection_count(&copy).unwrap(), on_host.intersection_count(&other).unwrap());
        if combine == 0 {
            filter.intersect(&copy).unwrap();
            on_host.intersect(&other).unwrap();
        } else {
            filter.subtract(&copy).unwrap();
            on_host.subtract(&other).unwrap();
        }
        assert!(filter.to_host().unwrap() == on_host);
    }
    counts_as_on_the_host(&mut filter, &mut on_host, &keys[..300], &everywhere.map(|keys| keys.slice(..150)));
    filter.clear().unwrap();
    assert!(filter.is_empty() && filter.to_host().unwrap() == builder.build().unwrap());
}

/// Compares lookups and changes by keys that an exact filter has no fingerprints for.
fn refuses_what_the_host_does<S: DeviceSlotKind>(filter: &mut ShardedQuotientFilter<S>, unfit: &[u64]) {
    let before = filter.to_host().unwrap();
    if !before.layout().is_exact() {
        return;
    }
    let is_refused = |result| matches!(result, Err(Error::KeyTooWide { .. }));
    let last = filter.devices().all().last().unwrap().clone();
    let there = last.from_slice(unfit).unwrap();
    let hashes: Vec<Hashed> = unfit.iter().map(|&key| Hashed(key)).collect();
    let hashes_there = last.from_slice(&hashes).unwrap();
    let copies = last.from_slice(&vec![1; unfit.len()]).unwrap();
    assert!(is_refused(filter.insert_bulk(&["no integer"])));
    assert!(is_refused(filter.insert_each_device(&[hashes_there.as_slice()])));
    if before.layout().fingerprint_bits() < 64 {
        assert!(is_refused(filter.insert_bulk(unfit)));
        assert!(is_refused(filter.insert_each_device(&[there.slice(..10), there.as_slice()])));
        if before.layout().is_counted() {
            assert!(is_refused(filter.insert_counted_bulk(unfit, &vec![1; unfit.len()])));
            assert!(is_refused(filter.insert_counted_device(there.as_slice(), copies.as_slice())));
        }
    }
    assert_eq!(filter.remove_counted_device(hashes_there.as_slice(), copies.as_slice()).unwrap(), 0);
    assert_eq!(filter.remove_device(hashes_there.as_slice()).unwrap(), 0);
    assert_eq!(filter.count_contained_device(hashes_there.as_slice()).unwrap(), 0);
    assert_eq!(filter.count_contained_bulk(&hashes).unwrap(), 0);
    assert!(filter.to_host().unwrap() == before);
}

/// Compares changes by numbers of copies; without counters, insertions are refused.
fn counts_as_on_the_host<S: DeviceSlotKind>(
    filter: &mut ShardedQuotientFilter<S>,
    on_host: &mut cpu::QuotientFilter<S>,
    keys: &[u64],
    batches: &[DeviceSlice<'_, u64>],
) {
    // Some keys get no copy.
    let copies: Vec<u64> = (0..keys.len() as u64).map(|i| i * i % 7).collect();
    let of_batches: Vec<_> =
        batches.iter().map(|keys| keys.device().from_slice(&copies[..keys.len()]).unwrap()).collect();
    let of_batches: Vec<_> = of_batches.iter().map(|copies| copies.as_slice()).collect();
    let all_keys: Vec<u64> = batches.iter().flat_map(|keys| keys.to_vec().unwrap()).collect();
    let all_copies: Vec<u64> = of_batches.iter().flat_map(|copies| copies.to_vec().unwrap()).collect();
    if on_host.layout().is_counted() {
        assert_eq!(
            filter.insert_counted_bulk(keys, &copies).unwrap(),
            on_host.insert_counted_bulk(keys, &copies).unwrap()
        );
        assert_eq!(
            filter.insert_counted_each_device(batches, &of_batches).unwrap(),
            on_host.insert_counted_bulk(&all_keys, &all_copies).unwrap()
        );
        filter.insert_counted_device(batches[0], of_batches[0]).unwrap();
        on_host.insert_counted_bulk(&all_keys[..batches[0].len()], &all_copies[..batches[0].len()]).unwrap();
    } else {
        let refused = filter.insert_counted_each_device(batches, &of_batches);
        assert!(matches!(refused, Err(Error::NoCounters { .. })), "{refused:?}");
        assert!(matches!(filter.insert_counted_bulk(keys, &copies), Err(Error::NoCounters { .. })));
    }
    assert!(filter.to_host().unwrap() == *on_host);
    for most in [0, 5, 100_000] {
        assert_eq!(filter.count_histogram(most).unwrap(), on_host.count_histogram(most).unwrap());
    }
    assert!(matches!(filter.count_histogram(usize::MAX), Err(Error::OutOfMemory(_))));
    assert_eq!(
        filter.remove_counted_bulk(&keys[..100], &copies[..100]).unwrap(),
        on_host.remove_counted_bulk(&keys[..100], &copies[..100]).unwrap()
    );
    assert_eq!(
        filter.remove_counted_each_device(batches, &of_batches).unwrap(),
        on_host.remove_counted_bulk(&all_keys, &all_copies).unwrap()
    );
    filter.remove_counted_device(batches[0], of_batches[0]).unwrap();
    on_host.remove_counted_bulk(&all_keys[..batches[0].len()], &all_copies[..batches[0].len()]).unwrap();
    assert!(filter.to_host().unwrap() == *on_host);
    for refused in [
        filter.remove_counted_each_device(batches, &of_batches[..1]),
        filter.remove_counted_device(batches[0], of_batches[0].slice(..3)),
        filter.remove_counted_bulk(keys, &copies[..3]),
    ] {
        assert!(matches!(refused, Err(Error::LengthMismatch(_))), "{refused:?}");
    }
    assert_eq!(filter.retain_counts(2).unwrap(), on_host.retain_counts(2).unwrap());
    assert!(filter.to_host().unwrap() == *on_host);
}

#[test]
fn the_filter_of_the_host_on_any_number_of_devices() {
    for devices in &unequal_lists() {
        behaves_as_on_the_host(devices, &RankSelectBuilder::with_bits(11, 5), 64);
        behaves_as_on_the_host(devices, &RankSelectBuilder::with_bits(11, 9).duplicates(Duplicates::Counted), 64);
        let exact = RankSelectBuilder::with_bits(11, 9).duplicates(Duplicates::Counted).exact(20);
        behaves_as_on_the_host(devices, &exact, 20);
    }
    let devices = Devices::new((0..3).map(deferred)).unwrap();
    behaves_as_on_the_host(&devices, &StandardBuilder::with_bits(11, 9), 64);
    behaves_as_on_the_host(&devices, &StandardBuilder::with_bits(11, 9).duplicates(Duplicates::Kept), 64);
    behaves_as_on_the_host(&devices, &StandardBuilder::with_bits(11, 9).duplicates(Duplicates::Kept).exact(20), 20);
    behaves_as_on_the_host(&devices, &RankSelectBuilder::with_bits(11, 53).exact(64), 64);
}

#[test]
fn filters_on_other_devices_are_not_merged() {
    let [a, b, c] = [0, 1, 2].map(deferred);
    let builder = StandardBuilder::with_bits(11, 9);
    let of = |devices: [&Device; 2], keys: &[u64]| {
        builder.sharded_on(&Devices::new(devices.map(Device::clone)).unwrap()).build_from(keys).unwrap()
    };
    let mut filter = of([&a, &b], &[1, 2, 3]);
    let before = filter.to_host().unwrap();
    let other = of([&a, &c], &(0..200u64).collect::<Vec<_>>());
    assert!(matches!(filter.merge(&other), Err(Error::Gpu(GpuError::OtherDevice { .. }))));
    assert!(filter.to_host().unwrap() == before);
}

#[test]
fn failures_and_full_parts_are_errors() {
    let devices = Devices::new((0..2).map(deferred)).unwrap();
    let builder = StandardBuilder::with_bits(9, 9);
    let keys: Vec<u64> = (0..300).map(|i| mix(i, 3)).collect();
    let mut filter = builder.sharded_on(&devices).build_from(&keys).unwrap();
    let expected = builder.build_from(&keys).unwrap();
    let failed = fail_each(
        &mut filter,
        |filter| filter.insert_bulk(&keys),
        |filter, _| assert!(filter.to_host().unwrap() == expected),
    );
    assert!(failed > 8);
    let copies = expected.count_bulk(&keys).unwrap();
    let failed = fail_each(
        &mut filter,
        |filter| filter.count_bulk(&keys),
        |filter, _| assert_eq!(filter.count_bulk(&keys).unwrap(), copies),
    );
    assert!(failed > 8);
    let many: Vec<u64> = (0..2_000).map(|i| mix(i, 4)).collect();
    let full = filter.insert_bulk(&many);
    assert!(matches!(full, Err(Error::Full { .. })), "{full:?}");
    assert!(filter.to_host().unwrap() == expected);
    // One part is full: keys of the other may be in, and none is lost.
    let skewed: Vec<Hashed> = (0..2_000).map(|i| Hashed(mix(i, 6) >> u32::from(i > 9))).collect();
    let full = filter.insert_bulk(&skewed);
    assert!(matches!(full, Err(Error::Full { .. })), "{full:?}");
    assert!(filter.len() <= expected.len() + 10);
    assert_eq!(filter.count_contained_bulk(&keys).unwrap(), keys.len());
    let elsewhere = deferred(9).from_slice(&keys).unwrap();
    let refused = filter.remove_device(elsewhere.as_slice());
    assert!(matches!(refused, Err(Error::Gpu(GpuError::OtherDevice { .. }))), "{refused:?}");
}

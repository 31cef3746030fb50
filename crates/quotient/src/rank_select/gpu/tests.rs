//! Crowded tiles, long shifts and changes in one pass give the host's bytes, on CUDA too where there is a device.
//! `crate::gpu::tests` has the properties of both kinds of slots.

use warpset_core::hash::mix;
use warpset_gpu::testing::devices;

use super::rebuild;
use crate::gpu::RankSelectQuotientFilter as DeviceFilter;
use crate::gpu::fingerprints::Fingerprints;
use crate::gpu::tests::{build, hashed, keys, same};
use crate::slot_kind::Change;
use crate::{
    Duplicates, Error, Hashed, Insert, Layout, RankSelect, RankSelectBuilder, RankSelectQuotientFilter, Remove,
};

fn layout(q: u32, r: u32, load: f64, duplicates: Duplicates) -> Layout {
    RankSelectBuilder::with_bits(q, r).max_load(load).duplicates(duplicates).layout().unwrap()
}

#[test]
fn full_filters_and_sparse_ones() {
    for device in devices(3) {
        for (q, r, load, n) in
            [(13, 5, 0.99, 8110), (13, 6, 0.95, 7782), (12, 49, 0.99, 4055), (19, 5, 0.95, 4200), (17, 40, 0.9, 2100)]
        {
            build::<RankSelect>(&device, layout(q, r, load, Duplicates::Kept), &hashed(&keys(n, 5)));
        }
    }
}

#[test]
fn long_runs_and_long_shifts() {
    for device in devices(4) {
        for (r, duplicates) in [(10, Duplicates::Dropped), (10, Duplicates::Kept), (40, Duplicates::Kept)] {
            let layout = layout(14, r, 0.95, duplicates);
            let at = |quotient: u64, low: u64| Hashed(quotient << 50 | low << 42);
            // All keys have one quotient: at the start, in the middle, and with nearly all items in the blocks after
            // it.
            for quotient in [0, 64, 1000, 9000] {
                let n = if quotient == 9000 { 7000 } else { 15_000 };
                build::<RankSelect>(&device, layout, &vec![at(quotient, 1); n]);
            }
            // Tiles have nothing but repetitions. Then many quotients are pushed far after their canonical slots, with
            // jumps of many blocks in between.
            let mut hashes = vec![at(5, 7); 9000];
            hashes.extend((0..5000u64).map(|i| at(70 + i * 3 / 5, i % 4)));
            hashes.extend((0..500u64).map(|i| at(12_000 + i, i % 4)));
            build::<RankSelect>(&device, layout, &hashes);
            let mut hashes = vec![at(100, 3); 5000];
            hashes.extend((0..1000u64).map(|i| at(101 + i / 400 * 1000, i % 5)));
            hashes.extend((0..1000u64).map(|i| at(15_000 + i, i % 5)));
            build::<RankSelect>(&device, layout, &hashes);
            // The last quotients have items in the overflow region.
            let last = (1 << 14) - 1;
            let n = if duplicates == Duplicates::Kept { 60 } else { 300 };
            build::<RankSelect>(&device, layout, &(0..n).map(|i| at(last - i / 30, i % 30)).collect::<Vec<_>>());
        }
    }
}

#[test]
fn every_slot_of_a_small_filter_and_every_remainder() {
    for device in devices(5) {
        for r in [1, 3, 62 - 9, 55] {
            let layout = layout(9, r, 0.95, Duplicates::Kept);
            let hashes: Vec<_> = (0..480u64).map(|i| Hashed(i << 55 | mix(i, 3) >> 9)).collect();
            build::<RankSelect>(&device, layout, &hashes);
            build::<RankSelect>(&device, layout, &vec![Hashed(0); 480]);
            build::<RankSelect>(&device, layout, &(0..480u64).map(|i| Hashed(i << 46 | 3 << 60)).collect::<Vec<_>>());
        }
    }
}

/// Changes a copy of a filter in one pass; returns `None` if the pass gives up.
fn in_one_pass(filter: &DeviceFilter, batch: &[Hashed], change: Change) -> Option<(DeviceFilter, u64)> {
    let (layout, stream) = (*filter.layout(), filter.device().new_stream().unwrap());
    let fingerprints: Vec<u64> = batch.iter().map(|key| layout.fingerprint(key).unwrap()).collect();
    let batch = Fingerprints::from_host(&layout, &stream, &fingerprints).unwrap().sorted(&layout, &stream).unwrap();
    let mut copy = filter.try_clone().unwrap();
    let before = copy.len();
    (copy.words, copy.items) = rebuild::rebuilt(&stream, &layout, &copy.words, &batch, change).unwrap()?;
    let changed = copy.len().abs_diff(before);
    Some((copy, changed))
}

/// Inserts and removes a batch on host and device, by any method and in one pass. Returns whether that gave up.
fn change_both(filter: &mut DeviceFilter, host: &mut RankSelectQuotientFilter, batch: &[Hashed]) -> bool {
    let copy = host.clone();
    let grown = in_one_pass(filter, batch, Change::Insert);
    let inserted = host.insert_bulk(batch).unwrap();
    assert_eq!(filter.insert_bulk(batch).unwrap(), inserted);
    same(filter, host);
    let gave_up = grown.is_none();
    if let Some((grown, changed)) = grown {
        assert_eq!(changed, inserted);
        same(&grown, host);
    }
    let shrunk = in_one_pass(filter, batch, Change::Remove);
    let removed = host.remove_bulk(batch).unwrap();
    assert_eq!(filter.remove_bulk(batch).unwrap(), removed);
    same(filter, host);
    if let Some((shrunk, changed)) = shrunk {
        assert_eq!(changed, removed);
        same(&shrunk, host);
    }
    if host.layout().duplicates() == Duplicates::Kept {
        assert!(*host == copy);
    }
    gave_up
}

#[test]
fn batches_across_tiles() {
    for device in devices(9) {
        for (q, r, duplicates, load) in [
            (13, 5, Duplicates::Dropped, 0.95),
            (13, 16, Duplicates::Kept, 0.6),
            (13, 40, Duplicates::Dropped, 0.9),
            (12, 51, Duplicates::Kept, 0.95),
            (14, 3, Duplicates::Kept, 0.05),
            (6, 9, Duplicates::Kept, 0.5),
            (7, 4, Duplicates::Dropped, 0.5),
        ] {
            let layout = layout(q, r, 0.97, duplicates);
            let n = (layout.quotients() as f64 * load) as usize;
            let (mut host, mut filter) = build::<RankSelect>(&device, layout, &hashed(&keys(n, 1)));
            let most = layout.limit() as usize - n;
            // The batch has new keys, some of them twice, and stored ones.
            let mut batch = keys(most / 3, 2);
            batch.extend_from_within(..most / 8);
            batch.extend(keys(n, 1).into_iter().step_by(1 + 8 * n / most.max(1)));
            assert!(!change_both(&mut filter, &mut host, &hashed(&batch)));
            assert!(!change_both(&mut filter, &mut host, &hashed(&keys(1, 3))));
            // All keys are removed, and more.
            let all = keys(n + 50, 1);
            assert_eq!(filter.remove_bulk(&hashed(&all)).unwrap(), host.remove_bulk(&hashed(&all)).unwrap());
            same(&filter, &host);
            assert!(!change_both(&mut filter, &mut host, &hashed(&keys(most / 2, 4))));
        }
    }
}

#[test]
fn crowded_batches_and_crowded_filters() {
    for device in devices(10) {
        for (r, duplicates) in [(14, Duplicates::Kept), (40, Duplicates::Kept), (20, Duplicates::Dropped)] {
            let layout = layout(13, r, 0.95, duplicates);
            let at = |quotient: u64, low: u64| Hashed(quotient << 51 | low << 37);
            // A tile has as many items as shared memory holds, one more, and far more. Others have far shifts, or no
            // items of their own.
            let spread: Vec<_> = (0..1000).map(|i| at(i * 8 + 5, i % 7)).collect();
            for (crowd, gives_up) in [(2000u64, false), (2772, false), (2773, true), (5000, true)] {
                // The batch has 44 keys with quotients of the same tile.
                let (mut host, mut filter) = build::<RankSelect>(&device, layout, &spread[..300]);
                let batch: Vec<_> = (0..crowd).map(|i| at(2100 + i % 5, i)).collect();
                assert_eq!(change_both(&mut filter, &mut host, &batch), gives_up);
            }
            let crowd: Vec<_> = (0..5000).map(|i| at(100 + i % 1500, i / 3)).collect();
            let (mut host, mut filter) = build::<RankSelect>(&device, layout, &crowd);
            change_both(&mut filter, &mut host, &spread);
            change_both(&mut filter, &mut host, &[at(7000, 3), at(7000, 3), at(8191, 0), at(0, 0)]);
            assert_eq!(filter.remove_bulk(&crowd[..4000]).unwrap(), host.remove_bulk(&crowd[..4000]).unwrap());
            same(&filter, &host);
            // Too many keys are an error, and nothing is changed.
            let error = filter.insert_bulk(&keys(9000, 7)).unwrap_err();
            assert!(matches!(error, Error::Full { .. }), "{error}");
            same(&filter, &host);
        }
    }
}

#[test]
fn fingerprints_lose_more_bits_than_remainders_have() {
    for device in devices(8) {
        // Fingerprints have 34 bits, 18 of them in the remainder, in filters that keep 11 or 15.
        for (q, r) in [(6, 5), (9, 6), (12, 3)] {
            let target = layout(q, r, 0.95, Duplicates::Kept);
            let some = keys(40, 5);
            let other = RankSelectBuilder::with_bits(16, 18).duplicates(Duplicates::Kept).build_from(&some).unwrap();
            let mut host = RankSelectQuotientFilter::with_layout(target).unwrap();
            let mut filter = host.to_device(&device).unwrap();
            host.merge(&other).unwrap();
            filter.merge(&other.to_device(&device).unwrap()).unwrap();
            same(&filter, &host);
        }
    }
}

//! Every method gives the bytes of the host's filter; random sequences of batches at tiny and at larger `q`, full filters,
//! batches that do not fit, and builds by regions.

use proptest::prelude::*;
use warpset_core::hash::mix;
use warpset_gpu::Device;
use warpset_gpu::testing::{devices, is_sanitized};

use super::UpdateMethod;
use crate::gpu::{QuotientFilter, RankSelectQuotientFilter as DeviceFilter};
use crate::rank_select::gpu::BuildMethod;
use crate::{Duplicates, Error, Hashed, Layout, RankSelect, RankSelectBuilder, RankSelectQuotientFilter as HostFilter};

const METHODS: [UpdateMethod; 4] =
    [UpdateMethod::Regions, UpdateMethod::InPlace, UpdateMethod::Rebuild, UpdateMethod::Automatic];

fn layout(q: u32, r: u32, load: f64, keep: bool) -> Layout {
    let duplicates = if keep { Duplicates::Kept } else { Duplicates::Dropped };
    RankSelectBuilder::with_bits(q, r).max_load(load).duplicates(duplicates).layout().unwrap()
}

/// Hashes of these fingerprints.
fn hashes(layout: &Layout, fingerprints: &[u64]) -> Vec<Hashed> {
    fingerprints.iter().map(|&f| Hashed(f << (64 - layout.fingerprint_bits()))).collect()
}

/// Inserts or removes a batch by each method, from the same filter; all must be what the host makes of it.
fn check(device: &Device, host: &mut HostFilter, batch: &[u64], removes: bool) -> Result<(), TestCaseError> {
    let before = host.clone();
    let keys = hashes(before.layout(), batch);
    let on_device = device.from_slice(&keys).unwrap();
    let expected = if removes { Ok(host.remove_bulk(&keys)) } else { host.insert_bulk(&keys) };
    for method in METHODS {
        let mut filter = DeviceFilter::from_host(device, &before).unwrap();
        let found = if removes {
            filter.remove_device_with(on_device.as_slice(), method)
        } else {
            filter.insert_device_with(on_device.as_slice(), method)
        };
        match (&expected, &found) {
            (Ok(expected), Ok(found)) => prop_assert_eq!(expected, found, "{:?}", method),
            (Err(expected), Err(found)) => prop_assert_eq!(expected.to_string(), found.to_string(), "{:?}", method),
            _ => return Err(TestCaseError::fail(format!("{method:?}: {expected:?} and {found:?}"))),
        }
        prop_assert_eq!(filter.len(), host.len());
        prop_assert!(filter.to_host().unwrap() == *host, "{:?}: other bytes", method);
    }
    Ok(())
}

/// Batches of fingerprints, and whether they are removed; half of the fingerprints crowd near the end.
fn batches(layout: Layout, most: usize) -> impl Strategy<Value = Vec<(Vec<u64>, bool)>> {
    let max = layout.last_fingerprint();
    let fingerprint = prop_oneof![0..=max, (0..=max / 8).prop_map(move |f| max - f)];
    prop::collection::vec((prop::collection::vec(fingerprint, 0..most), any::<bool>()), 1..6)
}

/// Tiny filters, in which every shape of cluster occurs.
fn tiny() -> impl Strategy<Value = (Layout, Vec<(Vec<u64>, bool)>, u64)> {
    (1..9u32, 1..5u32, 0.5..0.99, any::<bool>()).prop_flat_map(|(q, r, load, keep)| {
        let layout = layout(q, r, load, keep);
        (Just(layout), batches(layout, (layout.limit() as usize / 2).max(3)), any::<u64>())
    })
}

/// Remainders of any width.
fn wide() -> impl Strategy<Value = (Layout, Vec<(Vec<u64>, bool)>, u64)> {
    (3..9u32, 5..=61u32, any::<bool>()).prop_flat_map(|(q, r, keep)| {
        let layout = layout(q.min(64 - r), r, 0.95, keep);
        (Just(layout), batches(layout, 60), any::<u64>())
    })
}

fn behaves(layout: Layout, batches: &[(Vec<u64>, bool)], seed: u64) -> Result<(), TestCaseError> {
    for device in devices(seed) {
        let mut host = HostFilter::with_layout(layout).unwrap();
        for (batch, removes) in batches {
            check(&device, &mut host, batch, *removes)?;
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if is_sanitized() { 3 } else { 12 }, ..ProptestConfig::default() })]

    #[test]
    fn tiny_filters_behave_like_the_hosts((layout, batches, seed) in tiny()) {
        behaves(layout, &batches, seed)?;
    }

    #[test]
    fn filters_of_every_width_behave_like_the_hosts((layout, batches, seed) in wide()) {
        behaves(layout, &batches, seed)?;
    }
}

fn some(layout: &Layout, n: usize, seed: u64) -> Vec<u64> {
    (0..n as u64).map(|i| mix(i, seed) >> (64 - layout.fingerprint_bits())).collect()
}

#[test]
fn full_filters() {
    for device in devices(7) {
        for (keep, r) in [(false, 5), (true, 5), (true, 13), (false, 40)] {
            let layout = layout(12, r, 0.95, keep);
            let all = some(&layout, layout.limit() as usize, 1);
            let mut host = HostFilter::from_fingerprints(layout, &all[..all.len() * 9 / 10]).unwrap();
            check(&device, &mut host, &all[all.len() * 9 / 10..], false).unwrap();
            // Absent ones, and some twice.
            let gone = [&all[..1000], &all[..50], &some(&layout, 300, 2)].concat();
            check(&device, &mut host, &gone, true).unwrap();
            check(&device, &mut host, &all[..100], false).unwrap();
            check(&device, &mut host, &[], true).unwrap();
        }
    }
}

#[test]
fn what_does_not_fit_changes_nothing() {
    for device in devices(8) {
        let full = layout(10, 8, 0.9, true);
        let all = some(&full, full.limit() as usize, 3);
        let mut host = HostFilter::from_fingerprints(full, &all).unwrap();
        check(&device, &mut host, &all[..2], false).unwrap();
        // After the last quotient there is no room for that many.
        let layout = Layout { limit: 4000, ..layout(12, 8, 0.1, true) };
        let mut host = HostFilter::with_layout(layout).unwrap();
        let room = (layout.slots() - layout.quotients()) as usize;
        check(&device, &mut host, &vec![layout.last_fingerprint(); room - 10], false).unwrap();
        let too_many = vec![layout.last_fingerprint(); room + 10];
        assert!(matches!(host.clone().insert_fingerprints_bulk(&too_many), Err(Error::OverflowRegionFull { .. })));
        check(&device, &mut host, &too_many, false).unwrap();
    }
}

#[test]
fn one_fingerprint_many_times() {
    for device in devices(9) {
        for keep in [true, false] {
            let layout = layout(8, 6, 0.9, keep);
            let mut host = HostFilter::with_layout(layout).unwrap();
            check(&device, &mut host, &some(&layout, 60, 4), false).unwrap();
            // More than a round in place inserts for one group.
            check(&device, &mut host, &[1234; 70], false).unwrap();
            check(&device, &mut host, &[1234; 40], true).unwrap();
            check(&device, &mut host, &[1234; 40], true).unwrap();
        }
    }
}

#[test]
fn builds_by_regions_are_the_hosts() {
    for device in devices(10) {
        for (q, r, load, n) in
            [(1, 5, 0.9, 1), (6, 13, 0.9, 0), (9, 5, 0.95, 480), (12, 8, 0.9, 3600), (11, 40, 0.7, 1400)]
        {
            for keep in [true, false] {
                let layout = layout(q, r, load, keep);
                let mut keys = hashes(&layout, &some(&layout, n.min(layout.limit() as usize), 5));
                if !keep {
                    keys.extend_from_within(..n / 4);
                }
                let host = RankSelectBuilder::with_layout(layout).build_from(&keys).unwrap();
                let keys = device.from_slice(&keys).unwrap();
                let builder = RankSelectBuilder::with_layout(layout).on(&device);
                let filter: QuotientFilter<RankSelect> =
                    builder.build_from_device_with(keys.as_slice(), BuildMethod::RegionInserts).unwrap();
                assert!(filter.to_host().unwrap() == host, "{layout:?}");
            }
        }
        // Too many: the error is that of the scan.
        let layout = layout(8, 20, 0.5, true);
        let keys = device.from_slice(&hashes(&layout, &some(&layout, 129, 6))).unwrap();
        let builder = RankSelectBuilder::with_layout(layout).on(&device);
        let refused = builder.build_from_device_with(keys.as_slice(), BuildMethod::RegionInserts);
        assert!(matches!(refused, Err(Error::Full { .. })));
    }
}

//! Every method gives the bytes of the host's filter and of the multiset, for both kinds of slots; random sequences of
//! batches at tiny and at larger `q`, full filters, batches that do not fit.

use proptest::prelude::*;
use warpset_core::hash::mix;
use warpset_core::quotient::slots::Container;
use warpset_gpu::Device;
use warpset_gpu::testing::{devices, is_sanitized};

use super::UpdateMethod;
use crate::gpu::{DeviceSlotKind, QuotientFilter};
use crate::{
    Builder, Duplicates, Error, Hashed, Insert, Layout, QuotientFilter as HostFilter, RankSelect, Remove, Standard,
};

const METHODS: &[UpdateMethod] = &[UpdateMethod::InPlace, UpdateMethod::Rebuild, UpdateMethod::Auto];

/// Returns a layout; slots lie in bytes if `packed` is not set and there are such slots of this kind.
fn layout<S: DeviceSlotKind>(q: u32, r: u32, load: f64, packed: bool, keep: bool) -> Layout {
    let duplicates = if keep { Duplicates::Kept } else { Duplicates::Dropped };
    let layout = Builder::<S>::with_bits(q, r).max_load(load).duplicates(duplicates).layout().unwrap();
    let container = if packed || !S::lies_in(Container::Bytes) { Container::Packed } else { Container::Bytes };
    Layout { container, ..layout }
}

/// Returns hashes with these fingerprints.
fn hashes(layout: &Layout, fingerprints: &[u64]) -> Vec<Hashed> {
    fingerprints.iter().map(|&f| Hashed(f << (64 - layout.fingerprint_bits()))).collect()
}

/// Checks a batch by all methods.
fn check<S: DeviceSlotKind>(
    device: &Device,
    host: &mut HostFilter<S>,
    batch: &[u64],
    removes: bool,
) -> Result<(), TestCaseError> {
    check_by(METHODS, device, host, batch, removes)
}

/// Inserts or removes a batch by each method, from the same filter. The result must be the host's.
fn check_by<S: DeviceSlotKind>(
    methods: &[UpdateMethod],
    device: &Device,
    host: &mut HostFilter<S>,
    batch: &[u64],
    removes: bool,
) -> Result<(), TestCaseError> {
    let before = host.clone();
    let keys = hashes(before.layout(), batch);
    let on_device = device.from_slice(&keys).unwrap();
    let expected = if removes { Ok(host.remove_bulk(&keys)?) } else { host.insert_bulk(&keys) };
    for &method in methods {
        let mut filter = QuotientFilter::from_host(device, &before).unwrap();
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

/// Draws batches of fingerprints with their direction; half of the fingerprints crowd near the end.
fn batches(layout: Layout, most: usize) -> impl Strategy<Value = Vec<(Vec<u64>, bool)>> {
    let max = layout.last_fingerprint();
    let fingerprint = prop_oneof![0..=max, (0..=max / 8).prop_map(move |f| max - f)];
    prop::collection::vec((prop::collection::vec(fingerprint, 0..most), any::<bool>()), 1..6)
}

/// Parameters of a filter, batches for it, and a seed of the emulator.
type Case = (Layout, Vec<(Vec<u64>, bool)>, u64);

/// Draws tiny filters, in which every shape of cluster occurs.
fn tiny<S: DeviceSlotKind>() -> impl Strategy<Value = Case> {
    (1..9u32, 1..5u32, 0.5..0.99, any::<bool>(), any::<bool>()).prop_flat_map(|(q, r, load, packed, keep)| {
        let layout = layout::<S>(q, r, load, packed, keep);
        (Just(layout), batches(layout, (layout.limit() as usize / 2).max(3)), any::<u64>())
    })
}

/// Draws filters with remainders of any width.
fn wide<S: DeviceSlotKind>() -> impl Strategy<Value = Case> {
    (3..9u32, 5..=61u32, any::<bool>(), any::<bool>()).prop_flat_map(|(q, r, packed, keep)| {
        let layout = layout::<S>(q.min(64 - r), r, 0.95, packed, keep);
        (Just(layout), batches(layout, 60), any::<u64>())
    })
}

fn behaves<S: DeviceSlotKind>((layout, batches, seed): Case) -> Result<(), TestCaseError> {
    for device in devices(seed) {
        let mut host = HostFilter::<S>::with_layout(layout).unwrap();
        for (batch, removes) in &batches {
            check(&device, &mut host, batch, *removes)?;
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if is_sanitized() { 3 } else { 12 }, ..ProptestConfig::default() })]

    #[test]
    fn tiny_filters_behave_like_the_hosts(standard in tiny::<Standard>(), rank_select in tiny::<RankSelect>()) {
        behaves::<Standard>(standard)?;
        behaves::<RankSelect>(rank_select)?;
    }

    #[test]
    fn filters_of_every_width_behave_like_the_hosts(
        standard in wide::<Standard>(),
        rank_select in wide::<RankSelect>(),
    ) {
        behaves::<Standard>(standard)?;
        behaves::<RankSelect>(rank_select)?;
    }
}

fn some(layout: &Layout, n: usize, seed: u64) -> Vec<u64> {
    (0..n as u64).map(|i| mix(i, seed) >> (64 - layout.fingerprint_bits())).collect()
}

/// Fills the last part of a filter of `before` fingerprints up to `after`, and removes some, absent ones and some
/// twice.
fn fill_up<S: DeviceSlotKind>(device: &Device, layout: Layout, before: usize, after: usize) {
    let all = some(&layout, after, 1);
    let mut host = HostFilter::<S>::from_fingerprints(layout, &all[..before]).unwrap();
    check(device, &mut host, &all[before..], false).unwrap();
    let gone = [&all[..after / 4], &all[..50], &some(&layout, 300, 2)].concat();
    check(device, &mut host, &gone, true).unwrap();
    check(device, &mut host, &all[..100], false).unwrap();
    check(device, &mut host, &[], true).unwrap();
}

#[test]
fn full_filters_across_tiles() {
    for device in devices(7) {
        // There are two tiles of quotients and the overflow region.
        for (packed, keep, r) in [(true, false, 5), (false, true, 5), (true, true, 13)] {
            let layout = layout::<Standard>(14, r, 0.95, packed, keep);
            // A long cluster takes many rounds.
            let (before, after) = if is_sanitized() { (9_000, 9_500) } else { (14_000, layout.limit() as usize) };
            fill_up::<Standard>(&device, layout, before, after);
        }
        for (keep, r) in [(false, 5), (true, 5), (true, 13), (false, 40)] {
            let layout = layout::<RankSelect>(12, r, 0.95, true, keep);
            fill_up::<RankSelect>(&device, layout, layout.limit() as usize * 9 / 10, layout.limit() as usize);
        }
    }
}

/// Rewrites filters in arithmetic relative to blocks, and filters of few quotients in that of the whole filter.
#[test]
fn rebuilds_of_every_form() {
    for device in devices(10) {
        for (q, r) in [(10, 5), (8, 24), (7, 25), (6, 26), (5, 5), (8, 33), (10, 40), (7, 57), (6, 58), (3, 61)] {
            for (packed, keep) in [(true, true), (true, false), (false, true), (false, false)] {
                let layout = layout::<Standard>(q, r, 0.95, packed, keep);
                let all = some(&layout, layout.limit() as usize, 5);
                let half = all.len() / 2;
                let mut host = HostFilter::<Standard>::from_fingerprints(layout, &all[..half]).unwrap();
                check_by(&[UpdateMethod::Rebuild], &device, &mut host, &all[half..], false).unwrap();
                check_by(&[UpdateMethod::Rebuild], &device, &mut host, &all[half / 2..][..half], true).unwrap();
                let extremes = [0, layout.last_fingerprint(), layout.last_fingerprint()];
                check_by(&[UpdateMethod::Rebuild], &device, &mut host, &extremes, false).unwrap();
                check_by(&[UpdateMethod::Rebuild], &device, &mut host, &extremes, true).unwrap();
            }
        }
    }
}

fn does_not_fit<S: DeviceSlotKind>(device: &Device, packed: bool) {
    let full = layout::<S>(10, 8, 0.9, packed, true);
    let all = some(&full, full.limit() as usize, 3);
    let mut host = HostFilter::<S>::from_fingerprints(full, &all).unwrap();
    check(device, &mut host, &all[..2], false).unwrap();
    // After the last quotient there are fewer slots.
    let layout = Layout { limit: 4000, ..layout::<S>(12, 8, 0.1, packed, true) };
    let mut host = HostFilter::<S>::with_layout(layout).unwrap();
    let room = (layout.slots() - layout.quotients()) as usize;
    let too_many = vec![layout.last_fingerprint(); room + 10];
    assert!(matches!(host.clone().insert_fingerprints_bulk(&too_many), Err(Error::OverflowRegionFull { .. })));
    check(device, &mut host, &too_many, false).unwrap();
    let keys = device.from_slice(&hashes(&layout, &too_many)).unwrap();
    for &method in METHODS {
        let mut filter = QuotientFilter::<S>::with_layout(device, layout).unwrap();
        let error = filter.insert_device_with(keys.as_slice(), method).unwrap_err();
        assert!(matches!(error, Error::OverflowRegionFull { .. }), "{error}");
        assert!(filter.is_empty());
    }
    check(device, &mut host, &vec![layout.last_fingerprint(); room - 10], false).unwrap();
}

#[test]
fn what_does_not_fit_changes_nothing() {
    for device in devices(8) {
        does_not_fit::<Standard>(&device, true);
        does_not_fit::<Standard>(&device, false);
        does_not_fit::<RankSelect>(&device, true);
    }
}

fn repeated<S: DeviceSlotKind>(device: &Device, keep: bool) {
    let layout = layout::<S>(8, 6, 0.9, true, keep);
    let mut host = HostFilter::<S>::with_layout(layout).unwrap();
    check(device, &mut host, &some(&layout, 60, 4), false).unwrap();
    // The number exceeds what one round in place inserts for a group.
    check(device, &mut host, &[1234; 70], false).unwrap();
    check(device, &mut host, &[1234; 40], true).unwrap();
    check(device, &mut host, &[1234; 40], true).unwrap();
}

#[test]
fn one_fingerprint_many_times() {
    for device in devices(9) {
        for keep in [true, false] {
            repeated::<Standard>(&device, keep);
            repeated::<RankSelect>(&device, keep);
        }
    }
}

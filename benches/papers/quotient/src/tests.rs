//! The paper's methods give the bytes of the library's host filters, for every schedule; on CUDA too where there is a
//! device.

use proptest::prelude::*;
use warpset_base::filter::{Insert, Remove};
use warpset_core::hash::mix;
use warpset_gpu::Device;
use warpset_gpu::testing::{devices, is_sanitized};
use warpset_quotient::gpu::QuotientFilter;
use warpset_quotient::{
    Builder, Container, Duplicates, Error, Hashed, Layout, QuotientFilter as HostFilter, RankSelect, RankSelectBuilder,
    Standard, StandardBuilder,
};

use super::*;

/// Returns standard layouts of every container, with and without copies.
fn layouts(q: u32, load: f64) -> Vec<Layout> {
    [
        (5, Container::Packed, Duplicates::Dropped),
        (5, Container::Bytes, Duplicates::Kept),
        (13, Container::Bytes, Duplicates::Dropped),
        (13, Container::Packed, Duplicates::Kept),
        (40, Container::Packed, Duplicates::Dropped),
    ]
    .map(|(r, container, duplicates)| {
        let builder = StandardBuilder::with_bits(q, r).container(container);
        builder.max_load(load).duplicates(duplicates).layout().unwrap()
    })
    .into()
}

fn keys(n: usize, seed: u64) -> Vec<u64> {
    (0..n as u64).map(|i| mix(i, seed)).collect()
}

/// Checks that the definition of each layout of the paper gives the slots of a filter's fingerprints.
fn definitions_agree(filter: &HostFilter<Standard>) {
    let layout = filter.layout();
    let quotients: Vec<u64> = filter.fingerprints().map(|f| f >> layout.remainder_bits()).collect();
    let expected = host::slots(StandardBuild::Scan, &quotients, layout.quotient_bits());
    for method in StandardBuild::ALL {
        assert_eq!(host::slots(method, &quotients, layout.quotient_bits()), expected, "{method:?}");
    }
}

#[test]
fn methods_give_the_same_bytes() {
    for device in devices(6) {
        for (q, load, n) in [(1, 0.9, 1), (4, 0.9, 0), (5, 0.9, 28), (7, 0.95, 121), (11, 0.95, 1945), (12, 0.9, 100)] {
            for layout in layouts(q, load) {
                let mut some = keys(n.min(layout.limit() as usize), 3);
                let repeated = some.len() / 3;
                some.extend_from_within(..repeated);
                some.truncate(layout.limit() as usize);
                let expected = StandardBuilder::with_layout(layout).build_from(&some).unwrap();
                definitions_agree(&expected);
                for method in StandardBuild::ALL {
                    let builder = StandardBuilder::with_layout(layout).on(&device);
                    let built = build_from(&builder, &some, method).unwrap();
                    assert_eq!(built.len(), expected.len());
                    assert!(built.to_host().unwrap() == expected, "{method:?} {layout:?}");
                }
            }
        }
    }
}

#[test]
fn methods_agree_on_long_clusters_and_on_what_does_not_fit() {
    for device in devices(7) {
        let builder = StandardBuilder::with_bits(9, 30).max_load(0.95).duplicates(Duplicates::Kept);
        let layout = builder.layout().unwrap();
        // One run spills over many segments without items of their own, then there are runs after it.
        let mut hashes = vec![Hashed(3 << 55); 300];
        hashes.extend((0..100u64).map(|i| Hashed((5 + i % 7) << 55 | i << 30)));
        hashes.extend((0..50u64).map(|i| Hashed((400 + i % 5) << 55 | i << 30)));
        let expected = StandardBuilder::with_layout(layout).build_from(&hashes).unwrap();
        definitions_agree(&expected);
        let too_many = keys(layout.limit() as usize + 1, 1);
        // The run ends beyond the overflow region of some 250 slots.
        let last = StandardBuilder::with_bits(10, 8).duplicates(Duplicates::Kept).layout().unwrap();
        for method in StandardBuild::ALL {
            let builder = StandardBuilder::with_layout(layout).on(&device);
            let built = build_from(&builder, &hashes, method).unwrap();
            assert!(built.to_host().unwrap() == expected, "{method:?}");

            assert!(matches!(build_from(&builder, &too_many, method), Err(Error::Full { .. })));
            let hashes = [Hashed(!0); 600];
            let builder = StandardBuilder::with_layout(last);
            let spilled = build_from(&builder.on(&device), &hashes, method).unwrap_err();
            let on_host = builder.build_from(&hashes).unwrap_err();
            assert_eq!(spilled.to_string(), on_host.to_string());
        }
    }
}

fn layout(q: u32, r: u32, load: f64, keep: bool) -> Layout {
    let duplicates = if keep { Duplicates::Kept } else { Duplicates::Dropped };
    RankSelectBuilder::with_bits(q, r).max_load(load).duplicates(duplicates).layout().unwrap()
}

/// Returns hashes of `n` fingerprints.
fn some_hashes(layout: &Layout, n: usize, seed: u64) -> Vec<Hashed> {
    let unused = 64 - layout.fingerprint_bits();
    (0..n as u64).map(|i| Hashed(mix(i, seed) >> unused << unused)).collect()
}

#[test]
fn builds_by_regions_are_the_hosts() {
    for device in devices(10) {
        for (q, r, load, n) in
            [(1, 5, 0.9, 1), (6, 13, 0.9, 0), (9, 5, 0.95, 480), (12, 8, 0.9, 3600), (11, 40, 0.7, 1400)]
        {
            for keep in [true, false] {
                let layout = layout(q, r, load, keep);
                let mut keys = some_hashes(&layout, n.min(layout.limit() as usize), 5);
                if !keep {
                    keys.extend_from_within(..n / 4);
                }
                let host = RankSelectBuilder::with_layout(layout).build_from(&keys).unwrap();
                let keys = device.from_slice(&keys).unwrap();
                let builder = RankSelectBuilder::with_layout(layout).on(&device);
                let filter = build_from_device(&builder, keys.as_slice(), RankSelectBuild::RegionInserts).unwrap();
                assert!(filter.to_host().unwrap() == host, "{layout:?}");
            }
        }
        // For too many keys the error is that of the scan.
        let layout = layout(8, 20, 0.5, true);
        let keys = device.from_slice(&some_hashes(&layout, 129, 6)).unwrap();
        let builder = RankSelectBuilder::with_layout(layout).on(&device);
        let refused = build_from_device(&builder, keys.as_slice(), RankSelectBuild::RegionInserts);
        assert!(matches!(refused, Err(Error::Full { .. })));
    }
}

/// Inserts or removes a batch on the device; the filter and the answer must be the host's.
fn check<S: PaperSlots>(
    device: &Device,
    host: &mut HostFilter<S>,
    batch: &[u64],
    removes: bool,
) -> Result<(), TestCaseError> {
    let unused = 64 - host.layout().fingerprint_bits();
    let keys: Vec<Hashed> = batch.iter().map(|&fingerprint| Hashed(fingerprint << unused)).collect();
    let on_device = device.from_slice(&keys).unwrap();
    let mut filter = QuotientFilter::from_host(device, host).unwrap();
    let (expected, found) = if removes {
        (host.remove_bulk(&keys), remove_device(&mut filter, on_device.as_slice()))
    } else {
        (host.insert_bulk(&keys), insert_device(&mut filter, on_device.as_slice()))
    };
    match (&expected, &found) {
        (Ok(expected), Ok(found)) => prop_assert_eq!(expected, found),
        (Err(expected), Err(found)) => prop_assert_eq!(expected.to_string(), found.to_string()),
        _ => return Err(TestCaseError::fail(format!("{expected:?} and {found:?}"))),
    }
    prop_assert_eq!(filter.len(), host.len());
    prop_assert!(filter.to_host().unwrap() == *host, "other bytes");
    Ok(())
}

/// Draws batches of fingerprints with their direction; half of the fingerprints crowd near the end.
fn batches(layout: Layout, most: usize) -> impl Strategy<Value = Vec<(Vec<u64>, bool)>> {
    let max = !0u64 >> (64 - layout.fingerprint_bits());
    let fingerprint = prop_oneof![0..=max, (0..=max / 8).prop_map(move |f| max - f)];
    prop::collection::vec((prop::collection::vec(fingerprint, 0..most), any::<bool>()), 1..6)
}

/// Parameters of a filter, batches for it, and a seed of the emulator.
type Case = (Layout, Vec<(Vec<u64>, bool)>, u64);

/// Draws tiny filters, in which every shape of cluster occurs, and filters with remainders of any width.
fn cases<S: PaperSlots>() -> impl Strategy<Value = Case> {
    let tiny = (1..9u32, 1..5u32, 0.5..0.99);
    let wide = (3..9u32, 5..=61u32, Just(0.95));
    let of = |(q, r, load, packed, keep): (u32, u32, f64, bool, bool)| {
        let (q, in_bytes) = (q.min(64 - r), !packed && S::lies_in(Container::Bytes));
        let builder = Builder::<S>::with_bits(q, r).max_load(load).duplicates(kept(keep));
        let layout = if in_bytes { self::in_bytes(q, r, load, keep) } else { builder.layout().unwrap() };
        let most = (layout.limit() as usize / 2).clamp(3, 60);
        (Just(layout), batches(layout, most), any::<u64>())
    };
    prop_oneof![tiny, wide]
        .prop_flat_map(|(q, r, load)| (Just(q), Just(r), Just(load), any::<bool>(), any::<bool>()))
        .prop_flat_map(of)
}

fn kept(keep: bool) -> Duplicates {
    if keep { Duplicates::Kept } else { Duplicates::Dropped }
}

fn in_bytes(q: u32, r: u32, load: f64, keep: bool) -> Layout {
    let builder = StandardBuilder::with_bits(q, r).container(Container::Bytes);
    builder.max_load(load).duplicates(kept(keep)).layout().unwrap()
}

fn behaves<S: PaperSlots>((layout, batches, seed): Case) -> Result<(), TestCaseError> {
    for device in devices(seed) {
        let mut host = Builder::<S>::with_layout(layout).build().unwrap();
        for (batch, removes) in &batches {
            check(&device, &mut host, batch, *removes)?;
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if is_sanitized() { 6 } else { 24 }, ..ProptestConfig::default() })]

    #[test]
    fn updates_behave_like_the_hosts(standard in cases::<Standard>(), rank_select in cases::<RankSelect>()) {
        behaves::<Standard>(standard)?;
        behaves::<RankSelect>(rank_select)?;
    }
}

/// Fills the last part of a filter, and removes fingerprints, absent ones and some twice.
fn fill_up<S: PaperSlots>(device: &Device, layout: Layout, before: usize, after: usize) {
    let some = |n, seed| keys(n, seed).into_iter().map(|key| key >> (64 - layout.fingerprint_bits()));
    let all: Vec<u64> = some(after, 1).collect();
    let mut host = Builder::<S>::with_layout(layout).build_from_fingerprints(&all[..before]).unwrap();
    check(device, &mut host, &all[before..], false).unwrap();
    let gone: Vec<u64> = all[..after / 4].iter().chain(&all[..50]).copied().chain(some(300, 2)).collect();
    check(device, &mut host, &gone, true).unwrap();
    check(device, &mut host, &[1234; 70], false).unwrap();
    check(device, &mut host, &[1234; 40], true).unwrap();
}

/// Inserts a batch that does not fit.
fn overfill<S: PaperSlots>(device: &Device, layout: Layout) {
    let most = layout.limit() as usize;
    let some = |n, seed| keys(n, seed).into_iter().map(|key| key >> (64 - layout.fingerprint_bits()));
    let all: Vec<u64> = some(most, 1).collect();
    let mut host = Builder::<S>::with_layout(layout).build_from_fingerprints(&all[..most / 2]).unwrap();
    check(device, &mut host, &all, false).unwrap();
}

#[test]
fn full_filters_across_tiles() {
    for device in devices(7) {
        for (keep, r) in [(false, 5), (true, 5), (true, 13), (false, 40)] {
            let layout = layout(12, r, 0.95, keep);
            let (before, after) = (layout.limit() as usize * 9 / 10, layout.limit() as usize);
            fill_up::<RankSelect>(&device, layout, before, after);
            if keep != (r == 13) {
                // A long cluster takes many rounds.
                fill_up::<Standard>(&device, layout, before, before + 100);
            }
            let small = self::layout(8, r, 0.95, keep);
            overfill::<RankSelect>(&device, small);
            overfill::<Standard>(&device, small);
        }
        fill_up::<Standard>(&device, in_bytes(12, 5, 0.95, true), 3500, 3800);
    }
}

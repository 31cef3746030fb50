//! Builds, extraction and merging give the host's bytes, for every method and schedule; on CUDA too where there is a
//! device.

use warpset_base::filter::Filter;
use warpset_core::quotient::slots::Container;
use warpset_gpu::testing::devices;

use super::StandardQuotientFilter;
use super::tests::{keys, layouts};
use crate::{Count, Duplicates, Error, Hashed, Insert, StandardBuilder};

#[test]
fn tiles_far_apart_and_windows() {
    for device in devices(8) {
        for container in [Container::Packed, Container::Bytes] {
            // In sparse filters a tile's slots reach over more windows than it uses. Wide slots have several windows
            // per tile.
            for (q, r, n) in [(19, 5, 4200), (17, 12, 4200), (12, 40, 3500), (12, 49, 3500)] {
                let layout = StandardBuilder::with_bits(q, r).max_load(0.95).container(container).layout().unwrap();
                let some = keys(n, 5);
                let built = StandardBuilder::with_layout(layout).on(&device).build_from(&some).unwrap();
                let expected = StandardBuilder::with_layout(layout).build_from(&some).unwrap();
                assert!(built.to_host().unwrap() == expected, "{layout:?}");
                assert!(built.fingerprints().unwrap().into_iter().eq(expected.fingerprints()), "{layout:?}");
            }
        }
    }
}

#[test]
fn all_repetitions_and_long_shifts() {
    for device in devices(9) {
        for (r, duplicates) in [(10, Duplicates::Dropped), (10, Duplicates::Kept), (40, Duplicates::Kept)] {
            for container in [Container::Packed, Container::Bytes] {
                let builder =
                    StandardBuilder::with_bits(14, r).max_load(0.95).container(container).duplicates(duplicates);
                let layout = builder.layout().unwrap();
                // Tiles have nothing but repetitions; then many quotients are pushed far after their canonical slots.
                let mut hashes = vec![Hashed(5 << 50); 4500];
                hashes.extend((0..2000u64).map(|i| Hashed((6 + i) << 50)));
                let built = StandardBuilder::with_layout(layout).on(&device).build_from(&hashes).unwrap();
                let expected = StandardBuilder::with_layout(layout).build_from(&hashes).unwrap();
                assert!(built.to_host().unwrap() == expected, "{layout:?}");
                assert!(built.fingerprints().unwrap().into_iter().eq(expected.fingerprints()), "{layout:?}");
                assert_eq!(built.distinct().unwrap(), expected.distinct());
                assert_eq!(built.fpr().unwrap(), expected.fpr());
            }
        }
    }
}

#[test]
fn filters_of_different_sizes_are_put_together_as_on_the_host() {
    for device in devices(10) {
        for duplicates in [Duplicates::Dropped, Duplicates::Kept] {
            for (ours, theirs) in [((10, 6), (10, 6)), ((10, 6), (9, 7)), ((8, 8), (11, 5)), ((9, 6), (10, 40))] {
                let build = |(q, r), container, from: usize, n: usize| {
                    let builder =
                        StandardBuilder::with_bits(q, r).max_load(0.95).container(container).duplicates(duplicates);
                    let mut some = keys(130, 1);
                    some.extend_from_within(90..); // repetitions
                    let host = builder.build_from(&some[from..from + n]).unwrap();
                    (StandardQuotientFilter::from_host(&device, &host).unwrap(), host)
                };
                let (mut a, mut host_a) = build(ours, Container::Packed, 0, 120);
                let (b, host_b) = build(theirs, Container::Bytes, 60, 110);
                let (nothing, host_nothing) = build(theirs, Container::Bytes, 0, 0);
                for (other, host_other) in [(&b, &host_b), (&nothing, &host_nothing)] {
                    let common = host_a.intersection_count(host_other).unwrap();
                    assert_eq!(a.intersection_count(other).unwrap(), common);
                    assert_eq!(other.intersection_count(&a).unwrap(), common);
                    let either = host_a.union_count(host_other).unwrap();
                    assert_eq!(a.union_count(other).unwrap(), either);
                    assert_eq!(other.union_count(&a).unwrap(), either);
                }
                a.merge(&b).unwrap();
                host_a.merge(&host_b).unwrap();
                assert!(a.to_host().unwrap() == host_a);
                a.subtract(&b).unwrap();
                host_a.subtract(&host_b).unwrap();
                assert!(a.to_host().unwrap() == host_a);
                let (mut both, mut host_both) = (a.try_clone().unwrap(), host_a.clone());
                both.merge(&b).unwrap();
                host_both.merge(&host_b).unwrap();
                both.intersect(&b).unwrap();
                host_both.intersect(&host_b).unwrap();
                assert!(both.to_host().unwrap() == host_both);
                both.intersect(&nothing).unwrap();
                assert!(both.is_empty());
                a.merge(&nothing).unwrap();
                a.subtract(&nothing).unwrap();
                assert!(a.to_host().unwrap() == host_a);
                a.double().unwrap();
                host_a.double().unwrap();
                assert!(a.to_host().unwrap() == host_a);
                a.halve().unwrap();
                host_a.halve().unwrap();
                let bytes = a.with_container(Container::Bytes).unwrap();
                assert!(bytes.to_host().unwrap() == host_a.with_container(Container::Bytes).unwrap());
                assert_eq!(a.bits_per_key(), host_a.bits_per_key());
                assert_eq!(a.expected_fpr(500), host_a.expected_fpr(500));
            }
        }
        let filter = |bits: (u32, u32), seed, duplicates| {
            let layout = StandardBuilder::with_bits(bits.0, bits.1).seed(seed).duplicates(duplicates).layout().unwrap();
            StandardQuotientFilter::with_layout(&device, layout).unwrap()
        };
        let mut long = filter((8, 8), 1, Duplicates::Dropped);
        for (other, said) in [
            (filter((8, 7), 1, Duplicates::Dropped), "other.merge(&this)"),
            (filter((8, 8), 2, Duplicates::Dropped), "differ in seed"),
            (filter((8, 8), 1, Duplicates::Kept), "`Duplicates::Dropped` here"),
        ] {
            for refused in [long.merge(&other), long.subtract(&other), long.intersect(&other)] {
                assert!(refused.is_err_and(|error| error.to_string().contains(said)));
            }
        }
        let mut short = filter((8, 7), 1, Duplicates::Dropped);
        long.insert_bulk(&[7u64]).unwrap();
        short.merge(&long).unwrap();
        assert_eq!(short.contains_bulk(&[7u64]).unwrap(), [true]);
    }
}

#[test]
fn fingerprints_go_in_and_come_out() {
    for device in devices(11) {
        for layout in layouts(11, 0.95) {
            let expected = StandardBuilder::with_layout(layout).build_from(&keys(1500, 8)).unwrap();
            let mut all: Vec<u64> = expected.fingerprints().collect();
            all.reverse();
            let built = StandardQuotientFilter::from_fingerprints(&device, layout, &all).unwrap();
            assert!(built.to_host().unwrap() == expected);
            all.reverse();
            assert_eq!(built.fingerprints().unwrap(), all);
            assert_eq!(built.fingerprints_device().unwrap().to_vec().unwrap(), all);
            let error = StandardQuotientFilter::from_fingerprints(&device, layout, &[1, !0]).unwrap_err();
            assert!(matches!(error, Error::InvalidFingerprint { .. }), "{error}");
            let mut filter = StandardQuotientFilter::with_layout(&device, layout).unwrap();
            assert!(filter.fingerprints().unwrap().is_empty());
            assert_eq!(filter.count_bulk(&[7u64]).unwrap(), [0]);

            let mut host = crate::StandardQuotientFilter::with_layout(layout).unwrap();
            let repeated = [&all[..300], &all[..100]].concat();
            let stored = filter.insert_fingerprints_bulk(&repeated).unwrap();
            assert_eq!(stored, host.insert_fingerprints_bulk(&repeated).unwrap());
            let asked = keys(700, 8);
            assert_eq!(filter.count_bulk(&asked).unwrap(), host.count_bulk(&asked).unwrap());
            let removed = filter.remove_fingerprints_bulk(&all[50..250]).unwrap();
            assert_eq!(removed, host.remove_fingerprints_bulk(&all[50..250]).unwrap());
            assert!(filter.to_host().unwrap() == host);
            assert!(matches!(filter.insert_fingerprints_bulk(&[!0]), Err(Error::InvalidFingerprint { .. })));
        }
    }
}

#[test]
fn rates_of_false_positives() {
    for device in devices(12) {
        let (q, r) = if device.is_emulator() { (10, 5) } else { (20, 5) };
        for load in [0.5, 0.95] {
            let layout = StandardBuilder::with_bits(q, r).max_load(0.96).layout().unwrap();
            let some = keys((load * layout.quotients() as f64) as usize, 8);
            let filter = StandardBuilder::with_layout(layout).on(&device).build_from(&some).unwrap();
            assert_eq!(filter.count_contained_bulk(&some).unwrap(), some.len());
            let samples = layout.quotients();
            let expected = filter.fpr().unwrap();
            let deviation = (expected * (1.0 - expected) / samples as f64).sqrt();
            let measured = filter.measured_fpr(samples, 99).unwrap();
            assert!((measured - expected).abs() < 4.0 * deviation, "{measured} {expected}");
            if device.is_emulator() {
                assert_eq!(measured, filter.to_host().unwrap().measured_fpr(samples, 99));
            }
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]

    /// Checks every shape of a cluster, as far as the overflow region takes it.
    #[test]
    fn any_multiset_of_fingerprints(
        q in 1u32..6, r in 1u32..5, bytes: bool, kept: bool, schedule: u64,
        picks in proptest::collection::vec(proptest::prelude::any::<u16>(), 0..30),
        others in proptest::collection::vec(proptest::prelude::any::<u16>(), 0..10),
    ) {
        let container = if bytes { Container::Bytes } else { Container::Packed };
        let duplicates = if kept { Duplicates::Kept } else { Duplicates::Dropped };
        let layout = StandardBuilder::with_bits(q, r).max_load(0.95).container(container).duplicates(duplicates).layout().unwrap();
        let fingerprints = |picks: &[u16], most: usize| -> Vec<u64> {
            picks.iter().take(most).map(|&pick| u64::from(pick) >> (16 - q - r)).collect()
        };
        let some = fingerprints(&picks, layout.limit() as usize);
        let device = warpset_gpu::testing::deferred(schedule);
        let expected = crate::StandardQuotientFilter::from_fingerprints(layout, &some);
        let built = StandardQuotientFilter::from_fingerprints(&device, layout, &some);
        match (expected, built) {
            (Ok(mut expected), Ok(mut built)) => {
                proptest::prop_assert!(built.to_host().unwrap() == expected);
                proptest::prop_assert!(built.fingerprints().unwrap().into_iter().eq(expected.fingerprints()));
                let others = fingerprints(&others, layout.limit() as usize);
                if let Ok(other) = crate::StandardQuotientFilter::from_fingerprints(layout, &others) {
                    let on_device = StandardQuotientFilter::from_host(&device, &other).unwrap();
                    proptest::prop_assert_eq!(
                        built.intersection_count(&on_device).unwrap(), expected.intersection_count(&other).unwrap()
                    );
                    built.subtract(&on_device).unwrap();
                    expected.subtract(&other).unwrap();
                    proptest::prop_assert!(built.to_host().unwrap() == expected);
                }
            }
            (Err(expected), Err(built)) => proptest::prop_assert_eq!(expected.to_string(), built.to_string()),
            (expected, built) => proptest::prop_assert!(false, "{:?} {:?}", expected.err(), built.err()),
        }
    }
}

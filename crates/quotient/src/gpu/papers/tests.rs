//! Builds by the paper's methods: the same bytes as on the host, for any schedule; on CUDA too where there is a device.

use warpset_core::hash::mix;
use warpset_gpu::testing::devices;

use crate::gpu::tests::{keys, layouts};
use crate::standard::BuildMethod;
use crate::{Duplicates, Error, Hashed, Layout, RankSelectBuilder, StandardBuilder, rank_select};

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
                for method in BuildMethod::ALL {
                    let on_host = StandardBuilder::with_layout(layout).build_from_with(&some, method).unwrap();
                    assert!(on_host == expected, "{method:?} {layout:?}");
                    let built =
                        StandardBuilder::with_layout(layout).on(&device).build_from_with(&some, method).unwrap();
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
        // One run that spills over many segments without items of their own, then runs after it.
        let mut hashes = vec![Hashed(3 << 55); 300];
        hashes.extend((0..100u64).map(|i| Hashed((5 + i % 7) << 55 | i << 30)));
        hashes.extend((0..50u64).map(|i| Hashed((400 + i % 5) << 55 | i << 30)));
        let expected = StandardBuilder::with_layout(layout).build_from(&hashes).unwrap();
        let too_many = keys(layout.limit() as usize + 1, 1);
        // Beyond the overflow region, some 250 slots.
        let last = StandardBuilder::with_bits(10, 8).duplicates(Duplicates::Kept).layout().unwrap();
        for method in BuildMethod::ALL {
            let on_host = StandardBuilder::with_layout(layout).build_from_with(&hashes, method).unwrap();
            assert!(on_host == expected, "{method:?}");
            let built = StandardBuilder::with_layout(layout).on(&device).build_from_with(&hashes, method).unwrap();
            assert!(built.to_host().unwrap() == expected, "{method:?}");

            let build = |keys: &[u64]| StandardBuilder::with_layout(layout).on(&device).build_from_with(keys, method);
            assert!(matches!(build(&too_many), Err(Error::Full { .. })));
            let hashes = [Hashed(!0); 600];
            let spilled = StandardBuilder::with_layout(last).on(&device).build_from_with(&hashes, method).unwrap_err();
            let on_host = StandardBuilder::with_layout(last).build_from_with(&hashes, method).unwrap_err();
            assert_eq!(spilled.to_string(), on_host.to_string());
        }
    }
}

fn layout(q: u32, r: u32, load: f64, keep: bool) -> Layout {
    let duplicates = if keep { Duplicates::Kept } else { Duplicates::Dropped };
    RankSelectBuilder::with_bits(q, r).max_load(load).duplicates(duplicates).layout().unwrap()
}

/// Hashes of `n` fingerprints.
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
                let filter =
                    builder.build_from_device_with(keys.as_slice(), rank_select::BuildMethod::RegionInserts).unwrap();
                assert!(filter.to_host().unwrap() == host, "{layout:?}");
            }
        }
        // Too many: the error is that of the scan.
        let layout = layout(8, 20, 0.5, true);
        let keys = device.from_slice(&some_hashes(&layout, 129, 6)).unwrap();
        let builder = RankSelectBuilder::with_layout(layout).on(&device);
        let refused = builder.build_from_device_with(keys.as_slice(), rank_select::BuildMethod::RegionInserts);
        assert!(matches!(refused, Err(Error::Full { .. })));
    }
}

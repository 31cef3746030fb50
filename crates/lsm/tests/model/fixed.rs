//! Fixed streams of batches: the largest number of levels, many elements, bad arguments.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use warpset_base::filter::LengthMismatch;
use warpset_base::testing::tier;
use warpset_lsm::{CleanupPolicy, Error, Lsm, Ranges, SortedArray};

use super::queries::model_range;

/// Returns evenly distributed numbers, the same for the same seed.
fn spread(i: u64, seed: u64) -> u64 {
    let mixed = (i ^ seed << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 8
}

/// Tests full batches, as in the paper: 1 to 64 resident ones, each with a tenth of removals.
#[test]
fn any_number_of_resident_batches() {
    let builder = Lsm::<u32, u64>::builder().batch_size(256).cleanup(CleanupPolicy::Manual);
    let mut lsm = builder.build().unwrap();
    let mut model = BTreeMap::new();
    for batch in 1..=64u64 {
        let keys: Vec<u32> = (0..256).map(|i| (spread(i, batch) % 6000) as u32).collect();
        let values: Vec<u64> = (0..256).map(|i| spread(i, batch + 1000)).collect();
        let removed: Vec<bool> = (0..256).map(|i| i % 10 == 3).collect();
        lsm.update_bulk(&keys, &values, &removed).unwrap();
        model.extend(keys.iter().zip(&values).zip(&removed).filter(|item| !item.1).map(|((&k, &v), _)| (k, v)));
        let gone: BTreeSet<u32> = keys.iter().zip(&removed).filter(|item| *item.1).map(|(&key, _)| key).collect();
        model.retain(|key, _| !gone.contains(key));

        lsm.check_invariants().unwrap();
        let lens: Vec<u64> = lsm.level_lens().into_iter().map(|(_, len)| len).collect();
        let bits: Vec<u64> = (0..7).filter(|bit| batch >> bit & 1 == 1).map(|bit| 256 << bit).collect();
        assert_eq!(lens, bits, "the binary counter of the paper");
        let asked: Vec<u32> = (0..6100).collect();
        assert_eq!(lsm.get_bulk(&asked), asked.iter().map(|key| model.get(key).copied()).collect::<Vec<_>>());
        assert!(lsm.iter().eq(model.iter().map(|(&k, &v)| (k, v))));
    }
    let before: Vec<_> = lsm.iter().collect();
    lsm.cleanup().unwrap();
    assert_eq!(lsm.level_lens().len(), 1);
    assert!(lsm.iter().eq(before));
    lsm.check_invariants().unwrap();
}

/// Tests enough elements for several parts of a merge, filters and search trees, on one thread and on several.
#[test]
fn large_batches_on_any_number_of_threads() {
    let n = tier(120_000, 300_000u64);
    let key = |i: u64, seed: u64, end: u64| (spread(i, seed) % end) as u32;
    let batches: Vec<(Vec<u32>, Vec<u64>)> =
        (0..6).map(|batch| (0..n / 6).map(|i| (key(i, batch, n), batch << 32 | i)).unzip()).collect();
    let mut model = BTreeMap::new();
    for (keys, values) in &batches {
        model.extend(keys.iter().copied().zip(values.iter().copied()));
    }
    let gone: Vec<u32> = (0..n as u32).step_by(7).collect();
    model.retain(|key, _| key % 7 != 0);
    let asked: Vec<u32> = (0..n + 10).map(|i| key(i, 99, n + 1000)).collect();
    let ranges: Vec<_> = (0..500).map(|i| key(i, 5, n)).map(|low| low..=low + low % 2000).collect();
    let mut saved: Option<Vec<u8>> = None;
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut lsm = Lsm::<u32, u64>::builder().batch_size(1 << 12).build().unwrap();
            for (keys, values) in &batches {
                lsm.insert_bulk(keys, values).unwrap();
                // Twice: before and after search trees and filters are built.
                lsm.get_bulk(&asked);
            }
            lsm.remove_bulk(&gone).unwrap();
            lsm.check_invariants().unwrap();
            for _ in 0..2 {
                assert!(lsm.get_bulk(&asked).into_iter().eq(asked.iter().map(|key| model.get(key).copied())));
            }
            assert!(lsm.iter().eq(model.iter().map(|(&k, &v)| (k, v))));
            let counts = lsm.count_range_bulk(&ranges);
            let found = lsm.range_bulk(&ranges).unwrap();
            for (i, range) in ranges.iter().enumerate() {
                assert_eq!(counts[i] as usize, model.range(range.clone()).count());
                assert!(found.get(i).0.iter().eq(model.range(range.clone()).map(|(key, _)| key)));
            }
            let bytes = lsm.to_bytes();
            assert_eq!(*saved.get_or_insert_with(|| bytes.clone()), bytes, "bytes depend on the number of threads");
            lsm.cleanup().unwrap();
            assert_eq!(lsm.len(), model.len() as u64);
            let built = Lsm::<u32, u64>::builder().batch_size(1 << 12);
            let (keys, values): (Vec<u32>, Vec<u64>) = model.iter().map(|(&k, &v)| (k, v)).unzip();
            assert!(built.build_from(&keys, &values).unwrap() == lsm);
        });
    }
}

/// Tests that searches by tasks of a pool, which build parts of the index on the same pool, end.
#[test]
fn tasks_of_a_pool_may_ask_while_indexes_are_built() {
    let keys: Vec<u32> = (0..200_000).map(|i| spread(i, 3) as u32).collect();
    let values: Vec<u64> = keys.iter().map(|&key| key.into()).collect();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
    for _ in 0..tier(3, 30) {
        let mut lsm = Lsm::<u32, u64>::builder().cleanup(CleanupPolicy::Manual).build().unwrap();
        lsm.insert_bulk(&keys, &values).unwrap();
        lsm.insert_bulk(&keys[..100_000], &values[..100_000]).unwrap();
        pool.install(|| {
            warpset_base::parallel::for_each(keys.chunks(100), |keys| {
                assert!(keys.iter().all(|&key| lsm.get(key) == Some(key.into())));
                assert!(
                    lsm.count_range(keys[0]..) > 0 && lsm.range(keys[0]..).next() == Some((keys[0], keys[0].into()))
                );
            });
        });
    }
}

#[test]
fn bad_arguments_are_errors_and_change_nothing() {
    let builder = Lsm::<u32, u64>::builder();
    for batch_size in [0, 1, 32, 100, 1 << 41, u64::MAX] {
        assert!(matches!(builder.batch_size(batch_size).build(), Err(Error::InvalidBatchSize { .. })));
    }
    for share in [0.0, 1.0, -1.0, f64::NAN] {
        let built = builder.cleanup(CleanupPolicy::StaleShare(share)).build();
        assert!(matches!(built, Err(Error::InvalidStaleShare { .. })), "{share}");
    }
    assert!(matches!(builder.cleanup(CleanupPolicy::EveryBatches(0)).build(), Err(Error::NoBatches)));
    assert!(matches!(
        builder.build_from(&[1, 2], &[1]),
        Err(Error::LengthMismatch(LengthMismatch { needed: 2, found: 1, .. }))
    ));

    let mut lsm = builder.build_from(&[1, 2, 2], &[10, 20, 21]).unwrap();
    assert_eq!(lsm.iter().collect::<Vec<_>>(), [(1, 10), (2, 21)]);
    let before = lsm.clone();
    assert!(lsm.insert_bulk(&[1, 2], &[0]).is_err());
    assert!(lsm.update_bulk(&[1], &[0], &[]).is_err());
    assert!(lsm.get_bulk_into(&[1, 2], &mut [0]).is_err());
    assert!(lsm.contains_bulk_into(&[1, 2], &mut []).is_err());
    lsm.insert_bulk(&[], &[]).unwrap();
    lsm.remove_bulk(&[]).unwrap();
    assert_eq!(lsm.remove_range(7..7).unwrap(), 0);
    assert_eq!(lsm.update(1, |value| value).unwrap(), Some(10));
    let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        lsm.retain(|key, _| [true, false][key as usize - 1] || panic!())
    }));
    assert!(panics.is_err());
    assert!(lsm == before);
}

#[test]
fn collected_pairs_are_built_as_by_a_builder() {
    let pairs: Vec<(u32, u64)> = (0..5000).map(|i| ((spread(i, 1) % 3000) as u32, i)).collect();
    let (keys, values): (Vec<u32>, Vec<u64>) = pairs.iter().copied().unzip();
    let built = Lsm::builder().build_from(&keys, &values).unwrap();
    assert!(pairs.iter().copied().collect::<Lsm<u32, u64>>() == built);
    assert!(
        pairs.iter().copied().collect::<SortedArray<u32, u64>>().keys()
            == built.iter().map(|(key, _)| key).collect::<Vec<_>>()
    );
}

/// Tests many elements of many levels in one range, with stale ones and tombstones, which leaves gaps to be closed.
#[test]
fn large_ranges_of_levels_with_copies() {
    let mut lsm = Lsm::<i64, u32>::builder().batch_size(1 << 14).cleanup(CleanupPolicy::Manual).build().unwrap();
    let mut model = BTreeMap::new();
    for batch in 0..30 {
        let keys: Vec<i64> = (0..1 << 14).map(|i| spread(i, batch) as i64 % 200_000 - 100_000).collect();
        let values: Vec<u32> = (0..1 << 14).map(|i| i << 8 | batch as u32).collect();
        lsm.insert_bulk(&keys, &values).unwrap();
        model.extend(keys.iter().copied().zip(values));
        if batch % 7 == 3 {
            lsm.remove_bulk(&keys[..1000]).unwrap();
            let gone: BTreeSet<i64> = keys[..1000].iter().copied().collect();
            model.retain(|key, _| !gone.contains(key));
        }
        // Counts between updates: narrow ranges, then most of the elements.
        for range in [-50..=50, -1000..=4000, -90_000..=99_000] {
            assert_eq!(lsm.count_range(range.clone()), model.range(range.clone()).count() as u64, "{range:?}");
            let counts = lsm.snapshot().count_range_bulk(std::slice::from_ref(&range));
            assert_eq!(counts, [model.range(range).count() as u64]);
        }
    }
    let ranges: Vec<_> = [i64::MIN..=i64::MAX, -50_000..=50_000, 5..=5]
        .into_iter()
        .chain((0..200).step_by(tier(4, 1)).map(|i| 100 * i..=200 * i))
        .collect();
    let mut found = Ranges::default();
    for threads in [1, 4] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| lsm.range_bulk_into(&ranges, &mut found).unwrap());
        for (i, range) in ranges.iter().enumerate() {
            let (keys, values) = found.get(i);
            let pairs = keys.iter().zip(values).map(|(&key, &value)| (key, value));
            assert!(
                pairs.eq(model_range(&model, (Bound::Included(*range.start()), Bound::Included(*range.end())))),
                "{range:?}"
            );
        }
    }
    // Single lookups without filters and, after enough of them, with filters.
    for round in 0..2 {
        for key in (-100_100..100_100).step_by(tier(7, 1) * (2 - round)) {
            assert_eq!(lsm.get(key), model.get(&key).copied(), "{key}");
        }
    }
    let there = model.range(-100..70_000).count() as u64;
    assert_eq!(lsm.remove_range(-100..70_000).unwrap(), there);
    model.retain(|key, _| !(-100..70_000).contains(key));
    assert!(lsm.iter().eq(model.iter().map(|(&key, &value)| (key, value))));
    assert_eq!(lsm.remove_range(..).unwrap(), model.len() as u64);
    assert!(lsm.is_empty() && lsm.resident_len() == 0);
}

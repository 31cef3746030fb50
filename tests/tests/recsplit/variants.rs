//! RecSplit functions that are not minimal, k-perfect functions, filters, other ways to bring keys, batches.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use warpset_mphf::{Error, Filter, LengthMismatch, Method, RecSplit, RecSplitKind, StaticFilter};

fn random(n: usize) -> Vec<u64> {
    (0..n as u64).map(|i| (i + 77).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
}

#[test]
fn perfect_but_not_minimal() {
    for n in [0, 1, 2, 100, 20_000] {
        for (leaf, load_factor) in [(4, 0.8), (8, 0.89), (8, 0.8), (10, 0.91)] {
            let keys = random(n);
            let builder = RecSplit::builder().leaf_size(leaf).bucket_size(500);
            let minimal = builder.build_from(&keys).unwrap();
            let function = builder.load_factor(load_factor).build_from(&keys).unwrap();
            let mut seen = vec![false; function.values() as usize];
            for key in &keys {
                let value = function.get(key) as usize;
                assert!(!std::mem::replace(&mut seen[value], true), "value {value} comes twice");
            }
            if n == 20_000 {
                let reached = n as f64 / function.values() as f64;
                assert!((reached - load_factor).abs() < 0.02, "load {reached} for {load_factor}");
                assert!(function.memory_bytes() < minimal.memory_bytes(), "smaller than the minimal one");
            }
        }
    }
    assert!(matches!(RecSplit::builder().load_factor(1.5).build_from(&[1_u64]), Err(Error::InvalidParameter { .. })));
}

#[test]
fn k_perfect() {
    for k in [2, 3, 8, 16, 24] {
        for n in [0, 1, 2, 100, 20_000] {
            let keys = random(n);
            let function = RecSplit::builder().keys_per_value(k).bucket_size(1000).build_from(&keys).unwrap();
            let mut counts: HashMap<u64, u32> = HashMap::new();
            for key in &keys {
                let value = function.get(key);
                assert!(value < function.values());
                *counts.entry(value).or_default() += 1;
            }
            assert!(counts.values().all(|&count| count <= k), "{k} keys at most");
            if n == 20_000 {
                assert!(function.values() <= (n as u64) / u64::from(k) + 21, "values");
                let bits = function.bits_per_key();
                assert!(bits < 1.35, "{bits} bits for {k} keys per value");
            }
        }
    }
    assert!(matches!(RecSplit::builder().keys_per_value(1).build_from(&[1_u64]), Err(Error::InvalidParameter { .. })));
}

#[test]
fn filters_know_their_members_and_few_others() {
    let keys = random(50_000);
    for width in [1, 8, 13, 32] {
        let filter = StaticFilter::builder_of_kind(RecSplitKind).width(width).leaf_size(8).build_from(&keys).unwrap();
        assert!(keys.iter().all(|key| filter.contains(key)));
        assert!(filter.contains_bulk(&keys).unwrap().into_iter().all(|answer| answer));
        assert!(
            filter
                == StaticFilter::builder_of_kind(RecSplitKind)
                    .width(width)
                    .leaf_size(8)
                    .build_from_iter(|| keys.iter())
                    .unwrap()
        );
        let foreign: Vec<u64> = (0..200_000).collect();
        for n in [0, 1, 63, 64, 257, 1000, foreign.len()] {
            let foreign = &foreign[..n];
            let expected: Vec<bool> = foreign.iter().map(|key| filter.contains(key)).collect();
            assert_eq!(filter.contains_bulk(foreign).unwrap(), expected);
            let bitmap = Filter::contains_bitmap_bulk(&filter, foreign).unwrap();
            assert!(bitmap.len() == n && (0..n).all(|i| bitmap.get(i) == expected[i]));
            assert_eq!(
                filter.view().count_contained_bulk(foreign).unwrap(),
                expected.iter().filter(|&&answer| answer).count()
            );
        }
        let wrong = filter.count_contained_bulk(&foreign).unwrap();
        let expected = 200_000.0 * filter.fpr();
        let tolerance = 5.0 * expected.sqrt() + 1.0;
        assert!((wrong as f64 - expected).abs() < tolerance, "{wrong} false positives at {width} bits");
        assert_eq!((filter.len(), filter.function().len(), filter.width()), (50_000, 50_000, width));
    }
    let empty = StaticFilter::builder().width(8).build_from(&[0_u64; 0]).unwrap();
    assert!(!empty.contains(1_u64) && empty.is_empty() && empty.fpr() == 0.0);
    assert_eq!(empty.contains_bulk(&[1_u64, 2]).unwrap(), [false; 2]);
    assert!(
        StaticFilter::builder().width(0).build_from(&keys).is_err()
            && StaticFilter::builder().width(33).build_from(&keys).is_err()
    );
}

#[test]
fn slices_of_different_lengths_are_an_error() {
    let keys = random(10);
    let mismatch = |error: &LengthMismatch| (error.needed, error.found) == (10, 9);
    let function = RecSplit::builder().build_from(&keys).unwrap();
    let numbers = function.get_bulk_into(&keys, &mut [0u64; 9]);
    assert!(matches!(numbers, Err(Error::LengthMismatch(error)) if mismatch(&error)));
    let filter = StaticFilter::builder().width(8).build_from(&keys).unwrap();
    let answers = filter.contains_bulk_into(&keys, &mut [false; 9]);
    assert!(matches!(answers, Err(Error::LengthMismatch(error)) if mismatch(&error)));
}

#[test]
fn batches_agree_with_single_queries() {
    let keys = random(20_003);
    for (leaf, bucket) in [(2, 1), (3, 2000), (5, 5), (8, 40), (8, 100), (12, 9), (12, 2000), (18, 500), (9, 20_000)] {
        for method in [Method::Rotation, Method::Grouped] {
            if method == Method::Rotation && leaf > 9 {
                continue;
            }
            let builder = RecSplit::builder().leaf_size(leaf).bucket_size(bucket).method(method);
            for builder in [builder.clone(), builder.clone().load_factor(0.8), builder.keys_per_value(leaf)] {
                let function = builder.build_from(&keys).unwrap();
                for n in [0, 1, 31, 32, 33, 8191, keys.len()] {
                    let numbers = function.get_bulk(&keys[..n]);
                    let same = |(key, &number): (&u64, &u64)| function.get(key) == number;
                    assert!(keys.iter().zip(&numbers).all(same), "leaf {leaf}, bucket {bucket}, {n} keys");
                    let mut into = vec![u64::MAX; n];
                    function.get_bulk_into(&keys[..n], &mut into).unwrap();
                    assert_eq!(into, numbers);
                }
            }
        }
    }
}

#[test]
fn every_source_gives_the_same_function() {
    for n in [0, 1, 2, 300, 30_000] {
        for bucket_size in [5, 100, 2000] {
            let keys: Vec<String> = random(n).iter().map(u64::to_string).collect();
            let builder = RecSplit::builder().leaf_size(8).bucket_size(bucket_size);
            let expected = builder.build_from(&keys).unwrap();
            assert!(builder.build_from_iter(|| keys.iter()).unwrap() == expected, "iterator, {n}");
            let external = builder.external().build_from(|| Ok(keys.iter().map(Ok))).unwrap();
            assert!(external == expected, "external, {n}, {bucket_size}");
        }
    }
    assert!(matches!(RecSplit::builder().build_from_iter(|| [4_u64, 5, 4]), Err(Error::DuplicateKey { .. })));
}

#[test]
fn progress_reaches_the_end() {
    let keys = random(200_000);
    let most = Arc::new(AtomicU64::new(0));
    let seen = most.clone();
    let builder = RecSplit::builder().leaf_size(5).progress(move |progress| {
        assert!(progress.keys == 200_000 && progress.attempt == 0);
        seen.fetch_max(progress.keys_done, Ordering::Relaxed);
    });
    builder.build_from(&keys).unwrap();
    assert_eq!(most.load(Ordering::Relaxed), 200_000);
}

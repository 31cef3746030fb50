//! RecSplit functions that are not minimal, k-perfect functions, filters, other ways to bring keys, batches.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use warpset_recsplit::{Builder, Error, Key, Method, StaticFilter};

fn random(n: usize) -> Vec<u64> {
    (0..n as u64).map(|i| (i + 77).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
}

#[test]
fn perfect_but_not_minimal() {
    for n in [0, 1, 2, 100, 20_000] {
        for (leaf, load_factor) in [(4, 0.8), (8, 0.89), (8, 0.8), (10, 0.91)] {
            let keys = random(n);
            let builder = Builder::new().leaf_size(leaf).bucket_size(500);
            let minimal = builder.build(&keys).unwrap();
            let function = builder.load_factor(load_factor).build(&keys).unwrap();
            let mut seen = vec![false; function.values() as usize];
            for key in &keys {
                let value = function.get(key) as usize;
                assert!(!std::mem::replace(&mut seen[value], true), "value {value} comes twice");
            }
            if n == 20_000 {
                let reached = n as f64 / function.values() as f64;
                assert!((reached - load_factor).abs() < 0.02, "load {reached} for {load_factor}");
                assert!(function.bits() < minimal.bits(), "smaller than the minimal one");
            }
        }
    }
    assert!(matches!(Builder::new().load_factor(1.5).build(&[1_u64]), Err(Error::InvalidParameter { .. })));
}

#[test]
fn k_perfect() {
    for k in [2, 3, 8, 16, 24] {
        for n in [0, 1, 2, 100, 20_000] {
            let keys = random(n);
            let function = Builder::new().keys_per_value(k).bucket_size(1000).build(&keys).unwrap();
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
                assert!(bits < 1.35, "{bits} bits for {k} keys a value");
            }
        }
    }
    assert!(matches!(Builder::new().keys_per_value(1).build(&[1_u64]), Err(Error::InvalidParameter { .. })));
}

#[test]
fn filters_know_their_members_and_few_others() {
    let keys = random(50_000);
    for width in [1, 8, 13, 32] {
        let filter = StaticFilter::build(&Builder::new().leaf_size(8), &keys, width).unwrap();
        assert!(keys.iter().all(|key| filter.contains(key)));
        let mut answers = vec![false; 1000];
        filter.contains_many(&keys[..1000], &mut answers);
        assert!(answers.iter().all(|&answer| answer));
        let foreign: Vec<u64> = (0..1000).collect();
        filter.contains_many(&foreign, &mut answers);
        assert!(foreign.iter().zip(&answers).all(|(key, &answer)| filter.contains(key) == answer));
        let wrong = (0..200_000_u64).filter(|key| filter.contains(key)).count();
        let expected = 200_000.0 / 2_f64.powi(width as i32);
        let tolerance = 5.0 * expected.sqrt() + 1.0;
        assert!((wrong as f64 - expected).abs() < tolerance, "{wrong} false positives at {width} bits");
    }
    let empty = StaticFilter::build(&Builder::new(), &[0_u64; 0], 8).unwrap();
    assert!(!empty.contains(&1_u64));
    let mut answers = [true; 2];
    empty.contains_many(&[1_u64, 2], &mut answers);
    assert_eq!(answers, [false; 2]);
    assert!(StaticFilter::build(&Builder::new(), &keys, 0).is_err());
}

#[test]
fn batches_agree_with_single_queries() {
    let keys = random(20_003);
    for (leaf, bucket) in [(2, 1), (3, 2000), (5, 5), (8, 40), (8, 100), (12, 9), (12, 2000), (18, 500), (9, 20_000)] {
        for method in [Method::Rotation, Method::Grouped] {
            if method == Method::Rotation && leaf > 9 {
                continue;
            }
            let builder = Builder::new().leaf_size(leaf).bucket_size(bucket).method(method);
            for builder in [builder.clone(), builder.clone().load_factor(0.8), builder.keys_per_value(leaf)] {
                let function = builder.build(&keys).unwrap();
                for n in [0, 1, 31, 32, 33, keys.len()] {
                    let mut numbers = vec![u64::MAX; n];
                    function.get_many(&keys[..n], &mut numbers);
                    let same = |(key, &number): (&u64, &u64)| function.get(key) == number;
                    assert!(keys.iter().zip(&numbers).all(same), "leaf {leaf}, bucket {bucket}, {n} keys");
                    let hashes: Vec<_> = keys[..n].iter().map(|key| key.hash128(function.seed())).collect();
                    let by_keys = numbers.clone();
                    function.get_many_hashes(&hashes, &mut numbers);
                    assert_eq!(numbers, by_keys);
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
            let builder = Builder::new().leaf_size(8).bucket_size(bucket_size);
            let expected = builder.build(&keys).unwrap();
            assert!(builder.build_iter(|| keys.iter()).unwrap() == expected, "iterator, {n}");
            let external = builder.external().build(|| Ok(keys.iter().map(Ok))).unwrap();
            assert!(external == expected, "external, {n}, {bucket_size}");
        }
    }
    assert!(matches!(Builder::new().build_iter(|| [4_u64, 5, 4]), Err(Error::DuplicateKey { .. })));
}

#[test]
fn progress_reaches_the_end() {
    let keys = random(200_000);
    let most = Arc::new(AtomicU64::new(0));
    let seen = most.clone();
    let builder = Builder::new().leaf_size(5).progress(move |progress| {
        assert!(progress.keys == 200_000 && progress.attempt == 0);
        seen.fetch_max(progress.keys_done, Ordering::Relaxed);
    });
    builder.build(&keys).unwrap();
    assert_eq!(most.load(Ordering::Relaxed), 200_000);
}

#[test]
fn hashes_can_be_kept_by_the_caller() {
    let keys = random(1000);
    let function = Builder::new().seed(5).build(&keys).unwrap();
    assert!(keys.iter().all(|key| function.get_hash(key.hash128(function.seed())) == function.get(key)));
}

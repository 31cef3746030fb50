//! RecSplit functions that are not minimal, k-perfect functions, batches.

use std::collections::HashMap;
use warpset_mphf::{Error, Method, RecSplit};

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

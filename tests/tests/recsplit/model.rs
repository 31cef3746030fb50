//! Functions are bijections, whatever the parameters.

use proptest::prelude::*;
use warpset_mphf::{Consensus, Error, Key, Method, RecSplit, Remix, Simd};

fn assert_bijection<K: Key>(function: &RecSplit, keys: &[K], what: &str) {
    assert_eq!(function.len(), keys.len() as u64, "{what}");
    let mut seen = vec![false; keys.len()];
    for (i, key) in keys.iter().enumerate() {
        let number = function.get(key) as usize;
        assert!(number < keys.len(), "{what}: key {i} has number {number} of {}", keys.len());
        assert!(!std::mem::replace(&mut seen[number], true), "{what}: number {number} comes twice, for key {i} too");
    }
}

fn random(n: usize, seed: u64) -> Vec<u64> {
    (0..n as u64).map(|i| (i + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
}

const METHODS: [Method; 3] = [Method::BruteForce, Method::Rotation, Method::Grouped];

#[test]
fn small_numbers_of_keys() {
    for n in 0..60 {
        for bucket_size in [1, 5, 100] {
            for method in METHODS {
                let keys = random(n, 1);
                let builder = RecSplit::builder().leaf_size(8).bucket_size(bucket_size).method(method);
                assert_bijection(&builder.build_from(&keys).unwrap(), &keys, &format!("{n} {bucket_size} {method:?}"));
            }
        }
    }
}

#[test]
fn all_leaf_sizes_with_rotation_of_groups() {
    for leaf in 2..=24 {
        for bucket_size in [1, 7, 50, 500, 2000, 5000] {
            let keys = random(if leaf < 20 { 10_000 } else { 2_000 }, 5);
            let function = RecSplit::builder().leaf_size(leaf).bucket_size(bucket_size).build_from(&keys).unwrap();
            assert_bijection(&function, &keys, &format!("leaf {leaf}, bucket {bucket_size}"));
        }
    }
}

#[test]
fn leaf_sizes_with_the_thesis_methods() {
    for leaf in 2..=11 {
        for bucket_size in [1, 5, 50, 500, 2000] {
            for method in [Method::BruteForce, Method::Rotation] {
                let keys = random(2_000, 5);
                let builder = RecSplit::builder().leaf_size(leaf).bucket_size(bucket_size).method(method);
                assert_bijection(
                    &builder.build_from(&keys).unwrap(),
                    &keys,
                    &format!("{leaf} {bucket_size} {method:?}"),
                );
            }
        }
    }
    for leaf in 12..=14 {
        let keys = random(60, 5);
        for method in [Method::BruteForce, Method::Rotation] {
            let function =
                RecSplit::builder().leaf_size(leaf).bucket_size(30).method(method).build_from(&keys).unwrap();
            assert_bijection(&function, &keys, &format!("leaf {leaf}, {method:?}"));
        }
    }
}

#[test]
fn millions_of_keys() {
    let keys = random(2_000_000, 5);
    let function = RecSplit::builder().leaf_size(5).bucket_size(50).build_from(&keys).unwrap();
    assert_bijection(&function, &keys, "two million keys");
}

#[test]
fn fanouts_are_free() {
    for (first, second) in (2..=9).flat_map(|first| [(first, 1), (first, 2)]).chain((3..=5).map(|second| (3, second))) {
        let keys = random(1000, 2);
        let builder = RecSplit::builder().leaf_size(3).fanouts(first, second).bucket_size(1000);
        assert_bijection(&builder.build_from(&keys).unwrap(), &keys, &format!("{first} {second}"));
    }
}

#[test]
fn the_64_bit_remix() {
    for method in METHODS {
        let keys = random(5_000, 3);
        let builder = RecSplit::builder().leaf_size(7).bucket_size(200).remix(Remix::Bits64).method(method);
        assert_bijection(&builder.build_from(&keys).unwrap(), &keys, "64-bit remix");
    }
}

#[test]
fn settings_are_checked() {
    assert!(matches!(RecSplit::builder().leaf_size(1).build_from(&[1_u64]), Err(Error::InvalidShape { .. })));
    assert!(matches!(RecSplit::builder().leaf_size(25).build_from(&[1_u64]), Err(Error::InvalidShape { .. })));
    assert!(matches!(RecSplit::builder().fanouts(10, 2).build_from(&[1_u64]), Err(Error::InvalidShape { .. })));
    assert!(matches!(RecSplit::builder().bucket_size(0).build_from(&[1_u64]), Err(Error::InvalidBucketSize { .. })));
    assert!(matches!(
        RecSplit::builder().bucket_size(65_536).build_from(&[1_u64]),
        Err(Error::InvalidBucketSize { .. })
    ));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_distinct_strings_by_recsplit(
        keys in prop::collection::btree_set(".{0,12}", 0..300), leaf in 2..10_u32, bucket in 1..400_u32
    ) {
        let keys: Vec<String> = keys.into_iter().collect();
        let function = RecSplit::builder().leaf_size(leaf).bucket_size(bucket).build_from(&keys).unwrap();
        assert_bijection(&function, &keys, "strings");
    }

    #[test]
    fn any_distinct_strings_by_consensus(
        keys in prop::collection::btree_set(".{0,12}", 0..300), overhead in 0.01..1.0, bucket in 1..400_u32, seed: u64
    ) {
        let keys: Vec<String> = keys.into_iter().collect();
        let builder = Consensus::builder().overhead(overhead).bucket_size(bucket).seed(seed);
        let function = builder.build_from(&keys).unwrap();
        let mut numbers = function.get_bulk(&keys);
        prop_assert!(keys.iter().zip(&numbers).all(|(key, &number)| function.get(key) == number));
        numbers.sort_unstable();
        prop_assert!(numbers.into_iter().eq(0..keys.len() as u64));
        prop_assert!(builder.simd(Simd::Portable).build_from(&keys).unwrap() == function);
    }
}

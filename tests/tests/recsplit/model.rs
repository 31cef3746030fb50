//! RecSplit functions are bijections, whatever the parameters, the keys and the way they are built.

use proptest::prelude::*;
use std::collections::BTreeSet;
use warpset_mphf::{Error, Hash128, Key, Method, RecSplit, Remix};

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
fn adversarial_keys() {
    let builder = RecSplit::builder().leaf_size(8);
    let sequential: Vec<u64> = (0..50_000).collect();
    assert_bijection(&builder.build_from(&sequential).unwrap(), &sequential, "sequential");
    let high: Vec<u64> = (0..50_000).map(|i| i << 44).collect();
    assert_bijection(&builder.build_from(&high).unwrap(), &high, "high bits only");
    let two_bits: BTreeSet<u128> = (0..128).flat_map(|i| (0..128).map(move |j| 1 << i | 1 << j)).collect();
    let two_bits: Vec<u128> = two_bits.into_iter().collect();
    assert_bijection(&builder.build_from(&two_bits).unwrap(), &two_bits, "near duplicates");
    let prefix = "the same long prefix for all of the keys/".repeat(5);
    let strings: Vec<String> = (0..20_000).map(|i| format!("{prefix}{i}")).collect();
    assert_bijection(&builder.build_from(&strings).unwrap(), &strings, "equal prefixes");
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
fn duplicates_are_named() {
    let mut keys = random(10_000, 3);
    keys[9_000] = keys[17];
    for bucket_size in [5, 2000] {
        match RecSplit::builder().leaf_size(8).bucket_size(bucket_size).build_from(&keys) {
            Err(Error::DuplicateKey { first: 17, second: 9_000, key }) => assert_eq!(key, keys[17].to_string()),
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(
        RecSplit::builder().build_from(&[1_u64; 1000]),
        Err(Error::DuplicateKey { first: 0, second: 1, .. })
    ));
    assert!(matches!(
        RecSplit::builder().build_from(&["a", "b", "a"]),
        Err(Error::DuplicateKey { first: 0, second: 2, .. })
    ));
}

#[test]
fn collisions_are_survived() {
    // Under seed 0, at which ready-made hashes are taken as they are, each low half comes three times in its bucket.
    let low = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let keys: Vec<Hash128> = (0..3_000).map(|i| Hash128 { high: low(i / 3) + i % 3, low: low(i / 3) }).collect();
    let function = RecSplit::builder().leaf_size(8).build_from(&keys).unwrap();
    assert_ne!(function.seed(), 0);
    assert_bijection(&function, &keys, "after a collision");
    // Hashes that fill one bucket and nothing else.
    let keys: Vec<Hash128> = (0..3_000).map(|i| Hash128 { high: 1, low: low(i) }).collect();
    assert_bijection(&RecSplit::builder().leaf_size(8).bucket_size(10).build_from(&keys).unwrap(), &keys, "one bucket");
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
    fn any_distinct_strings(
        keys in prop::collection::btree_set(".{0,12}", 0..300), leaf in 2..10_u32, bucket in 1..400_u32
    ) {
        let keys: Vec<String> = keys.into_iter().collect();
        let function = RecSplit::builder().leaf_size(leaf).bucket_size(bucket).build_from(&keys).unwrap();
        assert_bijection(&function, &keys, "strings");
    }
}

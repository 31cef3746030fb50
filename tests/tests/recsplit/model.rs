//! Functions are bijections, whatever the parameters, and every way to build them gives the same bits.

use proptest::prelude::*;
use warpset_mphf::{Builder, Consensus, Error, Key, Method, RecSplit, Remix, Simd};

/// Searches that all builds can take, beside the fastest one.
const VECTORS: &[Simd] = &[Simd::Avx2, Simd::Portable];
/// Searches with the one that takes longest.
const SEARCHES: &[Simd] = &[Simd::Avx2, Simd::Portable, Simd::Sequential];
const METHODS: [Method; 3] = [Method::BruteForce, Method::Rotation, Method::Grouped];

/// Checks that each key has its own number, and that other searches find the same function.
fn is_right<K: Key>(builder: &Builder, keys: &[K], searches: &[Simd]) {
    let function = builder.build_from(keys).unwrap();
    assert_eq!(function.len(), keys.len() as u64, "{builder:?}");
    let mut seen = vec![false; keys.len()];
    for (i, key) in keys.iter().enumerate() {
        let number = function.get(key) as usize;
        assert!(number < keys.len(), "{builder:?}: key {i} has number {number} of {}", keys.len());
        assert!(!std::mem::replace(&mut seen[number], true), "{builder:?}: number {number} twice, for key {i} too");
    }
    for &simd in searches {
        assert!(builder.clone().simd(simd).build_from(keys).unwrap() == function, "{simd:?} {builder:?}");
    }
}

fn random(n: usize, seed: u64) -> Vec<u64> {
    (0..n as u64).map(|i| (i + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
}

#[test]
fn small_numbers_of_keys() {
    for n in 0..60 {
        for bucket_size in [1, 5, 100] {
            for method in METHODS {
                let builder = RecSplit::builder().leaf_size(8).bucket_size(bucket_size).method(method);
                is_right(&builder, &random(n, 1), &[]);
            }
        }
    }
}

#[test]
fn all_leaf_sizes_with_rotation_of_groups() {
    for leaf in 2..=24 {
        for bucket_size in [1, 7, 100, 2000, 5000] {
            let keys = random(if leaf < 18 { 4_000 } else { 500 }, 9);
            let searches = if leaf <= 10 { SEARCHES } else { VECTORS };
            is_right(&RecSplit::builder().leaf_size(leaf).bucket_size(bucket_size), &keys, searches);
        }
        let keys = random(if leaf < 20 { 10_000 } else { 2_000 }, 5);
        is_right(&RecSplit::builder().leaf_size(leaf).bucket_size(500), &keys, &[]);
    }
    // Few keys, so that the sequential search gets at the large leaves too.
    for leaf in 11..=24 {
        let keys = random(leaf as usize * if leaf <= 16 { 2 } else { 1 }, 9);
        is_right(&RecSplit::builder().leaf_size(leaf), &keys, &[Simd::Sequential]);
    }
}

#[test]
fn leaf_sizes_with_the_thesis_methods() {
    for leaf in 2..=14 {
        for method in [Method::BruteForce, Method::Rotation] {
            let builder = RecSplit::builder().leaf_size(leaf).method(method);
            is_right(&builder.clone().bucket_size(200), &random(if leaf < 11 { 500 } else { 50 }, 9), SEARCHES);
            if leaf < 12 {
                is_right(&builder.clone().bucket_size(5), &random(2_000, 9), SEARCHES);
                is_right(&builder.clone().bucket_size(1), &random(2_000, 5), &[]);
                is_right(&builder.clone().bucket_size(2000), &random(2_000, 5), &[]);
            }
        }
    }
}

#[test]
fn millions_of_keys() {
    is_right(&RecSplit::builder().leaf_size(5).bucket_size(50), &random(2_000_000, 5), &[]);
}

#[test]
fn fanouts_are_free() {
    for (first, second) in (2..=9).flat_map(|first| [(first, 1), (first, 2)]).chain((3..=5).map(|second| (3, second))) {
        for leaf in [3, 5] {
            let builder = RecSplit::builder().leaf_size(leaf).fanouts(first, second).bucket_size(1000);
            is_right(&builder, &random(1000, 2), &[Simd::Sequential]);
        }
    }
}

#[test]
fn the_64_bit_remix() {
    for method in METHODS {
        let builder = RecSplit::builder().leaf_size(7).bucket_size(200).remix(Remix::Bits64).method(method);
        is_right(&builder, &random(5_000, 3), &[]);
    }
}

#[test]
fn threads_do_not_matter() {
    let keys = random(200_000, 9);
    for bucket_size in [5, 100, 2000] {
        let of = |threads| {
            let builder = RecSplit::builder().leaf_size(6).bucket_size(bucket_size).threads(threads);
            builder.build_from(&keys).unwrap()
        };
        let one = of(1);
        assert!([2, 3, 7].into_iter().all(|threads| of(threads) == one), "bucket {bucket_size}");
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
        is_right(&RecSplit::builder().leaf_size(leaf).bucket_size(bucket), &keys, &[]);
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

//! Tests of the search and of lookups; files and damage are tested in `tests`.

use super::*;
use crate::StaticFilter;
use warpset_base::key::Key;

/// Checks that every key has its own number, one by one and in batches.
fn assert_bijection<K: Key>(function: &Placement, keys: &[K]) {
    let numbers = function.get_bulk(keys);
    let mut seen = vec![false; keys.len()];
    for (key, &number) in keys.iter().zip(&numbers) {
        assert_eq!(function.get(key), number);
        assert!(!std::mem::replace(&mut seen[number as usize], true), "{} keys", keys.len());
    }
}

#[test]
fn numbers_of_keys_around_all_limits() {
    let limits = [0, 1, 2, 8, 16, 63, 64, 65, 100, 512, 1023, 1024, 1025, 2048, 5000, 1 << 14, (1 << 14) + 1, 50_000];
    for keys in limits.into_iter().filter(|&keys| !cfg!(miri) || keys < 100) {
        for (keys_per_seed, segment) in [(4.5, 1 << 14), (1.0, 1 << 14), (6.0, 1000), (5.0, 1), (4.0, 50_000)] {
            let keys: Vec<u64> = (0..keys).map(|i| i * i).collect();
            let builder = Placement::builder().keys_per_seed(keys_per_seed).bucket_size(segment);
            assert_bijection(&builder.build_from(&keys).unwrap(), &keys);
        }
    }
}

#[test]
fn threads_do_not_change_the_words() {
    let keys: Vec<String> = (0..100_000).map(|i| format!("key {i}")).collect();
    let build = |threads| Placement::builder().threads(threads).build_from(&keys).unwrap();
    let alone = build(1);
    assert_bijection(&alone, &keys);
    assert!([2, 3, 8].into_iter().all(|threads| build(threads) == alone));
    let external = Placement::builder().external().memory(1 << 22).build_from(|| Ok(keys.iter().map(Ok))).unwrap();
    assert!(external == alone);
}

#[test]
fn rotations_by_windows_are_those_by_slots() {
    let code = KindOptions::default().code().unwrap();
    let shape = code.shape(if cfg!(miri) { 1024 } else { 9000 });
    let mut planes = find::Planes::default();
    planes.clear(shape.keys);
    let mut scratch = find::Scratch::default();
    let keys: Vec<u64> = (0..u64::from(shape.keys)).map(|i| Hash128::of_integer(i, 0).low).collect();
    let (mut bumped, mut placed) = (0, 0);
    scratch.sort_keys(shape, &keys);
    for keys in (0..shape.buckets).map(|bucket| scratch.keys_of(bucket)) {
        let seed = planes.seed(shape, keys);
        assert_eq!(seed, planes.seed_of_few(shape, keys));
        match seed {
            0 => bumped += 1,
            _ => placed += 1,
        }
        keys.iter().filter(|_| seed != 0).for_each(|&low| planes.take(shape.slot_of(low, seed)));
    }
    assert!(bumped > 0 && placed > bumped * 10, "{bumped} {placed}");
}

#[test]
fn space_is_as_predicted() {
    let keys: Vec<u64> = (0..if cfg!(miri) { 100 } else { 1_000_000 }).collect();
    for keys_per_seed in [3.0, 4.0, 4.5, 5.0] {
        let builder = Placement::builder().keys_per_seed(keys_per_seed);
        let (predicted, found) =
            (builder.estimate().unwrap().bits_per_key, builder.build_from(&keys).unwrap().bits_per_key());
        assert!(cfg!(miri) || (predicted - found).abs() < 0.02, "{keys_per_seed}: {predicted} {found}");
    }
}

#[test]
fn hashes_that_are_not_random() {
    // All lows in one bucket, some of them equal; the second seed mixes them.
    let keys: Vec<Hash128> = (0..5000).map(|i| Hash128 { high: i << 40, low: i / 2 }).collect();
    let function = Placement::builder().build_from(&keys).unwrap();
    assert_ne!(function.seed(), 0);
    assert_bijection(&function, &keys);
}

#[test]
fn duplicates_are_named() {
    for count in [2, 100, 40_000].into_iter().filter(|&count| !cfg!(miri) || count < 1000) {
        let mut keys: Vec<u64> = (0..count).collect();
        keys[count as usize - 1] = 0;
        match Placement::builder().build_from(&keys) {
            Err(Error::DuplicateKey { first: 0, second, .. }) => assert_eq!(second, count - 1),
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(Placement::builder().build_from(&[7_u64; 1000]), Err(Error::DuplicateKey { .. })));
}

#[test]
fn filters_over_placement() {
    let keys: Vec<u64> = (0..20_000).collect();
    let filter = StaticFilter::builder_of_kind(PlacementKind).width(12).build_from(&keys).unwrap();
    assert!(keys.iter().all(|&key| filter.contains(key)));
    let passed = (20_000..120_000_u64).filter(|&key| filter.contains(key)).count();
    assert!(passed < 60, "{passed}");
}

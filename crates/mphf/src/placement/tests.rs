//! Tests of the search; `kind_tests` has the properties of all kinds.

use super::*;
use crate::kind_tests::assert_bijection;
use std::collections::HashSet;
use warpset_base::key::Key;
use warpset_core::placement::{cost_of, rotated};

#[test]
fn numbers_of_keys_around_all_limits() {
    let limits = [0, 1, 2, 8, 16, 63, 64, 65, 100, 512, 1023, 1024, 1025, 2048, 5000, 1 << 14, (1 << 14) + 1, 50_000];
    for keys in limits {
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

/// Returns the seed that [`find::Planes::seed`] should return.
fn seed_by_slots(planes: &find::Planes, shape: Shape, keys: &[u64]) -> u8 {
    let slots = |seed| keys.iter().map(move |&low| shape.position_of(low, seed));
    let is_free = |seed: u8| {
        let different: HashSet<u32> = slots(seed).collect();
        different.len() == keys.len() && !slots(seed).any(|slot| planes.is_taken(slot))
    };
    let cost = |seed| -> u32 { keys.iter().map(|&low| cost_of(rotated(low, seed))).sum() };
    (1..=u8::MAX).filter(|&seed| is_free(seed)).min_by_key(|&seed| cost(seed)).unwrap_or(0)
}

#[test]
fn rotations_of_words_are_those_by_slots() {
    let code = KindOptions::default().code().unwrap();
    let (count, shape) = (9000, Shape::new(9000, code.buckets(9000, 1)));
    let mut planes = find::Planes::default();
    planes.clear(count);
    let mut scratch = find::Scratch::default();
    let keys: Vec<u64> = (0..u64::from(count)).map(|i| Hash128::of_integer(i, 0).low).collect();
    let (mut bumped, mut placed) = (0, 0);
    scratch.sort_keys(shape, &keys);
    for bucket in 0..shape.buckets {
        let keys = scratch.keys_of(bucket);
        let seed = planes.seed(shape.start_of(bucket), keys);
        assert_eq!(seed, seed_by_slots(&planes, shape, keys));
        match seed {
            0 => bumped += 1,
            _ => placed += 1,
        }
        keys.iter().filter(|_| seed != 0).for_each(|&low| planes.take(shape.position_of(low, seed)));
    }
    assert!(bumped > 0 && placed > bumped * 10, "{bumped} {placed}");
}

#[test]
fn space_is_as_predicted() {
    let keys: Vec<u64> = (0..1_000_000).collect();
    for keys_per_seed in [3.0, 4.0, 4.5, 5.0] {
        let builder = Placement::builder().keys_per_seed(keys_per_seed);
        let (predicted, found) =
            (builder.estimate().unwrap().bits_per_key, builder.build_from(&keys).unwrap().bits_per_key());
        assert!((predicted - found).abs() < 0.02, "{keys_per_seed}: {predicted} {found}");
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
fn more_keys_in_buckets_than_have_places() {
    // Clusters with equal positions: all keys are bumped, too many for a table, so that the next seed is taken.
    let keys: Vec<Hash128> = (0..6000)
        .map(|i| Hash128 { high: i << 40, low: (i / 60) << 56 | Hash128::of_integer(i, 0).low >> 32 })
        .collect();
    let function = Placement::builder().build_from(&keys).unwrap();
    assert_ne!(function.seed(), 0);
    assert_bijection(&function, &keys);
}

#[test]
fn tables_of_bumped_keys_of_every_size() {
    let mut scratch = bumped::Scratch::default();
    for count in (0..700).chain([2000, 5000]) {
        let lows: Vec<u64> = (0..count).map(|i| Hash128::of_integer(i, count).low).collect();
        let free: Vec<u32> = (0..count as u32).map(|i| 3 * i).collect();
        assert!(scratch.number(&lows, &free, 20_000, &mut BitVec::default()).is_some(), "{count}");
    }
    // Equal keys have no table, and neither have more than half of a segment's.
    assert!(scratch.number(&[7; 2], &[0, 1], 20_000, &mut BitVec::default()).is_none());
    let many: Vec<u32> = (0..1100).collect();
    assert!(scratch.number(&[7; 1100], &many, 2100, &mut BitVec::default()).is_none());
}

/// Hashes of what functions are saved as, and of the numbers that they give.
fn hashes<K: Key + Sync>(keys_per_seed: f64, segment: u32, keys: &[K]) -> [u64; 2] {
    let builder = Placement::builder().keys_per_seed(keys_per_seed).bucket_size(segment).seed(segment.into());
    let function = builder.build_from(keys).unwrap();
    let numbers: Vec<u8> = keys.iter().flat_map(|key| function.get(key).to_le_bytes()).collect();
    [function.to_bytes(), numbers].map(|bytes| xxhash_rust::xxh3::xxh3_64(&bytes))
}

/// Compares bits by seed and numbers by bits: they are part of the format.
#[test]
fn version_2_stays_as_it_is() {
    let keys: Vec<u64> = (0..50_000_u64).map(|i| i.pow(3)).collect();
    let strings: Vec<String> = keys.iter().map(u64::to_string).collect();
    let (few, numbers) = (&keys[..20], NUMBERS_OF_VERSION_2);
    let function = Placement::builder().keys_per_seed(4.0).bucket_size(10).build_from(few).unwrap();
    let found = [
        hashes(4.5, 1 << 15, &keys),
        hashes(5.0, 2000, &strings),
        hashes(1.0, 500, &keys),
        hashes(4.0, 50_000, &strings),
    ];
    let few: Vec<u64> = function.get_bulk(few);
    assert!(found == HASHES_OF_VERSION_2 && few == numbers, "{found:#x?} {few:?}");
}

const NUMBERS_OF_VERSION_2: [u64; 20] = [0, 3, 14, 6, 13, 1, 5, 11, 16, 7, 17, 18, 4, 15, 2, 19, 10, 9, 12, 8];
const HASHES_OF_VERSION_2: [[u64; 2]; 4] = [
    [0xe323_046b_ac08_00f4, 0xe259_7789_1071_c4ca],
    [0xa48e_a072_96c0_e686, 0x54d2_4d32_1e5f_88c4],
    [0xaab6_acb8_31b0_2cb0, 0xf6d8_910a_f3ce_0745],
    [0xc831_439d_c71a_b4d8, 0xa72e_a17e_b7c1_3684],
];

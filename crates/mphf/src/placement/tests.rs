//! Tests of the search and of lookups; files and damage are tested in `tests`.

use super::*;
use crate::StaticFilter;
use std::collections::HashSet;
use warpset_base::key::{Hashed, Key};
use warpset_core::placement::{cost_of, rotated};

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
    for count in (0..if cfg!(miri) { 20 } else { 700 }).chain([2000, 5000].into_iter().filter(|_| !cfg!(miri))) {
        let lows: Vec<u64> = (0..count).map(|i| Hash128::of_integer(i, count).low).collect();
        let free: Vec<u32> = (0..count as u32).map(|i| 3 * i).collect();
        assert!(scratch.number(&lows, &free, 20_000, &mut BitVec::default()).is_some(), "{count}");
    }
    // Equal keys have no table, and neither have more than half of a segment's.
    assert!(scratch.number(&[7; 2], &[0, 1], 20_000, &mut BitVec::default()).is_none());
    let many: Vec<u32> = (0..1100).collect();
    assert!(scratch.number(&[7; 1100], &many, 2100, &mut BitVec::default()).is_none());
}

#[test]
fn batches_of_all_types_of_keys() {
    let keys: Vec<u64> = (0..5000).map(|i| i * i * i).collect();
    let function = Placement::builder().bucket_size(700).build_from(&keys).unwrap();
    let signed: Vec<i64> = keys.iter().map(|&key| key as i64).collect();
    let wide: Vec<u128> = keys.iter().map(|&key| key.into()).collect();
    let hashed: Vec<Hashed> = keys.iter().map(|&key| Hashed(key)).collect();
    let numbers: Vec<u64> = keys.iter().map(|key| function.get(key)).collect();
    assert_eq!(function.get_bulk(&keys), numbers);
    assert_eq!(function.get_bulk(&signed), numbers);
    assert_eq!(function.get_bulk(&wide), numbers);
    assert_eq!(function.get_bulk(&hashed), numbers);
    let mut narrow = vec![0_u32; keys.len()];
    function.get_bulk_into(&keys, &mut narrow).unwrap();
    assert!(narrow.iter().zip(&numbers).all(|(&narrow, &number)| u64::from(narrow) == number));
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

/// Gives words a right checksum.
fn seal(words: &mut [u64]) {
    words[15] = crate::format::checksum(words);
}

/// Returns pseudo-random words.
fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut counter = seed << 32;
    move || {
        counter += 1;
        Hash128::of_integer(counter, 0).low
    }
}

#[test]
fn hostile_words_do_no_harm() {
    // Segments of one bucket, and of several.
    let valid = [(300, 90), (3000, 700)].map(|(keys, size)| {
        let keys: Vec<u64> = (0..keys).collect();
        Placement::builder().keys_per_seed(5.0).bucket_size(size).build_from(&keys).unwrap()
    });
    let mut accepted = 0;
    for round in 0..if cfg!(miri) { 10 } else { 4000 } {
        let mut random = random(round);
        let mut words = valid[round as usize / 4 % 2].words().to_vec();
        let mode = round % 4;
        if mode < 2 {
            for i in (3..20).filter(|i| !(11..16).contains(i)) {
                // Some fields keep their values, so that more headers pass.
                if random().is_multiple_of(4) {
                    words[i] = if mode == 0 { random() % 100 } else { random() };
                }
            }
        }
        for _ in 0..random() % 50 {
            let at = 20 + random() as usize % (words.len() - 20);
            words[at] = if mode == 2 { 0 } else { random() };
        }
        seal(&mut words);
        let Ok(function) = Placement::from_words(words) else { continue };
        accepted += 1;
        let asked: Vec<u64> = (0..100).collect();
        let numbers = function.get_bulk(&asked);
        for (key, number) in asked.into_iter().zip(numbers) {
            assert!(number < function.values().max(1) && number == function.get(key));
        }
    }
    assert!(cfg!(miri) || accepted > 1000, "{accepted}");
}

#[test]
fn damage_is_an_error() {
    let keys: Vec<u64> = (0..500).collect();
    let bytes = Placement::builder().build_from(&keys).unwrap().to_bytes();
    for at in (0..bytes.len()).step_by(if cfg!(miri) { 50 } else { 1 }) {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1 << (at % 8);
        assert!(Placement::read_from(bytes.as_slice()).is_err(), "{at}");
    }
}

#[test]
fn saved_forms_and_views() {
    let keys: Vec<u64> = (0..700).collect();
    let function = Placement::builder().bucket_size(90).build_from(&keys).unwrap();
    assert!(Placement::from_bytes(&function.to_bytes()).unwrap() == function);
    assert_eq!(Kind::of_bytes(&function.to_bytes()).unwrap(), Kind::Placement);
    let view = PlacementView::from_words(function.words()).unwrap();
    assert!(keys.iter().all(|key| view.get(key) == function.get(key)));
    let filter = StaticFilter::builder_of_kind(PlacementKind).width(10).build_from(&keys).unwrap();
    let read = StaticFilter::<PlacementKind>::from_bytes(&filter.to_bytes()).unwrap();
    assert!((0..3000_u64).all(|key| read.get(key) == filter.get(key)));
}

#[cfg(feature = "mmap")]
#[test]
#[cfg_attr(miri, ignore)]
fn functions_in_mapped_files() {
    let keys: Vec<u64> = (0..700).collect();
    let function = Placement::builder().build_from(&keys).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("placement");
    function.save(&path).unwrap();
    // SAFETY: no process changes the file.
    let mapped = unsafe { Placement::map_unverified(&path).unwrap() };
    assert!(keys.iter().all(|key| mapped.get(key) == function.get(key)));
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
#[cfg_attr(miri, ignore)]
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

//! The third kind of functions: all sets of keys, what it saves, and damage to that.

use proptest::prelude::*;
use warpset_mphf::{
    Error, Hash128, Key, Kind, Placement, PlacementKind, PlacementView, StaticFilter, StaticFilterView,
};

/// Gives words a right checksum.
fn seal(words: &mut [u64]) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    words[15] = xxhash_rust::xxh3::xxh3_64(&[&bytes[..120], &bytes[128..]].concat());
}

fn function(keys: u64) -> Placement {
    let keys: Vec<u64> = (0..keys).collect();
    Placement::builder().keys_per_seed(5.0).bucket_size(90).build_from(&keys).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_distinct_strings(
        keys in prop::collection::btree_set(".{0,12}", 0..300), keys_per_seed in 1.0..6.0, segment in 1..400_u32, seed: u64
    ) {
        let keys: Vec<String> = keys.into_iter().collect();
        let builder = Placement::builder().keys_per_seed(keys_per_seed).bucket_size(segment).seed(seed);
        let function = builder.build_from(&keys).unwrap();
        let mut numbers = function.get_bulk(&keys);
        prop_assert!(keys.iter().zip(&numbers).all(|(key, &number)| function.get(key) == number));
        numbers.sort_unstable();
        prop_assert!(numbers.into_iter().eq(0..keys.len() as u64));
        prop_assert!(Placement::from_bytes(&function.to_bytes()).unwrap() == function);
    }

    #[test]
    fn duplicates_are_named(keys in prop::collection::btree_set(any::<u32>(), 1..400), at in any::<prop::sample::Index>()) {
        let mut keys: Vec<u32> = keys.into_iter().collect();
        let first = at.index(keys.len());
        keys.push(keys[first]);
        let second = keys.len() as u64 - 1;
        match Placement::builder().bucket_size(100).build_from(&keys) {
            Err(Error::DuplicateKey { first: a, second: b, .. }) => prop_assert_eq!((a, b), (first as u64, second)),
            other => prop_assert!(false, "{:?}", other),
        }
    }

    /// Checks that any damage is noticed.
    #[test]
    fn damage_is_an_error(position in any::<prop::sample::Index>(), bit in 0..8_u32) {
        let mut bytes = function(500).to_bytes();
        let at = position.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(Placement::read_from(bytes.as_slice()).is_err());
    }

    /// Loads arbitrary headers, and arbitrary words after them.
    #[test]
    fn hostile_words_do_no_harm(
        head in prop::array::uniform20(any::<u64>()), small in any::<bool>(), heads in any::<bool>(),
        rest in prop::collection::vec((any::<prop::sample::Index>(), any::<u64>()), 0..200)
    ) {
        let mut words = function(300).words().to_vec();
        if heads {
            for (i, value) in head.iter().enumerate().skip(3).filter(|(i, _)| !(11..16).contains(i)) {
                words[i] = if small { value % 100 } else { *value };
            }
        }
        for (at, word) in rest {
            let payload = words.len() - 20;
            words[20 + at.index(payload)] = word;
        }
        seal(&mut words);
        if let Ok(function) = Placement::from_words(words) {
            for key in 0..100_u64 {
                prop_assert!(function.get(key) < function.values().max(1));
                prop_assert_eq!(function.get_bulk(&[key])[0], function.get(key));
            }
        }
    }
}

#[test]
fn serde_and_views() {
    let function = function(700);
    let json = serde_json::to_string(&function).unwrap();
    assert!(serde_json::from_str::<Placement>(&json).unwrap() == function);
    let view = PlacementView::from_words(function.words()).unwrap();
    assert!(view == function.view());
    assert!((0..700_u64).all(|key| view.get(key) == function.get(key)));
    let path = std::env::temp_dir().join(format!("warpset-placement-{}", std::process::id()));
    function.save(&path).unwrap();
    // SAFETY: no process changes the file, which is removed after the last use.
    let mapped = unsafe { Placement::map_unverified(&path).unwrap() };
    assert!((0..700_u64).all(|key| mapped.get(key) == function.get(key)));
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn filters_are_saved_and_viewed() {
    let keys: Vec<u64> = (0..1000).collect();
    let filter = StaticFilter::builder_of_kind(PlacementKind).width(10).build_from(&keys).unwrap();
    let view = StaticFilterView::<PlacementKind>::from_words(filter.words()).unwrap();
    assert!((0..3000_u64).all(|key| view.get(key) == filter.get(key)));
    assert!(keys.iter().all(|key| view.contains(key)));
}

/// Reads a file of version 1, which every later version must read: words of the function of 0 to 19.
#[test]
fn version_1_is_read() {
    let keys: Vec<u64> = (0..20).collect();
    let function = Placement::builder().keys_per_seed(4.0).bucket_size(10).build_from(&keys).unwrap();
    let text: String = function.words().iter().map(|word| format!("{word:016x}\n")).collect();
    let written = include_str!("../fixtures/placement_v1.txt");
    assert_eq!(text, written);
    let words: Vec<u64> = written.lines().map(|word| u64::from_str_radix(word, 16).unwrap()).collect();
    assert_eq!(Kind::of_bytes(&function.to_bytes()).unwrap(), Kind::Placement);
    let read = Placement::from_words(words).unwrap();
    let numbers: Vec<u64> = keys.iter().map(|key| read.get(key)).collect();
    assert_eq!(numbers, NUMBERS_OF_VERSION_1);
}

/// Hashes of what functions are saved as, and of the numbers that they give.
fn hashes<K: Key + Sync>(keys_per_seed: f64, bucket: u32, keys: &[K]) -> [u64; 2] {
    let builder = Placement::builder().keys_per_seed(keys_per_seed).bucket_size(bucket).seed(bucket.into());
    let function = builder.build_from(keys).unwrap();
    let numbers: Vec<u8> = keys.iter().flat_map(|key| function.get(key).to_le_bytes()).collect();
    [function.to_bytes(), numbers].map(|bytes| xxhash_rust::xxh3::xxh3_64(&bytes))
}

/// Compares bits by seed and numbers by bits: they are part of the format.
#[test]
fn version_1_stays_as_it_is() {
    let keys: Vec<u64> = (0..50_000_u64).map(|i| i.pow(3)).collect();
    let strings: Vec<String> = keys.iter().map(u64::to_string).collect();
    let found = [
        hashes(4.5, 1 << 14, &keys),
        hashes(5.0, 2000, &strings),
        hashes(1.0, 500, &keys),
        hashes(4.0, 50_000, &strings),
    ];
    assert_eq!(found, HASHES_OF_VERSION_1, "{found:#x?}");
}

/// Hashes whose low halves all lie in one bucket.
#[test]
fn hashes_of_one_bucket_need_another_seed() {
    let keys: Vec<Hash128> = (0..3_000).map(|i| Hash128 { high: i << 40, low: i }).collect();
    let function = Placement::builder().build_from(&keys).unwrap();
    assert_ne!(function.seed(), 0);
    let mut numbers = function.get_bulk(&keys);
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..3_000));
}

const NUMBERS_OF_VERSION_1: [u64; 20] = [0; 20];
const HASHES_OF_VERSION_1: [[u64; 2]; 4] = [[0; 2]; 4];

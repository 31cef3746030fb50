//! Sets and maps in host memory against those of the standard library.

use std::collections::{HashMap, HashSet};
use std::fs;

use proptest::prelude::*;
use warpset_base::file::HEADER_BYTES;
use warpset_core::static_set;
use warpset_static::{
    Error, FileError, Filter, MapValue, StaticKey, StaticMap, StaticMapView, StaticSet, StaticSetView,
};

/// Sizes around those of buckets, batches, tasks and shards.
const SIZES: &[usize] =
    &[0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 500, 5000, 16_383, 16_384, 16_385, 33_000, 70_000];

fn mixed(i: u64) -> u64 {
    warpset_core::hash::mix(i, 77)
}

/// Checks every lookup of a set of these keys, which may repeat, against a model.
fn is_the_set_of<K: StaticKey>(keys: &[K], others: &[K], set: &StaticSet<K>) {
    let model: HashSet<K> = keys.iter().copied().collect();
    assert_eq!((set.len(), set.is_empty()), (model.len() as u64, model.is_empty()));
    let walked: Vec<K> = set.keys().collect();
    assert_eq!((walked.len(), walked.iter().copied().collect::<HashSet<K>>()), (model.len(), model.clone()));
    let asked: Vec<K> = keys.iter().chain(others).copied().collect();
    let wanted: Vec<bool> = asked.iter().map(|key| model.contains(key)).collect();
    assert!(asked.iter().zip(&wanted).all(|(&key, &wanted)| set.contains(key) == wanted));
    assert_eq!(set.contains_bulk(&asked).unwrap(), wanted);
    assert_eq!(set.contains_bitmap_bulk(&asked).unwrap().iter().collect::<Vec<_>>(), wanted);
    let mut bytes = vec![7; asked.len()];
    set.contains_bytes_bulk_into(&asked, &mut bytes).unwrap();
    assert!(bytes.iter().zip(&wanted).all(|(&byte, &wanted)| byte == u8::from(wanted)));
    assert_eq!(set.count_contained_bulk(&asked).unwrap(), wanted.iter().filter(|&&wanted| wanted).count());
    let mut retained = asked.clone();
    set.retain_contained_bulk(&mut retained).unwrap();
    assert_eq!(retained, asked.iter().copied().filter(|key| model.contains(key)).collect::<Vec<_>>());
    // Numbers are below the number of slots, belong to one key each, and lead back to it.
    let numbers = set.number_bulk(&asked);
    let mut into = vec![5; asked.len()];
    let found = set.number_bulk_into(&asked, &mut into).unwrap();
    for (((&key, &number), into), found) in asked.iter().zip(&numbers).zip(into).zip(found.iter()) {
        assert_eq!((set.number(key), number.unwrap_or(0), number.is_some()), (number, into, found));
        assert_eq!(number.is_some(), model.contains(&key));
        assert!(number.is_none_or(|number| number < set.slots() && set.key_at(number) == Some(key)));
    }
    let numbered = (0..set.slots()).filter_map(|number| set.key_at(number)).collect::<Vec<_>>();
    assert!(numbered == walked && set.key_at(set.slots()).is_none() && set.key_at(u64::MAX).is_none());
    assert!(set.load_factor() <= 1.0 && (model.len() < 1000 || set.load_factor() > 0.89), "{}", set.load_factor());
    // A tag of one byte per slot is not saved.
    let saved = (set.to_bytes().len() - HEADER_BYTES) as u64;
    assert_eq!((set.memory_bytes(), 8 * set.layout().words()), (saved + set.slots(), saved));
}

/// Checks every lookup of a map of these keys and values against a model, in which the last of equal keys counts.
fn is_the_map_of<K: StaticKey, V: MapValue>(keys: &[K], values: &[V], others: &[K], map: &StaticMap<K, V>) {
    let model: HashMap<K, V> = keys.iter().copied().zip(values.iter().copied()).collect();
    assert_eq!(map.len(), model.len() as u64);
    assert_eq!(map.iter().collect::<HashMap<K, V>>(), model);
    let asked: Vec<K> = keys.iter().chain(others).copied().collect();
    let wanted: Vec<Option<V>> = asked.iter().map(|key| model.get(key).copied()).collect();
    assert!(asked.iter().zip(&wanted).all(|(&key, &wanted)| map.get(key) == wanted));
    assert_eq!(map.get_bulk(&asked), wanted);
    let mut values = vec![V::zeroed(); asked.len()];
    let found = map.get_bulk_into(&asked, &mut values).unwrap();
    for ((wanted, value), found) in wanted.iter().zip(values).zip(found.iter()) {
        assert_eq!((wanted.unwrap_or(V::zeroed()), wanted.is_some()), (value, found));
    }
}

fn keys_of<K: StaticKey>(of: impl Fn(u64) -> K, n: usize) -> Vec<K> {
    (0..n as u64).map(of).collect()
}

#[test]
fn sets_answer_as_those_of_the_standard_library() {
    for &n in SIZES {
        let (keys, others) = (keys_of(mixed, n), keys_of(|i| mixed(i + n as u64), n.min(1000) + 3));
        is_the_set_of(&keys, &others, &StaticSet::<u64>::builder().build_from(&keys).unwrap());
        let narrow = |keys: &[u64]| keys.iter().map(|&key| key as u32).collect::<Vec<u32>>();
        let (keys, others) = (narrow(&keys), narrow(&others));
        is_the_set_of(&keys, &others, &StaticSet::<u32>::builder().build_from(&keys).unwrap());
    }
}

#[test]
fn maps_answer_as_those_of_the_standard_library() {
    for &n in SIZES {
        // Two of three keys occur several times, with other values.
        let keys = keys_of(|i| mixed(i % (n as u64 / 2 + 1)), n);
        let others = keys_of(|i| mixed(i + n as u64), 50);
        let values: Vec<u64> = (0..n as u64).map(|i| !i).collect();
        let narrow: Vec<u32> = values.iter().map(|&value| value as u32).collect();
        is_the_map_of(&keys, &values, &others, &StaticMap::<u64, u64>::builder().build_from(&keys, &values).unwrap());
        is_the_map_of(&keys, &narrow, &others, &StaticMap::<u64, u32>::builder().build_from(&keys, &narrow).unwrap());
        let keys: Vec<u32> = keys.iter().map(|&key| (key >> 32) as u32).collect();
        let others: Vec<u32> = others.iter().map(|&key| (key >> 32) as u32).collect();
        is_the_map_of(&keys, &values, &others, &StaticMap::<u32, u64>::builder().build_from(&keys, &values).unwrap());
        is_the_map_of(&keys, &narrow, &others, &StaticMap::<u32, u32>::builder().build_from(&keys, &narrow).unwrap());
    }
}

/// Checks keys that share bits, and the extreme ones.
#[test]
fn keys_with_a_pattern_are_keys_like_others() {
    let patterns: [fn(u64) -> u64; 7] = [
        |i| i,
        |i| !i,
        |i| i << 32,
        |i| i << 44,
        |i| i.reverse_bits(),
        |i| i << 10 | 7,
        |i| i.wrapping_mul(u64::MAX / 3),
    ];
    for (at, pattern) in patterns.into_iter().enumerate() {
        let keys = keys_of(pattern, 20_000);
        let others = keys_of(|i| pattern(i + 20_000), 20_000);
        is_the_set_of(&keys, &others, &StaticSet::<u64>::builder().seed(at as u64).build_from(&keys).unwrap());
    }
    let all = keys_of(|_| u64::MAX, 100_000);
    is_the_set_of(&all, &[0, 1], &StaticSet::<u64>::builder().build_from(&all).unwrap());
    let extremes = [0, u64::MAX, 1 << 63, u64::from(u32::MAX)];
    is_the_set_of(&extremes, &[1, 2], &StaticSet::<u64>::builder().build_from(&extremes).unwrap());
    let extremes = [0, u32::MAX];
    is_the_set_of(&extremes, &[1, 2], &StaticSet::<u32>::builder().build_from(&extremes).unwrap());
}

/// Returns keys whose hashes under a seed are close together, so that one group has them all.
fn keys_against(seed: u64) -> impl Iterator<Item = u64> {
    (0..200).map(move |hash| static_set::key(hash, static_set::spread(seed)))
}

#[test]
fn keys_against_a_seed_get_another_one() {
    let keys: Vec<u64> = keys_against(5).chain((0..3000).map(mixed)).collect();
    let set = StaticSet::<u64>::builder().seed(5).build_from(&keys).unwrap();
    assert_eq!(set.seed(), 6);
    is_the_set_of(&keys, &keys_of(|i| i, 100), &set);
    let against_all: Vec<u64> = (0..8u64).flat_map(|i| keys_against(u64::MAX.wrapping_add(i))).collect();
    let refused = StaticSet::<u64>::builder().seed(u64::MAX).build_from(&against_all);
    assert!(matches!(refused, Err(Error::NoSeed { keys: 1600, attempts: 8, seed: u64::MAX })), "{refused:?}");
    assert!(StaticSet::<u64>::builder().seed(8).build_from(&against_all).is_ok());
}

#[test]
fn integers_of_any_type_are_asked_by_their_value() {
    let set = StaticSet::<u64>::builder().build_from(&[7, u64::MAX]).unwrap();
    assert_eq!(Filter::contains_bulk(&set, &[7u8, 8]).unwrap(), [true, false]);
    assert_eq!(Filter::contains_bulk(&set, &[7i32, -1]).unwrap(), [true, true]);
    assert_eq!(Filter::contains_bulk(&set, &[7u128, 1 << 64 | 7]).unwrap(), [true, false]);
    assert_eq!(Filter::contains_bulk(&set, &["7", "seven"]).unwrap(), [false, false]);
    assert!(Filter::contains(&set, 7i64).unwrap() && !Filter::contains(&set, (7u64, 7u64)).unwrap());
    let set = StaticSet::<u32>::builder().build_from(&[0, 7, u32::MAX]).unwrap();
    assert_eq!(
        Filter::contains_bulk(&set, &[7u64, 1 << 32 | 7, 1 << 32, u64::MAX]).unwrap(),
        [true, false, false, false]
    );
    assert_eq!(Filter::contains_bulk(&set, &[-1i32, 7]).unwrap(), [false, true]);
    assert_eq!(set.contains_if_bulk(&[0u32, 7, 7], &[true, false, true][..]).unwrap(), [true, false, true]);
}

#[test]
fn nothing_depends_on_order_threads_or_copies() {
    let keys = keys_of(mixed, 50_000);
    let set = StaticSet::<u64>::builder().build_from(&keys).unwrap();
    let mut others: Vec<u64> = keys.iter().rev().copied().collect();
    others.extend(&keys[..20_000]);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(5).build().unwrap();
    assert!(pool.install(|| StaticSet::<u64>::builder().build_from(&others).unwrap()) == set);
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert!(alone.install(|| StaticSet::<u64>::builder().build_from(&keys).unwrap()) == set);
    assert!(StaticSet::<u64>::builder().seed(1).build_from(&keys).unwrap() != set);
}

#[test]
fn lengths_have_to_match() {
    let map = StaticMap::<u32, u32>::builder().build_from(&[1, 2], &[3, 4]).unwrap();
    assert!(matches!(StaticMap::<u32, u32>::builder().build_from(&[1], &[]), Err(Error::LengthMismatch(_))));
    assert!(matches!(map.contains_bulk_into(&[1], &mut []), Err(Error::LengthMismatch(_))));
    assert!(matches!(map.contains_bytes_bulk_into(&[1], &mut [0; 2]), Err(Error::LengthMismatch(_))));
    assert!(matches!(map.number_bulk_into(&[1], &mut [0; 2]), Err(Error::LengthMismatch(_))));
    assert!(matches!(map.get_bulk_into(&[1], &mut []), Err(Error::LengthMismatch(_))));
}

/// Copies bytes to an address that is a multiple of 8.
fn aligned(bytes: &[u8]) -> Vec<u64> {
    bytemuck::pod_collect_to_vec(bytes)
}

#[test]
fn files_views_and_maps_answer_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("map.warpset");
    for n in [0, 1, 100, 20_000] {
        let (keys, values) = (keys_of(mixed, n), keys_of(|i| i, n));
        let map = StaticMap::<u64, u64>::builder().build_from(&keys, &values).unwrap();
        map.save(&path).unwrap();
        assert!(StaticMap::load(&path).unwrap() == map);
        let words = aligned(&map.to_bytes());
        let view = StaticMapView::<u64, u64>::from_bytes(bytemuck::cast_slice(&words)).unwrap();
        // SAFETY: no process changes the file.
        let [mapped, unverified] = unsafe {
            [StaticMap::<u64, u64>::map(&path).unwrap(), StaticMap::<u64, u64>::map_unverified(&path).unwrap()]
        };
        let asked = keys_of(|i| mixed(i * 2), 2 * n + 1);
        let wanted = map.get_bulk(&asked);
        assert!(view.get_bulk(&asked) == wanted && mapped.get_bulk(&asked) == wanted);
        assert!(unverified.get_bulk(&asked) == wanted && mapped.iter().eq(map.iter()));
    }
    let set = StaticSet::<u32>::builder().build_from(&[1, 2, 3]).unwrap();
    let words = aligned(&set.to_bytes());
    assert!(StaticSetView::<u32>::from_bytes(bytemuck::cast_slice(&words)).unwrap().contains(3));
    let error = StaticSet::<u64>::from_bytes(&set.to_bytes()).unwrap_err().to_string();
    assert!(error.contains("StaticSet<u32>") && error.contains("StaticSet<u64>"), "{error}");
}

/// Recomputes the checksum, for any parameters and words.
fn sealed(bytes: &mut [u8]) {
    let checksum = xxhash_rust::xxh3::xxh3_64(&[&bytes[..HEADER_BYTES - 8], &bytes[HEADER_BYTES..]].concat());
    bytes[HEADER_BYTES - 8..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
}

#[test]
fn absurd_parameters_are_an_error() {
    let set = StaticSet::<u64>::builder().build_from(&keys_of(mixed, 300)).unwrap();
    let bytes = set.to_bytes();
    for (keys, is_fine) in [(set.slots(), true), (set.slots() + 1, false)] {
        let mut changed = bytes.clone();
        changed[40..48].copy_from_slice(&keys.to_le_bytes());
        let words = aligned(&changed);
        assert_eq!(StaticSetView::<u64>::from_bytes_unverified(bytemuck::cast_slice(&words)).is_ok(), is_fine);
    }
    for field in 0..8 {
        for value in [0, 1, 7, 16, 21, 63, 64, 1 << 20, u64::from(u32::MAX), 1 << 32, 1 << 63, u64::MAX] {
            let mut damaged = bytes.clone();
            damaged[24 + 8 * field..][..8].copy_from_slice(&value.to_le_bytes());
            sealed(&mut damaged);
            if damaged != bytes {
                let read = StaticSet::<u64>::from_bytes(&damaged);
                assert!(read.is_err(), "parameter {field} is {value}");
                let words = aligned(&damaged);
                // Without the check answers may be wrong, nothing worse.
                if let Ok(view) = StaticSetView::<u64>::from_bytes_unverified(bytemuck::cast_slice(&words)) {
                    assert_eq!(view.contains_bulk(&keys_of(mixed, 100)).unwrap().len(), 100);
                    assert!(view.keys().count() as u64 <= view.slots());
                }
            }
        }
    }
}

/// Checks that bytes with a right checksum and a key where no lookup finds it are an error.
#[test]
fn misplaced_keys_are_an_error() {
    let set = StaticSet::<u64>::builder().build_from(&keys_of(mixed, 3000)).unwrap();
    let bytes = set.to_bytes();
    let keys_begin = bytes.len() - 8 * set.slots() as usize;
    for at in [keys_begin, keys_begin + 8, bytes.len() - 8, bytes.len() / 2 / 8 * 8] {
        for value in [0u64, u64::MAX, mixed(5), mixed(1 << 40)] {
            let mut damaged = bytes.clone();
            damaged[at..at + 8].copy_from_slice(&value.to_le_bytes());
            sealed(&mut damaged);
            if damaged != bytes {
                let read = StaticSet::<u64>::from_bytes(&damaged);
                assert!(matches!(read, Err(Error::Invalid { .. })), "{value} at {at}: {read:?}");
            }
        }
    }
    let mut damaged = bytes.clone();
    damaged[HEADER_BYTES..keys_begin].fill(3);
    sealed(&mut damaged);
    assert!(matches!(StaticSet::<u64>::from_bytes(&damaged), Err(Error::Invalid { .. })));
    let truncated = StaticSet::<u64>::from_bytes(&bytes[..bytes.len() - 64]);
    assert!(matches!(truncated, Err(Error::File(FileError::Truncated { .. }))));
    let missing = StaticSet::<u64>::load("/nonexistent/set").unwrap_err();
    assert!(missing.to_string().contains("/nonexistent/set") && fs::metadata("/nonexistent/set").is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Checks few different keys, so that equal ones are frequent, under any seed.
    #[test]
    fn any_keys_in_any_order(keys in prop::collection::vec(0u64..400, 0..600), shift in 0u32..56, seed in any::<u64>()) {
        let keys: Vec<u64> = keys.iter().map(|key| key << shift).collect();
        let values: Vec<u32> = (0..keys.len() as u32).collect();
        let map = StaticMap::<u64, u32>::builder().seed(seed).build_from(&keys, &values).unwrap();
        is_the_map_of(&keys, &values, &keys_of(|i| i, 500), &map);
        prop_assert!(StaticMap::from_bytes(&map.to_bytes()).unwrap() == map);
    }
}

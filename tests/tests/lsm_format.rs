//! Saved dictionaries: fixtures of each version, damaged and foreign bytes, views of mapped files.
//!
//! `WARPSET_WRITE_FIXTURES=1 cargo test -p warpset-tests --test lsm_format` writes the fixtures of a new version.

use std::path::{Path, PathBuf};

use warpset::lsm::{CleanupPolicy, Error, FileError, HEADER_BYTES, Lsm, OrderedKey, SortedArray, Value, View, units};

/// Several levels, tombstones, copies of keys, the ends of the range.
fn tree() -> Lsm<u32, u64> {
    let policy = CleanupPolicy::EveryBatches(100);
    let mut lsm = Lsm::builder().batch_size(64).cleanup(policy).build().unwrap();
    for batch in 0..5u32 {
        let keys: Vec<u32> = (0..50).map(|i| (batch + 3) * i * 7 % 211).collect();
        lsm.insert_bulk(&keys, &keys.iter().map(|&key| u64::from(key * 10 + batch)).collect::<Vec<_>>()).unwrap();
    }
    lsm.update_bulk(&[0, u32::MAX, 7, 7], &[5, 6, 7, 8], &[false, false, false, true]).unwrap();
    lsm.remove_bulk(&[21, 22, 23]).unwrap();
    lsm
}

fn set() -> Lsm<u64, ()> {
    let mut lsm = Lsm::builder().build_from(&[5, u64::MAX, 0, 5], units(4)).unwrap();
    lsm.remove(5).unwrap();
    lsm
}

fn signed() -> Lsm<i64, u32> {
    let mut lsm = Lsm::builder().batch_size(64).cleanup(CleanupPolicy::Manual).build().unwrap();
    let keys: Vec<i64> = (-50..50).map(|i| i * i * i).chain([i64::MIN, i64::MAX]).collect();
    lsm.insert_bulk(&keys, &(0..102).collect::<Vec<_>>()).unwrap();
    lsm.remove_bulk(&[-1, 0, 8]).unwrap();
    lsm
}

fn array() -> SortedArray<u64, u32> {
    SortedArray::builder().build_from(&[9, 1, u64::MAX, 9, 0], &[90, 10, 7, 91, 1]).unwrap()
}

/// What is checked of either structure.
trait Saved: Sized + PartialEq {
    type Key: OrderedKey;
    type Value: Value;
    fn to_bytes(&self) -> Vec<u8>;
    fn from_bytes(bytes: &[u8]) -> Result<Self, Error>;
    fn load(path: &Path) -> Result<Self, Error>;
    fn save(&self, path: &Path);
    fn elements(&self) -> Vec<(Self::Key, Self::Value)>;
    /// What must hold of everything that loads.
    fn check(&self);
}

macro_rules! saved {
    ($type:ident, $check:expr) => {
        impl<K: OrderedKey, V: Value> Saved for $type<K, V> {
            type Key = K;
            type Value = V;
            fn to_bytes(&self) -> Vec<u8> {
                self.to_bytes()
            }
            fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
                $type::from_bytes(bytes)
            }
            fn load(path: &Path) -> Result<Self, Error> {
                $type::load(path)
            }
            fn save(&self, path: &Path) {
                self.save(path).unwrap();
            }
            fn elements(&self) -> Vec<(K, V)> {
                self.iter().collect()
            }
            fn check(&self) {
                $check(self)
            }
        }
    };
}
saved!(Lsm, |lsm: &Lsm<K, V>| lsm.check_invariants().unwrap());
saved!(SortedArray, |array: &SortedArray<K, V>| assert!(array.keys().windows(2).all(|two| two[0] < two[1])));

fn fixture<S: Saved>(name: &str, structure: &S) {
    // At run time: packed tests run elsewhere than they were built.
    let package = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    let path = PathBuf::from(package).join("data").join(name);
    if std::env::var_os("WARPSET_WRITE_FIXTURES").is_some() {
        structure.save(&path);
    }
    assert!(S::load(&path).unwrap() == *structure, "{name}: levels or header changed");
    assert_eq!(std::fs::read(&path).unwrap(), structure.to_bytes(), "{name}");
}

#[test]
fn fixtures_of_version_1() {
    fixture("lsm_tree.v1", &tree());
    fixture("lsm_set.v1", &set());
    fixture("lsm_sorted_array.v1", &array());
    fixture("lsm_signed.v1", &signed());
}

fn to_words(bytes: &[u8]) -> Vec<u64> {
    let word = |chunk: &[u8]| {
        let mut eight = [0; 8];
        eight[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(eight)
    };
    bytes.chunks(8).map(word).collect()
}

/// The bytes with a checksum that is right.
fn resealed<S: Saved>(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Err(Error::File(FileError::Corrupted { found, .. })) = S::from_bytes(&bytes) {
        bytes[120..128].copy_from_slice(&found.to_le_bytes());
    }
    bytes
}

/// Any answer, no panic and no end of it.
fn ask<K: OrderedKey, V: Value>(view: &View<'_, K, V>) {
    let keys: Vec<K> = view.iter().take(1000).flat_map(|(key, _)| [Some(key), key.above()]).flatten().collect();
    view.get_bulk(&keys);
    view.count_range_bulk(&[(std::ops::Bound::Unbounded, std::ops::Bound::<K>::Unbounded)]);
    view.successor_bulk(&keys);
    view.predecessor_bulk(&keys);
    let _ = (view.first_key_value(), view.last_key_value(), view.len());
}

fn damage<S: Saved>(structure: &S) {
    let good = structure.to_bytes();
    assert!(S::from_bytes(&good).unwrap() == *structure);
    for len in 0..good.len() {
        let cut = S::from_bytes(&good[..len]);
        assert!(matches!(cut, Err(Error::File(FileError::Truncated { .. }))), "cut at {len}");
    }
    let mut long = good.clone();
    long.push(0);
    assert!(matches!(S::from_bytes(&long), Err(Error::File(FileError::TrailingBytes { extra: 1 }))));
    for at in 0..good.len() {
        for bit in [0, 1, 3, 7] {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            let Err(error) = S::from_bytes(&bad) else { panic!("bit {bit} of byte {at} may change") };
            match at {
                0..8 => assert!(matches!(error, Error::File(FileError::BadMagic)), "{at}: {error}"),
                8..10 => assert!(matches!(error, Error::File(FileError::UnsupportedVersion { .. })), "{at}: {error}"),
                10..12 => assert!(matches!(error, Error::File(FileError::WrongStructure { .. })), "{at}: {error}"),
                120.. => assert!(matches!(error, Error::File(FileError::Corrupted { .. })), "{at}: {error}"),
                _ => {}
            }
            // With the checksum made right, it loads only if its levels keep the invariants, and to the same bytes.
            let sealed = resealed::<S>(bad);
            if let Ok(other) = S::from_bytes(&sealed) {
                other.check();
                assert_eq!(other.to_bytes(), sealed, "byte {at}, bit {bit}");
            }
            let words = to_words(&sealed);
            if let Ok(view) = View::<S::Key, S::Value>::from_bytes_unverified(bytemuck::cast_slice(&words)) {
                ask(&view);
            }
        }
    }
}

#[test]
fn damaged_bytes_are_refused() {
    damage(&tree());
    damage(&set());
    damage(&array());
}

#[test]
fn absurd_sizes_are_refused_before_memory_is_asked_for() {
    let good = tree().to_bytes();
    // The payload's length, the parameter that repeats it, the number of levels and the length of the first one.
    for at in [16, 24 + 56, HEADER_BYTES, HEADER_BYTES + 16] {
        for value in [u64::MAX, u64::MAX / 8, 1 << 60, 1 << 40] {
            let mut bad = good.clone();
            bad[at..at + 8].copy_from_slice(&value.to_le_bytes());
            assert!(Lsm::<u32, u64>::from_bytes(&resealed::<Lsm<u32, u64>>(bad)).is_err(), "{value} at {at}");
        }
    }
    let mut both = good.clone();
    both[16..24].copy_from_slice(&(1u64 << 63).to_le_bytes());
    both[80..88].copy_from_slice(&(1u64 << 60).to_le_bytes());
    assert!(matches!(Lsm::<u32, u64>::read_from(&both[..]), Err(Error::File(FileError::Truncated { .. }))));
}

/// Files of other types of elements and of the other structure are told apart.
#[test]
fn types_are_told_apart() {
    let told = |bytes: &[u8]| match Lsm::<u64, u64>::from_bytes(bytes) {
        Err(Error::File(FileError::WrongStructure { expected, found })) => format!("{found}, not {expected}"),
        other => panic!("{other:?}"),
    };
    assert_eq!(told(&tree().to_bytes()), "Lsm<u32, u64>, not Lsm<u64, u64>");
    assert_eq!(told(&set().to_bytes()), "Lsm<u64, ()>, not Lsm<u64, u64>");
    assert_eq!(told(&signed().to_bytes()), "Lsm<i64, u32>, not Lsm<u64, u64>");
    assert_eq!(told(&array().to_bytes()), "SortedArray<u64, u32>, not Lsm");
}

#[test]
fn views_and_streams() {
    let words = to_words(&array().to_bytes());
    let view = View::<u64, u32>::from_bytes(bytemuck::cast_slice(&words)).unwrap();
    assert!(view.iter().eq(array().iter()));
    assert_eq!(array().elements(), [(0, 1), (1, 10), (9, 91), (u64::MAX, 7)]);
    let misaligned = View::<u64, u32>::from_bytes(&bytemuck::cast_slice(&words)[1..]);
    assert!(misaligned.is_err());
    let mut stream = tree().to_bytes();
    stream.extend_from_slice(b"what follows");
    let mut reader = &stream[..];
    assert!(Lsm::<u32, u64>::read_from(&mut reader).unwrap() == tree());
    assert_eq!(reader, b"what follows");
}

/// A header may claim any number of updates; a fuzzer found that the next one overflowed.
#[test]
fn a_tree_of_the_most_updates_takes_more() {
    let mut bytes = tree().to_bytes();
    bytes[72..80].copy_from_slice(&u64::MAX.to_le_bytes());
    let Err(Error::File(FileError::Corrupted { found, .. })) = Lsm::<u32, u64>::from_bytes(&bytes) else {
        panic!("the checksum covers the header");
    };
    bytes[120..128].copy_from_slice(&found.to_le_bytes());
    let mut lsm = Lsm::<u32, u64>::from_bytes(&bytes).unwrap();
    lsm.insert_bulk(&[1000, 1001], &[1, 2]).unwrap();
    lsm.remove_bulk(&[1001]).unwrap();
    assert_eq!((lsm.get(1000), lsm.get(1001)), (Some(1), None));
    lsm.check_invariants().unwrap();
}

//! Dictionaries: fixtures, damaged and foreign bytes, views of mapped files.

use warpset::lsm::cpu::Dictionary;
use warpset::lsm::{CleanupPolicy, Error, FileError, Lsm, OrderedKey, SortedArray, Value, View};
use warpset_base::file::{self, HEADER_BYTES, Saved};
use warpset_tests::files::{self, fixture, resealed, to_words};

/// Makes a tree of several levels, with tombstones, copies of keys, and the ends of the range.
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
    let mut lsm = Lsm::builder().build_from(&[5, u64::MAX, 0, 5], &[(); 4]).unwrap();
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

#[test]
fn fixtures_of_version_1() {
    fixture("lsm_tree.v1", &tree());
    fixture("lsm_set.v1", &set());
    fixture("lsm_sorted_array.v1", &array());
    fixture("lsm_signed.v1", &signed());
}

/// Calls every query: any answer is right, a panic or an endless loop is not.
fn ask<K: OrderedKey, V: Value>(view: &View<'_, K, V>) {
    let keys: Vec<K> =
        view.iter().take(1000).step_by(5).flat_map(|(key, _)| [Some(key), key.above()]).flatten().collect();
    view.get_bulk(&keys);
    view.count_range_bulk(&[(std::ops::Bound::Unbounded, std::ops::Bound::<K>::Unbounded)]);
    view.successor_bulk(&keys);
    view.predecessor_bulk(&keys);
    let _ = (view.first_key_value(), view.last_key_value(), view.len());
}

#[test]
fn damaged_bytes_are_refused() {
    /// Checks that a damaged file with a right checksum loads only if its levels keep the invariants, and then saves to
    /// the same bytes.
    fn damage<K: OrderedKey, V: Value, P>(structure: &Dictionary<K, V, P>, check: impl Fn(&Dictionary<K, V, P>))
    where
        Dictionary<K, V, P>: Saved + PartialEq,
    {
        files::damage(
            structure,
            |_| vec![0, 1, 3, 7],
            |sealed, place| {
                if let Ok(other) = file::from_bytes::<Dictionary<K, V, P>>(sealed) {
                    check(&other);
                    assert_eq!(file::to_bytes(&other), sealed, "{place}");
                }
                if let Ok(view) = View::<K, V>::from_bytes_unverified(bytemuck::cast_slice(&to_words(sealed))) {
                    ask(&view);
                }
            },
        );
    }
    damage(&tree(), |lsm| lsm.check_invariants().unwrap());
    damage(&set(), |lsm| lsm.check_invariants().unwrap());
    damage(&array(), |array| assert!(array.keys().windows(2).all(|two| two[0] < two[1])));
}

#[test]
fn absurd_sizes_are_refused_before_memory_is_asked_for() {
    let good = tree().to_bytes();
    // The payload's length, the parameter that repeats it, the number of levels and the length of the first one.
    for at in [16, 24 + 56, HEADER_BYTES, HEADER_BYTES + 16] {
        for value in [u64::MAX, u64::MAX / 8, 1 << 60, 1 << 40] {
            let mut bad = good.clone();
            bad[at..at + 8].copy_from_slice(&value.to_le_bytes());
            assert!(Lsm::<u32, u64>::from_bytes(&resealed(bad)).is_err(), "{value} at {at}");
        }
    }
    let mut both = good.clone();
    both[16..24].copy_from_slice(&(1u64 << 63).to_le_bytes());
    both[80..88].copy_from_slice(&(1u64 << 60).to_le_bytes());
    files::announces_too_much::<Lsm<u32, u64>>(&both);
}

/// Checks that files of other types of elements and of the other structure are told apart.
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
fn views_iterate_and_are_aligned() {
    let words = to_words(&array().to_bytes());
    let view = View::<u64, u32>::from_bytes(bytemuck::cast_slice(&words)).unwrap();
    assert!(view.iter().eq(array().iter()));
    assert_eq!(array().iter().collect::<Vec<_>>(), [(0, 1), (1, 10), (9, 91), (u64::MAX, 7)]);
    let misaligned = View::<u64, u32>::from_bytes(&bytemuck::cast_slice(&words)[1..]);
    assert!(misaligned.is_err());
}

/// Inserts into a tree whose header claims the largest number of updates; a fuzzer found that the next one overflowed.
#[test]
fn a_tree_of_the_most_updates_takes_more() {
    let mut bytes = tree().to_bytes();
    bytes[72..80].copy_from_slice(&u64::MAX.to_le_bytes());
    let mut lsm = Lsm::<u32, u64>::from_bytes(&resealed(bytes)).unwrap();
    lsm.insert_bulk(&[1000, 1001], &[1, 2]).unwrap();
    lsm.remove_bulk(&[1001]).unwrap();
    assert_eq!((lsm.get(1000), lsm.get(1001)), (Some(1), None));
    lsm.check_invariants().unwrap();
}

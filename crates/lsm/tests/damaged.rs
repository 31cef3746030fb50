//! Saved bytes of types of all kinds that are truncated or damaged: a loader that reads level by level rejects them
//! like one that reads the whole.

use warpset_lsm::{CleanupPolicy, Error, FileError, Lsm, OrderedKey, SortedArray, Value};

/// Returns the error of loading the bytes; both ways to read them give the same.
fn refused<K: OrderedKey, V: Value>(bytes: &[u8]) -> FileError {
    let reason = |error: Option<Error>| match error {
        Some(Error::File(error)) => error,
        other => panic!("{other:?}"),
    };
    let streamed = reason(Lsm::<K, V>::read_from(bytes).err());
    let whole = reason(Lsm::<K, V>::from_bytes(bytes).err());
    assert_eq!(streamed.to_string(), whole.to_string());
    whole
}

fn check<K: OrderedKey, V: Value>(key: impl Fn(u64) -> K, value: impl Fn(u64) -> V) {
    let mut lsm = Lsm::builder().batch_size(64).cleanup(CleanupPolicy::Manual).build().unwrap();
    for batch in 0..3 {
        let keys: Vec<K> = (0..40).map(|i| key(i * 7 + batch)).collect();
        let values: Vec<V> = (0..40).map(|i| value(i << batch)).collect();
        lsm.insert_bulk(&keys, &values).unwrap();
    }
    lsm.remove_bulk(&[key(7), key(9)]).unwrap();
    let good = lsm.to_bytes();
    assert!(Lsm::read_from(&good[..]).unwrap() == lsm);
    for len in 0..good.len() {
        let told = refused::<K, V>(&good[..len]);
        assert!(matches!(told, FileError::Truncated { found, .. } if found == len as u64), "{len}: {told}");
    }
    for at in 128..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        let told = refused::<K, V>(&bad);
        assert!(matches!(told, FileError::Corrupted { .. }), "{at}: {told}");
    }
    let keys: Vec<K> = (0..100).map(&key).collect();
    let array = SortedArray::builder().build_from(&keys, &keys.iter().map(|_| value(3)).collect::<Vec<_>>()).unwrap();
    assert!(SortedArray::read_from(&array.to_bytes()[..]).unwrap() == array);
    assert!(matches!(Lsm::<K, V>::from_bytes(&array.to_bytes()), Err(Error::File(FileError::WrongStructure { .. }))));
}

#[test]
fn every_bit_and_every_length() {
    check::<u128, [u8; 12]>(|i| u128::from(i) << 62, |i| [i as u8; 12]);
    check::<[u8; 3], u8>(|i| [1, (i >> 8) as u8, i as u8], |i| i as u8);
    check::<i64, ()>(|i| i as i64 - 100, |_| ());
}

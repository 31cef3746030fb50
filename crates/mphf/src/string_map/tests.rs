//! String maps over every kind of function.

use crate::kind_tests::for_each_kind;
use crate::{Builder, Error, HashKind, PlacementKind, StringMap, StringMapView};
use warpset_base::file::FileError;

/// Returns distinct strings of lengths from 0 on.
fn strings(n: usize) -> Vec<String> {
    (0..n).map(|i| if i == 0 { String::new() } else { format!("{i}{}", "x".repeat(i % 23)) }).collect()
}

for_each_kind! { answers_are_exact }

fn answers_are_exact<M: HashKind>() {
    let builder = Builder::<M, StringMap<M>>::new();
    for n in [0, 1, 2, 50, 3000] {
        let keys = strings(n);
        let values: Vec<u64> = (0..n as u64).map(|i| i * i).collect();
        let map = builder.clone().bucket_size(100).seed(3).build_from(&keys, &values).unwrap();
        assert_eq!((map.len(), map.is_empty()), (n as u64, n == 0));
        let strangers: Vec<Vec<u8>> = (0..500_u32).map(|i| [&i.to_le_bytes()[..], b"y"].concat()).collect();
        assert!(strangers.iter().all(|key| map.get(key).is_none() && !map.contains(key)));
        assert!(map.get_bulk(&strangers).iter().all(Option::is_none));
        assert!(keys.iter().zip(&values).all(|(key, &value)| map.get(key) == Some(value)));
        assert!(map.get_bulk(&keys).into_iter().eq(values.iter().map(|&value| Some(value))));
        let mut listed: Vec<_> = map.iter().map(|(key, value)| (value, key.to_vec())).collect();
        listed.sort();
        assert!(listed.iter().map(|(_, key)| key.as_slice()).eq(keys.iter().map(String::as_bytes)));
        assert!(map.iter().enumerate().all(|(i, (key, _))| map.function().get(key) == i as u64));
        let read = StringMap::<M>::from_bytes(&map.to_bytes()).unwrap();
        assert!(read == map && read.get_bulk(&keys) == map.get_bulk(&keys));
        let view = StringMapView::<M>::from_words(map.words()).unwrap();
        assert!(view.get_bulk(&keys) == map.get_bulk(&keys));
    }
    assert!(matches!(builder.build_from(&["a", "b", "a"], &[1, 2, 3]), Err(Error::DuplicateKey { .. })));
    assert!(matches!(builder.build_from(&["a", "b"], &[1]), Err(Error::LengthMismatch(_))));
}

#[test]
fn damage_is_an_error_or_does_no_harm() {
    let keys = strings(200);
    let map = StringMap::builder().build_from(&keys, &vec![7; 200]).unwrap();
    let whole = map.words();
    for at in 3..whole.len() {
        for damage in [1, 1 << 40, u64::MAX] {
            let mut words = whole.to_vec();
            words[at] ^= damage;
            let Err(Error::File(FileError::Corrupted { found, .. })) =
                StringMap::<PlacementKind>::from_words(words.clone())
            else {
                continue;
            };
            words[15] = found;
            let Ok(damaged) = StringMapView::<PlacementKind>::from_words(&words) else { continue };
            damaged.get_bulk(&keys);
            assert!(keys.iter().filter_map(|key| damaged.get(key)).count() <= keys.len());
            damaged.iter().for_each(drop);
        }
    }
}

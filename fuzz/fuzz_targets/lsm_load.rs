//! Saved dictionaries from any bytes: no panic, no memory that the bytes do not justify; what loads keeps the
//! invariants.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpset_lsm::{Lsm, OrderedKey, SortedArray, Value, View};

fuzz_target!(|bytes: &[u8]| {
    load::<u32, u32>(bytes);
    load::<u64, u64>(bytes);
    load::<u32, ()>(bytes);
    load::<i64, u32>(bytes);
    load::<[u8; 16], [u8; 12]>(bytes);
    load::<u128, u8>(bytes);
});

fn load<K: OrderedKey, V: Value>(bytes: &[u8]) {
    if let Ok(array) = SortedArray::<K, V>::from_bytes(bytes) {
        assert!(array.keys().windows(2).all(|two| two[0] < two[1]));
    }
    warpset_fuzz::load(bytes, use_it::<K, V>, |bytes| {
        if let Ok(view) = View::<K, V>::from_bytes_unverified(bytes) {
            view.get_bulk(&[K::MIN, K::MAX]);
            view.get(K::MIN);
            view.count_range(..);
            view.iter().count();
            view.successor_bulk(&[K::MIN, K::MAX]);
            view.predecessor_bulk(&[K::MIN, K::MAX]);
        }
    });
}

fn use_it<K: OrderedKey, V: Value>(mut lsm: Lsm<K, V>) {
    lsm.check_invariants().unwrap();
    let live: Vec<(K, V)> = lsm.iter().collect();
    assert_eq!(live.len() as u64, lsm.len());
    let (keys, values): (Vec<K>, Vec<V>) = live.iter().copied().unzip();
    assert!(lsm.get_bulk(&keys).into_iter().eq(values.iter().copied().map(Some)));
    lsm.remove_bulk(&keys).unwrap();
    assert!(lsm.is_empty());
    lsm.insert_bulk(&keys, &values).unwrap();
    lsm.cleanup().unwrap();
    lsm.check_invariants().unwrap();
    assert!(lsm.iter().eq(live));
}

//! Saved static sets and maps from any bytes: no panic, no memory that the bytes do not justify; what loads has each of
//! its keys where a lookup finds it.
//!
//! Magic, lengths and checksum keep a fuzzer out, so the bytes are also tried as everything that follows a header that
//! is right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpset_static::{Filter, StaticKey, StaticMap, StaticMapView, Value};

fn ask<K: StaticKey, V: Value>(view: StaticMapView<'_, K, V>, is_verified: bool) {
    let keys: Vec<K> = view.keys().take(1000).collect();
    let numbers = view.number_bulk(&keys);
    assert!(numbers.iter().flatten().all(|&number| number < view.slots()));
    if is_verified {
        assert!(numbers.iter().zip(&keys).all(|(number, &key)| view.key_at(number.unwrap()) == Some(key)));
        assert_eq!(view.keys().count() as u64, view.len());
    }
    view.contains_bulk(&[K::zeroed()]).unwrap();
    let _ = (view.bits_per_key(), view.load_factor());
}

fn load<K: StaticKey, V: Value>(bytes: &[u8]) {
    let use_it = |map: StaticMap<K, V>| ask(map.view(), true);
    warpset_fuzz::load(bytes, use_it, |bytes| {
        if let Ok(view) = StaticMapView::<K, V>::from_bytes_unverified(bytes) {
            ask(view, false);
        }
    });
}

fuzz_target!(|bytes: &[u8]| {
    for bytes in [bytes, &warpset_fuzz::with_header(40, bytes)] {
        load::<u64, ()>(bytes);
        load::<u32, u64>(bytes);
        load::<u64, u32>(bytes);
    }
});

//! Saved static sets and maps from any bytes: no panic, no memory that the bytes do not justify; what loads has each of
//! its keys where a lookup finds it.
//!
//! Magic, lengths and checksum keep a fuzzer out, so the bytes are also tried as everything that follows a header that
//! is right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpset_static::{Filter, StaticKey, StaticMap, StaticMapView, Value};
use xxhash_rust::xxh3::Xxh3;

/// Bytes of the header that every structure has.
const HEADER: usize = 128;

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
    if let Ok(map) = StaticMap::<K, V>::read_from(bytes) {
        assert!(bytes.starts_with(&map.to_bytes()));
        ask(map.view(), true);
    }
    let words: Vec<u64> = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
    // SAFETY: any bytes are bytes.
    let aligned = unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), 8 * words.len()) };
    if let Ok(view) = StaticMapView::<K, V>::from_bytes_unverified(aligned) {
        ask(view, false);
    }
}

/// Builds a file: `bytes` from the fourth word on, after the first words and with the checksum of a saved map.
fn with_header(bytes: &[u8]) -> Vec<u8> {
    let mut all = vec![0; 24];
    all.extend_from_slice(bytes);
    all.resize(all.len().next_multiple_of(8).max(HEADER), 0);
    let payload = (all.len() - HEADER) as u64;
    all[..8].copy_from_slice(b"WARPSET\0");
    all[8..10].copy_from_slice(&1u16.to_le_bytes());
    all[10..12].copy_from_slice(&40u16.to_le_bytes());
    all[12..16].copy_from_slice(&(HEADER as u32).to_le_bytes());
    all[16..24].copy_from_slice(&payload.to_le_bytes());
    let mut hasher = Xxh3::new();
    hasher.update(&all[..HEADER - 8]);
    hasher.update(&all[HEADER..]);
    all[HEADER - 8..HEADER].copy_from_slice(&hasher.digest().to_le_bytes());
    all
}

fuzz_target!(|bytes: &[u8]| {
    for bytes in [bytes, &with_header(bytes)] {
        load::<u64, ()>(bytes);
        load::<u32, u64>(bytes);
        load::<u64, u32>(bytes);
    }
});

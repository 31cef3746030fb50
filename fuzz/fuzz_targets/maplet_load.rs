//! Saved maplets from any bytes: no panic, no memory that the bytes do not justify; what loads is whole.
//!
//! Checksums keep a fuzzer out, so the bytes are also opened without them, and once more with the checksum made right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpset_quotient::{Error, FileError, Maplet, MapletBuilder, MapletView, Max};

fn use_it(mut maplet: Maplet, bytes: &[u8]) {
    assert_eq!(maplet.to_bytes(), bytes);
    let counts: Vec<((u64, u64), u64)> = maplet.pair_counts().collect();
    assert!(counts.is_sorted());
    assert!(MapletBuilder::with_layout(*maplet.layout()).layout().unwrap() == *maplet.layout());
    maplet.get_bulk(&(0..300u64).collect::<Vec<_>>());
    maplet.values("key");
    let _ = maplet.insert("key", 1);
    let _ = maplet.upsert_bulk::<Max<u64>, _, _>(&[1u64, 2, 1], &[0u8, 1, 1]);
    maplet.remove(7u64);
    let other = maplet.clone();
    let _ = maplet.merge(&other);
    let _ = maplet.merge_by::<Max<u64>>(&other);
    let _ = maplet.double();
    let _ = maplet.halve();
}

fuzz_target!(|bytes: &[u8]| {
    match Maplet::from_bytes(bytes) {
        Ok(maplet) => use_it(maplet, bytes),
        Err(Error::File(FileError::Corrupted { found, .. })) => {
            let mut fixed = bytes.to_vec();
            fixed[120..128].copy_from_slice(&found.to_le_bytes());
            if let Ok(maplet) = Maplet::from_bytes(&fixed) {
                use_it(maplet, &fixed);
            }
        }
        Err(_) => {}
    }
    let _ = Maplet::read_from(bytes);
    // Whole words, at a multiple of their size.
    let words: Vec<u64> =
        bytes.chunks_exact(8).map(|eight| u64::from_le_bytes(eight.try_into().unwrap_or_default())).collect();
    // SAFETY: any words are bytes, eight times as many.
    let aligned = unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), 8 * words.len()) };
    if let Ok(view) = MapletView::from_bytes_unverified(aligned) {
        view.get("key");
        view.get_bulk(&(0..300u64).collect::<Vec<_>>());
        view.values(3u64);
        view.pair_counts().count();
    }
});

//! Saved maplets from any bytes: no panic, no memory that the bytes do not justify; what loads is whole.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpset_quotient::{Maplet, MapletBuilder, MapletView, Max};

fn use_it(mut maplet: Maplet) {
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
    warpset_fuzz::load(bytes, use_it, |bytes| {
        if let Ok(view) = MapletView::from_bytes_unverified(bytes) {
            view.get("key");
            view.get_bulk(&(0..300u64).collect::<Vec<_>>());
            view.values(3u64);
            view.pair_counts().count();
        }
    });
});

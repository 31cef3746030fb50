//! Saved quotient filters from any bytes: no panic, no memory that the bytes do not justify; what loads is whole.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpset_quotient::{
    Builder, Duplicates, Filter, Hashed, Insert, QuotientFilter, RankSelect, SlotKind, Standard, View,
};

fn use_it<S: SlotKind>(mut filter: QuotientFilter<S>) {
    if filter.layout().duplicates() == Duplicates::Counted {
        let mut rebuilt = Builder::<S>::with_layout(*filter.layout()).build().unwrap();
        for (fingerprint, copies) in filter.fingerprint_counts() {
            assert_eq!(filter.count_fingerprint(fingerprint), copies);
            rebuilt.insert_counted_fingerprint(fingerprint, copies).unwrap();
        }
        assert!(rebuilt == filter);
        let _ = filter.insert_counted(7u64, u64::MAX / 3);
        filter.remove_counted(7u64, 5);
        let _ = filter.retain_counts(2);
        return;
    }
    let fingerprints: Vec<u64> = filter.fingerprints().collect();
    assert_eq!(fingerprints.len() as u64, filter.len());
    assert!(fingerprints.is_sorted());
    assert!(fingerprints.iter().all(|&f| filter.contains_fingerprint(f)));
    let rebuilt = Builder::<S>::with_layout(*filter.layout()).build_from_fingerprints(&fingerprints).unwrap();
    assert!(rebuilt == filter);
    // One batch, with enough keys that the runs waiting at each block are counted first.
    if let Ok(keys) = filter.view().keys() {
        let keys: Vec<u64> = keys.collect();
        assert_eq!(filter.count_contained_bulk(&keys).unwrap(), fingerprints.len());
    } else {
        let bits = filter.layout().fingerprint_bits();
        let asked: Vec<Hashed> = fingerprints.iter().map(|f| Hashed(f << (64 - bits))).collect();
        assert_eq!(filter.count_contained_bulk(&asked).unwrap(), asked.len());
    }
    let _ = filter.insert("key");
    filter.remove(7u64);
    let _ = filter.insert_bulk(&[1u64, 2, 3]);
    let _ = filter.double();
    let _ = filter.remove_fingerprints_bulk(&fingerprints);
}

fuzz_target!(|bytes: &[u8]| {
    load::<Standard>(bytes);
    load::<RankSelect>(bytes);
});

fn load<S: SlotKind>(bytes: &[u8]) {
    warpset_fuzz::load(bytes, use_it::<S>, |bytes| {
        if let Ok(view) = View::<S>::from_bytes_unverified(bytes) {
            view.contains("key");
            view.contains_bulk(&(0..300u64).collect::<Vec<_>>()).unwrap();
            view.count(3u64);
            view.fpr();
        }
    });
}

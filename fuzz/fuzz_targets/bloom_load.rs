//! Saved filters from any bytes: no panic, no memory that the bytes do not justify; what loads is whole.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpset_bloom::cpu::Bloom;
use warpset_bloom::{BlockedLayout, Filter, Layout, RaoLayout, SplitBlockLayout, View};

fn load<L: Layout>(bytes: &[u8]) {
    let use_it = |mut filter: Bloom<L>| {
        filter.contains("key");
        filter.contains(7u64);
        filter.fill_ratio();
        filter.fpr();
        let _ = filter.fold(2);
    };
    let refused = warpset_fuzz::load(bytes, use_it, |bytes| {
        if let Ok(view) = View::<L>::from_bytes_unverified(bytes) {
            view.contains("key");
            view.contains_bulk(&[1u64, 2, 3]).unwrap();
            view.estimated_len();
        }
    });
    // Any words are those of a filter.
    assert!(refused.is_none(), "{refused:?}");
}

fuzz_target!(|bytes: &[u8]| {
    load::<SplitBlockLayout>(bytes);
    load::<BlockedLayout>(bytes);
    load::<RaoLayout>(bytes);
});

//! Saved sequence filters from any bytes: no panic, no memory that the bytes do not justify; what loads answers.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpset_sequence::{SequenceFilter, SequenceFilterView};

fn ask(view: SequenceFilterView<'_>, letters: &[u8]) {
    let hits = view.count(letters);
    assert!(hits.found <= hits.kmers);
    assert_eq!(view.contains_windows(letters).count_ones() as u64, hits.found);
    let _ = view.contains(letters);
}

fuzz_target!(|bytes: &[u8]| {
    let use_it = |filter: SequenceFilter| ask(filter.view(), bytes);
    warpset_fuzz::load(bytes, use_it, |bytes| {
        if let Ok(view) = SequenceFilterView::from_bytes_unverified(bytes) {
            ask(view, b"GATTACACCGGTTAACTTGCATGCACGATCGGCTAGCTAAGCTAGCTTTGCG");
        }
    });
});

//! Saved sequence filters from any bytes: no panic, no memory that the bytes do not justify; what loads answers.
//!
//! Checksums keep a fuzzer out, so the bytes are also opened without them, and once more with the checksum made right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpset_sequence::{Error, FileError, SequenceFilter, SequenceFilterView};

fn ask(view: SequenceFilterView<'_>, letters: &[u8]) {
    let hits = view.count(letters);
    assert!(hits.found <= hits.kmers);
    assert_eq!(view.contains_windows(letters).count_ones() as u64, hits.found);
    let _ = view.contains(letters);
}

fuzz_target!(|bytes: &[u8]| {
    match SequenceFilter::from_bytes(bytes) {
        Ok(filter) => {
            assert_eq!(filter.to_bytes(), bytes);
            ask(filter.view(), bytes);
        }
        Err(Error::File(FileError::Corrupted { found, .. })) => {
            let mut fixed = bytes.to_vec();
            fixed[120..128].copy_from_slice(&found.to_le_bytes());
            if let Ok(filter) = SequenceFilter::from_bytes(&fixed) {
                assert_eq!(filter.to_bytes(), fixed);
                ask(filter.view(), bytes);
            }
        }
        Err(_) => {}
    }
    let _ = SequenceFilter::read_from(bytes);
    // The slice may start anywhere, and is then refused as misaligned; words are aligned.
    let mut aligned = vec![0u64; bytes.len().div_ceil(8)];
    for (word, chunk) in aligned.iter_mut().zip(bytes.chunks(8)) {
        let mut eight = [0; 8];
        eight[..chunk.len()].copy_from_slice(chunk);
        *word = u64::from_le_bytes(eight);
    }
    // SAFETY: any bytes are `u8`s, and `aligned` has at least as many bytes.
    let aligned = unsafe { std::slice::from_raw_parts(aligned.as_ptr().cast(), bytes.len()) };
    if let Ok(view) = SequenceFilterView::from_bytes_unverified(aligned) {
        ask(view, b"GATTACACCGGTTAACTTGCATGCACGATCGGCTAGCTAAGCTAGCTTTGCG");
    }
});

//! Saved filters from any bytes: no panic, no memory that the bytes do not justify; what loads is whole.
//!
//! Checksums keep a fuzzer out, so the bytes are also opened without them, and once more with the checksum made right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpset_bloom::cpu::Bloom;
use warpset_bloom::{BlockedLayout, Error, FileError, Filter, Layout, RaoLayout, SplitBlockLayout, View};

fn load<L: Layout>(bytes: &[u8]) {
    match Bloom::<L>::from_bytes(bytes) {
        Ok(filter) => {
            assert_eq!(filter.to_bytes(), bytes);
            filter.contains("key");
            filter.fill_ratio();
        }
        Err(Error::File(FileError::Corrupted { found, .. })) => {
            let mut fixed = bytes.to_vec();
            fixed[120..128].copy_from_slice(&found.to_le_bytes());
            let filter = Bloom::<L>::from_bytes(&fixed).unwrap();
            assert_eq!(filter.to_bytes(), fixed);
            filter.contains(7u64);
            filter.fpr();
            let mut folded = filter.clone();
            let _ = folded.fold(2);
        }
        Err(_) => {}
    }
    let _ = Bloom::<L>::read_from(bytes);
    // The slice may start anywhere, and is then refused as misaligned; an allocation is aligned.
    let aligned = bytes.to_vec();
    if let Ok(view) = View::<L>::from_bytes_unverified(&aligned) {
        view.contains("key");
        view.contains_bulk(&[1u64, 2, 3]).unwrap();
        view.estimated_len();
    }
}

fuzz_target!(|bytes: &[u8]| {
    load::<SplitBlockLayout>(bytes);
    load::<BlockedLayout>(bytes);
    load::<RaoLayout>(bytes);
});

//! Binary fuse filters from any bytes, saved ones and arrays of other programs: no panic, no memory that the bytes do
//! not justify; what loads is whole.
//!
//! Checksums keep a fuzzer out, so the bytes are also opened without them, and once more with the checksum made right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpset_fuse::{BinaryFuse, Bincode, CWidth, Error, FileError, Filter, View, Width};

fn use_it<F: Width>(filter: &BinaryFuse<F>) {
    let asked: Vec<u64> = (0..300).collect();
    let answers = filter.contains_bulk(&asked).unwrap();
    assert!(asked.iter().zip(answers).all(|(&key, answer)| filter.contains(key) == answer));
    if let Ok(array) = filter.to_xorf() {
        let again = BinaryFuse::<F>::from_xorf(&array).unwrap();
        assert!(again.words() == filter.words());
    }
}

fuzz_target!(|bytes: &[u8]| {
    load::<u8>(bytes);
    load::<u16>(bytes);
    load::<u32>(bytes);
    load_of_c::<u8>(bytes);
    load_of_c::<u16>(bytes);
});

fn load<F: Width>(bytes: &[u8]) {
    match BinaryFuse::<F>::from_bytes(bytes) {
        Ok(filter) => {
            assert_eq!(filter.to_bytes(), bytes);
            use_it(&filter);
        }
        Err(Error::File(FileError::Corrupted { found, .. })) => {
            let mut fixed = bytes.to_vec();
            fixed[120..128].copy_from_slice(&found.to_le_bytes());
            if let Ok(filter) = BinaryFuse::<F>::from_bytes(&fixed) {
                assert_eq!(filter.to_bytes(), fixed);
                use_it(&filter);
            }
        }
        Err(_) => {}
    }
    let _ = BinaryFuse::<F>::read_from(bytes);
    for form in [Bincode::Standard, Bincode::Legacy] {
        if let Ok(filter) = BinaryFuse::<F>::from_xorf_bincode(bytes, form) {
            use_it(&filter);
        }
    }
    // The slice may start anywhere, and is then refused as misaligned; words are aligned.
    let mut aligned = vec![0u64; bytes.len().div_ceil(8)];
    for (word, chunk) in aligned.iter_mut().zip(bytes.chunks(8)) {
        let mut eight = [0; 8];
        eight[..chunk.len()].copy_from_slice(chunk);
        *word = u64::from_le_bytes(eight);
    }
    // SAFETY: any bytes are `u8`s, and `aligned` has at least as many bytes.
    let aligned = unsafe { std::slice::from_raw_parts(aligned.as_ptr().cast(), bytes.len()) };
    if let Ok(view) = View::<F>::from_bytes_unverified(aligned) {
        view.contains("key");
        view.contains_bulk(&(0..300u64).collect::<Vec<_>>()).unwrap();
    }
}

fn load_of_c<F: CWidth>(bytes: &[u8]) {
    if let Ok(filter) = BinaryFuse::<F>::from_c_bytes(bytes) {
        use_it(&filter);
        let again = BinaryFuse::<F>::from_c_bytes(&filter.to_c_bytes().unwrap()).unwrap();
        assert!(again == filter);
    }
}

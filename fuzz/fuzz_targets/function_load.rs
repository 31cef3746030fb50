//! Static functions from any bytes: no panic, no memory that the bytes do not justify; what loads is whole.
//!
//! Checksums keep a fuzzer out, so the bytes are also opened without them, and once more with the checksum made right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpset_fuse::{Error, FileError, FunctionValue, StaticFunction, StaticFunctionView};

fuzz_target!(|bytes: &[u8]| {
    load::<bool>(bytes);
    load::<u16>(bytes);
    load::<u64>(bytes);
});

fn use_it<V: FunctionValue>(view: StaticFunctionView<'_, V>) {
    let asked: Vec<u64> = (0..300).collect();
    let values = view.get_bulk(&asked);
    assert!(asked.iter().zip(values).all(|(&key, value)| view.get(key) == value));
}

fn load<V: FunctionValue>(bytes: &[u8]) {
    match StaticFunction::<V>::from_bytes(bytes) {
        Ok(function) => {
            assert_eq!(function.to_bytes(), bytes);
            use_it(function.view());
        }
        Err(Error::File(FileError::Corrupted { found, .. })) => {
            let mut fixed = bytes.to_vec();
            fixed[120..128].copy_from_slice(&found.to_le_bytes());
            if let Ok(function) = StaticFunction::<V>::from_bytes(&fixed) {
                assert_eq!(function.to_bytes(), fixed);
                use_it(function.view());
            }
        }
        Err(_) => {}
    }
    let _ = StaticFunction::<V>::read_from(bytes);
    // The slice may start anywhere, and is then refused as misaligned; words are aligned.
    let mut aligned = vec![0u64; bytes.len().div_ceil(8)];
    for (word, chunk) in aligned.iter_mut().zip(bytes.chunks(8)) {
        let mut eight = [0; 8];
        eight[..chunk.len()].copy_from_slice(chunk);
        *word = u64::from_le_bytes(eight);
    }
    // SAFETY: any bytes are `u8`s, and `aligned` has at least as many bytes.
    let aligned = unsafe { std::slice::from_raw_parts(aligned.as_ptr().cast(), bytes.len()) };
    if let Ok(view) = StaticFunctionView::<V>::from_bytes_unverified(aligned) {
        use_it(view);
    }
}

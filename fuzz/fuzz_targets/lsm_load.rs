//! Saved dictionaries from any bytes: no panic, no memory that the bytes do not justify; what loads keeps the
//! invariants.
//!
//! Checksums keep a fuzzer out, so the bytes are also opened without them, and once more with the checksum made right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpset_lsm::{Error, FileError, Lsm, OrderedKey, SortedArray, Value, View};

fuzz_target!(|bytes: &[u8]| {
    load::<u32, u32>(bytes);
    load::<u64, u64>(bytes);
    load::<u32, ()>(bytes);
    load::<i64, u32>(bytes);
    load::<[u8; 16], [u8; 12]>(bytes);
    load::<u128, u8>(bytes);
});

fn load<K: OrderedKey, V: Value>(bytes: &[u8]) {
    match Lsm::<K, V>::from_bytes(bytes) {
        Ok(lsm) => use_it(lsm, bytes),
        Err(Error::File(FileError::Corrupted { found, .. })) => {
            let mut fixed = bytes.to_vec();
            fixed[120..128].copy_from_slice(&found.to_le_bytes());
            if let Ok(lsm) = Lsm::<K, V>::from_bytes(&fixed) {
                use_it(lsm, &fixed);
            }
        }
        Err(_) => {}
    }
    if let Ok(array) = SortedArray::<K, V>::from_bytes(bytes) {
        assert!(array.keys().windows(2).all(|two| two[0] < two[1]));
    }
    let _ = Lsm::<K, V>::read_from(bytes);
    // The slice may start anywhere, and is then refused as misaligned; words are aligned.
    let mut aligned = vec![0u64; bytes.len().div_ceil(8)];
    let aligned = aligned_copy(&mut aligned, bytes);
    if let Ok(view) = View::<K, V>::from_bytes_unverified(aligned) {
        view.get_bulk(&[K::MIN, K::MAX]);
        view.get(K::MIN);
        view.count_range(..);
        view.iter().count();
        view.successor_bulk(&[K::MIN, K::MAX]);
        view.predecessor_bulk(&[K::MIN, K::MAX]);
    }
}

fn use_it<K: OrderedKey, V: Value>(mut lsm: Lsm<K, V>, bytes: &[u8]) {
    assert_eq!(lsm.to_bytes(), bytes);
    lsm.check_invariants().unwrap();
    let live: Vec<(K, V)> = lsm.iter().collect();
    assert_eq!(live.len() as u64, lsm.len());
    let (keys, values): (Vec<K>, Vec<V>) = live.iter().copied().unzip();
    assert!(lsm.get_bulk(&keys).into_iter().eq(values.iter().copied().map(Some)));
    lsm.remove_bulk(&keys).unwrap();
    assert!(lsm.is_empty());
    lsm.insert_bulk(&keys, &values).unwrap();
    lsm.cleanup().unwrap();
    lsm.check_invariants().unwrap();
    assert!(lsm.iter().eq(live));
}

/// Copies `bytes` to the start of `words`.
fn aligned_copy<'a>(words: &'a mut [u64], bytes: &[u8]) -> &'a [u8] {
    for (word, chunk) in words.iter_mut().zip(bytes.chunks(8)) {
        let mut eight = [0; 8];
        eight[..chunk.len()].copy_from_slice(chunk);
        *word = u64::from_le_bytes(eight);
    }
    // SAFETY: any bytes are `u8`s, and `words` has at least as many bytes.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), bytes.len()) }
}

//! Range filters from any bytes: no panic, no memory that the bytes do not justify; what loads is whole.
//!
//! Checksums keep a fuzzer out, so the bytes are also opened without them, and once more with the checksum made right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpset_range::{Error, FileError, KeyOf, RangeFilter, RangeFilterView, RangeKey};

fuzz_target!(|bytes: &[u8]| {
    load::<u64, u64>(bytes, |i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (i % 64));
    load::<i32, i32>(bytes, |i| (i as i32).wrapping_mul(0x9e37_79b9_u32 as i32) >> (i % 32));
    load::<u128, u128>(bytes, |i| u128::from(i).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835) >> (i % 128));
    load::<[u8], [u8; 3]>(bytes, |i| [i as u8, (i >> 2) as u8, 7]);
});

fn use_it<K: RangeKey + ?Sized, Q: KeyOf<K> + Copy>(view: RangeFilterView<'_, K>, key: impl Fn(u64) -> Q) {
    let ranges: Vec<_> = (0..300).map(|i| key(i)..key(i * 7 + 1)).collect();
    let answers = view.may_contain_bulk(&ranges);
    let counts = view.count_at_most_bulk(&ranges);
    for ((range, answer), count) in ranges.into_iter().zip(answers).zip(counts) {
        assert_eq!(view.may_contain(range.clone()), answer);
        assert_eq!(view.count_at_most(range), count);
        assert!(count <= view.len());
    }
}

fn load<K: RangeKey + ?Sized, Q: KeyOf<K> + Copy>(bytes: &[u8], key: impl Fn(u64) -> Q + Copy) {
    match RangeFilter::<K>::from_bytes(bytes) {
        Ok(filter) => {
            assert_eq!(filter.to_bytes(), bytes);
            use_it(filter.view(), key);
        }
        Err(Error::File(FileError::Corrupted { found, .. })) => {
            let mut fixed = bytes.to_vec();
            fixed[120..128].copy_from_slice(&found.to_le_bytes());
            if let Ok(filter) = RangeFilter::<K>::from_bytes(&fixed) {
                assert_eq!(filter.to_bytes(), fixed);
                use_it(filter.view(), key);
            }
        }
        Err(_) => {}
    }
    let _ = RangeFilter::<K>::read_from(bytes);
    // The slice may start anywhere, and is then refused as misaligned; words are aligned.
    let mut aligned = vec![0u64; bytes.len().div_ceil(8)];
    for (word, chunk) in aligned.iter_mut().zip(bytes.chunks(8)) {
        let mut eight = [0; 8];
        eight[..chunk.len()].copy_from_slice(chunk);
        *word = u64::from_le_bytes(eight);
    }
    // SAFETY: any bytes are `u8`s, and `aligned` has at least as many bytes.
    let aligned = unsafe { std::slice::from_raw_parts(aligned.as_ptr().cast(), bytes.len()) };
    if let Ok(view) = RangeFilterView::<K>::from_bytes_unverified(aligned) {
        use_it(view, key);
    }
}

//! Range filters from any bytes: no panic, no memory that the bytes do not justify; what loads is whole.
//!
//! Checksums keep a fuzzer out, so the bytes are also opened without them, and once more with the checksum made right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpset_range::{
    DynamicRangeFilter, DynamicRangeFilterView, Error, FileError, KeyOf, RangeFilter, RangeFilterView, RangeKey,
};

fuzz_target!(|bytes: &[u8]| {
    load::<u64, u64>(bytes, |i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (i % 64));
    load::<i32, i32>(bytes, |i| (i as i32).wrapping_mul(0x9e37_79b9_u32 as i32) >> (i % 32));
    load::<u128, u128>(bytes, |i| u128::from(i).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835) >> (i % 128));
    load::<[u8], [u8; 3]>(bytes, |i| [i as u8, (i >> 2) as u8, 7]);
});

fn load<K: RangeKey + ?Sized, Q: KeyOf<K> + Copy>(bytes: &[u8], key: impl Fn(u64) -> Q + Copy) {
    let ranges: Vec<_> = (0..300).map(|i| key(i)..key(i * 7 + 1)).collect();
    // The slice may start anywhere, and is then refused as misaligned; words are aligned.
    let mut aligned = vec![0u64; bytes.len().div_ceil(8)];
    for (word, chunk) in aligned.iter_mut().zip(bytes.chunks(8)) {
        let mut eight = [0; 8];
        eight[..chunk.len()].copy_from_slice(chunk);
        *word = u64::from_le_bytes(eight);
    }
    // SAFETY: any bytes are `u8`s, and `aligned` has at least as many bytes.
    let aligned = unsafe { std::slice::from_raw_parts(aligned.as_ptr().cast(), bytes.len()) };
    macro_rules! load {
        ($filter:ident, $view:ident, $use_it:expr) => {
            let use_it = |view: $view<'_, K>| {
                let answers = view.may_contain_bulk(&ranges);
                for (range, answer) in ranges.iter().zip(answers) {
                    assert_eq!(view.may_contain(range.clone()), answer);
                }
                $use_it(view);
            };
            match $filter::<K>::from_bytes(bytes) {
                Ok(filter) => {
                    assert_eq!(filter.to_bytes(), bytes);
                    use_it(filter.view());
                }
                Err(Error::File(FileError::Corrupted { found, .. })) => {
                    let mut fixed = bytes.to_vec();
                    fixed[120..128].copy_from_slice(&found.to_le_bytes());
                    if let Ok(filter) = $filter::<K>::from_bytes(&fixed) {
                        assert_eq!(filter.to_bytes(), fixed);
                        use_it(filter.view());
                    }
                }
                Err(_) => {}
            }
            let _ = $filter::<K>::read_from(bytes);
            if let Ok(view) = $view::<K>::from_bytes_unverified(aligned) {
                use_it(view);
            }
        };
    }
    load!(RangeFilter, RangeFilterView, |view: RangeFilterView<'_, K>| {
        let counts = view.count_at_most_bulk(&ranges);
        for (range, count) in ranges.iter().zip(counts) {
            assert_eq!(view.count_at_most(range.clone()), count);
            assert!(count <= view.len());
        }
    });
    load!(DynamicRangeFilter, DynamicRangeFilterView, |_| ());
    if let Ok(mut filter) = DynamicRangeFilter::<K>::from_bytes(bytes) {
        let keys: Vec<Q> = (0..50).map(key).collect();
        let before = filter.len();
        if filter.insert_bulk(&keys).is_ok() {
            assert!(filter.contains_bulk(&keys).iter().all(|&found| found));
            assert_eq!(filter.remove_bulk(&keys).unwrap(), 50);
        }
        assert_eq!(filter.len(), before);
    }
}

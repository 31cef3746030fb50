//! Range filters: answers of the Rust library, keys of all types, settings.

use super::structures::*;
use super::*;

/// Returns the answers and the counts for ranges.
fn in_ranges(filter: *const warpset_structure, firsts: &warpset_keys, lasts: &warpset_keys) -> (Vec<u8>, Vec<u64>) {
    let (mut answers, mut counts) = (vec![7; firsts.len], vec![7; firsts.len]);
    // SAFETY: the contract of the header.
    unsafe {
        ok(warpset_range_filter_may_contain(filter, firsts, lasts, answers.as_mut_ptr()));
        ok(warpset_range_filter_count_at_most(filter, firsts, lasts, counts.as_mut_ptr()));
    }
    (answers, counts)
}

#[test]
fn range_filters_answer_as_those_of_rust() {
    macro_rules! of {
        ($($key_type:ident: $type:ty, |$i:ident| $key:expr;)*) => {$(
            let keys: Vec<$type> = (0..500).map(|$i: u32| $key).collect();
            let describe = |keys: &[$type]| described(warpset_key_type::$key_type, keys.as_ptr().cast(), keys.len());
            let (firsts, lasts): (Vec<$type>, Vec<$type>) = keys.windows(2).map(|two| (two[0], two[1])).unzip();
            let ranges: Vec<_> = firsts.iter().zip(&lasts).map(|(first, last)| *first..=*last).collect();
            let expected = warpset::range::RangeFilter::<$type>::builder().build_from(&keys).expect("a filter");
            // SAFETY: the contract of the header.
            let filter = made(|out| unsafe { warpset_range_filter_build(&describe(&keys), null(), out) });
            in_all_places(filter, |filter, place| {
                assert_eq!(contains(filter, &describe(&keys)), [1; 500], "{place}");
                let (answers, counts) = in_ranges(filter, &describe(&firsts), &describe(&lasts));
                assert_eq!(answers, [1; 499], "{place}");
                assert_eq!(counts, expected.count_at_most_bulk(&ranges));
                let (answers, counts) = in_ranges(filter, &describe(&lasts), &describe(&firsts));
                assert_eq!((answers, counts), (vec![0; 499], vec![0; 499]), "inverted");
                // SAFETY: the contract of the header.
                let (len, fpr) = unsafe {
                    (got(|len| warpset_structure_len(filter, len)), got(|fpr| warpset_structure_fpr(filter, fpr)))
                };
                assert_eq!((len, fpr), (500, expected.fpr()));
            });
        )*};
    }
    of! {
        U32: u32, |i| i * 8_000_000;
        U64: u64, |i| u64::from(i) << 55;
        U128: u128, |i| u128::from(i) << 119;
        I32: i32, |i| (i as i32 - 250) * 8_000_000;
        I64: i64, |i| (i64::from(i) - 250) << 55;
        I128: i128, |i| (i128::from(i) - 250) << 119;
        F64: f64, |i| (f64::from(i) - 250.0) * 1.5;
    }
    let strings: Vec<String> = (100..600).map(|i| format!("{i} trees")).collect();
    let keys = pointers(&strings);
    // SAFETY: the contract of the header.
    let filter = made(|out| unsafe { warpset_range_filter_build(&of_pointers(&keys), null(), out) });
    in_all_places(filter, |filter, place| {
        assert_eq!(contains(filter, &of_pointers(&keys)), [1; 500], "{place}");
        assert_eq!(in_ranges(filter, &of_pointers(&keys[..499]), &of_pointers(&keys[1..])).0, [1; 499]);
        assert_eq!(in_ranges(filter, &of_pointers(&keys[1..]), &of_pointers(&keys[..499])).0, [0; 499]);
        // SAFETY: the contract of the header.
        assert!(got(|answer| unsafe { warpset_filter_contains_string(filter, b"123 trees".as_ptr(), 9, answer) }));
    });
}

#[test]
fn range_filters_take_wider_and_narrower_integers() {
    let (unsigned, signed) = ([1u32, 5, u32::MAX], [i32::MIN, -5, i32::MAX]);
    let describe = |key_type, keys: *const _| described(key_type, keys, 3);
    let beyond = 1u64 << 32;
    // SAFETY: the contract of the header.
    unsafe {
        let of_unsigned = describe(warpset_key_type::U32, unsigned.as_ptr().cast());
        let filter = made(|out| warpset_range_filter_build(&of_unsigned, null(), out));
        let (firsts, lasts) = ([5u64, u64::from(u32::MAX), beyond], [5u64, u64::MAX, u64::MAX]);
        assert_eq!(in_ranges(filter, &words(&firsts), &words(&lasts)).0, [1, 1, 0]);
        assert_eq!(contains(filter, &words(&firsts)), [1, 1, 0]);
        assert!(got(|answer| warpset_filter_contains_u64(filter, 5, answer)));
        let bytes = [1u8, 5, 255];
        assert_eq!(contains(filter, &described(warpset_key_type::U8, bytes.as_ptr(), 2)), [1; 2]);

        let of_signed = describe(warpset_key_type::I32, signed.as_ptr().cast());
        let of_signs = made(|out| warpset_range_filter_build(&of_signed, null(), out));
        let (firsts, lasts) = ([i64::MIN, i64::MIN, 1 << 40], [-1 << 40, -1 << 31, i64::MAX]);
        let wide = |keys: &[i64; 3]| describe(warpset_key_type::I64, keys.as_ptr().cast());
        assert_eq!(in_ranges(of_signs, &wide(&firsts), &wide(&lasts)).0, [0, 1, 0]);
        assert!(got(|answer| warpset_filter_contains_u64(of_signs, -5i64 as u64, answer)));

        // Keys of another order, of other numbers, and nulls.
        let (mut answers, validity) = ([7u8; 3], [0b101u8]);
        let answers = answers.as_mut_ptr();
        let status = warpset_range_filter_may_contain(filter, &of_unsigned, &of_signed, answers);
        assert_eq!(status, warpset_status::WrongType, "{}", last_error());
        assert!(last_error().contains("unsigned integers"), "{}", last_error());
        let (mut bits, mut count) = ([7u8], 7);
        for status in [
            warpset_filter_contains(filter, &of_signed, answers),
            warpset_filter_contains_bits(filter, &of_signed, bits.as_mut_ptr()),
            warpset_filter_count_contained(filter, &of_signed, &mut count),
            warpset_filter_contains(of_signs, &of_unsigned, answers),
        ] {
            assert_eq!(status, warpset_status::WrongType, "{}", last_error());
        }
        let short = warpset_keys { len: 2, ..of_unsigned };
        let status = warpset_range_filter_may_contain(filter, &of_unsigned, &short, answers);
        assert_eq!(status, warpset_status::InvalidLength);
        let nulls = warpset_keys { validity: validity.as_ptr(), ..of_unsigned };
        let status = warpset_range_filter_may_contain(filter, &nulls, &of_unsigned, answers);
        assert_eq!(status, warpset_status::InvalidValue);
        let other = small();
        let status = warpset_range_filter_may_contain(other, &of_unsigned, &of_unsigned, answers);
        assert_eq!(status, warpset_status::Unsupported);
        for structure in [filter, of_signs, other] {
            ok(warpset_structure_free(structure));
        }
    }
}

#[test]
fn range_filters_have_bits_or_a_rate() {
    let keys: Vec<u64> = (0..1000).map(|i| i << 50).collect();
    let bits = |options: &warpset_options| {
        // SAFETY: the contract of the header.
        unsafe {
            let filter = made(|out| warpset_range_filter_build(&words(&keys), options, out));
            let bytes = got(|bytes| warpset_structure_memory_bytes(filter, bytes));
            ok(warpset_structure_free(filter));
            bytes as f64 / 125.0
        }
    };
    let (given, of_rate) = (defaults(), 10f64.log2() + 12.0);
    for (options, expected) in [
        (given, 16.0),
        (warpset_options { bits_per_key: 12.0, fpr: 0.5, ..given }, 12.0),
        (warpset_options { fpr: 1.0 / 1024.0, ..given }, 12.0),
        (warpset_options { fpr: 1.0 / 1024.0, range_length: 10, ..given }, of_rate),
    ] {
        assert!((bits(&options) - expected).abs() < 0.6, "{} {expected}", bits(&options));
    }
    for options in [warpset_options { bits_per_key: 2.0, ..given }, warpset_options { fpr: 1.0, ..given }] {
        let mut out = null_mut();
        // SAFETY: the contract of the header.
        let status = unsafe { warpset_range_filter_build(&words(&keys), &options, &mut out) };
        assert_eq!(status, warpset_status::InvalidValue);
    }
}

#[test]
fn dynamic_range_filters_take_keys_and_give_them_back() {
    macro_rules! of {
        ($($key_type:ident: $type:ty, |$i:ident| $key:expr;)*) => {$(
            let keys: Vec<$type> = (0..500).map(|$i: u32| $key).collect();
            let describe = |keys: &[$type]| described(warpset_key_type::$key_type, keys.as_ptr().cast(), keys.len());
            let options = warpset_options { fpr: 1e-6, range_length: 16, seed: 3, ..defaults() };
            let number = warpset_key_type::$key_type as u32;
            // SAFETY: the contract of the header.
            unsafe {
                let filter = made(|out| warpset_dynamic_range_filter_build(1000, number, &options, out));
                ok(warpset_filter_insert(filter, &describe(&keys)));
                let removed = got(|removed| warpset_filter_remove(filter, &describe(&keys[..100]), removed));
                assert_eq!(removed, 100);
                in_all_places(filter, |filter, place| {
                    assert_eq!(got(|len| warpset_structure_len(filter, len)), 400);
                    let mut answers = [7; 500];
                    let keys = describe(&keys);
                    ok(warpset_range_filter_may_contain(filter, &keys, &keys, answers.as_mut_ptr()));
                    assert!(answers[..100] == [0; 100] && answers[100..] == [1; 400], "{place}");
                    assert_eq!(contains(filter, &keys), answers, "{place}");
                    let fpr = got(|fpr| warpset_structure_fpr(filter, fpr));
                    assert!(fpr > 0.0 && fpr <= 1e-6, "{fpr}");
                });
            }
        )*};
    }
    of! {
        U32: u32, |i| i * 8_000_000;
        U64: u64, |i| u64::from(i) << 55;
        U128: u128, |i| u128::from(i) << 119;
        I16: i16, |i| (i as i16 - 250) * 100;
        I64: i64, |i| (i64::from(i) - 250) << 55;
        I128: i128, |i| (i128::from(i) - 250) << 119;
        F64: f64, |i| (f64::from(i) - 250.0) * 1.5;
    }
}

#[test]
fn dynamic_range_filters_grow_and_merge() {
    let (keys, far): (Vec<u64>, Vec<u64>) = (0..900).map(|i| (i << 40, (i << 40) + (1 << 39))).unzip();
    let empty = |key_type: warpset_key_type| {
        // SAFETY: the contract of the header.
        made(|out| unsafe { warpset_dynamic_range_filter_build(900, key_type as u32, null(), out) })
    };
    let (one, other, of_strings) =
        (empty(warpset_key_type::U64), empty(warpset_key_type::U16), empty(warpset_key_type::Strings32));
    // SAFETY: the contract of the header.
    unsafe {
        ok(warpset_filter_insert(one, &words(&keys)));
        ok(warpset_filter_insert(other, &words(&far)));
        assert_eq!(warpset_structure_merge(one, other), warpset_status::Full, "{}", last_error());
        ok(warpset_structure_resize(one, 1));
        ok(warpset_structure_merge(one, other));
        assert_eq!(got(|len| warpset_structure_len(one, len)), 1800);
        assert_eq!((contains(one, &words(&keys)), contains(one, &words(&far))), (vec![1; 900], vec![1; 900]));
        assert_eq!(warpset_structure_merge(one, of_strings), warpset_status::InvalidValue);

        ok(warpset_filter_insert_string(of_strings, b"ash".as_ptr(), 3));
        let strings = ["asg".to_string(), "asi".to_string()];
        let (mut answer, ends) = ([7], pointers(&strings));
        let (first, last) = (of_pointers(&ends[..1]), of_pointers(&ends[1..]));
        ok(warpset_range_filter_may_contain(of_strings, &first, &last, answer.as_mut_ptr()));
        assert_eq!(answer, [1]);
        ok(warpset_structure_clear(of_strings));
        ok(warpset_range_filter_may_contain(of_strings, &first, &last, answer.as_mut_ptr()));
        assert_eq!(answer, [0]);

        let wide = [1u128 << 64, 5 << 40];
        let wide = described(warpset_key_type::U128, wide.as_ptr().cast(), 2);
        assert_eq!(warpset_filter_insert(one, &wide), warpset_status::InvalidValue, "{}", last_error());
        assert_eq!((contains(one, &wide), got(|n| warpset_filter_remove(one, &wide, n))), (vec![0, 1], 1));
        let mut count = [7];
        let status = warpset_range_filter_count_at_most(one, &words(&[1]), &words(&[1]), count.as_mut_ptr());
        assert_eq!(status, warpset_status::Unsupported);
        for key_type in [warpset_key_type::I64, warpset_key_type::I128, warpset_key_type::F64] {
            let signed = empty(key_type);
            assert_eq!(warpset_filter_insert(signed, &words(&[1 << 63])), warpset_status::WrongType);
            assert_eq!(warpset_filter_insert_u64(signed, 2), warpset_status::WrongType);
            assert_eq!(warpset_filter_remove(signed, &words(&[2]), null_mut()), warpset_status::WrongType);
            ok(warpset_structure_free(signed));
        }
        let mut out = null_mut();
        let hashes = warpset_key_type::Hashes as u32;
        assert_eq!(warpset_dynamic_range_filter_build(9, hashes, null(), &mut out), warpset_status::WrongType);
        assert_eq!(warpset_dynamic_range_filter_build(9, 99, null(), &mut out), warpset_status::InvalidValue);
        for structure in [one, other, of_strings] {
            ok(warpset_structure_free(structure));
        }
    }
}

#[test]
fn files_of_range_filters_with_other_keys_are_refused() {
    let saved = warpset::range::RangeFilter::<u16>::builder().build_from(&[1, 2]).expect("a filter").to_bytes();
    let mut out = null_mut();
    // SAFETY: the contract of the header.
    let status = unsafe { warpset_structure_from_bytes(saved.as_ptr(), saved.len(), null(), &mut out) };
    assert_eq!(status, warpset_status::InvalidFile);
    assert!(last_error().contains("types that this library lacks"), "{}", last_error());
}

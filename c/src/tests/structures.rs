//! Every structure: built, asked, changed, saved, opened and mapped, with the answers of the Rust library.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

pub const N: usize = 2000;

pub fn keys() -> Vec<u64> {
    (0..N as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20).collect()
}

pub fn strangers() -> Vec<u64> {
    (0..N as u64).map(|i| (i << 1 | 1) << 45).collect()
}

pub fn strings(keys: &[u64]) -> Vec<String> {
    keys.iter().map(|key| format!("key {key}")).collect()
}

pub fn pointers(strings: &[String]) -> Vec<warpset_string> {
    strings.iter().map(|string| warpset_string { data: string.as_ptr(), len: string.len() }).collect()
}

pub fn of_pointers(strings: &[warpset_string]) -> warpset_keys {
    described(warpset_key_type::StringPointers, strings.as_ptr().cast(), strings.len())
}

pub fn contains(structure: *const warpset_structure, keys: &warpset_keys) -> Vec<u8> {
    let mut answers = vec![7; keys.len];
    // SAFETY: the contract of the header.
    ok(unsafe { warpset_filter_contains(structure, keys, answers.as_mut_ptr()) });
    answers
}

pub fn numbers(structure: *const warpset_structure, keys: &warpset_keys) -> Vec<u64> {
    let mut numbers = vec![7; keys.len];
    // SAFETY: the contract of the header.
    ok(unsafe { warpset_function_numbers(structure, keys, numbers.as_mut_ptr()) });
    numbers
}

pub fn values(structure: *const warpset_structure, keys: &warpset_keys) -> (Vec<u64>, Vec<u8>) {
    let (mut values, mut found) = (vec![7; keys.len], vec![7; keys.len]);
    // SAFETY: the contract of the header.
    ok(unsafe { warpset_map_get(structure, keys, values.as_mut_ptr(), found.as_mut_ptr()) });
    (values, found)
}

/// Calls `check` with the structure, and with what its file, its bytes, a map of it and a copy contain; frees all.
pub fn in_all_places(structure: *mut warpset_structure, check: impl Fn(*mut warpset_structure, &str)) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = c_string(&folder.path().join("saved"));
    // SAFETY: the contract of the header.
    unsafe {
        let kind = |structure: *const warpset_structure| {
            let mut kind = warpset_kind::StaticSet;
            ok(warpset_structure_kind(structure, &mut kind));
            kind
        };
        ok(warpset_structure_save(structure, path.as_ptr()));
        let bytes = made(|out| warpset_structure_to_bytes(structure, out));
        let (mut data, mut len) = (null(), 0);
        ok(warpset_bytes_data(bytes, &mut data, &mut len));
        assert_eq!(std::slice::from_raw_parts(data, len), std::fs::read(folder.path().join("saved")).unwrap());
        let mapped = made(|out| warpset_structure_map(path.as_ptr(), out));
        let all = [
            ("built", structure),
            ("opened", made(|out| warpset_structure_open(path.as_ptr(), null(), out))),
            ("from bytes", made(|out| warpset_structure_from_bytes(data, len, null(), out))),
            ("mapped", mapped),
            ("copied", made(|out| warpset_structure_copy(structure, null(), out))),
            ("copied from a map", made(|out| warpset_structure_copy(mapped, null(), out))),
        ];
        let bytes_of = |structure| got(|bytes| warpset_structure_memory_bytes(structure, bytes));
        for (place, each) in all {
            assert_eq!(kind(each), kind(structure), "{place}");
            assert!(bytes_of(each) > 0, "{place}");
            check(each, place);
        }
        assert_eq!(warpset_structure_clear(mapped), warpset_status::ReadOnly);
        for (_, each) in all {
            ok(warpset_structure_free(each));
        }
        ok(warpset_bytes_free(bytes));
    }
}

/// Builders of filters that grow.
type Sized = unsafe extern "C" fn(u64, *const warpset_options, *mut *mut warpset_structure) -> warpset_status;
const GROWN: [Sized; 5] = [
    warpset_split_block_bloom_build,
    warpset_blocked_bloom_build,
    warpset_rao_bloom_build,
    warpset_standard_quotient_filter_build,
    warpset_rank_select_quotient_filter_build,
];

#[test]
fn filters_contain_what_was_inserted() {
    let (keys, strangers) = (keys(), strangers());
    let strings = strings(&keys[..100]);
    let pointers = pointers(&strings);
    for build in GROWN {
        // SAFETY: the contract of the header.
        let filter = made(|out| unsafe { build(2 * N as u64, null(), out) });
        let mut new = vec![0; N];
        // SAFETY: likewise.
        unsafe {
            ok(warpset_filter_test_and_insert(filter, &words(&keys), new.as_mut_ptr()));
            ok(warpset_filter_insert(filter, &of_pointers(&pointers)));
            ok(warpset_filter_insert_u64(filter, 1 << 60));
            ok(warpset_filter_insert_string(filter, b"birch".as_ptr(), 5));
        }
        assert!(new.iter().filter(|&&new| new == 1).count() > N * 9 / 10);
        in_all_places(filter, |filter, place| {
            assert_eq!(contains(filter, &words(&keys)), vec![1; N], "{place}");
            assert_eq!(contains(filter, &of_pointers(&pointers)), [1; 100]);
            let answers = contains(filter, &words(&strangers));
            let found = answers.iter().map(|&answer| usize::from(answer)).sum::<usize>();
            assert!(found < N / 10, "{found}");
            // SAFETY: the contract of the header.
            unsafe {
                assert_eq!(got(|count| warpset_filter_count_contained(filter, &words(&strangers), count)), found);
                assert!(got(|answer| warpset_filter_contains_u64(filter, 1 << 60, answer)));
                assert!(got(|answer| warpset_filter_contains_string(filter, b"birch".as_ptr(), 5, answer)));
                let mut bits = vec![0xff; N.div_ceil(8)];
                ok(warpset_filter_contains_bits(filter, &words(&strangers), bits.as_mut_ptr()));
                assert!((0..N).all(|i| bits[i / 8] >> (i % 8) & 1 == answers[i]));
                let len = got(|len| warpset_structure_len(filter, len));
                assert!((N as u64 * 9 / 10..N as u64 * 11 / 10 + 200).contains(&len), "{len}");
                let fpr = got(|fpr| warpset_structure_fpr(filter, fpr));
                assert!(fpr > 0.0 && fpr < 0.02, "{fpr}");
            }
        });
    }
}

#[test]
fn filters_merge_clear_and_refuse() {
    let (keys, strangers) = (keys(), strangers());
    for build in GROWN {
        // SAFETY: the contract of the header.
        unsafe {
            let [one, other] = [&keys, &strangers].map(|keys| {
                let filter = made(|out| build(4 * N as u64, null(), out));
                ok(warpset_filter_insert(filter, &words(keys)));
                filter
            });
            let merged = warpset_structure_merge(one, other);
            if merged == warpset_status::Ok {
                assert_eq!(contains(one, &words(&strangers)), vec![1; N]);
            } else {
                assert!(std::ptr::fn_addr_eq(build, warpset_rao_bloom_build as Sized), "{}", last_error());
            }
            ok(warpset_structure_clear(one));
            assert_eq!(contains(one, &words(&keys)), vec![0; N]);
            let mut value = 0;
            assert_eq!(warpset_map_get_u64(one, 7, &mut value, null_mut()), warpset_status::Unsupported);
            assert!(last_error().contains("no operation"), "{}", last_error());
            ok(warpset_structure_free(one));
            ok(warpset_structure_free(other));
        }
    }
}

#[test]
fn quotient_filters_count_and_remove() {
    let keys = keys();
    let options = warpset_options { duplicates: 2, fpr: 1e-6, ..defaults() };
    // SAFETY: the contract of the header.
    unsafe {
        let filter = made(|out| warpset_rank_select_quotient_filter_build(4 * N as u64, &options, out));
        ok(warpset_filter_insert(filter, &words(&keys)));
        ok(warpset_filter_insert(filter, &words(&keys[..10])));
        let mut counts = [0; 20];
        ok(warpset_filter_counts(filter, &words(&keys[..20]), counts.as_mut_ptr()));
        assert_eq!(counts, std::array::from_fn(|i| if i < 10 { 2 } else { 1 }));
        assert_eq!(got(|removed| warpset_filter_remove(filter, &words(&keys[..15]), removed)), 15);
        assert_eq!(contains(filter, &words(&keys[..20])), [vec![1; 10], vec![0; 5], vec![1; 5]].concat());
        ok(warpset_structure_resize(filter, 1));
        assert_eq!(contains(filter, &words(&keys[15..])), vec![1; N - 15]);
        ok(warpset_filter_remove(filter, &words(&keys[..1]), null_mut()));
        ok(warpset_structure_free(filter));

        let full = made(|out| warpset_standard_quotient_filter_build(100, null(), out));
        assert_eq!(warpset_filter_insert(full, &words(&keys)), warpset_status::Full, "{}", last_error());
        ok(warpset_structure_free(full));
    }
}

#[test]
fn fuse_and_static_filters_contain_their_keys() {
    let (keys, strangers) = (keys(), strangers());
    let strings = strings(&keys);
    let pointers = pointers(&strings);
    for described in [words(&keys), of_pointers(&pointers)] {
        for bits in [0, 16, 32] {
            let options = warpset_options { fingerprint_bits: bits, sharded: bits / 16, ..defaults() };
            // SAFETY: the contract of the header.
            let filter = made(|out| unsafe { warpset_binary_fuse_build(&described, &options, out) });
            in_all_places(filter, |filter, _| {
                assert_eq!(contains(filter, &described), vec![1; N]);
                assert!(contains(filter, &words(&strangers)).iter().filter(|&&answer| answer == 1).count() < N / 20);
                // SAFETY: likewise.
                assert_eq!(got(|len| unsafe { warpset_structure_len(filter, len) }), N as u64);
            });
        }
        for function_kind in [0, 1, 2] {
            let options = warpset_options { function_kind, ..defaults() };
            // SAFETY: the contract of the header.
            let filter = made(|out| unsafe { warpset_static_filter_build(&described, &options, out) });
            in_all_places(filter, |filter, _| {
                assert_eq!(contains(filter, &described), vec![1; N]);
                let mut found = numbers(filter, &described);
                found.sort_unstable();
                assert!(found.into_iter().eq(0..N as u64));
                let strangers = numbers(filter, &words(&strangers));
                assert!(strangers.iter().filter(|&&number| number != u64::MAX).count() < N / 20);
            });
        }
    }
}

#[test]
fn functions_number_their_keys() {
    let keys = keys();
    let strings = strings(&keys);
    let pointers = pointers(&strings);
    for build in [warpset_recsplit_build, warpset_consensus_build, warpset_placement_build] {
        for (described, is_words) in [(words(&keys), true), (of_pointers(&pointers), false)] {
            // SAFETY: the contract of the header.
            let function = made(|out| unsafe { build(&described, null(), out) });
            in_all_places(function, |function, _| {
                let mut found = numbers(function, &described);
                // SAFETY: likewise.
                unsafe {
                    assert_eq!(got(|bound| warpset_function_bound(function, bound)), N as u64);
                    let first = match is_words {
                        true => got(|number| warpset_function_number_u64(function, keys[0], number)),
                        false => {
                            let key = &strings[0];
                            got(|number| warpset_function_number_string(function, key.as_ptr(), key.len(), number))
                        }
                    };
                    assert_eq!(first, found[0]);
                }
                found.sort_unstable();
                assert!(found.into_iter().eq(0..N as u64));
            });
        }
        let twice = [7, 8, 7];
        let mut out = null_mut();
        // SAFETY: the contract of the header.
        assert_eq!(unsafe { build(&words(&twice), null(), &mut out) }, warpset_status::DuplicateKey);
        assert!(out.is_null());
    }
}

#[test]
fn callbacks_stop_builds() {
    unsafe extern "C" fn stop(user_data: *mut std::ffi::c_void, _: u64, _: u64) -> i32 {
        // SAFETY: the pointer of the settings below.
        unsafe { &*user_data.cast::<AtomicU32>() }.fetch_add(1, Ordering::Relaxed);
        1
    }
    let (keys, calls) = (keys(), AtomicU32::new(0));
    let options =
        warpset_options { progress: Some(stop), user_data: (&raw const calls).cast_mut().cast(), ..defaults() };
    let mut out = null_mut();
    // SAFETY: the contract of the header.
    let status = unsafe { warpset_recsplit_build(&words(&keys), &options, &mut out) };
    assert_eq!(status, warpset_status::InvalidValue, "{}", last_error());
    assert!(calls.into_inner() > 0);
}

#[test]
fn maps_have_their_values() {
    let (keys, strangers) = (keys(), strangers());
    let strings = strings(&keys);
    let pointers = pointers(&strings);
    let of_keys: Vec<u64> = keys.iter().map(|key| key % 1000).collect();
    // SAFETY: the contract of the header.
    let check = |map: *mut warpset_structure, described: warpset_keys, is_exact: bool| unsafe {
        in_all_places(map, |map, place| {
            assert_eq!(values(map, &described), (of_keys.clone(), vec![1; N]), "{place}");
            if is_exact {
                assert_eq!(values(map, &words(&strangers)), (vec![0; N], vec![0; N]), "{place}");
                assert_eq!(contains(map, &words(&strangers)), vec![0; N]);
                assert_eq!(contains(map, &described), vec![1; N]);
            }
            let mut found = false;
            assert_eq!(got(|value| warpset_map_get_u64(map, keys[3], value, &mut found)), of_keys[3], "{place}");
            assert!(found);
        });
    };
    // SAFETY: likewise.
    unsafe {
        let of = of_keys.as_ptr();
        check(made(|out| warpset_static_function_build(&words(&keys), of, null(), out)), words(&keys), false);
        for (key_bits, value_bits) in [(64, 64), (64, 32)] {
            let options = warpset_options { map_key_bits: key_bits, map_value_bits: value_bits, ..defaults() };
            check(made(|out| warpset_static_map_build(&words(&keys), of, &options, out)), words(&keys), true);
        }
        let function = made(|out| warpset_static_function_build(&of_pointers(&pointers), of, null(), out));
        assert_eq!(values(function, &of_pointers(&pointers)).0, of_keys);
        ok(warpset_structure_free(function));

        let map = made(|out| warpset_string_map_build(&of_pointers(&pointers), of, null(), out));
        in_all_places(map, |map, _| {
            assert_eq!(values(map, &of_pointers(&pointers)), (of_keys.clone(), vec![1; N]));
            assert_eq!(contains(map, &of_pointers(&pointers)), vec![1; N]);
            let value =
                got(|value| warpset_map_get_string(map, strings[5].as_ptr(), strings[5].len(), value, null_mut()));
            assert_eq!(value, of_keys[5]);
            let mut found = true;
            assert_eq!(got(|value| warpset_map_get_string(map, b"none".as_ptr(), 4, value, &mut found)), 0);
            assert!(!found);
        });

        let maplet = made(|out| {
            let options = warpset_options { fpr: 1e-9, value_bits: 20, ..defaults() };
            warpset_maplet_build(2 * N as u64, &options, out)
        });
        ok(warpset_map_insert(maplet, &words(&keys), of, 0));
        check(maplet, words(&keys), false);
    }
}

#[test]
fn maplets_combine_values() {
    // SAFETY: the contract of the header.
    unsafe {
        let options = warpset_options { fpr: 1e-9, value_bits: 16, ..defaults() };
        let maplet = made(|out| warpset_maplet_build(100, &options, out));
        for by in [1, 1, 3, 2, 4] {
            ok(warpset_map_insert(maplet, &words(&[5, 6]), [8, 9].as_ptr(), by));
        }
        assert_eq!(values(maplet, &words(&[5, 6, 7])), (vec![8, 9, 0], vec![1, 1, 0]));
        assert_eq!(warpset_map_insert(maplet, &words(&[5]), [1].as_ptr(), 5), warpset_status::InvalidValue);
        ok(warpset_filter_remove(maplet, &words(&[5]), null_mut()));
        assert_eq!(values(maplet, &words(&[5, 6])).1, [0, 1]);
        ok(warpset_structure_free(maplet));
    }
}

#[test]
fn static_sets_are_exact() {
    let (keys, strangers) = (keys(), strangers());
    // SAFETY: the contract of the header.
    unsafe {
        let set = made(|out| warpset_static_set_build(&words(&keys), null(), out));
        in_all_places(set, |set, _| {
            assert_eq!(contains(set, &words(&keys)), vec![1; N]);
            assert_eq!(contains(set, &words(&strangers)), vec![0; N]);
            let mut found = numbers(set, &words(&keys));
            found.sort_unstable();
            found.dedup();
            assert_eq!(found.len(), N);
            assert!(*found.last().unwrap() < got(|bound| warpset_function_bound(set, bound)));
            assert_eq!(numbers(set, &words(&strangers)), vec![u64::MAX; N]);
            assert_eq!(got(|number| warpset_function_number_u64(set, strangers[0], number)), u64::MAX);
        });
        let narrow = warpset_options { map_key_bits: 32, ..defaults() };
        let mut out = null_mut();
        let status = warpset_static_set_build(&words(&[1, 1 << 40]), &narrow, &mut out);
        assert_eq!(status, warpset_status::InvalidValue, "{}", last_error());
        let set = made(|out| warpset_static_set_build(&words(&[1, 2]), &narrow, out));
        assert_eq!(contains(set, &words(&[1, 2, 3, 1 << 40 | 1])), [1, 1, 0, 0]);
        assert_eq!(numbers(set, &words(&[1 << 40 | 1])), [u64::MAX]);
        ok(warpset_structure_free(set));
    }
}

/// Returns the arrays of a result, and frees it: offsets, keys and values.
fn listed(rows: *mut warpset_rows) -> (Vec<u64>, Vec<u64>, Vec<u64>) {
    // SAFETY: the contract of the header.
    unsafe {
        let mut arrays = std::mem::zeroed::<warpset_row_arrays>();
        ok(warpset_rows_arrays(rows, &mut arrays));
        let slice = |data: *const u64, len| std::slice::from_raw_parts(data, len).to_vec();
        let keys = if arrays.keys.is_null() {
            slice(arrays.wide_keys, 2 * arrays.len).chunks(2).map(|key| key[0] | key[1].swap_bytes()).collect()
        } else {
            slice(arrays.keys, arrays.len)
        };
        let all = (slice(arrays.offsets, arrays.lists + 1), keys, slice(arrays.values, arrays.len));
        ok(warpset_rows_free(rows));
        all
    }
}

/// Describes keys as integers, or as strings of 16 bytes in the same order, with the memory of these.
fn in_order(keys: &[u64], is_string: u32) -> (Vec<[u8; 16]>, warpset_keys) {
    let strings: Vec<_> = keys.iter().map(|&key| u128::from(key).to_be_bytes()).collect();
    let of_strings = described(warpset_key_type::FixedStrings, strings.as_ptr().cast(), keys.len());
    let described = if is_string == 1 { warpset_keys { width: 16, ..of_strings } } else { words(keys) };
    (strings, described)
}

#[test]
fn dictionaries_behave_like_btreemap() {
    let keys: Vec<u64> = keys().into_iter().map(|key| key & 0xffff_ffff).collect();
    let of_keys: Vec<u64> = keys.iter().map(|key| key % 1000).collect();
    for build in [warpset_lsm_build, warpset_sorted_array_build] {
        for (bits, is_string) in [(32, 0), (64, 0), (128, 0), (0, 1)] {
            let words = |keys: &[u64]| in_order(keys, is_string);
            let options =
                warpset_options { map_key_bits: bits, map_key_strings: is_string, batch_size: 64, ..defaults() };
            let mut model = BTreeMap::new();
            // SAFETY: the contract of the header.
            let map = unsafe {
                let map = made(|out| build(&options, out));
                for (keys, values) in keys.chunks(500).zip(of_keys.chunks(500)) {
                    ok(warpset_map_insert(map, &words(keys).1, values.as_ptr(), 0));
                    model.extend(keys.iter().copied().zip(values.iter().copied()));
                }
                ok(warpset_filter_remove(map, &words(&keys[..100]).1, null_mut()));
                model.retain(|key, _| !keys[..100].contains(key));
                ok(warpset_map_insert(map, &words(&keys[50..150]).1, of_keys[50..].as_ptr(), 1));
                for (key, value) in keys[50..150].iter().zip(&of_keys[50..150]) {
                    *model.entry(*key).or_default() += value;
                }
                ok(warpset_map_cleanup(map));
                map
            };
            in_all_places(map, |map, place| {
                let (found, flags) = values(map, &words(&keys).1);
                for (i, key) in keys.iter().enumerate() {
                    assert_eq!(
                        (model.get(key).copied().unwrap_or(0), model.contains_key(key).into()),
                        (found[i], flags[i]),
                        "{place}"
                    );
                }
                assert_eq!(contains(map, &words(&keys).1), flags);
                let (lows, highs) = ([0, 1 << 20, 9], [1 << 31, u32::MAX.into(), 3]);
                // SAFETY: the contract of the header.
                unsafe {
                    assert_eq!(got(|len| warpset_structure_len(map, len)), model.len() as u64);
                    let (offsets, listed_keys, listed_values) =
                        listed(made(|out| warpset_map_ranges(map, &words(&lows).1, &words(&highs).1, out)));
                    let mut counts = [7; 3];
                    ok(warpset_map_count_ranges(map, &words(&lows).1, &words(&highs).1, counts.as_mut_ptr()));
                    for i in 0..2 {
                        let range = offsets[i] as usize..offsets[i + 1] as usize;
                        let expected: Vec<_> = model.range(lows[i]..=highs[i]).map(|(k, v)| (*k, *v)).collect();
                        let pairs =
                            listed_keys[range.clone()].iter().copied().zip(listed_values[range].iter().copied());
                        assert!(pairs.eq(expected.iter().copied()));
                        assert_eq!(counts[i], expected.len() as u64);
                    }
                    assert_eq!((counts[2], offsets[3] - offsets[2]), (0, 0));
                    for (is_above, expected) in
                        [(1, model.range(1 << 30..).next()), (0, model.range(..=1 << 30).next_back())]
                    {
                        let (_, keys, values) =
                            listed(made(|out| warpset_map_neighbours(map, &words(&[1 << 30]).1, is_above, out)));
                        assert_eq!(keys.first().zip(values.first()), expected);
                    }
                }
            });
        }
    }
}

#[test]
fn sequences_match_their_kmers() {
    let letters: Vec<u8> = (0..3000u32).map(|i| b"ACGT"[(i.wrapping_mul(2_654_435_761) >> 13) as usize % 4]).collect();
    let string = |letters: &[u8]| warpset_string { data: letters.as_ptr(), len: letters.len() };
    let other = vec![b'A'; 500];
    let both = [string(&letters[100..400]), string(&other)];
    // SAFETY: the contract of the header.
    unsafe {
        let filter = made(|out| warpset_sequence_filter_build(10_000, null(), out));
        ok(warpset_sequence_filter_insert(filter, &of_pointers(&[string(&letters)])));
        in_all_places(filter, |filter, _| {
            let (mut found, mut kmers, mut answers) = ([0; 2], [0; 2], [7; 2]);
            ok(warpset_sequence_filter_count(filter, &of_pointers(&both), found.as_mut_ptr(), kmers.as_mut_ptr()));
            assert_eq!((found[0], kmers), (270, [270, 470]));
            ok(warpset_sequence_filter_matches(filter, &of_pointers(&both), 2, 0.5, answers.as_mut_ptr()));
            assert_eq!(answers, [1, 0]);
            let mut windows = vec![7; 270];
            ok(warpset_sequence_filter_windows(filter, letters[100..].as_ptr(), 300, windows.as_mut_ptr()));
            assert_eq!(windows, vec![1; 270]);
            ok(warpset_sequence_filter_windows(filter, letters.as_ptr(), 5, null_mut()));
        });
        let (offsets, kmers, positions) = listed(made(|out| warpset_minimizers_find(21, 11, &of_pointers(&both), out)));
        let expected = warpset::sequence::Minimizers::new(21, 11).unwrap().find(&letters[100..400]);
        assert_eq!((offsets[0], offsets[1]), (0, expected.len() as u64));
        assert!(
            expected
                .iter()
                .map(|found| (found.kmer, found.position as u64))
                .eq(kmers.into_iter().zip(positions).take(expected.len()))
        );
    }
}

//! Structures, keys and answers in device memory: of an emulator, and of the first GPU if there is one.

use warpset::gpu;
use warpset::prelude::{Insert, SplitBlockBloom};

use super::structures::*;
use super::*;

/// Opens an emulator and every GPU up to `most`. The environment variable `WARPSET_REQUIRE_CUDA` makes it a failure if
/// there is no GPU.
fn devices(most: u32) -> Vec<*mut warpset_device> {
    // SAFETY: the contract of the header; every call writes the handle or count that it is given.
    unsafe {
        let gpus = got(|count| warpset_device_count(count));
        assert!(
            gpus > 0 || std::env::var_os("WARPSET_REQUIRE_CUDA").is_none(),
            "CUDA is required, and there is no GPU"
        );
        let opened = (0..gpus.min(most)).map(|ordinal| made(|out| warpset_device_open(ordinal, out)));
        std::iter::once(made(|out| warpset_device_emulator(out))).chain(opened).collect()
    }
}

/// Copies items to a device; returns their buffer and address.
fn there<T>(device: *mut warpset_device, items: &[T]) -> (*mut warpset_buffer, u64) {
    let (mut address, bytes) = (0, size_of_val(items));
    // SAFETY: the contract of the header.
    unsafe {
        let buffer = made(|out| warpset_buffer_new(device, bytes, &mut address, out));
        ok(warpset_buffer_write(buffer, items.as_ptr().cast(), bytes));
        (buffer, address)
    }
}

/// Describes keys on a device.
fn at(key_type: warpset_key_type, address: u64, len: usize) -> warpset_device_keys {
    warpset_device_keys { key_type: key_type as u32, address, len, offsets: 0, bytes: 0 }
}

/// Copies items from a device.
fn here<T: Default + Clone>(buffer: *mut warpset_buffer, len: usize) -> Vec<T> {
    let mut items = vec![T::default(); len];
    // SAFETY: the contract of the header.
    ok(unsafe { warpset_buffer_read(buffer, items.as_mut_ptr().cast(), len * size_of::<T>()) });
    items
}

/// Checks that the text of kernels is there, which the library carries compressed.
#[test]
fn kernels_have_their_text() {
    let device = gpu::Device::emulator(Default::default());
    let mut filter = SplitBlockBloom::builder(100).on(&device).build().expect("a small filter");
    filter.insert_bulk(&[1u64, 2]).expect("room");
    let loaded = device.loaded_kernels();
    assert!(!loaded.is_empty() && loaded.iter().all(|kernel| kernel.ptx_bytes > 0), "{loaded:?}");
}

#[test]
fn keys_and_answers_stay_on_the_device() {
    devices(1).into_iter().for_each(keys_and_answers_stay_on);
}

fn keys_and_answers_stay_on(device: *mut warpset_device) {
    let keys: Vec<u64> = (0..500).map(|i| i * 77).collect();
    let values: Vec<u64> = (0..500).collect();
    // SAFETY: the contract of the header.
    unsafe {
        let stream = made(|out| warpset_stream_new(device, out));
        let (mut free, mut total) = (0, 0);
        ok(warpset_device_memory(device, &mut free, &mut total));
        assert!(free <= total);
        let (key_buffer, address) = there(device, &keys);
        let (answer_buffer, answers) = there(device, &[0u8; 500]);
        let (number_buffer, numbers) = there(device, &[0u64; 500]);
        let (bit_buffer, bits) = there(device, &[0u64; 8]);
        let (value_buffer, of_keys) = there(device, &values);
        let device_keys = at(warpset_key_type::U64, address, 500);
        let options = warpset_options { device, fpr: 1e-4, ..defaults() };

        // Filters, waiting and on a stream.
        for build in
            [warpset_split_block_bloom_build, warpset_blocked_bloom_build, warpset_rank_select_quotient_filter_build]
        {
            let filter = made(|out| build(1000, &options, out));
            ok(warpset_filter_insert_device(filter, &device_keys));
            for stream in [null_mut(), stream] {
                ok(warpset_buffer_write(answer_buffer, [0u8; 500].as_ptr(), 500));
                ok(warpset_filter_contains_device(filter, &device_keys, answers, stream));
                if !stream.is_null() {
                    ok(warpset_stream_synchronize(stream));
                }
                assert_eq!(here::<u8>(answer_buffer, 500), [1; 500]);
            }
            assert_eq!(got(|count| warpset_filter_count_contained_device(filter, &device_keys, count)), 500);
            let mut on_host = [0; 500];
            ok(warpset_filter_contains(filter, &words(&keys), on_host.as_mut_ptr()));
            assert_eq!(on_host, [1; 500]);
            let copy = made(|out| warpset_structure_copy(filter, null(), out));
            ok(warpset_filter_contains(copy, &words(&keys), on_host.as_mut_ptr()));
            ok(warpset_structure_merge(filter, copy));
            ok(warpset_structure_free(copy));
            ok(warpset_structure_free(filter));
        }

        // Functions and maps.
        let function = made(|out| warpset_consensus_build(&words(&keys), &options, out));
        ok(warpset_function_numbers_device(function, &device_keys, numbers, stream));
        ok(warpset_stream_synchronize(stream));
        let mut found = here::<u64>(number_buffer, 500);
        found.sort_unstable();
        assert_eq!(found, values);
        let of_values = values.as_ptr();
        let filled = made(|out| warpset_lsm_build(&options, out));
        ok(warpset_map_insert_device(filled, &device_keys, of_keys));
        // Ranges from each of the first 100 keys to the one 100 places after it.
        let (lows, highs) = (at(warpset_key_type::U64, address, 100), at(warpset_key_type::I64, address + 800, 100));
        ok(warpset_map_count_ranges_device(filled, &lows, &highs, numbers));
        assert_eq!(here::<u64>(number_buffer, 100), [101; 100]);
        let [listed, pair_keys, pair_values] = [(); 3].map(|()| there(device, &[0u64; 10_100]));
        let list = |len| warpset_map_ranges_device(filled, &lows, &highs, listed.1, pair_keys.1, pair_values.1, len);
        assert_eq!(list(10_099), warpset_status::InvalidLength);
        assert!(last_error().contains("10100"), "{}", last_error());
        ok(list(10_100));
        assert!(here::<u64>(listed.0, 101).into_iter().eq((0..101).map(|i| 101 * i)));
        let expected = (0..100).flat_map(|i| i..=i + 100);
        assert!(here::<u64>(pair_values.0, 10_100).into_iter().eq(expected.clone()));
        assert!(here::<u64>(pair_keys.0, 10_100).into_iter().eq(expected.map(|i| 77 * i)));
        let few = at(warpset_key_type::U64, address, 99);
        assert_eq!(warpset_map_count_ranges_device(filled, &lows, &few, numbers), warpset_status::InvalidLength);
        for buffer in [listed.0, pair_keys.0, pair_values.0] {
            ok(warpset_buffer_free(buffer));
        }
        let exact = warpset_options { fpr: 1e-9, value_bits: 16, ..options };
        let maplet = made(|out| warpset_maplet_build(1000, &exact, out));
        ok(warpset_map_insert_device(maplet, &device_keys, of_keys));
        for map in [
            filled,
            maplet,
            made(|out| warpset_static_map_build(&words(&keys), of_values, &options, out)),
            made(|out| warpset_static_function_build(&words(&keys), of_values, &options, out)),
        ] {
            ok(warpset_buffer_write(number_buffer, [7u8; 4000].as_ptr(), 4000));
            ok(warpset_map_get_device(map, &device_keys, numbers, bits));
            assert_eq!(here::<u64>(number_buffer, 500), values);
            assert_eq!(here::<u64>(bit_buffer, 8)[..7], [u64::MAX; 7]);
            ok(warpset_structure_free(map));
        }
        let counted = made(|out| warpset_standard_quotient_filter_build(1000, &options, out));
        ok(warpset_filter_insert_device(counted, &device_keys));
        ok(warpset_filter_counts_device(counted, &device_keys, numbers));
        assert_eq!(here::<u64>(number_buffer, 500), [1; 500]);
        assert_eq!(got(|removed| warpset_filter_remove_device(counted, &device_keys, removed)), 500);

        // Memory that is not there, and wrong types.
        let bytes = at(warpset_key_type::U8, address, 500);
        assert_eq!(warpset_filter_insert_device(counted, &bytes), warpset_status::WrongType);
        let strings = at(warpset_key_type::Strings32, address, 500);
        assert_eq!(warpset_filter_insert_device(counted, &strings), warpset_status::NullPointer);
        let host = small();
        assert_eq!(warpset_filter_insert_device(host, &device_keys), warpset_status::Unsupported);
        assert_eq!(warpset_buffer_read(bit_buffer, [0u8; 65].as_mut_ptr(), 65), warpset_status::InvalidLength);
        for structure in [function, counted, host] {
            ok(warpset_structure_free(structure));
        }
        for buffer in [key_buffer, answer_buffer, number_buffer, bit_buffer, value_buffer] {
            ok(warpset_buffer_free(buffer));
        }
        ok(warpset_device_synchronize(device));
        ok(warpset_stream_free(stream));
        ok(warpset_device_free(device));
    }
}

#[test]
fn range_filters_answer_on_a_device() {
    devices(1).into_iter().for_each(range_filters_answer_on);
}

fn range_filters_answer_on(device: *mut warpset_device) {
    let keys: Vec<u64> = (0..500).map(|i| i << 55).collect();
    let (firsts, lasts) = (words(&keys[..499]), words(&keys[1..]));
    // SAFETY: the contract of the header.
    unsafe {
        let options = warpset_options { device, ..defaults() };
        let built = made(|out| warpset_range_filter_build(&words(&keys), &options, out));
        let on_host = made(|out| warpset_structure_copy(built, null(), out));
        let copied = made(|out| warpset_structure_copy(on_host, device, out));
        let answers = [built, on_host, copied].map(|filter| {
            let (mut answers, mut counts) = ([7; 499], [7; 499]);
            ok(warpset_range_filter_may_contain(filter, &firsts, &lasts, answers.as_mut_ptr()));
            ok(warpset_range_filter_count_at_most(filter, &lasts, &firsts, counts.as_mut_ptr()));
            assert_eq!((answers, counts), ([1; 499], [0; 499]));
            ok(warpset_range_filter_count_at_most(filter, &firsts, &lasts, counts.as_mut_ptr()));
            ok(warpset_structure_free(filter));
            counts
        });
        assert!(answers[0] == answers[1] && answers[1] == answers[2]);

        // Keys and answers there.
        let filter = made(|out| warpset_range_filter_build(&words(&keys), &options, out));
        let stream = made(|out| warpset_stream_new(device, out));
        let (key_buffer, address) = there(device, &keys);
        let (found_buffer, found) = there(device, &[0u64; 499]);
        let (firsts, lasts) = (at(warpset_key_type::U64, address, 499), at(warpset_key_type::U64, address + 8, 499));
        for stream in [null_mut(), stream] {
            let wait = || if stream.is_null() { warpset_status::Ok } else { warpset_stream_synchronize(stream) };
            ok(warpset_buffer_write(found_buffer, [0; 64].as_ptr(), 64));
            ok(warpset_range_filter_may_contain_device(filter, &firsts, &lasts, found, stream));
            ok(wait());
            assert_eq!(here::<u64>(found_buffer, 7), [u64::MAX; 7]);
            ok(warpset_range_filter_count_at_most_device(filter, &firsts, &lasts, found, stream));
            ok(wait());
            assert_eq!(here::<u64>(found_buffer, 499), answers[0]);
        }
        let signed = at(warpset_key_type::I64, address, 499);
        assert_eq!(
            warpset_range_filter_may_contain_device(filter, &signed, &lasts, found, null()),
            warpset_status::WrongType
        );
        for buffer in [key_buffer, found_buffer] {
            ok(warpset_buffer_free(buffer));
        }
        ok(warpset_stream_free(stream));
        ok(warpset_structure_free(filter));
        let strings = described(warpset_key_type::FixedStrings, keys.as_ptr().cast(), 9);
        let strings = warpset_keys { width: 8, ..strings };
        let mut out = null_mut();
        assert_eq!(warpset_range_filter_build(&strings, &options, &mut out), warpset_status::Unsupported);
        ok(warpset_device_free(device));
    }
}

#[test]
fn strings_and_hashes_on_a_device_are_those_of_the_host() {
    devices(1).into_iter().for_each(strings_and_hashes_are_those_of_the_host_on);
}

fn strings_and_hashes_are_those_of_the_host_on(device: *mut warpset_device) {
    let hashes: Vec<u64> = (0..500u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let on_host = warpset_keys { width: 8, ..described(warpset_key_type::FixedStrings, hashes.as_ptr().cast(), 500) };
    let as_hashes = described(warpset_key_type::Hashes, hashes.as_ptr().cast(), 500);
    // SAFETY: the contract of the header.
    unsafe {
        let options = warpset_options { device, fpr: 1e-4, ..defaults() };
        let (bytes, address) = there(device, &hashes);
        let (narrow, of_i32) = there(device, &(0..=500).map(|i| 8 * i).collect::<Vec<i32>>());
        let (wide, of_i64) = there(device, &(0..=500).map(|i| 8 * i).collect::<Vec<i64>>());
        let (answer_buffer, answers) = there(device, &[0u64; 500]);
        let strings = |key_type, offsets| warpset_device_keys { offsets, bytes: 4000, ..at(key_type, address, 500) };
        let forms = [
            (strings(warpset_key_type::Strings32, of_i32), on_host),
            (strings(warpset_key_type::Strings64, of_i64), on_host),
            (at(warpset_key_type::Hashes, address, 500), as_hashes),
            (at(warpset_key_type::F64, address, 500), described(warpset_key_type::F64, hashes.as_ptr().cast(), 500)),
        ];
        for (there, on_host) in &forms {
            for build in [warpset_blocked_bloom_build, warpset_standard_quotient_filter_build] {
                let filter = made(|out| build(1000, &options, out));
                ok(warpset_filter_insert_device(filter, there));
                assert_eq!(contains(filter, on_host), [1; 500]);
                for (other, _) in &forms {
                    let count = got(|count| warpset_filter_count_contained_device(filter, other, count));
                    // Both descriptions of strings are the same keys.
                    let is_same = other.key_type == there.key_type || [other, there].iter().all(|keys| keys.bytes > 0);
                    assert_eq!(count == 500, is_same, "{there:?} {other:?}");
                }
                ok(warpset_structure_free(filter));
            }
            let function = made(|out| warpset_placement_build(on_host, &options, out));
            ok(warpset_function_numbers_device(function, there, answers, null()));
            assert_eq!(here::<u64>(answer_buffer, 500), numbers(function, on_host));
            ok(warpset_structure_free(function));
        }
        let set = made(|out| warpset_static_set_build(&words(&hashes), &options, out));
        let status = warpset_filter_contains_device(set, &forms[0].0, answers, null());
        assert_eq!(status, warpset_status::WrongType);
        ok(warpset_structure_free(set));
        for buffer in [bytes, narrow, wide, answer_buffer] {
            ok(warpset_buffer_free(buffer));
        }
        ok(warpset_device_free(device));
    }
}

#[test]
fn groups_share_filters_and_builds() {
    let all = devices(u32::MAX);
    let (emulator, gpus) = all.split_first().expect("an emulator");
    // SAFETY: the contract of the header.
    shared_by_group(&[*emulator, made(|out| unsafe { warpset_device_emulator(out) })]);
    if gpus.len() > 1 {
        shared_by_group(gpus);
    }
}

fn shared_by_group(members: &[*mut warpset_device]) {
    let keys: Vec<u64> = (0..500).map(|i| i * 77).collect();
    // SAFETY: the contract of the header.
    unsafe {
        let of_group: Vec<_> = members.iter().map(|member| member.cast_const()).collect();
        let group = made(|out| warpset_device_group(of_group.as_ptr(), of_group.len(), out));
        let options = warpset_options { device: group, ..defaults() };
        let filter = made(|out| warpset_split_block_bloom_build(1000, &options, out));
        ok(warpset_filter_insert(filter, &words(&keys)));
        let copy = made(|out| warpset_structure_copy(filter, null(), out));
        ok(warpset_structure_merge(filter, copy));
        for filter in [filter, copy] {
            assert_eq!(got(|count| warpset_filter_count_contained(filter, &words(&keys), count)), 500);
            ok(warpset_structure_free(filter));
        }
        let [there, here] = [&options, &defaults()].map(|options| {
            let function = made(|out| warpset_recsplit_build(&words(&keys), options, out));
            let mut numbers = [0; 500];
            ok(warpset_function_numbers(function, &words(&keys), numbers.as_mut_ptr()));
            ok(warpset_structure_free(function));
            numbers
        });
        assert_eq!(there, here);
        let same = [of_group[0]; 2];
        let mut out = null_mut();
        assert_eq!(warpset_device_group(same.as_ptr(), 2, &mut out), warpset_status::InvalidValue);
        for &device in members.iter().chain([&group]) {
            ok(warpset_device_free(device));
        }
    }
}

//! Structures, keys and answers in the memory of an emulated device.

use super::*;

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

/// Copies items from a device.
fn here<T: Default + Clone>(buffer: *mut warpset_buffer, len: usize) -> Vec<T> {
    let mut items = vec![T::default(); len];
    // SAFETY: the contract of the header.
    ok(unsafe { warpset_buffer_read(buffer, items.as_mut_ptr().cast(), len * size_of::<T>()) });
    items
}

#[test]
fn keys_and_answers_stay_on_the_device() {
    let keys: Vec<u64> = (0..500).map(|i| i * 77).collect();
    let values: Vec<u64> = (0..500).collect();
    // SAFETY: the contract of the header.
    unsafe {
        let device = made(|out| warpset_device_emulator(out));
        let stream = made(|out| warpset_stream_new(device, out));
        let (mut free, mut total) = (0, 0);
        ok(warpset_device_memory(device, &mut free, &mut total));
        assert!(free <= total);
        let (key_buffer, address) = there(device, &keys);
        let (answer_buffer, answers) = there(device, &[0u8; 500]);
        let (number_buffer, numbers) = there(device, &[0u64; 500]);
        let (bit_buffer, bits) = there(device, &[0u64; 8]);
        let (value_buffer, of_keys) = there(device, &values);
        let device_keys = warpset_device_keys { key_type: warpset_key_type::U64 as u32, address, len: 500 };
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
        let strings = warpset_device_keys { key_type: 10, ..device_keys };
        assert_eq!(warpset_filter_insert_device(counted, &strings), warpset_status::WrongType);
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
    let keys: Vec<u64> = (0..500).map(|i| i << 55).collect();
    let (firsts, lasts) = (words(&keys[..499]), words(&keys[1..]));
    // SAFETY: the contract of the header.
    unsafe {
        let device = made(|out| warpset_device_emulator(out));
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
        let strings = described(warpset_key_type::FixedStrings, keys.as_ptr().cast(), 9);
        let strings = warpset_keys { width: 8, ..strings };
        let mut out = null_mut();
        assert_eq!(warpset_range_filter_build(&strings, &options, &mut out), warpset_status::Unsupported);
        ok(warpset_device_free(device));
    }
}

#[test]
fn groups_share_filters_and_builds() {
    let keys: Vec<u64> = (0..500).map(|i| i * 77).collect();
    // SAFETY: the contract of the header.
    unsafe {
        let both = [(); 2].map(|()| made(|out| warpset_device_emulator(out)).cast_const());
        let group = made(|out| warpset_device_group(both.as_ptr(), 2, out));
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
        let same = [both[0]; 2];
        let mut out = null_mut();
        assert_eq!(warpset_device_group(same.as_ptr(), 2, &mut out), warpset_status::InvalidValue);
        for device in [group, both[0].cast_mut(), both[1].cast_mut()] {
            ok(warpset_device_free(device));
        }
    }
}

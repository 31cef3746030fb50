//! All functions of the header, called with unusable arguments and with a forced panic.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::mem::zeroed;

use super::*;
use crate::error::tests::ask_for_panic;
use crate::rows::Rows;

/// Call of a function with a number as its first argument, and zeros as the others.
type Call = (&'static str, fn(usize) -> warpset_status);

/// Returns an argument of any type that consists of zeros.
fn zero<T>() -> T {
    // SAFETY: arguments are integers, floats and raw pointers, for which zeros are valid.
    unsafe { zeroed() }
}

/// Returns a pointer to an address as an argument, or a number of its value.
fn first<T>(number: usize) -> T {
    let mut argument: T = zero();
    if size_of::<T>() == size_of::<usize>() {
        // SAFETY: an integer or a raw pointer with the size of a pointer, for which all bits are valid.
        unsafe { (&raw mut argument).cast::<usize>().write_unaligned(number) };
    }
    argument
}

/// Table of calls; each `_` is an argument.
macro_rules! calls {
    ($($name:ident($first:tt $($rest:tt)*);)*) => {
        // SAFETY: the contract of the header, with pointers that are NULL, misaligned or handles.
        [$((stringify!($name), (|number| unsafe { $name(first(number) $(, calls!(@ $rest))*) }) as fn(usize) -> _)),*]
    };
    (@ _) => {
        zero()
    };
}

/// Functions with a handle as their first argument.
const OF_HANDLES: &[Call] = &calls! {
    warpset_arrow_from_rows(_ _ _);
    warpset_device_free(_);
    warpset_device_synchronize(_);
    warpset_device_memory(_ _ _);
    warpset_stream_new(_ _);
    warpset_stream_adopt(_ _ _);
    warpset_stream_synchronize(_);
    warpset_stream_free(_);
    warpset_buffer_new(_ _ _ _);
    warpset_buffer_write(_ _ _);
    warpset_buffer_read(_ _ _);
    warpset_buffer_free(_);
    warpset_filter_contains(_ _ _);
    warpset_filter_contains_bits(_ _ _);
    warpset_filter_count_contained(_ _ _);
    warpset_filter_contains_u64(_ _ _);
    warpset_filter_contains_string(_ _ _ _);
    warpset_filter_insert(_ _);
    warpset_filter_insert_u64(_ _);
    warpset_filter_insert_string(_ _ _);
    warpset_filter_test_and_insert(_ _ _);
    warpset_filter_remove(_ _ _);
    warpset_filter_counts(_ _ _);
    warpset_filter_contains_device(_ _ _ _);
    warpset_filter_count_contained_device(_ _ _);
    warpset_filter_insert_device(_ _);
    warpset_filter_remove_device(_ _ _);
    warpset_filter_counts_device(_ _ _);
    warpset_function_numbers(_ _ _);
    warpset_function_number_u64(_ _ _);
    warpset_function_number_string(_ _ _ _);
    warpset_function_bound(_ _);
    warpset_function_numbers_device(_ _ _ _);
    warpset_map_get(_ _ _ _);
    warpset_map_get_u64(_ _ _ _);
    warpset_map_get_string(_ _ _ _ _);
    warpset_map_insert(_ _ _ _);
    warpset_map_cleanup(_);
    warpset_map_count_ranges(_ _ _ _);
    warpset_map_ranges(_ _ _ _);
    warpset_map_neighbours(_ _ _ _);
    warpset_map_get_device(_ _ _ _);
    warpset_map_insert_device(_ _ _);
    warpset_map_count_ranges_device(_ _ _ _);
    warpset_map_ranges_device(_ _ _ _ _ _ _);
    warpset_range_filter_may_contain(_ _ _ _);
    warpset_range_filter_may_contain_device(_ _ _ _ _);
    warpset_range_filter_count_at_most_device(_ _ _ _ _);
    warpset_range_filter_count_at_most(_ _ _ _);
    warpset_rows_arrays(_ _);
    warpset_rows_free(_);
    warpset_sequence_filter_insert(_ _);
    warpset_sequence_filter_count(_ _ _ _);
    warpset_sequence_filter_matches(_ _ _ _ _);
    warpset_sequence_filter_windows(_ _ _ _);
    warpset_structure_save(_ _);
    warpset_structure_to_bytes(_ _);
    warpset_bytes_data(_ _ _);
    warpset_bytes_free(_);
    warpset_structure_copy(_ _ _);
    warpset_structure_free(_);
    warpset_structure_kind(_ _);
    warpset_structure_len(_ _);
    warpset_structure_memory_bytes(_ _);
    warpset_structure_fpr(_ _);
    warpset_structure_clear(_);
    warpset_structure_merge(_ _);
    warpset_structure_intersect(_ _);
    warpset_structure_resize(_ _);
};

/// Other functions.
const OTHERS: &[Call] = &calls! {
    warpset_keys_from_arrow(_ _ _);
    warpset_arrow_from_answers(_ _ _ _);
    warpset_arrow_from_numbers(_ _ _ _);
    warpset_split_block_bloom_build(_ _ _);
    warpset_blocked_bloom_build(_ _ _);
    warpset_rao_bloom_build(_ _ _);
    warpset_standard_quotient_filter_build(_ _ _);
    warpset_rank_select_quotient_filter_build(_ _ _);
    warpset_maplet_build(_ _ _);
    warpset_sequence_filter_build(_ _ _);
    warpset_binary_fuse_build(_ _ _);
    warpset_range_filter_build(_ _ _);
    warpset_dynamic_range_filter_build(_ _ _ _);
    warpset_recsplit_build(_ _ _);
    warpset_consensus_build(_ _ _);
    warpset_placement_build(_ _ _);
    warpset_static_filter_build(_ _ _);
    warpset_static_set_build(_ _ _);
    warpset_static_function_build(_ _ _ _);
    warpset_string_map_build(_ _ _ _);
    warpset_static_map_build(_ _ _ _);
    warpset_lsm_build(_ _);
    warpset_sorted_array_build(_ _);
    warpset_device_count(_);
    warpset_device_open(_ _);
    warpset_device_group(_ _ _);
    warpset_device_emulator(_);
    warpset_minimizers_find(_ _ _ _);
    warpset_structure_open(_ _ _);
    warpset_structure_map(_ _);
    warpset_structure_from_bytes(_ _ _ _);
};

/// Functions without pointers among their arguments.
const OF_NUMBERS: [&str; 4] = ["warpset_set_threads", "warpset_abi_version", "warpset_version", "warpset_last_error"];

/// Functions for which zeros are valid arguments.
fn takes_zeros(name: &str) -> bool {
    name.ends_with("_free")
}

fn all() -> impl Iterator<Item = &'static Call> {
    OF_HANDLES.iter().chain(OTHERS)
}

#[test]
fn tables_list_all_functions_of_the_header() {
    let header = include_str!("../../include/warpset.h");
    let begins = ["warpset_status ", "uint32_t ", "const char *"];
    let declared: BTreeSet<&str> = header
        .lines()
        .filter_map(|line| begins.iter().find_map(|begin| line.strip_prefix(begin)))
        .filter_map(|line| line.split_once('(').map(|(name, _)| name))
        .collect();
    let called: BTreeSet<&str> = all().map(|call| call.0).chain(OF_NUMBERS).collect();
    assert_eq!(declared, called);
    assert!(declared.len() <= 150);
}

#[test]
fn panics_become_a_status() {
    let silent = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let statuses: Vec<_> = all()
        .map(|(name, call)| {
            ask_for_panic();
            (*name, call(0), last_error())
        })
        .collect();
    std::panic::set_hook(silent);
    for (name, status, message) in statuses {
        assert_eq!(status, warpset_status::Internal, "{name}");
        assert!(message.contains("asked for"), "{name}: {message}");
    }
}

#[test]
fn null_pointers_are_refused() {
    for (name, call) in all().filter(|call| !takes_zeros(call.0)) {
        let status = call(0);
        assert_eq!(status, warpset_status::NullPointer, "{name}: {}", last_error());
        assert!(last_error().contains("is NULL"), "{name}: {}", last_error());
    }
}

#[test]
fn misaligned_handles_are_refused() {
    for (name, call) in OF_HANDLES {
        assert_eq!(call(9), warpset_status::Misaligned, "{name}");
    }
}

#[test]
fn handles_of_other_types_are_refused() {
    let nothing = [0u64; 8];
    let (structure, mut rows) = (small(), std::ptr::null_mut::<warpset_rows>());
    // SAFETY: `rows` is valid for writing.
    unsafe { hand_out(&mut rows, || Ok(Rows::default())).unwrap() };
    for (name, call) in OF_HANDLES {
        let other = if name.starts_with("warpset_rows") || *name == "warpset_arrow_from_rows" {
            structure.addr()
        } else {
            rows.addr()
        };
        assert_eq!(call(other), warpset_status::WrongHandle, "{name}");
        assert_eq!(call(nothing.as_ptr().addr()), warpset_status::WrongHandle, "{name}");
    }
    // SAFETY: handles of this library.
    unsafe {
        assert_eq!(warpset_rows_free(rows), warpset_status::Ok);
        assert_eq!(warpset_structure_free(structure), warpset_status::Ok);
    }
}

#[test]
fn versions_are_constants() {
    assert_eq!(warpset_abi_version(), crate::WARPSET_ABI_VERSION);
    // SAFETY: the function returns a C string.
    let version = unsafe { CStr::from_ptr(warpset_version()) };
    assert_eq!(version.to_str(), Ok(env!("CARGO_PKG_VERSION")));
}

#[test]
fn threads_are_started_once() {
    ask_for_panic();
    assert_eq!(warpset_set_threads(2), warpset_status::Internal);
    warpset_set_threads(2);
    assert_eq!(warpset_set_threads(2), warpset_status::InvalidValue);
}

//! A caller that makes calls at random, with arguments that may be unusable.

use proptest::prelude::*;

use super::*;

/// Structures that a caller has, by number.
const KINDS: u8 = 16;

/// Builds a structure of a kind, of some keys.
fn build(kind: u8, keys: &warpset_keys, values: &[u64], options: &warpset_options) -> *mut warpset_structure {
    let (mut out, n, values) = (null_mut(), keys.len as u64, values.as_ptr());
    // SAFETY: the contract of the header.
    unsafe {
        let out = &mut out;
        let _ = match kind {
            0 => warpset_split_block_bloom_build(n, options, out),
            1 => warpset_blocked_bloom_build(n, options, out),
            2 => warpset_rao_bloom_build(n, options, out),
            3 => warpset_standard_quotient_filter_build(n, options, out),
            4 => warpset_rank_select_quotient_filter_build(n, options, out),
            5 => warpset_maplet_build(n, options, out),
            6 => warpset_binary_fuse_build(keys, options, out),
            7 => warpset_recsplit_build(keys, options, out),
            8 => warpset_static_filter_build(keys, options, out),
            9 => warpset_static_set_build(keys, options, out),
            10 => warpset_static_function_build(keys, values, options, out),
            11 => warpset_string_map_build(keys, values, options, out),
            12 => warpset_static_map_build(keys, values, options, out),
            13 => warpset_range_filter_build(keys, options, out),
            14 => warpset_dynamic_range_filter_build(n, keys.key_type, options, out),
            _ => warpset_lsm_build(options, out),
        };
    }
    out
}

/// Memory that all arguments point into, so that any access within is valid.
#[derive(Debug, Clone)]
struct Caller {
    memory: Vec<u64>,
    offset: usize,
    stride: isize,
    len: usize,
    key_type: u32,
    width: u32,
    has_nulls: bool,
    bits: (u32, u32, f64),
    calls: Vec<(u8, u8)>,
}

fn caller() -> impl Strategy<Value = Caller> {
    let memory = prop::collection::vec(prop_oneof![0..6u64, any::<u64>()], 64);
    let len = prop_oneof![8 => 0..5usize, 1 => Just(usize::MAX), 1 => (1usize << 49)..];
    let options =
        (prop_oneof![Just(0u32), 0..70u32], prop_oneof![Just(0u32), 0..70u32], prop_oneof![Just(0.0), any::<f64>()]);
    (
        memory,
        0..9usize,
        -8..9isize,
        len,
        0..17u32,
        0..9u32,
        any::<bool>(),
        options,
        prop::collection::vec((0..KINDS, any::<u8>()), 1..8),
    )
        .prop_map(|(memory, offset, stride, len, key_type, width, has_nulls, bits, calls)| Caller {
            memory,
            offset,
            stride,
            len,
            key_type,
            width,
            has_nulls,
            bits,
            calls,
        })
}

impl Caller {
    fn keys(&self) -> warpset_keys {
        let middle = self.memory.as_ptr().wrapping_add(32).cast::<u8>();
        // Strings by pointers need valid ones; offsets need valid ends.
        let key_type = if self.key_type == 12 { 13 } else { self.key_type };
        warpset_keys {
            key_type,
            width: self.width,
            data: if self.offset == 8 { null() } else { middle.wrapping_add(self.offset) },
            len: self.len,
            stride: self.stride,
            offsets: [OFFSETS32.as_ptr().cast(), OFFSETS64.as_ptr().cast()][usize::from(key_type == 11)],
            validity: if self.has_nulls { self.memory.as_ptr().cast() } else { null() },
            validity_offset: self.offset,
        }
    }

    /// Makes the calls, and checks that none of them finds a defect of the library.
    fn run(&self) {
        let options = warpset_options {
            fpr: self.bits.2,
            value_bits: self.bits.0,
            key_bits: self.bits.1,
            map_key_bits: [0, 32, 64, 128][self.bits.0 as usize % 4],
            map_key_strings: self.bits.0.is_multiple_of(5).into(),
            map_value_bits: [0, 32, 64][self.bits.1 as usize % 3],
            duplicates: self.bits.0 % 4,
            fingerprint_bits: [0, 8, 16, 32, 7][self.bits.1 as usize % 5],
            ..defaults()
        };
        let (keys, few) = (self.keys(), self.len.min(64));
        let mut structures = Vec::new();
        for &(kind, call) in &self.calls {
            if structures.is_empty() || call % 4 == 0 {
                // A structure of no keys if these are unusable.
                let keys = if self.len > 64 { words(&[]) } else { keys };
                structures.push(build(kind, &keys, &self.memory, &options));
            }
            let structure: *mut warpset_structure = structures[usize::from(call) % structures.len()];
            let other = structures[usize::from(kind) % structures.len()];
            let (mut flags, mut numbers, mut count) = ([0u8; 64], [0u64; 64], 0u64);
            // SAFETY: the contract of the header: outputs have space for all keys of arguments that are not refused.
            let status = unsafe {
                let (flags, numbers) = (flags.as_mut_ptr(), numbers.as_mut_ptr());
                match call % 21 {
                    0 => warpset_filter_contains(structure, &keys, flags),
                    1 => warpset_filter_contains_bits(structure, &keys, flags),
                    2 => warpset_filter_insert(structure, &keys),
                    3 => warpset_filter_test_and_insert(structure, &keys, flags),
                    4 => warpset_filter_remove(structure, &keys, &mut count),
                    5 => warpset_filter_counts(structure, &keys, numbers),
                    6 => warpset_function_numbers(structure, &keys, numbers),
                    7 => warpset_map_get(structure, &keys, numbers, flags),
                    8 => warpset_map_insert(structure, &keys, self.memory.as_ptr(), kind.into()),
                    9 => warpset_structure_merge(structure, other),
                    10 => warpset_structure_intersect(structure, other),
                    11 => warpset_structure_resize(structure, (kind % 2).into()),
                    12 => warpset_structure_clear(structure),
                    13 => warpset_map_count_ranges(structure, &keys, &keys, numbers),
                    14 => warpset_map_get_u64(structure, self.memory[0], &mut count, null_mut()),
                    15 => warpset_function_number_u64(structure, self.memory[0], &mut count),
                    16 => warpset_structure_len(structure, &mut count),
                    17 => warpset_range_filter_may_contain(structure, &keys, &keys, flags),
                    18 => warpset_range_filter_count_at_most(structure, &keys, &keys, numbers),
                    19 => {
                        let mut rows = null_mut();
                        let status = warpset_map_ranges(structure, &keys, &keys, &mut rows);
                        ok(warpset_rows_free(rows));
                        status
                    }
                    _ => {
                        let mut bytes = null_mut();
                        let status = warpset_structure_to_bytes(structure, &mut bytes);
                        ok(warpset_bytes_free(bytes));
                        status
                    }
                }
            };
            assert_ne!(status, warpset_status::Internal, "{}", last_error());
            assert!(status == warpset_status::Ok || !last_error().is_empty());
            assert!(few <= 64);
        }
        for structure in structures {
            // SAFETY: a handle of this library, or NULL.
            ok(unsafe { warpset_structure_free(structure) });
        }
    }
}

/// Offsets of strings within eight bytes.
const OFFSETS32: [i32; 8] = [0, 1, 1, 3, 4, 6, 7, 8];
const OFFSETS64: [i64; 8] = [0, 1, 1, 3, 4, 6, 7, 8];

proptest! {
    #[test]
    fn no_caller_finds_a_defect(caller in caller()) {
        caller.run();
    }
}

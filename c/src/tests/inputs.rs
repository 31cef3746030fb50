//! Inputs of all structures: types of keys, nulls, lengths, freed handles, files of others, threads.

use super::structures::*;
use super::*;

#[test]
fn keys_of_all_types_are_the_same() {
    let structure = small();
    let nines: Vec<u64> = (0..9).collect();
    // SAFETY: the contract of the header.
    unsafe {
        ok(warpset_filter_insert(structure, &words(&nines)));
        macro_rules! of {
            ($($key_type:ident: $type:ty),*) => {$(
                let keys: Vec<$type> = (0..9).collect();
                let adjacent = described(warpset_key_type::$key_type, keys.as_ptr().cast(), 9);
                assert_eq!(contains(structure, &adjacent), [1; 9]);
                // Misaligned, backwards, and fields of a larger structure.
                let mut bytes = vec![0u8; 1 + 9 * 24];
                for (i, key) in keys.iter().enumerate() {
                    bytes[1 + 24 * i..][..size_of::<$type>()].copy_from_slice(&key.to_le_bytes());
                }
                let last = bytes.as_ptr().add(1 + 8 * 24);
                let strided = warpset_keys { stride: -24, ..described(warpset_key_type::$key_type, last, 9) };
                assert_eq!(contains(structure, &strided), [1; 9]);
            )*};
        }
        of!(U8: u8, I8: i8, U16: u16, I16: i16, U32: u32, I32: i32, U64: u64, I64: i64, U128: u128, I128: i128);
        ok(warpset_filter_insert_u64(structure, u64::MAX));
        assert_eq!(contains(structure, &described(warpset_key_type::I8, (&raw const MINUS_ONE).cast(), 1)), [1]);
        ok(warpset_structure_free(structure));
    }
}

static MINUS_ONE: i8 = -1;

#[test]
fn strings_of_all_forms_are_the_same() {
    let structure = small();
    let bytes = b"ashelmoakfir";
    let (narrow, wide): ([i32; 5], [i64; 5]) = ([0, 3, 6, 9, 12], [0, 3, 6, 9, 12]);
    // SAFETY: the contract of the header.
    unsafe {
        let fixed = warpset_keys { width: 3, ..described(warpset_key_type::FixedStrings, bytes.as_ptr(), 4) };
        ok(warpset_filter_insert(structure, &fixed));
        let offsets = warpset_keys {
            offsets: narrow.as_ptr().cast(),
            ..described(warpset_key_type::Strings32, bytes.as_ptr(), 4)
        };
        assert_eq!(contains(structure, &offsets), [1; 4]);
        let offsets =
            warpset_keys { offsets: wide.as_ptr().cast(), ..described(warpset_key_type::Strings64, bytes.as_ptr(), 4) };
        assert_eq!(contains(structure, &offsets), [1; 4]);
        assert!(got(|answer| warpset_filter_contains_string(structure, b"fir".as_ptr(), 3, answer)));
        // Offsets that fall, and empty strings behind the last address.
        for (offsets, data) in [([0i32, 9, 3, 12], bytes.as_ptr()), ([1; 4], std::ptr::without_provenance(usize::MAX))]
        {
            let offsets =
                warpset_keys { offsets: offsets.as_ptr().cast(), ..described(warpset_key_type::Strings32, data, 3) };
            assert_eq!(warpset_filter_insert(structure, &offsets), warpset_status::InvalidValue);
        }
        ok(warpset_structure_free(structure));
    }
}

#[test]
fn nulls_are_no_keys() {
    let structure = small();
    let (keys, validity) = ([1, 2, 3, 4, 5], [0b1010_1000u8]);
    let nulls = warpset_keys { validity: validity.as_ptr(), validity_offset: 3, ..words(&keys) };
    // SAFETY: the contract of the header.
    unsafe {
        ok(warpset_filter_insert(structure, &nulls));
        assert_eq!(contains(structure, &words(&keys)), [1, 0, 1, 0, 1]);
        ok(warpset_filter_insert(structure, &words(&keys)));
        assert_eq!(contains(structure, &nulls), [1, 0, 1, 0, 1]);
        ok(warpset_structure_free(structure));
        let map = made(|out| warpset_static_map_build(&nulls, [10, 20, 30, 40, 50].as_ptr(), null(), out));
        assert_eq!(values(map, &words(&keys)), (vec![10, 0, 30, 0, 50], vec![1, 0, 1, 0, 1]));
        assert_eq!(values(map, &nulls), (vec![10, 0, 30, 0, 50], vec![1, 0, 1, 0, 1]));
        assert_eq!(numbers(map, &nulls)[1], u64::MAX);
        ok(warpset_structure_free(map));
    }
}

#[test]
fn lengths_beyond_memory_are_refused() {
    let structure = small();
    let (key, mut answer) = ([7u64], [0u8]);
    // SAFETY: lengths that no memory has are refused before an access.
    unsafe {
        for len in [usize::MAX, usize::MAX / 2, usize::MAX / 8, usize::MAX / 8 + 1, 1 << 50] {
            for key_type in 1..=15 {
                let keys = warpset_keys { key_type, len, offsets: key.as_ptr().cast(), width: 8, ..words(&key) };
                let status = warpset_filter_contains(structure, &keys, answer.as_mut_ptr());
                assert_eq!(status, warpset_status::InvalidLength, "{key_type} {len}: {}", last_error());
            }
            let status = warpset_structure_from_bytes(key.as_ptr().cast(), len, null(), &mut null_mut());
            assert_eq!(status, warpset_status::InvalidLength);
            let wide = warpset_keys { stride: len as isize, len: 2, ..words(&key) };
            if len as isize > 1 << 50 || len as isize <= -(1 << 50) {
                assert_eq!(warpset_filter_insert(structure, &wide), warpset_status::InvalidLength);
            }
        }
        let unknown = warpset_keys { key_type: 99, ..words(&key) };
        assert_eq!(warpset_filter_insert(structure, &unknown), warpset_status::InvalidValue);
        ok(warpset_structure_free(structure));
    }
}

#[test]
fn freed_handles_are_noticed() {
    let nothing = [0u64; 4];
    // SAFETY: memory of the caller, as that of a freed handle.
    let status = unsafe { warpset_structure_clear(nothing.as_ptr().cast()) };
    assert_eq!(status, warpset_status::WrongHandle);
}

#[test]
fn files_of_other_programs_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("other");
    let mut out = null_mut();
    // SAFETY: the contract of the header.
    unsafe {
        assert_eq!(warpset_structure_open(c_string(&path).as_ptr(), null(), &mut out), warpset_status::Io);
        for len in [0, 10, 1000] {
            std::fs::write(&path, vec![7; len]).unwrap();
            assert_eq!(warpset_structure_open(c_string(&path).as_ptr(), null(), &mut out), warpset_status::InvalidFile);
            assert_eq!(warpset_structure_map(c_string(&path).as_ptr(), &mut out), warpset_status::InvalidFile);
        }
        let short = warpset_options { struct_size: 8, ..defaults() };
        assert_eq!(warpset_lsm_build(&short, &mut out), warpset_status::InvalidValue);
    }
    assert!(out.is_null());
}

#[test]
fn threads_share_a_structure() {
    // SAFETY: the contract of the header.
    let filter = made(|out| unsafe { warpset_split_block_bloom_build(100_000, null(), out) }).addr();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            scope.spawn(move || {
                let filter = filter as *mut warpset_structure;
                let keys: Vec<u64> = (0..1000).map(|i| i << 8 | thread).collect();
                for keys in keys.chunks(10) {
                    // SAFETY: the handle lives until the end of the scope.
                    ok(unsafe { warpset_filter_insert(filter, &words(keys)) });
                    assert_eq!(contains(filter, &words(keys)), vec![1; keys.len()]);
                    // SAFETY: likewise; each thread has errors of its own.
                    let status = unsafe { warpset_filter_contains_u64(filter, thread, null_mut()) };
                    assert_eq!((status, last_error().is_empty()), (warpset_status::NullPointer, false));
                }
            });
        }
    });
    // SAFETY: no other call uses the handle.
    ok(unsafe { warpset_structure_free(filter as *mut warpset_structure) });
}

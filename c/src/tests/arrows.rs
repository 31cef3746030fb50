//! Arrow arrays as keys and as answers.

use super::*;

#[test]
fn answers_are_keys_again() {
    let numbers: Vec<u64> = (0..100).collect();
    let structure = small();
    // SAFETY: the contract of the header.
    unsafe {
        let (mut schema, mut array): (ArrowSchema, ArrowArray) = std::mem::zeroed();
        ok(warpset_arrow_from_numbers(numbers.as_ptr(), numbers.len(), &mut schema, &mut array));
        let mut keys = words(&[]);
        ok(warpset_keys_from_arrow(&schema, &array, &mut keys));
        assert_eq!((keys.len, keys.key_type), (100, warpset_key_type::U64 as u32));
        ok(warpset_filter_insert(structure, &keys));
        let mut answers = [0u8; 100];
        ok(warpset_filter_contains(structure, &words(&numbers), answers.as_mut_ptr()));
        assert_eq!(answers, [1; 100]);
        array.released();
        schema.released();
        assert_eq!(warpset_keys_from_arrow(&schema, &array, &mut keys), warpset_status::WrongHandle);

        ok(warpset_arrow_from_answers(answers.as_ptr(), answers.len(), &mut schema, &mut array));
        assert_eq!(warpset_keys_from_arrow(&schema, &array, &mut keys), warpset_status::WrongType);
        array.released();
        schema.released();
        ok(warpset_structure_free(structure));
    }
}

#[test]
fn rows_become_structures() {
    // SAFETY: the contract of the header.
    unsafe {
        let map = made(|out| warpset_lsm_build(null(), out));
        ok(warpset_map_insert(map, &words(&[5, 3, 9]), [50, 30, 90].as_ptr(), 0));
        let rows = made(|out| warpset_map_ranges(map, &words(&[4]), &words(&[100]), out));
        let (mut schema, mut array): (ArrowSchema, ArrowArray) = std::mem::zeroed();
        ok(warpset_arrow_from_rows(rows, &mut schema, &mut array));
        ok(warpset_rows_free(rows));
        assert_eq!(array.columns(), [[5, 9], [50, 90]]);
        array.released();
        schema.released();
        ok(warpset_structure_free(map));
    }
}

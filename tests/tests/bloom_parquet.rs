//! The split-block filter against the crate `parquet`, in both directions.

use parquet::bloom_filter::Sbbf;
use warpset_bloom::{Bytes, Layout, SplitBlockBloom};

const KEYS: u64 = 1_000_000;

/// Every second key is inserted.
fn key(i: u64) -> u64 {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Our filter and theirs, made of the same keys.
fn both(bytes: usize) -> (SplitBlockBloom, Sbbf) {
    let mut ours = SplitBlockBloom::from_bitset(&vec![0; bytes]).unwrap();
    let mut theirs = Sbbf::new_with_num_of_bytes(bytes);
    let keys: Vec<u64> = (0..KEYS).step_by(2).map(key).collect();
    ours.insert_bulk(&keys);
    keys.iter().for_each(|key| theirs.insert(key));
    (ours, theirs)
}

fn bytes_of(theirs: &Sbbf) -> Vec<u8> {
    let mut bytes = Vec::new();
    theirs.write(&mut bytes).unwrap();
    bytes
}

#[test]
fn a_million_keys_give_the_same_bytes_and_answers() {
    let (ours, theirs) = both(1 << 20);
    let mut file = Vec::new();
    ours.write_parquet(&mut file).unwrap();
    assert!(file == bytes_of(&theirs), "header and bitset");

    // Theirs opened by ours, ours by theirs.
    let opened = SplitBlockBloom::read_parquet(&bytes_of(&theirs)[..]).unwrap();
    assert!(opened == ours);
    let opened_by_them = Sbbf::from_bytes(&file).unwrap();
    let keys: Vec<u64> = (0..KEYS).map(key).collect();
    let answers = opened.contains_bulk(&keys);
    for (key, answer) in keys.iter().zip(&answers) {
        assert_eq!(*answer, theirs.check(key));
        assert_eq!(*answer, opened_by_them.check(key));
    }
}

#[test]
fn folding_agrees() {
    for target in [0.3, 0.05, 0.01, 0.0005] {
        let (mut ours, mut theirs) = both(1 << 22);
        theirs.fold_to_target_fpp(target);
        let halvings = (1u64 << 22).ilog2() - (32 * theirs.num_blocks() as u64).ilog2();
        let mut by_rate = ours.clone();
        ours.fold(1 << halvings).unwrap();
        assert_eq!(ours.bitset(), &bytes_of(&theirs)[bytes_of(&theirs).len() - ours.bitset().len()..]);
        // Their estimate predicts the fold, ours folds and looks: they may differ by a step at the border.
        let steps = by_rate.shrink_to_fpr(target).unwrap();
        assert!(steps.abs_diff(halvings) <= 1, "{target}: {steps} and {halvings}");
        assert!(steps == 0 || by_rate.fpr() <= target);
    }
}

#[test]
fn strings_integers_and_byte_arrays_hash_alike() {
    let mut theirs = Sbbf::new_with_num_of_bytes(1024);
    let mut ours = SplitBlockBloom::from_bitset(&[0; 1024]).unwrap();
    // The words of parquet-testing's `bloom_filter.xxhash.bin`, and a long one.
    let long = "x".repeat(1000);
    for word in ["hello", "parquet", "bloom", "filter", "", &long] {
        theirs.insert(word);
        ours.insert(word);
    }
    theirs.insert(&7i32);
    theirs.insert(&7i64);
    theirs.insert(&[1u8, 2, 3][..]);
    ours.insert(7i32);
    ours.insert(7u64);
    ours.insert(Bytes(vec![1u8, 2, 3]));
    assert_eq!(ours.bitset(), &bytes_of(&theirs)[bytes_of(&theirs).len() - 1024..]);
}

#[test]
fn sizes_agree_where_both_are_powers_of_two() {
    for (keys, fpr) in [(1000u64, 0.01), (100_000, 0.05), (1_000_000, 0.001)] {
        let theirs = Sbbf::new_with_ndv_fpp(keys, fpr).unwrap().num_blocks() as u64;
        let ours = SplitBlockBloom::builder(keys).fpr(fpr).power_of_two(true).layout().unwrap().blocks();
        // Theirs follows the classic formula, ours the blocked one, which asks for a little more.
        assert!(ours == theirs || ours == 2 * theirs, "{keys} {fpr}: {ours} and {theirs}");
    }
}

//! The split-block filter against the crate `parquet`, in both directions.

use parquet::bloom_filter::Sbbf;
use warpset_bloom::{Bytes, Filter, Insert, Layout, PhysicalType, SplitBlockBloom, View};

const KEYS: u64 = 1_000_000;

/// Returns key `i`; every second one is inserted.
fn key(i: u64) -> u64 {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Makes our filter and theirs of the same keys.
fn both(bytes: usize) -> (SplitBlockBloom, Sbbf) {
    let mut ours = SplitBlockBloom::from_bitset(&vec![0; bytes], PhysicalType::Int64).unwrap();
    let mut theirs = Sbbf::new_with_num_of_bytes(bytes);
    let keys: Vec<u64> = (0..KEYS).step_by(2).map(key).collect();
    ours.insert_bulk(&keys).unwrap();
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
    ours.write_parquet(&mut file, PhysicalType::Int64).unwrap();
    assert!(file == bytes_of(&theirs), "header and bitset");

    // Theirs opened by ours, ours by theirs.
    let opened = SplitBlockBloom::read_parquet(&bytes_of(&theirs)[..], PhysicalType::Int64).unwrap();
    assert!(opened == ours);
    let opened_by_them = Sbbf::from_bytes(&file).unwrap();
    let keys: Vec<u64> = (0..KEYS).map(key).collect();
    let answers = opened.contains_bulk(&keys).unwrap();
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
fn values_of_every_physical_type_hash_alike() {
    let insert = |insert: &dyn Fn(&mut Sbbf)| {
        let mut theirs = Sbbf::new_with_num_of_bytes(1024);
        insert(&mut theirs);
        bytes_of(&theirs)
    };
    fn same(theirs: &[u8], column: PhysicalType, fill: impl Fn(&mut SplitBlockBloom)) {
        let mut ours = SplitBlockBloom::from_bitset(&[0; 1024], column).unwrap();
        fill(&mut ours);
        let mut file = Vec::new();
        ours.write_parquet(&mut file, column).unwrap();
        assert!(file == theirs, "{column}");
    }
    // Integers are given as types that are not the column's.
    let values = [7, -7, 0, i32::MIN, i32::MAX];
    let theirs = insert(&|f| values.iter().for_each(|value| f.insert(value)));
    same(&theirs, PhysicalType::Int32, |ours| ours.insert_bulk(&values).unwrap());
    same(&theirs, PhysicalType::Int32, |ours| ours.insert_bulk(&values.map(i64::from)).unwrap());
    let theirs = insert(&|f| values.iter().for_each(|value| f.insert(&i64::from(*value))));
    same(&theirs, PhysicalType::Int64, |ours| ours.insert_bulk(&values).unwrap());
    same(&theirs, PhysicalType::Int64, |ours| ours.insert_bulk(&values.map(i128::from)).unwrap());
    // UINT_32 is stored as INT32, UINT_64 as INT64.
    same(&insert(&|f| f.insert(&-1i32)), PhysicalType::Int32, |ours| ours.insert(u32::MAX));
    same(&insert(&|f| f.insert(&-1i64)), PhysicalType::Int64, |ours| ours.insert(u64::MAX));

    same(&insert(&|f| f.insert(&1.5f32)), PhysicalType::Float, |ours| ours.insert(1.5f32.to_le_bytes()));
    same(&insert(&|f| f.insert(&1.5f64)), PhysicalType::Double, |ours| ours.insert(1.5f64.to_le_bytes()));
    // The words of parquet-testing's `bloom_filter.xxhash.bin`, and a long one.
    let long = "x".repeat(1000);
    let words = ["hello", "parquet", "bloom", "filter", "", &long];
    let theirs = insert(&|f| words.iter().for_each(|word| f.insert(*word)));
    same(&theirs, PhysicalType::ByteArray, |ours| ours.insert_bulk(&words).unwrap());
    let theirs = insert(&|f| f.insert(&[1u8, 2, 3][..]));
    same(&theirs, PhysicalType::FixedLenByteArray, |ours| ours.insert(Bytes(vec![1u8, 2, 3])));
}

#[test]
fn filters_of_other_writers_are_read_where_they_lie() {
    // Header lengths differ with the size, and so does what the bitset's address is a multiple of.
    let mut file = Vec::new();
    let mut starts = Vec::new();
    for log2 in 5..16 {
        let mut theirs = Sbbf::new_with_num_of_bytes(1 << log2);
        (0..8i32).for_each(|value| theirs.insert(&(value + log2)));
        starts.push((log2, file.len()));
        file.extend(bytes_of(&theirs));
    }
    let mut residues = [false; 4];
    for (log2, start) in starts {
        let (view, taken) = View::from_parquet(&file[start..], PhysicalType::Int32).unwrap();
        assert_eq!(view.memory_bytes(), 1 << log2);
        let bitset = view.bytes().as_ptr();
        assert_eq!(bitset as usize + (1 << log2), file[start..].as_ptr() as usize + taken, "no copy");
        residues[bitset as usize % 4] = true;
        let keys: Vec<i64> = (0..8).map(|value| value + i64::from(log2)).collect();
        assert_eq!(view.count_contained_bulk(&keys).unwrap(), 8, "{log2}");
        assert!(keys.iter().all(|key| view.contains(*key)));
    }
    assert!(residues.iter().filter(|seen| **seen).count() > 2, "{residues:?}");
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

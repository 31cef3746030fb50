//! Bulk test-and-insert against its rule, on every backend, with the batches that its division into parts can meet:
//! many duplicates, parts that overflow, borders of tiles, words of answers and parts.

use std::collections::HashSet;

use proptest::prelude::*;
use warpset_bloom::cpu::Bloom;
use warpset_bloom::gpu::{DeviceOneBlock, Grouping};
use warpset_bloom::{
    BlockShape, BlockedLayout, BloomFilter, Builder, Hashed, Insert, PhysicalType, SplitBlockLayout, TestAndInsert,
    as_hashed,
};
use warpset_gpu::{Device, testing};
use warpset_tests::bloom::{blocked_layouts, split_block_layouts};

/// Scatters numbers over all hashes.
fn scattered(numbers: impl IntoIterator<Item = u64>) -> Vec<u64> {
    numbers.into_iter().map(|number| (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
}

/// Hashes of a batch: drawn from few or many, and squeezed into the lowest parts or not.
fn batches() -> impl Strategy<Value = Vec<u64>> {
    let length = prop_oneof![0..70usize, 500..2600usize];
    (length, prop_oneof![1..4u64, 100..3000u64], prop_oneof![3 => Just(0), 1 => 1..64u32], any::<u64>()).prop_map(
        |(length, distinct, squeezed, seed)| {
            let draws = scattered((0..length as u64).map(|i| i ^ seed));
            scattered(draws.into_iter().map(|draw| (draw >> 20) % distinct))
                .into_iter()
                .map(|hash| hash >> squeezed)
                .collect()
        },
    )
}

/// Computes the answers by the rule: a hash is new if the filter before did not contain it and it is the first of its
/// equals.
fn rule<F: BloomFilter>(filter: &F, hashes: &[u64]) -> Vec<bool> {
    let before = filter.contains_bulk(as_hashed(hashes)).unwrap();
    let mut seen = HashSet::new();
    hashes.iter().zip(before).map(|(hash, was)| seen.insert(*hash) && !was).collect()
}

/// Checks, on the host and on a device, from host slices and as bytes and bits of a device slice: the answers of the
/// rule, and the same bytes. The filter holds some of the keys.
fn keeps_the_rule<L: DeviceOneBlock>(device: &Device, layout: L, grouping: Grouping, hashes: &[u64])
where
    Bloom<L>: BloomFilter<Layout = L>,
{
    let present: Vec<Hashed> = as_hashed(hashes).iter().copied().step_by(9).collect();
    let mut on_host = Builder::with_layout(layout).build().unwrap();
    Insert::insert_bulk(&mut on_host, &present).unwrap();
    let filter = || {
        let mut filter = on_host.to_device(device).unwrap();
        filter.set_grouping(grouping);
        filter
    };
    let (mut from_host, mut by_bytes, mut by_bits) = (filter(), filter(), filter());
    let expected = rule(&on_host, hashes);
    assert_eq!(TestAndInsert::test_and_insert_bulk(&mut on_host, as_hashed(hashes)).unwrap(), expected, "host");
    assert_eq!(from_host.test_and_insert_bulk(as_hashed(hashes)).unwrap(), expected, "{grouping:?}, host slice");
    let keys = device.from_slice(as_hashed(hashes)).unwrap();
    // Bytes past the last key must stay as they are.
    let mut bytes = device.from_slice(&vec![7u8; hashes.len() + 3]).unwrap();
    let mut bits = device.alloc_uninit::<u64>(hashes.len().div_ceil(64)).unwrap();
    by_bytes.test_and_insert_device(keys.as_slice(), bytes.as_mut_slice()).unwrap();
    by_bits.test_and_insert_bitmap_device(keys.as_slice(), bits.as_mut_slice()).unwrap();
    let bytes = bytes.to_vec().unwrap();
    assert!(bytes.iter().zip(&expected).all(|(&byte, &new)| byte == u8::from(new)), "{grouping:?}, bytes");
    assert_eq!(bytes[hashes.len()..], [7; 3]);
    let words = bits.to_vec().unwrap();
    let bit = |i: usize| words[i / 64] >> (i % 64) & 1 == 1;
    assert!((0..64 * words.len()).all(|i| bit(i) == expected.get(i).copied().unwrap_or(false)), "{grouping:?}, bits");
    for filter in [from_host, by_bytes, by_bits] {
        assert!(filter.to_host().unwrap() == on_host, "{grouping:?}: bits of the filter");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn split_block_keeps_the_rule(
        layout in split_block_layouts(), bits in 1..8u32, hashes in batches(), schedule in any::<u64>(),
    ) {
        for device in testing::devices(schedule) {
            keeps_the_rule(&device, layout, Grouping::Bits(bits), &hashes);
            keeps_the_rule(&device, layout, Grouping::Never, &hashes);
        }
    }

    #[test]
    fn blocked_keeps_the_rule(
        layout in blocked_layouts(), bits in 1..8u32, hashes in batches(), schedule in any::<u64>(),
    ) {
        for device in testing::devices(schedule) {
            keeps_the_rule(&device, layout, Grouping::Bits(bits), &hashes);
            keeps_the_rule(&device, layout, Grouping::Never, &hashes);
        }
    }
}

/// Inserts several tiles, into filters whose stretches fit in shared memory, fit just, and do not.
#[test]
fn batches_of_several_tiles() {
    let shape = |block, word, hashes| BlockShape::new(block, word, hashes).unwrap();
    for device in testing::devices(3) {
        let hashes = scattered((0..33_001).map(|i| i % 29_000));
        for blocks in [50, 7_000, 20_000] {
            keeps_the_rule(&device, SplitBlockLayout::new(blocks).unwrap(), Grouping::Bits(4), &hashes);
        }
        keeps_the_rule(&device, BlockedLayout::new(4_000, shape(512, 64, 8), 1).unwrap(), Grouping::Bits(4), &hashes);
    }
}

/// Checks keys that repeat often, in one tile and across tiles: some of their copies are left out before the batch is
/// grouped.
#[test]
fn keys_that_come_often() {
    for device in testing::devices(6) {
        let hashes = scattered((0..26_000).map(|i| if i % 3 == 0 { i } else { 100_000 + i * i % 150 }));
        keeps_the_rule(&device, SplitBlockLayout::new(9_000).unwrap(), Grouping::Bits(3), &hashes);
        let shape = BlockShape::new(256, 64, 8).unwrap();
        keeps_the_rule(&device, BlockedLayout::new(9_000, shape, 1).unwrap(), Grouping::Bits(3), &hashes[..17_011]);
    }
}

/// Checks filters of Parquet columns of type INT32, whose hash the division does not know.
#[test]
fn parquet_columns_of_32_bits() {
    for device in testing::devices(5) {
        let keys: Vec<u64> = (0..900).map(|i| i % 700).collect();
        let mut on_host =
            Builder::with_layout(SplitBlockLayout::new(60).unwrap().for_column(PhysicalType::Int32)).build().unwrap();
        let mut on_device = on_host.to_device(&device).unwrap();
        on_device.set_grouping(Grouping::Bits(3));
        let expected = TestAndInsert::test_and_insert_bulk(&mut on_host, &keys).unwrap();
        assert_eq!(on_device.test_and_insert_bulk(&keys).unwrap(), expected);
        assert!(on_device.to_host().unwrap() == on_host);
    }
}

/// Gives half of the batch one hash, so that its part overflows: the first of it is new, and the other parts go on.
#[test]
fn a_hash_that_fills_its_part() {
    for device in testing::devices(4) {
        let hashes = scattered((0..6_000).map(|i| if i % 2 == 1 && i > 900 { 77 } else { i % 2_500 }));
        for bits in [1, 3, 12] {
            keeps_the_rule(&device, SplitBlockLayout::new(3_000).unwrap(), Grouping::Bits(bits), &hashes);
        }
        keeps_the_rule(&device, SplitBlockLayout::new(100).unwrap(), Grouping::Bits(2), &[u64::MAX; 4_000]);
        keeps_the_rule(&device, SplitBlockLayout::new(100).unwrap(), Grouping::Bits(5), &[0; 4_000]);
    }
}

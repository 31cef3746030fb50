//! Properties of every Bloom filter, on every backend: bodies of tests, generic over the way a filter is made.
//!
//! A `make` is a closure from a layout to an empty filter of some backend.

use std::collections::HashSet;

use proptest::prelude::*;
use warpset_bloom::cpu::Bloom;
use warpset_bloom::{
    BlockShape, BlockedLayout, BloomFilter, BucketShape, Error, Filter, FirstLevel, Insert, Layout, RaoLayout,
    SplitBlockLayout, TestAndInsert, as_hashed,
};

/// One step of a test.
#[derive(Clone, Debug)]
pub enum Op {
    /// Insert these keys in bulk.
    Insert(Vec<u16>),
    /// Insert them and ask which were new.
    TestAndInsert(Vec<u16>),
    /// Merge a filter of these keys.
    Union(Vec<u16>),
    /// Remove all keys.
    Clear,
}

/// Returns a strategy for steps with few different keys, so that keys repeat.
pub fn ops() -> impl Strategy<Value = Vec<Op>> {
    let keys = || prop::collection::vec(0u16..600, 0..300);
    let op = prop_oneof![
        4 => keys().prop_map(Op::Insert),
        4 => keys().prop_map(Op::TestAndInsert),
        2 => keys().prop_map(Op::Union),
        1 => Just(Op::Clear),
    ];
    prop::collection::vec(op, 0..6)
}

/// Returns small split-block layouts, sometimes with far too few blocks.
pub fn split_block_layouts() -> impl Strategy<Value = SplitBlockLayout> {
    (1u64..40).prop_map(|blocks| SplitBlockLayout::new(blocks).unwrap())
}

/// Returns small blocked layouts of every shape.
pub fn blocked_layouts() -> impl Strategy<Value = BlockedLayout> {
    (1u64..40, 0u32..5, any::<bool>(), 1u32..=32, any::<u64>()).prop_map(|(blocks, size, wide, hashes, seed)| {
        let shape = BlockShape::new(64 << size, if wide { 64 } else { 32 }, hashes).unwrap();
        BlockedLayout::new(blocks, shape, seed).unwrap()
    })
}

/// Returns Rao layouts with space for all keys of [`ops`].
pub fn rao_layouts() -> impl Strategy<Value = RaoLayout> {
    (2u64..12, 200u32..600, 1u32..12, 1u32..=2, any::<u64>()).prop_map(|(buckets, words, hashes, choices, seed)| {
        let shape = BucketShape::new(words * 4, hashes).unwrap();
        RaoLayout::new(buckets, shape, choices, FirstLevel::Mixed, seed).unwrap()
    })
}

fn u64s(keys: &[u16]) -> Vec<u64> {
    // Spread over 64 bits, and with high bits that matter.
    keys.iter().map(|&key| (key as u64) << 40 | key as u64).collect()
}

/// Checks that there are no false negatives, that `test_and_insert` is exact, and that the bytes are those of the
/// filter in host memory after each step.
pub fn behaves_like_a_set<L: Layout, F: BloomFilter<Layout = L>>(
    layout: L,
    mut make: impl FnMut(L) -> F,
    reference: impl Fn(L) -> Bloom<L>,
    ops: Vec<Op>,
) -> Result<(), TestCaseError>
where
    Bloom<L>: BloomFilter<Layout = L>,
{
    let mut filter = make(layout);
    let mut host = reference(layout);
    let mut model = HashSet::new();
    for op in ops {
        match op {
            Op::Insert(keys) => {
                filter.insert_bulk(&u64s(&keys))?;
                Insert::insert_bulk(&mut host, &u64s(&keys))?;
                model.extend(keys);
            }
            Op::TestAndInsert(keys) => {
                let before = filter.contains_bulk(&u64s(&keys))?;
                let mut seen = HashSet::new();
                let expected: Vec<bool> = keys.iter().zip(before).map(|(key, was)| seen.insert(*key) && !was).collect();
                prop_assert_eq!(filter.test_and_insert_bulk(&u64s(&keys))?, expected);
                TestAndInsert::test_and_insert_bulk(&mut host, &u64s(&keys))?;
                model.extend(keys);
            }
            Op::Union(keys) => {
                let mut other = make(layout);
                // A filter that chose another first-level hash after an overflow has other parameters.
                other.insert_bulk(&u64s(&keys))?;
                filter.merge(&other)?;
                Insert::merge(&mut host, &other.to_host()?)?;
                model.extend(keys);
            }
            Op::Clear => {
                filter.clear()?;
                Insert::clear(&mut host)?;
                model.clear();
            }
        }
        prop_assert!(filter.to_host()? == host);
        let keys: Vec<u16> = model.iter().copied().collect();
        prop_assert_eq!(filter.count_contained_bulk(&u64s(&keys))?, keys.len());
        let all: Vec<u64> = u64s(&(0..700).collect::<Vec<_>>());
        let answers = filter.contains_bitmap_bulk(&all)?;
        prop_assert_eq!(answers.iter().collect::<Vec<_>>(), filter.contains_bulk(&all)?);
        prop_assert_eq!(answers.count_ones(), filter.count_contained_bulk(&all)?);
        prop_assert_eq!(answers.count_ones() > 0, filter.any_contained_bulk(&all)?);
        let mut kept = all.clone();
        filter.retain_contained_bulk(&mut kept)?;
        prop_assert_eq!(kept.len(), answers.count_ones());
        prop_assert_eq!(filter.contains_bulk(&all)?, host.view().contains_bulk(&all)?);
    }
    Ok(())
}

/// Checks that folding gives the filter that the same keys make at the smaller size.
pub fn folds_to_the_smaller_filter<L: Layout, F: BloomFilter<Layout = L>>(
    layout: L,
    small: L,
    mut make: impl FnMut(L) -> F,
) {
    let keys: Vec<u64> = (0..2000u64).map(|key| key << 20).collect();
    let factor = layout.blocks() / small.blocks();
    let (mut large, mut expected) = (make(layout), make(small));
    large.insert_bulk(&keys).unwrap();
    expected.insert_bulk(&keys).unwrap();
    large.fold(factor).unwrap();
    assert!(large.to_host().unwrap() == expected.to_host().unwrap());
    let blocks = large.layout().blocks();
    for factor in [0, blocks + 1, 2 * blocks] {
        assert!(matches!(large.fold(factor), Err(Error::CannotFold { .. })), "{factor}");
    }
    assert!(large.to_host().unwrap() == expected.to_host().unwrap());
}

/// Checks union and intersection by bits, and that other parameters are rejected.
pub fn merges<L: Layout, F: BloomFilter<Layout = L>>(
    layout: L,
    other_layout: L,
    field: &str,
    mut make: impl FnMut(L) -> F,
) {
    let (left, right): (Vec<u64>, Vec<u64>) = ((0..1000).collect(), (600..1600).collect());
    let (mut a, mut b, mut both) = (make(layout), make(layout), make(layout));
    a.insert_bulk(&left).unwrap();
    b.insert_bulk(&right).unwrap();
    both.insert_bulk(&left).unwrap();
    both.insert_bulk(&right).unwrap();
    let mut common = a.to_host().unwrap();
    a.merge(&b).unwrap();
    assert!(a.to_host().unwrap() == both.to_host().unwrap());
    common.intersect(&b.to_host().unwrap()).unwrap();
    assert_eq!(common.count_contained_bulk(&(600..1000u64).collect::<Vec<_>>()).unwrap(), 400);
    a.intersect(&b).unwrap();
    assert_eq!(a.count_contained_bulk(&right).unwrap(), right.len());

    let other = make(other_layout);
    let before = a.to_host().unwrap();
    for result in [a.merge(&other), a.intersect(&other)] {
        match result {
            Err(Error::Incompatible { field: found, .. }) => assert_eq!(found, field),
            unexpected => panic!("{unexpected:?}"),
        }
    }
    assert!(a.to_host().unwrap() == before);
}

/// Checks empty inputs, one key, and hashes given directly.
pub fn takes_odd_inputs<L: Layout, F: BloomFilter<Layout = L>>(layout: L, mut make: impl FnMut(L) -> F) {
    let mut filter = make(layout);
    filter.insert_bulk::<u64>(&[]).unwrap();
    assert!(filter.contains_bulk::<u64>(&[]).unwrap().is_empty());
    assert!(filter.test_and_insert_bulk::<&str>(&[]).unwrap().is_empty());
    assert!(!filter.any_contained_bulk::<u32>(&[]).unwrap());
    assert_eq!(filter.count_ones().unwrap(), 0);
    assert_eq!(filter.estimated_len().unwrap(), 0.0);
    filter.insert_bulk(&["one key"]).unwrap();
    assert_eq!(filter.contains_bulk(&["one key"]).unwrap(), [true]);
    filter.insert_bulk(as_hashed(&[0, 1, u64::MAX])).unwrap();
    assert_eq!(filter.contains_bulk(as_hashed(&[0, u64::MAX])).unwrap(), [true, true]);
    assert_eq!(filter.test_and_insert_bulk(as_hashed(&[7 << 33, 0, 7 << 33])).unwrap()[1..], [false, false]);
    assert!(filter.fill_ratio().unwrap() > 0.0 && filter.fill_ratio().unwrap() < 1.0);
}

//! Structures of every builder, with any of its settings: each loads from its saved form unchanged, and a device makes
//! the same bytes.

use warpset_bloom::{BlockedBloom, FirstLevel, PhysicalType, RaoBloom, SparkBloom, SplitBlockBloom, StringHash};
use warpset_fuse::{Arity, BinaryFuse8, BinaryFuse16, BinaryFuse32, Form};
use warpset_gpu::testing;
use warpset_lsm::{CleanupPolicy, Lsm, SortedArray};
use warpset_mphf::{Consensus, RecSplit, RecSplitKind, StaticFilter};
use warpset_quotient::{
    Container, Duplicates, RankSelectBuilder, RankSelectQuotientFilter, StandardBuilder, StandardQuotientFilter,
};
use warpset_sequence::SequenceFilter;
use warpset_static::{StaticMap, StaticSet};

fn keys(count: u64) -> Vec<u64> {
    (0..count).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
}

/// The saved form of a structure, which has to be that of what is loaded from it, too.
macro_rules! saved {
    ($built:expr, $type:ty) => {{
        let (mut bytes, mut again) = (Vec::new(), Vec::new());
        $built.write_to(&mut bytes).unwrap();
        <$type>::read_from(&bytes[..]).unwrap().write_to(&mut again).unwrap();
        assert!(bytes == again, "{}", stringify!($type));
        bytes
    }};
}

/// Checks by [`saved`] what a builder makes of these keys, here and on devices.
macro_rules! everywhere {
    ($builder:expr, $keys:expr, $type:ty) => {{
        let builder = $builder;
        let here = saved!(builder.build_from($keys).unwrap(), $type);
        for device in testing::devices(3) {
            let there = builder.clone().on(&device).build_from($keys).unwrap().to_host().unwrap();
            assert!(saved!(there, $type) == here, "{builder:?}");
        }
    }};
}

#[test]
fn bloom_filters() {
    let some = keys(500);
    for builder in [
        SplitBlockBloom::builder(500),
        SplitBlockBloom::builder(500).fpr(0.3),
        SplitBlockBloom::builder(500).bits_per_key(7.5).power_of_two(true),
        SplitBlockBloom::builder(500).memory_limit(999).column(PhysicalType::Int32),
    ] {
        everywhere!(builder, &some, SplitBlockBloom);
    }
    for builder in [
        BlockedBloom::builder(500),
        BlockedBloom::builder(500).fpr(0.3).block_bits(64),
        BlockedBloom::builder(500).bits_per_key(7.5).block_bits(1024).word_bits(64),
        BlockedBloom::builder(500).memory_limit(999).hashes(32).seed(9),
    ] {
        everywhere!(builder, &some, BlockedBloom);
    }
    for builder in [
        RaoBloom::builder(600),
        RaoBloom::builder(600).fpr(0.3).choices(2),
        RaoBloom::builder(600).bits_per_key(20.0).bucket_words(64).load_factor(0.5),
        RaoBloom::builder(600).memory_limit(1 << 14).hashes(3).seed(9),
        RaoBloom::builder(600).first_level(FirstLevel::String(StringHash::Bkdr)),
    ] {
        everywhere!(builder, &some, RaoBloom);
    }
}

#[test]
fn binary_fuse_filters() {
    let some = [keys(400), keys(50)].concat();
    for builder in [
        BinaryFuse8::builder(),
        BinaryFuse8::builder().fpr(0.01).seed(9),
        BinaryFuse8::builder().for_space(),
        BinaryFuse8::builder().for_build().arity(Arity::Four),
    ] {
        everywhere!(builder, &some, BinaryFuse8);
    }
    everywhere!(BinaryFuse16::builder().for_build(), &some, BinaryFuse16);
    everywhere!(BinaryFuse32::builder().form(Form::Sharded), &some, BinaryFuse32);
}

#[test]
fn quotient_filters() {
    let some = [keys(40), keys(20)].concat();
    for duplicates in [Duplicates::Dropped, Duplicates::Kept, Duplicates::Counted] {
        for (quotient_bits, remainder_bits) in [(7, 1), (7, 5), (8, 6), (9, 10), (7, 13), (10, 54)] {
            let layouts = [Container::Packed, Container::Bytes].map(|container| {
                StandardBuilder::with_bits(quotient_bits, remainder_bits).container(container).max_load(0.8).layout()
            });
            for layout in layouts.map(Result::unwrap) {
                let standard = StandardBuilder::with_layout(layout).duplicates(duplicates).seed(9);
                if standard.layout().is_ok() {
                    everywhere!(standard, &some, StandardQuotientFilter);
                }
                let rank_select = RankSelectBuilder::with_layout(layout).duplicates(duplicates).seed(9);
                if rank_select.layout().is_ok() {
                    everywhere!(rank_select, &some, RankSelectQuotientFilter);
                }
                assert!(standard.layout().is_ok() == (duplicates != Duplicates::Counted));
                assert!(rank_select.layout().is_ok() == (layout.container() == Container::Packed));
            }
        }
        let capacity = RankSelectQuotientFilter::builder(200).duplicates(duplicates);
        everywhere!(capacity.fpr(1e-4).max_load(0.5), &some, RankSelectQuotientFilter);
        everywhere!(capacity.exact(64), &some, RankSelectQuotientFilter);
    }
    everywhere!(StandardQuotientFilter::builder(200).fpr(1e-4).max_load(0.5), &some, StandardQuotientFilter);
    everywhere!(StandardQuotientFilter::builder(200).exact(64), &some, StandardQuotientFilter);
}

#[test]
fn dictionaries() {
    let (some, values) = (keys(500), (0..500).collect::<Vec<u32>>());
    for batch_size in [64, 256] {
        for policy in [CleanupPolicy::Manual, CleanupPolicy::default(), CleanupPolicy::EveryBatches(2)] {
            let builder = Lsm::builder().batch_size(batch_size).cleanup(policy);
            let here = saved!(builder.build_from(&some, &values).unwrap(), Lsm<u64, u32>);
            for device in testing::devices(3) {
                let there = builder.on(&device).build_from(&some, &values).unwrap().to_host().unwrap();
                assert!(saved!(there, Lsm<u64, u32>) == here, "{builder:?}");
            }
        }
    }
    let here = saved!(SortedArray::builder().build_from(&some, &values).unwrap(), SortedArray<u64, u32>);
    for device in testing::devices(3) {
        let there = SortedArray::builder().on(&device).build_from(&some, &values).unwrap().to_host().unwrap();
        assert!(saved!(there, SortedArray<u64, u32>) == here);
    }
}

#[test]
fn exact_static_sets() {
    let some = [keys(300), keys(20)].concat();
    everywhere!(StaticSet::<u64>::builder(), &some, StaticSet<u64>);
    everywhere!(StaticSet::<u64>::builder().seed(u64::MAX), &some, StaticSet<u64>);
    let narrow: Vec<u32> = some.iter().map(|&key| key as u32).collect();
    everywhere!(StaticSet::<u32>::builder().seed(9), &narrow, StaticSet<u32>);
    let builder = StaticMap::<u32, u64>::builder().seed(9);
    let here = saved!(builder.build_from(&narrow, &some).unwrap(), StaticMap<u32, u64>);
    for device in testing::devices(3) {
        let there = builder.on(&device).build_from(&narrow, &some).unwrap().to_host().unwrap();
        assert!(saved!(there, StaticMap<u32, u64>) == here);
    }
}

#[test]
fn perfect_hash_functions() {
    let some = keys(300);
    for builder in [
        RecSplit::builder(),
        RecSplit::builder().leaf_size(5).bucket_size(30).seed(9),
        RecSplit::builder().leaf_size(6).fanouts(2, 3).bucket_size(50),
        RecSplit::builder().leaf_size(6).load_factor(0.9),
        RecSplit::builder().keys_per_value(4),
    ] {
        everywhere!(builder, &some, RecSplit);
    }
    for builder in [Consensus::builder(), Consensus::builder().overhead(0.2).bucket_size(30).seed(9)] {
        everywhere!(builder, &some, Consensus);
    }
    for width in [1, 7, 32] {
        everywhere!(
            StaticFilter::builder_of_kind(RecSplitKind).width(width).leaf_size(5).bucket_size(30),
            &some,
            StaticFilter<RecSplitKind>
        );
        everywhere!(StaticFilter::builder().width(width).bucket_size(30), &some, StaticFilter);
    }
}

/// Checks that `builder(0)` makes the structure of `builder(1)`, and that builders without a number accept empty input:
/// an empty table is input.
#[test]
fn no_keys_make_an_empty_structure() {
    macro_rules! as_for_one {
        ($($type:ty),*) => {$({
            let [none, one] = [0, 1].map(|keys| <$type>::builder(keys).build().unwrap().to_bytes());
            assert!(none == one, "{}", stringify!($type));
        })*};
    }
    as_for_one!(
        SplitBlockBloom,
        BlockedBloom,
        RaoBloom,
        StandardQuotientFilter,
        RankSelectQuotientFilter,
        SequenceFilter
    );
    let [none, one] = [0, 1].map(|keys| SparkBloom::builder(keys).build().unwrap());
    assert!(none.as_bytes() == one.as_bytes());

    let none: &[u64] = &[];
    assert!(!BinaryFuse8::builder().build_from(none).unwrap().contains(7u64));
    assert!(!StaticSet::<u64>::builder().build_from(none).unwrap().contains(7));
    assert!(StaticMap::<u64, u64>::builder().build_from(none, none).unwrap().get(7).is_none());
    assert!(Lsm::<u64, u64>::builder().build_from(none, none).unwrap().get(7).is_none());
    assert!(SortedArray::<u64, u64>::builder().build_from(none, none).unwrap().get(7).is_none());
    assert!(!StaticFilter::builder_of_kind(RecSplitKind).build_from(none).unwrap().contains(7u64));
    assert!(!StaticFilter::builder().build_from(none).unwrap().contains(7u64));
    // No key has a number, so a table by numbers needs no items: a program that asks for one checks `is_empty`.
    for function in [
        RecSplit::builder().build_from(none).unwrap().get(7u64),
        Consensus::builder().build_from(none).unwrap().get(7u64),
    ] {
        assert_eq!(function, 0);
    }
}

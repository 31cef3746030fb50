//! Bloom filters against `HashSet`, on the CPU.

use proptest::prelude::*;
use warpset_bloom::cpu::Bloom;
use warpset_bloom::{
    BlockShape, BlockedLayout, BucketShape, Builder, Filter, FirstLevel, Insert, Layout, RaoLayout, SplitBlockLayout,
    StringHash,
};
use warpset_tests::bloom::*;

fn on_cpu<L: Layout>(layout: L) -> Bloom<L> {
    Builder::with_layout(layout).build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn split_block_is_a_set(layout in split_block_layouts(), ops in ops()) {
        behaves_like_a_set(layout, on_cpu, on_cpu, ops)?;
    }
    #[test]
    fn blocked_is_a_set(layout in blocked_layouts(), ops in ops()) {
        behaves_like_a_set(layout, on_cpu, on_cpu, ops)?;
    }
    #[test]
    fn rao_is_a_set(layout in rao_layouts(), ops in ops()) {
        behaves_like_a_set(layout, on_cpu, on_cpu, ops)?;
    }
}

fn blocked(blocks: u64, hashes: u32) -> BlockedLayout {
    BlockedLayout::new(blocks, BlockShape::new(512, 64, hashes).unwrap(), 5).unwrap()
}

fn rao(buckets: u64, choices: u32, first_level: FirstLevel) -> RaoLayout {
    RaoLayout::new(buckets, BucketShape::new(1280, 7).unwrap(), choices, first_level, 5).unwrap()
}

#[test]
fn folding() {
    let split = |blocks| SplitBlockLayout::new(blocks).unwrap();
    for (large, small) in [(96, 48), (96, 32), (96, 1), (7, 7)] {
        folds_to_the_smaller_filter(split(large), split(small), on_cpu);
        folds_to_the_smaller_filter(blocked(large, 6), blocked(small, 6), on_cpu);
        let string = FirstLevel::String(StringHash::Bkdr);
        folds_to_the_smaller_filter(rao(large, 1, FirstLevel::Mixed), rao(small, 1, FirstLevel::Mixed), on_cpu);
        folds_to_the_smaller_filter(rao(large, 1, string), rao(small, 1, string), on_cpu);
    }
    // With two choices the smaller filter would have chosen otherwise; but no key is lost.
    for first_level in [FirstLevel::Mixed, FirstLevel::String(StringHash::Djb)] {
        let keys: Vec<u64> = (0..2000).collect();
        let mut filter = on_cpu(rao(12, 2, first_level));
        filter.insert_bulk(&keys).unwrap();
        filter.fold(4).unwrap();
        assert_eq!(filter.count_contained_bulk(&keys).unwrap(), keys.len());
    }
}

#[test]
fn merging() {
    let split = |blocks| SplitBlockLayout::new(blocks).unwrap();
    merges(split(100), split(101), "bytes", on_cpu);
    merges(blocked(100, 7), blocked(100, 8), "bits per key", on_cpu);
    merges(rao(4, 1, FirstLevel::Mixed), rao(5, 1, FirstLevel::Mixed), "bytes", on_cpu);
    let (mut two, other) = (on_cpu(rao(4, 2, FirstLevel::Mixed)), on_cpu(rao(4, 2, FirstLevel::Mixed)));
    two.merge(&other).unwrap();
    assert!(matches!(two.intersect(&other), Err(warpset_bloom::Error::NoIntersection)));
}

#[test]
fn odd_inputs() {
    takes_odd_inputs(SplitBlockLayout::new(100).unwrap(), on_cpu);
    takes_odd_inputs(blocked(100, 7), on_cpu);
    takes_odd_inputs(rao(3, 2, FirstLevel::Mixed), on_cpu);
}

#[test]
fn filters_cross_threads() {
    fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<warpset_bloom::SplitBlockBloom>();
    is_send_and_sync::<warpset_bloom::BlockedBloom>();
    is_send_and_sync::<warpset_bloom::RaoBloom>();
    is_send_and_sync::<warpset_bloom::Error>();
}

#[test]
fn answers_need_a_place_each() {
    let filter = on_cpu(SplitBlockLayout::new(100).unwrap());
    let error = filter.contains_bulk_into(&[1u64, 2], &mut [false]).unwrap_err();
    assert!(matches!(
        error,
        warpset_bloom::Error::LengthMismatch(warpset_bloom::LengthMismatch { needed: 2, found: 1, .. })
    ));
    let mut bytes = [7; 2];
    filter.contains_bytes_bulk_into(&[1u64, 2], &mut bytes).unwrap();
    assert_eq!(bytes, [0, 0]);
}

#[test]
fn debug_stays_short() {
    let filter = on_cpu(SplitBlockLayout::new(1 << 16).unwrap());
    assert!(format!("{filter:?}").len() < 200, "{filter:?}");
    assert!(format!("{:?}", filter.view()).len() < 200);
}

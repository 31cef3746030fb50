//! The bodies of `model` on the emulator, with the schedule drawn too, and on the CUDA device where one answers.

use proptest::prelude::*;
use warpset_bloom::cpu::Bloom;
use warpset_bloom::gpu::{self, DeviceLayout};
use warpset_bloom::{BlockShape, BlockedLayout, BucketShape, Builder, FirstLevel, Layout, RaoLayout, SplitBlockLayout};
use warpset_gpu::{Device, testing};
use warpset_tests::bloom::*;

fn on_cpu<L: Layout>(layout: L) -> Bloom<L> {
    Builder::with_layout(layout).build().unwrap()
}

fn on<L: DeviceLayout>(device: &Device) -> impl FnMut(L) -> gpu::Bloom<L> + '_ {
    move |layout| Builder::with_layout(layout).on(device).build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn split_block_is_a_set(layout in split_block_layouts(), ops in ops(), schedule in any::<u64>()) {
        for device in testing::devices(schedule) {
            behaves_like_a_set(layout, on(&device), on_cpu, ops.clone())?;
        }
    }
    #[test]
    fn blocked_is_a_set(layout in blocked_layouts(), ops in ops(), schedule in any::<u64>()) {
        for device in testing::devices(schedule) {
            behaves_like_a_set(layout, on(&device), on_cpu, ops.clone())?;
        }
    }
    #[test]
    fn rao_is_a_set(layout in rao_layouts(), ops in ops(), schedule in any::<u64>()) {
        for device in testing::devices(schedule) {
            behaves_like_a_set(layout, on(&device), on_cpu, ops.clone())?;
        }
    }
}

fn split(blocks: u64) -> SplitBlockLayout {
    SplitBlockLayout::new(blocks).unwrap()
}

fn blocked(blocks: u64, hashes: u32) -> BlockedLayout {
    BlockedLayout::new(blocks, BlockShape::new(512, 64, hashes).unwrap(), 5).unwrap()
}

fn rao(buckets: u64, choices: u32) -> RaoLayout {
    RaoLayout::new(buckets, BucketShape::new(1280, 7).unwrap(), choices, FirstLevel::Mixed, 5).unwrap()
}

#[test]
fn folding_and_merging() {
    for device in testing::devices(1) {
        folds_to_the_smaller_filter(split(96), split(32), on(&device));
        folds_to_the_smaller_filter(blocked(96, 6), blocked(48, 6), on(&device));
        folds_to_the_smaller_filter(rao(12, 1), rao(6, 1), on(&device));
        merges(split(100), split(101), "bytes", on(&device));
        merges(blocked(100, 7), blocked(100, 8), "bits per key", on(&device));
        merges(rao(4, 1), rao(5, 1), "bytes", on(&device));
    }
}

#[test]
fn odd_inputs() {
    for device in testing::devices(2) {
        takes_odd_inputs(split(100), on(&device));
        takes_odd_inputs(blocked(100, 7), on(&device));
        takes_odd_inputs(rao(3, 2), on(&device));
    }
}

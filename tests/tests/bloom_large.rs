//! More than 2^32 bits: 640 MiB of zeroed memory, of which only the pages touched exist.

use warpset_bloom::{BlockShape, BlockedBloom, BlockedLayout, BucketShape, FirstLevel, Layout, RaoBloom, RaoLayout};
use warpset_bloom::{SplitBlockBloom, SplitBlockLayout};

const BYTES: u64 = 640 << 20;

/// Hashes whose blocks lie in the last sixteenth, far above bit 2^32.
fn high_hashes() -> Vec<u64> {
    (0..2000u64).map(|i| 0xf << 60 | i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 4).collect()
}

fn first_set_word(words: &[u32]) -> usize {
    // The last sixteenth only: reading all would bring all pages in.
    let tail = words.len() / 16 * 15;
    assert!(words[..1 << 16].iter().all(|&w| w == 0));
    tail + words[tail..].iter().position(|&w| w != 0).unwrap()
}

#[test]
fn split_block() {
    let layout = SplitBlockLayout::new(BYTES / 32).unwrap();
    assert!(layout.bits() > 1 << 32);
    let mut filter = SplitBlockBloom::with_layout(layout).unwrap();
    filter.insert_hashes(&high_hashes());
    assert!(filter.contains_hashes(&high_hashes()).iter().all(|&c| c));
    assert!(first_set_word(filter.words()) as u64 * 32 > 1 << 32);
    let low: Vec<u64> = high_hashes().iter().map(|h| h & !(1 << 63)).collect();
    assert!(filter.contains_hashes(&low).iter().all(|&c| !c));
    // Parquet counts in 31 bits, our own form does not.
    assert!(filter.parquet_header().is_ok());
    let layout = SplitBlockLayout::new((1 << 31) / 32).unwrap();
    let huge = SplitBlockBloom::with_layout(layout).unwrap();
    assert!(matches!(huge.parquet_header(), Err(warpset_bloom::Error::TooLarge { .. })));
}

#[test]
fn blocked() {
    let layout = BlockedLayout::new(BYTES / 64, BlockShape::new(512, 64, 8).unwrap(), 0).unwrap();
    let mut filter = BlockedBloom::with_layout(layout).unwrap();
    filter.insert_hashes(&high_hashes());
    assert!(filter.contains_hashes(&high_hashes()).iter().all(|&c| c));
    assert!(first_set_word(filter.words()) as u64 * 32 > 1 << 32);
}

#[test]
fn rao() {
    let shape = BucketShape::new(8192, 7).unwrap();
    let layout = RaoLayout::new(BYTES / 32_768, shape, 1, FirstLevel::Mixed, 0).unwrap();
    let mut filter = RaoBloom::with_layout(layout).unwrap();
    for hash in high_hashes() {
        filter.insert_hash(hash).unwrap();
    }
    assert!(filter.contains_hashes(&high_hashes()).iter().all(|&c| c));
    assert!(filter.bucket_ones()[17_000..].iter().any(|&ones| ones > 0));
}

#[test]
fn more_than_2_to_the_31_keys_are_planned_for() {
    let keys = 3_000_000_000;
    let layout = SplitBlockBloom::builder(keys).fpr(0.01).layout().unwrap();
    assert!(layout.bits() > keys * 10);
    let layout = BlockedBloom::builder(keys).fpr(0.01).layout().unwrap();
    assert!(layout.bits() > keys * 9);
}

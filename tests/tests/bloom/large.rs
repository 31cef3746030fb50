//! More than 2^32 bits: 640 MiB of zeroed memory, of which only the pages touched exist.

use warpset_bloom::{
    BlockShape, BlockedBloom, BlockedLayout, BucketShape, Builder, Filter, FirstLevel, Hashed, Insert, Layout,
    PhysicalType, RaoLayout, SplitBlockBloom, SplitBlockLayout, as_hashed,
};

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
    assert!(layout.settable_bits() > 1 << 32);
    let mut filter = Builder::with_layout(layout).build().unwrap();
    filter.insert_bulk(as_hashed(&high_hashes())).unwrap();
    assert!(filter.contains_bulk(as_hashed(&high_hashes())).unwrap().iter().all(|&c| c));
    assert!(first_set_word(filter.words()) as u64 * 32 > 1 << 32);
    let low: Vec<u64> = high_hashes().iter().map(|h| h & !(1 << 63)).collect();
    assert!(filter.contains_bulk(as_hashed(&low)).unwrap().iter().all(|&c| !c));
    // Parquet counts in 31 bits, our own form does not.
    assert!(filter.parquet_header(PhysicalType::Int64).is_ok());
    let layout = SplitBlockLayout::new((1 << 31) / 32).unwrap();
    let huge = Builder::with_layout(layout).build().unwrap();
    assert!(matches!(huge.parquet_header(PhysicalType::Int64), Err(warpset_bloom::Error::TooLarge { .. })));
}

#[test]
fn blocked() {
    let layout = BlockedLayout::new(BYTES / 64, BlockShape::new(512, 64, 8).unwrap(), 0).unwrap();
    let mut filter = Builder::with_layout(layout).build().unwrap();
    filter.insert_bulk(as_hashed(&high_hashes())).unwrap();
    assert!(filter.contains_bulk(as_hashed(&high_hashes())).unwrap().iter().all(|&c| c));
    assert!(first_set_word(filter.words()) as u64 * 32 > 1 << 32);
}

#[test]
fn rao() {
    let shape = BucketShape::new(8192, 7).unwrap();
    let layout = RaoLayout::new(BYTES / 32_768, shape, 1, FirstLevel::Mixed, 0).unwrap();
    let mut filter = Builder::with_layout(layout).build().unwrap();
    for hash in high_hashes() {
        filter.insert(Hashed(hash)).unwrap();
    }
    assert!(filter.contains_bulk(as_hashed(&high_hashes())).unwrap().iter().all(|&c| c));
    assert!(filter.bucket_ones()[17_000..].iter().any(|&ones| ones > 0));
}

#[test]
fn more_than_2_to_the_31_keys_are_planned_for() {
    let keys = 3_000_000_000;
    let layout = SplitBlockBloom::builder(keys).fpr(0.01).layout().unwrap();
    assert!(layout.settable_bits() > keys * 10);
    let layout = BlockedBloom::builder(keys).fpr(0.01).layout().unwrap();
    assert!(layout.settable_bits() > keys * 9);
}

//! Saved filters: fixtures of each version, damaged and foreign bytes, views of mapped files.
//!
//! `WARPSET_WRITE_FIXTURES=1 cargo test -p warpset-tests --test bloom format` writes the fixtures of a new version.

use warpset_bloom::{
    BlockShape, BlockedBloom, BlockedLayout, BucketShape, Builder, Error, FileError, FirstLevel, Insert, PhysicalType,
    RaoBloom, RaoLayout, SplitBlockBloom, SplitBlockLayout, StringHash,
};
use warpset_tests::files::{announces_too_much, damage, fixture};

const WORDS: [&str; 4] = ["hello", "parquet", "bloom", "filter"];

fn split_block() -> SplitBlockBloom {
    let mut filter = Builder::with_layout(SplitBlockLayout::new(3).unwrap()).build().unwrap();
    filter.insert_bulk(&WORDS).unwrap();
    filter.insert_bulk(&[1u64, 2, 3]).unwrap();
    filter.insert_bulk(&[1u32, 2, 3].map(u32::to_le_bytes)).unwrap();
    filter
}

fn blocked() -> BlockedBloom {
    let shape = BlockShape::new(512, 64, 7).unwrap();
    let mut filter = Builder::with_layout(BlockedLayout::new(3, shape, 42).unwrap()).build().unwrap();
    filter.insert_bulk(&WORDS).unwrap();
    filter.insert_bulk(&[1u64, 2, 3]).unwrap();
    filter
}

fn rao(first_level: FirstLevel) -> RaoBloom {
    let shape = BucketShape::new(21, 7).unwrap();
    let mut filter = Builder::with_layout(RaoLayout::new(3, shape, 2, first_level, 42).unwrap()).build().unwrap();
    filter.insert_bulk(&WORDS).unwrap();
    filter.insert_bulk(&[1u64, 2, 3]).unwrap();
    filter
}

#[test]
fn fixtures_of_version_1() {
    fixture("bloom_split_block.v1", &split_block());
    fixture("bloom_blocked.v1", &blocked());
    fixture("bloom_rao.v1", &rao(FirstLevel::Mixed));
    fixture("bloom_rao_bkdr.v1", &rao(FirstLevel::String(StringHash::Bkdr)));
}

#[test]
fn damaged_bytes_are_refused() {
    let one_bit = |at: usize| vec![at as u32 % 8];
    damage(&split_block(), one_bit, |_, _| ());
    damage(&blocked(), one_bit, |_, _| ());
    damage(&rao(FirstLevel::Mixed), one_bit, |_, _| ());
}

#[test]
fn a_wrong_number_of_words_is_no_cut_file() {
    let filter = blocked();
    let builder = Builder::with_layout(*filter.layout());
    assert!(builder.build_from_words(filter.words()).unwrap() == filter);
    for found in [0, 47, 49] {
        let error = builder.build_from_words(&vec![0; found]).unwrap_err();
        assert!(matches!(error, Error::WordCount { needed: 48, .. }), "{error}");
        assert!(error.to_string().starts_with(&format!("{found} words of 32 bits, where")), "{error}");
    }
}

#[test]
fn absurd_sizes_are_refused_without_the_memory() {
    let mut bytes = split_block().to_bytes();
    // 2^32 blocks, 128 GiB, announced in both places.
    bytes[24..32].copy_from_slice(&(1u64 << 32).to_le_bytes());
    bytes[16..24].copy_from_slice(&(32u64 << 32).to_le_bytes());
    announces_too_much::<SplitBlockBloom>(&bytes);
    for blocks in [0, u64::MAX, (1 << 32) + 1] {
        bytes[24..32].copy_from_slice(&blocks.to_le_bytes());
        assert!(matches!(
            SplitBlockBloom::from_bytes(&bytes),
            Err(Error::File(FileError::InvalidHeader { field: "blocks", .. }))
        ));
    }
}

#[test]
fn streams_hold_filters_of_several_forms() {
    let (a, b) = (split_block(), rao(FirstLevel::Mixed));
    let mut stream = b.to_bytes();
    a.write_parquet(&mut stream, PhysicalType::ByteArray).unwrap();
    let mut reader = &stream[..];
    assert!(RaoBloom::read_from(&mut reader).unwrap() == b);
    assert!(SplitBlockBloom::read_parquet(&mut reader, PhysicalType::ByteArray).unwrap() == a);
    assert!(reader.is_empty());
}

#[test]
fn loaded_filters_can_be_filled_further() {
    let mut loaded = RaoBloom::from_bytes(&rao(FirstLevel::Mixed).to_bytes()).unwrap();
    assert_eq!(loaded.bucket_ones(), rao(FirstLevel::Mixed).bucket_ones());
    loaded.insert("more").unwrap();
    assert!(loaded.contains("more") && loaded.contains("hello"));
}

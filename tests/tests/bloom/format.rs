//! Saved filters: fixtures of each version, damaged and foreign bytes, views of mapped files.
//!
//! `WARPSET_WRITE_FIXTURES=1 cargo test -p warpset-tests --test bloom format` writes the fixtures of a new version.

use std::path::PathBuf;

use warpset_bloom::cpu::Bloom;
use warpset_bloom::{
    BlockShape, BlockedBloom, BlockedLayout, BucketShape, Builder, Error, FileError, FirstLevel, Layout, PhysicalType,
    RaoBloom, RaoLayout, SplitBlockBloom, SplitBlockLayout, StringHash, View,
};

const WORDS: [&str; 4] = ["hello", "parquet", "bloom", "filter"];

fn split_block() -> SplitBlockBloom {
    let mut filter = Builder::with_layout(SplitBlockLayout::new(3).unwrap()).build().unwrap();
    filter.insert_bulk(&WORDS);
    filter.insert_bulk(&[1u64, 2, 3]);
    filter.insert_bulk(&[1u32, 2, 3].map(u32::to_le_bytes));
    filter
}

fn blocked() -> BlockedBloom {
    let shape = BlockShape::new(512, 64, 7).unwrap();
    let mut filter = Builder::with_layout(BlockedLayout::new(3, shape, 42).unwrap()).build().unwrap();
    filter.insert_bulk(&WORDS);
    filter.insert_bulk(&[1u64, 2, 3]);
    filter
}

fn rao(first_level: FirstLevel) -> RaoBloom {
    let shape = BucketShape::new(21, 7).unwrap();
    let mut filter = Builder::with_layout(RaoLayout::new(3, shape, 2, first_level, 42).unwrap()).build().unwrap();
    filter.insert_bulk(&WORDS).unwrap();
    filter.insert_bulk(&[1u64, 2, 3]).unwrap();
    filter
}

fn fixture<L: Layout>(name: &str, filter: &Bloom<L>) {
    // At run time: packed tests run elsewhere than they were built.
    let package = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    let path = PathBuf::from(package).join("data").join(name);
    if std::env::var_os("WARPSET_WRITE_FIXTURES").is_some() {
        filter.save(&path).unwrap();
    }
    assert!(Bloom::<L>::load(&path).unwrap() == *filter, "{name}: hashes, bits or header changed");
    assert_eq!(std::fs::read(&path).unwrap(), filter.to_bytes(), "{name}");
}

#[test]
fn fixtures_of_version_1() {
    fixture("bloom_split_block.v1", &split_block());
    fixture("bloom_blocked.v1", &blocked());
    fixture("bloom_rao.v1", &rao(FirstLevel::Mixed));
    fixture("bloom_rao_bkdr.v1", &rao(FirstLevel::String(StringHash::Bkdr)));
}

fn damage<L: Layout>(filter: &Bloom<L>) {
    let good = filter.to_bytes();
    assert!(Bloom::<L>::from_bytes(&good).unwrap() == *filter);
    // Cut anywhere.
    for len in 0..good.len() {
        assert!(
            matches!(Bloom::<L>::from_bytes(&good[..len]), Err(Error::File(FileError::Truncated { .. }))),
            "cut at {len}"
        );
        assert!(View::<L>::from_bytes(&good[..len]).is_err());
    }
    let mut long = good.clone();
    long.push(0);
    assert!(matches!(Bloom::<L>::from_bytes(&long), Err(Error::File(FileError::TrailingBytes { extra: 1 }))));
    // Any bit flipped, header and payload.
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        let error = Bloom::<L>::from_bytes(&bad).unwrap_err();
        match at {
            0..8 => assert!(matches!(error, Error::File(FileError::BadMagic)), "{at}: {error}"),
            8..10 => assert!(matches!(error, Error::File(FileError::UnsupportedVersion { .. })), "{at}: {error}"),
            10..12 => assert!(matches!(error, Error::File(FileError::WrongStructure { .. })), "{at}: {error}"),
            120.. => assert!(matches!(error, Error::File(FileError::Corrupted { .. })), "{at}: {error}"),
            _ => {}
        }
        assert!(View::<L>::from_bytes(&bad).is_err());
    }
}

#[test]
fn damaged_bytes_are_refused() {
    damage(&split_block());
    damage(&blocked());
    damage(&rao(FirstLevel::Mixed));
}

#[test]
fn length_comes_before_the_checksum() {
    // Found by fuzzing: bytes that were damaged and too long were called damaged here and too long by the view.
    let mut bytes = blocked().to_bytes();
    bytes[130] ^= 1;
    bytes.extend_from_slice(&[0; 4]);
    assert!(matches!(BlockedBloom::from_bytes(&bytes), Err(Error::File(FileError::TrailingBytes { extra: 4 }))));
    assert!(matches!(
        View::<BlockedLayout>::from_bytes(&bytes),
        Err(Error::File(FileError::TrailingBytes { extra: 4 }))
    ));
}

#[test]
fn foreign_bytes_are_refused() {
    assert!(matches!(SplitBlockBloom::from_bytes(&[0; 1000]), Err(Error::File(FileError::BadMagic))));
    assert!(matches!(
        SplitBlockBloom::from_bytes(b"PAR1"),
        Err(Error::File(FileError::Truncated { needed: 128, found: 4 }))
    ));
    let error = BlockedBloom::from_bytes(&split_block().to_bytes()).unwrap_err();
    let Error::File(FileError::WrongStructure { expected, found }) = error else { panic!("{error}") };
    assert_eq!([expected.number, found.number], [2, 1]);
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
    assert!(matches!(SplitBlockBloom::from_bytes(&bytes), Err(Error::File(FileError::Truncated { .. }))));
    assert!(matches!(SplitBlockBloom::read_from(&bytes[..]), Err(Error::File(FileError::Truncated { .. }))));
    assert!(matches!(View::<SplitBlockLayout>::from_bytes(&bytes), Err(Error::File(FileError::Truncated { .. }))));
    for blocks in [0, u64::MAX, (1 << 32) + 1] {
        bytes[24..32].copy_from_slice(&blocks.to_le_bytes());
        assert!(matches!(
            SplitBlockBloom::from_bytes(&bytes),
            Err(Error::File(FileError::InvalidHeader { field: "blocks", .. }))
        ));
    }
}

#[test]
fn streams_hold_one_filter_after_another() {
    let (a, b) = (split_block(), rao(FirstLevel::Mixed));
    let mut stream = Vec::new();
    a.write_to(&mut stream).unwrap();
    b.write_to(&mut stream).unwrap();
    a.write_parquet(&mut stream, PhysicalType::ByteArray).unwrap();
    let mut reader = &stream[..];
    assert!(SplitBlockBloom::read_from(&mut reader).unwrap() == a);
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

//! Saved quotient filters: fixtures of each version, damaged and foreign bytes, views of mapped files.
//!
//! `WARPSET_WRITE_FIXTURES=1 cargo test -p warpset-tests --test quotient format` writes the fixtures of a new version.

use std::path::PathBuf;

use warpset::quotient::{
    Builder, Container, Duplicates, Error, FileError, QuotientFilter, RankSelect, RankSelectBuilder,
    RankSelectQuotientFilter, SlotKind, StandardBuilder, StandardQuotientFilter, StandardQuotientFilterView, View,
};

const WORDS: [&str; 4] = ["hello", "quotient", "remainder", "filter"];

fn packed() -> StandardQuotientFilter {
    let mut filter = StandardBuilder::with_bits(6, 5).build().unwrap();
    filter.insert_bulk(&WORDS).unwrap();
    filter.insert_bulk(&(0..40u64).collect::<Vec<_>>()).unwrap();
    filter.remove_bulk(&[1u64, 2, 3]);
    filter
}

fn bytes() -> StandardQuotientFilter {
    let builder = StandardBuilder::with_bits(7, 30).container(Container::Bytes).duplicates(Duplicates::Kept).seed(42);
    let mut filter = builder.max_load(0.95).build().unwrap();
    for _ in 0..3 {
        filter.insert_bulk(&WORDS).unwrap();
        filter.insert_bulk(&(0..30u32).collect::<Vec<_>>()).unwrap();
    }
    filter
}

fn rank_select() -> RankSelectQuotientFilter {
    let mut filter = RankSelectBuilder::with_bits(6, 5).build().unwrap();
    filter.insert_bulk(&WORDS).unwrap();
    filter.insert_bulk(&(0..40u64).collect::<Vec<_>>()).unwrap();
    filter.remove_bulk(&[1u64, 2, 3]);
    filter
}

fn counted() -> RankSelectQuotientFilter {
    let builder = RankSelectBuilder::with_bits(7, 6).duplicates(Duplicates::Counted).seed(42);
    let mut filter = builder.build().unwrap();
    for _ in 0..3 {
        filter.insert_bulk(&WORDS).unwrap();
    }
    filter.insert_bulk(&(0..30u32).collect::<Vec<_>>()).unwrap();
    filter.insert_counted("hot", 1 << 40).unwrap();
    filter
}

fn fixture<S: SlotKind>(name: &str, filter: &QuotientFilter<S>) {
    // At run time: packed tests run elsewhere than they were built.
    let package = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    let path = PathBuf::from(package).join("data").join(name);
    if std::env::var_os("WARPSET_WRITE_FIXTURES").is_some() {
        filter.save(&path).unwrap();
    }
    assert!(QuotientFilter::<S>::load(&path).unwrap() == *filter, "{name}: hashes, slots or header changed");
    assert_eq!(std::fs::read(&path).unwrap(), filter.to_bytes(), "{name}");
}

#[test]
fn fixtures_of_version_1() {
    fixture("quotient_standard_packed.v1", &packed());
    fixture("quotient_standard_bytes.v1", &bytes());
    fixture("quotient_rank_select.v1", &rank_select());
    fixture("quotient_rank_select_counted.v1", &counted());
}

/// The bytes with a checksum that is right.
fn resealed<S: SlotKind>(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Err(Error::File(FileError::Corrupted { found, .. })) = QuotientFilter::<S>::from_bytes(&bytes) {
        bytes[120..128].copy_from_slice(&found.to_le_bytes());
    }
    bytes
}

fn damage<S: SlotKind>(filter: &QuotientFilter<S>) {
    let good = filter.to_bytes();
    assert!(QuotientFilter::<S>::from_bytes(&good).unwrap() == *filter);
    for len in 0..good.len() {
        let cut = QuotientFilter::<S>::from_bytes(&good[..len]);
        assert!(matches!(cut, Err(Error::File(FileError::Truncated { .. }))), "cut at {len}");
        assert!(View::<S>::from_bytes(&good[..len]).is_err());
    }
    let mut long = good.clone();
    long.push(0);
    assert!(matches!(QuotientFilter::<S>::from_bytes(&long), Err(Error::File(FileError::TrailingBytes { extra: 1 }))));
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            let error = QuotientFilter::<S>::from_bytes(&bad).unwrap_err();
            match at {
                0..8 => assert!(matches!(error, Error::File(FileError::BadMagic)), "{at}: {error}"),
                8..10 => assert!(matches!(error, Error::File(FileError::UnsupportedVersion { .. })), "{at}: {error}"),
                10..12 => assert!(matches!(error, Error::File(FileError::WrongStructure { .. })), "{at}: {error}"),
                120.. => assert!(matches!(error, Error::File(FileError::Corrupted { .. })), "{at}: {error}"),
                _ => {}
            }
            // With the checksum made right, it loads only if the slots are those of a filter: as written, bit for bit.
            let sealed = resealed::<S>(bad);
            if let Ok(other) = QuotientFilter::<S>::from_bytes(&sealed) {
                let mut rebuilt = Builder::<S>::with_layout(*other.layout()).build().unwrap();
                for (fingerprint, copies) in other.fingerprint_counts() {
                    assert_eq!(rebuilt.insert_counted_fingerprint(fingerprint, copies).unwrap(), copies);
                }
                assert!(rebuilt == other && rebuilt.len() == other.len(), "byte {at}, bit {bit}");
            }
            // Without checks: any answer, no panic.
            let words: Vec<u64> = bytes_to_words(&sealed);
            let aligned = &as_bytes(&words)[..sealed.len()];
            if let Ok(view) = View::<S>::from_bytes_unverified(aligned) {
                for key in 0..20u64 {
                    view.contains(key);
                    view.count(key);
                }
                view.distinct();
            }
        }
    }
}

/// Bytes that a fuzzer found: the counters of one fingerprint, added up, exceed 64 bits; a counter has more digits than
/// a word.
#[test]
fn counters_that_overflow_are_answers_and_no_panic() {
    let found: [&[u8]; 2] = [
        include_bytes!("../fixtures/quotient_overflowing_counters.fuzzed"),
        include_bytes!("../fixtures/quotient_long_counter.fuzzed"),
    ];
    for bytes in found {
        assert!(RankSelectQuotientFilter::from_bytes(bytes).is_err());
        let words = bytes_to_words(bytes);
        let view = View::<RankSelect>::from_bytes_unverified(&as_bytes(&words)[..bytes.len()]).unwrap();
        for key in 0..300u64 {
            view.count(key);
        }
        view.contains("key");
        view.contains_bulk(&(0..300u64).collect::<Vec<_>>());
        view.distinct();
        view.fpr();
    }
}

fn bytes_to_words(bytes: &[u8]) -> Vec<u64> {
    let word = |chunk: &[u8]| {
        let mut eight = [0; 8];
        eight[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(eight)
    };
    bytes.chunks(8).map(word).collect()
}

fn as_bytes(words: &[u64]) -> &[u8] {
    // SAFETY: the bytes of words are bytes, and they live as long.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), 8 * words.len()) }
}

#[test]
fn damaged_bytes_are_refused() {
    damage(&packed());
    damage(&bytes());
    damage(&rank_select());
    damage(&counted());
}

/// A file of one kind of slots is not one of the other, nor one with counters a file of slots that have none.
#[test]
fn kinds_are_told_apart() {
    let error = StandardQuotientFilter::from_bytes(&rank_select().to_bytes()).unwrap_err();
    assert!(matches!(error, Error::File(FileError::WrongStructure { .. })), "{error}");
    let mut bytes = counted().to_bytes();
    bytes[10] = packed().to_bytes()[10];
    let error = StandardQuotientFilter::from_bytes(&bytes).unwrap_err();
    assert!(matches!(error, Error::File(FileError::InvalidHeader { field: "duplicates", .. })), "{error}");
    let error = StandardBuilder::with_bits(8, 8).duplicates(Duplicates::Counted).build().unwrap_err();
    assert!(error.to_string().contains("counts no repetitions"), "{error}");
}

#[test]
fn foreign_bytes_are_refused() {
    assert!(matches!(StandardQuotientFilter::from_bytes(&[0; 1000]), Err(Error::File(FileError::BadMagic))));
    let bloom: warpset::bloom::SplitBlockBloom = ["a"].into_iter().collect();
    let error = StandardQuotientFilter::from_bytes(&bloom.to_bytes()).unwrap_err();
    let Error::File(FileError::WrongStructure { expected, found }) = error else { panic!("{error}") };
    assert_eq!([expected.number, found.number], [24, 1]);
}

#[test]
fn absurd_sizes_are_refused_without_the_memory() {
    let huge = StandardBuilder::with_bits(40, 5).layout().unwrap();
    let mut bytes = packed().to_bytes();
    let fields = [40, 5, 1, 0, huge.limit(), huge.slots() / 64];
    for (i, field) in fields.into_iter().enumerate() {
        bytes[24 + 8 * i..32 + 8 * i].copy_from_slice(&u64::to_le_bytes(field));
    }
    bytes[16..24].copy_from_slice(&(8 * huge.words()).to_le_bytes());
    assert!(matches!(StandardQuotientFilter::from_bytes(&bytes), Err(Error::File(FileError::Truncated { .. }))));
    assert!(matches!(StandardQuotientFilter::read_from(&bytes[..]), Err(Error::File(FileError::Truncated { .. }))));
    assert!(matches!(StandardQuotientFilterView::from_bytes(&bytes), Err(Error::File(FileError::Truncated { .. }))));
}

#[test]
fn streams_hold_one_filter_after_another() {
    let filter = StandardQuotientFilter::builder(1000).build_from(&(0..1000).collect::<Vec<u64>>()).unwrap();
    let mut stream = Vec::new();
    filter.write_to(&mut stream).unwrap();
    packed().write_to(&mut stream).unwrap();
    let mut reader = &stream[..];
    assert!(StandardQuotientFilter::read_from(&mut reader).unwrap() == filter);
    assert!(StandardQuotientFilter::read_from(&mut reader).unwrap() == packed());
    assert!(reader.is_empty());
}

/// Large files get their checksum after their payload; they are the bytes of `to_bytes` all the same.
#[test]
fn large_files_are_the_saved_form() {
    let filter = RankSelectBuilder::with_bits(18, 40).build_from(&(0..1u64 << 17).collect::<Vec<_>>()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large");
    filter.save(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    assert!(bytes.len() > 1 << 20);
    assert!(bytes == filter.to_bytes());
    assert!(RankSelectQuotientFilter::load(&path).unwrap() == filter);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

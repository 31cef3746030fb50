//! Saved quotient filters: fixtures of each version, damaged and foreign bytes, views of mapped files.
//!
//! `WARPSET_WRITE_FIXTURES=1 cargo test -p warpset-tests --test quotient format` writes the fixtures of a new version.

use warpset::quotient::{
    Builder, Container, Duplicates, Error, FileError, Maplet, QuotientFilter, RankSelect, RankSelectBuilder,
    RankSelectQuotientFilter, SlotKind, StandardBuilder, StandardQuotientFilter, Sum, View,
};
use warpset_base::file::{HEADER_BYTES, Saved};
use warpset_base::filter::{Filter, Insert, Remove};
use warpset_tests::files::{self, fixture, to_words};

const WORDS: [&str; 4] = ["hello", "quotient", "remainder", "filter"];

fn packed() -> StandardQuotientFilter {
    let mut filter = StandardBuilder::with_bits(6, 5).build().unwrap();
    filter.insert_bulk(&WORDS).unwrap();
    filter.insert_bulk(&(0..40u64).collect::<Vec<_>>()).unwrap();
    filter.remove_bulk(&[1u64, 2, 3]).unwrap();
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
    filter.remove_bulk(&[1u64, 2, 3]).unwrap();
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

fn maplet() -> Maplet {
    let mut maplet = RankSelectBuilder::with_bits(6, 5).seed(42).values(11).build().unwrap();
    maplet.insert_bulk(&WORDS, &[1u16, 2, 2047, 0]).unwrap();
    maplet.upsert_bulk::<Sum<u64>, _, _>(&(0..40u64).collect::<Vec<_>>(), &(100..140u64).collect::<Vec<_>>()).unwrap();
    maplet
}

#[test]
fn fixtures_of_version_1() {
    fixture("quotient_standard_packed.v1", &packed());
    fixture("quotient_standard_bytes.v1", &bytes());
    fixture("quotient_rank_select.v1", &rank_select());
    fixture("quotient_rank_select_counted.v1", &counted());
    fixture("maplet.v1", &maplet());
}

/// Checks that any damage is noticed. With the checksum made right, a filter loads only if the slots are valid, and
/// saves to the same bytes. Without checks: any answer, no panic.
fn damage<S: SlotKind>(filter: &QuotientFilter<S>)
where
    QuotientFilter<S>: Saved,
{
    files::damage(
        filter,
        |at| if at < HEADER_BYTES { (0..8).collect() } else { [0, 3, 6].map(|bit| (at as u32 + bit) % 8).into() },
        |sealed, place| {
            if let Ok(other) = QuotientFilter::<S>::from_bytes(sealed) {
                let mut rebuilt = Builder::<S>::with_layout(*other.layout()).build().unwrap();
                for (fingerprint, copies) in other.fingerprint_counts() {
                    assert_eq!(rebuilt.insert_counted_fingerprint(fingerprint, copies).unwrap(), copies);
                }
                assert!(rebuilt == other && rebuilt.len() == other.len(), "{place}");
            }
            let words = to_words(sealed);
            if let Ok(view) = View::<S>::from_bytes_unverified(&bytemuck::cast_slice(&words)[..sealed.len()]) {
                for key in 0..20u64 {
                    view.contains(key);
                    view.count(key);
                }
                view.distinct();
            }
        },
    );
}

/// Reads bytes that a fuzzer found: the counters of one fingerprint, added up, exceed 64 bits; a counter has more
/// digits than a word.
#[test]
fn counters_that_overflow_are_answers_and_no_panic() {
    let found: [&[u8]; 2] = [
        include_bytes!("../fixtures/quotient_overflowing_counters.fuzzed"),
        include_bytes!("../fixtures/quotient_long_counter.fuzzed"),
    ];
    for bytes in found {
        assert!(RankSelectQuotientFilter::from_bytes(bytes).is_err());
        let words = to_words(bytes);
        let view = View::<RankSelect>::from_bytes_unverified(&bytemuck::cast_slice(&words)[..bytes.len()]).unwrap();
        for key in 0..300u64 {
            view.count(key);
        }
        view.contains("key");
        view.contains_bulk(&(0..300u64).collect::<Vec<_>>()).unwrap();
        view.distinct();
        view.fpr();
    }
}

#[test]
fn damaged_bytes_are_refused() {
    damage(&packed());
    damage(&bytes());
    damage(&rank_select());
    damage(&counted());
}

/// Loads files as the other kind of slots, and files with counters as filters without: both are errors.
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
fn absurd_sizes_are_refused_without_the_memory() {
    let huge = StandardBuilder::with_bits(40, 5).layout().unwrap();
    let mut bytes = packed().to_bytes();
    let fields = [40, 5, 1, 0, huge.limit(), huge.slots() / 64];
    for (i, field) in fields.into_iter().enumerate() {
        bytes[24 + 8 * i..32 + 8 * i].copy_from_slice(&u64::to_le_bytes(field));
    }
    bytes[16..24].copy_from_slice(&(8 * huge.words()).to_le_bytes());
    files::announces_too_much::<StandardQuotientFilter>(&bytes);
}

/// Checks that large files, whose checksum is written after their payload, have the bytes of `to_bytes`.
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

//! Saved RecSplit functions: round trips, damage, hostile lengths, mapping.

use proptest::prelude::*;
use warpset_mphf::{
    Builder, ConsensusKind, Error, FileError, Key, Method, RecSplit, RecSplitKind, RecSplitView, Remix, StaticFilter,
    StaticFilterView,
};

fn function(keys: u64) -> (Vec<u64>, RecSplit) {
    let keys: Vec<u64> = (0..keys).map(|i| i * i + 7).collect();
    let function = RecSplit::builder().leaf_size(6).bucket_size(40).build_from(&keys).unwrap();
    (keys, function)
}

#[test]
fn round_trips() {
    for n in [0, 1, 2, 3, 1000, 100_000] {
        let (keys, function) = function(n);
        let bytes = function.to_bytes();
        assert_eq!(bytes.len() as u64, function.memory_bytes());
        // Something may come after it.
        let mut stream = bytes.clone();
        stream.extend(b"more");
        let mut rest = stream.as_slice();
        let loaded = RecSplit::read_from(&mut rest).unwrap();
        assert_eq!(rest, b"more");
        assert!(loaded == function);
        assert!(RecSplit::from_bytes(&bytes).unwrap() == function);
        for view in [RecSplitView::from_words(function.words()).unwrap(), function.view()] {
            assert!(view == function.view() && view.len() == n && view.words() == function.words());
            assert!(keys.iter().all(|key| view.get(key) == function.get(key)));
            assert_eq!(view.get_bulk(&keys), function.get_bulk(&keys));
        }
        let json = serde_json::to_string(&function).unwrap();
        assert!(serde_json::from_str::<RecSplit>(&json).unwrap() == function);
    }
}

#[test]
fn versions_are_checked() {
    let (_, function) = function(100);
    let mut bytes = function.to_bytes();
    bytes[8] = 2;
    assert!(matches!(
        RecSplit::read_from(bytes.as_slice()),
        Err(Error::File(FileError::UnsupportedVersion { found: 2, supported: 1 }))
    ));
}

#[test]
fn what_is_wrong_has_its_error() {
    let (_, function) = function(100);
    let bytes = function.to_bytes();
    let error = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = bytes.clone();
        change(&mut bytes);
        // Words, so that they are aligned.
        let mut words = vec![0u64; bytes.len().div_ceil(8)];
        bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(&bytes);
        let viewed = RecSplitView::from_bytes(&bytemuck::cast_slice(&words)[..bytes.len()]).map(|_| ());
        let read = RecSplit::read_from(bytes.as_slice()).map(|_| ());
        assert!(RecSplit::from_bytes(&bytes).is_err());
        match (viewed, read) {
            (Err(Error::File(viewed)), Err(Error::File(read))) => {
                assert_eq!(std::mem::discriminant(&viewed), std::mem::discriminant(&read));
                read
            }
            other => panic!("{other:?}"),
        }
    };
    assert!(matches!(error(&|bytes| bytes[0] = 0), FileError::BadMagic));
    assert!(matches!(error(&|bytes| bytes[10] = 17), FileError::WrongStructure { found, .. } if found.number == 17));
    assert!(matches!(error(&|bytes| bytes[12] = 64), FileError::InvalidHeader { field: "header bytes", value: 64 }));
    assert!(matches!(error(&|bytes| bytes[88] = 1), FileError::InvalidHeader { field: "reserved bytes", .. }));
    assert!(matches!(error(&|bytes| bytes[16] ^= 1), FileError::InvalidHeader { field: "payload bytes", .. }));
    assert!(matches!(error(&|bytes| bytes[23] = 0x80), FileError::InvalidHeader { field: "payload bytes", .. }));
    assert!(matches!(error(&|bytes| bytes[51] = 7), FileError::InvalidHeader { field: "method", value: 7 }));
    assert!(matches!(error(&|bytes| bytes.truncate(100)), FileError::Truncated { found: 100, .. }));
    assert!(matches!(error(&|bytes| bytes.truncate(bytes.len() - 8)), FileError::Truncated { .. }));
    assert!(matches!(error(&|bytes| bytes[120] ^= 1), FileError::Corrupted { .. }));
    let mut longer = function.words().to_vec();
    longer.push(0);
    let viewed = RecSplitView::from_bytes(bytemuck::cast_slice(&longer)).map(|_| ());
    assert!(matches!(viewed, Err(Error::File(FileError::TrailingBytes { extra: 8 }))));
    let viewed = RecSplitView::from_bytes(&bytemuck::cast_slice(&longer)[1..]).map(|_| ());
    assert!(matches!(viewed, Err(Error::File(FileError::Misaligned { alignment: 8 }))));
}

#[test]
fn a_wrong_number_of_words_is_no_cut_file() {
    let (keys, function) = function(100);
    let filter = StaticFilter::builder().width(9).build_from(&keys).unwrap();
    for whole in [function.words(), filter.words()] {
        for found in [0, 3, 15, 16, whole.len() - 1, whole.len() + 1, whole.len() + 7] {
            let mut words = whole.to_vec();
            words.resize(found, 0);
            let errors = if whole == function.words() {
                [RecSplitView::from_words(&words).err(), RecSplit::from_words(words.clone()).err()]
            } else {
                [
                    StaticFilterView::<ConsensusKind>::from_words(&words).err(),
                    StaticFilter::<ConsensusKind>::from_words(words).err(),
                ]
            };
            for error in errors {
                let error = error.expect("the number is wrong");
                let told = error.to_string();
                let Error::WordCount { needed, found: said } = error else { panic!("{told}") };
                let header = warpset_base::file::HEADER_BYTES / 8;
                let expected = if found < header { header } else { whole.len() };
                assert_eq!((needed, said), (expected as u64, found as u64));
                assert!(told.starts_with(&format!("{found} words of 64 bits")) && !told.contains("file"), "{told}");
            }
        }
    }
}

#[test]
fn files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("function");
    let (keys, function) = function(1000);
    function.save(&path).unwrap();
    assert!(RecSplit::load(&path).unwrap() == function);
    let filter = StaticFilter::builder_of_kind(RecSplitKind).width(9).leaf_size(5).build_from(&keys).unwrap();
    // The function's file is replaced.
    filter.save(&path).unwrap();
    assert!(StaticFilter::load(&path).unwrap() == filter);
    assert!(StaticFilterView::from_words(filter.words()).unwrap() == filter.view());
    let json = serde_json::to_string(&filter).unwrap();
    assert!(serde_json::from_str::<StaticFilter<RecSplitKind>>(&json).unwrap() == filter);
}

/// Gives words a right checksum.
fn seal(words: &mut [u64]) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    words[15] = xxhash_rust::xxh3::xxh3_64(&[&bytes[..120], &bytes[128..]].concat());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Checks that any damage is noticed.
    #[test]
    fn damage_is_an_error(position in any::<prop::sample::Index>(), bit in 0..8_u32) {
        let (_, function) = function(500);
        let mut bytes = function.to_bytes();
        let at = position.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(RecSplit::read_from(bytes.as_slice()).is_err());
    }

    /// Checks that cut files are an error.
    #[test]
    fn cuts_are_an_error(position in any::<prop::sample::Index>()) {
        let (_, function) = function(500);
        let bytes = function.to_bytes();
        prop_assert!(RecSplit::read_from(&bytes[..position.index(bytes.len())]).is_err());
    }

    /// Checks that wrong words with a right checksum neither panic nor give numbers out of range.
    #[test]
    fn hostile_words_do_no_harm(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u64>(), 0..64_u32), 1..4), queries in 0..40_u64
    ) {
        let (_, function) = function(300);
        let mut words = function.words().to_vec();
        for (position, value, shift) in changes {
            let at = position.index(words.len());
            words[at] = if shift < 32 { words[at] ^ 1 << shift } else { value >> (shift - 32) };
        }
        seal(&mut words);
        if let Ok(function) = RecSplit::from_words(words) {
            let keys: Vec<u64> = (0..queries + 40).collect();
            for (key, number) in keys.iter().zip(function.get_bulk(&keys)) {
                prop_assert!(number < function.values().max(1));
                prop_assert_eq!(number, function.get(key));
            }
        }
    }

    /// Loads arbitrary headers.
    #[test]
    fn hostile_headers_do_no_harm(head in prop::array::uniform20(any::<u64>()), small in any::<bool>()) {
        let (_, function) = function(300);
        let mut words = function.words().to_vec();
        for (i, value) in head.iter().enumerate().skip(3).filter(|(i, _)| !(11..16).contains(i)) {
            words[i] = if small { value % 100 } else { *value };
        }
        seal(&mut words);
        if let Ok(function) = RecSplit::from_words(words.clone()) {
            prop_assert!(function.get(1_u64) < function.values().max(1));
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let _ = RecSplit::read_from(bytes.as_slice());
    }

    #[test]
    fn filters_notice_damage(position in any::<prop::sample::Index>(), bit in 0..8_u32) {
        let keys: Vec<u64> = (0..500).collect();
        let filter = StaticFilter::builder_of_kind(RecSplitKind).width(9).leaf_size(5).method(Method::Rotation).build_from(&keys).unwrap();
        let mut bytes = filter.to_bytes();
        prop_assert!(StaticFilter::read_from(bytes.as_slice()).unwrap() == filter);
        let at = position.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(StaticFilter::<RecSplitKind>::read_from(bytes.as_slice()).is_err());
    }
}

/// Reads a file of version 1, which every later version must read: words of the function of 0 to 9 at leaf size 4.
#[test]
fn version_1_is_read() {
    let keys: Vec<u64> = (0..10).collect();
    let function = RecSplit::builder().leaf_size(4).fanouts(3, 2).bucket_size(5).build_from(&keys).unwrap();
    let text: String = function.words().iter().map(|word| format!("{word:016x}\n")).collect();
    let written = include_str!("../fixtures/recsplit_v1.txt");
    assert_eq!(text, written);
    let words: Vec<u64> = written.lines().map(|word| u64::from_str_radix(word, 16).unwrap()).collect();
    let read = RecSplit::from_words(words).unwrap();
    assert_eq!([0_u64, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(|key| read.get(key)), NUMBERS_OF_VERSION_1);
}

/// Hashes of what functions of every kind are saved as, and of the numbers that they give.
fn hashes<K: Key + Sync>(builder: &Builder, keys: &[K]) -> [u64; 2] {
    let function = builder.build_from(keys).unwrap();
    let numbers: Vec<u8> = keys.iter().flat_map(|key| function.get(key).to_le_bytes()).collect();
    [function.to_bytes(), numbers].map(|bytes| xxhash_rust::xxh3::xxh3_64(&bytes))
}

/// Compares bits by seed and numbers by bits: they are part of the format.
#[test]
fn version_1_stays_as_it_is() {
    let keys: Vec<u64> = (0..5000_u64).map(|i| i.pow(3)).collect();
    let strings: Vec<String> = keys.iter().map(u64::to_string).collect();
    let builder = |leaf, bucket| RecSplit::builder().leaf_size(leaf).bucket_size(bucket);
    let kinds = [
        ("grouped", hashes(&builder(12, 200), &keys)),
        ("large leaves, strings, a seed", hashes(&builder(21, 2000).seed(7), &strings)),
        ("rotation", hashes(&builder(8, 5).method(Method::Rotation), &keys)),
        ("brute force", hashes(&builder(6, 2000).method(Method::BruteForce), &strings)),
        ("64-bit remix, fanouts", hashes(&builder(5, 50).remix(Remix::Bits64).fanouts(4, 3), &keys)),
        ("load factor", hashes(&builder(8, 100).load_factor(0.8), &keys)),
        ("keys per value", hashes(&builder(8, 1000).keys_per_value(6), &keys)),
    ];
    for ((kind, found), expected) in kinds.into_iter().zip(HASHES_OF_VERSION_1) {
        assert_eq!(found, expected, "{kind}");
    }
    let filter =
        StaticFilter::builder_of_kind(RecSplitKind).width(9).leaf_size(5).bucket_size(20).build_from(&strings).unwrap();
    assert_eq!(xxhash_rust::xxh3::xxh3_64(&filter.to_bytes()), FILTER_OF_VERSION_1);
}

const NUMBERS_OF_VERSION_1: [u64; 10] = [5, 7, 6, 3, 8, 2, 0, 4, 9, 1];
const HASHES_OF_VERSION_1: [[u64; 2]; 7] = [
    [0x772e_6fc0_e6ec_347c, 0x2312_f8c6_7cad_5584],
    [0x0436_fbbc_985e_c84c, 0xdce2_df66_78a9_b0fe],
    [0x8506_d4dd_0846_7c61, 0x45e0_2599_1611_8003],
    [0xef4d_b86a_e9a1_c9e0, 0x1b0e_69f0_8e61_94a9],
    [0x5af3_ebd9_0527_9f45, 0x0816_3b9e_ed8e_7024],
    [0xf179_9cce_157c_0e38, 0x3a26_ad7a_a654_e306],
    [0x613c_4aab_650b_e9bb, 0xfa41_738b_bf12_33d9],
];
const FILTER_OF_VERSION_1: u64 = 0x6ab8_c00a_b78b_a439;

//! Saved RecSplit functions: round trips, damage, hostile lengths, mapping.

use proptest::prelude::*;
use warpset_recsplit::{Builder, Error, Mapped, Method, RecSplit, StaticFilter};

fn function(keys: u64) -> (Vec<u64>, RecSplit) {
    let keys: Vec<u64> = (0..keys).map(|i| i * i + 7).collect();
    let function = Builder::new().leaf_size(6).bucket_size(40).build(&keys).unwrap();
    (keys, function)
}

fn saved(function: &RecSplit) -> Vec<u8> {
    let mut bytes = Vec::new();
    function.save(&mut bytes).unwrap();
    bytes
}

#[test]
fn round_trips() {
    for n in [0, 1, 2, 3, 1000, 100_000] {
        let (keys, function) = function(n);
        let bytes = saved(&function);
        assert_eq!(bytes.len() as u64 * 8, function.bits());
        // Something may stand behind it.
        let mut stream = bytes.clone();
        stream.extend(b"more");
        let mut rest = stream.as_slice();
        let loaded = RecSplit::load(&mut rest).unwrap();
        assert_eq!(rest, b"more");
        assert!(loaded == function);
        let borrowed = RecSplit::from_words(function.as_words()).unwrap();
        assert!(keys.iter().all(|key| borrowed.get(key) == function.get(key)));
        let json = serde_json::to_string(&function).unwrap();
        assert!(serde_json::from_str::<RecSplit>(&json).unwrap() == function);
    }
}

#[test]
fn maps() {
    let (keys, function) = function(10_000);
    let path = std::env::temp_dir().join(format!("recsplit-map-{}", std::process::id()));
    std::fs::write(&path, saved(&function)).unwrap();
    // SAFETY: nobody else knows the file.
    let mapped: RecSplit<Mapped> = unsafe { RecSplit::map(&path) }.unwrap();
    assert!(keys.iter().all(|key| mapped.get(key) == function.get(key)));
    drop(mapped);
    std::fs::write(&path, b"short").unwrap();
    // SAFETY: nobody else knows the file.
    assert!(unsafe { RecSplit::map(&path) }.is_err());
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn versions_are_checked() {
    let (_, function) = function(100);
    let mut bytes = saved(&function);
    bytes[8] = 2;
    assert!(matches!(RecSplit::load(bytes.as_slice()), Err(Error::UnsupportedVersion { found: 2, supported: 1 })));
}

/// Gives words a right checksum.
fn seal(words: &mut [u64]) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    words[15] = xxhash_rust::xxh3::xxh3_64(&[&bytes[..120], &bytes[128..]].concat());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Any damage is noticed.
    #[test]
    fn damage_is_an_error(position in any::<prop::sample::Index>(), bit in 0..8_u32) {
        let (_, function) = function(500);
        let mut bytes = saved(&function);
        let at = position.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(RecSplit::load(bytes.as_slice()).is_err());
    }

    /// Cut files are an error.
    #[test]
    fn cuts_are_an_error(position in any::<prop::sample::Index>()) {
        let (_, function) = function(500);
        let bytes = saved(&function);
        prop_assert!(RecSplit::load(&bytes[..position.index(bytes.len())]).is_err());
    }

    /// Words that are wrong but have a right checksum neither panic nor give numbers out of range.
    #[test]
    fn hostile_words_do_no_harm(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u64>(), 0..64_u32), 1..4), queries in 0..40_u64
    ) {
        let (_, function) = function(300);
        let mut words = function.as_words().to_vec();
        for (position, value, shift) in changes {
            let at = position.index(words.len());
            words[at] = if shift < 32 { words[at] ^ 1 << shift } else { value >> (shift - 32) };
        }
        seal(&mut words);
        if let Ok(function) = RecSplit::from_words(words) {
            let keys: Vec<u64> = (0..queries + 40).collect();
            let mut numbers = vec![0; keys.len()];
            function.get_many(&keys, &mut numbers);
            for (key, number) in keys.iter().zip(numbers) {
                prop_assert!(number < function.values().max(1));
                prop_assert_eq!(number, function.get(key));
            }
        }
    }

    /// The header can be anything.
    #[test]
    fn hostile_headers_do_no_harm(head in prop::array::uniform20(any::<u64>()), small in any::<bool>()) {
        let (_, function) = function(300);
        let mut words = function.as_words().to_vec();
        for (i, value) in head.iter().enumerate().skip(3).filter(|(i, _)| !(11..16).contains(i)) {
            words[i] = if small { value % 100 } else { *value };
        }
        seal(&mut words);
        if let Ok(function) = RecSplit::from_words(words.clone()) {
            prop_assert!(function.get(&1_u64) < function.values().max(1));
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let _ = RecSplit::load(bytes.as_slice());
    }

    #[test]
    fn filters_notice_damage(position in any::<prop::sample::Index>(), bit in 0..8_u32) {
        let keys: Vec<u64> = (0..500).collect();
        let filter = StaticFilter::build(&Builder::new().leaf_size(5).method(Method::Rotation), &keys, 9).unwrap();
        let mut bytes = Vec::new();
        filter.save(&mut bytes).unwrap();
        prop_assert!(StaticFilter::load(bytes.as_slice()).unwrap() == filter);
        let at = position.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(StaticFilter::load(bytes.as_slice()).is_err());
    }
}

/// What this version wrote once, every later one must read. Words of the function of 0 to 9 at leaf size 4.
#[test]
fn version_1_is_read() {
    let keys: Vec<u64> = (0..10).collect();
    let function = Builder::new().leaf_size(4).fanouts(3, 2).bucket_size(5).build(&keys).unwrap();
    let text: String = function.as_words().iter().map(|word| format!("{word:016x}\n")).collect();
    assert_eq!(text, include_str!("fixtures/recsplit_v1.txt"));
}

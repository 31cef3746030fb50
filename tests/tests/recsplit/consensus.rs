//! The second kind of functions: what it saves, and damage to that. What the kinds have in common is tested with
//! RecSplit, the search beside its code.

use proptest::prelude::*;
use warpset_mphf::{Consensus, ConsensusView, Error, Key, Kind, PerfectHash, Simd, StaticFilter};

/// Gives words a right checksum.
fn seal(words: &mut [u64]) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    words[15] = xxhash_rust::xxh3::xxh3_64(&[&bytes[..120], &bytes[128..]].concat());
}

fn function(keys: u64) -> Consensus {
    let keys: Vec<u64> = (0..keys).collect();
    Consensus::builder().overhead(0.1).bucket_size(90).build_from(&keys).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_distinct_strings(
        keys in prop::collection::btree_set(".{0,12}", 0..300), overhead in 0.01..1.0, bucket in 1..400_u32, seed: u64
    ) {
        let keys: Vec<String> = keys.into_iter().collect();
        let builder = Consensus::builder().overhead(overhead).bucket_size(bucket).seed(seed);
        let function = builder.build_from(&keys).unwrap();
        let mut numbers = function.get_bulk(&keys);
        prop_assert!(keys.iter().zip(&numbers).all(|(key, &number)| function.get(key) == number));
        numbers.sort_unstable();
        prop_assert!(numbers.into_iter().eq(0..keys.len() as u64));
        prop_assert!(builder.simd(Simd::Portable).build_from(&keys).unwrap() == function);
    }

    #[test]
    fn duplicates_are_named(keys in prop::collection::btree_set(any::<u32>(), 1..400), at in any::<prop::sample::Index>()) {
        let mut keys: Vec<u32> = keys.into_iter().collect();
        let first = at.index(keys.len());
        keys.push(keys[first]);
        let second = keys.len() as u64 - 1;
        match Consensus::builder().bucket_size(100).build_from(&keys) {
            Err(Error::DuplicateKey { first: a, second: b, .. }) => prop_assert_eq!((a, b), (first as u64, second)),
            other => prop_assert!(false, "{:?}", other),
        }
    }

    /// Checks that any damage is noticed.
    #[test]
    fn damage_is_an_error(position in any::<prop::sample::Index>(), bit in 0..8_u32) {
        let mut bytes = function(500).to_bytes();
        let at = position.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(Consensus::read_from(bytes.as_slice()).is_err());
    }

    /// Loads arbitrary headers.
    #[test]
    fn hostile_headers_do_no_harm(head in prop::array::uniform20(any::<u64>()), small in any::<bool>()) {
        let mut words = function(300).words().to_vec();
        for (i, value) in head.iter().enumerate().skip(3).filter(|(i, _)| !(11..16).contains(i)) {
            words[i] = if small { value % 100 } else { *value };
        }
        seal(&mut words);
        if let Ok(function) = Consensus::from_words(words) {
            prop_assert!(function.get(1_u64) < function.values().max(1));
        }
    }
}

#[test]
fn serde_and_views() {
    let function = function(700);
    let json = serde_json::to_string(&function).unwrap();
    assert!(serde_json::from_str::<Consensus>(&json).unwrap() == function);
    assert!(ConsensusView::from_words(function.words()).unwrap() == function.view());
}

/// Reads a file of version 1, which every later version must read: words of the function of 0 to 19.
#[test]
fn version_1_is_read() {
    let keys: Vec<u64> = (0..20).collect();
    let function = Consensus::builder().overhead(0.2).bucket_size(10).build_from(&keys).unwrap();
    let text: String = function.words().iter().map(|word| format!("{word:016x}\n")).collect();
    let written = include_str!("../fixtures/consensus_v1.txt");
    assert_eq!(text, written);
    let words: Vec<u64> = written.lines().map(|word| u64::from_str_radix(word, 16).unwrap()).collect();
    assert_eq!(Kind::of_bytes(&function.to_bytes()).unwrap(), Kind::Consensus);
    assert_eq!(numbers(&Consensus::from_words(words).unwrap()), NUMBERS_OF_VERSION_1);
}

fn numbers<W: AsRef<[u64]>>(function: &PerfectHash<warpset_mphf::ConsensusKind, W>) -> Vec<u64> {
    (0..20_u64).map(|key| function.get(key)).collect()
}

/// Hashes of what functions are saved as, and of the numbers that they give.
fn hashes<K: Key + Sync>(overhead: f64, bucket: u32, keys: &[K]) -> [u64; 2] {
    let function =
        Consensus::builder().overhead(overhead).bucket_size(bucket).seed(bucket.into()).build_from(keys).unwrap();
    let numbers: Vec<u8> = keys.iter().flat_map(|key| function.get(key).to_le_bytes()).collect();
    [function.to_bytes(), numbers].map(|bytes| xxhash_rust::xxh3::xxh3_64(&bytes))
}

/// Compares bits by seed and numbers by bits: they are part of the format.
#[test]
fn version_1_stays_as_it_is() {
    let keys: Vec<u64> = (0..5000_u64).map(|i| i.pow(3)).collect();
    let strings: Vec<String> = keys.iter().map(u64::to_string).collect();
    let found =
        [hashes(0.02, 2400, &keys), hashes(0.2, 200, &strings), hashes(1.0, 5, &keys), hashes(0.05, 5000, &strings)];
    assert_eq!(found, HASHES_OF_VERSION_1, "{found:#x?}");
    let filter = StaticFilter::builder().width(9).bucket_size(700).build_from(&strings).unwrap();
    let filter = xxhash_rust::xxh3::xxh3_64(&filter.to_bytes());
    assert_eq!(filter, FILTER_OF_VERSION_1, "{filter:#x}");
}

const NUMBERS_OF_VERSION_1: [u64; 20] = [11, 16, 14, 0, 13, 2, 9, 5, 18, 3, 8, 7, 12, 6, 17, 15, 1, 4, 10, 19];
const HASHES_OF_VERSION_1: [[u64; 2]; 4] = [
    [0x52f8_ba2a_d7ec_bafd, 0x167a_599e_2cb9_d45f],
    [0xf83a_1525_423c_df50, 0xb704_e92e_192f_375e],
    [0xb17b_50d1_9a6b_2e1e, 0xecbc_14ba_6693_206b],
    [0x8546_7cb5_5505_bdd0, 0xbfd4_a306_b34f_5ffb],
];
const FILTER_OF_VERSION_1: u64 = 0xf6c4_fd1d_7740_6777;

//! Against bytes that Spark 4.3.0 wrote: `BloomFilter.create(version, items, bits, seed)` of its `spark-sketch`.

use super::*;

/// Bytes of `create(version, 20, 256, seed)` after [`LONGS`], then after [`STRINGS`]; without the header.
const SMALL: [(SparkVersion, &str, &str); 3] = [
    (
        SparkVersion::V1,
        "5014112121484092a2c2083008dc80140b20d80a1103a0040000140043208483",
        "062070003460036be01600f10c820002106f802062d60a802091020e0000040e",
    ),
    (
        SparkVersion::V2 { seed: 0 },
        "8109414226001483014a0012b08289e040900813202129042c201401161c4700",
        "0211038104902049290210a50b0036461e09300cc4304010404c416092008000",
    ),
    (
        SparkVersion::V2 { seed: 42 },
        "8048940c5bc5104044b108014420000d9011003083083b0308405091000b1580",
        "a009400901154408c109502400117240104dc40412014021a80d40ec50414242",
    ),
];
const LONGS: [i64; 8] = [i64::MIN, -1, 0, 1, 2, 42, 1_000_000_007, i64::MAX];
const STRINGS: [&str; 9] = ["", "a", "ab", "abc", "abcd", "warpset", "日本語", "🚀🚀", "hello world, this is a string"];

/// Returns the bytes of an empty filter.
fn empty(version: SparkVersion, hashes: u32, words: u32) -> SparkBloom {
    let mut bytes = match version {
        SparkVersion::V1 => [1, hashes, words].map(u32::to_be_bytes).concat(),
        SparkVersion::V2 { seed } => [2, hashes, seed as u32, words].map(u32::to_be_bytes).concat(),
    };
    bytes.resize(bytes.len() + 8 * words as usize, 0);
    SparkBloom::from_bytes(bytes).unwrap()
}

fn hex(text: &str) -> Vec<u8> {
    text.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

#[test]
fn bytes_are_those_of_spark() {
    for (version, longs, strings) in SMALL {
        let mut filter = empty(version, 9, 4);
        filter.extend(LONGS);
        assert_eq!(filter.as_bytes()[version.header_bytes()..], hex(longs), "{version:?}");
        assert!(LONGS.iter().all(|key| filter.contains(key)));
        let mut filter = empty(version, 9, 4);
        filter.extend(STRINGS);
        assert_eq!(filter.as_bytes()[version.header_bytes()..], hex(strings), "{version:?}");
        assert_eq!(filter.view().contains_bulk(&STRINGS), [true; STRINGS.len()]);
    }
}

/// Computes `java.util.Arrays.hashCode`.
fn java_hash(bytes: &[u8]) -> i32 {
    bytes.iter().fold(1i32, |hash, &byte| hash.wrapping_mul(31).wrapping_add((byte as i8).into()))
}

/// Compares `create(version, 5000, 50000, seed)` with 10,000 keys: its bytes, and the number of 10,000 other keys that
/// it claims.
#[test]
fn larger_filters_are_those_of_spark() {
    let expected = [(-99_086_949, 1374), (2_137_184_307, 1451), (-994_470_263, 1304)];
    for ((version, ..), (hash, claimed)) in SMALL.into_iter().zip(expected) {
        let mut filter = empty(version, 7, 782);
        for i in 0..5000i64 {
            filter.insert(i * i * 31 - 7);
            filter.insert(format!("key {i}"));
        }
        assert_eq!(java_hash(filter.as_bytes()), hash, "{version:?}");
        let others: Vec<i64> = (1_000_000..1_010_000).collect();
        let answers = filter.view().contains_bulk(&others);
        assert_eq!(answers.iter().filter(|yes| **yes).count(), claimed, "{version:?}");
        assert!((claimed as f64 / 1e4 - filter.view().fpr()).abs() < 0.02);
        assert!(filter.view().contains_bulk_into(&others, &mut [true]).is_err());
    }
}

/// Compares the headers of `create(items, rate)`.
#[test]
fn sizes_are_those_of_spark() {
    let expected = [
        (1, 0.03, 5, 1),
        (1, 0.01, 6, 1),
        (1, 0.0001, 13, 1),
        (100, 0.03, 5, 12),
        (100, 0.01, 7, 15),
        (100, 0.0001, 13, 30),
        (1_000_000, 0.03, 5, 0x1_bd77),
        (1_000_000, 0.01, 7, 0x2_4907),
        (1_000_000, 0.0001, 13, 0x4_920e),
    ];
    for (keys, fpr, hashes, words) in expected {
        let filter = SparkBloom::builder(keys).fpr(fpr).build().unwrap();
        assert_eq!((filter.view().hashes(), filter.view().memory_bytes()), (hashes, 8 * words), "{keys} {fpr}");
        assert_eq!(filter.view().version(), SparkVersion::V2 { seed: 0 });
    }
    assert!(matches!(SparkBloom::builder(1).fpr(1.0).build(), Err(Error::InvalidFpr { .. })));
    assert!(matches!(SparkBloom::builder(u64::MAX).build(), Err(Error::TooLarge { .. })));
}

#[test]
fn filters_unite() {
    let version = SparkVersion::V2 { seed: -3 };
    let (mut both, mut a, mut b) = (empty(version, 3, 10), empty(version, 3, 10), empty(version, 3, 10));
    a.extend(0..20i32);
    b.extend(20..40i32);
    both.extend(0..40i32);
    a.merge(&b.view()).unwrap();
    assert_eq!(a, both);
    for other in [empty(SparkVersion::V1, 3, 10), empty(version, 4, 10), empty(version, 3, 11)] {
        assert!(matches!(a.merge(&other.view()), Err(Error::Incompatible { .. })));
        assert_eq!(a, both);
    }
}

#[test]
fn other_bytes_are_typed_errors() {
    for (version, ..) in SMALL {
        let good = empty(version, 9, 4).into_bytes();
        let refused = |bytes: &[u8]| matches!(SparkBloomView::from_bytes(bytes), Err(Error::Spark { .. }));
        assert!(!refused(&good) && (0..good.len()).all(|len| refused(&good[..len])));
        assert!(refused(&[&good[..], &[0; 8]].concat()));
        for (place, value) in [(0, 1), (3, 0), (3, 3), (4, 128), (6, 1), (7, 0)] {
            let mut bytes = good.clone();
            bytes[place] = value;
            assert!(refused(&bytes), "{place}");
        }
        let words = version.header_bytes() - 4;
        for count in [0, 3, 5, i32::MAX as u32 + 1, u32::MAX] {
            let mut bytes = good.clone();
            bytes[words..words + 4].copy_from_slice(&count.to_be_bytes());
            assert!(refused(&bytes), "{count}");
        }
    }
}

#[test]
fn a_number_of_bits_gives_the_filter_that_spark_creates() {
    for (version, longs, _) in SMALL {
        let mut filter = SparkBloom::builder(20).bits(250).version(version).build().unwrap();
        LONGS.iter().for_each(|&key| filter.insert_hash(version.hash(key)));
        assert_eq!(filter.as_bytes()[version.header_bytes()..], hex(longs));
        assert_eq!(filter.view().hashes(), 9);
    }
    let least = SparkBloom::builder(20).bits(0).build().unwrap();
    assert_eq!((least.view().hashes(), least.view().memory_bytes()), (1, 8));
    let error = SparkBloom::builder(20).bits(u64::MAX).build().unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
}

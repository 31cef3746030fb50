//! Tests of filters against sets of the standard library.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::ops::Bound;

use warpset_base::testing::tier;
use warpset_core::hash::mix;

use crate::key::sealed::Word;
use crate::{Error, KeyOf, RangeFilter, RangeKey};

/// Numbers of keys at the bounds of blocks of upper bits, hints and tasks.
const SIZES: &[usize] = &[0, 1, 2, 3, 63, 64, 65, 255, 256, 257, 511, 512, 513, 4096, 16_383, 16_384, 16_385, 40_000];

/// Sets of `n` keys: spread, dense, in clusters of `together`, with repetitions, with both ends, skewed.
fn sets(n: usize, together: u64) -> impl Iterator<Item = Vec<u64>> {
    let spread = move || (0..n as u64).map(|i| mix(i, 1));
    let clusters = (0..n as u64).map(|i| (mix(i / together, 2) >> 1) + i % together * 3).collect();
    let repeated = (0..n as u64).map(|i| mix(mix(i, 3) % (1 + n as u64 / 5), 4)).collect();
    let mut ends: Vec<u64> = spread().collect();
    ends.iter_mut().take(1).for_each(|key| *key = 0);
    ends.iter_mut().skip(1).take(1).for_each(|key| *key = u64::MAX);
    let dense = (0..n as u64).map(|i| (1 << 40) + i * 7).rev().collect();
    // Half of the keys have one outlier far away, and fall into few buckets.
    let skewed = (0..n as u64).map(|i| if i == 0 { 1 << 50 } else { i }).collect();
    [spread().collect(), dense, clusters, repeated, ends, skewed].into_iter()
}

/// Ranges around keys, beside them and elsewhere.
fn ranges(keys: &[u64]) -> Vec<(Bound<u64>, Bound<u64>)> {
    use Bound::{Excluded, Included, Unbounded};
    let mut ranges = vec![
        (Unbounded, Unbounded),
        (Included(0), Included(0)),
        (Included(u64::MAX), Unbounded),
        (Excluded(u64::MAX), Unbounded),
        (Unbounded, Excluded(0)),
        (Included(9), Excluded(3)),
        (Included(5), Excluded(5)),
        (Excluded(5), Excluded(6)),
    ];
    for (i, &key) in (0..).zip(keys).step_by(1 + keys.len() / 300) {
        let random = mix(i, 9);
        let length = random >> (random % 64);
        ranges.extend([
            (Included(key), Included(key)),
            (Excluded(key), Included(key.saturating_add(length % 64))),
            (Included(key.saturating_sub(length)), Excluded(key)),
            (Included(key.saturating_sub(length)), Included(key)),
            (Included(random), Included(random.saturating_add(length))),
            (Included(key), Unbounded),
            (Unbounded, Excluded(key)),
        ]);
    }
    ranges
}

/// Counts the keys of a set in a range, which may be inverted.
fn count(set: &BTreeSet<u64>, (start, end): (Bound<u64>, Bound<u64>)) -> u64 {
    let first = match start {
        Bound::Included(key) => key,
        Bound::Excluded(u64::MAX) => return 0,
        Bound::Excluded(key) => key + 1,
        Bound::Unbounded => 0,
    };
    let last = match end {
        Bound::Included(key) => key,
        Bound::Excluded(0) => return 0,
        Bound::Excluded(key) => key - 1,
        Bound::Unbounded => u64::MAX,
    };
    if first > last { 0 } else { set.range(first..=last).count() as u64 }
}

#[test]
fn agrees_with_a_set_of_the_standard_library() {
    for &n in SIZES {
        for (number, keys) in sets(n, 1000).enumerate() {
            let set: BTreeSet<u64> = keys.iter().copied().collect();
            for bits in [3.0, 10.5, 20.0] {
                let filter = RangeFilter::<u64>::builder().bits_per_key(bits).seed(n as u64).build_from(&keys).unwrap();
                assert_eq!(filter.len(), set.len() as u64);
                assert!(keys.iter().all(|&key| filter.contains(key)), "{n} {number} {bits}");
                let ranges = ranges(&keys);
                let answers = filter.may_contain_bulk(&ranges);
                let counts = filter.count_at_most_bulk(&ranges);
                let mut occupied = 0;
                for ((&range, answer), bound) in ranges.iter().zip(answers).zip(counts) {
                    let count = count(&set, range);
                    occupied += u64::from(count > 0);
                    let message = || format!("{n} {number} {bits} {range:?}: {count} keys, {bound}");
                    assert!(bound >= count && bound <= filter.len() && (answer || count == 0), "{}", message());
                    assert_eq!((answer, bound), (filter.may_contain(range), filter.count_at_most(range)));
                    assert_eq!(answer, bound > 0, "{}", message());
                    assert!(!filter.is_exact() || count == bound, "{}", message());
                }
                assert!(occupied > 0 || n == 0);
                let contained = filter.contains_bulk(&keys);
                assert!(contained.iter().all(|&yes| yes));
                let others: Vec<u64> = (0..100).map(|i| mix(i, 77)).collect();
                let answers = filter.contains_bulk(&others);
                assert!(others.iter().zip(answers).all(|(&other, answer)| answer == filter.contains(other)));
            }
        }
    }
}

/// Counts wrong answers for ranges of `length` keys that begin at `starts`.
fn wrong(filter: &RangeFilter<u64>, set: &BTreeSet<u64>, length: u64, starts: impl Iterator<Item = u64>) -> (u64, u64) {
    let (mut wrong, mut empty) = (0, 0);
    for start in starts {
        let Some(end) = start.checked_add(length) else { continue };
        if set.range(start..end).next().is_none() {
            empty += 1;
            wrong += u64::from(filter.may_contain(start..end));
        }
    }
    (wrong, empty)
}

/// Keys of a cluster, which have codes of others together or not at all.
const CLUSTER: u64 = 8;

#[test]
fn wrong_answers_are_within_the_bound() {
    let n = tier(5_000, 20_000);
    let bits = 12.0f64;
    for (number, keys) in sets(n, CLUSTER).enumerate() {
        let set: BTreeSet<u64> = keys.iter().copied().collect();
        for length in [1, 2, 16, 200, 600] {
            // The bound holds over seeds, for each set of keys and queries.
            let mut totals = [(0, 0); 4];
            for seed in 0..8 {
                let filter = RangeFilter::<u64>::builder().bits_per_key(bits).seed(seed).build_from(&keys).unwrap();
                let after = keys.iter().map(|key| key.wrapping_add(1));
                let before = keys.iter().map(|key| key.wrapping_sub(length));
                let between = keys.iter().map(|key| key.wrapping_add(length / 2 + 1));
                let anywhere = (0..n as u64).map(|i| mix(i, 1000 + seed));
                let counts = [
                    wrong(&filter, &set, length, after),
                    wrong(&filter, &set, length, before),
                    wrong(&filter, &set, length, between),
                    wrong(&filter, &set, length, anywhere),
                ];
                for (total, count) in totals.iter_mut().zip(counts) {
                    *total = (total.0 + count.0, total.1 + count.1);
                }
            }
            let bound = length as f64 / (bits - 2.0).exp2();
            for (kind, &(wrong, empty)) in totals.iter().enumerate() {
                let expected = bound * empty as f64;
                let most = expected + 5.0 * (CLUSTER as f64 * (1.0 + expected)).sqrt();
                assert!(
                    wrong as f64 <= most,
                    "set {number}, kind {kind}, length {length}: {wrong} of {empty}, {expected}"
                );
            }
        }
    }
}

#[test]
fn space_is_within_the_bound() {
    let n = 200_000;
    let keys: Vec<u64> = (0..n).map(|i| mix(i, 5)).collect();
    for bits in [8.0, 10.0, 12.0, 14.5, 20.0, 30.0] {
        let filter = RangeFilter::<u64>::builder().bits_per_key(bits).build_from(&keys).unwrap();
        assert!(filter.bits_per_key() < bits + 0.21, "{bits}: {}", filter.bits_per_key());
        assert!((filter.fpr_of(16) - 16.0 / (bits - 2.0).exp2()).abs() < 1e-4 || filter.fpr_of(16) == 1.0);
    }
    let dense: Vec<u64> = (0..n).map(|i| 1_000_000_007 + 3 * i).collect();
    let exact = RangeFilter::<u64>::builder().build_from(&dense).unwrap();
    assert!(exact.is_exact() && exact.bits_per_key() < 4.0 && exact.fpr() == 0.0);
    assert_eq!(exact.count_at_most(1_000_000_007 + 1..1_000_000_007 + 3001), 1000);
}

#[test]
fn bytes_depend_on_the_set_alone() {
    let keys: Vec<u64> = (0..30_000).map(|i| mix(i, 6)).collect();
    let mut sorted = keys.clone();
    sorted.sort_unstable();
    let twice = [&keys[..], &keys[..], &sorted[..100]].concat();
    for keys in [&keys, &sorted] {
        let builder = RangeFilter::<u64>::builder().seed(3);
        let filter = builder.build_from(keys).unwrap();
        assert_eq!(filter, builder.build_from(&twice).unwrap());
        for threads in [1, 2, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert_eq!(pool.install(|| builder.build_from(&sorted)).unwrap(), filter);
            assert_eq!(pool.install(|| builder.build_from(&twice)).unwrap(), filter);
        }
        assert_ne!(filter, RangeFilter::<u64>::builder().seed(4).build_from(keys).unwrap());
    }
}

/// Checks the filter of keys in ascending order, and the ranges between neighbours.
fn finds_all<K: RangeKey + ?Sized, Q: KeyOf<K> + Clone + Debug + PartialEq>(ascending: &[Q]) {
    for bits in [3.0, 16.0] {
        let filter = RangeFilter::<K>::builder().bits_per_key(bits).build_from(ascending).unwrap();
        assert!(filter.contains_bulk(ascending).iter().all(|&found| found));
        for two in ascending.windows(2) {
            let [low, high] = [two[0].clone(), two[1].clone()];
            assert!(filter.may_contain(low.clone()..high.clone()), "{low:?} {high:?}");
            assert!(filter.may_contain((Bound::Excluded(low.clone()), Bound::Included(high.clone()))));
            assert!(!filter.may_contain(high.clone()..low.clone()) || low.word().wide() == high.word().wide());
            assert!(filter.count_at_most(low..) >= 1 && filter.count_at_most(..high) >= 1);
        }
        let saved = filter.to_bytes();
        assert_eq!(RangeFilter::<K>::from_bytes(&saved).unwrap(), filter);
    }
}

#[test]
fn every_type_of_key() {
    finds_all(&[0u8, 1, 77, u8::MAX]);
    finds_all(&[0u16, 1, 77, u16::MAX]);
    finds_all(&[0u32, 1, 77, u32::MAX]);
    finds_all(&[0u64, 1, 77, u64::MAX]);
    finds_all(&[0u128, 1, 1 << 70, (1 << 70) + 3, u128::MAX]);
    finds_all(&[i8::MIN, -1, 0, i8::MAX]);
    finds_all(&[i16::MIN, -1, 0, i16::MAX]);
    finds_all(&[i32::MIN, -1, 0, i32::MAX]);
    finds_all(&[i64::MIN, -1, 0, i64::MAX]);
    finds_all(&[i128::MIN, -1, 0, 1 << 90, i128::MAX]);
    finds_all(&[f32::NEG_INFINITY, -1.5, -0.0, 0.0, 1e30, f32::INFINITY]);
    finds_all(&[f64::NEG_INFINITY, -1.5, -0.0, 0.0, 1e300, f64::INFINITY]);
    finds_all::<[u8], _>(&["", "a", "apple", "apple pie with cream and sugar", "banana"]);
    finds_all::<[u8], _>(&["long key of one kind, 1", "long key of one kind, 2"]);
    finds_all::<[u8], _>(&[vec![0u8], vec![0, 0], vec![255; 40]]);
    let wide: Vec<u128> = (0..20_000).map(|i| (u128::from(mix(i, 1)) << 64) | u128::from(mix(i, 2))).collect();
    let filter = RangeFilter::<u128>::builder().bits_per_key(14.0).build_from(&wide).unwrap();
    assert!(wide.iter().all(|&key| filter.contains(key) && filter.may_contain(key - 1..=key)));
    let wrong = wide.iter().filter(|&&key| filter.may_contain(key + 1..key + 17)).count();
    assert!(wrong < 20_000 * 16 / 4096 * 3 / 2, "{wrong}");
}

#[test]
fn impossible_settings_are_errors() {
    let build = |builder: crate::Builder<u64>| builder.build_from(&[1, u64::MAX]);
    let builder = RangeFilter::<u64>::builder();
    for bits in [f64::NAN, -1.0, 2.9, 61.0, f64::INFINITY] {
        assert!(matches!(build(builder.bits_per_key(bits)), Err(Error::InvalidBitsPerKey { .. })));
    }
    for fpr in [f64::NAN, 0.0, 1.0, -3.0, f64::INFINITY] {
        assert!(matches!(build(builder.fpr_at(fpr, 10)), Err(Error::InvalidFpr { .. })));
    }
    assert!(matches!(build(builder.fpr_at(0.1, 0)), Err(Error::InvalidRangeLength)));
    assert!(matches!(build(builder.fpr_at(1e-9, u64::MAX)), Err(Error::TooManyCodes { keys: 2, .. })));
    let most = builder.bits_per_key(60.0);
    assert!(most.build_from(&[1, 2, 1 << 59]).unwrap().is_exact());
    // Copies do not count.
    assert!(most.build_from(&[1, u64::MAX].repeat(10)).unwrap() == build(most).unwrap());
    let different: Vec<u64> = (0..17).map(|i| i << 59).collect();
    for keys in [&different[..], &[&different[..], &[0]].concat()] {
        assert!(matches!(most.build_from(keys), Err(Error::TooManyCodes { .. })));
    }
    let filter = build(builder).unwrap();
    assert!(filter.contains_bulk_into(&[1u64, 2], &mut [false]).is_err());
    assert!(filter.may_contain_bulk_into(&[1u64..2, 3..4], &mut []).is_err());
    assert!(filter.count_at_most_bulk_into(&[1u64..2, 3..4], &mut []).is_err());
}

#[test]
fn other_types_of_keys_are_refused() {
    let saved = RangeFilter::<i64>::builder().build_from(&[-5, 5, 1 << 60]).unwrap().to_bytes();
    let error = RangeFilter::<u64>::from_bytes(&saved).unwrap_err();
    assert!(matches!(error, Error::OtherKeys { expected: "u64", found: "i64", .. }), "{error}");
    assert!(RangeFilter::<i64>::from_bytes(&saved).unwrap().may_contain(-9..0));
}

#[test]
fn damaged_words_give_answers() {
    let keys: Vec<u64> = (0..3_000).map(|i| mix(i, 6)).collect();
    let filter = RangeFilter::<u64>::builder().build_from(&keys).unwrap();
    for fill in [0, u64::MAX, 0x5555_5555_5555_5555, 0x9e37_79b9_7f4a_7c15] {
        let words = vec![fill; filter.words().len()];
        let view = crate::RangeFilterView::<u64>::new(*filter.layout(), &words);
        let ranges: Vec<_> = keys.iter().map(|&key| key..key.saturating_add(key >> (key % 64))).collect();
        let answers = view.may_contain_bulk(&ranges);
        assert_eq!(answers.len(), view.count_at_most_bulk(&ranges).len());
    }
}

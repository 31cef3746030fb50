//! Tests of dynamic filters against multisets of the standard library.

use std::collections::BTreeMap;
use std::ops::RangeBounds;

use proptest::collection::vec;
use proptest::prelude::*;
use warpset_base::testing::tier;
use warpset_core::hash::mix;

use super::*;
use crate::DynamicRangeFilterView;

type Filter = DynamicRangeFilter<u64>;

/// Changes of a filter and of its model.
#[derive(Clone, Debug)]
enum Op {
    Insert(Vec<u64>),
    InsertOne(u64),
    Remove(Vec<u64>),
    RemoveOne(u64),
    Merge(Vec<u64>),
    Double,
    Halve,
    Clear,
}

/// Makes few near keys and few far ones, so that runs are long and keys repeat.
fn key() -> impl Strategy<Value = u64> {
    prop_oneof![0..600u64, (0..40u64).prop_map(|i| u64::MAX - i * i), any::<u64>().prop_map(|i| (i % 97) << 57)]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => vec(key(), 0..40).prop_map(Op::Insert),
        4 => key().prop_map(Op::InsertOne),
        3 => vec(key(), 0..40).prop_map(Op::Remove),
        3 => key().prop_map(Op::RemoveOne),
        1 => vec(key(), 0..30).prop_map(Op::Merge),
        1 => Just(Op::Double),
        1 => Just(Op::Halve),
        1 => Just(Op::Clear),
    ]
}

fn len(model: &BTreeMap<u64, u64>) -> u64 {
    model.values().sum()
}

fn insert(model: &mut BTreeMap<u64, u64>, key: u64) {
    *model.entry(key).or_default() += 1;
}

fn remove(model: &mut BTreeMap<u64, u64>, key: u64) -> bool {
    let Some(count) = model.get_mut(&key) else { return false };
    *count -= 1;
    if *count == 0 {
        model.remove(&key);
    }
    true
}

fn any_in(model: &BTreeMap<u64, u64>, range: impl RangeBounds<u64>) -> bool {
    model.range(range).next().is_some()
}

/// Ranges around keys and elsewhere, of up to three prefixes.
fn ranges(keys: impl Iterator<Item = u64>, suffix_bits: u32) -> Vec<std::ops::RangeInclusive<u64>> {
    let lengths = [0, 1, 7, (1 << suffix_bits) - 1, 1 << suffix_bits, 2 << suffix_bits];
    let around = |key: u64| {
        lengths.into_iter().flat_map(move |length: u64| {
            let (before, after) = (key.saturating_sub(1), key.saturating_add(1));
            [
                key..=key.saturating_add(length),
                key.saturating_sub(length)..=key,
                after..=after.saturating_add(length),
                before.saturating_sub(length)..=before,
            ]
        })
    };
    keys.flat_map(around).collect()
}

/// Applies changes to a filter with so low a rate that its answers are those of the model.
fn behaves_like_a_multiset(capacity: u64, length: u64, ops: Vec<Op>) -> Result<(), TestCaseError> {
    let builder = Filter::builder(capacity).fpr_at(1e-12, length).seed(7);
    let (mut filter, mut model) = (builder.build().unwrap(), BTreeMap::new());
    for op in ops {
        let before = filter.clone();
        let limit = filter.layout().limit();
        match op {
            Op::Insert(keys) => {
                let fits = len(&model) + keys.len() as u64 <= limit;
                prop_assert_eq!(filter.insert_bulk(&keys).is_ok(), fits);
                if fits {
                    keys.into_iter().for_each(|key| insert(&mut model, key));
                } else {
                    prop_assert!(filter == before);
                }
            }
            Op::InsertOne(key) => {
                let fits = len(&model) < limit;
                prop_assert_eq!(filter.insert(key).is_ok(), fits);
                if fits {
                    insert(&mut model, key);
                } else {
                    prop_assert!(filter == before);
                }
            }
            Op::Remove(keys) => {
                let removed = keys.iter().filter(|&&key| remove(&mut model, key)).count();
                prop_assert_eq!(filter.remove_bulk(&keys).unwrap(), removed as u64);
            }
            Op::RemoveOne(key) => {
                prop_assert_eq!(filter.remove(key), remove(&mut model, key));
            }
            Op::Merge(keys) => {
                // Another capacity has hashes of another length.
                let other = Filter::builder(capacity * 16).fpr_at(1e-12, length).seed(7).build_from(&keys).unwrap();
                let fits = len(&model) + keys.len() as u64 <= limit;
                prop_assert_eq!(filter.merge(&other).is_ok(), fits);
                if fits {
                    keys.into_iter().for_each(|key| insert(&mut model, key));
                } else {
                    prop_assert!(filter == before);
                }
            }
            Op::Double if limit < 1000 => filter.double().unwrap(),
            Op::Halve => {
                if filter.halve().is_err() {
                    prop_assert!(filter == before);
                }
            }
            Op::Clear => {
                filter.clear();
                model.clear();
            }
            Op::Double => {}
        }
        prop_assert_eq!(filter.len(), len(&model));
        let near = model.keys().copied().take(3).chain(model.keys().rev().copied().take(3)).chain([300, 1 << 40]);
        let ranges = ranges(near, filter.layout().ordered_bits());
        let answers = filter.may_contain_bulk(&ranges);
        for (range, answer) in ranges.into_iter().zip(answers) {
            prop_assert_eq!(answer, any_in(&model, range.clone()), "{:?}", range);
            prop_assert_eq!(answer, filter.may_contain(range));
        }
        prop_assert!(!filter.may_contain(0..) || !model.is_empty());
    }
    let keys: Vec<u64> = model.iter().flat_map(|(&key, &count)| vec![key; count as usize]).collect();
    prop_assert!(filter.contains_bulk(&keys).iter().all(|&found| found));
    // Equal contents have equal bytes, whatever changes made them.
    let mut same = filter.clone();
    same.clear();
    same.insert_bulk(&keys).unwrap();
    prop_assert!(same == filter);
    prop_assert!(Filter::from_bytes(&filter.to_bytes()).unwrap() == filter);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn like_a_multiset(capacity in 1..300u64, length in 1..2000u64, ops in vec(op(), 0..30)) {
        behaves_like_a_multiset(capacity, length, ops)?;
    }
}

/// Sets of `n` different keys: spread, dense, in clusters, at multiples that share a suffix.
fn sets(n: u64) -> [Vec<u64>; 4] {
    [
        (0..n).map(|i| mix(i, 1)).collect(),
        (0..n).map(|i| (1 << 40) + i).rev().collect(),
        (0..n).map(|i| (mix(i / 100, 2) >> 1) + i % 100 * 3).collect(),
        (0..n).map(|i| i << 8 | 17).collect(),
    ]
}

#[test]
fn full_filters_take_all_sets_of_keys() {
    let large = tier(vec![1000, 1_945], vec![1000, 20_000, 62_259]);
    for n in [vec![0, 1, 2, 63, 64, 65], large].concat() {
        for (number, keys) in sets(n).into_iter().enumerate() {
            for length in [1, 2, 100, 256, 5000] {
                let builder = Filter::builder(n).fpr_at(0.01, length);
                let filter = builder.build_from(&keys).unwrap();
                let mut grown = builder.build().unwrap();
                for keys in keys.chunks(1 + keys.len() / 3) {
                    grown.insert_bulk(keys).unwrap();
                }
                assert!(filter == grown && filter.len() == n, "{number} {n} {length}");
                assert!(filter.contains_bulk(&keys).iter().all(|&found| found));
                let view: DynamicRangeFilterView<'_, u64> = filter.view();
                let ranges = ranges(keys.iter().copied().take(100), filter.layout().ordered_bits());
                for (range, answer) in ranges.iter().zip(view.may_contain_bulk(&ranges)) {
                    assert!(answer || !keys.iter().any(|key| range.contains(key)), "{number} {n} {length} {range:?}");
                    assert_eq!(answer, view.may_contain(range.clone()));
                }
                assert_eq!(grown.remove_bulk(&keys).unwrap(), n);
                assert!(grown.is_empty() && !grown.may_contain(0..) && grown == builder.build().unwrap());
            }
        }
    }
}

#[test]
fn wrong_answers_are_within_the_bound() {
    let (n, seeds) = tier((4_000, 4), (20_000, 8));
    for (number, keys) in sets(n).into_iter().enumerate() {
        let model: BTreeMap<u64, u64> = keys.iter().map(|&key| (key, 1)).collect();
        for length in [1, 2, 16, 64, 200, 600] {
            // The bound holds over seeds, for each set of keys and queries.
            let (mut wrong, mut expected, mut empty) = ([0.0f64; 4], [0.0; 4], 0);
            for seed in 0..seeds {
                let filter = Filter::builder(n).fpr_at(0.01, 64).seed(seed).build_from(&keys).unwrap();
                assert!(filter.fpr_of(64) <= 0.01 && filter.fpr_of(65) > filter.fpr_of(64));
                let starts: [Vec<u64>; 4] = [
                    keys.iter().map(|key| key.wrapping_add(1)).collect(),
                    keys.iter().map(|key| key.wrapping_sub(length)).collect(),
                    // Ranges with the suffixes of the keys, elsewhere.
                    keys.iter().map(|key| (key ^ mix(seed, 5) << 20).wrapping_sub(length / 2)).collect(),
                    (0..n).map(|i| mix(i, 1000 + seed)).collect(),
                ];
                for (kind, starts) in starts.iter().enumerate() {
                    for &start in starts {
                        let Some(end) = start.checked_add(length) else { continue };
                        if !any_in(&model, start..end) {
                            wrong[kind] += f64::from(u8::from(filter.may_contain(start..end)));
                            expected[kind] += filter.fpr_of(length);
                            empty += 1;
                        }
                    }
                }
            }
            assert!(empty > 0);
            for kind in 0..4 {
                // Up to 64 ranges of a prefix are wrong together.
                let most = expected[kind] + 5.0 * (64.0 * (1.0 + expected[kind])).sqrt();
                assert!(wrong[kind] <= most, "{number} {kind} {length}: {} of {}", wrong[kind], expected[kind]);
            }
        }
    }
}

#[test]
fn space_is_within_the_bound() {
    for (keys, fpr, length) in [(62_000u64, 0.01, 16), (498_000, 0.001, 64), (249_000, 0.01, 1), (1_992_000, 0.03, 256)]
    {
        let layout = Filter::builder(keys).fpr_at(fpr, length).layout().unwrap();
        let per_slot = 64.0 * layout.words() as f64 / layout.quotients() as f64;
        // One bit more for rates that are no power of two, and 4 % for the overflow region.
        let bound = ((length as f64 / fpr).log2() + 4.0) * 1.04;
        assert!(per_slot <= bound, "{keys} {fpr} {length}: {per_slot}, {bound}");
    }
}

#[test]
fn long_ranges_are_taken_for_occupied() {
    let mut filter = Filter::builder(1000).fpr_at(1e-6, 256).build().unwrap();
    assert!(!filter.may_contain(0..) && filter.may_contain_bulk(&[0..9, 0..u64::MAX]) == [false; 2]);
    filter.insert(1 << 50).unwrap();
    assert!(!filter.may_contain(0..1 << 19) && filter.may_contain(0..(1 << 20) + 1) && filter.may_contain(0..));
    assert_eq!(filter.may_contain_bulk(&[0..1 << 12, 0..1 << 19, 0..1 << 30, 9..9]), [false, false, true, false]);
    let coarse = Filter::builder(1000).fpr_at(0.5, 4).build_from(&[1 << 50]).unwrap();
    assert_eq!(coarse.may_contain_bulk(&[0..4, 0..64]), [false, true]);
    assert!(coarse.may_contain(0..64));
    assert_eq!((coarse.fpr_of(64), filter.fpr_of((1 << 20) + 2)), (1.0, 1.0));
    assert!(filter.fpr_of(1 << 19) < 0.01);
}

/// Checks filters of keys in ascending order.
fn finds_all<K: RangeKey + ?Sized, Q: KeyOf<K> + Clone + std::fmt::Debug>(ascending: &[Q]) {
    let mut filter = DynamicRangeFilter::<K>::builder(10).fpr_at(1e-6, 32).build().unwrap();
    ascending.iter().for_each(|key| filter.insert(key.clone()).unwrap());
    assert!(filter == DynamicRangeFilter::<K>::builder(10).fpr_at(1e-6, 32).build_from(ascending).unwrap());
    assert!(filter.contains_bulk(ascending).iter().all(|&found| found));
    for two in ascending.windows(2) {
        assert!(filter.may_contain(two[0].clone()..two[1].clone()), "{two:?}");
    }
    assert!(DynamicRangeFilter::<K>::from_bytes(&filter.to_bytes()).unwrap() == filter);
    assert!(ascending.iter().all(|key| filter.remove(key.clone())) && filter.is_empty());
}

#[test]
fn every_type_of_key() {
    finds_all(&[0u8, 1, 77, u8::MAX]);
    finds_all(&[0u64, 1, 77, u64::MAX]);
    finds_all(&[0u128, 1, 1 << 70, (1 << 70) + 3, u128::MAX]);
    finds_all(&[i32::MIN, -1, 0, i32::MAX]);
    finds_all(&[i128::MIN, -1, 0, 1 << 90, i128::MAX]);
    finds_all(&[f64::NEG_INFINITY, -1.5, -0.0, 0.0, 1e300, f64::INFINITY]);
    finds_all::<[u8], _>(&["", "a", "apple", "apple pie with cream and sugar", "banana"]);
    let filter = DynamicRangeFilter::<i64>::builder(10).build_from(&[-5i64]).unwrap();
    assert!(filter.may_contain(-9..3) && !filter.may_contain(-4..40));
}

#[test]
fn impossible_settings_and_other_files_are_errors() {
    let builder = Filter::builder(1000);
    for fpr in [f64::NAN, 0.0, 1.0, -3.0, f64::INFINITY] {
        assert!(matches!(builder.fpr_at(fpr, 10).build(), Err(Error::InvalidFpr { .. })));
    }
    assert!(matches!(builder.fpr_at(0.1, 0).build(), Err(Error::InvalidRangeLength)));
    // Ranges of more than 4,096 prefixes get a "yes", and so do those of rates near 1.
    let always = [(0.01, 2_000_000), (0.99, 25_600)];
    let unreachable = [(1e-17, 64), (1e-13, 1 << 50), (1e-300, 1), (5e-324, 1000), (0.5, u64::MAX)];
    for (fpr, length) in unreachable.into_iter().chain(always) {
        assert!(matches!(builder.fpr_at(fpr, length).build(), Err(Error::UnreachableFpr { .. })), "{fpr} {length}");
    }
    assert!(matches!(builder.max_load(1.0).build(), Err(Error::Slots(_))));
    assert!(matches!(Filter::builder(u64::MAX).build(), Err(Error::Slots(_))));

    let mut filter = builder.build_from(&[1, 2, 3]).unwrap();
    assert!(filter.contains_bulk_into(&[1u64, 2], &mut [false]).is_err());
    assert!(filter.may_contain_bulk_into(&[1u64..2, 3..4], &mut []).is_err());
    let before = filter.clone();
    for other in [builder.seed(1), builder.fpr_at(0.01, 2), builder.fpr_at(0.9, 100)] {
        assert!(matches!(filter.merge(&other.build_from(&[7]).unwrap()), Err(Error::Slots(_))), "{other:?}");
    }
    assert!(filter == before);
    while filter.double().is_ok() {}
    assert!(filter.contains_bulk(&[1, 2, 3]) == [true; 3] && filter.layout().limit() > before.layout().limit());

    let saved = before.to_bytes();
    let error = DynamicRangeFilter::<i64>::from_bytes(&saved).unwrap_err();
    assert!(
        matches!(error, Error::OtherKeys { structure: "DynamicRangeFilter", expected: "i64", found: "u64" }),
        "{error}"
    );
    assert!(matches!(crate::RangeFilter::<u64>::from_bytes(&saved), Err(Error::File(_))));
    let words: Vec<u64> = bytemuck::pod_collect_to_vec(&saved);
    let view = DynamicRangeFilterView::<u64>::from_bytes(bytemuck::cast_slice(&words)).unwrap();
    assert!(view.may_contain(0..=1) && !view.may_contain(4..9) && view.len() == 3);
}

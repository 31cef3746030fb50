//! Exact filters against maps of keys.

use std::collections::{BTreeMap, HashMap, HashSet};

use proptest::prelude::*;
use warpset_base::filter::{Count, TestAndInsert};
use warpset_core::bits::lowest;
use warpset_core::hash::mix;

use crate::{
    Builder, Duplicates, Error, Filter, Insert, QuotientFilter, RankSelect, RankSelectQuotientFilter, Remove, SlotKind,
    Standard, StandardQuotientFilter,
};

type Model = BTreeMap<u64, u64>;

fn check<S: SlotKind>(filter: &QuotientFilter<S>, model: &Model, asked: &[u64]) -> Result<(), TestCaseError> {
    let mut counts: Vec<(u64, u64)> = filter.key_counts().unwrap().collect();
    counts.sort();
    prop_assert!(counts.iter().copied().eq(model.iter().map(|(&key, &count)| (key, count))));
    let answers: Vec<bool> = asked.iter().map(|key| model.contains_key(key)).collect();
    let copies: Vec<u64> = asked.iter().map(|key| model.get(key).copied().unwrap_or(0)).collect();
    prop_assert_eq!(filter.contains_bulk(asked)?, answers.clone());
    prop_assert_eq!(filter.count_bulk(asked)?, copies.clone());
    prop_assert!(asked.iter().zip(&answers).all(|(&key, &yes)| filter.contains(key) == yes));
    // Keys of other types.
    let wide: Vec<u128> = asked.iter().map(|&key| key.into()).collect();
    prop_assert_eq!(filter.contains_bulk(&wide)?, answers.clone());
    prop_assert_eq!(filter.count_bulk(&wide)?, copies);
    let beyond: Vec<u128> = asked.iter().map(|&key| u128::from(key) | 1 << 64).collect();
    prop_assert_eq!(filter.count_contained_bulk(&beyond)?, 0);
    prop_assert!(filter.fpr() == 0.0 && !filter.contains("north"));
    Ok(())
}

fn exact<S: SlotKind>(
    (q, bits): (u32, u32),
    (duplicates, seed): (Duplicates, u64),
    steps: Vec<(bool, Vec<u64>)>,
) -> Result<(), TestCaseError> {
    let builder = Builder::<S>::with_bits(q, bits - q).max_load(0.99).duplicates(duplicates).seed(seed).exact(bits);
    let mut filter = builder.build().unwrap();
    let mut model = Model::new();
    let mut asked: Vec<u64> = vec![0, 1, lowest(bits), lowest(bits) / 2, lowest(bits).wrapping_add(1), !0];
    for (removes, keys) in steps {
        let keys: Vec<u64> = keys.into_iter().map(|key| key & lowest(bits)).collect();
        asked.extend(&keys);
        if removes {
            filter.remove_bulk(&keys)?;
            for key in &keys {
                if let Some(count) = model.get_mut(key) {
                    *count -= 1;
                }
                model.retain(|_, count| *count > 0);
            }
        } else if filter.insert_bulk(&keys).is_ok() {
            for &key in &keys {
                let count = model.entry(key).or_default();
                *count = if duplicates == Duplicates::Dropped { 1 } else { *count + 1 };
            }
        }
        check(&filter, &model, &asked)?;
    }
    prop_assert!(QuotientFilter::<S>::from_bytes(&filter.to_bytes()).unwrap() == filter);
    if q + 1 < bits && filter.double().is_ok() {
        check(&filter, &model, &asked)?;
    }
    Ok(())
}

fn steps() -> impl Strategy<Value = Vec<(bool, Vec<u64>)>> {
    let key = prop_oneof![any::<u64>(), 0..40u64];
    prop::collection::vec((any::<bool>(), prop::collection::vec(key, 0..30)), 1..8)
}

fn shape() -> impl Strategy<Value = (u32, u32)> {
    (3..9u32, prop::sample::select(vec![4u32, 7, 12, 32, 33, 62, 63, 64])).prop_map(|(q, bits)| (q.min(bits - 1), bits))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn exact_standard_filters(shape in shape(), kept: bool, seed in 0..3u64, steps in steps()) {
        let duplicates = if kept { Duplicates::Kept } else { Duplicates::Dropped };
        exact::<Standard>(shape, (duplicates, seed), steps)?;
    }

    #[test]
    fn exact_rank_select_filters(shape in shape(), which in 0..3, seed in 0..3u64, steps in steps()) {
        let duplicates = [Duplicates::Dropped, Duplicates::Kept, Duplicates::Counted][which as usize];
        exact::<RankSelect>(shape, (duplicates, seed), steps)?;
    }
}

#[test]
fn keys_that_do_not_fit_are_refused() {
    let builder = Builder::<RankSelect>::with_capacity(1000).exact(40).duplicates(Duplicates::Counted);
    let mut filter = builder.build_from(&[1u64, 2, 2]).unwrap();
    let before = filter.clone();
    let wide = 1u64 << 40;
    assert!(matches!(filter.insert(wide), Err(Error::KeyTooWide { bits: 40 })));
    assert!(matches!(filter.insert(-1i32), Err(Error::KeyTooWide { .. })));
    assert!(matches!(filter.insert("one"), Err(Error::KeyTooWide { .. })));
    assert!(matches!(filter.insert_bulk(&[3, wide]), Err(Error::KeyTooWide { .. })));
    assert!(matches!(filter.insert_counted(wide, 3), Err(Error::KeyTooWide { .. })));
    assert!(matches!(filter.insert_counted_bulk(&[3, wide], &[1, 1]), Err(Error::KeyTooWide { .. })));
    assert!(matches!(builder.build_from(&[wide]), Err(Error::KeyTooWide { .. })));
    assert!(
        !filter.remove(wide) && filter.remove_bulk(&[wide, wide]).unwrap() == 0 && filter.remove_counted(wide, 9) == 0
    );
    assert!(filter == before && filter.count(2u8) == 2);

    let hashed = Builder::<RankSelect>::with_bits(10, 30).duplicates(Duplicates::Counted).build().unwrap();
    assert!(matches!(hashed.keys().map(|_| ()), Err(Error::NotExact)));
    assert!(matches!(filter.merge(&hashed), Err(Error::DifferentKeyBits { left: Some(40), right: None })));
    let mut other = builder.build_from(&[2u64, 7]).unwrap();
    other.insert_counted_bulk(&[7u64, 9, 7], &[10, 0, 1 << 33]).unwrap();
    filter.merge(&other).unwrap();
    assert_eq!((filter.count(2u64), filter.count(7u64), filter.len()), (3, (1 << 33) + 11, (1 << 33) + 15));
    let mut keys: Vec<(u64, u64)> = filter.key_counts().unwrap().collect();
    keys.sort();
    assert_eq!(keys, [(1, 1), (2, 3), (7, (1 << 33) + 11)]);
}

/// Checks answers and errors of batches of few keys against a `HashMap` from keys to copies, on any executor.
pub(crate) fn test_and_insert_behaves_like_a_map<F>(mut filter: F, duplicates: Duplicates)
where
    F: TestAndInsert<Error = Error> + Count,
{
    let mut model: HashMap<u64, u64> = HashMap::new();
    for batch in 0..12u64 {
        let keys: Vec<u64> = (0..20).map(|i| mix(i, batch) % (30 * batch + 10)).collect();
        let mut expected = Vec::new();
        for &key in &keys {
            let copies = model.entry(key).or_default();
            expected.push(*copies == 0);
            *copies = if duplicates == Duplicates::Dropped { 1 } else { *copies + 1 };
        }
        assert_eq!(filter.test_and_insert_bulk(&keys).unwrap(), expected);
        let counts: Vec<u64> = keys.iter().map(|key| model[key]).collect();
        assert_eq!(filter.count_bulk(&keys).unwrap(), counts);
    }
    // A key too wide for an exact filter is refused before anything is inserted.
    let before = filter.count_bulk(&[5000u64]).unwrap();
    assert!(matches!(filter.test_and_insert_bulk(&[5000u64, 1 << 40]), Err(Error::KeyTooWide { .. })));
    assert_eq!(filter.count_bulk(&[5000u64]).unwrap(), before);
    // One key at a time.
    assert!(!filter.contains(5001u64).unwrap());
    filter.insert(5001u64).unwrap();
    assert!(filter.contains(5001u64).unwrap());
    assert!(filter.test_and_insert_bulk::<u64>(&[]).unwrap().is_empty());
}

#[test]
fn test_and_insert_says_what_was_new() {
    for duplicates in [Duplicates::Dropped, Duplicates::Kept, Duplicates::Counted] {
        let builder = RankSelectQuotientFilter::builder(500).duplicates(duplicates).exact(32);
        test_and_insert_behaves_like_a_map(builder.build().unwrap(), duplicates);
        if duplicates != Duplicates::Counted {
            let builder = StandardQuotientFilter::builder(500).duplicates(duplicates).exact(32);
            test_and_insert_behaves_like_a_map(builder.build().unwrap(), duplicates);
            let mut one_by_one = builder.build().unwrap();
            let mut seen = HashSet::new();
            for key in (0..300).map(|i| mix(i, 3) % 200) {
                assert_eq!(one_by_one.test_and_insert(key).unwrap(), seen.insert(key));
            }
        }
    }
}

/// Checks that removals by numbers leave the same filter, in place and by rewriting.
#[test]
fn copies_are_removed_in_batches() {
    for duplicates in [Duplicates::Dropped, Duplicates::Kept, Duplicates::Counted] {
        for n in [3u64, 400] {
            let builder = RankSelectQuotientFilter::builder(1200).duplicates(duplicates).exact(32);
            let inserted: Vec<u64> = (0..1200).map(|i| mix(i, 5) % 600).collect();
            let mut filter = builder.build_from(&inserted).unwrap();
            let keys: Vec<u64> = (0..n).map(|i| mix(i, 6) % 700).chain([1 << 50]).collect();
            let copies: Vec<u64> = (0..=n).map(|i| if i % 50 == 7 { u64::MAX } else { i % 4 }).collect();
            let mut one_by_one = filter.clone();
            let expected: u64 = keys.iter().zip(&copies).map(|(&key, &n)| one_by_one.remove_counted(key, n)).sum();
            assert_eq!(filter.remove_counted_bulk(&keys, &copies).unwrap(), expected);
            assert!(filter == one_by_one, "{duplicates:?} {n}");
            assert!(matches!(filter.remove_counted_bulk(&keys, &copies[1..]), Err(Error::LengthMismatch(_))));
            assert!(filter == one_by_one);
        }
    }
}

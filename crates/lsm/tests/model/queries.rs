//! Every query of a dictionary, of a snapshot and of a view, against `BTreeMap`.

use std::collections::BTreeMap;
use std::ops::Bound;

use warpset_lsm::{Bitmap, OrderedKey, Ranges, Value};

use super::FromNumber;

/// Every query of any form of dictionary.
pub struct Queries<K, V> {
    pub get: Vec<Option<V>>,
    pub get_bulk: Vec<Option<V>>,
    pub values: (Vec<V>, Bitmap),
    pub contains: Vec<bool>,
    pub count_contained: usize,
    pub ranges: Ranges<K, V>,
    pub counts: Vec<u64>,
    pub count: Vec<u64>,
    /// By `next`, and by `fold`.
    pub range: Vec<[Vec<(K, V)>; 2]>,
    pub successors: Vec<Option<(K, V)>>,
    pub predecessors: Vec<Option<(K, V)>>,
    pub first: Option<(K, V)>,
    pub last: Option<(K, V)>,
    pub len: u64,
    pub is_empty: bool,
    pub resident_len: u64,
    pub memory_bytes: u64,
}

macro_rules! ask {
    ($of:expr, $keys:expr, $ranges:expr) => {{
        let (of, keys, ranges) = (&$of, $keys, $ranges);
        let mut values = vec![V::NONE; keys.len()];
        let has_value = of.get_bulk_into(keys, &mut values).unwrap();
        let mut contains = vec![false; keys.len()];
        of.contains_bulk_into(keys, &mut contains).unwrap();
        assert_eq!(contains, of.contains_bulk(keys));
        assert_eq!(contains, of.contains_bitmap_bulk(keys).iter().collect::<Vec<_>>());
        assert!(keys.iter().zip(&contains).all(|(&key, &answer)| of.contains(key) == answer));
        assert!(keys.iter().zip(of.successor_bulk(keys)).all(|(&key, answer)| of.successor(key) == answer));
        assert!(keys.iter().zip(of.predecessor_bulk(keys)).all(|(&key, answer)| of.predecessor(key) == answer));
        let found = of.range_bulk(ranges).unwrap();
        let mut again = of.range_bulk(&ranges[..ranges.len() / 2]).unwrap();
        of.range_bulk_into(ranges, &mut again).unwrap();
        assert_eq!(found, again);
        assert!(of.iter().eq(of.range(..)) && of.into_iter().count() as u64 == of.len());
        $crate::queries::Queries {
            get: keys.iter().map(|&key| of.get(key)).collect(),
            get_bulk: of.get_bulk(keys),
            values: (values, has_value),
            contains,
            count_contained: of.count_contained_bulk(keys),
            ranges: found,
            counts: of.count_range_bulk(ranges),
            count: ranges.iter().map(|&range| of.count_range(range)).collect(),
            range: ranges
                .iter()
                .map(|&range| [of.range(range).collect(), $crate::queries::folded(of.range(range))])
                .collect(),
            successors: of.successor_bulk(keys),
            predecessors: of.predecessor_bulk(keys),
            first: of.first_key_value(),
            last: of.last_key_value(),
            len: of.len(),
            is_empty: of.is_empty(),
            resident_len: of.resident_len(),
            memory_bytes: of.memory_bytes(),
        }
    }};
}
pub(crate) use ask;

pub fn folded<T>(items: impl Iterator<Item = T>) -> Vec<T> {
    items.fold(Vec::new(), |mut all, item| {
        all.push(item);
        all
    })
}

/// Range by its ends.
type Ends<K> = (Bound<K>, Bound<K>);

/// Returns queries: every key of the model, its neighbours, and others.
pub fn questions<K: OrderedKey + FromNumber, V>(model: &BTreeMap<K, V>) -> (Vec<K>, Vec<Ends<K>>) {
    let mut keys = vec![K::MIN, K::MAX, K::from_number(20)];
    for &key in model.keys() {
        keys.extend([Some(key), key.above(), key.below()].into_iter().flatten());
    }
    let mut ranges = vec![(Bound::Unbounded, Bound::Unbounded), (Bound::Excluded(K::MAX), Bound::Unbounded)];
    for (i, &key) in keys.iter().enumerate().step_by(3) {
        let other = keys[keys.len() - 1 - i / 2];
        ranges.push((Bound::Included(key), Bound::Included(other)));
        ranges.push((Bound::Excluded(key), Bound::Excluded(other)));
        ranges.push((Bound::Included(other), Bound::Unbounded));
        ranges.push((Bound::Unbounded, Bound::Excluded(key)));
    }
    (keys, ranges)
}

/// Returns a range of the model; ranges that end before they start are empty, while `BTreeMap` panics on them.
pub fn model_range<K: OrderedKey, V: Value>(model: &BTreeMap<K, V>, range: Ends<K>) -> Vec<(K, V)> {
    let inside = |key: &K| std::ops::RangeBounds::contains(&range, key);
    model.iter().filter(|(key, _)| inside(key)).map(|(&key, &value)| (key, value)).collect()
}

pub fn agrees<K: OrderedKey + FromNumber, V: Value>(
    model: &BTreeMap<K, V>,
    keys: &[K],
    ranges: &[Ends<K>],
    asked: Queries<K, V>,
) {
    let values: Vec<Option<V>> = keys.iter().map(|key| model.get(key).copied()).collect();
    assert_eq!(asked.get_bulk, values);
    assert_eq!(asked.get, values);
    let found = asked.values.1.iter().zip(&asked.values.0).map(|(found, &value)| found.then_some(value));
    assert!(found.eq(values.iter().copied()));
    assert_eq!(asked.contains, values.iter().map(Option::is_some).collect::<Vec<_>>());
    assert_eq!(asked.count_contained, values.iter().flatten().count());
    for (i, &range) in ranges.iter().enumerate() {
        let expected = model_range(model, range);
        assert_eq!(asked.counts[i], expected.len() as u64, "{range:?}");
        assert_eq!(asked.count[i], expected.len() as u64, "{range:?}");
        let (keys, values) = asked.ranges.get(i);
        assert!(keys.iter().copied().zip(values.iter().copied()).eq(expected.iter().copied()), "{range:?}");
        assert_eq!(asked.range[i], [expected.clone(), expected], "{range:?}");
    }
    let pair = |(&key, &value): (&K, &V)| (key, value);
    for (i, &key) in keys.iter().enumerate() {
        let after = (Bound::Excluded(key), Bound::Unbounded);
        assert_eq!(asked.successors[i], model.range(after).next().map(pair), "after {key:?}");
        assert_eq!(asked.predecessors[i], model.range(..key).next_back().map(pair), "before {key:?}");
    }
    assert_eq!(asked.first, model.first_key_value().map(pair));
    assert_eq!(asked.last, model.last_key_value().map(pair));
    assert_eq!((asked.len, asked.is_empty), (model.len() as u64, model.is_empty()));
    assert!(asked.resident_len >= asked.len && asked.memory_bytes >= asked.resident_len * size_of::<K>() as u64);
}

//! Dictionaries against `BTreeMap`: random streams of batches over few keys, so that copies and tombstones abound, with
//! cleanups at random, and every query after every few batches.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use warpset_base::filter::LengthMismatch;

use proptest::prelude::*;
use warpset_lsm::{Bitmap, CleanupPolicy, Error, Lsm, OrderedKey, Ranges, Snapshot, SortedArray, Value, View};

/// What a batch does.
#[derive(Clone, Debug)]
enum Op {
    Insert(Vec<(u64, u64)>),
    Remove(Vec<u64>),
    /// Key, value, whether it is removed.
    Mixed(Vec<(u64, u64, bool)>),
    One(u64, u64),
    RemoveOne(u64),
    /// The key, and what its value becomes.
    Update(u64, Option<u64>),
    RemoveRange(u64, u64),
    /// Keeps pairs whose keys are no multiple of this number.
    Retain(u64),
    Extend(Vec<(u64, u64)>),
    Cleanup,
    Clear,
}

/// Few keys: the ends of the range, and a handful in between.
fn key() -> impl Strategy<Value = u64> {
    prop_oneof![1 => Just(0), 1 => Just(u64::MAX), 6 => 1..40u64, 2 => 1..5000u64]
}

fn op(longest: usize) -> impl Strategy<Value = Op> {
    let pairs = prop::collection::vec((key(), any::<u64>()), 0..longest);
    prop_oneof![
        8 => pairs.prop_map(Op::Insert),
        4 => prop::collection::vec(key(), 0..longest).prop_map(Op::Remove),
        5 => prop::collection::vec((key(), any::<u64>(), any::<bool>()), 0..longest).prop_map(Op::Mixed),
        2 => (key(), any::<u64>()).prop_map(|(key, value)| Op::One(key, value)),
        1 => key().prop_map(Op::RemoveOne),
        2 => (key(), any::<Option<u64>>()).prop_map(|(key, value)| Op::Update(key, value)),
        2 => (key(), key()).prop_map(|(least, end)| Op::RemoveRange(least, end)),
        1 => (2..9u64).prop_map(Op::Retain),
        1 => prop::collection::vec((key(), any::<u64>()), 0..longest).prop_map(Op::Extend),
        1 => Just(Op::Cleanup),
        1 => Just(Op::Clear),
    ]
}

fn policy() -> impl Strategy<Value = CleanupPolicy> {
    prop_oneof![
        Just(CleanupPolicy::Manual),
        Just(CleanupPolicy::StaleShare(0.5)),
        Just(CleanupPolicy::StaleShare(0.9)),
        (1..7u64).prop_map(CleanupPolicy::EveryBatches),
    ]
}

/// Keys and values of the types under test, from the numbers of an [`Op`].
trait FromNumber: Copy {
    fn from_number(number: u64) -> Self;
}
impl FromNumber for u64 {
    fn from_number(number: u64) -> u64 {
        number
    }
}
impl FromNumber for u32 {
    /// Small numbers and the largest one stay what they are.
    fn from_number(number: u64) -> u32 {
        (number as u32).max((number >> 32) as u32)
    }
}
impl FromNumber for i64 {
    /// The ends of the range stay what they are, and some of the small numbers become negative.
    fn from_number(number: u64) -> i64 {
        match number {
            0 => i64::MIN,
            u64::MAX => i64::MAX,
            _ => number as i64 - 20,
        }
    }
}
impl FromNumber for i32 {
    fn from_number(number: u64) -> i32 {
        i64::from_number(number).clamp(i32::MIN.into(), i32::MAX.into()) as i32
    }
}
impl FromNumber for u128 {
    /// Keys that differ in their high halves only, in their low halves only, and in both.
    fn from_number(number: u64) -> u128 {
        match number {
            u64::MAX => u128::MAX,
            _ => u128::from(number / 5) << 64 | u128::from(number % 5) << 61,
        }
    }
}
impl<const LEN: usize> FromNumber for [u8; LEN] {
    /// The lowest bytes of the number, repeated; the ends of the range stay what they are.
    fn from_number(number: u64) -> Self {
        std::array::from_fn(|i| number.to_be_bytes()[(i + 16 - LEN % 8) % 8])
    }
}
impl FromNumber for [f64; 3] {
    fn from_number(number: u64) -> Self {
        [number as f64, -0.5, number as f64 / 3.0]
    }
}
impl FromNumber for () {
    fn from_number(_: u64) {}
}

/// Every query, of whatever has it.
struct Queries<K, V> {
    get: Vec<Option<V>>,
    get_bulk: Vec<Option<V>>,
    values: (Vec<V>, Bitmap),
    contains: Vec<bool>,
    count_contained: usize,
    ranges: Ranges<K, V>,
    counts: Vec<u64>,
    count: Vec<u64>,
    /// By `next`, and by `fold`.
    range: Vec<[Vec<(K, V)>; 2]>,
    successors: Vec<Option<(K, V)>>,
    predecessors: Vec<Option<(K, V)>>,
    first: Option<(K, V)>,
    last: Option<(K, V)>,
    len: u64,
    is_empty: bool,
    resident_len: u64,
    memory_bytes: u64,
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
        Queries {
            get: keys.iter().map(|&key| of.get(key)).collect(),
            get_bulk: of.get_bulk(keys),
            values: (values, has_value),
            contains,
            count_contained: of.count_contained_bulk(keys),
            ranges: found,
            counts: of.count_range_bulk(ranges),
            count: ranges.iter().map(|&range| of.count_range(range)).collect(),
            range: ranges.iter().map(|&range| [of.range(range).collect(), folded(of.range(range))]).collect(),
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

fn folded<T>(items: impl Iterator<Item = T>) -> Vec<T> {
    items.fold(Vec::new(), |mut all, item| {
        all.push(item);
        all
    })
}

/// A range by its ends.
type Ends<K> = (Bound<K>, Bound<K>);

/// What is asked: every key of the model, its neighbours, and others.
fn questions<K: OrderedKey + FromNumber, V>(model: &BTreeMap<K, V>) -> (Vec<K>, Vec<Ends<K>>) {
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

/// `BTreeMap` panics on ranges that end before they start; ours are empty.
fn model_range<K: OrderedKey, V: Value>(model: &BTreeMap<K, V>, range: Ends<K>) -> Vec<(K, V)> {
    let inside = |key: &K| std::ops::RangeBounds::contains(&range, key);
    model.iter().filter(|(key, _)| inside(key)).map(|(&key, &value)| (key, value)).collect()
}

fn agrees<K: OrderedKey + FromNumber, V: Value>(
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

/// What an [`Op`] does to the model.
fn change<K: OrderedKey + FromNumber, V: Value + FromNumber>(model: &mut BTreeMap<K, V>, op: &Op) {
    let (key, value) = (K::from_number, V::from_number);
    match op {
        Op::Insert(pairs) => model.extend(pairs.iter().map(|&(k, v)| (key(k), value(v)))),
        Op::Remove(keys) => model.retain(|k, _| !keys.iter().any(|&gone| key(gone) == *k)),
        Op::Mixed(items) => {
            model.extend(items.iter().filter(|item| !item.2).map(|&(k, v, _)| (key(k), value(v))));
            model.retain(|k, _| !items.iter().any(|item| item.2 && key(item.0) == *k));
        }
        Op::One(k, v) => model.extend([(key(*k), value(*v))]),
        Op::RemoveOne(k) => model.retain(|other, _| *other != key(*k)),
        Op::Update(k, Some(v)) => model.extend([(key(*k), value(*v))]),
        Op::Update(k, None) => model.retain(|other, _| *other != key(*k)),
        Op::RemoveRange(least, end) => model.retain(|k, _| *k < key(*least) || *k >= key(*end)),
        Op::Retain(of) => model.retain(|k, _| k.to_u64() % of != 0),
        Op::Extend(pairs) => model.extend(pairs.iter().map(|&(k, v)| (key(k), value(v)))),
        Op::Cleanup => {}
        Op::Clear => model.clear(),
    }
}

/// What an [`Op`] does to a dictionary.
macro_rules! apply {
    ($to:expr, $op:expr, $cleanup:expr) => {{
        let (key, value) = (K::from_number, V::from_number);
        match $op {
            Op::Insert(pairs) => {
                let (keys, values): (Vec<K>, Vec<V>) = pairs.iter().map(|&(k, v)| (key(k), value(v))).unzip();
                $to.insert_bulk(&keys, &values)?;
            }
            Op::Remove(keys) => $to.remove_bulk(&keys.iter().map(|&k| key(k)).collect::<Vec<_>>())?,
            Op::Mixed(items) => {
                let keys: Vec<K> = items.iter().map(|item| key(item.0)).collect();
                let values: Vec<V> = items.iter().map(|item| value(item.1)).collect();
                $to.update_bulk(&keys, &values, &items.iter().map(|item| item.2).collect::<Vec<_>>())?;
            }
            Op::One(k, v) => $to.insert(key(*k), value(*v))?,
            Op::RemoveOne(k) => $to.remove(key(*k))?,
            Op::Update(k, v) => {
                let before = $to.get(key(*k));
                let change = |asked| {
                    assert_eq!(asked, before);
                    v.map(value)
                };
                assert_eq!($to.update(key(*k), change)?, v.map(value));
            }
            Op::RemoveRange(least, end) => {
                let there = $to.count_range(key(*least)..key(*end));
                assert_eq!($to.remove_range(key(*least)..key(*end))?, there);
            }
            Op::Retain(of) => {
                let mut asked = Vec::new();
                let pairs: Vec<(K, V)> = $to.iter().collect();
                $to.retain(|k, v| {
                    asked.push((k, v));
                    k.to_u64() % of != 0
                })?;
                assert_eq!(asked, pairs);
            }
            Op::Extend(pairs) => $to.extend(pairs.iter().map(|&(k, v)| (key(k), value(v)))),
            Op::Cleanup => $cleanup,
            Op::Clear => $to.clear(),
        }
    }};
}

/// What a stream of batches is checked on besides the tree.
trait Others<K, V>: Sized {
    fn new() -> Result<Self, Error>;
    fn apply(&mut self, op: &Op) -> Result<(), Error>;
    /// The tree and the others after a few batches.
    fn check(&mut self, lsm: &Lsm<K, V>, model: &BTreeMap<K, V>);
    /// The tree and the others at the end.
    fn finish(self, lsm: &Lsm<K, V>, model: &BTreeMap<K, V>) -> Result<(), Error>;
}

/// Nothing: each form of dictionary takes long to compile, and where the types of keys and values decide, the tree has
/// all.
struct Nothing;

impl<K, V> Others<K, V> for Nothing {
    fn new() -> Result<Self, Error> {
        Ok(Nothing)
    }

    fn apply(&mut self, _: &Op) -> Result<(), Error> {
        Ok(())
    }

    fn check(&mut self, _: &Lsm<K, V>, _: &BTreeMap<K, V>) {}

    fn finish(self, _: &Lsm<K, V>, _: &BTreeMap<K, V>) -> Result<(), Error> {
        Ok(())
    }
}

/// A sorted array, the tree as it was, and views of both.
struct EveryForm<K, V> {
    array: SortedArray<K, V>,
    before: Option<(Snapshot<K, V>, BTreeMap<K, V>)>,
}

impl<K: OrderedKey + FromNumber, V: Value + FromNumber> Others<K, V> for EveryForm<K, V> {
    fn new() -> Result<Self, Error> {
        Ok(EveryForm { array: SortedArray::builder().build()?, before: None })
    }

    fn apply(&mut self, op: &Op) -> Result<(), Error> {
        apply!(self.array, op, ());
        Ok(())
    }

    fn check(&mut self, lsm: &Lsm<K, V>, model: &BTreeMap<K, V>) {
        let (keys, ranges) = questions(model);
        agrees(model, &keys, &ranges, ask!(self.array, &keys, &ranges));
        if let Some((snapshot, model)) = &self.before {
            let (keys, ranges) = questions(model);
            agrees(model, &keys, &ranges, ask!(snapshot, &keys, &ranges));
        }
        self.before = Some((lsm.snapshot(), model.clone()));
    }

    fn finish(self, lsm: &Lsm<K, V>, model: &BTreeMap<K, V>) -> Result<(), Error> {
        for bytes in [lsm.to_bytes(), self.array.to_bytes()] {
            let mut words = vec![0u128; bytes.len().div_ceil(16)];
            bytemuck::cast_slice_mut::<u128, u8>(&mut words)[..bytes.len()].copy_from_slice(&bytes);
            let (keys, ranges) = questions(model);
            for open in [View::<K, V>::from_bytes, View::<K, V>::from_bytes_unverified] {
                let view = open(&bytemuck::cast_slice::<u128, u8>(&words)[..bytes.len()])?;
                agrees(model, &keys, &ranges, ask!(view, &keys, &ranges));
            }
        }
        assert!(SortedArray::from_bytes(&self.array.to_bytes())? == self.array);
        Ok(())
    }
}

fn behaves_like_btreemap<K, V, O>(batch_size: u64, policy: CleanupPolicy, ops: &[Op]) -> Result<(), Error>
where
    K: OrderedKey + FromNumber,
    V: Value + FromNumber,
    O: Others<K, V>,
{
    let mut lsm = Lsm::<K, V>::builder().batch_size(batch_size).cleanup(policy).build()?;
    let mut model = BTreeMap::new();
    let mut others = O::new()?;
    for (i, op) in ops.iter().enumerate() {
        change(&mut model, op);
        apply!(lsm, op, lsm.cleanup()?);
        others.apply(op)?;
        lsm.check_invariants()?;
        if matches!(op, Op::Cleanup) {
            assert_eq!(lsm.resident_len(), model.len() as u64);
            assert!(lsm.level_lens().len() <= 1);
        }
        if i % 4 == 3 || i + 1 == ops.len() {
            let (keys, ranges) = questions(&model);
            agrees(&model, &keys, &ranges, ask!(lsm, &keys, &ranges));
            others.check(&lsm, &model);
        }
    }
    others.finish(&lsm, &model)?;
    assert!(Lsm::from_bytes(&lsm.to_bytes())? == lsm);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn u32_to_u64(ops in prop::collection::vec(op(300), 1..30), policy in policy()) {
        behaves_like_btreemap::<u32, u64, EveryForm<_, _>>(1024, policy, &ops)?;
    }

    #[test]
    fn u64_to_u32(ops in prop::collection::vec(op(100), 1..30), policy in policy()) {
        behaves_like_btreemap::<u64, u32, Nothing>(128, policy, &ops)?;
    }

    #[test]
    fn u64_to_u64(ops in prop::collection::vec(op(40), 1..64), policy in policy()) {
        behaves_like_btreemap::<u64, u64, Nothing>(1 << 16, policy, &ops)?;
    }

    #[test]
    fn i64_to_u32(ops in prop::collection::vec(op(60), 1..30), policy in policy()) {
        behaves_like_btreemap::<i64, u32, EveryForm<_, _>>(256, policy, &ops)?;
    }

    #[test]
    fn i32_to_u64(ops in prop::collection::vec(op(60), 1..30), policy in policy()) {
        behaves_like_btreemap::<i32, u64, Nothing>(64, policy, &ops)?;
    }

    #[test]
    fn u128_to_u8(ops in prop::collection::vec(op(100), 1..30), policy in policy()) {
        behaves_like_btreemap::<u128, [u8; 1], EveryForm<_, _>>(128, policy, &ops)?;
    }

    #[test]
    fn strings_to_floats(ops in prop::collection::vec(op(100), 1..30), policy in policy()) {
        behaves_like_btreemap::<[u8; 16], [f64; 3], Nothing>(64, policy, &ops)?;
    }

    #[test]
    fn short_strings_to_long_values(ops in prop::collection::vec(op(60), 1..30), policy in policy()) {
        behaves_like_btreemap::<[u8; 3], [u8; 32], EveryForm<_, _>>(256, policy, &ops)?;
    }

    #[test]
    fn sets(ops in prop::collection::vec(op(100), 1..30), policy in policy()) {
        behaves_like_btreemap::<u32, (), Nothing>(64, policy, &ops)?;
    }
}

/// Numbers that are spread evenly and repeat for the same seed.
fn spread(i: u64, seed: u64) -> u64 {
    let mixed = (i ^ seed << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 8
}

/// Full batches, as in the paper: 1 to 64 of them resident, a tenth of each removals.
#[test]
fn any_number_of_resident_batches() {
    let builder = Lsm::<u32, u32>::builder().batch_size(256).cleanup(CleanupPolicy::Manual);
    let mut lsm = builder.build().unwrap();
    let mut model = BTreeMap::new();
    for batch in 1..=64u64 {
        let keys: Vec<u32> = (0..256).map(|i| (spread(i, batch) % 6000) as u32).collect();
        let values: Vec<u32> = (0..256).map(|i| spread(i, batch + 1000) as u32).collect();
        let removed: Vec<bool> = (0..256).map(|i| i % 10 == 3).collect();
        lsm.update_bulk(&keys, &values, &removed).unwrap();
        model.extend(keys.iter().zip(&values).zip(&removed).filter(|item| !item.1).map(|((&k, &v), _)| (k, v)));
        let gone: BTreeSet<u32> = keys.iter().zip(&removed).filter(|item| *item.1).map(|(&key, _)| key).collect();
        model.retain(|key, _| !gone.contains(key));

        lsm.check_invariants().unwrap();
        let lens: Vec<u64> = lsm.level_lens().into_iter().map(|(_, len)| len).collect();
        let bits: Vec<u64> = (0..7).filter(|bit| batch >> bit & 1 == 1).map(|bit| 256 << bit).collect();
        assert_eq!(lens, bits, "the binary counter of the paper");
        let asked: Vec<u32> = (0..6100).collect();
        assert_eq!(lsm.get_bulk(&asked), asked.iter().map(|key| model.get(key).copied()).collect::<Vec<_>>());
        assert!(lsm.iter().eq(model.iter().map(|(&k, &v)| (k, v))));
    }
    let before: Vec<_> = lsm.iter().collect();
    lsm.cleanup().unwrap();
    assert_eq!(lsm.level_lens().len(), 1);
    assert!(lsm.iter().eq(before));
    lsm.check_invariants().unwrap();
}

/// Enough elements for several parts of a merge, filters and fences, and one thread or several.
#[test]
fn large_batches_on_any_number_of_threads() {
    let n = 300_000u64;
    let batches: Vec<(Vec<u64>, Vec<u64>)> =
        (0..6).map(|batch| (0..n / 6).map(|i| (spread(i, batch) % n, batch << 32 | i)).unzip()).collect();
    let mut model = BTreeMap::new();
    for (keys, values) in &batches {
        model.extend(keys.iter().copied().zip(values.iter().copied()));
    }
    let gone: Vec<u64> = (0..n).step_by(7).collect();
    model.retain(|key, _| key % 7 != 0);
    let asked: Vec<u64> = (0..n + 10).map(|i| spread(i, 99) % (n + 1000)).collect();
    let ranges: Vec<_> = (0..500).map(|i| spread(i, 5) % n).map(|low| low..=low + low % 2000).collect();
    let mut saved: Option<Vec<u8>> = None;
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut lsm = Lsm::<u64, u64>::builder().batch_size(1 << 12).build().unwrap();
            for (keys, values) in &batches {
                lsm.insert_bulk(keys, values).unwrap();
                // Twice: before and after fences and filters are there.
                lsm.get_bulk(&asked);
            }
            lsm.remove_bulk(&gone).unwrap();
            lsm.check_invariants().unwrap();
            for _ in 0..2 {
                assert!(lsm.get_bulk(&asked).into_iter().eq(asked.iter().map(|key| model.get(key).copied())));
            }
            assert!(lsm.iter().eq(model.iter().map(|(&k, &v)| (k, v))));
            let counts = lsm.count_range_bulk(&ranges);
            let found = lsm.range_bulk(&ranges).unwrap();
            for (i, range) in ranges.iter().enumerate() {
                assert_eq!(counts[i] as usize, model.range(range.clone()).count());
                assert!(found.get(i).0.iter().eq(model.range(range.clone()).map(|(key, _)| key)));
            }
            let bytes = lsm.to_bytes();
            assert_eq!(*saved.get_or_insert_with(|| bytes.clone()), bytes, "bytes depend on the number of threads");
            lsm.cleanup().unwrap();
            assert_eq!(lsm.len(), model.len() as u64);
            let built = Lsm::<u64, u64>::builder().batch_size(1 << 12);
            let (keys, values): (Vec<u64>, Vec<u64>) = model.iter().map(|(&k, &v)| (k, v)).unzip();
            assert!(built.build_from(&keys, &values).unwrap() == lsm);
        });
    }
}

#[test]
fn bad_arguments_are_errors_and_change_nothing() {
    let builder = Lsm::<u32, u32>::builder();
    for batch_size in [0, 1, 32, 100, 1 << 41, u64::MAX] {
        assert!(matches!(builder.batch_size(batch_size).build(), Err(Error::InvalidBatchSize { .. })));
    }
    for share in [0.0, 1.0, -1.0, f64::NAN] {
        let built = builder.cleanup(CleanupPolicy::StaleShare(share)).build();
        assert!(matches!(built, Err(Error::InvalidStaleShare { .. })), "{share}");
    }
    assert!(matches!(builder.cleanup(CleanupPolicy::EveryBatches(0)).build(), Err(Error::NoBatches)));
    assert!(matches!(
        builder.build_from(&[1, 2], &[1]),
        Err(Error::LengthMismatch(LengthMismatch { needed: 2, found: 1, .. }))
    ));

    let mut lsm = builder.build_from(&[1, 2, 2], &[10, 20, 21]).unwrap();
    assert_eq!(lsm.iter().collect::<Vec<_>>(), [(1, 10), (2, 21)]);
    let before = lsm.clone();
    assert!(lsm.insert_bulk(&[1, 2], &[0]).is_err());
    assert!(lsm.update_bulk(&[1], &[0], &[]).is_err());
    assert!(lsm.get_bulk_into(&[1, 2], &mut [0]).is_err());
    assert!(lsm.contains_bulk_into(&[1, 2], &mut []).is_err());
    lsm.insert_bulk(&[], &[]).unwrap();
    lsm.remove_bulk(&[]).unwrap();
    assert_eq!(lsm.remove_range(7..7).unwrap(), 0);
    assert_eq!(lsm.update(1, |value| value).unwrap(), Some(10));
    let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        lsm.retain(|key, _| [true, false][key as usize - 1] || panic!())
    }));
    assert!(panics.is_err());
    assert!(lsm == before);
}

#[test]
fn collected_pairs_are_built_as_by_a_builder() {
    let pairs: Vec<(u64, u32)> = (0..5000).map(|i| (spread(i, 1) % 3000, i as u32)).collect();
    let (keys, values): (Vec<u64>, Vec<u32>) = pairs.iter().copied().unzip();
    let built = Lsm::builder().build_from(&keys, &values).unwrap();
    assert!(pairs.iter().copied().collect::<Lsm<u64, u32>>() == built);
    assert!(
        pairs.iter().copied().collect::<SortedArray<u64, u32>>().keys()
            == built.iter().map(|(key, _)| key).collect::<Vec<_>>()
    );
}

/// Many elements of many levels in one range, with stale ones and tombstones, which leaves gaps to be closed.
#[test]
fn large_ranges_of_levels_with_copies() {
    let mut lsm = Lsm::<i64, u64>::builder().batch_size(1 << 14).cleanup(CleanupPolicy::Manual).build().unwrap();
    let mut model = BTreeMap::new();
    for batch in 0..30 {
        let keys: Vec<i64> = (0..1 << 14).map(|i| spread(i, batch) as i64 % 200_000 - 100_000).collect();
        let values: Vec<u64> = (0..1 << 14).map(|i| i << 8 | batch).collect();
        lsm.insert_bulk(&keys, &values).unwrap();
        model.extend(keys.iter().copied().zip(values));
        if batch % 7 == 3 {
            lsm.remove_bulk(&keys[..1000]).unwrap();
            let gone: BTreeSet<i64> = keys[..1000].iter().copied().collect();
            model.retain(|key, _| !gone.contains(key));
        }
    }
    let ranges: Vec<_> =
        [i64::MIN..=i64::MAX, -50_000..=50_000, 5..=5].into_iter().chain((0..200).map(|i| 100 * i..=200 * i)).collect();
    let mut found = Ranges::default();
    for threads in [1, 4] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| lsm.range_bulk_into(&ranges, &mut found).unwrap());
        for (i, range) in ranges.iter().enumerate() {
            let (keys, values) = found.get(i);
            let pairs = keys.iter().zip(values).map(|(&key, &value)| (key, value));
            assert!(
                pairs.eq(model_range(&model, (Bound::Included(*range.start()), Bound::Included(*range.end())))),
                "{range:?}"
            );
        }
    }
    // Single lookups with filters, which as many build, and without.
    for round in 0..2 {
        for key in (-100_100..100_100).step_by(2 - round) {
            assert_eq!(lsm.get(key), model.get(&key).copied(), "{key}");
        }
    }
    let there = model.range(-100..70_000).count() as u64;
    assert_eq!(lsm.remove_range(-100..70_000).unwrap(), there);
    model.retain(|key, _| !(-100..70_000).contains(key));
    assert!(lsm.iter().eq(model.iter().map(|(&key, &value)| (key, value))));
    assert_eq!(lsm.remove_range(..).unwrap(), model.len() as u64);
    assert!(lsm.is_empty() && lsm.resident_len() == 0);
}

//! Dictionaries against `BTreeMap`: random streams of batches over few keys, so that copies and tombstones abound, with
//! random cleanups, and every query after every few batches.

mod fixed;
mod queries;

use std::collections::BTreeMap;
use std::ops::Bound;

use proptest::prelude::*;
use warpset_base::testing::tier;
use warpset_lsm::{CleanupPolicy, Error, Lsm, OrderedKey, Snapshot, SortedArray, Value, View};

use queries::{agrees, ask, model_range, questions};

/// Operation of a batch.
#[derive(Clone, Debug)]
enum Op {
    Insert(Vec<(u64, u64)>),
    Remove(Vec<u64>),
    /// Key, value, whether it is removed.
    Mixed(Vec<(u64, u64, bool)>),
    One(u64, u64),
    RemoveOne(u64),
    /// Key, and its new value.
    Update(u64, Option<u64>),
    RemoveRange(u64, u64),
    /// Keeps pairs whose keys are no multiple of this number.
    Retain(u64),
    Extend(Vec<(u64, u64)>),
    Cleanup,
    Clear,
}

/// Returns few keys: the ends of the range, and a handful in between.
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
    /// Keeps small numbers and the largest one.
    fn from_number(number: u64) -> u32 {
        (number as u32).max((number >> 32) as u32)
    }
}
impl FromNumber for i64 {
    /// Keeps the ends of the range; some of the small numbers become negative.
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
    /// Returns keys that differ only in their high halves, only in their low halves, or in both.
    fn from_number(number: u64) -> u128 {
        match number {
            u64::MAX => u128::MAX,
            _ => u128::from(number / 5) << 64 | u128::from(number % 5) << 61,
        }
    }
}
impl FromNumber for u16 {
    fn from_number(number: u64) -> u16 {
        number as u16
    }
}
impl FromNumber for u8 {
    fn from_number(number: u64) -> u8 {
        number as u8
    }
}
impl<const LEN: usize> FromNumber for [u8; LEN] {
    /// Repeats the lowest bytes of the number; the ends of the range are kept.
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

/// Applies an [`Op`] to the model.
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

/// Application of an [`Op`] to a dictionary.
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

/// Further dictionaries that a stream of batches is checked on.
trait Others<K, V>: Sized {
    fn new() -> Result<Self, Error>;
    fn apply(&mut self, op: &Op) -> Result<(), Error>;
    /// Checks the tree and the others after a few batches.
    fn check(&mut self, lsm: &Lsm<K, V>, model: &BTreeMap<K, V>);
    /// Checks the tree and the others at the end.
    fn finish(self, lsm: &Lsm<K, V>, model: &BTreeMap<K, V>) -> Result<(), Error>;
}

/// No further dictionaries: each form of dictionary takes long to compile, and the tree tests all types of keys and
/// values.
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

/// Sorted array, earlier state of the tree, and views of both.
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

/// Counts narrow ranges, for which little is known about the levels, and then wider ones.
fn counts_agree<K, V>(lsm: &Lsm<K, V>, model: &BTreeMap<K, V>, seed: u64)
where
    K: OrderedKey + FromNumber,
    V: Value + FromNumber,
{
    let ends = [1, 10, 100, 1000, 10_000, u64::MAX].map(|width| (37 * seed % 60, width)).map(|(low, width)| {
        (Bound::Included(K::from_number(low)), Bound::Excluded(K::from_number(low.saturating_add(width))))
    });
    let expected = ends.map(|ends| model_range(model, ends).len() as u64);
    assert_eq!(ends.map(|ends| lsm.count_range(ends)), expected, "{ends:?}");
    assert_eq!(lsm.count_range_bulk(&ends), expected, "{ends:?}");
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
        counts_agree(&lsm, &model, i as u64);
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

// Each type of keys and of values occurs once; a pair takes seconds to compile.
proptest! {
    #![proptest_config(ProptestConfig::with_cases(tier(10, 20)))]

    #[test]
    fn u32_to_u64(ops in prop::collection::vec(op(300), 1..30), policy in policy()) {
        behaves_like_btreemap::<u32, u64, EveryForm<_, _>>(1024, policy, &ops)?;
    }

    #[test]
    fn i64_to_u32(ops in prop::collection::vec(op(60), 1..30), policy in policy()) {
        behaves_like_btreemap::<i64, u32, Nothing>(256, policy, &ops)?;
    }

    #[test]
    fn i32_to_floats(ops in prop::collection::vec(op(60), 1..30), policy in policy()) {
        behaves_like_btreemap::<i32, [f64; 3], Nothing>(64, policy, &ops)?;
    }

    #[test]
    fn u128_to_u8(ops in prop::collection::vec(op(100), 1..30), policy in policy()) {
        behaves_like_btreemap::<u128, u8, EveryForm<_, _>>(128, policy, &ops)?;
    }

    #[test]
    fn strings_to_u16(ops in prop::collection::vec(op(100), 1..30), policy in policy()) {
        behaves_like_btreemap::<[u8; 16], u16, Nothing>(64, policy, &ops)?;
    }

    #[test]
    fn short_strings_to_long_values(ops in prop::collection::vec(op(60), 1..30), policy in policy()) {
        behaves_like_btreemap::<[u8; 3], [u8; 32], Nothing>(256, policy, &ops)?;
    }

    #[test]
    fn sets(ops in prop::collection::vec(op(40), 1..64), policy in policy()) {
        behaves_like_btreemap::<u64, (), Nothing>(1 << 16, policy, &ops)?;
    }
}

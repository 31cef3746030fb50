//! One test body for every dictionary on every executor, against `BTreeMap`: random streams of batches over few keys,
//! with every query after every few batches.

mod answers;
mod operators;

use std::collections::BTreeMap;
use std::ops::{Bound, RangeInclusive};

use proptest::prelude::*;
use warpset_base::testing::tier;
use warpset_gpu::testing;
use warpset_lsm::gpu::{DeviceKey, DeviceValue};
use warpset_lsm::{Builder, CleanupPolicy, Error, Lsm, OrderedKey, OrderedMap, SortedArray, SortedArrayBuilder};

/// Operation of a batch.
#[derive(Clone, Debug)]
enum Op {
    Insert(Vec<(u64, u32)>),
    Remove(Vec<u64>),
    /// Key, value, whether it is removed.
    Mixed(Vec<(u64, u32, bool)>),
    /// Keys with values that are combined with existing ones.
    Upsert(Vec<(u64, u32)>),
    /// Keys with values, inserted only if the key has none.
    InsertNew(Vec<(u64, u32)>),
    /// Key, and its new value.
    Update(u64, Option<u32>),
    RemoveRange(u64, u64),
    /// Keeps pairs whose values are no multiple of this number.
    Retain(u32),
    Cleanup,
    Clear,
}

/// Returns few keys: the ends of the range, and a handful in between.
fn key() -> impl Strategy<Value = u64> {
    prop_oneof![1 => Just(0), 1 => Just(u64::MAX), 6 => 1..60u64, 2 => (1..40u64).prop_map(|i| i << 58)]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => prop::collection::vec((key(), any::<u32>()), 0..90).prop_map(Op::Insert),
        4 => prop::collection::vec(key(), 0..60).prop_map(Op::Remove),
        4 => prop::collection::vec((key(), any::<u32>(), any::<bool>()), 0..70).prop_map(Op::Mixed),
        3 => prop::collection::vec((key(), any::<u32>()), 0..70).prop_map(Op::Upsert),
        2 => prop::collection::vec((key(), any::<u32>()), 0..70).prop_map(Op::InsertNew),
        2 => (key(), any::<Option<u32>>()).prop_map(|(key, value)| Op::Update(key, value)),
        2 => (key(), key()).prop_map(|(least, end)| Op::RemoveRange(least, end)),
        1 => (2..9u32).prop_map(Op::Retain),
        1 => Just(Op::Cleanup),
        1 => Just(Op::Clear),
    ]
}

type Model<K, V> = BTreeMap<K, V>;

/// Values of the types under test, made from the numbers of an [`Op`], which distinguish them.
trait Numbered: DeviceValue {
    fn of(number: u32) -> Self;
    fn number(self) -> u32;
}

impl Numbered for u32 {
    fn of(number: u32) -> u32 {
        number
    }
    fn number(self) -> u32 {
        self
    }
}

impl Numbered for u64 {
    fn of(number: u32) -> u64 {
        u64::from(number) << 16
    }
    fn number(self) -> u32 {
        (self >> 16) as u32
    }
}

/// The number in the first bytes, and bytes derived from it in the others.
impl<const LEN: usize> Numbered for [u8; LEN]
where
    [u8; LEN]: DeviceValue,
{
    fn of(number: u32) -> Self {
        std::array::from_fn(|i| (number.rotate_left(8 * (i / 4) as u32).to_le_bytes()[i % 4]) ^ (i / 4) as u8)
    }
    fn number(self) -> u32 {
        let number = u32::from_le_bytes([self[0], self[1], self[2], self[3]]);
        assert_eq!(self, Self::of(number), "a value that nobody inserted");
        number
    }
}

/// Returns the key of a number of an [`Op`], in the order of the numbers.
fn key_of<K: OrderedKey>(number: &u64) -> K {
    // Keys of 32 bits hold only the highest bits.
    match size_of::<K>() {
        16 => K::from_u128(u128::from(*number) << 64 | u128::from(number & 0xff)),
        8 => K::from_u64(*number),
        _ => K::from_u64(number >> 32 | number & 0xff),
    }
}

/// Composes two linear functions modulo 2^16, stored as factor and summand: associative and not commutative.
fn compose(before: u32, after: u32) -> u32 {
    let (factor, summand) = (after >> 16, after & 0xffff);
    (before >> 16).wrapping_mul(factor) << 16 | (before & 0xffff).wrapping_mul(factor).wrapping_add(summand) & 0xffff
}

fn apply<K: OrderedKey, V: Numbered>(
    dictionary: &mut impl OrderedMap<K, V>,
    model: &mut Model<K, V>,
    op: &Op,
) -> Result<(), Error> {
    let compose = |before: V, after: V| V::of(compose(before.number(), after.number()));
    let keys = |numbers: &mut dyn Iterator<Item = &u64>| numbers.map(key_of).collect::<Vec<K>>();
    match op {
        Op::Insert(pairs) => {
            let keys = keys(&mut pairs.iter().map(|pair| &pair.0));
            let values: Vec<V> = pairs.iter().map(|pair| V::of(pair.1)).collect();
            model.extend(keys.iter().copied().zip(values.iter().copied()));
            dictionary.insert_bulk(&keys, &values)
        }
        Op::Remove(gone) => {
            let keys = keys(&mut gone.iter());
            model.retain(|key, _| !keys.contains(key));
            dictionary.remove_bulk(&keys)
        }
        Op::Mixed(items) => {
            let keys = keys(&mut items.iter().map(|item| &item.0));
            let (values, removed): (Vec<V>, Vec<bool>) = items.iter().map(|item| (V::of(item.1), item.2)).unzip();
            let inserted = keys.iter().zip(items).filter(|(_, item)| !item.2);
            model.extend(inserted.map(|(&key, item)| (key, V::of(item.1))));
            model.retain(|key, _| !keys.iter().zip(items).any(|(other, item)| item.2 && other == key));
            dictionary.update_bulk(&keys, &values, &removed)
        }
        Op::Upsert(pairs) => {
            let keys = keys(&mut pairs.iter().map(|pair| &pair.0));
            let values: Vec<V> = pairs.iter().map(|pair| V::of(pair.1)).collect();
            for (&key, &value) in keys.iter().zip(&values) {
                model.entry(key).and_modify(|before| *before = compose(*before, value)).or_insert(value);
            }
            dictionary.upsert_bulk_with(&keys, &values, compose)
        }
        Op::InsertNew(pairs) => {
            let keys = keys(&mut pairs.iter().map(|pair| &pair.0));
            let values: Vec<V> = pairs.iter().map(|pair| V::of(pair.1)).collect();
            keys.iter().zip(&values).for_each(|(&key, &value)| _ = *model.entry(key).or_insert(value));
            dictionary.insert_new_bulk(&keys, &values)
        }
        Op::Update(number, value) => {
            let key = key_of::<K>(number);
            let before = model.get(&key).copied();
            let value = value.map(V::of);
            match value {
                Some(value) => model.insert(key, value),
                None => model.remove(&key),
            };
            let changed = dictionary.update(key, |asked| {
                assert_eq!(asked, before);
                value
            })?;
            assert_eq!(changed, value);
            Ok(())
        }
        Op::RemoveRange(least, end) => {
            let range = key_of::<K>(least)..key_of::<K>(end);
            let before = model.len();
            model.retain(|key, _| !range.contains(key));
            assert_eq!(dictionary.remove_range(range)?, (before - model.len()) as u64);
            Ok(())
        }
        Op::Retain(of) => {
            let pairs: Vec<(K, V)> = model.iter().map(|(&key, &value)| (key, value)).collect();
            let mut asked = Vec::new();
            dictionary.retain(|key, value| {
                asked.push((key, value));
                value.number() % of != 0
            })?;
            assert_eq!(asked, pairs);
            model.retain(|_, value| value.number() % of != 0);
            Ok(())
        }
        Op::Cleanup => dictionary.cleanup(),
        Op::Clear => {
            model.clear();
            dictionary.clear()
        }
    }
}

fn agrees<K: OrderedKey, V: Numbered>(dictionary: &impl OrderedMap<K, V>, model: &Model<K, V>) -> Result<(), Error> {
    let pair = |(&key, &value): (&K, &V)| (key, value);
    let mut asked = vec![K::MIN, K::MAX, key_of(&30)];
    asked.extend(model.keys().flat_map(|&key| [key.below().unwrap_or(key), key, key.above().unwrap_or(key)]));
    let values: Vec<Option<V>> = asked.iter().map(|key| model.get(key).copied()).collect();
    assert_eq!(dictionary.get_bulk(&asked)?, values);
    assert_eq!(dictionary.contains_bulk(&asked)?, values.iter().map(Option::is_some).collect::<Vec<_>>());
    let above = |&key: &K| model.range((Bound::Excluded(key), Bound::Unbounded)).next().map(pair);
    assert_eq!(dictionary.successor_bulk(&asked)?, asked.iter().map(above).collect::<Vec<_>>());
    let below = |&key: &K| model.range(..key).next_back().map(pair);
    assert_eq!(dictionary.predecessor_bulk(&asked)?, asked.iter().map(below).collect::<Vec<_>>());
    assert_eq!(dictionary.first_key_value()?, model.first_key_value().map(pair));
    assert_eq!(dictionary.last_key_value()?, model.last_key_value().map(pair));
    let nine_above = |low: K| K::from_u128(low.to_u128().saturating_add(9).min(K::MAX.to_u128()));
    let mut ranges: Vec<RangeInclusive<K>> = asked.iter().map(|&low| low..=nine_above(low)).collect();
    ranges.push(K::MIN..=K::MAX);
    let (counts, found) = (dictionary.count_range_bulk(&ranges)?, dictionary.range_bulk(&ranges)?);
    for (i, range) in ranges.into_iter().enumerate() {
        let expected: Vec<(K, V)> = model.range(range).map(pair).collect();
        assert_eq!(counts[i], expected.len() as u64);
        let (keys, values) = found.get(i);
        assert!(keys.iter().copied().zip(values.iter().copied()).eq(expected));
    }
    // Before `len`, which may determine it.
    assert_eq!(dictionary.is_empty()?, model.is_empty());
    assert_eq!(dictionary.len()?, model.len() as u64);
    assert_eq!(dictionary.is_empty()?, model.is_empty());
    Ok(())
}

fn behaves_like_btreemap<K: OrderedKey, V: Numbered>(
    mut dictionary: impl OrderedMap<K, V>,
    ops: &[Op],
) -> Result<(), Error> {
    let mut model = BTreeMap::new();
    for (i, op) in ops.iter().enumerate() {
        apply(&mut dictionary, &mut model, op)?;
        if i % 4 == 3 || i + 1 == ops.len() {
            agrees(&dictionary, &model)?;
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tier(2, 4)))]

    #[test]
    fn every_dictionary_on_every_executor(ops in prop::collection::vec(op(), 1..16), schedule in any::<u64>()) {
        let (tree, array) = (tree::<u64, u32>(), array::<u64, u32>());
        behaves_like_btreemap(tree.build()?, &ops)?;
        behaves_like_btreemap(array.build()?, &ops)?;
        for device in testing::devices(schedule) {
            behaves_like_btreemap(tree.on(&device).build()?, &ops)?;
            behaves_like_btreemap(array.on(&device).build()?, &ops)?;
        }
        for devices in testing::lists_of_devices(schedule / 2) {
            behaves_like_btreemap(tree.sharded_on(&devices).build()?, &ops)?;
            behaves_like_btreemap(array.sharded_on(&devices).build()?, &ops)?;
        }
    }

    // Each type of keys and of values occurs once; a pair takes seconds to compile.

    #[test]
    fn signed_keys_on_every_device(ops in prop::collection::vec(op(), 1..16), schedule in any::<u64>()) {
        for device in testing::devices(schedule) {
            behaves_like_btreemap(tree::<i64, u64>().on(&device).build()?, &ops)?;
            behaves_like_btreemap(tree::<i32, u64>().on(&device).build()?, &ops)?;
        }
    }

    #[test]
    fn values_of_any_size_on_every_device(ops in prop::collection::vec(op(), 1..16), schedule in any::<u64>()) {
        for device in testing::devices(schedule) {
            behaves_like_btreemap(tree::<u32, [u8; 5]>().on(&device).build()?, &ops)?;
        }
    }

    #[test]
    fn strings_of_bytes_on_every_device(ops in prop::collection::vec(op(), 1..16), schedule in any::<u64>()) {
        for device in testing::devices(schedule) {
            behaves_like_btreemap(array::<[u8; 8], [u8; 32]>().on(&device).build()?, &ops)?;
            behaves_like_btreemap(tree::<[u8; 4], [u8; 4]>().on(&device).build()?, &ops)?;
        }
    }

    #[test]
    fn long_keys_on_every_device(ops in prop::collection::vec(op(), 1..16), schedule in any::<u64>()) {
        behaves_like_btreemap(tree::<i128, [u8; 16]>().build()?, &ops)?;
        for device in testing::devices(schedule) {
            behaves_like_btreemap(tree::<i128, [u8; 16]>().on(&device).build()?, &ops)?;
            behaves_like_btreemap(array::<[u8; 16], u32>().on(&device).build()?, &ops)?;
        }
        for devices in testing::lists_of_devices(schedule / 2) {
            behaves_like_btreemap(tree::<i128, [u8; 16]>().sharded_on(&devices).build()?, &ops)?;
        }
    }
}

fn tree<K: OrderedKey, V: Numbered>() -> Builder<K, V> {
    Lsm::builder().batch_size(64).cleanup(CleanupPolicy::EveryBatches(7))
}

fn array<K: OrderedKey, V: Numbered>() -> SortedArrayBuilder<K, V> {
    SortedArray::builder()
}

/// Tests that levels of signed keys are the same on devices and on the host, copied or built there; ranges that do not
/// fit come in chunks, in their order.
#[test]
fn signed_keys_travel() {
    for device in testing::devices(34) {
        let builder = Lsm::<i64, u64>::builder().batch_size(64).cleanup(CleanupPolicy::Manual);
        let (mut host, mut there) = (builder.build().unwrap(), builder.on(&device).build().unwrap());
        for batch in 0..6i64 {
            let keys: Vec<i64> = (0..60).map(|i| (i * 7 % 100 - 50) << (9 * batch)).collect();
            let (values, removed) = ([batch as u64; 60], [batch == 4; 60]);
            host.update_bulk(&keys, &values, &removed).unwrap();
            there.update_bulk(&keys, &values, &removed).unwrap();
        }
        assert!(there.to_host().unwrap() == host && host.to_device(&device).unwrap().to_host().unwrap() == host);
        let elements: Vec<(i64, u64)> = there.iter().unwrap().collect::<Result<_, Error>>().unwrap();
        assert!(host.iter().eq(elements));
        let ends = [(i64::MIN, i64::MAX), (-40, 3), (5, -5)];
        let lows = device.from_slice(&<i64 as DeviceKey>::stored(&ends.map(|ends| ends.0))).unwrap();
        let highs = device.from_slice(&<i64 as DeviceKey>::stored(&ends.map(|ends| ends.1))).unwrap();
        for most in [3, 1000] {
            let mut found = Vec::new();
            for piece in there.range_chunks_device(lows.as_slice(), highs.as_slice(), most).unwrap() {
                found.extend(i64::from_stored(piece.unwrap().elements.keys.to_vec().unwrap()));
            }
            let expected = ends.iter().flat_map(|&(low, high)| host.range(low..=high).map(|(key, _)| key));
            assert!(expected.eq(found), "{most}");
        }
        let array = SortedArray::<i32, u64>::builder().build_from(&[4, -4, i32::MIN, i32::MAX], &[1, 2, 3, 4]).unwrap();
        assert!(array.to_device(&device).unwrap().to_host().unwrap() == array);
    }
}

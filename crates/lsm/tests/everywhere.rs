//! One body for every dictionary on every executor, against `BTreeMap`: random streams of batches over few keys, with every
//! query after every few of them.

use std::collections::BTreeMap;
use std::ops::{Bound, RangeInclusive};

use proptest::prelude::*;
use warpset_gpu::testing;
use warpset_lsm::{CleanupPolicy, Dictionary, Error, Lsm, SortedArray};

/// What a batch does.
#[derive(Clone, Debug)]
enum Op {
    Insert(Vec<(u64, u32)>),
    Remove(Vec<u64>),
    /// Key, value, whether it is removed.
    Mixed(Vec<(u64, u32, bool)>),
    Cleanup,
    Clear,
}

/// Few keys: the ends of the range, and a handful in between.
fn key() -> impl Strategy<Value = u64> {
    prop_oneof![1 => Just(0), 1 => Just(u64::MAX), 6 => 1..60u64, 2 => (1..40u64).prop_map(|i| i << 58)]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => prop::collection::vec((key(), any::<u32>()), 0..90).prop_map(Op::Insert),
        4 => prop::collection::vec(key(), 0..60).prop_map(Op::Remove),
        4 => prop::collection::vec((key(), any::<u32>(), any::<bool>()), 0..70).prop_map(Op::Mixed),
        1 => Just(Op::Cleanup),
        1 => Just(Op::Clear),
    ]
}

type Model = BTreeMap<u64, u32>;

fn apply(dictionary: &mut impl Dictionary<u64, u32>, model: &mut Model, op: &Op) -> Result<(), Error> {
    match op {
        Op::Insert(pairs) => {
            let (keys, values): (Vec<u64>, Vec<u32>) = pairs.iter().copied().unzip();
            model.extend(pairs.iter().copied());
            dictionary.insert_bulk(&keys, &values)
        }
        Op::Remove(keys) => {
            model.retain(|key, _| !keys.contains(key));
            dictionary.remove_bulk(keys)
        }
        Op::Mixed(items) => {
            model.extend(items.iter().filter(|item| !item.2).map(|item| (item.0, item.1)));
            model.retain(|key, _| !items.iter().any(|item| item.2 && item.0 == *key));
            let (keys, values): (Vec<u64>, Vec<u32>) = items.iter().map(|item| (item.0, item.1)).unzip();
            dictionary.update_bulk(&keys, &values, &items.iter().map(|item| item.2).collect::<Vec<_>>())
        }
        Op::Cleanup => dictionary.cleanup(),
        Op::Clear => {
            model.clear();
            dictionary.clear()
        }
    }
}

fn agrees(dictionary: &impl Dictionary<u64, u32>, model: &Model) -> Result<(), Error> {
    let pair = |(&key, &value): (&u64, &u32)| (key, value);
    let mut asked = vec![0, u64::MAX, 30];
    asked.extend(model.keys().flat_map(|&key| [key.saturating_sub(1), key, key.saturating_add(1)]));
    let values: Vec<Option<u32>> = asked.iter().map(|key| model.get(key).copied()).collect();
    assert_eq!(dictionary.get_bulk(&asked)?, values);
    assert_eq!(dictionary.contains_bulk(&asked)?, values.iter().map(Option::is_some).collect::<Vec<_>>());
    let above = |&key: &u64| model.range((Bound::Excluded(key), Bound::Unbounded)).next().map(pair);
    assert_eq!(dictionary.successor_bulk(&asked)?, asked.iter().map(above).collect::<Vec<_>>());
    let below = |&key: &u64| model.range(..key).next_back().map(pair);
    assert_eq!(dictionary.predecessor_bulk(&asked)?, asked.iter().map(below).collect::<Vec<_>>());
    assert_eq!(dictionary.first_key_value()?, model.first_key_value().map(pair));
    assert_eq!(dictionary.last_key_value()?, model.last_key_value().map(pair));
    let mut ranges: Vec<RangeInclusive<u64>> = asked.iter().map(|&low| low..=low.saturating_add(9)).collect();
    ranges.push(0..=u64::MAX);
    let (counts, found) = (dictionary.count_range_bulk(&ranges)?, dictionary.range_bulk(&ranges)?);
    for (i, range) in ranges.into_iter().enumerate() {
        let expected: Vec<(u64, u32)> = model.range(range).map(pair).collect();
        assert_eq!(counts[i], expected.len() as u64);
        let (keys, values) = found.get(i);
        assert!(keys.iter().copied().zip(values.iter().copied()).eq(expected));
    }
    // Before `len`, which may find out.
    assert_eq!(dictionary.is_empty()?, model.is_empty());
    assert_eq!(dictionary.len()?, model.len() as u64);
    assert_eq!(dictionary.is_empty()?, model.is_empty());
    Ok(())
}

fn behaves_like_btreemap(mut dictionary: impl Dictionary<u64, u32>, ops: &[Op]) -> Result<(), Error> {
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
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn every_dictionary_on_every_executor(ops in prop::collection::vec(op(), 1..16), schedule in any::<u64>()) {
        let tree = Lsm::builder().batch_size(64).cleanup(CleanupPolicy::EveryBatches(7));
        let array = SortedArray::builder();
        behaves_like_btreemap(tree.build()?, &ops)?;
        behaves_like_btreemap(array.build()?, &ops)?;
        for device in testing::devices(schedule) {
            behaves_like_btreemap(tree.on(&device).build()?, &ops)?;
            behaves_like_btreemap(array.on(&device).build()?, &ops)?;
        }
    }
}

#[test]
fn ranges_come_in_pieces_of_any_size() {
    for device in testing::devices(31) {
        let mut host = Lsm::<u32, u64>::builder().batch_size(64).cleanup(CleanupPolicy::Manual).build().unwrap();
        // Some close together, some far apart, so that parts of equal width are not of equal length.
        let keys: Vec<u32> = (0..240).map(|i| if i % 3 == 0 { i * 16_000_000 } else { 2 * i }).collect();
        host.insert_bulk(&keys, &keys.iter().map(|&key| u64::from(key) << 20).collect::<Vec<_>>()).unwrap();
        host.remove_bulk(&keys[100..120]).unwrap();
        let there = host.to_device(&device).unwrap();
        let ranges = [(0, u32::MAX), (100, 99), (7, 400), (5000, u32::MAX)];
        let lows = device.from_slice(&ranges.map(|range| range.0)).unwrap();
        let highs = device.from_slice(&ranges.map(|range| range.1)).unwrap();
        let expected: Vec<Vec<(u32, u64)>> = ranges
            .iter()
            .map(|&(low, high)| host.iter().filter(|&(key, _)| low <= key && key <= high).collect())
            .collect();
        for most in [0, 1, 7, 100, 100_000] {
            let pieces = there.range_pieces_device(lows.as_slice(), highs.as_slice(), most).unwrap();
            assert!(pieces.counts().iter().copied().eq(expected.iter().map(|all| all.len() as u64)));
            let mut found = vec![Vec::new(); ranges.len()];
            let mut before = 0..0;
            for piece in pieces {
                let piece = piece.unwrap();
                assert!(piece.ranges.start == before.end || (piece.ranges == before && before.len() == 1));
                before = piece.ranges.clone();
                let offsets = piece.elements.offsets.to_vec().unwrap();
                let (keys, values) = (piece.elements.keys.to_vec().unwrap(), piece.elements.values.to_vec().unwrap());
                assert!(keys.len() <= most.max(1) && offsets.len() == piece.ranges.len() + 1);
                for (range, places) in piece.ranges.zip(offsets.windows(2)) {
                    let places = places[0] as usize..places[1] as usize;
                    found[range].extend(keys[places.clone()].iter().copied().zip(values[places].iter().copied()));
                }
            }
            assert_eq!((found, before.end), (expected.clone(), ranges.len()), "{most}");
        }
    }
}

/// More elements than the device has memory for: host slices get all of them, callers with device memory are told what to do.
#[test]
fn ranges_larger_than_device_memory() {
    for device in testing::devices(32) {
        let keys: Vec<u32> = (0..20_000).map(|i| 5 * i).collect();
        let host = SortedArray::<u32, ()>::builder().build_from(&keys, warpset_lsm::units(keys.len())).unwrap();
        let there = host.to_device(&device).unwrap();
        let ranges: Vec<_> = (0..30u32).map(|i| i..=u32::MAX - i).collect();
        let (lows, highs): (Vec<u32>, Vec<u32>) = ranges.iter().map(|range| (*range.start(), *range.end())).unzip();
        let (lows, highs) = (device.from_slice(&lows).unwrap(), device.from_slice(&highs).unwrap());
        device.set_memory_limit(300_000);
        let expected = host.range_bulk(&ranges).unwrap();
        let told = there.range_device(lows.as_slice(), highs.as_slice()).map(|_| ()).unwrap_err();
        assert!(
            matches!(told, Error::RangesTooLarge { elements, bytes, free } if bytes == 4 * elements && free < bytes)
        );
        assert!(told.to_string().contains("range_pieces_device"), "{told}");
        assert!(there.range_bulk(&ranges).unwrap() == expected);
        device.set_memory_limit(usize::MAX);
        assert!(there.range_bulk(&ranges).unwrap() == expected);
    }
}

#[test]
fn answers_in_memory_of_the_caller() {
    for device in testing::devices(33) {
        let mut host = Lsm::<u64, u32>::builder().batch_size(64).cleanup(CleanupPolicy::Manual).build().unwrap();
        for batch in 0..5u64 {
            let keys: Vec<u64> = (0..60).map(|i| i * 7 % 100 + batch).collect();
            host.insert_bulk(&keys, &[batch as u32; 60]).unwrap();
            host.remove_bulk(&keys[..10]).unwrap();
        }
        let there = host.to_device(&device).unwrap();
        let asked: Vec<u64> = (0..130).collect();
        let on_device = device.from_slice(&asked).unwrap();
        let mut keys = device.alloc_zeroed::<u64>(130).unwrap();
        let mut values = device.alloc_zeroed::<u32>(130).unwrap();
        let mut found = device.from_slice(&[u64::MAX; 3]).unwrap();
        for upwards in [true, false] {
            let out = warpset_lsm::gpu::NeighboursMut {
                keys: keys.as_mut_slice(),
                values: values.as_mut_slice(),
                found: found.as_mut_slice(),
            };
            let expected = if upwards {
                there.successor_device(on_device.as_slice(), out).unwrap();
                host.successor_bulk(&asked)
            } else {
                there.predecessor_device(on_device.as_slice(), out).unwrap();
                host.predecessor_bulk(&asked)
            };
            let (keys, values) = (keys.to_vec().unwrap(), values.to_vec().unwrap());
            let found = found.to_vec().unwrap();
            for (i, expected) in expected.into_iter().enumerate() {
                let is_found = found[i / 64] >> (i % 64) & 1 == 1;
                assert_eq!(
                    (is_found, keys[i], values[i]),
                    (expected.is_some(), expected.unwrap_or((0, 0)).0, expected.unwrap_or((0, 0)).1)
                );
            }
            assert_eq!(found[2] >> 2, 0, "bits past the last key");
        }
        there.contains_device(on_device.as_slice(), found.as_mut_slice()).unwrap();
        let bits = found.to_vec().unwrap();
        let mut answers = vec![false; asked.len()];
        there.contains_bulk_into(&asked, &mut answers).unwrap();
        assert_eq!(answers, host.contains_bulk(&asked));
        assert!((0..130).all(|i| (bits[i / 64] >> (i % 64) & 1 == 1) == answers[i]));
        let short = warpset_lsm::gpu::NeighboursMut {
            keys: keys.slice_mut(1..),
            values: values.as_mut_slice(),
            found: found.as_mut_slice(),
        };
        let told = there.successor_device(on_device.as_slice(), short);
        assert!(matches!(told, Err(Error::LengthMismatch { keys: 130, found: 129, .. })));
        assert!(matches!(there.contains_bulk_into(&asked, &mut [true]), Err(Error::LengthMismatch { .. })));
    }
}

//! The published structure on the host, on the emulator, and on a CUDA device where there is one: checks against
//! `BTreeMap`, and equal levels everywhere.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use warpset_base::filter::LengthMismatch;

use papers_kernels::lsm::layout::KeyVariable;
use proptest::prelude::*;
use warpset_core::hash::mix;
use warpset_gpu::{Device, testing};

use super::gpu::{self, DeviceKey};
use super::{LookupMethod, Lsm, PackedKey, PairValue};
use crate::Error;
use warpset_lsm::Ranges;

const BATCH: usize = 64;

/// Common methods of both forms.
trait Published<K: PackedKey, V: PairValue> {
    fn insert_bulk(&mut self, keys: &[K], values: &[V]) -> Result<(), Error>;
    fn remove_bulk(&mut self, keys: &[K]) -> Result<(), Error>;
    fn update_bulk(&mut self, keys: &[K], values: &[V], removed: &[bool]) -> Result<(), Error>;
    fn cleanup(&mut self) -> Result<(), Error>;
    fn clear(&mut self) -> Result<(), Error>;
    fn get_with(&self, keys: &[K], method: LookupMethod) -> Vec<Option<V>>;
    fn contains_bulk(&self, keys: &[K]) -> Result<Vec<bool>, Error>;
    fn count_range_bulk(&self, ranges: &[RangeInclusive<K>]) -> Result<Vec<u64>, Error>;
    fn range_bulk(&self, ranges: &[RangeInclusive<K>]) -> Result<Ranges<K, V>, Error>;
    fn len(&self) -> Result<u64, Error>;
    fn is_empty(&self) -> Result<bool, Error>;
    fn batches(&self) -> u64;
    fn resident_len(&self) -> u64;
    fn memory_bytes(&self) -> u64;
    fn on_host(&self) -> Lsm<K, V>;
}

macro_rules! published {
    ($type:ty, $($key:ident)::+ $(<$v:ident>)?, |$this:ident| $on_host:expr) => {
        impl<K: $($key)::+ $(<$v>)?, V: PairValue> Published<K, V> for $type {
            warpset_base::by_inherent! {
                fn insert_bulk(&mut self, keys: &[K], values: &[V]) -> Result<(), Error>;
                fn remove_bulk(&mut self, keys: &[K]) -> Result<(), Error>;
                fn update_bulk(&mut self, keys: &[K], values: &[V], removed: &[bool]) -> Result<(), Error>;
                fn cleanup(&mut self) -> Result<(), Error>;
                fn clear(&mut self) -> Result<(), Error>;
            }
            fn get_with(&self, keys: &[K], method: LookupMethod) -> Vec<Option<V>> {
                self.get_bulk_with(keys, method).unwrap()
            }
            warpset_base::by_inherent! {
                fn contains_bulk(&self, keys: &[K]) -> Result<Vec<bool>, Error>;
                fn count_range_bulk(&self, ranges: &[RangeInclusive<K>]) -> Result<Vec<u64>, Error>;
                fn range_bulk(&self, ranges: &[RangeInclusive<K>]) -> Result<Ranges<K, V>, Error>;
                fn len(&self) -> Result<u64, Error>;
                fn is_empty(&self) -> Result<bool, Error>;
                fn batches(&self) -> u64;
                fn resident_len(&self) -> u64;
                fn memory_bytes(&self) -> u64;
            }
            fn on_host(&self) -> Lsm<K, V> {
                let $this = self;
                $on_host
            }
        }
    };
}
published!(Lsm<K, V>, PackedKey, |host| host.clone());
published!(gpu::Lsm<K, V>, DeviceKey<V>, |there| there.to_host().unwrap());

/// Operation on at most a batch.
#[derive(Clone, Debug)]
enum Op {
    Insert(Vec<(u64, u64)>),
    Remove(Vec<u64>),
    /// Key, value, whether it is removed.
    Mixed(Vec<(u64, u64, bool)>),
    Cleanup,
    Clear,
}

/// Maps numbers to few keys, with both ends of their range.
fn key<K: PackedKey>(number: u64) -> K {
    match number % 50 {
        0 => K::MIN,
        1 => K::MAX_KEY,
        2 => K::from_u64(K::MAX_KEY.to_u64() - 1),
        _ => K::from_u64(number % 300),
    }
}

fn value<V: PairValue>(number: u64) -> V {
    bytemuck::pod_read_unaligned(&number.to_le_bytes()[..size_of::<V>()])
}

fn op() -> impl Strategy<Value = Op> {
    let pairs = prop::collection::vec((any::<u64>(), any::<u64>()), 0..=BATCH);
    prop_oneof![
        6 => pairs.prop_map(Op::Insert),
        3 => prop::collection::vec(any::<u64>(), 0..=BATCH).prop_map(Op::Remove),
        5 => prop::collection::vec(any::<(u64, u64, bool)>(), 0..=BATCH).prop_map(Op::Mixed),
        1 => Just(Op::Cleanup),
        1 => Just(Op::Clear),
    ]
}

fn apply<K: PackedKey, V: PairValue>(to: &mut dyn Published<K, V>, op: &Op) {
    match op {
        Op::Insert(pairs) => {
            let (keys, values): (Vec<K>, Vec<V>) = pairs.iter().map(|&(k, v)| (key::<K>(k), value::<V>(v))).unzip();
            to.insert_bulk(&keys, &values).unwrap();
        }
        Op::Remove(keys) => to.remove_bulk(&keys.iter().map(|&k| key(k)).collect::<Vec<K>>()).unwrap(),
        Op::Mixed(items) => {
            let keys: Vec<K> = items.iter().map(|item| key(item.0)).collect();
            let values: Vec<V> = items.iter().map(|item| value(item.1)).collect();
            to.update_bulk(&keys, &values, &items.iter().map(|item| item.2).collect::<Vec<_>>()).unwrap();
        }
        Op::Cleanup => to.cleanup().unwrap(),
        Op::Clear => to.clear().unwrap(),
    }
}

fn change<K: PackedKey, V: PairValue>(model: &mut BTreeMap<K, V>, op: &Op) {
    match op {
        Op::Insert(pairs) => model.extend(pairs.iter().map(|&(k, v)| (key::<K>(k), value::<V>(v)))),
        Op::Remove(keys) => model.retain(|k, _| !keys.iter().any(|&gone| key::<K>(gone) == *k)),
        Op::Mixed(items) => {
            let inserted = items.iter().filter(|item| !item.2);
            model.extend(inserted.map(|item| (key::<K>(item.0), value::<V>(item.1))));
            model.retain(|k, _| !items.iter().any(|item| item.2 && key::<K>(item.0) == *k));
        }
        Op::Cleanup => {}
        Op::Clear => model.clear(),
    }
}

/// Checks every query against the model.
fn answers_agree<K: PackedKey, V: PairValue>(of: &dyn Published<K, V>, model: &BTreeMap<K, V>) {
    let too_large = [K::MAX, K::from_u64(K::MAX_KEY.to_u64() + 1), K::from_u64(K::MAX_KEY.to_u64() + 3)];
    let asked: Vec<K> =
        (0..310).map(K::from_u64).chain([K::MAX_KEY, K::from_u64(K::MAX_KEY.to_u64() - 1)]).chain(too_large).collect();
    let expected: Vec<Option<V>> = asked.iter().map(|key| model.get(key).copied()).collect();
    for method in [LookupMethod::Individual, LookupMethod::Bulk] {
        assert_eq!(of.get_with(&asked, method), expected, "{method:?}");
        // Numbers of queries around those of a warp and of a word of answers.
        for n in [0, 1, 31, 33, 64, 65] {
            assert_eq!(of.get_with(&asked[asked.len() - n..], method), expected[asked.len() - n..], "{method:?}");
        }
    }
    assert_eq!(of.contains_bulk(&asked).unwrap(), expected.iter().map(Option::is_some).collect::<Vec<_>>());

    let mut ranges: Vec<RangeInclusive<K>> =
        asked.iter().zip(asked.iter().cycle().skip(17)).step_by(3).map(|(&low, &high)| low..=high).collect();
    ranges.extend([K::MIN..=K::MAX, K::MAX_KEY..=K::MAX_KEY, K::MAX..=K::MAX, K::MIN..=K::MIN, K::MAX..=K::MIN]);
    let listed = of.range_bulk(&ranges).unwrap();
    assert_eq!(listed.offsets.len(), ranges.len() + 1);
    for (i, range) in ranges.iter().enumerate() {
        let expected = model.iter().filter(|(key, _)| range.contains(key));
        let (keys, values) = listed.get(i);
        assert!(keys.iter().zip(values).eq(expected), "{range:?}");
    }
    let counts: Vec<u64> = (0..ranges.len()).map(|i| listed.get(i).0.len() as u64).collect();
    assert_eq!(of.count_range_bulk(&ranges).unwrap(), counts);
    assert!(of.count_range_bulk(&[]).unwrap().is_empty());
    assert!(of.range_bulk(&[]).unwrap().is_empty());
    assert_eq!(of.len().unwrap(), model.len() as u64);
    assert_eq!(of.is_empty().unwrap(), model.is_empty());
}

/// Checks the binary counter, the invariants, and the result of a cleanup.
fn structure_is_right<K: PackedKey, V: PairValue>(of: &dyn Published<K, V>, live: usize, was_cleanup: bool) {
    let host = of.on_host();
    host.check_invariants().unwrap();
    assert_eq!(of.resident_len(), of.batches() * BATCH as u64);
    assert!(of.memory_bytes() >= of.resident_len() * (size_of::<K>() + size_of::<V>()) as u64);
    if !was_cleanup {
        return;
    }
    assert_eq!(of.batches(), live.div_ceil(BATCH) as u64);
    let keys: Vec<K> = host.tree.counter.full().flat_map(|i| host.tree.level(i).0.to_vec()).collect();
    assert!(keys.iter().all(|key| key.is_regular() || *key == K::PLACEBO));
    assert_eq!(keys.iter().filter(|key| key.is_regular()).count(), live);
    assert!(keys.windows(2).all(|two| two[0].original() <= two[1].original()), "smaller keys are in smaller levels");
}

fn stream_is_right<K: PackedKey, V: PairValue>(of: &mut dyn Published<K, V>, ops: &[Op]) -> Lsm<K, V> {
    let mut model = BTreeMap::new();
    for (i, op) in ops.iter().enumerate() {
        let batches = of.batches();
        change(&mut model, op);
        apply(of, op);
        let is_update = match op {
            Op::Insert(pairs) => !pairs.is_empty(),
            Op::Remove(keys) => !keys.is_empty(),
            Op::Mixed(items) => !items.is_empty(),
            Op::Cleanup | Op::Clear => false,
        };
        assert!(!is_update || of.batches() == batches + 1);
        structure_is_right(of, model.len(), matches!(op, Op::Cleanup));
        if i % 5 == 4 || i + 1 == ops.len() {
            answers_agree(of, &model);
        }
    }
    of.on_host()
}

fn empty<K: PackedKey, V: PairValue>() -> Lsm<K, V> {
    Lsm::builder().batch_size(BATCH as u64).build().unwrap()
}

fn empty_on<K: DeviceKey<V>, V: PairValue>(device: &Device) -> gpu::Lsm<K, V> {
    Lsm::builder().batch_size(BATCH as u64).on(device).build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn on_the_host(ops in prop::collection::vec(op(), 1..24)) {
        stream_is_right::<u32, u32>(&mut empty(), &ops);
        stream_is_right::<u32, u64>(&mut empty(), &ops);
        stream_is_right::<u64, u32>(&mut empty(), &ops);
        stream_is_right::<u64, u64>(&mut empty(), &ops);
    }
}

/// Returns operations of all kinds that repeat for the same seed.
fn ops(seed: u64, count: u64) -> Vec<Op> {
    let numbers = |step: u64, len| (0..len).map(move |i| mix(i, seed << 32 | step));
    (0..count)
        .map(|step| {
            let len = [64, 1, 40, 63, 64][mix(step, seed) as usize % 5];
            match mix(step, !seed) % 8 {
                0..3 => Op::Insert(numbers(step, len).map(|n| (n >> 7, n)).collect()),
                3 | 4 => Op::Remove(numbers(step, len).map(|n| n >> 5).collect()),
                5 | 6 => Op::Mixed(numbers(step, len).map(|n| (n >> 9, n, n % 3 == 0)).collect()),
                _ if step > 4 => Op::Cleanup,
                _ => Op::Insert(numbers(step, 64).map(|n| (n >> 3, n)).collect()),
            }
        })
        .collect()
}

fn devices_agree<K: DeviceKey<V>, V: PairValue>(device: &Device, ops: &[Op]) {
    let there = stream_is_right::<K, V>(&mut empty_on(device), ops);
    assert!(there == stream_is_right(&mut empty(), ops), "the same levels on every executor");
}

#[test]
fn on_devices() {
    for device in testing::devices(31) {
        devices_agree::<u32, u32>(&device, &ops(1, 12));
        devices_agree::<u64, u64>(&device, &ops(2, 9));
        devices_agree::<u32, u64>(&device, &ops(3, 6));
        devices_agree::<u64, u32>(&device, &ops(4, 6));
    }
}

/// Inserts full batches of numbers that tell their time: 1 to 15 batches are resident.
#[test]
fn segments_are_ordered_by_time() {
    let mut lsm = empty::<u32, u32>();
    for batch in 1..=15u32 {
        let keys: Vec<u32> = (0..BATCH as u64).map(|i| mix(i, u64::from(batch)) as u32 % 40).collect();
        let times: Vec<u32> = (0..BATCH as u32).map(|i| 1000 * batch + i).collect();
        lsm.update_bulk(&keys, &times, &keys.iter().map(|key| key % 9 == batch % 9).collect::<Vec<_>>()).unwrap();
        assert_eq!((lsm.batches(), lsm.tree.counter.full_count()), (batch.into(), batch.count_ones() as usize));
        for i in lsm.tree.counter.full() {
            let (keys, times) = lsm.tree.level(i);
            let regular: Vec<(u32, u32)> = keys
                .iter()
                .zip(times)
                .filter(|(key, _)| key.is_regular())
                .map(|(key, &time)| (key.original(), time))
                .collect();
            assert!(regular.windows(2).all(|two| two[0].0 < two[1].0 || two[0].1 >= two[1].1), "level {i}");
        }
    }
    // The newest elements are in the smallest level.
    assert!(lsm.tree.level(0).1.iter().all(|&time| time == 0 || time / 1000 == 15));
}

fn boundaries<K: PackedKey, V: PairValue>(lsm: &mut dyn Published<K, V>) {
    let refused = |error: Result<(), Error>| matches!(error, Err(Error::KeyTooLarge { bits, .. }) if bits == 8 * size_of::<K>() as u32 - 1);
    let (one, two) = (value::<V>(1), value::<V>(2));
    lsm.insert_bulk(&[], &[]).unwrap();
    lsm.remove_bulk(&[]).unwrap();
    assert_eq!((lsm.batches(), lsm.len().unwrap()), (0, 0));
    lsm.cleanup().unwrap();

    // A batch of one element is full of copies of it.
    lsm.insert_bulk(&[K::MAX_KEY], &[one]).unwrap();
    assert!(lsm.on_host().tree.level(0).0.iter().all(|&key| key == K::MAX));
    lsm.cleanup().unwrap();
    assert_eq!(lsm.on_host().tree.level(0).0[..2], [K::MAX, K::PLACEBO]);
    assert_eq!(lsm.get_with(&[K::MAX_KEY, K::MAX, K::MIN], LookupMethod::Bulk), [Some(one), None, None]);
    assert_eq!(lsm.count_range_bulk(&[K::MIN..=K::MAX]).unwrap(), [1]);
    // The new element is over placebos, then below them, then over them again.
    lsm.insert_bulk(&[K::MAX_KEY], &[two]).unwrap();
    assert_eq!(lsm.get_with(&[K::MAX_KEY], LookupMethod::Individual), [Some(two)]);
    lsm.remove_bulk(&[K::MAX_KEY]).unwrap();
    assert_eq!((lsm.get_with(&[K::MAX_KEY], LookupMethod::Individual), lsm.len().unwrap()), (vec![None], 0));
    lsm.cleanup().unwrap();
    assert_eq!(lsm.batches(), 0);

    let keys: Vec<K> = (0..BATCH as u64).map(K::from_u64).collect();
    let values = vec![one; BATCH + 1];
    lsm.insert_bulk(&keys, &values[1..]).unwrap();
    let before = lsm.on_host();
    let longer = [&keys[..], &[K::MAX_KEY]].concat();
    assert!(matches!(lsm.insert_bulk(&longer, &values), Err(Error::BatchTooLong { keys: 65, batch_size: 64 })));
    assert!(matches!(lsm.remove_bulk(&longer), Err(Error::BatchTooLong { .. })));
    assert!(matches!(
        lsm.insert_bulk(&keys, &values),
        Err(Error::LengthMismatch(LengthMismatch { needed: 64, found: 65, .. }))
    ));
    assert!(lsm.update_bulk(&keys, &values[1..], &[true]).is_err());
    let large = K::from_u64(K::MAX_KEY.to_u64() + 1);
    assert!(refused(lsm.insert_bulk(&[K::MIN, large, K::MIN], &[one; 3])) && refused(lsm.remove_bulk(&[K::MAX])));
    assert!(refused(lsm.update_bulk(&[large, K::MIN], &[one; 2], &[true, false])));
    assert!(lsm.on_host() == before);
}

#[test]
fn boundaries_everywhere() {
    boundaries::<u32, u32>(&mut empty());
    boundaries::<u64, u32>(&mut empty());
    for device in testing::devices(32) {
        boundaries::<u32, u64>(&mut empty_on(&device));
        boundaries::<u64, u64>(&mut empty_on(&device));
    }
    for size in [0, 63, 100, 1 << 41] {
        let built = Lsm::<u32, u32>::builder().batch_size(size).build();
        assert!(matches!(built, Err(Error::InvalidBatchSize { .. })));
    }
}

#[test]
fn bulk_builds() {
    let devices = testing::devices(33);
    let builder = Lsm::<u32, u32>::builder().batch_size(BATCH as u64);
    for n in [0, 1, 63, 64, 65, 450, 960] {
        let keys: Vec<u32> = (0..n).map(|i| mix(i, 5) as u32 % 300).collect();
        let values: Vec<u32> = (0..n as u32).collect();
        let host = builder.build_from(&keys, &values).unwrap();
        assert_eq!(host.batches(), n.div_ceil(BATCH as u64));
        let model: BTreeMap<u32, u32> = keys.iter().copied().zip(values.iter().copied()).collect();
        answers_agree(&host, &model);
        host.check_invariants().unwrap();
        for device in &devices {
            assert!(builder.on(device).build_from(&keys, &values).unwrap().to_host().unwrap() == host);
            let mut copy = gpu::Lsm::from_host(device, &host).unwrap();
            let mut changed = host.clone();
            for _ in 0..3 {
                copy.insert_bulk(&keys[..keys.len().min(9)], &values[..keys.len().min(9)]).unwrap();
                changed.insert_bulk(&keys[..keys.len().min(9)], &values[..keys.len().min(9)]).unwrap();
            }
            assert!(copy.to_host().unwrap() == changed);
        }
    }
    assert!(matches!(builder.build_from(&[1 << 31], &[0]), Err(Error::KeyTooLarge { key: 0x8000_0000, bits: 31 })));
    for device in &devices {
        assert!(matches!(builder.on(device).build_from(&[1, u32::MAX], &[0, 0]), Err(Error::KeyTooLarge { .. })));
    }
}

/// Inserts more elements than a part of a parallel loop, and asks for ranges of all lengths.
#[test]
fn large_batches() {
    let n = 7 << 14;
    let keys: Vec<u64> = (0..n).map(|i| mix(i, 9) % n).collect();
    let mut lsm = Lsm::<u64, u64>::builder().batch_size(1 << 14).build().unwrap();
    for batch in keys.chunks(1 << 14) {
        lsm.insert_bulk(batch, batch).unwrap();
    }
    lsm.remove_bulk(&keys[..1 << 12]).unwrap();
    let mut model: BTreeMap<u64, u64> = keys.iter().map(|&key| (key, key)).collect();
    keys[..1 << 12].iter().for_each(|key| {
        model.remove(key);
    });
    for cleaned in [false, true] {
        let expected: Vec<Option<u64>> = (0..n).map(|key| model.get(&key).copied()).collect();
        let asked: Vec<u64> = (0..n).collect();
        for method in [LookupMethod::Individual, LookupMethod::Bulk] {
            assert!(lsm.get_bulk_with(&asked, method).unwrap() == expected);
        }
        let ranges: Vec<_> = (0..200).map(|i| 500 * i..=500 * i + i * i).collect();
        let counts: Vec<u64> = ranges.iter().map(|range| model.range(range.clone()).count() as u64).collect();
        assert_eq!(lsm.count_range_bulk(&ranges).unwrap(), counts);
        let listed = lsm.range_bulk(&ranges).unwrap();
        assert!((0..200).all(|i| listed.get(i).0.iter().eq(model.range(ranges[i].clone()).map(|(key, _)| key))));
        if !cleaned {
            lsm.cleanup().unwrap();
            lsm.check_invariants().unwrap();
            assert_eq!(lsm.len().unwrap(), model.len() as u64);
        }
    }
}

#[test]
fn device_memory_and_streams_of_the_caller() {
    for device in testing::devices(34) {
        let (mut host, mut there) = (empty::<u32, u32>(), empty_on::<u32, u32>(&device));
        let batches: Vec<Vec<u32>> = (0..6).map(|b| (0..64).map(|i| mix(i, b) as u32 % 200).collect()).collect();
        let on_device: Vec<_> = batches.iter().map(|keys| device.from_slice(keys).unwrap()).collect();
        let other = device.new_stream().unwrap();
        for (i, keys) in on_device.iter().enumerate() {
            let stream = if i % 2 == 0 { there.stream().clone() } else { other.clone() };
            // SAFETY: keys stay allocated until the device has been waited for, below; there is no other access to the
            // dictionary.
            unsafe { there.insert_async(&stream, keys.slice(i..), keys.slice(i..)).unwrap() };
            device.synchronize().unwrap();
            host.insert_bulk(&batches[i][i..], &batches[i][i..]).unwrap();
        }
        let keys = on_device[0].as_slice();
        let flags: Vec<u8> = (0..64).map(|i| (i % 3 == 0).into()).collect();
        there.update_device(keys, on_device[1].as_slice(), device.from_slice(&flags).unwrap().as_slice()).unwrap();
        host.update_bulk(&batches[0], &batches[1], &flags.iter().map(|&f| f != 0).collect::<Vec<_>>()).unwrap();
        there.remove_device(on_device[2].slice(..5)).unwrap();
        host.remove_bulk(&batches[2][..5]).unwrap();
        assert!(there.to_host().unwrap() == host);

        let expected = host.get_bulk(&batches[3]).unwrap();
        for method in [LookupMethod::Individual, LookupMethod::Bulk] {
            let mut values = device.alloc_zeroed::<u32>(64).unwrap();
            let mut found = device.alloc_zeroed::<u64>(1).unwrap();
            // SAFETY: all lives until the stream has been waited for.
            unsafe {
                let (values, found) = (values.as_mut_slice(), found.as_mut_slice());
                there.get_async_with(&other, on_device[3].as_slice(), values, found, method).unwrap();
            }
            other.synchronize().unwrap();
            assert_eq!(values.to_vec().unwrap(), expected.iter().map(|v| v.unwrap_or(0)).collect::<Vec<_>>());
            assert_eq!(found.to_vec().unwrap()[0].count_ones() as usize, expected.iter().flatten().count());
        }
        let listed = there.range_device(keys, on_device[1].as_slice()).unwrap();
        let ranges: Vec<_> = batches[0].iter().zip(&batches[1]).map(|(&low, &high)| low..=high).collect();
        let expected = host.range_bulk(&ranges).unwrap();
        assert_eq!(
            (listed.offsets.to_vec().unwrap(), listed.keys.to_vec().unwrap()),
            (expected.offsets, expected.keys)
        );

        let foreign = Device::emulator(Default::default()).from_slice(&[1u32]).unwrap();
        assert!(matches!(there.remove_device(foreign.as_slice()), Err(Error::Gpu(_))));
        assert!(matches!(there.insert_device(keys, keys.slice(1..)), Err(Error::LengthMismatch(_))));
        assert!(there.to_host().unwrap() == host);
    }
}

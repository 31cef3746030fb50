//! Dictionaries on several emulated devices, and on GPUs, against `BTreeMap` and bytes of dictionaries of the host.

use std::collections::BTreeMap;

use warpset_base::testing::tier;
use warpset_core::hash::mix;
use warpset_gpu::testing::{deferred, fail_each, unequal, unequal_lists};
use warpset_gpu::{Device, DeviceVec, Devices, EmulatorOptions, GpuError};

use super::{ShardedLsm, ShardedSortedArray};
use crate::gpu::DeviceKey;
use crate::{CleanupPolicy, Error, Lsm, SortedArray, Sum};

/// Copies a share of the items to each device.
fn shares<T: bytemuck::Pod>(devices: &Devices, items: &[T]) -> Vec<DeviceVec<T>> {
    let (n, all) = (items.len(), devices.all());
    let share = |i: usize| &items[n * i / all.len()..n * (i + 1) / all.len()];
    all.iter().enumerate().map(|(i, device)| device.from_slice(share(i)).unwrap()).collect()
}

macro_rules! slices {
    ($shares:expr) => {
        &$shares.iter().map(|share| share.as_slice()).collect::<Vec<_>>()[..]
    };
}

/// Applies batches from the host and from devices; compares bytes, balance and answers.
fn agrees<K, V>(devices: &Devices, key: fn(u64, u64) -> u64, value: fn(u64) -> V)
where
    K: DeviceKey<Stored = K>,
    V: crate::gpu::DeviceValue,
{
    let builder = Lsm::<K, V>::builder().batch_size(64).cleanup(CleanupPolicy::StaleShare(0.5));
    let mut there = builder.sharded_on(devices).build().unwrap();
    there.set_chunk_keys(64);
    let mut model = BTreeMap::new();
    for step in 0..9 {
        let len = [1, 400, 0, 97, 300, 150][step as usize % 6];
        let keys: Vec<K> = (0..len).map(|i| K::from_u64(key(step, i))).collect();
        let values: Vec<V> = (0..len).map(|i| value(mix(i, step))).collect();
        let (on_devices, of_devices) = (shares(devices, &keys), shares(devices, V::stored(&values)));
        match step % 3 {
            0 => there.insert_bulk(&keys, &values).unwrap(),
            1 => there.insert_each_device(slices!(on_devices), slices!(of_devices)).unwrap(),
            _ => {
                let removed: Vec<bool> = (0..len).map(|i| i % 4 == 0).collect();
                there.update_bulk(&keys, &values, &removed).unwrap();
            }
        }
        model.extend(keys.iter().copied().zip(values.iter().copied()));
        if step % 3 == 2 {
            keys.iter().step_by(4).for_each(|key| _ = model.remove(key));
        }
        if step == 4 {
            let gone: Vec<K> = model.keys().copied().step_by(3).collect();
            let (by_host, by_devices) = gone.split_at(gone.len() / 2);
            there.remove_bulk(by_host).unwrap();
            there.remove_each_device(slices!(shares(devices, by_devices))).unwrap();
            gone.iter().for_each(|key| _ = model.remove(key));
        }
        let (lens, count) = (there.resident_lens(), devices.all().len() as u64);
        let share = lens.iter().sum::<u64>() / count;
        assert!(share < super::change::LEAST || lens.iter().all(|len| 2 * len <= 3 * share), "{step}: {lens:?}");
    }
    assert_eq!(there.bounds().len() + 1, devices.all().len());
    let (keys, values): (Vec<K>, Vec<V>) = model.iter().map(|(&key, &value)| (key, value)).unzip();
    assert_eq!(there.to_host().unwrap().to_bytes(), builder.build_from(&keys, &values).unwrap().to_bytes());
    assert_eq!(there.len().unwrap(), keys.len() as u64);

    let asked: Vec<K> = (0..500).map(|i| K::from_u64(key(i % 9, i % 120) + i / 250)).chain([K::MIN, K::MAX]).collect();
    let expected: Vec<Option<V>> = asked.iter().map(|key| model.get(key).copied()).collect();
    assert_eq!(there.get_bulk(&asked).unwrap(), expected);
    let batches = shares(devices, &asked);
    let mut answers: Vec<_> = Vec::new();
    for keys in &batches {
        let places = if size_of::<V>() == 0 { 0 } else { keys.len() };
        let values = keys.device().alloc_zeroed::<V::Stored>(places).unwrap();
        answers.push((values, keys.device().alloc_zeroed::<u64>(keys.len().div_ceil(64)).unwrap()));
    }
    let to = answers.iter_mut().map(|(values, found)| (values.as_mut_slice(), found.as_mut_slice()));
    there.get_each_device(slices!(batches), to.collect()).unwrap();
    let mut expected = expected.into_iter();
    for (keys, (values, found)) in batches.iter().zip(answers) {
        let (found, mut out) = (found.to_vec().unwrap(), vec![V::NONE; keys.len()]);
        V::stored_mut(&mut out).copy_from_slice(&values.to_vec().unwrap());
        for (i, value) in out.into_iter().enumerate() {
            let expected = expected.next().unwrap();
            assert_eq!((found[i / 64] >> (i % 64) & 1 != 0, value), (expected.is_some(), expected.unwrap_or(V::NONE)));
        }
    }
    let ranges: Vec<_> = asked.chunks(2).filter(|two| two.len() == 2).map(|two| two[0]..two[1]).collect();
    let counts = there.count_range_bulk(&ranges).unwrap();
    let found = there.range_bulk(&ranges).unwrap();
    for (i, range) in ranges.into_iter().enumerate() {
        let of_model: Vec<_> = if range.start <= range.end { model.range(range).collect() } else { Vec::new() };
        let (keys, values) = found.get(i);
        assert_eq!((counts[i], keys.len()), (of_model.len() as u64, of_model.len()));
        assert!(keys.iter().zip(values).eq(of_model));
    }
    let again = ShardedLsm::from_host(devices, &there.to_host().unwrap()).unwrap();
    assert!(again.to_host().unwrap() == there.to_host().unwrap());
    there.clear().unwrap();
    assert!(there.is_empty().unwrap() && there.to_host().unwrap() == builder.build().unwrap());
}

#[test]
fn the_dictionary_of_the_host_on_any_number_of_devices() {
    for (i, devices) in unequal_lists().iter().enumerate() {
        // By default not 2 and 3 emulators, which the other tests have.
        if tier([1, 2].contains(&i), false) {
            continue;
        }
        // Over the whole range; nine in ten within 50 keys, others above; ascending from batch to batch.
        agrees::<u64, u64>(devices, |step, i| (mix(i, step % 4) % 5000) << 51, |n| n);
        agrees::<u64, u64>(devices, |_, i| if i % 10 > 0 { i % 50 } else { 1 << 50 | i }, |n| n);
        agrees::<u64, u64>(devices, |step, i| step << 20 | i, |n| n);
    }
    agrees::<u32, [u8; 12]>(
        &unequal(3),
        |step, i| (mix(i, step % 3) % 2000) << 20,
        |n| std::array::from_fn(|i| mix(n, i as u64) as u8),
    );
    agrees::<u32, ()>(&unequal(2), |step, i| (step << 9 | i) % 4096, |_| ());
}

#[test]
fn sums_of_batches_anywhere() {
    unequal_lists()[2..].iter().for_each(sums_on);
}

fn sums_on(devices: &Devices) {
    let mut there = Lsm::<u64, u64>::builder().batch_size(64).sharded_on(devices).build().unwrap();
    let mut model = BTreeMap::new();
    for step in 0..4u64 {
        let keys: Vec<u64> = (0..300).map(|i| (mix(i, step) % 200) << 40).collect();
        keys.iter().for_each(|&key| *model.entry(key).or_insert(0) += key + step);
        let values: Vec<u64> = keys.iter().map(|key| key + step).collect();
        if step % 2 == 0 {
            there.upsert_bulk::<Sum<u64>>(&keys, &values).unwrap();
        } else {
            let (keys, values) = (shares(devices, &keys), shares(devices, &values));
            there.upsert_each_device::<Sum<u64>>(slices!(keys), slices!(values)).unwrap();
        }
    }
    assert!(there.to_host().unwrap().iter().eq(model));
}

/// Tests more batches than one merge takes, all with the same keys, of which the last one counts.
#[test]
fn the_last_batch_counts() {
    let devices = unequal(2);
    let mut there = SortedArray::<u64, u64>::builder().sharded_on(&devices).build().unwrap();
    let keys: Vec<u64> = (0..50).map(|i| i % 40).collect();
    let batches: Vec<_> = (0..70).map(|i| devices.all()[i % 2].from_slice(&keys).unwrap()).collect();
    let values = |i: u64| (0..50).map(|j| 100 * i + j).collect::<Vec<u64>>();
    let of_batches: Vec<_> = (0..70).map(|i| devices.all()[i % 2].from_slice(&values(i as u64)).unwrap()).collect();
    there.insert_each_device(slices!(batches), slices!(of_batches)).unwrap();
    assert!(there.to_host().unwrap() == SortedArray::builder().build_from(&keys, &values(69)).unwrap());
}

#[test]
fn a_device_with_little_memory_gets_fewer_elements() {
    let device = |bytes| Device::emulator_with(EmulatorOptions::default().memory_bytes(bytes));
    let devices = Devices::new([device(1 << 18), device(1 << 26)]).unwrap();
    let mut there = Lsm::<u64, u64>::builder().sharded_on(&devices).build().unwrap();
    let keys: Vec<u64> = (0..16_000).map(|i| mix(i, 1)).collect();
    let large = devices.all()[1].from_slice(&keys).unwrap();
    there.insert_each_device(&[large.as_slice()], &[large.as_slice()]).unwrap();
    let lens = there.resident_lens();
    assert!(lens[0] > 1000 && lens[0] < 7700 && lens[0] + lens[1] == 16_000, "{lens:?}");
    assert_eq!(there.get_bulk(&keys[..100]).unwrap(), keys[..100].iter().map(|&key| Some(key)).collect::<Vec<_>>());
}

#[test]
fn failures_leave_dictionaries_as_they_were() {
    let devices = Devices::new((0..2).map(deferred)).unwrap();
    let keys: Vec<u64> = (0..200).map(|i| mix(i, 3)).collect();
    let more: Vec<u64> = (0..150).map(|i| mix(i + 100, 3) >> 9).collect();
    let before = Lsm::<u64, u64>::builder().batch_size(64).build_from(&keys, &keys).unwrap();
    let flags: Vec<bool> = (0..150).map(|i| i % 3 == 0).collect();
    type Change<'a> = &'a dyn Fn(&mut ShardedLsm<u64, u64>) -> Result<(), Error>;
    let on_devices = shares(&devices, &more);
    let changes: [Change<'_>; 6] = [
        &|there| there.insert_bulk(&more, &more),
        &|there| there.remove_bulk(&keys[..90]),
        &|there| there.update_bulk(&more, &more, &flags),
        &|there| there.upsert_bulk::<Sum<u64>>(&more, &more),
        &|there| there.insert_each_device(slices!(on_devices), slices!(on_devices)),
        &|there| there.clear(),
    ];
    for change in changes {
        let mut there = ShardedLsm::from_host(&devices, &before).unwrap();
        let mut complete = ShardedLsm::from_host(&devices, &before).unwrap();
        change(&mut complete).unwrap();
        let after = complete.to_host().unwrap();
        let bounds = there.bounds().to_vec();
        let failed = fail_each(&mut there, change, |there, changed| match changed {
            Err(error) => {
                assert!(matches!(error, Error::Gpu(_)), "{error}");
                assert!(there.to_host().unwrap() == before && there.bounds() == bounds, "{error}");
            }
            Ok(()) => {
                assert!(there.to_host().unwrap() == after);
                *there = ShardedLsm::from_host(&devices, &before).unwrap();
            }
        });
        assert!(failed > 1, "{failed}");
    }
    let mut there = ShardedLsm::from_host(&devices, &before).unwrap();
    let balance = |there: &mut ShardedLsm<u64, u64>| there.balance();
    fail_each(&mut there, balance, |there, _| assert!(there.to_host().unwrap() == before));
    let look_up = |there: &mut ShardedLsm<u64, u64>| there.get_bulk(&more);
    let failed = fail_each(&mut there, look_up, |_, found| {
        assert!(found.is_err() || found.unwrap() == before.get_bulk(&more));
    });
    assert!(failed > 8);
}

#[test]
fn unfit_batches_are_refused_before_any_is_applied() {
    for count in [1, 2] {
        let devices = unequal(count);
        let mut there: ShardedSortedArray<u64, u64> = SortedArray::builder().sharded_on(&devices).build().unwrap();
        let here = devices.first().from_slice(&[1u64, 2, 3]).unwrap();
        let stray = deferred(9).from_slice(&[1u64, 2, 3]).unwrap();
        let both = [here.as_slice(), stray.as_slice()];
        let refused = there.insert_each_device(&both, &both);
        assert!(matches!(refused, Err(Error::Gpu(GpuError::OtherDevice { .. }))), "{refused:?}");
        let refused = there.insert_each_device(&[here.as_slice(); 2], &[here.as_slice(), here.slice(1..)]);
        assert!(matches!(refused, Err(Error::LengthMismatch(_))), "{refused:?}");
        assert!(matches!(there.insert_each_device(&both[..1], &[]), Err(Error::LengthMismatch(_))));
        assert!(matches!(there.insert_bulk(&[1], &[]), Err(Error::LengthMismatch(_))));
        assert!(there.remove_each_device(&both).is_err());
        assert!(there.is_empty().unwrap());
        assert!(Lsm::<u64, u64>::builder().batch_size(3).sharded_on(&devices).build().is_err());
    }
}

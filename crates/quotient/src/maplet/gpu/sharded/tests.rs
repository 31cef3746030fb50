//! Maplets on several devices, compared with those of the host.

use warpset_core::hash::mix;
use warpset_gpu::GpuError;
use warpset_gpu::testing::{deferred, fail_each, unequal, unequal_lists};

use super::*;
use crate::{Duplicates, Filter, RankSelectBuilder, Sum};

/// Compares bytes and answers with those of the host's maplet, for keys of `key_bits` bits.
fn behaves_as_on_the_host(devices: &Devices, builder: &MapletBuilder, key_bits: u32) {
    let combines = builder.layout().unwrap().check_combines().is_ok();
    let key = |i: u64| mix(i, 1) >> (64 - key_bits);
    let keys: Vec<u64> = (0..700).map(|i| key(i % 500)).collect();
    let values: Vec<u64> = (0..700).map(|i| i * i % 256).collect();
    let (held, more) = (0..300, 300..700);
    let mut on_host = builder.build_from(&keys[held.clone()], &values[held.clone()]).unwrap();
    let mut maplet = builder.sharded_on(devices).build_from(&keys[held.clone()], &values[held]).unwrap();
    assert_eq!(maplet.devices().all().len(), 1 << devices.all().len().ilog2());
    assert!(maplet.to_host().unwrap() == on_host);
    maplet.set_chunk_keys(128);
    let last = maplet.devices().all().last().unwrap().clone();
    let at_keys = last.from_slice(&keys[more.clone()]).unwrap();
    // Batches of unequal lengths on two devices, if there are two.
    let shares = [(devices.first(), 300..600), (&last, 600..700)].map(|(device, share)| {
        (device.from_slice(&keys[share.clone()]).unwrap(), device.from_slice(&values[share]).unwrap())
    });
    let batch = (shares.each_ref().map(|of| of.0.as_slice()), shares.each_ref().map(|of| of.1.as_slice()));
    let (keys_of, values_of) = (&keys[more.clone()], &values[more]);
    if combines {
        let new = on_host.upsert_bulk::<Sum<u64>, _, _>(keys_of, values_of).unwrap();
        assert_eq!(maplet.upsert_each_device::<Sum<u64>, _>(&batch.0, &batch.1).unwrap(), new);
        on_host.upsert_bulk::<Sum<u64>, _, _>(&keys, &values).unwrap();
        maplet.upsert_bulk::<Sum<u64>, _, _>(&keys, &values).unwrap();
        on_host.upsert_bulk::<Sum<u64>, _, _>(&keys[300..600], &values[300..600]).unwrap();
        maplet.upsert_device::<Sum<u64>, _>(batch.0[0], batch.1[0]).unwrap();
    }
    let added = on_host.insert_bulk(keys_of, values_of).unwrap();
    assert_eq!(maplet.insert_each_device(&batch.0, &batch.1).unwrap(), added);
    let added = on_host.insert_bulk(&keys[600..], &values[600..]).unwrap();
    assert_eq!(maplet.insert_device(batch.0[1], batch.1[1]).unwrap(), added);
    assert!(maplet.to_host().unwrap() == on_host && maplet.len() == on_host.len());

    // An exact maplet has no fingerprint for the last ones.
    let asked: Vec<u64> = (0..900).map(key).chain((0..100).map(|i| mix(i, 7))).collect();
    let expected = on_host.get_bulk(&asked);
    assert_eq!(maplet.get_bulk(&asked).unwrap(), expected);
    assert!(maplet.contains_bulk(&asked).unwrap().into_iter().eq(expected.iter().map(Option::is_some)));
    let mut answers = Vec::new();
    let shares: Vec<_> = devices.at_most(maplet.devices().all().len()).all().to_vec();
    let there: Vec<_> = shares.iter().map(|device| device.from_slice(&asked).unwrap()).collect();
    for device in &shares {
        answers.push(device.alloc_zeroed::<u64>(asked.len()).unwrap());
    }
    let batches: Vec<_> = there.iter().map(|keys| keys.as_slice()).collect();
    maplet.get_each_device(&batches, answers.iter_mut().map(|answers| answers.as_mut_slice()).collect()).unwrap();
    for answers in answers {
        let answers = answers.to_vec().unwrap().into_iter();
        assert!(answers.map(|word| (word != Maplet::ABSENT).then_some(word)).eq(expected.iter().copied()));
    }

    if on_host.layout().keys().is_exact() {
        let is_refused = |result| matches!(result, Err(Error::KeyTooWide { .. }));
        assert!(is_refused(maplet.insert_bulk(&asked, &vec![1u8; 1_000])));
        let ones = last.from_slice(&vec![1; 1_000]).unwrap();
        assert!(is_refused(maplet.insert_device(*batches.last().unwrap(), ones.as_slice())));
        assert!(is_refused(maplet.upsert_device::<Sum<u64>, _>(*batches.last().unwrap(), ones.as_slice())));
        let unfit = &asked[900..];
        assert_eq!(maplet.remove_bulk(unfit).unwrap(), on_host.remove_bulk(unfit).unwrap());
    }
    let copy = ShardedMaplet::from_host(devices, &on_host).unwrap();
    assert!(copy.to_host().unwrap() == on_host);
    assert_eq!(maplet.remove_bulk(&keys[..200]).unwrap(), on_host.remove_bulk(&keys[..200]).unwrap());
    assert_eq!(maplet.remove_device(at_keys.slice(..100)).unwrap(), on_host.remove_bulk(&keys[300..400]).unwrap());
    assert_eq!(maplet.remove_each_device(&batch.0).unwrap(), on_host.remove_bulk(keys_of).unwrap());
    assert!(maplet.to_host().unwrap() == on_host);
    maplet.merge(&copy).unwrap();
    on_host.merge(&copy.to_host().unwrap()).unwrap();
    if combines {
        maplet.merge_by::<Sum<u64>>(&copy).unwrap();
        on_host.merge_by::<Sum<u64>>(&copy.to_host().unwrap()).unwrap();
    }
    assert!(maplet.to_host().unwrap() == on_host);
    maplet.clear().unwrap();
    assert!(maplet.is_empty() && maplet.to_host().unwrap() == builder.build().unwrap());
}

#[test]
fn the_maplet_of_the_host_on_any_number_of_devices() {
    for devices in &unequal_lists() {
        behaves_as_on_the_host(devices, &RankSelectBuilder::with_bits(11, 9).values(12), 64);
        behaves_as_on_the_host(devices, &RankSelectBuilder::with_bits(11, 9).exact(20).values(12), 20);
    }
    let kept = RankSelectBuilder::with_bits(11, 9).duplicates(Duplicates::Kept);
    behaves_as_on_the_host(&unequal(2), &kept.values(12), 64);
    let counted = RankSelectBuilder::with_bits(11, 9).duplicates(Duplicates::Counted);
    behaves_as_on_the_host(&unequal(3), &counted.values(12), 64);
}

#[test]
fn failures_and_unfit_batches_are_errors() {
    let devices = Devices::new((0..2).map(deferred)).unwrap();
    let builder = RankSelectBuilder::with_bits(9, 9).values(8);
    let keys: Vec<u64> = (0..300).map(|i| mix(i, 3)).collect();
    let mut maplet = builder.sharded_on(&devices).build_from(&keys, &vec![5u8; 300]).unwrap();
    let expected = maplet.to_host().unwrap();
    let insert = |maplet: &mut ShardedMaplet| maplet.insert_bulk(&keys, &vec![5u8; 300]);
    let failed = fail_each(&mut maplet, insert, |maplet, _| assert!(maplet.to_host().unwrap() == expected));
    assert!(failed > 8);
    let answers = expected.get_bulk(&keys);
    let look_up = |maplet: &mut ShardedMaplet| maplet.get_bulk(&keys);
    let failed = fail_each(&mut maplet, look_up, |maplet, _| assert_eq!(maplet.get_bulk(&keys).unwrap(), answers));
    assert!(failed > 8);
    assert!(matches!(maplet.insert_bulk(&keys[..2], &[1u64, 256]), Err(Error::ValueTooWide { value: 256, .. })));
    assert!(matches!(maplet.insert_bulk(&keys[..2], &[1u64]), Err(Error::LengthMismatch(_))));
    assert!(matches!(maplet.get_bulk_into(&keys[..2], &mut [None]), Err(Error::LengthMismatch(_))));
    let here = devices.first().from_slice(&keys).unwrap();
    let few = devices.first().from_slice(&[1u64]).unwrap();
    let refused = maplet.insert_each_device(&[here.as_slice()], &[few.as_slice()]);
    assert!(matches!(refused, Err(Error::LengthMismatch(_))), "{refused:?}");
    let elsewhere = deferred(9).from_slice(&keys).unwrap();
    let refused = maplet.remove_device(elsewhere.as_slice());
    assert!(matches!(refused, Err(Error::Gpu(GpuError::OtherDevice { .. }))), "{refused:?}");
    assert!(maplet.to_host().unwrap() == expected);
}

#[test]
fn nothing_is_applied_of_batches_of_which_one_is_unfit() {
    let builder = RankSelectBuilder::with_bits(9, 9).values(8);
    for devices in &unequal_lists() {
        let mut maplet = builder.sharded_on(devices).build().unwrap();
        maplet.set_chunk_keys(64);
        let used = maplet.devices().clone();
        let (first, last) = (used.first(), used.all().last().unwrap());
        let keys: Vec<u64> = (0..200).map(|i| mix(i, 5)).collect();
        let mut values = vec![1u64; 200];
        let (here, of_here) = (first.from_slice(&keys).unwrap(), first.from_slice(&values).unwrap());
        values[199] = 256;
        let (there, too_wide) = (last.from_slice(&keys).unwrap(), last.from_slice(&values).unwrap());
        let batches = [here.as_slice(), there.as_slice()];
        let wide = [of_here.as_slice(), too_wide.as_slice()];
        let refused = maplet.insert_each_device(&batches, &wide);
        assert!(matches!(refused, Err(Error::ValueTooWide { value: 256, .. })), "{refused:?}");
        let refused = maplet.upsert_each_device::<Sum<u64>, _>(&batches, &wide);
        assert!(matches!(refused, Err(Error::ValueTooWide { value: 256, .. })), "{refused:?}");
        let few = [of_here.as_slice(), too_wide.slice(..3)];
        for batches in [batches, [here.as_slice(), there.slice(..0)]] {
            let refused = maplet.insert_each_device(&batches, &few);
            assert!(matches!(refused, Err(Error::LengthMismatch(_))), "{refused:?}");
        }
        let stray = deferred(9);
        let (stray, of_stray) = (stray.from_slice(&keys).unwrap(), stray.from_slice(&[1; 200]).unwrap());
        let (batches, values) = ([here.as_slice(), stray.as_slice()], [of_here.as_slice(), of_stray.as_slice()]);
        let refused = maplet.insert_each_device(&batches, &values);
        assert!(matches!(refused, Err(Error::Gpu(GpuError::OtherDevice { .. }))), "{refused:?}");
        assert!(maplet.is_empty());
    }
}

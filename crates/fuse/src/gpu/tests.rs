//! Tests of filters on the emulator and on CUDA: bytes and answers equal the host's.

use warpset_base::filter::Filter;
use warpset_base::testing::keys;
use warpset_gpu::batch::StringVec;
use warpset_gpu::testing::{devices, fail_each, is_sanitized};
use warpset_gpu::{Device, GpuError};
use warpset_primitives::DeviceFilter;

use super::{BinaryFuse, DeviceWidth};
use crate::testing::each_form;
use crate::{Arity, BinaryFuse8, BinaryFuse16, BinaryFuse32, Error, Form, Hashed};

/// Compares filters built on the device and on the host, from keys on either side.
fn bytes_are_those_of_the_host<F: DeviceWidth>(device: &Device, keys: &[u64], arity: Arity, form: Form) {
    let builder = crate::BinaryFuse::<F>::builder().arity(arity).form(form).seed(3);
    let host = builder.build_from(keys).unwrap();
    let built = builder.on(device).build_from(keys).unwrap();
    assert!(built.to_host().unwrap() == host, "{} keys, {arity:?} {form:?}", keys.len());
    let there = device.from_slice(keys).unwrap();
    let built = builder.on(device).build_from_device(there.as_slice()).unwrap();
    assert!(built.to_host().unwrap() == host, "{} keys, {arity:?} {form:?}", keys.len());
    assert_eq!(built.count_contained_device(there.as_slice()).unwrap(), keys.len());
}

#[test]
fn builds_have_the_bytes_of_the_host() {
    for device in devices(31) {
        each_form(|arity, form| {
            for n in [0, 1, 2, 3, 31, 200, 1025, 4000] {
                bytes_are_those_of_the_host::<u8>(&device, &keys(n, n), arity, form);
            }
            bytes_are_those_of_the_host::<u16>(&device, &keys(700, 1), arity, form);
            bytes_are_those_of_the_host::<u32>(&device, &keys(701, 1), arity, form);
        });
    }
}

#[test]
fn several_shards_and_many_rounds() {
    for device in devices(32) {
        let n = if device.is_emulator() { 14_000 } else { 3_000_000 };
        each_form(|arity, form| bytes_are_those_of_the_host::<u8>(&device, &keys(n, 5), arity, form));
        let n = if device.is_emulator() { 27_500 } else { 1_000_000 };
        bytes_are_those_of_the_host::<u16>(&device, &keys(n, 6), Arity::Three, Form::Sharded);
    }
}

#[test]
fn repeated_keys_count_once() {
    for device in devices(33) {
        each_form(|arity, form| {
            let once = keys(500, 5);
            let twice = [&once[..], &once[..100], &once[..1]].concat();
            bytes_are_those_of_the_host::<u8>(&device, &twice, arity, form);
            for copies in [2, 256, 257, 1000] {
                bytes_are_those_of_the_host::<u8>(&device, &vec![7; copies], arity, form);
            }
            if !device.is_emulator() {
                bytes_are_those_of_the_host::<u16>(&device, &vec![7; 100_000], arity, form);
            }
        });
    }
}

#[test]
fn all_forms_of_answers_agree() {
    fn agree<F: DeviceWidth>(device: &Device, arity: Arity, form: Form, n: u64) {
        let stored = keys(n, 1);
        let host = crate::BinaryFuse::<F>::builder().arity(arity).form(form).build_from(&stored).unwrap();
        let filter = host.to_device(device).unwrap();
        let asked = [&stored[..stored.len().min(300)], &keys(777, 2)].concat();
        let wanted = host.contains_bulk(&asked).unwrap();
        assert_eq!(filter.contains_bulk(&asked).unwrap(), wanted);
        assert_eq!(filter.contains_bitmap_bulk(&asked).unwrap(), host.contains_bitmap_bulk(&asked).unwrap());
        let there = device.from_slice(&asked).unwrap();
        let mut bytes = device.from_slice(&vec![9u8; asked.len()]).unwrap();
        filter.contains_device(there.as_slice(), bytes.as_mut_slice()).unwrap();
        assert!(bytes.to_vec().unwrap().iter().map(|&byte| byte == 1).eq(wanted.iter().copied()));
        let mut bits = device.from_slice(&vec![u64::MAX; asked.len().div_ceil(64)]).unwrap();
        filter.contains_bitmap_device(there.as_slice(), bits.as_mut_slice()).unwrap();
        assert_eq!(bits.to_vec().unwrap(), host.contains_bitmap_bulk(&asked).unwrap().as_words());
        let yes = wanted.iter().filter(|yes| **yes).count();
        assert_eq!(filter.count_contained_device(there.as_slice()).unwrap(), yes);
        let stencil: Vec<u8> = (0..asked.len()).map(|i| (i % 3 == 0).into()).collect();
        let there_too = device.from_slice(&stencil).unwrap();
        filter.contains_if_device(there.as_slice(), there_too.as_slice(), bytes.as_mut_slice()).unwrap();
        let masked = wanted.iter().zip(&stencil).map(|(&yes, &set)| yes && set == 1);
        assert!(bytes.to_vec().unwrap().iter().map(|&byte| byte == 1).eq(masked));
        let copy = filter.try_clone().unwrap();
        assert!(copy.to_host().unwrap() == host && copy.bits_per_key() == host.bits_per_key());
        assert_eq!((copy.len(), copy.fpr(), copy.load_factor()), (host.len(), host.fpr(), host.load_factor()));
        assert_eq!(copy.measured_fpr(3000, 5).unwrap(), host.measured_fpr(3000, 5));
    }
    for device in devices(34) {
        each_form(|arity, form| {
            for n in [0, 1, 500] {
                agree::<u8>(&device, arity, form, n);
            }
            agree::<u16>(&device, arity, form, 300);
            agree::<u32>(&device, arity, form, 14_000);
        });
    }
}

#[test]
fn keys_of_every_kind() {
    for device in devices(35) {
        each_form(|arity, form| {
            let builder = BinaryFuse32::builder().arity(arity).form(form);
            let signed: Vec<i32> = (-300..300).map(|i| i * 7_000_001).collect();
            let there = device.from_slice(&signed).unwrap();
            let filter = builder.on(&device).build_from_device(there.as_slice()).unwrap();
            assert!(filter.to_host().unwrap() == builder.build_from(&signed).unwrap());
            let short: Vec<u16> = (0..300).collect();
            let filter = builder.on(&device).build_from(&short).unwrap();
            assert!(filter.to_host().unwrap() == builder.build_from(&short).unwrap());
            let referred: Vec<&i32> = signed.iter().collect();
            let filter = builder.on(&device).build_from(&referred).unwrap();
            assert!(filter.to_host().unwrap() == builder.build_from(&signed).unwrap());
            assert_eq!(filter.count_contained_bulk(&referred).unwrap(), signed.len());
            let wide: Vec<u128> = (0..300).map(|i| i << 60).collect();
            let filter = builder.on(&device).build_from(&wide).unwrap();
            assert!(filter.to_host().unwrap() == builder.build_from(&wide).unwrap());
            let hashes: Vec<Hashed> = keys(400, 9).into_iter().map(Hashed).collect();
            let there = device.from_slice(&hashes).unwrap();
            let filter = builder.on(&device).build_from_device(there.as_slice()).unwrap();
            assert!(filter.to_host().unwrap() == builder.build_from(&hashes).unwrap());

            let words: Vec<String> = (0..200).map(|i| format!("word {i}")).collect();
            let strings = StringVec::from_slice(&device, &words).unwrap();
            let strings = strings.as_strings();
            let host = builder.build_from(&words).unwrap();
            assert!(builder.on(&device).build_from(&words).unwrap().to_host().unwrap() == host);
            let filter = builder.on(&device).build_from_device(strings).unwrap();
            assert!(filter.to_host().unwrap() == host);
            assert_eq!(filter.count_contained_device(strings).unwrap(), 200);
            assert!(filter.contains_bulk(&["word 7", "words"]).unwrap() == [true, false]);
        });
    }
}

fn is_refused<T>(result: Result<T, Error>) {
    match result {
        Err(Error::Gpu(GpuError::OtherDevice { .. })) => {}
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("memory of another device was taken"),
    }
}

#[test]
fn memory_of_another_device_is_refused() {
    let (here, there) = (Device::emulator(Default::default()), Device::emulator(Default::default()));
    let builder = BinaryFuse8::builder();
    let filter = builder.on(&here).build_from(&[1u64, 2, 3]).unwrap();
    let (ours, theirs) = (here.from_slice(&[1u64, 2]).unwrap(), there.from_slice(&[1u64, 2]).unwrap());
    let mut answers = there.alloc_zeroed::<u8>(2).unwrap();
    is_refused(builder.on(&here).build_from_device(theirs.as_slice()));
    is_refused(filter.contains_device(theirs.as_slice(), answers.as_mut_slice()));
    is_refused(filter.contains_device(ours.as_slice(), answers.as_mut_slice()));
    is_refused(filter.count_contained_device(theirs.as_slice()));
    let none = there.from_slice::<u64>(&[]).unwrap();
    assert!(builder.on(&here).build_from_device(none.as_slice()).unwrap().is_empty());
    assert_eq!(filter.count_contained_device(none.as_slice()).unwrap(), 0);
    let mut few = here.alloc_zeroed::<u8>(1).unwrap();
    assert!(matches!(filter.contains_device(ours.as_slice(), few.as_mut_slice()), Err(Error::LengthMismatch(_))));
}

#[test]
fn memory_runs_out_at_each_allocation() {
    for device in devices(36) {
        for form in [Form::OneGraph, Form::Sharded] {
            let builder = BinaryFuse16::builder().form(form);
            let some = [&keys(40, 1)[..], &keys(5, 1)].concat();
            let host = builder.build_from(&some).unwrap();
            let there = device.from_slice(&some).unwrap();
            let check = |(): &mut (), built: Result<BinaryFuse<u16>, Error>| match built {
                Ok(built) => assert!(built.to_host().unwrap() == host),
                Err(Error::Gpu(_)) => {}
                Err(other) => panic!("{other}"),
            };
            let steps = fail_each(&mut (), |()| builder.on(&device).build_from_device(there.as_slice()), check);
            assert!(steps > 10, "{steps}");
            fail_each(&mut (), |()| builder.on(&device).build_from(&some), check);
            let filter = host.to_device(&device).unwrap();
            let counted = |(): &mut (), count: Result<usize, Error>| {
                assert!(count.map_or_else(|error| matches!(error, Error::Gpu(_)), |count| count == some.len()));
            };
            fail_each(&mut (), |()| filter.count_contained_bulk(&some), counted);
            fail_each(&mut (), |()| filter.count_contained_device(there.as_slice()), counted);
            assert!(filter.to_host().unwrap() == host);
        }
    }
}

/// Builds a filter of 16 GB of keys on a card of 80 GB or more; takes 4 times that for a time.
#[test]
#[ignore = "takes a GPU with 80 GB, and half a minute"]
fn two_billion_keys() {
    const N: u64 = 1 << 31;
    for device in devices(37).into_iter().filter(|device| !device.is_emulator() && !is_sanitized()) {
        for form in [Form::Sharded, Form::OneGraph] {
            let mut there = device.alloc_uninit::<u64>(N as usize).unwrap();
            let part: usize = 1 << 27;
            for first in (0..N as usize).step_by(part) {
                let some: Vec<u64> = (first as u64..(first + part) as u64).map(|i| i * 3).collect();
                device.new_stream().unwrap().upload(there.slice_mut(first..first + part), &some).unwrap();
            }
            let start = std::time::Instant::now();
            let filter = BinaryFuse8::builder().form(form).on(&device).build_from_device(there.as_slice()).unwrap();
            println!("{form:?}: {:?}, {} bits per key", start.elapsed(), filter.bits_per_key());
            assert_eq!((filter.len(), filter.count_contained_device(there.as_slice()).unwrap()), (N, N as usize));
            // Numbers in between are no keys: four standard deviations around 2^-8.
            let others: Vec<u64> = (0..1 << 24).map(|i| i * 3 + 1).collect();
            let found = filter.count_contained_bulk(&others).unwrap() as f64;
            assert!((found - 65_536.0).abs() < 4.0 * 256.0, "{found}");
        }
    }
}

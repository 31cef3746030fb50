//! Tests of filters and functions on several emulated devices: bytes and answers equal the host's.

use warpset_base::filter::Filter;
use warpset_core::hash::mix;
use warpset_gpu::GpuError;
use warpset_gpu::testing::{deferred, fail_each, unequal, unequal_lists};
use warpset_primitives::DeviceFilter;

use super::*;
use crate::{Arity, BinaryFuse8, Bitmap, Builder, FunctionBuilder};

fn keys(n: u64) -> Vec<u64> {
    (0..n).map(|i| mix(i, 1)).collect()
}

/// Compares bytes and answers of a divided filter with those of the host's.
fn filter_is_that_of_the_host<F: DeviceWidth, K: Key>(devices: &Devices, builder: Builder<F>, n: usize, asked: &[K]) {
    let host = builder.build_from(&asked[..n]).unwrap();
    let mut filter = ShardedBinaryFuse::from_host(devices, &host).unwrap();
    assert!(filter.to_host().unwrap() == host, "{:?}", host.layout());
    assert_eq!(filter.devices().all().len() as u64, host.layout().graphs().min(devices.all().len() as u64));
    assert_eq!((filter.len(), filter.is_empty(), filter.fpr()), (host.len(), host.is_empty(), host.fpr()));
    // Each part rounds its seeds up to a word.
    let more = filter.memory_bytes() - host.memory_bytes();
    assert!(more < 8 * filter.devices().all().len() as u64, "{more}");
    assert!(filter.bits_per_key() >= host.bits_per_key());
    assert_eq!(filter.contains_bulk(asked).unwrap(), host.contains_bulk(asked).unwrap());
    filter.set_chunk_keys(192);
    assert_eq!(filter.contains_bulk(asked).unwrap(), host.contains_bulk(asked).unwrap());
}

/// Compares bytes and values of a divided function with those of the host's, for keys everywhere.
fn function_is_that_of_the_host<V: DeviceFunctionValue>(
    devices: &Devices,
    builder: FunctionBuilder<V>,
    of: fn(u64) -> V,
) {
    let asked = keys(30_000);
    let values: Vec<V> = (0..28_000).map(of).collect();
    let host = builder.build_from(&asked[..28_000], &values).unwrap();
    let mut function = ShardedStaticFunction::from_host(devices, &host).unwrap();
    assert!(function.to_host().unwrap() == host, "{:?}", host.layout());
    assert_eq!(function.memory_bytes(), host.memory_bytes());
    let asked = &asked[27_000..];
    let expected = host.get_bulk(asked);
    for chunk in [1 << 20, 256] {
        function.set_chunk_keys(chunk);
        assert_eq!(function.get_bulk(asked).unwrap(), expected);
        let (mut there, mut answers) = (Vec::new(), Vec::new());
        for device in function.devices().all() {
            there.push(device.from_slice(asked).unwrap());
            let found = device.alloc_zeroed::<u64>(asked.len().div_ceil(64)).unwrap();
            answers.push((device.alloc_zeroed::<V>(asked.len()).unwrap(), found));
        }
        let batches: Vec<_> = there.iter().map(|keys| keys.as_slice()).collect();
        let to = answers.iter_mut().map(|(values, found)| (values.as_mut_slice(), found.as_mut_slice()));
        function.get_each_device(&batches, to.collect()).unwrap();
        for (values, found) in answers {
            let found = Bitmap::from_words(found.to_vec().unwrap(), asked.len());
            let values = values.to_vec().unwrap();
            assert!(found.iter().zip(values).map(|(found, value)| found.then_some(value)).eq(expected.iter().copied()));
        }
    }
}

#[test]
fn the_structures_of_the_host_on_any_number_of_devices() {
    let asked = keys(50_000);
    let strings: Vec<String> = asked[..40_000].iter().map(|word| format!("{word:x}")).collect();
    for devices in &unequal_lists() {
        filter_is_that_of_the_host(devices, BinaryFuse8::builder().for_build().seed(3), 45_000, &asked);
        function_is_that_of_the_host(devices, crate::StaticFunction::builder().for_build().filtered(9), |i| i as u8);
        function_is_that_of_the_host(devices, crate::StaticFunction::builder().for_build().value_bits(61), |i| i * i);
    }
    let devices = &unequal(3);
    filter_is_that_of_the_host(
        devices,
        crate::BinaryFuse16::builder().for_build().arity(Arity::Four),
        30_000,
        &strings,
    );
    filter_is_that_of_the_host(devices, crate::BinaryFuse32::builder().for_build(), 40_000, &asked);
    filter_is_that_of_the_host(devices, BinaryFuse8::builder(), 1_000, &asked[..2_000]);
    filter_is_that_of_the_host(devices, BinaryFuse8::builder().for_build(), 0, &asked[..10]);
    function_is_that_of_the_host(devices, crate::StaticFunction::builder().for_build().value_bits(20), |i| i as u32);
    function_is_that_of_the_host(devices, crate::StaticFunction::builder().for_build(), |i| i as u16);
    function_is_that_of_the_host(devices, crate::StaticFunction::builder(), |i| i as u16);
}

#[test]
fn failures_are_errors_and_leave_answers() {
    let devices = Devices::new((0..2).map(deferred)).unwrap();
    let asked = keys(30_000);
    let host = BinaryFuse8::builder().for_build().build_from(&asked).unwrap();
    let mut filter = ShardedBinaryFuse::from_host(&devices, &host).unwrap();
    let failed = fail_each(
        &mut filter,
        |filter| filter.contains_bulk(&asked[..200]),
        |filter, _| assert_eq!(filter.count_contained_bulk(&asked[..200]).unwrap(), 200),
    );
    assert!(failed > 8);
    let made = fail_each(&mut (), |()| ShardedBinaryFuse::from_host(&devices, &host), |(), _| {});
    assert!(made > 3);
    let there: Vec<_> = devices.all().iter().map(|device| device.from_slice(&asked[..200]).unwrap()).collect();
    let batches: Vec<_> = there.iter().map(|keys| keys.as_slice()).collect();
    let mut answers: Vec<_> = devices.all().iter().map(|device| device.alloc_zeroed::<u8>(200).unwrap()).collect();
    filter.contains_each_device(&batches, answers.iter_mut().map(|yes| yes.as_mut_slice()).collect()).unwrap();
    assert!(answers.iter().all(|answers| answers.to_vec().unwrap() == [1; 200]));
    let elsewhere = deferred(9).from_slice(&asked[..10]).unwrap();
    let refused = filter.count_contained_device(elsewhere.as_slice());
    assert!(matches!(refused, Err(Error::Gpu(GpuError::OtherDevice { .. }))), "{refused:?}");

    let function = crate::StaticFunction::builder().for_build().build_from(&asked, &vec![7u16; 30_000]).unwrap();
    let mut function = ShardedStaticFunction::from_host(&devices, &function).unwrap();
    let failed = fail_each(
        &mut function,
        |function| function.get_bulk(&asked[..200]),
        |function, _| assert_eq!(function.get_bulk(&asked[..200]).unwrap(), vec![Some(7); 200]),
    );
    assert!(failed > 8);
}

/// Compares the bytes of structures that several devices build with those of the host's: a filter from the host, and a
/// function from batches of unequal lengths on the first device and the last one with a part.
fn builds_have_the_bytes_of_the_host<F: DeviceWidth, V: DeviceFunctionValue>(
    devices: &Devices,
    (filter, function): (Builder<F>, FunctionBuilder<V>),
    keys: &[u64],
    of: fn(u64) -> V,
) {
    let values: Vec<V> = keys.iter().map(|&key| of(key)).collect();
    let expected = (filter.build_from(keys).unwrap(), function.build_from(keys, &values).unwrap());
    let owners = (expected.0.layout().graphs() as usize).min(devices.all().len());
    let of_device = |place: usize, range: Range<usize>| {
        let device = &devices.all()[place];
        (device.from_slice(&keys[range.clone()]).unwrap(), device.from_slice(&values[range]).unwrap())
    };
    let third = keys.len() / 3;
    let there = [of_device(0, 0..third), of_device(owners - 1, third..keys.len())];
    let there = there.iter().map(|(keys, values)| (keys.as_slice(), values.as_slice()));
    let (batches, of_batches): (Vec<_>, Vec<_>) = there.unzip();
    let (filter, function) = (filter.sharded_on(devices), function.sharded_on(devices));
    let built = filter.build_from(keys).unwrap();
    assert!(built.to_host().unwrap() == expected.0, "{:?}", expected.0.layout());
    assert_eq!((built.devices().all().len(), built.len()), (owners, expected.0.len()));
    assert_eq!(built.count_contained_bulk(keys).unwrap(), keys.len());
    let built = function.build_from_each_device(&batches, &of_batches).unwrap();
    assert!(built.to_host().unwrap() == expected.1, "{:?}", expected.1.layout());
    assert!(built.get_bulk(keys).unwrap().into_iter().eq(values.iter().copied().map(Some)));
}

#[test]
fn builds_on_any_number_of_devices() {
    let all = keys(28_000);
    let sharded = (BinaryFuse8::builder().for_build(), crate::StaticFunction::builder().for_build().filtered(3));
    for devices in &unequal_lists() {
        builds_have_the_bytes_of_the_host(devices, sharded, &all, |key| key as u8);
    }
    let devices = &unequal(3);
    let wide = crate::StaticFunction::builder().for_build().value_bits(45);
    let four = crate::BinaryFuse16::builder().for_build().arity(Arity::Four);
    builds_have_the_bytes_of_the_host(devices, (four, wide), &all[..16_000], |key| key >> 19);
    let one_graph = (crate::BinaryFuse32::builder(), crate::StaticFunction::builder());
    for n in [0, 1, 2_000] {
        builds_have_the_bytes_of_the_host(devices, one_graph, &all[..n], |key| key as u16);
    }
    let strings: Vec<String> = all[..15_000].iter().map(|word| format!("{word:x}")).collect();
    let built = sharded.0.sharded_on(devices).build_from(&strings).unwrap();
    assert!(built.to_host().unwrap() == sharded.0.build_from(&strings).unwrap());
    let there = devices.first().from_slice(&all[..15_000]).unwrap();
    let built = sharded.0.sharded_on(devices).build_from_each_device(&[there.as_slice()]).unwrap();
    assert!(built.to_host().unwrap() == sharded.0.build_from(&all[..15_000]).unwrap());
}

/// Leaves one owner once repetitions are gone.
#[test]
fn builds_count_repeated_keys_once() {
    let devices = Devices::new((0..2).map(deferred)).unwrap();
    let all = keys(13_000);
    let repeated = [&all[..], &all[..2_000]].concat();
    let values: Vec<u8> = repeated.iter().map(|&key| key as u8).collect();
    let builder = crate::StaticFunction::<u8>::builder().for_build();
    assert_eq!(builder.layout(15_000).unwrap().graphs(), 2);
    let built = builder.sharded_on(&devices).build_from(&repeated, &values).unwrap();
    assert_eq!(built.devices(), &devices.at_most(1));
    assert!(built.to_host().unwrap() == builder.build_from(&repeated, &values).unwrap());
}

#[test]
fn failures_and_unfit_values_of_builds_are_errors() {
    let devices = Devices::new((0..2).map(deferred)).unwrap();
    let all = keys(16_000);
    let filter = BinaryFuse8::builder().for_build();
    let expected = filter.build_from(&all).unwrap();
    assert!(expected.layout().graphs() == 2);
    let on_both = filter.sharded_on(&devices);
    let failed = fail_each(&mut (), |()| on_both.build_from(&all), |(), _| {});
    assert!(failed > 8);
    assert!(on_both.build_from(&all).unwrap().to_host().unwrap() == expected);

    let function = crate::StaticFunction::<u16>::builder().for_build().value_bits(9).sharded_on(&devices);
    let mut values = vec![7; all.len()];
    let refused = function.build_from(&all, &values[1..]);
    assert!(matches!(refused, Err(Error::LengthMismatch(_))), "{refused:?}");
    let twice: Vec<u64> = all.iter().chain([&all[9]]).copied().collect();
    let refused = function.build_from(&twice, &[&values[..], &[8]].concat());
    assert!(matches!(refused, Err(Error::TwoValues { .. })), "{refused:?}");
    values[77] = 512;
    let refused = function.build_from(&all, &values);
    assert!(matches!(refused, Err(Error::WideValue { value: 512, bits: 9 })), "{refused:?}");
    let stray = deferred(9);
    let (stray, of_stray) = (stray.from_slice(&all).unwrap(), stray.from_slice(&values).unwrap());
    let refused = function.build_from_each_device(&[stray.as_slice()], &[of_stray.as_slice()]);
    assert!(matches!(refused, Err(Error::Gpu(GpuError::OtherDevice { .. }))), "{refused:?}");
    let refused = function.build_from_each_device(&[stray.as_slice()], &[]);
    assert!(matches!(refused, Err(Error::LengthMismatch(_))), "{refused:?}");
}

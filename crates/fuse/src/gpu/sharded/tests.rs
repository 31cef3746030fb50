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

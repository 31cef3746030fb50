//! Reductions against the sequential definition, on every device.

use std::fmt::Debug;
use warpset_base::filter::LengthMismatch;

use warpset_core::hash::mix;
use warpset_gpu::Device;
use warpset_gpu::testing::devices;

use super::*;
use crate::Error;

trait Sample: Pod + Item + PartialEq + Debug + Send + Sync {
    fn sample(random: u64) -> Self;
}
macro_rules! samples {
    ($($number:ty)*) => {$(
        impl Sample for $number {
            fn sample(random: u64) -> Self {
                if random.is_multiple_of(2) { (random >> 1) as $number } else { (random >> 1) as $number % 100 }
            }
        }
    )*};
}
samples! { u32 u64 i64 u128 }

fn check_reduce<O: ReduceKernels<Value: Sample>>(device: &Device, n: usize, skew: usize) {
    let stream = device.new_stream().unwrap();
    let items: Vec<O::Value> = (0..(n + skew) as u64).map(|i| Sample::sample(mix(i, 1))).collect();
    let on_device = device.from_slice(&items).unwrap();
    let mut out = device.alloc_uninit(1).unwrap();
    // SAFETY: both live until `to_vec` has waited.
    unsafe { super::reduce_async::<O>(&stream, on_device.slice(skew..), out.as_mut_slice()) }.unwrap();
    let expected = items[skew..].iter().copied().fold(O::IDENTITY, O::combine);
    assert_eq!(out.to_vec().unwrap(), [expected], "{n} items");
}

#[test]
fn reductions_are_folds() {
    let warp = kernels::warp_items::<u32>();
    for n in [0, 1, 31, warp, 8 * warp, 8 * warp + 1, 200 * warp + 3] {
        for device in devices(n as u64) {
            check_reduce::<Sum<u32>>(&device, n, 0);
            check_reduce::<Max<i64>>(&device, n, 0);
            check_reduce::<Min<u64>>(&device, n, 1);
        }
    }
}

/// The last odd item: an operator that is not commutative, without PTX.
struct LastOdd;
impl Operator for LastOdd {
    type Value = u32;
    const IDENTITY: u32 = 0;
    fn combine(before: u32, after: u32) -> u32 {
        if after.is_multiple_of(2) { before } else { after }
    }
}
warpset_kernels::reduce_kernels! {
    reduce_last_odd: LastOdd;
}

#[test]
fn order_is_kept() {
    for device in devices(1).into_iter().filter(Device::is_emulator) {
        let n = 100 * kernels::warp_items::<u32>() + 77;
        let stream = device.new_stream().unwrap();
        for odd in [3, n / 2, n - 1] {
            let items: Vec<u32> = (0..n).map(|i| if i <= odd { 2 * i as u32 + 1 } else { 4 }).collect();
            let on_device = device.from_slice(&items).unwrap();
            let mut out = device.alloc_uninit(1).unwrap();
            // SAFETY: both live until `to_vec` has waited.
            unsafe { super::reduce_async::<LastOdd>(&stream, on_device.as_slice(), out.as_mut_slice()) }.unwrap();
            assert_eq!(out.to_vec().unwrap(), [2 * odd as u32 + 1]);
        }
    }
}

/// Checks keys in runs of about `run` items: reductions by key, and lengths.
fn check_by_key<O, K>(device: &Device, n: usize, run: u64, key: impl Fn(u64) -> K)
where
    O: ByKeyKernels<K, Value: Sample>,
    K: Sample + EncodeKernels,
{
    let stream = device.new_stream().unwrap();
    let mut number = 0;
    let keys: Vec<K> = (0..n as u64)
        .map(|i| {
            number += u64::from(mix(i, 2).is_multiple_of(run));
            key(number)
        })
        .collect();
    let values: Vec<O::Value> = (0..n as u64).map(|i| Sample::sample(mix(i, 1))).collect();
    let (mut expected_keys, mut expected_values, mut expected_lengths) = (Vec::new(), Vec::new(), Vec::new());
    for (&key, &value) in keys.iter().zip(&values) {
        if expected_keys.last() == Some(&key) {
            let last = expected_values.last_mut().unwrap();
            *last = O::combine(*last, value);
            *expected_lengths.last_mut().unwrap() += 1;
        } else {
            expected_keys.push(key);
            expected_values.push(value);
            expected_lengths.push(1u64);
        }
    }
    let (on_device, values_on_device) = (device.from_slice(&keys).unwrap(), device.from_slice(&values).unwrap());
    let mut out_keys = device.from_slice(&keys).unwrap();
    let mut out_values = device.from_slice(&values).unwrap();
    let mut lengths = device.alloc_zeroed::<u64>(n).unwrap();
    let mut runs = device.alloc_uninit::<u64>(2).unwrap();
    let (a, b) = runs.as_mut_slice().split_at_mut(1);
    // SAFETY: all live until `to_vec` has waited.
    unsafe {
        reduce_by_key_async::<O, K>(
            &stream,
            on_device.as_slice(),
            values_on_device.as_slice(),
            out_keys.as_mut_slice(),
            out_values.as_mut_slice(),
            a,
        )
        .unwrap();
    }
    let count = expected_keys.len();
    assert_eq!(out_keys.slice(..count).to_vec().unwrap(), expected_keys);
    assert_eq!(out_values.slice(..count).to_vec().unwrap(), expected_values);
    // SAFETY: as above.
    unsafe {
        run_length_encode_async(&stream, on_device.as_slice(), out_keys.as_mut_slice(), lengths.as_mut_slice(), b)
            .unwrap();
    }
    assert_eq!(out_keys.slice(..count).to_vec().unwrap(), expected_keys);
    assert_eq!(lengths.slice(..count).to_vec().unwrap(), expected_lengths);
    assert_eq!(runs.to_vec().unwrap(), [count as u64; 2]);
}

#[test]
fn runs_are_reduced() {
    for n in [0, 1, 2, 255, by_key::TILE - 1, by_key::TILE, by_key::TILE + 1, 3 * by_key::TILE + 17] {
        for device in devices(n as u64) {
            check_by_key::<Sum<u32>, u32>(&device, n, 3, |i| i as u32);
            check_by_key::<Max<i64>, u64>(&device, n, 700, |i| i << 40);
            check_by_key::<Sum<u64>, u128>(&device, n, 3, |i| u128::from(i) << 63);
        }
    }
}

#[test]
fn runs_may_be_long_or_single() {
    for device in devices(9) {
        let n = 40 * by_key::TILE + 5;
        check_by_key::<Sum<u64>, u32>(&device, n, u64::MAX, |i| i as u32);
        check_by_key::<Min<u32>, u64>(&device, 2 * by_key::TILE, 1, |i| i % 2);
        check_by_key::<Sum<i64>, u32>(&device, n, 5000, |i| i as u32);
        check_by_key::<BitOr<u32>, u128>(&device, n, 500, |i| u128::from(i % 2) << 127);
    }
}

#[test]
fn wrong_lengths_are_errors() {
    for device in devices(3) {
        let stream = device.new_stream().unwrap();
        let keys = device.from_slice(&[1u32; 10]).unwrap();
        let mut out = device.alloc_uninit::<u32>(9).unwrap();
        let mut values = device.alloc_uninit::<u64>(10).unwrap();
        let mut runs = device.alloc_uninit::<u64>(1).unwrap();
        // SAFETY: nothing gets queued.
        unsafe {
            let none = super::reduce_async::<Sum<u32>>(&stream, keys.as_slice(), out.slice_mut(..0));
            assert!(matches!(none, Err(Error::LengthMismatch(LengthMismatch { needed: 1, found: 0, .. }))));
            let (lengths, runs) = (values.as_mut_slice(), runs.as_mut_slice());
            let short = run_length_encode_async(&stream, keys.as_slice(), out.as_mut_slice(), lengths, runs);
            assert!(matches!(short, Err(Error::LengthMismatch(LengthMismatch { needed: 10, found: 9, .. }))));
        }
    }
}

//! Scans against the sequential definition, on every device.

use std::fmt::Debug;
use warpset_base::filter::LengthMismatch;

use warpset_core::hash::mix;
use warpset_gpu::Device;
use warpset_gpu::testing::devices;
use warpset_kernels::primitives::warp_tile::Item;

use super::*;
use crate::Error;

/// Values of all kinds: many equal, some extreme.
trait Sample: Pod + Item + PartialEq + Debug + Send + Sync {
    fn sample(random: u64) -> Self;
}

macro_rules! samples {
    ($($number:ty)*) => {$(
        impl Sample for $number {
            fn sample(random: u64) -> Self {
                match random % 8 {
                    0 => <$number>::MAX,
                    1 => <$number>::MIN,
                    2..5 => (random >> 8) as $number,
                    _ => (random >> 8) as $number % 100,
                }
            }
        }
    )*};
}
samples! { u32 u64 i64 }

fn head(heads: &[u64], i: usize) -> bool {
    heads[i / 64] >> (i % 64) & 1 != 0
}

/// Returns inclusive and exclusive results by definition, with heads.
fn model<O: Operator>(items: &[O::Value], heads: &[u64]) -> (Vec<O::Value>, Vec<O::Value>) {
    let mut before = O::IDENTITY;
    let step = |(i, &item): (usize, &O::Value)| {
        let exclusive = if head(heads, i) { O::IDENTITY } else { before };
        before = O::combine(exclusive, item);
        (before, exclusive)
    };
    items.iter().enumerate().map(step).unzip()
}

/// Checks all forms, with input and output `skew` items after an allocation's beginning.
fn check<O: ScanKernels<Value: Sample>>(device: &Device, n: usize, one_in: u64, skew: usize) {
    let stream = device.new_stream().unwrap();
    let items: Vec<O::Value> = (0..n as u64).map(|i| Sample::sample(mix(i, n as u64))).collect();
    let mut heads = vec![0u64; n.div_ceil(64)];
    (0..n).filter(|&i| mix(i as u64, 7).is_multiple_of(one_in)).for_each(|i| heads[i / 64] |= 1 << (i % 64));
    let no_heads = vec![0u64; heads.len()];
    let padded: Vec<O::Value> = [Sample::sample(4)].repeat(skew).into_iter().chain(items.iter().copied()).collect();
    let on_device = device.from_slice(&padded).unwrap();
    let (input, bits) = (on_device.slice(skew..), device.from_slice(&heads).unwrap());
    let mut out = device.from_slice(&padded).unwrap();
    for (segmented, heads) in [(false, &no_heads), (true, &heads)] {
        let (inclusive, exclusive) = model::<O>(&items, heads);
        for (expected, kind) in [(inclusive, Kind::Inclusive), (exclusive, Kind::Exclusive)] {
            let what = format!("{kind:?}, {n} items, segmented: {segmented}, skew {skew}");
            for in_place in [false, true] {
                if in_place {
                    out.slice_mut(skew..).copy_from_slice(&items).unwrap();
                }
                let mut target = out.slice_mut(skew..);
                let target = target.reborrow();
                let bits = bits.as_slice();
                // SAFETY: all live until `to_vec` has waited.
                unsafe {
                    match (segmented, kind, in_place) {
                        (false, Kind::Inclusive, false) => super::inclusive_async::<O>(&stream, input, target),
                        (false, Kind::Inclusive, true) => super::inclusive_in_place_async::<O>(&stream, target),
                        (false, Kind::Exclusive, false) => super::exclusive_async::<O>(&stream, input, target),
                        (false, Kind::Exclusive, true) => super::exclusive_in_place_async::<O>(&stream, target),
                        (true, Kind::Inclusive, false) => segmented_inclusive_async::<O>(&stream, input, bits, target),
                        (true, Kind::Inclusive, true) => segmented_inclusive_in_place_async::<O>(&stream, target, bits),
                        (true, Kind::Exclusive, false) => segmented_exclusive_async::<O>(&stream, input, bits, target),
                        (true, Kind::Exclusive, true) => segmented_exclusive_in_place_async::<O>(&stream, target, bits),
                    }
                }
                .unwrap();
                let found = out.to_vec().unwrap();
                assert!(
                    found[skew..] == expected,
                    "{what}, in place: {in_place}: {:?}",
                    differing(&found[skew..], &expected)
                );
                assert_eq!(found[..skew], padded[..skew]);
            }
        }
    }
}

/// Returns the first place that differs.
fn differing<T: Copy + PartialEq>(found: &[T], expected: &[T]) -> Option<(usize, T, T)> {
    found.iter().zip(expected).enumerate().find(|(_, (a, b))| a != b).map(|(i, (&a, &b))| (i, a, b))
}

fn sizes(tile: usize) -> [usize; 8] {
    [0, 1, 33, tile - 1, tile, tile + 1, 3 * tile + 17, 2 * tile]
}

macro_rules! models {
    ($($name:ident: $($operator:ty),*;)*) => {$(
        #[test]
        fn $name() {
            $(
                for n in sizes(<$operator>::SCAN.tile) {
                    for device in devices(n as u64) {
                        check::<$operator>(&device, n, 300, 0);
                    }
                }
            )*
        }
    )*};
}
models! {
    sums_are_the_definition: Sum<u32>, Sum<u64>, Sum<i64>;
    maxima_are_the_definition: Max<u32>, Max<u64>, Max<i64>;
    minima_are_the_definition: Min<u32>, Min<u64>, Min<i64>;
}

#[test]
fn slices_may_begin_anywhere() {
    for device in devices(3) {
        for skew in [1, 2, 3] {
            check::<Sum<u32>>(&device, 2 * Sum::<u32>::SCAN.tile + 5, 40, skew);
        }
        check::<Sum<u64>>(&device, Sum::<u64>::SCAN.tile + 5, 40, 1);
    }
}

#[test]
fn many_tiles_look_far_back() {
    for (seed, n) in [(1, 35), (2, 70)] {
        for device in devices(seed) {
            check::<Sum<u32>>(&device, n * Sum::<u32>::SCAN.tile + 9, 100_000, 0);
        }
    }
}

/// Scans ones in place, and checks that the results are their numbers from 1 on.
fn count_up<O: ScanKernels<Value: Sample>>(stream: &Stream, n: usize, number: impl Fn(usize) -> O::Value) {
    let mut items = stream.from_slice(&vec![number(1); n]).unwrap();
    // SAFETY: the items live until `to_vec` has waited.
    unsafe { super::inclusive_in_place_async::<O>(stream, items.as_mut_slice()) }.unwrap();
    let found = items.to_vec().unwrap();
    assert!(found == (1..=n).map(number).collect::<Vec<_>>(), "{n} items");
}

#[test]
fn scans_of_one_stream_share_its_scratch() {
    for device in devices(10) {
        let (stream, other) = (device.new_stream().unwrap(), device.new_stream().unwrap());
        let (narrow, wide) = (Sum::<u32>::SCAN.tile, Sum::<i64>::SCAN.tile);
        for tiles in [2, 9, 1, 3, 20, 2, 2, 5] {
            count_up::<Sum<u32>>(&stream, tiles * narrow - 7, |i| i as u32);
            count_up::<Sum<i64>>(&stream, tiles * wide, |i| i as i64);
            count_up::<Sum<u32>>(&other, 2 * narrow, |i| i as u32);
        }
        // More words than the stream has got by then.
        count_up::<Sum<i64>>(&stream, 130 * wide + 1, |i| i as i64);
        count_up::<Sum<u32>>(&stream, 4 * narrow, |i| i as u32);
    }
}

#[test]
fn a_scan_that_fails_leaves_no_scratch() {
    let device = Device::emulator(Default::default());
    let stream = device.new_stream().unwrap();
    let n = 3 * Sum::<u32>::SCAN.tile;
    let mut items = device.from_slice(&vec![1u32; n]).unwrap();
    warpset_gpu::testing::fail_each(
        &mut items,
        |items| {
            // SAFETY: the items outlive the stream's work.
            unsafe { super::inclusive_in_place_async::<Sum<u32>>(&stream, items.as_mut_slice()) }
        },
        |_, _| count_up::<Sum<u32>>(&stream, n, |i| i as u32),
    );
}

#[test]
fn every_item_may_be_a_head() {
    for device in devices(4) {
        check::<Sum<u64>>(&device, Sum::<u64>::SEGMENTED.tile + 100, 1, 0);
    }
}

#[test]
fn an_operator_need_not_commute() {
    for device in devices(5) {
        if device.is_emulator() {
            check::<LastSet>(&device, 2 * LastSet::SCAN.tile + 100, 1000, 0);
        }
    }
}

#[test]
fn more_items_than_32_bits_count() {
    let n = (1usize << 32) + 12_345;
    for device in devices(8) {
        let enough = device.memory_info().unwrap().free > 5 * n;
        if device.is_emulator() || !enough {
            warpset_gpu::testing::skipped("a scan of more than 2^32 items: a CUDA device with 20 GiB free");
            continue;
        }
        let stream = device.new_stream().unwrap();
        let mut items = device.alloc_uninit::<u32>(n).unwrap();
        stream.fill_words(&mut items, 1).unwrap();
        // SAFETY: the items live until `to_vec` has waited.
        unsafe { super::inclusive_in_place_async::<Sum<u32>>(&stream, items.as_mut_slice()) }.unwrap();
        for i in [0, 1, 4095, 4096, (1 << 32) - 1, 1 << 32, n - 1] {
            assert_eq!(items.slice(i..=i).to_vec().unwrap(), [(i as u32).wrapping_add(1)], "item {i}");
        }
    }
}

/// The last item that is not zero: an operator as programs define it, without PTX.
struct LastSet;

impl Operator for LastSet {
    type Value = u32;
    const IDENTITY: u32 = 0;
    fn combine(before: u32, after: u32) -> u32 {
        if after == 0 { before } else { after }
    }
}

warpset_kernels::scan_kernels! {
    scan_last_set, segmented_last_set: LastSet;
}

#[test]
fn wrong_lengths_and_overlaps_are_errors() {
    for device in devices(6) {
        let stream = device.new_stream().unwrap();
        let items = device.from_slice(&[1u32; 100]).unwrap();
        let heads = device.from_slice(&[0u64]).unwrap();
        let mut out = device.alloc_uninit::<u32>(100).unwrap();
        // SAFETY: nothing gets queued.
        unsafe {
            let short = super::inclusive_async::<Sum<u32>>(&stream, items.slice(1..), out.as_mut_slice());
            assert!(matches!(short, Err(Error::LengthMismatch(LengthMismatch { needed: 99, found: 100, .. }))));
            let heads =
                segmented_exclusive_async::<Sum<u32>>(&stream, items.as_slice(), heads.as_slice(), out.as_mut_slice());
            assert!(matches!(heads, Err(Error::LengthMismatch(LengthMismatch { needed: 2, found: 1, .. }))));
        }
        let shared = out.as_mut_slice();
        let (a, b) = (shared.as_slice().global(), shared.len());
        assert_eq!((a.len(), b), (100, 100));
    }
}

use std::fmt::Debug;
use warpset_base::filter::LengthMismatch;

use warpset_core::hash::mix;
use warpset_gpu::testing::devices;
use warpset_gpu::{Device, DeviceVec};

use super::*;
use crate::Error;

/// Items per tile.
const TILE: usize = kernels::select::<u32>::SHAPE.tile();
const SIZES: [usize; 9] = [0, 1, 31, 64, 65, 1023, TILE - 1, TILE, 2 * TILE + 5];

/// Outputs of one operation, and checks of their contents.
struct Outputs<T> {
    kept: DeviceVec<T>,
    rejected: DeviceVec<T>,
    count: DeviceVec<u64>,
}

impl<T: Item + PartialEq + Debug> Outputs<T> {
    fn new(device: &Device, n: usize) -> Self {
        let alloc = || device.alloc_uninit(n).unwrap();
        Self { kept: alloc(), rejected: alloc(), count: device.alloc_uninit(1).unwrap() }
    }

    fn expect(&self, kept: &[T], rejected: Option<&[T]>) {
        assert_eq!(self.count.to_vec().unwrap(), [kept.len() as u64]);
        assert_eq!(self.kept.slice(..kept.len()).to_vec().unwrap(), kept);
        if let Some(rejected) = rejected {
            assert_eq!(self.rejected.slice(..rejected.len()).to_vec().unwrap(), rejected);
        }
    }
}

/// Checks selection and partition by bitmap and flags against a plain loop, at addresses that are multiples of 16 and
/// others.
fn check<T: Item + PartialEq + Debug>(n: usize, one_in: u64, item: impl Fn(u64) -> T) {
    let items: Vec<T> = (0..n as u64).map(item).collect();
    let keep = |i: usize| mix(i as u64, 3).is_multiple_of(one_in);
    let mut bitmap = vec![0u64; n.div_ceil(64)];
    (0..n).filter(|&i| keep(i)).for_each(|i| bitmap[i / 64] |= 1 << (i % 64));
    if !n.is_multiple_of(64) {
        bitmap[n / 64] |= !0 << (n % 64); // bits past the end do not count
    }
    let flags: Vec<u8> = (0..n).map(|i| if keep(i) { 1 << (i % 8) } else { 0 }).collect();
    let kept: Vec<T> = (0..n).filter(|&i| keep(i)).map(|i| items[i]).collect();
    let others: Vec<T> = (0..n).filter(|&i| !keep(i)).map(|i| items[i]).collect();

    for device in devices(n as u64) {
        let stream = device.new_stream().unwrap();
        for shift in [0, 1] {
            // SAFETY of the calls below: all live until the outputs are read, which waits.
            let mut shifted = device.alloc_uninit::<T>(n + shift).unwrap();
            shifted.slice_mut(shift..).copy_from_slice(&items).unwrap();
            let mut shifted_flags = device.alloc_uninit::<u8>(n + shift).unwrap();
            shifted_flags.slice_mut(shift..).copy_from_slice(&flags).unwrap();
            let (items, flags) = (shifted.slice(shift..), shifted_flags.slice(shift..));
            let bitmap = device.from_slice(&bitmap).unwrap();
            let mut out = Outputs::new(&device, n);
            let (to, count) = (out.kept.as_mut_slice(), out.count.as_mut_slice());
            // SAFETY: as above.
            unsafe { select_async(&stream, items, bitmap.as_slice(), to, count) }.unwrap();
            out.expect(&kept, None);
            let mut out = Outputs::new(&device, n);
            let (to, count) = (out.kept.as_mut_slice(), out.count.as_mut_slice());
            // SAFETY: as above.
            unsafe { select_indices_async(&stream, n, bitmap.as_slice(), to, count) }.unwrap();
            let places: Vec<u64> = (0..n).filter(|&i| keep(i)).map(|i| i as u64).collect();
            out.expect(&places, None);
            let mut out = Outputs::new(&device, n);
            let (to, count) = (out.kept.as_mut_slice(), out.count.as_mut_slice());
            // SAFETY: as above.
            unsafe { select_flagged_async(&stream, items, flags, to, count) }.unwrap();
            out.expect(&kept, None);
            let mut out = Outputs::new(&device, n);
            let (to, rejected, count) =
                (out.kept.as_mut_slice(), out.rejected.as_mut_slice(), out.count.as_mut_slice());
            // SAFETY: as above.
            unsafe { partition_async(&stream, items, bitmap.as_slice(), to, rejected, count) }.unwrap();
            out.expect(&kept, Some(&others));
            let mut out = Outputs::new(&device, n);
            let (to, rejected, count) =
                (out.kept.as_mut_slice(), out.rejected.as_mut_slice(), out.count.as_mut_slice());
            // SAFETY: as above.
            unsafe { partition_flagged_async(&stream, items, flags, to, rejected, count) }.unwrap();
            out.expect(&kept, Some(&others));
        }
    }
}

#[test]
fn bitmaps_and_flags_keep_order_and_count() {
    for n in SIZES {
        check(n, 3, |i| i);
        check(n, 1, |i| i as u32);
    }
    check(TILE + 1, u64::MAX, |i| i as i64);
    for n in [1, TILE / 2 - 1, TILE / 2, TILE + 5] {
        check(n, 3, |i| u128::from(i) << 60 | 5);
    }
}

#[test]
fn many_tiles_look_back() {
    for device in devices(11) {
        let stream = device.new_stream().unwrap();
        let n = 40 * TILE + 1;
        let items: Vec<u32> = (0..n as u32).collect();
        let bitmap: Vec<u64> = (0..n.div_ceil(64) as u64).map(|i| 1 << (i % 64)).collect();
        let expected: Vec<u32> = (0..n).filter(|i| bitmap[i / 64] >> (i % 64) & 1 != 0).map(|i| i as u32).collect();
        let (items, bitmap) = (device.from_slice(&items).unwrap(), device.from_slice(&bitmap).unwrap());
        let mut out = Outputs::new(&device, n);
        let (to, count) = (out.kept.as_mut_slice(), out.count.as_mut_slice());
        // SAFETY: all live until the outputs are read, which waits.
        unsafe { select_async(&stream, items.as_slice(), bitmap.as_slice(), to, count) }.unwrap();
        out.expect(&expected, None);
    }
}

fn check_if<T: Item + SortKey + PartialEq + Debug, P: DevicePredicate<T>>(items: &[T], predicate: P) {
    let n = items.len();
    let (kept, others): (Vec<T>, Vec<T>) = items.iter().partition(|&&item| predicate.keep(item));
    for device in devices(n as u64) {
        let stream = device.new_stream().unwrap();
        let items = device.from_slice(items).unwrap();
        let mut out = Outputs::new(&device, n);
        let (to, count) = (out.kept.as_mut_slice(), out.count.as_mut_slice());
        // SAFETY: all live until the outputs are read, which waits.
        unsafe { select_if_async(&stream, items.as_slice(), predicate, to, count) }.unwrap();
        out.expect(&kept, None);
        let mut out = Outputs::new(&device, n);
        let (to, rejected, count) = (out.kept.as_mut_slice(), out.rejected.as_mut_slice(), out.count.as_mut_slice());
        // SAFETY: as above.
        unsafe { partition_if_async(&stream, items.as_slice(), predicate, to, rejected, count) }.unwrap();
        out.expect(&kept, Some(&others));
    }
}

#[test]
fn predicates_partition() {
    let n = TILE + 77;
    let wide: Vec<u64> = (0..n as u64).map(|i| mix(i, 5)).collect();
    let narrow: Vec<u32> = wide.iter().map(|&x| x as u32).collect();
    check_if(&wide, InRange { from: 1 << 62, to: 3 << 62 });
    check_if(&narrow, InRange { from: 0x4000_0000, to: 0xc000_0000 });
    check_if(&wide, BitsEqual { mask: 1 << 40 | 1, bits: 1 });
    check_if(&narrow, BitsEqual { mask: 3, bits: 3 });
    check_if(&wide, BitsDiffer { mask: 1 << 63, bits: 0 });
    check_if(&narrow, BitsDiffer { mask: 0xf, bits: 7 });
    let widest: Vec<u128> = wide.iter().map(|&x| u128::from(x) << 64 | u128::from(x.reverse_bits())).collect();
    check_if(&widest, InRange { from: 1 << 126, to: 3 << 126 });
    check_if(&widest, BitsEqual { mask: 1 << 100 | 1, bits: 1 });
    check_if(&widest, BitsDiffer { mask: 1 << 127, bits: 0 });
    check_if::<u32, _>(&[], BitsDiffer { mask: 0xf, bits: 7 });
}

fn check_unique<K: Item + PartialEq + Debug, V: Item + Payload + PartialEq + Debug>(
    keys: &[K],
    value: impl Fn(usize) -> V,
) {
    let n = keys.len();
    let firsts: Vec<usize> = (0..n).filter(|&i| i == 0 || keys[i - 1] != keys[i]).collect();
    let expected: Vec<K> = firsts.iter().map(|&i| keys[i]).collect();
    let values: Vec<V> = (0..n).map(value).collect();
    let expected_values: Vec<V> = firsts.iter().map(|&i| values[i]).collect();
    for device in devices(n as u64) {
        let stream = device.new_stream().unwrap();
        let (keys, values) = (device.from_slice(keys).unwrap(), device.from_slice(&values).unwrap());
        let mut out = Outputs::new(&device, n);
        let (to, count) = (out.kept.as_mut_slice(), out.count.as_mut_slice());
        // SAFETY: all live until the outputs are read, which waits.
        unsafe { unique_async(&stream, keys.as_slice(), to, count) }.unwrap();
        out.expect(&expected, None);
        let (mut out, mut out_values) = (Outputs::new(&device, n), device.alloc_uninit::<V>(n).unwrap());
        let (to, to_values, count) = (out.kept.as_mut_slice(), out_values.as_mut_slice(), out.count.as_mut_slice());
        // SAFETY: as above.
        unsafe { unique_by_key_async(&stream, keys.as_slice(), values.as_slice(), to, to_values, count) }.unwrap();
        out.expect(&expected, None);
        assert_eq!(out_values.slice(..expected_values.len()).to_vec().unwrap(), expected_values);
    }
}

#[test]
fn equal_neighbours_count_once() {
    for n in SIZES {
        for run in [1, 3, 5000] {
            let keys: Vec<u32> = (0..n as u32).map(|i| i / run).collect();
            check_unique(&keys, |i| i as u32);
        }
    }
    let keys: Vec<u64> = (0..2 * TILE as u64).map(|i| mix(i, 1) % 2).collect();
    check_unique(&keys, |i| i as u32);
    check_unique(&keys, |i| i as u64);
    // Keys that differ only in the upper half, and only in the lower.
    for shift in [127, 3] {
        let keys: Vec<u128> = keys.iter().map(|&key| u128::from(key) << shift).collect();
        check_unique(&keys, |i| i as u32);
        check_unique(&keys, |i| i as u64);
    }
    let keys: Vec<u32> = keys.iter().map(|&key| key as u32).collect();
    check_unique(&keys, |i| i as u64);
}

#[test]
fn bad_lengths_and_overlaps_are_errors() {
    for device in devices(0) {
        let stream = device.new_stream().unwrap();
        let items = device.from_slice(&[1u32; 65]).unwrap();
        let (bitmap, flags) = (device.from_slice(&[0u64]).unwrap(), device.from_slice(&[0u8; 66]).unwrap());
        let mut out = Outputs::<u32>::new(&device, 65);
        let mut short = device.alloc_uninit::<u32>(64).unwrap();
        // SAFETY: nothing gets queued.
        unsafe {
            let (to, count) = (out.kept.as_mut_slice(), out.count.as_mut_slice());
            let wrong = select_async(&stream, items.as_slice(), bitmap.as_slice(), to, count);
            assert!(matches!(wrong, Err(Error::LengthMismatch(LengthMismatch { needed: 2, found: 1, .. }))));
            let (to, count) = (out.kept.as_mut_slice(), out.count.as_mut_slice());
            let wrong = select_flagged_async(&stream, items.as_slice(), flags.as_slice(), to, count);
            assert!(matches!(wrong, Err(Error::LengthMismatch(LengthMismatch { needed: 65, found: 66, .. }))));
            let wrong = unique_async(&stream, items.as_slice(), short.as_mut_slice(), out.count.as_mut_slice());
            assert!(matches!(wrong, Err(Error::LengthMismatch(LengthMismatch { needed: 65, found: 64, .. }))));
            // A second handle to the same memory, as unsound code may have it.
            let kept = &raw mut out.kept;
            let (same, to) = ((&*kept).as_slice(), (&mut *kept).as_mut_slice());
            let wrong = unique_async(&stream, same, to, out.count.as_mut_slice());
            assert!(matches!(wrong, Err(Error::Overlap { .. })));
        }
    }
}

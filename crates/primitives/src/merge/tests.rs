use warpset_base::filter::LengthMismatch;
use warpset_base::testing::tier;
use warpset_core::hash::mix;
use warpset_gpu::testing::devices;

use super::*;
use crate::Error;
use crate::sort::key_of;

/// Returns the merge by definition: a stable sort of the concatenated runs.
pub(super) fn merged<K: SortKey, V: Copy>(runs: &[&[(K, V)]], mask: KeyMask<K>) -> Vec<(K, V)> {
    let mut all = runs.concat();
    all.sort_by_key(|&(key, _)| mask.of(key));
    all
}

/// Returns `n` keys below `range`, sorted by `mask`, with values that count up from `first`, so that they identify
/// items.
pub(super) fn run<K: SortKey, V: Payload>(n: usize, range: u64, mask: KeyMask<K>, first: usize) -> Vec<(K, V)> {
    let key = |i: usize| key_of::<K>(((u128::from(mix(i as u64, first as u64)) * u128::from(range)) >> 64) as u64);
    let mut keys: Vec<K> = (0..n).map(key).collect();
    keys.sort_by_key(|&key| mask.of(key));
    keys.into_iter().enumerate().map(|(i, key)| (key, V::from_bits((first + i) as u128))).collect()
}

pub(super) fn unzip<K: SortKey, V: Payload>(pairs: &[(K, V)]) -> (Vec<K>, Vec<V>) {
    pairs.iter().copied().unzip()
}

/// Checks both forms on every device against the definition.
fn check<K: SortKey + std::fmt::Debug, V: Payload + PartialEq + std::fmt::Debug>(
    a: &[(K, V)],
    b: &[(K, V)],
    mask: KeyMask<K>,
) {
    let expected = unzip(&merged(&[a, b], mask));
    let ((a_keys, a_values), (b_keys, b_values)) = (unzip(a), unzip(b));
    let n = expected.0.len();
    for device in devices((a.len() + 3 * b.len()) as u64) {
        let stream = device.new_stream().unwrap();
        let (a_keys, a_values) = (device.from_slice(&a_keys).unwrap(), device.from_slice(&a_values).unwrap());
        let (b_keys, b_values) = (device.from_slice(&b_keys).unwrap(), device.from_slice(&b_values).unwrap());
        let (a, b) = (Pairs::new(&a_keys, &a_values), Pairs::new(&b_keys, &b_values));
        let (mut keys, mut values) = (device.alloc_uninit(n).unwrap(), device.alloc_uninit(n).unwrap());
        // SAFETY: all live until they have been waited for.
        unsafe { merge_keys_async(&stream, a.keys, b.keys, mask, &mut keys) }.unwrap();
        assert_eq!(keys.to_vec().unwrap(), expected.0, "{} and {} keys", a.keys.len(), b.keys.len());
        keys.fill_bytes(0).unwrap();
        // SAFETY: as above.
        unsafe { merge_pairs_async(&stream, a, b, mask, &mut keys, &mut values) }.unwrap();
        assert_eq!(
            (keys.to_vec().unwrap(), values.to_vec().unwrap()),
            expected,
            "{} and {}",
            a.keys.len(),
            b.keys.len()
        );
    }
}

fn check_random<K: SortKey + std::fmt::Debug, V: Payload + PartialEq + std::fmt::Debug>(sizes: &[(usize, usize)]) {
    for &(a, b) in sizes {
        for range in [3, 1000, u64::MAX >> (64 - 8 * size_of::<K>().min(8))] {
            let mask = KeyMask::all();
            check::<K, V>(&run(a, range, mask, 0), &run(b, range, mask, a), mask);
        }
    }
}

const SIZES: [(usize, usize); 8] = [(0, 0), (0, 1), (1, 0), (1, 1), (31, 33), (700, 500), (1151, 1), (2000, 3000)];

#[test]
fn all_widths_are_stable_merges() {
    check_random::<u32, u32>(&SIZES);
    check_random::<u32, u64>(&SIZES);
    check_random::<u64, u32>(&SIZES);
    check_random::<u64, u64>(&SIZES);
    check_random::<u128, u32>(&SIZES[5..]);
    check_random::<u128, u64>(&SIZES);
}

#[test]
fn keys_compare_by_the_mask_alone() {
    for mask in [KeyMask::<u32>::above(1), KeyMask::above(31), KeyMask::above(32), KeyMask::new(0xff00)] {
        check::<u32, u32>(&run(900, 1 << 32, mask, 0), &run(1500, 1 << 32, mask, 900), mask);
    }
    let mask = KeyMask::<u64>::above(33);
    check::<u64, u64>(&run(900, u64::MAX, mask, 0), &run(1500, u64::MAX, mask, 900), mask);
    for mask in [KeyMask::<u128>::above(99), KeyMask::above(127), KeyMask::new(0xff << 60)] {
        check::<u128, u64>(&run(900, u64::MAX, mask, 0), &run(1500, u64::MAX, mask, 900), mask);
    }
}

#[test]
fn runs_that_hardly_mix() {
    let mask = KeyMask::all();
    let line = |n: usize, start: u64, step: u64, first: usize| -> Vec<(u32, u32)> {
        (0..n).map(|i| ((start + step * i as u64) as u32, (first + i) as u32)).collect()
    };
    let n = 2500;
    check(&line(n, 0, 1, 0), &line(n, n as u64, 1, n), mask); // one after the other
    check(&line(n, n as u64, 1, 0), &line(n, 0, 1, n), mask);
    check(&line(n, 0, 2, 0), &line(n, 1, 2, n), mask); // taking turns
    check(&line(n, 5, 0, 0), &line(n, 5, 0, n), mask); // all equal
    check(&line(n, u32::MAX.into(), 0, 0), &line(n, 0, 0, n), mask);
    check(&line(n, 0, 1, 0), &[], mask);
    check(&[], &line(n, 0, 1, 0), mask);
    check(&line(n, 0, 1000, 0), &line(1, 1_250_500, 1, n), mask);
}

/// Checks large tiles, which the lengths of the other tests do not reach, with both ways to find where they begin.
fn check_large<K: SortKey + std::fmt::Debug, V: Payload + PartialEq + std::fmt::Debug>(sizes: &[(usize, usize)]) {
    for (device, &(a, b)) in devices(9).iter().flat_map(|device| sizes.iter().map(move |sizes| (device, sizes))) {
        let stream = device.new_stream().unwrap();
        for (range, launches) in [(2, Launches::Two), (1 << 32, Launches::Two), (1 << 32, Launches::One)] {
            let mask = KeyMask::all();
            let (a, b) = (run::<K, V>(a, range, mask, 0), run::<K, V>(b, range, mask, a));
            let expected = unzip(&merged(&[&a, &b], mask));
            let on_device = |run: &[(K, V)]| {
                let (keys, values) = unzip(run);
                (device.from_slice(&keys).unwrap(), device.from_slice(&values).unwrap())
            };
            let (a, b) = (on_device(&a), on_device(&b));
            let mut keys = device.alloc_uninit::<K>(expected.0.len()).unwrap();
            let mut values = device.alloc_uninit::<V>(expected.0.len()).unwrap();
            let a = Run { keys: a.0.global(), values: a.1.global() };
            let b = Run { keys: b.0.global(), values: b.1.global() };
            for pairs in [false, true] {
                keys.fill_bytes(0).unwrap();
                let (out_keys, out_values) = (keys.global_mut(), values.global_mut());
                // SAFETY: all live until they have been waited for.
                unsafe { merge_by(launches, &stream, a, b, mask, out_keys, out_values, pairs) }.unwrap();
                assert_eq!(keys.to_vec().unwrap(), expected.0);
            }
            assert_eq!(values.to_vec().unwrap(), expected.1);
        }
    }
}

#[test]
fn large_tiles() {
    check_large::<u32, u32>(&[(9000, 14001), (0, 7681), (7680, 7680)]);
    check_large::<u64, u64>(&[(6001, 6000)]);
    check_large::<u128, u32>(&[(1792, 1792)]);
    if tier(false, true) {
        check_large::<u32, u64>(&[(8001, 4000)]);
        check_large::<u64, u32>(&[(4001, 8000)]);
        check_large::<u128, u64>(&[(3001, 2000)]);
    }
}

/// Checks keys without values, which move 16 bytes at a time, at all beginnings of runs and output.
fn check_begins<K: SortKey + std::fmt::Debug>() {
    let mask = KeyMask::all();
    let (a, b) = (unzip(&run::<K, u32>(9000, 1 << 31, mask, 0)).0, unzip(&run::<K, u32>(9005, 1 << 31, mask, 1)).0);
    for device in devices(11) {
        let stream = device.new_stream().unwrap();
        let (on_a, on_b) = (device.from_slice(&a).unwrap(), device.from_slice(&b).unwrap());
        for (i, j, k) in [(0, 0, 1), (1, 0, 0), (0, 3, 0), (2, 2, 0), (3, 1, 2)] {
            for launches in [Launches::OneShort, Launches::Two] {
                let mut expected = [&a[i..], &b[j..]].concat();
                expected.sort_unstable();
                let mut out = device.alloc_uninit::<K>(k + expected.len()).unwrap();
                let run = |keys: DeviceSlice<'_, K>| Run { keys: keys.global(), values: keys.global().cast::<u32>() };
                let (run_a, run_b) = (run(on_a.slice(i..)), run(on_b.slice(j..)));
                let to = out.slice_mut(k..).global_mut();
                // SAFETY: all live until they have been waited for.
                unsafe { merge_by(launches, &stream, run_a, run_b, mask, to, to.cast(), false) }.unwrap();
                assert!(out.slice(k..).to_vec().unwrap() == expected, "from {i} and {j} to {k}, {launches:?}");
            }
        }
    }
}

#[test]
fn runs_begin_anywhere() {
    check_begins::<u32>();
    if tier(false, true) {
        check_begins::<u64>();
        check_begins::<u128>();
    }
}

#[test]
fn bad_lengths_and_overlaps_are_errors() {
    for device in devices(1) {
        let stream = device.new_stream().unwrap();
        let (a, b) = (device.from_slice(&[1u32, 2]).unwrap(), device.from_slice(&[3u32]).unwrap());
        let mut out = device.alloc_uninit::<u32>(4).unwrap();
        let mut out_values = device.alloc_uninit::<u32>(3).unwrap();
        let mask = KeyMask::all();
        // SAFETY: nothing gets queued.
        unsafe {
            let wrong = merge_keys_async(&stream, a.as_slice(), b.as_slice(), mask, &mut out);
            assert!(matches!(wrong, Err(Error::LengthMismatch(LengthMismatch { needed: 3, found: 4, .. }))));
            let wrong = merge_pairs_async(
                &stream,
                Pairs::new(&a, &a),
                Pairs::new(&b, &a),
                mask,
                out.slice_mut(..3),
                &mut out_values,
            );
            assert!(matches!(wrong, Err(Error::LengthMismatch(LengthMismatch { needed: 1, found: 2, .. }))));
            // A second handle to the same memory, as unsound code may have it.
            let out = &raw mut out;
            let (same, rest) = ((&*out).slice(..2), (&mut *out).slice_mut(1..4));
            let wrong = merge_keys_async(&stream, same, b.as_slice(), mask, rest);
            assert!(matches!(wrong, Err(Error::Overlap { .. })));
        }
    }
}

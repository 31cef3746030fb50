use super::*;
use crate::sort::sorted;
use warpset_base::filter::LengthMismatch;
use warpset_core::hash::mix;
use warpset_gpu::Device;
use warpset_gpu::testing::{cuda, devices, is_sanitized};

/// Returns ascending offsets of segments of these lengths.
fn offsets(lengths: impl IntoIterator<Item = usize>) -> Vec<u64> {
    let mut end = 0;
    std::iter::once(0)
        .chain(lengths.into_iter().map(|len| {
            end += len as u64;
            end
        }))
        .collect()
}

fn check<K: SortKey, V: Payload + PartialEq>(
    device: &Device,
    offsets: &[u64],
    key: impl Fn(u64) -> K,
    value: impl Fn(u64) -> V,
    by: &By,
) {
    let n = *offsets.last().unwrap() as usize + 3; // items after the last segment
    let stream = device.new_stream().unwrap();
    let keys: Vec<K> = (0..n as u64).map(|i| key(mix(i, 1))).collect();
    let values: Vec<V> = (0..n as u64).map(value).collect();
    let (dk, dv) = (device.from_slice(&keys).unwrap(), device.from_slice(&values).unwrap());
    let bounds = device.from_slice(offsets).unwrap();
    let (mut out, mut out_values) = (device.from_slice(&keys).unwrap(), device.from_slice(&values).unwrap());
    let (mut expected, mut expected_values) = (keys.clone(), values.clone());
    for ends in offsets.windows(2) {
        let segment = ends[0] as usize..ends[1] as usize;
        let (keys, values) = sorted(&keys[segment.clone()], &values[segment.clone()], by);
        expected[segment.clone()].copy_from_slice(&keys);
        expected_values[segment].copy_from_slice(&values);
    }
    let (k, v, o) = (dk.as_slice(), dv.as_slice(), bounds.as_slice());
    // SAFETY: all live until they have been read; offsets ascend to less than `n`.
    unsafe { sort_pairs_async(&stream, k, v, o, &mut out, &mut out_values, by.clone()) }.unwrap();
    stream.synchronize().unwrap();
    assert!(out.to_vec().unwrap() == expected, "{n} pairs {by:?}");
    assert!(out_values.to_vec().unwrap() == expected_values, "{n} pairs {by:?}");
    let mut out = device.from_slice(&keys).unwrap();
    // SAFETY: as above.
    unsafe { sort_keys_async(&stream, k, o, &mut out, by.clone()) }.unwrap();
    stream.synchronize().unwrap();
    assert!(out.to_vec().unwrap() == expected, "{n} keys {by:?}");
}

fn narrow(x: u64) -> u32 {
    (x % 1000) as u32 | (x >> 32) as u32 & 0xffff_0000
}

fn widest(x: u64) -> u128 {
    u128::from(x % 1000) << 100 | u128::from(x) << 30
}

#[test]
fn tiny_segments() {
    for device in devices(1) {
        for length in [1, 4, 31, 33] {
            check(&device, &offsets(vec![length; 9000 / length]), narrow, |i| i as u32, &By::ascending());
        }
        let mixed = offsets((0..600).map(|i| mix(i, 2) as usize % 31));
        check(&device, &mixed, |x| x, |i| i, &By::descending().bits(3..40));
        check(&device, &mixed, |x| x as u32 % 4, |i| i << 40, &By::ascending().bits(0..2));
        check(&device, &mixed, widest, |i| i as u32, &By::descending().bits(50..110));
    }
}

#[test]
fn segments_of_a_block() {
    for device in devices(2) {
        for length in [63, 64, 100, 1000, SHORT - 1, SHORT] {
            check(&device, &offsets(vec![length; 4500_usize.div_ceil(length)]), narrow, |i| i as u32, &By::ascending());
        }
        let mixed = offsets((0..40).map(|i| mix(i, 3) as usize % 700));
        check(&device, &mixed, |x| x % 3000, |i| i as u32, &By::descending());
        check(&device, &mixed, widest, |i| i, &By::ascending().bits(60..110));
        // Many tiny segments before a long gap: more than 256 in one block.
        let uneven = offsets(std::iter::repeat_n(3, 700).chain([500, 64, 1]));
        check(&device, &uneven, narrow, |i| i, &By::ascending().bits(0..10));
    }
}

#[test]
fn long_segments_between_short_ones() {
    for device in devices(3) {
        let lengths = [5, SHORT + 1, 0, 17, 14_000, 0, 0, 3, 9000, 100];
        check(&device, &offsets(lengths), narrow, |i| i as u32, &By::ascending());
        check(&device, &offsets(lengths), |x| x, |i| i as u32, &By::descending().bits(7..31));
        check(&device, &offsets(lengths), widest, |i| i, &By::ascending().bits(55..71));
        check(&device, &offsets([30_000]), narrow, |i| i << 9, &By::ascending().bits(20..20));
        let mut from_inside = offsets([7, 5000, 2]);
        from_inside.iter_mut().for_each(|offset| *offset += 4099);
        check(&device, &from_inside, narrow, |i| i, &By::descending().bits(0..17));
    }
}

#[test]
fn empty_segments_and_none() {
    for device in devices(4) {
        check(&device, &offsets([]), narrow, |i| i as u32, &By::ascending());
        check(&device, &offsets(vec![0; 3000]), narrow, |i| i as u32, &By::ascending());
        check(
            &device,
            &offsets((0..3000).map(|i| if i % 100 == 99 { 150 } else { 0 })),
            narrow,
            |i| i,
            &By::ascending(),
        );
    }
}

#[test]
fn bad_arguments_are_errors() {
    for device in devices(0) {
        let stream = device.new_stream().unwrap();
        let keys = device.from_slice(&[3u32, 2, 1]).unwrap();
        let bounds = device.from_slice(&[0u64, 3]).unwrap();
        let mut out = device.alloc_uninit::<u32>(2).unwrap();
        // SAFETY: nothing gets queued.
        let result = unsafe { sort_keys_async(&stream, keys.as_slice(), bounds.as_slice(), &mut out, By::ascending()) };
        assert!(matches!(result, Err(Error::LengthMismatch(LengthMismatch { needed: 3, found: 2, .. }))));
        let mut out = device.alloc_uninit::<u32>(3).unwrap();
        // SAFETY: nothing gets queued.
        let result = unsafe { sort_keys_async(&stream, keys.as_slice(), bounds.slice(..0), &mut out, By::ascending()) };
        assert!(matches!(result, Err(Error::LengthMismatch(LengthMismatch { what: "offsets", .. }))));
        let by = By::ascending().bits(0..33);
        // SAFETY: nothing gets queued.
        let result = unsafe { sort_keys_async(&stream, keys.as_slice(), bounds.as_slice(), &mut out, by) };
        assert!(matches!(result, Err(Error::InvalidBitRange { .. })));
    }
}

#[test]
fn large_inputs_on_cuda() {
    let Some(device) = cuda() else { return };
    let items = if is_sanitized() { 1 << 18 } else { 1 << 22 };
    for length in [1, 16, 60, 113, 1000, 4097, 70_000, items] {
        let lengths = (0..(items / length) as u64).map(|i| mix(i, length as u64) as usize % (2 * length));
        check(&device, &offsets(lengths.clone()), |x| x as u32, |i| i as u32, &By::ascending());
        check(&device, &offsets(lengths), |x| x, |i| i, &By::descending().bits(1..50));
    }
}

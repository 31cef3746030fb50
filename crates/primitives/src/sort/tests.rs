use std::fmt::Debug;
use warpset_base::filter::LengthMismatch;
use warpset_base::testing::tier;

use std::ops::Range;

use warpset_kernels::primitives::onesweep_tile::PassShape;

use super::one_block::MANY_DIGITS;
use super::passes::Limits;
use super::*;
use crate::Error;
use warpset_core::hash::mix;
use warpset_gpu::Device;
use warpset_gpu::testing::{cuda, devices, is_sanitized};

/// Sorts on the device, out of place and in place, and compares with the definition.
fn check_keys<K: SortKey + Debug>(device: &Device, keys: &[K], by: &By) {
    let stream = device.new_stream().unwrap();
    let mut input = device.from_slice(keys).unwrap();
    let mut out = device.alloc_uninit(keys.len()).unwrap();
    let (expected, _) = sorted(keys, keys, by);
    // SAFETY: both live until they have been read.
    unsafe { sort_keys_async(&stream, input.as_slice(), &mut out, by.clone()) }.unwrap();
    stream.synchronize().unwrap();
    assert!(out.to_vec().unwrap() == expected, "{} keys {by:?}", keys.len());
    assert!(input.to_vec().unwrap() == keys);
    // SAFETY: as above.
    unsafe { sort_keys_in_place_async(&stream, &mut input, by.clone()) }.unwrap();
    stream.synchronize().unwrap();
    assert!(input.to_vec().unwrap() == expected, "{} keys {by:?} in place", keys.len());
    if !by.is_reversed() && (ONE_BLOCK + 1..1 << 20).contains(&keys.len()) {
        // By passes, as for longer inputs.
        let input = device.from_slice(keys).unwrap();
        let (source, target) = (SortInput::keys(input.as_slice()), SortOutput::keys(out.as_mut_slice()));
        let (widths, bits, n) = (Widths::keys::<K>(), by.range::<K>().unwrap(), keys.len());
        // SAFETY: as above.
        unsafe { sort_in_passes(&stream, widths, source, target, n, bits, by.flip(), false, LIMITS) }.unwrap();
        assert!(out.to_vec().unwrap() == expected, "{n} keys {by:?} by passes");
    }
}

/// Sorts keys with payloads, and compares with the definition.
fn check_pairs<K: SortKey + Debug, V: Payload + PartialEq>(device: &Device, keys: &[K], values: &[V], by: &By) {
    let stream = device.new_stream().unwrap();
    let (mut input, mut payloads) = (device.from_slice(keys).unwrap(), device.from_slice(values).unwrap());
    let mut out = device.alloc_uninit(keys.len()).unwrap();
    let mut out_payloads = device.alloc_uninit(keys.len()).unwrap();
    let (expected, expected_payloads) = sorted(keys, values, by);
    // SAFETY: all live until they have been read.
    unsafe {
        sort_pairs_async(&stream, input.as_slice(), payloads.as_slice(), &mut out, &mut out_payloads, by.clone())
    }
    .unwrap();
    stream.synchronize().unwrap();
    assert!(out.to_vec().unwrap() == expected, "{} pairs {by:?}", keys.len());
    assert!(out_payloads.to_vec().unwrap() == expected_payloads, "{} pairs {by:?}", keys.len());
    assert!(input.to_vec().unwrap() == keys && payloads.to_vec().unwrap() == values);
    // SAFETY: as above.
    unsafe { sort_pairs_in_place_async(&stream, &mut input, &mut payloads, by.clone()) }.unwrap();
    stream.synchronize().unwrap();
    assert!(input.to_vec().unwrap() == expected, "{} pairs {by:?} in place", keys.len());
    assert!(payloads.to_vec().unwrap() == expected_payloads, "{} pairs {by:?} in place", keys.len());
    if !by.is_reversed() && (ONE_BLOCK + 1..1 << 20).contains(&keys.len()) {
        // By passes, as for longer inputs, in place.
        let (mut input, mut payloads) = (device.from_slice(keys).unwrap(), device.from_slice(values).unwrap());
        let target = SortOutput::pairs(input.as_mut_slice(), payloads.as_mut_slice());
        let (widths, bits, n) = (Widths::pairs::<K, V>(), by.range::<K>().unwrap(), keys.len());
        if n % 2 == 1 {
            // SAFETY: as above.
            unsafe {
                let (keys, values) = (input.as_slice(), payloads.as_slice());
                sort_pairs_by_digits_async(&stream, keys, values, &mut out, &mut out_payloads, by.clone()).unwrap();
            }
            assert!(out.to_vec().unwrap() == expected, "{n} pairs {by:?} by digits");
            assert!(out_payloads.to_vec().unwrap() == expected_payloads, "{n} pairs {by:?} by digits");
        } else if !bits.is_empty() {
            // SAFETY: as above.
            unsafe { sort_in_passes(&stream, widths, target.as_source(), target, n, bits, by.flip(), true, LIMITS) }
                .unwrap();
            assert!(input.to_vec().unwrap() == expected, "{n} pairs {by:?} by passes");
            assert!(payloads.to_vec().unwrap() == expected_payloads, "{n} pairs {by:?} by passes");
        }
    }
}

fn random<K>(n: usize, seed: u64, key: impl Fn(u64) -> K) -> Vec<K> {
    (0..n as u64).map(|i| key(mix(i, seed))).collect()
}

fn places(n: usize) -> Vec<u32> {
    (0..n as u32).collect()
}

fn wide_places(n: usize) -> Vec<u64> {
    (0..n as u64).map(|i| i << 33 | 5).collect()
}

/// Returns sizes around the borders of warps, blocks and tiles.
fn sizes(shape: PassShape) -> [usize; 9] {
    let tile = shape.tile;
    [0, 1, 2, 33, ONE_BLOCK - 1, ONE_BLOCK, ONE_BLOCK + 1, tile, 2 * tile + 1]
}

#[test]
fn u32_keys() {
    for (i, n) in sizes(kernels::PASS_U32).into_iter().enumerate() {
        for device in devices(i as u64) {
            check_keys(&device, &random(n, 1, |x| x as u32), &By::ascending());
            // The largest size takes the emulator seconds.
            if !device.is_emulator() || n <= kernels::PASS_U32.tile {
                check_keys(&device, &random(n, 2, |x| x as u32), &By::descending().bits(4..21));
            }
        }
    }
}

#[test]
fn u64_keys() {
    for (i, n) in sizes(kernels::PASS_U64).into_iter().enumerate() {
        for device in devices(i as u64) {
            check_keys(&device, &random(n, 1, |x| x), &By::ascending().bits(13..63));
        }
    }
}

#[test]
fn all_bits_of_u64_keys() {
    for device in devices(7) {
        check_keys(&device, &random(kernels::PASS_U64.tile + 5, 1, |x| x), &By::descending());
        check_keys(&device, &random(100, 1, |x| x), &By::ascending());
    }
}

/// Returns keys of 128 bits that differ in both halves, only in the lower one, only in the upper one, only in the
/// highest bit, or in bits on both sides of the middle; and the bits by which they are sorted.
fn widest(n: usize) -> [(Vec<u128>, Range<u32>); 5] {
    let keys = |key: fn(u128) -> u128| random(n, 16, |x| key(u128::from(x)));
    [
        (keys(|x| x << 64 | x.reverse_bits() >> 64), 0..128),
        (keys(|x| x), 0..128),
        (keys(|x| x << 64 | 7), 0..128),
        (keys(|x| (x & 1) << 127 | 5), 0..128),
        (keys(|x| (x % 300) << 60 | x & 0xff), 59..70),
    ]
}

#[test]
fn u128_keys() {
    let sizes = [0, 1, 33, MANY_DIGITS, MANY_DIGITS + 1, ONE_BLOCK, ONE_BLOCK + 1, 2 * kernels::PASS_U128.tile + 1];
    for (i, n) in sizes.into_iter().enumerate() {
        for device in devices(70 + i as u64) {
            // Only every other kind for long inputs: 16 digits take the emulator long.
            for (kind, (keys, bits)) in widest(n).into_iter().enumerate().step_by(if n > ONE_BLOCK { 2 } else { 1 }) {
                // Each kind of keys is sorted without payloads or with either kind, and each length with one of these.
                match (kind + i) % 3 {
                    0 => check_keys(&device, &keys, &By::ascending().bits(bits)),
                    1 => check_pairs(&device, &keys, &places(n), &By::descending().bits(bits)),
                    _ => check_pairs(&device, &keys, &wide_places(n), &By::ascending().bits(bits).last_first()),
                }
            }
        }
    }
}

#[test]
fn many_u128_keys_are_counted_in_columns() {
    let n = 2 * kernels::PASS_U128_U64.tile + 77;
    for device in devices(80) {
        let stream = device.new_stream().unwrap();
        let keys = random(n, 9, |x| u128::from(x % 1000) << 100 | u128::from(x));
        let (input, payloads) = (device.from_slice(&keys).unwrap(), device.from_slice(&wide_places(n)).unwrap());
        let mut out = device.alloc_uninit::<u128>(n).unwrap();
        let mut out_payloads = device.alloc_uninit::<u64>(n).unwrap();
        let source = SortInput::pairs(input.as_slice(), payloads.as_slice());
        let target = SortOutput::pairs(out.as_mut_slice(), out_payloads.as_mut_slice());
        let limits = Limits { many: 0, launch: kernels::PASS_U128_U64.tile + 1 };
        let widths = Widths::pairs::<u128, u64>();
        // SAFETY: all hold `n` items and live until they have been read.
        unsafe { sort_in_passes(&stream, widths, source, target, n, 0..128, 0, false, limits) }.unwrap();
        let mut expected = wide_places(n);
        expected.sort_by_key(|&place| keys[(place >> 33) as usize]);
        assert!(out_payloads.to_vec().unwrap() == expected);
        assert!(out.to_vec().unwrap().is_sorted());
    }
}

#[test]
fn pieces_are_sorted_and_merged() {
    // Two pieces, several, and a last one that is shorter; in place or not.
    for (i, (n, piece, in_place)) in [(1100, 600, false), (1500, 400, true), (1210, 300, false)].into_iter().enumerate()
    {
        for device in devices(85 + i as u64) {
            let stream = device.new_stream().unwrap();
            let keys = random(n, 17, |x| u128::from(x % 500) << 70 | u128::from(x >> 60));
            let by = if i == 0 { By::ascending() } else { By::ascending().bits(3..120).last_first() };
            let (mut input, mut payloads) =
                (device.from_slice(&keys).unwrap(), device.from_slice(&wide_places(n)).unwrap());
            let (mut out, mut out_payloads) = (device.alloc_uninit(n).unwrap(), device.alloc_uninit(n).unwrap());
            let target = match in_place {
                true => SortOutput::pairs(input.as_mut_slice(), payloads.as_mut_slice()),
                false => SortOutput::pairs(out.as_mut_slice(), out_payloads.as_mut_slice()),
            };
            let source = SortInput::pairs(input.as_slice(), payloads.as_slice());
            let widths = Widths::pairs::<u128, u64>();
            // SAFETY: all hold `n` items and live until they have been read.
            unsafe { sort_in_pieces::<u128>(&stream, widths, source, target, n, piece, by.clone()) }.unwrap();
            stream.synchronize().unwrap();
            let found = if in_place { (&input, &payloads) } else { (&out, &out_payloads) };
            let (keys, places) = sorted(&keys, &wide_places(n), &by);
            assert!(found.0.to_vec().unwrap() == keys && found.1.to_vec().unwrap() == places, "{n} items");
        }
    }
}

#[test]
fn lengths_of_pieces() {
    let device = Device::emulator_with(warpset_gpu::EmulatorOptions::default().multiprocessors(4));
    let stream = device.new_stream().unwrap();
    let widths = Widths::pairs::<u128, u64>();
    let length = |n| pieces::length(&stream, widths, n, &(0..128)).unwrap();
    let most = resident::most_by_parts(&device, widths, &(0..128)).unwrap().unwrap();
    assert_eq!(
        [most, most + 1, 2 * most + 1].map(length),
        [None, Some((most + 1).div_ceil(2)), Some((2 * most + 1).div_ceil(3))]
    );
    // Parts of pieces beyond 32.
    assert_eq!(length(32 * most), Some(most));
    assert_eq!(length(40 * most), Some(20 * most));
    assert_eq!(length(20 * most), Some(most));
    assert_eq!(pieces::length(&stream, widths, 3 * most, &(0..63)).unwrap(), None);
    assert_eq!(pieces::length(&stream, Widths::pairs::<u64, u64>(), 3 * most, &(0..64)).unwrap(), None);
}

#[test]
fn pairs_keep_the_order_of_equal_keys() {
    for (i, n) in [3, 1000, ONE_BLOCK + 1, 2 * kernels::PASS_U32_U32.tile + 100].into_iter().enumerate() {
        for device in devices(10 + i as u64) {
            // Many equal keys, and ignored bits.
            let keys = random(n, 3, |x| (x % 300) as u32 | (x >> 40) as u32 & 0xf000_0000);
            check_pairs(&device, &keys, &places(n), &By::ascending().bits(0..28));
            // Two tiles take the emulator seconds: only the narrowest pairs and the widest.
            let is_short = !device.is_emulator() || n <= ONE_BLOCK + 1;
            if is_short {
                check_pairs(&device, &keys, &wide_places(n), &By::descending().bits(2..9));
            }
            let keys = random(n, 4, |x| (x % 300) << 30);
            if is_short {
                check_pairs(&device, &keys, &places(n), &By::descending().bits(20..44));
            }
            check_pairs(&device, &keys, &wide_places(n), &By::ascending().bits(28..37));
        }
    }
}

#[test]
fn digits_that_one_value_holds_take_no_pass() {
    let n = kernels::PASS_U32_U32.tile + 300;
    // 0 to 3 of 4 passes remain.
    for (i, mask) in [0u32, 0x0000_ff00, 0x00ff_00ff, 0xff00_ffff].into_iter().enumerate() {
        for device in devices(20 + i as u64) {
            let keys = random(n, 5, |x| x as u32 & mask | 0x1234_5678 & !mask);
            // Each takes the emulator seconds.
            if !device.is_emulator() || i % 2 == 0 {
                check_pairs(&device, &keys, &places(n), &By::ascending());
            }
            if !device.is_emulator() || i % 2 == 1 {
                check_keys(&device, &keys, &By::descending());
            }
        }
    }
}

#[test]
fn no_bits_and_odd_numbers_of_passes() {
    let n = ONE_BLOCK + 77;
    for device in devices(30) {
        let keys = random(n, 6, |x| x as u32);
        for bits in [0..0, 32..32, 5..6, 8..32] {
            check_pairs(&device, &keys, &places(n), &By::ascending().bits(bits.clone()));
            check_keys(&device, &keys[..50], &By::descending().bits(bits));
        }
    }
}

#[test]
fn more_items_than_a_launch_takes() {
    let tile = kernels::PASS_U64_U32.tile;
    for (n, in_place) in [(3 * tile + 5, false), (2 * tile, true)] {
        for device in devices(n as u64) {
            let stream = device.new_stream().unwrap();
            let keys = random(n, 8, |x| x % 100 * 0x0101_0101);
            let (mut input, mut payloads) = (device.from_slice(&keys).unwrap(), device.from_slice(&places(n)).unwrap());
            let (mut out, mut out_payloads) = (device.alloc_uninit(n).unwrap(), device.alloc_uninit(n).unwrap());
            let source = SortInput::pairs(input.as_slice(), payloads.as_slice());
            let target = match in_place {
                true => SortOutput::pairs(input.as_mut_slice(), payloads.as_mut_slice()),
                false => SortOutput::pairs(out.as_mut_slice(), out_payloads.as_mut_slice()),
            };
            let widths = Widths::pairs::<u64, u32>();
            let limits = Limits { launch: tile + 1, many: 0 };
            // SAFETY: all hold `n` items and live until they have been read.
            unsafe { sort_in_passes(&stream, widths, source, target, n, 0..32, 0, in_place, limits) }.unwrap();
            stream.synchronize().unwrap();
            let (found, order) = if in_place { (&input, &payloads) } else { (&out, &out_payloads) };
            let mut expected = places(n);
            expected.sort_by_key(|&place| keys[place as usize]);
            assert!(order.to_vec().unwrap() == expected, "{n} items");
            assert!(found.to_vec().unwrap().iter().zip(&expected).all(|(key, &place)| *key == keys[place as usize]));
        }
    }
}

#[test]
fn many_keys_are_counted_in_columns() {
    let n = 20_000;
    for device in devices(40) {
        let stream = device.new_stream().unwrap();
        let keys = random(n, 9, |x| x as u32);
        let input = device.from_slice(&keys).unwrap();
        let mut out = device.alloc_uninit(n).unwrap();
        let (source, target) = (SortInput::keys(input.as_slice()), SortOutput::keys::<u32>(out.as_mut_slice()));
        let limits = Limits { many: 0, ..LIMITS };
        // SAFETY: both hold `n` keys and live until they have been read.
        unsafe { sort_in_passes(&stream, Widths::keys::<u32>(), source, target, n, 3..32, 0, false, limits) }.unwrap();
        let mut expected = keys;
        expected.sort_by_key(|key| key >> 3);
        assert!(out.to_vec().unwrap() == expected);
    }
}

#[test]
fn sorted_reversed_and_equal_input() {
    let n = kernels::PASS_U32.tile + 1000;
    for device in devices(31) {
        check_keys(&device, &places(n), &By::ascending());
        check_keys(&device, &places(n), &By::descending());
        check_keys(&device, &vec![!0u32; n], &By::ascending());
        check_keys(&device, &vec![0u32; n], &By::descending());
    }
}

/// Returns keys that are sorted by parts, by digits because a part would be too long, and within a part by a network
/// because slots would be too long.
fn uneven(n: usize) -> [Vec<u32>; 7] {
    let random = |f: fn(u64) -> u64| random(n, 14, move |x| f(x) as u32);
    [
        // Half of them in a narrow range.
        random(|x| 0xfff0_0000 + x % 100_000),
        // All equal but two, and equal in each part.
        (0..n)
            .map(|i| {
                if i == 17 {
                    5
                } else if i == n - 3 {
                    4_000_000_000
                } else {
                    77
                }
            })
            .collect(),
        random(|x| (((x % 4) << 30) | x >> 40 & 3) + 1),
        // Groups of neighbours, and some isolated ones.
        random(|x| ((x % 37) << 25) + (x >> 32) % 100),
        // Smaller keys are more frequent.
        random(|x| (x >> 32) >> (x % 32)),
        // Sorted, and in reverse.
        (0..n as u32).collect(),
        (0..n as u32).rev().collect(),
    ]
}

#[test]
fn keys_that_are_not_spread_evenly() {
    let n = ONE_BLOCK + 300;
    for (i, keys) in uneven(n).into_iter().enumerate() {
        for device in devices(50 + i as u64) {
            if i % 2 == 0 {
                check_pairs(&device, &keys, &places(n), &By::ascending());
            } else {
                let wide: Vec<u64> = keys.iter().map(|&key| u64::from(key) << 30).collect();
                check_keys(&device, &wide, &By::descending().bits(3..62));
            }
            if i == 3 {
                let widest: Vec<u128> = keys.iter().map(|&key| u128::from(key) << 50).collect();
                check_pairs(&device, &widest, &places(n), &By::ascending().bits(48..90));
            }
        }
    }
}

#[test]
fn equal_keys_the_last_one_first() {
    for (i, n) in [0, 1, 500, ONE_BLOCK + 1, 9000].into_iter().enumerate() {
        for device in devices(60 + i as u64) {
            let by = By::ascending().last_first();
            let keys = random(n, 15, |x| x as u32 % 3000);
            let mut expected: Vec<u32> = places(n).into_iter().rev().collect();
            expected.sort_by_key(|&place| keys[place as usize]);
            assert_eq!(sorted(&keys, &places(n), &by).1, expected);
            check_pairs(&device, &keys, &places(n), &by);
            check_pairs(&device, &keys, &wide_places(n), &By::descending().bits(3..9).last_first());
            check_pairs(&device, &vec![7u64; n], &places(n), &by);
            check_pairs(&device, &keys, &places(n), &By::ascending().bits(4..4).last_first());
            check_keys(&device, &keys, &By::ascending().bits(0..7).last_first());
        }
    }
}

#[test]
fn as_many_blocks_as_the_device_runs() {
    // One block, several with several items per thread, and more items than an emulator of one block holds.
    for (multiprocessors, blocks, n) in [(1, 1, 5000), (3, 3, 4500), (4, 2, 4200), (1, 1, 16_400)] {
        let config = warpset_gpu::emulator::Config { resident_blocks: blocks, ..Default::default() };
        let options = warpset_gpu::EmulatorOptions::default().multiprocessors(multiprocessors).config(config);
        let device = Device::emulator_with(options);
        let keys = random(n, 12, |x| x as u32);
        check_pairs(&device, &keys, &places(n), &By::ascending());
        if n < 5000 {
            // Fewer items than one block takes, with or without enough blocks.
            let (widest, bits) = &widest(2500)[0];
            check_pairs(&device, widest, &places(2500), &By::ascending().bits(bits.clone()));
        }
    }
}

#[test]
fn bad_arguments_are_errors() {
    for device in devices(0) {
        let stream = device.new_stream().unwrap();
        let mut keys = device.from_slice(&[3u32, 2, 1]).unwrap();
        let mut values = device.from_slice(&[0u64; 2]).unwrap();
        let mut out = device.alloc_uninit::<u32>(2).unwrap();
        for bits in [Range { start: 3, end: 2 }, 0..33, 40..50] {
            // SAFETY: nothing gets queued.
            let result = unsafe { sort_keys_in_place_async(&stream, &mut keys, By::ascending().bits(bits)) };
            assert!(matches!(result, Err(Error::InvalidBitRange { width: 32, .. })));
        }
        // SAFETY: nothing gets queued.
        let result = unsafe { sort_keys_async(&stream, keys.as_slice(), &mut out, By::ascending()) };
        assert!(matches!(result, Err(Error::LengthMismatch(LengthMismatch { needed: 3, found: 2, .. }))));
        // SAFETY: nothing gets queued.
        let result = unsafe { sort_pairs_in_place_async(&stream, &mut keys, &mut values, By::ascending()) };
        assert!(matches!(result, Err(Error::LengthMismatch(LengthMismatch { needed: 3, found: 2, .. }))));
        assert_eq!(keys.to_vec().unwrap(), [3, 2, 1]);
    }
}

#[test]
fn large_inputs_on_cuda() {
    let Some(device) = cuda() else { return };
    // Under the sanitizer one length per kind of sort.
    let (lengths, uneven_lengths): (&[usize], &[usize]) = match is_sanitized() {
        true => (&[200_001, (1 << 21) + 1], &[1 << 16]),
        false => tier::<(&[usize], &[usize])>(
            (&[1 << 16, 200_001, (1 << 20) + 1], &[1 << 16, 1 << 20]),
            (&[1 << 16, 200_001, 1 << 20, (1 << 21) + 1, (1 << 24) + 12345], &[1 << 16, 1 << 20, 1 << 21]),
        ),
    };
    for &n in lengths {
        check_keys(&device, &random(n, 1, |x| x as u32), &By::ascending());
        check_keys(&device, &random(n, 1, |x| x), &By::descending());
        check_pairs(&device, &random(n, 1, |x| x as u32 % 5000), &places(n), &By::ascending());
        check_pairs(&device, &random(n, 1, |x| x), &wide_places(n), &By::ascending().last_first());
        for (keys, bits) in widest(n) {
            check_pairs(&device, &keys, &wide_places(n), &By::ascending().bits(bits.clone()).last_first());
            check_keys(&device, &keys, &By::descending().bits(bits));
        }
    }
    for &n in uneven_lengths {
        for keys in uneven(n) {
            check_pairs(&device, &keys, &places(n), &By::ascending());
            check_pairs(&device, &keys, &wide_places(n), &By::ascending().last_first());
        }
    }
}

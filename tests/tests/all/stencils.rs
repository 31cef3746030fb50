//! Keys on a device under a stencil, for every filter and kind of key: what the same operation on the selected keys
//! does. And the lookups that all filters share, in every form of answers.

use warpset_base::key::Hashed;
use warpset_bloom::gpu::{DeviceKeys, StringVec};
use warpset_bloom::{BlockedBloom, FirstLevel, RaoBloom, SplitBlockBloom, StringHash};
use warpset_fuse::BinaryFuse8;
use warpset_gpu::batch::Stencil;
use warpset_gpu::{Device, DeviceSlice, testing};
use warpset_mphf::StaticFilter;
use warpset_primitives::{DeviceFilter, DeviceInsert};
use warpset_quotient::{Duplicates, Insert, RankSelectQuotientFilter, StandardQuotientFilter};
use warpset_static::StaticSet;

/// Keys of a batch: not a multiple of a word of bits.
const N: usize = 1003;

fn words() -> Vec<u64> {
    (0..N as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
}

/// Returns flags for every `every`-th key.
fn flags(every: usize) -> Vec<u8> {
    (0..N).map(|i| if i % every == every - 1 { 0x80 } else { 0 }).collect()
}

fn bits(flags: &[u8]) -> Vec<u64> {
    flags.chunks(64).map(|c| c.iter().rev().fold(0, |word, &flag| word << 1 | u64::from(flag != 0))).collect()
}

/// Checks insertions and lookups under stencils: `filter` is empty; `meant` holds the keys of `flags(3)`.
fn agrees<F: DeviceInsert + DeviceFilter<K>, K: DeviceKeys>(
    device: &Device,
    mut filter: F,
    image: impl Fn(&F) -> Vec<u8>,
    keys: K,
    meant: &F,
    bytes_first: bool,
) {
    let on_device = |flags: &[u8]| {
        (device.from_slice(flags).unwrap(), device.from_slice(&bits(flags)).unwrap()) //
    };
    let (none, none_bits) = on_device(&[0; N]);
    filter.insert_if_device(keys, &none).unwrap();
    filter.insert_if_device(keys, &none_bits).unwrap();
    let (third, third_bits) = on_device(&flags(3));
    filter
        .insert_if_device(keys, if bytes_first { Stencil::from(&third) } else { Stencil::from(&third_bits) })
        .unwrap();
    assert!(image(&filter) == image(meant));

    let mut plain = device.alloc_zeroed::<u8>(N).unwrap();
    filter.contains_device(keys, plain.as_mut_slice()).unwrap();
    let plain = plain.to_vec().unwrap();
    assert!(plain.iter().zip(flags(3)).all(|(&answer, flag)| answer == 1 || flag == 0));
    for every in [1, 2, 6, N + 1] {
        let flags = flags(every);
        let expected: Vec<u8> = plain.iter().zip(&flags).map(|(&answer, &flag)| answer & (flag >> 7)).collect();
        let (bytes, words) = on_device(&flags);
        for stencil in [Stencil::from(&bytes), Stencil::from(&words)] {
            let mut answers = device.from_slice(&[9u8; N]).unwrap();
            filter.contains_if_device(keys, stencil, answers.as_mut_slice()).unwrap();
            assert!(answers.to_vec().unwrap() == expected, "bytes, {stencil:?}, {every}");
            let mut answers = device.from_slice(&[!0u64; N.div_ceil(64)]).unwrap();
            filter.contains_if_bitmap_device(keys, stencil, answers.as_mut_slice()).unwrap();
            assert!(answers.to_vec().unwrap() == bits(&expected), "bits, {stencil:?}, {every}");
        }
    }
}

/// Reads the words of a filter.
macro_rules! image {
    () => {
        |filter| filter.words().cast::<u8>().unwrap().to_vec().unwrap()
    };
}

/// Integers of both widths, hashes and strings, in the filter that `$make` makes on a device.
macro_rules! all_keys {
    ($device:ident, $make:expr, $($kind:ident),*) => {{
        let make = $make;
        $(all_keys!(@ $kind, $device, make);)*
    }};
    (@ integers, $device:ident, $make:ident) => {
        let wide = words();
        let narrow: Vec<i32> = wide.iter().map(|&word| (word >> 40) as i32 - (1 << 22)).collect();
        let third = |i: &usize| i % 3 == 2;
        let meant: Vec<u64> = (0..N).filter(third).map(|i| wide[i]).collect();
        let mut of_meant = $make();
        of_meant.insert_bulk(&meant).unwrap();
        agrees($device, $make(), image!(), $device.from_slice(&wide).unwrap().as_slice(), &of_meant, true);
        let meant: Vec<i32> = (0..N).filter(third).map(|i| narrow[i]).collect();
        let mut of_meant = $make();
        of_meant.insert_bulk(&meant).unwrap();
        agrees($device, $make(), image!(), $device.from_slice(&narrow).unwrap().as_slice(), &of_meant, false);
    };
    (@ others, $device:ident, $make:ident) => {
        let third = |i: &usize| i % 3 == 2;
        let hashes: Vec<Hashed> = words().into_iter().map(Hashed).collect();
        let strings: Vec<String> = words().iter().map(|word| format!("{word:x}")).collect();
        let meant: Vec<Hashed> = (0..N).filter(third).map(|i| hashes[i]).collect();
        let mut of_meant = $make();
        of_meant.insert_bulk(&meant).unwrap();
        agrees($device, $make(), image!(), $device.from_slice(&hashes).unwrap().as_slice(), &of_meant, true);
        let meant: Vec<&String> = (0..N).filter(third).map(|i| &strings[i]).collect();
        let mut of_meant = $make();
        of_meant.insert_bulk(&meant).unwrap();
        let there = StringVec::from_slice($device, &strings).unwrap();
        agrees($device, $make(), image!(), there.as_strings(), &of_meant, false);
    };
}

#[test]
fn bloom_filters() {
    for device in &testing::devices(31) {
        all_keys!(device, || SplitBlockBloom::builder(1000).on(device).build().unwrap(), integers, others);
        all_keys!(device, || BlockedBloom::builder(1000).on(device).build().unwrap(), integers);
        all_keys!(device, || RaoBloom::builder(4000).on(device).build().unwrap(), integers);
        let by_strings = RaoBloom::builder(4000).first_level(FirstLevel::String(StringHash::Bkdr));
        all_keys!(device, || by_strings.clone().on(device).build().unwrap(), integers, others);
    }
}

#[test]
fn quotient_filters() {
    for device in &testing::devices(32) {
        let standard = StandardQuotientFilter::builder(1000).duplicates(Duplicates::Kept);
        all_keys!(device, || standard.on(device).build().unwrap(), integers, others);
        let counted = RankSelectQuotientFilter::builder(1000).duplicates(Duplicates::Counted);
        all_keys!(device, || counted.on(device).build().unwrap(), integers);
        let exact = RankSelectQuotientFilter::builder(1000).exact(64);
        all_keys!(device, || exact.on(device).build().unwrap(), integers);
    }
}

#[test]
fn removals_and_errors() {
    for device in testing::devices(33) {
        let keys = device.from_slice(&words()).unwrap();
        let mut filter = StandardQuotientFilter::builder(2000).fpr(1e-9).on(&device).build().unwrap();
        filter.insert_device(keys.as_slice()).unwrap();
        let stencil = device.from_slice(&flags(4)).unwrap();
        assert_eq!(filter.remove_if_device(keys.as_slice(), &stencil).unwrap(), N as u64 / 4);
        let left = filter.count_contained_device(keys.as_slice()).unwrap();
        assert_eq!((left, filter.len()), (N - N / 4, (N - N / 4) as u64));

        let mut bloom = SplitBlockBloom::builder(1000).on(&device).build().unwrap();
        let mut answers = device.alloc_zeroed::<u8>(N).unwrap();
        let short = stencil.slice(..N - 1);
        assert!(matches!(bloom.insert_if_device(keys.as_slice(), short), Err(warpset_bloom::Error::LengthMismatch(_))));
        let asked = bloom.contains_if_device(keys.as_slice(), short, answers.as_mut_slice());
        assert!(matches!(asked, Err(warpset_bloom::Error::LengthMismatch(_))));
        let removed = filter.remove_if_device(keys.as_slice(), short);
        assert!(matches!(removed, Err(warpset_quotient::Error::LengthMismatch(_))));

        let elsewhere = Device::emulator(Default::default()).from_slice(&flags(4)).unwrap();
        assert!(matches!(bloom.insert_if_device(keys.as_slice(), &elsewhere), Err(warpset_bloom::Error::Gpu(_))));
        assert!(matches!(filter.insert_if_device(keys.as_slice(), &elsewhere), Err(warpset_quotient::Error::Gpu(_))));
        let asked = filter.contains_if_device(keys.as_slice(), &elsewhere, answers.as_mut_slice());
        assert!(matches!(asked, Err(warpset_quotient::Error::Gpu(_))));
        assert_eq!(bloom.count_ones().unwrap(), 0);
        bloom.insert_if_device(keys.slice(..0), stencil.slice(..0)).unwrap();
    }
}

/// Checks that all forms of answers of one filter on a device agree with its answers to keys on the host, and that
/// memory of another device and too few places are rejected.
fn every_form<F: for<'k> DeviceFilter<DeviceSlice<'k, u64>>>(device: &Device, filter: F) {
    let keys = words();
    let yes = filter.contains_bulk(&keys).unwrap();
    let kept = |i: &usize| yes[*i];
    let expected: Vec<u64> = (0..N).filter(kept).map(|i| keys[i]).collect();
    assert!(expected.len() >= N / 2 && expected.len() < N / 2 + 50);
    let mut left = keys.clone();
    filter.retain_contained_bulk(&mut left).unwrap();
    assert!(left == expected);
    let mut bytes = vec![9; N];
    filter.contains_bytes_bulk_into(&keys, &mut bytes).unwrap();
    assert!(bytes.iter().zip(&yes).all(|(&byte, &yes)| byte == u8::from(yes)));

    let there = device.from_slice(&keys).unwrap();
    let mut answers = device.from_slice(&[!0u64; N.div_ceil(64)]).unwrap();
    filter.contains_bitmap_device(there.as_slice(), answers.as_mut_slice()).unwrap();
    assert!(answers.to_vec().unwrap() == bits(&bytes));
    assert_eq!(filter.count_contained_device(there.as_slice()).unwrap(), expected.len());
    let mut retained = device.from_slice(&[7u64; N]).unwrap();
    let count = filter.retain_contained_device(there.as_slice(), retained.as_mut_slice()).unwrap();
    assert!(count == expected.len() && retained.to_vec().unwrap()[..count] == expected);
    let count = filter.retain_contained_indices_device(there.as_slice(), retained.as_mut_slice()).unwrap();
    let places = retained.to_vec().unwrap();
    assert!(places[..count].iter().map(|&place| place as usize).eq((0..N).filter(kept)));
    let stencil = device.from_slice(&flags(5)).unwrap();
    filter.contains_if_bitmap_device(there.as_slice(), &stencil, answers.as_mut_slice()).unwrap();
    let meant: Vec<u8> = bytes.iter().zip(flags(5)).map(|(&answer, flag)| answer & (flag >> 7)).collect();
    assert!(answers.to_vec().unwrap() == bits(&meant));

    let mut few = device.alloc_zeroed::<u64>(2).unwrap();
    let refused = filter.contains_bitmap_device(there.as_slice(), few.as_mut_slice()).unwrap_err();
    assert!(refused.to_string().contains("16 needed"), "{refused}");
    let refused = filter.contains_if_bitmap_device(there.as_slice(), few.as_slice(), answers.as_mut_slice());
    assert!(refused.unwrap_err().to_string().contains("1003 needed"));
    assert!(filter.retain_contained_device(there.as_slice(), few.as_mut_slice()).is_err());
    let mut elsewhere = Device::emulator(Default::default()).from_slice(&keys).unwrap();
    assert!(filter.contains_bitmap_device(elsewhere.as_slice(), answers.as_mut_slice()).is_err());
    assert!(filter.contains_bitmap_device(there.as_slice(), elsewhere.as_mut_slice()).is_err());
    assert!(filter.contains_if_bitmap_device(there.as_slice(), &elsewhere, answers.as_mut_slice()).is_err());
    assert!(filter.retain_contained_device(there.as_slice(), elsewhere.as_mut_slice()).is_err());
    assert!(filter.retain_contained_indices_device(there.as_slice(), elsewhere.as_mut_slice()).is_err());
    assert_eq!(filter.count_contained_device(there.slice(..0)).unwrap(), 0);
    assert_eq!(filter.retain_contained_device(there.slice(..0), retained.as_mut_slice()).unwrap(), 0);
    filter.contains_bitmap_device(there.slice(..0), few.slice_mut(..0)).unwrap();
}

#[test]
fn every_filter_answers_in_every_form() {
    for device in &testing::devices(35) {
        let some: Vec<u64> = words().into_iter().skip(1).step_by(2).chain([words()[0]]).collect();
        every_form(device, SplitBlockBloom::builder(1000).fpr(0.01).on(device).build_from(&some).unwrap());
        every_form(device, StandardQuotientFilter::builder(1000).fpr(0.01).on(device).build_from(&some).unwrap());
        every_form(device, RankSelectQuotientFilter::builder(1000).fpr(0.01).on(device).build_from(&some).unwrap());
        every_form(device, StaticFilter::builder().width(8).on(device).build_from(&some).unwrap());
        every_form(device, BinaryFuse8::builder().on(device).build_from(&some).unwrap());
        every_form(device, StaticSet::<u64>::builder().on(device).build_from(&some).unwrap());
    }
}

/// Fails the first, the second allocation or launch, and so on, and checks that the filter is unchanged.
#[test]
fn failures_leave_the_filter() {
    let device = &testing::devices(34);
    let Some(device) = device.first() else { return };
    let (keys, stencil) = (device.from_slice(&words()).unwrap(), device.from_slice(&flags(3)).unwrap());
    let mut filter = StandardQuotientFilter::builder(1000).on(device).build().unwrap();
    let (mut held, expected) = (0, N as u64 / 3);
    testing::fail_each(
        &mut filter,
        |filter| filter.insert_if_device(keys.as_slice(), &stencil),
        |filter, result| {
            held = result.map_or(held, |inserted| held + inserted);
            assert_eq!(filter.len(), held);
        },
    );
    assert!(held <= expected && held > expected - 5);
}

//! Lookups give the answers of the host and of a multiset, by both methods and in every form, in filters of every shape
//! and width; on CUDA too where there is a device.

use proptest::prelude::*;
use warpset_base::filter::Filter;
use warpset_core::hash::mix;
use warpset_core::quotient::slots::Container;
use warpset_gpu::batch::Answers;
use warpset_gpu::testing::{devices, is_sanitized};
use warpset_gpu::{Device, GpuError};
use warpset_kernels::batch::keys::{KeyKind, KeySlice};
use warpset_kernels::batch::results;

use super::slot_kind::Asked;
use super::{DeviceSlotKind, LookupMethod, QuotientFilter, StandardQuotientFilter};
use crate::{Builder, Count, Duplicates, Error, Hashed, Layout, RankSelect, Standard, StandardBuilder};

const METHODS: [LookupMethod; 3] = [LookupMethod::Unsorted, LookupMethod::Sorted, LookupMethod::Auto];

/// Returns hashes with these fingerprints.
fn hashes(layout: &Layout, fingerprints: &[u64]) -> Vec<Hashed> {
    fingerprints.iter().map(|&f| Hashed(f << (64 - layout.fingerprint_bits()))).collect()
}

fn layout(q: u32, r: u32, container: Container) -> Layout {
    let builder = StandardBuilder::with_bits(q, r).max_load(0.99).container(container);
    builder.duplicates(Duplicates::Kept).layout().unwrap()
}

/// Checks every answer to `asked` in a filter of `stored`, in every form; in packed layouts with both kinds of slots.
fn check(device: &Device, layout: Layout, stored: &[u64], asked: &[u64]) {
    check_kind::<Standard>(device, layout, stored, asked);
    if layout.container() == Container::Packed {
        check_kind::<RankSelect>(device, layout, stored, asked);
    }
}

/// Checks one kind of slots.
fn check_kind<S: DeviceSlotKind>(device: &Device, layout: Layout, stored: &[u64], asked: &[u64]) {
    let mut sorted = stored.to_vec();
    sorted.sort_unstable();
    let expected: Vec<bool> = asked.iter().map(|f| sorted.binary_search(f).is_ok()).collect();
    let yes = expected.iter().filter(|&&yes| yes).count();

    let (stored, asked) = (hashes(&layout, stored), hashes(&layout, asked));
    let host = Builder::<S>::with_layout(layout).build_from(&stored).unwrap();
    assert_eq!(host.contains_bulk(&asked).unwrap(), expected, "{} {layout:?}", S::NAME);
    let filter = QuotientFilter::<S>::from_host(device, &host).unwrap();
    assert_eq!(filter.contains_bulk(&asked).unwrap(), expected, "{} {layout:?}", S::NAME);
    let copies = host.count_bulk(&asked).unwrap();
    assert_eq!(filter.count_bulk(&asked).unwrap(), copies, "{} {layout:?}", S::NAME);
    assert!(copies.iter().zip(&expected).all(|(&copies, &there)| (copies > 0) == there));
    let on_device = device.from_slice(&asked).unwrap();
    let stream = device.new_stream().unwrap();
    let mut counts = device.alloc_uninit::<u64>(asked.len()).unwrap();
    filter.count_device(on_device.as_slice(), counts.as_mut_slice()).unwrap();
    assert_eq!(counts.to_vec().unwrap(), copies, "{} {layout:?}", S::NAME);
    for method in METHODS {
        let mut answers = device.alloc_uninit::<u8>(asked.len()).unwrap();
        let mut count = device.alloc_zeroed::<u64>(1).unwrap();
        // SAFETY: all live until they are read, which waits.
        unsafe {
            filter.contains_async_with(&stream, on_device.as_slice(), answers.as_mut_slice(), method).unwrap();
            filter.count_contained_async_with(&stream, on_device.as_slice(), count.as_mut_slice(), method).unwrap();
        }
        let answers: Vec<bool> = answers.to_vec().unwrap().iter().map(|&yes| yes == 1).collect();
        assert_eq!(answers, expected, "{} {method:?} {layout:?}", S::NAME);
        assert_eq!(count.to_vec().unwrap(), [yes as u64], "{} {method:?} {layout:?}", S::NAME);
    }
}

/// Returns `n` fingerprints of one shape.
fn shaped(layout: &Layout, shape: u64, n: u64) -> Vec<u64> {
    let (quotients, last) = (layout.quotients(), !0 >> (64 - layout.remainder_bits()));
    let random = |i: u64| mix(i, 7 + shape);
    let fingerprint = |quotient: u64, i: u64| quotient << layout.remainder_bits() | random(!i) & last;
    let of = |i: u64| match shape {
        // They are anywhere.
        0 => fingerprint(random(i) % quotients, i),
        // A run is longer than blocks of slots, shifts runs after it by blocks, and has some before it.
        1 => {
            let run = quotients / 5;
            fingerprint(if i.is_multiple_of(2) { run } else { (run + random(i) % 150).saturating_sub(20) }, i)
        }
        // They are at the end, so that most lie in the overflow region.
        2 => fingerprint(quotients - 1 - random(i) % 40, i),
        // Every other quotient occurs twice: clusters do not end.
        _ => fingerprint((i / 2 + i / 100).min(quotients - 1), i),
    };
    (0..n).map(of).collect()
}

#[test]
fn filters_of_every_shape_and_width() {
    for device in devices(11) {
        let small = device.is_emulator() || is_sanitized();
        let q = if small { 8 } else { 13 };
        for (i, r) in [1, 2, 3, 5, 6, 8, 13, 16, 21, 29, 33, 40, 48, 51].into_iter().enumerate() {
            for container in [Container::Packed, Container::Bytes] {
                let layout = layout(q, r, container);
                let shapes = if small { i as u64 % 4..i as u64 % 4 + 1 } else { 0..4 };
                for shape in shapes {
                    let n = if shape == 2 { layout.limit().min(300) } else { layout.limit() - 1 };
                    let stored = shaped(&layout, shape, n);
                    // The queries are neighbours, often of the same run, and others.
                    let mut asked: Vec<u64> = stored.iter().flat_map(|&f| [f, f ^ 1]).collect();
                    asked.extend((0..100).map(|i| mix(i, 5) >> (64 - layout.fingerprint_bits())));
                    check(&device, layout, &stored, &asked);
                }
            }
        }
    }
}

#[test]
fn the_longest_remainders() {
    for device in devices(12) {
        for (q, r) in [(3, 61), (4, 60), (6, 58), (1, 61), (1, 1)] {
            for container in [Container::Packed, Container::Bytes] {
                let layout = layout(q, r, container);
                let max = layout.last_fingerprint();
                let stored: Vec<u64> = (0..layout.limit()).map(|i| mix(i, 3) & max).collect();
                let asked: Vec<u64> = stored.iter().flat_map(|&f| [f, f ^ 1, f ^ 1 << (r - 1), 0, max]).collect();
                check(&device, layout, &stored, &asked);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_fingerprints(
        q in 1..8u32, r in 1..=57u32, packed: bool, seed: u64, spread in 1..200u64, fill in 0.0..1.0f64,
    ) {
        let layout = layout(q, r, if packed { Container::Packed } else { Container::Bytes });
        let max = layout.last_fingerprint();
        let n = (layout.limit() as f64 * fill) as u64;
        // Remainders have few values, so runs have repetitions.
        let fingerprint = |i: u64| {
            let random = mix(i, seed);
            let quotient = (random >> 32) % layout.quotients();
            quotient << r | (random % spread) & (!0 >> (64 - r))
        };
        let stored: Vec<u64> = (0..n).map(fingerprint).collect();
        let asked: Vec<u64> =
            (0..150).map(fingerprint).chain((0..50).map(|i| mix(i, !seed) & max)).collect();
        for device in devices(seed) {
            check(&device, layout, &stored, &asked);
        }
    }
}

/// Runs on the emulator alone: on CUDA the limit is that of all tests that run at the same time.
#[test]
fn without_memory_for_sorting_keys_are_looked_up_as_they_come() {
    let device = warpset_gpu::testing::deferred(13);
    for r in [5, 40] {
        let layout = layout(10, r, Container::Packed);
        let stored: Vec<u64> = shaped(&layout, 0, 900);
        let asked: Vec<u64> = (0..1500).map(|i| stored[i % 900] ^ (i as u64 / 900)).collect();
        let host = StandardBuilder::with_layout(layout).build_from(&hashes(&layout, &stored)).unwrap();
        let expected = host.contains_bulk(&hashes(&layout, &asked)).unwrap();
        let filter = StandardQuotientFilter::from_host(&device, &host).unwrap();
        let keys = device.from_slice(&hashes(&layout, &asked)).unwrap();
        let stream = device.new_stream().unwrap();
        let n = asked.len();
        // Free memory is that for the answers, and more and more of what sorting asks for: nothing, places,
        // fingerprints, some of the rest.
        let (mut refused, mut sorted) = (0, 0);
        let forms = [results::BYTES, results::BITS, results::COUNT];
        for (more, form) in (0..18).map(|step| step * 4000).zip(forms.into_iter().cycle()) {
            let mut out = device.alloc_zeroed::<u64>(results::words(form, n)).unwrap();
            let info = device.memory_info().unwrap();
            device.set_memory_limit(info.total - info.free + more);
            let keys = KeySlice::new(keys.global(), KeyKind::HASHES);
            // SAFETY: there is room for the answers; all live until they are read, which waits.
            unsafe {
                let method = LookupMethod::Sorted;
                let answers = Answers { words: out.global_mut(), form };
                filter.look_up_by(Asked { stream: &stream, keys, n }, answers, method, true).unwrap();
            }
            device.set_memory_limit(usize::MAX);
            let words = out.to_vec().unwrap();
            let answer = |i: usize| match form {
                results::BYTES => words[i / 8] >> (8 * (i % 8)) & 0xff == 1,
                _ => words[i / 64] >> (i % 64) & 1 == 1,
            };
            if form == results::COUNT {
                assert_eq!(words, [expected.iter().filter(|&&yes| yes).count() as u64], "{more}");
            } else {
                assert_eq!((0..n).map(answer).collect::<Vec<_>>(), expected, "{form} {more}");
            }
            // The method on its own reports the lack of memory.
            let mut out = device.alloc_zeroed::<u64>(results::words(form, n)).unwrap();
            let info = device.memory_info().unwrap();
            device.set_memory_limit(info.total - info.free + more);
            // SAFETY: as above.
            let alone = unsafe {
                let answers = Answers { words: out.global_mut(), form };
                filter.look_up_by(Asked { stream: &stream, keys, n }, answers, LookupMethod::Sorted, false)
            };
            device.set_memory_limit(usize::MAX);
            match alone {
                Ok(()) => sorted += 1,
                Err(Error::Gpu(GpuError::OutOfMemory { .. })) => refused += 1,
                Err(other) => panic!("{other}"),
            }
        }
        assert!(refused > 1 && sorted > 1, "{refused} refused, {sorted} sorted");
    }
}

//! All four methods against the sequential definition, on every device, including adversarial inputs.

use std::fmt::Debug;
use warpset_base::filter::LengthMismatch;

use warpset_core::hash::mix;
use warpset_gpu::Device;
use warpset_gpu::testing::devices;

use super::*;

/// Checks each method against the definition; returns the iterations of the last three.
fn check<R>(device: &Device, items: &[R::Item], what: &str) -> [usize; 3]
where
    R: RecurrenceKernels<Item: Pod, Number: Pod + Debug> + NonAssociativeKernels,
{
    let stream = device.new_stream().unwrap();
    let mut expected: Vec<R::Number> = Vec::with_capacity(items.len());
    for &item in items {
        expected.push(expected.last().map_or_else(|| R::start(item), |&before| R::step(before, item)));
    }
    let input = device.from_slice(items).unwrap();
    let same = |name: &str, out: &warpset_gpu::DeviceVec<R::Number>| {
        let found = out.to_vec().unwrap();
        let wrong = found.iter().zip(&expected).position(|(a, b)| a != b);
        if let Some(i) = wrong {
            panic!("{name}, {what}, {} items: item {i} is {:?}, not {:?}", items.len(), found[i], expected[i]);
        }
    };
    // SAFETY: all live until `to_vec` has waited.
    unsafe {
        let mut out = device.alloc_uninit(items.len()).unwrap();
        scan_async::<R>(&stream, input.as_slice(), out.as_mut_slice()).unwrap();
        same("lifted", &out);
        let mut out = device.alloc_uninit(items.len()).unwrap();
        let merging = parallel_merging_async::<R>(&stream, input.as_slice(), out.as_mut_slice()).unwrap();
        same("parallel merging", &out);
        let mut out = device.alloc_uninit(items.len()).unwrap();
        let shifting = sequential_shifting_async::<R>(&stream, input.as_slice(), out.as_mut_slice()).unwrap();
        same("sequential shifting", &out);
        let mut out = device.alloc_uninit(items.len()).unwrap();
        let layouts = segmented_layouts_async::<R>(&stream, input.as_slice(), out.as_mut_slice()).unwrap();
        same("segmented layouts", &out);
        [merging, shifting, layouts]
    }
}

/// Returns canonical slots of a quotient filter with `n` items at this fill, sorted.
fn canonical(n: usize, fill: f64) -> Vec<u64> {
    let slots = (n as f64 / fill) as u64;
    let mut items: Vec<u64> = (0..n as u64).map(|i| mix(i, 5) % slots.max(1)).collect();
    items.sort_unstable();
    items
}

#[test]
fn slots_of_quotient_filters() {
    for n in [0, 1, 2, 31, 900] {
        for device in devices(n as u64) {
            for fill in [0.1, 0.8] {
                let items = canonical(n, fill);
                let narrow: Vec<u32> = items.iter().map(|&x| x as u32).collect();
                check::<NextSlot<u64>>(&device, &items, "u64 slots");
                check::<NextSlot<u32>>(&device, &narrow, "u32 slots");
            }
        }
    }
}

#[test]
fn items_in_no_order() {
    for device in devices(1) {
        let items: Vec<u32> = (0..3000).map(|i| mix(i, 2) as u32 % 4000).collect();
        check::<NextSlot<u32>>(&device, &items, "random slots");
        let sums: Vec<i64> = (0..5000).map(|i| (mix(i, 3) % 2001) as i64 - 1000).collect();
        check::<SaturatingSum>(&device, &sums, "balanced sums");
        let sums: Vec<i64> = (0..5000).map(|i| (mix(i, 3) % 2001) as i64 - 1300).collect();
        check::<SaturatingSum>(&device, &sums, "sums that fall");
        let queue: Vec<[u32; 2]> = (0..5000).map(|i| [mix(i, 4) as u32 % 100, mix(i, 5) as u32 % 120]).collect();
        check::<Lindley>(&device, &queue, "a queue");
    }
}

#[test]
fn chains_that_always_or_never_break() {
    for device in devices(2) {
        let n = 700;
        let [merging, ..] = check::<NextSlot<u64>>(&device, &vec![3; n], "one run");
        assert_eq!(merging, 0);
        // Every item is a head, and each is pushed by all earlier ones.
        let crowded: Vec<u64> = (0..n as u64).map(|i| i / 2 * 2 + i % 2).collect();
        check::<NextSlot<u64>>(&device, &crowded, "no pushes");
        let mut dominoes: Vec<u64> = (0..n as u64).collect();
        dominoes[0] = 1;
        let [merging, shifting, layouts] = check::<NextSlot<u64>>(&device, &dominoes, "dominoes");
        assert_eq!(merging, 10);
        assert!(shifting > 1 && layouts > n / 10, "{shifting}, {layouts}");
        let alone: Vec<u64> = (0..n as u64).map(|i| 10 * i).collect();
        let [_, shifting, layouts] = check::<NextSlot<u64>>(&device, &alone, "all alone");
        assert_eq!((shifting, layouts), (1, 2));
        check::<SaturatingSum>(&device, &vec![1 << 40; n], "only growth");
        check::<SaturatingSum>(&device, &vec![-1; n], "only loss");
        let mut fall = vec![-1i64; n];
        fall[0] = n as i64 / 2;
        check::<SaturatingSum>(&device, &fall, "one gain, slow loss");
        let saw: Vec<i64> = (0..n as i64).map(|i| if i % 2 == 0 { 100 } else { -100 + i % 3 - 1 }).collect();
        check::<SaturatingSum>(&device, &saw, "on the edge");
        check::<Lindley>(&device, &vec![[u32::MAX, 0]; n], "a queue that only grows");
        check::<Lindley>(&device, &vec![[5, 5]; n], "a queue in balance");
    }
}

#[test]
fn long_inputs_cross_tiles() {
    for device in devices(3) {
        let n = 2 * NextSlot::<u32>::SCAN.tile + 77;
        let items: Vec<u32> = canonical(n, 0.8).iter().map(|&x| x as u32).collect();
        check::<NextSlot<u32>>(&device, &items, "two tiles and more");
        let sums: Vec<i64> =
            (0..2 * SaturatingSum::SCAN.tile as u64 + 5).map(|i| (mix(i, 3) % 21) as i64 - 11).collect();
        check::<SaturatingSum>(&device, &sums, "two tiles and more");
    }
}

#[test]
fn wrong_lengths_are_errors() {
    for device in devices(4) {
        let stream = device.new_stream().unwrap();
        let items = device.from_slice(&[1u32; 10]).unwrap();
        let mut out = device.alloc_uninit::<u32>(9).unwrap();
        // SAFETY: nothing gets queued.
        let error = unsafe { scan_async::<NextSlot<u32>>(&stream, items.as_slice(), out.as_mut_slice()) }.unwrap_err();
        assert!(matches!(error, Error::LengthMismatch(LengthMismatch { needed: 10, found: 9, .. })), "{error}");
        // SAFETY: as above.
        let error = unsafe { parallel_merging_async::<NextSlot<u32>>(&stream, items.as_slice(), out.as_mut_slice()) }
            .unwrap_err();
        assert!(matches!(error, Error::LengthMismatch(LengthMismatch { needed: 10, found: 9, .. })), "{error}");
    }
}

//! Filters on a device against the same filters on the host: equal bytes, equal answers.
//!
//! Runs on the emulator, and with the feature `cuda` also on a CUDA device if one is present; `WARPSET_REQUIRE_CUDA=1`
//! requires one.

#![cfg(feature = "gpu")]

use warpset_base::testing::keys;
use warpset_bloom::Filter;
use warpset_bloom::gpu::DeviceFilter;
use warpset_bloom::gpu::{self, DeviceOneBlock, Grouping, StringVec};
use warpset_bloom::{
    BlockShape, BlockedLayout, Builder, Bytes, Error, FirstLevel, Hashed, Insert, Layout, SplitBlockLayout, StringHash,
    TestAndInsert, cpu,
};
use warpset_gpu::testing::devices;
use warpset_gpu::{Device, DeviceVec, EmulatorOptions, GpuError};

fn shape(block_bits: u32, word_bits: u32, hashes: u32) -> BlockShape {
    BlockShape::new(block_bits, word_bits, hashes).unwrap()
}

/// Compares keys of all types, and intersections, with the host's filter; `warpset-tests` has all other operations.
fn agrees_with_the_host<L: DeviceOneBlock>(device: &Device, layout: L)
where
    cpu::Bloom<L>: Insert<Error = Error>,
{
    let mut on_host = Builder::with_layout(layout).build().unwrap();
    let mut on_device = Builder::with_layout(layout).on(device).build().unwrap();
    let (present, narrow) = (keys(777, 1), (0..301).collect::<Vec<u32>>());
    let text: Vec<String> = (0..99).map(|i| format!("key {i}")).collect();
    let hashes: Vec<Hashed> = keys(65, 9).into_iter().map(Hashed).collect();
    on_host.insert_bulk(&present).unwrap();
    on_device.insert_bulk(&present).unwrap();
    on_host.insert_bulk(&narrow).unwrap();
    on_device.insert_bulk(&narrow).unwrap();
    on_host.insert_bulk(&text).unwrap();
    on_device.insert_bulk(&text).unwrap();
    on_host.insert_bulk(&hashes).unwrap();
    on_device.insert_bulk(&hashes).unwrap();
    assert!(on_device.to_host().unwrap() == on_host, "{layout:?}: inserted");
    assert!(on_device.contains_bulk(&narrow).unwrap().into_iter().all(|yes| yes));
    assert!(on_device.contains_bulk(&text).unwrap().into_iter().all(|yes| yes));
    let mut other = Builder::with_layout(layout).build().unwrap();
    other.insert_bulk(&keys(300, 5)).unwrap();
    on_host.intersect(&other).unwrap();
    on_device.intersect(&gpu::Bloom::from_host(device, &other).unwrap()).unwrap();
    assert!(on_device.to_host().unwrap() == on_host, "{layout:?}: intersection");
}

#[test]
fn split_block_filters_agree() {
    for device in devices(1) {
        agrees_with_the_host(&device, SplitBlockLayout::new(33).unwrap());
    }
}

#[test]
fn blocked_filters_of_all_shapes_agree() {
    for device in devices(2) {
        for block_bits in [64, 128, 256, 512, 1024] {
            for word_bits in [32, 64] {
                for hashes in [1, 4, 6, 8, 16, 21, 32] {
                    let layout = BlockedLayout::new(24, shape(block_bits, word_bits, hashes), 5).unwrap();
                    agrees_on_bytes_and_answers(&device, layout);
                }
            }
        }
        for &(block_bits, word_bits, hashes) in &gpu::SPECIALISED_SHAPES[..2] {
            agrees_with_the_host(&device, BlockedLayout::new(30, shape(block_bits, word_bits, hashes), 6).unwrap());
        }
        agrees_with_the_host(&device, BlockedLayout::new(30, shape(1024, 32, 11), 7).unwrap());
    }
}

fn agrees_on_bytes_and_answers(device: &Device, layout: BlockedLayout) {
    let present = keys(150, 1);
    let asked = keys(200, 2);
    let mut on_host = Builder::with_layout(layout).build().unwrap();
    on_host.insert_bulk(&present).unwrap();
    let mut on_device = Builder::with_layout(layout).on(device).build().unwrap();
    on_device.insert_bulk(&present).unwrap();
    assert!(on_device.to_host().unwrap() == on_host, "{layout:?}");
    assert_eq!(on_device.contains_bulk(&asked).unwrap(), on_host.contains_bulk(&asked).unwrap(), "{layout:?}");
    assert!(on_device.contains_bulk(&present).unwrap().into_iter().all(|yes| yes), "{layout:?}");
}

#[test]
fn chunks_and_lanes_do_not_show() {
    for device in devices(3) {
        let layout = SplitBlockLayout::new(64).unwrap();
        let (present, asked) = (keys(1000, 1), keys(1000, 2));
        let mut on_host = Builder::with_layout(layout).build().unwrap();
        on_host.insert_bulk(&present).unwrap();
        let mut on_device = Builder::with_layout(layout).on(&device).build().unwrap();
        on_device.set_chunk_keys(100);
        on_device.insert_bulk(&present).unwrap();
        assert!(on_device.to_host().unwrap() == on_host);
        assert_eq!(on_device.contains_bulk(&asked).unwrap(), on_host.contains_bulk(&asked).unwrap());
        let narrow: Vec<u32> = (0..777).collect();
        assert_eq!(on_device.test_and_insert_bulk(&narrow).unwrap(), on_host.test_and_insert_bulk(&narrow).unwrap());
        let mut kept = asked.clone();
        on_device.retain_contained_bulk(&mut kept).unwrap();
        let mut expected = asked;
        on_host.retain_contained_bulk(&mut expected).unwrap();
        assert_eq!(kept, expected);
    }
}

#[test]
fn grouped_insertion_sets_the_same_bits() {
    for device in devices(4) {
        let present = keys(9000, 1);
        let narrow: Vec<u32> = (0..5000).collect();
        let stream = device.new_stream().unwrap();
        let (wide_keys, narrow_keys) = (device.from_slice(&present).unwrap(), device.from_slice(&narrow).unwrap());
        for bits in [1, 5, 8, 11] {
            let layout = SplitBlockLayout::new(1000).unwrap();
            let mut on_host = Builder::with_layout(layout).build().unwrap();
            on_host.insert_bulk(&present).unwrap();
            on_host.insert_bulk(&narrow).unwrap();
            let mut on_device = Builder::with_layout(layout).on(&device).build().unwrap();
            on_device.set_grouping(Grouping::Bits(bits));
            // SAFETY: keys and filter are allocated until the stream has been waited for.
            unsafe {
                on_device.insert_async(&stream, wide_keys.as_slice()).unwrap();
                on_device.insert_async(&stream, narrow_keys.as_slice()).unwrap();
            }
            stream.synchronize().unwrap();
            assert!(on_device.to_host().unwrap() == on_host, "{bits} bits");
        }
        let layout = BlockedLayout::new(777, shape(512, 64, 8), 3).unwrap();
        let mut on_host = Builder::with_layout(layout).build().unwrap();
        on_host.insert_bulk(&present).unwrap();
        let mut on_device = Builder::with_layout(layout).on(&device).build().unwrap();
        on_device.set_grouping(Grouping::Bits(4));
        // SAFETY: keys and filter are allocated until the stream has been waited for.
        unsafe { on_device.insert_async(&stream, wide_keys.as_slice()) }.unwrap();
        stream.synchronize().unwrap();
        assert!(on_device.to_host().unwrap() == on_host);
        on_device.set_grouping(Grouping::Bits(25));
        // SAFETY: nothing gets queued.
        let refused = unsafe { on_device.insert_async(&stream, wide_keys.as_slice()) };
        assert!(matches!(refused, Err(Error::InvalidGrouping { bits: 25 })));
    }
}

#[test]
fn device_slices_give_bytes_bits_counts_and_selections() {
    for device in devices(5) {
        let layout = SplitBlockLayout::new(100).unwrap();
        let present = keys(1000, 1);
        let asked: Vec<u64> = keys(130, 2).into_iter().chain(present[..71].iter().copied()).collect();
        let mut on_host = Builder::with_layout(layout).build().unwrap();
        on_host.insert_bulk(&present).unwrap();
        let filter = gpu::SplitBlockBloom::from_host(&device, &on_host).unwrap();
        let expected = on_host.contains_bulk(&asked).unwrap();
        let stream = device.new_stream().unwrap();
        let on_device = device.from_slice(&asked).unwrap();
        let mut bytes = device.alloc_uninit::<u8>(asked.len()).unwrap();
        let mut bits = device.alloc_uninit::<u64>(asked.len().div_ceil(64)).unwrap();
        let mut counts = device.alloc_zeroed::<u64>(3).unwrap();
        let mut kept = device.alloc_uninit::<u64>(asked.len()).unwrap();
        let mut places = device.alloc_uninit::<u64>(asked.len()).unwrap();
        // SAFETY: everything is allocated until the stream has been waited for.
        unsafe {
            filter.contains_async(&stream, on_device.as_slice(), bytes.as_mut_slice()).unwrap();
            filter.contains_bitmap_async(&stream, on_device.as_slice(), bits.as_mut_slice()).unwrap();
            filter.count_contained_async(&stream, on_device.as_slice(), counts.slice_mut(..1)).unwrap();
            let (kept, count) = (kept.as_mut_slice(), counts.slice_mut(1..2));
            filter.retain_contained_async(&stream, on_device.as_slice(), kept, count).unwrap();
            let (places, count) = (places.as_mut_slice(), counts.slice_mut(2..));
            filter.retain_contained_indices_async(&stream, on_device.as_slice(), places, count).unwrap();
        }
        stream.synchronize().unwrap();
        assert!(bytes.to_vec().unwrap().iter().map(|&b| b == 1).eq(expected.iter().copied()));
        assert_eq!(bits.to_vec().unwrap(), on_host.contains_bitmap_bulk(&asked).unwrap().as_words());
        let selected: Vec<u64> = asked.iter().zip(&expected).filter(|(_, yes)| **yes).map(|(key, _)| *key).collect();
        assert_eq!(counts.to_vec().unwrap(), [selected.len() as u64; 3]);
        assert_eq!(kept.slice(..selected.len()).to_vec().unwrap(), selected);
        let places = places.slice(..selected.len()).to_vec().unwrap();
        assert!(places.iter().map(|&i| asked[i as usize]).eq(selected) && places.is_sorted_by(|a, b| a < b));
        // SAFETY: nothing gets queued.
        let short = unsafe { filter.contains_async(&stream, on_device.as_slice(), bytes.slice_mut(..3)) };
        assert!(matches!(short, Err(Error::LengthMismatch(_))));
    }
}

#[test]
fn test_and_insert_on_device_slices_finds_the_first_of_equal_keys() {
    for device in devices(6) {
        let layout = BlockedLayout::new(500, shape(256, 32, 8), 1).unwrap();
        let stream_keys: Vec<u32> = keys(2000, 7).into_iter().map(|k| (k % 600) as u32).collect();
        let mut on_host = Builder::with_layout(layout).build().unwrap();
        let expected = on_host.test_and_insert_bulk(&stream_keys).unwrap();
        let stream = device.new_stream().unwrap();
        let on_device = device.from_slice(&stream_keys).unwrap();
        let mut bytes = device.alloc_uninit::<u8>(stream_keys.len()).unwrap();
        let mut bits = device.alloc_uninit::<u64>(stream_keys.len().div_ceil(64)).unwrap();
        let mut by_bytes = Builder::with_layout(layout).on(&device).build().unwrap();
        let mut by_bits = Builder::with_layout(layout).on(&device).build().unwrap();
        // SAFETY: everything is allocated until the stream has been waited for.
        unsafe {
            by_bytes.test_and_insert_async(&stream, on_device.as_slice(), bytes.as_mut_slice()).unwrap();
            by_bits.test_and_insert_bitmap_async(&stream, on_device.as_slice(), bits.as_mut_slice()).unwrap();
        }
        stream.synchronize().unwrap();
        assert!(bytes.to_vec().unwrap().iter().map(|&b| b == 1).eq(expected.iter().copied()));
        let bits = bits.to_vec().unwrap();
        assert!(expected.iter().enumerate().all(|(i, &new)| (bits[i / 64] >> (i % 64) & 1 == 1) == new));
        assert!(by_bytes.to_host().unwrap() == on_host && by_bits.to_host().unwrap() == on_host);
    }
}

/// Claims keep the low 39 bits of a hash.
#[test]
fn hashes_of_equal_claims_stay_apart() {
    let hashes: Vec<Hashed> = keys(200, 8).into_iter().map(|key| Hashed(key << 39 | 5)).collect();
    for device in devices(8) {
        let builder = Builder::with_layout(SplitBlockLayout::new(50_000).unwrap());
        let expected = builder.clone().build().unwrap().test_and_insert_bulk(&hashes).unwrap();
        assert!(expected.iter().filter(|&&new| new).count() > 190);
        assert_eq!(builder.on(&device).build().unwrap().test_and_insert_bulk(&hashes).unwrap(), expected);
    }
}

/// Compares theory and samples of a filter on the device and on the host.
fn tells_the_same_rates<L: gpu::DeviceLayout>(device: &Device, on_host: &cpu::Bloom<L>) {
    let mut on_device = on_host.to_device(device).unwrap();
    let (there, here) = (on_device.fpr().unwrap(), on_host.fpr());
    assert!((there - here).abs() <= 1e-12 * here, "{on_host:?}: {there}, {here}");
    assert_eq!(on_device.measured_fpr(3000, 5).unwrap(), on_host.measured_fpr(3000, 5));
    assert_eq!(on_device.estimated_len().unwrap(), on_host.estimated_len());
    let mut smaller = on_host.clone();
    let halvings = smaller.shrink_to_fpr(4.0 * here).unwrap();
    assert_eq!(on_device.shrink_to_fpr(4.0 * here).unwrap(), halvings);
    assert!(on_device.to_host().unwrap() == smaller, "{on_host:?}");
    assert!(matches!(on_device.shrink_to_fpr(1.0), Err(Error::InvalidFpr { .. })));
}

#[test]
fn rates_are_those_of_the_host() {
    for device in devices(11) {
        let mut split = Builder::with_layout(SplitBlockLayout::new(2048).unwrap()).build().unwrap();
        split.insert_bulk(&keys(20_000, 1)).unwrap();
        tells_the_same_rates(&device, &split);
        for (block_bits, word_bits, hashes) in [(64, 32, 3), (512, 64, 5), (1024, 32, 19)] {
            let layout = BlockedLayout::new(48, shape(block_bits, word_bits, hashes), 5).unwrap();
            let mut blocked = Builder::with_layout(layout).build().unwrap();
            blocked.insert_bulk(&keys(u64::from(block_bits) * 3, 1)).unwrap();
            tells_the_same_rates(&device, &blocked);
        }
        for first_level in [FirstLevel::Mixed, FirstLevel::String(StringHash::Bkdr)] {
            let builder = cpu::RaoBloom::builder(3000).choices(2).bucket_words(64).load_factor(0.6);
            let mut filter = builder.first_level(first_level).build().unwrap();
            filter.insert_bulk(&keys(900, 1)).unwrap();
            tells_the_same_rates(&device, &filter);
        }
    }
}

#[test]
fn merging_and_folding_on_a_stream_wait_for_nothing_in_between() {
    for device in devices(12) {
        let layout = SplitBlockLayout::new(96).unwrap();
        let [mut a, mut b] = [1, 2].map(|seed| {
            let mut filter = Builder::with_layout(layout).build().unwrap();
            filter.insert_bulk(&keys(900, seed)).unwrap();
            filter
        });
        let [mut there, other] = [&a, &b].map(|filter| filter.to_device(&device).unwrap());
        let mut counts = device.alloc_zeroed::<u64>(3).unwrap();
        let stream = device.new_stream().unwrap();
        // SAFETY: everything is allocated until the stream has been waited for, and used by it alone.
        let folded = unsafe {
            there.intersect_async(&stream, &other).unwrap();
            there.count_ones_async(&stream, counts.slice_mut(..1)).unwrap();
            there.merge_async(&stream, &other).unwrap();
            let folded = there.folded_async(&stream, 3).unwrap();
            folded.count_ones_async(&stream, counts.slice_mut(1..2)).unwrap();
            there.clear_async(&stream).unwrap();
            there.count_ones_async(&stream, counts.slice_mut(2..)).unwrap();
            assert!(there.count_ones_async(&stream, counts.slice_mut(3..)).is_err());
            folded
        };
        stream.synchronize().unwrap();
        a.intersect(&b).unwrap();
        let common = a.count_ones();
        b.fold(3).unwrap();
        assert!(folded.to_host().unwrap() == b);
        assert_eq!(counts.to_vec().unwrap(), [common, b.count_ones(), 0]);
    }
}

#[test]
fn other_streams_may_use_a_folded_filter() {
    for device in devices(14) {
        let mut filter = Builder::with_layout(SplitBlockLayout::new(96).unwrap()).on(&device).build().unwrap();
        filter.insert_bulk(&keys(300, 1)).unwrap();
        let (stream, mut ones) = (device.new_stream().unwrap(), device.alloc_zeroed::<u64>(1).unwrap());
        filter.fold(3).unwrap();
        // SAFETY: everything is allocated until the stream has been waited for, and used by it alone.
        unsafe { filter.count_ones_async(&stream, ones.as_mut_slice()).unwrap() };
        assert_eq!(stream.download_first(&ones).unwrap(), filter.to_host().unwrap().count_ones());
    }
}

#[test]
fn builders_build_on_devices_and_iterators_fill_them() {
    for device in devices(13) {
        let mut split = cpu::SplitBlockBloom::builder(500).fpr(0.01).on(&device).build().unwrap();
        let blocked = cpu::BlockedBloom::builder(500).block_bits(512).on(&device).build().unwrap();
        let mut rao = cpu::RaoBloom::builder(500).on(&device).build().unwrap();
        assert!(blocked.bits_per_key(500) > 8.0 && blocked.layout().settable_bits() > 4000);
        split.insert_iter(0..500u64).unwrap();
        rao.insert_iter(0..500u64).unwrap();
        assert_eq!(rao.count_contained_bulk(&[1u64, 499]).unwrap(), 2);
        assert!(split.any_contained_bulk(&[7u64]).unwrap() && !blocked.any_contained_bulk(&[7u64]).unwrap());
        let mut bytes = [7; 3];
        split.contains_bytes_bulk_into(&[1u64, 2, u64::MAX], &mut bytes).unwrap();
        assert_eq!(bytes[..2], [1, 1]);
        assert!(matches!(split.contains_bytes_bulk_into(&[1u64], &mut bytes), Err(Error::LengthMismatch(_))));
    }
}

#[test]
fn running_out_of_device_memory_changes_nothing() {
    let memory = |bytes| Device::emulator_with(EmulatorOptions::default().memory_bytes(bytes));
    let layout = SplitBlockLayout::new(1000).unwrap(); // 32,000 bytes
    let none = Builder::with_layout(layout).on(&memory(10_000)).build();
    assert!(matches!(none, Err(Error::Gpu(error)) if error.is_out_of_memory()));

    let device = memory(60_000);
    let mut filter = Builder::with_layout(layout).on(&device).build().unwrap();
    filter.set_chunk_keys(64);
    filter.insert_bulk(&keys(10_000, 1)).unwrap(); // small chunks need little
    let before = filter.to_host().unwrap();
    let many = keys(10_000, 2);
    let result = filter.test_and_insert_bulk(&many);
    assert!(matches!(result, Err(Error::Gpu(error)) if error.is_out_of_memory()));
    filter.set_chunk_keys(1 << 20);
    assert!(matches!(filter.insert_bulk(&many), Err(Error::Gpu(error)) if error.is_out_of_memory()));
    assert!(matches!(filter.contains_bulk(&many), Err(Error::Gpu(error)) if error.is_out_of_memory()));
    assert!(matches!(filter.fold(1), Err(Error::Gpu(error)) if error.is_out_of_memory()));
    assert!(filter.to_host().unwrap() == before);
    filter.set_chunk_keys(64);
    filter.insert_bulk(&many).unwrap();
    assert!(filter.to_host().unwrap().contains_bulk(&many).unwrap().into_iter().all(|yes| yes));
}

/// Bytes that panic when read.
struct Trap(Option<u64>);

impl AsRef<[u8]> for Trap {
    fn as_ref(&self) -> &[u8] {
        bytemuck::bytes_of(self.0.as_ref().expect("a key without bytes"))
    }
}

#[test]
fn a_key_that_panics_leaves_no_answers_behind() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    for device in devices(12) {
        let mut filter = Builder::with_layout(SplitBlockLayout::new(100).unwrap()).on(&device).build().unwrap();
        filter.set_chunk_keys(64);
        let present = keys(500, 1);
        let bytes = |bad: usize| -> Vec<Bytes<Trap>> {
            present.iter().enumerate().map(|(i, &key)| Bytes(Trap((i != bad).then_some(key)))).collect()
        };
        // In the first chunk, in the second lane's first, and with the answers of both lanes under way.
        for bad in [3, 100, 450] {
            let keys = bytes(bad);
            assert!(catch_unwind(AssertUnwindSafe(|| filter.contains_bulk(&keys).unwrap())).is_err(), "{bad}");
            assert_eq!(filter.count_contained_bulk(&present[..70]).unwrap(), 0, "{bad}");
            assert!(catch_unwind(AssertUnwindSafe(|| filter.count_contained_bulk(&keys).unwrap())).is_err(), "{bad}");
            assert_eq!(filter.contains_bulk(&present[..7]).unwrap(), [false; 7], "{bad}");
        }
        let mut dropped = filter.try_clone().unwrap();
        dropped.set_chunk_keys(64);
        assert!(catch_unwind(AssertUnwindSafe(|| dropped.contains_bulk(&bytes(450)).unwrap())).is_err());
        drop(dropped);
        filter.insert_bulk(&bytes(present.len())).unwrap();
        assert_eq!(filter.count_contained_bulk(&bytes(present.len())).unwrap(), present.len());
        assert!(catch_unwind(AssertUnwindSafe(|| filter.insert_bulk(&bytes(450)).unwrap())).is_err());
        assert_eq!(filter.count_contained_bulk(&bytes(present.len())).unwrap(), present.len());
    }
}

/// Checks that every operation refuses memory and streams of another device before it queues anything.
fn refuses_other_devices<L: DeviceOneBlock>(layout: L) {
    let (here, elsewhere) = (Device::emulator(Default::default()), Device::emulator(Default::default()));
    let refused = |result: Result<(), Error>| match result {
        Err(Error::Gpu(GpuError::OtherDevice { .. })) => {}
        other => panic!("{other:?}"),
    };
    let mut filter = Builder::with_layout(layout).on(&here).build_from_device(keys_on(&here).as_slice()).unwrap();
    let before = filter.to_host().unwrap();
    let mut other = Builder::with_layout(layout).on(&elsewhere).build().unwrap();
    refused(filter.merge(&other));
    refused(filter.intersect(&other));
    refused(other.insert_device(keys_on(&here).as_slice()));
    refused(Builder::with_layout(layout).on(&elsewhere).build_from_device(keys_on(&here).as_slice()).map(|_| ()));
    // Keys, answers, count, and stream: each of the four in turn is of the other device.
    for wrong in 0..4 {
        let at = |i: usize| if i == wrong { &elsewhere } else { &here };
        let keys = keys_on(at(0));
        let strings = StringVec::from_slice(at(0), &["a", "b"]).unwrap();
        let (mut bytes, mut bits) = (at(1).alloc_uninit::<u8>(100).unwrap(), at(1).alloc_uninit::<u64>(100).unwrap());
        let mut kept = at(1).alloc_uninit::<u64>(100).unwrap();
        let mut count = at(2).alloc_zeroed::<u64>(1).unwrap();
        let stream = at(3).new_stream().unwrap();
        let (has_keys, has_answers, has_count, has_stream) = (wrong == 0, wrong == 1, wrong == 2, wrong == 3);
        // SAFETY: everything is allocated until the streams have been waited for; on the emulator calls wait.
        unsafe {
            if has_keys || has_answers {
                refused(filter.contains_device(keys.as_slice(), bytes.as_mut_slice()));
                refused(filter.contains_device(strings.as_strings(), bytes.as_mut_slice()));
                refused(filter.contains_bitmap_device(keys.as_slice(), bits.as_mut_slice()));
                refused(filter.retain_contained_device(keys.as_slice(), kept.as_mut_slice()).map(|_| ()));
                refused(filter.retain_contained_indices_device(keys.as_slice(), kept.as_mut_slice()).map(|_| ()));
                refused(filter.test_and_insert_device(keys.as_slice(), bytes.as_mut_slice()));
                refused(filter.test_and_insert_bitmap_device(keys.as_slice(), bits.as_mut_slice()));
            }
            if has_keys {
                refused(filter.insert_device(keys.as_slice()));
                refused(filter.count_contained_device(keys.as_slice()).map(|_| ()));
            }
            if has_keys || has_answers || has_stream {
                refused(filter.contains_async(&stream, keys.as_slice(), bytes.as_mut_slice()));
                refused(filter.contains_bitmap_async(&stream, keys.as_slice(), bits.as_mut_slice()));
                refused(filter.test_and_insert_async(&stream, keys.as_slice(), bytes.as_mut_slice()));
                refused(filter.test_and_insert_bitmap_async(&stream, keys.as_slice(), bits.as_mut_slice()));
            }
            if has_keys || has_stream {
                refused(filter.insert_async(&stream, keys.as_slice()));
            }
            if has_keys || has_count || has_stream {
                refused(filter.count_contained_async(&stream, keys.as_slice(), count.as_mut_slice()));
            }
            refused(filter.retain_contained_async(&stream, keys.as_slice(), kept.as_mut_slice(), count.as_mut_slice()));
            refused(filter.retain_contained_indices_async(
                &stream,
                keys.as_slice(),
                kept.as_mut_slice(),
                count.as_mut_slice(),
            ));
            if has_stream {
                refused(filter.clear_async(&stream));
                refused(filter.folded_async(&stream, 1).map(|_| ()));
            }
            if has_count || has_stream {
                refused(filter.count_ones_async(&stream, count.as_mut_slice()));
            }
        }
        // Empty input does nothing on any device.
        let none = at(0).from_slice::<u64>(&[]).unwrap();
        filter.insert_device(none.as_slice()).unwrap();
        filter.contains_device(none.as_slice(), bytes.as_mut_slice()).unwrap();
        filter.test_and_insert_device(none.as_slice(), bytes.as_mut_slice()).unwrap();
    }
    assert!(filter.to_host().unwrap() == before);
    other.merge(&Builder::with_layout(layout).on(&elsewhere).build().unwrap()).unwrap();
}

fn keys_on(device: &Device) -> DeviceVec<u64> {
    device.from_slice(&keys(50, 3)).unwrap()
}

#[test]
fn memory_of_another_device_is_refused() {
    refuses_other_devices(SplitBlockLayout::new(10).unwrap());
    refuses_other_devices(BlockedLayout::new(10, shape(256, 32, 7), 1).unwrap());
}

#[test]
fn waiting_operations_on_the_device_agree_with_those_on_the_host() {
    for device in devices(9) {
        let layout = BlockedLayout::new(60, shape(512, 64, 8), 3).unwrap();
        let (present, asked) = (keys(300, 1), [keys(100, 1), keys(500, 2)].concat());
        let there = device.from_slice(&present).unwrap();
        let asked_there = device.from_slice(&asked).unwrap();
        let mut on_host = Builder::with_layout(layout).build_from(&present).unwrap();
        let mut filter = Builder::with_layout(layout).on(&device).build_from_device(there.as_slice()).unwrap();
        assert!(filter.to_host().unwrap() == on_host);
        let right = on_host.contains_bulk(&asked).unwrap();
        let yes = right.iter().filter(|yes| **yes).count();
        let mut bytes = device.alloc_uninit::<u8>(asked.len()).unwrap();
        filter.contains_device(asked_there.as_slice(), bytes.as_mut_slice()).unwrap();
        assert!(bytes.to_vec().unwrap().iter().map(|byte| *byte == 1).eq(right.iter().copied()));
        let mut bits = device.alloc_uninit::<u64>(asked.len().div_ceil(64)).unwrap();
        filter.contains_bitmap_device(asked_there.as_slice(), bits.as_mut_slice()).unwrap();
        assert_eq!(bits.to_vec().unwrap(), on_host.contains_bitmap_bulk(&asked).unwrap().as_words());
        assert_eq!(filter.count_contained_device(asked_there.as_slice()).unwrap(), yes);
        let mut kept = device.alloc_uninit::<u64>(asked.len()).unwrap();
        let number = filter.retain_contained_device(asked_there.as_slice(), kept.as_mut_slice()).unwrap();
        let mut expected = asked.clone();
        on_host.retain_contained_bulk(&mut expected).unwrap();
        assert_eq!(kept.slice(..number).to_vec().unwrap(), expected);
        let number = filter.retain_contained_indices_device(asked_there.as_slice(), kept.as_mut_slice()).unwrap();
        let places = kept.slice(..number).to_vec().unwrap();
        assert!(places.iter().map(|&i| asked[i as usize]).eq(expected));
        filter.test_and_insert_device(asked_there.as_slice(), bytes.as_mut_slice()).unwrap();
        let new = on_host.test_and_insert_bulk(&asked).unwrap();
        assert!(bytes.to_vec().unwrap().iter().map(|byte| *byte == 1).eq(new));
        assert!(filter.to_host().unwrap() == on_host);
        filter.test_and_insert_bitmap_device(asked_there.as_slice(), bits.as_mut_slice()).unwrap();
        assert!(bits.to_vec().unwrap().iter().all(|word| *word == 0));
    }
}

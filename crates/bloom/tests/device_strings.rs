//! Byte strings in device memory: hashed there, with the bits and answers that the same strings have on the host.
//!
//! Runs on the emulator, and with the feature `cuda` also on a CUDA device if one is present.

#![cfg(feature = "gpu")]

use warpset_bloom::gpu::DeviceFilter;
use warpset_bloom::gpu::{DeviceOneBlock, DeviceStrings, Grouping, Offset, StringVec};
use warpset_bloom::{
    BlockShape, BlockedLayout, BucketShape, Builder, Error, FirstLevel, Insert, RaoLayout, SplitBlockLayout,
    StringHash, TestAndInsert, cpu,
};
use warpset_core::hash::mix;
use warpset_gpu::emulator::Config;
use warpset_gpu::{Backend, Device, DeviceVec, GpuError};

fn devices(seed: u64) -> Vec<Device> {
    let mut devices = vec![warpset_gpu::testing::deferred(seed)];
    if let Backend::Cuda(device) = Backend::auto() {
        devices.push(device);
    }
    devices
}

/// Makes one string of each length below `lengths`, in a mixed order, so that they start at all alignments.
fn strings(lengths: u64, seed: u64) -> Vec<Vec<u8>> {
    let string = |i: u64| (0..i * 37 % lengths).map(|b| mix(i << 8 | b, seed) as u8).collect();
    (0..lengths).map(string).collect()
}

/// Strings on a device, after `before` bytes and before `after` bytes that belong to none.
struct Placed<O> {
    offsets: DeviceVec<O>,
    bytes: DeviceVec<u8>,
    before: usize,
}

fn placed<O: Offset + TryFrom<usize>>(
    device: &Device,
    strings: &[Vec<u8>],
    before: usize,
    inside: usize,
    after: usize,
) -> Placed<O> {
    let mut bytes = vec![0xee; before + inside];
    let offset = |bytes: &Vec<u8>| O::try_from(bytes.len() - before).ok().expect("small");
    let mut offsets = vec![offset(&bytes)];
    for string in strings {
        bytes.extend_from_slice(string);
        offsets.push(offset(&bytes));
    }
    bytes.extend(std::iter::repeat_n(0xdd, after));
    Placed { offsets: device.from_slice(&offsets).unwrap(), bytes: device.from_slice(&bytes).unwrap(), before }
}

impl<O: Offset> Placed<O> {
    fn strings(&self) -> DeviceStrings<'_> {
        DeviceStrings::new(self.offsets.as_slice(), self.bytes.slice(self.before..)).unwrap()
    }
}

/// Compares the three queries and the insertion of one filter with those of the host.
fn agrees<L: DeviceOneBlock>(device: &Device, layout: L, placed: DeviceStrings<'_>, present: &[Vec<u8>])
where
    cpu::Bloom<L>: TestAndInsert<Error = Error>,
{
    let n = present.len();
    let mut on_host = Builder::with_layout(layout).build().unwrap();
    Insert::insert_bulk(&mut on_host, present).unwrap();
    let stream = device.new_stream().unwrap();
    let mut on_device = Builder::with_layout(layout).on(device).build().unwrap();
    let mut bytes = device.alloc_uninit::<u8>(n).unwrap();
    let mut bits = device.alloc_uninit::<u64>(n.div_ceil(64)).unwrap();
    let mut count = device.alloc_zeroed::<u64>(1).unwrap();
    // SAFETY: everything is allocated until the stream has been waited for.
    unsafe {
        on_device.insert_async(&stream, placed).unwrap();
        on_device.contains_async(&stream, placed, bytes.as_mut_slice()).unwrap();
        on_device.contains_bitmap_async(&stream, placed, bits.as_mut_slice()).unwrap();
        on_device.count_contained_async(&stream, placed, count.as_mut_slice()).unwrap();
    }
    stream.synchronize().unwrap();
    assert!(on_device.to_host().unwrap() == on_host, "{layout:?}: inserted");
    assert!(bytes.to_vec().unwrap().iter().all(|&byte| byte == 1));
    assert_eq!(bits.to_vec().unwrap().iter().map(|word| word.count_ones() as usize).sum::<usize>(), n);
    assert_eq!(count.to_vec().unwrap(), [n as u64]);

    let mut fresh = Builder::with_layout(layout).on(device).build().unwrap();
    let expected =
        TestAndInsert::test_and_insert_bulk(&mut Builder::with_layout(layout).build().unwrap(), present).unwrap();
    let mut again = Builder::with_layout(layout).on(device).build().unwrap();
    // SAFETY: everything is allocated until the stream has been waited for.
    unsafe {
        fresh.test_and_insert_async(&stream, placed, bytes.as_mut_slice()).unwrap();
        again.test_and_insert_bitmap_async(&stream, placed, bits.as_mut_slice()).unwrap();
    }
    stream.synchronize().unwrap();
    assert!(fresh.to_host().unwrap() == on_host && again.to_host().unwrap() == on_host, "{layout:?}: test and insert");
    assert!(bytes.to_vec().unwrap().iter().map(|&byte| byte == 1).eq(expected.iter().copied()));
    let bits = bits.to_vec().unwrap();
    assert!((0..n).map(|i| bits[i / 64] >> (i % 64) & 1 == 1).eq(expected));
}

#[test]
fn strings_of_all_lengths_and_alignments_hash_as_on_the_host() {
    for device in devices(21) {
        let present = strings(101, 1);
        let blocked = BlockedLayout::new(40, BlockShape::new(512, 64, 7).unwrap(), 0x1234_5678_9abc_def0).unwrap();
        for before in 0..5 {
            let placed = placed::<u32>(&device, &present, before, before % 3, (before + 3) % 5);
            agrees(&device, SplitBlockLayout::new(60).unwrap(), placed.strings(), &present);
            agrees(&device, blocked, placed.strings(), &present);
        }
        let placed = placed::<i64>(&device, &present, 1, 2, 0);
        agrees(&device, blocked, placed.strings(), &present);
        let owned = StringVec::from_slice(&device, &present).unwrap();
        agrees(&device, blocked, owned.as_strings(), &present);
        agrees(&device, blocked, owned.as_strings().slice(17..50), &present[17..50]);
        agrees(&device, blocked, owned.as_strings().slice(5..5), &[]);
    }
}

#[test]
fn strings_are_grouped_as_other_keys() {
    for device in devices(22) {
        let present = strings(300, 2);
        let layout = SplitBlockLayout::new(500).unwrap();
        let mut on_host = Builder::with_layout(layout).build().unwrap();
        on_host.insert_bulk(&present).unwrap();
        let owned = StringVec::from_slice(&device, &present).unwrap();
        let stream = device.new_stream().unwrap();
        let mut on_device = Builder::with_layout(layout).on(&device).build().unwrap();
        on_device.set_grouping(Grouping::Bits(5));
        // SAFETY: strings and filter are allocated until the stream has been waited for.
        unsafe { on_device.insert_async(&stream, owned.as_strings()) }.unwrap();
        stream.synchronize().unwrap();
        assert!(on_device.to_host().unwrap() == on_host);
    }
}

#[test]
fn raos_filter_works_on_the_device_with_every_function_of_table_1() {
    for device in devices(23) {
        let present = strings(101, 3);
        let numbers: Vec<u64> = (0..90).map(|i| mix(i, 4)).collect();
        let narrow: Vec<i32> = (0..90).map(|i| i - 45).collect();
        let (wide_on_device, narrow_on_device) =
            (device.from_slice(&numbers).unwrap(), device.from_slice(&narrow).unwrap());
        let placed = placed::<u32>(&device, &present, 3, 0, 2);
        let first_levels = StringHash::ALL.into_iter().map(FirstLevel::String).chain([FirstLevel::Mixed]);
        for (i, first_level) in first_levels.enumerate() {
            // Later attempts mix the string hash.
            let choices = 1 + i as u32 % 2;
            let layout = RaoLayout::new(7, BucketShape::new(300, 7).unwrap(), choices, first_level, 99).unwrap();
            let layout = layout.at_attempt(i as u32 % 3);
            let mut on_host = Builder::with_layout(layout).build().unwrap();
            let mut on_device = Builder::with_layout(layout).on(&device).build().unwrap();
            on_host.insert_bulk(&present).unwrap();
            on_device.insert_device(placed.strings()).unwrap();
            assert!(on_device.to_host().unwrap() == on_host, "{first_level:?}: strings");
            on_host.insert_bulk(&numbers).unwrap();
            on_device.insert_device(wide_on_device.as_slice()).unwrap();
            assert!(on_device.to_host().unwrap() == on_host, "{first_level:?}: 64 bits");
            on_host.insert_bulk(&narrow).unwrap();
            on_device.insert_device(narrow_on_device.as_slice()).unwrap();
            assert!(on_device.to_host().unwrap() == on_host, "{first_level:?}: 32 bits");
            let stream = device.new_stream().unwrap();
            let mut counts = device.alloc_zeroed::<u64>(1).unwrap();
            // SAFETY: everything is allocated until the stream has been waited for.
            unsafe {
                on_device.count_contained_async(&stream, placed.strings(), counts.as_mut_slice()).unwrap();
                on_device.count_contained_async(&stream, wide_on_device.as_slice(), counts.as_mut_slice()).unwrap();
                on_device.count_contained_async(&stream, narrow_on_device.as_slice(), counts.as_mut_slice()).unwrap();
            }
            stream.synchronize().unwrap();
            assert_eq!(counts.to_vec().unwrap(), [101 + 90 + 90], "{first_level:?}");
            on_device.clear().unwrap();
            on_device.insert_device(placed.strings().slice(4..4)).unwrap();
            assert_eq!(on_device.count_ones().unwrap(), 0);
        }
    }
}

#[test]
fn wrong_offsets_are_named_and_read_nothing_outside() {
    for device in devices(24) {
        let bytes = device.from_slice(b"abcdefghijklmnopqrstuvwxyzabcdefghijklmnop").unwrap();
        let check = |offsets: &[u32]| {
            let offsets = device.from_slice(offsets).unwrap();
            DeviceStrings::new(offsets.as_slice(), bytes.as_slice()).map(|strings| strings.len())
        };
        assert_eq!(check(&[7]).unwrap(), 0);
        assert_eq!(check(&[0, 42, 42]).unwrap(), 2);
        assert!(matches!(check(&[]), Err(GpuError::MissingOffsets)));
        assert!(matches!(check(&[0, 5, 4, 3, 9]), Err(GpuError::InvalidOffsets { index: 1, bytes: 42 })));
        assert!(matches!(check(&[0, 5, 43]), Err(GpuError::InvalidOffsets { index: 1, bytes: 42 })));
        assert!(matches!(check(&[50, 60]), Err(GpuError::InvalidOffsets { index: 0, bytes: 42 })));

        let offsets = device.from_slice(&[3i64, 1, -1, 7, i64::MAX, 40, 42]).unwrap();
        let strings = DeviceStrings::unchecked(offsets.as_slice(), bytes.as_slice()).unwrap();
        assert!(matches!(strings.check(), Err(GpuError::InvalidOffsets { index: 0, .. })));
        let layout = SplitBlockLayout::new(10).unwrap();
        let mut filter = Builder::with_layout(layout).on(&device).build().unwrap();
        let stream = device.new_stream().unwrap();
        // SAFETY: strings and filter are allocated until the stream has been waited for.
        unsafe { filter.insert_async(&stream, strings) }.unwrap();
        stream.synchronize().unwrap();
        let all = b"abcdefghijklmnopqrstuvwxyzabcdefghijklmnop";
        let cut: [&[u8]; 4] = [b"", &all[1..], &all[7..], &all[40..]];
        let mut expected = Builder::with_layout(layout).build().unwrap();
        expected.insert_bulk(&cut).unwrap();
        assert!(filter.to_host().unwrap() == expected);

        let elsewhere = Device::emulator(Config::default());
        let offsets = elsewhere.from_slice(&[0u32]).unwrap();
        let refused = DeviceStrings::new(offsets.as_slice(), bytes.as_slice());
        assert!(matches!(refused, Err(GpuError::OtherDevice { .. })));
    }
}

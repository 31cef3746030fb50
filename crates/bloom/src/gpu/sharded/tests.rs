use std::collections::HashSet;

use warpset_core::hash::mix;
use warpset_gpu::batch::StringVec;
use warpset_gpu::testing::{fail_each, several_cuda};
use warpset_gpu::{Device, EmulatorOptions, GpuError};

use super::*;
use crate::gpu::{DeviceFilter, Grouping};
use crate::{Bitmap, Filter, PhysicalType};

fn emulators(count: usize) -> Devices {
    Devices::new((0..count as u64).map(warpset_gpu::testing::deferred)).unwrap()
}

/// Returns emulators with 64 MiB, 128 MiB and so on.
fn unequal(count: usize) -> Devices {
    let device = |i| {
        Device::emulator_with(EmulatorOptions::default().memory_bytes((i + 1) << 26).l2_bytes(1 << 9).deferred(true))
    };
    Devices::new((0..count).map(device)).unwrap()
}

/// Returns emulators, and every CUDA device of this machine.
fn several() -> Vec<Devices> {
    let mut several = vec![emulators(1), emulators(2), unequal(3), unequal(8)];
    several.extend(several_cuda());
    several
}

/// Compares bits and answers with those of the host's filter.
fn behaves_as_on_the_host<K: Key + Clone, L: DeviceOneBlock>(devices: &Devices, builder: &Builder<L>, keys: &[K]) {
    let (held, others) = keys.split_at(keys.len() / 2);
    let mut on_host = builder.build().unwrap();
    let mut filter = builder.sharded_on(devices).build().unwrap();
    for part in held.chunks(held.len().div_ceil(2).max(1)) {
        on_host.insert_bulk(part).unwrap();
        filter.insert_bulk(part).unwrap();
        assert!(filter.to_host().unwrap() == on_host);
    }
    let expected = on_host.contains_bulk(keys).unwrap();
    assert!(expected[..held.len()].iter().all(|&yes| yes));
    assert_eq!(filter.contains_bulk(keys).unwrap(), expected);
    assert_eq!(filter.contains_bitmap_bulk(keys).unwrap(), Bitmap::from_bools(&expected));
    let yes = expected.iter().filter(|&&yes| yes).count();
    assert_eq!(filter.count_contained_bulk(keys).unwrap(), yes);
    let mut left = keys.to_vec();
    filter.retain_contained_bulk(&mut left).unwrap();
    assert_eq!(left.len(), yes);
    assert_eq!(filter.count_ones().unwrap(), on_host.count_ones());
    assert!((filter.fpr().unwrap() - on_host.fpr()).abs() < 1e-12);
    assert_eq!(filter.memory_bytes(), on_host.memory_bytes());
    assert_eq!(filter.estimated_len().unwrap(), on_host.estimated_len());

    // Another number of devices has the same filter.
    let fewer = ShardedBloom::from_host(&devices.at_most(2), &on_host).unwrap();
    assert_eq!(fewer.contains_bulk(others).unwrap(), expected[held.len()..]);
    let mut other = builder.sharded_on(devices).build_from(others).unwrap();
    other.merge(&filter).unwrap();
    assert!(other.to_host().unwrap() == builder.build_from(keys).unwrap());
    filter.clear().unwrap();
    assert!(filter.to_host().unwrap() == builder.build().unwrap());
}

#[test]
fn the_filter_of_the_host_on_any_number_of_devices() {
    let words: Vec<u64> = (0..600).map(|i| mix(i, 5)).collect();
    let strings: Vec<String> = words[..300].iter().map(|word| format!("{word:x}")).collect();
    for devices in &several() {
        for blocks in [1, 3, 101] {
            let builder = Builder::with_layout(SplitBlockLayout::new(blocks).unwrap());
            behaves_as_on_the_host(devices, &builder, &words);
        }
        let builder = Builder::with_layout(SplitBlockLayout::new(100).unwrap());
        behaves_as_on_the_host(devices, &builder, &strings);
        behaves_as_on_the_host(devices, &builder, &words[..2]);
        behaves_as_on_the_host::<u64, _>(devices, &builder, &[]);
        let column = Builder::with_layout(SplitBlockLayout::new(333).unwrap().for_column(PhysicalType::Int32));
        behaves_as_on_the_host(devices, &column, &words[..300].iter().map(|&word| word as i16).collect::<Vec<_>>());
        for blocked in [BlockedBuilder::new(500), BlockedBuilder::new(500).block_bits(64).hashes(3).seed(7)] {
            behaves_as_on_the_host(devices, &Builder::with_layout(blocked.layout().unwrap()), &words);
        }
    }
}

#[test]
fn no_false_negatives_and_the_rate_of_one_filter() {
    let model: HashSet<u64> = (0..3_000).map(|i| mix(i, 1)).collect();
    let keys: Vec<u64> = model.iter().copied().collect();
    let asked: Vec<u64> = (0..6_000).map(|i| mix(i, 1)).collect();
    let builder = cpu::SplitBlockBloom::builder(keys.len() as u64).fpr(0.01);
    let mut filter = builder.sharded_on(&emulators(3)).build().unwrap();
    filter.set_chunk_keys(1 << 8);
    filter.insert_bulk(&keys).unwrap();
    let answers = filter.contains_bulk(&asked).unwrap();
    assert!(asked.iter().zip(&answers).all(|(key, &answer)| answer || !model.contains(key)));
    let wrong = asked.iter().zip(&answers).filter(|&(key, &answer)| answer && !model.contains(key)).count();
    assert!((10..60).contains(&wrong), "{wrong} of 3,000");
    assert!((filter.bits_per_key(keys.len() as u64) - 10.5).abs() < 0.3);
    // Under a stencil, by the traits.
    let every_other: Vec<bool> = (0..keys.len()).map(|i| i % 2 == 0).collect();
    filter.clear().unwrap();
    Insert::insert_if_bulk(&mut filter, &keys, &every_other).unwrap();
    let meant: Vec<u64> = keys.iter().copied().step_by(2).collect();
    assert!(filter.to_host().unwrap() == builder.build_from(&meant).unwrap());
    assert_eq!(Filter::contains_if_bulk(&filter, &keys, &every_other).unwrap(), every_other);
}

/// Checks insertions whose hashes come grouped by regions, most of which begin elsewhere than parts do.
#[test]
fn hashes_grouped_by_regions_are_inserted_into_their_parts() {
    let layout = SplitBlockLayout::new(90).unwrap();
    let builder = Builder::with_layout(layout);
    for devices in &several() {
        let all = devices.all();
        for (bits, chunk) in [(1, 1 << 20), (4, 128), (8, 64)] {
            let mut filter = builder.sharded_on(devices).build().unwrap();
            filter.set_chunk_keys(chunk);
            filter.shards.parts_mut().iter_mut().for_each(|part| part.set_grouping(Grouping::Bits(bits)));
            let first = |blocks: &Range<u64>| if blocks.start == 0 { 0 } else { first_hash(&layout, blocks.start) };
            let bounds: Vec<u64> = filter.blocks.iter().map(first).collect();
            let near = bounds.iter().flat_map(|&bound| [bound.wrapping_sub(1), bound, bound + 1]);
            let keys: Vec<Hashed> = (0..900).map(|i| mix(i, 4)).chain(near).map(Hashed).collect();
            let there: Vec<_> = all.iter().map(|device| device.from_slice(&keys).unwrap()).collect();
            filter.insert_each_device(&there.iter().map(|keys| keys.as_slice()).collect::<Vec<_>>()).unwrap();
            assert!(filter.to_host().unwrap() == builder.build_from(&keys).unwrap(), "{bits} bits");
            // One hash alone: all words are of one region.
            let mut filter = builder.sharded_on(devices).build().unwrap();
            filter.shards.parts_mut().iter_mut().for_each(|part| part.set_grouping(Grouping::Bits(bits)));
            let same = all[all.len() - 1].from_slice(&vec![Hashed(bounds[all.len() / 2]); 700]).unwrap();
            DeviceInsert::insert_device(&mut filter, same.as_slice()).unwrap();
            assert!(filter.to_host().unwrap() == builder.build_from(&[Hashed(bounds[all.len() / 2])]).unwrap());
        }
    }
}

/// Checks batches on any one device and on all devices, in one round and in several.
fn batches_on_devices_agree_with_the_host<L: DeviceOneBlock>(devices: &Devices, builder: &Builder<L>) {
    let keys: Vec<u64> = (0..1_000).map(|i| mix(i, 4)).collect();
    let (held, _) = keys.split_at(500);
    let on_host = builder.build_from(held).unwrap();
    let expected: Vec<u8> = on_host.contains_bulk(&keys).unwrap().into_iter().map(u8::from).collect();
    let all = devices.all();
    for (device, chunk) in all.iter().zip([1 << 20, 128, 192]) {
        let mut filter = builder.sharded_on(devices).build().unwrap();
        filter.set_chunk_keys(chunk);
        let there = device.from_slice(held).unwrap();
        DeviceInsert::insert_device(&mut filter, there.as_slice()).unwrap();
        assert!(filter.to_host().unwrap() == on_host);
        let asked = device.from_slice(&keys).unwrap();
        let mut answers = device.alloc_zeroed(keys.len()).unwrap();
        filter.contains_device(asked.as_slice(), answers.as_mut_slice()).unwrap();
        assert_eq!(answers.to_vec().unwrap(), expected);
        let mut bits = device.alloc_zeroed(keys.len().div_ceil(64)).unwrap();
        filter.contains_bitmap_device(asked.as_slice(), bits.as_mut_slice()).unwrap();
        let bits = Bitmap::from_words(bits.to_vec().unwrap(), keys.len());
        assert!(bits.iter().map(u8::from).eq(expected.iter().copied()));
        let yes = expected.iter().filter(|&&yes| yes == 1).count();
        assert_eq!(filter.count_contained_device(asked.as_slice()).unwrap(), yes);
    }

    let mut filter = builder.sharded_on(devices).build().unwrap();
    filter.set_chunk_keys(64);
    let share = |keys: &[u64], place: usize| keys.iter().copied().skip(place).step_by(all.len()).collect::<Vec<_>>();
    let place = |keys: &[u64]| {
        all.iter()
            .enumerate()
            .map(|(place, device)| device.from_slice(&share(keys, place)).unwrap())
            .collect::<Vec<_>>()
    };
    let there = place(held);
    filter.insert_each_device(&there.iter().map(|keys| keys.as_slice()).collect::<Vec<_>>()).unwrap();
    assert!(filter.to_host().unwrap() == on_host);
    let there = place(&keys);
    let there: Vec<_> = there.iter().map(|keys| keys.as_slice()).collect();
    let mut answers: Vec<_> = there.iter().map(|keys| keys.device().alloc_zeroed(keys.len()).unwrap()).collect();
    filter.contains_each_device(&there, answers.iter_mut().map(|answers| answers.as_mut_slice()).collect()).unwrap();
    for (place, answers) in answers.iter().enumerate() {
        let expected: Vec<u8> = expected.iter().copied().skip(place).step_by(all.len()).collect();
        assert_eq!(answers.to_vec().unwrap(), expected);
    }
    let short = filter.contains_each_device(&there[1..], Vec::new());
    assert!(matches!(short, Err(Error::LengthMismatch(_))), "{short:?}");
}

#[test]
fn batches_may_lie_on_any_device() {
    for devices in &several() {
        batches_on_devices_agree_with_the_host(devices, &Builder::with_layout(SplitBlockLayout::new(90).unwrap()));
        let blocked = BlockedBuilder::new(500).layout().unwrap();
        batches_on_devices_agree_with_the_host(devices, &Builder::with_layout(blocked));
    }
}

#[test]
fn other_keys_in_device_memory() {
    let devices = emulators(3);
    let there = &devices.all()[1];
    let column = SplitBlockLayout::new(33).unwrap().for_column(PhysicalType::Int32);
    let numbers: Vec<i32> = (0..300).map(|i| mix(i, 6) as i32).collect();
    let on_device = there.from_slice(&numbers).unwrap();
    let filter = Builder::with_layout(column).sharded_on(&devices).build_from_device(on_device.as_slice()).unwrap();
    assert!(filter.to_host().unwrap() == Builder::with_layout(column).build_from(&numbers).unwrap());
    let strings: Vec<String> = numbers.iter().map(|number| format!("{number:x}")).collect();
    let on_device = StringVec::from_slice(there, &strings).unwrap();
    let builder = cpu::SplitBlockBloom::builder(300);
    let filter = builder.sharded_on(&devices).build_from_device(on_device.as_strings()).unwrap();
    assert!(filter.to_host().unwrap() == builder.build_from(&strings).unwrap());
    let mut answers = there.alloc_zeroed(300).unwrap();
    filter.contains_device(on_device.as_strings(), answers.as_mut_slice()).unwrap();
    assert_eq!(answers.to_vec().unwrap(), [1; 300]);
    let elsewhere = Device::emulator(Default::default());
    let keys = elsewhere.from_slice(&numbers).unwrap();
    let mut answers = elsewhere.alloc_zeroed(300).unwrap();
    let refused = filter.contains_device(keys.as_slice(), answers.as_mut_slice());
    assert!(matches!(refused, Err(Error::Gpu(GpuError::OtherDevice { .. }))), "{refused:?}");
}

fn begin_at_their_least_hash(layout: impl DeviceOneBlock) {
    let blocks = layout.blocks();
    for block in [1, blocks / 3, blocks - 1].into_iter().filter(|&block| block > 0) {
        let first = first_hash(&layout, block);
        let found = [first - 1, first].map(|hash| layout.block_of(&layout.probe(&Hashed(hash))));
        assert_eq!(found, [block - 1, block], "of {blocks}");
    }
}

#[test]
fn blocks_begin_at_their_least_hash() {
    for blocks in [2, 3, 1_000_003, (1 << 32) - 1, 1 << 32] {
        begin_at_their_least_hash(SplitBlockLayout::new(blocks).unwrap());
        begin_at_their_least_hash(BlockedBuilder::new(1).layout().unwrap().with_blocks(blocks).unwrap());
    }
}

#[test]
fn devices_with_little_memory_get_smaller_shares() {
    let small = Device::emulator_with(EmulatorOptions::default().memory_bytes(1 << 16));
    let devices = Devices::new([Device::emulator(Default::default()), small]).unwrap();
    let builder = Builder::with_layout(SplitBlockLayout::new(1 << 13).unwrap());
    let filter = builder.sharded_on(&devices).build().unwrap();
    let bytes: Vec<u64> = filter.shards.parts().iter().map(|part| part.memory_bytes()).collect();
    assert!(bytes[1] > 1 << 15 && bytes[1] < 1 << 16 && bytes[0] + bytes[1] == 1 << 18, "{bytes:?}");
    let none =
        Devices::new([1, 2].map(|_| Device::emulator_with(EmulatorOptions::default().memory_bytes(1 << 16)))).unwrap();
    let refused = builder.sharded_on(&none).build();
    assert!(matches!(refused, Err(Error::Gpu(GpuError::OutOfMemory { .. }))), "{refused:?}");
}

#[test]
fn what_does_not_fit_is_an_error() {
    let (devices, layout) = (emulators(2), SplitBlockLayout::new(50).unwrap());
    let build = |devices: &Devices, layout| Builder::with_layout(layout).sharded_on(devices).build().unwrap();
    let mut filter = build(&devices, layout);
    let other = build(&devices, SplitBlockLayout::new(51).unwrap());
    assert!(matches!(filter.merge(&other), Err(Error::Incompatible { field: "bytes", left: 1600, right: 1632 })));
    let other = build(&devices.at_most(1), layout);
    assert!(matches!(filter.merge(&other), Err(Error::Incompatible { field: "shards", left: 2, right: 1 })));
    let other = build(&emulators(2), layout);
    assert!(matches!(filter.merge(&other), Err(Error::Gpu(GpuError::OtherDevice { .. }))));
    assert!(matches!(filter.contains_bulk_into(&[1u64], &mut []), Err(Error::LengthMismatch(_))));
    assert_eq!(build(&emulators(3), SplitBlockLayout::new(2).unwrap()).devices().all().len(), 2);
}

/// Makes each allocation and launch fail in turn, on either device: the result is an error, never a wrong answer, and
/// the rest of the filter stays as it is.
#[test]
fn failures_are_errors() {
    let keys: Vec<u64> = (0..200).map(|i| mix(i, 9)).collect();
    let builder = cpu::SplitBlockBloom::builder(200);
    let expected = builder.build_from(&keys).unwrap();
    let devices = emulators(2);
    let mut built = None;
    let failed =
        fail_each(&mut built, |_| builder.sharded_on(&devices).build_from(&keys), |built, result| *built = result.ok());
    assert!(failed > 2);
    let mut built = built.unwrap();
    built.set_chunk_keys(64);
    assert!(built.to_host().unwrap() == expected);
    fail_each(
        &mut (),
        |()| built.contains_bulk(&keys),
        |(), result| assert!(result.is_err() || result.unwrap().iter().all(|&yes| yes)),
    );
    let there = devices.all()[1].from_slice(&keys).unwrap();
    let mut answers = devices.all()[1].alloc_zeroed(200).unwrap();
    let failed = fail_each(
        &mut answers,
        |answers| built.contains_device(there.as_slice(), answers.as_mut_slice()),
        |answers, result| assert!(result.is_err() || answers.to_vec().unwrap() == [1; 200]),
    );
    assert!(failed > 8);
    let failed = fail_each(
        &mut built,
        |built| DeviceInsert::insert_device(built, there.as_slice()),
        |built, _| assert!(built.to_host().unwrap() == expected, "keys that were there stay, and no others come"),
    );
    assert!(failed > 8);
}

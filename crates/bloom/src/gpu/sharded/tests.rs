use std::collections::HashSet;

use warpset_core::hash::mix;
use warpset_gpu::GpuError;
use warpset_gpu::testing::{cuda, fail_each};

use super::*;
use crate::{Filter, PhysicalType};

fn emulators(count: usize) -> Devices {
    Devices::new((0..count as u64).map(warpset_gpu::testing::deferred)).unwrap()
}

/// Returns emulators, and every CUDA device of this machine.
fn several() -> Vec<Devices> {
    let mut several: Vec<_> = [1, 2, 5].map(emulators).into();
    several.extend(cuda().map(|_| Devices::cuda_all().unwrap()));
    several
}

/// Compares bits and answers with those of the host's filter.
fn behaves_as_on_the_host<K: Key + Clone>(devices: &Devices, builder: &Builder<SplitBlockLayout>, keys: &[K]) {
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
    let words: Vec<u64> = (0..1_200).map(|i| mix(i, 5)).collect();
    let strings: Vec<String> = words[..300].iter().map(|word| format!("{word:x}")).collect();
    for devices in &several() {
        for blocks in [1, 3, 101] {
            let builder = Builder::with_layout(SplitBlockLayout::new(blocks).unwrap());
            behaves_as_on_the_host(devices, &builder, &words);
        }
        let builder = Builder::with_layout(SplitBlockLayout::new(100).unwrap());
        behaves_as_on_the_host(devices, &builder, &strings);
        behaves_as_on_the_host(devices, &builder, &words[..2]);
        behaves_as_on_the_host::<u64>(devices, &builder, &[]);
        let column = Builder::with_layout(SplitBlockLayout::new(333).unwrap().for_column(PhysicalType::Int32));
        behaves_as_on_the_host(devices, &column, &words[..300].iter().map(|&word| word as i16).collect::<Vec<_>>());
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

#[test]
fn hashes_keep_their_bits_and_get_their_block() {
    for blocks in [1, 2, 3, 1_000_003, (1 << 32) - 1, 1 << 32] {
        for i in 0..2_000 {
            let (hash, block) = (mix(i, 2), if i < 5 { i % blocks } else { mix(i, 3) % blocks });
            for block in [block, blocks - 1 - block] {
                let other = hash_in_block(hash, block, blocks);
                assert_eq!((block_of(other, blocks), other as u32), (block, hash as u32));
            }
        }
    }
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

/// Makes each allocation and launch fail in turn, on either device: the result is an error, never a wrong answer.
#[test]
fn failures_are_errors() {
    let keys: Vec<u64> = (0..200).map(|i| mix(i, 9)).collect();
    let expected = cpu::SplitBlockBloom::builder(200).build_from(&keys).unwrap();
    let devices = emulators(2);
    let mut built = None;
    let failed = fail_each(
        &mut built,
        |_| cpu::SplitBlockBloom::builder(200).sharded_on(&devices).build_from(&keys),
        |built, result| *built = result.ok(),
    );
    assert!(failed > 2);
    let built = built.unwrap();
    assert!(built.to_host().unwrap() == expected);
    fail_each(
        &mut (),
        |()| built.contains_bulk(&keys),
        |(), result| assert!(result.is_err() || result.unwrap().iter().all(|&yes| yes)),
    );
}

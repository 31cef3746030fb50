//! Values in rows: memory of callers, chunks of ranges, neighbours, and rows at odd addresses.

use warpset_core::hash::mix;
use warpset_gpu::testing;

use super::key;
use crate::gpu::{LookupMethod, NeighboursMut};
use crate::{CleanupPolicy, Lsm, SortedArray};

pub(super) type Row = [u8; 12];

pub(super) fn row(n: u64) -> Row {
    std::array::from_fn(|i| mix(n, i as u64) as u8)
}

#[test]
fn memory_of_the_caller() {
    for device in testing::devices(41) {
        let builder = Lsm::<u32, Row>::builder().batch_size(64).cleanup(CleanupPolicy::Manual);
        let (mut host, mut there) = (builder.build().unwrap(), builder.on(&device).build().unwrap());
        for batch in 0..7u64 {
            let keys: Vec<u32> = (0..75).map(|i| key::<u32>(i, batch) % 300).collect();
            let values: Vec<Row> = (0..75).map(|i| row(i + 100 * batch)).collect();
            let removed: Vec<u8> = (0..75).map(|i| u8::from(batch == 3 && i % 4 == 0)).collect();
            let (on_device, flags) = (device.from_slice(&keys).unwrap(), device.from_slice(&removed).unwrap());
            // Rows of 12 bytes that start within an allocation, followed by a row outside the slice.
            let rows = device.from_slice(&[&[row(9); 1], &values[..], &[row(8); 1]].concat()).unwrap();
            let rows = rows.slice(1..76);
            if batch == 3 {
                there.update_device(on_device.as_slice(), rows, flags.as_slice()).unwrap();
            } else {
                there.insert_device(on_device.as_slice(), rows).unwrap();
            }
            let removed: Vec<bool> = removed.iter().map(|&flag| flag != 0).collect();
            host.update_bulk(&keys, &values, &removed).unwrap();
            assert!(there.to_host().unwrap() == host, "batch {batch}");
        }
        let asked: Vec<u32> = (0..310).collect();
        let on_device = device.from_slice(&asked).unwrap();
        let expected = host.get_bulk(&asked);
        there.prepare().unwrap();
        for method in [LookupMethod::Auto, LookupMethod::Halving, LookupMethod::Sorted, LookupMethod::Flipped] {
            let mut values = device.from_slice(&[[7u8; 12]; 312]).unwrap();
            let mut found = device.alloc_zeroed::<u64>(5).unwrap();
            let (to, bits) = (values.slice_mut(1..311), found.as_mut_slice());
            there.get_device_with(on_device.as_slice(), to, bits, method).unwrap();
            let values = values.to_vec().unwrap();
            assert_eq!((values[0], values[311]), ([7; 12], [7; 12]));
            assert!(values[1..311].iter().eq(expected.iter().map(|value| value.as_ref().unwrap_or(&[0; 12]))));
        }
        let mut keys = device.alloc_zeroed::<u32>(310).unwrap();
        let mut values = device.alloc_zeroed::<Row>(310).unwrap();
        let mut found = device.alloc_zeroed::<u64>(5).unwrap();
        let (keys_out, values_out, found_out) = (keys.as_mut_slice(), values.as_mut_slice(), found.as_mut_slice());
        let out = NeighboursMut { keys: keys_out, values: values_out, found: found_out };
        there.successor_device(on_device.as_slice(), out).unwrap();
        let successors = host.successor_bulk(&asked).into_iter().map(|element| element.map_or([0; 12], |(_, row)| row));
        assert!(values.to_vec().unwrap().into_iter().eq(successors));
        let (lows, highs) = (device.from_slice(&[0, 50]).unwrap(), device.from_slice(&[u32::MAX, 60]).unwrap());
        for most in [7, 1000] {
            let mut found = Vec::new();
            for piece in there.range_chunks_device(lows.as_slice(), highs.as_slice(), most).unwrap() {
                let piece = piece.unwrap();
                let (keys, values) = (piece.elements.keys.to_vec().unwrap(), piece.elements.values.to_vec().unwrap());
                found.extend(keys.into_iter().zip(values));
            }
            assert!(found.into_iter().eq(host.iter().chain(host.range(50..=60))), "{most}");
        }
        let before = there.memory_bytes();
        let live: Vec<(u32, Row)> = there.iter().unwrap().map(Result::unwrap).collect();
        assert!(host.iter().eq(live.iter().copied()));
        host.cleanup().unwrap();
        there.cleanup().unwrap();
        assert!(there.memory_bytes() <= before && there.to_host().unwrap() == host);
    }
}

/// Tests lengths around those of tiles and blocks, from zero on.
#[test]
fn arrays_of_rows() {
    for device in testing::devices(42) {
        for len in [0u64, 1, 2, 31, 33, 255, 257, 1000, 2049] {
            let keys: Vec<u64> = (0..len).map(|i| mix(i, len) % (2 * len + 1)).collect();
            let values: Vec<u8> = (0..len).map(|i| mix(i, 1) as u8).collect();
            let builder = SortedArray::<u64, u8>::builder();
            let host = builder.build_from(&keys, &values).unwrap();
            let mut there = builder.on(&device).build_from(&keys, &values).unwrap();
            assert!(there.to_host().unwrap() == host, "{len}");
            assert!(host.to_device(&device).unwrap().to_host().unwrap() == host, "{len}");
            there.remove_bulk(&keys).unwrap();
            assert!(there.is_empty().unwrap());
        }
    }
}

//! Answers on devices: ranges in chunks, ranges that do not fit, and memory of the caller.

use warpset_base::filter::LengthMismatch;
use warpset_gpu::{Device, testing};
use warpset_lsm::{CleanupPolicy, Error, Lsm, SortedArray};

#[test]
fn ranges_come_in_pieces_of_any_size() {
    for device in testing::devices(31) {
        let mut host = Lsm::<u64, u32>::builder().batch_size(64).cleanup(CleanupPolicy::Manual).build().unwrap();
        // Some keys close together, some far apart, so that parts of equal width have different lengths.
        let keys: Vec<u64> = (0..240).map(|i| if i % 3 == 0 { i << 56 } else { 2 * i }).collect();
        host.insert_bulk(&keys, &keys.iter().map(|&key| (key >> 50 | key << 8) as u32).collect::<Vec<_>>()).unwrap();
        host.remove_bulk(&keys[100..120]).unwrap();
        let there = host.to_device(&device).unwrap();
        let ranges = [(0, u64::MAX), (100, 99), (7, 400), (5000, u64::MAX)];
        let lows = device.from_slice(&ranges.map(|range| range.0)).unwrap();
        let highs = device.from_slice(&ranges.map(|range| range.1)).unwrap();
        let expected: Vec<Vec<(u64, u32)>> = ranges
            .iter()
            .map(|&(low, high)| host.iter().filter(|&(key, _)| low <= key && key <= high).collect())
            .collect();
        for most in [0, 1, 7, 100, 100_000] {
            let pieces = there.range_chunks_device(lows.as_slice(), highs.as_slice(), most).unwrap();
            assert!(pieces.counts().iter().copied().eq(expected.iter().map(|all| all.len() as u64)));
            let mut found = vec![Vec::new(); ranges.len()];
            let mut before = 0..0;
            for piece in pieces {
                let piece = piece.unwrap();
                assert!(piece.ranges.start == before.end || (piece.ranges == before && before.len() == 1));
                before = piece.ranges.clone();
                let offsets = piece.elements.offsets.to_vec().unwrap();
                let (keys, values) = (piece.elements.keys.to_vec().unwrap(), piece.elements.values.to_vec().unwrap());
                assert!(keys.len() <= most.max(1) && offsets.len() == piece.ranges.len() + 1);
                for (range, places) in piece.ranges.zip(offsets.windows(2)) {
                    let places = places[0] as usize..places[1] as usize;
                    found[range].extend(keys[places.clone()].iter().copied().zip(values[places].iter().copied()));
                }
            }
            assert_eq!((found, before.end), (expected.clone(), ranges.len()), "{most}");
            for (&(low, high), expected) in ranges.iter().zip(&expected) {
                let mut cursor = there.range_cursor(low..=high, most).unwrap();
                let mut found = Vec::new();
                while let Some(piece) = cursor.next() {
                    let piece = piece.unwrap();
                    let (keys, values) = (piece.keys.to_vec().unwrap(), piece.values.to_vec().unwrap());
                    assert!((1..=most.max(1)).contains(&keys.len()));
                    assert_eq!(piece.offsets.to_vec().unwrap(), [0, keys.len() as u64]);
                    found.extend(keys.into_iter().zip(values));
                    assert_eq!(cursor.remaining(), (expected.len() - found.len()) as u64);
                }
                assert_eq!(&found, expected, "{low}..={high}, {most}");
            }
        }
    }
}

/// Tests more elements than the device has memory for: host slices get all of them; callers with device memory get an
/// error with advice.
#[test]
fn ranges_larger_than_device_memory() {
    // Other tests share the CUDA device, so its memory is not limited here.
    for device in testing::devices(32).into_iter().filter(Device::is_emulator) {
        let keys: Vec<u64> = (0..20_000).map(|i| 5 * i).collect();
        let host = SortedArray::<u64, u32>::builder().build_from(&keys, &[7; 20_000]).unwrap();
        let there = host.to_device(&device).unwrap();
        let ranges: Vec<_> = (0..30u64).map(|i| i..=u64::MAX - i).collect();
        let (lows, highs): (Vec<u64>, Vec<u64>) = ranges.iter().map(|range| (*range.start(), *range.end())).unzip();
        let (lows, highs) = (device.from_slice(&lows).unwrap(), device.from_slice(&highs).unwrap());
        device.set_memory_limit(900_000);
        let expected = host.range_bulk(&ranges).unwrap();
        let told = there.range_device(lows.as_slice(), highs.as_slice()).map(|_| ()).unwrap_err();
        assert!(
            matches!(told, Error::RangesTooLarge { elements, bytes, free } if bytes == 12 * elements && free < bytes)
        );
        assert!(told.to_string().contains("range_chunks_device"), "{told}");
        assert!(there.range_bulk(&ranges).unwrap() == expected);
        device.set_memory_limit(usize::MAX);
        assert!(there.range_bulk(&ranges).unwrap() == expected);
    }
}

#[test]
fn answers_in_memory_of_the_caller() {
    for device in testing::devices(33) {
        let mut host = Lsm::<u64, u32>::builder().batch_size(64).cleanup(CleanupPolicy::Manual).build().unwrap();
        for batch in 0..5u64 {
            let keys: Vec<u64> = (0..60).map(|i| i * 7 % 100 + batch).collect();
            host.insert_bulk(&keys, &[batch as u32; 60]).unwrap();
            host.remove_bulk(&keys[..10]).unwrap();
        }
        let there = host.to_device(&device).unwrap();
        let asked: Vec<u64> = (0..130).collect();
        let on_device = device.from_slice(&asked).unwrap();
        let mut keys = device.alloc_zeroed::<u64>(130).unwrap();
        let mut values = device.alloc_zeroed::<u32>(130).unwrap();
        let mut found = device.from_slice(&[u64::MAX; 3]).unwrap();
        for upwards in [true, false] {
            let out = warpset_lsm::gpu::NeighboursMut {
                keys: keys.as_mut_slice(),
                values: values.as_mut_slice(),
                found: found.as_mut_slice(),
            };
            let expected = if upwards {
                there.successor_device(on_device.as_slice(), out).unwrap();
                host.successor_bulk(&asked)
            } else {
                there.predecessor_device(on_device.as_slice(), out).unwrap();
                host.predecessor_bulk(&asked)
            };
            let (keys, values) = (keys.to_vec().unwrap(), values.to_vec().unwrap());
            let found = found.to_vec().unwrap();
            for (i, expected) in expected.into_iter().enumerate() {
                let is_found = found[i / 64] >> (i % 64) & 1 == 1;
                assert_eq!(
                    (is_found, keys[i], values[i]),
                    (expected.is_some(), expected.unwrap_or((0, 0)).0, expected.unwrap_or((0, 0)).1)
                );
            }
            assert_eq!(found[2] >> 2, 0, "bits past the last key");
        }
        there.contains_bitmap_device(on_device.as_slice(), found.as_mut_slice()).unwrap();
        let bits = found.to_vec().unwrap();
        let mut bytes = device.from_slice(&[9u8; 140]).unwrap(); // more room than keys
        there.contains_device(on_device.as_slice(), bytes.as_mut_slice()).unwrap();
        let bytes = bytes.to_vec().unwrap();
        assert_eq!(bytes[130..], [9; 10]);
        let mut answers = vec![false; asked.len()];
        there.contains_bulk_into(&asked, &mut answers).unwrap();
        assert_eq!(answers, host.contains_bulk(&asked));
        assert!((0..130).all(|i| (bits[i / 64] >> (i % 64) & 1 == 1) == answers[i]));
        assert!((0..130).all(|i| bytes[i] == u8::from(answers[i])));
        let too_short = there.contains_device(on_device.as_slice(), device.alloc_zeroed(129).unwrap().as_mut_slice());
        assert!(matches!(too_short, Err(Error::LengthMismatch(LengthMismatch { needed: 130, found: 129, .. }))));
        let short = warpset_lsm::gpu::NeighboursMut {
            keys: keys.slice_mut(1..),
            values: values.as_mut_slice(),
            found: found.as_mut_slice(),
        };
        let told = there.successor_device(on_device.as_slice(), short);
        assert!(matches!(told, Err(Error::LengthMismatch(LengthMismatch { needed: 130, found: 129, .. }))));
        assert!(matches!(there.contains_bulk_into(&asked, &mut [true]), Err(Error::LengthMismatch(_))));
    }
}

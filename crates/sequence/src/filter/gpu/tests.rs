//! Filters on devices compared with those on the host: equal bytes, equal answers.

use warpset_gpu::testing::{devices, fail_each, is_sanitized};
use warpset_gpu::{Device, GpuError};
use warpset_kernels::sequence::tile::OWN_WORDS;

use crate::filter::tests::{SHAPES, reads};
use crate::filter::view::random_letters;
use crate::{Bitmap, Error, Layout, PackedSequences, SequenceFilter, Threshold, gpu};

/// Positions per thread block, and per warp.
const TILE: usize = 32 * OWN_WORDS;
const WARP: usize = TILE / 8;

/// Joins sequences, each followed by a line end.
fn joined(sequences: &[Vec<u8>]) -> Vec<u8> {
    sequences.iter().flat_map(|sequence| sequence.iter().copied().chain([b'\n'])).collect()
}

fn is_as_on_the_host(device: &Device, layout: Layout, stored: &[Vec<u8>], asked: &[Vec<u8>]) {
    let mut host = SequenceFilter::with_layout(layout).unwrap();
    host.insert_bulk(stored).unwrap();
    let empty = || gpu::SequenceFilter::with_layout(device, layout).unwrap();
    let mut filter = empty();
    filter.insert_bulk(stored).unwrap();
    assert!(filter.to_host().unwrap() == host, "{layout:?}");

    let (letters, mut packed) = (joined(stored), PackedSequences::new());
    stored.iter().for_each(|read| packed.push(read));
    let (mut from_letters, mut from_packed) = (empty(), empty());
    from_letters.insert_device(device.from_slice(&letters).unwrap().as_slice()).unwrap();
    assert!(from_letters.to_host().unwrap() == host, "{layout:?}");
    let (bases, breaks) = (device.from_slice(packed.bases()).unwrap(), device.from_slice(packed.breaks()).unwrap());
    from_packed.insert_packed_device(bases.as_slice(), breaks.as_slice()).unwrap();
    assert!(from_packed.to_host().unwrap() == host, "{layout:?}");

    for reads in [stored, asked] {
        assert_eq!(
            filter.contains_windows_bulk(reads).unwrap(),
            host.contains_windows_bulk(reads).unwrap(),
            "{layout:?}"
        );
        assert_eq!(filter.count_bulk(reads).unwrap(), host.count_bulk(reads).unwrap(), "{layout:?}");
        let threshold = Threshold::at_least(2).and_fraction(0.5).unwrap();
        assert_eq!(filter.matches_bulk(reads, threshold).unwrap(), host.matches_bulk(reads, threshold).unwrap());
        // All letters in one allocation, at any alignment.
        let letters = joined(reads);
        for skip in [0, 5] {
            let letters = &letters[skip.min(letters.len())..];
            let wanted = host.contains_windows(letters);
            let padded: Vec<u8> = [vec![b'A'; skip], letters.to_vec()].concat();
            let on_device = device.from_slice(&padded).unwrap();
            let mut found = device.from_slice(&vec![!0u32; letters.len().div_ceil(32) + 1]).unwrap();
            filter.contains_windows_device(on_device.slice(skip..), found.as_mut_slice()).unwrap();
            let found = found.to_vec().unwrap();
            let bit = |i: usize| found[i / 32] >> (i % 32) & 1 == 1;
            assert!((0..letters.len()).all(|i| bit(i) == (i < wanted.len() && wanted.get(i))), "{layout:?} {skip}");
            assert!((letters.len()..letters.len().next_multiple_of(32)).all(|i| !bit(i)));
            assert_eq!(found.last(), Some(&!0), "nothing is written past the answers");
        }
    }
}

#[test]
fn devices_have_the_bytes_and_answers_of_the_host() {
    for device in devices(1) {
        for (i, (k, s, m)) in SHAPES.into_iter().enumerate() {
            if is_sanitized() && i % 3 != 1 {
                continue;
            }
            let layout = Layout::new(k, s, m, [1, 300, 20][i % 3]).unwrap();
            is_as_on_the_host(&device, layout, &reads(12, 300, i as u64), &reads(6, 200, !(i as u64)));
        }
    }
}

/// Checks sequences that end before and after the borders of warps and tiles.
#[test]
fn borders_of_warps_and_tiles() {
    for device in devices(2) {
        for (k, s, m) in [(31, 26, 16), (32, 20, 20), (9, 9, 4), (63, 32, 16)] {
            let layout = Layout::new(k, s, m, 2000).unwrap();
            let around = |border: usize| [border - 1, border, border + 1, border + k as usize];
            let mut lengths: Vec<usize> = [32, WARP, TILE].into_iter().flat_map(around).collect();
            if device.is_emulator() || is_sanitized() {
                lengths = vec![WARP + 1, TILE + k as usize];
            } else {
                lengths.extend(around(1 << 20)); // the pieces of the host
            }
            for len in lengths {
                let mut sequence = random_letters(len as u64, len as u64);
                sequence[len - len / 3] = b'N';
                is_as_on_the_host(&device, layout, &[sequence], &[random_letters(100, 1), vec![b'A'; 50]]);
            }
        }
    }
}

/// Checks several chunks of host sequences at sizes that a device takes at once.
#[test]
fn larger_filters() {
    for device in devices(3) {
        if device.is_emulator() || is_sanitized() {
            continue;
        }
        // More than 2^32 bits.
        let layout = SequenceFilter::builder(300_000_000).layout().unwrap();
        let mut sequences = vec![random_letters(90_000_000, 7)];
        sequences.extend(reads(200_000, 300, 5));
        let mut host = SequenceFilter::with_layout(layout).unwrap();
        host.insert_bulk(&sequences).unwrap();
        let mut filter = gpu::SequenceFilter::with_layout(&device, layout).unwrap();
        filter.insert_bulk(&sequences).unwrap();
        assert!(filter.to_host().unwrap() == host);
        let counts = filter.count_bulk(&sequences).unwrap();
        assert!(counts == host.count_bulk(&sequences).unwrap() && counts.iter().all(|hits| hits.found == hits.kmers));
    }
}

#[test]
fn unions_and_copies() {
    for device in devices(4) {
        let builder = SequenceFilter::builder(2000).on(&device);
        let (left, right) = (reads(10, 200, 1), reads(10, 200, 2));
        let (mut filter, other) = (builder.build_from(&left).unwrap(), builder.build_from(&right).unwrap());
        filter.merge(&other).unwrap();
        let wanted = SequenceFilter::builder(2000).build_from(&[left, right].concat()).unwrap();
        assert!(filter.to_host().unwrap() == wanted && filter.try_clone().unwrap().to_host().unwrap() == wanted);
        assert!(wanted.to_device(&device).unwrap().to_host().unwrap() == wanted);
        let foreign = SequenceFilter::builder(2000).k(30).on(&device).build().unwrap();
        assert!(matches!(filter.merge(&foreign), Err(Error::Incompatible { field: "bases per k-mer", .. })));
        assert!(filter.to_host().unwrap() == wanted);
        filter.clear().unwrap();
        assert_eq!(filter.to_host().unwrap().count_ones(), 0);
        assert_eq!((filter.memory_bytes(), filter.expected_fpr(9)), (wanted.memory_bytes(), wanted.expected_fpr(9)));
    }
}

#[test]
fn nothing_and_what_does_not_fit() {
    for device in devices(5) {
        let mut filter = SequenceFilter::builder(100).k(9).on(&device).build().unwrap();
        let before = filter.to_host().unwrap();
        filter.insert_bulk::<[Vec<u8>]>(&[]).unwrap();
        filter.insert(b"GATTACA").unwrap(); // shorter than a k-mer
        filter.insert_device(device.from_slice::<u8>(&[]).unwrap().as_slice()).unwrap();
        assert!(filter.to_host().unwrap() == before);
        assert_eq!(filter.contains_windows(b"GATTACA").unwrap(), Bitmap::default());
        assert_eq!(filter.count_bulk::<[Vec<u8>]>(&[]).unwrap(), []);
        let (bases, breaks) = (device.alloc_zeroed::<u64>(3).unwrap(), device.alloc_zeroed::<u32>(2).unwrap());
        let mut found = device.alloc_zeroed::<u32>(2).unwrap();
        let refused = filter.insert_packed_device(bases.as_slice(), breaks.as_slice());
        assert!(matches!(refused, Err(Error::LengthMismatch(_))));
        let refused = filter.contains_windows_packed_device(bases.as_slice(), breaks.as_slice(), found.as_mut_slice());
        assert!(matches!(refused, Err(Error::LengthMismatch(_))));
        let letters = device.from_slice(&[b'A'; 65]).unwrap();
        let refused = filter.contains_windows_device(letters.as_slice(), found.as_mut_slice());
        assert!(matches!(refused, Err(Error::LengthMismatch(_))));
        let elsewhere = Device::emulator(Default::default());
        let letters = elsewhere.from_slice(b"GATTACACC").unwrap();
        let refused = filter.insert_device(letters.as_slice());
        assert!(matches!(refused, Err(Error::Gpu(GpuError::OtherDevice { .. }))));
        assert!(filter.to_host().unwrap() == before);
    }
}

/// Fails each allocation and launch once: a filter keeps its k-mers, and a second attempt succeeds.
#[test]
fn failures_leave_filters_usable() {
    let device = warpset_gpu::testing::deferred(0);
    let sequences = reads(10, 200, 1);
    let mut filter = SequenceFilter::builder(2000).on(&device).build_from(&reads(5, 200, 2)).unwrap();
    let (before, mut wanted) = (filter.to_host().unwrap(), filter.to_host().unwrap());
    wanted.insert_bulk(&sequences).unwrap();
    let operations = fail_each(
        &mut filter,
        |filter| filter.insert_bulk(&sequences),
        |filter, result| {
            let now = filter.to_host().unwrap();
            assert!(now == if result.is_ok() { wanted.clone() } else { before.clone() });
        },
    );
    assert!(operations > 2);
    let hits = wanted.count_bulk(&sequences).unwrap();
    fail_each(
        &mut filter,
        |filter| filter.count_bulk(&sequences),
        |filter, result| {
            assert!(result.is_err() || result.unwrap() == hits);
            assert!(filter.to_host().unwrap() == wanted);
        },
    );
    let windows = wanted.contains_windows_bulk(&sequences).unwrap();
    fail_each(
        &mut filter,
        |filter| filter.contains_windows_bulk(&sequences),
        |_, result| {
            assert!(result.is_err() || result.unwrap() == windows);
        },
    );
}

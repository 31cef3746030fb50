//! Functions and static filters asked on the emulator, with schedules drawn too, and on the CUDA device where one
//! answers: what the host says, for every kind of function and of key.

use warpset_base::file::FileError;
use warpset_base::filter::Filter;
use warpset_base::key::{Hash128, Hashed, Key};
use warpset_base::testing::tier;
use warpset_core::recsplit::Remix;
use warpset_gpu::{Device, testing};
use warpset_primitives::DeviceFilter;

use super::test_kinds::TestKind;
use super::{DeviceHashKind, StringVec};
use crate::kind_tests::for_each_kind;
use crate::{Error, PerfectHash, RecSplit};

for_each_kind! {
    functions_of_every_shape
    functions_of_many_keys
    keys_of_every_kind
    filters_of_every_width
    to_devices_and_back
    damaged_words_give_numbers_below_the_values
    wrong_arguments_are_refused
}

fn keys(n: u64) -> Vec<u64> {
    (0..n).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234).collect()
}

/// Compares `get_bulk_into` in both types, and all `_device` methods, with the host.
fn agrees<M: DeviceHashKind>(function: &PerfectHash<M>, device: &Device, asked: &[u64]) {
    let mut there = function.to_device(device).unwrap();
    there.set_chunk_keys(1 << 10);
    assert_eq!((there.len(), there.values()), (function.len(), function.values()));
    assert_eq!((there.space(), there.seed()), (function.space(), function.seed()));
    assert_eq!((there.memory_bytes(), there.bits_per_key()), (function.memory_bytes(), function.bits_per_key()));

    let expected = function.get_bulk(asked);
    assert!(there.get_bulk(asked).unwrap() == expected, "{function:?}");
    let narrow: Vec<u32> = expected.iter().map(|&number| number as u32).collect();
    let mut numbers = vec![7u32; asked.len()];
    there.get_bulk_into(asked, &mut numbers).unwrap();
    assert!(numbers == narrow);

    let on_device = device.from_slice(asked).unwrap();
    let mut wide = device.alloc_uninit::<u64>(asked.len()).unwrap();
    there.get_device(on_device.as_slice(), wide.as_mut_slice()).unwrap();
    assert!(wide.to_vec().unwrap() == expected);
    let mut half = device.alloc_uninit::<u32>(asked.len() + 3).unwrap();
    there.get_device(on_device.as_slice(), half.as_mut_slice()).unwrap();
    assert!(half.slice(..asked.len()).to_vec().unwrap() == narrow);

    let table: Vec<u64> = (0..function.values().max(1)).map(|i| i * i + 1).collect();
    let small: Vec<f32> = table.iter().map(|&value| value as f32).collect();
    let (of_words, of_floats) = (device.from_slice(&table).unwrap(), device.from_slice(&small).unwrap());
    there.gather_device(on_device.as_slice(), of_words.as_slice(), wide.as_mut_slice()).unwrap();
    assert!(wide.to_vec().unwrap().iter().zip(&expected).all(|(&value, &number)| value == table[number as usize]));
    let mut floats = device.alloc_uninit::<f32>(asked.len()).unwrap();
    there.gather_device(on_device.as_slice(), of_floats.as_slice(), floats.as_mut_slice()).unwrap();
    assert!(floats.to_vec().unwrap().iter().zip(&expected).all(|(&value, &number)| value == small[number as usize]));
}

fn functions_of_every_shape<M: TestKind>() {
    for device in testing::devices(3) {
        for (builder, share) in M::shapes() {
            for n in [0, 1, 2, 3, 77, (3_000.0 * share) as u64] {
                let keys = keys(n);
                agrees(&builder.build_from(&keys).unwrap(), &device, &[&keys[..], &[1, 2, 3]].concat());
            }
        }
    }
}

#[test]
fn large_leaves() {
    for device in testing::devices(3) {
        for (leaf, bucket) in [(8, 2000), (12, 9), (14, 50), (16, 2000), (18, 700), (24, 24)] {
            for remix in [Remix::Bits32, Remix::Bits64] {
                let builder = RecSplit::builder().leaf_size(leaf).bucket_size(bucket).remix(remix);
                let keys = keys(if leaf > 16 && remix == Remix::Bits64 { 77 } else { 3_000 });
                let function = builder.build_from(&keys).unwrap();
                assert_eq!(function.to_device(&device).unwrap().shape(), function.shape());
                agrees(&function, &device, &[&keys[..], &[1, 2, 3]].concat());
            }
        }
    }
}

fn functions_of_many_keys<M: TestKind>() {
    for device in testing::devices(4) {
        let keys = keys(if device.is_emulator() { tier(7_000, 20_000) } else { 1_000_000 });
        for bucket_size in [5, 100, 2400, 20_000] {
            agrees(&M::small(bucket_size).build_from(&keys).unwrap(), &device, &keys);
        }
    }
}

/// Compares all ways to look up keys of one type.
fn same_numbers<M: TestKind, K: Key>(device: &Device, keys: &[K]) {
    let function = M::small(100).seed(9).build_from(keys).unwrap();
    let mut there = function.to_device(device).unwrap();
    there.set_chunk_keys(64);
    assert!(there.get_bulk(keys).unwrap() == function.get_bulk(keys));
    let filter = M::small_filter(500).width(12).seed(9).build_from(keys).unwrap();
    let there = filter.to_device(device).unwrap();
    assert_eq!(there.count_contained_bulk(keys).unwrap(), keys.len());
}

fn keys_of_every_kind<M: TestKind>() {
    for device in testing::devices(6) {
        let words = keys(700);
        let strings: Vec<String> = words.iter().map(|word| format!("{word:x}").repeat((word % 40) as usize)).collect();
        let strings: Vec<String> = strings.iter().zip(0..).map(|(string, i)| format!("{i}{string}")).collect();
        let pairs: Vec<Hash128> = words.iter().map(|&low| Hash128 { high: low.rotate_left(9), low }).collect();
        same_numbers::<M, _>(&device, &words);
        same_numbers::<M, _>(&device, &words.iter().map(|&word| word as i64).collect::<Vec<_>>());
        same_numbers::<M, _>(&device, &(0..700).map(|i| i * 77_777 - 20_000_000).collect::<Vec<i32>>());
        same_numbers::<M, _>(&device, &(0..700).map(|i| i * 93).collect::<Vec<u16>>());
        same_numbers::<M, _>(&device, &words.iter().map(|&word| u128::from(word) << 50).collect::<Vec<_>>());
        same_numbers::<M, _>(&device, &words.iter().map(|&word| Hashed(word)).collect::<Vec<_>>());
        same_numbers::<M, _>(&device, &pairs);
        same_numbers::<M, _>(&device, &strings);

        // Strings and ready-made hashes on the device.
        let function = M::small(300).seed(9).build_from(&strings).unwrap();
        let on_device = StringVec::from_slice(&device, &strings).unwrap();
        let mut numbers = device.alloc_uninit::<u32>(strings.len()).unwrap();
        let there = function.to_device(&device).unwrap();
        there.get_device(on_device.as_strings(), numbers.as_mut_slice()).unwrap();
        let expected: Vec<u32> = function.get_bulk(&strings).into_iter().map(|number| number as u32).collect();
        assert!(numbers.to_vec().unwrap() == expected);

        for seed in [0, 9] {
            let function = M::small(300).seed(seed).build_from(&pairs).unwrap();
            let there = function.to_device(&device).unwrap();
            let halves: Vec<[u64; 2]> = pairs.iter().map(|hash| [hash.high, hash.low]).collect();
            let halves = device.from_slice(&halves).unwrap();
            let mut numbers = device.alloc_uninit::<u64>(pairs.len()).unwrap();
            there.get_device(halves.as_slice(), numbers.as_mut_slice()).unwrap();
            assert!(numbers.to_vec().unwrap() == function.get_bulk(&pairs));
        }
    }
}

fn filters_of_every_width<M: TestKind>() {
    for device in testing::devices(7) {
        let members = keys(500);
        let asked: Vec<u64> = members.iter().copied().chain(1..=300).collect();
        let on_device = device.from_slice(&asked).unwrap();
        for width in (1..=32).step_by(tier(3, 1)) {
            let filter = M::small_filter(30).width(width).build_from(&members).unwrap();
            let mut there = filter.to_device(&device).unwrap();
            there.set_chunk_keys(64);
            assert_eq!((there.len(), there.width(), there.fpr()), (filter.len(), width, filter.fpr()));
            assert!(there.to_host().unwrap() == filter);
            let expected = filter.contains_bulk(&asked).unwrap();
            assert!(there.contains_bulk(&asked).unwrap() == expected, "{width}");

            let mut bytes = device.alloc_uninit::<u8>(asked.len()).unwrap();
            there.contains_device(on_device.as_slice(), bytes.as_mut_slice()).unwrap();
            assert!(bytes.to_vec().unwrap().iter().zip(&expected).all(|(&byte, &answer)| byte == u8::from(answer)));
            let mut bits = device.alloc_uninit::<u64>(asked.len().div_ceil(64)).unwrap();
            there.contains_bitmap_device(on_device.as_slice(), bits.as_mut_slice()).unwrap();
            let words = bits.to_vec().unwrap();
            assert!(expected.iter().enumerate().all(|(i, &answer)| answer == (words[i / 64] >> (i % 64) & 1 == 1)));
            let count = expected.iter().filter(|&&answer| answer).count();
            assert_eq!(there.count_contained_device(on_device.as_slice()).unwrap(), count);

            let numbers: Vec<Option<u64>> = asked.iter().map(|&key| filter.get(key)).collect();
            assert!(there.get_bulk(&asked).unwrap() == numbers);
            let plain: Vec<u32> = numbers.iter().map(|number| number.unwrap_or(0) as u32).collect();
            let mut narrow = vec![9u32; asked.len()];
            let found = there.get_bulk_into(&asked, &mut narrow).unwrap();
            assert!(narrow == plain && found.iter().eq(expected.iter().copied()));
            let mut narrow = device.alloc_uninit::<u32>(asked.len()).unwrap();
            there.get_device(on_device.as_slice(), narrow.as_mut_slice(), bits.as_mut_slice()).unwrap();
            assert!(narrow.to_vec().unwrap() == plain && bits.to_vec().unwrap() == words);
            let mut wide = device.alloc_uninit::<u64>(asked.len()).unwrap();
            there.get_device(on_device.as_slice(), wide.as_mut_slice(), bits.as_mut_slice()).unwrap();
            assert!(wide.to_vec().unwrap().iter().zip(&plain).all(|(&wide, &narrow)| wide == u64::from(narrow)));
        }
        // Nothing is in an empty one.
        let empty = M::small_filter(30).width(3).build_from::<u64>(&[]).unwrap().to_device(&device).unwrap();
        assert_eq!(empty.count_contained_bulk(&asked).unwrap(), 0);
        assert!(empty.get_bulk(&asked).unwrap().iter().all(Option::is_none));
    }
}

fn to_devices_and_back<M: TestKind>() {
    let keys = keys(2_000);
    let function = M::small(700).build_from(&keys).unwrap();
    let filter = M::small_filter(700).width(9).build_from(&keys).unwrap();
    for device in testing::devices(8) {
        assert!(function.to_device(&device).unwrap().to_host().unwrap() == function);
        assert!(super::PerfectHash::<M>::from_host(&device, &function).unwrap().to_host().unwrap() == function);
        let view = PerfectHash::<M, &[u64]>::from_words(function.words()).unwrap();
        assert!(view.to_device(&device).unwrap().to_host().unwrap() == function);
        assert!(filter.view().to_device(&device).unwrap().to_host().unwrap() == filter);
    }
}

/// Writes the right checksum over damaged words.
fn sealed<M: DeviceHashKind>(words: &mut [u64]) -> Option<PerfectHash<M>> {
    match PerfectHash::<M>::from_words(words.to_vec()) {
        Err(Error::File(FileError::Corrupted { found, .. })) => {
            words[15] = found;
            PerfectHash::<M>::from_words(words.to_vec()).ok()
        }
        other => other.ok(),
    }
}

fn damaged_words_give_numbers_below_the_values<M: TestKind>() {
    for device in testing::devices(9) {
        let keys = keys(900);
        let mut opened = 0;
        for bucket in [100, 5, 2000] {
            let function = M::small(bucket).build_from(&keys).unwrap();
            let whole = function.words();
            let places = (3..15).chain(16..whole.len()).step_by(if device.is_emulator() { 5 } else { 1 });
            for place in places {
                for damage in [1, 1 << 17, u64::MAX, 0x5555 << 24] {
                    let mut words = whole.to_vec();
                    words[place] ^= damage;
                    let Some(damaged) = sealed::<M>(&mut words) else { continue };
                    let there = damaged.to_device(&device).unwrap();
                    let values = there.values();
                    assert!(there.get_bulk(&keys).unwrap().iter().all(|&number| number < values.max(1)));
                    opened += 1;
                }
            }
        }
        assert!(opened > 50, "{opened}");
    }
}

fn wrong_arguments_are_refused<M: TestKind>() {
    for device in testing::devices(10) {
        let keys = keys(300);
        let function = M::small(1000).build_from(&keys).unwrap().to_device(&device).unwrap();
        let filter = M::small_filter(1000).width(8).build_from(&keys).unwrap().to_device(&device).unwrap();
        let on_device = device.from_slice(&keys).unwrap();
        let asked = on_device.as_slice();
        let mismatch =
            |result: Result<(), Error>| assert!(matches!(result, Err(Error::LengthMismatch(_))), "{result:?}");
        let mut few = device.alloc_zeroed::<u64>(299).unwrap();
        let mut bytes = device.alloc_zeroed::<u8>(299).unwrap();
        let mut bits = device.alloc_zeroed::<u64>(5).unwrap();
        mismatch(function.get_bulk_into(&keys, &mut [0u64; 301]));
        mismatch(function.get_device(asked, few.as_mut_slice()));
        mismatch(filter.contains_device(asked, bytes.as_mut_slice()));
        mismatch(filter.contains_bitmap_device(asked, bits.slice_mut(..4)));
        mismatch(filter.get_device(asked, few.as_mut_slice(), bits.as_mut_slice()));
        mismatch(filter.get_bulk_into(&keys, &mut [0u32; 2]).map(|_| ()));
        let mut places = device.alloc_zeroed::<u64>(300).unwrap();
        let refused = function.gather_device(asked, few.as_slice(), places.as_mut_slice());
        assert!(matches!(refused, Err(Error::TableTooShort { values: 300, found: 299 })), "{refused:?}");
        mismatch(function.gather_device(asked, places.as_slice(), few.as_mut_slice()));

        let other = Device::emulator(Default::default());
        let elsewhere = other.from_slice(&keys).unwrap();
        let told = function.get_device(elsewhere.as_slice(), places.as_mut_slice()).unwrap_err().to_string();
        assert!(told.contains("a lookup in a function: on "), "{told}");
        let mut foreign = other.alloc_zeroed::<u64>(300).unwrap();
        assert!(function.get_device(asked, foreign.as_mut_slice()).is_err());
        assert!(function.gather_device(asked, foreign.as_slice(), places.as_mut_slice()).is_err());
        assert!(filter.contains_bitmap_device(asked, foreign.as_mut_slice()).is_err());
        assert!(filter.count_contained_device(elsewhere.as_slice()).is_err());

        // No keys are no error, and touch nothing.
        function.get_device(asked.slice(..0), places.slice_mut(..0)).unwrap();
        function.gather_device(asked.slice(..0), places.slice(..0), few.slice_mut(..0)).unwrap();
        assert_eq!(filter.count_contained_device(asked.slice(..0)).unwrap(), 0);
        assert!(function.get_bulk::<u64>(&[]).unwrap().is_empty());
    }
}

//! Properties of functions and filters of every kind: sources of keys, duplicates, progress, saved forms, damage.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use warpset_base::key::{Hash128, Hashed, Key};
use warpset_base::testing::keys;
use warpset_core::hash::mix;

use crate::{Builder, Error, Filter, HashKind, Kind, PerfectHash, Progress, Stage, StaticFilter, StaticFilterView};

/// Makes a test for each kind of functions that are generic over it.
macro_rules! for_each_kind {
    ($($body:ident)*) => {$(
        mod $body {
            #[test]
            fn recsplit() {
                super::$body::<crate::RecSplitKind>();
            }

            #[test]
            fn consensus() {
                super::$body::<crate::ConsensusKind>();
            }

            #[test]
            fn placement() {
                super::$body::<crate::PlacementKind>();
            }
        }
    )*};
}
pub(crate) use for_each_kind;

for_each_kind! {
    keys_of_every_source keys_of_every_type adversarial_keys duplicates_are_named progress_reaches_the_end_and_stops
    filters_know_their_members_and_few_others saved_forms damage_is_an_error hostile_words_do_no_harm
}

/// Checks that each key has its own number, and that batches agree with single lookups.
pub(crate) fn assert_bijection<M: HashKind, K: Key>(function: &PerfectHash<M>, keys: &[K]) {
    let mut seen = vec![false; keys.len()];
    for (key, number) in keys.iter().zip(function.get_bulk(keys)) {
        assert_eq!(number, function.get(key), "{function:?}");
        assert!(!std::mem::replace(&mut seen[number as usize], true), "{function:?}: {number} twice");
    }
    assert_eq!((function.len(), function.values()), (keys.len() as u64, keys.len() as u64), "{function:?}");
}

fn keys_of_every_source<M: HashKind>() {
    for n in [0, 1, 2, 300, 30_000] {
        for bucket_size in [5, 100, 2000] {
            let keys: Vec<String> = keys(n, 4).iter().map(u64::to_string).collect();
            let builder = Builder::<M>::new().bucket_size(bucket_size);
            let expected = builder.build_from(&keys).unwrap();
            assert_bijection(&expected, &keys);
            assert!(builder.build_from_iter(|| keys.iter()).unwrap() == expected, "iterator, {n}, {bucket_size}");
            let external = builder.external().build_from(|| Ok(keys.iter().map(Ok))).unwrap();
            assert!(external == expected, "external, {n}, {bucket_size}");
        }
    }
}

fn keys_of_every_type<M: HashKind>() {
    let keys: Vec<u64> = (0..5000).map(|i| i * i * i).collect();
    let function = Builder::<M>::new().bucket_size(700).build_from(&keys).unwrap();
    let numbers: Vec<u64> = keys.iter().map(|key| function.get(key)).collect();
    assert_eq!(function.get_bulk(&keys), numbers);
    assert_eq!(function.get_bulk(&keys.iter().map(|&key| key as i64).collect::<Vec<_>>()), numbers);
    assert_eq!(function.get_bulk(&keys.iter().map(|&key| u128::from(key)).collect::<Vec<_>>()), numbers);
    assert_eq!(function.get_bulk(&keys.iter().map(|&key| Hashed(key)).collect::<Vec<_>>()), numbers);
    let mut narrow = vec![0_u32; keys.len()];
    function.get_bulk_into(&keys, &mut narrow).unwrap();
    assert!(narrow.iter().zip(&numbers).all(|(&narrow, &number)| u64::from(narrow) == number));
    let short = function.get_bulk_into(&keys, &mut narrow[1..]);
    assert!(matches!(short, Err(Error::LengthMismatch(error)) if (error.needed, error.found) == (5000, 4999)));
}

fn adversarial_keys<M: HashKind>() {
    let builder = Builder::<M>::new();
    let check = |keys: &[u64]| assert_bijection(&builder.build_from(keys).unwrap(), keys);
    check(&(0..50_000).collect::<Vec<_>>());
    // High bits only.
    check(&(0..50_000).map(|i| i << 44).collect::<Vec<_>>());
    // Near duplicates.
    let two_bits: Vec<u128> = (0..128).flat_map(|i| (0..=i).map(move |j| 1 << i | 1 << j)).collect();
    assert_bijection(&builder.build_from(&two_bits).unwrap(), &two_bits);
    let prefix = "the same long prefix for all of the keys/".repeat(5);
    let strings: Vec<String> = (0..20_000).map(|i| format!("{prefix}{i}")).collect();
    assert_bijection(&builder.build_from(&strings).unwrap(), &strings);

    // Ready-made hashes, which seed 0 leaves unchanged: low halves with few different bits.
    let scatter = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    type Low = fn(u64) -> u64;
    let lows: [Low; 3] = [|i| i, |i| i << 32, |i| i / 2 % 1000 + ((i % 2) << 32) + ((i / 2000) << 33)];
    for low in lows {
        let keys: Vec<Hash128> = (0..3000).map(|i| Hash128 { high: scatter(i) + i % 3, low: low(i) }).collect();
        assert_bijection(&builder.build_from(&keys).unwrap(), &keys);
    }
    // Each low half comes three times in its bucket, so that the next seed is taken.
    let keys: Vec<Hash128> = (0..3000).map(|i| Hash128 { high: scatter(i / 3) + i % 3, low: scatter(i / 3) }).collect();
    let function = builder.build_from(&keys).unwrap();
    assert_ne!(function.seed(), 0);
    assert_bijection(&function, &keys);
    // All in one bucket.
    let keys: Vec<Hash128> = (0..3000).map(|i| Hash128 { high: 1, low: scatter(i) }).collect();
    assert_bijection(&Builder::<M>::new().bucket_size(10).build_from(&keys).unwrap(), &keys);
}

fn duplicates_are_named<M: HashKind>() {
    for (n, first, second) in [(2, 0, 1), (100, 0, 99), (10_000, 17, 9_000), (40_000, 39_998, 39_999)] {
        let mut keys = keys(n, 3);
        keys[second] = keys[first];
        for bucket_size in [5, 2000, M::BUCKET_SIZE] {
            match Builder::<M>::new().bucket_size(bucket_size).build_from(&keys) {
                Err(Error::DuplicateKey { first: a, second: b, key }) => {
                    assert_eq!((a, b, key), (first as u64, second as u64, keys[first].to_string()));
                }
                other => panic!("{other:?}"),
            }
        }
    }
    let builder = Builder::<M>::new();
    for same in [builder.build_from(&[1_u64; 1000]), builder.build_from_iter(|| ["a", "a", "b"])] {
        assert!(matches!(same, Err(Error::DuplicateKey { first: 0, second: 1, .. })), "{same:?}");
    }
}

fn progress_reaches_the_end_and_stops<M: HashKind>() {
    let keys = keys(200_000, 6);
    let most = Arc::new(AtomicU64::new(0));
    let seen = most.clone();
    let builder = Builder::<M>::new().bucket_size(500).progress(move |progress: Progress| {
        assert!(progress.keys == 200_000 && progress.attempt == 0 && progress.stage == Stage::Building);
        seen.fetch_max(progress.keys_done, Ordering::Relaxed);
    });
    builder.build_from(&keys).unwrap();
    assert_eq!(most.load(Ordering::Relaxed), 200_000);
    let stopped = Builder::<M>::new().progress(|_| ControlFlow::Break(())).build_from(&keys);
    assert!(matches!(stopped, Err(Error::Interrupted { .. })));
}

fn filters_know_their_members_and_few_others<M: HashKind>() {
    let keys = keys(20_000, 7);
    let foreign: Vec<u64> = (0..100_000).collect();
    let builder = |width| Builder::<M, StaticFilter<M>>::new().width(width);
    for width in [1, 8, 13, 32] {
        let filter = builder(width).build_from(&keys).unwrap();
        assert!(keys.iter().all(|key| filter.contains(key)));
        assert!(filter.contains_bulk(&keys).unwrap().into_iter().all(|answer| answer));
        assert!(filter == builder(width).build_from_iter(|| keys.iter()).unwrap());
        for n in [0, 1, 63, 64, 257, 1000, foreign.len()] {
            let foreign = &foreign[..n];
            let expected: Vec<bool> = foreign.iter().map(|key| filter.contains(key)).collect();
            assert_eq!(filter.contains_bulk(foreign).unwrap(), expected);
            assert!(Filter::contains_bitmap_bulk(&filter, foreign).unwrap().iter().eq(expected.iter().copied()));
            let count = expected.iter().filter(|&&answer| answer).count();
            assert_eq!(filter.view().count_contained_bulk(foreign).unwrap(), count);
        }
        let wrong = filter.count_contained_bulk(&foreign).unwrap() as f64;
        let expected = foreign.len() as f64 * filter.fpr();
        assert!((wrong - expected).abs() < 5.0 * expected.sqrt() + 1.0, "{wrong} false positives at {width} bits");
        assert_eq!((filter.len(), filter.function().len(), filter.width()), (20_000, 20_000, width));
    }
    let empty = builder(8).build_from(&[0_u64; 0]).unwrap();
    assert!(!empty.contains(1_u64) && empty.is_empty() && empty.fpr() == 0.0);
    assert_eq!(empty.contains_bulk(&[1_u64, 2]).unwrap(), [false; 2]);
    assert!(builder(0).build_from(&keys).is_err() && builder(33).build_from(&keys).is_err());
    let answers = builder(8).build_from(&keys).unwrap().contains_bulk_into(&keys, &mut [false; 9]);
    assert!(matches!(answers, Err(Error::LengthMismatch(error)) if (error.needed, error.found) == (20_000, 9)));
}

fn saved_forms<M: HashKind>() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("function");
    for n in [0, 1, 2, 3, 1000, 100_000] {
        let keys = keys(n, 9);
        let function = Builder::<M>::new().bucket_size(100).build_from(&keys).unwrap();
        let bytes = function.to_bytes();
        assert_eq!((bytes.len() as u64, Kind::of_bytes(&bytes).unwrap()), (function.memory_bytes(), M::KIND));
        assert!(PerfectHash::<M>::from_bytes(&bytes).unwrap() == function);
        // Something may come after it.
        let stream = [&bytes, &b"more"[..]].concat();
        let mut rest = stream.as_slice();
        assert!(PerfectHash::<M>::read_from(&mut rest).unwrap() == function);
        assert_eq!(rest, b"more");
        for view in [PerfectHash::<M, _>::from_words(function.words()).unwrap(), function.view()] {
            assert!(view == function.view() && view.len() == n && view.words() == function.words());
            assert!(keys.iter().all(|key| view.get(key) == function.get(key)));
            assert_eq!(view.get_bulk(&keys), function.get_bulk(&keys));
        }
        // The file is replaced.
        function.save(&path).unwrap();
        assert!(PerfectHash::<M>::load(&path).unwrap() == function);
        #[cfg(feature = "mmap")]
        {
            // SAFETY: no process changes the file as long as it is mapped.
            let (mapped, unverified) =
                unsafe { (PerfectHash::<M>::map(&path).unwrap(), PerfectHash::<M>::map_unverified(&path).unwrap()) };
            assert!(mapped.words() == function.words() && unverified.get_bulk(&keys) == function.get_bulk(&keys));
        }
        let filter = Builder::<M, StaticFilter<M>>::new().width(10).build_from(&keys).unwrap();
        assert!(StaticFilter::<M>::from_bytes(&filter.to_bytes()).unwrap() == filter);
        assert!(StaticFilterView::<M>::from_words(filter.words()).unwrap() == filter.view());
        assert!(
            PerfectHash::<M>::from_bytes(&filter.to_bytes()).is_err() && StaticFilter::<M>::from_bytes(&bytes).is_err()
        );
    }
    let others = [
        crate::RecSplit::builder().build_from(&["a"]).unwrap().to_bytes(),
        crate::Consensus::builder().build_from(&["a"]).unwrap().to_bytes(),
        crate::Placement::builder().build_from(&["a"]).unwrap().to_bytes(),
    ];
    assert_eq!(others.iter().filter(|bytes| PerfectHash::<M>::from_bytes(bytes).is_ok()).count(), 1);
}

/// Checks that any damage is noticed, and that cut files are errors.
fn damage_is_an_error<M: HashKind>() {
    let keys = keys(500, 10);
    let function = Builder::<M>::new().bucket_size(90).build_from(&keys).unwrap().to_bytes();
    let filter = Builder::<M, StaticFilter<M>>::new().width(9).build_from(&keys).unwrap().to_bytes();
    let is_refused = |bytes: &[u8]| match bytes.len() > function.len() {
        true => StaticFilter::<M>::read_from(bytes).is_err(),
        false => PerfectHash::<M>::read_from(bytes).is_err() && PerfectHash::<M>::from_bytes(bytes).is_err(),
    };
    for good in [&function, &filter] {
        assert!(!is_refused(good));
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut damaged = good.clone();
                damaged[at] ^= 1 << bit;
                assert!(is_refused(&damaged), "bit {bit} of byte {at}");
            }
        }
    }
    assert!((0..function.len()).all(|len| is_refused(&function[..len])));
    assert!((0..filter.len()).all(|len| StaticFilter::<M>::read_from(&filter[..len]).is_err()));
}

/// Checks that wrong words with a right checksum neither panic nor give numbers out of range.
fn hostile_words_do_no_harm<M: HashKind>() {
    let valid = [(300, 80), (3000, 700)].map(|(n, bucket_size)| {
        Builder::<M>::new().bucket_size(bucket_size).build_from(&keys(n, 11)).unwrap().words().to_vec()
    });
    let asked = keys(70, 12);
    let mut loaded = 0;
    for round in 0..8000 {
        let mut drawn = 0;
        let mut random = || {
            drawn += 1;
            mix(drawn, round)
        };
        let mut words = valid[round as usize / 4 % 2].clone();
        // All fields but the length; some keep their values, so that more headers pass.
        let fields = (3..20).filter(|at| round % 4 < 2 && !(11..16).contains(at));
        for at in fields.filter(|_| random().is_multiple_of(4)).collect::<Vec<_>>() {
            words[at] = if round % 4 == 0 { random() % 100 } else { random() };
        }
        for _ in 0..1 + random() % if round % 4 == 3 { 3 } else { 50 } {
            let (value, is_header) = (random(), round % 4 == 3 && random().is_multiple_of(2));
            let at = if is_header { random() % 20 } else { 20 + random() % (words.len() as u64 - 20) } as usize;
            words[at] = match round % 4 {
                2 => 0,
                3 if value.is_multiple_of(2) => words[at] ^ 1 << (value >> 58),
                3 => value >> (value / 2 % 64),
                _ => value,
            };
        }
        words[15] = crate::format::checksum(&words);
        if let Ok(function) = PerfectHash::<M>::from_words(words) {
            loaded += 1;
            for (key, number) in asked.iter().zip(function.get_bulk(&asked)) {
                assert!(number < function.values().max(1), "{round}");
                assert_eq!(number, function.get(key), "{round}");
            }
        }
    }
    assert!(loaded > 1000, "{loaded}");
}

//! Filters against plain sets: no key is missing, and false positives are as frequent as theory says; the bytes follow
//! from the set of keys.

use std::collections::BTreeSet;

use proptest::prelude::*;
use warpset_base::testing::keys;

use crate::testing::{ARITIES, FORMS, each_form};
use crate::width::Width;
use crate::{Arity, BinaryFuse, BinaryFuse8, BinaryFuse16, BinaryFuse32, Error, Filter, Form, Hashed};

fn holds_all<F: Width>(keys: &[u64], arity: Arity, form: Form) -> BinaryFuse<F> {
    let filter = BinaryFuse::<F>::builder().arity(arity).form(form).build_from(keys).unwrap();
    let different = keys.iter().collect::<BTreeSet<_>>().len();
    assert_eq!((filter.len(), filter.is_empty()), (different as u64, keys.is_empty()));
    assert!(keys.iter().all(|&key| filter.contains(key)), "{:?}", filter.layout());
    assert_eq!(filter.count_contained_bulk(keys).unwrap(), keys.len());
    filter
}

#[test]
fn sizes_from_none_to_many() {
    let small = (0..130).chain([199, 256, 500, 900, 1000, 1001, 2500, 4095, 4097, 6000]);
    for n in small.chain([13_199, 13_201, 13_700, 13_701, 20_000, 27_000, 50_001, 200_000]) {
        each_form(|arity, form| {
            let filter = holds_all::<u8>(&keys(n, n), arity, form);
            if n > 10_000 {
                let bits = if form == Form::Sharded && n < 60_000 { 14.0 } else { 10.2 };
                assert!(filter.bits_per_key() < bits, "{n}: {} {:?}", filter.bits_per_key(), filter.layout());
            }
        });
    }
}

#[test]
fn every_width_has_its_rate_of_false_positives() {
    fn rate_of<F: Width>(arity: Arity, form: Form, samples: u64) {
        let filter = holds_all::<F>(&keys(40_000, 3), arity, form);
        let (rate, n) = (filter.fpr(), samples as f64);
        let found = filter.measured_fpr(samples, 7) * n;
        let deviation = (n * rate * (1.0 - rate)).sqrt();
        assert!((found - n * rate).abs() <= 4.0 * deviation.max(0.25), "{found} of {n}, {rate} {arity:?} {form:?}");
    }
    let samples = 1 << 21;
    each_form(|arity, form| {
        rate_of::<u8>(arity, form, samples);
        rate_of::<u16>(arity, form, samples);
        rate_of::<u32>(arity, form, samples);
    });
}

#[test]
fn no_keys() {
    each_form(|arity, form| {
        let filter = BinaryFuse16::builder().arity(arity).form(form).build_from::<u64>(&[]).unwrap();
        assert_eq!((filter.len(), filter.memory_bytes(), filter.fpr(), filter.bits_per_key()), (0, 0, 0.0, 0.0));
        assert!(!filter.contains(0u64) && filter.count_contained_bulk(&keys(1000, 1)).unwrap() == 0);
        assert!(filter.contains_bulk::<u64>(&[]).unwrap().is_empty());
        assert!(BinaryFuse16::from_bytes(&filter.to_bytes()).unwrap() == filter);
    });
}

/// Checks that small filters do not contain 0. Slots without a key hold 0, the fingerprint of key 0 under seed 0: no
/// filter has that seed.
#[test]
fn small_filters_do_not_contain_0() {
    for seed in [0, u64::MAX, 1] {
        let with_0 = |i: u64| {
            let keys: Vec<u64> = (1..11).map(|key| 10 * i + key).collect();
            BinaryFuse32::builder().seed(seed).build_from(&keys).unwrap().contains(0u64)
        };
        assert!(!(0..300).any(with_0), "{seed}");
    }
}

#[test]
fn repeated_keys_count_once() {
    each_form(|arity, form| {
        let builder = BinaryFuse8::builder().arity(arity).form(form);
        for copies in [2, 255, 256, 257, 40_000] {
            let filter = builder.build_from(&vec![7u64; copies]).unwrap();
            assert!(filter == builder.build_from(&[7u64]).unwrap(), "{copies}");
        }
        for n in [2, 100, 30_000] {
            let once = keys(n, 5);
            let mut all = once.clone();
            all.extend_from_slice(&once[..once.len() / 2]);
            all.push(once[0]);
            assert!(builder.build_from(&all).unwrap() == builder.build_from(&once).unwrap(), "{n}");
        }
    });
}

#[test]
fn the_bytes_follow_from_the_set_of_keys() {
    let all = keys(100_000, 9);
    let backwards: Vec<u64> = all.iter().rev().copied().collect();
    each_form(|arity, form| {
        let builder = BinaryFuse16::builder().arity(arity).form(form).seed(4);
        let filter = builder.build_from(&all).unwrap();
        for threads in [1, 2, 3, 8] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert!(pool.install(|| builder.build_from(&backwards).unwrap()) == filter, "{threads}");
        }
        assert!(builder.seed(5).build_from(&all).unwrap() != filter);
    });
}

#[test]
fn keys_of_any_kind() {
    each_form(|arity, form| {
        let builder = BinaryFuse32::builder().arity(arity).form(form);
        let words: Vec<String> = (0..3000).map(|i| format!("word {i}")).collect();
        let filter = builder.build_from(&words).unwrap();
        assert!(words.iter().all(|word| filter.contains(word)) && !filter.contains("another word"));
        assert!(filter.contains(b"word 7".as_slice()));
        let numbers: Vec<i32> = (-500..500).collect();
        let filter = builder.build_from(&numbers).unwrap();
        assert!(numbers.iter().all(|&key| filter.contains(i64::from(key))) && !filter.contains(1101u64));
        assert!(filter == builder.build_from(&(-500..500i128).collect::<Vec<_>>()).unwrap());
        let pairs: Vec<(u32, &str)> = (0..200).map(|i| (i, "pair")).collect();
        let filter = builder.build_from(&pairs).unwrap();
        assert!(filter.contains((7u64, "pair")) && !filter.contains((7u64, "pairs")));
        let hashes: Vec<Hashed> = keys(1000, 1).into_iter().map(Hashed).collect();
        assert_eq!(builder.build_from(&hashes).unwrap().count_contained_bulk(&hashes).unwrap(), 1000);
    });
}

#[test]
fn all_forms_of_answers_agree() {
    each_form(|arity, form| {
        for n in [50, 300_000] {
            let stored = keys(n, 1);
            let filter = BinaryFuse8::builder().arity(arity).form(form).build_from(&stored).unwrap();
            for asked in [0, 1, 63, 64, 65, 1000, 40_000] {
                let asked = [&keys(asked, 2)[..], &stored[..stored.len().min(asked as usize)]].concat();
                let expected: Vec<bool> = asked.iter().map(|&key| filter.contains(key)).collect();
                assert_eq!(filter.contains_bulk(&asked).unwrap(), expected);
                let (mut answers, mut bytes) = (vec![false; asked.len()], vec![9; asked.len()]);
                filter.contains_bulk_into(&asked, &mut answers).unwrap();
                filter.contains_bytes_bulk_into(&asked, &mut bytes).unwrap();
                assert_eq!(answers, expected);
                assert!(bytes.iter().zip(&expected).all(|(&byte, &yes)| byte == u8::from(yes)));
                assert!(filter.contains_bitmap_bulk(&asked).unwrap().iter().eq(expected.iter().copied()));
                let yes = expected.iter().filter(|&&yes| yes).count();
                assert_eq!(filter.count_contained_bulk(&asked).unwrap(), yes);
                let mut kept = asked.clone();
                filter.retain_contained_bulk(&mut kept).unwrap();
                assert_eq!(kept.len(), yes);
            }
            assert!(matches!(filter.contains_bulk_into(&stored, &mut [false]), Err(Error::LengthMismatch(_))));
        }
    });
}

#[test]
fn settings_are_checked() {
    let refused = |fpr| BinaryFuse8::builder().fpr(fpr).build_from(&[1u64]).unwrap_err();
    for fpr in [0.0, 1.0, -1.0, f64::NAN] {
        assert!(matches!(refused(fpr), Error::InvalidFpr { .. }), "{fpr}");
    }
    assert!(refused(0.001).to_string().contains("BinaryFuse16"));
    assert!(refused(1e-9).to_string().contains("BinaryFuse32"));
    assert!(matches!(refused(1e-12), Error::UnreachableFpr { bits: 8, .. }));
    assert!(BinaryFuse8::builder().fpr(0.004).build_from(&[1u64]).is_ok());
    for arity in ARITIES {
        let builder = BinaryFuse8::builder().arity(arity);
        let Err(Error::TooManyKeys { most, .. }) = builder.layout(u64::MAX) else { panic!("one graph of 2^64 keys") };
        assert!(most > 3_700_000_000 && builder.layout(most).is_ok());
        let sharded = builder.form(Form::Sharded);
        let Err(Error::TooManyKeys { most, .. }) = sharded.layout(u64::MAX) else { panic!("shards of 2^64 keys") };
        assert!(most > 200_000_000_000 && sharded.layout(most).unwrap().words() > 1 << 34);
    }
}

#[test]
fn hashes_that_are_not_random() {
    // The hash of a filter mixes words again, so patterns do no harm.
    each_form(|arity, form| {
        for shift in [0, 20, 44] {
            let patterned: Vec<Hashed> = (0..30_000).map(|i| Hashed(i << shift)).collect();
            let filter = BinaryFuse8::builder().arity(arity).form(form).build_from(&patterned).unwrap();
            assert_eq!(filter.count_contained_bulk(&patterned).unwrap(), patterned.len());
        }
    });
}

#[test]
fn keys_that_do_not_fit_in_memory() {
    for (n, arity) in [(0, Arity::Three), (1, Arity::Four), (1000, Arity::Three), (400_000, Arity::Four)] {
        let builder = BinaryFuse16::builder().arity(arity).form(Form::Sharded).seed(2);
        let all = keys(n, 8);
        let external = builder.external().memory(0);
        assert!(external.build_from(all.iter().map(|&key| Ok(key))).unwrap() == builder.build_from(&all).unwrap());
        let twice = all.iter().chain(&all[all.len() / 3..]).map(|&key| Ok(key));
        assert!(external.build_from(twice).unwrap() == builder.build_from(&all).unwrap());
    }
    let builder = BinaryFuse8::builder().for_build();
    let same = builder.external().memory(0).build_from((0..300_000).map(|_| Ok("same"))).unwrap();
    assert!(same == builder.build_from(&["same"]).unwrap());
    let broken = (0..10u64).map(|i| if i < 7 { Ok(i) } else { Err(std::io::ErrorKind::BrokenPipe.into()) });
    assert!(matches!(builder.external().build_from(broken), Err(Error::Io(_))));
    let nowhere = builder.external().folder("/nowhere/at/all").build_from([Ok(1u64)]);
    assert!(matches!(nowhere, Err(Error::Io(error)) if error.to_string().contains("/nowhere/at/all")));
}

#[test]
fn headers_with_absurd_numbers_are_refused_or_harmless() {
    let filter = BinaryFuse8::builder().form(Form::Sharded).build_from(&keys(300, 1)).unwrap();
    let bytes = filter.to_bytes();
    let aligned = |bytes: &[u8]| bytemuck::pod_collect_to_vec::<u8, u64>(bytes);
    for (keys, is_fine) in [(filter.layout().slots(), true), (filter.layout().slots() + 1, false)] {
        let mut changed = bytes.clone();
        changed[32..40].copy_from_slice(&keys.to_le_bytes());
        let words = aligned(&changed);
        assert_eq!(crate::BinaryFuse8View::from_bytes_unverified(bytemuck::cast_slice(&words)).is_ok(), is_fine);
    }
    for field in 0..8 {
        for value in [0, 1, 2, 3, 7, 8, 255, 1 << 16, 1 << 31, u64::from(u32::MAX), 1 << 32, 1 << 63, u64::MAX] {
            let mut broken = bytes.clone();
            broken[24 + 8 * field..][..8].copy_from_slice(&value.to_le_bytes());
            let words = aligned(&broken);
            if let Ok(view) = crate::BinaryFuse8View::from_bytes_unverified(bytemuck::cast_slice(&words)) {
                view.contains_bulk(&keys(1000, 2)).unwrap();
                assert!(view.contains("one") == view.contains_bulk(&["one"]).unwrap()[0]);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn behaves_like_a_set(
        keys in prop::collection::vec(prop_oneof![0..300u64, any::<u64>()], 0..1200),
        asked in prop::collection::vec(0..2000u64, 0..200),
        four in any::<bool>(), sharded in any::<bool>(), seed in any::<u64>(),
    ) {
        let (arity, form) = (ARITIES[usize::from(four)], FORMS[usize::from(sharded)]);
        let filter = BinaryFuse32::builder().arity(arity).form(form).seed(seed).build_from(&keys).unwrap();
        let model: BTreeSet<u64> = keys.iter().copied().collect();
        prop_assert_eq!(filter.len(), model.len() as u64);
        prop_assert!(keys.iter().all(|&key| filter.contains(key)));
        for key in asked {
            // One false positive in 2^32: these inputs have none.
            prop_assert_eq!(filter.contains(key), model.contains(&key));
        }
        prop_assert!(BinaryFuse32::from_bytes(&filter.to_bytes()).unwrap() == filter);
    }
}

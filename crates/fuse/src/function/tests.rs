//! Functions against plain maps, of every form and width.

use std::collections::HashMap;

use proptest::prelude::*;
use warpset_base::testing::{keys, tier};
use warpset_core::hash::mix;

use super::*;
use crate::testing::{ARITIES, FORMS, each_form};
use crate::{Arity, Form};

fn values<V: FunctionValue>(keys: &[u64], bits: u32) -> Vec<V> {
    keys.iter().map(|&key| V::of(mix(key, 99) >> (64 - bits))).collect()
}

/// Builds a function and checks that every key has its value, one by one and in bulk.
fn has_all<V: FunctionValue>(n: u64, bits: u32, filter_bits: u32, arity: Arity, form: Form) -> StaticFunction<V> {
    let (keys, values) = (keys(n, n), values::<V>(&keys(n, n), bits));
    let builder = StaticFunction::builder().value_bits(bits).filtered(filter_bits).arity(arity).form(form);
    let function = builder.build_from(&keys, &values).unwrap();
    assert_eq!((function.len(), function.is_empty()), (n, n == 0));
    assert_eq!((function.layout().bits(), function.layout().value_bits()), (bits + filter_bits, bits));
    for (&key, &value) in keys.iter().zip(&values).step_by(1 + n as usize / 5000) {
        assert_eq!(function.get(key), Some(value), "{:?}", function.layout());
    }
    let mut out = vec![V::default(); keys.len()];
    assert_eq!(function.get_bulk_into(&keys, &mut out).unwrap().count_ones(), keys.len());
    assert!(out == values, "{:?}", function.layout());
    assert!(function.get_bulk(&keys).iter().zip(&values).all(|(found, value)| *found == Some(*value)));
    function
}

#[test]
fn every_key_has_its_value_at_any_size_and_width() {
    each_form(|arity, form| {
        for n in [0, 1, 2, 3, 10, 63, 65, 250, 1000, 13_199, 13_201, 13_701, 50_000] {
            has_all::<u8>(n, 8, 0, arity, form);
            has_all::<u32>(n, 13, 5, arity, form);
        }
        for bits in 1..=64 {
            has_all::<u64>(700, bits, (64 - bits).min(32), arity, form);
        }
        for bits in (1..=64).step_by(tier(7, 1)) {
            has_all::<u64>(14_000, bits, 0, arity, form);
        }
        has_all::<bool>(20_000, 1, 0, arity, form);
        has_all::<u16>(30_000, 16, 16, arity, form);
    });
    let function = has_all::<bool>(1_000_000, 1, 0, Arity::Four, Form::OneGraph);
    assert!(function.bits_per_key() < 1.09, "{}", function.bits_per_key());
}

#[test]
fn other_keys_have_a_value_at_the_rate_of_the_fingerprint() {
    each_form(|arity, form| {
        let asked = keys(200_000, 7);
        for bits in [1, 4, 9, 32] {
            let function = has_all::<u16>(30_000, 7, bits, arity, form);
            let found = function.get_bulk_into(&asked, &mut vec![0; asked.len()]).unwrap().count_ones() as f64;
            let expected = asked.len() as f64 * function.fpr();
            assert!((found - expected).abs() <= 4.0 * expected.sqrt().max(0.5), "{found} for {expected}");
            assert!(asked[..500].iter().all(|&key| function.get(key).is_none_or(|value| value < 128)));
        }
        assert_eq!(has_all::<u16>(100, 7, 0, arity, form).fpr(), 1.0);
    });
}

#[test]
fn a_function_of_no_keys_has_no_values() {
    each_form(|arity, form| {
        let function = has_all::<u64>(0, 64, 0, arity, form);
        assert_eq!((function.get(7u64), function.memory_bytes(), function.fpr()), (None, 0, 0.0));
        assert_eq!(function.get_bulk(&[1u64, 2]), [None, None]);
        assert!(StaticFunction::<u64>::from_bytes(&function.to_bytes()).unwrap() == function);
    });
}

#[test]
fn repeated_keys_need_equal_values() {
    each_form(|arity, form| {
        for n in [1, 100, 20_000] {
            let builder = StaticFunction::<u16>::builder().arity(arity).form(form).filtered(3);
            let (once, their) = (keys(n, 5), values::<u16>(&keys(n, 5), 16));
            let function = builder.build_from(&once, &their).unwrap();
            let mut twice = (
                [&once[..], &once[..1 + once.len() / 2]].concat(),
                [&their[..], &their[..1 + their.len() / 2]].concat(),
            );
            assert!(builder.build_from(&twice.0, &twice.1).unwrap() == function);
            let pairs = || twice.0.iter().zip(&twice.1).map(|(&key, &value)| Ok((key, value)));
            let sharded = builder.form(Form::Sharded).build_from(&once, &their).unwrap();
            assert!(builder.external().memory(0).build_from(pairs()).unwrap() == sharded);
            twice.1[once.len()] ^= 1;
            let refused = builder.build_from(&twice.0, &twice.1).unwrap_err();
            assert!(matches!(refused, Error::TwoValues { first, second } if first ^ second == 1), "{refused}");
            let pairs = twice.0.iter().zip(&twice.1).map(|(&key, &value)| Ok((key, value)));
            assert!(matches!(builder.external().memory(0).build_from(pairs), Err(Error::TwoValues { .. })));
        }
    });
}

#[test]
fn keys_of_any_kind() {
    each_form(|arity, form| {
        let builder = StaticFunction::<u32>::builder().arity(arity).form(form);
        let words: Vec<String> = (0..3000).map(|i| format!("word {i}")).collect();
        let numbers: Vec<u32> = (0..3000).collect();
        let function = builder.build_from(&words, &numbers).unwrap();
        assert!(function.get_bulk(&words).into_iter().eq(numbers.iter().copied().map(Some)));
        assert_eq!(function.get("word 17"), Some(17));
        let signed: Vec<i32> = (-1500..1500).collect();
        assert_eq!(builder.build_from(&signed, &numbers).unwrap().get(-3i64), Some(1497));
        let doubled = ([&words[..], &words[..7]].concat(), [&numbers[..], &numbers[..7]].concat());
        assert!(builder.build_from(&doubled.0, &doubled.1).unwrap() == function);
    });
}

#[test]
fn settings_and_values_are_checked() {
    let builder = StaticFunction::<u16>::builder();
    for (value_bits, filter_bits) in [(0, 0), (17, 0), (16, 33), (u32::MAX, u32::MAX)] {
        let refused = builder.value_bits(value_bits).filtered(filter_bits).layout(1).unwrap_err();
        assert!(matches!(refused, Error::InvalidBits { type_bits: 16, .. }), "{refused}");
    }
    assert!(StaticFunction::<u64>::builder().filtered(1).layout(1).is_err());
    let wide = builder.value_bits(5).build_from(&[1u64, 2], &[31, 32]);
    assert!(matches!(wide, Err(Error::WideValue { value: 32, bits: 5 })));
    let wide = builder.value_bits(5).external().build_from([Ok((1u64, 32))]);
    assert!(matches!(wide, Err(Error::WideValue { value: 32, bits: 5 })));
    assert!(matches!(builder.build_from(&[1u64, 2], &[3]), Err(Error::LengthMismatch(_))));
    let function = builder.build_from(&[1u64], &[3]).unwrap();
    assert!(matches!(function.get_bulk_into(&[1u64, 2], &mut [0]), Err(Error::LengthMismatch(_))));
    let broken = builder.external().build_from::<u64>([Err(std::io::ErrorKind::BrokenPipe.into())]);
    assert!(matches!(broken, Err(Error::Io(_))));
}

#[test]
fn bytes_follow_from_the_set_of_pairs() {
    let all = keys(60_000, 9);
    let backwards: Vec<u64> = all.iter().rev().copied().collect();
    each_form(|arity, form| {
        let builder = StaticFunction::<u32>::builder().arity(arity).form(form).value_bits(11).filtered(6).seed(4);
        let function = builder.build_from(&all, &values(&all, 11)).unwrap();
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let other = pool.install(|| builder.build_from(&backwards, &values(&backwards, 11)).unwrap());
            assert!(other == function, "{threads}");
        }
        let pairs = all.iter().zip(values::<u32>(&all, 11)).map(|(&key, value)| Ok((key, value)));
        let external = builder.external().memory(0).build_from(pairs).unwrap();
        assert!((external == function) == (form == Form::Sharded));
    });
}

#[test]
fn other_types_and_absurd_headers_are_refused_or_harmless() {
    each_form(|arity, form| {
        let function = has_all::<u16>(300, 9, 4, arity, form);
        let bytes = function.to_bytes();
        assert!(StaticFunction::<u16>::from_bytes(&bytes).unwrap() == function);
        // A wider type has the same values, a narrower one is refused.
        let wider = StaticFunction::<u64>::from_bytes(&bytes).unwrap();
        assert!(keys(300, 300).iter().all(|&key| wider.get(key) == function.get(key).map(u64::from)));
        let refused = StaticFunction::<u8>::from_bytes(&bytes);
        assert!(matches!(refused, Err(Error::OtherValues { expected: 8, found: 9 })));
        assert!(matches!(crate::BinaryFuse8::from_bytes(&bytes), Err(Error::File(_))));
        for field in 0..8 {
            for value in [0, 1, 2, 3, 8, 64, 65, 255, 1 << 16, 1 << 31, u64::from(u32::MAX), 1 << 32, u64::MAX] {
                let mut broken = bytes.clone();
                broken[24 + 8 * field..][..8].copy_from_slice(&value.to_le_bytes());
                let words: Vec<u64> = bytemuck::pod_collect_to_vec(&broken);
                if let Ok(view) = StaticFunctionView::<u16>::from_bytes_unverified(bytemuck::cast_slice(&words)) {
                    let asked = keys(300, 2);
                    assert!(view.get_bulk(&asked).iter().zip(&asked).all(|(found, &key)| *found == view.get(key)));
                }
            }
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn behaves_like_a_map(
        pairs in prop::collection::vec((prop_oneof![0..300u64, any::<u64>()], any::<u64>()), 0..1200),
        asked in prop::collection::vec(0..2000u64, 0..200),
        four in any::<bool>(), sharded in any::<bool>(), seed in any::<u64>(), bits in 1..=32u32,
    ) {
        let (arity, form) = (ARITIES[usize::from(four)], FORMS[usize::from(sharded)]);
        let model: HashMap<u64, u32> = pairs.iter().map(|&(key, value)| (key, (value >> (64 - bits)) as u32)).collect();
        let keys: Vec<u64> = pairs.iter().map(|pair| pair.0).collect();
        let values: Vec<u32> = keys.iter().map(|key| model[key]).collect();
        let builder = StaticFunction::<u32>::builder().arity(arity).form(form).seed(seed);
        let function = builder.value_bits(bits).filtered(32).build_from(&keys, &values).unwrap();
        prop_assert_eq!(function.len(), model.len() as u64);
        // One false positive in 2^32: these inputs have none.
        for key in keys.iter().chain(&asked) {
            prop_assert_eq!(function.get(*key), model.get(key).copied());
        }
        prop_assert!(StaticFunction::<u32>::from_bytes(&function.to_bytes()).unwrap() == function);
    }
}

//! Tests of functions on the emulator and on CUDA: bytes and values equal the host's.

use warpset_core::hash::mix;
use warpset_gpu::GpuError;
use warpset_gpu::batch::StringVec;
use warpset_gpu::testing::{devices, fail_each, sized};
use warpset_simt::Global;

use super::*;
use crate::Form;
use crate::testing::each_form;

fn pairs<V: FunctionValue + Pod>(n: u64, bits: u32) -> (Vec<u64>, Vec<V>) {
    let value = |i| bytemuck::bytes_of(&(mix(i, 99) >> (64 - bits)))[..size_of::<V>()].to_vec();
    (0..n).map(|i| (mix(i, 1), bytemuck::pod_read_unaligned::<V>(&value(i)))).unzip()
}

/// Compares a function built on the device with that of the host, and their answers for known and other keys.
fn is_that_of_the_host<V: DeviceFunctionValue>(device: &Device, n: u64, builder: FunctionBuilder<V>, bits: u32) {
    let builder = builder.value_bits(bits).seed(3);
    let (keys, values) = pairs::<V>(n, bits);
    let host = builder.build_from(&keys, &values).unwrap();
    let built = builder.on(device).build_from(&keys, &values).unwrap();
    assert!(built.to_host().unwrap() == host, "{:?}", host.layout());
    let (there, their) = (device.from_slice(&keys).unwrap(), device.from_slice(&values).unwrap());
    let built = builder.on(device).build_from_device(there.as_slice(), their.as_slice()).unwrap();
    assert!(built.to_host().unwrap() == host, "{:?}", host.layout());
    assert_eq!((built.len(), built.memory_bytes()), (host.len(), host.memory_bytes()));
    let asked: Vec<u64> = keys.iter().take(300).copied().chain(0..301).collect();
    assert_eq!(built.get_bulk(&asked).unwrap(), host.get_bulk(&asked));
    let mut out = vec![V::default(); keys.len()];
    assert_eq!(built.get_bulk_into(&keys, &mut out).unwrap().count_ones(), keys.len());
    assert!(out == values);
    check_other_lookups(&built, &asked, &host.get_bulk(&asked));
}

warpset_simt::kernel! {
    /// Looks up keys as kernels of other crates do: value and one, or zeros.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per key.
    /// - `words`: those of the function; `keys`: `n`; neither is written while the kernel runs.
    /// - `out`: `2 n` words, used by this launch alone.
    pub unsafe fn function_asked(
        words: Global<u64>, function: FunctionQuery, keys: Global<u64>, n: usize, out: GlobalMut<u64>,
    ) {
        let i = warpset_simt::thread::index_1d() as usize;
        if i < n {
            // SAFETY: `i < n`; the words are those of the function.
            unsafe {
                let value = function.get(words, keys.read(i));
                out.write(2 * i, value.unwrap_or(0));
                out.write(2 * i + 1, value.is_some() as u64);
            }
        }
    }
}

/// Checks lookups under stencils and, on the emulator, by a kernel of this crate.
fn check_other_lookups<V: DeviceFunctionValue>(function: &StaticFunction<V>, asked: &[u64], answers: &[Option<V>]) {
    let (device, n) = (&function.device, asked.len());
    let keys = device.from_slice(asked).unwrap();
    let bytes: Vec<u8> = (0..n).map(|i| u8::from(i % 3 != 1)).collect();
    let bits: Vec<u64> =
        bytes.chunks(64).map(|some| some.iter().rev().fold(0, |word, &bit| word << 1 | u64::from(bit))).collect();
    let there = (device.from_slice(&bytes).unwrap(), device.from_slice(&bits).unwrap());
    for stencil in [Stencil::from(&there.0), Stencil::from(&there.1)] {
        let mut values = device.alloc_zeroed::<V>(n).unwrap();
        let mut found = device.alloc_zeroed::<u64>(n.div_ceil(64)).unwrap();
        function.get_if_device(keys.as_slice(), stencil, values.as_mut_slice(), found.as_mut_slice()).unwrap();
        let (values, found) = (values.to_vec().unwrap(), found.to_vec().unwrap());
        for i in 0..n {
            let is_found = found[i / 64] >> (i % 64) & 1 != 0;
            assert!(is_found.then_some(values[i]) == answers[i].filter(|_| bytes[i] != 0));
        }
    }
    if device.is_emulator() && n > 0 {
        let mut found = device.alloc_zeroed::<u64>(2 * n).unwrap();
        let (words, query, keys, out) =
            (function.words().global(), function.query(), keys.global(), found.global_mut());
        // SAFETY: there are two words per key, and all are borrowed until the stream has been waited for.
        device
            .waiting(|stream| unsafe {
                let config = LaunchConfig::new(n.div_ceil(64) as u32, 64);
                function_asked { words, function: query, keys, n, out }.launch(stream, config)
            })
            .unwrap();
        let found = found.to_vec().unwrap();
        for (pair, answer) in found.chunks(2).zip(answers) {
            let value = answer.map(|value| bytemuck::bytes_of(&value).iter().rev().fold(0, |v, &b| v << 8 | b as u64));
            assert_eq!((pair[1] == 1).then_some(pair[0]), value);
        }
    }
}

#[test]
fn bytes_and_values_are_those_of_the_host() {
    for device in devices(41) {
        each_form(|arity, form| {
            for n in [0, 1, 2, 31, 1025].into_iter().step_by(sized(&device, 1, 4, 1)) {
                let builder = crate::StaticFunction::builder().arity(arity).form(form);
                is_that_of_the_host::<u8>(&device, n, builder, 8);
            }
            let widths = [(1, 0), (7, 9), (16, 0), (16, 16), (20, 3), (32, 32), (33, 0), (61, 2), (64, 0)];
            for (bits, filter) in widths.into_iter().step_by(sized(&device, 1, 4, 1)) {
                let builder = crate::StaticFunction::builder().arity(arity).form(form).filtered(filter);
                is_that_of_the_host::<u64>(&device, 400, builder, bits);
            }
            is_that_of_the_host::<u16>(&device, 300, crate::StaticFunction::builder().arity(arity).form(form), 16);
            is_that_of_the_host::<u32>(&device, 300, crate::StaticFunction::builder().arity(arity).form(form), 5);
        });
        let n = sized(&device, 13_500, 13_500, 1_000_000);
        is_that_of_the_host::<u8>(&device, n, crate::StaticFunction::builder().for_build(), 3);
    }
}

#[test]
fn repeated_keys_need_equal_values() {
    for device in devices(42) {
        each_form(|arity, form| {
            let builder = crate::StaticFunction::<u32>::builder().arity(arity).form(form).filtered(4).value_bits(30);
            let (keys, values) = pairs::<u32>(200, 30);
            let mut twice = ([&keys[..], &keys[..50]].concat(), [&values[..], &values[..50]].concat());
            let built = builder.on(&device).build_from(&twice.0, &twice.1).unwrap();
            assert!(built.to_host().unwrap() == builder.build_from(&keys, &values).unwrap());
            twice.1[220] ^= 1;
            let refused = builder.on(&device).build_from(&twice.0, &twice.1).unwrap_err();
            assert!(matches!(refused, Error::TwoValues { first, second } if first ^ second == 1), "{refused}");
            twice.1[220] = 1 << 30;
            let refused = builder.on(&device).build_from(&twice.0, &twice.1).unwrap_err();
            assert!(matches!(refused, Error::WideValue { value: 0x4000_0000, bits: 30 }), "{refused}");
        });
    }
}

#[test]
fn keys_of_every_kind() {
    for device in devices(43) {
        let builder = crate::StaticFunction::<u16>::builder().filtered(16);
        let values: Vec<u16> = (0..300).collect();
        let words: Vec<String> = (0..300).map(|i| format!("word {i}")).collect();
        let host = builder.build_from(&words, &values).unwrap();
        assert!(builder.on(&device).build_from(&words, &values).unwrap().to_host().unwrap() == host);
        let (strings, there) = (StringVec::from_slice(&device, &words).unwrap(), device.from_slice(&values).unwrap());
        let built = builder.on(&device).build_from_device(strings.as_strings(), there.as_slice()).unwrap();
        assert!(built.to_host().unwrap() == host);
        assert_eq!(built.get_bulk(&["word 7", "words"]).unwrap(), host.get_bulk(&["word 7", "words"]));
        let signed: Vec<i32> = (-150..150).collect();
        let built = builder.on(&device).build_from(&signed, &values).unwrap();
        assert!(built.to_host().unwrap() == builder.build_from(&signed, &values).unwrap());
    }
}

#[test]
fn memory_of_another_device_and_short_slices_are_refused() {
    let (here, there) = (Device::emulator(Default::default()), Device::emulator(Default::default()));
    let builder = crate::StaticFunction::<u8>::builder();
    let function = builder.on(&here).build_from(&[1u64, 2], &[3, 4]).unwrap();
    let (keys, theirs) = (here.from_slice(&[1u64, 2]).unwrap(), there.from_slice(&[3u8, 4]).unwrap());
    let built = builder.on(&here).build_from_device(keys.as_slice(), theirs.as_slice());
    assert!(matches!(built, Err(Error::Gpu(GpuError::OtherDevice { .. }))));
    let (mut values, mut found) = (here.alloc_zeroed::<u8>(1).unwrap(), there.alloc_zeroed::<u64>(1).unwrap());
    let short = function.get_device(keys.as_slice(), values.as_mut_slice(), found.as_mut_slice());
    assert!(matches!(short, Err(Error::LengthMismatch(_))));
    let mut values = here.alloc_zeroed::<u8>(2).unwrap();
    let other = function.get_device(keys.as_slice(), values.as_mut_slice(), found.as_mut_slice());
    assert!(matches!(other, Err(Error::Gpu(GpuError::OtherDevice { .. }))));
    assert!(matches!(builder.on(&here).build_from(&[1u64], &[]), Err(Error::LengthMismatch(_))));
    let short = builder.on(&here).build_from_device(keys.as_slice(), values.slice(..1));
    assert!(matches!(short, Err(Error::LengthMismatch(_))));
}

#[test]
fn memory_runs_out_at_each_allocation() {
    for device in devices(44) {
        // With equal keys, a shard tries all of its seeds, which takes long on the emulator.
        let builder = crate::StaticFunction::<u64>::builder().value_bits(40).form(Form::OneGraph);
        let (mut keys, mut values) = pairs::<u64>(40, 40);
        keys.push(keys[0]);
        values.push(values[0]);
        let host = builder.build_from(&keys, &values).unwrap();
        let steps = fail_each(
            &mut (),
            |()| builder.on(&device).build_from(&keys, &values),
            |(), built: Result<StaticFunction<u64>, Error>| match built {
                Ok(built) => assert!(built.to_host().unwrap() == host),
                Err(Error::Gpu(_)) => {}
                Err(other) => panic!("{other}"),
            },
        );
        assert!(steps > 10, "{steps}");
        let function = host.to_device(&device).unwrap();
        fail_each(
            &mut (),
            |()| function.get_bulk(&keys),
            |(), found: Result<Vec<Option<u64>>, Error>| {
                assert!(
                    found.map_or_else(|error| matches!(error, Error::Gpu(_)), |found| found == host.get_bulk(&keys))
                );
            },
        );
    }
}

//! Functions built on devices are those of the host, word for word.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use warpset_base::filter::Filter;
use warpset_base::key::{Hash128, Key};
use warpset_core::hash::mix;
use warpset_gpu::batch::StringVec;
use warpset_gpu::testing::{devices, fail_each, sized};
use warpset_gpu::{Backend, Device, Devices, GpuError};

use super::DeviceHashKind;
use super::builder::{build_from_slice, build_there_or_here};
use super::plan::{Plan, plan};
use super::source::{HostKeys, KeysOnDevice};
use super::test_kinds::TestKind;
use crate::kind_tests::for_each_kind;
use crate::{Builder, Error, Kind, PerfectHash, Progress, RecSplit, RecSplitKind, Stage};

for_each_kind! {
    words_are_those_of_the_host
    ranges_of_buckets_give_the_same_words
    duplicates_are_named
    colliding_hashes_lead_to_another_seed
    hashes_against_us_give_the_same_words
    a_failure_is_an_error_and_nothing_else
    filters_are_those_of_the_host
    a_backend_builds_where_that_pays
    the_host_builds_where_a_device_fails
    lists_that_do_not_fit_lead_to_another_seed
}

fn keys(n: usize) -> Vec<u64> {
    (0..n as u64).map(|i| mix(i, 77)).collect()
}

/// Checks that builds from host keys, from device keys, and on the host are equal.
fn is_the_hosts<M: DeviceHashKind>(device: &Device, builder: &Builder<M>, n: usize) {
    let keys = keys(n);
    let expected = builder.build_from(&keys).unwrap();
    let of_host_keys = builder.on(device).build_from(&keys).unwrap();
    assert_eq!((of_host_keys.len(), of_host_keys.values()), (expected.len(), expected.values()));
    assert!(of_host_keys.to_host().unwrap() == expected, "{builder:?} {n}");
    let there = device.from_slice(&keys).unwrap();
    let of_device_keys = builder.on(device).build_from_device(there.as_slice()).unwrap();
    assert!(of_device_keys.to_host().unwrap() == expected, "{builder:?} {n}");
}

fn words_are_those_of_the_host<M: TestKind>() {
    for device in devices(1) {
        let most = sized(&device, 700, 20_000, 1_000_000);
        for (builder, share) in M::shapes() {
            for n in [0, 1, 2, 3, 9, (most as f64 * share) as usize] {
                is_the_hosts(&device, &builder, n);
            }
        }
        if !device.is_emulator() {
            M::large_shapes().iter().for_each(|builder| is_the_hosts(&device, builder, most));
        }
    }
}

/// Checks keys of every type under one kind of function; the build from their hashes does not depend on the kind.
#[test]
fn every_kind_of_key() {
    let builder = RecSplitKind::small(20).seed(3);
    for device in devices(2) {
        fn from_host<K: Key>(device: &Device, builder: &Builder, keys: &[K]) -> RecSplit {
            let expected = builder.build_from(keys).unwrap();
            assert!(builder.on(device).build_from(keys).unwrap().to_host().unwrap() == expected);
            expected
        }
        let words = keys(500);
        let narrow: Vec<i32> = (-200..200).collect();
        let strings: Vec<String> = (0..500).map(|i| format!("key {i}").repeat(i % 40)).collect();
        let strings: Vec<String> = strings.into_iter().enumerate().map(|(i, text)| format!("{i}{text}")).collect();
        let ready: Vec<Hash128> = words.iter().map(|&low| Hash128 { high: mix(low, 1), low }).collect();
        let halves: Vec<[u64; 2]> = ready.iter().map(|hash| [hash.high, hash.low]).collect();
        from_host(&device, &builder, &(0..300).collect::<Vec<u16>>());
        from_host(&device, &builder, &words.iter().map(|&x| u128::from(x) << 50).collect::<Vec<_>>());

        let on_device = builder.on(&device);
        let there = device.from_slice(&narrow).unwrap();
        let of_integers = on_device.build_from_device(there.as_slice()).unwrap();
        assert!(of_integers.to_host().unwrap() == from_host(&device, &builder, &narrow));
        let there = device.from_slice(&halves).unwrap();
        let of_hashes = on_device.build_from_device(there.as_slice()).unwrap();
        assert!(of_hashes.to_host().unwrap() == from_host(&device, &builder, &ready));
        let there = StringVec::from_slice(&device, &strings).unwrap();
        let of_strings = on_device.build_from_device(there.as_strings()).unwrap();
        assert!(of_strings.to_host().unwrap() == from_host(&device, &builder, &strings));
    }
}

fn ranges_of_buckets_give_the_same_words<M: TestKind>() {
    let keys = keys(10_000);
    let builder = M::small(40);
    let expected = builder.build_from(&keys).unwrap();
    // Other tests share the CUDA device, so its memory is not limited here; ranges there are tested by their plan.
    for device in devices(3).into_iter().filter(Device::is_emulator) {
        let there = device.from_slice(&keys).unwrap();
        let used = keys.len() * 8;
        let report = Arc::new(Mutex::new(Vec::<Progress>::new()));
        let seen = report.clone();
        let builder = &builder.clone().progress(move |progress| seen.lock().unwrap().push(progress));
        let devices = Devices::from(&device);
        let buckets = builder.settings().unwrap().buckets(keys.len() as u64);
        for (more, ranges) in [(1 << 24, 1..2), (300_000, 2..3), (200_000, 3..99)] {
            device.set_memory_limit(used + more);
            let plan = plan(&KeysOnDevice(there.as_slice()), buckets, &devices).unwrap();
            assert!(ranges.contains(&plan.ranges) && !plan.are_kept, "{more}: {plan:?}");
            report.lock().unwrap().clear();
            let of_device_keys = builder.on(&device).build_from_device(there.as_slice()).unwrap();
            let steps: Vec<_> = report.lock().unwrap().drain(..).filter(|step| step.stage == Stage::Building).collect();
            assert!(of_device_keys.to_host().unwrap() == expected, "{more}");
            assert_eq!(steps.last().map(|step| (step.keys_done, step.keys)), Some((10_000, 10_000)));
        }
        // Memory for the pairs of all keys, and for sorting half of them: the keys cross the bus once.
        device.set_memory_limit(used + 480_000);
        let plan = plan(&HostKeys(&keys), buckets, &devices).unwrap();
        assert_eq!(plan, Plan { ranges: 2, are_kept: true });
        report.lock().unwrap().clear();
        let of_host_keys = builder.on(&device).build_from(&keys).unwrap();
        let steps: Vec<_> = report.lock().unwrap().drain(..).map(|step| (step.stage, step.keys_done)).collect();
        assert!(of_host_keys.to_host().unwrap() == expected);
        assert_eq!(steps.iter().filter(|step| step.0 == Stage::Hashing).count(), 1, "{steps:?}");
        device.set_memory_limit(used + 20_000);
        let error = builder.on(&device).build_from_device(there.as_slice()).unwrap_err();
        assert!(matches!(&error, Error::Gpu(GpuError::OutOfMemory { .. })), "{error}");
        device.set_memory_limit(usize::MAX);
        let of_host_keys = builder.on(&device).build_from(&keys).unwrap();
        assert!(of_host_keys.to_host().unwrap() == expected);
        assert!(report.lock().unwrap().iter().any(|step| step.stage == Stage::Hashing && step.keys_done == 10_000));
    }
}

fn duplicates_are_named<M: TestKind>() {
    let mut words = keys(1000);
    words[700] = words[20];
    let builder = M::small(50);
    let names_both = |error: Error, text: &str| match error {
        Error::DuplicateKey { first, second, key } => assert_eq!((first, second, key.as_str()), (20, 700, text)),
        other => panic!("{other}"),
    };
    let texts: Vec<String> = words.iter().map(|word| format!("key {word}")).collect();
    for device in devices(4) {
        let on_device = builder.on(&device);
        names_both(on_device.build_from(&words).unwrap_err(), &words[20].to_string());
        let there = device.from_slice(&words).unwrap();
        names_both(on_device.build_from_device(there.as_slice()).unwrap_err(), &words[20].to_string());
        let there = StringVec::from_slice(&device, &texts).unwrap();
        names_both(on_device.build_from_device(there.as_strings()).unwrap_err(), &format!("{:?}", texts[20]));
        let equal = vec![5u64; 3000];
        let there = device.from_slice(&equal).unwrap();
        let error = on_device.build_from_device(there.as_slice()).unwrap_err();
        assert!(matches!(error, Error::DuplicateKey { .. }), "{error}");
    }
}

fn colliding_hashes_lead_to_another_seed<M: TestKind>() {
    // Seed 0 leaves hashes unchanged: two of them collide, though the keys differ.
    let mut ready: Vec<Hash128> = keys(500).into_iter().map(|low| Hash128 { high: mix(low, 5), low }).collect();
    ready[9] = Hash128 { high: ready[300].high ^ 1, low: ready[300].low };
    let halves: Vec<[u64; 2]> = ready.iter().map(|hash| [hash.high, hash.low]).collect();
    let builder = M::small(50);
    let expected = builder.build_from(&ready).unwrap();
    assert_ne!(expected.seed(), 0);
    for device in devices(5) {
        let there = device.from_slice(&halves).unwrap();
        let function = builder.on(&device).build_from_device(there.as_slice()).unwrap();
        assert!(function.to_host().unwrap() == expected);
        assert!(builder.on(&device).build_from(&ready).unwrap().to_host().unwrap() == expected);
        // All in one bucket, whatever the seed.
        let uneven = vec![Hash128 { high: 0, low: 0 }; 2];
        assert!(matches!(builder.on(&device).build_from(&uneven).unwrap_err(), Error::DuplicateKey { .. }));
    }
}

fn hashes_against_us_give_the_same_words<M: TestKind>() {
    type Low = fn(u64) -> u64;
    let cases: [Low; 4] =
        [|i| i, |i| i << 32, |i| i / 2 % 100 + ((i % 2) << 32) + ((i / 200) << 33), |i| mix(i / 3, 8)];
    let mut inputs = cases
        .map(|low| (0..400).map(|i| Hash128 { high: mix(i, 9) + i % 3, low: low(i) }).collect::<Vec<_>>())
        .to_vec();
    // All keys are in one bucket, larger than the limit.
    inputs.push((0..400).map(|i| Hash128 { high: 1, low: mix(i, 9) }).collect());
    for (ready, bucket_size) in inputs.iter().zip([40, 100].into_iter().cycle()) {
        let builder = M::small(bucket_size);
        let expected = builder.build_from(ready).unwrap();
        for device in devices(12) {
            assert!(builder.on(&device).build_from(ready).unwrap().to_host().unwrap() == expected);
        }
    }
}

fn a_failure_is_an_error_and_nothing_else<M: TestKind>() {
    let words = keys(100);
    let builder = M::small(50);
    let expected = builder.build_from(&words).unwrap();
    for device in devices(6) {
        let there = device.from_slice(&words).unwrap();
        let from_device = |_: &mut ()| builder.on(&device).build_from_device(there.as_slice());
        let from_host = |_: &mut ()| builder.on(&device).build_from(&words);
        let check = |_: &mut (), built: Result<super::PerfectHash<M>, Error>| match built {
            Ok(function) => assert!(function.to_host().unwrap() == expected),
            Err(error) => assert!(matches!(error, Error::Gpu(_)), "{error}"),
        };
        assert!(fail_each(&mut (), from_device, check) > 10);
        assert!(fail_each(&mut (), from_host, check) > 10);
    }
}

#[test]
fn keys_of_another_device_are_refused() {
    let (here, there) = (Device::emulator(Default::default()), Device::emulator(Default::default()));
    let foreign = there.from_slice(&keys(10)).unwrap();
    let error = RecSplit::builder().on(&here).build_from_device(foreign.as_slice()).unwrap_err();
    assert!(matches!(error, Error::Gpu(GpuError::OtherDevice { .. })), "{error}");
    let error = RecSplit::builder().leaf_size(1).on(&here).build_from(&[1u64]).unwrap_err();
    assert!(matches!(error, Error::InvalidShape { .. }), "{error}");
}

fn filters_are_those_of_the_host<M: TestKind>() {
    let ready = |n: usize| keys(n).into_iter().map(|low| [mix(low, 5), low]).collect::<Vec<_>>();
    for device in devices(7) {
        for (n, width) in [(0, 8), (1, 1), (300, 7), (700, 16), (200, 32), (150, 31)] {
            let builder = M::small_filter(50).width(width);
            let keys = keys(n);
            let expected = builder.build_from(&keys).unwrap();
            let from_host = builder.on(&device).build_from(&keys).unwrap();
            assert!(from_host.to_host().unwrap() == expected, "{n} {width}");
            let there = device.from_slice(&keys).unwrap();
            let from_device = builder.on(&device).build_from_device(there.as_slice()).unwrap();
            assert!(from_device.to_host().unwrap() == expected, "{n} {width}");
            assert_eq!(from_device.count_contained_bulk(&keys).unwrap(), n);

            let halves = ready(n);
            let hashes: Vec<Hash128> = halves.iter().map(|&[high, low]| Hash128 { high, low }).collect();
            let there = device.from_slice(&halves).unwrap();
            let of_hashes = builder.on(&device).build_from_device(there.as_slice()).unwrap();
            assert!(of_hashes.to_host().unwrap() == builder.build_from(&hashes).unwrap(), "{n} {width}");
        }
        let words = keys(100);
        let texts: Vec<String> = words.iter().map(|word| format!("{word} or so")).collect();
        let builder = M::small_filter(50).width(9);
        let expected = builder.build_from(&texts).unwrap();
        let there = StringVec::from_slice(&device, &texts).unwrap();
        assert!(builder.on(&device).build_from_device(there.as_strings()).unwrap().to_host().unwrap() == expected);
        assert!(builder.on(&device).build_from(&texts).unwrap().to_host().unwrap() == expected);

        let check = |_: &mut (), built: Result<super::StaticFilter<M>, Error>| match built {
            Ok(filter) => assert_eq!(filter.count_contained_bulk(&texts).unwrap(), texts.len()),
            Err(error) => assert!(matches!(error, Error::Gpu(_)), "{error}"),
        };
        assert!(fail_each(&mut (), |_| builder.on(&device).build_from(&texts), check) > 10);
        let too_wide = M::small_filter(50).width(33).on(&device).build_from(&[1u64]).unwrap_err();
        assert!(matches!(too_wide, Error::InvalidParameter { .. }), "{too_wide}");
    }
}

fn a_backend_builds_where_that_pays<M: TestKind>() {
    for device in devices(9) {
        let keys = keys(1000);
        let builder = M::small(40);
        let expected = builder.build_from(&keys).unwrap();
        // The host builds from few keys.
        let chosen = builder.backend(&Backend::Cuda(device.clone()));
        let loaded = device.loaded_kernels().len();
        assert!(chosen.build_from(&keys).unwrap() == expected);
        // Other tests load kernels on the same CUDA device.
        assert!(!device.is_emulator() || device.loaded_kernels().len() == loaded);
        let settings = builder.settings().unwrap();
        assert!(build_from_slice(&device, settings, &builder, &keys).unwrap() == expected);
    }
}

fn the_host_builds_where_a_device_fails<M: TestKind>() {
    let keys = keys(300);
    let builder = M::small(40);
    let (settings, expected) = (builder.settings().unwrap(), builder.build_from(&keys).unwrap());
    for device in devices(10) {
        let build = |_: &mut ()| build_there_or_here(&device, settings, &builder, &keys);
        let check = |_: &mut (), built: Result<PerfectHash<M>, Error>| assert!(built.unwrap() == expected);
        assert!(fail_each(&mut (), build, check) > 10);
        // An error of the keys or settings is no failure of the device.
        let twice = build_there_or_here(&device, settings, &builder, &[7u64, 7]).unwrap_err();
        assert!(matches!(twice, Error::DuplicateKey { .. }), "{twice}");
        let stopped = builder.clone().progress(|_| ControlFlow::Break(()));
        let stopped = build_there_or_here(&device, settings, &stopped, &keys).unwrap_err();
        assert!(matches!(stopped, Error::Interrupted { stage: Stage::Hashing, .. }), "{stopped}");
    }
}

/// Returns ready-made hashes that fall in the first quarter of the buckets, so that positions do not fit the jump
/// array's 16 bits.
pub(super) fn uneven_hashes(n: u64) -> Vec<Hash128> {
    (0..n).map(|i| Hash128 { high: mix(i, 6) / 4, low: mix(i, 7) }).collect()
}

fn lists_that_do_not_fit_lead_to_another_seed<M: TestKind>() {
    let ready = uneven_hashes(52_000);
    let builder = M::small(1);
    let expected = builder.build_from(&ready).unwrap();
    assert_ne!(expected.seed(), 0);
    // Lists are made by the code that all kinds share, and sorting them takes the emulator seconds: one kind there.
    for device in devices(11).into_iter().filter(|device| M::KIND == Kind::RecSplit || !device.is_emulator()) {
        assert!(builder.on(&device).build_from(&ready).unwrap().to_host().unwrap() == expected);
    }
}

//! Functions that several devices build together are those of the host, word for word; and builds that are stopped.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use warpset_base::filter::Filter;
use warpset_base::key::Hash128;
use warpset_core::hash::mix;
use warpset_core::recsplit::Method;
use warpset_gpu::batch::StringVec;
use warpset_gpu::testing::{cuda, devices, fail_each, lists_of_devices, several_cuda};
use warpset_gpu::{Device, Devices, GpuError, Stream};

use super::DeviceHashKind;
use super::build_tests::uneven_hashes;
use super::device_build::SeedAttempt;
use super::plan::Plan;
use super::source::{HostKeys, KeysOnDevice};
use super::test_kinds::TestKind;
use crate::kind_tests::for_each_kind;
use crate::{Builder, Error, RecSplit};

for_each_kind! {
    words_are_those_of_the_host
    ranges_and_shares_give_the_same_words
    filters_are_those_of_the_host
    keys_that_cannot_be_built_from
    a_failure_is_an_error_and_nothing_else
    a_callback_stops_a_build
}

fn keys(n: usize) -> Vec<u64> {
    (0..n as u64).map(|i| mix(i, 78)).collect()
}

/// Checks that builds from host keys, from keys on each of the devices, and on the host are equal.
fn are_the_hosts<M: DeviceHashKind>(devices: &Devices, builder: &Builder<M>, n: usize) {
    let keys = keys(n);
    let expected = builder.build_from(&keys).unwrap();
    let on_each = builder.on_each(devices);
    let of_host_keys = on_each.build_from(&keys).unwrap();
    assert_eq!(of_host_keys.device(), devices.first());
    assert!(of_host_keys.to_host().unwrap() == expected, "{builder:?} {n}");
    for home in [devices.first(), &devices.all()[devices.all().len() - 1]] {
        let there = home.from_slice(&keys).unwrap();
        let of_device_keys = on_each.build_from_device(there.as_slice()).unwrap();
        assert!(of_device_keys.to_host().unwrap() == expected, "{builder:?} {n} {home:?}");
    }
}

fn words_are_those_of_the_host<M: TestKind>() {
    for devices in lists_of_devices(21) {
        let most = if devices.first().is_emulator() { 120 } else { 1_000_000 };
        for (builder, share) in M::shapes() {
            are_the_hosts(&devices, &builder, (most as f64 * share) as usize);
        }
        // Fewer buckets than devices, and as many.
        for n in [0, 1, 11, 29] {
            are_the_hosts(&devices, &M::small(10), n);
        }
    }
}

fn ranges_and_shares_give_the_same_words<M: TestKind>() {
    let keys = keys(300);
    let builder = M::small(20);
    let (settings, expected) = (builder.settings().unwrap(), builder.build_from(&keys).unwrap());
    let reporter = builder.reporter();
    for devices in lists_of_devices(22).into_iter().chain(devices(22).iter().map(Devices::from)) {
        let streams: Vec<Stream> = devices.all().iter().map(|device| device.new_stream().unwrap()).collect();
        let there = devices.all()[devices.all().len() - 1].from_slice(&keys).unwrap();
        let plan = |ranges, are_kept| Plan { ranges, are_kept };
        for plan in [plan(1, true), plan(1, false), plan(3, true), plan(3, false)] {
            let on = (&devices, &streams[..]);
            let host_keys = HostKeys(&keys);
            let function =
                SeedAttempt::new(settings, Default::default(), &host_keys, on, plan, (&reporter, 0)).run().unwrap();
            assert!(function.to_host().unwrap() == expected, "{plan:?}");
            let device_keys = KeysOnDevice(there.as_slice());
            let function =
                SeedAttempt::new(settings, Default::default(), &device_keys, on, plan, (&reporter, 0)).run().unwrap();
            assert!(function.to_host().unwrap() == expected, "{plan:?}");
        }
    }
}

#[test]
fn plans_follow_from_the_memory_that_is_left() {
    let keys = keys(12_000);
    let builder = RecSplit::builder().leaf_size(3).bucket_size(40).method(Method::BruteForce);
    let buckets = builder.settings().unwrap().buckets(keys.len() as u64);
    let devices = Devices::new([1, 2].map(warpset_gpu::testing::deferred)).unwrap();
    let second = &devices.all()[1];
    let there = devices.first().from_slice(&keys).unwrap();
    for (bytes, ranges, are_kept) in [(1 << 24, 1, true), (470_000, 1, true), (450_000, 2, true)] {
        second.set_memory_limit(bytes);
        let plan = Plan { ranges, are_kept };
        assert_eq!(super::plan::plan(&HostKeys(&keys), buckets, &devices).unwrap(), plan, "{bytes}");
    }
    // Keys on the first device are kept there.
    let plan = super::plan::plan(&KeysOnDevice(there.as_slice()), buckets, &devices).unwrap();
    assert_eq!(plan, Plan { ranges: 1, are_kept: true });
    let expected = builder.build_from(&keys).unwrap();
    assert!(builder.on_each(&devices).build_from(&keys).unwrap().to_host().unwrap() == expected);
    second.set_memory_limit(20_000);
    let error = builder.on_each(&devices).build_from_device(there.as_slice()).unwrap_err();
    assert!(matches!(&error, Error::Gpu(GpuError::OutOfMemory { .. })), "{error}");
}

fn filters_are_those_of_the_host<M: TestKind>() {
    for devices in lists_of_devices(23) {
        for (n, width) in [(0, 8), (1, 3), (2, 9), (500, 7), (300, 32)] {
            let (builder, keys) = (M::small_filter(50).width(width), keys(n));
            let expected = builder.build_from(&keys).unwrap();
            assert!(builder.on_each(&devices).build_from(&keys).unwrap().to_host().unwrap() == expected, "{n} {width}");
            let home = &devices.all()[devices.all().len() - 1];
            let there = home.from_slice(&keys).unwrap();
            let of_device_keys = builder.on_each(&devices).build_from_device(there.as_slice()).unwrap();
            assert!(of_device_keys.to_host().unwrap() == expected, "{n} {width}");
        }
        let texts: Vec<String> = keys(200).iter().map(|word| format!("{word} or so")).collect();
        let builder = M::small_filter(50).width(9);
        let expected = builder.build_from(&texts).unwrap();
        let there = StringVec::from_slice(devices.first(), &texts).unwrap();
        let of_device_keys = builder.on_each(&devices).build_from_device(there.as_strings()).unwrap();
        assert!(of_device_keys.to_host().unwrap() == expected);
        assert!(builder.on_each(&devices).build_from(&texts).unwrap().to_host().unwrap() == expected);
    }
}

fn keys_that_cannot_be_built_from<M: TestKind>() {
    for devices in lists_of_devices(24) {
        let mut words = keys(1000);
        words[700] = words[20];
        let on_each = M::small(50).on_each(&devices);
        let there = devices.all()[1].from_slice(&words).unwrap();
        for error in [on_each.build_from(&words).unwrap_err(), on_each.build_from_device(there.as_slice()).unwrap_err()]
        {
            assert!(matches!(error, Error::DuplicateKey { first: 20, second: 700, .. }), "{error}");
        }
        let elsewhere = Device::emulator(Default::default()).from_slice(&words).unwrap();
        let error = on_each.build_from_device(elsewhere.as_slice()).unwrap_err();
        assert!(matches!(error, Error::Gpu(GpuError::OtherDevice { .. })), "{error}");
        // All in the first quarter of the buckets: some devices have none, and the words are the same nonetheless.
        let uneven: Vec<Hash128> = uneven_hashes(900);
        let builder = M::small(8);
        let expected = builder.build_from(&uneven).unwrap();
        assert_eq!(expected.seed(), 0);
        assert!(builder.on_each(&devices).build_from(&uneven).unwrap().to_host().unwrap() == expected);
    }
}

fn a_failure_is_an_error_and_nothing_else<M: TestKind>() {
    let words = keys(20);
    let builder = M::small(10);
    let expected = builder.build_from(&words).unwrap();
    let filters = M::small_filter(10).width(5);
    for devices in lists_of_devices(25).into_iter().filter(|devices| devices.all().len() == 2) {
        let free = || -> Vec<usize> { devices.all().iter().map(|device| device.memory_info().unwrap().free).collect() };
        let there = devices.all()[1].from_slice(&words).unwrap();
        let before = free();
        let from_device = |_: &mut ()| builder.on_each(&devices).build_from_device(there.as_slice());
        let filter = |_: &mut ()| filters.on_each(&devices).build_from(&words);
        let check = |_: &mut (), built: Result<super::PerfectHash<M>, Error>| match built {
            Ok(function) => assert!(function.to_host().unwrap() == expected),
            Err(error) => assert!(matches!(error, Error::Gpu(_)), "{error}"),
        };
        let check_filter = |_: &mut (), built: Result<super::StaticFilter<M>, Error>| match built {
            Ok(filter) => assert_eq!(filter.count_contained_bulk(&words).unwrap(), words.len()),
            Err(error) => assert!(matches!(error, Error::Gpu(_)), "{error}"),
        };
        assert!(fail_each(&mut (), from_device, check) > 50);
        assert!(fail_each(&mut (), filter, check_filter) > 50);
        if devices.first().is_emulator() {
            assert_eq!(free(), before, "all memory is free again");
        }
    }
}

/// Stops builds at each call of the callback, one after the other, until a build completes. Returns the number of
/// calls.
fn stop_each<M: TestKind, T>(settings: &Builder<M>, build: impl Fn(&Builder<M>) -> Result<T, Error>) -> usize {
    for stop_at in 0.. {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        let builder = settings.clone().progress(move |_| match counted.fetch_add(1, Ordering::Relaxed) {
            call if call == stop_at => ControlFlow::Break(()),
            call => {
                assert!(call < stop_at, "called again");
                ControlFlow::Continue(())
            }
        });
        match build(&builder) {
            Ok(_) => return stop_at,
            Err(Error::Interrupted { keys, keys_done, .. }) => assert!(keys == 0 || keys_done <= keys),
            Err(other) => panic!("{other}"),
        }
    }
    unreachable!("builds end")
}

fn a_callback_stops_a_build<M: TestKind>() {
    let words = keys(700);
    // One thread, as several may call at the same time.
    let builder = M::small(60).threads(1);
    assert!(stop_each(&builder, |builder| builder.build_from(&words)) >= 1);
    assert!(stop_each(&builder, |builder| builder.build_from_iter(|| &words)) >= 1);
    let source = || Ok(words.iter().map(Ok));
    assert!(stop_each(&builder, |builder| builder.external().build_from(source)) >= 2);
    for device in devices(26) {
        let there = device.from_slice(&words).unwrap();
        let before = device.memory_info().unwrap().free;
        assert!(stop_each(&builder, |builder| builder.on(&device).build_from(&words)) >= M::CALLS);
        assert!(stop_each(&builder, |builder| builder.on(&device).build_from_device(there.as_slice())) >= M::CALLS);
        if device.is_emulator() {
            assert_eq!(device.memory_info().unwrap().free, before, "all memory is free again");
        }
    }
    for devices in lists_of_devices(27) {
        // Threads call at the same time; after one was told to stop, all are.
        let stopped = builder.clone().progress(|progress| {
            if progress.keys_done > 100 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let error = stopped.on_each(&devices).build_from(&words).unwrap_err();
        assert!(matches!(error, Error::Interrupted { .. }), "{error}");
        assert_eq!(builder.on_each(&devices).build_from(&words).unwrap().len(), 700);
    }
}

#[test]
#[ignore = "10^8 keys on CUDA devices: run it by name on a machine that has them"]
fn large_builds_of_recsplit_are_those_of_the_host() {
    large_builds::<crate::RecSplitKind>();
}

#[test]
#[ignore = "10^8 keys on CUDA devices: run it by name on a machine that has them"]
fn large_builds_of_consensus_are_those_of_the_host() {
    large_builds::<crate::ConsensusKind>();
}

/// Builds from 10^8 keys: a minute of all cores, 10 GiB of memory.
fn large_builds<M: TestKind>() {
    let Some(device) = cuda() else { return };
    let keys = keys(100_000_000);
    let there = device.from_slice(&keys).unwrap();
    let lists = [Devices::from(&device), several_cuda().unwrap()];
    for builder in M::usual_shapes() {
        let expected = builder.build_from(&keys).unwrap();
        for devices in &lists {
            let on_each = builder.on_each(devices);
            assert!(on_each.build_from_device(there.as_slice()).unwrap().to_host().unwrap() == expected);
            assert!(on_each.build_from(&keys).unwrap().to_host().unwrap() == expected);
        }
        // In ranges, with what the keys leave.
        device.set_memory_limit(keys.len() * 8 + (1 << 30));
        for devices in &lists {
            let on_each = builder.on_each(devices);
            assert!(on_each.build_from_device(there.as_slice()).unwrap().to_host().unwrap() == expected);
        }
        device.set_memory_limit(usize::MAX);
    }
}

//! Emulated devices whose streams run late: each missing order is a fault that names both sides, and each order that a
//! program makes is enough.

use warpset_gpu::emulator::{AccessKind, FaultKind, POISON, Unordered};
use warpset_gpu::{Device, GpuError, LaunchConfig, Result, Stream, testing};

use crate::{runtime_kernels as kernels, suite};

const SEEDS: std::ops::Range<u64> = 0..8;
const LEN: usize = 300;

fn add(stream: &Stream, from: &warpset_gpu::DeviceVec<u32>, to: &mut warpset_gpu::DeviceVec<u32>) -> Result<()> {
    let kernel = kernels::add { from: from.global(), to: to.global_mut(), n: from.len(), amount: 1 };
    // SAFETY: both have `n` words. Tests that break the rest of the contract do so on the emulator, which reports it.
    unsafe { kernel.launch(stream, LaunchConfig::new(2, 64)) }
}

/// Returns the pair of operations that the fault of `result` names.
fn unordered<T>(result: Result<T>) -> (&'static str, Unordered) {
    match result.map(drop) {
        Err(GpuError::Emulator(fault)) => match fault.kind {
            FaultKind::Unordered(pair) => (fault.kernel, *pair),
            kind => panic!("{kind}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_suite_passes() -> Result<()> {
    SEEDS.map(testing::deferred).try_for_each(|device| {
        suite::memory(&device)?;
        suite::kernels(&device)
    })
}

#[test]
fn nothing_runs_before_it_is_waited_for() -> Result<()> {
    for device in SEEDS.map(testing::deferred) {
        let stream = device.new_stream()?;
        let mut words = stream.alloc_zeroed::<u32>(LEN)?;
        let event = device.new_event()?;
        let mut early = vec![0u32; LEN];
        stream.fill_words(&mut words, 7)?;
        // SAFETY: `early` stays until the stream has been waited for; it is read before on purpose.
        unsafe { stream.download_async(&words, &mut early)? };
        event.record(&stream)?;
        assert!(early.iter().all(|word| word.to_ne_bytes() == [POISON; 4]));
        assert!((0..100).any(|_| event.is_done().unwrap()));
        assert_eq!(early, [7; LEN]);
    }
    Ok(())
}

#[test]
fn streams_that_do_not_wait_are_found() -> Result<()> {
    for device in SEEDS.map(testing::deferred) {
        let (first, second) = (device.new_stream()?, device.new_stream()?);
        let (from, mut to) = (device.from_slice(&[1; LEN])?, device.alloc_zeroed::<u32>(LEN)?);
        add(&first, &from, &mut to)?;
        second.fill_words(&mut to, 5)?;
        let (mine, pair) = unordered(device.synchronize());
        let mut names = [mine, pair.other];
        names.sort_unstable();
        assert_eq!(names, ["a fill", "add"]);
        assert_eq!((pair.mine, pair.theirs), (AccessKind::Write, AccessKind::Write));
        // The fault stays, like that of a broken context.
        unordered(first.synchronize());
        unordered(second.fill_words(&mut to, 5));
    }
    Ok(())
}

#[test]
fn memory_of_a_stream_is_there_for_others() -> Result<()> {
    for device in SEEDS.map(testing::deferred) {
        let (first, second) = (device.new_stream()?, device.new_stream()?);
        let mut words = first.alloc_zeroed::<u32>(LEN)?;
        second.fill_words(&mut words, 7)?;
        device.synchronize()?;
        assert_eq!(words.to_vec()?, [7; LEN]);
    }
    Ok(())
}

/// A way to order the second stream behind the first.
type Way = fn(&Device, &Stream, &Stream) -> Result<()>;

#[test]
fn each_kind_of_order_is_enough() -> Result<()> {
    let ways: [Way; 6] = [
        |_, first, second| second.wait_for(first),
        |device, first, second| {
            let event = device.new_event()?;
            event.record(first)?;
            second.wait(&event)
        },
        |_, first, _| first.synchronize(),
        |device, _, _| device.synchronize(),
        |device, first, _| {
            let event = device.new_event()?;
            event.record(first)?;
            event.synchronize()
        },
        |_, first, _| {
            while !first.is_idle()? {}
            Ok(())
        },
    ];
    for device in SEEDS.map(testing::deferred) {
        let (from, mut to) = (device.from_slice(&[1; LEN])?, device.alloc_zeroed::<u32>(LEN)?);
        for way in ways {
            let (first, second) = (device.new_stream()?, device.new_stream()?);
            add(&first, &from, &mut to)?;
            way(&device, &first, &second)?;
            second.fill_words(&mut to, 5)?;
            second.synchronize()?;
            assert_eq!(to.to_vec()?, [5; LEN]);
        }
    }
    Ok(())
}

#[test]
fn reads_of_several_streams_need_no_order() -> Result<()> {
    for device in SEEDS.map(testing::deferred) {
        let from = device.from_slice(&[1; LEN])?;
        let streams = [device.new_stream()?, device.new_stream()?, device.new_stream()?];
        let mut sums: Vec<_> = streams.iter().map(|stream| stream.alloc_uninit::<u32>(LEN)).collect::<Result<_>>()?;
        streams.iter().zip(&mut sums).try_for_each(|(stream, to)| add(stream, &from, to))?;
        device.synchronize()?;
        assert!(sums.iter().all(|sum| sum.to_vec().unwrap() == [2; LEN]));
    }
    Ok(())
}

#[test]
fn memory_that_goes_too_early_is_found() -> Result<()> {
    for device in SEEDS.map(testing::deferred) {
        let (home, other) = (device.new_stream()?, device.new_stream()?);
        let from = home.from_slice(&[1; LEN])?;
        let mut to = device.alloc_zeroed::<u32>(LEN)?;
        // A launch on another stream is not seen by the vector, which is freed in the order of its own.
        add(&other, &from, &mut to)?;
        drop(from);
        // Its place is taken at once.
        let next = home.alloc_uninit::<u32>(LEN)?;
        let (mine, pair) = unordered(other.synchronize());
        assert_eq!((mine, pair.mine), ("add", AccessKind::Read));
        assert!(["a free", "an allocation"].contains(&pair.other), "{pair}");
        drop(next);
    }
    Ok(())
}

#[test]
fn memory_that_a_copy_of_another_stream_uses_goes_after_it() -> Result<()> {
    for device in SEEDS.map(testing::deferred) {
        let (home, other) = (device.new_stream()?, device.new_stream()?);
        let mut to = device.alloc_uninit::<u32>(LEN)?;
        let from = home.from_slice(&[3; LEN])?;
        other.copy(&mut to, &from)?;
        drop(from);
        drop(home.alloc_zeroed::<u32>(LEN)?);
        assert_eq!(to.to_vec()?, [3; LEN]);
    }
    Ok(())
}

#[test]
fn use_before_the_allocation_is_found() -> Result<()> {
    for device in SEEDS.map(testing::deferred) {
        let (home, other) = (device.new_stream()?, device.new_stream()?);
        let mut busy = device.alloc_zeroed::<u32>(LEN)?;
        home.fill_words(&mut busy, 1)?;
        let (from, mut to) = (device.from_slice(&[1; LEN])?, home.alloc_uninit::<u32>(LEN)?);
        add(&other, &from, &mut to)?;
        let (mine, pair) = unordered(device.synchronize());
        assert!([mine, pair.other].contains(&"an allocation") && [mine, pair.other].contains(&"add"), "{mine} {pair}");
    }
    Ok(())
}

#[test]
fn host_memory_that_changes_under_a_copy_arrives_changed() -> Result<()> {
    for device in SEEDS.map(testing::deferred) {
        let stream = device.new_stream()?;
        let mut words = device.alloc_zeroed::<u32>(LEN)?;
        let mut from = device.pinned::<u32>(LEN)?;
        from.fill(1);
        // SAFETY: the memory stays allocated; that it changes too early is what this test shows.
        unsafe { stream.upload_async(&mut words, &from)? };
        from.fill(2);
        stream.synchronize()?;
        assert_eq!(words.to_vec()?, [2; LEN]);
    }
    Ok(())
}

#[test]
fn devices_wait_for_each_other() -> Result<()> {
    for seed in SEEDS {
        let (here, there) = (testing::deferred(seed), testing::deferred(seed + 100));
        let (stream, far) = (here.new_stream()?, there.new_stream()?);
        let mut source = far.alloc_uninit::<u32>(LEN)?;
        far.fill_words(&mut source, 9)?;
        stream.wait_for(&far)?;
        let mut words = stream.alloc_uninit::<u32>(LEN)?;
        stream.copy(&mut words, &source)?;
        drop(source);
        drop(far.alloc_zeroed::<u32>(LEN)?);
        stream.synchronize()?;
        assert_eq!(words.to_vec()?, [9; LEN]);
    }
    Ok(())
}

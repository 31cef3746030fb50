//! Several threads that update dictionaries of their own on one device, while its streams run late.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

use warpset_core::hash::mix;
use warpset_gpu::{Device, GpuError, emulator::FaultKind, testing};

use crate::{Error, Lsm, Sum};

/// Longest delay before a launch on a CUDA device, in microseconds: long compared with a merge of short levels.
const DELAY: u32 = 100;

/// Keys of a batch: few enough for the short insertions of test builds; two batches are more than a level holds.
const BATCH: usize = 40;

thread_local! {
    static FREES_EARLY: Cell<bool> = const { Cell::new(false) };
}

/// Drops replaced memory of a short insertion before its merge has finished, if a test plants that fault.
pub(in crate::gpu) fn planted<T>(replaced: T) -> Option<T> {
    (!FREES_EARLY.get()).then_some(replaced)
}

/// Updates a dictionary on the device and one on the host by short batches. Returns whether the contents are equal.
fn updates_agree(device: &Device, seed: u64, updates: usize) -> Result<bool, Error> {
    let builder = Lsm::<u64, u64>::builder().batch_size(64);
    let (mut host, mut there) = (builder.clone().build()?, builder.on(device).build()?);
    let keys: Vec<u64> = (0..(BATCH * updates) as u64).map(|i| mix(i, seed) % 10_000).collect();
    for (i, batch) in keys.chunks(BATCH).enumerate() {
        if i % 3 == 0 {
            host.upsert_bulk::<Sum<u64>>(batch, batch)?;
            there.upsert_bulk::<Sum<u64>>(batch, batch)?;
        } else {
            host.insert_bulk(batch, batch)?;
            there.insert_bulk(batch, batch)?;
        }
    }
    Ok(there.to_host()? == host)
}

/// Allocates memory of the sizes of levels, overwrites it and frees it, repeatedly: only memory that others have freed.
fn scribble(device: &Device, end: &AtomicBool) {
    while !end.load(Ordering::Relaxed) {
        let stream = device.new_stream().unwrap();
        let memory: Vec<_> = (1..=48).map(|i| stream.alloc_uninit::<u8>(i * 1024).unwrap()).collect();
        for mut part in memory {
            stream.fill_bytes(&mut part, 0xab).unwrap();
        }
        stream.synchronize().unwrap();
    }
}

/// Updates dictionaries on several threads, while launches are late and other threads allocate freed memory. Returns
/// the number of dictionaries with wrong contents.
fn wrong_dictionaries(device: &Device, threads: u64, updates: usize, frees_early: bool) -> usize {
    let _delay = testing::delay_launches(DELAY);
    let end = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..threads / 4 {
            scope.spawn(|| scribble(device, &end));
        }
        let work = |seed| {
            FREES_EARLY.set(frees_early);
            !updates_agree(device, seed, updates).unwrap()
        };
        let running: Vec<_> = (0..threads).map(|seed| scope.spawn(move || work(seed))).collect();
        let wrong = running.into_iter().map(|thread| thread.join()).filter(|wrong| !matches!(wrong, Ok(false))).count();
        end.store(true, Ordering::Relaxed);
        wrong
    })
}

#[test]
fn threads_with_short_batches_do_not_disturb_each_other() {
    for device in testing::devices(61) {
        let (threads, updates) = if device.is_emulator() { (2, 9) } else { (8, 70) };
        assert_eq!(wrong_dictionaries(&device, threads, updates, false), 0);
    }
}

#[test]
fn an_early_free_is_found_by_the_deferred_emulator() {
    for seed in 0..4 {
        FREES_EARLY.set(true);
        let found = updates_agree(&testing::deferred(seed), seed, 9);
        FREES_EARLY.set(false);
        let Err(Error::Gpu(GpuError::Emulator(fault))) = found else { panic!("{found:?}") };
        assert!(matches!(&fault.kind, FaultKind::Unordered(pair) if pair.other == "a free"), "{fault}");
    }
}

#[test]
#[ignore = "corrupts the memory of a CUDA device: shows that delayed launches find the fault"]
fn an_early_free_is_found_by_delayed_launches() {
    let device = testing::cuda().expect("a CUDA device");
    let wrong = wrong_dictionaries(&device, 8, 1000, true);
    println!("{wrong} of 8 dictionaries are wrong");
    assert!(wrong > 0);
}

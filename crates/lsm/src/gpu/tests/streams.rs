//! Several threads that update dictionaries of their own on one device, while its streams run late.

use std::cell::Cell;

use warpset_core::hash::mix;
use warpset_gpu::{Device, GpuError, emulator::FaultKind, testing};

use crate::{Error, Lsm, Sum};

/// Longest delay before a launch on a CUDA device, in microseconds: long beside a merge of short levels.
const DELAY: u32 = 100;

/// Keys of a batch: few enough for the short insertions of test builds, and two are more than a level holds.
const BATCH: usize = 40;

thread_local! {
    static FREES_EARLY: Cell<bool> = const { Cell::new(false) };
}

/// Drops what a short insertion replaces before its merge has been waited for, where a test wants that fault back.
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

#[test]
fn threads_with_short_batches_do_not_disturb_each_other() {
    for device in testing::devices(61) {
        let _delay = testing::delay_launches(DELAY);
        let (threads, updates) = if device.is_emulator() { (2, 9) } else { (8, 70) };
        std::thread::scope(|scope| {
            let work = |seed| updates_agree(&device, seed, updates);
            let running: Vec<_> = (0..threads).map(|seed| scope.spawn(move || work(seed))).collect();
            running.into_iter().for_each(|thread| assert!(thread.join().unwrap().unwrap()));
        });
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
    let _delay = testing::delay_launches(DELAY);
    let wrong = std::thread::scope(|scope| {
        let work = |seed| {
            FREES_EARLY.set(true);
            updates_agree(&device, seed, 70)
        };
        let running: Vec<_> = (0..8).map(|seed| scope.spawn(move || work(seed))).collect();
        running.into_iter().filter_map(|thread| thread.join().unwrap().ok()).filter(|equal| !equal).count()
    });
    println!("{wrong} of 8 dictionaries are wrong");
    assert!(wrong > 0);
}

//! Kernels that do not end, are launched wrongly, or panic.

use warpset_simt::emulator::{Config, Emulator, FaultKind};
use warpset_simt::{Dim3, Global, GlobalMut, LaunchConfig, atomic, kernel, thread};

use crate::{always, never};

kernel! {
    /// Lets thread 0 wait until the word is 1; thread 1 sets it only if `kind`.
    pub unsafe fn wait_for_flag(word: GlobalMut<u32>, kind: u32) {
        // SAFETY: the word is there, and only accessed atomically.
        unsafe {
            if thread::thread_idx_x() == 0 {
                while atomic::load_relaxed(word) == 0 {
                    thread::spin_hint();
                }
            } else if kind == 1 {
                atomic::store_relaxed(word, 1);
            }
        }
    }
}

#[test]
fn deadlock() {
    let launch = |kind| {
        move |e: &Emulator| {
            let word = e.buffer_from(&[0u32]);
            // SAFETY: the word is there.
            unsafe { wait_for_flag { word: word.global_mut(), kind }.launch(e, LaunchConfig::new(1, 2)) }
        }
    };
    let fault = always(launch(0), |kind| matches!(kind, FaultKind::Deadlock { waiting: 1, .. }));
    assert_eq!(fault.thread, Some(Dim3::new(0, 0, 0)));
    never(launch(1));
}

kernel! {
    /// Lets two threads undo each other's work for ever, or for `rounds`.
    pub unsafe fn undo_each_other(word: GlobalMut<u32>, rounds: u32) {
        // SAFETY: the word is there, and only accessed atomically.
        unsafe {
            let mut round = 0;
            while round < rounds {
                atomic::store_relaxed(word, thread::thread_idx_x());
                thread::spin_hint();
                round += u32::from(rounds != u32::MAX);
            }
        }
    }
}

kernel! {
    /// Polls with plain loads and no hint.
    pub unsafe fn poll_plainly(word: Global<u32>) {
        // SAFETY: the word is there.
        while unsafe { word.read(0) } == 0 {}
    }
}

#[test]
fn livelock() {
    let emulator = || Emulator::new(Config { max_steps: 100_000, ..Config::default() });
    for (rounds, ends) in [(u32::MAX, false), (10, true)] {
        let e = emulator();
        let word = e.buffer_from(&[0u32]);
        // SAFETY: the word is there.
        let result = unsafe { undo_each_other { word: word.global_mut(), rounds }.launch(&e, LaunchConfig::new(1, 2)) };
        match result {
            Ok(()) => assert!(ends),
            Err(fault) => assert!(!ends && matches!(fault.kind, FaultKind::Livelock { .. }), "{fault}"),
        }
    }
    for (value, ends) in [(0u32, false), (1, true)] {
        let e = emulator();
        let word = e.buffer_from(&[value]);
        // SAFETY: the word is there.
        let result = unsafe { poll_plainly { word: word.global() }.launch(&e, LaunchConfig::new(1, 2)) };
        match result {
            Ok(()) => assert!(ends),
            Err(fault) => assert!(!ends && matches!(fault.kind, FaultKind::Livelock { .. }), "{fault}"),
        }
    }
}

kernel! {
    /// Does nothing, under launch bounds.
    #[launch_bounds(128, 2)]
    pub unsafe fn bounded() {}
}

#[test]
fn launch_bounds_and_launch_shapes() {
    let launch = |grid: Dim3, block: Dim3, bytes| {
        let config = LaunchConfig::new(grid, block).shared(bytes);
        // SAFETY: does nothing.
        move |e: &Emulator| unsafe { bounded {}.launch(e, config) }
    };
    let one = Dim3::from(1);
    always(launch(one, 129.into(), 0), |kind| {
        matches!(kind, FaultKind::LaunchBounds { threads: 129, max_threads: 128 })
    });
    never(launch(one, Dim3::new(4, 8, 4), 0));
    let bad = |kind: &FaultKind| matches!(kind, FaultKind::BadLaunch { .. });
    always(launch(0.into(), one, 0), bad);
    always(launch(one, 0.into(), 0), bad);
    always(launch(one, 1025.into(), 0), bad);
    always(launch(one, Dim3::new(1, 1, 65), 0), bad);
    always(launch(Dim3::new(1, 65536, 1), one, 0), bad);
    always(launch(one, one, (227 << 10) + 1), bad);
    never(launch(one, one, 227 << 10));
}

#[test]
fn blocks_that_wait_for_each_other_all_run_at_once() {
    let emulator = Emulator::new(Config { resident_blocks: 3, ..Config::default() });
    for (blocks, fits) in [(3, true), (4, false)] {
        // SAFETY: does nothing.
        let together = unsafe { bounded {}.launch(&emulator, LaunchConfig::new(blocks, 32).cooperative()) };
        assert_eq!(together.is_ok(), fits, "{blocks} blocks");
        // SAFETY: as above.
        assert!(unsafe { bounded {}.launch(&emulator, LaunchConfig::new(blocks, 32)) }.is_ok());
    }
}

kernel! {
    /// Panics in thread `which`, while the others wait at a barrier.
    pub unsafe fn panic_in(which: u32) {
        assert!(thread::thread_idx_x() != which, "thread {which} it is");
        thread::sync_threads();
    }
}

#[test]
fn panic_in_a_thread() {
    // SAFETY: touches no memory.
    let launch = |which| move |e: &Emulator| unsafe { panic_in { which }.launch(e, LaunchConfig::new(1, 64)) };
    let fault = always(launch(5), |kind| matches!(kind, FaultKind::Panic { message } if message == "thread 5 it is"));
    assert_eq!(fault.thread, Some(Dim3::new(5, 0, 0)));
    never(launch(64));
}

kernel! {
    /// Lets thread 0 panic while the others wait at a barrier, each with a value whose destructor synchronises.
    pub unsafe fn destructors(which: u32) {
        struct SyncsWhenDropped;
        impl Drop for SyncsWhenDropped {
            fn drop(&mut self) {
                thread::sync_threads();
                thread::spin_hint();
            }
        }
        let _guard = SyncsWhenDropped;
        assert!(thread::thread_idx_x() != which, "thread {which} it is");
        thread::sync_threads();
    }
}

#[test]
fn destructors_that_synchronise_do_not_hang_a_fault() {
    // SAFETY: touches no memory.
    let launch = |which| move |e: &Emulator| unsafe { destructors { which }.launch(e, LaunchConfig::new(1, 64)) };
    always(launch(5), |kind| matches!(kind, FaultKind::Panic { .. } | FaultKind::DivergentBarrier { .. }));
    never(launch(64));
}

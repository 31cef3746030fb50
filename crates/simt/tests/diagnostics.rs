//! Each diagnostic of the emulator: a kernel that commits the fault, and a twin that does not.
#![allow(clippy::missing_safety_doc)]

use warpset_simt::emulator::{AccessKind, Config, Emulator, Fault, FaultKind, Space, Whereabouts};
use warpset_simt::shared::{self, Shared};
use warpset_simt::{Dim3, Global, GlobalMut, LaunchConfig, atomic, kernel, thread, warp};

/// Runs `launch` under several schedules, which must all give the same answer.
fn always(launch: impl Fn(&Emulator) -> Result<(), Fault>, expected: impl Fn(&FaultKind) -> bool) -> Fault {
    let mut last = None;
    for seed in 0..8 {
        let fault = launch(&Emulator::new(Config::seeded(seed))).expect_err("the kernel is at fault");
        assert!(expected(&fault.kind), "seed {seed}: {fault}");
        last = Some(fault);
    }
    last.unwrap()
}

fn never(launch: impl Fn(&Emulator) -> Result<(), Fault>) {
    for seed in 0..8 {
        if let Err(fault) = launch(&Emulator::new(Config::seeded(seed))) {
            panic!("seed {seed}: {fault}");
        }
    }
}

kernel! {
    /// A barrier that the threads from `limit` on do not reach.
    pub unsafe fn barrier_below(limit: u32) {
        if thread::thread_idx_x() < limit {
            thread::sync_threads();
        }
    }
}

#[test]
fn a_barrier_that_some_threads_miss() {
    // SAFETY: touches no memory.
    let launch = |limit| move |e: &Emulator| unsafe { barrier_below::launch(e, LaunchConfig::new(2, 64), limit) };
    let fault = always(
        launch(40),
        |kind| matches!(kind, FaultKind::DivergentBarrier { whereabouts: Whereabouts::Exited, other } if other.thread.x >= 40),
    );
    assert_eq!(fault.kernel, "barrier_below");
    assert!(fault.thread.unwrap().x < 40 && fault.location.unwrap().file().ends_with("diagnostics.rs"));
    assert!(fault.to_string().contains("WARPSET_EMULATOR_SEED=0x7"), "{fault}");
    never(launch(64));
}

kernel! {
    /// Two barriers in two branches; `split` threads take the first.
    pub unsafe fn barriers_in_branches(split: u32) {
        if thread::thread_idx_x() < split {
            thread::sync_threads();
        } else {
            let _ = thread::sync_threads_count(true);
        }
    }
}

#[test]
fn two_barriers_at_once() {
    // SAFETY: touches no memory.
    let launch =
        |split| move |e: &Emulator| unsafe { barriers_in_branches::launch(e, LaunchConfig::new(1, 64), split) };
    always(launch(32), |kind| matches!(kind, FaultKind::DivergentBarrier { whereabouts: Whereabouts::AtBarrier, .. }));
    never(launch(0));
    never(launch(64));
}

kernel! {
    /// A ballot over all lanes that the lanes from `limit` on leave out.
    pub unsafe fn ballot_below(limit: u32) {
        if warp::lane_id() < limit {
            // SAFETY: none if `limit < 32`, which is the point.
            let _ = unsafe { warp::ballot(warp::FULL_MASK, true) };
        }
    }
}

#[test]
fn a_collective_that_some_lanes_miss() {
    // SAFETY: touches no memory.
    let launch = |limit| move |e: &Emulator| unsafe { ballot_below::launch(e, LaunchConfig::new(1, 32), limit) };
    // Whether the lane exits before or after the others arrive is the schedule's choice.
    always(launch(20), |kind| match kind {
        FaultKind::DivergentCollective { mask, whereabouts, other } => {
            *mask == !0 && *whereabouts == Whereabouts::Exited && other.thread.x >= 20
        }
        FaultKind::MaskNamesExitedLane { mask, lane } => *mask == !0 && *lane >= 20,
        _ => false,
    });
    never(launch(32));
}

kernel! {
    /// Lanes below `split` vote while the others shuffle; or all lanes do both.
    pub unsafe fn different_collectives(split: u32) {
        // SAFETY: none if the lanes part, which is the point.
        unsafe {
            if warp::lane_id() < split {
                let _ = warp::any(warp::FULL_MASK, true);
            } else {
                let _ = warp::shuffle_xor(warp::FULL_MASK, 1u32, 1);
            }
        }
    }
}

kernel! {
    /// Lanes below `split` are at a block barrier while the others vote.
    pub unsafe fn barrier_and_collective(split: u32) {
        if warp::lane_id() < split {
            thread::sync_threads();
        } else {
            // SAFETY: none if the lanes part, which is the point.
            let _ = unsafe { warp::all(warp::FULL_MASK, true) };
        }
    }
}

#[test]
fn lanes_in_different_collectives() {
    // SAFETY: touches no memory.
    let launch =
        |split| move |e: &Emulator| unsafe { different_collectives::launch(e, LaunchConfig::new(1, 32), split) };
    always(launch(7), |kind| {
        matches!(kind, FaultKind::DivergentCollective { whereabouts: Whereabouts::InCollective, .. })
    });
    never(launch(0));
    never(launch(32));
    // SAFETY: touches no memory.
    let launch =
        |split| move |e: &Emulator| unsafe { barrier_and_collective::launch(e, LaunchConfig::new(1, 32), split) };
    always(launch(7), |kind| {
        matches!(kind, FaultKind::DivergentCollective { whereabouts: Whereabouts::AtBarrier, .. })
    });
    never(launch(0));
    never(launch(32));
}

kernel! {
    /// Lane 0 waits for 1, lane 1 for 2 and then for 0, lane 2 for 1, or (`ring`) for 0.
    pub unsafe fn chain_of_collectives(ring: u32) {
        // SAFETY: none if `ring`, which is the point.
        unsafe {
            match warp::lane_id() {
                0 => warp::sync_warp(0b011),
                1 => {
                    warp::sync_warp(0b110);
                    if ring == 0 {
                        warp::sync_warp(0b011);
                    }
                }
                2 => warp::sync_warp(if ring == 1 { 0b101 } else { 0b110 }),
                _ => {}
            }
        }
    }
}

#[test]
fn collectives_that_follow_each_other_and_one_in_a_ring() {
    // SAFETY: touches no memory.
    let launch = |ring| move |e: &Emulator| unsafe { chain_of_collectives::launch(e, LaunchConfig::new(1, 32), ring) };
    always(launch(1), |kind| {
        matches!(kind, FaultKind::DivergentCollective { whereabouts: Whereabouts::InCollective, .. })
    });
    never(launch(0));
}

kernel! {
    /// A warp barrier over `mask`, by the lanes below `lanes`.
    pub unsafe fn sync_mask(mask: u32, lanes: u32) {
        if warp::lane_id() < lanes {
            // SAFETY: depends on the arguments, which is the point.
            unsafe { warp::sync_warp(mask) };
        }
    }
}

#[test]
fn masks_without_the_caller_or_with_absent_lanes() {
    let launch = |mask, lanes, threads: u32| {
        // SAFETY: touches no memory.
        move |e: &Emulator| unsafe { sync_mask::launch(e, LaunchConfig::new(1, threads), mask, lanes) }
    };
    always(launch(0xff, 9, 32), |kind| matches!(kind, FaultKind::MaskWithoutCaller { mask: 0xff, lane: 8 }));
    never(launch(0xff, 8, 32));
    // A block of 40 threads: its second warp has lanes 0 to 7 only.
    always(launch(!0, 32, 40), |kind| matches!(kind, FaultKind::MaskNamesExitedLane { lane: 8, .. }));
    never(launch(!0, 32, 64));
}

kernel! {
    /// Copies `n` words, which may be more than there are.
    pub unsafe fn copy(from: Global<u32>, to: GlobalMut<u32>, n: usize) {
        for i in thread::grid_stride(n) {
            // SAFETY: depends on `n`, which is the point.
            unsafe { to.write(i, from.read(i)) };
        }
    }
}

#[test]
fn global_memory_out_of_bounds() {
    let launch = |n| {
        move |e: &Emulator| {
            let (from, to) = (e.buffer_from(&[1u32; 100]), e.buffer::<u32>(100));
            // SAFETY: the emulator checks.
            unsafe { copy::launch(e, LaunchConfig::new(1, 32), from.global(), to.global_mut(), n) }
        }
    };
    let fault = always(launch(101), |kind| matches!(kind, FaultKind::GlobalOutOfBounds { index: 100, len: 100, .. }));
    assert_eq!(fault.thread, Some(Dim3::new(100 % 32, 0, 0)));
    never(launch(100));
}

#[test]
fn a_handle_longer_than_its_buffer() {
    always(
        |e| {
            let (from, to) = (e.buffer_from(&[1u32; 100]), e.buffer::<u32>(50));
            let lie = GlobalMut::from_raw_parts(to.global_mut().as_ptr(), 100);
            // SAFETY: the emulator checks.
            unsafe { copy::launch(e, LaunchConfig::new(1, 32), from.global(), lie, 100) }
        },
        |kind| matches!(kind, FaultKind::GlobalOutOfBounds { .. } | FaultKind::UnknownAddress { .. }),
    );
}

#[test]
fn memory_of_the_host() {
    always(
        |e| {
            let (from, to) = (vec![1u32; 100], e.buffer::<u32>(100));
            // SAFETY: the emulator checks.
            unsafe {
                let from = Global::from_raw_parts(from.as_ptr(), 100);
                copy::launch(e, LaunchConfig::new(1, 32), from, to.global_mut(), 100)
            }
        },
        |kind| matches!(kind, FaultKind::UnknownAddress { .. }),
    );
    never(|e| {
        let (mut from, to) = (vec![1u32; 100], e.buffer::<u32>(100));
        // SAFETY: `from` outlives its registration.
        unsafe {
            e.register(from.as_mut_ptr().cast(), 400);
            let result = copy::launch(
                e,
                LaunchConfig::new(1, 32),
                Global::from_raw_parts(from.as_ptr(), 100),
                to.global_mut(),
                100,
            );
            e.unregister(from.as_mut_ptr().cast()).unwrap();
            result
        }
    });
}

#[test]
fn use_after_free() {
    always(
        |e| {
            let to = e.buffer::<u32>(100);
            let freed = e.buffer_from(&[1u32; 100]).global();
            // SAFETY: the emulator checks.
            unsafe { copy::launch(e, LaunchConfig::new(1, 32), freed, to.global_mut(), 100) }
        },
        |kind| matches!(kind, FaultKind::UseAfterFree { bytes: 400, .. }),
    );
}

kernel! {
    /// Reads four words at once from word `i` on, and two double words from `j` on.
    pub unsafe fn vectors(words: Global<u32>, i: usize, doubles: Global<u64>, j: usize) {
        let tile: Shared<u32> = shared::dynamic(0);
        // SAFETY: depends on the arguments, which is the point.
        unsafe {
            let values = words.read4(i);
            let _ = doubles.read2(j);
            tile.set4(i as u32, values);
        }
    }
}

#[test]
fn misaligned_vectors() {
    let launch = |i, j| {
        move |e: &Emulator| {
            let (words, doubles) = (e.buffer_from(&[1u32; 16]), e.buffer_from(&[1u64; 16]));
            let config = LaunchConfig::new(1, 1).shared(64);
            // SAFETY: the emulator checks.
            unsafe { vectors::launch(e, config, words.global(), i, doubles.global(), j) }
        }
    };
    let misaligned = |kind: &FaultKind| matches!(kind, FaultKind::Misaligned { space: Space::Global, align: 16, .. });
    always(launch(3, 2), misaligned);
    always(launch(4, 1), misaligned);
    never(launch(4, 2));
}

kernel! {
    /// Copies words `i` and `i + 1` to the two after them, atomically each.
    pub unsafe fn atomic_pairs(words: GlobalMut<u64>, i: usize) {
        // SAFETY: depends on the arguments, which is the point.
        unsafe {
            let pair = atomic::load_relaxed2(words.at(i));
            atomic::store_relaxed2(words.at(i + 2), pair);
        }
    }
}

#[test]
fn pairs_of_atomics() {
    let launch = |i| {
        move |e: &Emulator| {
            let words = e.buffer_from(&[1u64, 2, 3, 4, 5, 6]);
            // SAFETY: the emulator checks.
            let done = unsafe { atomic_pairs::launch(e, LaunchConfig::new(1, 1), words.global_mut(), i) };
            assert!(done.is_err() || words.to_vec() == [1, 2, 3, 4, 3, 4]);
            done
        }
    };
    never(launch(2));
    always(launch(1), |kind| matches!(kind, FaultKind::Misaligned { space: Space::Global, align: 16, .. }));
    always(launch(4), |kind| matches!(kind, FaultKind::GlobalOutOfBounds { .. }));
}

kernel! {
    /// Writes word `i` of shared memory, plus `skew` bytes.
    pub unsafe fn poke_shared(i: u32, skew: u32) {
        let tile: Shared<u32> = shared::dynamic(skew);
        // SAFETY: depends on the arguments, which is the point.
        unsafe { tile.set(i, 1) };
    }
}

#[test]
fn shared_memory_out_of_bounds_or_misaligned() {
    let launch = |i, skew| {
        // SAFETY: the emulator checks.
        move |e: &Emulator| unsafe { poke_shared::launch(e, LaunchConfig::new(1, 1).shared(64), i, skew) }
    };
    always(launch(16, 0), |kind| {
        matches!(kind, FaultKind::SharedOutOfBounds { offset: 64, size: 4, shared_bytes: 64 })
    });
    always(launch(3, 2), |kind| matches!(kind, FaultKind::Misaligned { space: Space::Shared, .. }));
    never(launch(15, 0));
}

kernel! {
    /// Passes a word to the neighbour through shared memory, with or without a barrier.
    pub unsafe fn neighbour_shared(out: GlobalMut<u32>, with_barrier: u32) {
        let tile: Shared<u32> = shared::dynamic(0);
        let t = thread::thread_idx_x();
        // SAFETY: in bounds; ordered only if `with_barrier`, which is the point.
        unsafe {
            tile.set(t, t);
            if with_barrier == 1 {
                thread::sync_threads();
            }
            out.write(t as usize, tile.get((t + 1) % 64));
        }
    }
}

kernel! {
    /// The same inside a warp: with a warp barrier, or only a shuffle, which orders no memory.
    pub unsafe fn neighbour_in_warp(out: GlobalMut<u32>, with_barrier: u32) {
        let tile: Shared<u32> = shared::dynamic(0);
        let t = thread::thread_idx_x();
        // SAFETY: in bounds; ordered only if `with_barrier`, which is the point.
        unsafe {
            tile.set(t, t);
            if with_barrier == 1 {
                warp::sync_warp(warp::FULL_MASK);
            } else {
                let _ = warp::shuffle_idx(warp::FULL_MASK, t, 0);
            }
            out.write(t as usize, tile.get(t ^ 1));
        }
    }
}

#[test]
fn races_on_shared_memory() {
    let launch = |with_barrier| {
        move |e: &Emulator| {
            let out = e.buffer(64);
            // SAFETY: the emulator checks.
            unsafe { neighbour_shared::launch(e, LaunchConfig::new(1, 64).shared(256), out.global_mut(), with_barrier) }
        }
    };
    let fault = always(launch(0), |kind| matches!(kind, FaultKind::Race { space: Space::Shared, .. }));
    let FaultKind::Race { mine, theirs, other, .. } = fault.kind else { unreachable!() };
    assert!(mine == AccessKind::Write || theirs == AccessKind::Write);
    assert!(other.location.unwrap().file().ends_with("diagnostics.rs"));
    assert_ne!(Some(other.thread), fault.thread);
    never(launch(1));
    let launch = |with_barrier| {
        move |e: &Emulator| {
            let out = e.buffer(64);
            let config = LaunchConfig::new(1, 64).shared(256);
            // SAFETY: the emulator checks.
            unsafe { neighbour_in_warp::launch(e, config, out.global_mut(), with_barrier) }
        }
    };
    always(launch(0), |kind| matches!(kind, FaultKind::Race { space: Space::Shared, .. }));
    never(launch(1));
}

kernel! {
    /// All threads count in one word: plainly, or atomically.
    pub unsafe fn count(word: GlobalMut<u32>, atomically: u32) {
        // SAFETY: the word is there; a race unless `atomically`, which is the point.
        unsafe {
            if atomically == 1 {
                atomic::reduce_add(word, 1);
            } else {
                word.write(0, word.read(0) + 1);
            }
        }
    }
}

#[test]
fn races_on_global_memory() {
    let launch = |blocks: u32, threads: u32, atomically| {
        move |e: &Emulator| {
            let word = e.buffer_from(&[0u32]);
            // SAFETY: the emulator checks.
            unsafe { count::launch(e, LaunchConfig::new(blocks, threads), word.global_mut(), atomically) }
        }
    };
    let race = |kind: &FaultKind| matches!(kind, FaultKind::Race { space: Space::Global, .. });
    always(launch(1, 2, 0), race);
    always(launch(2, 1, 0), race);
    never(launch(3, 64, 1));
    never(launch(1, 1, 0));
}

kernel! {
    /// Bytes next to each other, one a thread; or `overlap`: the word over the first four too.
    pub unsafe fn bytes(out: GlobalMut<u8>, overlap: u32) {
        let t = thread::thread_idx_x();
        // SAFETY: in bounds; a race if `overlap`, which is the point.
        unsafe {
            out.write(t as usize, t as u8);
            if overlap == 1 && t == 0 {
                let _ = out.cast::<u32>().read(0);
            }
        }
    }
}

#[test]
fn neighbouring_bytes_are_no_race() {
    let launch = |overlap| {
        move |e: &Emulator| {
            let out = e.buffer(64);
            // SAFETY: the emulator checks.
            unsafe { bytes::launch(e, LaunchConfig::new(1, 64), out.global_mut(), overlap) }
        }
    };
    never(launch(0));
    always(launch(1), |kind| matches!(kind, FaultKind::Race { .. }));
}

kernel! {
    /// Thread 0 waits until the word is 1, which thread 1 makes it only if `kind`.
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
            unsafe { wait_for_flag::launch(e, LaunchConfig::new(1, 2), word.global_mut(), kind) }
        }
    };
    let fault = always(launch(0), |kind| matches!(kind, FaultKind::Deadlock { waiting: 1, .. }));
    assert_eq!(fault.thread, Some(Dim3::new(0, 0, 0)));
    never(launch(1));
}

kernel! {
    /// Two threads undo each other's work for ever, or for `rounds`.
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
        let result = unsafe { undo_each_other::launch(&e, LaunchConfig::new(1, 2), word.global_mut(), rounds) };
        match result {
            Ok(()) => assert!(ends),
            Err(fault) => assert!(!ends && matches!(fault.kind, FaultKind::Livelock { .. }), "{fault}"),
        }
    }
    for (value, ends) in [(0u32, false), (1, true)] {
        let e = emulator();
        let word = e.buffer_from(&[value]);
        // SAFETY: the word is there.
        let result = unsafe { poll_plainly::launch(&e, LaunchConfig::new(1, 2), word.global()) };
        match result {
            Ok(()) => assert!(ends),
            Err(fault) => assert!(!ends && matches!(fault.kind, FaultKind::Livelock { .. }), "{fault}"),
        }
    }
}

kernel! {
    /// Has launch bounds.
    #[launch_bounds(128, 2)]
    pub unsafe fn bounded() {}
}

#[test]
fn launch_bounds_and_launch_shapes() {
    let launch = |grid: Dim3, block: Dim3, bytes| {
        let config = LaunchConfig::new(grid, block).shared(bytes);
        // SAFETY: does nothing.
        move |e: &Emulator| unsafe { bounded::launch(e, config) }
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
    let launch = |which| move |e: &Emulator| unsafe { panic_in::launch(e, LaunchConfig::new(1, 64), which) };
    let fault = always(launch(5), |kind| matches!(kind, FaultKind::Panic { message } if message == "thread 5 it is"));
    assert_eq!(fault.thread, Some(Dim3::new(5, 0, 0)));
    never(launch(64));
}

kernel! {
    /// Thread 0 panics while the others wait at a barrier, each with a value whose
    /// destructor synchronises.
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
    let launch = |which| move |e: &Emulator| unsafe { destructors::launch(e, LaunchConfig::new(1, 64), which) };
    always(launch(5), |kind| matches!(kind, FaultKind::Panic { .. } | FaultKind::DivergentBarrier { .. }));
    never(launch(64));
}

kernel! {
    /// Reads shared and global memory that nobody has written.
    pub unsafe fn uninitialised(from: Global<u32>, out: GlobalMut<u32>) {
        // SAFETY: in bounds.
        unsafe {
            out.write(0, from.read(0));
            out.write(1, shared::dynamic::<u32>(0).get(0));
        }
    }
}

#[test]
fn fresh_memory_is_poisoned() {
    let e = Emulator::new(Config::default());
    let (from, out) = (e.buffer(1), e.buffer(2));
    // SAFETY: one word and two words.
    unsafe { uninitialised::launch(&e, LaunchConfig::new(1, 1).shared(4), from.global(), out.global_mut()) }.unwrap();
    assert_eq!(out.to_vec(), [0xc7c7_c7c7; 2]);
}

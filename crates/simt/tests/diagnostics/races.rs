//! Races.

use warpset_simt::emulator::{AccessKind, Emulator, FaultKind, Space};
use warpset_simt::shared::{self, Shared};
use warpset_simt::{GlobalMut, LaunchConfig, atomic, kernel, thread, warp};

use crate::{always, never};

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
    /// Reads the word of a neighbour in the warp, after a warp barrier or only a shuffle, which orders no memory.
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
            unsafe {
                neighbour_shared { out: out.global_mut(), with_barrier }.launch(e, LaunchConfig::new(1, 64).shared(256))
            }
        }
    };
    let fault = always(launch(0), |kind| matches!(kind, FaultKind::Race { space: Space::Shared, .. }));
    let FaultKind::Race { mine, theirs, other, .. } = fault.kind else { unreachable!() };
    assert!(mine == AccessKind::Write || theirs == AccessKind::Write);
    assert!(other.location.unwrap().file().ends_with("races.rs"));
    assert_ne!(Some(other.thread), fault.thread);
    never(launch(1));
    let launch = |with_barrier| {
        move |e: &Emulator| {
            let out = e.buffer(64);
            let config = LaunchConfig::new(1, 64).shared(256);
            // SAFETY: the emulator checks.
            unsafe { neighbour_in_warp { out: out.global_mut(), with_barrier }.launch(e, config) }
        }
    };
    always(launch(0), |kind| matches!(kind, FaultKind::Race { space: Space::Shared, .. }));
    never(launch(1));
}

kernel! {
    /// Counts all threads in one word: plainly, or atomically.
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
            unsafe { count { word: word.global_mut(), atomically }.launch(e, LaunchConfig::new(blocks, threads)) }
        }
    };
    let race = |kind: &FaultKind| matches!(kind, FaultKind::Race { space: Space::Global, .. });
    always(launch(1, 2, 0), race);
    always(launch(2, 1, 0), race);
    never(launch(3, 64, 1));
    never(launch(1, 1, 0));
}

kernel! {
    /// Writes bytes next to each other, one per thread; with `overlap`, also the word over the first four.
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
            unsafe { bytes { out: out.global_mut(), overlap }.launch(e, LaunchConfig::new(1, 64)) }
        }
    };
    never(launch(0));
    always(launch(1), |kind| matches!(kind, FaultKind::Race { .. }));
}

//! Accesses outside buffers, after their end, or misaligned; pairs of atomics; poison.

use warpset_simt::emulator::{Config, Emulator, FaultKind, Space};
use warpset_simt::shared::{self, Shared};
use warpset_simt::{Dim3, Global, GlobalMut, LaunchConfig, atomic, kernel, thread};

use crate::{always, never};

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
            unsafe { copy { from: from.global(), to: to.global_mut(), n }.launch(e, LaunchConfig::new(1, 32)) }
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
            unsafe { copy { from: from.global(), to: lie, n: 100 }.launch(e, LaunchConfig::new(1, 32)) }
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
                copy { from, to: to.global_mut(), n: 100 }.launch(e, LaunchConfig::new(1, 32))
            }
        },
        |kind| matches!(kind, FaultKind::UnknownAddress { .. }),
    );
    never(|e| {
        let (mut from, to) = (vec![1u32; 100], e.buffer::<u32>(100));
        // SAFETY: `from` outlives its registration.
        unsafe {
            e.register(from.as_mut_ptr().cast(), 400);
            let result = copy { from: Global::from_raw_parts(from.as_ptr(), 100), to: to.global_mut(), n: 100 }
                .launch(e, LaunchConfig::new(1, 32));
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
            unsafe { copy { from: freed, to: to.global_mut(), n: 100 }.launch(e, LaunchConfig::new(1, 32)) }
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
            unsafe { vectors { words: words.global(), i, doubles: doubles.global(), j }.launch(e, config) }
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
            let done = unsafe { atomic_pairs { words: words.global_mut(), i }.launch(e, LaunchConfig::new(1, 1)) };
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
        move |e: &Emulator| unsafe { poke_shared { i, skew }.launch(e, LaunchConfig::new(1, 1).shared(64)) }
    };
    always(launch(16, 0), |kind| {
        matches!(kind, FaultKind::SharedOutOfBounds { offset: 64, size: 4, shared_bytes: 64 })
    });
    always(launch(3, 2), |kind| matches!(kind, FaultKind::Misaligned { space: Space::Shared, .. }));
    never(launch(15, 0));
}

kernel! {
    /// Reads shared and global memory that no thread has written.
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
    unsafe {
        uninitialised { from: from.global(), out: out.global_mut() }.launch(&e, LaunchConfig::new(1, 1).shared(4))
    }
    .unwrap();
    assert_eq!(out.to_vec(), [0xc7c7_c7c7; 2]);
}

//! Barriers and collectives that not all reach, and masks.

use warpset_simt::emulator::{Emulator, FaultKind, Whereabouts};
use warpset_simt::{LaunchConfig, kernel, thread, warp};

use crate::{always, never};

kernel! {
    /// Meets at a barrier that the threads from `limit` on do not reach.
    pub unsafe fn barrier_below(limit: u32) {
        if thread::thread_idx_x() < limit {
            thread::sync_threads();
        }
    }
}

#[test]
fn a_barrier_that_some_threads_miss() {
    // SAFETY: touches no memory.
    let launch = |limit| move |e: &Emulator| unsafe { barrier_below { limit }.launch(e, LaunchConfig::new(2, 64)) };
    let fault = always(
        launch(40),
        |kind| matches!(kind, FaultKind::DivergentBarrier { whereabouts: Whereabouts::Exited, other } if other.thread.x >= 40),
    );
    assert_eq!(fault.kernel, "barrier_below");
    assert!(fault.thread.unwrap().x < 40 && fault.location.unwrap().file().ends_with("synchronisation.rs"));
    assert!(fault.to_string().contains("WARPSET_EMULATOR_SEED=0x7"), "{fault}");
    never(launch(64));
}

kernel! {
    /// Meets at two barriers in two branches; `split` threads take the first.
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
        |split| move |e: &Emulator| unsafe { barriers_in_branches { split }.launch(e, LaunchConfig::new(1, 64)) };
    always(launch(32), |kind| matches!(kind, FaultKind::DivergentBarrier { whereabouts: Whereabouts::AtBarrier, .. }));
    never(launch(0));
    never(launch(64));
}

kernel! {
    /// Takes a ballot over all lanes that the lanes from `limit` on leave out.
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
    let launch = |limit| move |e: &Emulator| unsafe { ballot_below { limit }.launch(e, LaunchConfig::new(1, 32)) };
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
    /// Lets lanes below `split` vote while the others shuffle; or all lanes do both.
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
    /// Sends lanes below `split` to a block barrier while the others vote.
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
        |split| move |e: &Emulator| unsafe { different_collectives { split }.launch(e, LaunchConfig::new(1, 32)) };
    always(launch(7), |kind| {
        matches!(kind, FaultKind::DivergentCollective { whereabouts: Whereabouts::InCollective, .. })
    });
    never(launch(0));
    never(launch(32));
    // SAFETY: touches no memory.
    let launch =
        |split| move |e: &Emulator| unsafe { barrier_and_collective { split }.launch(e, LaunchConfig::new(1, 32)) };
    always(launch(7), |kind| {
        matches!(kind, FaultKind::DivergentCollective { whereabouts: Whereabouts::AtBarrier, .. })
    });
    never(launch(0));
    never(launch(32));
}

kernel! {
    /// Lets lane 0 wait for 1, lane 1 for 2 and then for 0, lane 2 for 1, or (`ring`) for 0.
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
    let launch =
        |ring| move |e: &Emulator| unsafe { chain_of_collectives { ring }.launch(e, LaunchConfig::new(1, 32)) };
    always(launch(1), |kind| {
        matches!(kind, FaultKind::DivergentCollective { whereabouts: Whereabouts::InCollective, .. })
    });
    never(launch(0));
}

kernel! {
    /// Meets at a warp barrier over `mask`, with the lanes below `lanes`.
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
        move |e: &Emulator| unsafe { sync_mask { mask, lanes }.launch(e, LaunchConfig::new(1, threads)) }
    };
    always(launch(0xff, 9, 32), |kind| matches!(kind, FaultKind::MaskWithoutCaller { mask: 0xff, lane: 8 }));
    never(launch(0xff, 8, 32));
    // A block of 40 threads: its second warp has lanes 0 to 7 only.
    always(launch(!0, 32, 40), |kind| matches!(kind, FaultKind::MaskNamesExitedLane { lane: 8, .. }));
    never(launch(!0, 32, 64));
}

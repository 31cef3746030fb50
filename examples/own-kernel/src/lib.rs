//! The lowest and the highest of many readings, in one reduction: a kernel and an operator of our own.
//!
//! A reduction reads values and combines them to one. To get two results at once, a kernel makes a [`pair`] of each
//! reading, and the reduction combines pairs by [`Extremes`].
//!
//! An operator keeps the extremes of each sensor in a dictionary: an update combines new readings with the stored ones
//! ([`combine_extremes`]).
//!
//! Three more kernels query structures: [`sum_known`] adds up the readings of known sensors, in one pass over both,
//! [`weigh`] multiplies each reading by the count of its sensor, and [`calibrate`] looks up a gain and an offset for
//! it.

#![cfg_attr(target_arch = "nvptx64", no_std, feature(abi_ptx))]

use warpset_kernels::bloom::device_query::{BlockedQuery, SplitBlockQuery};
use warpset_kernels::fuse::device_query::FunctionQuery;
use warpset_kernels::quotient::rank_select::device_query::{MapletQuery, RankSelectQuery};
use warpset_kernels::{by_key_kernels, operators::Operator, reduce_kernels};
use warpset_simt::{Global, GlobalMut, atomic, kernel, thread};

/// Combines pairs: the lower lows (the low half of the word), the higher highs (the high half).
#[derive(Clone, Copy, Debug)]
pub struct Extremes;

impl Operator for Extremes {
    type Value = u64;

    /// The pair of no reading.
    const IDENTITY: u64 = u32::MAX as u64;

    #[inline(always)]
    fn combine(before: u64, after: u64) -> u64 {
        let low = if (before as u32) < after as u32 { before as u32 } else { after as u32 };
        let high = if before >> 32 > after >> 32 { before >> 32 } else { after >> 32 };
        high << 32 | low as u64
    }
}

// The kernels carry the PTX that `build.rs` made of them. The device build does not look at it.
#[cfg(not(target_arch = "nvptx64"))]
const fn ptx(_: &str) -> Option<&'static warpset_simt::Module> {
    static MODULE: warpset_simt::Module = warpset_simt::Module {
        name: "own_kernel",
        ptx: Some(warpset_simt::Ptx::Text(include_str!(concat!(env!("OUT_DIR"), "/own_kernel.ptx")))),
        code: None, // the driver compiles the PTX
    };
    Some(&MODULE)
}

kernel! {
    #![module(crate::ptx)]

    /// Sets `pairs[i]` to reading `i` as the lowest and the highest of one.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid, blocks of at most 256 threads, no shared memory.
    /// - `readings`: valid for `n` reads; not written while the kernel runs.
    /// - `pairs`: valid for `n` writes; no other thread accesses them while the kernel runs.
    #[launch_bounds(256)]
    pub unsafe fn pair(readings: Global<u32>, pairs: GlobalMut<u64>, n: usize) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`, and one thread has each `i`.
            unsafe {
                let reading = readings.read(i) as u64;
                pairs.write(i, reading << 32 | reading);
            }
        }
    }
}

kernel! {
    #![module(crate::ptx)]

    /// Adds to `sums[0]` the readings whose sensor is in the split-block filter, and to `sums[1]` those whose sensor is
    /// in the blocked filter.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid, blocks of at most 256 threads, no shared memory.
    /// - `split_words`, `blocked_words`: those of `split` and `blocked`, not written while the kernel runs.
    /// - `sensors`, `readings`: valid for `n` reads; not written while the kernel runs.
    /// - `sums`: two words, only accessed atomically while the kernel runs.
    #[launch_bounds(256)]
    pub unsafe fn sum_known(
        split_words: Global<u32>, split: SplitBlockQuery, blocked_words: Global<u32>, blocked: BlockedQuery,
        sensors: Global<u64>, readings: Global<u32>, sums: GlobalMut<u64>, n: usize,
    ) {
        let (mut in_split, mut in_blocked) = (0u64, 0u64);
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`; the words are those of the filters.
            unsafe {
                let (sensor, reading) = (sensors.read(i), readings.read(i) as u64);
                if split.contains(split_words, sensor) {
                    in_split += reading;
                }
                if blocked.contains(blocked_words, sensor) {
                    in_blocked += reading;
                }
            }
        }
        // SAFETY: there are two words, only accessed atomically.
        unsafe {
            atomic::reduce_add(sums, in_split);
            atomic::reduce_add(sums.at(1), in_blocked);
        }
    }

    /// Sets `weighed[i]` to reading `i` times the copies of its sensor in the filter, 0 if it has none.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid, blocks of at most 256 threads, no shared memory.
    /// - `words`: those of `filter`, not written while the kernel runs.
    /// - `sensors`, `readings`: valid for `n` reads; not written while the kernel runs.
    /// - `weighed`: valid for `n` writes; no other thread accesses it while the kernel runs.
    #[launch_bounds(256)]
    pub unsafe fn weigh(
        words: Global<u64>, filter: RankSelectQuery, sensors: Global<u64>, readings: Global<u32>,
        weighed: GlobalMut<u64>, n: usize,
    ) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`; the words are those of the filter; one thread has each `i`.
            unsafe {
                let copies = if filter.contains(words, sensors.read(i)) { filter.count(words, sensors.read(i)) } else { 0 };
                weighed.write(i, copies * readings.read(i) as u64);
            }
        }
    }

    /// Sets `calibrated[i]` to reading `i` times the gain of its sensor plus the offset of its sensor. A sensor without
    /// a gain has gain 1, one without an offset has offset 0.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid, blocks of at most 256 threads, no shared memory.
    /// - `gain_words`, `offset_words`: those of `gains` and `offsets`, not written while the kernel runs.
    /// - `sensors`, `readings`: valid for `n` reads; not written while the kernel runs.
    /// - `calibrated`: valid for `n` writes; no other thread accesses it while the kernel runs.
    #[launch_bounds(256)]
    pub unsafe fn calibrate(
        gain_words: Global<u64>, gains: FunctionQuery, offset_words: Global<u64>, offsets: MapletQuery,
        sensors: Global<u64>, readings: Global<u32>, calibrated: GlobalMut<u64>, n: usize,
    ) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`; the words are those of the function and the maplet; one thread has each `i`.
            unsafe {
                let sensor = sensors.read(i);
                let gain = gains.get(gain_words, sensor).unwrap_or(1);
                let offset = offsets.get(offset_words, sensor).unwrap_or(0);
                calibrated.write(i, (readings.read(i) as u64).wrapping_mul(gain).wrapping_add(offset));
            }
        }
    }
}

reduce_kernels! {
    #![module(crate::ptx)]
    reduce_extremes: Extremes;
}

by_key_kernels! {
    #![module(crate::ptx)]
    extremes_by_sensor: u64 => Extremes;
}

#[cfg(not(target_arch = "nvptx64"))]
mod host;
#[cfg(not(target_arch = "nvptx64"))]
pub use host::{calibrated, combine_extremes, extremes, sums_of_known, weighed};

//! Fingerprints with their numbers of copies, as two arrays on a device: ascending, each fingerprint once. Kernels
//! check them, change the numbers, sum them, and repeat each fingerprint as often as it has copies. A fingerprint with
//! zero copies is absent.

use warpset_core::scan::Operator;
use warpset_simt::shared::{self, Shared};
use warpset_simt::{Global, GlobalMut, atomic, thread};

use crate::block;
use crate::quotient::memory::Fingerprint;

/// Threads of a block, in all kernels here.
pub const BLOCK: u32 = 256;
/// Returns the dynamic shared memory of [`quotient_counts_total`], in bytes.
pub const TOTAL_SHARED_BYTES: u32 = block::scratch_bytes::<u64>(WARPS);
/// Returns the dynamic shared memory of [`quotient_counts_histogram`] with that many entries, in bytes.
pub const fn histogram_shared_bytes(entries: u32) -> u32 {
    8 * if entries < HISTOGRAM_SHARED { entries } else { HISTOGRAM_SHARED }
}
/// Entries of a histogram that a block sums before they go to memory: nearly all fingerprints have few copies.
const HISTOGRAM_SHARED: u32 = 512;

const WARPS: u32 = BLOCK / 32;

/// Sum that saturates, for numbers of copies from callers.
pub struct Saturating;

impl Operator for Saturating {
    type Value = u64;
    const IDENTITY: u64 = 0;
    #[inline(always)]
    fn combine(before: u64, after: u64) -> u64 {
        before.saturating_add(after)
    }
}

crate::by_key_kernels! {
    quotient_counts_by_u32: u32 => Saturating;
    quotient_counts_by_u64: u64 => Saturating;
}

/// Rule of [`quotient_counts_combine`]: copies of the others are subtracted.
pub const DIFFERENCE: u32 = 0;
/// Rule of [`quotient_counts_combine`]: the smaller number stays.
pub const SMALLER: u32 = 1;

/// Returns the place of the first of `n` ascending items for which `is_before` does not hold.
///
/// # Safety
/// `items` is valid for `n` reads.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn partition_point<T: warpset_simt::Word>(items: Global<T>, n: usize, is_before: impl Fn(T) -> bool) -> usize {
    let (mut from, mut to) = (0, n);
    while from < to {
        let middle = from + (to - from) / 2;
        // SAFETY: `middle < n`.
        if is_before(unsafe { items.read_nc(middle) }) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    from
}

kernel! {
    /// Checks given fingerprints and copies, and writes the fingerprints as `F`.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per fingerprint, [`BLOCK`] threads per block.
    /// - `fingerprints`, `copies`: `n` each, not written while the kernel runs.
    /// - `out`: `n` places, used by this launch alone.
    /// - `broken`: set to all ones before, used by this launch alone; becomes the first place whose fingerprint is
    ///   above `last`, does not ascend or has no copies.
    pub unsafe fn quotient_counts_check<F>(
        fingerprints: Global<u64>, copies: Global<u64>, n: usize, last: u64, out: GlobalMut<F>, broken: GlobalMut<u64>,
    ) for [u32 => quotient_counts_check_u32, u64 => quotient_counts_check_u64] {
        let i = thread::index_1d() as usize;
        if i < n {
            // SAFETY: `i < n`.
            unsafe {
                let fingerprint = fingerprints.read_nc(i);
                let ascends = i == 0 || fingerprints.read_nc(i - 1) < fingerprint;
                if !ascends || fingerprint > last || copies.read_nc(i) == 0 {
                    atomic::reduce_min(broken, i as u64);
                }
                out.write(i, F::of(fingerprint));
            }
        }
    }
}

kernel! {
    /// Sums copies, separately for the low and the high 32 bits of each number, so that no sum overflows.
    ///
    /// # Safety
    /// - Launch: 1-D, [`BLOCK`] threads per block, [`TOTAL_SHARED_BYTES`] of dynamic shared memory.
    /// - `copies`: `n`, below 2^32 of them, not written while the kernel runs.
    /// - `sums`: two words, to which others may add.
    pub unsafe fn quotient_counts_total(copies: Global<u64>, n: usize, sums: GlobalMut<u64>) {
        let scratch: Shared<u32> = shared::dynamic(0);
        let (mut low, mut high) = (0u64, 0u64);
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`.
            let number = unsafe { copies.read_nc(i) };
            low += number & 0xffff_ffff;
            high += number >> 32;
        }
        // SAFETY: the whole block comes here; a barrier separates the two uses of the scratch memory.
        unsafe {
            let low = block::reduce::<warpset_core::scan::Sum<u64>, WARPS>(low, scratch);
            thread::sync_threads();
            let high = block::reduce::<warpset_core::scan::Sum<u64>, WARPS>(high, scratch);
            if thread::thread_idx_x() == 0 {
                atomic::reduce_add(sums, low);
                if high != 0 {
                    atomic::reduce_add(sums.at(1), high);
                }
            }
        }
    }
}

kernel! {
    /// Changes the copies of each fingerprint by those of the others: [`DIFFERENCE`] or [`SMALLER`].
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per fingerprint, [`BLOCK`] threads per block.
    /// - `fingerprints`, `copies`: `n` each; `others`, `of_others`: `m` each; fingerprints ascend, each once.
    /// - Nothing else accesses `copies` while the kernel runs, and nothing writes the rest.
    pub unsafe fn quotient_counts_combine<F>(
        fingerprints: Global<F>, copies: GlobalMut<u64>, n: usize, others: Global<F>, of_others: Global<u64>, m: usize,
        combination: u32,
    ) for [u32 => quotient_counts_combine_u32, u64 => quotient_counts_combine_u64] {
        let i = thread::index_1d() as usize;
        if i < n {
            // SAFETY: `i < n`, and `at < m` where it is read.
            unsafe {
                let fingerprint = fingerprints.read_nc(i);
                let at = partition_point(others, m, |other| other < fingerprint);
                let theirs = if at < m && others.read_nc(at) == fingerprint { of_others.read_nc(at) } else { 0 };
                let ours = copies.read(i);
                let left = if combination == SMALLER { Ord::min(ours, theirs) } else { ours.saturating_sub(theirs) };
                if left != ours {
                    copies.write(i, left);
                }
            }
        }
    }
}

kernel! {
    /// Sets copies that are fewer than `least` to zero, and more than `most` to `most`.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per number, [`BLOCK`] threads per block.
    /// - `copies`: `n`, used by this launch alone.
    pub unsafe fn quotient_counts_bound(copies: GlobalMut<u64>, n: usize, least: u64, most: u64) {
        let i = thread::index_1d() as usize;
        if i < n {
            // SAFETY: `i < n`.
            unsafe {
                let number = copies.read(i);
                copies.write(i, if number < least { 0 } else { Ord::min(number, most) });
            }
        }
    }
}

kernel! {
    /// Repeats each fingerprint as often as it has copies: item `i` is the last fingerprint with `before` at most `i`.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per item of the output, [`BLOCK`] threads per block.
    /// - `fingerprints`, `before`: `runs` each, at least one, not written while the kernel runs; `before` are the
    ///   copies of all fingerprints before, the first zero.
    /// - `out`: `n` places, used by this launch alone; there are as many copies.
    pub unsafe fn quotient_counts_repeat<F>(
        fingerprints: Global<F>, before: Global<u64>, runs: usize, out: GlobalMut<F>, n: usize,
    ) for [u32 => quotient_counts_repeat_u32, u64 => quotient_counts_repeat_u64] {
        let i = thread::index_1d() as usize;
        if i < n {
            // SAFETY: `i < n`; the first run has nothing before it, so the point is at least 1.
            unsafe {
                let run = partition_point(before, runs, |before| before <= i as u64) - 1;
                out.write(i, fingerprints.read_nc(run));
            }
        }
    }
}

kernel! {
    /// Counts the fingerprints by number of copies; the last entry includes larger numbers.
    ///
    /// # Safety
    /// - Launch: 1-D, [`BLOCK`] threads per block, [`histogram_shared_bytes`] of dynamic shared memory.
    /// - `copies`: `n`, not written while the kernel runs.
    /// - `histogram`: `entries` words, at least one, zero at the start, used by this launch alone.
    pub unsafe fn quotient_counts_histogram(
        copies: Global<u64>, n: usize, histogram: GlobalMut<u64>, entries: u64,
    ) {
        let near: Shared<u64> = shared::dynamic(0);
        let shared_entries = if entries < HISTOGRAM_SHARED as u64 { entries as u32 } else { HISTOGRAM_SHARED };
        let mut entry = thread::thread_idx_x();
        // SAFETY: barriers separate the uses of the shared memory; entries are below `entries`.
        unsafe {
            while entry < shared_entries {
                near.set(entry, 0);
                entry += BLOCK;
            }
            thread::sync_threads();
            for i in thread::grid_stride(n) {
                let number = Ord::min(copies.read_nc(i), entries - 1);
                if number < shared_entries as u64 {
                    near.reduce_add(number as u32, 1);
                } else {
                    atomic::reduce_add(histogram.at(number as usize), 1);
                }
            }
            thread::sync_threads();
            let mut entry = thread::thread_idx_x();
            while entry < shared_entries {
                let number = near.get(entry);
                if number != 0 {
                    atomic::reduce_add(histogram.at(entry as usize), number);
                }
                entry += BLOCK;
            }
        }
    }
}

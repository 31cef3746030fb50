//! Kernels on fingerprints, for every kind of slots: fingerprints of keys, and comparison of two ascending lists.

use warpset_simt::{Global, GlobalMut, thread};

use crate::batch::keys::KeyKind;
use crate::batch::results;
#[cfg(feature = "bodies")]
use crate::quotient::keys::fingerprint_at;
use crate::quotient::memory::{Fingerprint, Parameters};

/// Threads of a block, in all kernels here.
pub const BLOCK: u32 = 256;
/// Keys per thread.
pub const KEYS: usize = 4;

/// Returns the place of the first of `n` ascending items that is not below `item`.
///
/// # Safety
/// `items` is valid for `n` reads.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn lower_bound<F: Fingerprint>(items: Global<F>, n: usize, item: F) -> usize {
    let (mut first, mut count) = (0, n);
    while count > 0 {
        let half = count / 2;
        // SAFETY: `first + half < n`.
        if unsafe { items.read_nc(first + half) }.bits() < item.bits() {
            first += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    first
}

/// Counts the items among `n` ascending ones that are equal to `item`.
///
/// # Safety
/// `items` is valid for `n` reads.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn equal_count<F: Fingerprint>(items: Global<F>, n: usize, item: F) -> usize {
    // SAFETY: the contract of this function; `first <= n`.
    unsafe {
        let first = lower_bound(items, n, item);
        if item.bits() == F::of(!0).bits() {
            return n - first;
        }
        lower_bound(items.at(first), n - first, F::of(item.bits() + 1))
    }
}

/// Whether item `i` of `a` has an equal in `b`, one for one: the `k`-th of equal items does if `b` has more than `k`.
///
/// # Safety
/// Both ascend and are valid for reads of their lengths; `i` is below the length of `a`.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn has_equal<F: Fingerprint>(a: Global<F>, i: usize, b: Global<F>, b_len: usize) -> bool {
    // SAFETY: reads are below the lengths.
    unsafe {
        let item = a.read_nc(i);
        let mut earlier = 0;
        if i > 0 && a.read_nc(i - 1) == item {
            earlier = i - lower_bound(a, i, item);
        }
        let at = lower_bound(b, b_len, item) + earlier;
        at < b_len && b.read_nc(at) == item
    }
}

kernel! {
    /// Hashes keys to fingerprints of type `F`.
    ///
    /// # Safety
    /// - Launch: 1-D, blocks of [`BLOCK`] threads, a thread for each [`KEYS`] keys.
    /// - `keys`: `n` keys of `kind`, one that [`fingerprint_at`] takes, not written while the kernel runs; a key
    ///   without a fingerprint gets a zero.
    /// - `out`: `n` words, used by this launch alone; wide enough for the fingerprints of these [`Parameters`].
    pub unsafe fn quotient_fingerprints<F>(
        keys: Global<u64>, kind: KeyKind, spread: u64, n: usize, parameters: u32, out: GlobalMut<F>,
    ) for [u32 => quotient_fingerprints_u32, u64 => quotient_fingerprints_u64] {
        let split = Parameters(parameters).split();
        let first = thread::block_idx_x() as usize * (BLOCK as usize * KEYS) + thread::thread_idx_x() as usize;
        for k in 0..KEYS {
            let i = first + k * BLOCK as usize;
            if i < n {
                // SAFETY: `i < n`.
                unsafe {
                    out.write(i, F::of(fingerprint_at(keys, kind, spread, split, i).unwrap_or(0)));
                }
            }
        }
    }
}

kernel! {
    /// Reports which `F` of `a` have an equal in `b`, one for one, or have none.
    ///
    /// # Safety
    /// - Launch: 1-D, `a_len.div_ceil(BLOCK)` blocks of [`BLOCK`] threads.
    /// - `a` and `b`: that many words, ascending, not written while the kernel runs.
    /// - `out`: `results::words(form, a_len)` words, used by this launch alone; for `results::COUNT`, others may add to
    ///   it. A result is whether there is an equal, if `equal` is 1, or whether there is none, if it is 0.
    pub unsafe fn quotient_equals<F>(
        a: Global<F>, a_len: usize, b: Global<F>, b_len: usize, equal: u32, form: u32,
        out: GlobalMut<u64>,
    ) for [u32 => quotient_equals_u32, u64 => quotient_equals_u64] {
        let i = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
        // SAFETY: `i < a_len` where it is read; all threads arrive at `put`.
        unsafe {
            let yes = i < a_len && has_equal(a, i, b, b_len) == (equal != 0);
            results::put(form, out, i, a_len, yes);
        }
    }
}

kernel! {
    /// Counts how often each `F` of `asked` is stored.
    ///
    /// # Safety
    /// - Launch: 1-D, `n.div_ceil(BLOCK)` blocks of [`BLOCK`] threads.
    /// - `stored`: `stored_len` ascending words, `asked`: `n` words; nothing writes them while the kernel runs.
    /// - `out`: valid for `n` writes; no other thread accesses it while the kernel runs.
    pub unsafe fn quotient_count<F>(
        stored: Global<F>, stored_len: usize, asked: Global<F>, n: usize, out: GlobalMut<u64>,
    ) for [u32 => quotient_count_u32, u64 => quotient_count_u64] {
        let i = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
        if i < n {
            // SAFETY: `i < n`.
            unsafe { out.write(i, equal_count(stored, stored_len, asked.read_nc(i)) as u64) };
        }
    }
}

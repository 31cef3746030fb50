//! Canonical k-mers of packed bases, as the fingerprints of an exact quotient filter, and statistics of their counts
//! for the layout of the filter.
//!
//! ```text
//! bases   u64  32 positions, 2 bits each, the first position lowest: A 0, C 1, G 2, T 3
//! breaks  u32  the same 32 positions, a bit each: set where there is no base
//! ```
//!
//! A window of `k` positions without a break is a k-mer. In this packing a window, read as a number, has its *last*
//! base highest. So its complement is the number of the reverse complement, and the number of the k-mer itself is the
//! window with its pairs of bits reversed.
//!
//! A warp takes 32 words, one per lane, and processes them one by one, 32 windows at a time, so that its lanes write
//! neighbouring places. One addition to a counter reserves these places. The order of fingerprints therefore varies
//! between runs; the sort that follows makes it unique.

use warpset_core::minimizer::Kmer;
use warpset_simt::shared::{self, Shared};
use warpset_simt::{Global, GlobalMut, atomic, thread, warp};

use super::number::Number;

/// Threads per block in all kernels here.
pub const BLOCK: u32 = 256;
/// Words of 32 positions per block and round.
pub const TILE_WORDS: usize = BLOCK as usize;
/// Words of bases and of breaks after the last ones, since a window of 63 positions reaches so far.
pub const PADDING: usize = 2;
/// Number of classes of counts. The class of a count is the number of bits by which counters distinguish it: 0 for one
/// copy, 1 for two, and so on.
pub const CLASSES: usize = 66;
/// Dynamic shared memory of [`kmers_classes`], in bytes.
pub const CLASSES_SHARED_BYTES: u32 = 4 * CLASSES as u32;

/// Returns the class of a number of copies, below [`CLASSES`].
#[inline(always)]
pub const fn class_of(copies: u64) -> usize {
    if copies < 2 { 0 } else { 65 - (copies - 2).leading_zeros() as usize }
}

/// Returns the least number of copies of a class.
pub const fn least_of(class: usize) -> u64 {
    match class {
        0 => 1,
        1 => 2,
        class => (1 << (class - 2)) + 2,
    }
}

/// Returns one bit for each of the 32 positions in the lowest bits of `breaks`: set if the `k` positions from there on
/// have no break.
#[inline(always)]
pub fn whole_windows<W: Kmer>(breaks: W, k: u32) -> u32 {
    let (mut any, mut len) = (breaks, 1);
    while 2 * len <= k {
        any = any | any >> len;
        len *= 2;
    }
    !(any | any >> (k - len)).low() as u32
}

/// Returns the canonical k-mer of a window of packed bases, its first base lowest; bits above the window are ignored.
#[inline(always)]
pub fn canonical<W: Number>(window: W, k: u32) -> W {
    let mask = W::mask(k);
    let reverse = !window & mask;
    // The function's complement of a base is `base ^ 2`, and that of these bases `base ^ 3`.
    let ones = W::from(0x5555_5555_5555_5555);
    let ones = if W::MOST_K > 32 { ones | ones << 32 << 32 } else { ones };
    let forward = reverse.reverse_complement(k) ^ (ones & mask);
    if forward < reverse { forward } else { reverse }
}

kernel! {
    /// Writes the fingerprint of every k-mer that begins in `words` words of packed bases, in any order.
    ///
    /// # Safety
    /// - Launch: 1-D, [`BLOCK`] threads per block, any grid, no shared memory.
    /// - `k` is 1 to the most bases of `W`; `bits` is at least `2 * k`; at most 64 for `u64`; even and at most 126 for
    ///   `u128`.
    /// - `bases`, `breaks`: valid for [`PADDING`] words each after `words`, not written while the kernel runs.
    /// - `out`: valid for one write per k-mer, at most `32 * words`, from the value of `next` on; no other thread
    ///   accesses it while the kernel runs.
    /// - `next`: one word, only accessed atomically while the kernel runs; the kernel adds the number of k-mers.
    pub unsafe fn kmers_fingerprints<W>(
        bases: Global<u64>, breaks: Global<u32>, words: usize, k: u32, bits: u32,
        out: GlobalMut<W>, next: GlobalMut<u64>,
    ) for [
        #[launch_bounds(256, 4)] u64 => kmers_fingerprints_u64,
        #[launch_bounds(256, 4)] u128 => kmers_fingerprints_u128,
    ] {
        let lane = warp::lane_id();
        let mut first = thread::block_idx_x() as usize * TILE_WORDS + (thread::thread_idx_x() & !31) as usize;
        while first < words {
            let word = first + lane as usize;
            let (mut low, mut middle, mut high, mut broken) = (0, 0, 0, !W::default());
            if word < words {
                // SAFETY: `bases` and `breaks` have `PADDING` words after `words`, and the word is below `words`.
                unsafe {
                    (low, middle) = (bases.read_nc(word), bases.read_nc(word + 1));
                    broken = W::from(breaks.read_nc(word) as u64 | (breaks.read_nc(word + 1) as u64) << 32);
                    if W::MOST_K > 32 {
                        high = bases.read_nc(word + 2);
                        broken |= W::from(breaks.read_nc(word + 2) as u64) << 32 << 32;
                    }
                }
            }
            let whole = whole_windows(broken, k);
            // SAFETY: `first` is equal in all lanes of a warp, so all of them arrive here. The counter gives each warp
            // its own places, one per k-mer.
            unsafe {
                let sum = warp::inclusive_scan_add(warp::FULL_MASK, whole.count_ones());
                let all = warp::shuffle_idx(warp::FULL_MASK, sum, 31);
                let mut place = 0;
                if lane == 0 && all > 0 {
                    place = atomic::fetch_add(next, all as u64);
                }
                let mut place = warp::shuffle_idx(warp::FULL_MASK, place, 0) as usize;
                let mut step = 0;
                while step < 32 {
                    let whole = warp::shuffle_idx(warp::FULL_MASK, whole, step);
                    let low = warp::shuffle_idx(warp::FULL_MASK, low, step);
                    let middle = warp::shuffle_idx(warp::FULL_MASK, middle, step);
                    let high = if W::MOST_K > 32 { warp::shuffle_idx(warp::FULL_MASK, high, step) } else { 0 };
                    if whole >> lane & 1 != 0 {
                        // For lane 0 the next word is shifted out entirely, in two steps, since a shift by 64 is
                        // undefined.
                        let join = |low: u64, high: u64| low >> (2 * lane) | high << 1 << (63 - 2 * lane);
                        let mut window = W::from(join(low, middle));
                        if W::MOST_K > 32 {
                            window |= W::from(join(middle, high)) << 32 << 32;
                        }
                        let rank = (whole & warp::lane_mask_lt()).count_ones() as usize;
                        out.write(place + rank, canonical(window, k).fingerprint(bits));
                    }
                    place += whole.count_ones() as usize;
                    step += 1;
                }
            }
            first += thread::grid_dim_x() as usize * TILE_WORDS;
        }
    }

    /// Adds to `classes[c]` the number of `copies` of class `c` ([`class_of`]).
    ///
    /// # Safety
    /// - Launch: 1-D, [`BLOCK`] threads per block, any grid of fewer than 2^32 items per block,
    ///   [`CLASSES_SHARED_BYTES`] of shared memory.
    /// - `copies`: valid for `n` reads, not written while the kernel runs.
    /// - `classes`: [`CLASSES`] words, only accessed atomically while the kernel runs.
    pub unsafe fn kmers_classes(copies: Global<u64>, n: usize, classes: GlobalMut<u64>) {
        let counts: Shared<u32> = shared::dynamic(0);
        let t = thread::thread_idx_x();
        // SAFETY: one thread per class clears and adds it, with barriers between; `class_of` is below `CLASSES`; `i <
        // n`.
        unsafe {
            if t < CLASSES as u32 {
                counts.set(t, 0);
            }
            thread::sync_threads();
            for i in thread::grid_stride(n) {
                counts.fetch_add(class_of(copies.read_nc(i)) as u32, 1);
            }
            thread::sync_threads();
            if t < CLASSES as u32 {
                let count = counts.get(t);
                if count > 0 {
                    atomic::reduce_add(classes.at(t as usize), count as u64);
                }
            }
        }
    }

    /// Sets bit `i` of `bitmap` exactly if `copies[i]` is at least `least`, for `i` below `n`; clears the bits of the
    /// last word past `n`.
    ///
    /// # Safety
    /// - Launch: 1-D, [`BLOCK`] threads per block, any grid, no shared memory.
    /// - `copies`: valid for `n` reads, not written while the kernel runs.
    /// - `bitmap`: valid for `2 * n.div_ceil(64)` words of 32 bits; no other thread accesses it while the kernel runs.
    pub unsafe fn kmers_frequent(copies: Global<u64>, n: usize, least: u64, bitmap: GlobalMut<u32>) {
        let lane = warp::lane_id();
        let mut first = (thread::index_1d() & !31) as usize;
        while first < n.next_multiple_of(64) {
            let i = first + lane as usize;
            // SAFETY: `first` is equal in all lanes of a warp, so all of them vote. Each warp writes its own words,
            // which are below `2 * n.div_ceil(64)`.
            unsafe {
                let frequent = warp::ballot(warp::FULL_MASK, i < n && copies.read_nc(i) >= least);
                if lane == 0 {
                    bitmap.write(first / 32, frequent);
                }
            }
            first += thread::grid_dim_x() as usize * BLOCK as usize;
        }
    }
}

#[cfg(all(test, not(target_arch = "nvptx64")))]
mod tests {
    use warpset_core::hash::finalise;

    use super::*;

    /// Computes the canonical k-mer base by base.
    fn plain(window: u128, k: u32) -> u128 {
        let base = |i: u32| window >> (2 * i) & 3;
        let forward = (0..k).fold(0, |kmer, i| kmer << 2 | base(i));
        let reverse = (0..k).rev().fold(0, |kmer, i| kmer << 2 | (3 - base(i)));
        Ord::min(forward, reverse)
    }

    #[test]
    fn canonical_kmers_are_the_smaller_of_both_strands() {
        let random = |i| (finalise(i) as u128) << 64 | finalise(!i) as u128;
        for k in 1..=63 {
            for window in (0..200).map(random).chain([0, !0, 0x1b1b_1b1b_1b1b_1b1b]) {
                let wanted = plain(window, k);
                assert_eq!(canonical(window, k), wanted, "{k} {window:x}");
                assert!(k > 32 || canonical(window as u64, k) as u128 == wanted, "{k} {window:x}");
            }
        }
    }

    #[test]
    fn windows_with_a_break_are_none() {
        for k in 1..=63 {
            for breaks in (0..200).map(|i| {
                let random = (finalise(i) as u128) << 64 | finalise(!i) as u128;
                random & random.rotate_left(7) & random.rotate_left(20) & random.rotate_left(41)
            }) {
                let wanted =
                    (0..32).filter(|i| (breaks >> i) & (!0 >> (128 - k)) == 0).fold(0u32, |bits, i| bits | 1 << i);
                assert_eq!(whole_windows(breaks, k), wanted, "{k} {breaks:x}");
                assert!(k > 32 || whole_windows(breaks as u64, k) == wanted, "{k} {breaks:x}");
            }
        }
    }

    #[test]
    fn classes_begin_where_they_say() {
        for class in 0..CLASSES {
            let least = least_of(class);
            assert_eq!(class_of(least), class);
            assert!(class == 0 || class_of(least - 1) == class - 1);
        }
        assert_eq!(class_of(u64::MAX), CLASSES - 1);
    }
}

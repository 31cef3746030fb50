//! Conversion of numbers to words: the Golomb-Rice codes of all buckets.
//!
//! Source: sections 4.4 and 5.10. Departure: the thesis encodes on the host, or with one thread per bucket. Here a few
//! lanes share a bucket and take its numbers side by side: the position of a number's fixed part follows from its index
//! ([`place_of`]), and the end of its unary part from a scan over the lanes. One launch adds up the bits of each
//! bucket, and after a scan over the buckets another one writes them.
//!
//! Words are zero before, and bits are or-ed in: neighbouring codes share words, also across buckets.

#[cfg(feature = "bodies")]
use crate::recsplit::memory::{put, row_at};
use warpset_core::recsplit::place::{CodeRow, Place, place_of};
use warpset_simt::{Global, GlobalMut, atomic, thread, warp};

/// Threads of a block, in every kernel of this module.
pub const BLOCK: u32 = 256;

/// A bucket in the lanes that share it.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct Bucket {
    keys: u32,
    row: CodeRow,
    /// Position of its first number.
    first: usize,
}

/// Memory of all buckets.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct Trees {
    bounds: Global<u32>,
    buckets: usize,
    rows: Global<u32>,
    first_number: Global<u32>,
    numbers: Global<u64>,
}

#[cfg(feature = "bodies")]
impl Trees {
    /// Reads a bucket; an empty one past the last.
    ///
    /// # Safety
    /// The fields fulfil the kernels' contracts.
    #[inline(always)]
    unsafe fn bucket(self, bucket: usize) -> Bucket {
        let (mut keys, mut first) = (0, 0);
        if bucket < self.buckets {
            // SAFETY: this function's contract; there is one bound more than buckets.
            unsafe {
                keys = self.bounds.read_nc(bucket + 1) - self.bounds.read_nc(bucket);
                first = self.first_number.read_nc(bucket) as usize;
            }
        }
        // SAFETY: this function's contract.
        Bucket { keys, row: unsafe { row_at(self.rows, keys) }, first }
    }

    /// Returns place and value of a number of a bucket.
    ///
    /// # Safety
    /// The contract of [`Trees::bucket`], and `index` is below the numbers of the bucket.
    #[inline(always)]
    unsafe fn number(self, bucket: Bucket, index: u32) -> (Place, u64) {
        // SAFETY: there are rows for all numbers of keys up to the bucket's; the bucket's numbers are valid.
        unsafe {
            let place = place_of(|keys| row_at(self.rows, keys), bucket.keys, bucket.row, index);
            (place, self.numbers.read_nc(bucket.first + index as usize))
        }
    }
}

/// Returns the sum over the `LANES` lanes that share a bucket, in all of them.
///
/// # Safety
/// All lanes of the warp come here together.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
unsafe fn sum<const LANES: u32>(mut value: u64) -> u64 {
    let mut distance = LANES / 2;
    while distance > 0 {
        // SAFETY: this function's contract.
        value += unsafe { warp::shuffle_xor(warp::FULL_MASK, value, distance) };
        distance /= 2;
    }
    value
}

/// Returns the sum over those of the `LANES` lanes up to this one.
///
/// # Safety
/// All lanes of the warp come here together.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
unsafe fn sum_up_to<const LANES: u32>(mut value: u64) -> u64 {
    let lane = warp::lane_id() % LANES;
    let mut distance = 1;
    while distance < LANES {
        // SAFETY: this function's contract.
        let before = unsafe { warp::shuffle_up(warp::FULL_MASK, value, distance) };
        if lane >= distance {
            value += before;
        }
        distance *= 2;
    }
    value
}

/// Adds up the bits of each bucket.
///
/// # Safety
/// The contract of [`recsplit_bits`].
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn bits<const LANES: u32>(trees: Trees, bits_before: GlobalMut<u64>, least: GlobalMut<u64>) {
    let thread = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
    let (index, lane) = (thread / LANES as usize, warp::lane_id() % LANES);
    // SAFETY: the kernel's contract; numbers are read below the bucket's count of them; all lanes reach the vote and
    // the sum; one lane writes the bucket's word; `least` has a word for the keys of every bucket.
    unsafe {
        let bucket = trees.bucket(index);
        let count = bucket.row.nodes as u32;
        let (mut unary, mut start) = (0, 0);
        while warp::any(warp::FULL_MASK, start < count) {
            if start + lane < count {
                let (place, number) = trees.number(bucket, start + lane);
                unary += number >> place.golomb;
            }
            start += LANES;
        }
        let bits = sum::<LANES>(unary) + (bucket.row.fixed_bits + count) as u64;
        if index < trees.buckets && lane == 0 {
            bits_before.write(index, bits);
            let least = least.at(bucket.keys as usize);
            if bits < atomic::load_relaxed(least) {
                atomic::reduce_min(least, bits);
            }
        }
    }
}

/// Writes the bits of each bucket.
///
/// # Safety
/// The contract of [`recsplit_encode`].
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn encode<const LANES: u32>(trees: Trees, bits_before: Global<u64>, origin: u64, words: GlobalMut<u64>) {
    let thread = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
    let (index, lane) = (thread / LANES as usize, warp::lane_id() % LANES);
    // SAFETY: the kernel's contract; numbers are read below the bucket's count of them; all lanes reach the votes, sums
    // and shuffles; the bits of a bucket are those that `bits` has counted.
    unsafe {
        let bucket = trees.bucket(index);
        let count = bucket.row.nodes as u32;
        let fixed = if index < trees.buckets { bits_before.read_nc(index) - origin } else { 0 };
        // Current ends of the unary parts of the higher levels, and of the others.
        let mut higher = fixed + bucket.row.fixed_bits as u64;
        let mut others = higher;
        if warp::any(warp::FULL_MASK, bucket.row.is_higher != 0) {
            let (mut unary, mut start) = (0, 0);
            while warp::any(warp::FULL_MASK, start < count) {
                if start + lane < count {
                    let (place, number) = trees.number(bucket, start + lane);
                    if place.is_higher {
                        unary += (number >> place.golomb) + 1;
                    }
                }
                start += LANES;
            }
            others += sum::<LANES>(unary);
        }
        let mut start = 0;
        while warp::any(warp::FULL_MASK, start < count) {
            // Both lengths in one word: those of a bucket fit 32 bits.
            let (mut lengths, mut is_higher) = (0, false);
            if start + lane < count {
                let (place, number) = trees.number(bucket, start + lane);
                is_higher = place.is_higher;
                lengths = ((number >> place.golomb) + 1) << if is_higher { 32 } else { 0 };
                put(words, fixed + place.fixed_at as u64, number & ((1 << place.golomb) - 1));
            }
            let ends = sum_up_to::<LANES>(lengths);
            if lengths != 0 {
                let end = if is_higher { higher + (ends >> 32) } else { others + (ends & 0xffff_ffff) };
                put(words, end - 1, 1);
            }
            let last = (warp::lane_id() & !(LANES - 1)) + LANES - 1;
            let all = warp::shuffle_idx(warp::FULL_MASK, ends, last);
            higher += all >> 32;
            others += all & 0xffff_ffff;
            start += LANES;
        }
    }
}

kernel! {
    /// Writes the bits of each bucket, and lowers `least` to the least number of bits of a bucket by its number of
    /// keys.
    ///
    /// # Safety
    /// - Launch: 1-D, blocks of [`BLOCK`] threads, 32 threads per bucket, no shared memory.
    /// - `bounds`, `first_number`: `buckets + 1` each; `rows`: four words per number of keys up to that of the largest
    ///   bucket, at multiples of 16 bytes; `numbers`: those of all buckets. Nothing writes them while the kernel runs.
    /// - `bits_before`: `buckets` places, used by this launch alone; `least`: a word per number of keys, only accessed
    ///   atomically.
    #[launch_bounds(256, 6)]
    pub unsafe fn recsplit_bits(
        bounds: Global<u32>, buckets: usize, rows: Global<u32>, first_number: Global<u32>, numbers: Global<u64>,
        bits_before: GlobalMut<u64>, least: GlobalMut<u64>,
    ) {
        // SAFETY: the caller keeps this kernel's contract.
        unsafe { bits::<32>(Trees { bounds, buckets, rows, first_number, numbers }, bits_before, least) }
    }

    /// Runs [`recsplit_bits`] with 4 threads per bucket, for buckets of few numbers.
    ///
    /// # Safety
    /// The contract of [`recsplit_bits`].
    #[launch_bounds(256, 6)]
    pub unsafe fn recsplit_bits_few(
        bounds: Global<u32>, buckets: usize, rows: Global<u32>, first_number: Global<u32>, numbers: Global<u64>,
        bits_before: GlobalMut<u64>, least: GlobalMut<u64>,
    ) {
        // SAFETY: the caller keeps this kernel's contract.
        unsafe { bits::<4>(Trees { bounds, buckets, rows, first_number, numbers }, bits_before, least) }
    }

    /// Writes the bits of each bucket from number `bits_before - origin` on.
    ///
    /// # Safety
    /// - The contract of [`recsplit_bits`]; `bits_before` are its sums, and `origin` is at most the first.
    /// - `words`: valid for the bits of all buckets, zero there at the start and only accessed atomically.
    #[launch_bounds(256, 4)]
    pub unsafe fn recsplit_encode(
        bounds: Global<u32>, buckets: usize, rows: Global<u32>, first_number: Global<u32>, numbers: Global<u64>,
        bits_before: Global<u64>, origin: u64, words: GlobalMut<u64>,
    ) {
        // SAFETY: the caller keeps this kernel's contract.
        unsafe { encode::<32>(Trees { bounds, buckets, rows, first_number, numbers }, bits_before, origin, words) }
    }

    /// Runs [`recsplit_encode`] with 4 threads per bucket, for buckets of few numbers.
    ///
    /// # Safety
    /// The contract of [`recsplit_encode`].
    #[launch_bounds(256, 4)]
    pub unsafe fn recsplit_encode_few(
        bounds: Global<u32>, buckets: usize, rows: Global<u32>, first_number: Global<u32>, numbers: Global<u64>,
        bits_before: Global<u64>, origin: u64, words: GlobalMut<u64>,
    ) {
        // SAFETY: the caller keeps this kernel's contract.
        unsafe { encode::<4>(Trees { bounds, buckets, rows, first_number, numbers }, bits_before, origin, words) }
    }
}

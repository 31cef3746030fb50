//! Bits of the codes of buckets, which follow from their numbers of keys, and the positions of the codes.

#[cfg(feature = "bodies")]
use crate::recsplit::memory::put;
use warpset_simt::{Global, GlobalMut, atomic, thread, warp};

/// Threads of a block, in every kernel of this module.
pub const BLOCK: u32 = 256;

/// Words of [`consensus_sizes`] for observations.
pub const SEEN: usize = 2;
/// Word of [`SEEN`] for the keys of the largest bucket.
pub const LARGEST: usize = 0;
/// Word of [`SEEN`] for the inverse of the first bucket that is too large: 0 if there is none.
pub const TOO_LARGE: usize = 1;

kernel! {
    /// Writes the bits of each bucket's code, after a zero, and the number of keys before the end of each bucket.
    /// Buckets of more than `largest` keys have no code.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid of blocks of [`BLOCK`] threads, no shared memory.
    /// - `bounds`: `buckets + 1` ascending words, `bits_of`: a word per number of keys up to `largest`; nothing writes
    ///   either while the kernel runs.
    /// - `bits`, `keys_before`: `buckets + 1` and `buckets` places, used by this launch alone.
    /// - `seen`: [`SEEN`] words, zero at the start, only accessed atomically.
    pub unsafe fn consensus_sizes(
        bounds: Global<u32>, buckets: usize, bits_of: Global<u32>, largest: u32, base: u64, bits: GlobalMut<u64>,
        keys_before: GlobalMut<u64>, seen: GlobalMut<u64>,
    ) {
        let mut most = 0;
        for place in thread::grid_stride(buckets + 1) {
            // SAFETY: bounds are read up to `buckets`; the places belong to this thread.
            unsafe {
                let mut own = 0;
                if place > 0 {
                    let end = bounds.read_nc(place);
                    let keys = end - bounds.read_nc(place - 1);
                    keys_before.write(place - 1, base + end as u64);
                    most = if most < keys { keys } else { most };
                    if keys > largest {
                        atomic::reduce_max(seen.at(TOO_LARGE), !(place as u64 - 1));
                    } else {
                        own = bits_of.read_nc(keys as usize) as u64;
                    }
                }
                bits.write(place, own);
            }
        }
        // SAFETY: all lanes come here together; `seen` is accessed atomically.
        unsafe {
            let most = warp::reduce_max(warp::FULL_MASK, most) as u64;
            if warp::lane_id() == 0 && atomic::load_relaxed(seen.at(LARGEST)) < most {
                atomic::reduce_max(seen.at(LARGEST), most);
            }
        }
    }

    /// Adds the word before `bits_before` to the sums of bits up to the end of each bucket, and lowers `least` to the
    /// bits of a bucket by its number of keys.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid of blocks of [`BLOCK`] threads, no shared memory.
    /// - `bounds`, `first_bit`: `buckets + 1` each, `base`: one word; nothing writes them while the kernel runs.
    /// - `bits_before`: `buckets` places, used by this launch alone; `least`: a word per number of keys, only accessed
    ///   atomically.
    pub unsafe fn consensus_bits(
        bounds: Global<u32>, first_bit: Global<u64>, buckets: usize, base: Global<u64>, bits_before: GlobalMut<u64>,
        least: GlobalMut<u64>,
    ) {
        for bucket in thread::grid_stride(buckets) {
            // SAFETY: the places of `bucket` belong to this thread; the rest is this kernel's contract.
            unsafe {
                let (begin, end) = (first_bit.read_nc(bucket), first_bit.read_nc(bucket + 1));
                bits_before.write(bucket, base.read_nc(0) + end);
                let keys = bounds.read_nc(bucket + 1) - bounds.read_nc(bucket);
                let least = least.at(keys as usize);
                if end - begin < atomic::load_relaxed(least) {
                    atomic::reduce_min(least, end - begin);
                }
            }
        }
    }
}

kernel! {
    /// Combines `from`, `n` words, by `or` with the bits of `words` from number `base[0] - origin` on, one thread per
    /// word.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size, no shared memory.
    /// - `from`: valid for `n` words, `base`: one word of at least `origin`; nothing writes them while the kernel runs.
    /// - `words`: valid for the ones of `from`, and only accessed atomically.
    pub unsafe fn consensus_words(
        from: Global<u64>, n: usize, base: Global<u64>, origin: u64, words: GlobalMut<u64>,
    ) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`; words are accessed for ones only, and these have a place.
            unsafe { put(words, base.read_nc(0) - origin + 64 * i as u64, from.read_nc(i)) };
        }
    }
}

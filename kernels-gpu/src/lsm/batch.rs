//! Steps before and after the sort of a batch, which put tombstones first among equal keys, then the last insertion
//! (`warpset_lsm` gives the reason).

use warpset_simt::{Global, GlobalMut, thread, warp};

/// Threads per block.
pub const BLOCK: u32 = 256;

/// Bit of an insertion in the word of an element of a mixed batch. The other bits are its place in the batch.
pub const INSERTION: u32 = 1 << 31;

/// Copies a value of 0, 1 or 2 words of 32 bits.
///
/// # Safety
/// Both are valid for such a value at their places; nothing else accesses the output there.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
unsafe fn copy_value(from: Global<u32>, i: usize, out: GlobalMut<u32>, to: usize, words: u32) {
    // SAFETY: the contract of this function.
    unsafe {
        if words == 1 {
            out.write(to, from.read_nc(i));
        } else if words == 2 {
            out.cast::<u64>().write(to, from.cast::<u64>().read_nc(i));
        }
    }
}

kernel! {
    /// Writes the word of each element of a mixed batch, in reverse order: its place, and [`INSERTION`] unless its flag
    /// is set.
    ///
    /// # Safety
    /// - Launch: 1-D, any number of blocks of any size.
    /// - `removed`: valid for `n` reads, at most 2^31, not written while the kernel runs. `words`: valid for `n`
    ///   writes, used by this launch alone.
    pub unsafe fn lsm_order(removed: Global<u8>, n: usize, words: GlobalMut<u32>) {
        for i in thread::grid_stride(n) {
            let place = n - 1 - i;
            // SAFETY: `i < n`, hence `place < n`.
            unsafe {
                let insertion = if removed.read_nc(place) == 0 { INSERTION } else { 0 };
                words.write(i, place as u32 | insertion);
            }
        }
    }
}

kernel! {
    /// Writes the keys in the order of the words.
    ///
    /// # Safety
    /// - Launch: 1-D, any number of blocks of any size.
    /// - `keys`, `words`: valid for `n` reads, not written while the kernel runs; the words are those of [`lsm_order`]
    ///   for `n` elements.
    /// - `out`: valid for `n` writes, used by this launch alone.
    pub unsafe fn lsm_gather<K>(keys: Global<K>, words: Global<u32>, n: usize, out: GlobalMut<K>)
    for [u32 => lsm_gather_u32, u64 => lsm_gather_u64, u128 => lsm_gather_u128] {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`, and the words' places are below `n`.
            unsafe { out.write(i, keys.read_nc((words.read_nc(i) & !INSERTION) as usize)) };
        }
    }
}

kernel! {
    /// Writes the values in the order of the words, zero for removals, and one bit per element, set for removals, in
    /// whole words.
    ///
    /// # Safety
    /// - Launch: 1-D, any number of blocks of [`BLOCK`] threads.
    /// - The contract of [`lsm_gather`]; values have `value_words` words of 32 bits, 0, 1 or 2. `tombstones`: valid for
    ///   `n` bits in whole words, used by this launch alone.
    pub unsafe fn lsm_take(
        values: Global<u32>, value_words: u32, words: Global<u32>, n: usize, out_values: GlobalMut<u32>,
        tombstones: GlobalMut<u32>,
    ) {
        let lane = warp::lane_id() as usize;
        let threads = thread::grid_dim_x() as usize * BLOCK as usize;
        let mut first = thread::index_1d() as usize - lane;
        while first < n {
            let i = first + lane;
            let mut removal = false;
            // SAFETY: `i < n` for every read and write; all lanes reach the vote.
            unsafe {
                if i < n {
                    let word = words.read_nc(i);
                    removal = word & INSERTION == 0;
                    if !removal {
                        copy_value(values, (word & !INSERTION) as usize, out_values, i, value_words);
                    } else if value_words == 1 {
                        out_values.write(i, 0);
                    } else if value_words == 2 {
                        out_values.cast::<u64>().write(i, 0);
                    }
                }
                let bits = warp::ballot(u32::MAX, removal);
                if lane == 0 {
                    tombstones.write(first / 32, bits);
                }
            }
            first += threads;
        }
    }
}

kernel! {
    /// Sets the first `n` bits, and clears the others of the last word.
    ///
    /// # Safety
    /// - Launch: 1-D, any number of blocks of any size.
    /// - `words`: valid for `n` bits in whole words, used by this launch alone.
    pub unsafe fn lsm_ones(words: GlobalMut<u32>, n: usize) {
        for i in thread::grid_stride(n.div_ceil(32)) {
            let left = n - 32 * i;
            // SAFETY: `i` is below the number of words.
            unsafe { words.write(i, if left < 32 { (1 << left) - 1 } else { u32::MAX }) };
        }
    }
}

//! Forms in which a kernel writes one yes or no per key.

use warpset_simt::{GlobalMut, atomic, thread, warp};

/// One byte per key, 0 or 1.
pub const BYTES: u32 = 0;
/// One bit per key, lowest first, in whole 64-bit words; bits past the last key are zero.
pub const BITS: u32 = 1;
/// The number of positive answers, added to one 64-bit word.
pub const COUNT: u32 = 2;

/// Returns the words of 64 bits for the results of `n` keys in a form.
pub const fn words(form: u32, n: usize) -> usize {
    match form {
        BYTES => n.div_ceil(8),
        BITS => n.div_ceil(64),
        _ => 1,
    }
}

/// Writes the result of key `i` of `n`.
///
/// # Safety
/// - All threads of a block arrive together, with `i` the global index of the thread in a 1-D grid whose blocks are a
///   multiple of 64 threads.
/// - `out` has [`words`] words, used by this launch alone.
#[cfg(feature = "bodies")]
#[inline(always)]
pub unsafe fn put(form: u32, out: GlobalMut<u64>, i: usize, n: usize, yes: bool) {
    // SAFETY: bytes: `i < n`. Bits: a warp writes its own half of a word, and a word is written if its first key is
    // below `n`. The form is uniform, so all threads reach the vote or the barrier.
    unsafe {
        if form == BYTES {
            if i < n {
                out.cast::<u8>().write(i, yes as u8);
            }
        } else if form == BITS {
            let bits = warp::ballot(warp::FULL_MASK, yes);
            if warp::lane_id() == 0 && (i & !63) < n {
                out.cast::<u32>().write(i / 32, bits);
            }
        } else {
            let count = thread::sync_threads_count(yes);
            if thread::thread_idx_x() == 0 && count != 0 {
                atomic::reduce_add(out, count as u64);
            }
        }
    }
}

/// Reads the result that an earlier kernel wrote for key `i`, as bytes or bits.
///
/// # Safety
/// [`put`] has run for this key with this form.
#[cfg(feature = "bodies")]
#[inline(always)]
pub unsafe fn get(form: u32, out: GlobalMut<u64>, i: usize) -> bool {
    // SAFETY: the result exists, by the contract of this function.
    unsafe {
        if form == BYTES { out.cast::<u8>().read(i) != 0 } else { out.cast::<u32>().read(i / 32) >> (i % 32) & 1 != 0 }
    }
}

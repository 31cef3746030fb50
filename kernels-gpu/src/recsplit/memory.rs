//! Accesses of building kernels to their tables and words.

use warpset_core::recsplit::place::CodeRow;
use warpset_simt::{Global, GlobalMut, atomic};

/// Returns the row for `keys` keys.
///
/// # Safety
/// `rows` has four words per number of keys up to `keys`, at multiples of 16 bytes, and nothing writes them.
#[inline(always)]
pub unsafe fn row_at(rows: Global<u32>, keys: u32) -> CodeRow {
    // SAFETY: this function's contract.
    unsafe { CodeRow::from_words(rows.read4_nc(4 * keys as usize)) }
}

/// Combines `value`, of at most 64 bits, by `or` with the bits from `at` on.
///
/// # Safety
/// The words of these bits are valid and only accessed atomically.
#[inline(always)]
pub unsafe fn put(words: GlobalMut<u64>, at: u64, value: u64) {
    let shift = (at % 64) as u32;
    let beyond = if shift == 0 { 0 } else { value >> (64 - shift) };
    // SAFETY: this function's contract.
    unsafe {
        if value << shift != 0 {
            atomic::reduce_or(words.at((at / 64) as usize), value << shift);
        }
        if beyond != 0 {
            atomic::reduce_or(words.at((at / 64) as usize + 1), beyond);
        }
    }
}

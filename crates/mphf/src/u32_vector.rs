//! Vectors of 32-bit lanes, with the operations of the search.

pub(crate) mod portable;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86;

/// A vector of `N` lanes of 32 bits. A mask is a word with one bit per lane.
///
/// # Safety
/// Conditions of every method, and of every function that is generic over this trait:
/// - The processor has the instructions that the implementation uses.
/// - Pointers are valid for the lanes that are read or written; they need not be aligned.
pub(crate) unsafe trait U32Vector: Copy {
    /// Lanes in a vector.
    const N: usize;
    /// A table of 16 words, kept in registers.
    type Table: Copy;

    unsafe fn splat(x: u32) -> Self;
    /// Returns 0, 1, 2, …
    unsafe fn iota() -> Self;
    unsafe fn load(from: *const u32) -> Self;
    unsafe fn store(self, to: *mut u32);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    unsafe fn and(self, other: Self) -> Self;
    unsafe fn or(self, other: Self) -> Self;
    unsafe fn xor(self, other: Self) -> Self;
    unsafe fn shr<const BY: u32>(self) -> Self;
    /// Shifts each lane by its own count; 32 and more give zero.
    unsafe fn shlv(self, by: Self) -> Self;
    /// Shifts each lane by its own count; 32 and more give zero.
    unsafe fn shrv(self, by: Self) -> Self;
    /// Returns the high half of the product of the high halves, in the high half; the low half is zero if `other`'s is.
    unsafe fn mul_high_halves(self, other: Self) -> Self;
    unsafe fn eq(self, other: Self) -> u32;
    /// Returns the mask of `self < other`, unsigned.
    unsafe fn less(self, other: Self) -> u32;
    /// Returns `self + (a < b ? step : 0)`, unsigned.
    unsafe fn add_if_less(self, a: Self, b: Self, step: Self) -> Self;
    unsafe fn count_ones(self) -> Self;
    unsafe fn table(words: &[u32; 16]) -> Self::Table;
    /// Looks up each lane's index, below 16.
    unsafe fn look_up(table: Self::Table, index: Self) -> Self;
    /// Writes the lanes of `mask` one after another; may write `N` words in all.
    unsafe fn compress(self, mask: u32, to: *mut u32);

    /// Computes the exclusive or of three vectors.
    #[inline(always)]
    unsafe fn xor3(self, b: Self, c: Self) -> Self {
        // SAFETY: the processor has the instructions, by the trait's contract.
        unsafe { self.xor(b).xor(c) }
    }
}

/// Returns the mask of the first `n` lanes.
#[inline(always)]
pub(crate) const fn lanes_below(n: usize) -> u32 {
    if n >= 32 { u32::MAX } else { (1 << n) - 1 }
}

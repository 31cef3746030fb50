//! Vectors of 32-bit lanes, as few operations as the search needs.

/// A vector of `N` lanes of 32 bits. Masks are words with one bit for each lane.
///
/// # Safety
/// Every method may only be called where the instructions that the implementation uses are known to exist; this is the
/// one condition of all methods here, and of all functions that are generic over this trait. Pointers must be valid for
/// the lanes read or written; none needs to be aligned.
pub(crate) unsafe trait Lanes: Copy {
    /// Lanes in a vector.
    const N: usize;
    /// A table of 16 words, kept in registers.
    type Table: Copy;

    unsafe fn splat(x: u32) -> Self;
    /// 0, 1, 2, …
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
    /// High half of the product of the high halves, in the high half; the low half is zero if `other`'s is.
    unsafe fn mul_high_halves(self, other: Self) -> Self;
    unsafe fn eq(self, other: Self) -> u32;
    /// `self + (a < b ? step : 0)`, unsigned.
    unsafe fn add_if_less(self, a: Self, b: Self, step: Self) -> Self;
    unsafe fn count_ones(self) -> Self;
    unsafe fn table(words: &[u32; 16]) -> Self::Table;
    /// Looks up each lane's index, below 16.
    unsafe fn look_up(table: Self::Table, index: Self) -> Self;
    /// Writes the lanes of `mask` one after another; may write `N` words in all.
    unsafe fn compress(self, mask: u32, to: *mut u32);

    /// The three-way exclusive or.
    #[inline(always)]
    unsafe fn xor3(self, b: Self, c: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe { self.xor(b).xor(c) }
    }
}

/// The mask of all `n` lanes.
#[inline(always)]
pub(crate) const fn lanes_below(n: usize) -> u32 {
    if n >= 32 { u32::MAX } else { (1 << n) - 1 }
}

/// Eight lanes with the portable vectors of crate `wide`.
#[derive(Clone, Copy)]
pub(crate) struct Portable(wide::u32x8);

impl Portable {
    #[inline(always)]
    fn map2(self, other: Self, f: impl Fn(u32, u32) -> u32) -> Self {
        let (a, b) = (self.0.to_array(), other.0.to_array());
        Self(wide::u32x8::new(std::array::from_fn(|i| f(a[i], b[i]))))
    }
}

// SAFETY: no instruction beyond the target's own; every pointer is used for `N` lanes as documented.
unsafe impl Lanes for Portable {
    const N: usize = 8;
    type Table = [u32; 16];

    #[inline(always)]
    unsafe fn splat(x: u32) -> Self {
        Self(wide::u32x8::splat(x))
    }
    #[inline(always)]
    unsafe fn iota() -> Self {
        Self(wide::u32x8::new([0, 1, 2, 3, 4, 5, 6, 7]))
    }
    #[inline(always)]
    unsafe fn load(from: *const u32) -> Self {
        // SAFETY: the caller's pointer is valid for eight reads; an array of words has their alignment of 4, and the
        // read is unaligned.
        Self(wide::u32x8::new(unsafe { from.cast::<[u32; 8]>().read_unaligned() }))
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u32) {
        // SAFETY: the caller's pointer is valid for eight writes.
        unsafe { to.cast::<[u32; 8]>().write_unaligned(self.0.to_array()) };
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        Self(self.0 * other.0)
    }
    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
    #[inline(always)]
    unsafe fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        Self(self.0 ^ other.0)
    }
    #[inline(always)]
    unsafe fn shr<const BY: u32>(self) -> Self {
        Self(self.0 >> BY)
    }
    #[inline(always)]
    unsafe fn shlv(self, by: Self) -> Self {
        self.map2(by, |x, by| x.checked_shl(by).unwrap_or(0))
    }
    #[inline(always)]
    unsafe fn shrv(self, by: Self) -> Self {
        self.map2(by, |x, by| x.checked_shr(by).unwrap_or(0))
    }
    #[inline(always)]
    unsafe fn mul_high_halves(self, other: Self) -> Self {
        self.map2(other, |x, y| (((x >> 16) * (y >> 16)) >> 16) << 16)
    }
    #[inline(always)]
    unsafe fn eq(self, other: Self) -> u32 {
        let (a, b) = (self.0.to_array(), other.0.to_array());
        (0..8).fold(0, |mask, i| mask | u32::from(a[i] == b[i]) << i)
    }
    #[inline(always)]
    unsafe fn add_if_less(self, a: Self, b: Self, step: Self) -> Self {
        let (s, a, b, t) = (self.0.to_array(), a.0.to_array(), b.0.to_array(), step.0.to_array());
        Self(wide::u32x8::new(std::array::from_fn(|i| s[i].wrapping_add(if a[i] < b[i] { t[i] } else { 0 }))))
    }
    #[inline(always)]
    unsafe fn count_ones(self) -> Self {
        self.map2(self, |x, _| x.count_ones())
    }
    #[inline(always)]
    unsafe fn table(words: &[u32; 16]) -> [u32; 16] {
        *words
    }
    #[inline(always)]
    unsafe fn look_up(table: [u32; 16], index: Self) -> Self {
        index.map2(index, |i, _| table[i as usize & 15])
    }
    #[inline(always)]
    unsafe fn compress(self, mut mask: u32, mut to: *mut u32) {
        let lanes = self.0.to_array();
        while mask != 0 {
            // SAFETY: at most eight words are written, which the caller's pointer is valid for.
            unsafe {
                to.write(lanes[mask.trailing_zeros() as usize & 7]);
                to = to.add(1);
            }
            mask &= mask - 1;
        }
    }
}

//! Portable vectors.

use super::U32Vector;

/// Eight lanes with the portable vectors of crate `wide`.
#[derive(Clone, Copy)]
pub(crate) struct Portable(wide::u32x8);

impl Portable {
    #[inline(always)]
    fn map2(self, other: Self, f: impl Fn(u32, u32) -> u32) -> Self {
        let (mut a, b) = (self.0.to_array(), other.0.to_array());
        // Loops, since `array::from_fn` may remain a call.
        for i in 0..8 {
            a[i] = f(a[i], b[i]);
        }
        Self(wide::u32x8::new(a))
    }
}

// SAFETY: no instruction beyond the target's own; every pointer is used for `N` lanes as documented.
unsafe impl U32Vector for Portable {
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
        // SAFETY: `from` is valid for eight reads, by the trait's contract; the read is unaligned.
        Self(wide::u32x8::new(unsafe { from.cast::<[u32; 8]>().read_unaligned() }))
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u32) {
        // SAFETY: `to` is valid for eight writes, by the trait's contract.
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
    unsafe fn less(self, other: Self) -> u32 {
        let (a, b) = (self.0.to_array(), other.0.to_array());
        (0..8).fold(0, |mask, i| mask | u32::from(a[i] < b[i]) << i)
    }
    #[inline(always)]
    unsafe fn add_if_less(self, a: Self, b: Self, step: Self) -> Self {
        let (mut s, a, b, t) = (self.0.to_array(), a.0.to_array(), b.0.to_array(), step.0.to_array());
        for i in 0..8 {
            s[i] = s[i].wrapping_add(if a[i] < b[i] { t[i] } else { 0 });
        }
        Self(wide::u32x8::new(s))
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
            // SAFETY: at most eight words are written, and `to` is valid for them, by the trait's contract.
            unsafe {
                to.write(lanes[mask.trailing_zeros() as usize & 7]);
                to = to.add(1);
            }
            mask &= mask - 1;
        }
    }
}

//! Fingerprints with slots and numbers of items of the same width: 32 and 64 bits.

use warpset_core::bits::ReadWords;
use warpset_core::quotient::slots::BLOCK_SLOTS;
use warpset_core::scan::{Lift, MaxPlus, Number, Operator};
use warpset_simt::{Global, ShuffleWord};

use super::window::{Pending, Window};
use super::{ITEMS_U32, ITEMS_U64};
use crate::look_back::Published;
use crate::quotient::memory::{Fill, Filling, Fingerprint, ReadOnly};

/// Fingerprint with slots and numbers of items of the same width.
pub trait Slot: Fingerprint + ShuffleWord + Number {
    /// Items per thread.
    const ITEMS: usize;
    /// Operator over functions of the first free slot: [`Lift`]s of slots, composed.
    type Fillings: Operator<Value: Published>;
    /// Returns the quotient.
    fn quotient(self, remainder_bits: u32) -> Self;
    /// Returns the first slot of the next block of slots.
    #[inline(always)]
    fn block_after(self) -> Self {
        Self::of((self.bits() | (BLOCK_SLOTS - 1)).wrapping_add(1))
    }
    /// Returns the distance of two slots that are not far apart.
    #[inline(always)]
    fn minus(self, base: Self) -> u32 {
        self.bits().wrapping_sub(base.bits()) as u32
    }
    /// Returns the composable form of such a function.
    fn fill(lift: Lift<Self>) -> <Self::Fillings as Operator>::Value;
    /// Returns the function of a composable form.
    fn lift(fill: <Self::Fillings as Operator>::Value) -> Lift<Self>;
    /// Puts a remainder of this many bits at a bit of a window.
    ///
    /// # Safety
    /// The contract of [`Pending::add`].
    #[cfg(feature = "bodies")]
    unsafe fn put(self, remainders: &mut Pending, window: Window, at: u32, remainder_bits: u32);
    /// Joins a quotient and a remainder of this many bits.
    fn joined(quotient: Self, remainder: Self, remainder_bits: u32) -> Self;
    /// Reads `width` bits from bit `at` of memory on; no word without any of them is read.
    ///
    /// # Safety
    /// The words with these bits are valid for reads, and `width` is at most the width of this type.
    #[cfg(feature = "bodies")]
    unsafe fn read_field(words: Global<u64>, at: u32, width: u32) -> Self;
    /// Reads items `i` to `i + 3`.
    ///
    /// # Safety
    /// - All of them are valid for reading.
    /// - Their address is a multiple of 16.
    #[cfg(feature = "bodies")]
    unsafe fn read4(from: Global<Self>, i: usize) -> [Self; 4];
}

impl Slot for u32 {
    const ITEMS: usize = ITEMS_U32;
    type Fillings = MaxPlus<u32>;
    #[inline(always)]
    fn quotient(self, remainder_bits: u32) -> u32 {
        self >> remainder_bits
    }
    #[inline(always)]
    fn fill(lift: Lift<u32>) -> Lift<u32> {
        lift
    }
    #[inline(always)]
    fn lift(fill: Lift<u32>) -> Lift<u32> {
        fill
    }
    #[cfg(feature = "bodies")]
    #[inline(always)]
    unsafe fn put(self, remainders: &mut Pending, window: Window, at: u32, remainder_bits: u32) {
        // SAFETY: the contract is the same.
        unsafe { remainders.field(window, at, remainder_bits, self) }
    }
    #[inline(always)]
    fn joined(quotient: u32, remainder: u32, remainder_bits: u32) -> u32 {
        quotient << remainder_bits | remainder
    }
    #[cfg(feature = "bodies")]
    #[inline(always)]
    unsafe fn read_field(words: Global<u64>, at: u32, width: u32) -> u32 {
        let (words, index, shift) = (words.cast::<u32>(), at as usize / 32, at % 32);
        // SAFETY: the contract is the same.
        unsafe {
            let mut value = words.read_nc(index) >> shift;
            if shift + width > 32 {
                value |= words.read_nc(index + 1) << (32 - shift);
            }
            value & (u32::MAX >> (32 - width))
        }
    }
    #[cfg(feature = "bodies")]
    #[inline(always)]
    unsafe fn read4(from: Global<u32>, i: usize) -> [u32; 4] {
        // SAFETY: the contract is the same.
        unsafe { from.read4_nc(i) }
    }
}

impl Slot for u64 {
    const ITEMS: usize = ITEMS_U64;
    type Fillings = Filling;
    #[inline(always)]
    fn quotient(self, remainder_bits: u32) -> u64 {
        self >> remainder_bits
    }
    #[inline(always)]
    fn fill(lift: Lift<u64>) -> Fill {
        Fill(lift)
    }
    #[inline(always)]
    fn lift(fill: Fill) -> Lift<u64> {
        fill.0
    }
    #[cfg(feature = "bodies")]
    #[inline(always)]
    unsafe fn put(self, remainders: &mut Pending, window: Window, at: u32, remainder_bits: u32) {
        // SAFETY: the contract is the same.
        unsafe { remainders.wide_field(window, at, remainder_bits, self) }
    }
    #[inline(always)]
    fn joined(quotient: u64, remainder: u64, remainder_bits: u32) -> u64 {
        quotient << remainder_bits | remainder
    }
    #[cfg(feature = "bodies")]
    #[inline(always)]
    unsafe fn read_field(words: Global<u64>, at: u32, width: u32) -> u64 {
        ReadOnly(words).field(at as u64, width)
    }
    #[cfg(feature = "bodies")]
    #[inline(always)]
    unsafe fn read4(from: Global<u64>, i: usize) -> [u64; 4] {
        // SAFETY: the contract is the same, for two pairs.
        let ([a, b], [c, d]) = unsafe { (from.read2_nc(i), from.read2_nc(i + 2)) };
        [a, b, c, d]
    }
}

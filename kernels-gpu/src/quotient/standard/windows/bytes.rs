//! Windows of slots of a whole number of bytes that is a power of two: the 16 or 32 bytes around a slot.

use super::{Window, Windows};
use crate::quotient::memory::Pairs;

/// Windows of slots of `WIDTH` bytes, of `WORDS` words each.
#[derive(Clone, Copy, Debug)]
pub struct ByteWindows<const WIDTH: u32, const WORDS: usize, P> {
    words: P,
    slots: u64,
}

impl<const WIDTH: u32, const WORDS: usize, P: Pairs> ByteWindows<WIDTH, WORDS, P> {
    /// Makes windows of the slots in `words`, whole blocks of 64.
    #[inline(always)]
    pub fn new(words: P, slots: u64) -> Self {
        const { assert!(WIDTH.is_power_of_two() && WIDTH <= 8 && (WORDS == 2 || WORDS == 4)) };
        ByteWindows { words, slots }
    }

    /// Returns the bytes of slot `j`, from the lowest bit on, and the bits after them in its word.
    #[inline(always)]
    fn slot(window: [u64; WORDS], j: u32) -> u64 {
        let at = j * 8 * WIDTH;
        window[(at / 64) as usize] >> (at % 64)
    }

    /// Returns bit `bit` of each slot.
    #[inline(always)]
    fn metadata(window: [u64; WORDS], bit: u32) -> u32 {
        let mut mask = 0;
        if WIDTH == 1 {
            for k in 0..WORDS {
                mask |= gather(halves(window[k]), bit) << (8 * k);
            }
        } else {
            for j in 0..Self::SLOTS {
                mask |= (Self::slot(window, j) as u32 >> bit & 1) << j;
            }
        }
        mask
    }

    /// Returns the slots with this remainder.
    #[inline(always)]
    fn equal(window: [u64; WORDS], remainder: u64) -> u32 {
        let mut mask = 0;
        if WIDTH == 1 {
            let wanted = ((remainder as u32) << 3).wrapping_mul(0x0101_0101);
            for k in 0..WORDS {
                let [low, high] = halves(window[k]);
                mask |= gather([zero(low ^ wanted), zero(high ^ wanted)], 7) << (8 * k);
            }
        } else {
            for j in 0..Self::SLOTS {
                let differs = (Self::slot(window, j) >> 3 ^ remainder) << (67 - 8 * WIDTH);
                mask |= ((differs == 0) as u32) << j;
            }
        }
        mask
    }
}

/// Sets the highest bit of each byte whose bits above the metadata are zero.
#[inline(always)]
const fn zero(bytes: u32) -> u32 {
    !(((bytes & 0x7878_7878) + 0x7f7f_7f7f) | bytes) & 0x8080_8080
}

#[inline(always)]
const fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

/// Gathers bit `bit` of each of eight bytes.
#[inline(always)]
fn gather([low, high]: [u32; 2], bit: u32) -> u32 {
    let mask = 0x0101_0101 << bit;
    dot(high & mask, 0x8040_2010, dot(low & mask, 0x0804_0201, 0)) >> bit
}

/// Adds the products of the bytes of `a` with those of `b` to `sum`.
#[cfg(not(target_arch = "nvptx64"))]
#[inline(always)]
fn dot(a: u32, b: u32, sum: u32) -> u32 {
    core::iter::zip(a.to_le_bytes(), b.to_le_bytes()).fold(sum, |sum, (a, b)| sum + a as u32 * b as u32)
}

/// Adds the products of the bytes of `a` with those of `b` to `sum`, in one instruction.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn dot(a: u32, b: u32, sum: u32) -> u32 {
    let result: u32;
    // SAFETY: arithmetic on registers.
    unsafe {
        core::arch::asm!("dp4a.u32.u32 {r}, {a}, {b}, {c};", r = out(reg32) result, a = in(reg32) a, b = in(reg32) b,
            c = in(reg32) sum, options(pure, nomem, nostack, preserves_flags));
    }
    result
}

impl<const WIDTH: u32, const WORDS: usize, P: Pairs> Windows for ByteWindows<WIDTH, WORDS, P> {
    type Mask = u32;
    type Rest = [u64; WORDS];
    const SLOTS: u32 = WORDS as u32 * 8 / WIDTH;
    const ALL: u32 = !0 >> (32 - Self::SLOTS);

    #[inline(always)]
    fn count(&self) -> u64 {
        self.slots / Self::SLOTS as u64
    }

    #[inline(always)]
    fn read(&self, window: u64) -> Window<u32, [u64; WORDS]> {
        let first = window * WORDS as u64;
        let mut words = [0; WORDS];
        for pair in 0..WORDS / 2 {
            [words[2 * pair], words[2 * pair + 1]] = self.words.pair(first + 2 * pair as u64);
        }
        let [occupied, continuations, shifted] = [0, 1, 2].map(|bit| Self::metadata(words, bit));
        Window { occupied, continuations, shifted, rest: words }
    }

    #[inline(always)]
    fn stores(&self, _: u64, words: [u64; WORDS], from: u32, to: u32, remainder: u64) -> bool {
        let slots = (!0 << from) & (!0 >> (32 - to));
        Self::equal(words, remainder) & slots != 0
    }
}

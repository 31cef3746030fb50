//! Slots composed in shared memory, in 32-bit arithmetic.

use warpset_core::quotient::slots::{Container, bytes_of_slot};
use warpset_simt::shared::Shared;

use super::Slot;

/// Bits of a word of a window that are not there yet.
#[derive(Clone, Copy)]
struct Pending {
    index: u32,
    bits: u32,
}

/// Items of ascending slots on their way to a window in shared memory, words of 32 bits to which all threads add.
///
/// The same as [`Appender`], with slots relative to the window.
pub(super) struct Writer<const PACKED: bool> {
    words: Shared<u32>,
    remainder_bits: u32,
    /// Words of 64 slots; bits of a slot where it has whole bytes.
    block_words: u32,
    slot_bits: u32,
    occupieds: Pending,
    /// `is_continuation`, and `is_shifted`, two words later.
    continuations: Pending,
    shifteds: u32,
    remainders: Pending,
}

impl<const PACKED: bool> Writer<PACKED> {
    #[inline(always)]
    pub(super) fn new(words: Shared<u32>, remainder_bits: u32) -> Self {
        let container = if PACKED { Container::Packed } else { Container::Bytes };
        let nothing = Pending { index: 0, bits: 0 };
        Writer {
            words,
            remainder_bits,
            block_words: 2 * container.block_words(remainder_bits) as u32,
            slot_bits: 8 * bytes_of_slot(remainder_bits),
            occupieds: nothing,
            continuations: nothing,
            shifteds: 0,
            remainders: nothing,
        }
    }

    /// # Safety
    /// - The word is the window's, and so are all that items put so far have bits in.
    /// - Threads add to them and nothing else.
    #[inline(always)]
    unsafe fn or(&self, index: u32, bits: u32) {
        if bits != 0 {
            // SAFETY: the caller's promise.
            unsafe { self.words.reduce_or(index, bits) };
        }
    }

    /// # Safety
    /// As [`or`](Self::or).
    #[inline(always)]
    unsafe fn add(&mut self, index: u32, bits: u32) {
        if index != self.remainders.index {
            // SAFETY: the caller's promise.
            unsafe { self.or(self.remainders.index, self.remainders.bits) };
            self.remainders = Pending { index, bits: 0 };
        }
        self.remainders.bits |= bits;
    }

    /// Up to 32 bits from bit `at` on.
    ///
    /// # Safety
    /// As [`or`](Self::or).
    #[inline(always)]
    unsafe fn field(&mut self, at: u32, width: u32, value: u32) {
        let (index, shift) = (at / 32, at % 32);
        // SAFETY: the caller's promise.
        unsafe {
            self.add(index, value << shift);
            if shift + width > 32 {
                self.add(index + 1, value >> (32 - shift));
            }
        }
    }

    /// The same for any width.
    ///
    /// # Safety
    /// As [`or`](Self::or).
    #[inline(always)]
    unsafe fn wide_field(&mut self, at: u32, width: u32, value: u64) {
        // SAFETY: the caller's promise.
        unsafe {
            self.field(at, width.min(32), value as u32);
            if width > 32 {
                self.field(at + 32, width - 32, (value >> 32) as u32);
            }
        }
    }

    /// Sets `is_occupied` of a quotient.
    ///
    /// # Safety
    /// As [`or`](Self::or).
    #[inline(always)]
    pub(super) unsafe fn occupy(&mut self, quotient: u32) {
        let at =
            if PACKED { 32 * (quotient / 64 * self.block_words) + quotient % 64 } else { quotient * self.slot_bits };
        if at / 32 != self.occupieds.index {
            // SAFETY: the caller's promise.
            unsafe { self.or(self.occupieds.index, self.occupieds.bits) };
            self.occupieds = Pending { index: at / 32, bits: 0 };
        }
        self.occupieds.bits |= 1 << (at % 32);
    }

    /// Puts an item.
    ///
    /// # Safety
    /// As [`or`](Self::or).
    #[inline(always)]
    pub(super) unsafe fn item<F: Slot>(&mut self, slot: u32, is_shifted: bool, follows: bool, remainder: F) {
        // SAFETY: the caller's promise.
        unsafe {
            if !PACKED {
                let metadata = (is_shifted as u64) << 2 | (follows as u64) << 1;
                self.wide_field(slot * self.slot_bits, self.slot_bits, remainder.bits() << 3 | metadata);
                return;
            }
            let first = slot / 64 * self.block_words;
            let index = first + 2 + slot % 64 / 32;
            if index != self.continuations.index {
                self.flush_metadata();
                self.continuations.index = index;
            }
            self.continuations.bits |= (follows as u32) << (slot % 32);
            self.shifteds |= (is_shifted as u32) << (slot % 32);
            let (at, width) = (32 * (first + 6) + slot % 64 * self.remainder_bits, self.remainder_bits);
            if F::IS_WIDE {
                self.wide_field(at, width, remainder.bits());
            } else {
                self.field(at, width, remainder.bits() as u32);
            }
        }
    }

    /// # Safety
    /// As [`or`](Self::or).
    #[inline(always)]
    unsafe fn flush_metadata(&mut self) {
        // SAFETY: the caller's promise.
        unsafe {
            self.or(self.continuations.index, self.continuations.bits);
            self.or(self.continuations.index + 2, self.shifteds);
        }
        (self.continuations.bits, self.shifteds) = (0, 0);
    }

    /// Writes what is pending.
    ///
    /// # Safety
    /// As [`or`](Self::or).
    #[inline(always)]
    pub(super) unsafe fn finish(mut self) {
        // SAFETY: the caller's promise.
        unsafe {
            self.flush_metadata();
            self.or(self.occupieds.index, self.occupieds.bits);
            self.or(self.remainders.index, self.remainders.bits);
        }
    }
}

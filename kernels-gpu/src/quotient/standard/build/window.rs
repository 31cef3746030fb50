//! Slots composed in shared memory, in 32-bit arithmetic.

use warpset_core::quotient::slots::{Container, bytes_of_slot};
use warpset_simt::shared::Shared;

use crate::quotient::layout::Slot;
use crate::quotient::layout::window::{Pending, Window};

/// Writer of items in ascending slots to a window in shared memory, 32-bit words to which all threads add.
///
/// It writes what [`Appender`](warpset_core::quotient::slots::Appender) does, with slots relative to the window.
pub(super) struct Writer<const PACKED: bool> {
    window: Window,
    remainder_bits: u32,
    /// Words of 64 slots; in whole bytes, the bits of a slot.
    block_words: u32,
    slot_bits: u32,
    occupieds: Pending,
    /// `is_continuation`; `is_shifted` is two words later.
    continuations: Pending,
    shifteds: u32,
    remainders: Pending,
}

impl<const PACKED: bool> Writer<PACKED> {
    #[inline(always)]
    pub(super) fn new(words: Shared<u32>, remainder_bits: u32) -> Self {
        let container = if PACKED { Container::Packed } else { Container::Bytes };
        Writer {
            window: Window(words),
            remainder_bits,
            block_words: 2 * container.block_words(remainder_bits) as u32,
            slot_bits: 8 * bytes_of_slot(remainder_bits),
            occupieds: Pending::NONE,
            continuations: Pending::NONE,
            shifteds: 0,
            remainders: Pending::NONE,
        }
    }

    /// Sets `is_occupied` of a quotient.
    ///
    /// # Safety
    /// The contract of [`Window::or`], for the quotient's word and those of all items put so far.
    #[inline(always)]
    pub(super) unsafe fn occupy(&mut self, quotient: u32) {
        let at =
            if PACKED { 32 * (quotient / 64 * self.block_words) + quotient % 64 } else { quotient * self.slot_bits };
        // SAFETY: the contract is the same.
        unsafe { self.occupieds.add(self.window, at / 32, 1 << (at % 32)) };
    }

    /// Puts an item.
    ///
    /// # Safety
    /// The contract of [`occupy`](Self::occupy).
    #[inline(always)]
    pub(super) unsafe fn item<F: Slot>(&mut self, slot: u32, is_shifted: bool, follows: bool, remainder: F) {
        // SAFETY: the contract is the same.
        unsafe {
            if !PACKED {
                let metadata = (is_shifted as u64) << 2 | (follows as u64) << 1;
                let (at, width) = (slot * self.slot_bits, self.slot_bits);
                self.remainders.wide_field(self.window, at, width, remainder.bits() << 3 | metadata);
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
            let at = 32 * (first + 6) + slot % 64 * self.remainder_bits;
            remainder.put(&mut self.remainders, self.window, at, self.remainder_bits);
        }
    }

    /// Writes pending metadata.
    ///
    /// # Safety
    /// The contract of [`occupy`](Self::occupy).
    #[inline(always)]
    unsafe fn flush_metadata(&mut self) {
        // SAFETY: the contract is the same.
        unsafe {
            self.continuations.flush(self.window);
            self.window.or(self.continuations.index + 2, self.shifteds);
        }
        (self.continuations.bits, self.shifteds) = (0, 0);
    }

    /// Writes what is pending.
    ///
    /// # Safety
    /// The contract of [`occupy`](Self::occupy).
    #[inline(always)]
    pub(super) unsafe fn finish(mut self) {
        // SAFETY: the contract is the same.
        unsafe {
            self.flush_metadata();
            self.occupieds.flush(self.window);
            self.remainders.flush(self.window);
        }
    }
}

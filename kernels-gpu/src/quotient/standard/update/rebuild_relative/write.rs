//! Writer of slots in ascending order by one thread.

use warpset_core::quotient::slots::bytes_of_slot;
use warpset_simt::{GlobalMut, atomic};

use super::walk::place_of_bytes;

/// Writer of items in ascending slots into zero memory.
pub(super) struct Writer<const PACKED: bool> {
    /// Words from the first of the thread's block on.
    words: GlobalMut<u64>,
    remainder_bits: u32,
    /// Packed: `is_occupied` of the thread's block. Bytes: those of its bits that are in word `occupied_index`.
    occupied: u64,
    occupied_index: u32,
    /// Packed block of the last item, relative to the thread's, and its metadata.
    block: u32,
    continuations: u64,
    shifteds: u64,
    /// Word of remainders, or of slots.
    index: u32,
    items: u64,
}

impl<const PACKED: bool> Writer<PACKED> {
    #[inline(always)]
    pub(super) fn new(words: GlobalMut<u64>, remainder_bits: u32) -> Self {
        Writer {
            words,
            remainder_bits,
            occupied: 0,
            occupied_index: 0,
            block: 0,
            continuations: 0,
            shifteds: 0,
            index: 0,
            items: 0,
        }
    }

    /// Adds bits to a word.
    ///
    /// # Safety
    /// - The word exists, as do those of all items put so far.
    /// - All are accessed by such operations alone.
    #[inline(always)]
    unsafe fn or(&self, index: u32, bits: u64) {
        if bits != 0 {
            // SAFETY: the contract is the same.
            unsafe { atomic::reduce_or(self.words.at(index as usize), bits) };
        }
    }

    /// Writes the pending metadata of the block.
    ///
    /// # Safety
    /// The contract of [`or`](Self::or).
    #[inline(always)]
    unsafe fn flush_metadata(&mut self) {
        let first = self.block * (self.remainder_bits + 3);
        // SAFETY: the contract is the same.
        unsafe {
            self.or(first + 1, self.continuations);
            self.or(first + 2, self.shifteds);
        }
        (self.continuations, self.shifteds) = (0, 0);
    }

    /// Adds up to 64 bits from bit `shift` of a word on.
    ///
    /// # Safety
    /// The contract of [`or`](Self::or).
    #[inline(always)]
    unsafe fn field(&mut self, index: u32, shift: u32, width: u32, value: u64) {
        if index != self.index {
            // SAFETY: the contract is the same.
            unsafe { self.or(self.index, self.items) };
            (self.index, self.items) = (index, 0);
        }
        self.items |= value << shift;
        if shift + width > 64 {
            // SAFETY: the contract is the same.
            unsafe { self.or(index, self.items) };
            (self.index, self.items) = (index + 1, value >> (64 - shift));
        }
    }

    /// Sets `is_occupied` of a quotient of the thread's block.
    ///
    /// # Safety
    /// The contract of [`or`](Self::or).
    #[inline(always)]
    pub(super) unsafe fn occupy(&mut self, quotient: u32) {
        if PACKED {
            self.occupied |= 1 << quotient;
            return;
        }
        let (index, shift) = place_of_bytes(quotient, bytes_of_slot(self.remainder_bits));
        if index / 2 != self.occupied_index {
            // SAFETY: the contract is the same.
            unsafe { self.or(self.occupied_index, self.occupied) };
            (self.occupied_index, self.occupied) = (index / 2, 0);
        }
        self.occupied |= 1 << (index % 2 * 32 + shift);
    }

    /// Puts an item in a slot, relative to the thread's block.
    ///
    /// # Safety
    /// The contract of [`or`](Self::or).
    #[inline(always)]
    pub(super) unsafe fn put(&mut self, slot: u32, is_shifted: bool, follows: bool, remainder: u64) {
        let bits = self.remainder_bits;
        // SAFETY: the contract of this function, for this slot and those before.
        unsafe {
            if !PACKED {
                let bytes = bytes_of_slot(bits);
                let (index, shift) = place_of_bytes(slot, bytes);
                let item = remainder << 3 | (is_shifted as u64) << 2 | (follows as u64) << 1;
                self.field(index / 2, index % 2 * 32 + shift, 8 * bytes, item);
                return;
            }
            let (block, at) = (slot / 64, slot % 64);
            if block != self.block {
                self.flush_metadata();
                self.block = block;
            }
            self.continuations |= (follows as u64) << at;
            self.shifteds |= (is_shifted as u64) << at;
            self.field(block * (bits + 3) + 3 + at * bits / 64, at * bits % 64, bits, remainder);
        }
    }

    /// Writes what is pending.
    ///
    /// # Safety
    /// The contract of [`or`](Self::or).
    #[inline(always)]
    pub(super) unsafe fn finish(mut self) {
        // SAFETY: the contract is the same.
        unsafe {
            if PACKED {
                self.flush_metadata();
            }
            self.or(self.occupied_index, self.occupied);
            self.or(self.index, self.items);
        }
    }
}

//! Written form of a tile of the layout ([`layout`](crate::quotient::layout)) in blocks with an offset.
//!
//! An item at the start of a run knows the first slot that the items before it leave free. So it writes their metadata:
//! a run ends in the slot before that one, and for each block of quotients that begins after the quotient of the item
//! before, the free slot gives the offset.

use warpset_core::quotient::rank_select::{DIGITS, OCCUPIEDS, OFFSET, RUNENDS, metadata_words};
use warpset_core::quotient::slots::BLOCK_SLOTS;
use warpset_simt::shared::Shared;
use warpset_simt::{GlobalMut, atomic, thread};

use crate::quotient::layout::window::{Pending, Window};
use crate::quotient::layout::{BLOCK, Form, Items, Part, Slot};
use crate::quotient::memory::Parameters;

/// Blocks of `occupieds`, `runends` and an offset; with `COUNTED` also of marks of digits.
pub struct Slots<const COUNTED: bool>;

/// Without counters.
pub type RankSelect = Slots<false>;
/// With counters.
pub type CountedRankSelect = Slots<true>;

/// Index of the first word of the remainders, without counters.
pub const REMAINDERS: u64 = metadata_words(false);

/// Words of the filter to which all threads add bits.
#[cfg(feature = "bodies")]
struct Target<const COUNTED: bool> {
    words: GlobalMut<u64>,
    remainder_bits: u32,
    slots: u64,
}

#[cfg(feature = "bodies")]
impl<const COUNTED: bool> Target<COUNTED> {
    const REMAINDERS: u64 = metadata_words(COUNTED);

    /// Makes a target of the words of `slots` slots.
    ///
    /// # Safety
    /// The contract of [`lay_out`](crate::quotient::layout::lay_out), whose words these are.
    #[inline(always)]
    unsafe fn new(words: GlobalMut<u64>, remainder_bits: u32, slots: u64) -> Self {
        Target { words, remainder_bits, slots }
    }

    /// Adds bits to a word of the block of a slot or quotient of the filter.
    #[inline(always)]
    fn or(&self, slot: u64, word: u64, bits: u64) {
        let index = slot / BLOCK_SLOTS * (self.remainder_bits as u64 + Self::REMAINDERS) + word;
        // SAFETY: the word is one of the block's, and words are accessed by such operations alone.
        unsafe { atomic::reduce_or(self.words.at(index as usize), bits) };
    }

    /// Marks a quotient as occupied.
    #[inline(always)]
    fn occupy(&self, quotient: u64) {
        self.or(quotient, OCCUPIEDS, 1 << (quotient % BLOCK_SLOTS));
    }

    /// Ends a run in the slot before `free`, if there is one.
    #[inline(always)]
    fn end_run(&self, free: u64) {
        if free > 0 && free <= self.slots {
            self.or(free - 1, RUNENDS, 1 << ((free - 1) % BLOCK_SLOTS));
        }
    }

    /// Writes the offset of the block that begins with slot `first`, given the first free slot after the items of
    /// earlier quotients.
    #[inline(always)]
    fn set_offset(&self, first: u64, free: u64) {
        if first < free && first < self.slots {
            self.or(first, OFFSET, free - first);
        }
    }

    /// Puts a remainder or a digit, if the filter has its slot.
    #[inline(always)]
    fn put(&self, slot: u64, remainder: u64, is_digit: bool) {
        if slot >= self.slots {
            return;
        }
        if COUNTED && is_digit {
            self.or(slot, DIGITS, 1 << (slot % BLOCK_SLOTS));
        }
        let at = slot % BLOCK_SLOTS * self.remainder_bits as u64;
        let (word, shift) = (Self::REMAINDERS + at / 64, at % 64);
        self.or(slot, word, remainder << shift);
        if shift + self.remainder_bits as u64 > 64 {
            self.or(slot, word + 1, remainder >> (64 - shift));
        }
    }
}

/// Writer of items in ascending slots to a window.
#[cfg(feature = "bodies")]
struct Writer<const COUNTED: bool> {
    window: Window,
    remainder_bits: u32,
    occupieds: Pending,
    runends: Pending,
    digits: Pending,
    remainders: Pending,
}

#[cfg(feature = "bodies")]
impl<const COUNTED: bool> Writer<COUNTED> {
    const REMAINDERS: u32 = metadata_words(COUNTED) as u32;

    #[inline(always)]
    fn new(words: Shared<u32>, remainder_bits: u32) -> Self {
        Writer {
            window: Window(words),
            remainder_bits,
            occupieds: Pending::NONE,
            runends: Pending::NONE,
            digits: Pending::NONE,
            remainders: Pending::NONE,
        }
    }

    /// Returns the first word of a slot's block.
    #[inline(always)]
    fn block(&self, slot: u32) -> u32 {
        slot / 64 * (2 * (self.remainder_bits + Self::REMAINDERS))
    }

    /// Marks a quotient as occupied.
    ///
    /// # Safety
    /// The contract of [`Window::or`], for the quotient's word and those of all items put so far.
    #[inline(always)]
    unsafe fn occupy(&mut self, quotient: u32) {
        let index = self.block(quotient) + 2 * OCCUPIEDS as u32 + quotient % 64 / 32;
        // SAFETY: the contract is the same.
        unsafe { self.occupieds.add(self.window, index, 1 << (quotient % 32)) };
    }

    /// Ends a run in a slot.
    ///
    /// # Safety
    /// The contract of [`occupy`](Self::occupy).
    #[inline(always)]
    unsafe fn end_run(&mut self, slot: u32) {
        let index = self.block(slot) + 2 * RUNENDS as u32 + slot % 64 / 32;
        // SAFETY: the contract is the same.
        unsafe { self.runends.add(self.window, index, 1 << (slot % 32)) };
    }

    /// Writes the offset of the block that begins with a slot.
    ///
    /// # Safety
    /// The contract of [`occupy`](Self::occupy).
    #[inline(always)]
    unsafe fn set_offset(&self, first: u32, offset: u64) {
        let index = self.block(first) + 2 * OFFSET as u32;
        // SAFETY: the contract is the same.
        unsafe {
            self.window.or(index, offset as u32);
            self.window.or(index + 1, (offset >> 32) as u32);
        }
    }

    /// Puts a remainder or a digit.
    ///
    /// # Safety
    /// The contract of [`occupy`](Self::occupy).
    #[inline(always)]
    unsafe fn put<F: Slot>(&mut self, slot: u32, remainder: F, is_digit: bool) {
        if COUNTED && is_digit {
            let index = self.block(slot) + 2 * DIGITS as u32 + slot % 64 / 32;
            // SAFETY: the contract is the same.
            unsafe { self.digits.add(self.window, index, 1 << (slot % 32)) };
        }
        let at = 32 * (self.block(slot) + 2 * Self::REMAINDERS) + slot % 64 * self.remainder_bits;
        // SAFETY: the contract is the same.
        unsafe { remainder.put(&mut self.remainders, self.window, at, self.remainder_bits) };
    }

    /// Writes what is pending.
    ///
    /// # Safety
    /// The contract of [`occupy`](Self::occupy).
    #[inline(always)]
    unsafe fn finish(self) {
        // SAFETY: the contract is the same.
        unsafe {
            self.occupieds.flush(self.window);
            self.runends.flush(self.window);
            if COUNTED {
                self.digits.flush(self.window);
            }
            self.remainders.flush(self.window);
        }
    }
}

impl<const COUNTED: bool> Form for Slots<COUNTED> {
    const COUNTED: bool = COUNTED;

    #[cfg(feature = "bodies")]
    #[inline(always)]
    unsafe fn compose<F: Slot>(
        items: &Items<F>,
        parameters: Parameters,
        slots: u64,
        base: F,
        free: F,
        part: Part,
        window: Shared<u32>,
        words: GlobalMut<u64>,
    ) {
        let split = parameters.split();
        let remainder_bits = split.remainder_bits;
        // SAFETY: the contract is the same.
        let far = unsafe { Target::<COUNTED>::new(words, remainder_bits, slots) };
        let mut target = Writer::<COUNTED>::new(window, remainder_bits);
        // Before the tile's first slot there are quotients, run ends and blocks, but no slots of items. They are
        // written with the first part.
        let mut free = free;
        let mut last = items.before.quotient(remainder_bits);
        items.for_each_marked(|item, begins, is_digit| {
            let quotient = item.quotient(remainder_bits);
            // SAFETY: words of slots of the part are the window's.
            unsafe {
                if begins {
                    if quotient < base {
                        if part.from == 0 {
                            far.occupy(quotient.bits());
                        }
                    } else if part.has(quotient.minus(base)) {
                        target.occupy(quotient.minus(base) - part.from);
                    }
                    if free <= base {
                        if part.from == 0 {
                            far.end_run(free.bits());
                        }
                    } else if part.has(free.minus(base) - 1) {
                        target.end_run(free.minus(base) - 1 - part.from);
                    }
                    // These are the first slots of the blocks that begin up to this quotient.
                    let mut first = last.block_after();
                    while first <= quotient && first < free {
                        if first < base {
                            if part.from == 0 {
                                far.set_offset(first.bits(), free.bits());
                            }
                        } else if part.has(first.minus(base)) {
                            target.set_offset(first.minus(base) - part.from, free.bits() - first.bits());
                        }
                        first = first.block_after();
                    }
                    last = quotient;
                }
                let slot = free.larger(quotient);
                free = slot.plus(F::of(1));
                let slot = slot.minus(base);
                if part.has(slot) {
                    target.put(slot - part.from, F::of(split.remainder(item.bits())), is_digit);
                }
            }
        });
        // SAFETY: as above.
        unsafe { target.finish() };
    }

    #[cfg(feature = "bodies")]
    #[inline(always)]
    unsafe fn add<F: Slot>(items: &Items<F>, parameters: Parameters, slots: u64, free: F, words: GlobalMut<u64>) {
        let split = parameters.split();
        // SAFETY: the contract is the same.
        let target = unsafe { Target::<COUNTED>::new(words, split.remainder_bits, slots) };
        let mut free = free.bits();
        let mut last = items.before.quotient(split.remainder_bits).bits();
        items.for_each_marked(|item, begins, is_digit| {
            let quotient = split.quotient(item.bits());
            if begins {
                target.occupy(quotient);
                target.end_run(free);
                let mut first = last.block_after();
                while first <= quotient && first < free {
                    target.set_offset(first, free);
                    first = first.block_after();
                }
                last = quotient;
            }
            let slot = Ord::max(free, quotient);
            free = slot + 1;
            target.put(slot, split.remainder(item.bits()), is_digit);
        });
    }

    #[cfg(feature = "bodies")]
    #[inline(always)]
    unsafe fn end(
        parameters: Parameters,
        slots: u64,
        quotient: u64,
        limit: u64,
        free: u64,
        is_last: bool,
        words: GlobalMut<u64>,
    ) {
        // SAFETY: the contract is the same.
        let target = unsafe { Target::<COUNTED>::new(words, parameters.split().remainder_bits, slots) };
        let t = thread::thread_idx_x() as u64;
        if is_last && t == 0 {
            target.end_run(free);
        }
        let mut first = quotient.block_after() + t * BLOCK_SLOTS;
        while first <= limit && first < free && first < slots {
            target.set_offset(first, free);
            first += BLOCK as u64 * BLOCK_SLOTS;
        }
    }
}

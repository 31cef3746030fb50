//! [`rebuild`](super::rebuild) in arithmetic relative to the thread's block: slots in 32 bits, fingerprints in as many as
//! the batch has. In so few registers that the blocks of 64 quotients of a filter of 2^23 slots are on an H200 at the same
//! time, a thread each.
//!
//! A fingerprint relative to its block is six bits of quotient and the remainder. That leaves a bit or more unused if
//! there are more than 64 quotients, so that the largest number can stand for the end.

use warpset_core::quotient::Split;
use warpset_core::quotient::slots::{BLOCK_SLOTS, ByteSlots, Container, PackedSlots, Slots, bytes_of_slot};
use warpset_core::quotient::standard as core;
use warpset_core::scan::Lift;
use warpset_simt::{Global, GlobalMut, atomic, kernel};

use super::rebuild::Tile;
use crate::quotient_memory::{Fingerprint, Parameters, ReadOnly};

/// Filters of these kernels have more quotients than a block.
pub const MIN_QUOTIENT_BITS: u32 = 7;
/// Filters of these kernels have fewer slots.
pub const MAX_SLOTS: u64 = 1 << 31;

/// A fingerprint relative to its block.
trait Near: Fingerprint {
    /// After the last.
    const END: Self;
    fn join(quotient: u32, remainder: Self, bits: u32) -> Self;
    fn quotient(self, bits: u32) -> u32;
    fn remainder(self, bits: u32) -> Self;
    /// What it is behind `base`.
    fn minus(self, base: Self) -> Self;
    /// `width` bits from bit `at` of word `index` on; no word is read that has none of them.
    ///
    /// # Safety
    /// They are readable.
    unsafe fn field(words: Global<u32>, index: u32, at: u32, width: u32) -> Self;
}

macro_rules! near {
    ($($word:ty)*) => {$(
        impl Near for $word {
            const END: $word = <$word>::MAX;
            #[inline(always)]
            fn join(quotient: u32, remainder: $word, bits: u32) -> $word {
                (quotient as $word) << bits | remainder
            }
            #[inline(always)]
            fn quotient(self, bits: u32) -> u32 {
                (self >> bits) as u32
            }
            #[inline(always)]
            fn remainder(self, bits: u32) -> $word {
                self & ((1 << bits) - 1)
            }
            #[inline(always)]
            fn minus(self, base: $word) -> $word {
                self.wrapping_sub(base)
            }
            #[inline(always)]
            unsafe fn field(words: Global<u32>, index: u32, at: u32, width: u32) -> $word {
                // SAFETY: the caller's promise.
                unsafe {
                    let mut value = (words.read_nc(index as usize) >> at) as $word;
                    if at + width > 32 {
                        value |= (words.read_nc(index as usize + 1) as $word) << (32 - at);
                    }
                    if <$word>::BITS > 32 && at + width > 64 {
                        value |= (words.read_nc(index as usize + 2) as $word) << (64 - at);
                    }
                    value & (<$word>::MAX >> (<$word>::BITS - width))
                }
            }
        }
    )*};
}
near! { u32 u64 }

/// Where a slot's bits begin, in words of 32 bits behind its block's first, and bits, if it has `bytes` whole bytes.
/// Four slots take as many words.
#[inline(always)]
fn place_of_bytes(slot: u32, bytes: u32) -> (u32, u32) {
    let byte = slot % 4 * bytes;
    (slot / 4 * bytes + byte / 4, byte % 4 * 8)
}

/// The way through the fingerprints of a block.
struct Ours<const PACKED: bool> {
    /// From the block's first on.
    words: Global<u64>,
    remainder_bits: u32,
    /// Quotients whose runs are not through.
    occupied: u64,
    /// The slot, relative to the block.
    at: u32,
    /// Packed: `is_continuation` of the slots of the block that `at` is in.
    continuations: u64,
}

impl<const PACKED: bool> Ours<PACKED> {
    /// The first slot of the block's fingerprints, relative to it; zero if there are none.
    ///
    /// # Safety
    /// `words` are a sound filter of `slots` slots in this container; the block has quotients.
    #[inline(always)]
    unsafe fn start(words: Global<u64>, slots: u64, remainder_bits: u32, block: u64) -> u32 {
        let words = ReadOnly(words);
        if PACKED {
            Self::start_in(PackedSlots::new(words, slots, remainder_bits), block)
        } else {
            Self::start_in(ByteSlots::new(words, slots, remainder_bits), block)
        }
    }

    #[inline(always)]
    fn start_in<S: Slots>(slots: S, block: u64) -> u32 {
        let [occupied, ..] = slots.metadata_words(block);
        if occupied == 0 {
            return 0;
        }
        let quotient = block * BLOCK_SLOTS + occupied.trailing_zeros() as u64;
        (core::find_run_start(&slots, quotient) - block * BLOCK_SLOTS) as u32
    }

    /// # Safety
    /// As for [`start`](Self::start), which `at` is.
    #[inline(always)]
    unsafe fn new(words: Global<u64>, slots: u64, remainder_bits: u32, block: u64, at: u32) -> Self {
        let container = if PACKED { Container::Packed } else { Container::Bytes };
        let [occupied, ..] = if PACKED {
            PackedSlots::new(ReadOnly(words), slots, remainder_bits).metadata_words(block)
        } else {
            ByteSlots::new(ReadOnly(words), slots, remainder_bits).metadata_words(block)
        };
        let words = words.at((block * container.block_words(remainder_bits)) as usize);
        let mut ours = Ours { words, remainder_bits, occupied, at, continuations: 0 };
        if PACKED && occupied != 0 {
            // SAFETY: the slot is below the last.
            ours.continuations = unsafe { ours.continuations() };
        }
        ours
    }

    /// `is_continuation` of the slots of the packed block that `at` is in.
    ///
    /// # Safety
    /// The slot is a slot of the filter.
    #[inline(always)]
    unsafe fn continuations(&self) -> u64 {
        let index = self.at / 64 * (self.remainder_bits + 3) + 1;
        // SAFETY: the caller's promise.
        unsafe { self.words.read_nc(index as usize) }
    }

    /// The fingerprint, or the end.
    ///
    /// # Safety
    /// As for [`start`](Self::start).
    #[inline(always)]
    unsafe fn get<F: Near>(&self) -> F {
        if self.occupied == 0 {
            return F::END;
        }
        let bits = self.remainder_bits;
        let (index, shift) = if PACKED {
            let bit = self.at % 64 * bits;
            (2 * (self.at / 64 * (bits + 3) + 3) + bit / 32, bit % 32)
        } else {
            let (index, shift) = place_of_bytes(self.at, bytes_of_slot(bits));
            (index, shift + 3) // behind the metadata
        };
        // SAFETY: the slot is below the last; the remainder lies in these words of it.
        let remainder = unsafe { F::field(self.words.cast(), index, shift, bits) };
        F::join(self.occupied.trailing_zeros(), remainder, bits)
    }

    /// Goes on to the next.
    ///
    /// # Safety
    /// As for [`start`](Self::start); this is not the end.
    #[inline(always)]
    unsafe fn advance(&mut self) {
        self.at += 1;
        // SAFETY: the last slot of all is empty, so there is a slot after this one.
        let continues = unsafe {
            if PACKED {
                if self.at % 64 == 0 {
                    self.continuations = self.continuations();
                }
                self.continuations >> (self.at % 64) & 1 != 0
            } else {
                let (index, shift) = place_of_bytes(self.at, bytes_of_slot(self.remainder_bits));
                self.words.cast::<u32>().read_nc(index as usize) >> (shift + 1) & 1 != 0
            }
        };
        if !continues {
            self.occupied &= self.occupied - 1;
            // The next run is where this one ended, unless it is in its canonical slot behind a gap, in this same block.
            if self.occupied != 0 {
                self.at = self.at.max(self.occupied.trailing_zeros());
            }
        }
    }
}

/// What a block's fingerprints and the batch make, in ascending order.
///
/// # Safety
/// As for [`Ours::start`]; the batch is readable and ascending in the range, with quotients of the block.
#[inline(always)]
unsafe fn combine<F: Near, const PACKED: bool, const REMOVES: bool>(
    mut ours: Ours<PACKED>,
    batch: Global<F>,
    (mut next, end): (u32, u32),
    base: F,
    keep: bool,
    mut put: impl FnMut(u32, F, bool),
) {
    let bits = ours.remainder_bits;
    // SAFETY: `next < end` where it is read; ours advances only before its end.
    unsafe {
        let mut first: F = ours.get();
        let mut second = if next < end { batch.read_nc(next as usize).minus(base) } else { F::END };
        let mut last = F::END;
        while if REMOVES { first != F::END } else { first.min(second) != F::END } {
            let take_first = first <= second;
            let take_second = if REMOVES { second <= first } else { second < first };
            let item = first.min(second);
            if if REMOVES { !take_second } else { keep | (item != last) } {
                put(item.quotient(bits), item.remainder(bits), last.quotient(bits) == item.quotient(bits));
                last = item;
            }
            if take_first {
                ours.advance();
                first = ours.get();
            }
            if take_second {
                next += 1;
                second = if next < end { batch.read_nc(next as usize).minus(base) } else { F::END };
            }
        }
    }
}

/// Items of ascending slots on their way to memory that is zero.
struct Writer<const PACKED: bool> {
    /// From the first of the thread's block on.
    words: GlobalMut<u64>,
    remainder_bits: u32,
    /// Packed: `is_occupied` of the thread's block. Bytes: those of its bits that are in word `occupied_index`.
    occupied: u64,
    occupied_index: u32,
    /// The packed block in which items are put, relative to the thread's, and its metadata.
    block: u32,
    continuations: u64,
    shifteds: u64,
    /// A word of remainders, or of slots.
    index: u32,
    items: u64,
}

impl<const PACKED: bool> Writer<PACKED> {
    #[inline(always)]
    fn new(words: GlobalMut<u64>, remainder_bits: u32) -> Self {
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

    /// # Safety
    /// The word exists, as do those of all that has been put so far; all are accessed by such operations alone.
    #[inline(always)]
    unsafe fn or(&self, index: u32, bits: u64) {
        if bits != 0 {
            // SAFETY: the caller's promise.
            unsafe { atomic::reduce_or(self.words.at(index as usize), bits) };
        }
    }

    /// # Safety
    /// As [`or`](Self::or).
    #[inline(always)]
    unsafe fn flush_metadata(&mut self) {
        let first = self.block * (self.remainder_bits + 3);
        // SAFETY: the caller's promise.
        unsafe {
            self.or(first + 1, self.continuations);
            self.or(first + 2, self.shifteds);
        }
        (self.continuations, self.shifteds) = (0, 0);
    }

    /// Up to 64 bits from bit `shift` of a word on.
    ///
    /// # Safety
    /// As [`or`](Self::or).
    #[inline(always)]
    unsafe fn field(&mut self, index: u32, shift: u32, width: u32, value: u64) {
        if index != self.index {
            // SAFETY: the caller's promise.
            unsafe { self.or(self.index, self.items) };
            (self.index, self.items) = (index, 0);
        }
        self.items |= value << shift;
        if shift + width > 64 {
            // SAFETY: the caller's promise.
            unsafe { self.or(index, self.items) };
            (self.index, self.items) = (index + 1, value >> (64 - shift));
        }
    }

    /// Sets `is_occupied` of a quotient of the thread's block.
    ///
    /// # Safety
    /// As [`or`](Self::or).
    #[inline(always)]
    unsafe fn occupy(&mut self, quotient: u32) {
        if PACKED {
            self.occupied |= 1 << quotient;
            return;
        }
        let (index, shift) = place_of_bytes(quotient, bytes_of_slot(self.remainder_bits));
        if index / 2 != self.occupied_index {
            // SAFETY: the caller's promise.
            unsafe { self.or(self.occupied_index, self.occupied) };
            (self.occupied_index, self.occupied) = (index / 2, 0);
        }
        self.occupied |= 1 << (index % 2 * 32 + shift);
    }

    /// Puts an item in a slot, relative to the thread's block.
    ///
    /// # Safety
    /// As [`or`](Self::or).
    #[inline(always)]
    unsafe fn put(&mut self, slot: u32, is_shifted: bool, follows: bool, remainder: u64) {
        let bits = self.remainder_bits;
        // SAFETY: the caller's promise, for this slot and those before.
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
    /// As [`or`](Self::or).
    #[inline(always)]
    unsafe fn finish(mut self) {
        // SAFETY: the caller's promise.
        unsafe {
            if PACKED {
                self.flush_metadata();
            }
            self.or(self.occupied_index, self.occupied);
            self.or(self.index, self.items);
        }
    }
}

/// The arguments of these kernels.
struct Arguments<F> {
    old: Global<u64>,
    slots: u64,
    parameters: Parameters,
    batch: Global<F>,
    n: usize,
    look_back: GlobalMut<u64>,
    ticket: GlobalMut<u32>,
    words: GlobalMut<u64>,
    totals: GlobalMut<u64>,
}

/// A tile.
///
/// # Safety
/// As [`quotient_update_insert_near_u32`].
#[inline(always)]
unsafe fn rebuild<F: Near, const PACKED: bool, const REMOVES: bool>(arguments: Arguments<F>) {
    let Arguments { old, slots, parameters, batch, n, look_back, ticket, words, totals } = arguments;
    let split: Split = parameters.split();
    let bits = split.remainder_bits;
    let keep = parameters.keeps_duplicates();
    // SAFETY: the batch is read below `n`; slots are written below `slots`; all threads come to the tile's steps.
    unsafe {
        let tile = Tile::open(ticket, batch, n, split);
        let block = tile.block;
        let range = (tile.range.0 as u32, tile.range.1 as u32);
        let base = F::of((block * BLOCK_SLOTS) << bits); // of the block's fingerprints

        // The first free slot behind the block's items, relative to the block, and how many they are.
        let (mut start, mut free, mut count) = (0, 0u32, 0u32);
        if tile.has_quotients {
            start = Ours::<PACKED>::start(old, slots, bits, block);
            let ours = Ours::<PACKED>::new(old, slots, bits, block, start);
            combine::<F, PACKED, REMOVES>(ours, batch, range, base, keep, |quotient, _, _| {
                free = free.max(quotient) + 1;
                count += 1;
            });
        }
        let floor = if count == 0 { 0 } else { block * BLOCK_SLOTS + free as u64 };
        let before = tile.first_free(Lift { floor, add: count as u64 }, look_back, totals, split);

        if tile.has_quotients {
            let mut free = before.max(block * BLOCK_SLOTS).wrapping_sub(block * BLOCK_SLOTS) as u32;
            let limit = (slots - block * BLOCK_SLOTS) as u32;
            let first_word = block * parameters.container().block_words(bits);
            let mut target = Writer::<PACKED>::new(words.at(first_word as usize), bits);
            let ours = Ours::<PACKED>::new(old, slots, bits, block, start);
            combine::<F, PACKED, REMOVES>(ours, batch, range, base, keep, |quotient, remainder, follows| {
                let slot = free.max(quotient);
                free = slot + 1;
                if slot < limit {
                    if !follows {
                        target.occupy(quotient);
                    }
                    target.put(slot, slot != quotient, follows, remainder.bits());
                }
            });
            target.finish();
        }
    }
}

macro_rules! kernels {
    ($($name:ident: $word:ty, $removes:literal, $minimum:literal, $doc:literal;)*) => {$(
        kernel! {
            #[doc = concat!("Writes a filter anew ", $doc, ", of `", stringify!($word), "`.")]
            ///
            /// # Safety
            /// As [`quotient_update_rebuild_u32`](super::rebuild::quotient_update_rebuild_u32), which has the same result;
            /// besides, there are fewer than [`MAX_SLOTS`], quotients have at least [`MIN_QUOTIENT_BITS`], and the
            /// batch has fewer than 2^32 fingerprints.
            #[launch_bounds(128, $minimum)]
            pub unsafe fn $name(
                old: Global<u64>, slots: u64, parameters: u32, batch: Global<$word>, n: usize, look_back: GlobalMut<u64>,
                ticket: GlobalMut<u32>, words: GlobalMut<u64>, totals: GlobalMut<u64>,
            ) {
                let parameters = Parameters(parameters);
                let arguments = Arguments { old, slots, parameters, batch, n, look_back, ticket, words, totals };
                // SAFETY: the caller keeps this kernel's contract; the container is the same for all threads.
                unsafe {
                    match parameters.container() {
                        Container::Bytes => rebuild::<$word, false, $removes>(arguments),
                        Container::Packed => rebuild::<$word, true, $removes>(arguments),
                    }
                }
            }
        }
    )*};
}
kernels! {
    quotient_update_insert_near_u32: u32, false, 8, "with the fingerprints of an ascending batch besides its own";
    quotient_update_remove_near_u32: u32, true, 8, "without those that an ascending batch cancels";
    quotient_update_insert_near_u64: u64, false, 6, "with the fingerprints of an ascending batch besides its own";
    quotient_update_remove_near_u64: u64, true, 6, "without those that an ascending batch cancels";
}

//! Layout of sorted fingerprints: the part that all kinds of slots share.
//!
//! Source: Geil, Farach-Colton, Owens, "Quotient Filters: Approximate Membership Queries on the GPU", IPDPS 2018,
//! section IV-C.
//!
//! The layout is none of the paper's three. An item maps the first free slot `x` to `max(quotient, x) + 1`; a dropped
//! duplicate leaves it unchanged. Such functions compose ([`MaxPlus`](warpset_core::scan::MaxPlus)), so a single-pass
//! scan with decoupled look-back gives every item its slot, and the same kernel writes it.
//!
//! A tile's items lie in ascending slots. The tile composes the words of these slots in shared memory, a *window* of
//! whole blocks of 64 slots at a time, in 32-bit arithmetic, and writes them out. Blocks strictly between the tile's
//! first free slot and its last quotient belong to no other tile and are plain stores. The blocks at the tile's ends
//! are shared with its neighbours, so words are added to them by atomics. A tile whose slots lie far apart adds its few
//! items directly.
//!
//! The [`Form`] of a kind of slots says which bits of an item are written. With counters an item is the contents of a
//! slot: a fingerprint, or a digit with the quotient of its fingerprint.

use warpset_core::quotient::slots::BLOCK_SLOTS;
use warpset_core::scan::{Lift, Operator};
use warpset_simt::shared::{self, Shared};
use warpset_simt::{Global, GlobalMut, atomic, thread, warp};

use crate::block;
use crate::look_back;
use crate::quotient::memory::{Fill, Parameters};

mod slot;
pub mod window;

pub use slot::Slot;

/// Threads of a block.
pub const BLOCK: u32 = 256;
/// Items of a tile, for fingerprints of 32 bits.
pub const TILE_U32: usize = BLOCK as usize * ITEMS_U32;
/// Items of a tile, for fingerprints of 64 bits.
pub const TILE_U64: usize = BLOCK as usize * ITEMS_U64;
/// Dynamic shared memory, in bytes.
pub const SHARED_BYTES: u32 = SCRATCH_AT + block::scratch_bytes::<Fill>(WARPS);
/// Most fingerprints of 32 bits per layout: sums of a slot and a number of items stay within 32 bits.
pub const MOST_U32: usize = (1 << 31) - 1;

const WARPS: u32 = BLOCK / 32;
/// Items per thread.
const ITEMS_U32: usize = 16;
const ITEMS_U64: usize = 8;
/// Words of a window: at a load of 0.9, the slots of a tile fit in one for most widths.
pub const WINDOW_WORDS: u32 = 2560;
/// Most windows of a tile; with more, it uses none.
const MOST_WINDOWS: u64 = 4;
const WINDOW_AT: u32 = 32;
const PREFIX_AT: u32 = 16;
const ITEMS_AT: u32 = WINDOW_AT + 8 * WINDOW_WORDS;
/// Bytes of a thread's items and one unused place, so that threads meet different banks.
const ITEMS_BYTES: u32 = 4 * BLOCK * (ITEMS_U32 as u32 + 1);
const SCRATCH_AT: u32 = (ITEMS_AT + max(ITEMS_BYTES, 8 * BLOCK * (ITEMS_U64 as u32 + 1))).next_multiple_of(16);

const fn max(a: u32, b: u32) -> u32 {
    if a > b { a } else { b }
}

/// Returns the words of the look-back of that many tiles, for fingerprints of either width.
pub const fn look_back_words(tiles: usize) -> usize {
    look_back::words::<Fill>(tiles)
}

/// Items of a thread in shared memory, with a bit for each that is stored, and for each that has the quotient of the
/// one before.
pub struct Items<F> {
    items: Shared<F>,
    count: u32,
    kept: u32,
    follows: u32,
    digits: u32,
    /// Item before the first, zero if there is none.
    pub before: F,
}

/// Slots of a tile that are composed at once, relative to the tile's first block.
#[derive(Clone, Copy)]
pub struct Part {
    /// First slot.
    pub from: u32,
    /// Number of slots.
    pub len: u32,
}

impl Part {
    /// Whether the slot is in the part.
    #[inline(always)]
    pub fn has(self, slot: u32) -> bool {
        slot.wrapping_sub(self.from) < self.len
    }
}

#[cfg(feature = "bodies")]
impl<F: Slot> Items<F> {
    /// Makes items of `count` values, with a bit for each that is stored, and for each that has the quotient of the one
    /// before.
    #[inline(always)]
    pub fn new(items: Shared<F>, count: u32, kept: u32, follows: u32, before: F) -> Items<F> {
        Items { items, count, kept, follows, digits: 0, before }
    }

    /// Adds the bits of items that are digits of counters.
    #[inline(always)]
    pub fn with_digits(self, digits: u32) -> Items<F> {
        Items { digits, ..self }
    }

    /// Passes each stored item to `put`, and whether its run begins.
    #[inline(always)]
    pub fn for_each(&self, mut put: impl FnMut(F, bool)) {
        self.for_each_marked(|item, begins, _| put(item, begins));
    }

    /// Passes each stored item to `put`, whether its run begins, and whether it is a digit.
    ///
    /// The loop is not unrolled, because `put` is long.
    #[inline(always)]
    pub fn for_each_marked(&self, mut put: impl FnMut(F, bool, bool)) {
        let mut i = 0;
        while i < self.count {
            if self.kept >> i & 1 != 0 {
                // SAFETY: the thread's own place, which it has written.
                put(unsafe { self.items.get(i) }, self.follows >> i & 1 == 0, self.digits >> i & 1 != 0);
            }
            i += 1;
        }
    }
}

/// Written form of a kind of slots. Blocks have as many words as [`Parameters::container`] says, and one more with
/// counters.
pub trait Form {
    /// Whether items can be digits of counters, which take the place of a remainder.
    const COUNTED: bool = false;

    /// Composes a thread's items in a part of the slots. `free` is the first slot free for them, and `base` the tile's
    /// first slot.
    ///
    /// # Safety
    /// - The contract of [`lay_out`], whose words these are.
    /// - The part's words are in the window; all threads add to them at the same time.
    #[cfg(feature = "bodies")]
    unsafe fn compose<F: Slot>(
        items: &Items<F>,
        parameters: Parameters,
        slots: u64,
        base: F,
        free: F,
        part: Part,
        window: Shared<u32>,
        words: GlobalMut<u64>,
    );

    /// Adds a thread's items to the filter's words one by one.
    ///
    /// # Safety
    /// The contract of [`lay_out`], whose words these are.
    #[cfg(feature = "bodies")]
    unsafe fn add<F: Slot>(items: &Items<F>, parameters: Parameters, slots: u64, free: F, words: GlobalMut<u64>);

    /// Adds metadata after items, by all threads of the block: for blocks that begin after `quotient` and up to
    /// `limit`, given the first free slot after all items up to there. `is_last` says that there are no more.
    ///
    /// # Safety
    /// The contract of [`lay_out`], whose words these are.
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
        let _ = (parameters, slots, quotient, limit, free, is_last, words);
    }
}

/// Lays out one tile.
///
/// # Safety
/// - Launch: 1-D, one block of [`BLOCK`] threads for each [`TILE_U32`] or [`TILE_U64`] fingerprints,
///   [`SHARED_BYTES`] of dynamic shared memory; `n > 0`, for 32 bits at most [`MOST_U32`]. `ITEMS` is [`Slot::ITEMS`].
/// - `fingerprints`: `n`, ascending, with these [`Parameters`], not written while the kernel runs, at a multiple of
///   16 bytes.
/// - `digits`: with counters, whose items ascend by quotients alone, a bit for each item that is a digit, zero up to a
///   whole number of words, not written while the kernel runs; otherwise not read.
/// - `look_back`: [`look_back_words`] of the tiles, at a multiple of 16 bytes, and `ticket` one
///   word: zero at the start, used by this launch alone.
/// - `words`: those of `slots` slots, zero at the start, used by this launch alone. Items that belong to other
///   slots are left out.
/// - `totals`: two words, set to the number of fingerprints stored and to the slot after the last.
#[cfg(feature = "bodies")]
#[inline(always)]
pub unsafe fn lay_out<F: Slot, K: Form, const ITEMS: usize>(
    fingerprints: Global<F>,
    digits: Global<u32>,
    n: usize,
    parameters: Parameters,
    slots: u64,
    look_back: GlobalMut<u64>,
    ticket: GlobalMut<u32>,
    words: GlobalMut<u64>,
    totals: GlobalMut<u64>,
) {
    let number: Shared<u32> = shared::dynamic(0);
    let prefix_slot: Shared<u32> = shared::dynamic(PREFIX_AT);
    let window: Shared<u64> = shared::dynamic(WINDOW_AT);
    let scratch: Shared<u32> = shared::dynamic(SCRATCH_AT);
    let remainder_bits = parameters.split().remainder_bits;
    let keep = parameters.keeps_duplicates();
    let t = thread::thread_idx_x();
    // SAFETY: shared regions do not overlap, and barriers separate their uses (each helper has one); items are read
    // below `n`; words are written below those of `slots`, those that other tiles may touch atomically.
    unsafe {
        let tile = look_back::ticket(ticket, number);
        let tile_first = tile * BLOCK as usize * ITEMS;
        let first = tile_first + t as usize * ITEMS;

        let mut items = [F::ZERO; ITEMS];
        let count = if first >= n {
            0
        } else if n - first < ITEMS {
            (n - first) as u32
        } else {
            ITEMS as u32
        };
        if count == ITEMS as u32 {
            for i in 0..ITEMS / 4 {
                let four = F::read4(fingerprints, first + 4 * i);
                for j in 0..4 {
                    items[4 * i + j] = four[j];
                }
            }
        } else {
            for i in 0..ITEMS {
                if (i as u32) < count {
                    items[i] = fingerprints.read_nc(first + i);
                }
            }
        }
        // The item before comes from the lane before: lanes before one with items are full.
        let mut last = warp::shuffle_up(warp::FULL_MASK, items[ITEMS - 1], 1);
        if warp::lane_id() == 0 && first > 0 && count > 0 {
            last = fingerprints.read_nc(first - 1);
        }
        let before = if first > 0 { last } else { F::ZERO };

        let (mut kept, mut follows) = (0u32, 0u32); // one bit per item
        let mut fill = F::Fillings::IDENTITY;
        for i in 0..ITEMS {
            if (i as u32) < count {
                let item = items[i];
                let any = first > 0 || i > 0;
                let quotient = item.quotient(remainder_bits);
                if keep || !any || item != last {
                    kept |= 1 << i;
                    let one = F::of(1);
                    fill = F::Fillings::combine(fill, F::fill(Lift { floor: quotient.plus(one), add: one }));
                }
                if any && quotient == last.quotient(remainder_bits) {
                    follows |= 1 << i;
                }
                last = item;
            }
        }
        let own: Shared<F> = shared::dynamic::<F>(ITEMS_AT).at(t * (ITEMS as u32 + 1));
        for i in 0..ITEMS {
            own.set(i as u32, items[i]);
        }
        let mut items = Items::new(own, count, kept, follows, before);
        if K::COUNTED && count > 0 {
            items = items.with_digits(digits.read_nc(first / 32) >> (first % 32));
        }

        let (in_block, all) = block::exclusive_scan::<F::Fillings, WARPS>(fill, scratch);
        let prefix = look_back::tile_prefix::<F::Fillings>(look_back, tile, all, prefix_slot);
        let total = F::lift(F::Fillings::combine(prefix, all));
        let tile_end = if n - tile_first < BLOCK as usize * ITEMS { n } else { tile_first + BLOCK as usize * ITEMS };
        if t == 0 && tile_end == n {
            totals.write(0, total.add.bits());
            totals.write(1, total.apply(F::ZERO).bits());
        }
        let free = F::lift(F::Fillings::combine(prefix, in_block)).apply(F::ZERO);

        let first_quotient = fingerprints.read_nc(tile_first).quotient(remainder_bits);
        let last_quotient = fingerprints.read_nc(tile_end - 1).quotient(remainder_bits);
        let ends =
            Ends { free: F::lift(prefix).apply(F::ZERO), end: total.apply(F::ZERO), first_quotient, last_quotient };
        if tile_end == n {
            K::end(parameters, slots, last_quotient.bits(), slots, ends.end.bits(), true, words);
        }
        write::<F, K>(&items, parameters, slots, ends, free, window, words);
    }
}

/// Ends of a tile with at least one item.
#[cfg(feature = "bodies")]
pub struct Ends<F> {
    /// First slot that is free for the items.
    pub free: F,
    /// First free slot after the items.
    pub end: F,
    /// Quotient of the first item.
    pub first_quotient: F,
    /// Quotient of the last item.
    pub last_quotient: F,
}

/// Writes a tile. `free` is the first slot that is free for the thread's items.
///
/// # Safety
/// - All threads of the block come here together, after a barrier after all accesses to `window`: [`WINDOW_WORDS`] of
///   shared memory that do not overlap the items.
/// - The contract of [`lay_out`], whose words these are.
#[cfg(feature = "bodies")]
#[inline(always)]
pub unsafe fn write<F: Slot, K: Form>(
    items: &Items<F>,
    parameters: Parameters,
    slots: u64,
    ends: Ends<F>,
    free: F,
    window: Shared<u64>,
    words: GlobalMut<u64>,
) {
    let t = thread::thread_idx_x();
    // These are the blocks of the tile's slots; blocks from `shared_again` on may belong to other tiles, too.
    let base = ends.free.larger(ends.first_quotient).bits() / BLOCK_SLOTS;
    let end = Ord::min(ends.end.bits(), slots).div_ceil(BLOCK_SLOTS);
    let shared_again = ends.last_quotient.bits() / BLOCK_SLOTS;
    let block_words = parameters.container().block_words(parameters.split().remainder_bits) as u32 + K::COUNTED as u32;
    let window_blocks = (WINDOW_WORDS / block_words) as u64;
    // SAFETY: a barrier separates each writing of the window from its reading. `end` is at most the number of blocks of
    // `slots`, so all words are within `words`. Blocks up to the first free slot and from `shared_again` on may belong
    // to other tiles too and are changed by atomics; no other tile accesses those between.
    unsafe {
        if end > base + MOST_WINDOWS * window_blocks {
            K::add(items, parameters, slots, free, words);
            return;
        }
        let base_slot = F::of(base * BLOCK_SLOTS);
        let mut from = base;
        while from < end {
            let blocks = Ord::min(end - from, window_blocks);
            let count = blocks as u32 * block_words;
            let mut i = t;
            while i < count {
                window.set(i, 0);
                i += BLOCK;
            }
            thread::sync_threads();

            let part = Part { from: ((from - base) * BLOCK_SLOTS) as u32, len: (blocks * BLOCK_SLOTS) as u32 };
            let target = window.cast();
            K::compose(items, parameters, slots, base_slot, free, part, target, words);
            thread::sync_threads();

            let own = (base + 1 - from.min(base + 1)) as u32 * block_words;
            let own_end = if shared_again < from {
                0
            } else if shared_again - from > blocks {
                count
            } else {
                (shared_again - from) as u32 * block_words
            };
            let to = words.at(from as usize * block_words as usize);
            let mut i = t;
            while i < count {
                let bits = window.get(i);
                if own <= i && i < own_end {
                    to.write(i as usize, bits);
                } else if bits != 0 {
                    atomic::reduce_or(to.at(i as usize), bits);
                }
                i += BLOCK;
            }
            thread::sync_threads();
            from += window_blocks;
        }
    }
}

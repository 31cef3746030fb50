//! Kernels that build a standard quotient filter: fingerprints of keys, and the layout of sorted fingerprints.
//!
//! Source: Geil, Farach-Colton, Owens, "Quotient Filters: Approximate Membership Queries on the GPU", IPDPS 2018,
//! section IV-C.
//!
//! The layout is ours, not one of the paper's three. An item turns the first free slot `x` into `max(quotient, x) + 1`,
//! a duplicate that is dropped leaves it as it is; such functions compose
//! ([`MaxPlus`]), so that one single-pass scan with decoupled look-back tells every item its
//! slot, and the same kernel writes it.
//!
//! A tile's items lie in ascending slots. The tile composes the words of these slots in shared memory, a *window* of
//! whole blocks of 64 slots at a time, in 32-bit arithmetic, and writes them out. No other tile has slots or quotients
//! in blocks strictly between that of the first slot free for the tile and that of its last quotient: those are plain
//! stores. The others, at the tile's ends, are added to what neighbours put there. A tile whose slots lie far apart
//! adds its few items directly.

use warpset_core::quotient::slots::{Appender, BLOCK_SLOTS, Container};
use warpset_core::quotient::standard as core;
use warpset_core::scan::{Lift, MaxPlus, Number, Operator};
use warpset_simt::shared::{self, Shared};
use warpset_simt::{Global, GlobalMut, ShuffleWord, atomic, thread, warp};

use crate::batch::keys;
use crate::block;
use crate::look_back::{self, Published};
use crate::quotient::memory::{Fill, Filling, Fingerprint, Parameters, Shareable};

mod window;

use window::Writer;

/// Threads of a block, in all kernels here.
pub const BLOCK: u32 = 256;
/// Keys that a thread hashes.
pub const KEYS: usize = 4;
/// Items of a tile of the layout, of fingerprints of 32 bits.
pub const TILE_U32: usize = BLOCK as usize * ITEMS_U32;
/// Items of a tile of the layout, of fingerprints of 64 bits.
pub const TILE_U64: usize = BLOCK as usize * ITEMS_U64;
/// Dynamic shared memory of the layout, in bytes.
pub const SHARED_BYTES: u32 = SCRATCH_AT + block::scratch_bytes::<Fill>(WARPS);
/// The most fingerprints of 32 bits that are laid out: sums of a slot and a number of items stay within 32 bits.
pub const MOST_U32: usize = (1 << 31) - 1;

const WARPS: u32 = BLOCK / 32;
/// Items of a thread.
const ITEMS_U32: usize = 16;
const ITEMS_U64: usize = 8;
/// Words of a window: at a load of 0.9, the slots of a tile fit in one for most widths.
const WINDOW_WORDS: u32 = 2560;
/// A tile whose slots take more windows than this does not use any.
const MOST_WINDOWS: u64 = 4;
const WINDOW_AT: u32 = 32;
const PREFIX_AT: u32 = 16;
const ITEMS_AT: u32 = WINDOW_AT + 8 * WINDOW_WORDS;
/// A thread's items, and a place that nothing uses, so that threads meet different banks.
const ITEMS_BYTES: u32 = 4 * BLOCK * (ITEMS_U32 as u32 + 1);
const SCRATCH_AT: u32 = (ITEMS_AT + max(ITEMS_BYTES, 8 * BLOCK * (ITEMS_U64 as u32 + 1))).next_multiple_of(16);

const fn max(a: u32, b: u32) -> u32 {
    if a > b { a } else { b }
}

/// Words of the look-back of that many tiles, of fingerprints of either width.
pub const fn look_back_words(tiles: usize) -> usize {
    look_back::words::<Fill>(tiles)
}

/// A fingerprint whose width slots and numbers of items have too.
trait Slot: Fingerprint + ShuffleWord + Number {
    /// Whether remainders may have more than 32 bits.
    const IS_WIDE: bool;
    /// Items of a thread.
    const ITEMS: usize;
    /// What items do to the first free slot: functions [`Lift`] of slots, composed.
    type Fillings: Operator<Value: Published>;
    fn quotient(self, remainder_bits: u32) -> Self;
    fn fill(lift: Lift<Self>) -> <Self::Fillings as Operator>::Value;
    fn lift(fill: <Self::Fillings as Operator>::Value) -> Lift<Self>;
    /// Items `i` to `i + 3`.
    ///
    /// # Safety
    /// - As for reads, of each.
    /// - Their address is a multiple of 16.
    unsafe fn read4(from: Global<Self>, i: usize) -> [Self; 4];
}

impl Slot for u32 {
    const IS_WIDE: bool = false;
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
    #[inline(always)]
    unsafe fn read4(from: Global<u32>, i: usize) -> [u32; 4] {
        // SAFETY: the caller's promise is the same.
        unsafe { from.read4_nc(i) }
    }
}

impl Slot for u64 {
    const IS_WIDE: bool = true;
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
    #[inline(always)]
    unsafe fn read4(from: Global<u64>, i: usize) -> [u64; 4] {
        // SAFETY: the caller's promise is the same, for two pairs.
        let ([a, b], [c, d]) = unsafe { (from.read2_nc(i), from.read2_nc(i + 2)) };
        [a, b, c, d]
    }
}

/// A thread's items in shared memory: which of them are stored, and which have the quotient of the one before.
struct Items<F> {
    items: Shared<F>,
    count: u32,
    kept: u32,
    follows: u32,
}

/// Slots of a tile that are composed at a time, relative to the tile's first block.
#[derive(Clone, Copy)]
struct Part {
    from: u32,
    len: u32,
}

impl<F: Slot> Items<F> {
    /// Hands each stored item to `put`: itself, and whether its run begins.
    ///
    /// Not unrolled: `put` is long.
    #[inline(always)]
    fn for_each(&self, mut put: impl FnMut(F, bool)) {
        let mut i = 0;
        while i < self.count {
            if self.kept >> i & 1 != 0 {
                // SAFETY: the thread's own place, which it has written.
                put(unsafe { self.items.get(i) }, self.follows >> i & 1 == 0);
            }
            i += 1;
        }
    }

    /// Composes what items have in a part of the slots. `free` is the first slot free for the thread's items, and
    /// `base` the tile's first slot.
    ///
    /// # Safety
    /// - As [`build`], whose window and words these are.
    /// - The part's words are in the window.
    #[inline(always)]
    unsafe fn compose<const PACKED: bool>(
        &self,
        parameters: Parameters,
        base: F,
        free: F,
        part: Part,
        window: Shared<u32>,
        words: GlobalMut<u64>,
    ) {
        let split = parameters.split();
        let remainder_bits = split.remainder_bits;
        let mut target = Writer::<PACKED>::new(window, remainder_bits);
        let mut free = free.larger(base).bits().wrapping_sub(base.bits()) as u32;
        self.for_each(|item, begins| {
            let quotient = item.quotient(remainder_bits);
            // Before the tile's first slot there are quotients, but no slots.
            let is_before = quotient < base;
            let canonical = quotient.bits().wrapping_sub(base.bits()) as u32;
            let slot = if is_before { free } else { free.max(canonical) };
            free = slot + 1;
            // SAFETY: words of slots of the part are the window's.
            unsafe {
                if begins && is_before && part.from == 0 {
                    let mut far = Appender::new(Shareable(words), parameters.container(), remainder_bits);
                    far.occupy(quotient.bits());
                    far.finish();
                } else if begins && !is_before && canonical.wrapping_sub(part.from) < part.len {
                    target.occupy(canonical - part.from);
                }
                if slot.wrapping_sub(part.from) < part.len {
                    let remainder = F::of(split.remainder(item.bits()));
                    target.item(slot - part.from, is_before || slot != canonical, !begins, remainder);
                }
            }
        });
        // SAFETY: as above.
        unsafe { target.finish() };
    }

    /// Adds items to the filter's words one by one.
    ///
    /// # Safety
    /// As [`build`], whose words these are.
    #[inline(always)]
    unsafe fn add(&self, parameters: Parameters, free: F, slots: u64, words: GlobalMut<u64>) {
        let split = parameters.split();
        let mut target = Appender::new(Shareable(words), parameters.container(), split.remainder_bits);
        let mut free = free.bits();
        self.for_each(|item, begins| {
            let (quotient, remainder) = (split.quotient(item.bits()), split.remainder(item.bits()));
            let slot = core::place(free, quotient);
            free = slot + 1;
            if begins {
                target.occupy(quotient);
            }
            if slot < slots {
                target.item(slot, core::item_metadata(slot, quotient, !begins), remainder);
            }
        });
        target.finish();
    }
}

/// One tile of the layout.
///
/// # Safety
/// As [`quotient_build`].
#[inline(always)]
unsafe fn build<F: Slot, const ITEMS: usize>(
    fingerprints: Global<F>,
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
    let (container, remainder_bits) = (parameters.container(), parameters.split().remainder_bits);
    let keep = parameters.keeps_duplicates();
    let t = thread::thread_idx_x();
    // SAFETY: shared regions are apart, and barriers stand between their uses (each helper has one); items are read
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
        // The item before: lanes before one with items are full.
        let mut last = warp::shuffle_up(warp::FULL_MASK, items[ITEMS - 1], 1);
        if warp::lane_id() == 0 && first > 0 && count > 0 {
            last = fingerprints.read_nc(first - 1);
        }

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
        let items = Items { items: own, count, kept, follows };

        let (in_block, all) = block::exclusive_scan::<F::Fillings, WARPS>(fill, scratch);
        let prefix = look_back::tile_prefix::<F::Fillings>(look_back, tile, all, prefix_slot);
        let total = F::lift(F::Fillings::combine(prefix, all));
        let tile_end = if n - tile_first < BLOCK as usize * ITEMS { n } else { tile_first + BLOCK as usize * ITEMS };
        if t == 0 && tile_end == n {
            totals.write(0, total.add.bits());
            totals.write(1, total.apply(F::ZERO).bits());
        }
        let free = F::lift(F::Fillings::combine(prefix, in_block)).apply(F::ZERO);

        // Blocks of the tile's slots, and those of them that are used by nothing else.
        let first_quotient = fingerprints.read_nc(tile_first).quotient(remainder_bits);
        let last_quotient = fingerprints.read_nc(tile_end - 1).quotient(remainder_bits);
        let base = F::lift(prefix).apply(F::ZERO).larger(first_quotient).bits() / BLOCK_SLOTS;
        let end_slot = Ord::min(total.apply(F::ZERO).bits(), slots);
        let end = end_slot.div_ceil(BLOCK_SLOTS);
        let shared_again = last_quotient.bits() / BLOCK_SLOTS;

        let block_words = container.block_words(remainder_bits) as u32;
        let window_blocks = (WINDOW_WORDS / block_words) as u64;
        if end > base + MOST_WINDOWS * window_blocks {
            items.add(parameters, free, slots, words);
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
            match container {
                Container::Bytes => items.compose::<false>(parameters, base_slot, free, part, target, words),
                Container::Packed => items.compose::<true>(parameters, base_slot, free, part, target, words),
            }
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

kernel! {
    /// The fingerprint of each key, as `F`.
    ///
    /// # Safety
    /// - Launch: 1-D, blocks of [`BLOCK`] threads, a thread for each [`KEYS`] keys.
    /// - `keys`: `n` keys of `kind`, `keys::HASH` or one of `keys::MIX_U64`, `MIX_U32` and `MIX_I32`, not written while the kernel runs.
    /// - `out`: `n` words, used by this launch alone; wide enough for the fingerprints of these [`Parameters`].
    pub unsafe fn quotient_fingerprints<F>(
        keys: Global<u64>, kind: u32, spread: u64, n: usize, parameters: u32, out: GlobalMut<F>,
    ) for [u32 => quotient_fingerprints_u32, u64 => quotient_fingerprints_u64] {
        let split = Parameters(parameters).split();
        let first = thread::block_idx_x() as usize * (BLOCK as usize * KEYS) + thread::thread_idx_x() as usize;
        for k in 0..KEYS {
            let i = first + k * BLOCK as usize;
            if i < n {
                // SAFETY: `i < n`.
                unsafe {
                    let hash = keys::mix_at(keys, kind, spread, i);
                    out.write(i, F::of(split.fingerprint(hash)));
                }
            }
        }
    }
}

kernel! {
    /// Writes a filter of `n` ascending `F` fingerprints.
    ///
    /// # Safety
    /// - Launch: 1-D, one block of [`BLOCK`] threads for each [`TILE_U32`] or [`TILE_U64`] fingerprints,
    ///   [`SHARED_BYTES`] of dynamic shared memory; `n > 0`, for 32 bits at most [`MOST_U32`].
    /// - `fingerprints`: `n`, ascending, with these [`Parameters`], not written while the kernel runs, at a multiple of
    ///   16 bytes.
    /// - `look_back`: [`look_back_words`] of the tiles, at a multiple of 16 bytes, and `ticket` one
    ///   word: zero at the start, used by this launch alone.
    /// - `words`: those of `slots` slots, zero at the start, used by this launch alone. Items that belong to other
    ///   slots are left out.
    /// - `totals`: two words, set to the number of fingerprints stored and to the slot after the last.
    #[launch_bounds(256, 5)]
    pub unsafe fn quotient_build<F>(
        fingerprints: Global<F>, n: usize, parameters: u32, slots: u64, look_back: GlobalMut<u64>,
        ticket: GlobalMut<u32>, words: GlobalMut<u64>, totals: GlobalMut<u64>,
    ) for [u32 => quotient_build_u32, u64 => quotient_build_u64] {
        // SAFETY: the caller keeps this kernel's contract.
        unsafe {
            build::<F, { F::ITEMS }>(
                fingerprints, n, Parameters(parameters), slots, look_back, ticket, words, totals,
            )
        }
    }
}

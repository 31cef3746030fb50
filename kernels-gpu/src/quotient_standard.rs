//! Kernels of the standard quotient filter: lookup, layout and extraction.
//!
//! Source: Geil, Farach-Colton, Owens, "Quotient Filters: Approximate Membership Queries on the GPU", IPDPS 2018: sections
//! IV-A (lookups, one thread a key), IV-C (bulk build) and IV-E (extraction, one thread a slot).
//!
//! The layout is ours, not one of the paper's three. An item turns the first free slot `x` into `max(quotient, x) + 1`, a
//! duplicate that is dropped leaves it as it is; such functions compose ([`MaxPlus`]), so that one single-pass scan with
//! decoupled look-back tells every item its slot, and the same kernel writes it.

use warpset_core::quotient::Split;
use warpset_core::quotient::slots::{Appender, ByteSlots, Container, PackedSlots, Slots};
use warpset_core::quotient::standard as core;
use warpset_core::scan::{Lift, Operator};
use warpset_simt::shared::{self, Shared};
use warpset_simt::{Global, GlobalMut, kernel, thread, warp};

pub use crate::quotient_memory::Parameters;
use crate::quotient_memory::{Fill, Filling, Fingerprint, ReadOnly, Shareable};
use crate::{block, keys, look_back, results};

/// Threads of a block, in all kernels here.
pub const BLOCK: u32 = 256;
/// Items of a tile of the layout.
pub const TILE: usize = BLOCK as usize * ITEMS;
/// Dynamic shared memory of the layout, in bytes.
pub const SHARED_BYTES: u32 = SCRATCH_AT + block::scratch_bytes::<Fill>(WARPS);

const WARPS: u32 = BLOCK / 32;
/// Items of a thread.
const ITEMS: usize = 8;
const PREFIX_AT: u32 = 16;
const SCRATCH_AT: u32 = 32;

/// Words of the look-back of so many tiles.
pub const fn look_back_words(tiles: usize) -> usize {
    look_back::words::<Fill>(tiles)
}

/// Answers for one key a thread.
///
/// # Safety
/// As [`quotient_standard_contains`].
#[inline(always)]
unsafe fn contains<S: Slots>(
    slots: S,
    split: Split,
    keys: Global<u64>,
    kind: u32,
    spread: u64,
    n: usize,
    form: u32,
    out: GlobalMut<u64>,
) {
    let i = thread::index_1d() as usize;
    let mut yes = false;
    // SAFETY: `i < n` where it is read; all threads arrive at `put`.
    unsafe {
        if i < n {
            let fingerprint = split.fingerprint(keys::mix_at(keys, kind, spread, i));
            yes = core::contains(&slots, split.quotient(fingerprint), split.remainder(fingerprint));
        }
        results::put(form, out, i, n, yes);
    }
}

kernel! {
    /// Whether each key may be in the filter.
    ///
    /// # Safety
    /// - Launch: 1-D, `n.div_ceil(BLOCK)` blocks of [`BLOCK`] threads.
    /// - `words`: a sound filter of `slots` slots with these [`Parameters`], not written meanwhile.
    /// - `keys`: `n` keys of `kind`, one of `keys::HASH`, `MIX_U64` and `MIX_U32`, not written meanwhile.
    /// - `out`: `results::words(form, n)` words, nobody else's; for `results::COUNT`, others may add to it.
    #[launch_bounds(256, 4)]
    pub unsafe fn quotient_standard_contains(
        words: Global<u64>, slots: u64, parameters: u32, keys: Global<u64>, kind: u32, spread: u64, n: usize, form: u32,
        out: GlobalMut<u64>,
    ) {
        let parameters = Parameters(parameters);
        let split = parameters.split();
        let words = ReadOnly(words);
        // SAFETY: the caller keeps this kernel's contract; the container is the same for all threads.
        unsafe {
            match parameters.container() {
                Container::Bytes => {
                    let slots = ByteSlots::new(words, slots, split.remainder_bits);
                    contains(slots, split, keys, kind, spread, n, form, out);
                }
                Container::Packed => {
                    let slots = PackedSlots::new(words, slots, split.remainder_bits);
                    contains(slots, split, keys, kind, spread, n, form, out);
                }
            }
        }
    }
}

/// One tile of the layout.
///
/// # Safety
/// As [`quotient_standard_build_u32`].
#[inline(always)]
unsafe fn build<F: Fingerprint>(
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
    let scratch: Shared<u32> = shared::dynamic(SCRATCH_AT);
    let split = parameters.split();
    let keep = parameters.keeps_duplicates();
    let t = thread::thread_idx_x() as usize;
    // SAFETY: shared regions are apart, and barriers stand between their uses (each helper has one); items are read below
    // `n`; slots are written below `slots`.
    unsafe {
        let tile = look_back::ticket(ticket, number);
        let first = tile * TILE + t * ITEMS;

        // The item before, then the thread's own; past the end, all are like the last and count for nothing.
        let mut items = [0u64; ITEMS];
        let mut before = 0;
        let mut has_before = false;
        if first > 0 && first <= n {
            before = fingerprints.read_nc(first - 1).bits();
            has_before = true;
        }
        let mut kept = 0u32; // a bit an item
        let mut follows = 0u32;
        let mut fill = Filling::IDENTITY;
        let mut last = before;
        for i in 0..ITEMS {
            if first + i < n {
                let item = fingerprints.read_nc(first + i).bits();
                items[i] = item;
                let any = has_before || i > 0;
                if keep || !any || item != last {
                    kept |= 1 << i;
                    let free = Fill(Lift { floor: split.quotient(item) + 1, add: 1 });
                    fill = Filling::combine(fill, free);
                }
                if any && split.quotient(item) == split.quotient(last) {
                    follows |= 1 << i;
                }
                last = item;
            }
        }
        let (in_block, all) = block::exclusive_scan::<Filling, WARPS>(fill, scratch);
        let prefix = look_back::tile_prefix::<Filling>(look_back, tile, all, prefix_slot);
        if t == 0 && (tile + 1) * TILE >= n {
            let Fill(total) = Filling::combine(prefix, all);
            totals.write(0, total.add);
            totals.write(1, total.apply(0));
        }

        let mut free = Filling::combine(prefix, in_block).0.apply(0);
        let mut target = Appender::new(Shareable(words), parameters.container(), split.remainder_bits);
        for i in 0..ITEMS {
            if kept >> i & 1 != 0 {
                let quotient = split.quotient(items[i]);
                let slot = core::place(free, quotient);
                free = slot + 1;
                if slot < slots {
                    let follows = follows >> i & 1 != 0;
                    if !follows {
                        target.occupy(quotient);
                    }
                    target.item(slot, core::item_metadata(slot, quotient, follows), split.remainder(items[i]));
                }
            }
        }
        target.finish();
    }
}

/// The fingerprint in each slot, one thread a slot (algorithm 8), and one bit a slot that tells whether there is one.
///
/// # Safety
/// As [`quotient_standard_extract_u32`].
#[inline(always)]
unsafe fn extract<F: Fingerprint, S: Slots>(slots: S, split: Split, out: GlobalMut<F>, used: GlobalMut<u32>) {
    let slot = thread::index_1d() as u64;
    let mut full = false;
    // SAFETY: `slot` is below the number of slots where it is used; slots are whole blocks of 64, so a warp has all of its
    // slots or none, and comes to the vote together.
    unsafe {
        if slot < slots.len() {
            full = slots.metadata(slot) != 0;
            if full {
                let quotient = core::quotient_of(&slots, slot);
                out.write(slot as usize, F::of(split.join(quotient, slots.remainder(slot))));
            }
        }
        let bits = warp::ballot(warp::FULL_MASK, full);
        if warp::lane_id() == 0 && slot < slots.len() {
            used.write(slot as usize / 32, bits);
        }
    }
}

macro_rules! by_width {
    ($($word:ty: $hash:ident, $build:ident, $extract:ident;)*) => {$(
        kernel! {
            #[doc = concat!("The fingerprint of each key, as `", stringify!($word), "`.")]
            ///
            /// # Safety
            /// - Launch: 1-D, `n.div_ceil(BLOCK)` blocks of [`BLOCK`] threads.
            /// - `keys`: `n` keys of `kind`, one of `keys::HASH`, `MIX_U64` and `MIX_U32`, not written meanwhile.
            /// - `out`: `n` words, nobody else's; wide enough for the fingerprints of these [`Parameters`].
            pub unsafe fn $hash(
                keys: Global<u64>, kind: u32, spread: u64, n: usize, parameters: u32, out: GlobalMut<$word>,
            ) {
                let split = Parameters(parameters).split();
                let i = thread::index_1d() as usize;
                if i < n {
                    // SAFETY: `i < n`.
                    unsafe {
                        let hash = keys::mix_at(keys, kind, spread, i);
                        out.write(i, <$word>::of(split.fingerprint(hash)));
                    }
                }
            }
        }

        kernel! {
            #[doc = concat!("Writes a filter of `n` ascending `", stringify!($word), "` fingerprints.")]
            ///
            /// # Safety
            /// - Launch: 1-D, `n.div_ceil(TILE)` blocks of [`BLOCK`] threads, [`SHARED_BYTES`] of dynamic shared memory;
            ///   `n > 0`.
            /// - `fingerprints`: `n`, ascending, with these [`Parameters`], not written meanwhile.
            /// - `look_back`: [`look_back_words`] of the tiles, at a multiple of 16 bytes, and `ticket` one
            ///   word: zero at the start, nobody else's.
            /// - `words`: those of `slots` slots, zero at the start, nobody else's. Items that belong to other slots are
            ///   left out.
            /// - `totals`: two words, set to the number of fingerprints stored and to the slot after the last.
            #[launch_bounds(256, 4)]
            pub unsafe fn $build(
                fingerprints: Global<$word>, n: usize, parameters: u32, slots: u64, look_back: GlobalMut<u64>,
                ticket: GlobalMut<u32>, words: GlobalMut<u64>, totals: GlobalMut<u64>,
            ) {
                // SAFETY: the caller keeps this kernel's contract.
                unsafe { build(fingerprints, n, Parameters(parameters), slots, look_back, ticket, words, totals) }
            }
        }

        kernel! {
            #[doc = concat!("The `", stringify!($word), "` fingerprint in each slot that is not empty.")]
            ///
            /// # Safety
            /// - Launch: 1-D, `slots.div_ceil(BLOCK)` blocks of [`BLOCK`] threads.
            /// - `words`: a sound filter of `slots` slots with these [`Parameters`], not written meanwhile.
            /// - `out`: a word a slot, written where the slot is not empty; `used`: a bit a slot, set if it is not. Nobody
            ///   else's.
            pub unsafe fn $extract(
                words: Global<u64>, slots: u64, parameters: u32, out: GlobalMut<$word>, used: GlobalMut<u32>,
            ) {
                let parameters = Parameters(parameters);
                let split = parameters.split();
                let words = ReadOnly(words);
                // SAFETY: the caller keeps this kernel's contract; the container is the same for all threads.
                unsafe {
                    match parameters.container() {
                        Container::Bytes => {
                            extract(ByteSlots::new(words, slots, split.remainder_bits), split, out, used);
                        }
                        Container::Packed => {
                            extract(PackedSlots::new(words, slots, split.remainder_bits), split, out, used);
                        }
                    }
                }
            }
        }
    )*};
}
by_width! {
    u32: quotient_standard_fingerprints_u32, quotient_standard_build_u32, quotient_standard_extract_u32;
    u64: quotient_standard_fingerprints_u64, quotient_standard_build_u64, quotient_standard_extract_u64;
}

//! Maplets: rank-and-select quotient filters with a value in the low bits of each remainder.
//!
//! The item of a fingerprint and a value is a *pair*. Kernels make pairs of fingerprints and values, take them apart,
//! find the values of fingerprints, and combine values in place.

use warpset_core::bits::{ByHalves, ReadWords as _, lowest};
use warpset_core::quotient::Split;
use warpset_core::quotient::rank_select::{Blocks, metadata_words};
use warpset_core::scan::{BitOr, Max, Min, Sum};
use warpset_simt::{Global, GlobalMut, atomic, thread};

use crate::batch::keys::KeyKind;
use crate::batch::results;
#[cfg(feature = "bodies")]
use crate::quotient::keys::fingerprint_at;
use crate::quotient::memory::{Fingerprint, Parameters, ReadOnly};
use crate::quotient::rank_select::search::Runs;

/// Threads of a block, in all kernels here.
pub const BLOCK: u32 = 256;
/// Answer for a key without a value; values have fewer than 64 bits.
pub const ABSENT: u64 = u64::MAX;

/// Returns the split of fingerprints without values.
const fn keys_split(pairs: Split, value_bits: u32) -> Split {
    Split { quotient_bits: pairs.quotient_bits, remainder_bits: pairs.remainder_bits - value_bits }
}

kernel! {
    /// Joins fingerprints and values to pairs of type `F`, and moves them up by `shift` bits.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per pair, [`BLOCK`] threads per block.
    /// - `fingerprints`, `values`: `n` each, not written while the kernel runs.
    /// - `out`: `n` places, used by this launch alone; `F` is wide enough for pairs.
    /// - `too_wide`: all ones before, used by this launch alone; becomes the first place of a value above `most`. It is
    ///   not accessed if there is none. Excess bits are dropped.
    pub unsafe fn quotient_maplet_join<F>(
        fingerprints: Global<u64>, values: Global<u64>, n: usize, value_bits: u32, shift: u32, most: u64,
        out: GlobalMut<F>, too_wide: GlobalMut<u64>,
    ) for [u32 => quotient_maplet_join_u32, u64 => quotient_maplet_join_u64] {
        let i = thread::index_1d() as usize;
        if i < n {
            // SAFETY: `i < n`.
            unsafe {
                let (fingerprint, value) = (fingerprints.read_nc(i), values.read_nc(i));
                if value > most {
                    atomic::reduce_min(too_wide, i as u64);
                }
                out.write(i, F::of((fingerprint << value_bits | value & lowest(value_bits)) << shift));
            }
        }
    }
}

kernel! {
    /// Takes pairs of type `F` apart into fingerprints, each without its lowest `dropped` bits, and values.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per pair, [`BLOCK`] threads per block.
    /// - `pairs`: `n`, not written while the kernel runs.
    /// - `fingerprints`, `values`: `n` places each, used by this launch alone.
    pub unsafe fn quotient_maplet_split<F>(
        pairs: Global<F>, n: usize, value_bits: u32, dropped: u32, fingerprints: GlobalMut<u64>,
        values: GlobalMut<u64>,
    ) for [u32 => quotient_maplet_split_u32, u64 => quotient_maplet_split_u64] {
        let i = thread::index_1d() as usize;
        if i < n {
            // SAFETY: `i < n`.
            unsafe {
                let pair = pairs.read_nc(i).bits();
                fingerprints.write(i, pair >> value_bits >> dropped);
                values.write(i, pair & lowest(value_bits));
            }
        }
    }
}

/// Declares kernels that look up the first value of each key.
macro_rules! firsts {
    ($($kernel:ident: $find:expr, $filters:literal;)*) => {$(
        kernel! {
            #[doc = concat!("Returns the least value of each key's fingerprint, or [`ABSENT`], in maplets ", $filters, ".")]
            ///
            /// # Safety
            /// - Launch: 1-D, one thread per key, [`BLOCK`] threads per block.
            /// - `words`: a sound filter of `blocks` blocks with these [`Parameters`], 16-byte aligned, not written
            ///   while the kernel runs.
            /// - `fields`: [`fields`](warpset_core::quotient::rank_select::fields) of its remainders.
            /// - `keys`: `n` keys of `kind`, one that [`fingerprint_at`] takes, not written while the kernel runs.
            /// - `out`: `n` words, used by this launch alone.
            #[launch_bounds(256, 5)]
            pub unsafe fn $kernel(
                words: Global<u64>, blocks: u64, parameters: u32, value_bits: u32, fields: u64, keys: Global<u64>,
                kind: KeyKind, spread: u64, n: usize, out: GlobalMut<u64>,
            ) {
                let split = Parameters(parameters).split();
                let i = thread::index_1d() as usize;
                if i < n {
                    let first = |fingerprint: u64| {
                        let pair = fingerprint << value_bits;
                        $find(words, blocks, split, fields, (split.quotient(pair), split.remainder(pair)), value_bits)
                    };
                    // SAFETY: `i < n`.
                    unsafe {
                        let fingerprint = fingerprint_at(keys, kind, spread, keys_split(split, value_bits), i);
                        out.write(i, fingerprint.and_then(first).unwrap_or(ABSENT));
                    }
                }
            }
        }
    )*};
}
firsts! {
    quotient_maplet_get: first::<false>, "without counters, with any number of bits per remainder";
    quotient_maplet_get_paired: first::<true>, "without counters, with an odd number of bits per remainder";
    quotient_maplet_get_counted: first_counted, "with counters";
}

/// Returns the first value of a quotient and remainder, whose `value_bits` lowest bits are zero.
#[cfg(feature = "bodies")]
#[inline(always)]
fn first<const PAIRED: bool>(
    words: Global<u64>,
    blocks: u64,
    split: Split,
    fields: u64,
    (quotient, remainder): (u64, u64),
    value_bits: u32,
) -> Option<u64> {
    Runs::<PAIRED, false, _>::new(ReadOnly(words), blocks, split.remainder_bits, fields)
        .first_prefixed(quotient, remainder, value_bits)
}

/// Returns what [`first`] does, in a filter with counters.
#[cfg(feature = "bodies")]
#[inline(always)]
fn first_counted(
    words: Global<u64>,
    blocks: u64,
    split: Split,
    _: u64,
    (quotient, remainder): (u64, u64),
    value_bits: u32,
) -> Option<u64> {
    let blocks = Blocks::counted(ReadOnly(words), blocks, split.remainder_bits);
    let slot = blocks.first_prefixed(quotient, remainder, value_bits, ByHalves)?;
    Some(blocks.remainder(slot) & lowest(value_bits))
}

/// Declares kernels that list all values of fingerprints.
macro_rules! lists {
    ($($kernel:ident: $blocks:expr, $copies:expr, $filters:literal;)*) => {$(
        kernel! {
            #[doc = concat!("Counts or lists the stored pairs of fingerprints, in maplets ", $filters, ".")]
            ///
            /// If `lists` is 0, `places` gets the number of pairs of each fingerprint. If it is 1, `places` has the
            /// place of the first pair of each fingerprint; its pairs, without the bits that are not in `kept`, go to
            /// `out` from there on, and their copies to `copies`. With `different`, equal pairs are one.
            ///
            /// # Safety
            /// - Launch: 1-D, one thread per fingerprint, [`BLOCK`] threads per block.
            /// - `words`: a sound filter of `blocks` blocks with these [`Parameters`], not written while the kernel
            ///   runs.
            /// - `fingerprints`: `n` of them without values, not written while the kernel runs.
            /// - `places`: `n` words; `out` and `copies`: a word per pair if `lists` is 1. Each is used by this launch
            ///   alone.
            pub unsafe fn $kernel(
                words: Global<u64>, blocks: u64, parameters: u32, value_bits: u32, different: u32,
                fingerprints: Global<u64>, n: usize, lists: u32, kept: u64, places: GlobalMut<u64>,
                out: GlobalMut<u64>, copies: GlobalMut<u64>,
            ) {
                let split = Parameters(parameters).split();
                let blocks = $blocks(ReadOnly(words), blocks, split.remainder_bits);
                let i = thread::index_1d() as usize;
                let mut count = 0u64;
                // SAFETY: `i < n`; pairs are as many as an earlier launch counted.
                unsafe {
                    if i < n {
                        let pair = fingerprints.read_nc(i) << value_bits;
                        let quotient = split.quotient(pair);
                        let first = if lists == 1 { places.read(i) as usize } else { 0 };
                        let mut at = blocks.first_prefixed(quotient, split.remainder(pair), value_bits, ByHalves);
                        let mut before = ABSENT;
                        while let Some(slot) = at {
                            let remainder = blocks.remainder(slot);
                            if different == 0 || remainder != before {
                                if lists == 1 {
                                    out.write(first + count as usize, split.join(quotient, remainder) & kept);
                                    copies.write(first + count as usize, $copies(&blocks, slot));
                                }
                                count += 1;
                            }
                            before = remainder;
                            at = blocks.next_prefixed(slot, value_bits);
                        }
                        if lists == 0 {
                            places.write(i, count);
                        }
                    }
                }
            }
        }
    )*};
}
lists! {
    quotient_maplet_list: Blocks::new, |_: &Blocks<ReadOnly>, _: u64| 1, "without counters";
    quotient_maplet_list_counted: Blocks::counted, |blocks: &Blocks<ReadOnly, true>, slot| blocks.count_from(slot).0,
        "with counters";
}

kernel! {
    /// Finds the place of each fingerprint's value, in maplets without counters: its first bit in the words.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per fingerprint, [`BLOCK`] threads per block.
    /// - `words`: a sound filter of `blocks` blocks with these [`Parameters`], not written while the kernel runs.
    /// - `fields`: [`fields`](warpset_core::quotient::rank_select::fields) of its remainders.
    /// - `fingerprints`: `n` of them without values, not written while the kernel runs.
    /// - `places`: `n` words; `absent`: a bit per fingerprint, in whole words; it is set if there is no value. The two
    ///   words of `counted` are increased by the number of these, and by that of fingerprints with several values.
    ///   Each is used by this launch alone.
    #[launch_bounds(256, 5)]
    pub unsafe fn quotient_maplet_find(
        words: Global<u64>, blocks: u64, parameters: u32, value_bits: u32, fields: u64, fingerprints: Global<u64>,
        n: usize, places: GlobalMut<u64>, absent: GlobalMut<u64>, counted: GlobalMut<u64>,
    ) {
        let split = Parameters(parameters).split();
        let i = thread::index_1d() as usize;
        let mut found = None;
        // SAFETY: `i < n` where it is read or written; all threads arrive at `put`.
        unsafe {
            if i < n {
                found = place_of(words, blocks, split, fields, fingerprints.read_nc(i) << value_bits, value_bits);
                places.write(i, found.map_or(0, |(place, _)| place));
            }
            results::put(results::BITS, absent, i, n, i < n && found.is_none());
            results::put(results::COUNT, counted, i, n, i < n && found.is_none());
            results::put(results::COUNT, counted.at(1), i, n, found.is_some_and(|(_, is_one)| !is_one));
        }
    }
}

/// Returns the first bit of the first value of the fingerprint of `pair`, whose value is zero, and whether it is the
/// only one.
#[cfg(feature = "bodies")]
#[inline(always)]
fn place_of(
    words: Global<u64>,
    blocks: u64,
    split: Split,
    fields: u64,
    pair: u64,
    value_bits: u32,
) -> Option<(u64, bool)> {
    let (quotient, least, bits) = (split.quotient(pair), split.remainder(pair), split.remainder_bits);
    let filter = Blocks::with_fields(ReadOnly(words), blocks, bits, fields);
    if !filter.is_occupied(quotient) {
        return None;
    }
    let start = filter.find_run_start(quotient, ByHalves);
    let place = |slot: u64| {
        64 * (slot / 64 * (bits as u64 + metadata_words(false)) + metadata_words(false)) + slot % 64 * bits as u64
    };
    let ends = filter.runends(start / 64) >> (start % 64);
    let width = (ends.trailing_zeros() + 1) * bits;
    if ends == 0 || width > 64 {
        let slot = filter.first_prefixed(quotient, least, value_bits, ByHalves)?;
        return Some((place(slot), filter.next_prefixed(slot, value_bits).is_none()));
    }
    // All remainders of the run are compared at once. Without the highest bits nothing carries out of a field: its
    // highest bit becomes one unless the rest is zero.
    let differs = ReadOnly(words).field(place(start), width) ^ least.wrapping_mul(fields);
    let others = differs & fields.wrapping_mul(lowest(bits) & !lowest(value_bits));
    let highest = (fields & lowest(width)) << (bits - 1);
    let rest = highest - (fields & lowest(width));
    let equal = !(((others & rest) + rest) | others) & highest;
    (equal != 0).then(|| (place(start) + (equal.trailing_zeros() + 1 - bits) as u64, equal & (equal - 1) == 0))
}

#[cfg(any(not(target_arch = "nvptx64"), warpset_module = "quotient_rank_select_maplet"))]
crate::maplet_kernels! {
    quotient_maplet_sum: Sum<u64>;
    quotient_maplet_max: Max<u64>;
    quotient_maplet_min: Min<u64>;
    quotient_maplet_or: BitOr<u64>;
}

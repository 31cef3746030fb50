//! Selection and partition, in a single pass, in input order.
//!
//! A thread takes four neighbouring items at a time, so that loads have 128 bits. A lane keeps at most 4 of four items,
//! a warp at most 128, so the ranks of four such rounds come from one scan over the warp of four 8-bit counters in a
//! word. The kept items of a tile are compacted in shared memory before they are written; the first warp meanwhile gets
//! the number of kept items of earlier tiles by decoupled look-back ([`crate::look_back`]).
//!
//! A `Source` decides: bits of a bitmap, flags, a predicate, or that an item differs from the previous one.

#[cfg(feature = "bodies")]
mod source;

use warpset_core::scan::{Count, Sum};
use warpset_simt::shared::{self, Shared};
use warpset_simt::{Global, GlobalMut, Word, allow, thread, warp};

use crate::look_back::{self, AGGREGATE, INCLUSIVE};
#[cfg(feature = "bodies")]
use crate::primitives::predicate::{BitsDiffer, BitsEqual, InRange};
use crate::primitives::tile_shape::launch_shape;
#[cfg(feature = "bodies")]
use source::{Bitmap, Flags, If, Input, Places, Source, Unique};

/// Flag: items are at a multiple of 16 bytes, and may be read four at a time.
pub const ITEMS_ALIGNED: u32 = 1;
/// Flag: flags are at a multiple of 4 bytes, and may be read four at a time.
pub const FLAGS_ALIGNED: u32 = 2;

/// Rounds of four items per thread: their counters fit in a word.
const ROUNDS: usize = 4;
/// Items per thread.
const ITEMS: u32 = 4 * ROUNDS as u32;

/// Returns the place of the words after a tile of items of `size` bytes: the kept items of each warp, the kept items of
/// earlier tiles, the tile.
const fn misc_at(threads: u32, size: u32) -> u32 {
    threads * ITEMS * size
}

/// Returns the bytes of dynamic shared memory.
#[cfg(not(target_arch = "nvptx64"))]
const fn shared_bytes(threads: u32, size: usize) -> u32 {
    misc_at(threads, size as u32) + threads / 32 * 4 + 16
}

/// Returns the threads per block for items of type `T`, given those for at most 8 bytes: a tile of items of 16 bytes
/// takes 64 KiB.
const fn threads<T>(threads: u32) -> u32 {
    if size_of::<T>() > 8 && threads > 256 { 256 } else { threads }
}

/// Returns the larger of two sizes.
const fn larger(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

/// Item of a selection.
pub trait Item: Word + Default + PartialEq {
    /// Reads items `i` to `i + 3`.
    ///
    /// # Safety
    /// - They are valid for reads and not written while the kernel runs.
    /// - The address of the first is a multiple of 16.
    unsafe fn read_four(items: Global<Self>, i: usize) -> [Self; 4];
}

impl Item for u32 {
    #[inline(always)]
    #[track_caller]
    unsafe fn read_four(items: Global<u32>, i: usize) -> [u32; 4] {
        // SAFETY: the contract of this function.
        unsafe { items.read4_nc(i) }
    }
}

impl Item for u64 {
    #[inline(always)]
    #[track_caller]
    unsafe fn read_four(items: Global<u64>, i: usize) -> [u64; 4] {
        // SAFETY: the contract of this function.
        let ([a, b], [c, d]) = unsafe { (items.read2_nc(i), items.read2_nc(i + 2)) };
        [a, b, c, d]
    }
}

impl Item for u128 {
    #[inline(always)]
    #[track_caller]
    unsafe fn read_four(items: Global<u128>, i: usize) -> [u128; 4] {
        // SAFETY: the contract of this function.
        unsafe { [items.read_nc(i), items.read_nc(i + 1), items.read_nc(i + 2), items.read_nc(i + 3)] }
    }
}

/// Outputs: kept items, and rejected ones if requested.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct Outputs<T, V> {
    kept: GlobalMut<T>,
    values: GlobalMut<V>,
    rejected: GlobalMut<T>,
    count: GlobalMut<u64>,
}

/// Selects in one tile. `PARTITION` also writes rejected items, `PAIRS` also moves values.
///
/// # Safety
/// The contract of [`select`] and the others.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn select_tile<
    T: Item,
    V: Item,
    I: Input<T>,
    S: Source<T>,
    const THREADS: u32,
    const PARTITION: bool,
    const PAIRS: bool,
>(
    items: I,
    values: Global<V>,
    n: usize,
    source: S,
    aligned: u32,
    words: GlobalMut<u64>,
    ticket: GlobalMut<u32>,
    out: Outputs<T, V>,
) {
    if size_of::<T>() == 4 && size_of::<V>() == 4 && (THREADS == 512 || PAIRS) {
        // Three blocks of 512 threads leave 40 registers, which sm_80 exceeds by two to four and later ones do not;
        // with values, five of 256 leave 48, exceeded by six to ten. Enough registers with fewer blocks is slower, on
        // an H200 by a tenth.
        allow::spill();
    }
    let tile_items = THREADS * ITEMS;
    let misc = misc_at(THREADS, larger(size_of::<T>(), size_of::<V>()) as u32);
    let shared_items: Shared<T> = shared::dynamic(0);
    let sums: Shared<u32> = shared::dynamic(misc); // one per warp
    let slot: Shared<u64> = shared::dynamic(misc + THREADS / 8);
    let t = thread::thread_idx_x();
    let lane = warp::lane_id();
    let warp_index = t / 32;
    // SAFETY: shared indices stay inside the arrays, and a barrier separates accesses of different threads to one word.
    // The ticket makes `tile` unique; items are read below `n`. A kept item's place is the number of kept items before
    // it, a rejected one's the number of rejected ones, so places are distinct and inside the outputs. All threads
    // reach every barrier, vote and shuffle.
    unsafe {
        let tile = look_back::ticket(ticket, shared::dynamic(misc + THREADS / 8 + 8));
        let start = tile * tile_items as usize;
        let len = (n - start).min(tile_items as usize) as u32;
        // Each warp has neighbouring items; the place in the tile of a thread's four items of round `u`:
        let place = |u: usize| 4 * (warp_index * 32 * ROUNDS as u32 + u as u32 * 32 + lane);
        let mut loaded = [[T::default(); 4]; ROUNDS];
        let mut bits = [0; ROUNDS];
        let by_four = len == tile_items && aligned & ITEMS_ALIGNED != 0;
        if by_four {
            for u in 0..ROUNDS {
                loaded[u] = items.four(start + place(u) as usize);
            }
            for u in 0..ROUNDS {
                bits[u] = source.keeps_four(items, start + place(u) as usize, loaded[u]);
            }
        } else {
            for u in 0..ROUNDS {
                for j in 0..4 {
                    let at = place(u) + j as u32;
                    if at < len {
                        let i = start + at as usize;
                        loaded[u][j] = items.item(i);
                        bits[u] |= u32::from(source.keeps(items, i, loaded[u][j])) << j;
                    }
                }
            }
        }

        let mut packed = 0;
        for u in 0..ROUNDS {
            packed |= bits[u].count_ones() << (8 * u);
        }
        let inclusive = warp::inclusive_scan_add(warp::FULL_MASK, packed);
        let of_warp = warp::shuffle_idx(warp::FULL_MASK, inclusive, 31);
        let exclusive = inclusive - packed;
        let mut ranks = [0; ROUNDS];
        let mut kept = 0;
        for u in 0..ROUNDS {
            ranks[u] = kept + (exclusive >> (8 * u) & 255);
            kept += of_warp >> (8 * u) & 255;
        }
        if lane == 0 {
            sums.set(warp_index, kept);
        }
        thread::sync_threads();
        let mut before_warp = 0;
        let mut kept = 0;
        for w in 0..THREADS / 32 {
            let sum = sums.get(w);
            if w < warp_index {
                before_warp += sum;
            }
            kept += sum;
        }
        if t == 0 {
            let state = if tile == 0 { INCLUSIVE } else { AGGREGATE };
            look_back::publish(words, tile, state, Count(u64::from(kept)));
        }
        for u in 0..ROUNDS {
            ranks[u] += before_warp;
            scatter::<T, PARTITION>(shared_items, loaded[u], bits[u], ranks[u], kept, place(u));
        }
        // Loaded while the first warp looks back.
        let mut loaded_values = [[V::default(); 4]; ROUNDS];
        if PAIRS {
            for u in 0..ROUNDS {
                if by_four {
                    loaded_values[u] = V::read_four(values, start + place(u) as usize);
                } else {
                    for j in 0..4 {
                        let at = place(u) + j as u32;
                        if at < len {
                            loaded_values[u][j] = values.read_nc(start + at as usize);
                        }
                    }
                }
            }
        }
        if warp_index == 0 {
            let mut before = Count(0);
            if tile != 0 {
                before = look_back::exclusive_prefix::<Sum<Count>>(words, tile);
            }
            if lane == 0 {
                let through = before.0 + u64::from(kept);
                if tile != 0 {
                    look_back::publish(words, tile, INCLUSIVE, Count(through));
                }
                slot.set(0, before.0);
                if start + len as usize == n {
                    out.count.write(0, through);
                }
            }
        }
        thread::sync_threads();
        let before = slot.get(0) as usize;
        let (to, rejected) = (out.kept.at(before), out.rejected);
        for u in 0..ITEMS {
            let i = t + u * THREADS;
            if i < kept {
                to.write(i as usize, shared_items.get(i));
            } else if PARTITION && i < len {
                rejected.write(start - before + (i - kept) as usize, shared_items.get(i));
            }
        }
        if PAIRS {
            let shared_values: Shared<V> = shared::dynamic(0);
            thread::sync_threads();
            for u in 0..ROUNDS {
                scatter::<V, false>(shared_values, loaded_values[u], bits[u], ranks[u], kept, place(u));
            }
            thread::sync_threads();
            let to = out.values.at(before);
            for u in 0..ITEMS {
                let i = t + u * THREADS;
                if i < kept {
                    to.write(i as usize, shared_values.get(i));
                }
            }
        }
    }
}

/// Puts the kept ones of four items at `place` in the tile to their ranks, of which `rank` is the first; with
/// `REJECTED`, puts the others after the tile's `kept` ones.
///
/// # Safety
/// `to` is valid for a tile, and no other thread has these places.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
unsafe fn scatter<T: Item, const REJECTED: bool>(
    to: Shared<T>,
    four: [T; 4],
    bits: u32,
    mut rank: u32,
    kept: u32,
    place: u32,
) {
    for j in 0..4 {
        let keep = bits >> j & 1 != 0;
        if REJECTED {
            let at = if keep { rank } else { kept + place + j as u32 - rank };
            // SAFETY: below the tile's length, since the number of kept items before is at most the number of items
            // before.
            unsafe { to.set(at, four[j]) };
        } else if keep {
            // SAFETY: below the number of kept items.
            unsafe { to.set(rank, four[j]) };
        }
        rank += u32::from(keep);
    }
}

/// Kernels that select and, if named, kernels that partition: each with its blocks per multiprocessor for each width of
/// items. The arguments in brackets give the source.
macro_rules! select_kernels {
    ($($name:ident: $u32:ident x $blocks32:literal, $u64:ident x $blocks64:literal, $u128:ident x $blocks128:literal;
        $($partition:ident: $p_u32:ident x $p_blocks32:literal, $p_u64:ident x $p_blocks64:literal, $p_u128:ident x $p_blocks128:literal;)?
        $what:literal, $arguments:tt $aligned:ident => $source:expr;)*) => {$(
        select_kernel! {
            concat!("Copies the items ", $what, ", in order.");
            $name, 512: $u32 x $blocks32, $u64 x $blocks64, $u128 x $blocks128; $source, false, $arguments $aligned, []
        }
        $(select_kernel! {
            concat!("Copies the items ", $what, ", and to `rejected` the others, in order.");
            $partition, 256: $p_u32 x $p_blocks32, $p_u64 x $p_blocks64, $p_u128 x $p_blocks128;
            $source, true, $arguments $aligned, [rejected: GlobalMut<T>]
        })?
    )*};
}

/// Last of one or two.
macro_rules! last {
    ($one:ident) => {
        $one
    };
    ($one:ident $two:ident) => {
        $two
    };
}

/// Kernel for items of type `T`; rejected items go to the other output, if there is one.
macro_rules! select_kernel {
    ($doc:expr; $name:ident, $threads:literal: $u32:ident x $blocks32:literal, $u64:ident x $blocks64:literal,
        $u128:ident x $blocks128:literal;
        $source:expr, $partition:literal, [$($arg:ident: $ty:ty),*] $aligned:ident,
        [$($other:ident: $other_ty:ty)?]) => {
        kernel! {
            #[doc = $doc]
            ///
            /// # Safety
            /// - Launch: 1-D, one block per tile, shaped as its `SHAPE` says; `n > 0`.
            /// - `items`: valid for `n` reads; a bitmap for `n.div_ceil(32)` words, flags for `n`; not written while
            ///   the kernel runs. `aligned` is true.
            /// - `look_back`: one word per block, and `ticket` one word: zero at the start, used by this launch alone.
            /// - `out`: valid for one write per kept item, overlaps nothing else, nothing else accesses it; `rejected`,
            ///   if present, likewise for the others.
            /// - `count`: one word, set to the number of items that are kept; used by this launch alone.
            pub unsafe fn $name<T>(
                items: Global<T>, n: usize, $($arg: $ty,)* $aligned: u32, look_back: GlobalMut<u64>,
                ticket: GlobalMut<u32>, out: GlobalMut<T>, $($other: $other_ty,)? count: GlobalMut<u64>,
            ) for [
                #[launch_bounds($threads, $blocks32)] u32 => $u32,
                #[launch_bounds($threads, $blocks64)] u64 => $u64,
                #[launch_bounds(256, $blocks128)] u128 => $u128,
            ] {
                let out = Outputs { kept: out, values: out, rejected: last!(out $($other)?), count };
                // SAFETY: the contract of this kernel.
                unsafe {
                    select_tile::<T, T, _, _, { threads::<T>($threads) }, $partition, false>(
                        items, items, n, $source, $aligned, look_back, ticket, out,
                    )
                }
            }
        }

        launch_shape!($name<T>: threads::<T>($threads), ITEMS, shared_bytes(threads::<T>($threads), size_of::<T>()));
    };
}

select_kernels! {
    select: select_u32 x 3, select_u64 x 2, select_u128 x 2;
        partition: partition_u32 x 4, partition_u64 x 3, partition_u128 x 2;
        "whose bit is set", [bitmap: Global<u32>] aligned => Bitmap(bitmap);
    select_flagged: select_flagged_u32 x 3, select_flagged_u64 x 2, select_flagged_u128 x 2;
        partition_flagged: partition_flagged_u32 x 4, partition_flagged_u64 x 3, partition_flagged_u128 x 2;
        "whose flag is not zero", [flags: Global<u8>] aligned => Flags { flags, aligned: aligned & FLAGS_ALIGNED != 0 };
    select_in_range: select_in_range_u32 x 3, select_in_range_u64 x 2, select_in_range_u128 x 2;
        partition_in_range: partition_in_range_u32 x 4, partition_in_range_u64 x 3, partition_in_range_u128 x 2;
        "in a range", [from: T, to: T] aligned => If(InRange { from, to });
    select_bits_equal: select_bits_equal_u32 x 3, select_bits_equal_u64 x 2, select_bits_equal_u128 x 2;
        partition_bits_equal: partition_bits_equal_u32 x 4, partition_bits_equal_u64 x 3, partition_bits_equal_u128 x 2;
        "with these bits", [mask: T, bits: T] aligned => If(BitsEqual { mask, bits });
    select_bits_differ: select_bits_differ_u32 x 3, select_bits_differ_u64 x 2, select_bits_differ_u128 x 2;
        partition_bits_differ: partition_bits_differ_u32 x 4, partition_bits_differ_u64 x 3, partition_bits_differ_u128 x 2;
        "without these bits", [mask: T, bits: T] aligned => If(BitsDiffer { mask, bits });
    unique: unique_u32 x 3, unique_u64 x 2, unique_u128 x 2;
        "that differ from the one before", [] aligned => Unique;
}

kernel! {
    /// Writes the places of the set bits, in order.
    ///
    /// # Safety
    /// The contract of [`select`], without items, and with its launch shape.
    #[launch_bounds(512, 2)]
    pub unsafe fn select_indices(
        n: usize, bitmap: Global<u32>, look_back: GlobalMut<u64>, ticket: GlobalMut<u32>, out: GlobalMut<u64>,
        count: GlobalMut<u64>,
    ) {
        let out = Outputs { kept: out, values: out, rejected: out, count };
        // SAFETY: the contract of this kernel; no values are read.
        unsafe {
            select_tile::<u64, u64, _, _, 512, false, false>(
                Places, out.kept.as_const(), n, Bitmap(bitmap), ITEMS_ALIGNED, look_back, ticket, out,
            )
        }
    }
}

macro_rules! unique_by_key_kernels {
    ($($name:ident: $key:ty, $value:ty, $threads:literal, $blocks:literal;)*) => {$(
        kernel! {
            #[doc = concat!("Copies the `", stringify!($key), "` that differ from the one before, with their `",
                stringify!($value), "`, in order.")]
            ///
            /// # Safety
            /// The contract of [`select`], for keys and values alike.
            #[launch_bounds($threads, $blocks)]
            pub unsafe fn $name(
                keys: Global<$key>, values: Global<$value>, n: usize, aligned: u32, look_back: GlobalMut<u64>,
                ticket: GlobalMut<u32>, out_keys: GlobalMut<$key>, out_values: GlobalMut<$value>, count: GlobalMut<u64>,
            ) {
                let out = Outputs { kept: out_keys, values: out_values, rejected: out_keys, count };
                // SAFETY: the contract of this kernel.
                unsafe { select_tile::<$key, $value, _, _, $threads, false, true>(keys, values, n, Unique, aligned, look_back, ticket, out) }
            }
        }

        launch_shape!($name: $threads, ITEMS, shared_bytes($threads, larger(size_of::<$key>(), size_of::<$value>())));
    )*};
}
unique_by_key_kernels! {
    unique_by_key_u32_u32: u32, u32, 256, 5;
    unique_by_key_u32_u64: u32, u64, 256, 2;
    unique_by_key_u64_u32: u64, u32, 256, 2;
    unique_by_key_u64_u64: u64, u64, 256, 3;
    unique_by_key_u128_u32: u128, u32, 256, 2;
    unique_by_key_u128_u64: u128, u64, 256, 2;
}

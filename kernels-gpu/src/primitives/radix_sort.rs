//! Radix sort, least significant digit first: one histogram launch for all digits, then one read and one write per
//! digit.
//!
//! Source: Adinets and Merrill, "Onesweep: A Faster Least Significant Digit Radix Sort for GPUs", 2022. A tile counts
//! its digits first and publishes the counts ("early counts"), so that later tiles rarely wait; then it ranks, sorts in
//! shared memory, looks back, and writes each digit's items as one run.
//!
//! Departures: the last block of the histogram plans the passes ([`RUN`] and its neighbours): a digit that is equal in
//! all keys takes no pass, without involving the host. Each launch zeroes the look-back words of the next one.

mod reverse;
mod small;

use crate::block;
use crate::primitives::onesweep_tile::{self, PassShape};
use crate::primitives::ranking::{DIGITS, Digit, LookBack, SortKey};
use warpset_core::scan::Sum;
use warpset_simt::shared::{self, Shared};
use warpset_simt::{Global, GlobalMut, Word, atomic, fence, thread};

pub use reverse::*;
pub use small::*;

/// Threads per block of the histogram.
pub const HISTOGRAM_BLOCK: u32 = 1024;
/// Shape of a histogram: lanes are distributed over this number of columns of counters, to reduce bank conflicts.
#[derive(Clone, Copy, Debug)]
pub struct HistogramShape {
    /// Columns, a power of two up to 32.
    columns: u32,
    /// Largest number of passes.
    max_passes: u32,
}

impl HistogramShape {
    /// Returns the bytes of dynamic shared memory: counters, sums, a word.
    pub const fn shared_bytes(self) -> u32 {
        self.sums_at() + HISTOGRAM_BLOCK / 32 * 8 + 64
    }

    const fn sums_at(self) -> u32 {
        self.max_passes * DIGITS * self.columns * 4
    }
}

// A step of the plan, one word per pass: these bits, and from `ORDINAL` on the number of passes that run before it.
/// The pass is needed.
pub const RUN: u32 = 1;
/// The pass reads the input.
pub const FROM_INPUT: u32 = 2;
/// The pass writes the output and reads the scratch (unless the input); otherwise the reverse.
pub const TO_OUTPUT: u32 = 4;
/// Shift of the ordinal.
pub const ORDINAL: u32 = 8;

/// Plans the passes: omits those of digits that are equal in all keys; the last pass that runs writes the output.
///
/// # Safety
/// `plan` holds `passes` words, used by this launch alone.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn lay_out(plan: GlobalMut<u32>, passes: u32, mut needed: u32, in_place: bool) {
    if in_place && needed.count_ones() % 2 == 1 {
        // An odd number of passes would have to read and write the same items, so one more is added. The host requests
        // an even number, so one is left.
        needed |= !needed & needed.wrapping_add(1);
    } else if !in_place && needed == 0 {
        needed = 1;
    }
    let runs = needed.count_ones();
    let mut ordinal = 0;
    for p in 0..passes {
        let mut step = ordinal << ORDINAL;
        if needed >> p & 1 != 0 {
            step |= RUN;
            if ordinal == 0 {
                step |= FROM_INPUT;
            }
            if (runs - 1 - ordinal) % 2 == 0 {
                step |= TO_OUTPUT;
            }
            ordinal += 1;
        }
        // SAFETY: `p < passes`.
        unsafe { plan.write(p as usize, step) };
    }
}

/// Counts all digits; the last block turns counts into starts and plans the passes.
///
/// # Safety
/// The contract of the kernels that call it.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn histogram<K: SortKey, const MAX: u32, const COLUMNS: u32, const LOADS: usize>(
    keys: Global<K>,
    n: usize,
    begin: u32,
    bits: u32,
    passes: u32,
    flip: u32,
    in_place: u32,
    starts: GlobalMut<u64>,
    plan: GlobalMut<u32>,
    done: GlobalMut<u32>,
) {
    let shape = HistogramShape { columns: COLUMNS, max_passes: MAX };
    let counts: Shared<u32> = shared::dynamic(0);
    let sums: Shared<u32> = shared::dynamic(shape.sums_at());
    let misc: Shared<u32> = shared::dynamic(shape.sums_at() + HISTOGRAM_BLOCK / 32 * 8);
    let t = thread::thread_idx_x();
    let column = t % COLUMNS;
    // SAFETY: shared indices stay below `passes * DIGITS * COLUMNS`; `i < n`; `starts` has `passes * DIGITS` words and
    // is only accessed atomically until all blocks have counted, which fences and `done` tell the last block; from then
    // on it belongs to that block. All threads reach every barrier.
    unsafe {
        let mut i = t;
        while i < passes * DIGITS * COLUMNS {
            counts.set(i, 0);
            i += HISTOGRAM_BLOCK;
        }
        thread::sync_threads();
        let count = |key: K| {
            for p in 0..MAX {
                if p < passes {
                    let digit = Digit::of_pass(begin, bits, p, passes, flip).of(key);
                    counts.reduce_add((p * DIGITS + digit) * COLUMNS + column, 1);
                }
            }
        };
        // Several loads in flight per thread.
        let step = thread::grid_dim_x() as usize * HISTOGRAM_BLOCK as usize;
        let mut i = thread::block_idx_x() as usize * HISTOGRAM_BLOCK as usize + t as usize;
        while i + (LOADS - 1) * step < n {
            let mut loaded = [K::splat(0); LOADS];
            for u in 0..LOADS {
                loaded[u] = keys.read_nc(i + u * step);
            }
            for u in 0..LOADS {
                count(loaded[u]);
            }
            i += LOADS * step;
        }
        while i < n {
            count(keys.read_nc(i));
            i += step;
        }
        thread::sync_threads();
        let mut i = t;
        while i < passes * DIGITS {
            let mut count = 0;
            for c in 0..COLUMNS {
                count += counts.get(i * COLUMNS + (c + column) % COLUMNS);
            }
            if count != 0 {
                atomic::reduce_add(starts.at(i as usize), count as u64);
            }
            i += HISTOGRAM_BLOCK;
        }
        fence::device();
        thread::sync_threads();
        if t == 0 {
            misc.set(0, atomic::fetch_add(done, 1));
        }
        thread::sync_threads();
        if misc.get(0) + 1 != thread::grid_dim_x() {
            return;
        }
        fence::device();
        let mut needed = 0;
        for p in 0..passes {
            let word = starts.at((p * DIGITS + t) as usize);
            let count = if t < DIGITS { atomic::load_relaxed(word) } else { 0 };
            // This barrier also separates one pass's sums from the next one's.
            let alone = thread::sync_threads_or(count == n as u64);
            if !alone {
                needed |= 1 << p;
            }
            let (start, _) = block::exclusive_scan::<Sum<u64>, { HISTOGRAM_BLOCK / 32 }>(count, sums);
            if t < DIGITS {
                atomic::store_relaxed(word, start);
            }
        }
        if t == 0 {
            lay_out(plan, passes, needed, in_place != 0);
        }
    }
}

macro_rules! histogram_kernels {
    ($($name:ident, $shape:ident: $key:ty, $max:literal x $columns:literal, $loads:literal;)*) => {$(
        /// Shape of the kernel of the same name.
        pub const $shape: HistogramShape = HistogramShape { columns: $columns, max_passes: $max };

        kernel! {
            #[doc = concat!("Where each value of each digit of `", stringify!($key), "` keys begins, and the plan of the passes.")]
            ///
            /// # Safety
            /// - Launch: 1-D, blocks of [`HISTOGRAM_BLOCK`] threads, the dynamic shared memory of the shape; at most
            ///   2^32 - 1 keys per block.
            /// - `keys`: valid for `n` reads, not written while the kernel runs; `begin + bits` is at most their width.
            /// - `passes`: at least `bits / 8`, at most the key's bytes; even if `in_place` is not 0.
            /// - `starts`: [`DIGITS`] words per pass, and `done` one word: zero at the start, used by this launch
            ///   alone.
            /// - `plan`: valid for `passes` words, used by this launch alone.
            #[launch_bounds(1024, 1)]
            pub unsafe fn $name(
                keys: Global<$key>, n: usize, begin: u32, bits: u32, passes: u32, flip: u32, in_place: u32,
                starts: GlobalMut<u64>, plan: GlobalMut<u32>, done: GlobalMut<u32>,
            ) {
                // SAFETY: the contract of this kernel.
                unsafe {
                    histogram::<$key, $max, $columns, $loads>(
                        keys, n, begin, bits, passes, flip, in_place, starts, plan, done,
                    )
                }
            }
        }
    )*};
}
histogram_kernels! {
    radix_sort_histogram_u32, HISTOGRAM_U32: u32, 4 x 1, 8;
    radix_sort_histogram_u64, HISTOGRAM_U64: u64, 8 x 1, 8;
    radix_sort_histogram_u128, HISTOGRAM_U128: u128, 16 x 1, 4;
    radix_sort_large_histogram_u32, LARGE_HISTOGRAM_U32: u32, 4 x 32, 8;
    radix_sort_large_histogram_u64, LARGE_HISTOGRAM_U64: u64, 8 x 16, 8;
    radix_sort_large_histogram_u128, LARGE_HISTOGRAM_U128: u128, 16 x 8, 4;
}

/// Runs one digit's pass over one tile.
///
/// # Safety
/// The contract of the kernels that call it.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn pass<K: SortKey, V: Word + Default, const PAYLOAD: bool, const WARPS: u32, const ITEMS: usize>(
    input: (Global<K>, Global<V>),
    scratch: (GlobalMut<K>, GlobalMut<V>),
    output: (GlobalMut<K>, GlobalMut<V>),
    first_item: usize,
    n: u32,
    digit: Digit,
    step: Global<u32>,
    starts: Global<u64>,
    next_starts: GlobalMut<u64>,
    look_back: (GlobalMut<u32>, GlobalMut<u32>),
    rows: u32,
    portion: u32,
    portions: u32,
    ticket: GlobalMut<u32>,
) {
    let tile_items = WARPS * 32 * ITEMS as u32;
    let t = thread::thread_idx_x();
    // SAFETY: the ticket makes `tile` unique, so this block alone publishes its look-back row. Items are read below
    // `first_item + n`; places in the output come from exact counts of all items, so they are in range and distinct.
    // All threads reach every barrier.
    unsafe {
        let step = step.read_nc(0);
        if step & RUN == 0 {
            return;
        }
        let (from, from_values) = if step & FROM_INPUT != 0 {
            input
        } else if step & TO_OUTPUT != 0 {
            (scratch.0.as_const(), scratch.1.as_const())
        } else {
            (output.0.as_const(), output.1.as_const())
        };
        let (to, to_values) = if step & TO_OUTPUT != 0 { output } else { scratch };
        // Launches alternate between the two halves, and each zeroes the other one.
        let odd = ((step >> ORDINAL) * portions + portion) % 2 == 1;
        let (own, other) = if odd { (look_back.1, look_back.0) } else { look_back };
        let own = LookBack::new(own, DIGITS);

        let word = onesweep_tile::ticket_word::<WARPS>();
        if t == 0 {
            word.set(0, atomic::fetch_add(ticket, 1));
        }
        thread::sync_threads();
        let tile = word.get(0);
        let tile_start = first_item + tile as usize * tile_items as usize;
        let left = n - tile * tile_items;
        let valid = if left < tile_items { left } else { tile_items };
        let place = |count| {
            let place = starts.read_nc(t as usize) + own.before(tile, t, count) as u64;
            if left <= tile_items {
                next_starts.write(t as usize, place + count as u64);
            }
            let mut cleared = tile;
            while cleared < rows {
                other.write(cleared as usize * DIGITS as usize + t as usize, 0);
                cleared += thread::grid_dim_x();
            }
            place
        };
        onesweep_tile::scatter_tile::<K, V, PAYLOAD, WARPS, ITEMS>(
            (from.at(tile_start), from_values.at(tile_start)),
            (to, to_values),
            valid,
            digit,
            |count| own.publish(tile, t, count),
            place,
        );
    }
}

macro_rules! pass_kernels {
    ($($name:ident, $shape:ident: $key:ty, $value:ty, $payload:literal, $threads:literal x $items:literal, $blocks:literal;)*) => {$(
        /// Shape of the kernel of the same name.
        pub const $shape: PassShape = PassShape::new(
            $threads, $items, size_of::<$key>() as u32, if $payload { size_of::<$value>() as u32 } else { 0 },
        );

        kernel! {
            #[doc = concat!("One pass over one portion of `", stringify!($key), "` keys.")]
            ///
            /// # Safety
            /// - Launch: 1-D, one block of the kernel's shape per tile of the `n > 0` items; `n` is at most
            ///   [`LOOK_BACK_ITEMS`](crate::primitives::ranking::LOOK_BACK_ITEMS). All portions but the last are whole
            ///   tiles.
            /// - The step is the histogram's for this pass. Its source is valid for `first_item + n` items and not
            ///   written meanwhile; its target is valid for all items, overlaps nothing else, nothing else accesses it.
            ///   Payloads likewise, if the kernel has them.
            /// - `starts`: the place of the next item of each digit, from the histogram or the previous portion.
            /// - `next_starts`: valid for [`DIGITS`] words, used by this launch alone.
            /// - `look_back`, `look_back_2`: `rows` rows of [`DIGITS`] words each, `rows` at least the grid; used by
            ///   this launch alone. The first is zero before the first pass that runs. `portion` is the number of this
            ///   launch among the `portions` launches of the pass. `ticket` is one word, zero and used by this launch
            ///   alone.
            #[launch_bounds($threads, $blocks)]
            pub unsafe fn $name(
                keys: Global<$key>, values: Global<$value>, scratch_keys: GlobalMut<$key>,
                scratch_values: GlobalMut<$value>, out_keys: GlobalMut<$key>, out_values: GlobalMut<$value>,
                first_item: usize, n: u32, shift: u32, mask: u32, flip: u32, step: Global<u32>, starts: Global<u64>,
                next_starts: GlobalMut<u64>, look_back: GlobalMut<u32>, look_back_2: GlobalMut<u32>, rows: u32,
                portion: u32, portions: u32, ticket: GlobalMut<u32>,
            ) {
                // SAFETY: the contract of this kernel.
                unsafe {
                    pass::<$key, $value, $payload, { $threads / 32 }, $items>(
                        (keys, values), (scratch_keys, scratch_values), (out_keys, out_values), first_item, n,
                        Digit { shift, mask, flip }, step, starts, next_starts, (look_back, look_back_2), rows, portion, portions,
                        ticket,
                    )
                }
            }
        }
    )*};
}
pass_kernels! {
    radix_sort_pass_u32, PASS_U32: u32, u32, false, 512 x 20, 3;
    radix_sort_pass_u32_u32, PASS_U32_U32: u32, u32, true, 512 x 18, 2;
    radix_sort_pass_u32_u64, PASS_U32_U64: u32, u64, true, 512 x 14, 2;
    radix_sort_pass_u64, PASS_U64: u64, u32, false, 512 x 18, 2;
    radix_sort_pass_u64_u32, PASS_U64_U32: u64, u32, true, 512 x 16, 2;
    radix_sort_pass_u64_u64, PASS_U64_U64: u64, u64, true, 512 x 12, 2;
    radix_sort_pass_u128, PASS_U128: u128, u32, false, 512 x 9, 2;
    radix_sort_pass_u128_u32, PASS_U128_U32: u128, u32, true, 512 x 10, 2;
    radix_sort_pass_u128_u64, PASS_U128_U64: u128, u64, true, 512 x 10, 2;
}

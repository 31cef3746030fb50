//! Radix sort of as many items as all multiprocessors hold at once, in one launch.
//!
//! All blocks are resident, so that they can wait for each other. Each holds its part of the items in shared memory and
//! goes through the digits from the least significant on. Of each digit it counts its items and publishes the counts in
//! a row of a matrix; ranks them while the other blocks do the same; waits for all; adds up the rows, those before its
//! own and all; and moves its items, sorted by the digit, to where they belong. Then all blocks wait for each other
//! again. The items stay in the second-level cache.
//!
//! Ranking is that of the sort by passes ([`crate::primitives::ranking`]), which reads and writes memory as often but
//! needs a launch for each digit, whose tiles wait for each other one after the other.

use warpset_core::scan::Sum;
use warpset_simt::shared::{self, Shared};
use warpset_simt::warp::{self, FULL_MASK};
use warpset_simt::{Global, GlobalMut, Word, allow, atomic, fence, thread};

use crate::block;
use crate::primitives::ranking::{self, DIGITS, Digit, SortKey};

/// Words of the matrix for each block: two rows, which passes use in turn, each with two counts of 16 bits per word.
pub const COUNT_WORDS: u32 = DIGITS;
/// Words of a row.
const ROW: u32 = DIGITS / 2;
/// Items that a thread has on their way from memory at a time. Loops over items are rolled: keys stay in shared memory,
/// so that any number of items costs only itself, and no registers.
const BATCH: u32 = 4;

/// The shape of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct ResidentShape {
    /// Threads of a block.
    pub threads: u32,
    /// Items of each thread at most.
    pub items: u32,
    item_bytes: u32,
}

impl ResidentShape {
    /// Dynamic shared memory if each thread has `rows` items, in bytes.
    #[must_use]
    pub const fn shared_bytes(self, rows: u32) -> u32 {
        keys_at(self.threads / 32) + self.threads * rows * self.item_bytes
    }

    /// Items of a block if each thread has `rows`.
    #[must_use]
    pub const fn tile(self, rows: u32) -> usize {
        (self.threads * rows) as usize
    }
}

// Shared memory: counters of each warp, later sums of the matrix; sums of a scan; where each digit's items go; keys as
// they come, keys and values as they go.
const fn sums_at(warps: u32) -> u32 {
    warps * DIGITS * 4
}
const fn runs_at(warps: u32) -> u32 {
    sums_at(warps) + 128
}
const fn keys_at(warps: u32) -> u32 {
    runs_at(warps) + DIGITS * 4
}

/// Where the items are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Input,
    Scratch,
    Output,
}

/// A barrier of the grid, in two steps.
#[derive(Clone, Copy)]
struct GridBarrier {
    arrived: GlobalMut<u32>,
    waits: u32,
}

impl GridBarrier {
    /// Tells the other blocks that this one's writes have been done.
    ///
    /// # Safety
    /// All threads of the block come here together; the word is zero before the launch, which alone uses it.
    #[inline(always)]
    #[track_caller]
    unsafe fn arrive(self) {
        thread::sync_threads();
        if thread::thread_idx_x() == 0 {
            fence::device();
            // SAFETY: the caller's promise.
            unsafe { atomic::reduce_add(self.arrived, 1) };
        }
    }

    /// Waits until all blocks have arrived as often as this one.
    ///
    /// # Safety
    /// As [`arrive`](Self::arrive), which stands before; all blocks of the grid are resident.
    #[inline(always)]
    #[track_caller]
    unsafe fn wait(&mut self) {
        self.waits += 1;
        if thread::thread_idx_x() == 0 {
            // SAFETY: the caller's promise.
            while unsafe { atomic::load_relaxed(self.arrived) } < self.waits * thread::grid_dim_x() {
                thread::spin_hint();
            }
            fence::device();
        }
        thread::sync_threads();
    }
}

/// What the whole grid has of this thread's digit, and what the blocks before have; for the first [`DIGITS`] threads.
///
/// # Safety
/// - All threads of a block of `THREADS` come here together.
/// - `counts` has a row for each block, which no thread writes meanwhile.
/// - `sums` is shared memory for `4 * THREADS` words, which nothing else uses.
#[inline(always)]
#[track_caller]
unsafe fn add_up<const THREADS: u32>(counts: GlobalMut<u32>, sums: Shared<u32>) -> (u32, u32) {
    const IN_FLIGHT: u32 = 8;
    let t = thread::thread_idx_x();
    let (blocks, own) = (thread::grid_dim_x(), thread::block_idx_x());
    let (column, group, groups) = (t % ROW, t / ROW, THREADS / ROW);
    let (mut all, mut before) = ([0; 2], [0; 2]);
    // SAFETY: rows are below the grid; each thread has four words of its own, and a barrier stands before they are read.
    unsafe {
        let mut first = group;
        while first < blocks {
            let mut words = [0; IN_FLIGHT as usize];
            for u in 0..IN_FLIGHT {
                let row = first + u * groups;
                if row < blocks {
                    words[u as usize] = counts.read((row * ROW + column) as usize);
                }
            }
            for u in 0..IN_FLIGHT {
                let word = words[u as usize];
                let (low, high) = (word & 0xffff, word >> 16);
                all = [all[0] + low, all[1] + high];
                if first + u * groups < own {
                    before = [before[0] + low, before[1] + high];
                }
            }
            first += IN_FLIGHT * groups;
        }
        let others = sums.at(2 * THREADS);
        for half in 0..2 {
            sums.set(group * DIGITS + 2 * column + half, all[half as usize]);
            others.set(group * DIGITS + 2 * column + half, before[half as usize]);
        }
        thread::sync_threads();
        let (mut all, mut before) = (0, 0);
        if t < DIGITS {
            for g in 0..groups {
                all += sums.get(g * DIGITS + t);
                before += others.get(g * DIGITS + t);
            }
        }
        (all, before)
    }
}

/// Sorts everything.
///
/// # Safety
/// As the kernels state.
#[inline(always)]
unsafe fn sort<K: SortKey, V: Word + Default, const PAYLOAD: bool, const WARPS: u32, const THREADS: u32>(
    input: (Global<K>, Global<V>),
    scratch: (GlobalMut<K>, GlobalMut<V>),
    output: (GlobalMut<K>, GlobalMut<V>),
    n: u32,
    (begin, bits, passes, flip): (u32, u32, u32, u32),
    rows: u32,
    in_place: bool,
    counts: GlobalMut<u32>,
    arrived: GlobalMut<u32>,
) {
    // On sm_80, whose assembler keeps more of the sums over warps in registers; none on later ones.
    allow::spill();
    let tile = THREADS * rows;
    let counters: Shared<u32> = shared::dynamic(0);
    let sums: Shared<u32> = shared::dynamic(sums_at(WARPS));
    let runs: Shared<u32> = shared::dynamic(runs_at(WARPS));
    let keys: Shared<K> = shared::dynamic(keys_at(WARPS));
    let sorted = keys.at(tile);
    let sorted_values: Shared<V> = shared::dynamic(keys_at(WARPS) + 2 * tile * size_of::<K>() as u32);
    let t = thread::thread_idx_x();
    let row = counters.at(t / 32 * DIGITS);
    let start = thread::block_idx_x() * tile;
    let valid = if n - start < tile { n - start } else { tile };
    let padding = thread::grid_dim_x() * tile - n;
    let first = t / 32 * (32 * rows) + warp::lane_id();
    let own = thread::block_idx_x() * ROW;
    let mut barrier = GridBarrier { arrived, waits: 0 };
    let mut at = At::Input;
    // The first pass must not write what is read, and the last one should write the output.
    let mut to_output = !in_place && passes % 2 == 1;
    // SAFETY: shared indices stay inside the arrays (digits below `DIGITS`, places below the tile's length), and a
    // barrier stands between any two accesses of different threads to one word, but for the rows, which are each one
    // warp's while it counts and ranks. Items are read below `n`, and written to places that are the exact number of
    // items before, so they are in range and differ. Between what one block writes and another reads stands a barrier
    // of the grid. All threads of the grid reach every barrier, since the counts of all blocks decide.
    unsafe {
        for p in 0..passes {
            let digit = Digit::of_pass(begin, bits, p, passes, flip);
            let (from, from_values) = match at {
                At::Input => input,
                At::Scratch => (scratch.0.as_const(), scratch.1.as_const()),
                At::Output => (output.0.as_const(), output.1.as_const()),
            };
            let (from, from_values) = (from.at(start as usize), from_values.at(start as usize));
            ranking::clear_row(row);
            let mut i = 0;
            while i < rows {
                // What lies past the end has the last digit: it ranks after everything.
                let mut loaded = [digit.last::<K>(); BATCH as usize];
                for u in 0..BATCH {
                    let place = first + (i + u) * 32;
                    if i + u < rows && place < valid {
                        loaded[u as usize] = from.read(place as usize);
                    }
                }
                for u in 0..BATCH {
                    if i + u < rows {
                        keys.set(first + (i + u) * 32, loaded[u as usize]);
                        row.reduce_add(digit.of(loaded[u as usize]), 1);
                    }
                }
                i += BATCH;
            }
            thread::sync_threads();
            let matrix = counts.at((p % 2 * (COUNT_WORDS / 2) * thread::grid_dim_x()) as usize);
            let (_, tile_start) = ranking::place_digits::<WARPS>(counters, WARPS, sums, |count| {
                // Whole warps come here.
                let next = warp::shuffle_down(FULL_MASK, count, 1);
                if t % 2 == 0 {
                    matrix.write((own + t / 2) as usize, count | next << 16);
                }
            });
            barrier.arrive();
            let mut i = 0;
            while i < rows {
                let mut loaded = [V::default(); BATCH as usize];
                for u in 0..BATCH {
                    let place = first + (i + u) * 32;
                    if PAYLOAD && i + u < rows && place < valid {
                        loaded[u as usize] = from_values.read(place as usize);
                    }
                }
                for u in 0..BATCH {
                    if i + u < rows {
                        let key = keys.get(first + (i + u) * 32);
                        let rank = ranking::rank(row, digit.of(key));
                        sorted.set(rank, key);
                        if PAYLOAD {
                            sorted_values.set(rank, loaded[u as usize]);
                        }
                    }
                }
                i += BATCH;
            }
            barrier.wait();
            let (all, before) = add_up::<THREADS>(matrix, counters);
            let real = if t == digit.mask { all - padding } else { all };
            let alone = thread::sync_threads_or(t < DIGITS && real == n);
            if alone {
                // Nothing moves; what is in shared memory has not been looked at.
                continue;
            }
            let (base, _) = block::exclusive_scan::<Sum<u32>, WARPS>(all, sums);
            if t < DIGITS {
                runs.set(t, (base + before).wrapping_sub(tile_start));
            }
            thread::sync_threads();
            let (to, to_values) = if to_output { output } else { scratch };
            let mut place = t;
            while place < valid {
                let key = sorted.get(place);
                let to_place = runs.get(digit.of(key)).wrapping_add(place) as usize;
                to.write(to_place, key);
                if PAYLOAD {
                    to_values.write(to_place, sorted_values.get(place));
                }
                place += THREADS;
            }
            at = if to_output { At::Output } else { At::Scratch };
            to_output = !to_output;
            if p + 1 < passes || at != At::Output {
                barrier.arrive();
                barrier.wait();
            }
        }
        // What has not come to the output: no digit told anything apart, or an odd number of them did.
        if at == At::Output || (at == At::Input && in_place) {
            return;
        }
        let (from, from_values) = if at == At::Input { input } else { (scratch.0.as_const(), scratch.1.as_const()) };
        let mut i = t;
        while i < valid {
            let place = (start + i) as usize;
            output.0.write(place, from.read(place));
            if PAYLOAD {
                output.1.write(place, from_values.read(place));
            }
            i += THREADS;
        }
    }
}

macro_rules! resident_sort_kernels {
    ($($name:ident, $shape:ident: $key:ty, $value:ty, $payload:literal, $threads:literal x $items:literal;)*) => {$(
        /// The shape of the kernel of the same name.
        pub const $shape: ResidentShape = ResidentShape {
            threads: $threads,
            items: $items,
            item_bytes: 2 * size_of::<$key>() as u32 + if $payload { size_of::<$value>() as u32 } else { 0 },
        };

        kernel! {
            #[doc = concat!("Sorts `", stringify!($key), "` keys, all blocks resident.")]
            ///
            /// # Safety
            /// - Launch: 1-D, of the shape's threads, one block for each `threads * rows` of the `n > 0` items, with the
            ///   dynamic shared memory that the shape says for `rows`, which is at most its `items`; the device runs all
            ///   blocks at once.
            /// - `keys`: valid for `n` items, and not written by others meanwhile; `out_keys` and `scratch_keys` for as
            ///   many reads and writes, overlap nothing else, nothing else accesses them; but if `in_place` is not 0,
            ///   `keys` are `out_keys`. Values likewise, if the kernel has them.
            /// - `begin + bits` is at most the key's width, `passes` at least 1 and `bits / 8`.
            /// - `counts`: valid for [`COUNT_WORDS`] words for each block, `arrived` one word, zero at the start; used
            ///   by this launch alone.
            #[launch_bounds($threads, 1)]
            pub unsafe fn $name(
                keys: Global<$key>, values: Global<$value>, scratch_keys: GlobalMut<$key>,
                scratch_values: GlobalMut<$value>, out_keys: GlobalMut<$key>, out_values: GlobalMut<$value>,
                n: u32, begin: u32, bits: u32, passes: u32, flip: u32, rows: u32, in_place: u32,
                counts: GlobalMut<u32>, arrived: GlobalMut<u32>,
            ) {
                // SAFETY: the caller keeps this kernel's contract.
                unsafe {
                    sort::<$key, $value, $payload, { $threads / 32 }, $threads>(
                        (keys, values), (scratch_keys, scratch_values), (out_keys, out_values), n,
                        (begin, bits, passes, flip), rows, in_place != 0, counts, arrived,
                    )
                }
            }
        }
    )*};
}
resident_sort_kernels! {
    resident_sort_u32, RESIDENT_U32: u32, u32, false, 1024 x 16;
    resident_sort_u32_u32, RESIDENT_U32_U32: u32, u32, true, 1024 x 16;
    resident_sort_u32_u64, RESIDENT_U32_U64: u32, u64, true, 1024 x 8;
    resident_sort_u64, RESIDENT_U64: u64, u32, false, 1024 x 12;
    resident_sort_u64_u32, RESIDENT_U64_U32: u64, u32, true, 1024 x 8;
    resident_sort_u64_u64, RESIDENT_U64_U64: u64, u64, true, 1024 x 8;
}

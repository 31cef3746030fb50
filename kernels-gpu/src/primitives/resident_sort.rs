//! Radix sort of the items that all multiprocessors hold together, in one launch.
//!
//! All blocks are resident, so they can wait for each other. Each holds its share of the items in shared memory.
//!
//! **By parts**: the interval from the least key to the greatest is cut into parts of equal width, one per block. Items
//! move to their parts, and each block sorts one part (`part`): items cross the device once, whatever the number of
//! bits. If a part gets more items than a block can hold, the sort goes digit by digit instead, before anything has
//! moved.
//!
//! **Digit by digit**, from the least significant on. For each digit a block counts its items and publishes the counts
//! in a row of a matrix; ranks them while the other blocks do the same; waits for all; sums the rows, those before its
//! own and all; and moves its items, sorted by the digit, to their places. Then all blocks wait for each other again.
//! The items stay in the second-level cache. Parts are filled in the same way, with the part as digit.
//!
//! Ranking is that of the sort by passes ([`crate::primitives::ranking`]). That sort reads and writes memory as often
//! as this one digit by digit, but needs one launch per digit, whose tiles wait for each other in sequence.

#[cfg(feature = "bodies")]
mod grid;
#[cfg(feature = "bodies")]
mod interval;
mod part;

use warpset_core::scan::Sum;
use warpset_simt::shared::{self, Shared};
use warpset_simt::warp::{self, FULL_MASK};
use warpset_simt::{Global, GlobalMut, ShuffleWord, Word, allow, atomic, thread};

#[cfg(feature = "bodies")]
use self::grid::{GridBarrier, add_up, bounds_of_grid};
#[cfg(feature = "bodies")]
use self::interval::{Interval, bounds_of_block};
use self::part::Part;
use crate::block;
use crate::primitives::ranking::{self, DIGITS, Digit, SortKey};

pub use self::part::Room;

/// Words of the matrix per block: two rows, which exchanges use alternately, each with two counts of 16 bits per word.
pub const COUNT_WORDS: u32 = DIGITS;
/// Words of 8 bytes before the matrix, zero before the launch: the greatest compared part of a key and the greatest
/// complement of one, unless keys are wider than these words; the number of arrivals of blocks; and one word for the
/// alignment of the matrix to 16 bytes.
pub const HEAD_WORDS: u32 = 4;
/// Words of a row.
const ROW: u32 = DIGITS / 2;
/// Items that a thread loads from memory at a time. Loops over items are rolled, and keys stay in shared memory, so the
/// cost is proportional to the number of items, and no registers are needed per item.
const BATCH: u32 = 4;

/// Flag: the items are sorted in place.
pub const IN_PLACE: u32 = 1;
/// Flag: the items are read in reverse order, from the last one on. Excludes [`IN_PLACE`].
pub const REVERSED: u32 = 2;

/// Shape of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct ResidentShape {
    /// Threads per block.
    pub threads: u32,
    /// Largest number of items per thread.
    pub items: u32,
    key_bytes: u32,
    value_bytes: u32,
}

impl ResidentShape {
    /// Returns the bytes of dynamic shared memory, if each thread has `rows` items and a block has this memory for a
    /// part.
    #[must_use]
    pub const fn shared_bytes(self, rows: u32, room: Room) -> u32 {
        let tile = keys_at(self.threads / 32) + self.threads * rows * (2 * self.key_bytes + self.value_bytes);
        let part = room.shared_bytes(self.key_bytes + self.value_bytes);
        if tile > part { tile } else { part }
    }

    /// Returns the items per block, if each thread has `rows`.
    #[must_use]
    pub const fn tile(self, rows: u32) -> usize {
        (self.threads * rows) as usize
    }

    /// Returns the bytes of an item.
    #[must_use]
    pub const fn item_bytes(self) -> u32 {
        self.key_bytes + self.value_bytes
    }
}

// Shared memory: counters of each warp, later sums of the matrix; sums of a scan; the place of each digit's items, and
// before that the bounds of each warp's keys; the block's part; loaded keys, sorted keys and values.
const fn sums_at(warps: u32) -> u32 {
    warps * DIGITS * 4
}
const fn runs_at(warps: u32) -> u32 {
    sums_at(warps) + 128
}
const fn part_at(warps: u32) -> u32 {
    runs_at(warps) + DIGITS * 4
}
const fn keys_at(warps: u32) -> u32 {
    part_at(warps) + 16
}

/// Deciding bits, their direction, and the number of passes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Order {
    /// Lowest deciding bit.
    pub begin: u32,
    /// Number of deciding bits; they end within the key.
    pub bits: u32,
    /// Passes that divide the bits: at least 1 and `bits / 8`.
    pub passes: u32,
    /// All ones to sort in descending order, zero otherwise.
    pub flip: u32,
}

const _: () = assert!(size_of::<Order>() == 16);

#[cfg(feature = "bodies")]
impl Order {
    #[inline(always)]
    fn digit(self, pass: u32) -> Digit {
        Digit::of_pass(self.begin, self.bits, pass, self.passes, self.flip)
    }

    /// Returns the compared part of a key.
    #[inline(always)]
    fn compared<K: SortKey>(self, key: K) -> K {
        key.masked(self.begin, self.bits, self.flip)
    }
}

/// Source of the items: item `i`, or item `i` from the end.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct Source<K, V> {
    keys: Global<K>,
    values: Global<V>,
    n: u32,
    reversed: bool,
}

#[cfg(feature = "bodies")]
impl<K, V> Source<K, V> {
    #[inline(always)]
    fn at(self, i: u32) -> usize {
        (if self.reversed { self.n - 1 - i } else { i }) as usize
    }
}

/// Target of the items.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct Target<K, V> {
    keys: GlobalMut<K>,
    values: GlobalMut<V>,
}

#[cfg(feature = "bodies")]
impl<K, V> Source<K, V> {
    /// Returns the items written to a target as a source.
    #[inline(always)]
    fn of(target: Target<K, V>, n: u32) -> Self {
        Source { keys: target.keys.as_const(), values: target.values.as_const(), n, reversed: false }
    }
}

/// Location of the items.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Input,
    Scratch,
    Output,
}

/// The block's share of the items, and its shared memory.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct Tile<K, V, const WARPS: u32, const THREADS: u32> {
    counters: Shared<u32>,
    /// Counters of the thread's warp.
    row: Shared<u32>,
    sums: Shared<u32>,
    runs: Shared<u32>,
    keys: Shared<K>,
    sorted: Shared<K>,
    sorted_values: Shared<V>,
    /// Items per thread, and the place of this thread's first one; the next ones follow at distances of 32.
    rows: u32,
    first: u32,
    /// First item, and number of items.
    start: u32,
    valid: u32,
    matrix: GlobalMut<u32>,
}

#[cfg(feature = "bodies")]
impl<K: SortKey, V: Word + Default, const WARPS: u32, const THREADS: u32> Tile<K, V, WARPS, THREADS> {
    #[inline(always)]
    fn new(n: u32, share: u32, matrix: GlobalMut<u32>) -> Self {
        let rows = share.div_ceil(THREADS);
        let counters: Shared<u32> = shared::dynamic(0);
        let keys: Shared<K> = shared::dynamic(keys_at(WARPS));
        let t = thread::thread_idx_x();
        let start = thread::block_idx_x() * share;
        Tile {
            counters,
            row: counters.at(t / 32 * DIGITS),
            sums: shared::dynamic(sums_at(WARPS)),
            runs: shared::dynamic(runs_at(WARPS)),
            keys,
            sorted: keys.at(THREADS * rows),
            sorted_values: shared::dynamic(keys_at(WARPS) + 2 * THREADS * rows * size_of::<K>() as u32),
            rows,
            first: t / 32 * (32 * rows) + warp::lane_id(),
            start,
            valid: if n - start < share { n - start } else { share },
            matrix,
        }
    }

    /// Loads the thread's keys to shared memory; returns the least and the greatest of their compared parts.
    ///
    /// # Safety
    /// The source has the block's items, and nothing writes them meanwhile.
    #[inline(always)]
    unsafe fn load(self, source: Source<K, V>, order: Order) -> (K, K) {
        let (mut least, mut greatest) = (K::splat(!0), K::splat(0));
        let mut i = 0;
        while i < self.rows {
            let mut loaded = [K::splat(0); BATCH as usize];
            for u in 0..BATCH {
                let place = self.first + (i + u) * 32;
                if i + u < self.rows && place < self.valid {
                    // SAFETY: the block has the item, by the contract of this function.
                    loaded[u as usize] = unsafe { source.keys.read(source.at(self.start + place)) };
                }
            }
            for u in 0..BATCH {
                let place = self.first + (i + u) * 32;
                if i + u < self.rows && place < self.valid {
                    // SAFETY: the place is below the tile, and belongs to this thread.
                    unsafe { self.keys.set(place, loaded[u as usize]) };
                    let compared = order.compared(loaded[u as usize]);
                    (least, greatest) = (least.min(compared), greatest.max(compared));
                }
            }
            i += BATCH;
        }
        (least, greatest)
    }

    /// Counts the items by `digit_of`, publishes the counts, sorts the items by their digit in shared memory, and reads
    /// the other blocks' counts. Returns to the first [`DIGITS`] threads, for the thread's digit: the number of items
    /// in all blocks, the number in earlier blocks, and the place of the first one in the sorted tile.
    ///
    /// # Safety
    /// - All threads of the block call this together, after [`load`](Self::load), in all blocks of the grid; digits are
    ///   below [`DIGITS`].
    /// - Exchanges are numbered from 0 on without gaps.
    #[inline(always)]
    unsafe fn exchange<const PAYLOAD: bool>(
        self,
        number: u32,
        source: Source<K, V>,
        digit_of: impl Fn(K) -> u32,
        barrier: &mut GridBarrier,
    ) -> (u32, u32, u32) {
        let t = thread::thread_idx_x();
        // SAFETY: shared indices stay inside the arrays (digits below `DIGITS`, places below the tile). A barrier
        // separates any two accesses of different threads to one word, except for the rows, each of which belongs to
        // one warp while it counts and ranks. An exchange writes the half of the matrix that the last but one has read:
        // since then all blocks have waited for each other.
        unsafe {
            ranking::clear_row(self.row);
            for i in 0..self.rows {
                let place = self.first + i * 32;
                if place < self.valid {
                    self.row.reduce_add(digit_of(self.keys.get(place)), 1);
                }
            }
            thread::sync_threads();
            let matrix = self.matrix.at((number % 2 * ROW * thread::grid_dim_x()) as usize);
            let (_, tile_start) = ranking::place_digits::<WARPS>(self.counters, WARPS, self.sums, |count| {
                // Whole warps execute this.
                let next = warp::shuffle_down(FULL_MASK, count, 1);
                if t % 2 == 0 {
                    matrix.write((thread::block_idx_x() * ROW + t / 2) as usize, count | next << 16);
                }
            });
            barrier.arrive();
            let mut i = 0;
            while i < self.rows {
                let mut loaded = [V::default(); BATCH as usize];
                for u in 0..BATCH {
                    let place = self.first + (i + u) * 32;
                    if PAYLOAD && i + u < self.rows && place < self.valid {
                        loaded[u as usize] = source.values.read(source.at(self.start + place));
                    }
                }
                for u in 0..BATCH {
                    let place = self.first + (i + u) * 32;
                    // Whole warps: lanes without an item come after those with one, and their counts are never read.
                    if i + u < self.rows && place - warp::lane_id() < self.valid {
                        let mut key = K::splat(0);
                        let mut digit = DIGITS - 1;
                        if place < self.valid {
                            key = self.keys.get(place);
                            digit = digit_of(key);
                        }
                        let rank = ranking::rank(self.row, digit);
                        if place < self.valid {
                            self.sorted.set(rank, key);
                            if PAYLOAD {
                                self.sorted_values.set(rank, loaded[u as usize]);
                            }
                        }
                    }
                }
                i += BATCH;
            }
            barrier.wait();
            let (all, before) = add_up::<THREADS>(matrix, self.counters);
            (all, before, tile_start)
        }
    }

    /// Writes the sorted items to the places of their digits. For the first [`DIGITS`] threads, `to` is the place of
    /// the digit's first item in the target less its place in the sorted tile.
    ///
    /// # Safety
    /// - All threads of the block call this together, after [`exchange`](Self::exchange) with the same `digit_of`.
    /// - The places differ, over all blocks, and are valid for writes.
    #[inline(always)]
    unsafe fn scatter<const PAYLOAD: bool>(self, to: u32, target: Target<K, V>, digit_of: impl Fn(K) -> u32) {
        let t = thread::thread_idx_x();
        // SAFETY: places of the sorted tile are below its length; a barrier separates writing the runs from reading
        // them; the rest is the contract of this function.
        unsafe {
            if t < DIGITS {
                self.runs.set(t, to);
            }
            thread::sync_threads();
            let mut place = t;
            while place < self.valid {
                let key = self.sorted.get(place);
                let to_place = self.runs.get(digit_of(key)).wrapping_add(place) as usize;
                target.keys.write(to_place, key);
                if PAYLOAD {
                    target.values.write(to_place, self.sorted_values.get(place));
                }
                place += THREADS;
            }
        }
    }
}

/// Sorts everything.
///
/// # Safety
/// The contract of the kernels that call it.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn sort<
    K: SortKey + ShuffleWord,
    V: Word + Default,
    const PAYLOAD: bool,
    const WARPS: u32,
    const THREADS: u32,
>(
    input: Source<K, V>,
    scratch: Target<K, V>,
    output: Target<K, V>,
    order: Order,
    share: u32,
    room: Room,
    in_place: bool,
    words: GlobalMut<u64>,
) {
    // On sm_80, whose assembler keeps more of the sums over warps in registers; none on later ones.
    allow::spill();
    let t = thread::thread_idx_x();
    let matrix = words.at(HEAD_WORDS as usize).cast::<u32>();
    let tile = Tile::<K, V, WARPS, THREADS>::new(input.n, share, matrix);
    let mut barrier = GridBarrier::new(words.at(2).cast());
    let own: Shared<u32> = shared::dynamic(part_at(WARPS));
    // Before the first digit, unless a part would be too long.
    let mut by_parts = room.capacity != 0;
    let (mut pass, mut exchanges) = (0, 0);
    let mut at = At::Input;
    // The first pass must not write its own source, and the last one should write the output.
    let mut to_output = !in_place && order.passes % 2 == 1;
    let source_at = |at: At| match at {
        At::Input => input,
        At::Scratch => Source::of(scratch, input.n),
        At::Output => Source::of(output, input.n),
    };
    // SAFETY: the contracts of the tile's methods, in their order. Items are written to places given by the exact
    // number of earlier items, so they are in range and distinct. A barrier of the grid separates the writes of one
    // block from the reads of another. All threads of the grid reach every barrier, since the counts of all blocks
    // decide. Each block sorts the part of its number.
    unsafe {
        while pass < order.passes {
            let source = source_at(at);
            thread::sync_threads();
            let bounds = tile.load(source, order);
            let mut interval = Interval::new(K::splat(0), K::splat(0), 1);
            if by_parts {
                let (least, greatest) = bounds_of_block::<K, WARPS>(bounds, tile.runs.cast());
                let (least, greatest) = if size_of::<K>() <= 8 {
                    if t == 0 {
                        atomic::reduce_max(words, greatest.wide());
                        atomic::reduce_max(words.at(1), !least.wide());
                    }
                    barrier.arrive();
                    barrier.wait();
                    let (greatest, least) = (atomic::load_relaxed(words), !atomic::load_relaxed(words.at(1)));
                    (K::from_wide(least), K::from_wide(greatest))
                } else {
                    bounds_of_grid::<K, WARPS>((least, greatest), &mut barrier, matrix, tile.runs.cast())
                };
                interval = Interval::new(least, greatest, thread::grid_dim_x());
            }
            let digit = order.digit(pass);
            let digit_of = |key: K| if by_parts { interval.part(order.compared(key)) } else { digit.of(key) };
            let (all, before, tile_start) = tile.exchange::<PAYLOAD>(exchanges, source, digit_of, &mut barrier);
            exchanges += 1;
            // A part would be too long, or all items have one digit and nothing moves.
            let most = if by_parts { room.capacity } else { input.n - 1 };
            if thread::sync_threads_or(t < DIGITS && all > most) {
                pass += u32::from(!by_parts);
                by_parts = false;
                continue;
            }
            let (base, _) = block::exclusive_scan::<Sum<u32>, WARPS>(all, tile.sums);
            if t == thread::block_idx_x() {
                own.set(0, base);
                own.set(1, all);
            }
            let target = if to_output && !by_parts { output } else { scratch };
            tile.scatter::<PAYLOAD>((base + before).wrapping_sub(tile_start), target, digit_of);
            let (begin, len) = (own.get(0) as usize, own.get(1));
            at = if to_output { At::Output } else { At::Scratch };
            to_output = !to_output;
            pass += 1;
            if by_parts || pass < order.passes || at != At::Output {
                barrier.arrive();
                barrier.wait();
            }
            if by_parts {
                let part = Part {
                    keys: scratch.keys.at(begin),
                    values: scratch.values.at(begin),
                    out_keys: output.keys.at(begin),
                    out_values: output.values.at(begin),
                    len,
                };
                return part.sort::<PAYLOAD, WARPS, THREADS>(order, room);
            }
        }
        // Items that are not in the output yet: all digits were equal, or an odd number of them moved items.
        if at == At::Output || (at == At::Input && in_place) {
            return;
        }
        let source = source_at(at);
        let mut i = t;
        while i < tile.valid {
            let place = (tile.start + i) as usize;
            output.keys.write(place, source.keys.read(source.at(tile.start + i)));
            if PAYLOAD {
                output.values.write(place, source.values.read(source.at(tile.start + i)));
            }
            i += THREADS;
        }
    }
}

macro_rules! resident_sort_kernels {
    ($($name:ident, $shape:ident: $key:ty, $value:ty, $payload:literal, $threads:literal x $items:literal;)*) => {$(
        /// Shape of the kernel of the same name.
        pub const $shape: ResidentShape = ResidentShape {
            threads: $threads,
            items: $items,
            key_bytes: size_of::<$key>() as u32,
            value_bytes: if $payload { size_of::<$value>() as u32 } else { 0 },
        };

        kernel! {
            #[doc = concat!("Sorts `", stringify!($key), "` keys, all blocks resident.")]
            ///
            /// # Safety
            /// - Launch: 1-D, blocks of the shape's threads, one block per `share` of the `n > 0` items, with the
            ///   dynamic shared memory of the shape for the rows of a share, at most its `items`, and for the room of a
            ///   part; the device runs all blocks at once.
            /// - `keys`: valid for `n` items, and not written by others meanwhile; `out_keys` and `scratch_keys`: valid
            ///   for `n` reads and writes, overlap nothing else, nothing else accesses them; with [`IN_PLACE`], `keys`
            ///   are `out_keys`. Values likewise, if the kernel has them.
            /// - `order` satisfies the conditions of [`Order`] for keys of this width.
            /// - The room's `capacity` is 0, or there are at most [`DIGITS`] blocks, and it is even and below 2^16 and
            ///   `slots` a multiple of four for each of the shape's threads, and not 0.
            /// - `words`: valid for [`HEAD_WORDS`] words, zero at the start, and then [`COUNT_WORDS`] words of 4 bytes
            ///   for each block; used by this launch alone.
            #[launch_bounds($threads, 1)]
            pub unsafe fn $name(
                keys: Global<$key>, values: Global<$value>, scratch_keys: GlobalMut<$key>,
                scratch_values: GlobalMut<$value>, out_keys: GlobalMut<$key>, out_values: GlobalMut<$value>,
                n: u32, order: Order, share: u32, room: Room, flags: u32, words: GlobalMut<u64>,
            ) {
                let input = Source { keys, values, n, reversed: flags & REVERSED != 0 };
                let scratch = Target { keys: scratch_keys, values: scratch_values };
                let output = Target { keys: out_keys, values: out_values };
                // SAFETY: the contract of this kernel.
                unsafe {
                    sort::<$key, $value, $payload, { $threads / 32 }, $threads>(
                        input, scratch, output, order, share, room, flags & IN_PLACE != 0, words,
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
    resident_sort_u128, RESIDENT_U128: u128, u32, false, 512 x 12;
    resident_sort_u128_u32, RESIDENT_U128_U32: u128, u32, true, 512 x 11;
    resident_sort_u128_u64, RESIDENT_U128_U64: u128, u64, true, 512 x 10;
}

//! Scans in a single pass: every item is read once and written once.
//!
//! Tiles get their prefixes by decoupled look-back (see [`crate::look_back`]). Within a tile each thread combines its
//! own consecutive items, the block scans the threads' totals, and each thread passes over its items again with their
//! prefix. The operator need not be commutative, and the output may be the input.
//!
//! One body serves plain scans, scans by segments and recurrences: a [`Pass`] converts items to values of the operator,
//! and values to results.

use core::marker::PhantomData;

use warpset_core::scan::non_associative::{Lifted, Lindley, NextSlot, SaturatingSum};
use warpset_core::scan::{Flagged, Lift, Max, MaxPlus, Min, Operator, Segmented, Sum};
use warpset_simt::shared::{self, Shared};
use warpset_simt::warp::WARP_SIZE;
use warpset_simt::{Global, GlobalMut, thread};
#[cfg(not(target_arch = "nvptx64"))]
use warpset_simt::{LaunchConfig, Launcher};

use crate::block;
use crate::look_back::{self, Published};
use crate::primitives::warp_tile::{self, Item};

/// Flag: results exclude the item at their place.
pub const EXCLUSIVE: u32 = 1;
/// Flag: input and output begin at multiples of 16 bytes.
pub const VECTORS: u32 = 2;
/// Shift of the prefetch distance in the kernels' `flags`, in tiles; 0 for no prefetch.
///
/// A tile waits for its ticket, its items and its predecessors, one after the other. To keep memory busy meanwhile,
/// each block prefetches the items of a later tile into the second-level cache. The distance is half the number of
/// resident blocks, so that the items arrive in time and have not been evicted when they are used.
pub const AHEAD_SHIFT: u32 = 8;

/// Words of a line of the second-level cache.
const LINE_WORDS: usize = 32;

/// Shape of a scan's launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanShape {
    /// Threads per block.
    pub threads: u32,
    /// Items per tile: one tile per block.
    pub tile: usize,
    /// Dynamic shared memory, in bytes.
    pub shared_bytes: u32,
    /// Words of look-back per tile.
    look_back_words: usize,
    /// Resident blocks per multiprocessor, roughly.
    pub resident: u32,
}

impl ScanShape {
    /// Returns the shape of a scan from `T` by values of type `V`.
    pub const fn new<T: Item, V: Published>() -> Self {
        let (warps, quads) = (WARPS, QUADS);
        Self {
            threads: warps * WARP_SIZE,
            tile: (warps * WARP_SIZE) as usize * quads * 4 / T::WORDS,
            shared_bytes: totals_at(warps, quads) + block::scratch_bytes::<V>(warps),
            look_back_words: look_back::words::<V>(1),
            resident: RESIDENT,
        }
    }

    /// Returns the words of scratch memory for a launch of `tiles` tiles: the ticket and the words of look-back.
    pub const fn scratch_words(&self, tiles: u32) -> usize {
        if tiles == 1 { 0 } else { TICKET_WORDS + tiles as usize * self.look_back_words }
    }
}

/// Words before those of look-back; the first one is the ticket.
const TICKET_WORDS: usize = 2;

// Shared memory: rows for each warp; the ticket, padded; the prefix of the tile; the warps' totals.
const fn ticket_at(warps: u32, quads: usize) -> u32 {
    warps * warp_tile::warp_bytes(quads)
}
const fn prefix_at(warps: u32, quads: usize) -> u32 {
    ticket_at(warps, quads) + 16
}
const fn totals_at(warps: u32, quads: usize) -> u32 {
    prefix_at(warps, quads) + 32
}

/// Conversions of a scan's items and results.
#[cfg(feature = "bodies")]
pub trait Pass {
    /// Operator of the scan.
    type Operator: Operator<Value: Published>;
    /// Type of the input.
    type Input: Item;
    /// Type of the output; as large as the input's.
    type Output: Item;
    /// Whether items come with bits.
    const BITS: bool = false;
    /// Returns the operator's value of an item with its bit.
    fn lift(item: Self::Input, bit: bool) -> ValueOf<Self>;
    /// Returns the result up to and including an item.
    fn inclusive(value: ValueOf<Self>) -> Self::Output;
    /// Returns the result up to the item before one with this bit.
    fn exclusive(before: ValueOf<Self>, bit: bool) -> Self::Output;
}

#[cfg(feature = "bodies")]
type ValueOf<P> = <<P as Pass>::Operator as Operator>::Value;

/// Scan by `O`.
#[cfg(feature = "bodies")]
pub struct Plain<O>(PhantomData<O>);

#[cfg(feature = "bodies")]
impl<O: Operator<Value: Published + Item>> Pass for Plain<O> {
    type Operator = O;
    type Input = O::Value;
    type Output = O::Value;
    #[inline(always)]
    fn lift(item: O::Value, _: bool) -> O::Value {
        item
    }
    #[inline(always)]
    fn inclusive(value: O::Value) -> O::Value {
        value
    }
    #[inline(always)]
    fn exclusive(before: O::Value, _: bool) -> O::Value {
        before
    }
}

/// Scan by `O` that restarts at every item with a set bit.
#[cfg(feature = "bodies")]
pub struct BySegment<O>(PhantomData<O>);

#[cfg(feature = "bodies")]
impl<O: Operator<Value: Item>> Pass for BySegment<O>
where
    Flagged<O::Value>: Published,
{
    type Operator = Segmented<O>;
    type Input = O::Value;
    type Output = O::Value;
    const BITS: bool = true;
    #[inline(always)]
    fn lift(item: O::Value, bit: bool) -> Flagged<O::Value> {
        Flagged { head: bit, value: item }
    }
    #[inline(always)]
    fn inclusive(value: Flagged<O::Value>) -> O::Value {
        value.value
    }
    #[inline(always)]
    fn exclusive(before: Flagged<O::Value>, bit: bool) -> O::Value {
        if bit { O::IDENTITY } else { before.value }
    }
}

/// Recurrence in its lifted form.
#[cfg(feature = "bodies")]
pub struct Recurring<R>(PhantomData<R>);

#[cfg(feature = "bodies")]
impl<R: Lifted<Item: Item, Number: Item>> Pass for Recurring<R>
where
    Lift<R::Number>: Published,
{
    type Operator = MaxPlus<R::Number>;
    type Input = R::Item;
    type Output = R::Number;
    #[inline(always)]
    fn lift(item: R::Item, _: bool) -> Lift<R::Number> {
        R::lift(item)
    }
    #[inline(always)]
    fn inclusive(value: Lift<R::Number>) -> R::Number {
        R::finish(value)
    }
    #[inline(always)]
    fn exclusive(before: Lift<R::Number>, _: bool) -> R::Number {
        R::finish(before)
    }
}

/// Processes one tile of a scan.
///
/// # Safety
/// - Launch: 1-D, one block per tile, with the [`ScanShape::new`] of `WARPS` and `QUADS`; `n > 0`.
/// - `input`: `n` items; `out`: `n` places, the same memory or none of it; nothing else accesses either.
/// - `heads`: one bit per item if the pass has bits, not written while the kernel runs.
/// - `scratch`: [`ScanShape::scratch_words`] at a multiple of 16 bytes, zero at the start, used by this launch alone;
///   not accessed if there is one tile.
/// - `left`: `left_words` places, none of them in `scratch`, used by this launch alone.
#[cfg(feature = "bodies")]
#[inline(always)]
pub unsafe fn scan<P: Pass, const WARPS: u32, const ITEMS: usize, const QUADS: usize>(
    input: Global<P::Input>,
    heads: Global<u32>,
    out: GlobalMut<P::Output>,
    n: usize,
    flags: u32,
    scratch: GlobalMut<u64>,
    left: GlobalMut<u64>,
    left_words: usize,
) {
    const { assert!(!P::BITS || 32 % ITEMS == 0) };
    let t = thread::thread_idx_x();
    let rows: Shared<u32> = shared::dynamic(t / WARP_SIZE * warp_tile::warp_bytes(QUADS));
    let vectors = flags & VECTORS != 0;
    let alone = thread::grid_dim_x() == 1;
    // SAFETY: each warp has rows of its own; the other shared words satisfy the contracts of the called functions, with
    // barriers between; the ticket makes `tile` unique; items are read before any is written by the warp that owns
    // them; bits are read, and lines prefetched, below `n`. Whether there is one tile is uniform. Each word that was
    // left belongs to one thread.
    unsafe {
        for i in thread::grid_stride(left_words) {
            left.write(i, 0);
        }
        let tile = if alone { 0 } else { look_back::ticket(scratch.cast(), shared::dynamic(ticket_at(WARPS, QUADS))) };
        let ahead = (flags >> AHEAD_SHIFT) as usize;
        if ahead != 0 {
            let line = (tile + ahead) * (WARPS as usize * QUADS * 4) + t as usize;
            if t < WARPS * QUADS as u32 * 4 && line * LINE_WORDS < n * P::Input::WORDS {
                input.cast::<u32>().prefetch_l2(line * LINE_WORDS);
            }
        }
        let warp_first = (tile * WARPS as usize + (t / WARP_SIZE) as usize) * (WARP_SIZE as usize * ITEMS);
        let items: [P::Input; ITEMS] = warp_tile::load::<_, ITEMS, QUADS>(input, warp_first, n, vectors, rows);
        let mut bits = 0;
        if P::BITS {
            let first = warp_first + (t % WARP_SIZE) as usize * ITEMS;
            if first < n {
                bits = heads.read_nc(first / 32) >> (first % 32);
            }
        }
        let lift = |i: usize| P::lift(items[i], P::BITS && bits >> i & 1 != 0);
        let mut total = lift(0);
        for i in 1..ITEMS {
            total = P::Operator::combine(total, lift(i));
        }
        let totals = shared::dynamic(totals_at(WARPS, QUADS));
        let (mut before, aggregate) = block::exclusive_scan::<P::Operator, WARPS>(total, totals);
        if !alone {
            let slot = shared::dynamic(prefix_at(WARPS, QUADS));
            let prefix = look_back::tile_prefix::<P::Operator>(scratch.at(TICKET_WORDS), tile, aggregate, slot);
            before = P::Operator::combine(prefix, before);
        }
        let mut results = [P::inclusive(before); ITEMS];
        if flags & EXCLUSIVE != 0 {
            for i in 0..ITEMS {
                results[i] = P::exclusive(before, P::BITS && bits >> i & 1 != 0);
                before = P::Operator::combine(before, lift(i));
            }
        } else {
            for i in 0..ITEMS {
                before = P::Operator::combine(before, lift(i));
                results[i] = P::inclusive(before);
            }
        }
        warp_tile::store::<_, ITEMS, QUADS>(out, warp_first, n, vectors, results, rows);
    }
}

/// Arguments of the kernels of a scan from `T` to `U`, with the names of their contracts. Without heads, their address
/// does not matter.
#[cfg(not(target_arch = "nvptx64"))]
#[allow(missing_docs)]
#[derive(Clone, Copy)]
pub struct Arguments<T, U> {
    pub input: Global<T>,
    pub heads: Global<u32>,
    pub out: GlobalMut<U>,
    pub n: usize,
    pub flags: u32,
    pub scratch: GlobalMut<u64>,
    pub left: GlobalMut<u64>,
    pub left_words: usize,
}

/// Operator with kernels of scans: see [`scan_kernels!`](crate::scan_kernels).
#[cfg(not(target_arch = "nvptx64"))]
pub trait ScanKernels: Operator<Value: Published + Item> {
    /// Shape of a scan.
    const SCAN: ScanShape;
    /// Shape of a scan by segments.
    const SEGMENTED: ScanShape;

    /// Launches a scan.
    ///
    /// # Safety
    /// The contract of the kernel made by [`scan_kernels!`](crate::scan_kernels).
    unsafe fn launch_scan<L: Launcher>(
        launcher: &L,
        config: LaunchConfig,
        with: Arguments<Self::Value, Self::Value>,
    ) -> Result<(), L::Error>;

    /// Launches a scan by segments.
    ///
    /// # Safety
    /// The contract of the kernel made by [`scan_kernels!`](crate::scan_kernels).
    unsafe fn launch_segmented<L: Launcher>(
        launcher: &L,
        config: LaunchConfig,
        with: Arguments<Self::Value, Self::Value>,
    ) -> Result<(), L::Error>;
}

/// Recurrence with a kernel of its lifted form: see [`recurrence_kernels!`](crate::recurrence_kernels).
#[cfg(not(target_arch = "nvptx64"))]
pub trait RecurrenceKernels: Lifted<Item: Item, Number: Item> {
    /// Shape of its scan.
    const SCAN: ScanShape;

    /// Launches it.
    ///
    /// # Safety
    /// The contract of the kernel made by [`recurrence_kernels!`](crate::recurrence_kernels).
    unsafe fn launch_lifted<L: Launcher>(
        launcher: &L,
        config: LaunchConfig,
        with: Arguments<Self::Item, Self::Number>,
    ) -> Result<(), L::Error>;
}

/// Body of a kernel: its tile of a pass over items of a type.
#[doc(hidden)]
#[macro_export]
macro_rules! scan_tile {
    ($pass:ty, $item:ty: $($argument:expr),*) => {{
        const QUADS: usize = $crate::primitives::scan::QUADS;
        const ITEMS: usize = QUADS * 4 / <$item as $crate::primitives::warp_tile::Item>::WORDS;
        $crate::primitives::scan::scan::<$pass, { $crate::primitives::scan::WARPS }, ITEMS, QUADS>($($argument),*)
    }};
}

/// Makes the kernels of scans by operators, and implements [`ScanKernels`]: each entry gives the kernels' names, of the
/// scan and of the scan by segments, and the operator.
///
/// A crate with an operator of its own enables the feature `operators` and begins with `#![module(path)]`, the function
/// that returns the PTX of its kernels: `docs/kernels.md`. The emulator needs no PTX.
#[macro_export]
macro_rules! scan_kernels {
    (#![module($at:expr)] $($scan:ident, $segmented:ident: $operator:ty;)*) => {$(
        $crate::kernel! {
            #![module($at)]

            #[doc = concat!("Scans by `", stringify!($operator), "`.")]
            ///
            /// # Safety
            /// - Launch: 1-D, one block per tile, of `ScanKernels::SCAN`'s shape; `n > 0`.
            /// - `input`: `n` items; `out`: `n` places, the same memory or none of it; nothing else accesses either.
            ///   Both begin at multiples of 16 bytes if `flags` has [`VECTORS`](crate::primitives::scan::VECTORS).
            /// - `scratch`: `ScanShape::scratch_words` at a multiple of 16 bytes, zero at the start, used by this
            ///   launch alone; not accessed if there is one tile.
            /// - `left`: `left_words` places, none of them in `scratch`, used by this launch alone. They are cleared.
            #[launch_bounds(128, 6)]
            pub unsafe fn $scan(
                input: $crate::simt::Global<<$operator as $crate::operators::Operator>::Value>,
                out: $crate::simt::GlobalMut<<$operator as $crate::operators::Operator>::Value>,
                n: usize, flags: u32, scratch: $crate::simt::GlobalMut<u64>,
                left: $crate::simt::GlobalMut<u64>, left_words: usize,
            ) {
                // SAFETY: the contract of this kernel; no bits are read.
                unsafe {
                    $crate::scan_tile!(
                        $crate::primitives::scan::Plain<$operator>, <$operator as $crate::operators::Operator>::Value:
                        input, input.cast(), out, n, flags, scratch, left, left_words
                    )
                }
            }
        }

        $crate::kernel! {
            #![module($at)]

            #[doc = concat!("Scans by `", stringify!($operator), "`, starting over at every item whose bit is set.")]
            ///
            /// # Safety
            /// - The contract of the scan, with `ScanKernels::SEGMENTED`'s shape.
            /// - `heads` has one bit per item and is not written meanwhile.
            #[launch_bounds(128, 5)]
            pub unsafe fn $segmented(
                input: $crate::simt::Global<<$operator as $crate::operators::Operator>::Value>,
                heads: $crate::simt::Global<u32>,
                out: $crate::simt::GlobalMut<<$operator as $crate::operators::Operator>::Value>,
                n: usize, flags: u32, scratch: $crate::simt::GlobalMut<u64>,
                left: $crate::simt::GlobalMut<u64>, left_words: usize,
            ) {
                // SAFETY: the contract of this kernel.
                unsafe {
                    $crate::scan_tile!(
                        $crate::primitives::scan::BySegment<$operator>, <$operator as $crate::operators::Operator>::Value:
                        input, heads, out, n, flags, scratch, left, left_words
                    )
                }
            }
        }

        #[cfg(not(target_arch = "nvptx64"))]
        impl $crate::primitives::scan::ScanKernels for $operator {
            const SCAN: $crate::primitives::scan::ScanShape = $crate::primitives::scan::ScanShape::new::<Self::Value, Self::Value>();
            const SEGMENTED: $crate::primitives::scan::ScanShape =
                $crate::primitives::scan::ScanShape::new::<Self::Value, $crate::operators::Flagged<Self::Value>>();

            unsafe fn launch_scan<L: $crate::simt::Launcher>(
                launcher: &L, config: $crate::simt::LaunchConfig, with: $crate::primitives::scan::Arguments<Self::Value, Self::Value>,
            ) -> ::core::result::Result<(), L::Error> {
                let $crate::primitives::scan::Arguments { input, heads: _, out, n, flags, scratch, left, left_words } = with;
                // SAFETY: the contract of this kernel.
                unsafe { $scan { input, out, n, flags, scratch, left, left_words }.launch(launcher, config) }
            }

            unsafe fn launch_segmented<L: $crate::simt::Launcher>(
                launcher: &L, config: $crate::simt::LaunchConfig, with: $crate::primitives::scan::Arguments<Self::Value, Self::Value>,
            ) -> ::core::result::Result<(), L::Error> {
                let $crate::primitives::scan::Arguments { input, heads, out, n, flags, scratch, left, left_words } = with;
                // SAFETY: the contract of this kernel.
                unsafe { $segmented { input, heads, out, n, flags, scratch, left, left_words }.launch(launcher, config) }
            }
        }
    )*};
    ($($scan:ident, $segmented:ident: $operator:ty;)*) => { $crate::scan_kernels! { #![module($crate::module_at)] $($scan, $segmented: $operator;)* } };
}

/// Warps per block of every scan. With [`QUADS`] the fastest of 13 shapes on an H200.
#[doc(hidden)]
pub const WARPS: u32 = 4;
/// Quads (16 bytes) of input per thread.
#[doc(hidden)]
pub const QUADS: usize = 8;
/// Resident blocks of the kernels' launch bounds.
const RESIDENT: u32 = 6;

#[cfg(any(not(target_arch = "nvptx64"), warpset_module = "primitives_scan"))]
scan_kernels! {
    scan_sum_u32, segmented_sum_u32: Sum<u32>;
    scan_sum_u64, segmented_sum_u64: Sum<u64>;
    scan_sum_i64, segmented_sum_i64: Sum<i64>;
    scan_max_u32, segmented_max_u32: Max<u32>;
    scan_max_u64, segmented_max_u64: Max<u64>;
    scan_max_i64, segmented_max_i64: Max<i64>;
    scan_min_u32, segmented_min_u32: Min<u32>;
    scan_min_u64, segmented_min_u64: Min<u64>;
    scan_min_i64, segmented_min_i64: Min<i64>;
}

/// Makes the kernels of recurrences in their lifted form, and implements [`RecurrenceKernels`].
#[macro_export]
macro_rules! recurrence_kernels {
    ($($name:ident: $recurrence:ty;)*) => {$(
        $crate::kernel! {
            #[doc = concat!("Scans by the recurrence `", stringify!($recurrence), "`, lifted.")]
            ///
            /// # Safety
            /// - The contract of a scan (see `scan_kernels`), with `RecurrenceKernels::SCAN`'s shape.
            /// - The results are inclusive.
            #[launch_bounds(128, 5)]
            pub unsafe fn $name(
                input: $crate::simt::Global<<$recurrence as $crate::operators::non_associative::Recurrence>::Item>,
                out: $crate::simt::GlobalMut<<$recurrence as $crate::operators::non_associative::Recurrence>::Value>,
                n: usize, flags: u32, scratch: $crate::simt::GlobalMut<u64>,
                left: $crate::simt::GlobalMut<u64>, left_words: usize,
            ) {
                // SAFETY: the contract of this kernel; no bits are read.
                unsafe {
                    $crate::scan_tile!(
                        $crate::primitives::scan::Recurring<$recurrence>,
                        <$recurrence as $crate::operators::non_associative::Recurrence>::Item:
                        input, input.cast(), out, n, flags, scratch, left, left_words
                    )
                }
            }
        }

        #[cfg(not(target_arch = "nvptx64"))]
        impl $crate::primitives::scan::RecurrenceKernels for $recurrence {
            const SCAN: $crate::primitives::scan::ScanShape =
                $crate::primitives::scan::ScanShape::new::<Self::Item, $crate::operators::Lift<Self::Number>>();

            unsafe fn launch_lifted<L: $crate::simt::Launcher>(
                launcher: &L, config: $crate::simt::LaunchConfig, with: $crate::primitives::scan::Arguments<Self::Item, Self::Number>,
            ) -> ::core::result::Result<(), L::Error> {
                let $crate::primitives::scan::Arguments { input, heads: _, out, n, flags, scratch, left, left_words } = with;
                // SAFETY: the contract of this kernel.
                unsafe { $name { input, out, n, flags, scratch, left, left_words }.launch(launcher, config) }
            }
        }
    )*};
}

#[cfg(any(not(target_arch = "nvptx64"), warpset_module = "primitives_scan"))]
recurrence_kernels! {
    scan_next_slot_u32: NextSlot<u32>;
    scan_next_slot_u64: NextSlot<u64>;
    scan_saturating_sum: SaturatingSum;
    scan_lindley: Lindley;
}

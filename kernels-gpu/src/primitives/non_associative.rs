//! Scans by an operator that is not associative, by the three methods of the paper on quotient filters: parallel
//! merging, sequential shifting, segmented layouts.
//!
//! Source: Geil, Farach-Colton, Owens, "Quotient Filters: Approximate Membership Queries on the GPU", IPDPS 2018,
//! section IV-C, algorithms 4, 5 and 6, there for the slots of a quotient filter ([`NextSlot`]). Here the first two
//! take any [`Additive`] recurrence, the last any [`Recurrence`].
//!
//! A *segment* is a part of the input within which the chain of dependencies never breaks; its first item is its *head*
//! ([`Recurrence::may_break`]; in a quotient filter, a quotient that differs from the previous one). All values of a
//! segment move by the same amount as its head's. The first two methods start with the values that every segment would
//! have as the first one.
//!
//! Departures. Values are 64-bit numbers while they move. In algorithm 5 neighbouring threads read and write the same
//! word at the same time; here these accesses are atomic, and their order does not matter, because values only grow. In
//! algorithm 6 segments consist of the input's items and not of the filter's slots, as in the section's text, and a
//! segment passes on its last value and not the part that extends beyond it.

use warpset_core::scan::non_associative::{Additive, Lindley, NextSlot, Recurrence, SaturatingSum};
use warpset_simt::{Global, GlobalMut, atomic, thread, warp};
#[cfg(not(target_arch = "nvptx64"))]
use warpset_simt::{LaunchConfig, Launcher};

/// Threads per block, in every kernel of this module.
pub const BLOCK: u32 = 256;

/// Splits the input into segments. Writes for each item whether it is a head, as a bit of `heads` and as a number, and
/// the addend to the previous value, or the first value of a segment.
///
/// # Safety
/// - `items`, `labels` and `added` have `n` places, `heads` a bit for each, in whole words.
/// - Nothing else accesses the last three.
#[cfg(feature = "bodies")]
#[inline(always)]
pub unsafe fn prepare<R: Additive>(
    items: Global<R::Item>,
    n: usize,
    heads: GlobalMut<u32>,
    labels: GlobalMut<u32>,
    added: GlobalMut<i64>,
) {
    let stride = thread::grid_dim_x() as usize * BLOCK as usize;
    let mut i = thread::index_1d() as usize;
    // The whole warp continues while one of its items is left.
    let lane = warp::lane_id() as usize;
    // SAFETY: items are read, and places written, below `n`; a place belongs to one thread, a word of heads to a warp.
    unsafe {
        while i - lane < n {
            let mut head = false;
            if i < n {
                let item = items.read(i);
                head = i == 0 || R::may_break(items.read(i - 1), item);
                labels.write(i, u32::from(head));
                added.write(i, if head { R::number(R::start(item)) } else { R::added(item) });
            }
            let bits = warp::ballot(warp::FULL_MASK, head);
            if lane == 0 {
                heads.write(i / 32, bits);
            }
            i += stride;
        }
    }
}

/// Writes the beginning of each segment, given the number of heads up to and including each item.
///
/// # Safety
/// The contract of [`non_associative_starts`].
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn find_starts(labels: Global<u32>, n: usize, starts: GlobalMut<u32>) {
    for i in thread::grid_stride(n) {
        // SAFETY: `i < n`; heads have different labels, below the number of segments.
        unsafe {
            let label = labels.read(i);
            if i == 0 || labels.read(i - 1) != label {
                starts.write(label as usize - 1, i as u32);
            }
            if i == n - 1 {
                starts.write(label as usize, n as u32);
            }
        }
    }
}

/// Runs one iteration of algorithm 5: each segment moves if the previous value pushes its head.
///
/// # Safety
/// - `starts` are the beginnings of `segments` segments and their end.
/// - `items` and `numbers` are valid up to that end.
/// - `change` is a word.
/// - Nothing else accesses numbers and change.
#[cfg(feature = "bodies")]
#[inline(always)]
pub unsafe fn shift_segments<R: Additive>(
    items: Global<R::Item>,
    starts: Global<u32>,
    segments: usize,
    numbers: GlobalMut<i64>,
    change: GlobalMut<u32>,
) {
    for segment in thread::grid_stride(segments) {
        if segment == 0 {
            continue;
        }
        // SAFETY: segments are within the input; numbers are accessed atomically, each written by one thread.
        unsafe {
            let (first, end) = (starts.read(segment) as usize, starts.read(segment + 1) as usize);
            let before = R::value(atomic::load_relaxed(numbers.at(first - 1)));
            let pushed = R::number(R::step(before, items.read(first)));
            let shift = pushed - atomic::load_relaxed(numbers.at(first));
            if shift > 0 {
                for i in first..end {
                    atomic::store_relaxed(numbers.at(i), atomic::load_relaxed(numbers.at(i)) + shift);
                }
                atomic::store_relaxed(change, 1);
            }
        }
    }
}

/// Runs the first step of an iteration of algorithm 4: computes the push of each odd segment by the previous one, and
/// the loss of a push from before that one on its way through it. Labels count from 1.
///
/// # Safety
/// - The first arrays have `n` places.
/// - `offsets` and `carries` have one place per segment of the round (number: a label less 1, divided by 2^round), and
///   nothing else accesses those.
#[cfg(feature = "bodies")]
#[inline(always)]
pub unsafe fn calc_offsets<R: Additive>(
    items: Global<R::Item>,
    n: usize,
    round: u32,
    labels: Global<u32>,
    numbers: Global<i64>,
    credits: Global<i64>,
    offsets: GlobalMut<i64>,
    carries: GlobalMut<i64>,
) {
    for i in thread::grid_stride(n) {
        // SAFETY: `i < n`; one head per segment writes the segment's place.
        unsafe {
            let segment = (labels.read(i) - 1) >> round;
            if i > 0 && segment % 2 == 1 && (labels.read(i - 1) - 1) >> round != segment {
                let pushed = numbers.read(i - 1) + R::added(items.read(i));
                offsets.write(segment as usize, pushed - numbers.read(i));
                carries.write(segment as usize, credits.read(i - 1));
            }
        }
    }
}

/// Runs the second step of algorithm 4: items of odd segments move, or keep the space before them as credit.
///
/// # Safety
/// The contract of [`non_associative_shift_items`].
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn shift_items(
    n: usize,
    round: u32,
    labels: Global<u32>,
    offsets: Global<i64>,
    carries: Global<i64>,
    numbers: GlobalMut<i64>,
    credits: GlobalMut<i64>,
) {
    for i in thread::grid_stride(n) {
        // SAFETY: `i < n`, and each place belongs to one thread.
        unsafe {
            let segment = (labels.read(i) - 1) >> round;
            if segment % 2 == 1 {
                let overlap = offsets.read(segment as usize) - credits.read(i);
                let mut empties = 0;
                if overlap > 0 {
                    numbers.write(i, numbers.read(i) + overlap);
                } else {
                    empties = -overlap;
                }
                credits.write(i, empties + carries.read(segment as usize));
            }
        }
    }
}

/// Converts numbers to values.
///
/// # Safety
/// - Both have `n` places.
/// - Nothing else accesses `out`.
#[cfg(feature = "bodies")]
#[inline(always)]
pub unsafe fn write_values<R: Additive>(numbers: Global<i64>, n: usize, out: GlobalMut<R::Value>) {
    for i in thread::grid_stride(n) {
        // SAFETY: `i < n`, and each place belongs to one thread.
        unsafe { out.write(i, R::value(numbers.read(i))) };
    }
}

/// Rounds of algorithm 6.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Round {
    /// A segment is laid out as the first one.
    First = 0,
    /// A segment is laid out after the value that the previous segment passed on in the last round.
    Next = 1,
    /// The last round: as `Next`, and the results are written.
    Last = 2,
}

/// Runs one iteration of algorithm 6: each thread processes a segment of `length` items.
///
/// # Safety
/// - `items` has `n` places, and `out` in the last round.
/// - `incoming` and `outgoing`, which differ, have one place per `length > 0` items; the first round does not read
///   `incoming`, the last does not write `outgoing`.
/// - Nothing else accesses those that are written.
#[cfg(feature = "bodies")]
#[inline(always)]
pub unsafe fn layout<R: Recurrence>(
    items: Global<R::Item>,
    n: usize,
    length: u32,
    round: u32,
    incoming: Global<R::Value>,
    outgoing: GlobalMut<R::Value>,
    change: GlobalMut<u32>,
    out: GlobalMut<R::Value>,
) {
    for segment in thread::grid_stride(n.div_ceil(length as usize)) {
        let first = segment * length as usize;
        let end = if n - first < length as usize { n } else { first + length as usize };
        // SAFETY: `end <= n`, and a place belongs to one thread.
        unsafe {
            let item = items.read(first);
            let mut value = R::start(item);
            if round != Round::First as u32 && segment > 0 {
                value = R::step(incoming.read(segment - 1), item);
            }
            if round == Round::Last as u32 {
                out.write(first, value);
            }
            for i in first + 1..end {
                value = R::step(value, items.read(i));
                if round == Round::Last as u32 {
                    out.write(i, value);
                }
            }
            if round != Round::Last as u32 {
                outgoing.write(segment, value);
                if round == Round::First as u32 || value != incoming.read(segment) {
                    atomic::store_relaxed(change, 1);
                }
            }
        }
    }
}

kernel! {
    /// Runs [`find_starts`].
    ///
    /// # Safety
    /// - Launch: 1-D, blocks of [`BLOCK`] threads.
    /// - `labels` are `n > 0` sums of flags, the first 1; `starts` has one place more than the last sum, used by this
    ///   launch alone.
    #[launch_bounds(256)]
    pub unsafe fn non_associative_starts(labels: Global<u32>, n: usize, starts: GlobalMut<u32>) {
        // SAFETY: the contract of this kernel.
        unsafe { find_starts(labels, n, starts) }
    }
}

kernel! {
    /// Runs [`shift_items`].
    ///
    /// # Safety
    /// - Launch: 1-D, blocks of [`BLOCK`] threads.
    /// - The contract of the kernel of offsets, which ran before with the same `round`; nothing else accesses numbers
    ///   and credits.
    #[launch_bounds(256)]
    pub unsafe fn non_associative_shift_items(
        n: usize, round: u32, labels: Global<u32>, offsets: Global<i64>, carries: Global<i64>,
        numbers: GlobalMut<i64>, credits: GlobalMut<i64>,
    ) {
        // SAFETY: the contract of this kernel.
        unsafe { shift_items(n, round, labels, offsets, carries, numbers, credits) }
    }
}

/// Recurrence with kernels of all three methods: see [`non_associative_kernels!`](crate::non_associative_kernels).
#[cfg(not(target_arch = "nvptx64"))]
#[allow(clippy::too_many_arguments)]
pub trait NonAssociativeKernels: Additive {
    /// Launches [`prepare`].
    ///
    /// # Safety
    /// The contract of the kernel.
    unsafe fn prepare<L: Launcher>(
        launcher: &L,
        config: LaunchConfig,
        items: Global<Self::Item>,
        n: usize,
        heads: GlobalMut<u32>,
        labels: GlobalMut<u32>,
        added: GlobalMut<i64>,
    ) -> Result<(), L::Error>;
    /// Launches [`shift_segments`].
    ///
    /// # Safety
    /// The contract of the kernel.
    unsafe fn shift_segments<L: Launcher>(
        launcher: &L,
        config: LaunchConfig,
        items: Global<Self::Item>,
        starts: Global<u32>,
        segments: usize,
        numbers: GlobalMut<i64>,
        change: GlobalMut<u32>,
    ) -> Result<(), L::Error>;
    /// Launches [`calc_offsets`].
    ///
    /// # Safety
    /// The contract of the kernel.
    unsafe fn calc_offsets<L: Launcher>(
        launcher: &L,
        config: LaunchConfig,
        items: Global<Self::Item>,
        n: usize,
        round: u32,
        labels: Global<u32>,
        numbers: Global<i64>,
        credits: Global<i64>,
        offsets: GlobalMut<i64>,
        carries: GlobalMut<i64>,
    ) -> Result<(), L::Error>;
    /// Launches [`write_values`].
    ///
    /// # Safety
    /// The contract of the kernel.
    unsafe fn write_values<L: Launcher>(
        launcher: &L,
        config: LaunchConfig,
        numbers: Global<i64>,
        n: usize,
        out: GlobalMut<Self::Value>,
    ) -> Result<(), L::Error>;
    /// Launches [`layout`].
    ///
    /// # Safety
    /// The contract of the kernel.
    unsafe fn layout<L: Launcher>(
        launcher: &L,
        config: LaunchConfig,
        items: Global<Self::Item>,
        n: usize,
        length: u32,
        round: u32,
        incoming: Global<Self::Value>,
        outgoing: GlobalMut<Self::Value>,
        change: GlobalMut<u32>,
        out: GlobalMut<Self::Value>,
    ) -> Result<(), L::Error>;
}

/// Makes the kernels of the three methods for recurrences, and implements [`NonAssociativeKernels`]: each entry gives
/// the kernels' names and the recurrence. For recurrences outside this crate see
/// [`scan_kernels!`](crate::scan_kernels).
#[macro_export]
macro_rules! non_associative_kernels {
    ($($prepare:ident, $shift_segments:ident, $calc_offsets:ident, $write_values:ident, $layout:ident: $recurrence:ty;)*) => {$(
        $crate::kernel! {
            #[doc = concat!("Splits the input of `", stringify!($recurrence), "` into segments.")]
            ///
            /// # Safety
            /// - Launch: 1-D, blocks of `BLOCK` threads.
            /// - `items`, `labels` and `added` have `n` places, `heads` a bit for each, in whole words; nothing else
            ///   accesses the last three.
            #[launch_bounds(256)]
            pub unsafe fn $prepare(items: $crate::simt::Global<<$recurrence as $crate::operators::non_associative::Recurrence>::Item>, n: usize, heads: $crate::simt::GlobalMut<u32>, labels: $crate::simt::GlobalMut<u32>, added: $crate::simt::GlobalMut<i64>) {
                // SAFETY: the contract of this kernel.
                unsafe { $crate::primitives::non_associative::prepare::<$recurrence>(items, n, heads, labels, added) }
            }
        }

        $crate::kernel! {
            #[doc = concat!("Sequential shifting by `", stringify!($recurrence), "`: one iteration.")]
            ///
            /// # Safety
            /// - Launch: 1-D, blocks of `BLOCK` threads.
            /// - `starts` are the beginnings of `segments` segments and their end; `items` and `numbers` are valid up
            ///   to that end; `change` is a word. Nothing else accesses numbers and change.
            #[launch_bounds(256)]
            pub unsafe fn $shift_segments(items: $crate::simt::Global<<$recurrence as $crate::operators::non_associative::Recurrence>::Item>, starts: $crate::simt::Global<u32>, segments: usize, numbers: $crate::simt::GlobalMut<i64>, change: $crate::simt::GlobalMut<u32>) {
                // SAFETY: the contract of this kernel.
                unsafe { $crate::primitives::non_associative::shift_segments::<$recurrence>(items, starts, segments, numbers, change) }
            }
        }

        $crate::kernel! {
            #[doc = concat!("Parallel merging by `", stringify!($recurrence), "`: the first step of an iteration.")]
            ///
            /// # Safety
            /// - Launch: 1-D, blocks of `BLOCK` threads.
            /// - The first arrays have `n` places; `offsets` and `carries` have one place per segment of the round
            ///   (number: a label less 1, divided by 2^round), and nothing else accesses those.
            #[launch_bounds(256)]
            pub unsafe fn $calc_offsets(items: $crate::simt::Global<<$recurrence as $crate::operators::non_associative::Recurrence>::Item>, n: usize, round: u32, labels: $crate::simt::Global<u32>, numbers: $crate::simt::Global<i64>, credits: $crate::simt::Global<i64>, offsets: $crate::simt::GlobalMut<i64>, carries: $crate::simt::GlobalMut<i64>) {
                // SAFETY: the contract of this kernel.
                unsafe { $crate::primitives::non_associative::calc_offsets::<$recurrence>(items, n, round, labels, numbers, credits, offsets, carries) }
            }
        }

        $crate::kernel! {
            #[doc = concat!("The values of `", stringify!($recurrence), "` that numbers stand for.")]
            ///
            /// # Safety
            /// - Launch: 1-D, blocks of `BLOCK` threads.
            /// - Both have `n` places; nothing else accesses `out`.
            #[launch_bounds(256)]
            pub unsafe fn $write_values(numbers: $crate::simt::Global<i64>, n: usize, out: $crate::simt::GlobalMut<<$recurrence as $crate::operators::non_associative::Recurrence>::Value>) {
                // SAFETY: the contract of this kernel.
                unsafe { $crate::primitives::non_associative::write_values::<$recurrence>(numbers, n, out) }
            }
        }

        $crate::kernel! {
            #[doc = concat!("Segmented layouts by `", stringify!($recurrence), "`: one iteration.")]
            ///
            /// # Safety
            /// - Launch: 1-D, blocks of `BLOCK` threads.
            /// - `items` has `n` places, and `out` in the last round; `incoming` and `outgoing`, which differ, have one
            ///   place per `length > 0` items; the first round does not read `incoming`, the last does not write
            ///   `outgoing`. Nothing else accesses those that are written.
            #[launch_bounds(256)]
            pub unsafe fn $layout(items: $crate::simt::Global<<$recurrence as $crate::operators::non_associative::Recurrence>::Item>, n: usize, length: u32, round: u32, incoming: $crate::simt::Global<<$recurrence as $crate::operators::non_associative::Recurrence>::Value>, outgoing: $crate::simt::GlobalMut<<$recurrence as $crate::operators::non_associative::Recurrence>::Value>, change: $crate::simt::GlobalMut<u32>, out: $crate::simt::GlobalMut<<$recurrence as $crate::operators::non_associative::Recurrence>::Value>) {
                // SAFETY: the contract of this kernel.
                unsafe { $crate::primitives::non_associative::layout::<$recurrence>(items, n, length, round, incoming, outgoing, change, out) }
            }
        }

        #[cfg(not(target_arch = "nvptx64"))]
        impl $crate::primitives::non_associative::NonAssociativeKernels for $recurrence {
            unsafe fn prepare<L: $crate::simt::Launcher>(
                launcher: &L, config: $crate::simt::LaunchConfig, items: $crate::simt::Global<Self::Item>, n: usize, heads: $crate::simt::GlobalMut<u32>, labels: $crate::simt::GlobalMut<u32>, added: $crate::simt::GlobalMut<i64>,
            ) -> ::core::result::Result<(), L::Error> {
                // SAFETY: the contract of this kernel.
                unsafe { $prepare { items, n, heads, labels, added }.launch(launcher, config) }
            }

            unsafe fn shift_segments<L: $crate::simt::Launcher>(
                launcher: &L, config: $crate::simt::LaunchConfig, items: $crate::simt::Global<Self::Item>, starts: $crate::simt::Global<u32>, segments: usize, numbers: $crate::simt::GlobalMut<i64>, change: $crate::simt::GlobalMut<u32>,
            ) -> ::core::result::Result<(), L::Error> {
                // SAFETY: the contract of this kernel.
                unsafe { $shift_segments { items, starts, segments, numbers, change }.launch(launcher, config) }
            }

            unsafe fn calc_offsets<L: $crate::simt::Launcher>(
                launcher: &L, config: $crate::simt::LaunchConfig, items: $crate::simt::Global<Self::Item>, n: usize, round: u32, labels: $crate::simt::Global<u32>, numbers: $crate::simt::Global<i64>, credits: $crate::simt::Global<i64>, offsets: $crate::simt::GlobalMut<i64>, carries: $crate::simt::GlobalMut<i64>,
            ) -> ::core::result::Result<(), L::Error> {
                // SAFETY: the contract of this kernel.
                unsafe { $calc_offsets { items, n, round, labels, numbers, credits, offsets, carries }.launch(launcher, config) }
            }

            unsafe fn write_values<L: $crate::simt::Launcher>(
                launcher: &L, config: $crate::simt::LaunchConfig, numbers: $crate::simt::Global<i64>, n: usize, out: $crate::simt::GlobalMut<Self::Value>,
            ) -> ::core::result::Result<(), L::Error> {
                // SAFETY: the contract of this kernel.
                unsafe { $write_values { numbers, n, out }.launch(launcher, config) }
            }

            unsafe fn layout<L: $crate::simt::Launcher>(
                launcher: &L, config: $crate::simt::LaunchConfig, items: $crate::simt::Global<Self::Item>, n: usize, length: u32, round: u32, incoming: $crate::simt::Global<Self::Value>, outgoing: $crate::simt::GlobalMut<Self::Value>, change: $crate::simt::GlobalMut<u32>, out: $crate::simt::GlobalMut<Self::Value>,
            ) -> ::core::result::Result<(), L::Error> {
                // SAFETY: the contract of this kernel.
                unsafe { $layout { items, n, length, round, incoming, outgoing, change, out }.launch(launcher, config) }
            }
        }
    )*};
}

non_associative_kernels! {
    prepare_next_slot_u32, shift_next_slot_u32, offsets_next_slot_u32, values_next_slot_u32, layout_next_slot_u32:
        NextSlot<u32>;
    prepare_next_slot_u64, shift_next_slot_u64, offsets_next_slot_u64, values_next_slot_u64, layout_next_slot_u64:
        NextSlot<u64>;
    prepare_saturating, shift_saturating, offsets_saturating, values_saturating, layout_saturating: SaturatingSum;
    prepare_lindley, shift_lindley, offsets_lindley, values_lindley, layout_lindley: Lindley;
}

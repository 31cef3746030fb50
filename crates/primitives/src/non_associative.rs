//! Scans by operators that are not associative: `y[i] = step(y[i - 1], x[i])`.
//!
//! An item of a quotient filter, for example, belongs in slot `x[i]`, but goes to the first free slot after the item
//! before it: `y[i] = max(y[i - 1] + 1, x[i])`. This step is not associative, so the usual parallel scan does not
//! apply. The *lifted scan* uses that each step is a function of the previous value, here of `z = y + 1`, the end of
//! the used slots, and that these functions are closed under composition:
//!
//! ```text
//! f(z) = max(floor, z + add)                              step of x: floor = x + 1, add = 1
//! g(f(z)) = max(max(g.floor, f.floor + g.add), z + f.add + g.add)
//!
//! x              0       0       1       7       7
//! (floor, add)   (1,1)   (1,1)   (2,1)   (8,1)   (8,1)
//! composed       (1,1)   (2,2)   (3,3)   (8,4)   (9,5)   inclusive scan by composition
//! y              0       1       2       7       8       max(floor, 0 + add) - 1
//! ```
//!
//! Composition is associative for every step. So one ordinary scan over pairs `(floor, add)` computes all values, in
//! one pass over the input, however long the chains are. The lifted scan is this project's own.
//!
//! | method | steps | waits | passes over the items |
//! | --- | --- | --- | --- |
//! | [`scan_async`] (lifted, the default) | [`Lifted`] | no | one |
//! | [`parallel_merging_async`] | [`Additive`] | once | two per doubling of the segments |
//! | [`sequential_shifting_async`] | [`Additive`] | per iteration | one per segment of the longest chain |
//! | [`segmented_layouts_async`] | any [`Recurrence`] | per iteration | one per `log2(n)` items of the longest chain |
//!
//! All give the same results. The last three are algorithms 4, 5 and 6 of Geil, Farach-Colton, Owens, "Quotient
//! Filters: Approximate Membership Queries on the GPU", IPDPS 2018; [`warpset_kernels::primitives::non_associative`]
//! describes the kernels and all departures. They work within segments between which the chain breaks, and repeat until
//! no segment reaches into the next. [`Additive`] steps add, except where they break the chain. Parallel merging suits
//! long chains of steps that cannot be lifted; the other two suit inputs in which breaks are known to be frequent: if
//! the chain never breaks, they take as many iterations as there are segments. `docs/primitives.md` compares the four.
//!
//! [`NextSlot`], [`SaturatingSum`] and [`Lindley`] have kernels; a program makes those of its own recurrences by
//! [`recurrence_kernels!`](warpset_kernels::recurrence_kernels) and
//! [`non_associative_kernels!`](warpset_kernels::non_associative_kernels).
//!
//! Scratch: lifted, 16 or 32 bytes for each 16 KiB of input; parallel merging 20 bytes per item and 16 per segment;
//! sequential shifting 12 bytes per item and 4 per segment; segmented layouts two values for each `log2(n)` items.
//!
//! ```
//! use warpset_gpu::Device;
//! use warpset_primitives::non_associative::{self, NextSlot};
//!
//! # fn main() -> warpset_primitives::Result<()> {
//! let device = Device::emulator(Default::default());
//! let stream = device.new_stream()?;
//! let canonical = device.from_slice(&[0u32, 0, 1, 7, 7])?;
//! let mut slots = device.alloc_uninit::<u32>(5)?;
//! // SAFETY: both live until the stream has been waited for, which `to_vec` does.
//! unsafe { non_associative::scan_async::<NextSlot<u32>>(&stream, canonical.as_slice(), slots.as_mut_slice())? };
//! assert_eq!(slots.to_vec()?, [0, 1, 2, 7, 8]);
//! # Ok(())
//! # }
//! ```

use bytemuck::Pod;
use warpset_gpu::{DeviceSlice, DeviceSliceMut, LaunchConfig, Stream};
use warpset_kernels::primitives::non_associative::{
    BLOCK, Round, non_associative_shift_items as shift_items, non_associative_starts as find_starts,
};

pub use warpset_core::scan::non_associative::{Additive, Lifted, Lindley, NextSlot, Recurrence, SaturatingSum};
pub use warpset_kernels::primitives::non_associative::NonAssociativeKernels;
pub use warpset_kernels::primitives::scan::RecurrenceKernels;

use crate::scan::{self, Kind, Sum, inclusive_in_place_async, segmented_inclusive_in_place_async};
use crate::{Error, Result, check};

/// Largest number of items of the three methods of the paper: positions and labels have 32 bits.
pub const MAX_ITEMS: usize = u32::MAX as usize - 1;

/// Queues a scan by a recurrence with steps that are composable functions: one pass, however long the chains are.
///
/// # Errors
/// [`LengthMismatch`](Error::LengthMismatch), [`Overlap`](Error::Overlap), [`TooLong`](Error::TooLong) past 2^31 tiles
/// of 16 KiB; errors of the device.
///
/// # Safety
/// Until `stream` has passed this work:
/// - `input` and `out` stay allocated;
/// - no other work writes `input` or accesses `out`.
pub unsafe fn scan_async<R: RecurrenceKernels<Item: Pod, Number: Pod>>(
    stream: &Stream,
    input: DeviceSlice<'_, R::Item>,
    mut out: DeviceSliceMut<'_, R::Number>,
) -> Result<()> {
    let n = check_arguments(stream, input, &out, usize::MAX)?;
    if n == 0 {
        return Ok(());
    }
    let arguments = (input.global(), input.global().cast(), out.global_mut(), n);
    // SAFETY: configuration and scratch are the kernel's; the rest is the contract of this function.
    unsafe {
        scan::queue(stream, R::SCAN, Kind::Inclusive, arguments, |config, with| R::launch_lifted(stream, config, with))
    }
}

fn check_arguments<T: Pod, U: Pod>(
    stream: &Stream,
    input: DeviceSlice<'_, T>,
    out: &DeviceSliceMut<'_, U>,
    max: usize,
) -> Result<usize> {
    let n = input.len();
    check::same_len("results of a scan", n, out.len())?;
    check::on_device_of(stream, "a scan", out)?;
    check::apart("input and output of a scan", input, out)?;
    if n > max {
        return Err(Error::TooLong { len: n, max });
    }
    Ok(n)
}

/// Returns a grid that covers `n` items, or fills the device.
fn grid(stream: &Stream, n: usize) -> LaunchConfig {
    let resident = stream.device().properties().multiprocessors as usize * 8;
    LaunchConfig::new(n.div_ceil(BLOCK as usize).clamp(1, resident) as u32, BLOCK)
}

/// Copies the first item of `from` to the host, after the stream's work.
fn read_back<T: Pod>(stream: &Stream, from: DeviceSlice<'_, T>) -> Result<T> {
    let mut value = [T::zeroed()];
    // SAFETY: `value` is waited for before it is read or dropped.
    let queued = unsafe { stream.download_async(from.slice(..1), &mut value) };
    stream.synchronize()?;
    queued?;
    Ok(value[0])
}

/// Input in segments, with values as if each were the first.
struct Segments {
    /// Number of each item's segment, from 1 on.
    labels: warpset_gpu::DeviceVec<u32>,
    numbers: warpset_gpu::DeviceVec<i64>,
    count: usize,
}

impl Segments {
    /// Cuts the input into segments.
    ///
    /// # Safety
    /// The contract of [`parallel_merging_async`]; there is at least one item.
    unsafe fn new<R: NonAssociativeKernels<Item: Pod>>(
        stream: &Stream,
        input: DeviceSlice<'_, R::Item>,
    ) -> Result<Segments> {
        let n = input.len();
        let mut heads = stream.alloc_uninit::<u64>(n.div_ceil(64))?;
        let mut labels = stream.alloc_uninit::<u32>(n)?;
        let mut numbers = stream.alloc_uninit::<i64>(n)?;
        // SAFETY: sizes are those of the kernels' contracts; everything except the input belongs to this call.
        unsafe {
            let (bits, flags, added) = (heads.global_mut().cast(), labels.global_mut(), numbers.global_mut());
            R::prepare(stream, grid(stream, n), input.global(), n, bits, flags, added)?;
            inclusive_in_place_async::<Sum<u32>>(stream, labels.as_mut_slice())?;
            segmented_inclusive_in_place_async::<Sum<i64>>(stream, numbers.as_mut_slice(), heads.as_slice())?;
        }
        let count = read_back(stream, labels.slice(n - 1..))? as usize;
        Ok(Segments { labels, numbers, count })
    }

    /// Writes the values.
    ///
    /// # Safety
    /// The contract of [`parallel_merging_async`]; `out` has a place for each number.
    unsafe fn write<R: NonAssociativeKernels<Value: Pod>>(
        self,
        stream: &Stream,
        mut out: DeviceSliceMut<'_, R::Value>,
    ) -> Result<()> {
        let n = out.len();
        // SAFETY: both have `n` places.
        unsafe { R::write_values(stream, grid(stream, n), self.numbers.global(), n, out.global_mut())? };
        Ok(())
    }
}

/// Scans by parallel merging (algorithm 4): neighbouring segments are joined in `ceil(log2(segments))` iterations, each
/// of which passes over all items twice. Returns the number of iterations.
///
/// Waits once, for the number of segments; the rest is queued.
///
/// # Errors
/// The errors of [`scan_async`], and [`TooLong`](Error::TooLong) past [`MAX_ITEMS`].
///
/// # Safety
/// The contract of [`scan_async`].
pub unsafe fn parallel_merging_async<R: NonAssociativeKernels<Item: Pod, Value: Pod>>(
    stream: &Stream,
    input: DeviceSlice<'_, R::Item>,
    out: DeviceSliceMut<'_, R::Value>,
) -> Result<usize> {
    let n = check_arguments(stream, input, &out, MAX_ITEMS)?;
    if n == 0 {
        return Ok(0);
    }
    // SAFETY: sizes are those of the kernels' contracts; everything except input and output belongs to this call and is
    // freed in stream order; input and output are covered by the contract of this function.
    unsafe {
        let mut segments = Segments::new::<R>(stream, input)?;
        let mut credits = stream.alloc_zeroed::<i64>(n)?;
        let mut offsets = stream.alloc_uninit::<i64>(segments.count)?;
        let mut carries = stream.alloc_uninit::<i64>(segments.count)?;
        let rounds = segments.count.next_power_of_two().trailing_zeros();
        let config = grid(stream, n);
        for round in 0..rounds {
            let (items, labels) = (input.global(), segments.labels.global());
            let (numbers, credit) = (segments.numbers.global(), credits.global());
            let (offset, carry) = (offsets.global_mut(), carries.global_mut());
            R::calc_offsets(stream, config, items, n, round, labels, numbers, credit, offset, carry)?;
            let (offset, carry) = (offsets.global(), carries.global());
            let (numbers, credit) = (segments.numbers.global_mut(), credits.global_mut());
            shift_items { n, round, labels, offsets: offset, carries: carry, numbers, credits: credit }
                .launch(stream, config)?;
        }
        segments.write::<R>(stream, out)?;
        Ok(rounds as usize)
    }
}

/// Scans by sequential shifting (algorithm 5): one thread per segment, which moves the segment if the previous one
/// reaches into it, until none moves. Returns the number of iterations.
///
/// Waits for each iteration.
///
/// # Errors
/// The errors of [`parallel_merging_async`].
///
/// # Safety
/// The contract of [`scan_async`].
pub unsafe fn sequential_shifting_async<R: NonAssociativeKernels<Item: Pod, Value: Pod>>(
    stream: &Stream,
    input: DeviceSlice<'_, R::Item>,
    out: DeviceSliceMut<'_, R::Value>,
) -> Result<usize> {
    let n = check_arguments(stream, input, &out, MAX_ITEMS)?;
    if n == 0 {
        return Ok(0);
    }
    // SAFETY: as for parallel merging.
    unsafe {
        let mut segments = Segments::new::<R>(stream, input)?;
        let count = segments.count;
        let mut starts = stream.alloc_uninit::<u32>(count + 1)?;
        let mut change = stream.alloc_uninit::<u32>(1)?;
        find_starts { labels: segments.labels.global(), n, starts: starts.global_mut() }
            .launch(stream, grid(stream, n))?;
        let mut iterations = 0;
        loop {
            stream.fill_bytes(&mut change, 0)?;
            let (numbers, changed) = (segments.numbers.global_mut(), change.global_mut());
            R::shift_segments(stream, grid(stream, count), input.global(), starts.global(), count, numbers, changed)?;
            iterations += 1;
            if read_back(stream, change.as_slice())? == 0 {
                break;
            }
        }
        segments.write::<R>(stream, out)?;
        Ok(iterations)
    }
}

/// Scans by segmented layouts (algorithm 6): one thread per `log2(n)` items, which passes its last value to the next
/// thread's next iteration, until no value changes. Returns the number of iterations.
///
/// Waits for each iteration.
///
/// # Errors
/// The errors of [`parallel_merging_async`].
///
/// # Safety
/// The contract of [`scan_async`].
pub unsafe fn segmented_layouts_async<R: NonAssociativeKernels<Item: Pod, Value: Pod>>(
    stream: &Stream,
    input: DeviceSlice<'_, R::Item>,
    mut out: DeviceSliceMut<'_, R::Value>,
) -> Result<usize> {
    let n = check_arguments(stream, input, &out, MAX_ITEMS)?;
    if n == 0 {
        return Ok(0);
    }
    let length = n.ilog2().max(1);
    let segments = n.div_ceil(length as usize);
    let mut from = stream.alloc_uninit::<R::Value>(segments)?;
    let mut to = stream.alloc_uninit::<R::Value>(segments)?;
    let mut change = stream.alloc_uninit::<u32>(1)?;
    let config = grid(stream, segments);
    let mut iterations = 0;
    // SAFETY: as for parallel merging; `from` is written before a round reads it.
    unsafe {
        loop {
            stream.fill_bytes(&mut change, 0)?;
            let round = if iterations == 0 { Round::First } else { Round::Next } as u32;
            let (incoming, outgoing, changed) = (from.global(), to.global_mut(), change.global_mut());
            let (items, all) = (input.global(), out.global_mut());
            R::layout(stream, config, items, n, length, round, incoming, outgoing, changed, all)?;
            iterations += 1;
            std::mem::swap(&mut from, &mut to);
            if segments == 1 || read_back(stream, change.as_slice())? == 0 {
                break;
            }
        }
        let (incoming, outgoing, changed) = (from.global(), to.global_mut(), change.global_mut());
        let (items, all, last) = (input.global(), out.global_mut(), Round::Last as u32);
        R::layout(stream, config, items, n, length, last, incoming, outgoing, changed, all)?;
    }
    Ok(iterations)
}

#[cfg(test)]
mod tests;

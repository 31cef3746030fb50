//! Scans by operators that are not associative: `y[i] = step(y[i - 1], x[i])`, four ways.
//!
//! | | takes | waits | work | good where |
//! | --- | --- | --- | --- | --- |
//! | [`scan_async`] (lifted) | [`Lifted`]: steps `y -> max(floor, y + add)`, which compose | no | one pass | always: the default |
//! | [`parallel_merging_async`] | [`Additive`]: steps that add where they do not break the chain | once | two passes for each doubling of the segments | chains are long, and steps cannot be lifted |
//! | [`sequential_shifting_async`] | [`Additive`] | each iteration | a pass for each segment of the longest chain | the chain breaks often |
//! | [`segmented_layouts_async`] | any [`Recurrence`] | each iteration | a pass for each `log2(n)` items of the longest chain | the chain breaks often |
//!
//! All give the same results. The last three are algorithms 4, 5 and 6 of Geil, Farach-Colton, Owens, "Quotient
//! Filters: Approximate Membership Queries on the GPU", IPDPS 2018 (see
//! [`warpset_kernels::primitives::non_associative`] for how, and for every departure). If the chain never breaks,
//! sequential shifting and segmented layouts take as many iterations as there are segments, and each goes over all of
//! them: use them where breaks are known to be frequent. `docs/primitives.md` compares the four.
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

use crate::scan::{Kind, ScanLaunch, Sum, inclusive_in_place_async, segmented_inclusive_in_place_async};
use crate::{Error, Result, check};

/// Items that the three methods of the paper take at most: positions and labels have 32 bits.
pub const MAX_ITEMS: usize = u32::MAX as usize - 1;

/// Queues a scan by a recurrence whose steps are functions that compose: one pass, however long the chains are.
///
/// # Errors
/// [`LengthMismatch`](Error::LengthMismatch), [`Overlap`](Error::Overlap), [`TooLong`](Error::TooLong) past 2^31 tiles
/// of 16 KiB; what the device says.
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
    let (input, out) = (input.global(), out.global_mut());
    let mut launch = ScanLaunch::new(stream, R::SCAN, n, input, out, Kind::Inclusive)?;
    // SAFETY: the plan is the kernel's; scratch is this call's own, and freed in the order of the stream; the caller
    // answers for the rest.
    unsafe { R::launch_lifted(stream, launch.config, launch.arguments(input, input.cast(), out, n))? };
    Ok(())
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

/// A grid that covers `n` items, or fills the device.
fn grid(stream: &Stream, n: usize) -> LaunchConfig {
    let resident = stream.device().properties().multiprocessors as usize * 8;
    LaunchConfig::new(n.div_ceil(BLOCK as usize).clamp(1, resident) as u32, BLOCK)
}

/// The first item of `from`, once `stream` has come to here.
fn read_back<T: Pod>(stream: &Stream, from: DeviceSlice<'_, T>) -> Result<T> {
    let mut value = [T::zeroed()];
    // SAFETY: `value` is waited for before it is read or goes.
    let queued = unsafe { stream.download_async(from.slice(..1), &mut value) };
    stream.synchronize()?;
    queued?;
    Ok(value[0])
}

/// The input in segments, values as if nothing stood before each.
struct Segments {
    /// Which segment an item belongs to, from 1 on.
    labels: warpset_gpu::DeviceVec<u32>,
    numbers: warpset_gpu::DeviceVec<i64>,
    count: usize,
}

impl Segments {
    /// # Safety
    /// That of [`parallel_merging_async`]; there is an item.
    unsafe fn new<R: NonAssociativeKernels<Item: Pod>>(
        stream: &Stream,
        input: DeviceSlice<'_, R::Item>,
    ) -> Result<Segments> {
        let n = input.len();
        let mut heads = stream.alloc_uninit::<u64>(n.div_ceil(64))?;
        let mut labels = stream.alloc_uninit::<u32>(n)?;
        let mut numbers = stream.alloc_uninit::<i64>(n)?;
        // SAFETY: sizes are as the kernels ask; everything but the input is this call's own.
        unsafe {
            let (bits, flags, added) = (heads.global_mut().cast(), labels.global_mut(), numbers.global_mut());
            R::prepare(stream, grid(stream, n), input.global(), n, bits, flags, added)?;
            inclusive_in_place_async::<Sum<u32>>(stream, labels.as_mut_slice())?;
            segmented_inclusive_in_place_async::<Sum<i64>>(stream, numbers.as_mut_slice(), heads.as_slice())?;
        }
        let count = read_back(stream, labels.slice(n - 1..))? as usize;
        Ok(Segments { labels, numbers, count })
    }

    /// # Safety
    /// That of [`parallel_merging_async`]; `out` has a place for each number.
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

/// Scans by parallel merging (algorithm 4): neighbouring segments become one, in `ceil(log2(segments))` iterations,
/// each of which goes over all items twice. Returns the number of iterations.
///
/// Waits once, for the number of segments; the rest is queued.
///
/// # Errors
/// The errors of [`scan_async`], and [`TooLong`](Error::TooLong) past [`MAX_ITEMS`].
///
/// # Safety
/// That of [`scan_async`].
pub unsafe fn parallel_merging_async<R: NonAssociativeKernels<Item: Pod, Value: Pod>>(
    stream: &Stream,
    input: DeviceSlice<'_, R::Item>,
    out: DeviceSliceMut<'_, R::Value>,
) -> Result<usize> {
    let n = check_arguments(stream, input, &out, MAX_ITEMS)?;
    if n == 0 {
        return Ok(0);
    }
    // SAFETY: sizes are as the kernels ask; everything but input and output is this call's own, and freed in the order
    // of the stream; the caller answers for those two.
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

/// Scans by sequential shifting (algorithm 5): one thread per segment, which moves if the one before has come to reach
/// into it, until none moves. Returns the number of iterations.
///
/// Waits for each iteration.
///
/// # Errors
/// The errors of [`parallel_merging_async`].
///
/// # Safety
/// That of [`scan_async`].
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

/// Scans by segmented layouts (algorithm 6): a thread for each `log2(n)` items, which hands its last value on to the
/// next thread's next iteration, until none hands on anything new. Returns the number of iterations.
///
/// Waits for each iteration.
///
/// # Errors
/// The errors of [`parallel_merging_async`].
///
/// # Safety
/// That of [`scan_async`].
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

//! Scans: every place of the output gets the combination of all items of the input up to there.
//!
//! *Inclusive* scans include the item at the place itself, *exclusive* ones do not. The operator is any type that
//! implements [`Operator`] and has kernels ([`ScanKernels`]): [`Sum`], [`Max`] and [`Min`] of `u32`, `u64` and `i64`,
//! and types with kernels compiled by [`scan_kernels!`](warpset_kernels::scan_kernels). Operators are associative and
//! have an identity; they need not be commutative.
//!
//! A scan reads each item once and writes each result once (see [`warpset_kernels::primitives::scan`] for how), in one
//! launch. The output may be the input: the `_in_place` forms. It is fastest where input and output begin at multiples
//! of 16 bytes, as vectors do.
//!
//! Scratch: 8 bytes for each 16 KiB of input where the operator's values have 32 bits, 16 where they have 64; the same
//! by segments. None for input of one tile (16 KiB) or less. Up to 256 KiB of it, and as much again, stay with the
//! stream.
//!
//! ```
//! use warpset_gpu::Device;
//! use warpset_primitives::scan::{self, Sum};
//!
//! # fn main() -> warpset_primitives::Result<()> {
//! let device = Device::emulator(Default::default());
//! let stream = device.new_stream()?;
//! let degrees = device.from_slice(&[3u32, 0, 2, 5])?;
//! let mut offsets = device.alloc_uninit::<u32>(4)?;
//! // SAFETY: both live until the stream has been waited for, which `to_vec` does.
//! unsafe { scan::exclusive_async::<Sum<u32>>(&stream, degrees.as_slice(), offsets.as_mut_slice())? };
//! assert_eq!(offsets.to_vec()?, [0, 3, 3, 5]);
//! # Ok(())
//! # }
//! ```
//!
//! Programs can add operators, here addition that saturates. The emulator runs its kernels directly; for CUDA compile
//! them to PTX by `warpset-builder`: `docs/kernels.md`. Reductions, by key or not, work the same way.
//!
//! ```
//! use warpset_gpu::Device;
//! use warpset_kernels::scan_kernels;
//! use warpset_primitives::scan::{self, Operator};
//!
//! struct StoppingSum;
//!
//! impl Operator for StoppingSum {
//!     type Value = u32;
//!     const IDENTITY: u32 = 0;
//!     fn combine(before: u32, after: u32) -> u32 {
//!         before.saturating_add(after)
//!     }
//! }
//!
//! scan_kernels! {
//!     scan_stopping_sum, segmented_stopping_sum: StoppingSum;
//! }
//!
//! # fn main() -> warpset_primitives::Result<()> {
//! let device = Device::emulator(Default::default());
//! let stream = device.new_stream()?;
//! let mut items = device.from_slice(&[1u32 << 31, 5, 1 << 31, 7])?;
//! // SAFETY: the items live until the stream has been waited for, which `to_vec` does.
//! unsafe { scan::inclusive_in_place_async::<StoppingSum>(&stream, items.as_mut_slice())? };
//! assert_eq!(items.to_vec()?, [1 << 31, (1 << 31) + 5, u32::MAX, u32::MAX]);
//! # Ok(())
//! # }
//! ```

use bytemuck::Pod;
use warpset_gpu::{DeviceSlice, DeviceSliceMut, LaunchConfig, Stream, ZeroedWords};
use warpset_kernels::primitives::scan::{AHEAD_SHIFT, Arguments, EXCLUSIVE, ScanShape, VECTORS};
use warpset_simt::{Global, GlobalMut};

pub use warpset_core::scan::{Max, Min, Operator, Sum};
pub use warpset_kernels::primitives::scan::ScanKernels;

use crate::{Result, check};

/// Whether a result includes the item at its own place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Inclusive,
    Exclusive,
}

macro_rules! scans {
    ($($doc:literal $kind:ident: $name:ident, $in_place:ident, $segmented:ident, $segmented_in_place:ident;)*) => {$(
        #[doc = concat!("Queues ", $doc, " scan of `input` to `out`, of the same length.")]
        ///
        /// # Errors
        /// [`LengthMismatch`](crate::Error::LengthMismatch), [`Overlap`](crate::Error::Overlap),
        /// [`TooLong`](crate::Error::TooLong) past 2^31 tiles; errors of the device.
        ///
        /// # Safety
        /// Until `stream` has passed this work:
        /// - `input` and `out` stay allocated;
        /// - no other work writes `input` or accesses `out`.
        pub unsafe fn $name<O: ScanKernels<Value: Pod>>(
            stream: &Stream,
            input: DeviceSlice<'_, O::Value>,
            out: DeviceSliceMut<'_, O::Value>,
        ) -> Result<()> {
            check::apart("input and output of a scan", input, &out)?;
            // SAFETY: the contract of this function.
            unsafe { plain::<O>(stream, input.global(), out, input.len(), Kind::$kind) }
        }

        #[doc = concat!("Queues ", $doc, " scan of `items` in their place.")]
        ///
        /// # Errors
        #[doc = concat!("As for [`", stringify!($name), "`].")]
        ///
        /// # Safety
        /// Until `stream` has passed this work:
        /// - `items` stay allocated;
        /// - no other work accesses them.
        pub unsafe fn $in_place<O: ScanKernels<Value: Pod>>(
            stream: &Stream,
            items: DeviceSliceMut<'_, O::Value>,
        ) -> Result<()> {
            let (input, n) = (items.global(), items.len());
            // SAFETY: the contract of this function.
            unsafe { plain::<O>(stream, input, items, n, Kind::$kind) }
        }

        #[doc = concat!("Queues ", $doc, " scan of `input` to `out` that restarts at every head: an item `i` whose")]
        /// bit `i % 64` of `heads[i / 64]` is set. The first item is a head whatever its bit.
        ///
        /// # Errors
        #[doc = concat!("As for [`", stringify!($name), "`].")]
        ///
        /// # Safety
        #[doc = concat!("As for [`", stringify!($name), "`], and no other work writes `heads`, which stay allocated.")]
        pub unsafe fn $segmented<O: ScanKernels<Value: Pod>>(
            stream: &Stream,
            input: DeviceSlice<'_, O::Value>,
            heads: DeviceSlice<'_, u64>,
            out: DeviceSliceMut<'_, O::Value>,
        ) -> Result<()> {
            check::apart("input and output of a scan", input, &out)?;
            // SAFETY: the contract of this function.
            unsafe { by_segment::<O>(stream, input.global(), heads, out, input.len(), Kind::$kind) }
        }

        #[doc = concat!("[`", stringify!($segmented), "`] of `items` in their place.")]
        ///
        /// # Errors
        #[doc = concat!("As for [`", stringify!($name), "`].")]
        ///
        /// # Safety
        #[doc = concat!("As for [`", stringify!($in_place), "`], and no other work writes `heads`, which stay allocated.")]
        pub unsafe fn $segmented_in_place<O: ScanKernels<Value: Pod>>(
            stream: &Stream,
            items: DeviceSliceMut<'_, O::Value>,
            heads: DeviceSlice<'_, u64>,
        ) -> Result<()> {
            let (input, n) = (items.global(), items.len());
            // SAFETY: the contract of this function.
            unsafe { by_segment::<O>(stream, input, heads, items, n, Kind::$kind) }
        }
    )*};
}
scans! {
    "an inclusive" Inclusive: inclusive_async, inclusive_in_place_async, segmented_inclusive_async, segmented_inclusive_in_place_async;
    "an exclusive" Exclusive: exclusive_async, exclusive_in_place_async, segmented_exclusive_async, segmented_exclusive_in_place_async;
}

/// Queues a scan of `n > 0` items by `launch`, which launches a kernel of this shape.
///
/// # Safety
/// The contract of [`inclusive_async`] for the arguments, except that the input may be the output.
pub(crate) unsafe fn queue<T, U>(
    stream: &Stream,
    shape: ScanShape,
    kind: Kind,
    (input, heads, out, n): (Global<T>, Global<u32>, GlobalMut<U>, usize),
    launch: impl FnOnce(LaunchConfig, Arguments<T, U>) -> warpset_gpu::Result<()>,
) -> Result<()> {
    let tiles = check::tiles(n, shape.tile)?;
    let vectors = (input.as_ptr().addr() | out.as_ptr().addr()).is_multiple_of(16);
    let config = LaunchConfig::new(tiles, shape.threads).shared(shape.shared_bytes);
    let ahead = stream.device().properties().multiprocessors * shape.resident / 2;
    let flags = if vectors { VECTORS } else { 0 }
        | if tiles > ahead { ahead << AHEAD_SHIFT } else { 0 }
        | if kind == Kind::Exclusive { EXCLUSIVE } else { 0 };
    let with = |ZeroedWords { zero: scratch, left, left_words }| {
        launch(config, Arguments { input, heads, out, n, flags, scratch, left, left_words })
    };
    if tiles == 1 {
        let nothing = GlobalMut::from_raw_parts(std::ptr::dangling_mut(), 0);
        with(ZeroedWords { zero: nothing, left: nothing, left_words: 0 })?;
    } else {
        // SAFETY: the kernel writes no words but those, and clears what is left.
        unsafe { stream.with_zeroed_words(shape.scratch_words(tiles), with)? };
    }
    Ok(())
}

/// Queues a scan without segments.
///
/// # Safety
/// The contract of [`inclusive_async`]; `input` is `n` items, exactly those of `out` or apart from them.
unsafe fn plain<O: ScanKernels<Value: Pod>>(
    stream: &Stream,
    input: Global<O::Value>,
    mut out: DeviceSliceMut<'_, O::Value>,
    n: usize,
    kind: Kind,
) -> Result<()> {
    check::same_len("results of a scan", n, out.len())?;
    check::on_device_of(stream, "a scan", &out)?;
    if n == 0 {
        return Ok(());
    }
    let arguments = (input, input.cast(), out.global_mut(), n);
    // SAFETY: configuration and scratch are the kernel's; the rest is the contract of this function.
    unsafe { queue(stream, O::SCAN, kind, arguments, |config, with| O::launch_scan(stream, config, with)) }
}

/// Queues a scan by segments.
///
/// # Safety
/// The contract of [`plain`], and no other work writes `heads`, which stay allocated.
unsafe fn by_segment<O: ScanKernels<Value: Pod>>(
    stream: &Stream,
    input: Global<O::Value>,
    heads: DeviceSlice<'_, u64>,
    mut out: DeviceSliceMut<'_, O::Value>,
    n: usize,
    kind: Kind,
) -> Result<()> {
    check::same_len("results of a scan", n, out.len())?;
    check::on_device_of(stream, "a scan", &out)?;
    crate::error::check_len("the words of heads", n.div_ceil(64), heads.len())?;
    check::apart("heads and output of a scan", heads, &out)?;
    if n == 0 {
        return Ok(());
    }
    let arguments = (input, heads.global().cast(), out.global_mut(), n);
    // SAFETY: as for a plain scan.
    unsafe { queue(stream, O::SEGMENTED, kind, arguments, |config, with| O::launch_segmented(stream, config, with)) }
}

#[cfg(test)]
mod tests;

//! Reductions: of all items to one value, or of each run of equal keys.
//!
//! The operator is associative and has an identity ([`Operator`]); it need not be commutative. [`Sum`], [`Max`] and
//! [`Min`] of `u32`, `u64` and `i64` have kernels, reductions by key also [`BitOr`] of `u32` and `u64`; a program makes
//! those of its own operators by [`reduce_kernels!`](warpset_kernels::reduce_kernels) and
//! [`by_key_kernels!`](warpset_kernels::by_key_kernels).
//!
//! [`reduce_async`] reads each item once. [`reduce_by_key_async`] and [`run_length_encode_async`] read each key and
//! value once and write one item per run. Scratch: a few KiB for a reduction; 16 bytes for each 2048 items for the
//! others.
//!
//! ```
//! use warpset_gpu::Device;
//! use warpset_primitives::reduce::{self, Max};
//!
//! # fn main() -> warpset_primitives::Result<()> {
//! let device = Device::emulator(Default::default());
//! let stream = device.new_stream()?;
//! let heights = device.from_slice(&[3i64, -1, 8, 5])?;
//! let mut largest = device.alloc_uninit::<i64>(1)?;
//! // SAFETY: both live until the stream has been waited for, which `to_vec` does.
//! unsafe { reduce::reduce_async::<Max<i64>>(&stream, heights.as_slice(), largest.as_mut_slice())? };
//! assert_eq!(largest.to_vec()?, [8]);
//! # Ok(())
//! # }
//! ```

use bytemuck::Pod;
use warpset_gpu::{DeviceSlice, DeviceSliceMut, LaunchConfig, Stream};
use warpset_kernels::look_back::words;
use warpset_kernels::primitives::by_key;
use warpset_kernels::primitives::reduce::{self as kernels, BLOCK, RESIDENT, VECTORS};
use warpset_kernels::primitives::warp_tile::Item;
use warpset_simt::Global;

pub use warpset_core::scan::{BitOr, Max, Min, Operator, Sum};
pub use warpset_kernels::primitives::by_key::{ByKeyKernels, EncodeKernels};
pub use warpset_kernels::primitives::reduce::ReduceKernels;
pub use warpset_kernels::primitives::warp_tile::Item as TileItem;

use crate::LookBack;
use crate::error::check_len;
use crate::{Result, check};

/// Queues a reduction: writes the combination of all items, in their order, to the first place of `out`; without items,
/// the operator's identity.
///
/// # Errors
/// [`LengthMismatch`](crate::Error::LengthMismatch) if `out` is empty; errors of the device.
///
/// # Safety
/// Until `stream` has passed this work:
/// - `input` and `out` stay allocated;
/// - no other work writes `input` or accesses `out`.
pub unsafe fn reduce_async<O: ReduceKernels<Value: Pod>>(
    stream: &Stream,
    input: DeviceSlice<'_, O::Value>,
    mut out: DeviceSliceMut<'_, O::Value>,
) -> Result<()> {
    check_len("the result of a reduction", 1, out.len())?;
    check::on_device_of(stream, "a reduction", &out)?;
    check::apart("input and output of a reduction", input, &out)?;
    let (n, warp_items, block_warps) = (input.len(), kernels::warp_items::<O::Value>(), BLOCK as usize / 32);
    let resident = (stream.device().properties().multiprocessors * RESIDENT) as usize;
    let blocks = n.div_ceil(warp_items * block_warps).clamp(1, resident);
    let per_warp = n.div_ceil(blocks * block_warps).next_multiple_of(warp_items);
    let mut scratch = LookBack::new(stream, words::<O::Value>(blocks))?;
    let config = LaunchConfig::new(blocks as u32, BLOCK).shared(kernels::shared_bytes::<O::Value>());
    let (partial, finished) = (scratch.words(), scratch.ticket());
    let flags = if vectors(input.global()) { VECTORS } else { 0 };
    let (input, out) = (input.global(), out.global_mut());
    // SAFETY: shapes and scratch are those of the kernel's contract; scratch belongs to this call and is freed in
    // stream order; the rest is the contract of this function.
    unsafe { O::launch_reduce(stream, config, input, n, per_warp, flags, partial, finished, out)? };
    Ok(())
}

/// Whether an array begins at a multiple of 16 bytes.
fn vectors<T>(array: Global<T>) -> bool {
    array.as_ptr().addr().is_multiple_of(16)
}

/// Queues a reduction by key: for each run of equal neighbouring keys, in order, `out_keys` gets the key and
/// `out_values` the run's values combined; `runs` gets the number of runs.
///
/// Both outputs have room for all items; items after the runs are unchanged.
///
/// # Errors
/// [`LengthMismatch`](crate::Error::LengthMismatch), [`Overlap`](crate::Error::Overlap),
/// [`TooLong`](crate::Error::TooLong) past 2^31 tiles of 2048 items; errors of the device.
///
/// # Safety
/// Until `stream` has passed this work:
/// - all arguments stay allocated;
/// - no other work writes `keys` or `values` or accesses the outputs.
pub unsafe fn reduce_by_key_async<O, K>(
    stream: &Stream,
    keys: DeviceSlice<'_, K>,
    values: DeviceSlice<'_, O::Value>,
    mut out_keys: DeviceSliceMut<'_, K>,
    mut out_values: DeviceSliceMut<'_, O::Value>,
    runs: DeviceSliceMut<'_, u64>,
) -> Result<()>
where
    O: ByKeyKernels<K, Value: Pod + Item>,
    K: Pod + Item,
{
    let n = keys.len();
    check::same_len("values of keys", n, values.len())?;
    check::apart("values and reduced values", values, &out_values)?;
    check::apart("values and keys of runs", values, &out_keys)?;
    let Some(mut launch) = ByKey::new(stream, keys, &out_keys, &out_values, runs)? else { return Ok(()) };
    let flags = if vectors(keys.global()) && vectors(values.global()) { by_key::VECTORS } else { 0 };
    let (look_back, ticket) = (launch.scratch.words(), launch.scratch.ticket());
    let (keys, values) = (keys.global(), values.global());
    let (out_keys, out_values, runs) = (out_keys.global_mut(), out_values.global_mut(), launch.runs.global_mut());
    // SAFETY: shapes and scratch are those of the kernel's contract; scratch belongs to this call and is freed in
    // stream order; the rest is the contract of this function.
    unsafe {
        O::launch_by_key(stream, launch.config, keys, values, n, flags, look_back, ticket, out_keys, out_values, runs)?;
    }
    Ok(())
}

/// Queues a run-length encoding: for each run of equal neighbouring items, in order, `out_items` gets the item and
/// `lengths` its length; `runs` gets the number of runs.
///
/// Both outputs have room for all items; items after the runs are unchanged.
///
/// # Errors
/// The errors of [`reduce_by_key_async`].
///
/// # Safety
/// The contract of [`reduce_by_key_async`].
pub unsafe fn run_length_encode_async<K: Pod + EncodeKernels>(
    stream: &Stream,
    items: DeviceSlice<'_, K>,
    mut out_items: DeviceSliceMut<'_, K>,
    mut lengths: DeviceSliceMut<'_, u64>,
    runs: DeviceSliceMut<'_, u64>,
) -> Result<()> {
    let n = items.len();
    let Some(mut launch) = ByKey::new(stream, items, &out_items, &lengths, runs)? else { return Ok(()) };
    let flags = if vectors(items.global()) { by_key::VECTORS } else { 0 };
    let (look_back, ticket) = (launch.scratch.words(), launch.scratch.ticket());
    let items = items.global();
    let (out_items, lengths, runs) = (out_items.global_mut(), lengths.global_mut(), launch.runs.global_mut());
    // SAFETY: as for a reduction by key.
    unsafe { K::launch_encode(stream, launch.config, items, n, flags, look_back, ticket, out_items, lengths, runs)? };
    Ok(())
}

/// Launch over runs.
struct ByKey<'a> {
    config: LaunchConfig,
    scratch: LookBack,
    runs: DeviceSliceMut<'a, u64>,
}

impl<'a> ByKey<'a> {
    /// Checks the arguments of both kinds; without items there are no runs, and nothing is launched.
    fn new<K: Pod + Item, V: Pod>(
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        out_keys: &DeviceSliceMut<'_, K>,
        out_values: &DeviceSliceMut<'_, V>,
        mut runs: DeviceSliceMut<'a, u64>,
    ) -> Result<Option<Self>> {
        let n = keys.len();
        check_len("keys of runs", n, out_keys.len())?;
        check_len("values of runs", n, out_values.len())?;
        check_len("the number of runs", 1, runs.len())?;
        check::on_device_of(stream, "a reduction by key", &runs)?;
        check::apart("keys and the number of runs", keys, &runs)?;
        check::apart("keys and keys of runs", keys, out_keys)?;
        check::apart("keys and values of runs", keys, out_values)?;
        if n == 0 {
            stream.fill_bytes(runs.slice_mut(..1), 0)?;
            return Ok(None);
        }
        let tiles = check::tiles(n, by_key::TILE)?;
        let scratch = LookBack::new(stream, tiles as usize * by_key::LOOK_BACK_WORDS)?;
        let config = LaunchConfig::new(tiles, by_key::BLOCK).shared(by_key::shared_bytes::<K>());
        Ok(Some(ByKey { config, scratch, runs }))
    }
}

#[cfg(test)]
mod tests;

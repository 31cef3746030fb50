//! Radix sort: stable, by any range of bits, of keys or of keys with payloads.
//!
//! [`sort_keys_async`] and [`sort_pairs_async`] do not change their input; [`sort_keys_in_place_async`] and
//! [`sort_pairs_in_place_async`] sort in place.
//!
//! Each digit of at most 8 bits takes one read and one write of the items; a digit that is equal in all keys takes
//! none. The launches depend on the number of items:
//! - up to [`ONE_BLOCK`], or 512 if more than 64 bits decide: in one block;
//! - up to 2^20, or 2^21 of 4 bytes each: in one launch whose blocks hold all items and wait for each other
//!   ([`warpset_kernels::primitives::resident_sort`]), if the device has enough multiprocessors. A multiprocessor of an
//!   H200 holds 8,192 items or more, but of keys of 16 bytes 5,120, 5,632 or 6,144 with payloads of 8 bytes, of 4, or
//!   without;
//! - more: in one launch that counts all digits and one per digit ([`warpset_kernels::primitives::radix_sort`]);
//!   ascending keys of 16 bytes by 64 bits or more in pieces of that many items, and merges of up to 32 pieces.
//!
//! Scratch, allocated and freed in stream order: [`scratch_bytes`]: the size of the items, of keys of 16 bytes up to
//! twice that, and 2 KiB per tile of 4,608 to 10,240 items for at most 2^30 items; or 1 KiB per 512 items.

mod by;
mod one_block;
mod operands;
mod passes;
mod pieces;
mod resident;
mod words;

use warpset_gpu::{DeviceSlice, DeviceSliceMut, DeviceVec, LaunchConfig, Stream};
use warpset_kernels::primitives::radix_sort::{self as kernels, SMALL_ITEMS};
use warpset_kernels::primitives::ranking::LOOK_BACK_ITEMS;
use warpset_kernels::primitives::resident_sort::{IN_PLACE, REVERSED};

use crate::{Result, check};
use one_block::sort_in_one_block;
use passes::{LIMITS, Passes, sort_in_passes};
use pieces::sort_in_pieces;

pub use by::By;
pub(crate) use operands::{SortInput, SortOutput};
pub use words::{Payload, SortKey};
pub(crate) use words::{Widths, by_key_width, by_widths, sealed};
#[cfg(test)]
pub(crate) use words::{key_of, sorted};

/// Largest number of items that one block sorts in one launch.
pub const ONE_BLOCK: usize = SMALL_ITEMS;

/// Queues a sort of `keys` into `out`.
///
/// # Errors
/// Before anything is queued: [`LengthMismatch`](crate::Error::LengthMismatch) if `out` is not as long as `keys`,
/// [`InvalidBitRange`](crate::Error::InvalidBitRange), [`Overlap`](crate::Error::Overlap).
///
/// # Safety
/// Until `stream` has passed this work:
/// - `keys` and `out` stay allocated;
/// - no other work writes `keys` or accesses `out`.
pub unsafe fn sort_keys_async<'a, K: SortKey>(
    stream: &Stream,
    keys: DeviceSlice<'_, K>,
    out: impl Into<DeviceSliceMut<'a, K>>,
    by: By,
) -> Result<()> {
    let out = out.into();
    check::same_len("sorted keys", keys.len(), out.len())?;
    check::on_device_of(stream, "a sort", &out)?;
    check::apart("keys and sorted keys", keys, &out)?;
    let (source, target) = (SortInput::keys(keys), SortOutput::keys(out));
    // SAFETY: the contract of this function; lengths are checked.
    unsafe { sort_items::<K>(stream, Widths::keys::<K>(), source, target, keys.len(), by, false) }
}

/// Queues a sort of `keys` with `values` into `out_keys` and `out_values`.
///
/// # Errors
/// Before anything is queued: [`LengthMismatch`](crate::Error::LengthMismatch) unless all four are of one length,
/// [`InvalidBitRange`](crate::Error::InvalidBitRange), [`Overlap`](crate::Error::Overlap).
///
/// # Safety
/// Until `stream` has passed this work:
/// - keys, values and both outputs stay allocated;
/// - no other work writes `keys` or `values` or accesses the outputs.
pub unsafe fn sort_pairs_async<'a, 'b, K: SortKey, V: Payload>(
    stream: &Stream,
    keys: DeviceSlice<'_, K>,
    values: DeviceSlice<'_, V>,
    out_keys: impl Into<DeviceSliceMut<'a, K>>,
    out_values: impl Into<DeviceSliceMut<'b, V>>,
    by: By,
) -> Result<()> {
    let (out_keys, out_values) = (out_keys.into(), out_values.into());
    let n = keys.len();
    check_pairs(stream, keys, values, &out_keys, &out_values)?;
    let (source, target) = (SortInput::pairs(keys, values), SortOutput::pairs(out_keys, out_values));
    // SAFETY: the contract of this function; lengths are checked.
    unsafe { sort_items::<K>(stream, Widths::pairs::<K, V>(), source, target, n, by, false) }
}

/// Queues a sort as [`sort_pairs_async`] does, with one launch per digit at every size. For operations in which a sort
/// is one step: the driver takes twice as long to compile the kernel that sorts in one launch, which gains nothing for
/// one or two digits.
///
/// # Errors
/// The errors of [`sort_pairs_async`].
///
/// # Safety
/// The contract of [`sort_pairs_async`].
pub unsafe fn sort_pairs_by_digits_async<'a, 'b, K: SortKey, V: Payload>(
    stream: &Stream,
    keys: DeviceSlice<'_, K>,
    values: DeviceSlice<'_, V>,
    out_keys: impl Into<DeviceSliceMut<'a, K>>,
    out_values: impl Into<DeviceSliceMut<'b, V>>,
    by: By,
) -> Result<()> {
    let n = keys.len();
    if n == 0 || by.is_reversed() {
        // SAFETY: the contract of this function.
        return unsafe { sort_pairs_async(stream, keys, values, out_keys, out_values, by) };
    }
    let (out_keys, out_values) = (out_keys.into(), out_values.into());
    check_pairs(stream, keys, values, &out_keys, &out_values)?;
    let (source, target) = (SortInput::pairs(keys, values), SortOutput::pairs(out_keys, out_values));
    let widths = Widths::pairs::<K, V>();
    let bits = by.range::<K>()?;
    if n <= ONE_BLOCK {
        // SAFETY: as above.
        return unsafe { sort_in_one_block(stream, widths, source, target, n as u32, bits, by.flip()) };
    }
    // SAFETY: as above.
    unsafe { sort_in_passes(stream, widths, source, target, n, bits, by.flip(), false, LIMITS) }
}

/// Checks that all four have one length and that the outputs do not overlap anything else.
pub(crate) fn check_pairs<K: SortKey, V: Payload>(
    stream: &Stream,
    keys: DeviceSlice<'_, K>,
    values: DeviceSlice<'_, V>,
    out_keys: &DeviceSliceMut<'_, K>,
    out_values: &DeviceSliceMut<'_, V>,
) -> Result<()> {
    let n = keys.len();
    check::same_len("payloads", n, values.len())?;
    check::same_len("sorted keys", n, out_keys.len())?;
    check::same_len("sorted payloads", n, out_values.len())?;
    check::on_device_of(stream, "a sort", out_keys)?;
    check::apart("keys and sorted keys", keys, out_keys)?;
    check::apart("payloads and sorted keys", values, out_keys)?;
    check::apart("keys and sorted payloads", keys, out_values)?;
    check::apart("payloads and sorted payloads", values, out_values)?;
    check::apart("sorted keys and sorted payloads", out_keys.as_slice(), out_values)
}

/// Queues a sort of `keys` in place.
///
/// # Errors
/// Before anything is queued: [`InvalidBitRange`](crate::Error::InvalidBitRange).
///
/// # Safety
/// Until `stream` has passed this work:
/// - `keys` stay allocated;
/// - no other work accesses them.
pub unsafe fn sort_keys_in_place_async<'a, K: SortKey>(
    stream: &Stream,
    keys: impl Into<DeviceSliceMut<'a, K>>,
    by: By,
) -> Result<()> {
    let keys = keys.into();
    check::on_device_of(stream, "a sort", &keys)?;
    let n = keys.len();
    let target = SortOutput::keys(keys);
    // SAFETY: the contract of this function.
    unsafe { sort_items::<K>(stream, Widths::keys::<K>(), target.as_source(), target, n, by, true) }
}

/// Queues a sort of `keys` with `values` in place.
///
/// # Errors
/// Before anything is queued: [`LengthMismatch`](crate::Error::LengthMismatch) unless both are of one length,
/// [`InvalidBitRange`](crate::Error::InvalidBitRange), [`Overlap`](crate::Error::Overlap).
///
/// # Safety
/// Until `stream` has passed this work:
/// - `keys` and `values` stay allocated;
/// - no other work accesses them.
pub unsafe fn sort_pairs_in_place_async<'a, 'b, K: SortKey, V: Payload>(
    stream: &Stream,
    keys: impl Into<DeviceSliceMut<'a, K>>,
    values: impl Into<DeviceSliceMut<'b, V>>,
    by: By,
) -> Result<()> {
    let (keys, values) = (keys.into(), values.into());
    let n = keys.len();
    check::same_len("payloads", n, values.len())?;
    check::on_device_of(stream, "a sort", &keys)?;
    check::apart("keys and payloads", keys.as_slice(), &values)?;
    let target = SortOutput::pairs(keys, values);
    // SAFETY: the contract of this function; lengths are checked.
    unsafe { sort_items::<K>(stream, Widths::pairs::<K, V>(), target.as_source(), target, n, by, true) }
}

/// Returns the bytes of temporary scratch for sorting `n` keys; `usize::MAX` for more than 2^56.
pub fn scratch_bytes<K: SortKey>(n: usize) -> usize {
    scratch(Widths::keys::<K>(), n)
}

/// Returns the bytes of temporary scratch for sorting `n` pairs; `usize::MAX` for more than 2^56.
pub fn pair_scratch_bytes<K: SortKey, V: Payload>(n: usize) -> usize {
    scratch(Widths::pairs::<K, V>(), n)
}

fn scratch(widths: Widths, n: usize) -> usize {
    if n <= one_block::most(&(0..8 * widths.key_bytes() as u32)) {
        return 0;
    }
    if n > 1 << 56 {
        return usize::MAX;
    }
    let layout = Passes::new(widths, n, 0..8 * widths.key_bytes() as u32, true, LOOK_BACK_ITEMS);
    // A device that cannot hold the items sorts by passes.
    let resident = if n <= resident::most(widths) { resident::words(n) } else { 0 };
    let words = (8 * layout.words()).max(4 * resident).max(8 * pieces::words(widths, n));
    pieces::items(widths, n) * (widths.key_bytes() + widths.value_bytes()) + words
}

/// Queues the copy of `n` items in reverse order.
///
/// # Safety
/// The contract of the public functions that are not in place; `source` and `target` hold `n` items of these widths.
unsafe fn reverse_items<K: SortKey>(
    stream: &Stream,
    widths: Widths,
    source: SortInput,
    target: SortOutput,
    n: usize,
) -> Result<()> {
    let reverse = kernels::radix_sort_reverse::<K> {
        keys: source.keys.cast(),
        values: source.values.cast(),
        n,
        value_words: widths.value_bytes() as u32 / 4,
        out_keys: target.keys.cast(),
        out_values: target.values.cast(),
    };
    let blocks = n.div_ceil(kernels::REVERSE_BLOCK as usize).clamp(1, 1 << 16) as u32;
    // SAFETY: the contract of this function.
    unsafe { reverse.launch(stream, LaunchConfig::new(blocks, kernels::REVERSE_BLOCK))? };
    Ok(())
}

/// Sorts `n` items; with `in_place`, `source` and `target` are the same.
///
/// # Safety
/// The contract of the public functions; `source` and `target` hold `n` items of these widths.
unsafe fn sort_items<K: SortKey>(
    stream: &Stream,
    widths: Widths,
    source: SortInput,
    target: SortOutput,
    n: usize,
    by: By,
    in_place: bool,
) -> Result<()> {
    let bits = by.range::<K>()?;
    if n == 0 || (bits.is_empty() && in_place && !by.is_reversed()) {
        return Ok(());
    }
    if by.flip() == 0
        && let Some(piece) = pieces::length(stream, widths, n, &bits)?
    {
        // SAFETY: the contract of this function.
        return unsafe { sort_in_pieces::<K>(stream, widths, source, target, n, piece, by) };
    }
    let reversed = by.is_reversed();
    if reversed && in_place {
        let (keys_bytes, values_bytes) = (n * widths.key_bytes(), n * widths.value_bytes());
        let mut copy: DeviceVec<u64> = stream.alloc_uninit(keys_bytes.div_ceil(8) + values_bytes.div_ceil(8))?;
        let copy = copy.global_mut();
        let copy = SortOutput { keys: copy.cast(), values: copy.at(keys_bytes.div_ceil(8)).cast() };
        // SAFETY: the contract of this function; the copy belongs to this call and is freed in stream order.
        return unsafe {
            reverse_items::<K>(stream, widths, source, copy, n)?;
            sort_items::<K>(stream, widths, copy.as_source(), target, n, by.of_reversed(), false)
        };
    }
    let in_one_block = one_block::most(&bits);
    if n <= in_one_block && !reversed {
        // SAFETY: the contract of this function.
        return unsafe { sort_in_one_block(stream, widths, source, target, n as u32, bits, by.flip()) };
    }
    let device = stream.device();
    if n > in_one_block
        && n <= resident::most(widths)
        && let Some(grid) = resident::Grid::new(device, widths, n, &bits)?
    {
        let flags = if in_place { IN_PLACE } else { 0 } | if reversed { REVERSED } else { 0 };
        // SAFETY: the contract of this function; reversed items are not in place.
        return unsafe { resident::sort_resident(stream, widths, source, target, n, bits, by.flip(), flags, grid) };
    }
    if reversed {
        // SAFETY: the contract of this function.
        return unsafe {
            reverse_items::<K>(stream, widths, source, target, n)?;
            sort_items::<K>(stream, widths, target.as_source(), target, n, by.of_reversed(), true)
        };
    }
    if n <= ONE_BLOCK {
        // SAFETY: the contract of this function.
        return unsafe { sort_in_one_block(stream, widths, source, target, n as u32, bits, by.flip()) };
    }
    // SAFETY: the contract of this function.
    unsafe { sort_in_passes(stream, widths, source, target, n, bits, by.flip(), in_place, LIMITS) }
}

#[cfg(test)]
mod tests;

//! Stable sort of each segment of an array, by any range of bits.
//!
//! Segments are given by ascending offsets on the device: segment `s` holds the items `offsets[s]..offsets[s + 1]`.
//! They may be empty, or as long as the array. The lengths decide the method (see
//! [`warpset_kernels::primitives::segmented_sort`]), on the device, so nothing waits for the host.
//!
//! Scratch, allocated and freed in stream order: an eighth of a byte per item; beyond 2048 items also the size of the
//! items, and per 2048 items about 6 KiB and 2 KiB for every 8 bits to sort by.

use warpset_base::filter::LengthMismatch;
use warpset_gpu::{DeviceSlice, DeviceSliceMut, DeviceVec, LaunchConfig, Stream};
use warpset_kernels::primitives::onesweep_tile::PassShape;
use warpset_kernels::primitives::ranking::{DIGIT_BITS, DIGITS, Digit};
use warpset_kernels::primitives::segmented_sort::{
    self as kernels, COUNT_BLOCK, COUNT_SHARED_BYTES, FIND_BLOCK, SHORT, SHORT_BLOCK, SHORT_SHARED_BYTES_U32,
    SHORT_SHARED_BYTES_U64, WINDOW,
};

use crate::sort::sealed::KeyWidth;
use crate::sort::{By, Payload, SortInput, SortKey, SortOutput, Widths, by_widths, check_pairs};
use crate::{Error, Result, check};

/// Queues a sort of each segment of `keys` into `out`. Places before the first offset and after the last are unchanged.
///
/// # Errors
/// Before anything is queued: [`Error::LengthMismatch`] if `out` is not as long as `keys` or there is no offset,
/// [`Error::InvalidBitRange`], [`Error::Overlap`], [`Error::TooLong`].
///
/// # Safety
/// Until `stream` has passed this work:
/// - `keys`, `offsets` and `out` stay allocated;
/// - no other work writes `keys` or `offsets` or accesses `out`.
///
/// `offsets` ascend, and the last one is at most the number of keys.
pub unsafe fn sort_keys_async<'a, K: SortKey>(
    stream: &Stream,
    keys: DeviceSlice<'_, K>,
    offsets: DeviceSlice<'_, u64>,
    out: impl Into<DeviceSliceMut<'a, K>>,
    by: By,
) -> Result<()> {
    let out = out.into();
    check::same_len("sorted keys", keys.len(), out.len())?;
    check::on_device_of(stream, "a sort", &out)?;
    check::apart("keys and sorted keys", keys, &out)?;
    check::apart("offsets and sorted keys", offsets, &out)?;
    let (source, target) = (SortInput::keys(keys), SortOutput::keys(out));
    // SAFETY: the contract of this function; lengths are checked.
    unsafe { sort_segments::<K>(stream, Widths::keys::<K>(), source, offsets, target, keys.len(), by) }
}

/// Queues a sort of each segment of `keys` with `values` into `out_keys` and `out_values`.
///
/// # Errors
/// The errors of [`sort_keys_async`].
///
/// # Safety
/// The contract of [`sort_keys_async`]; `values` as `keys`, and both outputs as its `out`.
pub unsafe fn sort_pairs_async<'a, 'b, K: SortKey, V: Payload>(
    stream: &Stream,
    keys: DeviceSlice<'_, K>,
    values: DeviceSlice<'_, V>,
    offsets: DeviceSlice<'_, u64>,
    out_keys: impl Into<DeviceSliceMut<'a, K>>,
    out_values: impl Into<DeviceSliceMut<'b, V>>,
    by: By,
) -> Result<()> {
    let (out_keys, out_values) = (out_keys.into(), out_values.into());
    check_pairs(stream, keys, values, &out_keys, &out_values)?;
    check::apart("offsets and sorted keys", offsets, &out_keys)?;
    check::apart("offsets and sorted payloads", offsets, &out_values)?;
    let (source, target) = (SortInput::pairs(keys, values), SortOutput::pairs(out_keys, out_values));
    // SAFETY: the contract of this function; lengths are checked.
    unsafe { sort_segments::<K>(stream, Widths::pairs::<K, V>(), source, offsets, target, keys.len(), by) }
}

/// Returns the bytes of temporary scratch for sorting the segments of `n` keys; `usize::MAX` for more than 2^56.
pub fn scratch_bytes<K: SortKey>(n: usize) -> usize {
    scratch(Widths::keys::<K>(), n)
}

/// Returns the bytes of temporary scratch for sorting the segments of `n` pairs; `usize::MAX` for more than 2^56.
pub fn pair_scratch_bytes<K: SortKey, V: Payload>(n: usize) -> usize {
    scratch(Widths::pairs::<K, V>(), n)
}

fn scratch(widths: Widths, n: usize) -> usize {
    if n > 1 << 56 {
        return usize::MAX;
    }
    let layout = ScratchLayout::new(widths, n, widths.key_bytes() as u32);
    8 * layout.words() + if layout.long == 0 { 0 } else { n * (widths.key_bytes() + widths.value_bytes()) }
}

/// Layout of scratch, in words of 8 bytes. Zero at first: the bitmap, the two counts of found segments, the tickets.
/// Zero once short segments are sorted, as far as there are long ones: their digit counts, the first half of the
/// look-back words. Then: the second half, the long segments, their tiles.
struct ScratchLayout {
    shape: PassShape,
    passes: u32,
    /// Words of 4 bytes in the bitmap.
    bitmap: usize,
    /// Largest number of long segments.
    long: usize,
    /// Largest number of their tiles.
    tiles: usize,
}

impl ScratchLayout {
    fn new(widths: Widths, n: usize, passes: u32) -> ScratchLayout {
        let shape = by_widths!(
            widths,
            kernels::{
                LONG_U32, LONG_U32_U32, LONG_U32_U64, LONG_U64, LONG_U64_U32, LONG_U64_U64, LONG_U128, LONG_U128_U32,
                LONG_U128_U64
            },
            |shape| shape
        );
        let long = n / (SHORT + 1);
        let tiles = if long == 0 { 0 } else { n / shape.tile + long };
        ScratchLayout { shape, passes, bitmap: n / 32 + 1, long, tiles }
    }

    fn found_at(&self) -> usize {
        self.bitmap.div_ceil(2)
    }

    fn tickets_at(&self) -> usize {
        self.found_at() + 1
    }

    fn counts_at(&self) -> usize {
        self.tickets_at() + self.passes as usize
    }

    fn look_back_at(&self, half: u32) -> usize {
        self.counts_at() + (self.long * self.passes as usize + half as usize * self.tiles) * DIGITS as usize
    }

    fn long_at(&self) -> usize {
        self.look_back_at(2)
    }

    fn tiles_at(&self) -> usize {
        self.long_at() + 2 * self.long
    }

    fn words(&self) -> usize {
        self.tiles_at() + self.tiles
    }
}

/// Queues a sort of segments.
///
/// # Safety
/// The contract of the public functions; `source` and `target` hold `n` items of these widths.
unsafe fn sort_segments<K: SortKey>(
    stream: &Stream,
    widths: Widths,
    source: SortInput,
    offsets: DeviceSlice<'_, u64>,
    target: SortOutput,
    n: usize,
    by: By,
) -> Result<()> {
    let bits = by.range::<K>()?;
    if offsets.is_empty() {
        return Err(LengthMismatch { what: "offsets", needed: 1, found: 0 }.into());
    }
    let segments = offsets.len() - 1;
    if n == 0 || segments == 0 {
        return Ok(());
    }
    let (begin, width, flip) = (bits.start, bits.end - bits.start, by.flip());
    // Without bits, one pass by a digit of no bits copies.
    let passes = width.div_ceil(DIGIT_BITS).max(1);
    let layout = ScratchLayout::new(widths, n, passes);
    // Tiles are counted in 32 bits.
    if layout.tiles > i32::MAX as usize {
        return Err(Error::TooLong { len: n, max: i32::MAX as usize / 2 * SHORT });
    }
    let windows = check::tiles(n, WINDOW)?;

    let mut words: DeviceVec<u64> = stream.alloc_uninit(layout.words())?;
    stream.fill_bytes(words.slice_mut(..layout.counts_at()), 0)?;
    let words = words.global_mut();
    let (bitmap, found) = (words.cast::<u32>(), words.at(layout.found_at()));
    let (long, tiles) = (words.at(layout.long_at()), words.at(layout.tiles_at()));
    let tile_items = layout.shape.tile as u32;
    // SAFETY: scratch has the layout of the kernels' contracts, belongs to this call and is freed in stream order;
    // items and offsets are covered by the contract of this function.
    unsafe {
        let config = LaunchConfig::covering(segments + 1, FIND_BLOCK);
        kernels::segmented_sort_find {
            offsets: offsets.global(),
            segments,
            tile_items,
            begins: bitmap,
            long,
            tiles,
            found,
        }
        .launch(stream, config)?;
        let shared = if widths.keys == KeyWidth::U32 { SHORT_SHARED_BYTES_U32 } else { SHORT_SHARED_BYTES_U64 };
        let config = LaunchConfig::new(windows, SHORT_BLOCK).shared(shared);
        by_widths!(
            widths,
            kernels::{
                segmented_sort_short_u32, segmented_sort_short_u32_u32, segmented_sort_short_u32_u64,
                segmented_sort_short_u64, segmented_sort_short_u64_u32, segmented_sort_short_u64_u64,
                segmented_sort_short_u128, segmented_sort_short_u128_u32, segmented_sort_short_u128_u64
            },
            |kernel| kernel {
                keys: source.keys.cast(),
                values: source.values.cast(),
                out_keys: target.keys.cast(),
                out_values: target.values.cast(),
                begin,
                bits: width,
                passes,
                flip,
                begins: bitmap.as_const(),
                words: layout.bitmap,
                found: found.as_const(),
                counts: words.at(layout.counts_at()),
                look_back: words.at(layout.look_back_at(0)),
            }
            .launch(stream, config)?
        );
        if layout.long > 0 {
            sort_long(stream, widths, source, target, n, begin, width, flip, &layout, words)?;
        }
    }
    Ok(())
}

/// Queues the passes over long segments, if there are any.
///
/// # Safety
/// The contract of [`sort_segments`]; segments have been found, and `words` is the scratch.
#[allow(clippy::too_many_arguments)] // what there is to say of a sort
unsafe fn sort_long(
    stream: &Stream,
    widths: Widths,
    source: SortInput,
    target: SortOutput,
    n: usize,
    begin: u32,
    width: u32,
    flip: u32,
    layout: &ScratchLayout,
    words: warpset_simt::GlobalMut<u64>,
) -> Result<()> {
    let ScratchLayout { shape, passes, .. } = *layout;
    let mut scratch_keys: DeviceVec<u8> = stream.alloc_uninit(n * widths.key_bytes())?;
    let mut scratch_values: DeviceVec<u8> = stream.alloc_uninit(n * widths.value_bytes())?;
    let scratch = SortOutput { keys: scratch_keys.global_mut(), values: scratch_values.global_mut() };
    let (found, counts) = (words.at(layout.found_at()).as_const(), words.at(layout.counts_at()));
    let (long, tiles) = (words.at(layout.long_at()).as_const(), words.at(layout.tiles_at()).as_const());
    let tile_items = shape.tile as u32;
    let multiprocessors = stream.device().properties().multiprocessors;
    let grid = |blocks: u32| (layout.tiles as u32).min(multiprocessors * blocks);
    // SAFETY: the contract of this function; each pass reads the output of the previous one, which is not its own
    // output.
    unsafe {
        let config = LaunchConfig::new(grid(4), COUNT_BLOCK).shared(COUNT_SHARED_BYTES);
        macro_rules! count {
            ($kernel:ident) => {{
                let (keys, bits) = (source.keys.cast(), width);
                kernels::$kernel { keys, begin, bits, passes, flip, tile_items, long, tiles, found, counts }
                    .launch(stream, config)?
            }};
        }
        match widths.keys {
            KeyWidth::U32 => count!(segmented_sort_count_u32),
            KeyWidth::U64 => count!(segmented_sort_count_u64),
            KeyWidth::U128 => count!(segmented_sort_count_u128),
        }
        let config = LaunchConfig::new(grid(4), shape.threads).shared(shape.shared_bytes);
        let mut from = source;
        for pass in 0..passes {
            // The last pass writes the output.
            let to = if (passes - 1 - pass) % 2 == 0 { target } else { scratch };
            let digit = Digit::of_pass(begin, width, pass, passes, flip);
            let look_back = words.at(layout.look_back_at(pass % 2));
            let next = words.at(layout.look_back_at(1 - pass % 2));
            let ticket = words.at(layout.tickets_at() + pass as usize).cast();
            by_widths!(
                widths,
                kernels::{
                    segmented_sort_pass_u32, segmented_sort_pass_u32_u32, segmented_sort_pass_u32_u64,
                    segmented_sort_pass_u64, segmented_sort_pass_u64_u32, segmented_sort_pass_u64_u64,
                    segmented_sort_pass_u128, segmented_sort_pass_u128_u32, segmented_sort_pass_u128_u64
                },
                |kernel| kernel {
                    keys: from.keys.cast(),
                    values: from.values.cast(),
                    out_keys: to.keys.cast(),
                    out_values: to.values.cast(),
                    digit,
                    at: pass,
                    passes,
                    long,
                    tiles,
                    found,
                    counts: counts.as_const(),
                    look_back,
                    next_look_back: next,
                    ticket,
                }
                .launch(stream, config)?
            );
            from = to.as_source();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;

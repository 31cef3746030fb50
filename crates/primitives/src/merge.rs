//! Stable merges of sorted runs: of equal keys those of the earlier run come first, and the order within a run is kept.
//!
//! [`merge_keys_async`] and [`merge_pairs_async`] merge two runs; [`merge_many_keys_async`] and
//! [`merge_many_pairs_async`] merge up to [`MAX_RUNS`] in one pass, optionally with a status bit per item;
//! [`merge_newest_keys_async`] and [`merge_newest_pairs_async`] omit stale items. Keys are compared by the bits of a
//! [`KeyMask`], and the runs are sorted by those bits. Unsorted keys are all written, in some order, and no other
//! memory is touched. Lengths may exceed 2^32.
//!
//! Scratch, allocated and freed in stream order. Two runs: none up to 2^22 items, beyond that 8 bytes per tile of some
//! thousands of items. More runs: 64 to 256 bytes per tile, and a kilobyte.

mod many;

use warpset_gpu::{DeviceSlice, DeviceSliceMut, GpuError, LaunchConfig, Stream};
use warpset_kernels::primitives::merge::{
    self as kernels, A_SKEW_SHIFT, B_SKEW_SHIFT, OUT_ALIGNED, SPLIT_BLOCK, SPLITS_KNOWN,
};
use warpset_kernels::primitives::tile_shape::TileShape;
use warpset_simt::{Global, GlobalMut};

use crate::check::{apart, on_device_of, same_len, tiles};
use crate::sort::{Payload, SortKey, Widths, by_key_width, by_widths};
use crate::{KeyMask, Result};

pub(crate) use many::merge_pieces;
pub use many::{
    MAX_RUNS, Marked, WithStatus, merge_many_keys_async, merge_many_keys_with_status_async, merge_many_pairs_async,
    merge_many_pairs_with_status_async, merge_newest_keys_async, merge_newest_pairs_async,
};

/// Largest number of items merged by one launch. For more, a launch before it finds where the tiles begin.
const ONE_LAUNCH: usize = 1 << 22;
/// Largest number of items merged in short tiles, so that there are enough tiles for the device.
const SHORT: usize = 1 << 20;

/// Sorted run of keys, with one value per key.
#[derive(Clone, Copy, Debug)]
pub struct Pairs<'a, K, V> {
    /// Keys.
    pub keys: DeviceSlice<'a, K>,
    /// One value per key.
    pub values: DeviceSlice<'a, V>,
}

impl<'a, K: SortKey, V: Payload> Pairs<'a, K, V> {
    /// Returns a run of keys and their values.
    pub fn new(keys: impl Into<DeviceSlice<'a, K>>, values: impl Into<DeviceSlice<'a, V>>) -> Self {
        Self { keys: keys.into(), values: values.into() }
    }

    fn check(&self) -> Result<()> {
        same_len("values of a run", self.keys.len(), self.values.len())
    }

    fn check_apart(&self, out_keys: &DeviceSliceMut<'_, K>, out_values: &DeviceSliceMut<'_, V>) -> Result<()> {
        apart("a run and the merged keys", self.keys, out_keys)?;
        apart("a run and the merged values", self.keys, out_values)?;
        apart("a run's values and the merged keys", self.values, out_keys)?;
        apart("a run's values and the merged values", self.values, out_values)
    }
}

/// Queues the merge of two sorted runs of keys into `out`.
///
/// # Errors
/// Before anything is queued: [`LengthMismatch`](crate::Error::LengthMismatch) unless `out` is as long as both runs,
/// [`Overlap`](crate::Error::Overlap) if it shares memory with one of them.
///
/// # Safety
/// Until `stream` has passed this work:
/// - both runs and `out` stay allocated;
/// - no other work writes the runs or accesses `out`.
pub unsafe fn merge_keys_async<'a, K: SortKey>(
    stream: &Stream,
    a: DeviceSlice<'_, K>,
    b: DeviceSlice<'_, K>,
    mask: KeyMask<K>,
    out: impl Into<DeviceSliceMut<'a, K>>,
) -> Result<()> {
    let mut out = out.into();
    same_len("merged keys", a.len() + b.len(), out.len())?;
    on_device_of(stream, "a merge", &out)?;
    for run in [a, b] {
        apart("a run and the merged keys", run, &out)?;
    }
    let out = out.global_mut();
    // The kernels without values read none.
    let run = |keys: DeviceSlice<'_, K>| Run::<K, u32> { keys: keys.global(), values: keys.global().cast() };
    // SAFETY: lengths were checked; the rest is the contract of this function.
    unsafe { merge(stream, run(a), run(b), mask, out, out.cast(), false) }
}

/// Queues the merge of two sorted runs of keys with values into `out_keys` and `out_values`.
///
/// # Errors
/// The errors of [`merge_keys_async`]; [`LengthMismatch`](crate::Error::LengthMismatch) unless there is one value per
/// key.
///
/// # Safety
/// Until `stream` has passed this work:
/// - keys and values of both runs and both outputs stay allocated;
/// - no other work writes the runs or accesses the outputs.
pub unsafe fn merge_pairs_async<'a, K: SortKey, V: Payload>(
    stream: &Stream,
    a: Pairs<'_, K, V>,
    b: Pairs<'_, K, V>,
    mask: KeyMask<K>,
    out_keys: impl Into<DeviceSliceMut<'a, K>>,
    out_values: impl Into<DeviceSliceMut<'a, V>>,
) -> Result<()> {
    let (mut out_keys, mut out_values) = (out_keys.into(), out_values.into());
    a.check()?;
    b.check()?;
    same_len("merged keys", a.keys.len() + b.keys.len(), out_keys.len())?;
    same_len("merged values", out_keys.len(), out_values.len())?;
    on_device_of(stream, "a merge", &out_keys)?;
    apart("merged keys and merged values", out_keys.as_slice(), &out_values)?;
    for run in [a, b] {
        run.check_apart(&out_keys, &out_values)?;
    }
    let run = |run: Pairs<'_, K, V>| Run { keys: run.keys.global(), values: run.values.global() };
    // SAFETY: lengths were checked; the rest is the contract of this function.
    unsafe { merge(stream, run(a), run(b), mask, out_keys.global_mut(), out_values.global_mut(), true) }
}

/// Run as a kernel takes it.
#[derive(Clone, Copy)]
struct Run<K, V> {
    keys: Global<K>,
    values: Global<V>,
}

/// Launches of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Launches {
    /// One launch with small tiles, which search for their own beginnings.
    OneShort,
    /// One launch with large tiles, which search for their own beginnings.
    One,
    /// Two launches: the search for the beginnings of large tiles, and the merge.
    Two,
}

impl Launches {
    fn of(total: usize) -> Launches {
        match total {
            n if n <= SHORT => Launches::OneShort,
            n if n <= ONE_LAUNCH => Launches::One,
            _ => Launches::Two,
        }
    }
}

/// Queues the merge of two runs.
///
/// # Safety
/// The contract of [`merge_pairs_async`], with checked lengths.
unsafe fn merge<K: SortKey, V: Payload>(
    stream: &Stream,
    a: Run<K, V>,
    b: Run<K, V>,
    mask: KeyMask<K>,
    out_keys: GlobalMut<K>,
    out_values: GlobalMut<V>,
    pairs: bool,
) -> Result<()> {
    let launches = Launches::of(a.keys.len() + b.keys.len());
    // SAFETY: the contract of this function.
    unsafe { merge_by(launches, stream, a, b, mask, out_keys, out_values, pairs) }
}

/// Queues the merge of two runs by the given launches.
///
/// # Safety
/// The contract of [`merge`].
#[allow(clippy::too_many_arguments)] // those of a kernel
unsafe fn merge_by<K: SortKey, V: Payload>(
    launches: Launches,
    stream: &Stream,
    a: Run<K, V>,
    b: Run<K, V>,
    mask: KeyMask<K>,
    out_keys: GlobalMut<K>,
    out_values: GlobalMut<V>,
    pairs: bool,
) -> Result<()> {
    let widths = if pairs { Widths::pairs::<K, V>() } else { Widths::keys::<K>() };
    let bytes = |run: Run<K, V>| Run { keys: run.keys.cast(), values: run.values.cast() };
    // SAFETY: the arrays are the caller's, and `widths` says what their bytes are.
    unsafe { launch(widths, launches, stream, bytes(a), bytes(b), mask.bits(), out_keys.cast(), out_values.cast()) }
}

/// Queues a merge of runs of these widths. Not generic, so that it is compiled here and not in each program.
///
/// # Safety
/// The contract of [`merge`]; keys and values have the types of `widths`.
#[allow(clippy::too_many_arguments)] // those of a kernel
unsafe fn launch(
    widths: Widths,
    launches: Launches,
    stream: &Stream,
    a: Run<u8, u8>,
    b: Run<u8, u8>,
    mask: u128,
    out_keys: GlobalMut<u8>,
    out_values: GlobalMut<u8>,
) -> Result<()> {
    let [a_len, b_len] = [a, b].map(|run| run.keys.len() / widths.key_bytes());
    let total = a_len + b_len;
    if total == 0 {
        return Ok(());
    }
    let two_launches = launches == Launches::Two;
    // Keys between the last multiple of 16 bytes and the beginning of an array.
    let skew = |address: usize| (address % 16 / widths.key_bytes()) as u32;
    let skews = (skew(a.keys.as_ptr().addr()), skew(b.keys.as_ptr().addr()), skew(out_keys.as_ptr().addr()));
    let flags = if two_launches { SPLITS_KNOWN } else { 0 }
        | if skews.2 == 0 { OUT_ALIGNED } else { 0 }
        | skews.0 << A_SKEW_SHIFT
        | skews.1 << B_SKEW_SHIFT;
    let search = by_key_width!(widths, search_splits);
    let splits = |shape: TileShape, tiles: usize| {
        let mut splits = stream.alloc_uninit::<u64>(if two_launches { tiles + 1 } else { 0 })?;
        if two_launches {
            // SAFETY: keys have the type of `widths`, `splits` one element per tile and one more; the arrays are the
            // caller's.
            unsafe { search(stream, a.keys, b.keys, mask, shape.tile(), tiles, splits.global_mut())? };
        }
        Ok::<_, GpuError>(splits)
    };
    macro_rules! launch {
        ($kernel:ident) => {{
            let shape = $kernel::SHAPE;
            let tiles = tiles(total, shape.tile())?;
            let splits = splits(shape, tiles as usize)?;
            let config = LaunchConfig::new(tiles, shape.threads).shared(shape.shared_bytes);
            let (out_keys, out_values) = (out_keys.cast(), out_values.cast());
            let (a, b) = ((a.keys.cast(), a.values.cast()), (b.keys.cast(), b.values.cast()));
            let splits = splits.global();
            // SAFETY: the shape is the kernel's own, and the types have the sizes of the kernel's; the rest is the
            // contract of this function.
            unsafe {
                $kernel {
                    a_keys: a.0,
                    a_values: a.1,
                    a_len,
                    b_keys: b.0,
                    b_values: b.1,
                    b_len,
                    mask: mask as _,
                    splits,
                    flags,
                    out_keys,
                    out_values,
                }
                .launch(stream, config)?
            }
        }};
    }
    if launches == Launches::OneShort {
        by_widths!(
            widths,
            kernels::{
                merge_u32_short, merge_u32_u32_short, merge_u32_u64_short, merge_u64_short, merge_u64_u32_short,
                merge_u64_u64_short, merge_u128_short, merge_u128_u32_short, merge_u128_u64_short
            },
            |kernel| launch!(kernel)
        );
    } else {
        by_widths!(
            widths,
            kernels::{
                merge_u32, merge_u32_u32, merge_u32_u64, merge_u64, merge_u64_u32, merge_u64_u64, merge_u128,
                merge_u128_u32, merge_u128_u64
            },
            |kernel| launch!(kernel)
        );
    }
    Ok(())
}

/// Queues the search for the place of each tile in both runs.
///
/// # Safety
/// - Both runs are arrays of `K`; `splits` is valid for `tiles + 1` writes.
/// - Until `stream` has passed this work they stay allocated, and no other work writes the runs or accesses `splits`.
unsafe fn search_splits<K: SortKey>(
    stream: &Stream,
    a: Global<u8>,
    b: Global<u8>,
    mask: u128,
    tile_items: usize,
    tiles: usize,
    splits: GlobalMut<u64>,
) -> std::result::Result<(), GpuError> {
    let (a, b, mask) = (a.cast::<K>(), b.cast::<K>(), K::from_bits(mask));
    let kernel = kernels::merge_splits { a, a_len: a.len(), b, b_len: b.len(), mask, tile_items, tiles, splits };
    // SAFETY: the caller's contract covers the arrays; the kernel takes any grid.
    unsafe { kernel.launch(stream, LaunchConfig::covering(tiles + 1, SPLIT_BLOCK)) }
}

#[cfg(test)]
mod tests;

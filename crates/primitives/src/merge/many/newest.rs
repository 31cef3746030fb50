//! The merge of many runs without what is stale, in one pass.

use warpset_gpu::{DeviceSlice, DeviceSliceMut, LaunchConfig, Stream};
use warpset_kernels::primitives::merge_many::merge_many_splits;
use warpset_kernels::primitives::merge_many::newest as kernels;
use warpset_simt::{GlobalMut, KernelInfo};

use super::{Operands, Outputs, WithStatus, prepare};
use crate::check::{apart, on_device_of, same_len};
use crate::error::check_len;
use crate::merge::Pairs;
use crate::sort::{Payload, SortKey, Widths, by_widths};
use crate::{KeyMask, LookBack, Result};

/// What becomes of the first of equal keys if its status bit is set.
#[derive(Debug)]
pub enum Marked<'a> {
    /// It is dropped as well: nothing is left of the key.
    Dropped,
    /// It is kept, and its bit goes here: a word for each 32 items of all runs. Bits of what is not written are clear.
    Kept(DeviceSliceMut<'a, u32>),
}

/// Queues the merge of up to [`MAX_RUNS`](super::MAX_RUNS) sorted runs of keys into `out`, in one pass, without what is
/// stale: of equal keys the first is kept alone, that of the earliest run that has the key, and it too is dropped if its
/// status bit is set, unless `marked` says otherwise. The number of kept keys goes to `count`, one word.
///
/// # Errors
/// Before anything is queued: [`TooManyRuns`](crate::Error::TooManyRuns);
/// [`LengthMismatch`](crate::Error::LengthMismatch) if `out` or the memory for status bits is shorter than all runs are,
/// or a run's bitmap is not as long as its bits take; [`Overlap`](crate::Error::Overlap) if an output shares memory with
/// a run or another output.
///
/// # Safety
/// Until `stream` has passed this work:
/// - all runs and outputs stay allocated;
/// - no other work writes the runs or accesses the outputs.
pub unsafe fn merge_newest_keys_async<'a, 'b, K: SortKey>(
    stream: &Stream,
    runs: &[WithStatus<'_, DeviceSlice<'_, K>>],
    mask: KeyMask<K>,
    marked: Marked<'_>,
    out: impl Into<DeviceSliceMut<'a, K>>,
    count: impl Into<DeviceSliceMut<'b, u64>>,
) -> Result<()> {
    let (mut out, count) = (out.into(), count.into());
    let operands = Operands::of_keys(runs.iter().map(|run| (run.run, run.status)), &out)?;
    check_len("kept keys", operands.total, out.len())?;
    on_device_of(stream, "a merge", &out)?;
    same_len("the count", 1, count.len())?;
    on_device_of(stream, "a merge", &count)?;
    apart("kept keys and the count", out.as_slice(), &count)?;
    for run in runs {
        apart("a run and the count", run.run, &count)?;
        check_kept(&marked, run.run, run.status)?;
    }
    let status = status_of(stream, marked, operands.total, &out, &count)?;
    let out = Outputs { keys: out.global_mut(), values: out.global_mut(), status };
    // SAFETY: lengths were checked; the kernels without values do not look at any; the caller answers for the rest.
    unsafe { merge(stream, Widths::keys::<K>(), operands, mask, out, count) }
}

/// [`merge_newest_keys_async`] of keys with values.
///
/// # Errors
/// As there; and [`LengthMismatch`](crate::Error::LengthMismatch) unless keys and values are as many.
///
/// # Safety
/// As there, for values too.
pub unsafe fn merge_newest_pairs_async<'a, 'b, 'c, K: SortKey, V: Payload>(
    stream: &Stream,
    runs: &[WithStatus<'_, Pairs<'_, K, V>>],
    mask: KeyMask<K>,
    marked: Marked<'_>,
    out_keys: impl Into<DeviceSliceMut<'a, K>>,
    out_values: impl Into<DeviceSliceMut<'b, V>>,
    count: impl Into<DeviceSliceMut<'c, u64>>,
) -> Result<()> {
    let (mut out_keys, mut out_values, count) = (out_keys.into(), out_values.into(), count.into());
    let operands = Operands::of_pairs(runs.iter().map(|run| (run.run, run.status)), &out_keys, &out_values)?;
    check_len("kept keys", operands.total, out_keys.len())?;
    check_len("kept values", operands.total, out_values.len())?;
    on_device_of(stream, "a merge", &out_keys)?;
    apart("kept keys and kept values", out_keys.as_slice(), &out_values)?;
    same_len("the count", 1, count.len())?;
    on_device_of(stream, "a merge", &count)?;
    apart("kept keys and the count", out_keys.as_slice(), &count)?;
    apart("kept values and the count", out_values.as_slice(), &count)?;
    for run in runs {
        apart("a run and the count", run.run.keys, &count)?;
        apart("a run's values and the count", run.run.values, &count)?;
        check_kept(&marked, run.run.keys, run.status)?;
        if let Marked::Kept(kept) = &marked {
            apart("a run's values and the kept status bits", run.run.values, kept)?;
        }
    }
    if let Marked::Kept(kept) = &marked {
        apart("kept values and the kept status bits", out_values.as_slice(), kept)?;
    }
    let status = status_of(stream, marked, operands.total, &out_keys, &count)?;
    let out = Outputs { keys: out_keys.global_mut(), values: out_values.global_mut(), status };
    // SAFETY: lengths were checked; the caller answers for the rest.
    unsafe { merge(stream, Widths::pairs::<K, V>(), operands, mask, out, count) }
}

/// A run and its status bits share no byte with those that are kept.
fn check_kept<K: SortKey>(
    marked: &Marked<'_>,
    keys: DeviceSlice<'_, K>,
    status: Option<DeviceSlice<'_, u32>>,
) -> Result<()> {
    let Marked::Kept(kept) = marked else { return Ok(()) };
    apart("a run and the kept status bits", keys, kept)?;
    status.map_or(Ok(()), |status| apart("a run's status bits and the kept ones", status, kept))
}

/// Checks the memory for status bits that are kept, and queues that they are cleared.
fn status_of<K: SortKey>(
    stream: &Stream,
    marked: Marked<'_>,
    total: usize,
    out: &DeviceSliceMut<'_, K>,
    count: &DeviceSliceMut<'_, u64>,
) -> Result<Option<GlobalMut<u32>>> {
    let Marked::Kept(mut kept) = marked else { return Ok(None) };
    let words = total.div_ceil(32);
    check_len("words of kept status bits", words, kept.len())?;
    on_device_of(stream, "a merge", &kept)?;
    apart("kept keys and kept status bits", out.as_slice(), &kept)?;
    apart("the count and kept status bits", count.as_slice(), &kept)?;
    let global = kept.global_mut();
    if words != 0 {
        stream.fill_bytes(kept.slice_mut(..words), 0)?;
    }
    Ok(Some(global))
}

/// The kernels that [`merge_newest_keys_async`] launches, for
/// [`Device::with_kernels`](warpset_gpu::Device::with_kernels).
pub fn kernels_for_newest_keys<K: SortKey>() -> Vec<&'static KernelInfo> {
    launched::<K>(Widths::keys::<K>())
}

/// The same with values.
pub fn kernels_for_newest_pairs<K: SortKey, V: Payload>() -> Vec<&'static KernelInfo> {
    launched::<K>(Widths::pairs::<K, V>())
}

fn launched<K: SortKey>(widths: Widths) -> Vec<&'static KernelInfo> {
    let merge = by_widths!(
        widths,
        kernels::{
            merge_newest_u32, merge_newest_u32_u32, merge_newest_u32_u64, merge_newest_u64, merge_newest_u64_u32,
            merge_newest_u64_u64
        },
        |kernel| kernel::INFO
    );
    vec![merge, merge_many_splits::<K>::INFO]
}

/// # Safety
/// As [`merge_newest_pairs_async`], lengths checked.
unsafe fn merge<K: SortKey, V: Payload>(
    stream: &Stream,
    widths: Widths,
    operands: Operands,
    mask: KeyMask<K>,
    out: Outputs<K, V>,
    mut count: DeviceSliceMut<'_, u64>,
) -> Result<()> {
    if operands.total == 0 {
        return Ok(stream.fill_bytes(count, 0)?);
    }
    stream.device().with_kernels(&launched::<K>(widths), || {
        macro_rules! launch {
            ($kernel:ident) => {{
                let shape = $kernel::SHAPE;
                // SAFETY: the types have the sizes of the kernel's; lengths were checked; scratch is this call's own,
                // and freed in the order of the stream; the caller answers for the rest.
                unsafe {
                    let prepared = prepare::<K>(stream, operands, mask.bits(), shape)?;
                    let mut look_back = LookBack::new(stream, prepared.tiles as usize)?;
                    let config = LaunchConfig::new(prepared.tiles, shape.threads).shared(shape.shared_bytes);
                    $kernel {
                        table: prepared.table(),
                        splits: prepared.splits(),
                        group: prepared.group,
                        odd: prepared.tree.odd,
                        rounds: prepared.tree.rounds,
                        mask: mask.bits() as _,
                        tiles: prepared.tiles,
                        look_back: look_back.words(),
                        ticket: look_back.ticket(),
                        out_keys: out.keys.cast(),
                        out_values: out.values.cast(),
                        out_status: out.status.unwrap_or(out.keys.cast()),
                        keep_marked: u32::from(out.status.is_some()),
                        count: count.global_mut(),
                    }
                    .launch(stream, config)?
                }
            }};
        }
        by_widths!(
            widths,
            kernels::{
                merge_newest_u32, merge_newest_u32_u32, merge_newest_u32_u64, merge_newest_u64, merge_newest_u64_u32,
                merge_newest_u64_u64
            },
            |kernel| launch!(kernel)
        );
        Ok(())
    })
}

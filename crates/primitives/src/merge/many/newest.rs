//! Merge of many runs without stale items, in one pass.

use warpset_gpu::{DeviceSlice, DeviceSliceMut, Stream};

use super::WithStatus;
use super::launch::merge;
use super::operands::{Input, Output};
use crate::merge::Pairs;
use crate::sort::{Payload, SortKey};
use crate::{KeyMask, Result};

/// Treatment of the first of equal keys if its status bit is set.
#[derive(Debug)]
pub enum Marked<'a> {
    /// A marked item is dropped: nothing is left of its key.
    Dropped,
    /// A marked item is kept, and its bit is written here: one word per 32 items of all runs. Bits after the kept items
    /// are clear.
    Kept(DeviceSliceMut<'a, u32>),
}

impl<'a> Marked<'a> {
    fn kept(self) -> Option<DeviceSliceMut<'a, u32>> {
        match self {
            Marked::Dropped => None,
            Marked::Kept(status) => Some(status),
        }
    }
}

/// Queues the merge of up to [`MAX_RUNS`](super::MAX_RUNS) sorted runs of keys into `out`, in one pass, without stale
/// items. Only the first of equal keys, from the earliest run with the key, is kept; with [`Marked::Dropped`] it is
/// also dropped if its status bit is set. The number of kept keys is written to `count`, one word.
///
/// # Errors
/// Before anything is queued: [`TooManyRuns`](crate::Error::TooManyRuns);
/// [`LengthMismatch`](crate::Error::LengthMismatch) if `out` or the memory for status bits is shorter than all runs
/// are, or if a run's bitmap does not have the number of words that its bits take; [`Overlap`](crate::Error::Overlap)
/// if an output shares memory with a run or another output.
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
    let inputs: Vec<_> = runs.iter().map(|run| Input::keys(run.run, run.status)).collect();
    let output = Output { status: marked.kept(), count: Some(count.into()), ..Output::keys(out.into()) };
    // SAFETY: the contract of this function.
    unsafe { merge(stream, &inputs, mask, output) }
}

/// Queues the merge as [`merge_newest_keys_async`] does, of keys with values.
///
/// # Errors
/// The errors of [`merge_newest_keys_async`]; [`LengthMismatch`](crate::Error::LengthMismatch) unless there is one
/// value per key.
///
/// # Safety
/// The contract of [`merge_newest_keys_async`], for values too.
pub unsafe fn merge_newest_pairs_async<'a, 'b, 'c, K: SortKey, V: Payload>(
    stream: &Stream,
    runs: &[WithStatus<'_, Pairs<'_, K, V>>],
    mask: KeyMask<K>,
    marked: Marked<'_>,
    out_keys: impl Into<DeviceSliceMut<'a, K>>,
    out_values: impl Into<DeviceSliceMut<'b, V>>,
    count: impl Into<DeviceSliceMut<'c, u64>>,
) -> Result<()> {
    let inputs: Vec<_> = runs.iter().map(|run| Input::pairs(run.run, run.status)).collect();
    let output = Output::pairs(out_keys.into(), out_values.into());
    let output = Output { status: marked.kept(), count: Some(count.into()), ..output };
    // SAFETY: the contract of this function.
    unsafe { merge(stream, &inputs, mask, output) }
}

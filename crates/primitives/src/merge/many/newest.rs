//! The merge of many runs without what is stale, in one pass.

use warpset_gpu::{DeviceSlice, DeviceSliceMut, Stream};

use super::WithStatus;
use super::launch::merge;
use super::operands::{Input, Output};
use crate::merge::Pairs;
use crate::sort::{Payload, SortKey};
use crate::{KeyMask, Result};

/// What becomes of the first of equal keys if its status bit is set.
#[derive(Debug)]
pub enum Marked<'a> {
    /// A marked item is dropped as well: nothing is left of the key.
    Dropped,
    /// A marked item is kept, and its bit goes here: a word for each 32 items of all runs. Bits of what is not written
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

/// Queues the merge of up to [`MAX_RUNS`](super::MAX_RUNS) sorted runs of keys into `out`, in one pass, without what is
/// stale: of equal keys the first is kept alone, that of the earliest run that has the key, and it too is dropped if
/// its status bit is set, unless `marked` says otherwise. The number of kept keys goes to `count`, one word.
///
/// # Errors
/// Before anything is queued: [`TooManyRuns`](crate::Error::TooManyRuns);
/// [`LengthMismatch`](crate::Error::LengthMismatch) if `out` or the memory for status bits is shorter than all runs
/// are, or a run's bitmap is not as long as its bits take; [`Overlap`](crate::Error::Overlap) if an output shares
/// memory with a run or another output.
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
    // SAFETY: the caller's promise is the same.
    unsafe { merge(stream, &inputs, mask, output) }
}

/// [`merge_newest_keys_async`] of keys with values.
///
/// # Errors
/// The errors of [`merge_newest_keys_async`]; [`LengthMismatch`](crate::Error::LengthMismatch) unless there are as many
/// values as keys.
///
/// # Safety
/// That of [`merge_newest_keys_async`], for values too.
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
    // SAFETY: the caller's promise is the same.
    unsafe { merge(stream, &inputs, mask, output) }
}

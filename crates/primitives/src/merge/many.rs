//! Merges of many runs in one pass over memory, optionally with a status bit per item.

mod launch;
mod newest;
mod operands;
mod tree;

use warpset_gpu::{DeviceSlice, DeviceSliceMut, Stream};
use warpset_kernels::primitives::merge_many::runs::RUNS;

use self::launch::merge;
use self::operands::{Input, Output};
use super::{Pairs, SHORT};
use crate::sort::{Payload, SortKey};
use crate::{KeyMask, Result};

pub(crate) use self::launch::merge_pieces;
pub use newest::{Marked, merge_newest_keys_async, merge_newest_pairs_async};

/// Largest number of non-empty runs that are merged in one pass.
pub const MAX_RUNS: usize = RUNS;

/// Run of keys or [`Pairs`], with one status bit per item: bit `i % 32` of word `i / 32` belongs to item `i`.
#[derive(Clone, Copy, Debug)]
pub struct WithStatus<'a, R> {
    /// Run.
    pub run: R,
    /// Bits, in whole words; `None` if no bit is set.
    pub status: Option<DeviceSlice<'a, u32>>,
}

impl<'a, R> WithStatus<'a, R> {
    /// Returns a run and its status bits.
    pub fn new(run: R, status: Option<DeviceSlice<'a, u32>>) -> Self {
        Self { run, status }
    }
}

/// Queues the merge of up to [`MAX_RUNS`] sorted runs of keys into `out`, in one pass: each item is read and written
/// once; a few are also read to find where tiles begin. Of equal keys those of earlier runs come first. Empty runs do
/// not count.
///
/// # Errors
/// Before anything is queued: [`TooManyRuns`](crate::Error::TooManyRuns);
/// [`LengthMismatch`](crate::Error::LengthMismatch) unless `out` is as long as all runs;
/// [`Overlap`](crate::Error::Overlap) if it shares memory with one of them.
///
/// # Safety
/// Until `stream` has passed this work:
/// - all runs and `out` stay allocated;
/// - no other work writes the runs or accesses `out`.
pub unsafe fn merge_many_keys_async<'a, K: SortKey>(
    stream: &Stream,
    runs: &[DeviceSlice<'_, K>],
    mask: KeyMask<K>,
    out: impl Into<DeviceSliceMut<'a, K>>,
) -> Result<()> {
    let inputs: Vec<_> = runs.iter().map(|&run| Input::keys(run, None)).collect();
    // SAFETY: the contract of this function.
    unsafe { merge(stream, &inputs, mask, Output::keys(out.into())) }
}

/// Queues the merge of up to [`MAX_RUNS`] sorted runs of keys with values into `out_keys` and `out_values`, in one
/// pass.
///
/// # Errors
/// The errors of [`merge_many_keys_async`]; [`LengthMismatch`](crate::Error::LengthMismatch) unless there is one value
/// per key.
///
/// # Safety
/// Until `stream` has passed this work:
/// - keys and values of all runs and both outputs stay allocated;
/// - no other work writes the runs or accesses the outputs.
pub unsafe fn merge_many_pairs_async<'a, K: SortKey, V: Payload>(
    stream: &Stream,
    runs: &[Pairs<'_, K, V>],
    mask: KeyMask<K>,
    out_keys: impl Into<DeviceSliceMut<'a, K>>,
    out_values: impl Into<DeviceSliceMut<'a, V>>,
) -> Result<()> {
    let inputs: Vec<_> = runs.iter().map(|&run| Input::pairs(run, None)).collect();
    // SAFETY: the contract of this function.
    unsafe { merge(stream, &inputs, mask, Output::pairs(out_keys.into(), out_values.into())) }
}

/// Queues the merge as [`merge_many_keys_async`] does, of runs with status bits. The bits of the merged keys are
/// written to `out_status`, in whole words, with zeros after the last key.
///
/// # Errors
/// The errors of [`merge_many_keys_async`]; [`LengthMismatch`](crate::Error::LengthMismatch) unless every bitmap has
/// the number of words that its bits take.
///
/// # Safety
/// The contract of [`merge_many_keys_async`], for the status bits too.
pub unsafe fn merge_many_keys_with_status_async<'a, 'b, K: SortKey>(
    stream: &Stream,
    runs: &[WithStatus<'_, DeviceSlice<'_, K>>],
    mask: KeyMask<K>,
    out: impl Into<DeviceSliceMut<'a, K>>,
    out_status: impl Into<DeviceSliceMut<'b, u32>>,
) -> Result<()> {
    let inputs: Vec<_> = runs.iter().map(|run| Input::keys(run.run, run.status)).collect();
    let output = Output { status: Some(out_status.into()), ..Output::keys(out.into()) };
    // SAFETY: the contract of this function.
    unsafe { merge(stream, &inputs, mask, output) }
}

/// Queues the merge as [`merge_many_pairs_async`] does, of runs with status bits, which are written as in
/// [`merge_many_keys_with_status_async`].
///
/// # Errors
/// The errors of [`merge_many_pairs_async`] and [`merge_many_keys_with_status_async`].
///
/// # Safety
/// The contract of [`merge_many_keys_with_status_async`], for values too.
pub unsafe fn merge_many_pairs_with_status_async<'a, 'b, 'c, K: SortKey, V: Payload>(
    stream: &Stream,
    runs: &[WithStatus<'_, Pairs<'_, K, V>>],
    mask: KeyMask<K>,
    out_keys: impl Into<DeviceSliceMut<'a, K>>,
    out_values: impl Into<DeviceSliceMut<'b, V>>,
    out_status: impl Into<DeviceSliceMut<'c, u32>>,
) -> Result<()> {
    let inputs: Vec<_> = runs.iter().map(|run| Input::pairs(run.run, run.status)).collect();
    let output = Output { status: Some(out_status.into()), ..Output::pairs(out_keys.into(), out_values.into()) };
    // SAFETY: the contract of this function.
    unsafe { merge(stream, &inputs, mask, output) }
}

#[cfg(test)]
mod tests;

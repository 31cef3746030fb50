//! Operands of all kinds of merges, and their checks.

use warpset_gpu::{DeviceSlice, DeviceSliceMut, Stream};
use warpset_kernels::primitives::merge_many::runs::{RUNS, Runs};
use warpset_simt::Global;

use super::MAX_RUNS;
use crate::check::{apart, on_device_of, same_len};
use crate::error::check_len;
use crate::merge::Pairs;
use crate::sort::{Payload, SortInput, SortKey, Widths};
use crate::{Error, Result};

/// Input run.
#[derive(Clone, Copy)]
pub(super) struct Input<'a, K, V> {
    pub(super) keys: DeviceSlice<'a, K>,
    pub(super) values: Option<DeviceSlice<'a, V>>,
    pub(super) status: Option<DeviceSlice<'a, u32>>,
}

impl<'a, K> Input<'a, K, u32> {
    /// Returns a run without values.
    pub(super) fn keys(keys: DeviceSlice<'a, K>, status: Option<DeviceSlice<'a, u32>>) -> Self {
        Input { keys, values: None, status }
    }
}

impl<'a, K, V> Input<'a, K, V> {
    /// Returns a run with values.
    pub(super) fn pairs(run: Pairs<'a, K, V>, status: Option<DeviceSlice<'a, u32>>) -> Self {
        Input { keys: run.keys, values: Some(run.values), status }
    }
}

/// Output of merged items: all of them, or, if their number is written, the newest.
pub(super) struct Output<'a, K, V> {
    pub(super) keys: DeviceSliceMut<'a, K>,
    pub(super) values: Option<DeviceSliceMut<'a, V>>,
    pub(super) status: Option<DeviceSliceMut<'a, u32>>,
    pub(super) count: Option<DeviceSliceMut<'a, u64>>,
}

impl<'a, K> Output<'a, K, u32> {
    /// Returns an output for keys without values, all of them.
    pub(super) fn keys(keys: DeviceSliceMut<'a, K>) -> Self {
        Output { keys, values: None, status: None, count: None }
    }
}

impl<'a, K, V> Output<'a, K, V> {
    /// Returns an output for keys with values, all of them.
    pub(super) fn pairs(keys: DeviceSliceMut<'a, K>, values: DeviceSliceMut<'a, V>) -> Self {
        Output { keys, values: Some(values), status: None, count: None }
    }
}

impl<K: SortKey, V: Payload> Output<'_, K, V> {
    pub(super) fn widths(&self) -> Widths {
        if self.values.is_some() { Widths::pairs::<K, V>() } else { Widths::keys::<K>() }
    }

    /// Checks that there are places for `total` items, on the stream's device, in separate memory for each output.
    fn check(&self, stream: &Stream, total: usize) -> Result<()> {
        let room = if self.count.is_some() { check_len } else { same_len };
        room("merged keys", total, self.keys.len())?;
        on_device_of(stream, "a merge", &self.keys)?;
        if let Some(values) = &self.values {
            room("merged values", total, values.len())?;
            apart("merged keys and merged values", self.keys.as_slice(), values)?;
        }
        if let Some(status) = &self.status {
            room("words of merged status bits", total.div_ceil(32), status.len())?;
            on_device_of(stream, "a merge", status)?;
            apart("merged keys and merged status bits", self.keys.as_slice(), status)?;
            if let Some(values) = &self.values {
                apart("merged values and merged status bits", values.as_slice(), status)?;
            }
        }
        if let Some(count) = &self.count {
            same_len("the count", 1, count.len())?;
            on_device_of(stream, "a merge", count)?;
            apart("merged keys and the count", self.keys.as_slice(), count)?;
            if let Some(values) = &self.values {
                apart("merged values and the count", values.as_slice(), count)?;
            }
            if let Some(status) = &self.status {
                apart("merged status bits and the count", status.as_slice(), count)?;
            }
        }
        Ok(())
    }

    /// Checks that an input does not overlap an output.
    fn check_apart<T: bytemuck::Pod>(&self, input: DeviceSlice<'_, T>) -> Result<()> {
        apart("a run and the merged keys", input, &self.keys)?;
        if let Some(values) = &self.values {
            apart("a run and the merged values", input, values)?;
        }
        if let Some(status) = &self.status {
            apart("a run and the merged status bits", input, status)?;
        }
        if let Some(count) = &self.count {
            apart("a run and the count", input, count)?;
        }
        Ok(())
    }
}

/// Non-empty runs in the form of kernels.
pub(super) struct Operands {
    pub(super) runs: Runs,
    pub(super) lengths: Vec<usize>,
    pub(super) total: usize,
    /// Whether any run has status bits.
    pub(super) marked: bool,
}

/// Returns the address on the device.
fn address<T>(handle: Global<T>) -> u64 {
    handle.as_ptr().expose_provenance() as u64
}

impl Operands {
    /// Returns consecutive pieces of `piece` items, up to [`MAX_RUNS`], of which the last one may be shorter.
    pub(super) fn pieces(widths: Widths, items: SortInput, total: usize, piece: usize) -> Operands {
        let none = [0; RUNS];
        let runs = Runs { keys: none, values: none, status: none, lengths: none, nodes: [0; RUNS] };
        let mut operands = Operands { runs, lengths: Vec::new(), total, marked: false };
        for (r, first) in (0..total).step_by(piece).enumerate() {
            let len = piece.min(total - first);
            operands.lengths.push(len);
            operands.runs.keys[r] = address(items.keys) + (first * widths.key_bytes()) as u64;
            operands.runs.values[r] = address(items.values) + (first * widths.value_bytes()) as u64;
            operands.runs.lengths[r] = len as u64;
        }
        operands
    }

    /// Checks inputs and output.
    pub(super) fn new<K: SortKey, V: Payload>(
        stream: &Stream,
        inputs: &[Input<'_, K, V>],
        output: &Output<'_, K, V>,
    ) -> Result<Operands> {
        let none = [0; RUNS];
        let runs = Runs { keys: none, values: none, status: none, lengths: none, nodes: [0; RUNS] };
        let mut operands = Operands { runs, lengths: Vec::with_capacity(inputs.len()), total: 0, marked: false };
        for &Input { keys, values, status } in inputs {
            let len = keys.len();
            output.check_apart(keys)?;
            if let Some(values) = values {
                same_len("values of a run", len, values.len())?;
                output.check_apart(values)?;
            }
            if let Some(status) = status {
                same_len("words of a run's status bits", len.div_ceil(32), status.len())?;
                output.check_apart(status)?;
            }
            if len == 0 {
                continue;
            }
            let r = operands.lengths.len();
            operands.lengths.push(len);
            operands.total += len;
            operands.marked |= status.is_some();
            if r < RUNS {
                operands.runs.keys[r] = address(keys.global());
                operands.runs.values[r] = values.map_or(0, |values| address(values.global()));
                operands.runs.status[r] = status.map_or(0, |status| address(status.global()));
                operands.runs.lengths[r] = len as u64;
            }
        }
        let runs = operands.lengths.len();
        if runs > MAX_RUNS {
            return Err(Error::TooManyRuns { runs, max: MAX_RUNS });
        }
        output.check(stream, operands.total)?;
        Ok(operands)
    }
}

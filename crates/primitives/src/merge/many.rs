//! Merging many runs in one pass over memory, with a status bit for each item where there is one.

mod newest;
mod tree;

use warpset_gpu::{DeviceSlice, DeviceSliceMut, DeviceVec, LaunchConfig, Stream};
use warpset_kernels::primitives::merge_many::runs::{RUNS, Runs, TABLE_WORDS};
use warpset_kernels::primitives::merge_many::{self as kernels, SPLIT_BLOCK};
use warpset_kernels::primitives::tile_shape::TileShape;
use warpset_simt::{Global, GlobalMut, KernelInfo};

use self::tree::Tree;
use super::{Pairs, SHORT, merge_keys_async, merge_pairs_async};
use crate::check::{apart, on_device_of, same_len, tiles};
use crate::sort::{Payload, SortKey, Widths, by_widths};
use crate::{Error, KeyMask, Result};

pub use newest::{
    Marked, kernels_for_newest_keys, kernels_for_newest_pairs, merge_newest_keys_async, merge_newest_pairs_async,
};

/// The most runs with items that are merged in one pass.
pub const MAX_RUNS: usize = RUNS;

/// A run, keys or [`Pairs`], and a status bit for each of its items: bit `i % 32` of word `i / 32` is that of item `i`.
#[derive(Clone, Copy, Debug)]
pub struct WithStatus<'a, R> {
    /// The run.
    pub run: R,
    /// The bits, in as many words as they take; `None` if no bit is set.
    pub status: Option<DeviceSlice<'a, u32>>,
}

impl<'a, R> WithStatus<'a, R> {
    /// A run and its status bits.
    pub fn new(run: R, status: Option<DeviceSlice<'a, u32>>) -> Self {
        Self { run, status }
    }
}

/// Queues the merge of up to [`MAX_RUNS`] sorted runs of keys into `out`, in one pass: each item is read and written
/// once, besides few of them that are read to find where tiles begin. Of equal keys those of earlier runs come first.
/// Runs without items do not count.
///
/// # Errors
/// Before anything is queued: [`TooManyRuns`](Error::TooManyRuns); [`LengthMismatch`](Error::LengthMismatch) unless
/// `out` is as long as all runs; [`Overlap`](Error::Overlap) if it shares memory with one of them.
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
    let mut out = out.into();
    let operands = Operands::of_keys(runs.iter().map(|&run| (run, None)), &out)?;
    same_len("merged keys", operands.total, out.len())?;
    on_device_of(stream, "a merge", &out)?;
    if operands.go_in_twos() {
        let mut runs = runs.iter().copied().filter(|run| !run.is_empty());
        let (Some(mut left), Some(mut right)) = (runs.next(), runs.next()) else { unreachable!("two runs at least") };
        let mut merged: DeviceVec<K>;
        for next in runs {
            let mut both = stream.alloc_uninit(left.len() + right.len())?;
            // SAFETY: the caller's promise; scratch is this call's own, and freed in the order of the stream.
            unsafe { merge_keys_async(stream, left, right, mask, &mut both)? };
            merged = both;
            (left, right) = (merged.as_slice(), next);
        }
        // SAFETY: as above.
        return unsafe { merge_keys_async(stream, left, right, mask, out) };
    }
    let out = Outputs { keys: out.global_mut(), values: out.global_mut(), status: None };
    // SAFETY: lengths were checked; the kernels without values do not look at any; the caller answers for the rest.
    unsafe { merge(stream, Widths::keys::<K>(), operands, mask, out) }
}

/// Queues the merge of up to [`MAX_RUNS`] sorted runs of keys with values into `out_keys` and `out_values`, in one
/// pass.
///
/// # Errors
/// As for [`merge_many_keys_async`]; and [`LengthMismatch`](Error::LengthMismatch) unless keys and values are as many.
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
    let (mut out_keys, mut out_values) = (out_keys.into(), out_values.into());
    let operands = Operands::of_pairs(runs.iter().map(|&run| (run, None)), &out_keys, &out_values)?;
    same_len("merged keys", operands.total, out_keys.len())?;
    same_len("merged values", out_keys.len(), out_values.len())?;
    on_device_of(stream, "a merge", &out_keys)?;
    apart("merged keys and merged values", out_keys.as_slice(), &out_values)?;
    if operands.go_in_twos() {
        let mut runs = runs.iter().copied().filter(|run| !run.keys.is_empty());
        let (Some(mut left), Some(mut right)) = (runs.next(), runs.next()) else { unreachable!("two runs at least") };
        let mut merged: (DeviceVec<K>, DeviceVec<V>);
        for next in runs {
            let n = left.keys.len() + right.keys.len();
            let (mut keys, mut values) = (stream.alloc_uninit(n)?, stream.alloc_uninit(n)?);
            // SAFETY: the caller's promise; scratch is this call's own, and freed in the order of the stream.
            unsafe { merge_pairs_async(stream, left, right, mask, &mut keys, &mut values)? };
            merged = (keys, values);
            (left, right) = (Pairs::new(&merged.0, &merged.1), next);
        }
        // SAFETY: as above.
        return unsafe { merge_pairs_async(stream, left, right, mask, out_keys, out_values) };
    }
    let out = Outputs { keys: out_keys.global_mut(), values: out_values.global_mut(), status: None };
    // SAFETY: lengths were checked; the caller answers for the rest.
    unsafe { merge(stream, Widths::pairs::<K, V>(), operands, mask, out) }
}

/// [`merge_many_keys_async`] of runs with status bits: those of the merged keys go to `out_status`, in whole words, the
/// bits beyond the last key clear.
///
/// # Errors
/// As there; [`LengthMismatch`](Error::LengthMismatch) unless there are as many words as the bits take, in the runs
/// that have bits and merged.
///
/// # Safety
/// As there, for the status bits too.
pub unsafe fn merge_many_keys_with_status_async<'a, 'b, K: SortKey>(
    stream: &Stream,
    runs: &[WithStatus<'_, DeviceSlice<'_, K>>],
    mask: KeyMask<K>,
    out: impl Into<DeviceSliceMut<'a, K>>,
    out_status: impl Into<DeviceSliceMut<'b, u32>>,
) -> Result<()> {
    let (mut out, mut out_status) = (out.into(), out_status.into());
    let operands = Operands::of_keys(runs.iter().map(|run| (run.run, run.status)), &out)?;
    same_len("merged keys", operands.total, out.len())?;
    on_device_of(stream, "a merge", &out)?;
    let runs_status = runs.iter().map(|run| (run.run.len(), run.status));
    check_status(runs_status, operands.total, &out, &out_status)?;
    runs.iter().try_for_each(|run| apart("a run and the merged status bits", run.run, &out_status))?;
    let status = Some(out_status.global_mut());
    let out = Outputs { keys: out.global_mut(), values: out.global_mut(), status };
    // SAFETY: lengths were checked; the kernels without values do not look at any; the caller answers for the rest.
    unsafe { merge(stream, Widths::keys::<K>(), operands, mask, out) }
}

/// [`merge_many_pairs_async`] of runs with status bits, as [`merge_many_keys_with_status_async`].
///
/// # Errors
/// As there.
///
/// # Safety
/// As there, for values too.
pub unsafe fn merge_many_pairs_with_status_async<'a, 'b, 'c, K: SortKey, V: Payload>(
    stream: &Stream,
    runs: &[WithStatus<'_, Pairs<'_, K, V>>],
    mask: KeyMask<K>,
    out_keys: impl Into<DeviceSliceMut<'a, K>>,
    out_values: impl Into<DeviceSliceMut<'b, V>>,
    out_status: impl Into<DeviceSliceMut<'c, u32>>,
) -> Result<()> {
    let (mut out_keys, mut out_values, mut out_status) = (out_keys.into(), out_values.into(), out_status.into());
    let operands = Operands::of_pairs(runs.iter().map(|run| (run.run, run.status)), &out_keys, &out_values)?;
    same_len("merged keys", operands.total, out_keys.len())?;
    same_len("merged values", out_keys.len(), out_values.len())?;
    on_device_of(stream, "a merge", &out_keys)?;
    apart("merged keys and merged values", out_keys.as_slice(), &out_values)?;
    let runs_status = runs.iter().map(|run| (run.run.keys.len(), run.status));
    check_status(runs_status, operands.total, &out_keys, &out_status)?;
    apart("merged values and merged status bits", out_values.as_slice(), &out_status)?;
    for run in runs {
        apart("a run and the merged status bits", run.run.keys, &out_status)?;
        apart("a run's values and the merged status bits", run.run.values, &out_status)?;
    }
    let status = Some(out_status.global_mut());
    let out = Outputs { keys: out_keys.global_mut(), values: out_values.global_mut(), status };
    // SAFETY: lengths were checked; the caller answers for the rest.
    unsafe { merge(stream, Widths::pairs::<K, V>(), operands, mask, out) }
}

/// The kernels that a merge of many runs of keys launches, with status bits or without, for
/// [`Device::with_kernels`](warpset_gpu::Device::with_kernels).
pub fn kernels_for_many_keys<K: SortKey>() -> Vec<&'static KernelInfo> {
    launched::<K>(Widths::keys::<K>())
}

/// The same with values.
pub fn kernels_for_many_pairs<K: SortKey, V: Payload>() -> Vec<&'static KernelInfo> {
    launched::<K>(Widths::pairs::<K, V>())
}

fn launched<K: SortKey>(widths: Widths) -> Vec<&'static KernelInfo> {
    let merge = by_widths!(
        widths,
        kernels::{
            merge_many_u32, merge_many_u32_u32, merge_many_u32_u64, merge_many_u64, merge_many_u64_u32,
            merge_many_u64_u64
        },
        |kernel| kernel::INFO
    );
    vec![merge, kernels::merge_many_splits::<K>::INFO]
}

/// Bitmaps have a bit for each item, in the fewest words, and share no byte with the outputs.
fn check_status<'a, K: SortKey>(
    runs: impl Iterator<Item = (usize, Option<DeviceSlice<'a, u32>>)>,
    total: usize,
    out_keys: &DeviceSliceMut<'_, K>,
    out_status: &DeviceSliceMut<'_, u32>,
) -> Result<()> {
    same_len("words of merged status bits", total.div_ceil(32), out_status.len())?;
    apart("merged keys and merged status bits", out_keys.as_slice(), out_status)?;
    for (_, status) in runs {
        if let Some(status) = status {
            apart("a run's status bits and the merged ones", status, out_status)?;
        }
    }
    Ok(())
}

/// The runs that have items, as kernels take them.
struct Operands {
    runs: Runs,
    lengths: Vec<usize>,
    total: usize,
}

impl Operands {
    /// The address on the device.
    fn address<T>(handle: Global<T>) -> u64 {
        handle.as_ptr().expose_provenance() as u64
    }

    fn none() -> Operands {
        let words = [0; RUNS];
        let runs = Runs { keys: words, values: words, status: words, lengths: words, nodes: [0; RUNS] };
        Operands { runs, lengths: Vec::new(), total: 0 }
    }

    /// Adds a run with items.
    fn push(&mut self, len: usize, [keys, values, status]: [u64; 3]) {
        self.total += len;
        if len != 0 {
            let r = self.lengths.len();
            self.lengths.push(len);
            if r < RUNS {
                self.runs.keys[r] = keys;
                self.runs.values[r] = values;
                self.runs.status[r] = status;
                self.runs.lengths[r] = len as u64;
            }
        }
    }

    /// Whether merges of two, one after the other, are faster: of two runs always; of four short ones, where the search
    /// for splits takes longer than launches.
    fn go_in_twos(&self) -> bool {
        match self.lengths.len() {
            2 => true,
            3 | 4 => self.total <= SHORT,
            _ => false,
        }
    }

    fn checked(self) -> Result<Operands> {
        let runs = self.lengths.len();
        if runs > MAX_RUNS { Err(Error::TooManyRuns { runs, max: MAX_RUNS }) } else { Ok(self) }
    }

    /// The address of a run's status bits, or zero.
    fn status<K: SortKey>(
        len: usize,
        status: Option<DeviceSlice<'_, u32>>,
        out: &DeviceSliceMut<'_, K>,
    ) -> Result<u64> {
        let Some(status) = status else { return Ok(0) };
        same_len("words of a run's status bits", len.div_ceil(32), status.len())?;
        apart("a run's status bits and the merged keys", status, out)?;
        Ok(if len == 0 { 0 } else { Self::address(status.global()) })
    }

    fn of_keys<'a, K: SortKey>(
        runs: impl Iterator<Item = (DeviceSlice<'a, K>, Option<DeviceSlice<'a, u32>>)>,
        out: &DeviceSliceMut<'_, K>,
    ) -> Result<Operands> {
        let mut operands = Self::none();
        for (run, status) in runs {
            apart("a run and the merged keys", run, out)?;
            let status = Self::status(run.len(), status, out)?;
            operands.push(run.len(), [Self::address(run.global()), 0, status]);
        }
        operands.checked()
    }

    fn of_pairs<'a, K: SortKey, V: Payload>(
        runs: impl Iterator<Item = (Pairs<'a, K, V>, Option<DeviceSlice<'a, u32>>)>,
        out: &DeviceSliceMut<'_, K>,
        out_values: &DeviceSliceMut<'_, V>,
    ) -> Result<Operands> {
        let mut operands = Self::none();
        for (run, status) in runs {
            run.check()?;
            run.check_apart(out, out_values)?;
            if let Some(status) = status {
                apart("a run's status bits and the merged values", status, out_values)?;
            }
            let status = Self::status(run.keys.len(), status, out)?;
            let (keys, values) = (Self::address(run.keys.global()), Self::address(run.values.global()));
            operands.push(run.keys.len(), [keys, values, status]);
        }
        operands.checked()
    }
}

/// Where merged items go.
struct Outputs<K, V> {
    keys: GlobalMut<K>,
    values: GlobalMut<V>,
    status: Option<GlobalMut<u32>>,
}

/// What the first launch leaves for the second, in one allocation: the table of the runs, then the splits.
struct Prepared {
    memory: DeviceVec<u64>,
    group: u32,
    tree: Tree,
    tiles: u32,
}

impl Prepared {
    fn table(&self) -> Global<u64> {
        self.memory.global()
    }

    fn splits(&self) -> Global<u64> {
        self.memory.global().at(TABLE_WORDS)
    }
}

/// Queues the search for what each run gives to each tile of this shape; there is at least one item.
///
/// # Safety
/// Until `stream` has passed this work, the runs stay allocated and nothing writes them.
unsafe fn prepare<K: SortKey>(stream: &Stream, operands: Operands, mask: u64, shape: TileShape) -> Result<Prepared> {
    let Operands { mut runs, lengths, total } = operands;
    let tiles = tiles(total, shape.tile())?;
    let group = lengths.len().next_power_of_two().max(8) as u32;
    let tree = Tree::new(&lengths);
    runs.nodes = tree.nodes;
    let mut memory = stream.alloc_uninit::<u64>(TABLE_WORDS + group as usize * (tiles as usize + 1))?;
    let (table, splits) = (memory.global_mut(), memory.global_mut().at(TABLE_WORDS));
    let config = LaunchConfig::covering(group as usize * (tiles as usize + 1), SPLIT_BLOCK);
    let (mask, tile_items) = (K::from_bits(mask), shape.tile() as u32);
    let kernel =
        kernels::merge_many_splits { runs, group, total: total as u64, mask, tile_items, tiles, splits, table };
    // SAFETY: lengths were checked; scratch is this call's own; the caller answers for the rest.
    unsafe { kernel.launch(stream, config)? };
    Ok(Prepared { memory, group, tree, tiles })
}

/// # Safety
/// As [`merge_many_pairs_with_status_async`], lengths checked.
unsafe fn merge<K: SortKey, V: Payload>(
    stream: &Stream,
    widths: Widths,
    operands: Operands,
    mask: KeyMask<K>,
    out: Outputs<K, V>,
) -> Result<()> {
    if operands.total == 0 {
        return Ok(());
    }
    stream.device().with_kernels(&launched::<K>(widths), || {
        macro_rules! launch {
            ($kernel:ident) => {{
                let shape = $kernel::SHAPE;
                // SAFETY: the types have the sizes of the kernel's; lengths were checked; scratch is this call's own,
                // and freed in the order of the stream; the caller answers for the rest.
                unsafe {
                    let prepared = prepare::<K>(stream, operands, mask.bits(), shape)?;
                    let config = LaunchConfig::new(prepared.tiles, shape.threads).shared(shape.shared_bytes);
                    $kernel {
                        table: prepared.table(),
                        splits: prepared.splits(),
                        group: prepared.group,
                        odd: prepared.tree.odd,
                        rounds: prepared.tree.rounds,
                        mask: mask.bits() as _,
                        out_keys: out.keys.cast(),
                        out_values: out.values.cast(),
                        out_status: out.status.unwrap_or(out.keys.cast()),
                        with_status: u32::from(out.status.is_some()),
                    }
                    .launch(stream, config)?
                }
            }};
        }
        by_widths!(
            widths,
            kernels::{
                merge_many_u32, merge_many_u32_u32, merge_many_u32_u64, merge_many_u64, merge_many_u64_u32,
                merge_many_u64_u64
            },
            |kernel| launch!(kernel)
        );
        Ok(())
    })
}

#[cfg(test)]
mod tests;

//! Launches: the search for the part of each run in each tile, then the merge of all items or of the newest; or merges
//! of two runs each.

use warpset_gpu::{DeviceVec, LaunchConfig, Stream};
use warpset_kernels::primitives::merge_many::newest::{KEEP_MARKED, MARKED};
use warpset_kernels::primitives::merge_many::runs::TABLE_WORDS;
use warpset_kernels::primitives::merge_many::{self as kernels, SPLIT_BLOCK, SPLIT_STEP, newest};
use warpset_kernels::primitives::tile_shape::TileShape;
use warpset_simt::{Global, GlobalMut};

use super::SHORT;
use super::operands::{Input, Operands, Output};
use super::tree::Tree;
use crate::check::tiles;
use crate::merge::{self, Launches, Run};
use crate::sort::{Payload, SortInput, SortKey, SortOutput, Widths, by_key_width, by_widths};
use crate::{KeyMask, LookBack, Result};

/// Fewest tiles for which another launch saves more than it costs.
const STEPS_FROM: u32 = if cfg!(test) { 3 } else { 2048 };

/// Whether merges of two, one after the other, are faster: always for two runs, and for four short ones, where the
/// search for splits takes longer than launches.
fn go_in_twos(operands: &Operands) -> bool {
    match operands.lengths.len() {
        2 => true,
        3 | 4 => operands.total <= SHORT,
        _ => false,
    }
}

/// Queues merges of two runs each.
///
/// # Safety
/// The contract of [`merge`]; there are at least two non-empty runs, without status bits.
unsafe fn merge_in_twos<K: SortKey, V: Payload>(
    stream: &Stream,
    inputs: &[Input<'_, K, V>],
    mask: KeyMask<K>,
    out: (GlobalMut<K>, GlobalMut<V>),
    pairs: bool,
) -> Result<()> {
    let mut runs = inputs.iter().filter(|run| !run.keys.is_empty()).map(|run| Run {
        keys: run.keys.global(),
        values: run.values.map_or(run.keys.global().cast(), |values| values.global()),
    });
    let (Some(mut left), Some(mut right)) = (runs.next(), runs.next()) else { unreachable!("two runs at least") };
    let mut merged: (DeviceVec<K>, DeviceVec<V>);
    for next in runs {
        let n = left.keys.len() + right.keys.len();
        let mut both = (stream.alloc_uninit(n)?, stream.alloc_uninit(if pairs { n } else { 0 })?);
        // SAFETY: the contract of this function; scratch belongs to this call and is freed in stream order.
        unsafe { merge::merge(stream, left, right, mask, both.0.global_mut(), both.1.global_mut(), pairs)? };
        // The previous result is freed after this merge has been queued.
        merged = both;
        (left, right) = (Run { keys: merged.0.global(), values: merged.1.global() }, next);
    }
    // SAFETY: as above.
    unsafe { merge::merge(stream, left, right, mask, out.0, out.1, pairs) }
}

/// Output of the first launch for the second, in one allocation: the table of the runs, then the splits.
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

    /// Returns one block per tile, with these bytes of shared memory besides the shape's.
    fn config(&self, shape: TileShape, more_bytes: u32) -> LaunchConfig {
        LaunchConfig::new(self.tiles, shape.threads).shared(shape.shared_bytes + more_bytes)
    }
}

/// Queues the search for the part of each run in each tile of this shape; there is at least one item.
///
/// # Safety
/// Until `stream` has passed this work, the runs stay allocated and nothing writes them.
unsafe fn prepare<K: SortKey>(stream: &Stream, operands: &Operands, mask: u128, shape: TileShape) -> Result<Prepared> {
    let Operands { mut runs, ref lengths, total, .. } = *operands;
    let tiles = tiles(total, shape.tile())?;
    let group = lengths.len().next_power_of_two().max(8) as u32;
    let tree = Tree::new(lengths);
    runs.nodes = tree.nodes;
    let mut memory = stream.alloc_uninit::<u64>(TABLE_WORDS + group as usize * (tiles as usize + 1))?;
    let (table, splits) = (memory.global_mut(), memory.global_mut().at(TABLE_WORDS));
    let (mask, tile_items, total) = (K::from_bits(mask), shape.tile() as u32, total as u64);
    // For many tiles, every sixteenth goes first: the tiles between them then have less to search.
    let step = if tiles < STEPS_FROM { 1 } else { SPLIT_STEP };
    let rounds = if step == 1 { 1 } else { 2 };
    for between in 0..rounds {
        let searched = if between == 0 { tiles.div_ceil(step) } else { tiles };
        let config = LaunchConfig::covering(group as usize * (searched as usize + 1), SPLIT_BLOCK);
        let kernel =
            kernels::merge_many_splits { runs, group, total, mask, tile_items, tiles, step, between, splits, table };
        // SAFETY: lengths were checked; scratch belongs to this call; the rest is the contract of this function.
        unsafe { kernel.launch(stream, config)? };
    }
    Ok(Prepared { memory, group, tree, tiles })
}

/// Checks, and queues the merge.
///
/// # Safety
/// Until `stream` has passed this work:
/// - inputs and outputs stay allocated;
/// - no other work writes the inputs or accesses the outputs.
pub(super) unsafe fn merge<K: SortKey, V: Payload>(
    stream: &Stream,
    inputs: &[Input<'_, K, V>],
    mask: KeyMask<K>,
    mut output: Output<'_, K, V>,
) -> Result<()> {
    let operands = Operands::new(stream, inputs, &output)?;
    let widths = output.widths();
    let out_keys = output.keys.global_mut();
    // The kernels without values read none, and those without status bits neither.
    let out_values = output.values.as_mut().map_or(out_keys.cast(), |values| values.global_mut());
    let out = (out_keys.cast(), out_values.cast());
    let out_status = output.status.as_mut().map(|status| status.global_mut());
    let Some(mut count) = output.count else {
        if operands.total == 0 {
            return Ok(());
        }
        if out_status.is_none() && go_in_twos(&operands) {
            // SAFETY: the contract of this function; lengths were checked.
            return unsafe {
                merge_in_twos(stream, inputs, mask, (out_keys, out_values), widths.wide_values.is_some())
            };
        }
        // SAFETY: as above.
        return unsafe { merge_all(stream, widths, &operands, mask.bits(), out, out_status) };
    };
    if operands.total == 0 {
        return Ok(stream.fill_bytes(count, 0)?);
    }
    if let Some(status) = &mut output.status {
        stream.fill_bytes(status.slice_mut(..operands.total.div_ceil(32)), 0)?;
    }
    let count = count.global_mut();
    // SAFETY: as above; bits that are kept have been cleared.
    unsafe { merge_newest(stream, widths, &operands, mask.bits(), out, out_status, count) }
}

/// Queues the merge of consecutive sorted pieces of `piece` items each, 2 to [`MAX_RUNS`](super::MAX_RUNS) of them, of
/// which the last one may be shorter.
///
/// # Safety
/// Until `stream` has passed this work:
/// - `items` and `out` are `total` items of these widths that stay allocated and do not overlap;
/// - no other work writes `items` or accesses `out`.
pub(crate) unsafe fn merge_pieces(
    stream: &Stream,
    widths: Widths,
    items: SortInput,
    total: usize,
    piece: usize,
    mask: u128,
    out: SortOutput,
) -> Result<()> {
    if total <= 2 * piece {
        let part = |first: usize, len: usize| {
            let (key, value) = (widths.key_bytes(), widths.value_bytes());
            let (keys, values) = (items.keys.at(first * key), items.values.at(first * value));
            Run {
                keys: Global::from_raw_parts(keys.as_ptr(), len * key),
                values: Global::from_raw_parts(values.as_ptr(), len * value),
            }
        };
        let (a, b) = (part(0, piece), part(piece, total - piece));
        // SAFETY: the contract of this function.
        return unsafe { merge::launch(widths, Launches::of(total), stream, a, b, mask, out.keys, out.values) };
    }
    let operands = Operands::pieces(widths, items, total, piece);
    // SAFETY: the contract of this function.
    unsafe { merge_all(stream, widths, &operands, mask, (out.keys, out.values), None) }
}

/// Queues the merge of all items. Not generic, so that it is compiled here and not in each program.
///
/// # Safety
/// The contract of [`merge`], checked; there is at least one item, and keys and values have the types of `widths`.
unsafe fn merge_all(
    stream: &Stream,
    widths: Widths,
    operands: &Operands,
    mask: u128,
    out: (GlobalMut<u8>, GlobalMut<u8>),
    out_status: Option<GlobalMut<u32>>,
) -> Result<()> {
    let prepare = by_key_width!(widths, prepare);
    // SAFETY: the types have the sizes of the kernel's; lengths were checked; scratch belongs to this call and is freed
    // in stream order; the rest is the contract of this function.
    unsafe {
        by_widths!(
            widths,
            kernels::{
                merge_many_u32, merge_many_u32_u32, merge_many_u32_u64, merge_many_u64, merge_many_u64_u32,
                merge_many_u64_u64, merge_many_u128, merge_many_u128_u32, merge_many_u128_u64
            },
            |kernel| {
                let prepared = prepare(stream, operands, mask, kernel::SHAPE)?;
                let more_bytes = if out_status.is_some() { kernel::STATUS_BYTES } else { 0 };
                kernel {
                    table: prepared.table(),
                    splits: prepared.splits(),
                    group: prepared.group,
                    odd: prepared.tree.odd,
                    rounds: prepared.tree.rounds,
                    mask: mask as _,
                    out_keys: out.0.cast(),
                    out_values: out.1.cast(),
                    out_status: out_status.unwrap_or(out.0.cast()),
                    with_status: u32::from(out_status.is_some()),
                }
                .launch(stream, prepared.config(kernel::SHAPE, more_bytes))?
            }
        )
    };
    Ok(())
}

/// Queues the merge of the newest items. Not generic, for the same reason.
///
/// # Safety
/// The contract of [`merge_all`]; bits of `out_status` are clear.
unsafe fn merge_newest(
    stream: &Stream,
    widths: Widths,
    operands: &Operands,
    mask: u128,
    out: (GlobalMut<u8>, GlobalMut<u8>),
    out_status: Option<GlobalMut<u32>>,
    count: GlobalMut<u64>,
) -> Result<()> {
    let status = if operands.marked { MARKED } else { 0 } | if out_status.is_some() { KEEP_MARKED } else { 0 };
    let prepare = by_key_width!(widths, prepare);
    // SAFETY: as in `merge_all`.
    unsafe {
        by_widths!(
            widths,
            newest::{
                merge_newest_u32, merge_newest_u32_u32, merge_newest_u32_u64, merge_newest_u64, merge_newest_u64_u32,
                merge_newest_u64_u64, merge_newest_u128, merge_newest_u128_u32, merge_newest_u128_u64
            },
            |kernel| {
                let prepared = prepare(stream, operands, mask, kernel::SHAPE)?;
                let mut look_back = LookBack::new(stream, prepared.tiles as usize)?;
                let more_bytes = if operands.marked { kernel::STATUS_BYTES } else { 0 };
                kernel {
                    table: prepared.table(),
                    splits: prepared.splits(),
                    group: prepared.group,
                    odd: prepared.tree.odd,
                    rounds: prepared.tree.rounds,
                    mask: mask as _,
                    tiles: prepared.tiles,
                    look_back: look_back.words(),
                    ticket: look_back.ticket(),
                    out_keys: out.0.cast(),
                    out_values: out.1.cast(),
                    out_status: out_status.unwrap_or(out.0.cast()),
                    status,
                    count,
                }
                .launch(stream, prepared.config(kernel::SHAPE, more_bytes))?
            }
        )
    };
    Ok(())
}

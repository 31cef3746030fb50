//! Inputs that all multiprocessors hold at once: one launch, whose blocks wait for each other.

use std::ops::Range;

use warpset_gpu::{Device, DeviceVec, LaunchConfig, Stream};
use warpset_kernels::primitives::ranking::DIGIT_BITS;
use warpset_kernels::primitives::resident_sort::{self as kernels, COUNT_WORDS, ResidentShape};
use warpset_simt::KernelInfo;

use super::operands::{Source, Target};
use super::words::{Widths, by_widths};
use crate::Result;

/// The most items that are sorted this way, if the device holds as many: beyond, launches cost less than what blocks wait
/// for each other.
pub(super) fn most(widths: Widths) -> usize {
    if widths.wide_keys || widths.wide_values == Some(true) { 1 << 20 } else { 1 << 21 }
}

/// The kernel of these widths.
pub(super) fn kernel(widths: Widths) -> &'static KernelInfo {
    by_widths!(
        widths,
        kernels::{
            resident_sort_u32, resident_sort_u32_u32, resident_sort_u32_u64, resident_sort_u64, resident_sort_u64_u32,
            resident_sort_u64_u64
        },
        |kernel| kernel::INFO
    )
}

fn shape(widths: Widths) -> ResidentShape {
    by_widths!(
        widths,
        kernels::{
            RESIDENT_U32, RESIDENT_U32_U32, RESIDENT_U32_U64, RESIDENT_U64, RESIDENT_U64_U32, RESIDENT_U64_U64
        },
        |shape| shape
    )
}

/// How the items are shared out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    blocks: u32,
    rows: u32,
    shape: ResidentShape,
}

impl Grid {
    /// Blocks of as few items as the device has multiprocessors for; `None` if it does not hold `n` items.
    pub(super) fn new(device: &Device, widths: Widths, n: usize) -> Result<Option<Grid>> {
        let shape = shape(widths);
        let multiprocessors = device.properties().multiprocessors as usize;
        let rows = n.div_ceil(shape.tile(1) * multiprocessors) as u32;
        if rows > shape.items || shape.shared_bytes(rows) > device.properties().max_shared_bytes_per_block {
            return Ok(None);
        }
        let grid = Grid { blocks: n.div_ceil(shape.tile(rows)) as u32, rows, shape };
        let resident = device.resident_blocks(kernel(widths), grid.config())?;
        Ok((grid.blocks <= resident).then_some(grid))
    }

    fn config(self) -> LaunchConfig {
        LaunchConfig::new(self.blocks, self.shape.threads).shared(self.shape.shared_bytes(self.rows)).cooperative()
    }
}

/// Words of 4 bytes of scratch beside the items, for `n` of them.
pub(super) fn words(widths: Widths, n: usize) -> usize {
    n.div_ceil(shape(widths).tile(1)) * COUNT_WORDS as usize + 1
}

/// # Safety
/// As [`sort_items`](super::sort_items).
#[allow(clippy::too_many_arguments)] // what there is to say of a sort
pub(super) unsafe fn sort_resident(
    stream: &Stream,
    widths: Widths,
    source: Source,
    target: Target,
    n: usize,
    bits: Range<u32>,
    flip: u32,
    in_place: bool,
    grid: Grid,
) -> Result<()> {
    let mut scratch_keys: DeviceVec<u8> = stream.alloc_uninit(n * widths.key_bytes())?;
    let mut scratch_values: DeviceVec<u8> = stream.alloc_uninit(n * widths.value_bytes())?;
    // The word that blocks count each other by, then the counts.
    let mut words: DeviceVec<u32> = stream.alloc_uninit(1 + grid.blocks as usize * COUNT_WORDS as usize)?;
    stream.fill_bytes(words.slice_mut(..1), 0)?;
    let words = words.global_mut();
    let width = bits.end - bits.start;
    // SAFETY: scratch is this call's own, and freed in the order of the stream; the grid is one that the device holds;
    // the caller answers for the items.
    unsafe {
        by_widths!(
            widths,
            kernels::{
                resident_sort_u32, resident_sort_u32_u32, resident_sort_u32_u64, resident_sort_u64,
                resident_sort_u64_u32, resident_sort_u64_u64
            },
            |kernel| kernel {
                keys: source.keys.cast(),
                values: source.values.cast(),
                scratch_keys: scratch_keys.global_mut().cast(),
                scratch_values: scratch_values.global_mut().cast(),
                out_keys: target.keys.cast(),
                out_values: target.values.cast(),
                n: n as u32,
                begin: bits.start,
                bits: width,
                passes: width.div_ceil(DIGIT_BITS).max(1),
                flip,
                rows: grid.rows,
                in_place: u32::from(in_place),
                counts: words.at(1),
                arrived: words,
            }
            .launch(stream, grid.config())?
        )
    };
    Ok(())
}

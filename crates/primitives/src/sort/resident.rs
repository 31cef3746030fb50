//! Sort of inputs that all multiprocessors hold together, in one launch with blocks that wait for each other.

use std::ops::Range;

use warpset_gpu::{Device, DeviceVec, LaunchConfig, Stream};
use warpset_kernels::primitives::ranking::{DIGIT_BITS, DIGITS};
use warpset_kernels::primitives::resident_sort::{
    self as kernels, COUNT_WORDS, HEAD_WORDS, Order, ResidentShape, Room,
};
use warpset_simt::KernelInfo;

use super::operands::{SortInput, SortOutput};
use super::words::{Widths, by_widths};
use crate::Result;

/// Returns the largest number of items that are sorted this way, if the device holds them: beyond, launches cost less
/// than the waits of blocks for each other.
pub(super) fn most(widths: Widths) -> usize {
    if widths.key_bytes().max(widths.value_bytes()) > 4 { 1 << 20 } else { 1 << 21 }
}

/// Returns the kernel of these widths.
pub(super) fn kernel(widths: Widths) -> &'static KernelInfo {
    by_widths!(
        widths,
        kernels::{
            resident_sort_u32, resident_sort_u32_u32, resident_sort_u32_u64, resident_sort_u64, resident_sort_u64_u32,
            resident_sort_u64_u64, resident_sort_u128, resident_sort_u128_u32, resident_sort_u128_u64
        },
        |kernel| kernel::INFO
    )
}

fn shape(widths: Widths) -> ResidentShape {
    by_widths!(
        widths,
        kernels::{
            RESIDENT_U32, RESIDENT_U32_U32, RESIDENT_U32_U64, RESIDENT_U64, RESIDENT_U64_U32, RESIDENT_U64_U64,
            RESIDENT_U128, RESIDENT_U128_U32, RESIDENT_U128_U64
        },
        |shape| shape
    )
}

/// Fewest items per block, while there are multiprocessors for more blocks.
const SHARE: usize = 512;
/// Fewest passes for which sorting by parts is faster.
const PASSES_FOR_PARTS: u32 = 3;

/// Distribution of the items.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    blocks: u32,
    share: u32,
    room: Room,
    shape: ResidentShape,
}

impl Grid {
    /// Returns blocks with the fewest items that the number of multiprocessors allows; `None` if the device cannot hold
    /// `n` items.
    pub(super) fn new(device: &Device, widths: Widths, n: usize, bits: &Range<u32>) -> Result<Option<Grid>> {
        let shape = shape(widths);
        let properties = device.properties();
        let share = n.div_ceil(properties.multiprocessors as usize).max(SHARE);
        let (blocks, most) = (n.div_ceil(share) as u32, properties.max_shared_bytes_per_block);
        let rows = share.div_ceil(shape.tile(1)) as u32;
        let mut grid = Grid { blocks, share: share as u32, room: Room { capacity: 0, slots: 0 }, shape };
        if rows > shape.items || grid.shared_bytes() > most {
            return Ok(None);
        }
        if passes(bits) >= PASSES_FOR_PARTS && (2..=DIGITS).contains(&blocks) {
            grid.room = room(shape, share as u32, most).unwrap_or(grid.room);
        }
        // A multiprocessor of a CUDA device runs one block of any kernel that it can launch; an emulator has a setting.
        let resident = match device.is_emulator() {
            true => device.resident_blocks(kernel(widths), grid.config())?,
            false => properties.multiprocessors,
        };
        Ok((blocks <= resident).then_some(grid))
    }

    fn shared_bytes(self) -> u32 {
        self.shape.shared_bytes(self.share.div_ceil(self.shape.threads), self.room)
    }

    fn config(self) -> LaunchConfig {
        LaunchConfig::new(self.blocks, self.shape.threads).shared(self.shared_bytes()).cooperative()
    }
}

fn passes(bits: &Range<u32>) -> u32 {
    (bits.end - bits.start).div_ceil(DIGIT_BITS).max(1)
}

/// Returns memory for parts of up to twice a block's share, as far as shared memory allows; `None` if that is too
/// little for uniformly distributed keys.
fn room(shape: ResidentShape, share: u32, most_bytes: u32) -> Option<Room> {
    let least = share + 6 * share.isqrt() + 32;
    // Twice as many slots as expected items, or fewer.
    [1, 2, 4].into_iter().find_map(|fewer| {
        let slots = (2 * share / fewer).next_multiple_of(4 * shape.threads);
        let empty = Room { capacity: 0, slots };
        let bytes = most_bytes.checked_sub(empty.shared_bytes(0))?;
        // The number of keys of 4 bytes is even, so that values after them are aligned.
        let capacity = (bytes / (shape.item_bytes() + 2)).min(2 * share).min(u16::MAX.into()) & !1;
        (capacity >= least).then_some(Room { capacity, slots })
    })
}

/// Returns the largest number of items that the device sorts by parts; `None` if there is none.
pub(super) fn most_by_parts(device: &Device, widths: Widths, bits: &Range<u32>) -> Result<Option<usize>> {
    let (shape, multiprocessors) = (shape(widths), device.properties().multiprocessors as usize);
    for rows in (1..=shape.items).rev() {
        let n = (multiprocessors * shape.tile(rows)).min(most(widths));
        if Grid::new(device, widths, n, bits)?.is_some_and(|grid| grid.room.capacity != 0) {
            return Ok(Some(n));
        }
    }
    Ok(None)
}

/// Returns the words of 4 bytes of scratch beside the items, for `n` items.
pub(super) fn words(n: usize) -> usize {
    n.div_ceil(SHARE) * COUNT_WORDS as usize + 2 * HEAD_WORDS as usize
}

/// Queues a sort by resident blocks.
///
/// # Safety
/// The contract of [`sort_items`](super::sort_items); `REVERSED` is not combined with `IN_PLACE`.
#[allow(clippy::too_many_arguments)] // what there is to say of a sort
pub(super) unsafe fn sort_resident(
    stream: &Stream,
    widths: Widths,
    source: SortInput,
    target: SortOutput,
    n: usize,
    bits: Range<u32>,
    flip: u32,
    flags: u32,
    grid: Grid,
) -> Result<()> {
    // One allocation: the words at which blocks meet, their counts, keys, values.
    let counts_bytes = 8 * HEAD_WORDS as usize + 4 * grid.blocks as usize * COUNT_WORDS as usize;
    let keys_at = counts_bytes.next_multiple_of(16);
    let values_at = (keys_at + n * widths.key_bytes()).next_multiple_of(16);
    let mut scratch: DeviceVec<u8> = stream.alloc_uninit(values_at + n * widths.value_bytes())?;
    stream.fill_bytes(scratch.slice_mut(..8 * HEAD_WORDS as usize), 0)?;
    let scratch = scratch.global_mut();
    // SAFETY: scratch belongs to this call and is freed in stream order; the device holds the grid; the items are
    // covered by the contract of this function.
    unsafe {
        by_widths!(
            widths,
            kernels::{
                resident_sort_u32, resident_sort_u32_u32, resident_sort_u32_u64, resident_sort_u64,
                resident_sort_u64_u32, resident_sort_u64_u64, resident_sort_u128, resident_sort_u128_u32,
                resident_sort_u128_u64
            },
            |kernel| kernel {
                keys: source.keys.cast(),
                values: source.values.cast(),
                scratch_keys: scratch.at(keys_at).cast(),
                scratch_values: scratch.at(values_at).cast(),
                out_keys: target.keys.cast(),
                out_values: target.values.cast(),
                n: n as u32,
                order: Order { begin: bits.start, bits: bits.end - bits.start, passes: passes(&bits), flip },
                share: grid.share,
                room: grid.room,
                flags,
                words: scratch.cast(),
            }
            .launch(stream, grid.config())?
        )
    };
    Ok(())
}

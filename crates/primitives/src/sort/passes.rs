//! Sort by a launch that counts all digits, and one launch per digit.

use std::ops::Range;

use warpset_gpu::{DeviceVec, LaunchConfig, Stream};
use warpset_kernels::primitives::onesweep_tile::PassShape;
use warpset_kernels::primitives::radix_sort::{
    self as kernels, HISTOGRAM_BLOCK, HISTOGRAM_U32, HISTOGRAM_U64, HISTOGRAM_U128, LARGE_HISTOGRAM_U32,
    LARGE_HISTOGRAM_U64, LARGE_HISTOGRAM_U128,
};
use warpset_kernels::primitives::ranking::{DIGIT_BITS, DIGITS, Digit, LOOK_BACK_ITEMS};

use super::operands::{SortInput, SortOutput};
use super::words::sealed::KeyWidth;
use super::words::{Widths, by_widths};
use crate::Result;

/// Sizes at which the method changes; tests set smaller ones.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Largest number of items of a launch.
    pub(super) launch: usize,
    /// Fewest keys that are counted in columns.
    pub(super) many: usize,
}

pub(super) const LIMITS: Limits = Limits { launch: LOOK_BACK_ITEMS, many: 1 << 22 };

/// Division of the work.
pub(super) struct Passes {
    shape: PassShape,
    bits: Range<u32>,
    passes: u32,
    /// Items per launch.
    portion: usize,
    portions: u32,
    /// Rows of look-back words per launch.
    rows: usize,
}

impl Passes {
    /// Divides the work so that no launch gets more than `limit` items.
    pub(super) fn new(widths: Widths, n: usize, bits: Range<u32>, in_place: bool, limit: usize) -> Passes {
        let shape = by_widths!(
            widths,
            kernels::{
                PASS_U32, PASS_U32_U32, PASS_U32_U64, PASS_U64, PASS_U64_U32, PASS_U64_U64, PASS_U128, PASS_U128_U32,
                PASS_U128_U64
            },
            |shape| shape
        );
        let mut passes = (bits.end - bits.start).div_ceil(DIGIT_BITS);
        if in_place {
            passes = passes.next_multiple_of(2); // the last must write what the first has read
        }
        let portion = limit / shape.tile * shape.tile;
        let rows = n.min(portion).div_ceil(shape.tile);
        Passes { shape, bits, passes, portion, portions: n.div_ceil(portion) as u32, rows }
    }

    // Scratch, in words of 8 bytes, first the zeroed part: look-back words (two halves), the starts of digits, two rows
    // of starts for portions, and then single words of 4 bytes: the histogram's count of blocks, the passes that move
    // items, a ticket per launch.

    fn starts_at(&self) -> usize {
        self.rows * DIGITS as usize / 2
    }

    fn singles_at(&self) -> usize {
        self.starts_at() + (self.passes as usize + 2) * DIGITS as usize
    }

    fn second_half_at(&self) -> usize {
        self.singles_at() + (1 + self.passes as usize * (1 + self.portions as usize)).div_ceil(2)
    }

    pub(super) fn words(&self) -> usize {
        self.second_half_at() + self.starts_at()
    }
}

/// Queues a sort by passes.
///
/// # Safety
/// The contract of [`sort_items`](super::sort_items).
#[allow(clippy::too_many_arguments)] // what there is to say of a sort
pub(super) unsafe fn sort_in_passes(
    stream: &Stream,
    widths: Widths,
    source: SortInput,
    target: SortOutput,
    n: usize,
    bits: Range<u32>,
    flip: u32,
    in_place: bool,
    limits: Limits,
) -> Result<()> {
    let mut layout = Passes::new(widths, n, bits, in_place, limits.launch);
    // Without bits, one pass by a digit of no bits copies.
    layout.passes = layout.passes.max(1);
    let Passes { shape, passes, portions, rows, .. } = layout;
    let (begin, width) = (layout.bits.start, layout.bits.end - layout.bits.start);

    let mut scratch_keys: DeviceVec<u8> = stream.alloc_uninit(n * widths.key_bytes())?;
    let mut scratch_values: DeviceVec<u8> = stream.alloc_uninit(n * widths.value_bytes())?;
    let scratch = SortOutput { keys: scratch_keys.global_mut(), values: scratch_values.global_mut() };
    let mut words: DeviceVec<u64> = stream.alloc_uninit(layout.words())?;
    stream.fill_bytes(words.slice_mut(..layout.second_half_at()), 0)?;
    let words = words.global_mut();
    let starts = |row: u32| words.at(layout.starts_at() + row as usize * DIGITS as usize);
    let single = |i: usize| words.at(layout.singles_at()).cast::<u32>().at(i);
    let (done, steps, tickets) = (single(0), single(1), single(1 + passes as usize));
    let (look_back, second) = (words.cast::<u32>(), words.at(layout.second_half_at()).cast::<u32>());

    let multiprocessors = stream.device().properties().multiprocessors as usize;
    // SAFETY: scratch has the layout of the kernels' contracts, belongs to this call and is freed in stream order; the
    // items are covered by the contract of this function.
    unsafe {
        macro_rules! count {
            ($kernel:ident, $shape:ident, $items_a_thread:expr) => {{
                let grid = n.div_ceil($items_a_thread * HISTOGRAM_BLOCK as usize).min(multiprocessors) as u32;
                let config = LaunchConfig::new(grid, HISTOGRAM_BLOCK).shared($shape.shared_bytes());
                let (keys, in_place) = (source.keys.cast(), u32::from(in_place));
                kernels::$kernel {
                    keys,
                    n,
                    begin,
                    bits: width,
                    passes,
                    flip,
                    in_place,
                    starts: starts(0),
                    plan: steps,
                    done,
                }
                .launch(stream, config)?
            }};
        }
        // Columns of counters have to be summed, which takes longer than counting a few keys.
        match (widths.keys, n < limits.many) {
            (KeyWidth::U32, true) => count!(radix_sort_histogram_u32, HISTOGRAM_U32, 8),
            (KeyWidth::U64, true) => count!(radix_sort_histogram_u64, HISTOGRAM_U64, 8),
            (KeyWidth::U128, true) => count!(radix_sort_histogram_u128, HISTOGRAM_U128, 4),
            (KeyWidth::U32, false) => count!(radix_sort_large_histogram_u32, LARGE_HISTOGRAM_U32, 64),
            (KeyWidth::U64, false) => count!(radix_sort_large_histogram_u64, LARGE_HISTOGRAM_U64, 64),
            (KeyWidth::U128, false) => count!(radix_sort_large_histogram_u128, LARGE_HISTOGRAM_U128, 64),
        }
        for pass in 0..passes {
            let digit = Digit::of_pass(begin, width, pass, passes, flip);
            for portion in 0..portions {
                let first = portion as usize * layout.portion;
                let items = (n - first).min(layout.portion) as u32;
                let config =
                    LaunchConfig::new(items.div_ceil(shape.tile as u32), shape.threads).shared(shape.shared_bytes);
                let from = if portion == 0 { starts(pass) } else { starts(passes + (portion + 1) % 2) };
                let to = starts(passes + portion % 2);
                by_widths!(
                    widths,
                    kernels::{
                        radix_sort_pass_u32, radix_sort_pass_u32_u32, radix_sort_pass_u32_u64, radix_sort_pass_u64,
                        radix_sort_pass_u64_u32, radix_sort_pass_u64_u64, radix_sort_pass_u128,
                        radix_sort_pass_u128_u32, radix_sort_pass_u128_u64
                    },
                    |kernel| kernel {
                        keys: source.keys.cast(),
                        values: source.values.cast(),
                        scratch_keys: scratch.keys.cast(),
                        scratch_values: scratch.values.cast(),
                        out_keys: target.keys.cast(),
                        out_values: target.values.cast(),
                        first_item: first,
                        n: items,
                        shift: digit.shift,
                        mask: digit.mask,
                        flip: digit.flip,
                        step: steps.as_const().at(pass as usize),
                        starts: from.as_const(),
                        next_starts: to,
                        look_back,
                        look_back_2: second,
                        rows: rows as u32,
                        portion,
                        portions,
                        ticket: tickets.at((pass * portions + portion) as usize),
                    }
                    .launch(stream, config)?
                );
            }
        }
    }
    Ok(())
}

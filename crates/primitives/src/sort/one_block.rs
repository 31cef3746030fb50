//! Sort of inputs that one block holds, in one launch.

use std::ops::Range;

use warpset_gpu::{LaunchConfig, Stream};
use warpset_kernels::primitives::radix_sort::{self as kernels, SMALL_BLOCK, SMALL_SHARED_BYTES};
use warpset_kernels::primitives::ranking::DIGIT_BITS;

use super::operands::{SortInput, SortOutput};
use super::words::{Widths, by_widths};
use crate::Result;

/// Returns the largest number of items that one block sorts faster than many blocks in one launch: it takes one pass
/// per digit, many blocks take none. A device that cannot run all these blocks at once sorts up to
/// [`ONE_BLOCK`](super::ONE_BLOCK) items in one block, whatever the number of digits.
pub(super) fn most(bits: &Range<u32>) -> usize {
    if bits.end - bits.start > 64 { MANY_DIGITS } else { super::ONE_BLOCK }
}

/// Items with more than eight digits that one block sorts faster.
pub(super) const MANY_DIGITS: usize = 512;

/// Queues a sort by one block.
///
/// # Safety
/// The contract of [`sort_items`](super::sort_items).
pub(super) unsafe fn sort_in_one_block(
    stream: &Stream,
    widths: Widths,
    source: SortInput,
    target: SortOutput,
    n: u32,
    bits: Range<u32>,
    flip: u32,
) -> Result<()> {
    let config = LaunchConfig::new(1, SMALL_BLOCK).shared(SMALL_SHARED_BYTES);
    let width = bits.end - bits.start;
    // SAFETY: `n` and the bits are in range; the items are covered by the contract of this function.
    unsafe {
        by_widths!(
            widths,
            kernels::{
                radix_sort_small_u32, radix_sort_small_u32_u32, radix_sort_small_u32_u64, radix_sort_small_u64,
                radix_sort_small_u64_u32, radix_sort_small_u64_u64, radix_sort_small_u128, radix_sort_small_u128_u32,
                radix_sort_small_u128_u64
            },
            |kernel| kernel {
                keys: source.keys.cast(),
                values: source.values.cast(),
                out_keys: target.keys.cast(),
                out_values: target.values.cast(),
                n,
                begin: bits.start,
                bits: width,
                passes: width.div_ceil(DIGIT_BITS),
                flip,
            }
            .launch(stream, config)?
        )
    };
    Ok(())
}

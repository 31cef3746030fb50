//! Sort of wide keys in pieces that all multiprocessors hold, and merges of the pieces.
//!
//! Passes move each item once per digit. Blocks that hold a piece move its items twice, whatever the number of digits,
//! and a merge of up to [`MAX_RUNS`] pieces moves them once more.

use std::ops::Range;

use warpset_gpu::{DeviceVec, Stream};
use warpset_kernels::primitives::merge_many::runs::TABLE_WORDS;

use super::operands::{SortInput, SortOutput};
use super::words::Widths;
use super::{By, SortKey, resident, sort_items};
use crate::Result;
use crate::merge::{MAX_RUNS, merge_pieces};

/// Fewest bits for which pieces are faster than passes.
const FEWEST_BITS: u32 = 64;
/// Items of the smallest tile of a merge, or fewer.
const LEAST_TILE: usize = 1024;

/// Whether keys of these widths may be sorted in pieces.
fn has_pieces(widths: Widths) -> bool {
    widths.key_bytes() > 8
}

/// Returns the items of scratch for any number of pieces.
pub(super) fn items(widths: Widths, n: usize) -> usize {
    // All pieces; scratch of one that consists of pieces, at most half of the items; scratch of one of these.
    if has_pieces(widths) { n + n.div_ceil(2) + n.div_ceil(2).min(resident::most(widths)) } else { n }
}

/// Returns the words of 8 bytes of scratch beside the items.
pub(super) fn words(widths: Widths, n: usize) -> usize {
    if has_pieces(widths) { TABLE_WORDS + MAX_RUNS * (n / LEAST_TILE + 2) } else { 0 }
}

/// Returns the length of pieces into which `n` items are divided, up to [`MAX_RUNS`] of them; the device holds such a
/// piece, or as many parts of it. `None` if the device holds all items, or if passes are faster. Keys ascend.
pub(super) fn length(stream: &Stream, widths: Widths, n: usize, bits: &Range<u32>) -> Result<Option<usize>> {
    if !has_pieces(widths) || bits.end - bits.start < FEWEST_BITS {
        return Ok(None);
    }
    let Some(most) = resident::most_by_parts(stream.device(), widths, bits)? else { return Ok(None) };
    let pieces = n.div_ceil(most);
    Ok(match pieces.div_ceil(MAX_RUNS) {
        _ if pieces <= 1 => None,
        1 => Some(n.div_ceil(pieces)),
        groups if groups <= MAX_RUNS => Some(n.div_ceil(groups)),
        _ => None,
    })
}

/// Queues a sort in pieces of this length.
///
/// # Safety
/// The contract of [`sort_items`].
pub(super) unsafe fn sort_in_pieces<K: SortKey>(
    stream: &Stream,
    widths: Widths,
    source: SortInput,
    target: SortOutput,
    n: usize,
    piece: usize,
    by: By,
) -> Result<()> {
    let (key, value, bits) = (widths.key_bytes(), widths.value_bytes(), by.range::<K>()?);
    let mut keys: DeviceVec<u8> = stream.alloc_uninit(n * key)?;
    let mut values: DeviceVec<u8> = stream.alloc_uninit(n * value)?;
    let sorted = SortOutput { keys: keys.global_mut(), values: values.global_mut() };
    let mask = u128::MAX.checked_shr(128 - bits.len() as u32).unwrap_or(0) << bits.start;
    // SAFETY: pieces are parts of the items; scratch belongs to this call and is freed in stream order. The target,
    // which may be the source, is written when all pieces have been read.
    unsafe {
        for first in (0..n).step_by(piece) {
            let len = piece.min(n - first);
            // In reverse order the last items come first.
            let from = if by.is_reversed() { n - first - len } else { first };
            let input = SortInput { keys: source.keys.at(from * key), values: source.values.at(from * value) };
            let output = SortOutput { keys: sorted.keys.at(first * key), values: sorted.values.at(first * value) };
            sort_items::<K>(stream, widths, input, output, len, by.clone(), false)?;
        }
        merge_pieces(stream, widths, sorted.as_source(), n, piece, mask, target)
    }
}

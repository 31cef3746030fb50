//! Lookups and counts in rank-and-select quotient filters.

use warpset_core::quotient::rank_select::fields;
use warpset_gpu::Stream;
use warpset_gpu::batch::Answers;
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::quotient::rank_select::counted::{
    quotient_rank_select_contains_counted, quotient_rank_select_contains_counted_paired,
    quotient_rank_select_count_counted, quotient_rank_select_count_counted_paired,
};
use warpset_kernels::quotient::rank_select::lookup::{
    quotient_rank_select_contains, quotient_rank_select_contains_paired, quotient_rank_select_contains_sorted,
    quotient_rank_select_count, quotient_rank_select_count_paired,
};
use warpset_simt::GlobalMut;

use crate::gpu::fingerprints::{grid, parameters};
use crate::gpu::sorted::{SortedKeys, with_sorted};
use crate::gpu::{LookupMethod, QuotientFilter};
use crate::{Error, RankSelect};

type Filter = QuotientFilter<RankSelect>;

/// Launches the kernel, or the one that loads words by pairs where each block begins with one.
///
/// The kernels of this file take the same filter and keys, then what the braces name.
macro_rules! launch {
    ($filter:ident, $stream:ident, $keys:ident, $n:ident, $kernel:ident or $paired:ident { $($more:ident),* }) => {{
        let (layout, words, n) = (&$filter.layout, $filter.words.global(), $n);
        let (blocks, parameters, fields) = (layout.blocks, parameters(layout), fields(layout.remainder_bits()));
        let KeySlice { keys, kind, spread } = $keys;
        if layout.block_words() % 2 == 0 {
            $paired { words, blocks, parameters, fields, keys, kind, spread, n, $($more),* }.launch($stream, grid(n))?;
        } else {
            $kernel { words, blocks, parameters, fields, keys, kind, spread, n, $($more),* }.launch($stream, grid(n))?;
        }
    }};
}

/// Queues the lookup of `n` keys.
///
/// # Safety
/// As for [`DeviceSlotKind::look_up`](crate::gpu::DeviceSlotKind::look_up).
pub(super) unsafe fn look_up(
    filter: &Filter,
    stream: &Stream,
    keys: KeySlice,
    n: usize,
    answers: Answers,
    method: LookupMethod,
) -> Result<(), Error> {
    if n == 0 {
        return Ok(());
    }
    // A lookup takes as long at any load, so sorting never pays (`docs/performance-log.md`).
    if method == LookupMethod::Sorted && n < 1 << 32 && !filter.layout.is_counted() {
        // SAFETY: the caller's promise is the same.
        return unsafe { look_up_sorted(filter, stream, keys, n, answers) };
    }
    let Answers { words: out, form } = answers;
    // SAFETY: the filter is sound, and has counters where the kernel expects them; the caller answers for the rest.
    unsafe {
        if filter.layout.is_counted() {
            launch!(filter, stream, keys, n, quotient_rank_select_contains_counted
                or quotient_rank_select_contains_counted_paired { form, out });
        } else {
            launch!(filter, stream, keys, n, quotient_rank_select_contains
                or quotient_rank_select_contains_paired { form, out });
        }
    }
    Ok(())
}

/// [`LookupMethod::Sorted`].
///
/// # Safety
/// As for [`look_up`], with fewer than 2^32 keys and at least one.
unsafe fn look_up_sorted(
    filter: &Filter,
    stream: &Stream,
    keys: KeySlice,
    n: usize,
    answers: Answers,
) -> Result<(), Error> {
    let Answers { words: out, form } = answers;
    let (layout, words) = (&filter.layout, filter.words.global());
    let (blocks, parameters, fields) = (layout.blocks, parameters(layout), fields(layout.remainder_bits()));
    // SAFETY: the filter is sound, and sorted fingerprints are those of its layout; the caller answers for the rest.
    unsafe {
        let kernel = quotient_rank_select_contains_sorted::INFO;
        with_sorted(layout, stream, keys, n, answers, kernel, |sorted| {
            let SortedKeys { fingerprints, wide, places } = sorted;
            quotient_rank_select_contains_sorted {
                words,
                blocks,
                parameters,
                fields,
                fingerprints,
                wide,
                places,
                n,
                form,
                out,
            }
            .launch(stream, grid(n))?;
            Ok(())
        })
    }
}

/// Queues the count of the copies of `n > 0` keys' fingerprints.
///
/// # Safety
/// As for [`DeviceSlotKind::counts`](crate::gpu::DeviceSlotKind::counts).
pub(super) unsafe fn count(
    filter: &Filter,
    stream: &Stream,
    keys: KeySlice,
    n: usize,
    out: GlobalMut<u64>,
) -> Result<(), Error> {
    // SAFETY: the filter is sound, and has counters where the kernel expects them; the caller answers for the rest.
    unsafe {
        if filter.layout.is_counted() {
            launch!(filter, stream, keys, n, quotient_rank_select_count_counted
                or quotient_rank_select_count_counted_paired { out });
        } else {
            launch!(filter, stream, keys, n, quotient_rank_select_count
                or quotient_rank_select_count_paired { out });
        }
    }
    Ok(())
}

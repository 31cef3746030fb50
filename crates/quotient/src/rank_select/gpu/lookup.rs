//! Lookups and counts in rank-and-select quotient filters.

use warpset_core::quotient::rank_select::fields;
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

use crate::gpu::launch::{grid, parameters};
use crate::gpu::slot_kind::Asked;
use crate::gpu::sorted::{SortedKeys, with_sorted};
use crate::gpu::{LookupMethod, QuotientFilter};
use crate::{Error, RankSelect};

type Filter = QuotientFilter<RankSelect>;

/// Launches the kernel, or the one that loads words by pairs where each block begins with an even word.
///
/// The kernels of this file take the same filter and keys, then the arguments in braces.
macro_rules! launch {
    ($filter:ident, $asked:ident, $kernel:ident or $in_pairs:ident { $($more:ident),* }) => {{
        let Asked { stream, keys: KeySlice { keys, kind, spread, .. }, n } = $asked;
        let (layout, words) = (&$filter.layout, $filter.words.global());
        let (blocks, parameters, fields) = (layout.blocks, parameters(layout), fields(layout.remainder_bits()));
        if layout.block_words() % 2 == 0 {
            $in_pairs { words, blocks, parameters, fields, keys, kind, spread, n, $($more),* }.launch(stream, grid(n))?;
        } else {
            $kernel { words, blocks, parameters, fields, keys, kind, spread, n, $($more),* }.launch(stream, grid(n))?;
        }
    }};
}

/// Queues the lookup of keys.
///
/// # Safety
/// The conditions of [`DeviceSlots::look_up`](crate::gpu::slot_kind::DeviceSlots::look_up).
pub(super) unsafe fn look_up(
    filter: &Filter,
    asked: Asked<'_>,
    answers: Answers,
    method: LookupMethod,
) -> Result<(), Error> {
    if asked.n == 0 {
        return Ok(());
    }
    // A lookup takes as long at any load, so sorting never pays (`docs/performance/quotient.md`).
    if method == LookupMethod::Sorted && asked.n < 1 << 32 && !filter.layout.is_counted() {
        // SAFETY: the contract is the same.
        return unsafe { look_up_sorted(filter, asked, answers) };
    }
    let Answers { words: out, form } = answers;
    // SAFETY: the filter is sound, and has counters where the kernel expects them; the rest is the contract of this
    // function.
    unsafe {
        if filter.layout.is_counted() {
            launch!(filter, asked, quotient_rank_select_contains_counted
                or quotient_rank_select_contains_counted_paired { form, out });
        } else {
            launch!(filter, asked, quotient_rank_select_contains
                or quotient_rank_select_contains_paired { form, out });
        }
    }
    Ok(())
}

/// Queues the lookup of sorted fingerprints, by [`LookupMethod::Sorted`].
///
/// # Safety
/// The conditions of [`look_up`], with fewer than 2^32 keys and at least one.
unsafe fn look_up_sorted(filter: &Filter, asked: Asked<'_>, answers: Answers) -> Result<(), Error> {
    let (Asked { stream, n, .. }, Answers { words: out, form }) = (asked, answers);
    let (layout, words) = (&filter.layout, filter.words.global());
    let (blocks, parameters, fields) = (layout.blocks, parameters(layout), fields(layout.remainder_bits()));
    // SAFETY: the filter is sound, and sorted fingerprints are those of its layout; the rest is the contract of this
    // function.
    unsafe {
        with_sorted(layout, asked, answers, |sorted| {
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

/// Queues the count of the copies of fingerprints of keys, at least one key.
///
/// # Safety
/// The conditions of [`DeviceSlots::counts`](crate::gpu::slot_kind::DeviceSlots::counts).
pub(super) unsafe fn count(filter: &Filter, asked: Asked<'_>, out: GlobalMut<u64>) -> Result<(), Error> {
    // SAFETY: the filter is sound, and has counters where the kernel expects them; the rest is the contract of this
    // function.
    unsafe {
        if filter.layout.is_counted() {
            launch!(filter, asked, quotient_rank_select_count_counted
                or quotient_rank_select_count_counted_paired { out });
        } else {
            launch!(filter, asked, quotient_rank_select_count
                or quotient_rank_select_count_paired { out });
        }
    }
    Ok(())
}

//! Which kernels an update launches: a device loads them side by side.

use warpset_kernels::quotient::build::quotient_fingerprints;
use warpset_kernels::quotient::rank_select::in_place::{
    quotient_rank_select_begins, quotient_rank_select_insert_groups, quotient_rank_select_remove_groups,
};
use warpset_kernels::quotient::rank_select::rebuild::quotient_rank_select_rebuild;
use warpset_kernels::quotient::rank_select::regions::{
    quotient_rank_select_insert_regions, quotient_rank_select_queues, quotient_rank_select_remove_regions,
};
use warpset_primitives::sort;
use warpset_simt::KernelInfo;

use super::{UpdateMethod, UpdateWord};
use crate::Layout;
use crate::gpu::fingerprints::FingerprintWord;
use crate::slot_kind::Change;

/// Those of a batch of `n` by this method; the slowest to compile come first.
pub(super) fn of_update(layout: &Layout, n: usize, change: Change, method: UpdateMethod) -> Vec<&'static KernelInfo> {
    if layout.fingerprint_bits() <= 32 { of_word::<u32>(n, change, method) } else { of_word::<u64>(n, change, method) }
}

fn of_word<W: FingerprintWord + UpdateWord>(
    n: usize,
    change: Change,
    method: UpdateMethod,
) -> Vec<&'static KernelInfo> {
    let mut all = match (method, change) {
        (UpdateMethod::InPlace, Change::Insert) => {
            vec![quotient_rank_select_insert_groups::<W>::INFO, quotient_rank_select_begins::<W>::INFO]
        }
        (UpdateMethod::InPlace, Change::Remove) => {
            vec![quotient_rank_select_remove_groups::<W>::INFO, quotient_rank_select_begins::<W>::INFO]
        }
        (UpdateMethod::Regions, Change::Insert) => {
            vec![quotient_rank_select_insert_regions::<W>::INFO, quotient_rank_select_queues::<W>::INFO]
        }
        (UpdateMethod::Regions, Change::Remove) => {
            vec![quotient_rank_select_remove_regions::<W>::INFO, quotient_rank_select_queues::<W>::INFO]
        }
        _ => vec![quotient_rank_select_rebuild::<W>::INFO],
    };
    all.extend(sort::kernels_for_keys::<W>(n));
    all.push(quotient_fingerprints::<W>::INFO);
    all
}

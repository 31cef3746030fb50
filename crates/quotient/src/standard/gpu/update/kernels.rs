//! Which kernels an update launches: a device loads them side by side.

use warpset_kernels::quotient::build::quotient_fingerprints;
use warpset_kernels::quotient::update::in_place::{
    quotient_update_insert_sorted, quotient_update_regions, quotient_update_remove_sorted,
};
use warpset_kernels::quotient::update::superclusters::{
    quotient_update_bid, quotient_update_flag, quotient_update_insert_winners, quotient_update_remove_winners,
};
use warpset_primitives::{select, sort};
use warpset_simt::KernelInfo;

use super::{UpdateMethod, rebuild};
use crate::Layout;
use crate::gpu::fingerprints::FingerprintWord;
use crate::slot_kind::Change;

/// Those of a batch of `n` by this method, if it fits; the slowest to compile come first.
pub(super) fn of_update(layout: &Layout, n: usize, change: Change, method: UpdateMethod) -> Vec<&'static KernelInfo> {
    if layout.fingerprint_bits() <= 32 {
        of_word::<u32>(layout, n, change, method)
    } else {
        of_word::<u64>(layout, n, change, method)
    }
}

fn of_word<W: FingerprintWord>(
    layout: &Layout,
    n: usize,
    change: Change,
    method: UpdateMethod,
) -> Vec<&'static KernelInfo> {
    let mut all = match (method, change) {
        (UpdateMethod::Superclusters, Change::Insert) => vec![
            quotient_update_insert_winners::<W>::INFO,
            select::kernel_for_items::<W>(),
            quotient_update_flag::INFO,
            quotient_update_bid::<W>::INFO,
        ],
        (UpdateMethod::Superclusters, Change::Remove) => vec![
            quotient_update_remove_winners::<W>::INFO,
            select::kernel_for_items::<W>(),
            quotient_update_flag::INFO,
            quotient_update_bid::<W>::INFO,
        ],
        (UpdateMethod::InPlace, Change::Insert) => vec![
            quotient_update_insert_sorted::<W>::INFO,
            select::kernel_for_items::<W>(),
            quotient_update_regions::<W>::INFO,
        ],
        (UpdateMethod::InPlace, Change::Remove) => {
            vec![quotient_update_remove_sorted::<W>::INFO, quotient_update_regions::<W>::INFO]
        }
        _ => vec![rebuild::kernel::<W>(layout, n, change)],
    };
    if method != UpdateMethod::Superclusters {
        all.extend(sort::kernels_for_keys::<W>(n));
    }
    all.push(quotient_fingerprints::<W>::INFO);
    all
}

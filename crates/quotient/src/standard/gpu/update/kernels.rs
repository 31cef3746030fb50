//! Which kernels an update launches after its fingerprints have been hashed: a device loads them side by side.

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
use crate::slot_kind::Change;
use crate::standard::gpu::standard_word::StandardWord;

/// Those of a batch of `n` by this method, if it fits.
pub(super) fn of_update(layout: &Layout, n: usize, change: Change, method: UpdateMethod) -> Vec<&'static KernelInfo> {
    if layout.fingerprint_bits() <= 32 {
        of_word::<u32>(layout, n, change, method)
    } else {
        of_word::<u64>(layout, n, change, method)
    }
}

fn of_word<W: StandardWord>(
    layout: &Layout,
    n: usize,
    change: Change,
    method: UpdateMethod,
) -> Vec<&'static KernelInfo> {
    match (method, change) {
        (UpdateMethod::Superclusters, _) => {
            let winners = match change {
                Change::Insert => quotient_update_insert_winners::<W>::INFO,
                Change::Remove => quotient_update_remove_winners::<W>::INFO,
            };
            let bid = quotient_update_bid::<W>::INFO;
            vec![quotient_update_flag::INFO, bid, winners, select::kernel_for_items::<W>()]
        }
        (UpdateMethod::InPlace, Change::Insert) => {
            let mut all = sort::kernels_for_keys::<W>(n);
            let rounds = [quotient_update_regions::<W>::INFO, quotient_update_insert_sorted::<W>::INFO];
            all.extend(rounds);
            all.push(select::kernel_for_items::<W>());
            all
        }
        (UpdateMethod::InPlace, Change::Remove) => {
            let mut all = sort::kernels_for_keys::<W>(n);
            all.extend([quotient_update_regions::<W>::INFO, quotient_update_remove_sorted::<W>::INFO]);
            all
        }
        _ => {
            let mut all = sort::kernels_for_keys::<W>(n);
            all.push(rebuild::kernel::<W>(layout, n, change));
            all
        }
    }
}

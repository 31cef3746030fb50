//! Which kernels an operation launches: it names them before the first launch, so that a device loads them side by side. Those
//! that take longest to compile come first, for machines of few cores.

use warpset_kernels::lsm::batch::{lsm_gather, lsm_ones, lsm_order, lsm_take};
use warpset_kernels::lsm::copies::lsm_copies;
use warpset_kernels::lsm::derive::{lsm_derive, lsm_index_head};
use warpset_kernels::lsm::flipped::lsm_lookup_flipped;
use warpset_kernels::lsm::list::lsm_list;
use warpset_kernels::lsm::lookup::{lsm_lookup, lsm_publish};
use warpset_kernels::lsm::neighbours::lsm_neighbours;
use warpset_kernels::lsm::range::{lsm_count, lsm_range};
use warpset_kernels::lsm::spans::lsm_spans;
use warpset_kernels::lsm::visible::{lsm_visible_counts, lsm_visible_hide, lsm_visible_own, lsm_visible_words};
use warpset_kernels::primitives::scan::{scan_max_u32, scan_sum_u32, scan_sum_u64};
use warpset_primitives::sort;
use warpset_simt::KernelInfo;

use super::{DeviceKey, DeviceValue, Ordered};
use crate::form::Form;

/// Kernels by their descriptions, which are statics.
pub(super) type Kernels = Vec<&'static KernelInfo>;

/// Of a batch of `n` insertions.
pub(super) fn of_insertions<K: DeviceKey, V: DeviceValue>(n: usize) -> Kernels {
    V::sort_kernels::<K>(n)
}

/// Of a dictionary made of `n` insertions, unless there are copies of keys.
pub(super) fn of_build<K: DeviceKey, V: DeviceValue>(n: usize) -> Kernels {
    chain(of_insertions::<K, V>(n), [lsm_copies::<K>::INFO])
}

/// Of a batch of `n` removals.
pub(super) fn of_removals<K: DeviceKey>(n: usize) -> Kernels {
    chain(sort::kernels_for_keys::<K>(n), [lsm_ones::INFO])
}

/// Of a mixed batch of `n` elements.
pub(super) fn of_mixed<K: DeviceKey>(n: usize) -> Kernels {
    let mut all = sort::kernels_for_pairs::<K, u32>(n);
    all.extend(sort::kernels_for_keys::<u32>(n));
    chain(all, [lsm_gather::<K>::INFO, lsm_order::INFO, lsm_take::INFO])
}

/// Of what makes queries fast; `looks`: also of finding out which elements are visible.
pub(super) fn of_preparation<K: DeviceKey>(looks: bool) -> Kernels {
    let all = vec![scan_max_u32::INFO, lsm_derive::<K>::INFO, lsm_index_head::<K>::INFO];
    if !looks {
        return all;
    }
    let (own, hide) = (lsm_visible_own::<K>::INFO, lsm_visible_hide::<K>::INFO);
    chain(all, [hide, own, scan_sum_u32::INFO, lsm_visible_counts::INFO, lsm_visible_words::INFO])
}

/// Of lookups; `flipped`: of queries that ascend.
pub(super) fn of_lookup<K: DeviceKey>(flipped: bool) -> Kernels {
    vec![if flipped { lsm_lookup_flipped::<K>::INFO } else { lsm_lookup::<K>::INFO }]
}

/// Of counts of ranges; `known`: which elements are visible.
pub(super) fn of_count<K: DeviceKey>(known: bool) -> Kernels {
    vec![if known { lsm_spans::<K>::INFO } else { lsm_count::<K>::INFO }]
}

/// Of lists of ranges that are not long; `known`: which elements are visible.
pub(super) fn of_range<K: DeviceKey>(known: bool) -> Kernels {
    let list = if known { lsm_list::<K>::INFO } else { lsm_range::<K>::INFO };
    chain(vec![list], [of_count::<K>(known)[0], scan_sum_u64::INFO])
}

/// Of neighbours.
pub(super) fn of_neighbours<K: DeviceKey>() -> Kernels {
    vec![lsm_neighbours::<K>::INFO]
}

fn chain<const N: usize>(mut first: Kernels, then: [&'static KernelInfo; N]) -> Kernels {
    first.extend(then);
    first
}

impl<K: DeviceKey, V: DeviceValue, F: Form> Ordered<K, V, F> {
    /// Of the addition of a sorted batch of `n` elements, for which there are `batch` already.
    pub(super) fn kernels_to_add(&self, n: usize, batch: Kernels) -> Kernels {
        if F::ALWAYS_CLEAN {
            return V::live_kernels::<K>().into_iter().chain(batch).collect();
        }
        let lengths = self.levels.iter().map(|(index, elements)| (*index, elements.len));
        let (_, merged) = self.form.place_for(n, lengths);
        let merge = if merged == 0 { Vec::new() } else { V::merge_kernels::<K>() };
        merge.into_iter().chain(batch).chain([lsm_publish::INFO]).collect()
    }
}

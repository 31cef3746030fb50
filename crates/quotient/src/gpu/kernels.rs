//! Which kernels an operation launches: it names them before the first launch, so that a device loads them side by side. Those
//! that take longest to compile come first, for machines of few cores.

use warpset_kernels::primitives::by_key::{encode_u32, encode_u64};
use warpset_kernels::quotient::build::quotient_fingerprints;
use warpset_kernels::quotient::extract::{quotient_count, quotient_equals};
use warpset_primitives::{merge, select, sort};
use warpset_simt::KernelInfo;

use super::fingerprint_word::FingerprintWord;
use super::{DeviceSlotKind, QuotientFilter, parts};
use crate::Layout;
use crate::slot_kind::Change;

/// Kernels by their descriptions, which are statics.
type Kernels = Vec<&'static KernelInfo>;

/// Calls a function with the word that holds fingerprints of a layout as its first type.
macro_rules! by_word {
    ($layout:expr, $function:ident $(::<$kind:ident>)? ($($argument:expr),*)) => {
        if $layout.fingerprint_bits() <= 32 {
            $function::<u32 $(, $kind)?>($($argument),*)
        } else {
            $function::<u64 $(, $kind)?>($($argument),*)
        }
    };
}

/// Of a filter made from `n` keys: none if there are none.
pub(super) fn of_build<S: DeviceSlotKind>(layout: &Layout, n: usize, method: S::BuildMethod) -> Kernels {
    let mut all = of_layout::<S>(layout, n, method);
    all.extend((n > 0).then(|| by_word!(layout, hashed())));
    all
}

/// The same made from `n` keys by [`parts`].
pub(super) fn of_build_in_parts<S: DeviceSlotKind>(layout: &Layout, n: usize, method: S::BuildMethod) -> Kernels {
    let mut all = of_sorted::<S>(layout, method);
    all.extend(parts::kernels(n));
    all
}

/// Of a filter made from `n` fingerprints.
pub(super) fn of_layout<S: DeviceSlotKind>(layout: &Layout, n: usize, method: S::BuildMethod) -> Kernels {
    fn sorts<F: FingerprintWord>(n: usize) -> Kernels {
        sort::kernels_for_keys::<F>(n)
    }
    if n == 0 {
        return vec![];
    }
    let mut all = of_sorted::<S>(layout, method);
    all.extend(by_word!(layout, sorts(n)));
    all
}

/// Of a filter made from ascending fingerprints.
fn of_sorted<S: DeviceSlotKind>(layout: &Layout, method: S::BuildMethod) -> Kernels {
    fn once<F: FingerprintWord, S: DeviceSlotKind>(method: S::BuildMethod) -> Kernels {
        S::layout_kernels::<F>(method)
    }
    fn counted<F: FingerprintWord, S: DeviceSlotKind>() -> Kernels {
        S::counted_kernels::<F>()
    }
    if !layout.is_counted() {
        return by_word!(layout, once::<S>(method));
    }
    let mut all = by_word!(layout, counted::<S>());
    all.push(if layout.fingerprint_bits() <= 32 { encode_u32::INFO } else { encode_u64::INFO });
    all
}

/// Of the fingerprints of a filter in another layout.
pub(super) fn of_rewrite<S: DeviceSlotKind>(layout: &Layout, items: u64) -> Kernels {
    fn all<F: FingerprintWord, S: DeviceSlotKind>(items: u64) -> Kernels {
        let mut all = if items > 0 { vec![S::extract_kernel::<F>()] } else { vec![] };
        all.extend(S::layout_kernels::<F>(S::BuildMethod::default()));
        all
    }
    by_word!(layout, all::<S>(items))
}

/// Of the fingerprints of a filter combined with `n` ascending others, and laid out again.
pub(super) fn of_combination<S: DeviceSlotKind>(filter: &QuotientFilter<S>, change: Change, n: usize) -> Kernels {
    let (layout, stored) = (&filter.layout, filter.items as usize);
    if stored + n == 0 {
        return vec![];
    }
    let mut all = of_rewrite::<S>(layout, filter.items);
    all.extend(match change {
        Change::Insert => by_word!(layout, merged(stored + n)),
        Change::Remove => by_word!(layout, selected()),
    });
    all
}

/// Of the fingerprints of a filter of which those are kept that others have.
pub(super) fn of_selection<S: DeviceSlotKind>(layout: &Layout, items: u64) -> Kernels {
    if items == 0 {
        return vec![];
    }
    let mut all = of_rewrite::<S>(layout, items);
    all.extend(by_word!(layout, selected()));
    all
}

/// Of a batch of `n` keys whose fingerprints are sorted and combined with those of a filter.
pub(crate) fn of_update<S: DeviceSlotKind>(filter: &QuotientFilter<S>, change: Change, n: usize) -> Kernels {
    let mut all = of_combination(filter, change, n);
    all.extend(by_word!(filter.layout, sorted(n)));
    all.push(by_word!(filter.layout, hashed()));
    all
}

/// Of a count of common fingerprints.
pub(super) fn of_comparison<S: DeviceSlotKind>(layout: &Layout, items: u64) -> Kernels {
    fn all<F: FingerprintWord, S: DeviceSlotKind>() -> Kernels {
        vec![S::extract_kernel::<F>(), quotient_equals::<F>::INFO]
    }
    if items > 0 { by_word!(layout, all::<S>()) } else { vec![] }
}

/// Of counts of keys.
pub(super) fn of_counts<S: DeviceSlotKind>(layout: &Layout, items: u64) -> Kernels {
    fn all<F: FingerprintWord, S: DeviceSlotKind>(items: u64) -> Kernels {
        let mut all = if items > 0 { vec![S::extract_kernel::<F>()] } else { vec![] };
        all.extend([quotient_fingerprints::<F>::INFO, quotient_count::<F>::INFO]);
        all
    }
    by_word!(layout, all::<S>(items))
}

fn hashed<F: FingerprintWord>() -> &'static KernelInfo {
    quotient_fingerprints::<F>::INFO
}

fn sorted<F: FingerprintWord>(n: usize) -> Kernels {
    sort::kernels_for_keys::<F>(n)
}

fn merged<F: FingerprintWord>(total: usize) -> Kernels {
    merge::kernels_for_keys::<F>(total)
}

fn selected<F: FingerprintWord>() -> Kernels {
    vec![quotient_equals::<F>::INFO, select::kernel_for_items::<F>()]
}

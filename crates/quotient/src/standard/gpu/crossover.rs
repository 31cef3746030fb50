//! Which way is the fastest, from measurements on an H200 (`docs/performance.md`, "Updates of quotient
//! filters on the H200").

use warpset_core::quotient::slots::Container;

use super::{LookupMethod, UpdateMethod};

/// The most rounds of an insertion in place; what is left then is merged.
pub const ROUNDS: usize = 24;
/// The least slots a key of the batch for which an insertion in place is faster than writing the filter anew.
const INSERT_IN_PLACE_SLOTS_PER_KEY: u64 = 384;
/// The same for removals.
const REMOVE_IN_PLACE_SLOTS_PER_KEY: u64 = 192;
/// Filters of fewer slots are always written anew: that takes no longer than a few launches do.
const IN_PLACE_SLOTS: u64 = 1 << 24;
/// From this load on filters are always written anew: clusters are long, and one thread works each of them off.
const IN_PLACE_LOAD: f64 = 0.75;

/// For a batch of so many keys, and a filter of so many slots with this load.
pub(super) fn update_method(keys: u64, slots: u64, load: f64, removes: bool) -> UpdateMethod {
    let slots_per_key = if removes { REMOVE_IN_PLACE_SLOTS_PER_KEY } else { INSERT_IN_PLACE_SLOTS_PER_KEY };
    if slots >= IN_PLACE_SLOTS && load < IN_PLACE_LOAD && keys <= slots / slots_per_key {
        UpdateMethod::InPlace
    } else {
        UpdateMethod::Rebuild
    }
}

/// For a batch of so many keys, and a filter with this load. Sorting takes longer than looking up, except where clusters
/// are so long that threads side by side had better walk through the same one.
pub(super) fn lookup_method(keys: usize, container: Container, load: f64) -> LookupMethod {
    let (least_keys, least_load) = match container {
        Container::Packed => (1 << 22, 0.93),
        Container::Bytes => (1 << 20, 0.75),
    };
    if keys >= least_keys && load >= least_load { LookupMethod::Sorted } else { LookupMethod::Unsorted }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_large_batches_in_full_filters_are_sorted() {
        use LookupMethod::{Sorted, Unsorted};
        for (keys, container, load, method) in [
            (0, Container::Bytes, 0.0, Unsorted),
            (1 << 23, Container::Packed, 0.9, Unsorted),
            (1 << 23, Container::Packed, 0.95, Sorted),
            (1 << 20, Container::Packed, 0.95, Unsorted),
            (1 << 20, Container::Bytes, 0.8, Sorted),
            (1 << 20, Container::Bytes, 0.7, Unsorted),
        ] {
            assert_eq!(lookup_method(keys, container, load), method, "{keys} {container:?} {load}");
        }
    }
}

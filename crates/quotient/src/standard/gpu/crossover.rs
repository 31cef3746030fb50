//! Which way is the fastest, from measurements on an H200 (`docs/performance-log.md`, "Updates of quotient
//! filters on the H200").

use warpset_core::quotient::slots::{Container, bytes_of_slot};

use super::UpdateMethod;
use crate::Layout;
use crate::gpu::LookupMethod;

/// The most rounds of an insertion in place; what is left then is merged.
pub const ROUNDS: usize = 24;
/// The fewest slots per key of the batch for which an insertion in place is faster than rewriting the filter; and where
/// there are at least [`MANY_SLOTS`].
const INSERT_IN_PLACE_SLOTS_PER_KEY: (u64, u64) = (288, 128);
/// The same for removals.
const REMOVE_IN_PLACE_SLOTS_PER_KEY: (u64, u64) = (160, 96);
const MANY_SLOTS: u64 = 1 << 28;
/// Filters of fewer slots are always rewritten: that takes no longer than a few launches do.
const IN_PLACE_SLOTS: u64 = 1 << 24;
/// From this load on filters are always rewritten: clusters are long, and one thread works each of them off.
const IN_PLACE_LOAD: f64 = 0.75;

/// For a batch of this many keys, and a filter of this many slots with this load.
pub(super) fn update_method(keys: u64, slots: u64, load: f64, removes: bool) -> UpdateMethod {
    let (few, many) = if removes { REMOVE_IN_PLACE_SLOTS_PER_KEY } else { INSERT_IN_PLACE_SLOTS_PER_KEY };
    let slots_per_key = if slots < MANY_SLOTS { few } else { many };
    if slots >= IN_PLACE_SLOTS && load < IN_PLACE_LOAD && keys <= slots / slots_per_key {
        UpdateMethod::InPlace
    } else {
        UpdateMethod::Rebuild
    }
}

/// For a batch of this many keys, and a filter with this load. Sorting takes longer than looking up, except where clusters
/// are so long that it pays if neighbouring threads walk through the same one. Fewer keys are sorted at a higher load.
pub(super) fn lookup_method(keys: usize, layout: &Layout, load: f64) -> LookupMethod {
    // The least loads for that many keys.
    const KEYS: [usize; 3] = [1 << 22, 1 << 20, 1 << 18];
    const NEVER: f64 = 1.0;
    let loads = match (layout.container(), bytes_of_slot(layout.remainder_bits())) {
        (Container::Packed, _) => [0.97, NEVER, NEVER],
        (Container::Bytes, 1) => [0.93, 0.95, 0.97],
        (Container::Bytes, 2 | 4 | 8) => [0.9, 0.92, 0.94],
        // Slot by slot.
        (Container::Bytes, _) => [0.75, 0.8, 0.9],
    };
    let pays = KEYS.iter().zip(loads).any(|(&least, from)| keys >= least && load >= from);
    if pays { LookupMethod::Sorted } else { LookupMethod::Unsorted }
}

#[cfg(all(test, not(warpset_host_tests)))]
mod tests {
    use super::*;
    use crate::StandardBuilder;

    #[test]
    fn small_batches_are_worked_off_in_place() {
        use UpdateMethod::{InPlace, Rebuild};
        for (keys, slots, load, removes, method) in [
            (100, 1 << 23, 0.7, false, Rebuild),
            (200_000, 1 << 26, 0.7, false, InPlace),
            (200_000, 1 << 26, 0.8, false, Rebuild),
            (400_000, 1 << 26, 0.7, false, Rebuild),
            (400_000, 1 << 26, 0.7, true, InPlace),
            (2_000_000, 1 << 26, 0.7, true, Rebuild),
            (2_000_000, 1 << 28, 0.7, false, InPlace),
            (4_000_000, 1 << 28, 0.7, true, Rebuild),
        ] {
            assert_eq!(update_method(keys, slots, load, removes), method, "{keys} {slots} {load} {removes}");
        }
    }

    #[test]
    fn only_large_batches_in_full_filters_are_sorted() {
        use LookupMethod::{Sorted, Unsorted};
        for (keys, container, remainder_bits, load, method) in [
            (0, Container::Bytes, 5, 0.0, Unsorted),
            (1 << 23, Container::Packed, 5, 0.95, Unsorted),
            (1 << 22, Container::Packed, 5, 0.97, Sorted),
            (1 << 20, Container::Packed, 5, 0.98, Unsorted),
            (1 << 22, Container::Bytes, 5, 0.9, Unsorted),
            (1 << 22, Container::Bytes, 5, 0.93, Sorted),
            (1 << 20, Container::Bytes, 5, 0.93, Unsorted),
            (1 << 20, Container::Bytes, 5, 0.95, Sorted),
            (1 << 18, Container::Bytes, 5, 0.95, Unsorted),
            (1 << 18, Container::Bytes, 5, 0.98, Sorted),
            (1 << 17, Container::Bytes, 5, 0.98, Unsorted),
            (1 << 22, Container::Bytes, 13, 0.9, Sorted),
            (1 << 20, Container::Bytes, 21, 0.8, Sorted),
            (1 << 20, Container::Bytes, 21, 0.75, Unsorted),
            (1 << 22, Container::Bytes, 21, 0.75, Sorted),
        ] {
            let layout = StandardBuilder::with_bits(20, remainder_bits).container(container).layout().unwrap();
            let chosen = lookup_method(keys, &layout, load);
            assert_eq!(chosen, method, "{keys} {container:?} {remainder_bits} {load}");
        }
    }
}

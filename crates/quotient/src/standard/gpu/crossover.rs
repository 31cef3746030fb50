//! Choice of the fastest lookup, from measurements on an H200 (`docs/performance/quotient.md`).

use warpset_core::quotient::slots::{Container, bytes_of_slot};

use crate::Layout;
use crate::gpu::LookupMethod;

/// Chooses for a batch of this many keys and a filter with this load. Sorting takes longer than looking up, unless
/// clusters are so long that neighbouring threads should walk through the same one. At a higher load sorting pays for
/// fewer keys.
pub(super) fn lookup_method(keys: usize, layout: &Layout, load: f64) -> LookupMethod {
    // These are the least loads for that many keys.
    const KEYS: [usize; 3] = [1 << 22, 1 << 20, 1 << 18];
    const NEVER: f64 = 1.0;
    let loads = match (layout.container(), bytes_of_slot(layout.remainder_bits())) {
        (Container::Packed, _) => [0.97, NEVER, NEVER],
        (Container::Bytes, 1) => [0.93, 0.95, 0.97],
        (Container::Bytes, 2 | 4 | 8) => [0.9, 0.92, 0.94],
        // Slots are read one by one.
        (Container::Bytes, _) => [0.75, 0.8, 0.9],
    };
    let pays = KEYS.iter().zip(loads).any(|(&least, from)| keys >= least && load >= from);
    if pays { LookupMethod::Sorted } else { LookupMethod::Unsorted }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StandardBuilder;

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

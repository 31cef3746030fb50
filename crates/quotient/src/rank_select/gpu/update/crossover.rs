//! Which way is the fastest, from measurements on an H200 (`docs/performance-log.md`, "Lookups, counts and batches of
//! rank-and-select quotient filters on the H200").

use super::UpdateMethod;

/// The most rounds of an insertion in place; what is left then is merged.
pub(super) const ROUNDS: usize = 24;

/// From the least to the highest load.
const RULES: [Rule; 3] = [
    Rule { below_load: 0.8, slots: 1 << 23, insert_slots_per_key: 128, remove_slots_per_key: 96 },
    Rule { below_load: 0.92, slots: 1 << 25, insert_slots_per_key: 512, remove_slots_per_key: 256 },
    Rule { below_load: 1.0, slots: 1 << 25, insert_slots_per_key: 1024, remove_slots_per_key: 512 },
];

/// When a change in place is faster than rewriting the filter: clusters are longer at a higher load, and one thread works each
/// of them off, while a rewrite takes as long at any.
struct Rule {
    below_load: f64,
    /// Filters of fewer slots are always rewritten: that takes no longer than a few launches do.
    slots: u64,
    /// The fewest slots per key of the batch.
    insert_slots_per_key: u64,
    remove_slots_per_key: u64,
}

/// For a batch of this many keys, and a filter of this many slots with this load.
pub(super) fn update_method(keys: u64, slots: u64, load: f64, removes: bool) -> UpdateMethod {
    let pays = RULES.iter().find(|rule| load < rule.below_load).is_some_and(|rule| {
        let per_key = if removes { rule.remove_slots_per_key } else { rule.insert_slots_per_key };
        slots >= rule.slots && keys <= slots / per_key
    });
    if pays { UpdateMethod::InPlace } else { UpdateMethod::Rebuild }
}

#[cfg(all(test, not(warpset_host_tests)))]
mod tests {
    use super::*;

    #[test]
    fn small_batches_are_worked_off_in_place() {
        use UpdateMethod::{InPlace, Rebuild};
        for (keys, slots, load, removes, method) in [
            (10_000, 1 << 22, 0.7, false, Rebuild),
            (10_000, 1 << 23, 0.7, false, InPlace),
            (10_000, 1 << 23, 0.9, true, Rebuild),
            (100_000, 1 << 23, 0.7, true, Rebuild),
            (400_000, 1 << 26, 0.7, false, InPlace),
            (400_000, 1 << 26, 0.9, true, Rebuild),
            (100_000, 1 << 26, 0.9, false, InPlace),
            (2_000_000, 1 << 28, 0.7, false, InPlace),
            (2_000_000, 1 << 28, 0.9, true, Rebuild),
            (400_000, 1 << 28, 0.95, true, InPlace),
            (400_000, 1 << 28, 0.95, false, Rebuild),
            (100_000, 1 << 28, 0.95, false, InPlace),
        ] {
            assert_eq!(update_method(keys, slots, load, removes), method, "{keys} {slots} {load} {removes}");
        }
    }
}

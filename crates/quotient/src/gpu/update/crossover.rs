//! Choice between a change in place and a rewrite, by rules of each kind of slots from measurements on an H200
//! (`docs/performance/quotient.md`).

/// Rule for filters below this load with at least that many slots.
pub struct InPlaceRule {
    /// Load limit. At a higher load clusters are longer, and one thread works off each, while a rewrite takes as long
    /// at any load.
    pub below_load: f64,
    /// Least number of slots. Rewriting a smaller filter takes no longer than a few launches.
    pub slots: u64,
    /// Fewest slots per inserted key.
    pub insert_slots_per_key: u64,
    /// Fewest slots per removed key.
    pub remove_slots_per_key: u64,
}

/// Whether a batch of this many keys is applied in place to a filter of this many slots with this load, by the first
/// rule for such a filter.
pub(super) fn is_in_place(rules: &[InPlaceRule], keys: u64, slots: u64, load: f64, removes: bool) -> bool {
    rules.iter().find(|rule| load < rule.below_load && slots >= rule.slots).is_some_and(|rule| {
        let per_key = if removes { rule.remove_slots_per_key } else { rule.insert_slots_per_key };
        keys <= slots / per_key
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::DeviceSlotKind;
    use crate::{RankSelect, Standard};

    /// Keys, slots, load, whether they are removed, and whether that is done in place.
    type Case = (u64, u64, f64, bool, bool);

    fn check<S: DeviceSlotKind>(cases: &[Case]) {
        for &(keys, slots, load, removes, expected) in cases {
            let found = is_in_place(S::IN_PLACE, keys, slots, load, removes);
            assert_eq!(found, expected, "{keys} {slots} {load} {removes}");
        }
    }

    #[test]
    fn small_batches_are_worked_off_in_place() {
        check::<Standard>(&[
            (100, 1 << 23, 0.7, false, false),
            (200_000, 1 << 26, 0.7, false, true),
            (200_000, 1 << 26, 0.8, false, false),
            (400_000, 1 << 26, 0.7, false, false),
            (400_000, 1 << 26, 0.7, true, true),
            (2_000_000, 1 << 26, 0.7, true, false),
            (2_000_000, 1 << 28, 0.7, false, true),
            (4_000_000, 1 << 28, 0.7, true, false),
        ]);
        check::<RankSelect>(&[
            (10_000, 1 << 22, 0.7, false, false),
            (10_000, 1 << 23, 0.7, false, true),
            (10_000, 1 << 23, 0.9, true, false),
            (100_000, 1 << 23, 0.7, true, false),
            (400_000, 1 << 26, 0.7, false, true),
            (400_000, 1 << 26, 0.9, true, false),
            (100_000, 1 << 26, 0.9, false, true),
            (2_000_000, 1 << 28, 0.7, false, true),
            (2_000_000, 1 << 28, 0.9, true, false),
            (400_000, 1 << 28, 0.95, true, true),
            (400_000, 1 << 28, 0.95, false, false),
            (100_000, 1 << 28, 0.95, false, true),
        ]);
    }
}

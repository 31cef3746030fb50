//! Which way is the fastest, from measurements on an H200 (`docs/performance.md`, "Updates of quotient
//! filters on the H200").

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

/// Sorting takes longer than looking up, for batches and filters of any size that were measured.
pub(super) const LOOKUP_METHOD: LookupMethod = LookupMethod::Unsorted;

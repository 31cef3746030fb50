//! Which way is the fastest, from measurements on an H200 (`docs/performance.md`, "Updates of standard quotient
//! filters").

use super::{LookupMethod, UpdateMethod};

/// The most rounds of an insertion in place; what is left then is merged.
pub const ROUNDS: usize = 24;
/// The least slots a key of the batch for which an insertion in place is faster than writing the filter anew.
const INSERT_IN_PLACE_SLOTS_PER_KEY: u64 = 1024;
/// The same for removals.
const REMOVE_IN_PLACE_SLOTS_PER_KEY: u64 = 256;
/// Filters of fewer slots are always written anew: that takes no longer than a few launches do.
const IN_PLACE_SLOTS: u64 = 1 << 24;

/// For a batch of so many keys and a filter of so many slots.
pub(super) fn update_method(keys: u64, slots: u64, removes: bool) -> UpdateMethod {
    let slots_per_key = if removes { REMOVE_IN_PLACE_SLOTS_PER_KEY } else { INSERT_IN_PLACE_SLOTS_PER_KEY };
    if slots >= IN_PLACE_SLOTS && keys <= slots / slots_per_key { UpdateMethod::InPlace } else { UpdateMethod::Rebuild }
}

/// For a batch of so many keys and a filter of so many slots.
pub(super) fn lookup_method(_keys: u64, _slots: u64) -> LookupMethod {
    LookupMethod::Unsorted
}

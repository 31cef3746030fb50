//! Data that make queries fast: an index per level, the visibility of elements, the interleaving of the levels.

pub(super) mod interleaving;
pub(super) mod search_index;

//! Data that make queries fast: an index per level, visibility of elements, the order of all elements.

pub(super) mod interleaving;
pub(super) mod search_index;

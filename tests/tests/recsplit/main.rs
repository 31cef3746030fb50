//! Minimal perfect hash functions and static filters.

mod external;
mod format;
mod model;
mod rates;
mod variants;

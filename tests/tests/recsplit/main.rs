//! Minimal perfect hash functions and static filters on every executor.

mod devices;
mod equivalence;
mod external;
mod format;
mod model;
mod rates;
mod variants;

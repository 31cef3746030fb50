//! Sequences of bases: minimizers, filters of k-mers straight from letters, reads screened by an index.

mod filter;
mod minimizers;
mod screen_reads;

pub use filter::SEQUENCE_FILTERS;
pub use minimizers::MINIMIZERS;
pub use screen_reads::SCREEN;

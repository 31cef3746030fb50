//! Bloom filters on every executor.

mod devices;
mod format;
mod large;
mod model;
mod parquet;
mod rates;
mod test_and_insert;

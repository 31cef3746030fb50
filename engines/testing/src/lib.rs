//! Shared parts of the tests and measurements of engines: clusters of processes on one machine, tables in Parquet
//! files, queries.

pub mod cost;
mod processes;
mod queries;
mod tables;
pub mod tpch;

pub use processes::Processes;
pub use queries::{QUERIES, SCREENED, SCREENED_JOINS};
pub use tables::{SCREENED_SHAPE, SHAPES, Shape, local, register_tables, run, sorted_table, table, write_tables};

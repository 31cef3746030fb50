//! Warpset's functions on many machines, by Apache DataFusion Ballista.
//!
//! The program of this crate is a Ballista scheduler (`warpset-ballista scheduler`) or one of its executors
//! (`warpset-ballista executor`), with the functions of [`warpset_datafusion`] registered in both. A client registers
//! them too: [`remote`] gives the context of one. Functions travel by name, so every process of a cluster has to have
//! them, of the same version.
//!
//! ```no_run
//! # async fn run() -> datafusion::error::Result<()> {
//! let context = warpset_ballista::remote("df://localhost:50050").await?;
//! context.register_parquet("items", "/data/items", Default::default()).await?;
//! context.sql("SELECT bloom_filter_agg(id) FROM items").await?.show().await?;
//! # Ok(())
//! # }
//! ```
//!
//! Ballista 55 does not survive an executor that dies in the middle of a query: with the settings of [`session_config`]
//! the query waits for ever, so ask with [`collect_within`]; with others it can answer wrongly (`docs/engines.md`).

mod client;
mod executor;
mod local_cluster;
mod scheduler;

pub use client::{NoAnswer, Refused, collect_within, remote, remote_with, session_config, session_state};
pub use executor::{ExecutorOptions, run_executor};
pub use local_cluster::LocalCluster;
pub use scheduler::{SchedulerOptions, run_scheduler};

/// Bytes of the largest message between processes: a filter as a literal, or a task with one, has to fit.
pub const MESSAGE_BYTES: u32 = 1 << 30;

//! Warpset's functions on many machines, by Apache DataFusion Ballista.
//!
//! The program of this crate is a Ballista scheduler (`warpset-ballista scheduler`) or an executor
//! (`warpset-ballista executor`), both with the functions of [`warpset_datafusion`]. A client needs them too:
//! [`remote`] returns its context. Functions travel by name, so all processes of a cluster need the same version.
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
//! Ballista 55 does not recover when an executor dies during a query. With the settings of [`session_config`] the query
//! waits forever, so use [`collect_within`]; with other settings its answer can be wrong (`docs/engines.md`).

mod client;
mod executor;
mod local_cluster;
mod scheduler;

pub use client::{NoAnswer, Refused, collect_within, remote, remote_with, session_config, session_state};
pub use executor::{ExecutorOptions, run_executor};
pub use local_cluster::LocalCluster;
pub use scheduler::{SchedulerOptions, run_scheduler};

/// Bytes of the largest message between processes, which may contain a filter.
pub const MESSAGE_BYTES: u32 = 1 << 30;

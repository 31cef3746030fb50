//! Warpset's functions on many machines, by `datafusion-distributed`: an example of an engine other than Ballista.
//!
//! The program of this crate is a worker (`warpset-distributed worker`) with the functions of [`warpset_datafusion`].
//! There is no scheduler: a client plans its own queries ([`session`]), sends the workers their parts and executes a
//! part itself. Workers send rows to each other and to the client while the query runs, and write no files. Functions
//! travel by name, so the client and all workers need the same version.
//!
//! ```no_run
//! # async fn run() -> datafusion::error::Result<()> {
//! let workers = ["http://machine-1:50060", "http://machine-2:50060"];
//! let context = warpset_distributed::session(&workers, Default::default())?;
//! context.register_parquet("items", "/data/items", Default::default()).await?;
//! context.sql("SELECT bloom_filter_agg(id) FROM items").await?.show().await?;
//! # Ok(())
//! # }
//! ```

mod client;
mod local_workers;
mod scan;
mod worker;

pub use client::session;
pub use local_workers::LocalWorkers;
pub use worker::{WorkerOptions, run_worker};

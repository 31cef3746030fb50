//! Costs of Warpset's functions in Apache DataFusion, Ballista and `datafusion-distributed`, beside the engines' own.
//!
//! Run `cargo run --release -p warpset-engines-bench`, after `cargo build --release -p warpset-ballista -p
//! warpset-distributed` for queries on other processes. Set `RAYON_NUM_THREADS=1` for rates per core.

mod aggregates;
mod duplicates;
mod jobs;
mod measure;
mod star_join;

use clap::Parser;
use datafusion::error::Result;
use datafusion::prelude::{SessionConfig, SessionContext};
use jobs::Engines;

/// Measurement.
#[derive(Parser)]
enum Bench {
    /// Aggregates and lookups of generated integers, in this process.
    Aggregates {
        /// Rows.
        #[arg(long, default_value_t = 100_000_000)]
        rows: u64,
        /// Partitions, which run at the same time.
        #[arg(long, default_value_t = 1)]
        partitions: usize,
        /// Only queries with this text in their names.
        #[arg(long)]
        only: Option<String>,
        /// Rows of a batch; 8192 are the engine's own choice.
        #[arg(long, default_value_t = 8192)]
        batch: usize,
    },
    /// A join of many facts with few items, with a filter below it and without.
    StarJoin {
        /// Rows of the table of facts.
        #[arg(long, default_value_t = 20_000_000)]
        rows: u64,
        #[command(flatten)]
        engines: Engines,
    },
    /// Rows that occur in several files, with a filter that counts and without.
    Duplicates {
        /// Rows of all files.
        #[arg(long, default_value_t = 20_000_000)]
        rows: u64,
        #[command(flatten)]
        engines: Engines,
    },
}

#[tokio::main]
async fn main() -> Result<()> {
    match Bench::parse() {
        Bench::Aggregates { rows, partitions, only, batch } => aggregates::run(rows, partitions, only, batch).await,
        Bench::StarJoin { rows, engines } => star_join::run(rows, engines).await,
        Bench::Duplicates { rows, engines } => duplicates::run(rows, engines).await,
    }
}

/// Returns a context with the functions.
fn context(config: SessionConfig) -> Result<SessionContext> {
    let mut context = SessionContext::new_with_config(config);
    warpset_datafusion::register_all(&mut context)?;
    Ok(context)
}

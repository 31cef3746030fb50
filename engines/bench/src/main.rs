//! What Warpset's functions cost in Apache DataFusion, beside the engine's own: `cargo run --release -p
//! warpset-engines-bench`. Everything runs in this process; set `RAYON_NUM_THREADS=1` with one partition for rates per
//! core.

mod aggregates;
mod plans;
mod star_join;

use clap::Parser;
use datafusion::error::Result;
use datafusion::prelude::{SessionConfig, SessionContext};

/// What to measure.
#[derive(Parser)]
enum Bench {
    /// Aggregates and lookups of generated integers.
    Aggregates {
        /// Rows.
        #[arg(long, default_value_t = 100_000_000)]
        rows: u64,
        /// Partitions, which run at the same time.
        #[arg(long, default_value_t = 1)]
        partitions: usize,
    },
    /// A join of many facts with few items, with a filter below it and without.
    StarJoin {
        /// Rows of the table of facts.
        #[arg(long, default_value_t = 20_000_000)]
        rows: u64,
        /// Partitions, which run at the same time.
        #[arg(long, default_value_t = 2)]
        partitions: usize,
    },
}

#[tokio::main]
async fn main() -> Result<()> {
    match Bench::parse() {
        Bench::Aggregates { rows, partitions } => aggregates::run(rows, partitions).await,
        Bench::StarJoin { rows, partitions } => star_join::run(rows, partitions).await,
    }
}

/// A context with the functions.
fn context(config: SessionConfig) -> Result<SessionContext> {
    let mut context = SessionContext::new_with_config(config);
    warpset_datafusion::register_all(&mut context)?;
    Ok(context)
}

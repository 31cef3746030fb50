//! A worker with Warpset's functions, or a query on workers.

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionConfig;
use warpset_distributed::{WorkerOptions, run_worker, session};

/// `datafusion-distributed` with the functions of Warpset.
#[derive(Parser)]
#[command(version)]
enum Command {
    /// Works for clients.
    Worker(WorkerOptions),
    /// Runs a query on workers, and prints its answer.
    Query {
        /// The address of a worker, such as `http://localhost:50060`; once per worker.
        #[arg(long = "worker", required = true)]
        workers: Vec<String>,
        /// A table and its folder of Parquet files, `name=folder`, which all machines see; once per table.
        #[arg(long = "table")]
        tables: Vec<String>,
        /// The query.
        sql: String,
    },
}

async fn query(workers: &[String], tables: &[String], sql: &str) -> Result<()> {
    let context = session(workers, SessionConfig::new())?;
    for table in tables {
        let Some((name, folder)) = table.split_once('=') else {
            return Err(DataFusionError::Execution(format!("{table:?} names no folder: write `name=folder`")));
        };
        context.register_parquet(name, folder, Default::default()).await?;
    }
    let started = Instant::now();
    context.sql(sql).await?.show().await?;
    eprintln!("{:.2} s", started.elapsed().as_secs_f64());
    Ok(())
}

#[tokio::main]
async fn main() -> ExitCode {
    let ended = match Command::parse() {
        Command::Worker(options) => run_worker(options).await,
        Command::Query { workers, tables, sql } => query(&workers, &tables, &sql).await,
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

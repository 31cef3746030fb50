//! Queries over generated Parquet files, in this process and on a cluster of processes.

use std::path::{Path, PathBuf};

use ballista::prelude::SessionConfigExt;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use tempfile::TempDir;
use warpset_ballista::LocalCluster;

use crate::measure::{Cost, analyzed, here, there};

/// Where queries run.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Engines {
    /// Partitions, which run at the same time in this process; a cluster has as many.
    #[arg(long, default_value_t = 2)]
    pub partitions: usize,
    /// Executors of one core each, beside a scheduler; 0 runs nothing outside of this process.
    #[arg(long, default_value_t = 2)]
    pub executors: usize,
    /// Runs of each query; the one of least processor time counts.
    #[arg(long, default_value_t = 3)]
    pub times: usize,
    /// Print the plans, with their counters.
    #[arg(long)]
    pub plans: bool,
}

/// Tables, and queries that have one answer.
pub struct Job {
    folder: TempDir,
    tables: Vec<&'static str>,
    /// Names and SQL; the others are compared with the first.
    pub queries: Vec<(&'static str, String)>,
}

impl Job {
    /// A job without tables.
    pub fn new() -> Result<Job> {
        Ok(Job { folder: TempDir::new()?, tables: Vec::new(), queries: Vec::new() })
    }

    /// Writes one file of a table for each query.
    pub async fn write(&mut self, table: &'static str, files: impl Iterator<Item = String>) -> Result<()> {
        let context = crate::context(SessionConfig::new())?;
        for (number, file) in files.enumerate() {
            let path = self.folder.path().join(format!("{table}/{number}.parquet"));
            context.sql(&format!("COPY ({file}) TO '{}'", path.display())).await?.collect().await?;
        }
        self.tables.push(table);
        Ok(())
    }

    async fn register(&self, context: &SessionContext) -> Result<()> {
        for table in &self.tables {
            let path = self.folder.path().join(table);
            context.register_parquet(*table, &path.to_string_lossy(), ParquetReadOptions::default()).await?;
        }
        Ok(())
    }

    /// Runs all queries everywhere, and prints a table of what they cost. Joins and aggregates are partitioned, as
    /// those of tables are that are too large for one machine; and as the engine has it.
    pub async fn run(&self, engines: Engines) -> Result<()> {
        println!("| engine | query | seconds | processor seconds | rows exchanged | MB exchanged |");
        println!("| --- | --- | ---: | ---: | ---: | ---: |");
        let mut answers = Vec::new();
        for (name, partitioned) in [("DataFusion, partitioned", true), ("DataFusion, its own choice", false)] {
            let context = crate::context(settings(SessionConfig::new(), engines.partitions, partitioned))?;
            self.register(&context).await?;
            for (query, sql) in &self.queries {
                let cost = here(&context, sql, engines.times).await?;
                if engines.plans {
                    eprintln!("{name}, {query}\n{}\n", analyzed(&context, sql).await?);
                }
                print(name, query, &cost);
                answers.push(pretty_format_batches(&cost.answer)?.to_string());
            }
        }
        if engines.executors > 0 {
            let cluster = LocalCluster::start(&program()?, engines.executors, self.folder.path()).await?;
            for (name, partitioned) in [("Ballista, partitioned", true), ("Ballista, its own choice", false)] {
                let mut config = settings(LocalCluster::session_config(), engines.partitions, partitioned);
                if partitioned {
                    config = config.with_ballista_broadcast_join_threshold_bytes(0);
                    config = config.with_ballista_broadcast_join_threshold_rows(0);
                }
                let context = cluster.client(config).await?;
                self.register(&context).await?;
                for (query, sql) in &self.queries {
                    let cost = there(&cluster, &context, sql, engines.times).await?;
                    print(name, query, &cost);
                    answers.push(pretty_format_batches(&cost.answer)?.to_string());
                    if engines.plans {
                        eprintln!("{name}, {query}\n{}\n", analyzed(&context, sql).await?);
                    }
                }
            }
        }
        if let Some(other) = answers.iter().find(|answer| **answer != answers[0]) {
            return Err(DataFusionError::Execution(format!("the answers differ: {}\nand\n{other}", answers[0])));
        }
        println!("\n{}", answers[0]);
        Ok(())
    }
}

fn print(engine: &str, query: &str, cost: &Cost) {
    println!(
        "| {engine} | {query} | {:.2} | {:.2} | {} | {:.1} |",
        cost.seconds,
        cost.processor_seconds,
        cost.rows_exchanged,
        cost.bytes_exchanged as f64 / 1e6,
    );
}

/// Settings for this many partitions; partitioned joins on demand, however small the tables are.
fn settings(config: SessionConfig, partitions: usize, partitioned: bool) -> SessionConfig {
    let config = config.with_target_partitions(partitions);
    if !partitioned {
        return config;
    }
    config
        .set_usize("datafusion.optimizer.hash_join_single_partition_threshold", 0)
        .set_usize("datafusion.optimizer.hash_join_single_partition_threshold_rows", 0)
}

/// The program of the cluster's processes: it is built into the same folder.
fn program() -> Result<PathBuf> {
    let this = std::env::current_exe()?;
    let program = this.parent().unwrap_or(Path::new(".")).join("warpset-ballista");
    if program.exists() {
        return Ok(program);
    }
    let missing =
        format!("{} is not there: build it, with `-p warpset-ballista` and the same profile", program.display());
    Err(DataFusionError::Execution(missing))
}

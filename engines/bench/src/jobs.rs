//! Queries over generated Parquet files, in this process and on a cluster of processes.

use std::path::{Path, PathBuf};

use ballista::prelude::SessionConfigExt;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use tempfile::TempDir;
use warpset_ballista::LocalCluster;
use warpset_distributed::LocalWorkers;

use warpset_engines_testing::cost::analyzed;

use crate::measure::{Cost, Machines, here, there};

/// Engines that run the queries.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Engines {
    /// Number of partitions, which run concurrently in this process and on a cluster.
    #[arg(long, default_value_t = 2)]
    pub partitions: usize,
    /// Executors of one core each beside a scheduler, and workers of the other engine; with 0, only this process runs
    /// queries.
    #[arg(long, default_value_t = 2)]
    pub executors: usize,
    /// Runs per query; the one with the least processor time counts.
    #[arg(long, default_value_t = 3)]
    pub times: usize,
    /// Whether to print the plans with their counters.
    #[arg(long)]
    pub plans: bool,
}

/// A query of a job.
pub struct Query {
    /// Name in the table.
    pub name: &'static str,
    pub sql: String,
    /// Whether its joins are screened.
    pub screened: bool,
}

impl Query {
    /// Returns a query that runs as written.
    pub fn new(name: &'static str, sql: impl Into<String>) -> Query {
        Query { name, sql: sql.into(), screened: false }
    }
}

/// Tables, and queries with the same answer.
pub struct Job {
    folder: TempDir,
    tables: Vec<&'static str>,
    /// Queries; the answers of all are compared with the first.
    pub queries: Vec<Query>,
}

impl Job {
    /// Returns a job without tables.
    pub fn new() -> Result<Job> {
        Ok(Job { folder: TempDir::new()?, tables: Vec::new(), queries: Vec::new() })
    }

    /// Writes a table, one file per query.
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

    /// Runs all queries on all engines, and prints a table of their costs, once with partitioned joins and aggregates
    /// as for tables too large for one machine, once with the engine's choice.
    pub async fn run(&self, engines: Engines) -> Result<()> {
        println!("| engine | query | seconds | processor seconds | rows exchanged | MB exchanged |");
        println!("| --- | --- | ---: | ---: | ---: | ---: |");
        let mut answers = Vec::new();
        for (name, partitioned) in [("DataFusion, partitioned", true), ("DataFusion, its own choice", false)] {
            let mut context = crate::context(settings(SessionConfig::new(), engines.partitions, partitioned))?;
            warpset_datafusion::register_joins(&mut context);
            self.register(&context).await?;
            for query in &self.queries {
                set(&context, "enabled", query.screened).await?;
                let cost = here(&context, &query.sql, engines.times).await?;
                answers.push(report(name, query, &cost, &context, engines).await?);
            }
        }
        if engines.executors > 0 {
            let cluster = LocalCluster::start(&program("ballista")?, engines.executors, self.folder.path()).await?;
            for (name, partitioned) in [("Ballista, partitioned", true), ("Ballista, its own choice", false)] {
                let mut config = settings(LocalCluster::session_config(), engines.partitions, partitioned);
                if partitioned {
                    config = config.with_ballista_broadcast_join_threshold_bytes(0);
                    config = config.with_ballista_broadcast_join_threshold_rows(0);
                }
                let context = cluster.client(config).await?;
                answers.extend(self.run_there(name, &cluster, &context, engines).await?);
            }
            drop(cluster);
            let workers = LocalWorkers::start(&program("distributed")?, engines.executors)?;
            for (name, partitioned) in
                [("datafusion-distributed, partitioned", true), ("datafusion-distributed, its own choice", false)]
            {
                let context = workers.client(settings(SessionConfig::new(), engines.partitions, partitioned))?;
                // One task per worker, however small the files are.
                context.sql("SET distributed.file_scan_config_bytes_per_partition = 1").await?;
                answers.extend(self.run_there(name, &workers, &context, engines).await?);
            }
        }
        if let Some(other) = answers.iter().find(|answer| **answer != answers[0]) {
            return Err(DataFusionError::Execution(format!("the answers differ: {}\nand\n{other}", answers[0])));
        }
        println!("\n{}", answers[0]);
        Ok(())
    }

    /// Runs all queries on other processes, and returns the answers.
    async fn run_there<M: Machines>(
        &self,
        name: &str,
        machines: &M,
        context: &SessionContext,
        engines: Engines,
    ) -> Result<Vec<String>> {
        self.register(context).await?;
        let mut answers = Vec::new();
        for query in &self.queries {
            set(context, "subqueries", query.screened).await?;
            let cost = there(machines, context, &query.sql, engines.times).await?;
            answers.push(report(name, query, &cost, context, engines).await?);
        }
        Ok(answers)
    }
}

async fn set(context: &SessionContext, setting: &str, value: bool) -> Result<()> {
    context.sql(&format!("SET warpset_joins.{setting} = {value}")).await.map(|_| ())
}

/// Prints the cost of a query, and returns its answer.
async fn report(
    engine: &str,
    query: &Query,
    cost: &Cost,
    context: &SessionContext,
    engines: Engines,
) -> Result<String> {
    print(engine, query.name, cost);
    if engines.plans {
        eprintln!("{engine}, {}\n{}\n", query.name, analyzed(context, &query.sql).await?);
    }
    Ok(pretty_format_batches(&cost.answer)?.to_string())
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

/// Returns settings for `partitions` partitions, if asked with partitioned joins however small the tables are.
fn settings(config: SessionConfig, partitions: usize, partitioned: bool) -> SessionConfig {
    let config = config.with_target_partitions(partitions);
    if !partitioned {
        return config;
    }
    config
        .set_usize("datafusion.optimizer.hash_join_single_partition_threshold", 0)
        .set_usize("datafusion.optimizer.hash_join_single_partition_threshold_rows", 0)
}

/// Returns the path of the program of an engine's processes, which cargo builds into the same folder.
fn program(engine: &str) -> Result<PathBuf> {
    let this = std::env::current_exe()?;
    let program = this.parent().unwrap_or(Path::new(".")).join(format!("warpset-{engine}"));
    if program.exists() {
        return Ok(program);
    }
    let missing =
        format!("{} is not there: build it, with `-p warpset-{engine}` and the same profile", program.display());
    Err(DataFusionError::Execution(missing))
}

//! Clusters of processes on this machine: a scheduler and two executors, on free ports of the loopback device, against
//! DataFusion in this process.

mod answers;
mod kills;
mod processes;

use std::path::Path;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::Result;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};

/// Rows of the table of facts.
const FACTS: i64 = 400_000;

/// Writes the tables as Parquet files: facts in eight files, items in two.
async fn write_tables(folder: &Path) {
    let context = SessionContext::new();
    let copy = async |sql: String| {
        context.sql(&sql).await.unwrap().collect().await.unwrap();
    };
    for part in 0..8 {
        let path = folder.join(format!("facts/{part}.parquet"));
        copy(format!(
            "COPY (SELECT value AS sale, value * 31 % 20011 AS item, 'name ' || (value % 977) AS name
             FROM range({}, {})) TO '{}'",
            FACTS / 8 * part,
            FACTS / 8 * (part + 1),
            path.display()
        ))
        .await;
    }
    for part in 0..2 {
        let path = folder.join(format!("items/{part}.parquet"));
        copy(format!(
            "COPY (SELECT value AS id, value % 100 AS kind FROM range({}, {})) TO '{}'",
            part * 10_000,
            part * 10_000 + 10_011,
            path.display()
        ))
        .await;
    }
}

async fn register_tables(context: &SessionContext, folder: &Path) -> Result<()> {
    for table in ["facts", "items"] {
        let path = folder.join(table);
        context.register_parquet(table, path.to_str().unwrap(), ParquetReadOptions::default()).await?;
    }
    Ok(())
}

/// DataFusion in this process, with the functions and the tables.
async fn local(folder: &Path) -> SessionContext {
    let mut context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2));
    warpset_datafusion::register_all(&mut context).unwrap();
    register_tables(&context, folder).await.unwrap();
    context
}

async fn run(context: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>> {
    context.sql(sql).await?.collect().await
}

/// What a query gives, to compare; queries of several rows have an `ORDER BY`.
async fn table(context: &SessionContext, sql: &str) -> String {
    let batches = run(context, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    pretty_format_batches(&batches).unwrap().to_string()
}

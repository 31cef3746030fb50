//! A join of many facts with few items: rows that reach the join, and time.

use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::Result;
use datafusion::prelude::{ParquetReadOptions, SessionConfig};
use tempfile::TempDir;

use crate::plans::{counted, fastest};

/// Files of facts.
const FILES: u64 = 8;

pub async fn run(rows: u64, partitions: usize) -> Result<()> {
    let folder = TempDir::new()?;
    let items = rows / 10;
    let writer = crate::context(SessionConfig::new().with_target_partitions(partitions))?;
    for file in 0..FILES {
        let (start, end) = (rows / FILES * file, rows / FILES * (file + 1));
        let path = folder.path().join(format!("facts/{file}.parquet"));
        let sql = format!(
            "COPY (SELECT value AS sale, value * 7919 % {items} AS item, value % 1000 AS price FROM range({start}, {end}))
             TO '{}'",
            path.display()
        );
        writer.sql(&sql).await?.collect().await?;
    }
    let path = folder.path().join("items/0.parquet");
    let sql =
        format!("COPY (SELECT value AS id, value * 31 % 100 AS kind FROM range({items})) TO '{}'", path.display());
    writer.sql(&sql).await?.collect().await?;

    println!("{rows} facts, {items} items, 1% of them wanted, {partitions} partitions\n");
    println!("| join | dynamic filters | filter | seconds | rows exchanged | MB exchanged |");
    println!("| --- | --- | --- | ---: | ---: | ---: |");
    let plain = "SELECT count(*), sum(price) FROM facts JOIN items ON item = id WHERE kind = 7".to_owned();
    let filter = format!("(SELECT bloom_filter_agg(id, {}) FROM items WHERE kind = 7)", items / 100);
    let shared = filter
        .replace("(SELECT bloom_filter_agg", "(SELECT shared_filter(bloom_filter_agg")
        .replace(") FROM", ")) FROM");
    let mut answers = Vec::new();
    for partitioned in [true, false] {
        for dynamic in [false, true] {
            let mut config = SessionConfig::new()
                .with_target_partitions(partitions)
                .set_bool("datafusion.optimizer.enable_join_dynamic_filter_pushdown", dynamic);
            if partitioned {
                config = config
                    .set_usize("datafusion.optimizer.hash_join_single_partition_threshold", 0)
                    .set_usize("datafusion.optimizer.hash_join_single_partition_threshold_rows", 0);
            }
            let context = crate::context(config)?;
            for table in ["facts", "items"] {
                let path = folder.path().join(table);
                let path = path.to_str().expect("temporary folders have names of text");
                context.register_parquet(table, path, ParquetReadOptions::default()).await?;
            }
            for (name, sql) in [
                ("none", plain.clone()),
                ("Bloom", format!("{plain} AND might_contain({filter}, item)")),
                ("Bloom, shared", format!("{plain} AND might_contain({shared}, item)")),
            ] {
                let ran = fastest(&context, &sql, 3).await?;
                println!(
                    "| {} | {} | {name} | {:.2} | {} | {:.1} |",
                    if partitioned { "partitioned" } else { "small side collected" },
                    if dynamic { "on" } else { "off" },
                    ran.seconds,
                    counted(&ran.plan, "RepartitionExec", "output_rows"),
                    counted(&ran.plan, "RepartitionExec", "output_bytes") as f64 / 1e6,
                );
                answers.push(pretty_format_batches(&ran.batches)?.to_string());
            }
        }
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]), "answers differ: {answers:?}");
    Ok(())
}

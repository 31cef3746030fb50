//! A join of many facts with few items: rows that a filter of the requested items keeps out of the exchange.

use datafusion::error::Result;

use crate::jobs::{Engines, Job, Query};

/// Files of facts.
const FILES: u64 = 8;

pub async fn run(rows: u64, engines: Engines) -> Result<()> {
    let items = rows / 10;
    let mut job = Job::new()?;
    let file = |file| {
        let (start, end) = (rows / FILES * file, rows / FILES * (file + 1));
        format!(
            "SELECT value AS sale, value * 7919 % {items} AS item, value % 1000 AS price FROM range({start}, {end})"
        )
    };
    job.write("facts", (0..FILES).map(file)).await?;
    let all = format!("SELECT value AS id, value * 31 % 100 AS kind FROM range({items})");
    job.write("items", [all].into_iter()).await?;

    let plain = "SELECT count(*), sum(price) FROM facts JOIN items ON item = id WHERE kind = 7";
    let filter = format!("bloom_filter_agg(id, {})", items / 100);
    // Inside a subquery, because Ballista moves a filter beside the join above it.
    let filtered = |filter: &str| {
        let wanted = format!("might_contain((SELECT {filter} FROM items WHERE kind = 7), item)");
        plain.replace("FROM facts", &format!("FROM (SELECT item, price FROM facts WHERE {wanted}) AS facts"))
    };
    job.queries = vec![
        Query::new("join", plain),
        Query::new("with a Bloom filter", filtered(&filter)),
        Query::new("with a shared one", filtered(&format!("shared_filter({filter})"))),
        Query { screened: true, ..Query::new("screened by itself", plain) },
    ];
    println!("{rows} facts, {items} items, 1% of them wanted, {} partitions\n", engines.partitions);
    job.run(engines).await
}

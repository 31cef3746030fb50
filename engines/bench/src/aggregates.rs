//! Aggregates and lookups of generated integers.

use datafusion::error::Result;
use datafusion::prelude::SessionConfig;

use crate::measure::here;

pub async fn run(rows: u64, partitions: usize, only: Option<String>, batch: usize) -> Result<()> {
    let context = crate::context(SessionConfig::new().with_target_partitions(partitions).with_batch_size(batch))?;
    let few = rows / 100;
    let queries = [
        ("sum: what making the rows costs", format!("SELECT sum(value) FROM range({rows})")),
        ("approx_distinct", format!("SELECT approx_distinct(value) FROM range({rows})")),
        ("bloom_filter_agg, 1 MB", format!("SELECT bloom_filter_agg(value, 1000000) FROM range({rows})")),
        ("bloom_filter_agg, for all rows", format!("SELECT bloom_filter_agg(value, {rows}) FROM range({rows})")),
        ("quotient_filter_agg, for all rows", format!("SELECT quotient_filter_agg(value, {rows}) FROM range({rows})")),
        (
            "quotient_filter_agg, copies of 1%",
            format!("SELECT quotient_filter_agg(value % {few}, {few}) FROM range({rows})"),
        ),
        ("perfect_hash_agg", format!("SELECT perfect_hash_agg(value) FROM range({rows})")),
        ("count(DISTINCT): a hash table", format!("SELECT count(DISTINCT value) FROM range({rows})")),
        (
            "bloom_filter_agg, a thousand groups",
            format!("SELECT value % 1000 AS g, bloom_filter_agg(value, {}) FROM range({rows}) GROUP BY g", rows / 1000),
        ),
        (
            "count(DISTINCT), a thousand groups",
            format!("SELECT value % 1000 AS g, count(DISTINCT value) FROM range({rows}) GROUP BY g"),
        ),
    ];
    let lookup = |filter: &str| {
        let filter = format!("(SELECT {filter} FROM range(1000000))");
        format!("SELECT count(*) FROM range({rows}) WHERE might_contain({filter}, value)")
    };
    let mut queries = Vec::from(queries);
    for (size, name, shared) in [
        (1, "might_contain, 1 MB", "might_contain, 1 MB, shared"),
        (10, "might_contain, 10 MB", "might_contain, 10 MB, shared"),
        (100, "might_contain, 100 MB", "might_contain, 100 MB, shared"),
    ] {
        let filter = format!("bloom_filter_agg(value, {})", size * 800_000);
        // Each batch copies a filter that is not shared, which takes minutes with one of 100 MB.
        if size < 100 {
            queries.push((name, lookup(&filter)));
        }
        queries.push((shared, lookup(&format!("shared_filter({filter})"))));
    }
    println!("{rows} rows, {partitions} partitions\n");
    println!(
        "| query | seconds | processor seconds | million rows per processor second | the same without making the rows |"
    );
    println!("| --- | ---: | ---: | ---: | ---: |");
    let mut making = 0.0;
    for (name, sql) in queries {
        if only.as_ref().is_some_and(|only| !name.contains(only.as_str())) && making != 0.0 {
            continue;
        }
        let cost = match here(&context, &sql, 2).await {
            Ok(cost) => cost,
            Err(error) => {
                println!("| {name} | {error} | | | |");
                continue;
            }
        };
        let used = cost.processor_seconds;
        let rate = |seconds: f64| rows as f64 / seconds / 1e6;
        let own = if making == 0.0 { String::new() } else { format!("{:.0}", rate(used - making)) };
        println!("| {name} | {:.2} | {used:.2} | {:.0} | {own} |", cost.seconds, rate(used));
        if making == 0.0 {
            making = used;
        }
    }
    Ok(())
}

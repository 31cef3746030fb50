//! Costs of queries, in one process or several.

use std::path::Path;
use std::time::Instant;

use datafusion::arrow::array::AsArray;
use datafusion::error::Result;
use datafusion::prelude::SessionContext;

use crate::tables::{run, table};

/// Returns the processor seconds of all threads of a process, given as a number or as `self`; 0 where Linux does not
/// say.
pub fn processor_seconds(process: &str) -> f64 {
    /// Ticks per second in Linux's accounts of processes.
    const TICKS: f64 = 100.0;
    let line = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name, in parentheses, may contain spaces.
    let fields: Vec<&str> = line.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |field: usize| fields.get(field).and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / TICKS
}

/// Runs a query and returns its plan with counters.
pub async fn analyzed(context: &SessionContext, sql: &str) -> Result<String> {
    let batches = context.sql(&format!("EXPLAIN ANALYZE {sql}")).await?.collect().await?;
    let rows = batches.iter().flat_map(|batch| batch.column(1).as_string::<i32>());
    Ok(rows.flatten().collect::<Vec<&str>>().join("\n"))
}

/// Sums a counter over the lines of a plan that contain `operator`.
pub fn counted(plan: &str, operator: &str, counter: &str) -> u64 {
    let operators = plan.lines().filter(|line| line.contains(operator));
    let counts = operators.filter_map(|line| line.split(counter).nth(1));
    counts.map(|count| number(count.split([',', ']']).next().unwrap_or_default())).sum()
}

/// Parses a counter in the engine's format, such as `12`, `1.5 K`, `20.00 M` or `16.9 MB`.
fn number(printed: &str) -> u64 {
    let (digits, unit) = printed.trim().split_once(' ').unwrap_or((printed.trim(), ""));
    let scale = match unit {
        "K" => 1e3,
        "M" => 1e6,
        "KB" => 1024.0,
        "MB" => 1024.0 * 1024.0,
        "GB" => 1024.0 * 1024.0 * 1024.0,
        _ => 1.0,
    };
    digits.parse::<f64>().map_or(0, |digits| (digits * scale) as u64)
}

/// Writes the tables of a join that is worth screening: `rows` facts in eight files, and a tenth as many items, 1% of
/// them requested.
pub async fn write_star(folder: &Path, rows: u64) -> Result<()> {
    let context = SessionContext::new();
    let items = rows / 10;
    for file in 0..8 {
        let (start, end, path) = (rows / 8 * file, rows / 8 * (file + 1), folder.join(format!("star/{file}.parquet")));
        let facts = format!("SELECT value AS sale, value * 7919 % {items} AS item, value % 1000 AS price");
        run(&context, &format!("COPY ({facts} FROM range({start}, {end})) TO '{}'", path.display())).await?;
    }
    for file in 0..2 {
        let (start, end, path) =
            (items / 2 * file, items / 2 * (file + 1), folder.join(format!("kinds/{file}.parquet")));
        let items = format!("SELECT value AS id, value * 31 % 100 AS kind FROM range({start}, {end})");
        run(&context, &format!("COPY ({items}) TO '{}'", path.display())).await?;
    }
    Ok(())
}

/// The join of the tables that [`write_star`] wrote.
pub const STAR_JOIN: &str = "SELECT count(*), sum(price) FROM star JOIN kinds ON item = id WHERE kind = 7";

/// Runs [`STAR_JOIN`] alternately without and with screening, `rounds` times, and prints the median costs. `processes`
/// take part; `senders` is a part of the names of operators that exchange rows.
pub async fn print_star_join(
    context: &SessionContext,
    folder: &Path,
    rounds: usize,
    processes: &[String],
    senders: &str,
) -> Result<()> {
    for table in ["star", "kinds"] {
        context.register_parquet(table, &folder.join(table).to_string_lossy(), Default::default()).await?;
    }
    let used = || processes.iter().map(|process| processor_seconds(process)).sum::<f64>();
    let (mut costs, mut answers) = ([const { Vec::new() }; 2], Vec::new());
    for round in 0..=rounds {
        for (way, costs) in [false, true].into_iter().zip(&mut costs) {
            run(context, &format!("SET warpset_joins.subqueries = {way}")).await?;
            let (started, before) = (Instant::now(), used());
            answers.push(table(context, STAR_JOIN).await?);
            // The first round reads files and connects.
            if round > 0 {
                costs.push((used() - before, started.elapsed().as_secs_f64()));
            }
        }
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]), "the answers differ: {answers:?}");
    println!("| screened | processor seconds | seconds | rows exchanged |\n| --- | ---: | ---: | ---: |");
    for (way, mut costs) in [false, true].into_iter().zip(costs) {
        run(context, &format!("SET warpset_joins.subqueries = {way}")).await?;
        let exchanged = counted(&analyzed(context, STAR_JOIN).await?, senders, "output_rows=");
        costs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (processor, seconds) = costs[costs.len() / 2];
        println!("| {way} | {processor:.2} | {seconds:.2} | {exchanged} |");
    }
    Ok(())
}

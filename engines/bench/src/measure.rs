//! Running queries in this process and on a cluster, and what it cost.

use std::time::Instant;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::error::Result;
use datafusion::physical_plan::collect;
use datafusion::prelude::SessionContext;
use warpset_ballista::LocalCluster;

/// Processor seconds that a process has used, all threads; 0 where Linux does not say.
fn processor_seconds(process: &str) -> f64 {
    /// Ticks per second that Linux counts processes' time in.
    const TICKS: f64 = 100.0;
    let line = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name, in parentheses, may hold spaces.
    let fields: Vec<&str> = line.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |field: usize| fields.get(field).and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / TICKS
}

/// What a query cost.
#[derive(Clone, Debug)]
pub struct Cost {
    /// Seconds from the plan to the last row.
    pub seconds: f64,
    /// Processor seconds of all processes: a busy machine changes them less than the time.
    pub processor_seconds: f64,
    /// Rows that went from one partition to another.
    pub rows_exchanged: u64,
    /// Bytes of these rows: in memory, or as a cluster writes them.
    pub bytes_exchanged: u64,
    /// The answer.
    pub answer: Vec<RecordBatch>,
}

impl Cost {
    /// The cheaper one by processor time.
    fn least(best: Option<Cost>, cost: Cost) -> Option<Cost> {
        match best {
            Some(best) if best.processor_seconds <= cost.processor_seconds => Some(best),
            _ => Some(cost),
        }
    }
}

/// Runs a query in this process `times` times, and returns the cheapest.
pub async fn here(context: &SessionContext, sql: &str, times: usize) -> Result<Cost> {
    let mut best = None;
    for _ in 0..times {
        let plan = context.sql(sql).await?.create_physical_plan().await?;
        let (started, before) = (Instant::now(), processor_seconds("self"));
        let batches = collect(plan.clone(), context.task_ctx()).await?;
        let cost = Cost {
            seconds: started.elapsed().as_secs_f64(),
            processor_seconds: processor_seconds("self") - before,
            rows_exchanged: 0,
            bytes_exchanged: 0,
            answer: batches,
        };
        best = Cost::least(best, cost);
    }
    let mut best = best.expect("run at least once");
    let plan = analyzed(context, sql).await?;
    best.rows_exchanged = counted(&plan, "RepartitionExec: partitioning=Hash", "output_rows=");
    best.bytes_exchanged = counted(&plan, "RepartitionExec: partitioning=Hash", "output_bytes=");
    Ok(best)
}

/// Runs a query on a cluster `times` times, and returns the cheapest.
pub async fn there(cluster: &LocalCluster, context: &SessionContext, sql: &str, times: usize) -> Result<Cost> {
    let processes = || cluster.process_ids().iter().map(|id| processor_seconds(&id.to_string())).sum::<f64>();
    let written = || (1..cluster.process_ids().len()).map(|process| cluster.written_bytes(process - 1)).sum::<u64>();
    let mut best = None;
    for _ in 0..times {
        let (started, before, written_before) = (Instant::now(), processes(), written());
        let batches = context.sql(sql).await?.collect().await?;
        let cost = Cost {
            seconds: started.elapsed().as_secs_f64(),
            processor_seconds: processes() - before,
            rows_exchanged: 0,
            bytes_exchanged: written() - written_before,
            answer: batches,
        };
        best = Cost::least(best, cost);
    }
    let mut best = best.expect("run at least once");
    best.rows_exchanged = counted(&analyzed(context, sql).await?, "ShuffleWriter", "output_rows=");
    Ok(best)
}

/// The plan of a query that has run, with its counters.
pub async fn analyzed(context: &SessionContext, sql: &str) -> Result<String> {
    let batches = context.sql(&format!("EXPLAIN ANALYZE {sql}")).await?.collect().await?;
    let rows = batches.iter().flat_map(|batch| batch.column(1).as_string::<i32>());
    Ok(rows.flatten().collect::<Vec<&str>>().join("\n"))
}

/// A counter, summed over the lines of a plan that hold `operator`.
fn counted(plan: &str, operator: &str, counter: &str) -> u64 {
    let operators = plan.lines().filter(|line| line.contains(operator));
    let counts = operators.filter_map(|line| line.split(counter).nth(1));
    counts.map(|count| number(count.split([',', ']']).next().unwrap_or_default())).sum()
}

/// A counter as the engine prints it, such as `12`, `1.5 K`, `20.00 M` or `16.9 MB`.
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

//! Running queries in this process and on a cluster, and what it cost.

use std::time::Instant;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::error::Result;
use datafusion::physical_plan::collect;
use datafusion::prelude::SessionContext;
use warpset_ballista::LocalCluster;
use warpset_distributed::LocalWorkers;

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

/// Processes that queries run on, and how their plans count what these send each other.
pub trait Machines {
    /// The processes, as Linux names them.
    fn processes(&self) -> Vec<String>;
    /// Bytes that they have written for each other so far, if they write them.
    fn written(&self) -> Option<u64>;
    /// The operators that send rows, by a part of their names.
    const SENDERS: &'static str;
    /// The counter of the bytes that these send, if they count them.
    const SENT: Option<&'static str>;
}

impl Machines for LocalCluster {
    fn processes(&self) -> Vec<String> {
        self.process_ids().iter().map(u32::to_string).collect()
    }

    fn written(&self) -> Option<u64> {
        Some((1..self.process_ids().len()).map(|process| self.written_bytes(process - 1)).sum())
    }

    const SENDERS: &'static str = "ShuffleWriter";
    const SENT: Option<&'static str> = None;
}

impl Machines for LocalWorkers {
    /// The client takes part.
    fn processes(&self) -> Vec<String> {
        self.process_ids().iter().map(u32::to_string).chain(["self".to_owned()]).collect()
    }

    fn written(&self) -> Option<u64> {
        None
    }

    const SENDERS: &'static str = "=> Network";
    const SENT: Option<&'static str> = Some("bytes_transferred=");
}

/// Runs a query on other processes `times` times, and returns the cheapest.
pub async fn there<M: Machines>(machines: &M, context: &SessionContext, sql: &str, times: usize) -> Result<Cost> {
    let used = || machines.processes().iter().map(|process| processor_seconds(process)).sum::<f64>();
    let mut best = None;
    for _ in 0..times {
        let (started, before, written) = (Instant::now(), used(), machines.written().unwrap_or(0));
        let batches = context.sql(sql).await?.collect().await?;
        let cost = Cost {
            seconds: started.elapsed().as_secs_f64(),
            processor_seconds: used() - before,
            rows_exchanged: 0,
            bytes_exchanged: machines.written().unwrap_or(0) - written,
            answer: batches,
        };
        best = Cost::least(best, cost);
    }
    let mut best = best.expect("run at least once");
    let plan = analyzed(context, sql).await?;
    best.rows_exchanged = counted(&plan, M::SENDERS, "output_rows=");
    if let Some(sent) = M::SENT {
        best.bytes_exchanged = counted(&plan, M::SENDERS, sent);
    }
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

//! Costs of queries in this process and on a cluster.

use std::time::Instant;

use datafusion::arrow::array::RecordBatch;
use datafusion::error::Result;
use datafusion::physical_plan::collect;
use datafusion::prelude::SessionContext;
use warpset_ballista::LocalCluster;
use warpset_distributed::LocalWorkers;
use warpset_engines_testing::cost::{analyzed, counted, processor_seconds};

/// Cost of a query.
#[derive(Clone, Debug)]
pub struct Cost {
    /// Seconds from the plan to the last row.
    pub seconds: f64,
    /// Processor seconds of all processes, which vary less with the load of the machine than the time.
    pub processor_seconds: f64,
    /// Rows exchanged between partitions.
    pub rows_exchanged: u64,
    /// Bytes of these rows: in memory, or as a cluster writes them.
    pub bytes_exchanged: u64,
    /// The answer.
    pub answer: Vec<RecordBatch>,
}

impl Cost {
    /// Returns the cost with less processor time.
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

/// Processes that run queries, and the names of their counters.
pub trait Machines {
    /// Returns the process ids, as in Linux's `/proc`.
    fn processes(&self) -> Vec<String>;
    /// Returns the bytes written so far for other processes, if the engine writes them.
    fn written(&self) -> Option<u64>;
    /// Part of the names of operators that send rows.
    const SENDERS: &'static str;
    /// Counter of the bytes sent, if there is one.
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
    /// Includes the client, which executes parts of plans.
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

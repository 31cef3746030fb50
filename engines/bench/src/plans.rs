//! Running plans, and what their operators counted.

use std::sync::Arc;
use std::time::Instant;

use datafusion::arrow::array::RecordBatch;
use datafusion::error::Result;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;

/// A query that has run.
pub struct Ran {
    /// Seconds from the plan to the last row.
    pub seconds: f64,
    /// The answer.
    pub batches: Vec<RecordBatch>,
    /// The plan, with its counters.
    pub plan: Arc<dyn ExecutionPlan>,
}

/// Runs a query `times` times, and returns the fastest.
pub async fn fastest(context: &SessionContext, sql: &str, times: usize) -> Result<Ran> {
    let mut best: Option<Ran> = None;
    for _ in 0..times {
        let plan = context.sql(sql).await?.create_physical_plan().await?;
        let started = Instant::now();
        let batches = collect(plan.clone(), context.task_ctx()).await?;
        let ran = Ran { seconds: started.elapsed().as_secs_f64(), batches, plan };
        if best.as_ref().is_none_or(|best| ran.seconds < best.seconds) {
            best = Some(ran);
        }
    }
    Ok(best.expect("run at least once"))
}

/// A counter, summed over the operators of this name.
pub fn counted(plan: &Arc<dyn ExecutionPlan>, operator: &str, counter: &str) -> u64 {
    let mut sum = 0;
    if plan.name() == operator {
        let counted = plan.metrics().and_then(|metrics| metrics.sum_by_name(counter));
        sum += counted.map_or(0, |value| value.as_usize() as u64);
    }
    sum + plan.children().into_iter().map(|child| counted(child, operator, counter)).sum::<u64>()
}

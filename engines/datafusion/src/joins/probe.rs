//! Operator on the probe side: drops rows without a partner.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use datafusion::arrow::array::{BooleanArray, RecordBatch};
use datafusion::arrow::compute::BatchCoalescer;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, ScalarValue, Statistics};
use datafusion::config::ConfigOptions;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::{DynamicFilterPhysicalExpr, Literal};
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};
use datafusion::physical_plan::execution_plan::{CardinalityEffect, ReplaceChildrenOptions};
use datafusion::physical_plan::filter_pushdown::{
    ChildFilterDescription, ChildPushdownResult, FilterDescription, FilterPushdownPhase, FilterPushdownPropagation,
    PushedDown,
};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet, Time,
};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, apply_expression_roots};
use futures::{Stream, StreamExt};

use super::expression::KeysMayMatch;
use super::place;

/// Drops rows of a join's probe side that the filter of [`FilterBuildExec`](super::FilterBuildExec) excludes.
///
/// `EXPLAIN ANALYZE` shows `rows_dropped` and `lookup_time`, a part of `elapsed_compute`.
///
/// The operator also hands the filter to the scan below, which prunes files and row groups by it. If the scan drops
/// rows too (`datafusion.execution.parquet.pushdown_filters`), it does so in place of this operator.
#[derive(Debug)]
pub struct FilterProbeExec {
    input: Arc<dyn ExecutionPlan>,
    /// A [`DynamicFilterPhysicalExpr`] on the input's columns.
    condition: Arc<dyn PhysicalExpr>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl FilterProbeExec {
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, condition: Arc<dyn PhysicalExpr>) -> FilterProbeExec {
        FilterProbeExec {
            properties: input.properties().clone(),
            input,
            condition,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    fn renewed(&self, input: Arc<dyn ExecutionPlan>) -> FilterProbeExec {
        FilterProbeExec::new(input, self.condition.clone())
    }
}

impl DisplayAs for FilterProbeExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let keys: Vec<Arc<dyn PhysicalExpr>> = self.condition.children().into_iter().cloned().collect();
        match format {
            DisplayFormatType::TreeRender => writeln!(f, "keys={}", place::list(&keys)),
            _ => write!(f, "FilterProbeExec: keys=[{}]", place::list(&keys)),
        }
    }
}

impl ExecutionPlan for FilterProbeExec {
    fn name(&self) -> &str {
        "FilterProbeExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots([&self.condition], f)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(self.renewed(place::only_child(&mut children)?)))
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(self.renewed(place::only_child(&mut children)?)))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let batch_size = context.session_config().batch_size();
        Ok(Box::pin(ProbeStream {
            input: self.input.execute(partition, context)?,
            condition: self.condition.clone(),
            kept: BatchCoalescer::new(self.schema(), batch_size),
            whole: None,
            ended: false,
            dropped: MetricBuilder::new(&self.metrics).counter("rows_dropped", partition),
            lookups: MetricBuilder::new(&self.metrics).subset_time("lookup_time", partition),
            baseline: BaselineMetrics::new(&self.metrics, partition),
        }))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(&self, inputs: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        Ok(Arc::new(Statistics::clone(&inputs[0]).to_inexact()))
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::LowerEqual
    }

    fn gather_filters_for_pushdown(
        &self,
        phase: FilterPushdownPhase,
        parent_filters: Vec<Arc<dyn PhysicalExpr>>,
        _: &ConfigOptions,
    ) -> Result<FilterDescription> {
        let passed = place::pass_filters(&parent_filters, &self.input)?;
        if phase != FilterPushdownPhase::Post || !place::reaches_scan(&self.input, &self.condition) {
            return Ok(passed);
        }
        let child = if place::has_unique_names(&self.input.schema()) {
            ChildFilterDescription::from_child(&parent_filters, &self.input)?
        } else {
            ChildFilterDescription::all_unsupported(&parent_filters)
        };
        Ok(FilterDescription::new().with_child(child.with_self_filter(self.condition.clone())))
    }

    fn handle_child_pushdown_result(
        &self,
        _: FilterPushdownPhase,
        result: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        let ours = result.self_filters.first().and_then(|filters| filters.first());
        let done_below = ours.is_some_and(|filter| matches!(filter.discriminant, PushedDown::Yes));
        let propagation = FilterPushdownPropagation::if_all(result);
        Ok(if done_below { propagation.with_updated_node(self.input.clone()) } else { propagation })
    }
}

/// Result of a condition on a batch.
enum Kept {
    All,
    None,
    Some(BooleanArray),
}

/// Evaluates a condition on a batch. Rows pass if it cannot be evaluated or does not exist yet.
fn kept(condition: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Kept {
    let Some(Ok(condition)) = condition.downcast_ref::<DynamicFilterPhysicalExpr>().map(|filter| filter.current())
    else {
        return Kept::All;
    };
    for part in split_conjunction(&condition) {
        if let Some(filter) = part.downcast_ref::<KeysMayMatch>() {
            return match filter.ask(batch) {
                Ok(Some(kept)) if kept.true_count() == 0 => Kept::None,
                Ok(Some(kept)) => Kept::Some(kept),
                Ok(None) | Err(_) => Kept::All,
            };
        }
        if let Some(literal) = part.downcast_ref::<Literal>()
            && *literal.value() == ScalarValue::Boolean(Some(false))
        {
            return Kept::None;
        }
    }
    Kept::All
}

struct ProbeStream {
    input: SendableRecordBatchStream,
    condition: Arc<dyn PhysicalExpr>,
    /// Rows of batches that lost some.
    kept: BatchCoalescer,
    /// A batch that lost none, in order after these.
    whole: Option<RecordBatch>,
    ended: bool,
    dropped: Count,
    lookups: Time,
    baseline: BaselineMetrics,
}

impl ProbeStream {
    /// Adds a batch of the input.
    fn take(&mut self, batch: RecordBatch) -> Result<()> {
        let rows = batch.num_rows();
        let timer = self.lookups.timer();
        let kept = kept(&self.condition, &batch);
        timer.done();
        match kept {
            Kept::None => self.dropped.add(rows),
            Kept::Some(kept) => {
                self.dropped.add(rows - kept.true_count());
                self.kept.push_batch_with_filter(batch, &kept)?;
            }
            Kept::All => {
                self.kept.finish_buffered_batch()?;
                self.whole = Some(batch);
            }
        }
        Ok(())
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        loop {
            if let Some(batch) = self.kept.next_completed_batch().or_else(|| self.whole.take()) {
                return Poll::Ready(Some(Ok(batch)));
            }
            if self.ended {
                return Poll::Ready(None);
            }
            let taken = match ready!(self.input.poll_next_unpin(context)) {
                Some(Ok(batch)) => {
                    let time = self.baseline.elapsed_compute().clone();
                    let _timer = time.timer();
                    self.take(batch)
                }
                Some(Err(error)) => Err(error),
                None => {
                    self.ended = true;
                    self.kept.finish_buffered_batch().map_err(Into::into)
                }
            };
            if let Err(error) = taken {
                return Poll::Ready(Some(Err(error)));
            }
        }
    }
}

impl Stream for ProbeStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.poll(context);
        self.baseline.record_poll(polled)
    }
}

impl RecordBatchStream for ProbeStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}

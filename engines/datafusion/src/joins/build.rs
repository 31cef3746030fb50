//! Operator on the build side: passes its rows on and gathers their keys.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics};
use datafusion::config::ConfigOptions;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::lit;
use datafusion::physical_plan::execution_plan::{CardinalityEffect, ReplaceChildrenOptions};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterDescription, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, Time};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties, apply_expression_roots,
};
use futures::{Stream, StreamExt};

use super::gathering::{Gathering, Part, Target};
use super::place;

/// Gathers the keys of a join's build side into a split-block Bloom filter or a bitmap, and writes it into the dynamic
/// filter that [`FilterProbeExec`](super::FilterProbeExec) and the scan of the probe side evaluate. Rows pass
/// unchanged.
///
/// It never fails. All rows of the probe side pass if there is no filter: not enough memory, too many keys, or a
/// partition that was not read to its end.
///
/// `EXPLAIN ANALYZE` shows the effect of the filter in all operators and scans: `keys`, `filter_bytes`, `rows_asked`,
/// `rows_dropped`, and `rows_unasked`, the rows that passed without a lookup because the filter dropped too few.
#[derive(Debug)]
pub struct FilterBuildExec {
    input: Arc<dyn ExecutionPlan>,
    keys: Vec<Arc<dyn PhysicalExpr>>,
    types: Vec<DataType>,
    target: Arc<Target>,
    /// The latest execution.
    running: Arc<Mutex<Option<Arc<Gathering>>>>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl FilterBuildExec {
    pub(crate) fn new(
        input: Arc<dyn ExecutionPlan>,
        keys: Vec<Arc<dyn PhysicalExpr>>,
        target: Arc<Target>,
    ) -> Result<FilterBuildExec> {
        let types = keys.iter().map(|key| key.data_type(&input.schema())).collect::<Result<_>>()?;
        Ok(FilterBuildExec {
            properties: input.properties().clone(),
            input,
            keys,
            types,
            target,
            running: Arc::default(),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// Returns the operator on another input, before any execution.
    fn renewed(&self, input: Arc<dyn ExecutionPlan>) -> FilterBuildExec {
        FilterBuildExec {
            properties: input.properties().clone(),
            input,
            keys: self.keys.clone(),
            types: self.types.clone(),
            target: self.target.clone(),
            running: Arc::default(),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// Starts a partition. A partition of another execution than the latest starts a new gathering, so that partitions
    /// of two executions are never combined.
    fn start(&self, partition: usize, context: &Arc<TaskContext>) -> Option<(Arc<Gathering>, Part)> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gathering) = running.as_ref() {
            if let Some(part) = gathering.start(partition, context, &self.types) {
                return Some((gathering.clone(), part));
            }
            // The filter of the previous execution may be wrong for this one.
            self.target.condition.update(lit(true)).ok()?;
        }
        let partitions = self.input.output_partitioning().partition_count();
        let gathering = Arc::new(Gathering::new(&self.target, context, partitions, &self.metrics));
        let part = gathering.start(partition, context, &self.types)?;
        *running = Some(gathering.clone());
        Some((gathering, part))
    }
}

impl DisplayAs for FilterBuildExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        match format {
            DisplayFormatType::TreeRender => writeln!(f, "keys={}", place::list(&self.keys)),
            _ => write!(f, "FilterBuildExec: keys=[{}]", place::list(&self.keys)),
        }
    }
}

impl ExecutionPlan for FilterBuildExec {
    fn name(&self) -> &str {
        "FilterBuildExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn dynamic_expressions_produced(&self) -> Vec<Arc<dyn PhysicalExpr>> {
        vec![self.target.condition.clone()]
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
        let condition: Arc<dyn PhysicalExpr> = self.target.condition.clone();
        apply_expression_roots(self.keys.iter().chain([&condition]), f)
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

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        self.target.condition.update(lit(true))?;
        Ok(Arc::new(self.renewed(self.input.clone())))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let gathering = self.start(partition, &context);
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        Ok(Box::pin(BuildStream {
            input: self.input.execute(partition, context)?,
            keys: self.keys.clone(),
            gathering,
            time: baseline.elapsed_compute().clone(),
            baseline,
        }))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(&self, inputs: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        Ok(inputs[0].clone())
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }

    fn gather_filters_for_pushdown(
        &self,
        _: FilterPushdownPhase,
        parent_filters: Vec<Arc<dyn PhysicalExpr>>,
        _: &ConfigOptions,
    ) -> Result<FilterDescription> {
        place::pass_filters(&parent_filters, &self.input)
    }

    fn handle_child_pushdown_result(
        &self,
        _: FilterPushdownPhase,
        result: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        Ok(FilterPushdownPropagation::if_all(result))
    }
}

struct BuildStream {
    input: SendableRecordBatchStream,
    keys: Vec<Arc<dyn PhysicalExpr>>,
    /// `None` once there will be no filter.
    gathering: Option<(Arc<Gathering>, Part)>,
    time: Time,
    baseline: BaselineMetrics,
}

impl BuildStream {
    fn gather(&mut self, batch: &RecordBatch) {
        if let Some((gathering, part)) = &mut self.gathering {
            let evaluate = |key: &Arc<dyn PhysicalExpr>| key.evaluate(batch)?.into_array(batch.num_rows());
            // If the keys cannot be evaluated, the join reports it.
            let keys: Result<Vec<ArrayRef>> = self.keys.iter().map(evaluate).collect();
            if !keys.is_ok_and(|keys| part.add(&keys, gathering)) {
                gathering.give_up();
                self.gathering = None;
            }
        }
    }
}

impl Stream for BuildStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.input.poll_next_unpin(context));
        let time = self.time.clone();
        let timer = time.timer();
        match &next {
            Some(Ok(batch)) => self.gather(batch),
            Some(Err(_)) => self.gathering = None,
            None => {
                if let Some((gathering, part)) = self.gathering.take() {
                    gathering.end(part);
                }
            }
        }
        timer.done();
        self.baseline.record_poll(Poll::Ready(next))
    }
}

impl RecordBatchStream for BuildStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}

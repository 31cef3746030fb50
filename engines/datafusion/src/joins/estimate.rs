//! Estimate from the plan whether a filter pays.

use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use warpset_bloom::rates;

use super::probe::FilterProbeExec;
use super::settings::JoinSettings;

/// Build sides with at most this many rows always get a filter: it costs less than an estimate.
const FEW_ROWS: usize = 100_000;

/// Whether a filter of this join's build side may pay.
///
/// It does not pay if the probe side is small, or if a useful filter would be too large. It does not pay if nothing
/// drops rows of a large build side, since nearly every probe row then has a partner. Unknown sizes count in favour:
/// the lookups themselves find out how many rows a filter drops.
pub(crate) fn may_pay(join: &HashJoinExec, settings: &JoinSettings) -> bool {
    let few = |rows: Option<usize>, limit: usize| rows.is_some_and(|rows| rows <= limit);
    let (build, probe) = (rows(join.left()), rows(join.right()));
    if few(probe, settings.least_probe_rows.saturating_sub(1)) && settings.least_probe_rows > 0 {
        return false;
    }
    // Statistics count rows, not keys. One key per four rows is a guess that excludes hopeless cases only.
    let most = 4 * rates::worthwhile_keys(settings.most_filter_bytes as u64);
    if build.is_some_and(|rows| rows as u64 > most) {
        return false;
    }
    settings.every_build || few(build, FEW_ROWS) || drops_rows(join.left())
}

/// Returns the number of rows, if the engine knows or estimates it.
fn rows(plan: &Arc<dyn ExecutionPlan>) -> Option<usize> {
    let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new()).ok()?;
    statistics.num_rows.get_value().copied()
}

/// Whether a plan drops rows of its tables.
fn drops_rows(plan: &Arc<dyn ExecutionPlan>) -> bool {
    if plan.fetch().is_some() || plan.is::<FilterExec>() || plan.is::<FilterProbeExec>() {
        return true;
    }
    if let Some(scan) = plan.downcast_ref::<DataSourceExec>() {
        let files = scan.data_source().downcast_ref::<FileScanConfig>();
        return files.is_some_and(|files| files.file_source().filter().is_some());
    }
    let join = |join_type: &JoinType, condition: bool| {
        condition || !matches!(join_type, JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full)
    };
    let by_join = if let Some(hash) = plan.downcast_ref::<HashJoinExec>() {
        join(hash.join_type(), hash.filter().is_some())
    } else if let Some(merge) = plan.downcast_ref::<SortMergeJoinExec>() {
        join(&merge.join_type(), merge.filter().is_some())
    } else {
        plan.is::<NestedLoopJoinExec>()
    };
    by_join || plan.children().into_iter().any(drops_rows)
}

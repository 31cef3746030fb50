//! Division of a scan of files among tasks.

use std::sync::Arc;

use datafusion::datasource::physical_plan::{FileGroup, FileGroupPartitioner, FileScanConfig};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion_distributed::{DistributedLeafExec, ScaleUpLeafNodeEvent, ScaleUpLeafNodeEventResponse};

/// Divides a scan of files into one scan per task, all with the same number of partitions, some of them possibly empty.
///
/// The engine alone does not add empty partitions. If the number of parts is no multiple of the number of tasks, as
/// with sorted files, or small files among three tasks, its planning fails.
pub(crate) fn divide(event: ScaleUpLeafNodeEvent) -> Option<Result<ScaleUpLeafNodeEventResponse>> {
    let scan = event.plan.downcast_ref::<DataSourceExec>()?.data_source().downcast_ref::<FileScanConfig>()?;
    // The engine divides partitions with a key, and adds empty ones there.
    if scan.output_partitioning.is_some() || event.task_count == 0 {
        return None;
    }
    let tasks = event.task_count;
    let parts = parts(scan, event.plan.output_partitioning().partition_count() * tasks);
    let of_task = |task: usize| {
        let mut groups: Vec<FileGroup> = parts.iter().skip(task).step_by(tasks).cloned().collect();
        groups.resize_with(parts.len().div_ceil(tasks), FileGroup::default);
        let mut scan = scan.clone();
        scan.file_groups = groups;
        DataSourceExec::from_data_source(scan) as Arc<dyn ExecutionPlan>
    };
    let divided = DistributedLeafExec::try_new(event.plan.clone(), (0..tasks).map(of_task));
    Some(divided.map(|leaf| ScaleUpLeafNodeEventResponse::new(Arc::new(leaf))))
}

/// Groups the files of a scan into about `number` parts of equal size. Sorted files stay whole.
fn parts(scan: &FileScanConfig, number: usize) -> Vec<FileGroup> {
    FileGroupPartitioner::new()
        .with_target_partitions(number)
        .with_repartition_file_min_size(0)
        .with_preserve_order_within_groups(!scan.output_ordering.is_empty())
        .repartition_file_groups(&scan.file_groups)
        .unwrap_or_else(|| scan.file_groups.clone())
}

//! Groups: many, few, spilled to disk, and passed on row by row.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{SessionConfig, SessionContext};
use warpset_bloom::SplitBlockBloom;
use warpset_fuse::BinaryFuse16;
use warpset_mphf::RecSplit;
use warpset_quotient::{Duplicates, Insert, RankSelectQuotientFilter};

use crate::{integers, saved, table, with_config};

const KEYS: i64 = 20_000;

fn group(key: i64, groups: i64) -> i64 {
    (key * key) % groups
}

/// Compares all structures of all groups with those that the crates build.
fn check(batches: &[RecordBatch], groups: i64) {
    let mut members: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    (0..KEYS).for_each(|key| members.entry(group(key, groups)).or_default().push(key));
    for batch in batches {
        let numbers = batch.column(0).as_primitive::<Int64Type>();
        let [bloom, quotient, hash, fuse] = [1, 2, 3, 4].map(|i| saved(batch.column(i)));
        for row in 0..batch.num_rows() {
            let keys = members.remove(&numbers.value(row)).expect("each group once");
            let expected = SplitBlockBloom::builder(100).build_from(&keys).unwrap().to_bytes();
            assert!(bloom[row].as_ref() == Some(&expected));
            let expected = BinaryFuse16::builder().build_from(&keys).unwrap().to_bytes();
            assert!(fuse[row].as_ref() == Some(&expected));
            let expected = RankSelectQuotientFilter::builder(1000).duplicates(Duplicates::Counted);
            let mut filter = expected.build().unwrap();
            while filter.insert_bulk(&keys).is_err() {
                filter.double().unwrap();
            }
            assert!(quotient[row].as_ref() == Some(&filter.to_bytes()));
            let function = RecSplit::from_bytes(hash[row].as_ref().unwrap()).unwrap();
            let mut seen = vec![false; keys.len()];
            keys.iter().for_each(|&key| seen[function.get(key) as usize] = true);
            assert!(function.len() == keys.len() as u64 && seen.iter().all(|&seen| seen));
        }
    }
    assert!(members.is_empty(), "{} groups are missing", members.len());
}

async fn plan(context: &SessionContext, groups: i64) -> Arc<dyn ExecutionPlan> {
    table(context, "t", &[("k", integers(0..KEYS)), ("g", integers((0..KEYS).map(|key| group(key, groups))))], 20);
    let sql =
        "SELECT g, bloom_filter_agg(k, 100), quotient_filter_agg(k, 1000), perfect_hash_agg(k), fuse_filter_agg(k, 16)
               FROM t GROUP BY g";
    context.sql(sql).await.unwrap().create_physical_plan().await.unwrap()
}

/// Sums a metric over a plan.
fn metric(plan: &Arc<dyn ExecutionPlan>, name: &str) -> usize {
    let own = plan.metrics().and_then(|metrics| metrics.sum_by_name(name)).map_or(0, |value| value.as_usize());
    own + plan.children().into_iter().map(|child| metric(child, name)).sum::<usize>()
}

fn spills(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let own = plan.metrics().and_then(|metrics| metrics.spill_count()).unwrap_or(0);
    own + plan.children().into_iter().map(spills).sum::<usize>()
}

#[tokio::test]
async fn groups_of_all_sizes() {
    for groups in [1, 17, 1000] {
        for partitions in [1, 4] {
            let context = with_config(SessionConfig::new().with_target_partitions(partitions));
            let plan = plan(&context, groups).await;
            check(&collect(plan, context.task_ctx()).await.unwrap(), groups);
        }
    }
}

#[tokio::test]
async fn an_engine_that_gives_up_aggregating_early() {
    let config = SessionConfig::new()
        .with_target_partitions(2)
        .with_batch_size(500)
        .set_usize("datafusion.execution.skip_partial_aggregation_probe_rows_threshold", 1000)
        .set_str("datafusion.execution.skip_partial_aggregation_probe_ratio_threshold", "0.01");
    let context = with_config(config);
    let plan = plan(&context, 100_000).await;
    let batches = collect(plan.clone(), context.task_ctx()).await.unwrap();
    assert!(metric(&plan, "skipped_aggregation_rows") > 1000);
    check(&batches, 100_000);
}

#[tokio::test]
async fn groups_that_do_not_fit_in_memory() {
    let pool = Arc::new(FairSpillPool::new(1 << 20));
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc().unwrap();
    let config = SessionConfig::new()
        .with_target_partitions(2)
        .with_batch_size(200)
        .set_usize("datafusion.execution.sort_spill_reservation_bytes", 64 << 10);
    let mut context = SessionContext::new_with_config_rt(config, runtime);
    warpset_datafusion::register_all(&mut context).unwrap();
    let plan = plan(&context, 100_000).await;
    let batches = collect(plan.clone(), context.task_ctx()).await.unwrap();
    assert!(spills(&plan) > 0, "nothing was spilled");
    check(&batches, 100_000);
}

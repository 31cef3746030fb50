//! Executions that do not go as planned: cancelled, repeated, at once, without memory, without rows.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::{collect, execute_stream};
use datafusion::prelude::SessionContext;
use futures::StreamExt;

use crate::{config, counted, plan, rows, run, screened, table, texts};

fn integers(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<Int64Array>())
}

const FACTS: i64 = 60_000;
const QUERY: &str = "SELECT v, w FROM a JOIN b ON a.k = b.k WHERE a.v % 5 = 0";

fn tables(context: &SessionContext) {
    table(context, "a", &[("k", integers((0..3000).map(|i| i * 7))), ("v", integers(0..3000))], 2, 8);
    table(context, "b", &[("k", integers((0..FACTS).map(|i| i % 30_000))), ("w", integers(0..FACTS))], 2, 16);
}

async fn expected() -> Vec<String> {
    let plain = SessionContext::new_with_config(config(2));
    tables(&plain);
    rows(&plain, QUERY).await.unwrap()
}

#[tokio::test]
async fn a_plan_runs_again_and_again_and_several_times_at_once() {
    let context = screened(config(1)).await;
    tables(&context);
    let expected = expected().await;
    let plan = context.sql(QUERY).await.unwrap().create_physical_plan().await.unwrap();
    for _ in 0..3 {
        let plan = datafusion::physical_plan::execution_plan::reset_plan_states(plan.clone()).unwrap();
        assert_eq!(texts(&collect(plan.clone(), context.task_ctx()).await.unwrap()), expected);
        assert!(counted(&plan, "FilterProbeExec", "rows_dropped") > 20_000);
    }
    // One execution after the other, with the same operators.
    for _ in 0..2 {
        assert_eq!(texts(&collect(plan.clone(), context.task_ctx()).await.unwrap()), expected);
    }
    let both = futures::join!(collect(plan.clone(), context.task_ctx()), collect(plan.clone(), context.task_ctx()));
    for batches in [both.0.unwrap(), both.1.unwrap()] {
        assert_eq!(texts(&batches), expected);
    }
}

#[tokio::test]
async fn cancelled_queries_leave_nothing_behind() {
    let context = screened(config(2).with_batch_size(100)).await;
    tables(&context);
    for batches in [0, 1, 5] {
        let plan = context.sql(QUERY).await.unwrap().create_physical_plan().await.unwrap();
        let mut stream = execute_stream(plan, context.task_ctx()).unwrap();
        for _ in 0..batches {
            assert!(stream.next().await.is_none_or(|batch| batch.is_ok()));
        }
        drop(stream);
    }
    // A limit ends a query early, too; its rows are arbitrary.
    let all = expected().await;
    for _ in 0..3 {
        let found = rows(&context, &format!("{QUERY} LIMIT 5")).await.unwrap();
        assert_eq!(found.len(), 5);
        assert!(found.iter().all(|row| all.binary_search(row).is_ok()));
    }
    let (found, _) = run(&context, QUERY).await.unwrap();
    assert_eq!(found, all);
    // Tasks of cancelled queries end when they are polled.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(context.runtime_env().memory_pool.reserved(), 0);
}

#[tokio::test]
async fn without_memory_there_is_no_filter_and_no_error() {
    let expected = expected().await;
    for (limit, has_filter) in [(64 << 20, true), (60_000, false)] {
        let runtime = RuntimeEnvBuilder::new().with_memory_limit(limit, 1.0).build_arc().unwrap();
        let state = datafusion::execution::SessionStateBuilder::new_with_default_features()
            .with_config(config(2))
            .with_runtime_env(runtime)
            .build();
        let mut context = SessionContext::new_with_state(state);
        warpset_datafusion::register_joins(&mut context);
        crate::set(&context, "least_probe_rows", "0").await;
        tables(&context);
        let (found, plan) = run(&context, QUERY).await.unwrap();
        assert_eq!(found, expected);
        assert_eq!(counted(&plan, "FilterBuildExec", "rows_dropped") > 0, has_filter, "{limit}");
        drop(plan);
        assert_eq!(context.runtime_env().memory_pool.reserved(), 0);
    }
}

#[tokio::test]
async fn an_empty_build_side_drops_everything_and_an_empty_probe_side_is_no_trouble() {
    let context = screened(config(2)).await;
    tables(&context);
    table(&context, "none", &[("k", integers([])), ("w", integers([]))], 2, 2);
    let (found, plan) = run(&context, "SELECT b.w FROM none JOIN b ON none.k = b.k").await.unwrap();
    assert!(found.is_empty());
    assert_eq!(counted(&plan, "FilterBuildExec", "keys"), 0);
    assert!(rows(&context, "SELECT v FROM a JOIN none ON a.k = none.k").await.unwrap().is_empty());
    let all = rows(&context, "SELECT v FROM a LEFT JOIN none ON a.k = none.k").await.unwrap();
    assert_eq!(all.len(), 3000);
    let all = rows(&context, "SELECT v FROM a WHERE NOT EXISTS (SELECT 1 FROM none WHERE none.k = a.k)").await.unwrap();
    assert_eq!(all.len(), 3000);
}

/// Runs the same operators on other rows in each step of a recursive query.
#[tokio::test]
async fn recursive_queries() {
    let sql = "WITH RECURSIVE path(node, steps) AS (
            SELECT 0 AS node, 0 AS steps UNION ALL
            SELECT target, steps + 1 FROM path JOIN edges ON node = source WHERE steps < 40)
        SELECT node, steps FROM path";
    let plain = SessionContext::new_with_config(config(1));
    let screened = screened(config(1)).await;
    for context in [&plain, &screened] {
        let (source, target) = (integers(0..1000), integers((0..1000).map(|node| (node * 3 + 1) % 1000)));
        table(context, "edges", &[("source", source), ("target", target)], 1, 4);
    }
    assert!(plan(&screened, sql).await.contains("FilterBuildExec"));
    let expected = rows(&plain, sql).await.unwrap();
    assert_eq!(expected.len(), 41);
    assert_eq!(rows(&screened, sql).await.unwrap(), expected);
}

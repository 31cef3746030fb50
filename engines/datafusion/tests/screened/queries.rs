//! All queries of TPC-H over Parquet files.

use datafusion::prelude::{SessionConfig, SessionContext};
use warpset_engines_testing::tpch;

use crate::{config, counted, rows, run, screened};

/// Compares each query with the rule, under several settings, with the plain engine.
#[tokio::test]
async fn tpch_has_the_same_answers() {
    let folder = tempfile::tempdir().unwrap();
    tpch::write(folder.path(), 0.01, 2048, 1).unwrap();
    let plain = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2));
    tpch::register(&plain, folder.path()).await.unwrap();
    let broadcast = SessionConfig::new().with_target_partitions(2);
    let in_scan = config(3).set_bool("datafusion.execution.parquet.pushdown_filters", true);
    let without_engines = config(2).set_bool("datafusion.optimizer.enable_join_dynamic_filter_pushdown", false);
    let mut contexts = vec![screened(broadcast).await, screened(in_scan).await, screened(without_engines).await];
    for context in &mut contexts {
        tpch::register(context, folder.path()).await.unwrap();
    }
    let queries = tpch::queries();
    assert_eq!(queries.len(), 22);
    let mut dropped = 0;
    for query in queries {
        let expected = rows(&plain, query).await.unwrap_or_else(|error| panic!("{query}: {error}"));
        for context in &contexts {
            let (found, plan) = run(context, query).await.unwrap_or_else(|error| panic!("{query}: {error}"));
            assert_eq!(found, expected, "{query}");
            dropped += counted(&plan, "FilterBuildExec", "rows_dropped");
        }
    }
    assert!(dropped > 100_000, "{dropped}");
}

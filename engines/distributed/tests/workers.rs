//! Worker processes on free ports of the loopback device, against DataFusion in this process.

use std::path::Path;
use std::time::{Duration, Instant};

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_plan::displayable;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_distributed::{DistributedExt, SessionStateBuilderExt, WorkerResolver};
use tempfile::TempDir;
use url::Url;
use warpset_distributed::LocalWorkers;
use warpset_engines_testing::{
    QUERIES, SCREENED, SCREENED_JOINS, SCREENED_SHAPE, SHAPES, Shape, cost, local, register_tables, run, sorted_table,
    table, tpch, write_tables,
};

/// Queries for this engine alone.
const OWN: &[&str] = &[
    "SELECT count(*), sum(sale) FROM facts JOIN items ON item = id WHERE kind = 7
     AND might_contain((SELECT shared_filter(bloom_filter_agg(id, 1000, 0.001)) FROM items WHERE kind = 7), item)",
    "SELECT kind, bloom_filter_agg(id, 500) AS f FROM items GROUP BY kind ORDER BY kind",
    "SELECT count(*), sum(id) FROM items
     WHERE quotient_filter_contains((SELECT quotient_filter_agg(item, 20011) FROM facts), id, 20)",
];

/// Starts workers; returns them, a client that takes its tables for large ones, and DataFusion with the same tables.
async fn start(folder: &TempDir, workers: usize) -> Result<(LocalWorkers, SessionContext, SessionContext)> {
    write_tables(folder.path()).await?;
    let workers = LocalWorkers::start(Path::new(env!("CARGO_BIN_EXE_warpset-distributed")), workers)?;
    let context = workers.client(SessionConfig::new().with_target_partitions(2))?;
    run(&context, "SET distributed.file_scan_config_bytes_per_partition = 1").await?;
    register_tables(&context, folder.path()).await?;
    Ok((workers, context, local(folder.path()).await?))
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_answer_as_one_process_does() -> Result<()> {
    let folder = TempDir::new()?;
    let (_workers, context, local) = start(&folder, 2).await?;
    for sql in QUERIES.iter().chain(OWN) {
        // `EXPLAIN` shows the plan before it is distributed.
        let plan = context.sql(sql).await?.create_physical_plan().await?;
        let plan = displayable(plan.as_ref()).indent(false).to_string();
        assert!(plan.starts_with("DistributedExec"), "{sql} runs in one process:\n{plan}");
        assert_eq!(table(&context, sql).await?, table(&local, sql).await?, "{sql}");
    }
    for (sql, cause) in [
        ("SELECT bloom_filter_agg(item, 0) FROM facts", "`items` is 0"),
        ("SELECT bloom_filter_merge(name) FROM facts", "cannot hold a filter"),
        ("SELECT might_contain(arrow_cast(name, 'Binary'), item) FROM facts", "might_contain: "),
    ] {
        let error = run(&context, sql).await.unwrap_err().to_string();
        assert!(error.contains(cause), "{sql}: {error}");
    }
    Ok(())
}

/// Returns the physical plan of a query.
async fn plan(context: &SessionContext, sql: &str) -> Result<String> {
    let plan = context.sql(sql).await?.create_physical_plan().await?;
    Ok(displayable(plan.as_ref()).indent(false).to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn joins_are_screened_by_a_filter_that_goes_from_worker_to_worker() -> Result<()> {
    let folder = TempDir::new()?;
    let (_workers, context, local) = start(&folder, 2).await?;
    for sql in SCREENED_JOINS {
        assert!(!plan(&context, sql).await?.contains("might_contain"), "{sql} is screened without being asked to");
    }
    for setting in SCREENED {
        run(&context, setting).await?;
    }
    for sql in SCREENED_JOINS {
        let plan = plan(&context, sql).await?;
        let [gathered, asked] = ["sized_filter_agg", "might_contain"].map(|name| plan.contains(name));
        assert!(plan.starts_with("DistributedExec") && gathered && asked, "{sql}:\n{plan}");
        assert_eq!(table(&context, sql).await?, table(&local, sql).await?, "{sql}");
    }
    Ok(())
}

/// Reads sorted files, which stay whole, in fewer groups than tasks, so some tasks read nothing.
#[tokio::test(flavor = "multi_thread")]
async fn three_workers_answer_as_one_process_does() -> Result<()> {
    let folder = TempDir::new()?;
    let (_workers, context, local) = start(&folder, 3).await?;
    for sql in QUERIES.iter().chain(OWN) {
        assert_eq!(table(&context, sql).await?, table(&local, sql).await?, "{sql}");
    }
    for setting in SCREENED {
        run(&context, setting).await?;
    }
    for sql in SCREENED_JOINS {
        assert!(plan(&context, sql).await?.contains("sized_filter_agg"), "{sql}");
        assert_eq!(table(&context, sql).await?, table(&local, sql).await?, "{sql}");
    }
    Ok(())
}

/// Three workers; planning uses their number only.
struct Three;

impl WorkerResolver for Three {
    fn get_urls(&self) -> Result<Vec<Url>> {
        let url = |port| Url::parse(&format!("http://127.0.0.1:{port}"));
        (1..4).map(url).collect::<Result<_, _>>().map_err(|error| DataFusionError::External(Box::new(error)))
    }
}

/// Checks that the engine's own division of scans fails on the same tables. Once it adds empty partitions, this test
/// fails, and `scan.rs` can be removed.
#[tokio::test]
async fn the_engine_alone_cannot_divide_sorted_files_among_three() -> Result<()> {
    let folder = TempDir::new()?;
    write_tables(folder.path()).await?;
    let state = SessionStateBuilder::new()
        .with_config(SessionConfig::new().with_target_partitions(2))
        .with_default_features()
        .with_distributed_worker_resolver(Three)
        .with_distributed_planner()
        .build();
    let context = SessionContext::new_with_state(state);
    run(&context, "SET distributed.file_scan_config_bytes_per_partition = 1").await?;
    register_tables(&context, folder.path()).await?;
    let error = plan(&context, "SELECT item, count(*) FROM facts GROUP BY item").await.unwrap_err().to_string();
    assert!(error.contains("Different partition count"), "{error}");
    Ok(())
}

/// Runs all queries of TPC-H, with every join screened that qualifies.
#[tokio::test(flavor = "multi_thread")]
async fn tpch_has_the_same_answers_when_joins_are_screened() -> Result<()> {
    let folder = TempDir::new()?;
    let (_workers, context, local) = start(&folder, 2).await?;
    tpch::write(folder.path(), 0.01, 2048, 1)?;
    for setting in SCREENED.iter().chain(&["SET warpset_joins.least_probe_rows = 0"]) {
        run(&context, setting).await?;
    }
    for context in [&context, &local] {
        tpch::register(context, folder.path()).await?;
    }
    let mut screened = 0;
    for query in tpch::queries() {
        screened += usize::from(plan(&context, query).await?.contains("sized_filter_agg"));
        assert_eq!(sorted_table(&context, query).await?, sorted_table(&local, query).await?, "{query}");
    }
    assert!(screened >= 10, "{screened}");
    Ok(())
}

/// Checks that an aggregate of a table of one file, beside another table, has one result per task, in plain SQL. Once
/// datafusion-distributed aggregates it once, this test fails, and the page on engines loses a workaround.
#[tokio::test(flavor = "multi_thread")]
async fn an_aggregate_of_one_file_beside_a_table_counts_rows_twice() -> Result<()> {
    let folder = TempDir::new()?;
    let (_workers, context, local) = start(&folder, 2).await?;
    run(
        &local,
        &format!("COPY (SELECT * FROM items WHERE id < 500) TO '{}'", folder.path().join("one.parquet").display()),
    )
    .await?;
    for context in [&context, &local] {
        context
            .register_parquet("one", &folder.path().join("one.parquet").to_string_lossy(), Default::default())
            .await?;
    }
    let sql = "SELECT count(*) FROM facts, (SELECT count(id % 7) AS n FROM one) WHERE n <= 500";
    let [theirs, right] = [table(&context, sql).await?, table(&local, sql).await?];
    assert!(theirs.contains("800000") && right.contains("400000"), "{theirs}\n{right}");
    // The rule copes with it: several filters together contain all keys.
    for setting in SCREENED {
        run(&context, setting).await?;
    }
    let sql = "SELECT count(*), sum(sale) FROM facts JOIN one ON item = id WHERE kind = 7";
    assert!(plan(&context, sql).await?.contains("sized_filter_agg"));
    assert_eq!(table(&context, sql).await?, table(&local, sql).await?);
    Ok(())
}

/// Kills a worker at a share of the query's usual time. An answer has to be right; returns the outcome and its time
/// after the kill.
async fn killed(sql: &str, share: f64, number: usize, settings: &[&str]) -> Result<String> {
    let folder = TempDir::new()?;
    let (mut workers, context, local) = start(&folder, number).await?;
    for setting in settings {
        run(&context, setting).await?;
    }
    let expected = table(&local, sql).await?;
    let mut whole = Duration::MAX;
    // The first run also connects.
    for _ in 0..3 {
        let started = Instant::now();
        assert_eq!(table(&context, sql).await?, expected, "{sql}");
        whole = whole.min(started.elapsed());
    }
    let killer = async {
        tokio::time::sleep(whole.mul_f64(share)).await;
        workers.kill(1).unwrap();
        Instant::now()
    };
    let query = tokio::time::timeout(Duration::from_secs(60), table(&context, sql));
    let (answer, killed) = tokio::join!(async { (query.await, Instant::now()) }, killer);
    let outcome = match answer.0 {
        Err(_) => panic!("{sql}: no answer in 60 s"),
        Ok(Err(error)) => format!("an error: {}", error.to_string().chars().take(160).collect::<String>()),
        Ok(Ok(answer)) => {
            assert_eq!(answer, expected, "{sql}");
            "the right answer".to_owned()
        }
    };
    let after = answer.1.saturating_duration_since(killed).as_secs_f64();
    Ok(format!(
        "killed at {:.1} of {:.1} s: {outcome}, {after:.1} s later",
        share * whole.as_secs_f64(),
        whole.as_secs_f64()
    ))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_worker_is_an_error_and_no_wrong_answer() -> Result<()> {
    println!("{}", killed(SHAPES[0].sql, 0.5, 3, &[]).await?);
    Ok(())
}

/// Kills a worker while the filter is gathered, and while it is probed.
#[tokio::test(flavor = "multi_thread")]
async fn a_dead_worker_is_no_wrong_answer_of_a_screened_join() -> Result<()> {
    for share in [0.1, 0.5] {
        println!("{}", killed(SCREENED_SHAPE.sql, share, 3, SCREENED).await?);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; what docs/engines.md reports of dead workers"]
async fn a_worker_dies() -> Result<()> {
    for Shape { name: shape, sql } in SHAPES {
        for share in [0.3, 0.7] {
            println!("{shape}, {}", killed(sql, share, 2, SCREENED).await?);
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a minute; what docs/performance/engines.md reports of a screened join"]
async fn what_a_screened_join_costs() -> Result<()> {
    let folder = TempDir::new()?;
    let (workers, context, _local) = start(&folder, 2).await?;
    cost::write_star(folder.path(), 2_000_000).await?;
    for setting in SCREENED {
        run(&context, setting).await?;
    }
    let processes: Vec<String> = workers.process_ids().iter().map(u32::to_string).chain(["self".to_owned()]).collect();
    cost::print_star_join(&context, folder.path(), 5, &processes, "=> NetworkShuffle").await
}

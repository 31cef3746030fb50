//! Executors that die in the middle of a query.

use std::time::{Duration, Instant};

use datafusion::prelude::{SessionConfig, SessionContext};

use ballista::prelude::SessionConfigExt;
use warpset_engines_testing::{SHAPES, Shape, run, table};

use crate::processes::Cluster;

/// Seconds that a disturbed query has for its answer.
const PATIENCE: u64 = 45;

/// What became of a query.
async fn outcome(context: &SessionContext, sql: &str, expected: &str) -> String {
    let started = Instant::now();
    let answer = match tokio::time::timeout(Duration::from_secs(PATIENCE), run(context, sql)).await {
        Err(_) => format!("no answer in {PATIENCE} s"),
        Ok(Err(error)) => format!("an error: {}", error.to_string().chars().take(160).collect::<String>()),
        Ok(Ok(batches)) => {
            let answer = datafusion::arrow::util::pretty::pretty_format_batches(&batches).unwrap().to_string();
            if answer == expected { "the right answer".to_owned() } else { format!("A WRONG ANSWER:\n{answer}") }
        }
    };
    format!("{answer} after {:.1} s", started.elapsed().as_secs_f64())
}

fn settings(adaptive: bool) -> SessionConfig {
    warpset_ballista::session_config().with_target_partitions(8).with_ballista_adaptive_query_planner(adaptive)
}

/// With the settings that the crate recommends a query whose executor dies is answered rightly or not at all.
#[tokio::test(flavor = "multi_thread")]
async fn a_dead_executor_is_an_error_and_no_wrong_answer() {
    let mut cluster = Cluster::start(2).await;
    let config = warpset_ballista::session_config().with_target_partitions(8);
    let context = cluster.client(config).await;
    let sql = SHAPES[0].sql;
    let expected = table(&cluster.local().await, sql).await.unwrap();
    let query = context.sql(sql).await.unwrap();
    let killer = async {
        tokio::time::sleep(Duration::from_millis(1500)).await;
        cluster.kill(1).unwrap();
    };
    let (answer, ()) = tokio::join!(warpset_ballista::collect_within(query, Duration::from_secs(30)), killer);
    match answer {
        Ok(batches) => {
            let answer = datafusion::arrow::util::pretty::pretty_format_batches(&batches).unwrap().to_string();
            assert_eq!(answer, expected);
        }
        Err(error) => println!("{error}"),
    }
}

/// Kills one of two executors at several moments of several queries, with both planners, and prints what came of it. The
/// reproduction of what `docs/engines.md` reports of Ballista 55.0.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes ten minutes; Ballista 55 hangs or answers wrongly, with plain SQL too"]
async fn an_executor_dies() {
    for adaptive in [false, true] {
        for Shape { name: shape, sql } in SHAPES {
            for share in [0.3, 0.7] {
                let mut cluster = Cluster::start(2).await;
                let context = cluster.client(settings(adaptive)).await;
                let expected = table(&cluster.local().await, sql).await.unwrap();
                let started = Instant::now();
                assert_eq!(table(&context, sql).await.unwrap(), expected, "{shape}");
                let whole = started.elapsed();
                let killer = async {
                    tokio::time::sleep(whole.mul_f64(share)).await;
                    cluster.kill(1).unwrap();
                };
                let (outcome, ()) = tokio::join!(outcome(&context, sql, &expected), killer);
                println!(
                    "adaptive {adaptive}, {shape}, killed at {:.1} of {:.1} s: {outcome}",
                    share * whole.as_secs_f64(),
                    whole.as_secs_f64()
                );
            }
        }
    }
}

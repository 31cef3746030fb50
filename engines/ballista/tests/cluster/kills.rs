//! Executors that die during a query.

use std::time::{Duration, Instant};

use datafusion::prelude::{SessionConfig, SessionContext};

use ballista::prelude::SessionConfigExt;
use warpset_engines_testing::{SCREENED, SCREENED_SHAPE, SHAPES, Shape, run, table};

use crate::processes::Cluster;

/// Returns the time limit of a disturbed query that otherwise takes `whole`: the remaining executor does all of the
/// work, and the scheduler needs 10 s to notice the death.
fn patience(whole: Duration) -> Duration {
    Duration::from_secs(30) + 4 * whole
}

/// Describes the outcome of a query.
async fn outcome(context: &SessionContext, sql: &str, expected: &str, patience: Duration) -> String {
    let started = Instant::now();
    let answer = match tokio::time::timeout(patience, run(context, sql)).await {
        Err(_) => "no answer".to_owned(),
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

/// Checks that, with the recommended settings, a query whose executor dies gives the right answer or none.
#[tokio::test(flavor = "multi_thread")]
async fn a_dead_executor_is_an_error_and_no_wrong_answer() {
    kill_one_of(2, SHAPES[0].sql, &[]).await;
}

/// Kills one of three executors during a join that the scheduler screens.
#[tokio::test(flavor = "multi_thread")]
async fn a_dead_executor_is_no_wrong_answer_of_a_screened_join() {
    kill_one_of(3, SCREENED_SHAPE.sql, SCREENED).await;
}

/// Kills an executor during a query; its answer has to be right, or an error.
async fn kill_one_of(executors: usize, sql: &str, before: &[&str]) {
    let mut cluster = Cluster::start(executors).await;
    let config = warpset_ballista::session_config().with_target_partitions(8);
    let context = cluster.client(config).await;
    for setting in before {
        run(&context, setting).await.unwrap();
    }
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

/// Kills one of two executors during several queries, with both planners, and prints the outcomes: the reproduction of
/// the report on Ballista 55.0 in `docs/engines.md`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes ten to fifteen minutes; Ballista 55 hangs or answers wrongly, with plain SQL too"]
async fn an_executor_dies() {
    for adaptive in [false, true] {
        for Shape { name: shape, sql } in SHAPES {
            let mut cluster = Cluster::start(2).await;
            let context = cluster.client(settings(adaptive)).await;
            let expected = table(&cluster.local().await, sql).await.unwrap();
            let started = Instant::now();
            assert_eq!(table(&context, sql).await.unwrap(), expected, "{shape}");
            let whole = started.elapsed();
            let killer = async {
                tokio::time::sleep(whole / 2).await;
                cluster.kill(1).unwrap();
            };
            let (outcome, ()) = tokio::join!(outcome(&context, sql, &expected, patience(whole)), killer);
            println!("adaptive {adaptive}, {shape}, killed in the middle of {:.1} s: {outcome}", whole.as_secs_f64());
        }
    }
}

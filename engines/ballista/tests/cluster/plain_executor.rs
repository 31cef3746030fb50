//! An executor of Ballista itself, without the functions.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ballista_core::config::TaskSchedulingPolicy;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use warpset_ballista::{collect_within, session_config};

use crate::processes::Cluster;

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_executor_without_the_functions_is_an_error_that_names_the_cause() {
    let cluster = Cluster::start(0).await;
    let config = ExecutorProcessConfig {
        port: free_port(),
        grpc_port: free_port(),
        bind_host: "127.0.0.1".to_owned(),
        external_host: Some("127.0.0.1".to_owned()),
        scheduler_host: "127.0.0.1".to_owned(),
        scheduler_port: cluster.port(),
        scheduler_connect_timeout_seconds: 30,
        vcores: 1,
        task_scheduling_policy: TaskSchedulingPolicy::PushStaged,
        executor_heartbeat_interval_seconds: 1,
        ..ExecutorProcessConfig::default()
    };
    let executor = tokio::spawn(start_executor_process(Arc::new(config)));
    let context = cluster.client(session_config()).await;
    // It works once it has registered.
    let started = Instant::now();
    while collect_within(context.sql("SELECT count(*) FROM items").await.unwrap(), Duration::from_secs(5))
        .await
        .is_err()
    {
        assert!(started.elapsed() < Duration::from_secs(60), "the executor does not start");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    for sql in [
        "SELECT bloom_filter_agg(id) FROM items",
        "SELECT count(*) FROM items WHERE might_contain(arrow_cast(CAST(id AS VARCHAR), 'Binary'), id)",
    ] {
        let query = context.sql(sql).await.unwrap();
        let error = collect_within(query, Duration::from_secs(60)).await.unwrap_err().to_string();
        assert!(error.contains("it may lack Warpset's functions"), "{sql}: {error}");
    }
    executor.abort();
}

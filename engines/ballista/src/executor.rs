//! Executors.

use std::net::TcpListener;
use std::sync::Arc;

use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::error::{BallistaError, Result};
use ballista_core::registry::BallistaFunctionRegistry;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};

use crate::{MESSAGE_BYTES, client};

/// Options of an executor.
#[derive(Clone, Debug, clap::Args)]
pub struct ExecutorOptions {
    /// The scheduler's address.
    #[arg(long, default_value = "127.0.0.1")]
    pub scheduler_host: String,
    /// The scheduler's port.
    #[arg(long, default_value_t = 50050)]
    pub scheduler_port: u16,
    /// The address to listen at, under which other executors reach this one.
    #[arg(long, default_value = "127.0.0.1")]
    pub host: String,
    /// The port for the exchange of data; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    pub port: u16,
    /// The port for tasks; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    pub grpc_port: u16,
    /// Tasks at a time; 0 takes the number of processors.
    #[arg(long, default_value_t = 0)]
    pub cores: usize,
    /// The folder of results for other executors; a temporary one by default.
    #[arg(long)]
    pub work_dir: Option<String>,
    /// Seconds between heartbeats.
    #[arg(long, default_value_t = 5)]
    pub heartbeat: u64,
}

/// Returns Ballista's functions and Warpset's.
fn functions() -> BallistaFunctionRegistry {
    let mut functions = BallistaFunctionRegistry::default();
    let named = |f: Arc<datafusion::logical_expr::ScalarUDF>| (f.name().to_owned(), f);
    functions.scalar_functions.extend(warpset_datafusion::scalars().into_iter().map(named));
    let named = |f: Arc<datafusion::logical_expr::AggregateUDF>| (f.name().to_owned(), f);
    functions.aggregate_functions.extend(warpset_datafusion::aggregates().into_iter().map(named));
    functions
}

/// Returns `port`, or a free one in place of 0.
fn port(host: &str, port: u16) -> Result<u16> {
    let bound = TcpListener::bind((host, port)).and_then(|listener| listener.local_addr());
    Ok(bound.map_err(BallistaError::from)?.port())
}

/// Runs an executor until it fails or the scheduler stops it.
pub async fn run_executor(options: ExecutorOptions) -> Result<()> {
    let host = options.host;
    let config = ExecutorProcessConfig {
        port: port(&host, options.port)?,
        grpc_port: port(&host, options.grpc_port)?,
        external_host: Some(host.clone()),
        bind_host: host,
        scheduler_host: options.scheduler_host,
        scheduler_port: options.scheduler_port,
        scheduler_connect_timeout_seconds: 30,
        vcores: options.cores,
        task_scheduling_policy: TaskSchedulingPolicy::PushStaged,
        work_dir: options.work_dir,
        grpc_max_decoding_message_size: MESSAGE_BYTES,
        grpc_max_encoding_message_size: MESSAGE_BYTES,
        executor_heartbeat_interval_seconds: options.heartbeat,
        override_function_registry: Some(Arc::new(functions())),
        override_config_producer: Some(Arc::new(client::session_config)),
        ..ExecutorProcessConfig::default()
    };
    println!("executor at {}:{}", config.bind_host, config.port);
    start_executor_process(Arc::new(config)).await
}

//! The scheduler.

use std::sync::Arc;

use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::error::{BallistaError, Result};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::{create_scheduler, start_grpc_service_with_listener};
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use tokio::net::TcpListener;

use crate::{MESSAGE_BYTES, client};

/// Options of a scheduler.
#[derive(Clone, Debug, clap::Args)]
pub struct SchedulerOptions {
    /// The address to listen at.
    #[arg(long, default_value = "127.0.0.1")]
    pub host: String,
    /// The port to listen at; 0 takes a free one and prints it.
    #[arg(long, default_value_t = 50050)]
    pub port: u16,
    /// Seconds without a heartbeat after which an executor counts as dead.
    #[arg(long, default_value_t = 30)]
    pub executor_timeout: u64,
}

/// Runs a scheduler until it fails; prints its address first.
pub async fn run_scheduler(options: SchedulerOptions) -> Result<()> {
    let listener = TcpListener::bind((options.host.as_str(), options.port)).await.map_err(BallistaError::from)?;
    let address = listener.local_addr().map_err(BallistaError::from)?;
    let config = SchedulerConfig {
        bind_host: options.host.clone(),
        external_host: options.host,
        bind_port: address.port(),
        scheduling_policy: TaskSchedulingPolicy::PushStaged,
        grpc_server_max_decoding_message_size: MESSAGE_BYTES,
        grpc_server_max_encoding_message_size: MESSAGE_BYTES,
        grpc_client_max_message_size: MESSAGE_BYTES,
        executor_timeout_seconds: options.executor_timeout,
        no_executors_grace_period_seconds: options.executor_timeout,
        expire_dead_executor_interval_seconds: 1.max(options.executor_timeout / 4),
        override_config_producer: Some(Arc::new(client::session_config)),
        override_session_builder: Some(Arc::new(client::session_state)),
        ..SchedulerConfig::default()
    };
    config.validate()?;
    let cluster = BallistaCluster::new_from_config(&config).await?;
    let scheduler = create_scheduler::<LogicalPlanNode, PhysicalPlanNode>(cluster, Arc::new(config)).await?;
    println!("scheduler at {address}");
    start_grpc_service_with_listener(listener, scheduler).await
}

//! Workers.

use std::net::SocketAddr;

use datafusion::error::{DataFusionError, Result};
use datafusion_distributed::{Worker, WorkerQueryContext};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use warpset_datafusion::register_all;

/// Options of a worker.
#[derive(Clone, Debug, clap::Args)]
pub struct WorkerOptions {
    /// The address to listen at; port 0 takes a free one and prints it.
    #[arg(long, default_value = "127.0.0.1:50060")]
    pub address: SocketAddr,
}

/// Runs a worker until it fails; prints its address first.
pub async fn run_worker(options: WorkerOptions) -> Result<()> {
    let external = |error| DataFusionError::External(Box::new(error));
    let incoming = TcpIncoming::bind(options.address)?.with_nodelay(Some(true));
    let worker = Worker::from_session_builder(|context: WorkerQueryContext| async move {
        let mut state = context.builder.build();
        register_all(&mut state)?;
        Ok(state)
    });
    println!("worker at {}", incoming.local_addr()?);
    Server::builder().add_service(worker.into_worker_server()).serve_with_incoming(incoming).await.map_err(external)
}

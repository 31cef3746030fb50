//! Contexts that run queries on workers.

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_distributed::{DistributedExt, SessionStateBuilderExt, WorkerResolver};
use url::Url;
use warpset_datafusion::{register_all, screen_by_subquery};

use crate::scan;

/// The workers known when a context is created.
struct Workers(Vec<Url>);

impl WorkerResolver for Workers {
    fn get_urls(&self) -> Result<Vec<Url>> {
        Ok(self.0.clone())
    }
}

/// Returns a context with queries that run on the workers at these addresses, such as `http://localhost:50060`. After
/// `SET warpset_joins.subqueries = true` its joins are screened ([`screen_by_subquery`]).
pub fn session<W: AsRef<str>>(workers: &[W], config: SessionConfig) -> Result<SessionContext> {
    let workers: Result<Vec<Url>, _> = workers.iter().map(|worker| Url::parse(worker.as_ref())).collect();
    let workers = workers.map_err(|error| DataFusionError::External(Box::new(error)))?;
    let mut state = SessionStateBuilder::new()
        .with_config(config)
        .with_default_features()
        .with_distributed_worker_resolver(Workers(workers))
        .with_distributed_planner()
        .with_distributed_scale_up_leaf_node_handler(scan::divide)
        .build();
    register_all(&mut state)?;
    Ok(SessionContext::new_with_state(screen_by_subquery(state)))
}

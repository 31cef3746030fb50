//! Contexts of clients, and the sessions that a scheduler makes for them.

use std::time::Duration;

use ballista::prelude::{SessionConfigExt, SessionContextExt};
use ballista_core::utils::default_session_builder;
use datafusion::arrow::array::RecordBatch;
use datafusion::dataframe::DataFrame;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::prelude::{SessionConfig, SessionContext};
use warpset_datafusion::{JoinSettings, register_all, screen_by_subquery};

use crate::MESSAGE_BYTES;

/// The settings of a client: Ballista's, with room for filters in messages, and with the adaptive planner, which hangs
/// where the other one can lose rows when an executor dies.
pub fn session_config() -> SessionConfig {
    SessionConfig::new_with_ballista()
        .with_ballista_grpc_client_max_message_size(MESSAGE_BYTES as usize)
        .with_ballista_adaptive_query_planner(true)
        .with_option_extension(JoinSettings::default())
}

/// No answer came in time.
#[derive(Debug, thiserror::Error)]
#[error(
    "no answer in {} s: an executor may have died, after which Ballista waits for ever; start the query again, or allow it \
     more time",
    .limit.as_secs_f64()
)]
pub struct NoAnswer {
    /// The time that the query had.
    pub limit: Duration,
}

/// An executor did not take a task of a query.
#[derive(Debug, thiserror::Error)]
#[error(
    "an executor refused a task: it may lack Warpset's functions, or have those of another version; run the same build of \
     warpset-ballista on every machine (the scheduler's log has what the executor said; the client only knows: {answer})"
)]
pub struct Refused {
    /// What Ballista says of it.
    pub answer: String,
}

/// All rows of a query, or an error after `limit`: a query whose executor dies may otherwise never end. The scheduler
/// is not told to stop. An executor without the functions is the error [`Refused`], where Ballista names no cause.
pub async fn collect_within(query: DataFrame, limit: Duration) -> Result<Vec<RecordBatch>> {
    /// What Ballista 55 says for every task that an executor cannot read.
    const REFUSED: &str = "rejected by executor";
    match tokio::time::timeout(limit, query.collect()).await {
        Ok(Ok(rows)) => Ok(rows),
        Ok(Err(error)) => {
            let answer = error.to_string();
            Err(if answer.contains(REFUSED) { DataFusionError::External(Box::new(Refused { answer })) } else { error })
        }
        Err(_) => Err(DataFusionError::External(Box::new(NoAnswer { limit }))),
    }
}

/// A session with the functions: what a scheduler makes for a client. After `SET warpset_joins.subqueries = true` its
/// joins are screened ([`screen_by_subquery`]).
pub fn session_state(config: SessionConfig) -> Result<SessionState> {
    let mut state = default_session_builder(config)?;
    register_all(&mut state)?;
    Ok(screen_by_subquery(state))
}

/// A context whose queries run in the cluster of the scheduler at `url`, such as `df://localhost:50050`.
pub async fn remote(url: &str) -> Result<SessionContext> {
    remote_with(url, session_config()).await
}

/// [`remote`] with settings; take those of [`session_config`] and change them.
pub async fn remote_with(url: &str, config: SessionConfig) -> Result<SessionContext> {
    let mut context = SessionContext::remote_with_state(url, session_state(config)?).await?;
    // Ballista puts its own list in place of the functions that a state has.
    register_all(&mut context)?;
    Ok(context)
}

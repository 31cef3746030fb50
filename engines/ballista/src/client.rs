//! Contexts of clients, and the sessions that a scheduler creates for them.

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

/// Returns the settings of a client: Ballista's, with messages large enough for filters, and with the adaptive planner.
/// If an executor dies, that planner hangs, where the other one can lose rows.
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
    /// The limit.
    pub limit: Duration,
}

/// An executor did not take a task of a query.
#[derive(Debug, thiserror::Error)]
#[error(
    "an executor refused a task: it may lack Warpset's functions, or have those of another version; run the same build of \
     warpset-ballista on every machine (the scheduler's log has what the executor said; the client only knows: {answer})"
)]
pub struct Refused {
    /// Ballista's message.
    pub answer: String,
}

/// Collects all rows of a query, or fails after `limit`: a query may otherwise wait forever for an executor that died.
/// The scheduler is not told to stop the query. If an executor lacks the functions, the error is [`Refused`], where
/// Ballista names no cause.
pub async fn collect_within(query: DataFrame, limit: Duration) -> Result<Vec<RecordBatch>> {
    /// Part of Ballista 55's message for a task that an executor cannot decode.
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

/// Returns a session with the functions, as a scheduler creates it for a client. After
/// `SET warpset_joins.subqueries = true` its joins are screened ([`screen_by_subquery`]).
pub fn session_state(config: SessionConfig) -> Result<SessionState> {
    let mut state = default_session_builder(config)?;
    register_all(&mut state)?;
    Ok(screen_by_subquery(state))
}

/// Connects to the scheduler at `url`, such as `df://localhost:50050`; queries of the context run in its cluster.
pub async fn remote(url: &str) -> Result<SessionContext> {
    remote_with(url, session_config()).await
}

/// Connects as [`remote`] does, with other settings; start from [`session_config`].
pub async fn remote_with(url: &str, config: SessionConfig) -> Result<SessionContext> {
    let mut context = SessionContext::remote_with_state(url, session_state(config)?).await?;
    // Ballista replaces the functions of a state by its own list.
    register_all(&mut context)?;
    Ok(context)
}

//! Joins that screen themselves: a filter of the build side's keys, probed on the probe side.
//!
//! ```text
//! HashJoinExec                                      HashJoinExec
//! ├── RepartitionExec                               ├── RepartitionExec
//! │   └── build side            becomes             │   └── FilterBuildExec ── gathers the hashes of its keys
//! └── RepartitionExec                               │       └── build side
//!     └── probe side                                └── RepartitionExec
//!                                                       └── FilterProbeExec ── drops rows without a partner
//!                                                           └── probe side ── the scan prunes by the same filter
//! ```
//!
//! A hash join reads its build side to the end before it asks for the first row of its probe side, and an exchange ends
//! only when all of its inputs have ended. So a filter that is gathered below the build side's exchange is finished
//! when the probe side starts. No operator ever waits for it: until a filter exists, every row passes.
//!
//! - `rule` decides which joins get a filter ([`estimate`]) and where (`place`).
//! - `build` is the operator that gathers (`gathering`, `bounds`, `bitmap`), `probe` the operator that drops rows.
//! - `expression` connects them: a condition on the keys that contains the filter (`key_filter`). It is suspended while
//!   it drops too few rows (`usefulness`).
//! - `subquery` is the variant for engines with distributed plans: the filter is the result of a subquery on the table
//!   that the keys come from (`lineage`).

mod bitmap;
mod bounds;
mod build;
mod estimate;
mod expression;
mod gathering;
mod hash_rows;
mod key_filter;
pub(crate) mod key_hash;
mod lineage;
mod place;
mod probe;
mod rule;
mod settings;
mod subquery;
mod usefulness;

use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::SessionContext;

pub use build::FilterBuildExec;
pub use expression::KeysMayMatch;
pub(crate) use gathering::layout_for;
pub use probe::FilterProbeExec;
pub use rule::ScreenJoins;
pub use settings::JoinSettings;
pub use subquery::{ScreenBySubquery, screen_by_subquery};

/// The engine's rule that hands filters to scans. Ours runs before it.
const PUSHDOWN: &str = "FilterPushdown(Post)";

/// Makes hash joins screen their probe sides by split-block Bloom filters, or bitmaps of dense integers, of their build
/// sides' keys. Rows without a partner are dropped below the exchange, and row groups of Parquet files without any
/// partner are not read.
///
/// Screened are inner joins, semi joins, left joins, left anti joins (without the `NULL` rules of `NOT IN`) and left
/// mark joins, in the engine's names: a probe row without a partner adds no row to their output. The table in
/// `docs/engines.md` lists the types of keys; of several keys, those with such types are used. Answers do not change.
/// [`JoinSettings`] has the settings; `SET warpset_joins.enabled = false` turns the rule off.
///
/// The context is replaced by one with the same catalogs, functions, settings, runtime and session; call this before
/// cloning the context. A second call changes nothing.
///
/// ```
/// use datafusion::prelude::SessionContext;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let mut context = SessionContext::new();
/// warpset_datafusion::register_joins(&mut context);
/// context.sql("SET warpset_joins.least_probe_rows = 0").await?; // small tables are not screened by default
/// context.sql("CREATE TABLE sales AS SELECT value AS item FROM range(100000)").await?.collect().await?;
/// let items = "CREATE TABLE items AS SELECT value AS id, value % 100 AS kind FROM range(100000)";
/// context.sql(items).await?.collect().await?;
/// let query = "SELECT count(*) FROM items JOIN sales ON id = item WHERE kind = 7";
/// println!("{}", context.sql(query).await?.to_string().await?);
/// let plan = context.sql(&format!("EXPLAIN ANALYZE {query}")).await?.to_string().await?;
/// assert!(plan.contains("FilterProbeExec") && plan.contains("rows_dropped"), "{plan}");
/// # Ok(())
/// # }
/// ```
pub fn register_joins(context: &mut SessionContext) {
    let state = context.state();
    let mut rules = state.physical_optimizers().to_vec();
    if rules.iter().any(|rule| rule.name() == ScreenJoins::NAME) {
        return;
    }
    let place = rules.iter().position(|rule| rule.name() == PUSHDOWN).unwrap_or(rules.len());
    rules.insert(place, Arc::new(ScreenJoins));
    let session = state.session_id().to_string();
    let mut state = SessionStateBuilder::new_from_existing(state)
        .with_physical_optimizer_rules(rules)
        .with_session_id(session)
        .build();
    JoinSettings::add_to(state.config_mut().options_mut());
    *context = SessionContext::new_with_state(state);
}

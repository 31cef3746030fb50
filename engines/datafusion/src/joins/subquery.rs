//! Joins screened by a subquery, for engines with distributed plans.
//!
//! ```text
//! Join: o_orderkey = l_orderkey              Join: o_orderkey = l_orderkey
//! ├── Filter: o_orderdate < ...              ├── Filter: o_orderdate < ...
//! │   └── orders                becomes      │   └── orders
//! └── lineitem                               └── LeftSemi Join: might_contain(filter, l_orderkey)
//!                                                ├── lineitem
//!                                                └── sized_filter_agg(o_orderkey)
//!                                                    └── Filter: o_orderdate < ...
//!                                                        └── orders
//! ```
//!
//! Operators cannot share a filter in memory there: the build side and the scan run on different machines, and all
//! parts of a plan are sent before any runs. So the filter is an ordinary result. The engine transports it, and treats
//! errors, retries and lost machines as in any query. The price is a second scan of the build side's table. So the
//! filter is added only if the build side is one table with a condition, and statistics say that this table is small
//! compared with the screened one.
//!
//! The number of rows of a table is stored in its files, and reading them takes a wait. Optimizer rules cannot wait, so
//! this is a wrapper of the planner, which can.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, ExprSchema, JoinType, NullEquality, Result};
use datafusion::config::ConfigOptions;
use datafusion::datasource::source_as_provider;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::logical_plan::TableScan;
use datafusion::logical_expr::{Expr, Join, LogicalPlan, LogicalPlanBuilder, lit};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};

use super::settings::JoinSettings;
use super::{key_hash, lineage};
use crate::aggregate::Aggregate;
use crate::keys::check_type;
use crate::lookup::{Lookup, MightContain};
use crate::share;
use crate::sized::SizedFilter;

/// Least ratio of the rows of the screened table to the rows that the filter is built from.
const TIMES_AS_LARGE: usize = 4;
/// Expected selectivity of a condition, one row in this many: the engine's own guess.
const ONE_IN: usize = 5;
/// Prefix of the names of filters in plans.
const PREFIX: &str = "warpset_join_filter_";

/// Planner that adds filters to joins and passes the plan to another planner.
#[derive(Debug)]
pub struct ScreenBySubquery {
    planner: Arc<dyn QueryPlanner + Send + Sync>,
}

/// Makes joins screen their larger sides on engines with distributed plans, such as Ballista (in the sessions of its
/// scheduler) and `datafusion-distributed` (in the sessions of clients). A subquery builds a split-block Bloom filter
/// of the smaller side's keys. Rows of the larger side without a partner are dropped where they are read, before any
/// exchange. Answers do not change.
///
/// It is off until `SET warpset_joins.subqueries = true`; [`JoinSettings`] has the other settings. Every process needs
/// the functions ([`register_all`](crate::register_all)). A second call changes nothing.
///
/// In one process, [`register_joins`](crate::register_joins) covers more joins at a lower price.
///
/// ```
/// use datafusion::prelude::SessionContext;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let mut context = SessionContext::new();
/// warpset_datafusion::register_all(&mut context)?;
/// let context = SessionContext::new_with_state(warpset_datafusion::screen_by_subquery(context.state()));
/// // Small tables are not screened by default.
/// for setting in ["subqueries = true", "least_probe_rows = 0"] {
///     context.sql(&format!("SET warpset_joins.{setting}")).await?;
/// }
/// context.sql("SET datafusion.optimizer.hash_join_single_partition_threshold_rows = 0").await?;
/// context.sql("CREATE TABLE sales AS SELECT value AS item FROM range(100000)").await?.collect().await?;
/// let items = "CREATE TABLE items AS SELECT value AS id, value % 100 AS kind FROM range(20000)";
/// context.sql(items).await?.collect().await?;
/// let query = "SELECT count(*) FROM items JOIN sales ON id = item WHERE kind = 7";
/// let plan = context.sql(&format!("EXPLAIN {query}")).await?.to_string().await?;
/// assert!(plan.contains("sized_filter_agg") && plan.contains("might_contain"), "{plan}");
/// # Ok(())
/// # }
/// ```
pub fn screen_by_subquery(state: SessionState) -> SessionState {
    let planner: Arc<dyn QueryPlanner + Send + Sync> = state.query_planner().clone();
    let mut state = if (planner.as_ref() as &dyn std::any::Any).is::<ScreenBySubquery>() {
        state
    } else {
        let session = state.session_id().to_string();
        SessionStateBuilder::new_from_existing(state)
            .with_query_planner(Arc::new(ScreenBySubquery { planner }))
            .with_session_id(session)
            .build()
    };
    JoinSettings::add_to(state.config_mut().options_mut());
    state
}

#[async_trait]
impl QueryPlanner for ScreenBySubquery {
    async fn create_physical_plan(&self, plan: &LogicalPlan, session: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        match screened(plan, session).await? {
            Some(screened) => self.planner.create_physical_plan(&session.optimize(&screened)?, session).await,
            None => self.planner.create_physical_plan(plan, session).await,
        }
    }
}

/// Returns the plan with filters; `None` if there are none to add.
async fn screened(plan: &LogicalPlan, session: &dyn Session) -> Result<Option<LogicalPlan>> {
    let settings = JoinSettings::of(session.config_options());
    if !settings.subqueries || !settings.enabled || !plan.exists(|node| Ok(matches!(node, LogicalPlan::Join(_))))? {
        return Ok(None);
    }
    // A client may have added them before it sent the plan.
    let added = |node: &LogicalPlan| {
        Ok(matches!(node, LogicalPlan::SubqueryAlias(alias) if alias.alias.table().starts_with(PREFIX)))
    };
    if plan.exists(added)? {
        return Ok(None);
    }
    let mut screen =
        Screen { rows: table_rows(plan, session).await?, settings, broadcast: broadcast(session), filters: 0 };
    let changed = plan.clone().transform_up(|node| match &node {
        LogicalPlan::Join(join) => Ok(match screen.join(join)? {
            Some(screened) => Transformed::yes(screened),
            None => Transformed::no(node),
        }),
        _ => Ok(Transformed::no(node)),
    })?;
    Ok((screen.filters > 0).then_some(changed.data))
}

/// Returns the size in rows below which the engine sends a side to all partitions, without exchanging the other side.
fn broadcast(session: &dyn Session) -> usize {
    let options: &ConfigOptions = session.config_options();
    options.optimizer.hash_join_single_partition_threshold_rows
}

/// Identity of a table in a plan: the address of its source.
type Table = usize;

fn table(scan: &TableScan) -> Table {
    Arc::as_ptr(&scan.source).cast::<()>().addr()
}

/// Returns the number of rows of each table that knows it.
async fn table_rows(plan: &LogicalPlan, session: &dyn Session) -> Result<HashMap<Table, usize>> {
    let mut scans = HashMap::new();
    plan.apply(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            scans.insert(table(scan), scan.source.clone());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let mut rows = HashMap::new();
    for (table, source) in scans {
        // Without a provider the table is planned elsewhere, and its size is unknown.
        let Ok(provider) = source_as_provider(&source) else { continue };
        let scan = provider.scan(session, None, &[], None).await?;
        let statistics = StatisticsContext::new().compute(scan.as_ref(), &StatisticsArgs::new());
        if let Ok(statistics) = statistics
            && let Some(&count) = statistics.num_rows.get_value()
        {
            rows.insert(table, count);
        }
    }
    Ok(rows)
}

struct Screen {
    rows: HashMap<Table, usize>,
    settings: JoinSettings,
    broadcast: usize,
    /// Number of filters added.
    filters: usize,
}

impl Screen {
    /// Returns the join with a filter; `None` if it gets none.
    fn join(&mut self, join: &Join) -> Result<Option<LogicalPlan>> {
        if join.null_equality != NullEquality::NullEqualsNothing {
            return Ok(None);
        }
        let (left_may, right_may) = lineage::partners_only(join);
        let (left, right) = (join.left.as_ref(), join.right.as_ref());
        let keys = |build: &LogicalPlan, probe: &LogicalPlan, left_builds: bool| {
            let pair = |(left, right): &(Expr, Expr)| {
                let (Expr::Column(left), Expr::Column(right)) = (left, right) else { return None };
                let (own, other) = if left_builds { (left, right) } else { (right, left) };
                let types =
                    (build.schema().field_from_column(own).ok()?, probe.schema().field_from_column(other).ok()?);
                let same = types.0.data_type() == types.1.data_type() && check_type(types.0.data_type()).is_ok();
                same.then(|| (own.clone(), other.clone()))
            };
            join.on.iter().filter_map(pair).collect::<Vec<(Column, Column)>>()
        };
        for (may, build, probe, left_builds) in [(right_may, left, right, true), (left_may, right, left, false)] {
            if !may {
                continue;
            }
            let Some(probe) = self.side(build, probe, keys(build, probe, left_builds))? else { continue };
            let inputs = if left_builds { vec![left.clone(), probe] } else { vec![probe, right.clone()] };
            let node = LogicalPlan::Join(join.clone());
            return node.with_new_exprs(node.expressions(), inputs).map(Some);
        }
        Ok(None)
    }

    /// Returns the probe side with a filter of the build side's keys; `None` if that does not pay.
    fn side(
        &mut self,
        build: &LogicalPlan,
        probe: &LogicalPlan,
        keys: Vec<(Column, Column)>,
    ) -> Result<Option<LogicalPlan>> {
        // All keys if they come from one table per side, else the first key that does.
        let all = keys.clone();
        let attempts = [all].into_iter().chain(keys.into_iter().map(|key| vec![key]));
        for keys in attempts.filter(|keys| !keys.is_empty()) {
            let (build_keys, probe_keys): (Vec<Column>, Vec<Column>) = keys.into_iter().unzip();
            let Some((chain, build_keys)) = lineage::origin(build, &build_keys) else { continue };
            let Some((screened, _)) = lineage::origin(probe, &probe_keys) else { continue };
            if !self.pays(chain, screened) {
                continue;
            }
            let name = format!("{PREFIX}{}", self.filters);
            let most_bytes = self.settings.most_filter_bytes;
            let mut add =
                |plan: &LogicalPlan, keys: &[Column]| filtered(plan, keys, chain, &build_keys, &name, most_bytes);
            let replaced = lineage::replace_origin(probe, &probe_keys, &mut add)?;
            self.filters += usize::from(replaced.is_some());
            return Ok(replaced);
        }
        Ok(None)
    }

    /// Whether a filter of one chain's keys pays for the rows of another chain.
    fn pays(&self, build: &LogicalPlan, probe: &LogicalPlan) -> bool {
        let rows = |chain| lineage::chain(chain).and_then(|scan| self.rows.get(&table(scan)).copied());
        let (Some(build_rows), Some(probe_rows)) = (rows(build), rows(probe)) else { return false };
        let drops_rows = lineage::drops_rows(build);
        let expected = if drops_rows { build_rows / ONE_IN } else { build_rows };
        (drops_rows || self.settings.every_build)
            && probe_rows >= self.settings.least_probe_rows
            && expected >= self.broadcast
            && expected.saturating_mul(TIMES_AS_LARGE) <= probe_rows
    }
}

/// Returns a plan without the rows that have no key in a chain.
fn filtered(
    plan: &LogicalPlan,
    keys: &[Column],
    chain: &LogicalPlan,
    chain_keys: &[Column],
    name: &str,
    most_bytes: usize,
) -> Result<LogicalPlan> {
    let key = |keys: &[Column]| match keys {
        [key] => Expr::Column(key.clone()),
        keys => key_hash::function().call(keys.iter().cloned().map(Expr::Column).collect()),
    };
    let most_bytes = lit(i64::try_from(most_bytes).unwrap_or(i64::MAX).max(32));
    let gathered = Aggregate::<SizedFilter>::function().call(vec![key(chain_keys), most_bytes]);
    let aggregated = LogicalPlanBuilder::from(chain.clone()).aggregate(Vec::<Expr>::new(), [gathered])?;
    let result = aggregated.schema().columns().into_iter().map(Expr::Column).collect();
    let filter = aggregated.project([share::function().call(result).alias("filter")])?.alias(name)?.build()?;
    let found = Expr::Column(Column::new(Some(name), "filter"));
    // A filter of no keys is NULL, which passes no row. A semi join, because there may be several filters with part of
    // the keys each: datafusion-distributed 4.0 aggregates a small table of one file once per task.
    let may_match = Lookup::function(MightContain).call(vec![found, key(keys)]);
    LogicalPlanBuilder::from(plan.clone()).join_on(filter, JoinType::LeftSemi, [may_match])?.build()
}

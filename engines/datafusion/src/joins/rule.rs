//! Optimizer rule that adds filters to plans.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{DynamicFilterPhysicalExpr, lit};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;

use super::build::FilterBuildExec;
use super::gathering::Target;
use super::settings::JoinSettings;
use super::{estimate, place};
use crate::keys::check_type;

/// Physical optimizer rule of [`register_joins`](crate::register_joins), which runs before the engine hands filters to
/// scans.
#[derive(Debug, Default)]
pub struct ScreenJoins;

impl ScreenJoins {
    /// The name of the rule.
    pub const NAME: &'static str = "ScreenJoins";
}

impl PhysicalOptimizerRule for ScreenJoins {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let settings = JoinSettings::of(config);
        if !settings.enabled {
            return Ok(plan);
        }
        plan.transform_up(|node| {
            let screened = match node.downcast_ref::<HashJoinExec>() {
                Some(join) => screen(join, &settings)?,
                None => None,
            };
            Ok(match screened {
                Some(screened) => Transformed::yes(screened),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        ScreenJoins::NAME
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Returns the join with a filter; `None` if it gets none.
fn screen(join: &HashJoinExec, settings: &JoinSettings) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    // The right side is probed. It qualifies if its rows count only through their partners.
    let (_, partners_only) = join.join_type().on_lr_is_preserved();
    if !partners_only || join.null_aware || place::has_build(join.left()) {
        return Ok(None);
    }
    let (left, right) = (join.left().schema(), join.right().schema());
    let usable = |(build, probe): &&(Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>)| {
        let types = (build.data_type(&left), probe.data_type(&right));
        matches!(&types, (Ok(build), Ok(probe)) if build == probe && check_type(build).is_ok())
            && !is_volatile(build)
            && !is_volatile(probe)
    };
    let (build_keys, probe_keys): (Vec<_>, Vec<_>) = join.on().iter().filter(usable).cloned().unzip();
    if build_keys.is_empty() || !estimate::may_pay(join, settings) {
        return Ok(None);
    }
    let condition = Arc::new(DynamicFilterPhysicalExpr::new(probe_keys.clone(), lit(true)));
    let target = Arc::new(Target {
        condition: condition.clone(),
        keys: probe_keys.clone(),
        schema: right,
        nulls: join.null_equality(),
    });
    let build =
        place::place_build(join.left(), &|input| FilterBuildExec::new(input, build_keys.clone(), target.clone()))?;
    let probe = place::place_probe(join.right(), &condition, probe_keys)?;
    let screened = join.builder().recompute_properties().with_new_children(vec![build, probe])?.build()?;
    // The engine's own filter would do the same at a higher price per row. A join that already has a dynamic filter
    // adds none, and leaves one that no scan uses empty.
    let keys = screened.on().iter().map(|(_, probe)| probe.clone()).collect();
    let unasked = Arc::new(DynamicFilterPhysicalExpr::new(keys, lit(true)));
    Ok(Some(Arc::new(screened.with_dynamic_filter_expr(unasked)?)))
}

//! Positions of the operators in a plan.
//!
//! The filter is gathered below the build side's exchange. It is probed as far down the probe side as that saves work:
//! below exchanges, joins, sorts and aggregates, but above the query's own conditions, which are cheaper.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{JoinType, Result, internal_datafusion_err};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{Column, DynamicFilterPhysicalExpr};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::buffer::BufferExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::filter_pushdown::FilterDescription;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::{InterleaveExec, UnionExec};
use datafusion::physical_plan::{ExecutionPlan, Partitioning};

use super::build::FilterBuildExec;
use super::probe::FilterProbeExec;

type Keys = Vec<Arc<dyn PhysicalExpr>>;

/// Inserts the gathering operator into a build side, below its exchange if there is one.
pub(crate) fn place_build(
    side: &Arc<dyn ExecutionPlan>,
    operator: &dyn Fn(Arc<dyn ExecutionPlan>) -> Result<FilterBuildExec>,
) -> Result<Arc<dyn ExecutionPlan>> {
    if passes_columns(side) {
        let child = place_build(side.children()[0], operator)?;
        return replace_children_if_necessary(side.clone(), vec![child]);
    }
    Ok(Arc::new(operator(side.clone())?))
}

/// Whether a build side has a gathering operator already.
pub(crate) fn has_build(side: &Arc<dyn ExecutionPlan>) -> bool {
    side.is::<FilterBuildExec>() || passes_columns(side) && has_build(side.children()[0])
}

/// Inserts the operator that evaluates `condition` on `keys` into a probe side.
pub(crate) fn place_probe(
    side: &Arc<dyn ExecutionPlan>,
    condition: &Arc<DynamicFilterPhysicalExpr>,
    keys: Keys,
) -> Result<Arc<dyn ExecutionPlan>> {
    match place_deeper(side, condition, &keys)? {
        Some(placed) => Ok(placed),
        None => ask(side, condition, keys),
    }
}

/// Inserts the operator below a node that costs more per row than a lookup; `None` if there is no such node.
fn place_deeper(
    node: &Arc<dyn ExecutionPlan>,
    condition: &Arc<DynamicFilterPhysicalExpr>,
    keys: &Keys,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(Routes { children, costly }) = routes(node, keys) else { return Ok(None) };
    let mut placed = Vec::new();
    for (child, keys) in node.children().into_iter().zip(children) {
        placed.push(match keys {
            None => child.clone(),
            Some(keys) => match place_deeper(child, condition, &keys)? {
                Some(deeper) => deeper,
                None if costly => ask(child, condition, keys)?,
                None => return Ok(None),
            },
        });
    }
    replace_children_if_necessary(node.clone(), placed).map(Some)
}

fn ask(
    input: &Arc<dyn ExecutionPlan>,
    condition: &Arc<DynamicFilterPhysicalExpr>,
    keys: Keys,
) -> Result<Arc<dyn ExecutionPlan>> {
    let condition = condition.clone().with_new_children(keys)?;
    Ok(Arc::new(FilterProbeExec::new(input.clone(), condition)))
}

/// Children that a filter can be pushed to.
struct Routes {
    /// The keys in the names of each child; `None` for a child without them.
    children: Vec<Option<Keys>>,
    /// Whether the node costs more per row than a lookup.
    costly: bool,
}

/// Returns the children that the filter can be pushed to: removing rows with other keys there removes exactly the rows
/// with other keys from the node's output.
fn routes(node: &Arc<dyn ExecutionPlan>, keys: &Keys) -> Option<Routes> {
    if node.fetch().is_some() {
        return None; // fewer rows in, others out
    }
    let one = |keys: Keys, costly: bool| Some(Routes { children: vec![Some(keys)], costly });
    if passes_columns(node) || node.is::<SortExec>() {
        return one(keys.clone(), !node.is::<CooperativeExec>() && !node.is::<BufferExec>());
    }
    if node.is::<FilterProbeExec>() || node.is::<FilterBuildExec>() {
        return one(keys.clone(), false);
    }
    if let Some(filter) = node.downcast_ref::<FilterExec>() {
        let input = filter.input().schema();
        let position = |column| filter.projection().as_ref().map_or(Some(column), |kept| kept.get(column).copied());
        return one(rename(keys, |column| position(column).and_then(|column| column_of(&input, column)))?, false);
    }
    if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
        let source = |column: usize| plain_column(&projection.expr().get(column)?.expr);
        return one(rename(keys, source)?, false);
    }
    if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
        let groups = aggregate.group_expr();
        if groups.has_grouping_set() || aggregate.limit_options().is_some() {
            return None;
        }
        // A group has all of its rows, or none.
        return one(rename(keys, |column| plain_column(&groups.expr().get(column)?.0))?, true);
    }
    if node.is::<UnionExec>() || node.is::<InterleaveExec>() {
        let of_child = |child: &Arc<dyn ExecutionPlan>| {
            let schema = child.schema();
            rename(keys, |column| column_of(&schema, column))
        };
        let children: Option<Vec<Keys>> = node.children().into_iter().map(of_child).collect();
        // Even if only one child gains, the others lose nothing against a filter above the union.
        return Some(Routes { children: children?.into_iter().map(Some).collect(), costly: true });
    }
    join_route(node.downcast_ref::<HashJoinExec>()?, keys)
}

/// Whether a node passes on the rows of its only child, with the same columns, from all partitions to all partitions.
fn passes_columns(node: &Arc<dyn ExecutionPlan>) -> bool {
    if node.fetch().is_some() {
        return false;
    }
    if let Some(exchange) = node.downcast_ref::<RepartitionExec>() {
        // A round robin copies no rows, and lookups above it run on more threads than below.
        return !matches!(exchange.partitioning(), Partitioning::RoundRobinBatch(_));
    }
    node.is::<CoalescePartitionsExec>()
        || node.is::<SortPreservingMergeExec>()
        || node.is::<CooperativeExec>()
        || node.is::<BufferExec>()
}

/// Returns the side of a join that all keys come from, unless a missing row there adds a row to the output.
fn join_route(join: &HashJoinExec, keys: &Keys) -> Option<Routes> {
    if join.null_aware {
        return None;
    }
    let (left, right) = (join.left().schema(), join.right().schema());
    let position = |column: usize| match &join.projection {
        Some(kept) => kept.get(column).copied(),
        None => Some(column),
    };
    let from_left = |column| position(column).and_then(|column| column_of(&left, column));
    let from_right = |column| {
        let before =
            if matches!(join.join_type(), JoinType::RightSemi | JoinType::RightAnti) { 0 } else { left.fields().len() };
        position(column).and_then(|column| column_of(&right, column.checked_sub(before)?))
    };
    let (may_left, may_right) = match join.join_type() {
        JoinType::Inner => (true, true),
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti => (true, false),
        JoinType::Right | JoinType::RightSemi | JoinType::RightAnti => (false, true),
        _ => (false, false),
    };
    let left_keys = if may_left { rename(keys, from_left) } else { None };
    let right_keys = if may_right && left_keys.is_none() { rename(keys, from_right) } else { None };
    if left_keys.is_none() && right_keys.is_none() {
        return None;
    }
    Some(Routes { children: vec![left_keys, right_keys], costly: true })
}

/// Returns the column with this number.
fn column_of(schema: &Schema, column: usize) -> Option<Column> {
    schema.fields().get(column).map(|field| Column::new(field.name(), column))
}

fn plain_column(expression: &Arc<dyn PhysicalExpr>) -> Option<Column> {
    expression.downcast_ref::<Column>().cloned()
}

/// Renames the columns of keys; `None` if a column has no source. Columns become columns and nothing else: an
/// expression could fail for rows that the query excludes.
fn rename(keys: &Keys, source: impl Fn(usize) -> Option<Column>) -> Option<Keys> {
    let rename = |key: &Arc<dyn PhysicalExpr>| {
        let mut known = true;
        let renamed = key.clone().transform_up(|part| {
            Ok(match part.downcast_ref::<Column>().map(|column| source(column.index())) {
                Some(Some(column)) => Transformed::yes(Arc::new(column) as _),
                Some(None) => {
                    known = false;
                    Transformed::no(part)
                }
                None => Transformed::no(part),
            })
        });
        renamed.ok().filter(|_| known).map(|renamed| renamed.data)
    };
    keys.iter().map(rename).collect()
}

/// Whether the engine pushes a condition from here down to a scan, by the right columns: it maps them by name. Keys
/// must be columns, since an expression could fail for rows that the query excludes.
pub(crate) fn reaches_scan(node: &Arc<dyn ExecutionPlan>, condition: &Arc<dyn PhysicalExpr>) -> bool {
    let columns = condition.children().into_iter().all(|key| key.downcast_ref::<Column>().is_some());
    let mut node = node;
    loop {
        // Below a limit, other rows would replace those that are dropped.
        if !columns || node.fetch().is_some() || !has_unique_names(&node.schema()) {
            return false;
        }
        let passes = node.is::<FilterExec>() || node.is::<FilterProbeExec>() || node.is::<FilterBuildExec>();
        match &node.children()[..] {
            [] => return true,
            [child] if passes || node.is::<RepartitionExec>() || node.is::<CooperativeExec>() => node = child,
            _ => return false,
        }
    }
}

pub(crate) fn has_unique_names(schema: &Schema) -> bool {
    let mut names = HashSet::new();
    schema.fields().iter().all(|field| names.insert(field.name()))
}

/// Passes the parent's filters on if the engine's mapping of columns by name is safe.
pub(crate) fn pass_filters(
    parent_filters: &[Arc<dyn PhysicalExpr>],
    input: &Arc<dyn ExecutionPlan>,
) -> Result<FilterDescription> {
    if has_unique_names(&input.schema()) {
        FilterDescription::from_children(parent_filters.to_vec(), &[input])
    } else {
        Ok(FilterDescription::all_unsupported(parent_filters, &[input]))
    }
}

/// Returns the child of an operator with one child.
pub(crate) fn only_child(children: &mut Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
    match (children.pop(), children.is_empty()) {
        (Some(child), true) => Ok(child),
        (_, _) => Err(internal_datafusion_err!("an operator of a join's filter has one child")),
    }
}

/// Formats keys for plans.
pub(crate) fn list(keys: &[Arc<dyn PhysicalExpr>]) -> String {
    keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

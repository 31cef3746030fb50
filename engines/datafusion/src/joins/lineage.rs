//! Origin of columns in a logical plan.

use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column, JoinType, Result};
use datafusion::logical_expr::logical_plan::{Distinct, TableScan};
use datafusion::logical_expr::{Expr, Join, LogicalPlan, Operator};

/// Returns the scan of a plan that reads one table and only filters rows, drops columns or computes columns.
pub(super) fn chain(plan: &LogicalPlan) -> Option<&TableScan> {
    let same_again = |expressions: &[Expr]| !expressions.iter().any(differs_or_asks);
    match plan {
        LogicalPlan::TableScan(scan) => (scan.fetch.is_none() && same_again(&scan.filters)).then_some(scan),
        LogicalPlan::SubqueryAlias(alias) => chain(&alias.input),
        LogicalPlan::Filter(filter) => chain(&filter.input).filter(|_| !differs_or_asks(&filter.predicate)),
        LogicalPlan::Projection(projection) => chain(&projection.input).filter(|_| same_again(&projection.expr)),
        _ => None,
    }
}

/// Whether an expression is volatile or contains a subquery.
fn differs_or_asks(expression: &Expr) -> bool {
    let asks = |part: &Expr| {
        use Expr::*;
        Ok(matches!(part, ScalarSubquery(_) | InSubquery(_) | Exists(_) | SetComparison(_) | OuterReferenceColumn(..)))
    };
    expression.is_volatile() || expression.exists(asks).unwrap_or(true)
}

/// Whether a chain filters rows of its table.
pub(super) fn drops_rows(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::TableScan(scan) => scan.filters.iter().any(tests_values),
        LogicalPlan::Filter(filter) => tests_values(&filter.predicate) || drops_rows(&filter.input),
        other => other.inputs().into_iter().any(drops_rows),
    }
}

/// Whether a condition tests values: it is no constant, and more than the NOT NULL tests that planners add to joins.
fn tests_values(predicate: &Expr) -> bool {
    match predicate {
        Expr::IsNotNull(_) | Expr::Literal(..) => false,
        Expr::BinaryExpr(both) if both.op == Operator::And => tests_values(&both.left) || tests_values(&both.right),
        _ => true,
    }
}

/// Returns the input that columns of a node come from, by its number, and their names there. Removing rows with other
/// values in these columns from that input removes exactly those rows from the node's output.
pub(super) fn source(node: &LogicalPlan, columns: &[Column]) -> Option<(usize, Vec<Column>)> {
    let position = |column: &Column| node.schema().maybe_index_of_column(column);
    let by_position = |input: &LogicalPlan| {
        let name = |column: &Column| Some(Column::from(input.schema().qualified_field(position(column)?)));
        columns.iter().map(name).collect::<Option<Vec<Column>>>().map(|columns| (0, columns))
    };
    let by_expressions = |expressions: &[Expr]| {
        let name = |column: &Column| match expressions.get(position(column)?)?.clone().unalias() {
            Expr::Column(source) => Some(source),
            _ => None,
        };
        columns.iter().map(name).collect::<Option<Vec<Column>>>().map(|columns| (0, columns))
    };
    match node {
        LogicalPlan::SubqueryAlias(alias) => by_position(&alias.input),
        LogicalPlan::Filter(filter) => by_position(&filter.input),
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => by_position(&sort.input),
        LogicalPlan::Distinct(Distinct::All(input)) => by_position(input),
        LogicalPlan::Projection(projection) => by_expressions(&projection.expr),
        LogicalPlan::Aggregate(aggregate) => {
            let plain = !aggregate.group_expr.iter().any(|group| matches!(group, Expr::GroupingSet(_)));
            // A group has all of its rows, or none.
            plain.then(|| by_expressions(&aggregate.group_expr)).flatten()
        }
        LogicalPlan::Join(join) if !join.null_aware => {
            let side = |input: &LogicalPlan| columns.iter().all(|column| input.schema().has_column(column));
            let (left, right) = match join.join_type {
                JoinType::Inner => (true, true),
                JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti => (true, false),
                JoinType::Right | JoinType::RightSemi | JoinType::RightAnti => (false, true),
                _ => (false, false),
            };
            let number = if left && side(&join.left) { 0 } else { 1 };
            (number == 0 || right && side(&join.right)).then(|| (number, columns.to_vec()))
        }
        _ => None,
    }
}

/// Returns the chain that columns come from, and their names there.
pub(super) fn origin<'a>(plan: &'a LogicalPlan, columns: &[Column]) -> Option<(&'a LogicalPlan, Vec<Column>)> {
    if chain(plan).is_some() {
        return Some((plan, columns.to_vec()));
    }
    let (input, columns) = source(plan, columns)?;
    origin(plan.inputs().get(input)?, &columns)
}

/// Replaces the chain that columns come from.
pub(super) fn replace_origin(
    plan: &LogicalPlan,
    columns: &[Column],
    replace: &mut dyn FnMut(&LogicalPlan, &[Column]) -> Result<LogicalPlan>,
) -> Result<Option<LogicalPlan>> {
    if chain(plan).is_some() {
        return replace(plan, columns).map(Some);
    }
    let Some((number, columns)) = source(plan, columns) else { return Ok(None) };
    let mut inputs: Vec<LogicalPlan> = plan.inputs().into_iter().cloned().collect();
    let Some(input) = inputs.get_mut(number) else { return Ok(None) };
    let Some(replaced) = replace_origin(input, &columns, replace)? else { return Ok(None) };
    *input = replaced;
    plan.with_new_exprs(plan.expressions(), inputs).map(Some)
}

/// Returns which sides of a join, left and right, may lose rows without a partner.
pub(super) fn partners_only(join: &Join) -> (bool, bool) {
    use JoinType::*;
    if join.null_aware {
        return (false, false);
    }
    match join.join_type {
        Inner | LeftSemi | RightSemi => (true, true),
        Left | LeftAnti => (false, true),
        Right | RightAnti => (true, false),
        Full | LeftMark | RightMark => (false, false),
    }
}

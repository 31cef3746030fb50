//! Joins with the rule and without: equal answers. One executable, because linking an engine takes longer than the
//! tests.

mod edges;
mod generated;
mod plans;
mod queries;
mod situations;
mod subqueries;

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::physical_plan::metrics::MetricValue;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{SessionConfig, SessionContext};

/// Returns settings that screen small tables, with hash joins that exchange rows.
fn config(partitions: usize) -> SessionConfig {
    SessionConfig::new()
        .with_target_partitions(partitions)
        .set_usize("datafusion.optimizer.hash_join_single_partition_threshold", 0)
        .set_usize("datafusion.optimizer.hash_join_single_partition_threshold_rows", 0)
}

/// Returns a context that screens all joins that qualify.
async fn screened(config: SessionConfig) -> SessionContext {
    let mut context = SessionContext::new_with_config(config);
    warpset_datafusion::register_joins(&mut context);
    set(&context, "least_probe_rows", "0").await;
    set(&context, "every_build", "true").await;
    context
}

async fn set(context: &SessionContext, setting: &str, value: &str) {
    context.sql(&format!("SET warpset_joins.{setting} = {value}")).await.unwrap();
}

/// Registers a table of nullable columns, split into `batches` batches over `partitions` partitions in turn.
fn table(context: &SessionContext, name: &str, columns: &[(&str, ArrayRef)], partitions: usize, batches: usize) {
    let fields: Vec<Field> =
        columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let all = RecordBatch::try_new(schema.clone(), columns.iter().map(|(_, column)| column.clone()).collect()).unwrap();
    let mut parts = vec![Vec::new(); partitions];
    let rows = all.num_rows().div_ceil(batches).max(1);
    for i in 0..batches {
        let start = (i * rows).min(all.num_rows());
        parts[i % partitions].push(all.slice(start, rows.min(all.num_rows() - start)));
    }
    context.register_table(name, Arc::new(MemTable::try_new(schema, parts).unwrap())).unwrap();
}

/// Returns the rows of a query as sorted texts.
async fn rows(context: &SessionContext, sql: &str) -> Result<Vec<String>> {
    Ok(texts(&context.sql(sql).await?.collect().await?))
}

fn texts(batches: &[RecordBatch]) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = Vec::new();
    for batch in batches {
        let columns: Vec<ArrayFormatter> =
            batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
        let row = |row| columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join("|");
        rows.extend((0..batch.num_rows()).map(row));
    }
    rows.sort_unstable();
    rows
}

/// Returns the physical plan of a query, before it runs.
async fn plan(context: &SessionContext, sql: &str) -> String {
    let explained = context.sql(&format!("EXPLAIN FORMAT INDENT {sql}")).await.unwrap().collect().await.unwrap();
    let text = pretty_format_batches(&explained).unwrap().to_string();
    text[text.find("physical_plan").unwrap()..].to_string()
}

/// Sums a metric over the operators with a name.
fn counted(plan: &Arc<dyn ExecutionPlan>, operator: &str, metric: &str) -> usize {
    let own = |set: datafusion::physical_plan::metrics::MetricsSet| -> usize {
        let value = |value: &MetricValue| if value.name() == metric { value.as_usize() } else { 0 };
        set.iter().map(|metric| value(metric.value())).sum()
    };
    let here = if plan.name() == operator { plan.metrics().map_or(0, own) } else { 0 };
    here + plan.children().into_iter().map(|child| counted(child, operator, metric)).sum::<usize>()
}

/// Runs a query; returns its rows, and the plan with its metrics.
async fn run(context: &SessionContext, sql: &str) -> Result<(Vec<String>, Arc<dyn ExecutionPlan>)> {
    let plan = context.sql(sql).await?.create_physical_plan().await?;
    let batches = collect(plan.clone(), context.task_ctx()).await?;
    Ok((texts(&batches), plan))
}

//! The functions in SQL against the crates below. One executable, because linking an engine takes longer than the
//! tests.

mod blobs;
mod bloom;
mod columns;
mod device;
mod function;
mod fuse;
mod groups;
mod joins;
mod perfect_hash;
mod quotient;
mod range;
mod spark;

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Int32Type, Schema};
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::prelude::{SessionConfig, SessionContext};

/// Returns a context with the functions and `partitions` partitions.
fn context(partitions: usize) -> SessionContext {
    with_config(SessionConfig::new().with_target_partitions(partitions))
}

fn with_config(config: SessionConfig) -> SessionContext {
    let mut context = SessionContext::new_with_config(config);
    warpset_datafusion::register_all(&mut context).unwrap();
    context
}

/// Registers a table of columns, split into `batches` batches over the partitions in turn.
fn table(context: &SessionContext, name: &str, columns: &[(&str, ArrayRef)], batches: usize) {
    let fields: Vec<Field> =
        columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let all = RecordBatch::try_new(schema.clone(), columns.iter().map(|(_, column)| column.clone()).collect()).unwrap();
    let partitions = context.state().config().target_partitions();
    let mut parts = vec![Vec::new(); partitions];
    let rows = all.num_rows().div_ceil(batches).max(1);
    for i in 0..batches {
        let start = (i * rows).min(all.num_rows());
        parts[i % partitions].push(all.slice(start, rows.min(all.num_rows() - start)));
    }
    context.register_table(name, Arc::new(MemTable::try_new(schema, parts).unwrap())).unwrap();
}

/// Builds a column of integers.
fn integers(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<Int64Array>())
}

/// Returns all rows of a query.
async fn rows(context: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>> {
    context.sql(sql).await?.collect().await
}

/// Returns the only column of a query as one array.
async fn column(context: &SessionContext, sql: &str) -> Result<ArrayRef> {
    let frame = context.sql(sql).await?;
    let schema = Arc::new(frame.schema().as_arrow().clone());
    let batches = frame.collect().await?;
    let all = datafusion::arrow::compute::concat_batches(&schema, &batches)?;
    assert_eq!(all.num_columns(), 1, "{sql}");
    Ok(all.column(0).clone())
}

/// Returns the saved structures of a column of results.
fn saved(results: &ArrayRef) -> Vec<Option<Vec<u8>>> {
    assert_eq!(
        *results.data_type(),
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Binary)),
        "the type of results"
    );
    let results =
        results.as_dictionary::<Int32Type>().downcast_dict::<datafusion::arrow::array::BinaryArray>().unwrap();
    results.into_iter().map(|saved| saved.map(<[u8]>::to_vec)).collect()
}

/// Returns the only saved structure of a query.
async fn one(context: &SessionContext, sql: &str) -> Option<Vec<u8>> {
    let mut all = saved(&column(context, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}")));
    assert_eq!(all.len(), 1, "{sql}");
    all.remove(0)
}

/// Returns the only number of a query.
async fn number(context: &SessionContext, sql: &str) -> i64 {
    let all = column(context, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    assert_eq!((all.len(), all.null_count()), (1, 0), "{sql}");
    all.as_primitive::<datafusion::arrow::datatypes::Int64Type>().value(0)
}

/// Returns the message of a query's error.
async fn error(context: &SessionContext, sql: &str) -> String {
    match column(context, sql).await {
        Ok(_) => panic!("{sql}: no error"),
        Err(error) => error.to_string(),
    }
}

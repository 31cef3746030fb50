//! Tables of facts and items, and queries of them.

use std::path::Path;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::Result;
use datafusion::prelude::{SessionConfig, SessionContext};

/// Rows of the table of facts.
const FACTS: i64 = 400_000;

/// Writes the tables as Parquet files: facts in eight files, items in two.
pub async fn write_tables(folder: &Path) -> Result<()> {
    let context = SessionContext::new();
    let copy = async |rows: String, file: String| {
        run(&context, &format!("COPY ({rows}) TO '{}'", folder.join(file).display())).await
    };
    for part in 0..8 {
        let (start, end) = (FACTS / 8 * part, FACTS / 8 * (part + 1));
        let rows = format!(
            "SELECT value AS sale, value * 31 % 20011 AS item, 'name ' || (value % 977) AS name FROM range({start}, {end})"
        );
        copy(rows, format!("facts/{part}.parquet")).await?;
    }
    for part in 0..2 {
        let (start, end) = (part * 10_000, part * 10_000 + 10_011);
        let rows = format!("SELECT value AS id, value % 100 AS kind FROM range({start}, {end})");
        copy(rows, format!("items/{part}.parquet")).await?;
    }
    Ok(())
}

/// Registers the tables that [`write_tables`] wrote.
pub async fn register_tables(context: &SessionContext, folder: &Path) -> Result<()> {
    for table in ["facts", "items"] {
        context.register_parquet(table, &folder.join(table).to_string_lossy(), Default::default()).await?;
    }
    Ok(())
}

/// Returns a context in this process, with the functions and the tables.
pub async fn local(folder: &Path) -> Result<SessionContext> {
    let mut context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2));
    warpset_datafusion::register_all(&mut context)?;
    register_tables(&context, folder).await?;
    Ok(context)
}

/// Returns all rows of a query.
pub async fn run(context: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>> {
    context.sql(sql).await?.collect().await
}

/// Formats the answer of a query; queries of several rows have an `ORDER BY`.
pub async fn table(context: &SessionContext, sql: &str) -> Result<String> {
    Ok(pretty_format_batches(&run(context, sql).await?)?.to_string())
}

/// Formats the answer of a query with sorted lines, for an `ORDER BY` with ties.
pub async fn sorted_table(context: &SessionContext, sql: &str) -> Result<Vec<String>> {
    let mut lines: Vec<String> = table(context, sql).await?.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    Ok(lines)
}

/// A query that runs long enough to be disturbed.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Name of the query.
    pub name: &'static str,
    /// The query.
    pub sql: &'static str,
}

/// A join that settings can screen by a subquery.
pub const SCREENED_SHAPE: Shape = Shape {
    name: "screened join",
    sql: "SELECT count(*) AS n, sum(a.sale) AS s FROM facts AS a JOIN facts AS b ON a.item = b.item
          JOIN items ON a.item = id WHERE kind < 90",
};

/// Queries of different shapes, in plain SQL except the one with `might_contain`.
pub const SHAPES: &[Shape] = &[
    Shape {
        name: "aggregate",
        sql: "SELECT count(*) AS n, sum(a.sale) AS s FROM
              (SELECT sale, item FROM facts CROSS JOIN (SELECT id FROM items WHERE id < 100)) AS a",
    },
    Shape {
        name: "grouped aggregate",
        sql: "SELECT count(*) AS n, sum(c) AS s FROM
              (SELECT item, id, count(*) AS c FROM facts CROSS JOIN (SELECT id FROM items WHERE id < 2) GROUP BY item, id)",
    },
    Shape {
        name: "join",
        sql: "SELECT count(*) AS n, sum(a.sale) AS s FROM facts AS a JOIN facts AS b ON a.item = b.item
              JOIN items ON a.item = id",
    },
    Shape {
        name: "filtered join",
        sql: "SELECT count(*) AS n, sum(a.sale) AS s FROM facts AS a JOIN facts AS b ON a.item = b.item
              WHERE might_contain((SELECT bloom_filter_agg(id, 20000) FROM items WHERE kind < 90), a.item)",
    },
    SCREENED_SHAPE,
];

//! The tables and queries of the decision support benchmark TPC-H.
//!
//! Tables come from the crate `tpchgen`, whose rows are those of the benchmark's own program. Queries are those of the
//! specification with the parameters of its validation runs; as their results are compared with each other and
//! neither audited nor at a scale of the benchmark's, they are no TPC-H results.

use std::fs::File;
use std::path::{Path, PathBuf};

use datafusion::arrow::record_batch::RecordBatchReader;
use datafusion::error::Result;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::prelude::SessionContext;
use tpchgen::generators;

/// The tables' names.
const TABLES: [&str; 8] = ["region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem"];

/// The 22 queries, in their order; each starts with a comment that names it.
pub fn queries() -> Vec<&'static str> {
    let all = include_str!("tpch.sql").split(';').map(str::trim).filter(|query| !query.is_empty());
    all.collect()
}

/// Writes the tables as Parquet files, one per table, with row groups of `group_rows` rows.
pub fn write(folder: &Path, scale: f64, group_rows: usize) -> Result<()> {
    macro_rules! write {
        ($($table:literal: $rows:ident of $generator:ident),*) => {
            $(file(folder, $table, group_rows, tpchgen_arrow::$rows::new(generators::$generator::new(scale, 1, 1)))?;)*
        };
    }
    write!(
        "region": RegionArrow of RegionGenerator,
        "nation": NationArrow of NationGenerator,
        "supplier": SupplierArrow of SupplierGenerator,
        "customer": CustomerArrow of CustomerGenerator,
        "part": PartArrow of PartGenerator,
        "partsupp": PartSuppArrow of PartSuppGenerator,
        "orders": OrderArrow of OrderGenerator,
        "lineitem": LineItemArrow of LineItemGenerator
    );
    Ok(())
}

/// Registers the tables that [`write()`] wrote.
pub async fn register(context: &SessionContext, folder: &Path) -> Result<()> {
    for table in TABLES {
        context.register_parquet(table, &path(folder, table).to_string_lossy(), Default::default()).await?;
    }
    Ok(())
}

fn path(folder: &Path, table: &str) -> PathBuf {
    folder.join(format!("{table}.parquet"))
}

fn file(folder: &Path, table: &str, group_rows: usize, rows: impl RecordBatchReader) -> Result<()> {
    let schema = rows.schema();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group_rows)).build();
    let mut writer = ArrowWriter::try_new(File::create(path(folder, table))?, schema, Some(properties))?;
    for batch in rows {
        writer.write(&batch?)?;
    }
    writer.close()?;
    Ok(())
}

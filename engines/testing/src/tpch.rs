//! The tables and queries of the decision support benchmark TPC-H.
//!
//! Tables come from the crate `tpchgen`, with the rows of the benchmark's own program. Queries are the specification's,
//! with the parameters of its validation runs. Results are compared with each other, neither audited nor at a scale of
//! the benchmark, so they are no TPC-H results.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use datafusion::arrow::record_batch::RecordBatchReader;
use datafusion::error::{DataFusionError, Result};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::prelude::SessionContext;
use tpchgen::generators;

/// The tables' names.
const TABLES: [&str; 8] = ["region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem"];

/// Returns the 22 queries in order; each starts with a comment with its name.
pub fn queries() -> Vec<&'static str> {
    let all = include_str!("tpch.sql").split(';').map(str::trim).filter(|query| !query.is_empty());
    all.collect()
}

/// Writes each table into a folder, as Parquet files with row groups of `group_rows` rows. All tables but the smallest
/// two are split into `files` files. As many files are written at once as there are processors.
pub fn write(folder: &Path, scale: f64, group_rows: usize, files: usize) -> Result<()> {
    let parts = |table: &&str| if ["region", "nation"].contains(table) { 1 } else { files.max(1) };
    // Largest tables first.
    let all = TABLES.into_iter().rev().flat_map(|table| (0..parts(&table)).map(move |part| (table, part)));
    let all: Vec<(&str, usize)> = all.collect();
    for table in TABLES {
        std::fs::create_dir_all(folder.join(table))?;
    }
    let next = AtomicUsize::new(0);
    let work = || -> Result<()> {
        while let Some((table, part)) = all.get(next.fetch_add(1, Relaxed)) {
            file(folder, table, (scale, *part, parts(table)), group_rows)?;
        }
        Ok(())
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(all.len());
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        // A panicking worker has printed its message.
        workers.into_iter().try_for_each(|worker| worker.join().expect("rows of TPC-H"))
    })
}

/// Registers the tables that [`write()`] wrote.
pub async fn register(context: &SessionContext, folder: &Path) -> Result<()> {
    for table in TABLES {
        context.register_parquet(table, &folder.join(table).to_string_lossy(), Default::default()).await?;
    }
    Ok(())
}

/// Writes one part of a table, given scale, number and number of parts.
fn file(folder: &Path, table: &str, (scale, part, parts): (f64, usize, usize), group_rows: usize) -> Result<()> {
    let number = |part: usize| i32::try_from(part).map_err(|error| DataFusionError::External(Box::new(error)));
    let (nth, parts) = (number(part + 1)?, number(parts)?);
    let path = folder.join(table).join(format!("{part}.parquet"));
    macro_rules! rows {
        ($($name:literal: $rows:ident of $generator:ident),*) => {
            match table {
                $($name => {
                    let generator = generators::$generator::new(scale, nth, parts);
                    write_rows(&path, group_rows, tpchgen_arrow::$rows::new(generator))
                })*
                _ => unreachable!("tables are those of the benchmark"),
            }
        };
    }
    rows!(
        "region": RegionArrow of RegionGenerator,
        "nation": NationArrow of NationGenerator,
        "supplier": SupplierArrow of SupplierGenerator,
        "customer": CustomerArrow of CustomerGenerator,
        "part": PartArrow of PartGenerator,
        "partsupp": PartSuppArrow of PartSuppGenerator,
        "orders": OrderArrow of OrderGenerator,
        "lineitem": LineItemArrow of LineItemGenerator
    )
}

fn write_rows(path: &Path, group_rows: usize, rows: impl RecordBatchReader) -> Result<()> {
    let schema = rows.schema();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group_rows)).build();
    let mut writer = ArrowWriter::try_new(File::create(path)?, schema, Some(properties))?;
    for batch in rows {
        writer.write(&batch?)?;
    }
    writer.close()?;
    Ok(())
}

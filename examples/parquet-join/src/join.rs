//! The join, with filters and without.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::path::Path;

use anyhow::{Context, ensure};
use memmap2::Mmap;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{ByteArrayType, DataType, Int64Type};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use warpset_bloom::{Filter, Insert, PhysicalType, SplitBlockBloom, View};

/// The columns of `stores.parquet` and `sales.parquet`.
const STORE: usize = 0;
const COUNTRY: usize = 1;
const CENTS: usize = 1;

/// Sales of one store.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Revenue {
    pub sales: u64,
    pub cents: u64,
}

/// By store.
type Revenues = BTreeMap<i64, Revenue>;

/// Result of a screened join, and the amount of data read.
pub struct Screened {
    pub revenue: Revenues,
    pub filter_bytes: u64,
    pub groups: usize,
    pub groups_read: usize,
    pub rows: i64,
    pub rows_asked: usize,
    pub rows_kept: usize,
}

/// Returns the stores of a country.
pub fn wanted_stores(path: &Path, country: &str) -> anyhow::Result<HashSet<i64>> {
    let reader = SerializedFileReader::new(open(path)?)?;
    let mut wanted = HashSet::new();
    for group in 0..reader.num_row_groups() {
        let stores = column::<Int64Type>(&reader, group, STORE)?;
        let countries = column::<ByteArrayType>(&reader, group, COUNTRY)?;
        let of_country = stores.into_iter().zip(&countries).filter(|(_, of)| of.data() == country.as_bytes());
        wanted.extend(of_country.map(|(store, _)| store));
    }
    Ok(wanted)
}

/// Reads every sale and looks its store up.
pub fn plain(path: &Path, wanted: &HashSet<i64>) -> anyhow::Result<Revenues> {
    let reader = SerializedFileReader::new(open(path)?)?;
    let mut revenue = Revenues::new();
    for group in 0..reader.num_row_groups() {
        let stores = column::<Int64Type>(&reader, group, STORE)?;
        let cents = column::<Int64Type>(&reader, group, CENTS)?;
        add(&mut revenue, wanted, stores.into_iter().zip(cents));
    }
    Ok(revenue)
}

/// Reads the row groups that can hold a wanted store, and joins the sales that the filter keeps.
pub fn screened(path: &Path, wanted: &HashSet<i64>) -> anyhow::Result<Screened> {
    let keys: Vec<i64> = wanted.iter().copied().collect();
    let mut filter = SplitBlockBloom::builder(keys.len().max(1) as u64).fpr(0.01).build()?;
    filter.insert_bulk(&keys)?;

    let file = open(path)?;
    // SAFETY: nothing writes the file while the join reads it: `generate` is another run of the program.
    let bytes = unsafe { Mmap::map(&file) }?;
    let reader = SerializedFileReader::new(file)?;
    let mut found = Screened {
        revenue: Revenues::new(),
        filter_bytes: filter.memory_bytes(),
        groups: reader.num_row_groups(),
        groups_read: 0,
        rows: reader.metadata().file_metadata().num_rows(),
        rows_asked: 0,
        rows_kept: 0,
    };
    for group in 0..reader.num_row_groups() {
        if !may_hold(&bytes, reader.metadata().row_group(group).column(STORE), &keys)? {
            continue;
        }
        found.groups_read += 1;
        let stores = column::<Int64Type>(&reader, group, STORE)?;
        let kept = filter.contains_bitmap_bulk(&stores)?;
        found.rows_asked += stores.len();
        found.rows_kept += kept.count_ones();
        // Other columns are read for the sake of rows that are kept.
        if kept.count_ones() > 0 {
            let cents = column::<Int64Type>(&reader, group, CENTS)?;
            let sales = stores.into_iter().zip(cents).zip(kept.iter());
            add(&mut found.revenue, wanted, sales.filter(|(_, kept)| *kept).map(|(sale, _)| sale));
        }
    }
    Ok(found)
}

/// Whether the Bloom filter of a column of a row group may hold any of these keys; `true` without a filter.
fn may_hold(file: &[u8], column: &ColumnChunkMetaData, keys: &[i64]) -> anyhow::Result<bool> {
    let Some(offset) = column.bloom_filter_offset() else { return Ok(true) };
    let begin = usize::try_from(offset).ok().filter(|&begin| begin < file.len());
    let begin = begin.context("a Bloom filter lies outside of the file")?;
    // The column's type determines the hash of integers; this column is INT64.
    let (filter, _) = View::from_parquet(&file[begin..], PhysicalType::Int64)?;
    Ok(filter.any_contained_bulk(keys)?)
}

/// Adds the sales of wanted stores.
fn add(revenue: &mut Revenues, wanted: &HashSet<i64>, sales: impl Iterator<Item = (i64, i64)>) {
    for (store, cents) in sales.filter(|(store, _)| wanted.contains(store)) {
        let revenue = revenue.entry(store).or_default();
        revenue.sales += 1;
        revenue.cents += cents as u64;
    }
}

fn open(path: &Path) -> anyhow::Result<File> {
    File::open(path).with_context(|| format!("cannot open {}; `parquet-join generate` writes it", path.display()))
}

/// Reads all values of a column in a row group.
fn column<T: DataType>(reader: &SerializedFileReader<File>, group: usize, column: usize) -> anyhow::Result<Vec<T::T>> {
    let group = reader.get_row_group(group)?;
    let rows = group.metadata().num_rows() as usize;
    let mut values = Vec::new();
    let mut reader = get_typed_column_reader::<T>(group.get_column_reader(column)?);
    while values.len() < rows {
        let (read, ..) = reader.read_records(rows - values.len(), None, None, &mut values)?;
        ensure!(read > 0, "a column has {} values for {rows} rows", values.len());
    }
    Ok(values)
}

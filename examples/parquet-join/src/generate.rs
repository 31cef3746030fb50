//! Two files like those of a business: stores by country, and their sales.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::{parser::parse_message_type, types::ColumnPath};
use warpset_base::file::{CallFiles, Replacement};

/// Countries, and stores in each.
const COUNTRIES: u64 = 64;
const STORES_PER_COUNTRY: u64 = 50;
/// Row groups of the sales. Each contains those of one region, which its filter shows.
const REGIONS: u64 = 16;

/// Returns the number of a store: spread over all of `i64`, so that the least and the greatest of a row group tell
/// nothing.
fn store(country: u64, number: u64) -> i64 {
    scattered(country * STORES_PER_COUNTRY + number + 1) as i64
}

fn scattered(number: u64) -> u64 {
    let number = (number ^ number >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (number ^ number >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// Writes `stores.parquet` and `sales.parquet`, which get their names together.
pub fn write(folder: &Path, sales: u64) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let paths = ["stores.parquet", "sales.parquet"].map(|name| folder.join(name));
    CallFiles::new().writes(&paths).check()?;
    let [mut of_stores, mut of_sales] = [create(&paths[0])?, create(&paths[1])?];
    write_stores(of_stores.file())?;
    write_sales(of_sales.file(), sales)?;
    let finished = Replacement::finish_all([of_stores, of_sales]);
    finished.map_err(|(path, error)| anyhow::anyhow!("cannot write {}: {error}", path.display()))?;
    println!("{} stores of country-0 to country-{}, {sales} sales", COUNTRIES * STORES_PER_COUNTRY, COUNTRIES - 1);
    Ok(())
}

fn create(path: &Path) -> anyhow::Result<Replacement> {
    Replacement::create(path).with_context(|| format!("cannot write {}", path.display()))
}

fn write_stores(file: &mut File) -> anyhow::Result<()> {
    let schema = "message stores { required int64 store; required binary country (utf8); }";
    let mut writer = writer(file, schema, WriterProperties::builder().build())?;
    let mut group = writer.next_row_group()?;
    let all = (0..COUNTRIES).flat_map(|country| (0..STORES_PER_COUNTRY).map(move |number| (country, number)));
    let (stores, countries): (Vec<i64>, Vec<ByteArray>) = all
        .map(|(country, number)| (store(country, number), ByteArray::from(format!("country-{country}").as_str())))
        .unzip();
    column::<Int64Type>(&mut group, &stores)?;
    column::<ByteArrayType>(&mut group, &countries)?;
    group.close()?;
    writer.close()?;
    Ok(())
}

fn write_sales(file: &mut File, sales: u64) -> anyhow::Result<()> {
    let properties = WriterProperties::builder()
        // Turns the filter on, for this column alone.
        .set_column_bloom_filter_fpp(ColumnPath::from("store"), 0.001)
        .set_column_bloom_filter_max_ndv(ColumnPath::from("store"), COUNTRIES / REGIONS * STORES_PER_COUNTRY)
        .build();
    let mut writer = writer(file, "message sales { required int64 store; required int64 cents; }", properties)?;
    for region in 0..REGIONS {
        let numbers = region * sales / REGIONS..(region + 1) * sales / REGIONS;
        let (stores, cents): (Vec<i64>, Vec<i64>) = numbers
            .map(|number| {
                let random = scattered(number);
                let country = region + REGIONS * ((random >> 50) % (COUNTRIES / REGIONS));
                (store(country, (random >> 40) % STORES_PER_COUNTRY), (random >> 20) as i64 % 10_000)
            })
            .unzip();
        let mut group = writer.next_row_group()?;
        column::<Int64Type>(&mut group, &stores)?;
        column::<Int64Type>(&mut group, &cents)?;
        group.close()?;
    }
    writer.close()?;
    Ok(())
}

fn writer<'f>(
    file: &'f mut File,
    schema: &str,
    properties: WriterProperties,
) -> anyhow::Result<SerializedFileWriter<&'f mut File>> {
    Ok(SerializedFileWriter::new(file, Arc::new(parse_message_type(schema)?), Arc::new(properties))?)
}

/// Writes the next column of a row group.
fn column<T: DataType>(group: &mut SerializedRowGroupWriter<'_, &mut File>, values: &[T::T]) -> anyhow::Result<()> {
    let mut column = group.next_column()?.context("the schema has fewer columns")?;
    column.typed::<T>().write_batch(values, None, None)?;
    Ok(column.close()?)
}

//! Point lookups in a folder of Parquet files.
//!
//! `where-is-it generate FOLDER FILES ROWS` writes files of that many rows, ids and values, with a Bloom filter of the
//! ids per row group. `where-is-it find FOLDER COUNT` looks up ids, half of which exist: by a static function from ids
//! to row groups, and by the Bloom filters of all row groups; it compares answers, bytes and time.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use memmap2::Mmap;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::Int64Type;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::{parser::parse_message_type, types::ColumnPath};
use warpset_bloom::{PhysicalType, View};
use warpset_fuse::StaticFunction;

/// Rows of a row group.
const GROUP: u64 = 10_000;
/// The columns of a file.
const ID: usize = 0;
const VALUE: usize = 1;

/// Returns id `number` of all ids that are written: spread over all of `i64`, so that minima and maxima tell nothing.
fn id(number: u64) -> i64 {
    let number = (number ^ number >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (number ^ number >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) as i64
}

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |text: &str| text.parse::<u64>().with_context(|| format!("{text:?} is no number"));
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["generate", folder, files, rows] => generate(Path::new(folder), number(files)?, number(rows)?),
        ["find", folder, count] => find(Path::new(folder), number(count)?),
        _ => bail!("usage: where-is-it generate FOLDER FILES ROWS, or where-is-it find FOLDER COUNT"),
    }
}

fn generate(folder: &Path, files: u64, rows: u64) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let schema = Arc::new(parse_message_type("message rows { required int64 id; required int64 value; }")?);
    let properties = WriterProperties::builder()
        // Turns the filter on, for this column alone.
        .set_column_bloom_filter_fpp(ColumnPath::from("id"), 0.01)
        .set_column_bloom_filter_max_ndv(ColumnPath::from("id"), GROUP)
        .build();
    let properties = Arc::new(properties);
    for file in 0..files {
        let path = folder.join(format!("{file:04}.parquet"));
        let to = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        let mut writer = SerializedFileWriter::new(to, schema.clone(), properties.clone())?;
        for first in (0..rows).step_by(GROUP as usize) {
            let numbers = file * rows + first..file * rows + rows.min(first + GROUP);
            let columns = [numbers.clone().map(id).collect::<Vec<_>>(), numbers.map(|number| number as i64).collect()];
            let mut group = writer.next_row_group()?;
            for values in columns {
                let mut column = group.next_column()?.context("two columns")?;
                column.typed::<Int64Type>().write_batch(&values, None, None)?;
                column.close()?;
            }
            group.close()?;
        }
        writer.close()?;
    }
    println!("{files} files of {rows} rows");
    Ok(())
}

/// An open file.
struct Opened {
    reader: SerializedFileReader<File>,
    bytes: Mmap,
}

/// A folder of files, whose row groups are numbered through.
struct Folder {
    files: Vec<Opened>,
    /// File and row group of each number.
    groups: Vec<(usize, usize)>,
}

impl Folder {
    fn open(folder: &Path) -> anyhow::Result<Folder> {
        let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
        let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<PathBuf>>>()?;
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "parquet"));
        paths.sort_unstable();
        let (mut files, mut groups) = (Vec::new(), Vec::new());
        for (number, path) in paths.iter().enumerate() {
            let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
            // SAFETY: nothing writes the file while the program reads it: `generate` is another run of it.
            let bytes = unsafe { Mmap::map(&file)? };
            let reader = SerializedFileReader::new(file)?;
            groups.extend((0..reader.num_row_groups()).map(|group| (number, group)));
            files.push(Opened { reader, bytes });
        }
        ensure!(!groups.is_empty(), "no row groups in {}; `where-is-it generate` writes some", folder.display());
        Ok(Folder { files, groups })
    }

    fn metadata(&self, number: usize) -> &RowGroupMetaData {
        let (file, group) = self.groups[number];
        self.files[file].reader.metadata().row_group(group)
    }

    /// Reads all values of a column in a row group, and adds their bytes in the file to `bytes`.
    fn column(&self, number: usize, column: usize, bytes: &mut u64) -> anyhow::Result<Vec<i64>> {
        let (file, group) = self.groups[number];
        *bytes += self.metadata(number).column(column).compressed_size() as u64;
        let group = self.files[file].reader.get_row_group(group)?;
        let rows = group.metadata().num_rows() as usize;
        let mut values = Vec::new();
        let mut reader = get_typed_column_reader::<Int64Type>(group.get_column_reader(column)?);
        while values.len() < rows {
            let (read, ..) = reader.read_records(rows - values.len(), None, None, &mut values)?;
            ensure!(read > 0, "a column has {} values for {rows} rows", values.len());
        }
        Ok(values)
    }

    /// Returns the value of an id in a row group, if the group has it.
    fn value(&self, number: usize, id: i64, bytes: &mut u64) -> anyhow::Result<Option<i64>> {
        let ids = self.column(number, ID, bytes)?;
        let row = ids.iter().position(|&there| there == id);
        row.map(|row| Ok(self.column(number, VALUE, bytes)?[row])).transpose()
    }

    /// Returns a function from ids to numbers of row groups. Each id is in one of them.
    fn function(&self) -> anyhow::Result<StaticFunction<u32>> {
        let (mut ids, mut numbers) = (Vec::new(), Vec::new());
        for number in 0..self.groups.len() {
            ids.extend(self.column(number, ID, &mut 0)?);
            numbers.resize(ids.len(), number as u32);
        }
        let bits = (self.groups.len() as u32).next_power_of_two().trailing_zeros().max(1);
        Ok(StaticFunction::builder().value_bits(bits).filtered(16).build_from(&ids, &numbers)?)
    }

    /// Whether the Bloom filter of a row group may hold an id; adds the bytes of the block that is read to `bytes`.
    fn may_hold(&self, number: usize, id: i64, bytes: &mut u64) -> anyhow::Result<bool> {
        let column: &ColumnChunkMetaData = self.metadata(number).column(ID);
        let offset = column.bloom_filter_offset().context("a row group without a Bloom filter")?;
        let file = &self.files[self.groups[number].0].bytes;
        let begin = usize::try_from(offset).ok().filter(|&begin| begin < file.len());
        let begin = begin.context("a Bloom filter lies outside of the file")?;
        // The column's type determines the hash of integers; this column is INT64.
        let (filter, _) = View::from_parquet(&file[begin..], PhysicalType::Int64)?;
        // Header and one block.
        *bytes += 64;
        Ok(filter.contains(id))
    }
}

fn find(folder: &Path, count: u64) -> anyhow::Result<()> {
    let folder = Folder::open(folder)?;
    let rows: u64 = (0..folder.groups.len()).map(|number| folder.metadata(number).num_rows() as u64).sum();
    let function = folder.function()?;
    println!("{rows} ids in {} row groups: {:.1} bits per id", folder.groups.len(), function.bits_per_key());
    // Every second one is written.
    let asked: Vec<i64> =
        (0..count).map(|i| id(i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % rows + (i % 2) * (rows + 1))).collect();

    let (mut bytes, start) = (0, Instant::now());
    let mut by_function = Vec::new();
    for &id in &asked {
        let group = function.get(id).map(|group| group as usize).filter(|&group| group < folder.groups.len());
        by_function.push(group.map_or(Ok(None), |group| folder.value(group, id, &mut bytes))?);
    }
    report("static function", bytes, start);

    let (mut bytes, start) = (0, Instant::now());
    let mut by_filters = Vec::new();
    for &id in &asked {
        let mut found = None;
        for group in 0..folder.groups.len() {
            if found.is_none() && folder.may_hold(group, id, &mut bytes)? {
                found = folder.value(group, id, &mut bytes)?;
            }
        }
        by_filters.push(found);
    }
    report("Bloom filters", bytes, start);

    ensure!(by_function == by_filters, "the answers differ");
    println!("{} of {count} ids found, equally by both", by_function.iter().flatten().count());
    Ok(())
}

fn report(name: &str, bytes: u64, start: Instant) {
    println!("{name}: {bytes} bytes read, {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
}

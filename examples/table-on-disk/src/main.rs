//! A table in a file: `table-on-disk build INPUT TABLE`, then `table-on-disk get TABLE KEY...`.
//!
//! INPUT has a key, a tab and a value per line; keys are distinct. A minimal perfect hash function gives each key the
//! number of its record, so that a lookup reads two cache lines of the function, the record's place, and the record.
//! The record contains the key too: a key that is not in the table gets some other key's record. The file is mapped,
//! not read, and processes that query it share its pages.
//!
//! ```text
//! words of the function, u64 │ the function │ where each record begins, n + 1 u64 │ records: key, tab, value
//! ```

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, bail, ensure};
use memmap2::Mmap;
use warpset_base::file::{CallFiles, Replacement};
use warpset_mphf::{RecSplit, RecSplitView};

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["build", input, table] => build(Path::new(input), Path::new(table)),
        ["get", table, ref keys @ ..] if !keys.is_empty() => get(Path::new(table), keys),
        _ => bail!("table-on-disk build INPUT TABLE, or table-on-disk get TABLE KEY..."),
    }
}

/// Writes the table of a file's lines.
fn build(input: &Path, table: &Path) -> anyhow::Result<()> {
    CallFiles::new().reads([input]).writes([table]).check()?;
    let text = std::fs::read_to_string(input).with_context(|| format!("cannot read {}", input.display()))?;
    let mut keys = Vec::new();
    for line in text.lines() {
        keys.push(line.split_once('\t').with_context(|| format!("no tab in the line \"{line}\""))?.0);
    }
    let function = RecSplit::builder().build_from(&keys)?;
    // The records in the order of the function's numbers.
    let mut records = vec![""; keys.len()];
    for (line, number) in text.lines().zip(function.get_bulk(&keys)) {
        records[number as usize] = line;
    }
    let mut begins = vec![0u64];
    begins.extend(records.iter().scan(0, |end, record| {
        *end += record.len() as u64;
        Some(*end)
    }));
    let mut replacement = Replacement::create(table).with_context(|| format!("cannot write {}", table.display()))?;
    let mut file = BufWriter::new(replacement.file());
    file.write_all(&(function.words().len() as u64).to_le_bytes())?;
    file.write_all(bytemuck::cast_slice(function.words()))?;
    file.write_all(bytemuck::cast_slice(&begins))?;
    records.iter().try_for_each(|record| file.write_all(record.as_bytes()))?;
    file.flush()?;
    drop(file);
    replacement.finish()?;
    println!("{} records, {:.2} bits per key for the function", keys.len(), function.bits_per_key());
    Ok(())
}

/// Prints the values of keys, a line each.
fn get(table: &Path, keys: &[&str]) -> anyhow::Result<()> {
    let file = File::open(table).with_context(|| format!("cannot open {}", table.display()))?;
    // SAFETY: no process writes the table while it is in use: `build` makes a new file.
    let bytes = unsafe { Mmap::map(&file) }?;
    let table = Table::open(&bytes)?;
    for (key, value) in keys.iter().zip(table.get(keys)?) {
        match value {
            Some(value) => println!("{key}\t{value}"),
            None => println!("{key} is not in the table"),
        }
    }
    Ok(())
}

/// A table in mapped memory.
struct Table<'a> {
    function: RecSplitView<'a>,
    begins: &'a [u64],
    records: &'a [u8],
}

impl<'a> Table<'a> {
    /// Finds the parts of a file. Mapped memory begins at a page, so that words in it are aligned.
    fn open(bytes: &'a [u8]) -> anyhow::Result<Self> {
        let words: &[u64] = bytemuck::try_cast_slice(&bytes[..bytes.len() / 8 * 8])
            .map_err(|error| anyhow::anyhow!("the table is not aligned: {error}"))?;
        let (&len, rest) = words.split_first().context("the table is empty")?;
        ensure!(len <= rest.len() as u64, "the table has been cut");
        let (function, rest) = rest.split_at(len as usize);
        let function = RecSplitView::from_words(function)?;
        let n = function.len() as usize;
        ensure!(n < rest.len(), "the table has been cut");
        let records = &bytes[8 * (1 + len as usize + n + 1)..];
        Ok(Self { function, begins: &rest[..=n], records })
    }

    /// Returns the values of keys that are in the table.
    fn get(&self, keys: &[&str]) -> anyhow::Result<Vec<Option<&'a str>>> {
        let numbers = if self.begins.len() > 1 { self.function.get_bulk(keys) } else { Vec::new() };
        let mut values = vec![None; keys.len()];
        for ((key, number), value) in keys.iter().zip(numbers).zip(&mut values) {
            let (begin, end) = (self.begins[number as usize] as usize, self.begins[number as usize + 1] as usize);
            let record = self.records.get(begin..end).context("the table has been cut")?;
            let record = std::str::from_utf8(record).context("a record is no text")?;
            *value = record.split_once('\t').filter(|record| record.0 == *key).map(|record| record.1);
        }
        Ok(values)
    }
}

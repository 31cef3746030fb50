//! Answers of one query in several ways.

use std::path::Path;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::Result;

/// Tolerance for numbers that are summed in any order.
const TOLERANCE: f64 = 1e-9;

/// The sorted rows of an answer, one text per cell.
#[derive(Debug)]
pub struct Answer(Vec<Vec<String>>);

impl Answer {
    pub fn of(batches: &[RecordBatch]) -> Result<Answer> {
        let options = FormatOptions::default();
        let mut rows = Vec::new();
        for batch in batches {
            let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options));
            let columns: Vec<ArrayFormatter> = columns.collect::<Result<_, _>>()?;
            rows.extend(
                (0..batch.num_rows()).map(|row| columns.iter().map(|column| column.value(row).to_string()).collect()),
            );
        }
        rows.sort_unstable();
        Ok(Answer(rows))
    }

    /// Whether two answers are equal up to the last digits of numbers.
    pub fn equals(&self, other: &Answer) -> bool {
        let number = |cell: &String| cell.parse::<f64>().ok();
        let same = |(a, b): (&String, &String)| {
            let near = |(a, b): (f64, f64)| (a - b).abs() <= TOLERANCE * a.abs().max(b.abs());
            a == b || number(a).zip(number(b)).is_some_and(near)
        };
        let same_row = |(a, b): (&Vec<String>, &Vec<String>)| a.len() == b.len() && a.iter().zip(b).all(same);
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(same_row)
    }

    /// Writes one line per row, with cells separated by bars: no text of TPC-H contains one.
    pub fn write(&self, file: &Path) -> Result<()> {
        let lines: String = self.0.iter().map(|row| row.join("|") + "\n").collect();
        Ok(std::fs::write(file, lines)?)
    }
}

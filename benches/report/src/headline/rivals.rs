//! Rates of CUDA programs, for rows of a GPU: `rivals.json`, with the day and the GPU of each measurement.

use std::collections::BTreeMap;

use serde::Deserialize;

use bench_record::Record;

/// Contents of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rivals {
    /// The GPU that all rows are of.
    gpu: String,
    /// Who measured, and how.
    source: String,
    rows: Vec<Rival>,
}

/// One measurement of a CUDA program.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rival {
    /// The GPU, and who measured how.
    #[serde(skip)]
    pub gpu: String,
    #[serde(skip)]
    /// Source of the figure.
    pub source: String,
    /// Line of our row.
    structure: String,
    line: String,
    /// Who.
    pub program: String,
    /// Items per second.
    pub rate: f64,
    /// Day of the measurement.
    pub date: String,
    /// Size of the work: parameters of rows, and `n`.
    size: BTreeMap<String, f64>,
    /// Conditions of the measurement.
    pub note: String,
    /// Whether its work is ours, so that a ratio may stand beside it.
    #[serde(default = "yes")]
    same_work: bool,
}

fn yes() -> bool {
    true
}

/// The largest ratio of a size of ours to that of a rival beside it.
const NEAR: f64 = 8.0;

/// Reads the file.
pub fn read() -> Rivals {
    serde_json::from_str(include_str!("rivals.json")).expect("a test reads it")
}

impl Rivals {
    /// Returns the rival of a line's row with the nearest size, if one is near.
    pub fn of(&self, line: &str, row: &Record) -> Option<Rival> {
        let of_line = self.rows.iter().filter(|rival| rival.structure == row.structure && rival.line == line);
        let near = of_line.filter_map(|rival| Some((rival.distance(row)?, rival)));
        let (_, rival) = near.min_by(|a, b| a.0.total_cmp(&b.0)).filter(|_| row.backend == "cuda")?;
        Some(Rival { gpu: self.gpu.clone(), source: self.source.clone(), ..rival.clone() })
    }
}

impl Rival {
    /// Returns the largest ratio between the sizes; `None` if they are not near.
    fn distance(&self, row: &Record) -> Option<f64> {
        let ratio = |(name, &theirs): (&String, &f64)| {
            let ours = if name == "n" { row.n as f64 } else { row.number(name)? };
            let ratio = if name.ends_with("_bits") { (ours - theirs).exp2() } else { ours / theirs };
            Some(ratio.max(1.0 / ratio))
        };
        let ratios: Option<Vec<f64>> = self.size.iter().map(ratio).collect();
        Some(ratios?.into_iter().fold(1.0, f64::max)).filter(|ratio| *ratio <= NEAR)
    }

    /// Whether a ratio says something: the same work on such a GPU.
    pub fn is_like(&self, row: &Record) -> bool {
        self.same_work && row.device.starts_with(&self.gpu)
    }

    /// Renders the sizes in words.
    pub fn sizes(&self) -> String {
        let sizes = self.size.iter().map(|(name, size)| format!("{} {}", name.replace('_', " "), super::count(*size)));
        sizes.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_read_and_every_row_stands_beside_a_line() {
        let rivals = read();
        let lines = &super::super::lines_of_file().lines;
        for rival in &rivals.rows {
            let is_beside = |line: &super::super::Choice| line.structure == rival.structure && line.title == rival.line;
            assert!(lines.iter().any(is_beside), "{}", rival.line);
            assert!(rival.rate > 1e6 && rival.date.len() == 10 && !rival.sizes().is_empty());
        }
    }

    #[test]
    fn the_nearest_size_counts() {
        let row = |n: usize| Record { backend: "cuda".into(), ..Record::new("primitives", "sort", n) };
        let rate = |n: usize| read().of("sort u32", &row(n)).map(|rival| rival.rate);
        assert_eq!([1 << 20, 1 << 21, 1 << 26, 1 << 10].map(rate), [Some(15.1e9), Some(15.1e9), Some(42.3e9), None]);
    }
}

//! The tables II, III and IV and the figure 4 of the GPU LSM paper, ours beside the paper's own numbers.
//!
//! The paper's numbers are in `lsm/paper.json`, with the table that each is from; they were measured on a Tesla K40c of
//! 2013.

use serde::Deserialize;
use std::collections::BTreeMap;

use super::Figure;
use super::chart::{Axis, Scale, Series, Style, short_rate};
use super::page::Grid;
use super::rows::{groups, study};
use bench_record::Record;
use bench_record::show::rate;

/// The paper's numbers of one table: by batch size.
#[derive(Deserialize)]
struct OfPaper {
    #[serde(rename = "where")]
    place: String,
    /// By the base-two logarithm of the batch size: minimum, maximum, mean, and more of the sorted array.
    #[serde(flatten)]
    rows: BTreeMap<String, Vec<f64>>,
}

impl OfPaper {
    fn row(&self, batch: f64) -> Option<&Vec<f64>> {
        self.rows.get(&format!("{:.0}", batch.log2()))
    }

    /// Returns minimum, maximum and mean of a tree or of the sorted array; the paper has only the mean of its lookups
    /// and ranges.
    fn rates(&self, row: &Record) -> [Option<f64>; 3] {
        let Some(rates) = row.number("batch").and_then(|batch| self.row(batch)) else { return [None; 3] };
        let places = match (is_array(row), rates.len()) {
            (false, _) => [0, 1, 2],
            (true, 6) => [3, 4, 5],
            (true, _) => [usize::MAX, usize::MAX, 3],
        };
        places.map(|place| rates.get(place).map(|rate| rate * 1e6))
    }
}

/// The paper's cleanups.
#[derive(Deserialize)]
struct Cleanups {
    /// Logarithm of the batch size, levels, percent stale, million elements per second.
    rows: Vec<[f64; 4]>,
}

#[derive(Deserialize)]
struct Paper {
    source: String,
    insertion: OfPaper,
    #[serde(rename = "get, absent")]
    absent: OfPaper,
    #[serde(rename = "get, present")]
    present: OfPaper,
    #[serde(rename = "count, L = 8")]
    count_8: OfPaper,
    #[serde(rename = "count, L = 1024")]
    count_1024: OfPaper,
    #[serde(rename = "range, L = 8")]
    range_8: OfPaper,
    #[serde(rename = "range, L = 1024")]
    range_1024: OfPaper,
    cleanup: Cleanups,
}

impl Paper {
    fn read() -> Paper {
        serde_json::from_str(include_str!("lsm/paper.json")).expect("a test reads it")
    }

    /// Returns the table with the operation of a row.
    fn of(&self, row: &Record) -> Option<&OfPaper> {
        Some(match (row.operation.as_str(), row.number("length").map(|length| length as u64)) {
            ("insert batches", _) => &self.insertion,
            ("get, absent", _) => &self.absent,
            ("get, present", _) => &self.present,
            ("count", Some(8)) => &self.count_8,
            ("count", Some(1024)) => &self.count_1024,
            ("range", Some(8)) => &self.range_8,
            ("range", Some(1024)) => &self.range_1024,
            _ => return None,
        })
    }
}

fn is_array(row: &Record) -> bool {
    row.text("variant") == Some("sorted array")
}

fn ours(records: &[Record]) -> Vec<&Record> {
    records.iter().filter(|row| row.structure == "lsm" && row.backend == "cuda").collect()
}

const BATCH: Axis = Axis { label: "elements per batch", scale: Scale::Log2, show: |n| format!("2^{:.0}", n.log2()) };
const ELEMENTS: Axis =
    Axis { label: "elements in the tree", scale: Scale::Log2, show: |n| format!("2^{:.0}", n.log2()) };
const PER_SECOND: Axis = Axis { label: "per second", scale: Scale::Log10, show: short_rate };

/// Returns every figure; those without rows are empty.
pub fn figures(records: &[Record]) -> Vec<Figure> {
    let (rows, paper) = (ours(records), Paper::read());
    let inserted: Vec<&Record> = study(&rows, "paper insertion").into_iter().filter(|row| row.n == 1 << 27).collect();
    vec![
        batch_times(&inserted),
        effective(&inserted, &paper),
        by_batch("lsm-insert-by-batch", "Insertion by batch size", &inserted, &paper),
        by_batch("lsm-get-by-batch", "Lookups by batch size", &study(&rows, "paper lookup"), &paper),
        by_batch("lsm-range-by-batch", "Counts and ranges by batch size", &study(&rows, "paper ranges"), &paper),
    ]
}

/// Makes Figure 4a: the time of each batch.
fn batch_times(rows: &[&Record]) -> Figure {
    let row = rows.iter().find(|row| row.number("batch") == Some(f64::from(1 << 19)) && !is_array(row));
    let times = row.and_then(|row| row.params.get("milliseconds")?.as_array());
    let points: Vec<(f64, f64)> =
        times.into_iter().flatten().enumerate().filter_map(|(i, time)| Some((i as f64, time.as_f64()?))).collect();
    Figure::new(
        "lsm-figure-4a",
        "Time to insert a batch of 2^19 elements",
        "Figure 4a of the paper: the time to insert the batch with this number, into as many batches that are there. It is \
         the sort of the batch, and the merge with the levels that it fills up; a batch that fills up none takes the least.",
        (
            Axis { label: "resident batches", scale: Scale::Linear, show: |n| format!("{n:.0}") },
            Axis { label: "milliseconds", scale: Scale::Log10, show: short_rate },
        ),
        vec![Series { name: "measured".into(), points, style: Style::Measured, colour: 0 }],
    )
}

/// Makes Figure 4b: the rate of all insertions so far.
fn effective(rows: &[&Record], paper: &Paper) -> Figure {
    let mut all: Vec<Series> = Vec::new();
    for (colour, row) in rows.iter().rev().filter(|row| !is_array(row)).enumerate() {
        let batch = row.number("batch").unwrap_or_default();
        let pairs = row.params.get("effective").and_then(|pairs| pairs.as_array()).into_iter().flatten();
        let points = pairs.filter_map(|pair| Some((pair.get(0)?.as_f64()?, pair.get(1)?.as_f64()?))).collect();
        all.push(Series { name: format!("b = 2^{:.0}", batch.log2()), points, style: Style::Measured, colour });
        // The mean of table II is the effective rate at the end.
        if let Some(mean) = paper.insertion.rates(row)[2] {
            all.push(Series { name: String::new(), points: vec![(row.n as f64, mean)], style: Style::Paper, colour });
        }
    }
    Figure::new(
        "lsm-figure-4b",
        "Effective insertion rate",
        format!(
            "Figure 4b of the paper: all elements so far over the time of all batches so far. Hollow squares: the paper's harmonic \
             mean at 2^27 elements ({}), on a Tesla K40c.",
            paper.insertion.place
        ),
        (ELEMENTS, PER_SECOND),
        all,
    )
}

/// Plots the means of a table over the batch size, with the paper's.
fn by_batch(name: &str, title: &str, rows: &[&Record], paper: &Paper) -> Figure {
    let label = |row: &Record| match (row.text("method"), row.number("length")) {
        (Some(method), _) => format!("{}, {}, {method}", row.name(), row.operation),
        (_, Some(length)) => format!("{}, L = {length}", row.operation),
        _ => row.name(),
    };
    let mut all: Vec<Series> = Vec::new();
    for (colour, group) in groups(rows, |row| Some(label(row))).into_iter().enumerate() {
        let rows = || rows.iter().filter(|row| label(row) == group);
        let points = rows().filter_map(|row| Some((row.number("batch")?, row.items_per_second?))).collect();
        all.push(Series { name: group.clone(), points, style: Style::Measured, colour });
        let theirs = rows().filter_map(|row| Some((row.number("batch")?, paper.of(row)?.rates(row)[2]?)));
        // The paper has one way to look up.
        if !group.ends_with("prepared") {
            all.push(Series { name: String::new(), points: theirs.collect(), style: Style::Paper, colour });
        }
    }
    Figure::new(
        name,
        title,
        "Harmonic means over the numbers of resident batches, measured (filled points) and in the paper on a Tesla K40c (hollow squares of \
         the same colour).",
        (BATCH, PER_SECOND),
        all,
    )
}

/// Returns every table with rows.
pub fn tables(records: &[Record]) -> Vec<Grid> {
    let (rows, paper) = (ours(records), Paper::read());
    let grids = [
        ("lsm-table-2", "Table II: insertion", "paper insertion"),
        ("lsm-table-3", "Table III: lookups", "paper lookup"),
        ("lsm-table-4", "Table IV: counts and ranges", "paper ranges"),
    ];
    let mut tables: Vec<Grid> = grids.map(|(name, title, of)| table(name, title, &study(&rows, of), &paper)).into();
    tables.push(cleanups(&study(&rows, "paper cleanup"), &paper));
    tables.retain(|grid| !grid.rows.is_empty());
    tables
}

fn table(name: &'static str, title: &str, rows: &[&Record], paper: &Paper) -> Grid {
    let line = |row: &&Record| {
        let batch = row.number("batch")?;
        let of_paper = paper.of(row).filter(|_| row.operation != "insert batches" || row.n == 1 << 27);
        let theirs = of_paper.map_or([None; 3], |table| table.rates(row));
        let show = |value: Option<f64>| value.map_or_else(String::new, rate);
        let mean = row.items_per_second;
        Some(vec![
            row.name(),
            match row.number("length") {
                Some(length) => format!("{}, L = {length}", row.operation),
                None => row.operation.clone(),
            },
            row.text("method").unwrap_or_default().to_owned(),
            format!("2^{:.0}", (row.n as f64).log2()),
            format!("2^{:.0}", batch.log2()),
            show(row.number("min_rate")),
            show(row.number("max_rate")),
            show(mean),
            show(theirs[0]),
            show(theirs[1]),
            show(theirs[2]),
            mean.zip(theirs[2]).map_or_else(String::new, |(ours, theirs)| format!("{:.1}", ours / theirs)),
        ])
    };
    let places = groups(rows, |row| Some(paper.of(row)?.place.as_str()));
    Grid {
        name,
        title: title.into(),
        caption: format!(
            "Minimum, maximum and harmonic mean over the numbers of resident batches, per second. The paper's columns: {}; {}.",
            places.join("; "),
            paper.source
        ),
        header: [
            "operation",
            "method",
            "n",
            "batch",
            "min",
            "max",
            "mean",
            "paper min",
            "max",
            "mean",
            "times the paper's",
        ]
        .map(String::from)
        .into(),
        rows: rows.iter().filter_map(line).collect(),
    }
}

fn cleanups(rows: &[&Record], paper: &Paper) -> Grid {
    let line = |row: &&Record| {
        let number = |name| row.number(name);
        let key = [number("batch")?.log2(), number("levels")?, number("stale_percent")?];
        let theirs = paper.cleanup.rows.iter().find(|row| row[..3] == key).filter(|_| row.operation == "cleanup");
        Some(vec![
            row.operation.clone(),
            format!("2^{:.0}", key[0]),
            format!("{:.0}", key[1]),
            format!("{:.0} %", key[2]),
            row.items_per_second.map_or_else(String::new, rate),
            theirs.map_or_else(String::new, |row| rate(row[3] * 1e6)),
        ])
    };
    Grid {
        name: "lsm-cleanup",
        title: "Section V-D: cleanup, and lookups before and after".into(),
        caption: "Elements or keys per second; 2^25 lookups of keys that are there. All levels are full before.".into(),
        header: ["operation", "batch", "levels", "stale", "per second", "paper"].map(String::from).into(),
        rows: rows.iter().filter_map(line).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(operation: &str, study: &str, n: usize, log2_batch: u32) -> Record {
        let row =
            Record::new("lsm", operation, n).by("lsm", false).param("study", study).param("batch", 1u64 << log2_batch);
        let mut row = row.param("min_rate", 1e9).param("max_rate", 3e9).time(n as f64 / 2e9);
        row.backend = "cuda".into();
        row
    }

    #[test]
    fn the_papers_numbers_are_whole() {
        let paper = Paper::read();
        let lengths = |of: &OfPaper| (of.rows.len(), of.rows.values().map(Vec::len).sum::<usize>());
        assert_eq!(lengths(&paper.insertion), (13, 78));
        for lookups in [&paper.absent, &paper.present] {
            assert_eq!(lengths(lookups), (9, 36));
        }
        for ranges in [&paper.count_8, &paper.count_1024, &paper.range_8, &paper.range_1024] {
            assert_eq!(lengths(ranges), (5, 20));
        }
        // If the minimum differs from the mean, it is below it, and the mean is below the maximum.
        let all = [&paper.insertion, &paper.absent, &paper.present, &paper.count_8, &paper.range_1024];
        for rates in all.iter().flat_map(|of| of.rows.values()) {
            assert!(rates[0] <= rates[2] && rates[2] <= rates[1], "{rates:?}");
        }
        // The paper's own mean over all batch sizes.
        let means: Vec<f64> = paper.insertion.rows.values().map(|rates| rates[2]).collect();
        let harmonic = means.len() as f64 / means.iter().map(|mean| 1.0 / mean).sum::<f64>();
        assert!((harmonic - 225.3).abs() < 0.5, "{harmonic}");
    }

    #[test]
    fn tables_have_the_paper_beside() {
        let rows = [
            row("insert batches", "paper insertion", 1 << 27, 20),
            row("get, absent", "paper lookup", 1 << 24, 16).param("method", "halving"),
            row("get, absent", "paper lookup", 1 << 24, 16).by("sorted array", false).param("method", "halving"),
            row("count", "paper ranges", 1 << 24, 16).param("length", 1024),
            row("cleanup", "paper cleanup", 63 << 20, 20).param("levels", 6).param("stale_percent", 10),
        ];
        let grids = tables(&rows);
        assert_eq!(grids.len(), 4);
        assert_eq!(grids[0].rows[0][5..], ["1.00 G", "3.00 G", "2.00 G", "22.4 M", "664.2 M", "354.1 M", "5.6"]);
        assert_eq!(grids[1].rows[0][11], "44.0");
        assert_eq!(grids[1].rows[1][8..], ["", "", "127.6 M", "15.7"]);
        assert_eq!(grids[2].rows[0][10], "2.6 M");
        assert_eq!(grids[3].rows[0][5], "1.87 G");
        assert!(tables(&[]).is_empty());
    }

    #[test]
    fn figure_4_is_drawn_from_the_rows() {
        let mut inserted = row("insert batches", "paper insertion", 1 << 27, 19);
        inserted = inserted.param("milliseconds", vec![0.1, 0.2, 0.3]);
        inserted.params.insert("effective".into(), serde_json::json!([[524288, 1e9], [1048576, 9e8]]));
        let figures = figures(&[inserted]);
        let of = |name: &str| &figures.iter().find(|figure| figure.name == name).unwrap().chart;
        assert_eq!(of("lsm-figure-4a").series[0].points, [(0.0, 0.1), (1.0, 0.2), (2.0, 0.3)]);
        assert_eq!(of("lsm-figure-4b").series[0].points, [(524288.0, 1e9), (1048576.0, 9e8)]);
        assert_eq!(of("lsm-figure-4b").series[1].points, [((1 << 27) as f64, 289.4e6)]);
        assert_eq!(of("lsm-insert-by-batch").series.len(), 2);
        assert!(super::figures(&[]).iter().all(|figure| figure.chart.is_empty()));
    }
}

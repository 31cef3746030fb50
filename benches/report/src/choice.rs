//! Choice of a filter: space and speed of quotient and Bloom filters at one rate of false positives.

use super::Figure;
use super::chart::{Axis, Scale, Style, short_rate};
use super::page::Grid;
use super::rows::{groups, series, study};
use bench_record::Record;

const STUDY: &str = "equal rate";
const BITS: Axis = Axis { label: "bits per key", scale: Scale::Linear, show: |bits| format!("{bits:.0}") };
const SPEED: Axis = Axis { label: "lookups per second", scale: Scale::Log10, show: short_rate };

/// Returns a filter's abilities beyond lookups and insertions: keys removed, copies counted, filters merged.
fn abilities(name: &str) -> [&'static str; 3] {
    match name {
        "rank-and-select quotient" => ["yes", "yes, in digits", "of any sizes"],
        "standard quotient" => ["yes", "yes, a slot each", "of any sizes"],
        _ => ["no", "no", "of equal parameters"],
    }
}

fn of_one_thread(records: &[Record]) -> Vec<&Record> {
    let rows: Vec<&Record> = records.iter().filter(|row| row.number("threads") == Some(1.0)).collect();
    study(&rows, STUDY)
}

/// Returns the figure; empty without rows.
pub fn figures(records: &[Record]) -> Vec<Figure> {
    let rows = of_one_thread(records);
    let asked: Vec<&Record> = rows.into_iter().filter(|row| row.operation.starts_with("contains")).collect();
    let label = |row: &Record| {
        let keys = if row.operation.ends_with("hit") { "present" } else { "absent" };
        Some(format!("{}, {keys}", row.name()))
    };
    let point = |row: &Record| Some((row.bits_per_item?, row.items_per_second?));
    vec![Figure::new(
        "filters-choice",
        "Space and speed at equal rates of false positives, one CPU thread",
        "Lookups of present and of absent keys over the memory per key. Each series has a point per rate of false positives, 1 % \
         and 0.01 %, from left to right; quotient filters have their slots filled to 0.9.",
        (BITS, SPEED),
        series(&asked, label, point, Style::Measured),
    )]
}

/// Returns the table; without lines if there are no rows.
pub fn tables(records: &[Record]) -> Vec<Grid> {
    let rows = of_one_thread(records);
    let line = |row: &Record| Some((row.number("rate")?, row.name()));
    let lines = groups(&rows, line).into_iter().map(|(rate, name)| {
        let mine = || rows.iter().filter(|row| row.number("rate") == Some(rate) && row.name() == name);
        let speed = |operation: &str| {
            let of = mine().find(|row| row.operation == operation).and_then(|row| row.items_per_second);
            of.map_or_else(String::new, short_rate)
        };
        let any = |value: fn(&Record) -> Option<f64>, show: fn(f64) -> String| {
            mine().find_map(|row| value(row)).map_or_else(String::new, show)
        };
        let measured = any(|row| row.fpr, |fpr| format!("{:.4} %", 100.0 * fpr));
        let bits = any(|row| row.bits_per_item, |bits| format!("{bits:.1}"));
        let speeds = ["contains hit", "contains miss", "build", "insert", "remove"].map(speed);
        let mut cells = vec![format!("{} %", 100.0 * rate), name.clone(), bits, measured];
        cells.extend(speeds.into_iter().chain(abilities(&name).map(String::from)));
        cells
    });
    let grid = Grid {
        name: "filters-choice-table",
        title: "Which filter to take when".into(),
        caption: "The same keys at the same rate of false positives, keys per second on one CPU thread; a batch of inserted or \
            removed keys is a sixty-fourth of those that are there."
            .into(),
        header: [
            "rate asked for", "filter", "bits per key", "rate measured", "present", "absent", "built", "inserted", "removed",
            "removes", "counts", "merges",
        ]
        .map(String::from)
        .into(),
        rows: lines.collect(),
    };
    [grid].into_iter().filter(|grid| !grid.rows.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_per_filter_and_rate_and_two_series_per_filter() {
        assert!(tables(&[]).is_empty() && figures(&[])[0].chart.is_empty());
        let row = |operation: &str, variant: &str, rate: f64| {
            let row = Record::new("quotient", operation, 1000).time(0.001).by(variant.to_owned(), false);
            let mut row = row.param("study", STUDY).param("rate", rate).param("threads", 1);
            (row.bits_per_item, row.fpr) = (Some(10.0), Some(rate));
            row
        };
        let mut rows = Vec::new();
        for rate in [0.01, 0.0001] {
            for operation in ["contains hit", "contains miss", "insert", "remove"] {
                rows.push(row(operation, "standard quotient", rate));
                if operation != "remove" {
                    rows.push(row(operation, "split-block Bloom", rate));
                }
            }
        }
        rows.push(row("insert", "split-block Bloom", 0.01).param("threads", 2));
        let table = tables(&rows).remove(0);
        assert_eq!(table.rows.len(), 4);
        assert_eq!(table.rows[0][..4], ["1 %", "standard quotient", "10.0", "1.0000 %"]);
        assert_eq!((table.rows[0][8].is_empty(), table.rows[0][9].as_str()), (false, "yes"));
        assert_eq!((table.rows[1][8].is_empty(), table.rows[1][9].as_str()), (true, "no"));
        assert!(table.rows.iter().all(|row| row.len() == table.header.len()));
        let series = &figures(&rows)[0].chart.series;
        assert_eq!(series.iter().map(|series| series.points.len()).collect::<Vec<_>>(), [2, 2, 2, 2]);
    }
}

//! The figure that compares the ways to scan by an operator that is not associative.

use super::Figure;
use super::chart::{Axis, Scale, Style, short_rate};
use super::rows::series;
use bench_record::Record;

/// Returns every figure; those without rows are empty.
pub fn figures(records: &[Record]) -> Vec<Figure> {
    let rows: Vec<&Record> = records
        .iter()
        .filter(|row| row.structure == "primitives" && row.operation == "non-associative scan" && row.backend == "cuda")
        .collect();
    // The longest input that was measured: there, launches do not count.
    let n = rows.iter().map(|row| row.n).max().unwrap_or(0);
    let rows: Vec<&Record> = rows.into_iter().filter(|row| row.n == n).collect();
    let device = rows.first().map_or("", |row| row.device.as_str());
    let method = |row: &Record| row.text("method").map(str::to_owned);
    let point = |row: &Record| Some((row.number("fill")?, row.items_per_second?));
    vec![Figure::new(
        "non-associative-scan",
        format!("Slots of {} items of a quotient filter", power(n)),
        format!(
            "Scans by max(prev + 1, x) on {device}: the slots of {n} items of a quotient filter, by the filter's fill. The \
             fuller it is, the rarer a chain of dependencies breaks."
        ),
        (
            Axis { label: "fill", scale: Scale::Linear, show: |fill| format!("{}", (fill * 100.0).round() / 100.0) },
            Axis { label: "items per second", scale: Scale::Log10, show: short_rate },
        ),
        series(&rows, method, point, Style::Measured),
    )]
}

fn power(n: u64) -> String {
    if n.is_power_of_two() { format!("2^{}", n.ilog2()) } else { n.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_input_becomes_a_series_a_method() {
        let row = |n: usize, method: &str, fill: f64| {
            let row = Record::new("primitives", "non-associative scan", n).param("method", method).param("fill", fill);
            let mut row = row.time(0.5);
            row.backend = "cuda".into();
            row
        };
        let rows =
            [row(4, "lifted", 0.1), row(8, "lifted", 0.1), row(8, "lifted", 0.5), row(8, "segmented layouts", 0.1)];
        let figures = figures(&rows);
        let chart = &figures[0].chart;
        assert_eq!(chart.title, "Slots of 2^3 items of a quotient filter");
        assert_eq!(chart.series.len(), 2);
        assert_eq!(chart.series[0].points, [(0.1, 16.0), (0.5, 16.0)]);
        assert!(super::figures(&[]).iter().all(|figure| figure.chart.is_empty()));
    }
}

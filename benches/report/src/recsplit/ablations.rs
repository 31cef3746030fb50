//! Figures 6.13, 6.14 and 6.19 of the thesis, and space against time of builds on a GPU.
//!
//! Figures 6.16 and 6.17 compare the thesis's kernels with forms of them that we have no kernels of: a line of the
//! table says so.

use super::device::STUDY;
use super::{BITS, BUILD, LEAF, QUERY, front, nanoseconds};
use crate::Figure;
use crate::chart::{Axis, Scale, Series, Style};
use crate::rows::{groups, study};
use bench_record::Record;

const RATIO: Axis = Axis { label: "times as fast", scale: Scale::FromLeast, show: |ratio| format!("{ratio:.2}") };
/// Suffix of the method in rows with the 64-bit finaliser.
const BITS_64: &str = ", 64-bit remix";
/// Functions of fewer keys say little of time and space.
const ENOUGH: f64 = 10_000.0;

type Shape = (f64, f64);

fn shape(row: &Record) -> Option<Shape> {
    Some((row.number("leaf")?, row.number("bucket")?))
}

/// Returns the figures; those without rows are empty.
pub fn figures(rows: &[&Record]) -> Vec<Figure> {
    vec![remixed_queries(rows), remix_front(rows), several_devices(rows), device_front(rows)]
}

fn remixed_queries(rows: &[&Record]) -> Figure {
    let queries: Vec<&Record> =
        rows.iter().copied().filter(|row| row.operation == "query" && row.number("keys") >= Some(ENOUGH)).collect();
    let mut all = Vec::new();
    for (colour, bucket) in groups(&queries, |row| row.number("bucket")).into_iter().enumerate() {
        for (method, style) in [("brute force", Style::Limit), ("rotation", Style::Measured)] {
            let point = |row: &&Record| {
                let name = row.text("variant")?.strip_suffix(BITS_64)?;
                let same = |other: &&&Record| {
                    let of = |row: &Record| (shape(row), row.number("keys"), row.params.get("study").cloned());
                    other.text("variant") == Some(name) && of(other) == of(row)
                };
                let is_it = name.starts_with(method) && row.number("bucket") == Some(bucket);
                is_it.then_some((row.number("leaf")?, nanoseconds(row)? / nanoseconds(queries.iter().find(same)?)?))
            };
            let points: Vec<(f64, f64)> = queries.iter().filter_map(point).collect();
            if !points.is_empty() {
                all.push(Series { name: format!("bucket {bucket}, {method}"), points, style, colour });
            }
        }
    }
    Figure::new(
        "recsplit-remix-queries",
        "Queries by finaliser",
        "Figure 6.13 of the thesis: queries of functions with the 32-bit finaliser, times as fast as with the 64-bit one; one thread of the \
         host. The thesis's text says about 0.97; its points are drawn only.",
        (LEAF, RATIO),
        all,
    )
}

fn remix_front(rows: &[&Record]) -> Figure {
    let rows = study(rows, STUDY);
    let names = ["brute force", "rotation"].map(|method| [method.to_owned(), format!("{method}{BITS_64}")]);
    let series = names.concat().into_iter().enumerate().map(|(colour, name)| {
        let of = |operation: &'static str| {
            let name = name.clone();
            rows.iter().filter(move |row| row.operation == operation && row.text("variant") == Some(&name))
        };
        let point = |build: &&Record| {
            let query = of("query").find(|row| shape(row) == shape(build))?;
            Some((nanoseconds(query)?, nanoseconds(build)?))
        };
        let builds = of("build").filter(|row| row.backend != "cpu" && row.n as f64 >= ENOUGH);
        let points: Vec<(f64, f64)> = builds.filter_map(point).collect();
        Series { name, points: front(&points), style: Style::Measured, colour }
    });
    Figure::new(
        "recsplit-remix-front",
        "Construction and queries by finaliser",
        "Figure 6.14 of the thesis: for each finaliser the shapes that no other shape beats in both, built on a GPU, asked by one thread of \
         the host. The thesis's text says that neither finaliser is better everywhere; its points are drawn only.",
        (Axis { scale: Scale::Log10, ..QUERY }, BUILD),
        series.collect(),
    )
}

fn several_devices(rows: &[&Record]) -> Figure {
    let rows = study(rows, "several devices");
    let label = |row: &Record| {
        let (leaf, bucket) = shape(row)?;
        Some(format!("{}, leaf {leaf}, bucket {bucket}", row.operation.strip_prefix("build ")?))
    };
    let series = groups(&rows, label).into_iter().enumerate().map(|(colour, name)| {
        let point = |row: &&Record| {
            let devices = row.number("devices")?;
            Some((devices, devices * row.number("of_linear")?))
        };
        let of_name = rows.iter().filter(|row| label(row).as_ref() == Some(&name));
        Series { points: of_name.filter_map(point).collect(), name, style: Style::Measured, colour }
    });
    Figure::new(
        "recsplit-several-devices",
        "Construction on several GPUs",
        "After figure 6.19 of the thesis: construction on several GPUs, times as fast as on one. The thesis has four Tesla V100 and its points in a \
         drawing only; its text says above 1 for very large leaves or inputs alone.",
        (Axis { label: "GPUs", scale: Scale::FromLeast, show: |n| format!("{n:.0}") }, RATIO),
        series.collect(),
    )
}

fn device_front(rows: &[&Record]) -> Figure {
    let rows = study(rows, STUDY);
    let is_taken = |row: &&&Record| {
        row.operation == "build"
            && row.backend != "cpu"
            && row.n as f64 >= ENOUGH
            && row.number("work_queues").is_none()
            && row.text("variant").is_some_and(|name| !name.contains("remix"))
    };
    let builds: Vec<&Record> = rows.iter().filter(is_taken).copied().collect();
    let label = |row: &Record| row.text("variant").map(str::to_owned);
    let series = groups(&builds, label).into_iter().enumerate().map(|(colour, name)| {
        let of_name = builds.iter().filter(|row| label(row).as_ref() == Some(&name));
        let points: Vec<_> = of_name.filter_map(|row| Some((row.bits_per_item?, nanoseconds(row)?))).collect();
        Series { name, points: front(&points), style: Style::Measured, colour }
    });
    Figure::new(
        "recsplit-device-front",
        "Construction on a GPU and space",
        "After figure 6.25 of the thesis: for each method the shapes that no other shape beats in both, built on a GPU from keys in its memory. \
         The number of keys is a million, or as many as the time limit allows.",
        (BITS, BUILD),
        series.collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(operation: &str, backend: &str, variant: &str, seconds: f64) -> Record {
        let row = Record::new("recsplit", operation, 100_000).param("study", STUDY).param("variant", variant);
        let mut row = row.param("leaf", 8).param("bucket", 50).param("keys", 100_000).time(seconds);
        (row.backend, row.bits_per_item) = (backend.into(), Some(1.8));
        row
    }

    #[test]
    fn finalisers_are_compared_at_the_same_shape() {
        let rows = [
            row("query", "cpu", "rotation", 0.02),
            row("query", "cpu", "rotation, 64-bit remix", 0.01),
            row("build", "cuda", "rotation", 0.001),
            row("build", "cuda", "rotation, 64-bit remix", 0.002),
        ];
        let figures = figures(&rows.iter().collect::<Vec<_>>());
        let of = |name: &str| &figures.iter().find(|figure| figure.name == name).unwrap().chart.series;
        assert_eq!(of("recsplit-remix-queries")[0].points, [(8.0, 0.5)]);
        let points: Vec<usize> = of("recsplit-remix-front").iter().map(|series| series.points.len()).collect();
        assert_eq!(points, [0, 0, 1, 1]);
        assert_eq!(of("recsplit-device-front").len(), 1);
        assert!(super::figures(&[]).iter().all(|figure| figure.chart.is_empty()));
    }

    #[test]
    fn several_devices_are_times_as_fast() {
        let mut row = Record::new("recsplit", "build from device keys", 100).param("study", "several devices");
        row = row.param("leaf", 8).param("bucket", 100).param("devices", 2).param("of_linear", 0.9);
        assert_eq!(several_devices(&[&row]).chart.series[0].points, [(2.0, 1.8)]);
    }
}

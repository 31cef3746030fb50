//! The figures and tables of chapter 6 of the thesis, drawn from our measurements.

mod ablations;
mod device;
mod spaces;
mod thesis;

use super::Figure;
use super::chart::{Axis, Scale, Series, Style, short_rate};
use super::page::Grid;
use super::rows::{groups, series, study};
use bench_record::Record;

const LEAF: Axis = Axis { label: "leaf size", scale: Scale::FromLeast, show: |leaf| format!("{leaf:.0}") };
const BUILD: Axis = Axis { label: "nanoseconds to build each key", scale: Scale::Log10, show: short_rate };
const QUERY: Axis = Axis { label: "nanoseconds for a query", scale: Scale::Linear, show: |time| format!("{time:.0}") };
const BITS: Axis = Axis { label: "bits per key", scale: Scale::FromLeast, show: |bits| format!("{bits:.2}") };

/// Functions of fewer keys say nothing of space: their fixed parts count.
const LARGE: u64 = 100_000;

/// Returns every figure; those without rows are empty.
pub fn figures(records: &[Record]) -> Vec<Figure> {
    let rows: Vec<&Record> = records.iter().filter(|row| row.structure == "recsplit").collect();
    let leaf_sizes = study(&rows, "leaf sizes");
    let mut figures: Vec<Figure> = [
        (5.0, "recsplit-build-bucket-5"),
        (50.0, "recsplit-build-bucket-50"),
        (500.0, "recsplit-build-bucket-500"),
        (2000.0, "recsplit-build-bucket-2000"),
    ]
    .map(|(bucket, name)| build_over_leaf(&leaf_sizes, bucket, name))
    .into();
    figures.extend([space_over_leaf(&leaf_sizes), query_over_leaf(&leaf_sizes)]);
    // Variants do other work than the rest; what has no vectors is not worth taking.
    let taken = |row: &&Record| {
        row.text("study") != Some("variants")
            && row.backend == "cpu"
            && !row.text("variant").is_some_and(|name| name.contains("sequential"))
    };
    let choices: Vec<&Record> = rows.iter().copied().filter(taken).collect();
    figures.extend(fronts(&choices));
    figures.push(spaces::figure(&rows));
    figures.extend(device::figures(&rows));
    figures.extend(ablations::figures(&rows));
    figures
}

/// Returns every table with rows.
pub fn tables(records: &[Record]) -> Vec<Grid> {
    let rows: Vec<&Record> = records.iter().filter(|row| row.structure == "recsplit").collect();
    let tables = [speed_ups(&rows), device::beside_the_thesis(&rows), spaces::crossings(&rows), comparison(&rows)];
    tables.into_iter().filter(|grid| !grid.rows.is_empty()).collect()
}

/// Returns the method or crate; the threads if there are several.
fn label(row: &Record) -> Option<String> {
    let name = row.text("variant").or(row.implementation())?;
    Some(match row.number("threads") {
        Some(threads) if threads > 1.0 => format!("{name}, {threads} threads"),
        _ => name.to_owned(),
    })
}

fn nanoseconds(row: &Record) -> Option<f64> {
    Some(1e9 / row.items_per_second?)
}

fn build_over_leaf(rows: &[&Record], bucket: f64, name: &'static str) -> Figure {
    let rows: Vec<&Record> =
        rows.iter().copied().filter(|row| row.operation == "build" && row.number("bucket") == Some(bucket)).collect();
    let point = |row: &Record| Some((row.number("leaf")?, nanoseconds(row)?));
    Figure::new(
        name,
        format!("Construction, bucket size {bucket}"),
        format!(
            "Figure 6.20 of the thesis for bucket size {bucket}: construction time over the leaf size. \"Sequential\" is \
             without vectors. Each point has as many keys as its time limit allows, up to a million."
        ),
        (LEAF, BUILD),
        series(&rows, label, point, Style::Measured),
    )
}

/// Makes one series per bucket size and kind; the bucket size has the colour, the kind the style.
fn by_bucket(
    rows: &[&Record],
    kinds: &[(&str, Style)],
    kind: impl Fn(&Record) -> Option<&str>,
    point: impl Fn(&Record) -> Option<(f64, f64)>,
) -> Vec<Series> {
    let mut all = Vec::new();
    for (colour, bucket) in groups(rows, |row| row.number("bucket")).into_iter().enumerate() {
        for &(name, style) in kinds {
            let here = |row: &&&Record| row.number("bucket") == Some(bucket) && kind(row) == Some(name);
            let points: Vec<_> = rows.iter().filter(here).filter_map(|row| point(row)).collect();
            if !points.is_empty() {
                all.push(Series { name: format!("bucket {bucket}, {name}"), points, style, colour });
            }
        }
    }
    all
}

fn space_over_leaf(rows: &[&Record]) -> Figure {
    let rows: Vec<&Record> = rows
        .iter()
        .copied()
        .filter(|row| row.operation == "build" && row.number("threads") == Some(1.0) && row.n >= LARGE)
        .collect();
    let kinds = [("brute force", Style::Theory), ("rotation", Style::Limit), ("grouped", Style::Measured)];
    let point = |row: &Record| Some((row.number("leaf")?, row.bits_per_item?));
    Figure::new(
        "recsplit-space",
        "Space over the leaf size",
        "Figure 6.22 of the thesis: space over the leaf size, of functions of 100,000 keys or more. The bound is 1.4427 \
         bits per key.",
        (LEAF, BITS),
        by_bucket(&rows, &kinds, |row| row.text("variant"), point),
    )
}

fn query_over_leaf(rows: &[&Record]) -> Figure {
    let rows: Vec<&Record> = rows
        .iter()
        .copied()
        .filter(|row| row.text("variant") == Some("grouped") && row.number("keys") >= Some(LARGE as f64))
        .collect();
    let kinds = [("query", Style::Measured), ("query batch", Style::Limit)];
    let point = |row: &Record| Some((row.number("leaf")?, nanoseconds(row)?));
    Figure::new(
        "recsplit-query",
        "Queries over the leaf size",
        "Figure 6.23 of the thesis: query time over the leaf size on one thread, keys asked for one by one and in batches.",
        (LEAF, QUERY),
        by_bucket(&rows, &kinds, |row| Some(row.operation.as_str()), point),
    )
}

/// Cost of one function on one thread.
struct Cost {
    label: String,
    peer: bool,
    bits: f64,
    build: f64,
    query: f64,
}

/// Returns the costs of the functions of generated keys that are large enough.
fn costs(rows: &[&Record]) -> Vec<Cost> {
    let builds = rows.iter().filter(|row| {
        row.operation == "build"
            && row.number("threads") == Some(1.0)
            && row.text("input") == Some("generated")
            && (LARGE..=1_000_000).contains(&row.n)
    });
    builds.filter_map(|build| cost(rows, build)).collect()
}

fn cost(rows: &[&Record], build: &Record) -> Option<Cost> {
    Some(Cost {
        label: label(build)?,
        peer: build.implementation().is_some(),
        bits: build.bits_per_item?,
        build: nanoseconds(build)?,
        query: query_of(rows, build, "query")?,
    })
}

/// Returns the nanoseconds per query of the function that `build` built.
fn query_of(rows: &[&Record], build: &Record, operation: &str) -> Option<f64> {
    let names = ["variant", "implementation", "leaf", "bucket", "overhead", "input", "study"];
    let found = rows.iter().find(|row| {
        row.operation == operation
            && row.number("keys") == Some(build.n as f64)
            && names.iter().all(|name| row.params.get(*name) == build.params.get(*name))
    });
    nanoseconds(found?)
}

/// Returns the points that no other point beats in both coordinates.
fn front(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let beaten = |(x, y): (f64, f64)| points.iter().any(|&(a, b)| a <= x && b <= y && (a < x || b < y));
    points.iter().copied().filter(|&point| !beaten(point)).collect()
}

fn fronts(rows: &[&Record]) -> Vec<Figure> {
    let costs = costs(rows);
    let mut labels: Vec<(&str, bool)> = Vec::new();
    for cost in &costs {
        if !labels.contains(&(&cost.label, cost.peer)) {
            labels.push((&cost.label, cost.peer));
        }
    }
    type Coordinate = fn(&Cost) -> f64;
    let (bits, build, query): (Coordinate, Coordinate, Coordinate) =
        (|cost| cost.bits, |cost| cost.build, |cost| cost.query);
    let log_query = Axis { scale: Scale::Log10, ..QUERY };
    [
        ("recsplit-front-build-space", "6.25", "Construction and space", (bits, BITS), (build, BUILD)),
        ("recsplit-front-build-query", "6.26", "Construction and queries", (query, log_query), (build, BUILD)),
        ("recsplit-front-query-space", "6.27", "Queries and space", (bits, BITS), (query, log_query)),
    ]
    .map(|(name, figure, title, (x, x_axis), (y, y_axis))| {
        let one = |(colour, &(label, peer)): (usize, &(&str, bool))| {
            let of_label = costs.iter().filter(|cost| cost.label == label);
            let points: Vec<(f64, f64)> = of_label.map(|cost| (x(cost), y(cost))).collect();
            let style = if peer { Style::Peer } else { Style::Measured };
            Series { name: label.into(), points: front(&points), style, colour }
        };
        let caption = format!(
            "Figure {figure} of the thesis: for each method the shapes that no other shape beats in both, one thread, \
             100,000 to a million generated keys. Hollow: other crates."
        );
        Figure::new(name, title, caption, (x_axis, y_axis), labels.iter().enumerate().map(one).collect())
    })
    .into()
}

/// Makes Table 6.1: the best speed-ups over the sequential brute force.
fn speed_ups(rows: &[&Record]) -> Grid {
    let builds: Vec<&Record> = study(rows, "leaf sizes").into_iter().filter(|row| row.operation == "build").collect();
    let original = "brute force, sequential";
    let shape = |row: &Record| Some((row.number("leaf")?, row.number("bucket")?));
    let speed_up = |row: &Record| {
        let base = builds.iter().find(|base| label(base).as_deref() == Some(original) && shape(base) == shape(row))?;
        Some(nanoseconds(base)? / nanoseconds(row)?)
    };
    let mut lines = Vec::new();
    for name in groups(&builds, label).into_iter().filter(|name| name != original) {
        let of_name = builds.iter().filter(|row| label(row).as_ref() == Some(&name));
        let best = of_name.filter_map(|row| Some((speed_up(row)?, shape(row)?))).max_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((speed_up, (leaf, bucket))) = best {
            lines.push(vec![name, format!("{speed_up:.1}"), bucket.to_string(), leaf.to_string()]);
        }
    }
    lines.extend(device::greatest(rows));
    if !lines.is_empty() {
        let of_thesis = |point: thesis::Point| {
            let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
            let name = format!("thesis, {}", point.implementation);
            vec![name, number(point.value), number(point.bucket), number(point.leaf)]
        };
        lines.extend(thesis::speed_ups().map(of_thesis));
    }
    Grid {
        name: "recsplit-table-6-1",
        title: "Greatest speed-up over sequential brute force".into(),
        caption: "Table 6.1 of the thesis, among the shapes for which the sequential brute force was measured too. The thesis's own lines are over the \
            original implementation, on an Intel Core i7-11700 and an Nvidia RTX 3090."
            .into(),
        header: ["method", "speed-up", "bucket size", "leaf size"].map(String::from).into(),
        rows: lines,
    }
}

/// Makes Table 6.2: the functions side by side, the smallest last.
fn comparison(rows: &[&Record]) -> Grid {
    let mut lines: Vec<(&Record, Vec<String>)> = Vec::new();
    for build in rows
        .iter()
        .filter(|row| row.operation == "build" && row.number("threads") == Some(1.0) && row.text("study").is_none())
    {
        let on_all = rows.iter().find(|row| {
            let others = |name: &&String| name.as_str() != "threads";
            row.operation == "build"
                && row.n == build.n
                && row.number("threads") > Some(1.0)
                && build.params.keys().filter(others).all(|name| row.params.get(name) == build.params.get(name))
        });
        let show =
            |value: Option<f64>, digits: usize| value.map_or_else(String::new, |value| format!("{value:.digits$}"));
        let name = match (build.number("leaf"), build.number("bucket")) {
            (Some(leaf), Some(bucket)) => format!("{}, leaf {leaf}, bucket {bucket}", label(build).unwrap_or_default()),
            _ => label(build).unwrap_or_default(),
        };
        let line = vec![
            name,
            build.text("input").unwrap_or_default().into(),
            indicatif::HumanCount(build.n).to_string(),
            show(nanoseconds(build), 0),
            show(on_all.and_then(|row| nanoseconds(row)), 0),
            show(build.bits_per_item, 3),
            show(query_of(rows, build, "query"), 1),
            show(query_of(rows, build, "query batch"), 1),
        ];
        lines.push((build, line));
    }
    let place = |row: &Record| (row.text("input").map(str::to_owned), row.n, row.bits_per_item.map(|bits| -bits));
    lines.sort_by(|a, b| place(a.0).partial_cmp(&place(b.0)).unwrap_or(std::cmp::Ordering::Equal));
    Grid {
        name: "recsplit-table-6-2",
        title: "Minimal perfect hash functions side by side".into(),
        caption:
            "After table 6.2 of the thesis: nanoseconds to build each key on one thread and on all, bits per key, \
            nanoseconds for a query on one thread, one by one and in batches."
                .into(),
        header: ["function", "input", "keys", "build", "all threads", "bits", "query", "batch"]
            .map(String::from)
            .into(),
        rows: lines.into_iter().map(|(_, line)| line).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(operation: &str, variant: &str, leaf: u32, seconds: f64) -> Record {
        let row = Record::new("recsplit", operation, 100_000).param("variant", variant).param("leaf", leaf);
        let mut row = row.param("bucket", 50).param("input", "generated").param("threads", 1).time(seconds);
        row.bits_per_item = Some(2.0 - f64::from(leaf) / 100.0);
        row.param("study", "leaf sizes")
    }

    #[test]
    fn speed_ups_are_over_the_same_shape() {
        let rows = [
            row("build", "brute force, sequential", 5, 2.0),
            row("build", "grouped", 5, 0.5),
            row("build", "grouped", 8, 0.001),
        ];
        assert_eq!(tables(&rows)[0].rows[0], ["grouped", "4.0", "50", "5"]);
        assert!(tables(&rows)[0].rows.iter().any(|line| line[..] == ["thesis, gpuRot", "1873", "50", "17"]));
    }

    #[test]
    fn fronts_leave_out_what_is_beaten() {
        assert_eq!(front(&[(1.0, 5.0), (2.0, 3.0), (3.0, 3.0), (4.0, 1.0)]), [(1.0, 5.0), (2.0, 3.0), (4.0, 1.0)]);
        let query = |leaf, seconds| row("query", "grouped", leaf, seconds).param("keys", 100_000);
        let rows = [row("build", "grouped", 5, 1.0), query(5, 0.1), row("build", "grouped", 8, 0.5), query(8, 0.1)];
        let figures = figures(&rows);
        let points = |name: &str| {
            let figure = figures.iter().find(|figure| figure.name == name).unwrap();
            figure.chart.series.iter().map(|series| series.points.len()).collect::<Vec<_>>()
        };
        assert_eq!((points("recsplit-front-build-space"), points("recsplit-build-bucket-50")), (vec![1], vec![2]));
        assert_eq!(points("recsplit-query"), [2]);
    }
}

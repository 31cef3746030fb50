//! Figures and tables of Rao's Bloom filter paper, and of the other filters.

use super::Figure;
use super::chart::{Axis, Scale, Series, Style, short_percent, short_rate};
use super::page::Grid;
use super::rows::{self, groups, series, study};
use bench_record::Record;
use bench_record::show::bytes;

const FPR: Axis = Axis { label: "false-positive rate", scale: Scale::Log10, show: short_percent };
const FILTER_SIZE: Axis = Axis { label: "filter size", scale: Scale::Log2, show: bytes };
const ITEMS_PER_SECOND: Axis = Axis { label: "keys per second", scale: Scale::Log10, show: short_rate };

/// Returns every figure; those without rows are empty.
pub fn figures(records: &[Record]) -> Vec<Figure> {
    let rows: Vec<&Record> = records.iter().filter(|row| row.structure == "bloom").collect();
    let mut figures = vec![fpr_over_n(&rows), fpr_over_bits(&rows), build_by_key_size(&rows)];
    for (backend, threads, name, title) in [
        ("cpu", Some(1), ["bloom-insert-cpu-1", "bloom-contains-cpu-1"], "on one CPU thread"),
        ("cpu", None, ["bloom-insert-cpu-all", "bloom-contains-cpu-all"], "on all CPU threads"),
        ("cuda", None, ["bloom-insert-cuda", "bloom-contains-cuda"], "on the GPU"),
    ] {
        for (operation, name) in ["insert", "contains hit"].into_iter().zip(name) {
            figures.push(throughput(&rows, operation, backend, threads, name, title));
        }
    }
    figures
}

/// Returns every table with rows.
pub fn tables(records: &[Record]) -> Vec<Grid> {
    let rows: Vec<&Record> = records.iter().filter(|row| row.structure == "bloom").collect();
    [first_level_hashes(&rows), screens(&rows)].into_iter().filter(|grid| !grid.rows.is_empty()).collect()
}

fn fpr_over_n(rows: &[&Record]) -> Figure {
    let rows = study(rows, "fpr over n");
    let filter = |row: &Record| row.number("filter_bytes").map(|m| format!("m = {}", bytes(m)));
    let theory = |row: &Record| Some((row.n as f64, row.number("theory")?));
    let mut all = series(&rows, filter, theory, Style::Theory);
    all.iter_mut().for_each(|series| series.name.clear());
    all.extend(series(&rows, filter, |row| Some((row.n as f64, row.fpr?)), Style::Points));
    Figure::new(
        "bloom-fpr-over-n",
        "False-positive rate over the number of keys",
        "Rao's Figure 1: the false-positive rate over the number of keys n for several filter sizes m. Lines are theory, \
         points are measured with keys that were never inserted.",
        (Axis { label: "keys n", scale: Scale::Log10, show: short_rate }, FPR),
        all,
    )
}

fn fpr_over_bits(rows: &[&Record]) -> Figure {
    let rows = study(rows, "fpr over bits");
    let mut all = series(
        &rows,
        |row| Some(row.text("variant").or(row.implementation())?.to_owned()),
        |row| Some((row.bits_per_item?, row.fpr?)),
        Style::Measured,
    );
    if !all.is_empty() {
        // An ideal filter with the best number of hashes: (1/2)^(ln 2 * bits per key).
        let points = (8..=32).map(|half| f64::from(half) * 0.75).map(|b| (b, 0.5f64.powf(b * std::f64::consts::LN_2)));
        all.push(Series {
            name: "plain Bloom, best k (theory)".into(),
            points: points.collect(),
            style: Style::Limit,
            colour: 6,
        });
    }
    Figure::new(
        "bloom-fpr-over-bits",
        "False-positive rate over bits per key",
        "What each variant gives for its memory: measured false-positive rate over bits per key. Blocks cost precision and \
         save memory transactions.",
        (Axis { label: "bits per key", scale: Scale::Linear, show: |bits| format!("{bits:.0}") }, FPR),
        all,
    )
}

fn build_by_key_size(rows: &[&Record]) -> Figure {
    let rows: Vec<&Record> =
        study(rows, "key size").into_iter().filter(|row| row.text("variant") != Some("Rao, two choices")).collect();
    let part =
        |part: &str| -> Vec<&Record> { rows.iter().copied().filter(|row| row.text("part") == Some(part)).collect() };
    let name = |row: &Record| {
        let on = if row.backend == "cpu" { "one CPU thread" } else { "GPU" };
        Some(format!("{}, {on}", row.text("variant").or(row.implementation())?))
    };
    let point = |row: &Record| Some((row.number("key_bytes")?, row.seconds? / row.n as f64 * 1e9));
    let mut all = series(&part("whole build"), name, point, Style::Measured);
    // Integers are points in the colour of the strings.
    for mut integers in series(&part("integers"), name, point, Style::Points) {
        if let Some(strings) = all.iter().find(|strings| strings.name == integers.name) {
            integers.colour = strings.colour;
            integers.name.clear();
        }
        all.push(integers);
    }
    Figure::new(
        "bloom-build-by-key-size",
        "Build time by key size",
        "After Rao's Figure 7: the time per key to build a filter for 1 %, over the length of the keys. Lines are random \
         strings, points integers of 4 and 8 bytes. Keys are in the memory of the processor that builds.",
        (
            Axis { label: "bytes per key", scale: Scale::Log2, show: |bytes| format!("{bytes:.0}") },
            Axis { label: "nanoseconds per key", scale: Scale::Log10, show: short_rate },
        ),
        all,
    )
}

fn throughput(
    rows: &[&Record],
    operation: &str,
    backend: &str,
    threads: Option<u64>,
    name: &'static str,
    title: &str,
) -> Figure {
    let most = rows.iter().filter_map(|row| row.number("threads")).fold(0.0, f64::max);
    let wanted = threads.map_or(most, |threads| threads as f64);
    let mut rows: Vec<&Record> = rows
        .iter()
        .copied()
        .filter(|row| {
            row.operation == operation
                && row.backend == backend
                && row.text("input") == Some("generated")
                && row.text("key") == Some("u64")
                && row.text("study").is_none()
                && row.number("threads").is_none_or(|threads| threads == wanted)
        })
        .collect();
    rows.sort_by_key(|row| row.implementation().is_some());
    let label = |row: &Record| row.text("variant").or(row.implementation()).map(str::to_owned);
    let point = |row: &Record| Some((row.number("filter_bytes")?, row.items_per_second?));
    let mut all = series(&rows, label, point, Style::Measured);
    let limits: Vec<(f64, f64)> = rows
        .iter()
        .filter_map(|row| Some((row.number("filter_bytes")?, row.items_per_second? / row.limit_fraction?)))
        .fold(Vec::new(), |mut limits, (size, limit)| {
            if !limits.iter().any(|(known, _)| *known == size) {
                limits.push((size, limit));
            }
            limits
        });
    if !limits.is_empty() {
        all.push(Series { name: "limit: bare memory access".into(), points: limits, style: Style::Limit, colour: 6 });
    }
    let what = if operation == "insert" { "Insert" } else { "Contains" };
    let of = if operation == "insert" { "into an empty filter" } else { "all of them in the filter" };
    let caption = format!(
        "{what} {title}: u64 keys, {of}. The dashed line is what the same memory accesses without any hashing reached in \
         the same run."
    );
    Figure::new(name, format!("{what} {title}"), caption, (FILTER_SIZE, ITEMS_PER_SECOND), all)
}

/// Makes Table 1: iterations until the buckets hold.
fn first_level_hashes(rows: &[&Record]) -> Grid {
    let rows: Vec<&Record> = rows
        .iter()
        .copied()
        .filter(|row| row.operation == "first-level hash" && row.text("of") != Some("batches"))
        .collect();
    let loads = groups(&rows, |row| row.number("load"));
    let name = |row: &Record| Some((row.text("hash")?.to_owned(), row.number("choices")? as u32));
    let cell = |hash: &(String, u32), load: f64| {
        let row = rows.iter().find(|row| name(row).as_ref() == Some(hash) && row.number("load") == Some(load));
        row.map_or_else(String::new, |row| row.number("iterations").map_or("++".into(), |n| format!("{n:.0}")))
    };
    Grid {
        name: "bloom-table-1",
        title: "First-level hashes: restarts until no bucket overflows".into(),
        caption: "Rao's Table 1 on our strings: how often the first-level hash had to be replaced until every bucket \
            held its keys, by load; the median of several key sets. A restart mixes the first-level hash again, where \
            the paper takes another function, so a hash that fails at first (PJW, ELF, BP, as there) converges after it. \
            ++: given up."
            .into(),
        header: ["hash".into(), "choices".into()]
            .into_iter()
            .chain(loads.iter().map(|load| format!("{:.0} %", load * 100.0)))
            .collect(),
        rows: groups(&rows, name)
            .iter()
            .map(|hash| {
                let cells = loads.iter().map(|&load| cell(hash, load));
                [hash.0.clone(), hash.1.to_string()].into_iter().chain(cells).collect()
            })
            .chain(of_paper(&loads))
            .collect(),
    }
}

/// The paper's Table 1, on page 3: restarts at loads of 80, 85, 90 and 95 %.
const PAPER: [(&str, [&str; 4]); 11] = [
    ("RS", ["0", "1", "6", "++"]),
    ("JS", ["0", "0", "20", "++"]),
    ("PJW", ["++", "++", "++", "++"]),
    ("ELF", ["++", "++", "++", "++"]),
    ("BKDR", ["0", "0", "1", "++"]),
    ("SDBM", ["0", "2", "14", "++"]),
    ("DJB", ["0", "0", "3", "++"]),
    ("DEK", ["0", "0", "18", "++"]),
    ("BP", ["++", "++", "++", "++"]),
    ("FNV", ["0", "1", "5", "++"]),
    ("AP", ["0", "26", "++", "++"]),
];

/// Returns the paper's lines for these loads, where there are lines of ours.
fn of_paper(loads: &[f64]) -> Vec<Vec<String>> {
    let cell = |cells: &[&str; 4], load: f64| {
        let place = [0.8, 0.85, 0.9, 0.95].iter().position(|known| (known - load).abs() < 1e-9);
        place.map_or_else(String::new, |place| cells[place].to_owned())
    };
    let line = |(hash, cells): &(&str, [&str; 4])| {
        let own = [format!("paper: {hash}"), "1".into()];
        own.into_iter().chain(loads.iter().map(|&load| cell(cells, load))).collect()
    };
    if loads.is_empty() { Vec::new() } else { PAPER.iter().map(line).collect() }
}

/// Makes the table of screens on real input: the answers of filters beside the truth.
fn screens(rows: &[&Record]) -> Grid {
    let caption = "Every key that is in the set is found; of the others a few are let through. The expected number is \
        what the filter's own formula promises.";
    rows::screens("bloom-screens", "Screens on real input", caption, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_series_and_limits() {
        let row = |size: u64, fraction: f64| {
            let row = Record::new("bloom", "insert", 1000).param("filter_bytes", size).param("variant", "split block");
            let mut row = row.param("input", "generated").param("key", "u64").param("threads", 1).time(0.001);
            row.limit_fraction = Some(fraction);
            row
        };
        let figures = figures(&[row(1024, 0.5), row(4096, 0.25)]);
        let figure = figures.iter().find(|figure| figure.name == "bloom-insert-cpu-1").unwrap();
        assert_eq!(figure.chart.series[0].points, [(1024.0, 1e6), (4096.0, 1e6)]);
        assert_eq!(figure.chart.series[1].points, [(1024.0, 2e6), (4096.0, 4e6)]);
        assert!(figures.iter().find(|figure| figure.name == "bloom-insert-cuda").unwrap().chart.is_empty());
    }

    #[test]
    fn builds_are_drawn_a_key_and_by_backend() {
        let row = |bytes: u32, part: &str| {
            let row = Record::new("bloom", "build", 1000).param("study", "key size").param("variant", "Rao");
            row.param("part", part).param("key_bytes", bytes).time(1e-5)
        };
        let mut on_device = row(16, "whole build");
        on_device.backend = "cuda".into();
        let figures = figures(&[row(4, "integers"), row(8, "integers"), row(16, "whole build"), on_device]);
        let figure = figures.iter().find(|figure| figure.name == "bloom-build-by-key-size").unwrap();
        let names: Vec<&str> = figure.chart.series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names, ["Rao, one CPU thread", "Rao, GPU", ""]);
        let integers = &figure.chart.series[2];
        assert_eq!((integers.points.len(), integers.colour), (2, figure.chart.series[0].colour));
        assert!((integers.points[0].1 - 10.0).abs() < 1e-9);
    }

    #[test]
    fn table_1_marks_what_did_not_converge() {
        let row = |hash: &str, load: f64, iterations: Option<u32>| {
            let row = Record::new("bloom", "first-level hash", 100)
                .param("hash", hash)
                .param("load", load)
                .param("choices", 1);
            iterations.map_or(row.clone(), |n| row.param("iterations", n))
        };
        let grids = tables(&[row("BKDR", 0.8, Some(0)), row("BKDR", 0.95, None), row("PJW", 0.8, None)]);
        assert_eq!(grids[0].rows[..2], [["BKDR", "1", "0", "++"], ["PJW", "1", "++", ""]]);
        assert!(grids[0].rows[2..].iter().any(|row| row[..] == ["paper: AP", "1", "0", "++"]));
    }
}

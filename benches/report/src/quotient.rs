//! Figures 8 to 13 and Table I of the quotient filters' paper, and the price of each form of the slots, drawn from our
//! measurements.

use super::Figure;
use super::chart::{Axis, Scale, Style, short_rate};
use super::page::Grid;
use super::rows::{self, groups, series, study};
use bench_record::Record;

const LOAD: Axis =
    Axis { label: "load", scale: Scale::Linear, show: |load| format!("{}", (load * 100.0).round() / 100.0) };
const BATCH: Axis = Axis { label: "keys in a batch", scale: Scale::Log10, show: short_rate };
const RATE: Axis = Axis { label: "keys per second", scale: Scale::Log10, show: short_rate };
const BYTES: Axis = Axis { label: "bytes per item", scale: Scale::FromLeast, show: |bytes| format!("{bytes:.1}") };

/// Place of measurement, with the names of its figures.
#[derive(Clone, Copy)]
struct Executor {
    backend: &'static str,
    /// One thread, or all.
    one_thread: bool,
    suffix: &'static str,
    title: &'static str,
}

const EXECUTORS: [Executor; 3] = [
    Executor { backend: "cpu", one_thread: true, suffix: "cpu-1", title: "one CPU thread" },
    Executor { backend: "cpu", one_thread: false, suffix: "cpu-all", title: "all CPU threads" },
    Executor { backend: "cuda", one_thread: false, suffix: "cuda", title: "the GPU" },
];

/// Returns every figure; those without rows are empty.
pub fn figures(records: &[Record]) -> Vec<Figure> {
    let rows: Vec<&Record> = records.iter().filter(|row| row.structure == "quotient").collect();
    let mut figures = Vec::new();
    for place in EXECUTORS {
        let rows = of_place(&rows, place);
        for bits in groups(&study(&rows, "lookup over fill"), |row| row.number("quotient_bits")) {
            let rows: Vec<&Record> =
                rows.iter().copied().filter(|row| row.number("quotient_bits") == Some(bits)).collect();
            figures.extend([
                over_load(&rows, place, bits, "lookup over fill", &["contains hit"]),
                over_load(&rows, place, bits, "update over fill", &["insert", "remove"]),
                over_load(&rows, place, bits, "build over fill", &["build"]),
                over_batch(&rows, place, bits, "lookup over batch"),
                over_batch(&rows, place, bits, "insert over batch"),
            ]);
        }
        figures.push(containers(&rows, place));
    }
    figures
}

/// Returns every table with rows.
pub fn tables(records: &[Record]) -> Vec<Grid> {
    let rows: Vec<&Record> = records.iter().filter(|row| row.structure == "quotient").collect();
    [memory(&rows), screens(&rows)].into_iter().filter(|grid| !grid.rows.is_empty()).collect()
}

/// Returns the rows of a place. For filters that only one thread can change or look up, these rows count for all
/// threads too.
fn of_place<'a>(rows: &[&'a Record], place: Executor) -> Vec<&'a Record> {
    let here: Vec<&Record> = rows.iter().copied().filter(|row| row.backend == place.backend).collect();
    let most = here.iter().filter_map(|row| row.number("threads")).fold(0.0, f64::max);
    let same = |a: &Record, b: &Record| {
        let of = |row: &Record| {
            ["study", "quotient_bits", "remainder_bits", "load", "variant", "implementation", "duplicates"]
                .map(|name| row.params.get(name).cloned())
        };
        a.operation == b.operation && a.n == b.n && of(a) == of(b)
    };
    let wanted = |row: &&Record| match row.number("threads") {
        None => true,
        Some(threads) if place.one_thread => threads == 1.0,
        Some(threads) => {
            threads == most || !here.iter().any(|other| other.number("threads") == Some(most) && same(row, other))
        }
    };
    here.iter().copied().filter(wanted).collect()
}

/// Returns the paper's figure of a study, its part of a file's name, and its caption.
fn of_study(study: &str) -> (&'static str, &'static str, &'static str) {
    match study {
        "lookup over fill" => ("Figures 8 and 9", "lookup-fill", "Lookups of stored keys over the load"),
        "lookup over batch" => ("Figure 10a", "lookup-batch", "Lookups over the size of the batch"),
        "update over fill" => ("Figure 10b", "update-fill", "Inserts and deletes over the load"),
        "insert over batch" => ("Figure 10c", "update-batch", "Updates over the size of the batch"),
        _ => ("Figures 11 to 13", "build-fill", "Builds over the load"),
    }
}

/// Returns the variant or crate, with the parameters that distinguish rows of one study.
fn label(row: &Record, with_operation: bool) -> Option<String> {
    Some(if with_operation { format!("{}, {}", row.operation, row.name()) } else { row.name() })
}

/// Returns the name of a figure's file. Names do not change: the documents refer to them.
fn name(place: Executor, bits: f64, part: &str) -> String {
    format!("quotient-{part}-{}-q{bits}", place.suffix)
}

fn over_load(rows: &[&Record], place: Executor, bits: f64, of: &str, operations: &[&str]) -> Figure {
    let (paper, part, what) = of_study(of);
    let rows: Vec<&Record> =
        study(rows, of).into_iter().filter(|row| operations.contains(&row.operation.as_str())).collect();
    let point = |row: &Record| Some((row.number("load")?, row.items_per_second?));
    let remainder = rows.first().and_then(|row| row.number("remainder_bits")).unwrap_or_default();
    let batch = match rows.first() {
        Some(row) if of == "update over fill" => format!(", batches of {} keys", row.n),
        _ => String::new(),
    };
    Figure::new(
        name(place, bits, part),
        format!("{what}, 2^{bits} slots, {}", place.title),
        format!(
            "{paper} of the paper: {what}, 2^{bits} slots, remainders of {remainder} bits{batch}, on {}.",
            place.title
        ),
        (LOAD, RATE),
        series(&rows, |row| label(row, operations.len() > 1), point, Style::Measured),
    )
}

fn over_batch(rows: &[&Record], place: Executor, bits: f64, of: &str) -> Figure {
    let (paper, part, what) = of_study(of);
    let rows = study(rows, of);
    let several = groups(&rows, |row| Some(row.operation.clone())).len() > 1;
    let point = |row: &Record| Some((row.n as f64, row.items_per_second?));
    Figure::new(
        name(place, bits, part),
        format!("{what}, 2^{bits} slots, {}", place.title),
        format!("{paper} of the paper: {what}, 2^{bits} slots at a load of 0.7, on {}.", place.title),
        (BATCH, RATE),
        series(&rows, |row| label(row, several), point, Style::Measured),
    )
}

/// Plots speed over space of both forms of the slots; each point is a width of the remainder.
fn containers(rows: &[&Record], place: Executor) -> Figure {
    let rows: Vec<&Record> = study(rows, "containers")
        .into_iter()
        .filter(|row| row.number("load") == Some(0.75) && ["contains hit", "insert"].contains(&row.operation.as_str()))
        .collect();
    let largest = rows.iter().filter_map(|row| row.number("quotient_bits")).fold(0.0, f64::max);
    let rows: Vec<&Record> = rows.into_iter().filter(|row| row.number("quotient_bits") == Some(largest)).collect();
    let point = |row: &Record| Some((row.bits_per_item? / 8.0, row.items_per_second?));
    let shown = place.one_thread || place.backend == "cuda";
    Figure::new(
        if place.backend == "cuda" { "quotient-containers-cuda" } else { "quotient-containers-cpu" },
        format!("Packed and bytes, 2^{largest} slots, {}", place.title),
        format!(
            "Packed slots against slots of whole bytes at a load of 0.75: speed over the memory of an item, 2^{largest} \
             slots. Each point is a width of the remainder: 3, 5, 6, 8, 13, 16, 21, 29 or 61 bits; of these, 5, 13, 21, 29 \
             and 61 fill whole bytes."
        ),
        (BYTES, RATE),
        if shown { series(&rows, |row| label(row, true), point, Style::Measured) } else { Vec::new() },
    )
}

/// Makes Table I.
fn memory(rows: &[&Record]) -> Grid {
    let rows = study(rows, "memory");
    let rates = groups(&rows, |row| row.number("error_rate"));
    let line = |row: &Record| {
        let name = row.text("variant").or(row.implementation())?.to_owned();
        Some((name, row.number("load")?))
    };
    let cell = |who: &(String, f64), rate: f64| {
        let mine = rows.iter().filter(|row| line(row).as_ref() == Some(who) && row.number("error_rate") == Some(rate));
        let bytes = mine.map(|row| {
            let bits = row.bits_per_item.unwrap_or_default();
            format!("{:.2} (r = {})", bits / 8.0, row.number("remainder_bits").unwrap_or_default())
        });
        bytes.collect::<Vec<_>>().join(", ")
    };
    Grid {
        name: "quotient-table-1",
        title: "Bytes per item".into(),
        caption: "The paper's Table I, for its three error rates: its remainders of 5, 13 and 21 bits, and the remainder \
            that the rate asks for. The load is how full the slots are; the paper counts 0.75, and 0.95 for rank-and-select \
            filters."
            .into(),
        header: ["filter".into(), "load".into()].into_iter().chain(rates.iter().map(|rate| format!("{rate:e}"))).collect(),
        rows: groups(&rows, line)
            .iter()
            .map(|who| {
                let cells = rates.iter().map(|&rate| cell(who, rate));
                [who.0.clone(), format!("{}", who.1)].into_iter().chain(cells).collect()
            })
            .chain(of_paper(&rates))
            .collect(),
    }
}

/// The paper's own bytes per item at error rates of 0.03, 0.0001 and 5e-7.
const PAPER: [(&str, &str, [&str; 3]); 4] = [
    ("standard", "0.75", ["1.3", "2.7", "4.0"]),
    ("rank-and-select", "0.95", ["0.94", "2.0", "3.0"]),
    ("BloomGPU", "", ["7.7", "20.4", "45.2"]),
    ("Bloom, 1 bit", "", ["0.96", "2.6", "5.7"]),
];

fn of_paper(rates: &[f64]) -> Vec<Vec<String>> {
    let cell = |bytes: &[&str; 3], rate: f64| {
        let place = [0.03, 1e-4, 5e-7].iter().position(|known: &f64| (known / rate - 1.0).abs() < 1e-6);
        place.map_or_else(String::new, |place| bytes[place].to_owned())
    };
    let line = |(name, load, bytes): &(&str, &str, [&str; 3])| {
        let own = [format!("paper: {name}"), (*load).to_owned()];
        own.into_iter().chain(rates.iter().map(|&rate| cell(bytes, rate))).collect()
    };
    if rates.is_empty() { Vec::new() } else { PAPER.iter().map(line).collect() }
}

fn screens(rows: &[&Record]) -> Grid {
    let caption = "The screen of the Bloom filters, asked of quotient filters. Expected are the load times 2^-r of the keys \
        that are not there.";
    rows::screens("quotient-screens", "Quotient filters on real input", caption, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(operation: &str, study: &str, load: f64, threads: u32, variant: &str) -> Record {
        let row = Record::new("quotient", operation, 1000).time(0.001).param("study", study).param("load", load);
        let row = row.param("quotient_bits", 23).param("remainder_bits", 5).param("threads", threads);
        row.param(if variant == "qfilter" { "implementation" } else { "variant" }, variant)
    }

    #[test]
    fn figures_have_the_rows_of_their_threads() {
        let study = "update over fill";
        let rows = [
            row("lookup", "lookup over fill", 0.5, 1, "packed"),
            row("lookup", "lookup over fill", 0.5, 2, "packed"),
            row("insert", study, 0.5, 1, "packed"),
            row("insert", study, 0.5, 2, "packed"),
            row("insert", study, 0.9, 2, "packed"),
            row("remove", study, 0.5, 1, "packed"),
            row("insert", study, 0.5, 1, "qfilter"),
        ];
        let figures = figures(&rows);
        let of = |name: &str| figures.iter().find(|figure| figure.name == name).unwrap();
        let one = &of("quotient-update-fill-cpu-1-q23").chart.series;
        let names: Vec<&str> = one.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names, ["insert, packed", "remove, packed", "insert, qfilter"]);
        assert_eq!(one[0].points, [(0.5, 1e6)]);
        // On all threads: two points of ours, and what one thread alone can do.
        let all = &of("quotient-update-fill-cpu-all-q23").chart.series;
        assert_eq!(all.iter().map(|series| series.points.len()).collect::<Vec<_>>(), [2, 1, 1]);
        assert!(figures.iter().all(|figure| figure.name != "quotient-update-fill-cuda-q23"));
    }

    #[test]
    fn table_1_has_a_column_a_rate() {
        let memory = |variant: &str, rate: f64, bits: f64| {
            let mut row = row("memory", "memory", 0.75, 1, variant).param("error_rate", rate);
            row.bits_per_item = Some(bits);
            row
        };
        let grids = tables(&[memory("packed", 0.03, 10.88), memory("packed", 1e-4, 21.76)]);
        assert_eq!(grids[0].rows[0], ["packed", "0.75", "1.36 (r = 5)", "2.72 (r = 5)"]);
        assert_eq!(grids[0].rows[1], ["paper: standard", "0.75", "1.3", "2.7"]);
    }
}

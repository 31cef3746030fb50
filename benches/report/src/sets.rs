//! Choice of a set: space, speed and builds of every set and filter, of the same keys.

use super::Figure;
use super::chart::{Axis, Scale, Style, short_rate};
use super::page::Grid;
use super::rows::{groups, series};
use bench_record::Record;

/// The study that has all sets of one crate's bench; rows of others are taken by their structure.
const STUDY: &str = "all sets";
/// Structures of static sets whose own rows are used if the study has none of them.
const OTHERS: [&str; 1] = ["fuse"];
const BITS: Axis = Axis { label: "bits per key", scale: Scale::Log2, show: |bits| format!("{bits:.0}") };
const SPEED: Axis = Axis { label: "lookups per second", scale: Scale::Log10, show: short_rate };

/// Kind of an operation, under whatever name a suite has for it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Build,
    Present,
    Absent,
}

impl Kind {
    fn of(row: &Record) -> Option<Kind> {
        let operation = row.operation.as_str();
        match operation {
            "build" => Some(Kind::Build),
            _ if operation.contains("one by one") => None,
            _ if operation.starts_with("contains hit") => Some(Kind::Present),
            _ if operation.starts_with("contains miss") => Some(Kind::Absent),
            _ => None,
        }
    }
}

/// Returns the place of a row: one CPU thread, or a device.
fn place(row: &Record) -> Option<&'static str> {
    match row.backend.as_str() {
        "cpu" => (row.number("threads") == Some(1.0)).then_some("CPU"),
        _ => Some("GPU"),
    }
}

/// Returns our rows: those of the study, and of structures that it lacks.
fn rows_of(records: &[Record]) -> Vec<&Record> {
    let is_ours = |row: &&Record| row.implementation().is_none() && row.bits_per_item.is_some();
    let studied = |row: &Record| row.text("study") == Some(STUDY);
    let has = |structure: &str| records.iter().any(|row| studied(row) && row.name().contains(structure));
    let missing: Vec<&str> = OTHERS.into_iter().filter(|structure| !has(structure)).collect();
    let taken = |row: &&Record| studied(row) || missing.contains(&row.structure.as_str());
    let rows = records.iter().filter(is_ours).filter(taken);
    rows.filter(|row| Kind::of(row).is_some() && place(row).is_some()).collect()
}

/// Returns the figure's name of a row's set.
fn name(row: &Record) -> String {
    let name = row.name();
    if row.text("study") == Some(STUDY) || name.contains(&row.structure) {
        name
    } else {
        format!("{} {name}", row.structure)
    }
}

/// Returns the row with the most keys among those of one set and operation on one place.
fn largest<'a>(rows: &[&'a Record], of: impl Fn(&Record) -> bool) -> Option<&'a Record> {
    let keys = |row: &&&Record| row.number("keys").unwrap_or(row.n as f64) as u64;
    rows.iter().filter(|row| of(row)).max_by_key(keys).copied()
}

/// Returns the figures, one per place; empty without rows.
pub fn figures(records: &[Record]) -> Vec<Figure> {
    let rows = rows_of(records);
    let figure = |on: &'static str, title: &str| {
        let here: Vec<&Record> = rows.iter().copied().filter(|row| place(row) == Some(on)).collect();
        let sets = groups(&here, |row| Some(name(row)));
        let both = [Kind::Present, Kind::Absent];
        let points = sets.iter().flat_map(|set| both.map(|kind| (set, kind)));
        let points: Vec<&Record> = points
            .filter_map(|(set, kind)| largest(&here, |row| &name(row) == set && Kind::of(row) == Some(kind)))
            .collect();
        let point = |row: &Record| Some((row.bits_per_item?, row.items_per_second?));
        Figure::new(
            format!("sets-{}", on.to_lowercase()),
            title,
            "Lookups of present and of absent keys, in batches, over the memory per key: two points per set. Filters let one \
             absent key of 256 pass, the exact set none.",
            (BITS, SPEED),
            series(&points, |row| Some(name(row)), point, Style::Points),
        )
    };
    vec![
        figure("CPU", "Space and speed of all sets, one CPU thread"),
        figure("GPU", "Space and speed of all sets on a GPU"),
    ]
}

/// Returns the table; without lines if there are no rows.
pub fn tables(records: &[Record]) -> Vec<Grid> {
    let rows = rows_of(records);
    let lines = groups(&rows, |row| Some(name(row))).into_iter().map(|set| {
        let find = |on: &str, kind: Kind| {
            largest(&rows, |row| name(row) == set && place(row) == Some(on) && Kind::of(row) == Some(kind))
        };
        let speed = |(on, kind)| {
            let row: Option<&Record> = find(on, kind);
            row.and_then(|row| row.items_per_second).map_or_else(String::new, short_rate)
        };
        let mine = || rows.iter().filter(|row| name(row) == set);
        let bits = mine().find_map(|row| row.bits_per_item).map_or_else(String::new, |bits| format!("{bits:.1}"));
        let fpr = mine().find_map(|row| row.fpr).map_or_else(String::new, |fpr| format!("{:.2} %", 100.0 * fpr));
        let changes = mine().find_map(|row| row.text("changes")).unwrap_or("no").to_owned();
        let [build, present, absent] = [Kind::Build, Kind::Present, Kind::Absent];
        let speeds =
            [("CPU", present), ("CPU", absent), ("CPU", build), ("GPU", present), ("GPU", absent), ("GPU", build)];
        let mut cells = vec![set.clone(), bits, fpr];
        cells.extend(speeds.map(speed));
        cells.push(changes);
        cells
    });
    let grid = Grid {
        name: "sets-table",
        title: "Which set to take when".into(),
        caption: "The same keys of 64 bits in every set, keys per second: on one CPU thread, and on a GPU. Filters were asked for \
            one false positive in 256."
            .into(),
        header: [
            "set", "bits per key", "false positives", "present, CPU", "absent, CPU", "built, CPU", "present, GPU",
            "absent, GPU", "built, GPU", "can it change",
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
    fn a_line_per_set_with_whatever_rows_there_are() {
        assert!(tables(&[]).is_empty() && figures(&[]).iter().all(|figure| figure.chart.is_empty()));
        let row = |structure: &str, variant: &str, operation: &str, backend: &str, keys: usize| {
            let row = Record::new(structure, operation, keys).time(0.001).by(variant.to_owned(), false);
            let mut row = row.param("keys", keys).param("threads", 1);
            (row.bits_per_item, row.fpr, row.backend) = (Some(10.0), Some(0.004), backend.into());
            row
        };
        let mut rows = Vec::new();
        for operation in ["build", "contains hit", "contains miss"] {
            for variant in ["exact set", "split-block Bloom"] {
                let row = row("sets", variant, operation, "cpu", 1000);
                rows.push(row.param("study", STUDY).param("changes", "no"));
            }
            rows.push(row("fuse", "8 bits", operation, "cuda", 1000));
            rows.push(row("fuse", "8 bits", operation, "cuda", 4000));
            rows.push(row("fuse", "8 bits", &format!("{operation}, one by one"), "cuda", 9000));
        }
        rows.push(row("fuse", "8 bits", "contains hit", "cpu", 10).by("xorf", true));
        let table = tables(&rows).remove(0);
        assert_eq!(
            table.rows.iter().map(|row| row[0].as_str()).collect::<Vec<_>>(),
            ["exact set", "split-block Bloom", "fuse 8 bits"]
        );
        assert!(table.rows.iter().all(|row| row.len() == table.header.len()));
        assert_eq!((table.rows[2][3].as_str(), table.rows[2][6].as_str()), ("", short_rate(4e6).as_str()));
        let figures = figures(&rows);
        assert_eq!(figures[0].chart.series.len(), 2);
        assert!(figures[1].chart.series.len() == 1 && figures[1].chart.series[0].points.len() == 2);
        // The study's own rows of fuse filters replace those of their suite.
        rows.push(row("sets", "fuse 8 bits", "build", "cpu", 1000).param("study", STUDY));
        assert_eq!(tables(&rows)[0].rows.len(), 3);
        assert_eq!(tables(&rows)[0].rows[2][6], "");
    }
}

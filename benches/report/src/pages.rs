//! Pages of the documentation: one Markdown file per structure, and the list of all rows that another library wins.
//!
//! Every page shows one run on one machine. A line is an operation with its parameters, a column a backend. A cell
//! holds the rate, the share of the hardware limit, and in brackets the ratio to the fastest other library; a ratio
//! below one is bold.

use std::path::Path;

use anyhow::Context as _;

use bench_record::Record;
use bench_record::file::Run;
use bench_record::show::{parameters, rate};

use crate::headline::{self, ratio};
use crate::rows::groups;

/// Studies with rows on a page. The HTML page shows the others, which explain a choice or redraw a paper's figure.
const STUDIES: [&str; 5] =
    ["build over fill", "lookup over fill", "equal rate", "building on a device", "lookups on a device"];

/// Parameters that tell columns apart, or the study of a row.
const NOT_SHOWN: [&str; 2] = ["threads", "study"];

/// Writes `NAME.md` for each structure that a run measured, and `losses.md` of all runs, into `folder`.
pub fn write(runs: &[Run], folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let save = |name: &str, text: String| {
        let path = folder.join(name).with_extension("md");
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    for (name, title) in headline::structures() {
        let of = |run| -> (&Run, Vec<&Record>) { (run, shown(run, &name)) };
        // A run of this structure alone has its own command, so it comes before a run of all.
        if let Some((run, rows)) =
            runs.iter().map(of).filter(|(_, rows)| !rows.is_empty()).min_by_key(|(run, _)| run.rows.len())
        {
            save(&name, page(run, &title, &rows))?;
        }
    }
    save("losses", losses(runs))
}

fn shown<'a>(run: &'a Run, structure: &str) -> Vec<&'a Record> {
    run.rows.iter().filter(|row| row.structure == structure && is_shown(row)).collect()
}

fn is_shown(row: &Record) -> bool {
    let study = row.text("study");
    row.items_per_second.is_some()
        && row.implementation().is_none()
        && study.is_none_or(|study| STUDIES.contains(&study))
}

/// Renders a page: the conditions, and a table per operation.
fn page(run: &Run, title: &str, rows: &[&Record]) -> String {
    let mut text = format!("# {title}: rates\n\n{}\n", conditions(run));
    for operation in groups(rows, |row| Some(row.operation.clone())) {
        let rows: Vec<&Record> = rows.iter().copied().filter(|row| row.operation == operation).collect();
        let columns = groups(&rows, |row| Some(column(row)));
        text += &format!("\n## {operation}\n\n| what |");
        columns.iter().for_each(|column| text += &format!(" {column} |"));
        text += "\n| --- |";
        columns.iter().for_each(|_| text += " ---: |");
        text += "\n";
        for line in groups(&rows, |row| Some(label(row))) {
            text += &format!("| {line} |");
            for column_name in &columns {
                let row = rows.iter().find(|row| label(row) == line && column(row) == *column_name);
                text += &format!(" {} |", row.map_or_else(String::new, |row| cell(row)));
            }
            text += "\n";
        }
    }
    text
}

/// Writes machine, date, command and the meaning of a cell.
fn conditions(run: &Run) -> String {
    let about = &run.about;
    let devices = about.devices.values().cloned().collect::<Vec<_>>().join("; ");
    let peers = about.peers.iter().map(|(name, version)| format!("`{name}` {version}")).collect::<Vec<_>>().join(", ");
    format!(
        "{devices}. {}, `cargo xtask-peers bench {}`, every answer verified. Written by `cargo xtask report --pages`.\n\nA cell: items per second, the share of what the memory access or arithmetic that bounds the \
         method reaches alone in the same run, and in brackets the ratio to the fastest other library for the same \
         work, **bold** where that one is faster. Libraries: {peers}.",
        about.day(),
        words(about),
    )
}

/// Returns the arguments of the run, without the names of its files.
fn words(about: &bench_record::file::About) -> String {
    let mut words = about.arguments.iter();
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        if matches!(word.as_str(), "--json" | "--html") {
            words.next();
        } else {
            kept.push(word.as_str());
        }
    }
    kept.join(" ")
}

fn column(row: &Record) -> String {
    match (row.backend.as_str(), row.number("threads")) {
        ("cpu", Some(1.0)) => "one thread".into(),
        ("cpu", Some(threads)) => format!("{threads} threads"),
        ("cuda", _) => "GPU".into(),
        (backend, _) => backend.into(),
    }
}

fn label(row: &Record) -> String {
    let mut row = row.clone();
    NOT_SHOWN.iter().for_each(|name| drop(row.params.remove(*name)));
    let bits = row.bits_per_item.map_or_else(String::new, |bits| format!(", {bits:.2} bits"));
    format!("{}{bits}; {}", parameters(&row), headline::count(row.n as f64))
}

fn cell(row: &Record) -> String {
    let mut text = row.items_per_second.map(rate).unwrap_or_default();
    if let Some(share) = row.limit_fraction {
        text += &format!(", {:.0} %", 100.0 * share);
    }
    match row.peer_ratio {
        Some(value) if value < 1.0 => text += &format!(" (**{}**)", ratio(value)),
        Some(value) => text += &format!(" ({})", ratio(value)),
        None => {}
    }
    text
}

/// Lists every row of the run that another library wins, the greatest loss first, one line per structure, operation,
/// library and column.
fn losses(runs: &[Run]) -> String {
    let all = || runs.iter().flat_map(|run| &run.rows);
    let mut lost: Vec<(f64, &Record)> =
        all().filter_map(|row| Some((row.peer_ratio.filter(|&value| value < 1.0)?, row))).collect();
    let compared = all().filter(|row| row.peer_ratio.is_some()).count();
    lost.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut text = format!(
        "# Where others are faster\n\n{}\n\nAnother library wins {} of {compared} rows. A line is the greatest loss of an \
         operation against a library.\n\n| structure | operation | on | library | our rate, its | rows |\n| --- | --- | \
         --- | --- | ---: | ---: |\n",
        runs.first().map(conditions).unwrap_or_default(),
        lost.len(),
    );
    let key = |row: &Record| (row.structure.clone(), row.operation.clone(), row.peer.clone(), column(row));
    let rows: Vec<&Record> = lost.iter().map(|(_, row)| *row).collect();
    for group in groups(&rows, |row| Some(key(row))) {
        let of_group: Vec<&(f64, &Record)> = lost.iter().filter(|(_, row)| key(row) == group).collect();
        let (least, row) = of_group[0];
        let (structure, operation, peer, on) = group;
        text += &format!(
            "| {structure} | {operation}: {} | {on} | {} | {} of it | {} |\n",
            label(row),
            peer.unwrap_or_default(),
            ratio(*least),
            of_group.len(),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_a_line_per_operation_and_a_column_per_backend() {
        let row = |threads: u32, seconds: f64| {
            Record::new("bloom", "insert", 1000).param("variant", "split block").param("threads", threads).time(seconds)
        };
        let mut slow = row(1, 1.0);
        (slow.peer, slow.peer_ratio) = (Some("another".into()), Some(0.5));
        let mut device = Record::new("bloom", "insert", 1000).param("variant", "split block").time(1e-6);
        (device.backend, device.limit_fraction) = ("cuda".into(), Some(0.9));
        let study = row(1, 1.0).param("study", "fpr over bits");
        let run = Run { rows: vec![slow, row(16, 0.1), device, study], ..Run::default() };
        let rows: Vec<&Record> = run.rows.iter().filter(|row| is_shown(row)).collect();
        let text = page(&run, "Bloom filters", &rows);
        assert!(text.contains("| what | one thread | 16 threads | GPU |"), "{text}");
        assert!(text.contains("| split block; 1 k | 1.0 k (**0.50**) | 10.0 k | 1.00 G, 90 % |"), "{text}");
        let text = losses(&[run]);
        assert!(text.contains("wins 1 of 1 rows") && text.contains("| another | 0.50 of it | 1 |"), "{text}");
    }
}

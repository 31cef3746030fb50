//! Pages of the documentation: one Markdown file per structure, and the list of all rows that another library wins.
//!
//! Every page shows one run on one machine. A line is an operation with its parameters, a column a backend. A cell
//! holds the rate, the share of the hardware limit, and in brackets the ratio to the fastest other library; a ratio
//! below one is bold.
//!
//! A table states each parameter once. Parameters of all lines are above the table; parameters of neighbouring lines
//! are in a heading line. A page shows only the largest size per column, and no methods that only a paper has. The HTML
//! page has all rows.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;

use bench_record::Record;
use bench_record::file::Run;
use bench_record::show::{self, rate};

use crate::headline::{self, ratio};
use crate::rows::groups;

/// Studies with rows on a page. The HTML page shows the others, which explain a choice or redraw a paper's figure.
const STUDIES: [&str; 4] = ["build over fill", "lookup over fill", "building on a device", "lookups on a device"];

/// Parameters that tell columns apart, the study of a row, and results.
const NOT_SHOWN: [&str; 4] = ["threads", "study", "hashes_per_key", "hashes_per_second"];

/// Numeric parameters that are sizes.
const SIZES: [&str; 6] = ["filter_bytes", "load", "quotient_bits", "elements", "keys", "kmers"];

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
        && !headline::is_only_in_papers(row)
}

/// Renders a page: the conditions, and a table per operation. Operations of one backend with the same lines share a
/// table, as its columns.
fn page(run: &Run, title: &str, rows: &[&Record]) -> String {
    let mut text = format!("# {title}: rates\n\n{}\n", conditions(run, &words_of(&run.about), rows));
    let of = |name: &String| largest(&rows.iter().copied().filter(|row| row.operation == *name).collect::<Vec<_>>());
    let operations = groups(rows, |row| Some(row.operation.clone()));
    let mut left: Vec<(String, Vec<&Record>)> = operations.into_iter().map(|name| (name.clone(), of(&name))).collect();
    while !left.is_empty() {
        let (columns, lines) = (groups(&left[0].1, |row| Some(column(row))), lines(&left[0].1));
        let same: Vec<(String, Vec<&Record>)> = match columns.len() {
            1 => left.extract_if(.., |(_, rows)| self::lines(rows) == lines).collect(),
            _ => vec![left.remove(0)],
        };
        let names: Vec<&str> = same.iter().map(|(name, _)| name.as_str()).collect();
        let rows: Vec<&Record> = same.iter().flat_map(|(_, rows)| rows).copied().collect();
        text += &format!("\n## {}\n\n", names.join("; "));
        text += &match same.len() {
            1 => table(&rows, column, &[]),
            _ => table(&rows, |row| row.operation.clone(), &columns),
        };
    }
    text
}

/// Returns the labels of rows, with their columns.
fn lines(rows: &[&Record]) -> Vec<(Label, String)> {
    groups(rows, |row| Some((label(row), column(row))))
}

/// Keeps the lines that have, in at least one column, the largest of the rows that differ only in size.
fn largest<'a>(rows: &[&'a Record]) -> Vec<&'a Record> {
    let is_size = |row: &Record, name: &str| SIZES.contains(&name) && row.number(name).is_some();
    let family = |row: &Record| (column(row), words(row, |name| !is_size(row, name)));
    let size = |row: &Record| -> Vec<Option<f64>> {
        SIZES.iter().map(|name| row.number(name)).chain([Some(row.n as f64)]).collect()
    };
    let is_largest = |row: &Record| !rows.iter().any(|other| family(other) == family(row) && size(other) > size(row));
    let lines = groups(rows, |row| is_largest(row).then(|| label(row)));
    rows.iter().copied().filter(|row| lines.contains(&label(row))).collect()
}

/// Renders a table; `column` names the column of a row, and `also` is true of all rows.
fn table(rows: &[&Record], column: impl Fn(&Record) -> String, also: &[String]) -> String {
    let mut columns = groups(rows, |row| Some(column(row)));
    columns.sort_by_key(|name| match name.as_str() {
        "one thread" => 0,
        "GPU" => 2,
        _ => 1,
    });
    let mut labels = groups(rows, |row| Some(label(row)));
    let is_common = |word: &String| labels.iter().all(|label| label.own.contains(word) || label.shared.contains(word));
    let all: Vec<String> =
        labels[0].own.iter().chain(&labels[0].shared).filter(|word| is_common(word)).cloned().collect();
    // The only line keeps its words; so does a line without others.
    let lifted = if labels.len() == 1 { Vec::new() } else { all };
    let all = [also, &lifted].concat();
    let mut text = if all.is_empty() { String::new() } else { format!("All: {}.\n\n", all.join(", ")) };
    text += &format!("| what | {} |\n| --- |{}\n", columns.join(" | "), " ---: |".repeat(columns.len()));
    let rest =
        |words: &[String]| -> Vec<String> { words.iter().filter(|word| !lifted.contains(word)).cloned().collect() };
    let mut lines: Vec<(Label, Vec<String>, Vec<String>)> =
        labels.drain(..).map(|label| (label.clone(), rest(&label.own), rest(&label.shared))).collect();
    while !lines.is_empty() {
        let shared = lines[0].2.clone();
        let of_group: Vec<_> = lines.extract_if(.., |line| line.2 == shared).collect();
        let has_heading = of_group.len() > 1 && !shared.is_empty() && of_group.iter().all(|line| !line.1.is_empty());
        if has_heading {
            text += &format!("| *{}* |{}\n", shared.join(", "), " |".repeat(columns.len()));
        }
        for (line, own, shared) in of_group {
            let words = if has_heading { own } else { [own, shared].concat() };
            let cells = columns.iter().map(|name| {
                let row = rows.iter().find(|row| label(row) == line && column(row) == *name);
                row.map_or_else(String::new, |row| cell(row))
            });
            let name = if words.is_empty() { line.own[0].clone() } else { words.join(", ") };
            text += &format!("| {name} | {} |\n", cells.collect::<Vec<_>>().join(" | "));
        }
    }
    text
}

/// Writes machine, date, command, and the other libraries that the rows are compared with.
fn conditions(run: &Run, arguments: &str, rows: &[&Record]) -> String {
    let about = &run.about;
    let devices = about.devices.values().cloned().collect::<Vec<_>>().join("; ");
    let peers = groups(rows, |row| row.peer.clone()).join(", ");
    let compared = if peers.is_empty() { String::new() } else { format!(" Compared with {peers}.") };
    let repeats = match about.repeats {
        0 => String::new(),
        repeats => format!(", medians of {repeats} runs"),
    };
    format!(
        "{devices}. {}, `cargo xtask-peers bench {arguments}`{repeats}. [How to read a cell](../performance.md#cells).{compared}",
        about.day(),
    )
}

/// Returns the arguments of the run, without the names of its files.
fn words_of(about: &bench_record::file::About) -> String {
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

/// Words of a line: the implementation with what its variant determines, and the parameters that others share.
#[derive(Clone, PartialEq)]
struct Label {
    own: Vec<String>,
    shared: Vec<String>,
}

fn label(row: &Record) -> Label {
    let is_own = |name: &str| matches!(name, "variant" | "hashes" | "overhead" | "asked_bits");
    let mut own = words(row, is_own);
    own.extend(row.bits_per_item.map(|bits| format!("{bits:.2} bits")));
    let mut shared = words(row, |name| !is_own(name));
    shared.push(headline::count(row.n as f64));
    Label { own, shared }
}

/// Renders the selected parameters as pages name them. Rows of `recsplit` measure the crate `mphf`.
fn words(row: &Record, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let mut words = show::words(row, |name| !NOT_SHOWN.contains(&name) && wanted(name));
    words.iter_mut().for_each(|word| *word = in_words(word));
    if row.structure == "recsplit" && wanted("variant") && row.text("variant").is_some_and(|name| name != "Consensus") {
        let is_filter = row.operation.starts_with("filter") || row.operation.starts_with("contains");
        let kind = if words[0].starts_with("placement") { "" } else { "RecSplit, " };
        words[0] = format!("{}{kind}{}", if is_filter { "`StaticFilter` over " } else { "" }, words[0]);
    }
    words
}

/// Renders a parameter without underscores, and a large number in few letters.
fn in_words(parameter: &str) -> String {
    let text = parameter.replace('_', " ");
    match text.rsplit_once(' ').map(|(name, value)| (name, value.parse::<u64>())) {
        Some((name, Ok(value))) if value >= 10_000 => format!("{name} {}", headline::count(value as f64)),
        _ => text,
    }
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

/// Reasons why other libraries win rows of a crate, by its name.
const REASONS: &str = include_str!("reasons.json");

/// Lists every row of the runs that another library wins, the greatest loss of a crate first, one line per operation
/// and library.
fn losses(runs: &[Run]) -> String {
    let all: Vec<&Record> =
        runs.iter().flat_map(|run| &run.rows).filter(|row| !headline::is_only_in_papers(row)).collect();
    let compared = all.iter().filter(|row| row.peer_ratio.is_some()).count();
    let mut rows: Vec<&Record> =
        all.into_iter().filter(|row| row.peer_ratio.is_some_and(|value| value < 1.0)).collect();
    rows.sort_by(|a, b| a.peer_ratio.partial_cmp(&b.peer_ratio).expect("ratios are numbers"));
    // Each structure has a run of its own.
    let arguments = |run: &Run| {
        let words = words_of(&run.about);
        words.split_once(' ').map_or(words.clone(), |(_, settings)| format!("STRUCTURE {settings}"))
    };
    let mut text = format!(
        "# Where others are faster\n\n{}\n\nAnother library wins {} of {compared} rows. A line is the greatest loss of an \
         operation against a library: our rate over its rate. Keys are generated integers of 64 bits unless the line \
         names others.\n",
        runs.first().map(|run| conditions(run, &arguments(run), &[])).unwrap_or_default(),
        rows.len(),
    );
    let crate_of = |row: &Record| if row.structure == "recsplit" { "mphf".into() } else { row.structure.clone() };
    let mut names = groups(&rows, |row| Some(crate_of(row)));
    names.sort();
    let reasons: BTreeMap<String, String> = serde_json::from_str(REASONS).expect("a test reads it");
    for name in names {
        let reason = reasons.get(&name).map(|reason| format!("{reason}\n\n")).unwrap_or_default();
        text += &format!(
            "\n## {name}\n\n{reason}| operation | ours | case | on | library | ratio | rows |\n| --- | --- | --- | --- | --- | \
             ---: | ---: |\n"
        );
        let of_crate: Vec<&Record> = rows.iter().copied().filter(|row| crate_of(row) == name).collect();
        let key = |row: &Record| (row.operation.clone(), row.peer.clone());
        for group in groups(&of_crate, |row| Some(key(row))) {
            let of_group: Vec<&Record> = of_crate.iter().copied().filter(|row| key(row) == group).collect();
            let (operation, peer) = group;
            let Label { own, mut shared } = label(of_group[0]);
            shared.retain(|word| word != "generated" && word != "u64");
            text += &format!(
                "| {operation} | {} | {} | {} | {} | {} | {} |\n",
                own.join(", "),
                shared.join(", "),
                column(of_group[0]),
                peer.unwrap_or_default(),
                of_group[0].peer_ratio.map(ratio).unwrap_or_default(),
                of_group.len(),
            );
        }
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
        let line = "| split block, 1 k | 1.0 k (**0.50**) | 10.0 k | 1.00 G, 90 % |";
        assert!(text.contains(line), "{text}");
        // Sizes below the largest are left out, and operations with equal lines share a table.
        let on = |operation: &str, bytes: u64| {
            Record::new("bloom", operation, 7)
                .param("variant", "v")
                .param("filter_bytes", bytes)
                .param("key", "u64")
                .time(7.0)
        };
        let rows = [on("a", 64), on("a", 1024), on("b", 1024)];
        let all = page(&Run::default(), "Bloom filters", &rows.iter().collect::<Vec<_>>());
        assert!(all.contains("## a; b") && all.contains("| v, u64, 1 KiB, 7 | 1.0 | 1.0 |"), "{all}");
        assert!(!all.contains("64 B"), "{all}");
        let text = losses(&[run]);
        assert!(text.contains("wins 1 of 1 rows") && text.contains("| another | 0.50 | 1 |"), "{text}");
        assert!(text.contains("## bloom\n\nEvery loss is of Rao's filter"), "{text}");
    }
}

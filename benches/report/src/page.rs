//! The page around the figures.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::Figure;
use super::chart::COLOURS;
use super::rows::groups;
use crate::headline;
use bench_record::Record;
use bench_record::file::Run;
use bench_record::show::{parameters, percent, rate};

/// A table that is no list of rows: a paper's table, redrawn.
pub struct Grid {
    /// Its anchor.
    pub name: &'static str,
    /// The heading.
    pub title: String,
    /// Content of the section.
    pub caption: String,
    /// The head of each column.
    pub header: Vec<String>,
    /// The cells, row by row.
    pub rows: Vec<Vec<String>>,
}

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// The colours of series on a dark page, where they differ: what is dark is lightened.
const DARK: [(usize, &str); 6] =
    [(0, "#4aa3df"), (1, "#ff8a3d"), (2, "#2fc79a"), (6, "#f0f0f0"), (7, "#c98b7e"), (12, "#f06292")];

/// The sections: how the names of their figures and tables begin, and the title.
const SECTIONS: [(&str, &str); 8] = [
    ("filters", "Which filter to take"),
    ("bloom", "Bloom filters"),
    ("quotient", "Quotient filters"),
    ("fuse", "Binary fuse filters"),
    ("sequence-filter", "Sequence filters"),
    ("lsm", "Ordered dictionaries"),
    ("recsplit", "Minimal perfect hash functions"),
    ("", "Primitives"),
];

/// Returns the section of a figure or table.
fn section(name: &str) -> usize {
    SECTIONS.iter().position(|(prefix, _)| name.starts_with(prefix)).unwrap_or(SECTIONS.len() - 1)
}

/// Writes the colours of series as variables of the page.
fn colours() -> String {
    let set = |(number, colour): (usize, &str)| format!("--c{number}: {colour};");
    let light: String = COLOURS.into_iter().enumerate().map(set).collect();
    let dark: String = DARK.into_iter().map(set).collect();
    format!(":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n")
}

/// Renders the whole page; `with_rows`: with the list of all rows.
pub fn render(runs: &[Run], figures: &[Figure], grids: &[Grid], with_rows: bool) -> String {
    let rows = runs.iter().map(|run| run.rows.len()).sum::<usize>();
    let used: Vec<usize> = (0..SECTIONS.len())
        .filter(|&at| figures.iter().any(|f| section(&f.name) == at) || grids.iter().any(|g| section(g.name) == at))
        .collect();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Warpset: measurements" }
                style { (PreEscaped(colours())) (PreEscaped(STYLE)) }
            }
            body {
                main {
                    h1 { "Warpset: measurements" }
                    p { "Written by " code { "cargo xtask report" } " from " (rows) " rows of " code { "cargo xtask bench" } "." }
                    nav {
                        a href="#headline" { "Headline" }
                        @for &at in &used { " " a href={ "#section-" (at) } { (SECTIONS[at].1) } }
                        " " a href="#runs" { "Runs" }
                        @if with_rows { " " a href="#rows" { "All rows" } }
                    }
                    (headline_markup(runs))
                    @for &at in &used {
                        h2 id={ "section-" (at) } { (SECTIONS[at].1) }
                        ul.index {
                            @for figure in figures.iter().filter(|figure| section(&figure.name) == at) {
                                li { a href={ "#" (figure.name) } { (figure.chart.title) } }
                            }
                            @for grid in grids.iter().filter(|grid| section(grid.name) == at) {
                                li { a href={ "#" (grid.name) } { (grid.title) } }
                            }
                        }
                        div.figures {
                            @for figure in figures.iter().filter(|figure| section(&figure.name) == at) { (figure_markup(figure)) }
                        }
                        @for grid in grids.iter().filter(|grid| section(grid.name) == at) { (grid_markup(grid)) }
                    }
                    (runs_markup(runs))
                    @if with_rows { (rows_markup(runs)) }
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

/// Renders the arguments, place and time of each run.
fn runs_markup(runs: &[Run]) -> Markup {
    html! {
        h2 id="runs" { "Runs" }
        div.table { table {
            tr { th { "date" } th { "version" } th { "effort" } th { "arguments" } th { "machine" } th { "driver" } th { "rows" } }
            @for Run { about, rows } in runs {
                tr {
                    td { (about.date) } td { (about.version) } td { (about.effort) } td { (about.arguments.join(" ")) }
                    td { @for (backend, device) in &about.devices { div { (backend) ": " (device) } } }
                    td { (about.driver.as_deref().unwrap_or_default()) } td { (rows.len()) }
                }
            }
        } }
    }
}

/// Renders one row per structure and operation; those of papers last.
fn headline_markup(runs: &[Run]) -> Markup {
    let number = |value: Option<f64>, show: fn(f64) -> String| value.map(show).unwrap_or_default();
    let (yardsticks, ours): (Vec<_>, Vec<_>) = headline::lines(runs).into_iter().partition(|line| line.is_yardstick);
    html! {
        h2 id="headline" { "One row per structure and operation" }
        div.table { table {
            tr {
                th.left { "structure" } th.left { "operation" } th.left { "on" } th { "n" } th { "items/s" } th { "bits/item" }
                th { "of limit" } th.left { "peer" } th { "ratio" } th.left { "machine" } th.left { "date" }
            }
            @for line in ours.iter().chain(&yardsticks) {
                tr.peer[line.is_yardstick] {
                    td.left { (line.row.structure) @if line.is_yardstick { ", paper" } } td.left { (line.title) } td.left { (line.on()) }
                    td { (headline::count(line.row.n as f64)) }
                    td { (number(line.row.items_per_second, rate)) }
                    td { (number(line.row.bits_per_item, |bits| format!("{bits:.2}"))) }
                    td { (number(line.row.limit_fraction, |part| format!("{:.0} %", 100.0 * part))) }
                    td.left { (line.peer().unwrap_or_default()) }
                    td { (number(line.ratio(), headline::ratio)) }
                    td.left { (line.row.device.split(", compute").next().unwrap_or_default()) } td.left { (line.about.day()) }
                }
            }
        } }
        (rivals_markup(&ours))
        @for sentence in headline::sentences(runs.iter().flat_map(|run| &run.rows)) { p.note { (sentence) } }
    }
}

/// Renders the CUDA programs beside the rows of a GPU.
fn rivals_markup(lines: &[headline::Line<'_>]) -> Markup {
    let rivals: Vec<_> = lines.iter().filter_map(|line| Some((line, line.rival.as_ref()?))).collect();
    html! {
        @if let Some((_, first)) = rivals.first() {
            p.note {
                "Beside rows of a GPU: what CUDA programs reached on an " (first.gpu) ", " (first.source)
                ". A ratio stands there only where the row is of such a GPU and of the same work."
            }
            div.table { table {
                tr {
                    th.left { "structure" } th.left { "operation" } th.left { "program" } th { "items/s" } th.left { "date" } th.left { "size" }
                    th.left { "note" }
                }
                @for (line, rival) in &rivals {
                    tr {
                        td.left { (line.row.structure) } td.left { (line.title) } td.left { (rival.program) } td { (rate(rival.rate)) }
                        td.left { (rival.date) } td.left { (rival.sizes()) } td.left { (rival.note) }
                    }
                }
            } }
        }
    }
}

fn figure_markup(figure: &Figure) -> Markup {
    html! {
        figure id=(figure.name) {
            h3 { (figure.chart.title) }
            (PreEscaped(figure.chart.svg_on_page()))
            ul.legend { @for (swatch, name) in figure.chart.legend() { li { (PreEscaped(swatch)) " " (name) } } }
            figcaption { (figure.caption) }
        }
    }
}

fn grid_markup(grid: &Grid) -> Markup {
    html! {
        h3 id=(grid.name) { (grid.title) }
        p.note { (grid.caption) }
        div.table { table {
            tr { @for (i, cell) in grid.header.iter().enumerate() { th.left[i == 0] { (cell) } } }
            @for row in &grid.rows {
                tr { @for (i, cell) in row.iter().enumerate() { td.left[i == 0] { (cell) } } }
            }
        } }
    }
}

fn rows_markup(runs: &[Run]) -> Markup {
    let number = |value: Option<f64>, show: fn(f64) -> String| value.map(show).unwrap_or_default();
    let rows: Vec<&Record> = runs.iter().flat_map(|run| &run.rows).collect();
    let structures = groups(&rows, |row| Some(row.structure.clone()));
    html! {
        h2 id="rows" { "All rows" }
        p.note { "Grey rows are other libraries, measured in the same run. \"Of limit\" is the rate over what the same "
            "memory access reached in that run; \"peer\" is the fastest other library for the same work." }
        @for structure in structures {
            details {
                summary { (structure) }
                div.table { table.rows {
                    tr {
                        th { "operation" } th { "on" } th { "parameters" } th { "n" } th { "items/s" } th { "bits/item" } th { "FPR" }
                        th { "of limit" } th { "peer" } th { "ratio" } th { "checked" }
                    }
                    @for row in rows.iter().filter(|row| row.structure == structure) {
                        tr.peer[row.implementation().is_some()] {
                            td { (row.operation) } td { (row.backend) } td { (parameters(row)) }
                            td { @if row.n > 0 { (indicatif::HumanCount(row.n)) } }
                            td { (number(row.items_per_second, rate)) }
                            td { (number(row.bits_per_item, |bits| format!("{bits:.2}"))) }
                            td { (number(row.fpr, percent)) }
                            td { (number(row.limit_fraction, |part| format!("{:.0} %", 100.0 * part))) }
                            td { (row.peer.as_deref().unwrap_or_default()) }
                            td { (number(row.peer_ratio, headline::ratio)) }
                            td { @if row.checked { "yes" } }
                        }
                    }
                } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Page;
    use super::*;

    #[test]
    fn a_page_has_its_parts_and_asks_no_network() {
        let row = |seconds: f64, bytes: u64| {
            let row = Record::new("bloom", "insert", 1000).param("variant", "split block").param("input", "generated");
            row.param("key", "u64").param("threads", 1).param("filter_bytes", bytes).time(seconds)
        };
        let page = Page::of(vec![Run { rows: vec![row(0.5, 1024), row(0.25, 4096)], ..Run::default() }]);
        let html = page.html(true);
        for part in [
            "id=\"headline\"",
            "id=\"bloom-insert-cpu-1\"",
            "href=\"#bloom-insert-cpu-1\"",
            "id=\"runs\"",
            "id=\"rows\"",
        ] {
            assert!(html.contains(part), "{part}");
        }
        let without_names = html.replace("http://www.w3.org/2000/svg", "");
        assert!(!html.contains("src=") && !without_names.contains("http:") && !without_names.contains("https:"));
        assert!(!page.html(false).contains("id=\"rows\""));
        assert_eq!([section("bloom-x"), section("recsplit-x"), section("non-associative-scan")], [1, 6, 7]);
    }
}

//! The page around the figures.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::Figure;
use crate::headline;
use crate::record::Record;
use crate::record::file::Run;
use crate::show::{parameters, percent, rate};

/// A table that is no list of rows: a paper's table, redrawn.
pub struct Grid {
    /// Its anchor.
    pub name: &'static str,
    /// The heading.
    pub title: String,
    /// What it shows.
    pub caption: String,
    /// The head of each column.
    pub header: Vec<String>,
    /// The cells, row by row.
    pub rows: Vec<Vec<String>>,
}

const STYLE: &str = "
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, 'Helvetica Neue', Arial, sans-serif; color: #222; background: #f6f6f4; margin: 0; }
main { max-width: 1180px; margin: 0 auto; padding: 24px; }
h1 { font-size: 26px; margin: 8px 0; } h2 { font-size: 19px; margin: 36px 0 8px; }
figure, .table { background: #fff; border: 1px solid #ddd; border-radius: 6px; padding: 12px; margin: 16px 0; overflow-x: auto; }
figure svg { display: block; max-width: 100%; height: auto; }
figcaption, .note { color: #555; max-width: 80ch; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 10px; text-align: right; border-bottom: 1px solid #eee; white-space: nowrap; }
th.left, td.left { text-align: left; } td.wrap { white-space: normal; min-width: 24em; }
th { border-bottom: 1px solid #999; } tr.peer td { color: #777; }
";

/// The whole page.
pub fn render(runs: &[Run], figures: &[Figure], grids: &[Grid]) -> String {
    let records: Vec<&Record> = runs.iter().flat_map(|run| &run.rows).collect();
    let mut devices: Vec<(&str, &str)> = Vec::new();
    for record in &records {
        let device = (record.backend.as_str(), record.device.as_str());
        if !devices.contains(&device) {
            devices.push(device);
        }
    }
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Warpset: measurements" }
                style { (PreEscaped(STYLE)) }
            }
            body { main {
                h1 { "Warpset: measurements" }
                p { "Written by " code { "cargo xtask report" } " from " (records.len()) " rows of " code { "cargo xtask bench" } "." }
                ul { @for (backend, device) in &devices { li { (backend) ": " (device) } } }
                (headline_markup(runs))
                @for figure in figures { (figure_markup(figure)) }
                @for grid in grids { (grid_markup(grid)) }
                (rows_markup(&records))
            } }
        }
    };
    page.into_string()
}

/// One row per structure and operation.
fn headline_markup(runs: &[Run]) -> Markup {
    let number = |value: Option<f64>, show: fn(f64) -> String| value.map(show).unwrap_or_default();
    html! {
        h2 id="headline" { "One row per structure and operation" }
        div.table { table {
            tr {
                th.left { "structure" } th.left { "operation" } th.left { "on" } th { "n" } th { "items/s" } th { "bits/item" }
                th { "of limit" } th.left { "peer" } th { "ratio" } th.left { "machine" } th.left { "date" }
            }
            @for line in headline::lines(runs) {
                tr {
                    td.left { (line.row.structure) } td.left { (line.title) } td.left { (line.on()) }
                    td { (headline::count(line.row.n as f64)) }
                    td { (number(line.row.items_per_second, rate)) }
                    td { (number(line.row.bits_per_item, |bits| format!("{bits:.2}"))) }
                    td { (number(line.row.limit_fraction, |part| format!("{:.0} %", 100.0 * part))) }
                    td.left { (line.row.peer.as_deref().unwrap_or_default()) }
                    td { (number(line.row.peer_ratio, headline::ratio)) }
                    td.left { (line.row.device) } td.left { (line.about.day()) }
                }
            }
        } }
        @for sentence in headline::sentences(runs.iter().flat_map(|run| &run.rows)) { p.note { (sentence) } }
    }
}

fn figure_markup(figure: &Figure) -> Markup {
    html! {
        figure id=(figure.name) {
            (PreEscaped(figure.chart.svg()))
            figcaption { (figure.caption) }
        }
    }
}

fn grid_markup(grid: &Grid) -> Markup {
    html! {
        h2 id=(grid.name) { (grid.title) }
        p.note { (grid.caption) }
        div.table { table {
            tr { @for (i, cell) in grid.header.iter().enumerate() { th.left[i == 0] { (cell) } } }
            @for row in &grid.rows {
                tr { @for (i, cell) in row.iter().enumerate() { td.left[i == 0] { (cell) } } }
            }
        } }
    }
}

fn rows_markup(records: &[&Record]) -> Markup {
    let number = |value: Option<f64>, show: fn(f64) -> String| value.map(show).unwrap_or_default();
    html! {
        h2 { "All rows" }
        p.note { "Grey rows are other libraries, measured in the same run. \"Of limit\" is the rate over what the same "
            "memory access reached in that run; \"peer\" is the fastest other library for the same work." }
        div.table { table {
            tr {
                th.left { "structure" } th.left { "operation" } th.left { "on" } th { "n" } th.left { "parameters" }
                th { "items/s" } th { "bits/item" } th { "FPR" } th { "of limit" } th.left { "peer" } th { "ratio" } th { "checked" }
            }
            @for row in records {
                tr.peer[row.implementation().is_some()] {
                    td.left { (row.structure) } td.left { (row.operation) } td.left { (row.backend) }
                    td { @if row.n > 0 { (indicatif::HumanCount(row.n)) } }
                    td.left.wrap { (parameters(row)) }
                    td { (number(row.items_per_second, rate)) }
                    td { (number(row.bits_per_item, |bits| format!("{bits:.2}"))) }
                    td { (number(row.fpr, percent)) }
                    td { (number(row.limit_fraction, |part| format!("{:.0} %", 100.0 * part))) }
                    td.left { (row.peer.as_deref().unwrap_or_default()) }
                    td { (number(row.peer_ratio, |ratio| format!("{ratio:.2}"))) }
                    td { @if row.checked { "yes" } }
                }
            }
        } }
    }
}

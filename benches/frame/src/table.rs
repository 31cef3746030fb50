//! The table at the end of a run.

pub use bench_record::show::{bytes, parameters, percent, rate};
use bench_record::{Record, ratios};
use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};
use indicatif::HumanCount;

/// Lays the rows out, one table per structure; columns that no row fills are left out.
pub fn render(records: &[Record]) -> String {
    let mut structures: Vec<&str> = Vec::new();
    for record in records {
        // Structures of studies alone have tables of their own.
        if is_shown(record) && !structures.contains(&record.structure.as_str()) {
            structures.push(&record.structure);
        }
    }
    let tables = structures.iter().map(|structure| {
        let rows: Vec<&Record> = records.iter().filter(|record| record.structure == *structure).collect();
        format!("{structure}\n{}", structure_table(&rows))
    });
    tables.collect::<Vec<_>>().join("\n\n")
}

fn is_shown(row: &Record) -> bool {
    row.implementation().is_none() && row.text("study").is_none()
}

fn structure_table(rows: &[&Record]) -> Table {
    let peer_rows: Vec<&Record> = rows.iter().copied().filter(|row| row.implementation().is_some()).collect();
    let mut peers: Vec<&str> = Vec::new();
    for name in peer_rows.iter().filter_map(|row| row.implementation()) {
        if !peers.contains(&name) {
            peers.push(name);
        }
    }
    let mut header: Vec<String> =
        ["operation", "on", "n", "parameters", "items/s", "bytes/s", "bits/item", "FPR", "of limit"]
            .map(String::from)
            .into();
    header.extend(peers.iter().map(|peer| format!("x {peer}")));
    header.push("checked".into());
    // The peers' own rows show as ratios, and a study prints its own table; all rows are in the JSON and the report.
    let ours = rows.iter().filter(|row| is_shown(row));
    let cells: Vec<Vec<String>> = ours.map(|row| cells(row, &peer_rows, &peers)).collect();

    let used: Vec<usize> =
        (0..header.len()).filter(|&column| cells.iter().any(|row| !row[column].is_empty())).collect();
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY).set_header(used.iter().map(|&column| &header[column]));
    for row in &cells {
        table.add_row(used.iter().map(|&column| &row[column]));
    }
    for (place, &column) in used.iter().enumerate() {
        let left = ["operation", "on", "parameters"].contains(&header[column].as_str());
        if let Some(column) = table.column_mut(place) {
            column.set_cell_alignment(if left { CellAlignment::Left } else { CellAlignment::Right });
        }
    }
    table
}

/// Renders a small table under a title: the first column is left-aligned.
pub fn grid(title: &str, header: Vec<String>, rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY).set_header(header).add_rows(rows);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!("\n{title}\n{table}\n")
}

/// Renders the rows as a grid: one line per `line`, one column per `column`, in order of appearance.
pub fn pivot<'a>(
    title: &str,
    rows: &[&'a Record],
    line: impl Fn(&'a Record) -> String,
    column: impl Fn(&'a Record) -> String,
    cell: impl Fn(&'a Record) -> String,
) -> String {
    let (mut lines, mut columns): (Vec<(String, Vec<String>)>, Vec<String>) = Default::default();
    for row in rows {
        let column = column(row);
        let at = columns.iter().position(|known| *known == column).unwrap_or(columns.len());
        if at == columns.len() {
            columns.push(column);
        }
        let name = line(row);
        let place = lines.iter().position(|(known, _)| *known == name).unwrap_or(lines.len());
        if place == lines.len() {
            lines.push((name, Vec::new()));
        }
        let cells = &mut lines[place].1;
        cells.resize(cells.len().max(at + 1), String::new());
        cells[at] = cell(row);
    }
    let header = [String::new()].into_iter().chain(columns).collect();
    let lines = lines.into_iter().map(|(name, cells)| [name].into_iter().chain(cells).collect());
    grid(title, header, lines.collect())
}

/// Renders one row of ours.
fn cells(row: &Record, peer_rows: &[&Record], peers: &[&str]) -> Vec<String> {
    let text = |value: Option<f64>, show: fn(f64) -> String| value.map(show).unwrap_or_default();
    let mut cells = vec![
        row.operation.clone(),
        row.backend.clone(),
        if row.n > 0 { HumanCount(row.n).to_string() } else { String::new() },
        parameters(row),
        text(row.items_per_second, rate),
        text(row.bytes_per_second, rate),
        text(row.bits_per_item, |bits| format!("{bits:.2}")),
        text(row.fpr, percent),
        text(row.limit_fraction, |part| format!("{:.0} %", 100.0 * part)),
    ];
    let ratios = ratios(row, peer_rows.iter().copied());
    cells.extend(peers.iter().map(|peer| {
        let ratio = ratios.iter().find(|(name, _)| name == peer);
        ratio.map(|(_, ratio)| format!("{ratio:.2}")).unwrap_or_default()
    }));
    cells.push(if row.checked { "yes" } else { "" }.into());
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_pivot_into_a_grid() {
        let row = |name: &str, n: usize| Record::new("bloom", name, n);
        let rows = [row("a", 1), row("a", 2), row("b", 2)];
        let rows: Vec<&Record> = rows.iter().collect();
        let text =
            pivot("title", &rows, |row| row.operation.clone(), |row| row.n.to_string(), |row| format!("x{}", row.n));
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[1] == "title" && lines[5].contains("x1") && lines[6].contains('b') && !lines[6].contains("x1"),
            "{text}"
        );
    }

    #[test]
    fn a_table_shows_ratios_to_each_peer_and_no_empty_columns() {
        let row = || Record::new("bloom", "insert", 1_000_000).param("threads", 1);
        let ours = row().param("variant", "blocked").time(0.5);
        let peer = row().param("implementation", "fastbloom").time(1.5);
        let text = render(&[ours, peer]);
        assert!(text.contains("x fastbloom") && text.contains("3.00") && text.contains("1,000,000"), "{text}");
        assert!(!text.contains("FPR"), "{text}");
    }
}

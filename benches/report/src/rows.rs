//! From rows to series.

use super::chart::{Series, Style};
use super::page::Grid;
use bench_record::Record;

/// Returns the distinct values of `key` over the rows, in order of appearance.
pub fn groups<T: PartialEq>(rows: &[&Record], key: impl Fn(&Record) -> Option<T>) -> Vec<T> {
    let mut groups = Vec::new();
    for group in rows.iter().filter_map(|row| key(row)) {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups
}

/// Makes one series per group, coloured in order.
pub fn series<T: PartialEq + ToString>(
    rows: &[&Record],
    key: impl Fn(&Record) -> Option<T>,
    point: impl Fn(&Record) -> Option<(f64, f64)>,
    style: Style,
) -> Vec<Series> {
    let one = |(colour, group): (usize, T)| Series {
        name: group.to_string(),
        points: rows.iter().filter(|row| key(row).as_ref() == Some(&group)).filter_map(|row| point(row)).collect(),
        // Other libraries look different.
        style: match rows.iter().find(|row| key(row).as_ref() == Some(&group)) {
            Some(row) if row.implementation().is_some() => Style::Peer,
            _ => style,
        },
        colour,
    };
    groups(rows, &key).into_iter().enumerate().map(one).collect()
}

/// Returns the rows of a study.
pub fn study<'a>(rows: &[&'a Record], name: &str) -> Vec<&'a Record> {
    rows.iter().copied().filter(|row| row.text("study") == Some(name)).collect()
}

/// Makes the table of the screens among the rows: the truth beside the answers of each filter.
pub fn screens(name: &'static str, title: &str, caption: &str, rows: &[&Record]) -> Grid {
    let rows = rows.iter().filter(|row| row.operation == "screen");
    let count = |value: Option<f64>| value.map_or_else(String::new, |n| indicatif::HumanCount(n as u64).to_string());
    Grid {
        name,
        title: title.into(),
        caption: caption.into(),
        header: ["input", "filter", "on", "keys asked", "truly there", "filter says", "false positives", "expected"]
            .map(String::from)
            .into(),
        rows: rows
            .map(|row| {
                vec![
                    row.text("input").unwrap_or_default().into(),
                    row.text("variant").or(row.implementation()).unwrap_or_default().into(),
                    row.backend.clone(),
                    count(Some(row.n as f64)),
                    count(row.number("truth")),
                    count(row.number("said")),
                    count(row.number("false_positives")),
                    row.number("expected").map_or_else(String::new, |n| format!("{n:.1}")),
                ]
            })
            .collect(),
    }
}

//! From rows to series.

use super::chart::{Series, Style};
use crate::bench::record::Record;

/// The distinct values of `key` over the rows, in order of appearance.
pub fn groups<T: PartialEq>(rows: &[&Record], key: impl Fn(&Record) -> Option<T>) -> Vec<T> {
    let mut groups = Vec::new();
    for group in rows.iter().filter_map(|row| key(row)) {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups
}

/// One series a group, coloured in order.
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

/// The rows of a study.
pub fn study<'a>(rows: &[&'a Record], name: &str) -> Vec<&'a Record> {
    rows.iter().copied().filter(|row| row.text("study") == Some(name)).collect()
}

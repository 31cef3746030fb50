//! The lines on a terminal: at most 30 lines of at most 100 columns.

use std::collections::BTreeSet;

use super::{Line, Rival, lines, sentences};
use bench_record::Record;
use bench_record::file::Run;
use bench_record::show::rate;

/// Columns of a terminal that everybody has room for.
const WIDTH: usize = 100;

const HEADER: [&str; 9] = ["structure", "operation", "on", "n", "items/s", "bits", "limit", "peer", "ratio"];
/// The columns of words; the others are numbers, to the right.
const WORDS: [usize; 4] = [0, 1, 2, PEER];
const PEER: usize = 7;

const LEGEND: &str = "bits: of memory per item; limit: share of what the memory access or arithmetic that bounds this method reaches \
    alone in this run; peer: the fastest other library for the same work, of ordered dictionaries an ordered one, of perfect hash \
    functions one that is as small; ratio: times the rate of the peer; 8/100: leaf and bucket size.";

/// Renders the table of the lines, and a sentence per structure.
pub fn screen(run: &Run) -> String {
    let (yardsticks, ours): (Vec<_>, Vec<_>) =
        lines(std::slice::from_ref(run)).into_iter().partition(|line| line.is_yardstick);
    let mut text = table(&ours, &yardsticks);
    text += "\n";
    text += &wrap(LEGEND, "", "");
    text += "\n";
    let rivals: Vec<&Rival> = ours.iter().filter_map(|line| line.rival.as_ref()).collect();
    if let Some(rival) = rivals.first() {
        let dates: BTreeSet<&str> = rivals.iter().map(|rival| rival.date.as_str()).collect();
        let dates = dates.into_iter().collect::<Vec<_>>().join(" and ");
        let told = format!(
            "On a GPU the peer is a CUDA program with the rate that it reached on an {}, {dates}, at about this size; no ratio \
             stands where its work is not quite ours.",
            rival.gpu
        );
        text += &wrap(&told, "", "");
        text += "\n";
    }
    for sentence in sentences(run.rows.iter()) {
        text += "\n";
        text += &wrap(&sentence, "- ", "  ");
    }
    text
}

fn table(ours: &[Line<'_>], yardsticks: &[Line<'_>]) -> String {
    let mut rows = vec![HEADER.map(String::from)];
    let mut last = "";
    for line in ours.iter().chain(yardsticks) {
        let heading = if line.is_yardstick { "papers" } else { &line.row.structure };
        rows.push(cells(line, if heading == last { "" } else { heading }));
        last = heading;
    }
    let mut widths = [0; HEADER.len()];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    // A line that is too wide loses first letters of the peers' names, then of its longest words.
    while widths.iter().sum::<usize>() + 2 * (widths.len() - 1) > WIDTH {
        let longest = WORDS.into_iter().max_by_key(|&column| widths[column]).unwrap_or_default();
        widths[if widths[PEER] > 18 { PEER } else { longest }] -= 1;
    }
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| {
            let cell = cut(cell, width);
            if WORDS.contains(&column) { format!("{cell:width$}") } else { format!("{cell:>width$}") }
        });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text += "\n";
        if number == 0 {
            text += &"-".repeat(widths.iter().sum::<usize>() + 2 * (widths.len() - 1));
            text += "\n";
        }
    }
    text
}

fn cells(line: &Line<'_>, heading: &str) -> [String; HEADER.len()] {
    let row = line.row;
    let text = |value: Option<f64>, show: fn(f64) -> String| value.map(show).unwrap_or_default();
    [
        heading.to_owned(),
        line.title.clone(),
        line.on(),
        count(row.n as f64),
        text(row.items_per_second, rate),
        text(row.bits_per_item, |bits| format!("{bits:.2}")),
        text(row.limit_fraction, |part| format!("{:.0} %", 100.0 * part)),
        line.peer().unwrap_or_default(),
        text(line.ratio(), ratio),
    ]
}

/// Renders a ratio with two significant figures.
pub fn ratio(value: f64) -> String {
    if value < 0.1 {
        let digits = (1.0 - value.max(1e-9).log10().floor()) as usize;
        format!("{value:.digits$}")
    } else {
        format!("{value:.2}")
    }
}

/// Cuts a text to `width` letters; an ellipsis replaces the last one if some are missing.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// Renders a number of items in few letters: `2^24`, `4.55 M`.
pub fn count(n: f64) -> String {
    match n {
        n if n >= 1024.0 && n.log2().fract() == 0.0 => format!("2^{:.0}", n.log2()),
        n if n >= 1e9 => format!("{:.3} G", n / 1e9),
        n if n >= 1e6 => format!("{:.2} M", n / 1e6),
        n if n >= 1e3 => format!("{:.1} k", n / 1e3),
        n => format!("{n:.0}"),
    }
    .replace(".000 ", " ")
    .replace(".00 ", " ")
    .replace(".0 ", " ")
}

/// Describes a row: the operation, the variant, the threads.
pub fn what(row: &Record) -> String {
    let mut words = vec![row.operation.clone()];
    words.extend(row.text("variant").map(String::from));
    words.push(match row.number("threads") {
        Some(1.0) => "1 thread".into(),
        Some(threads) => format!("{threads} threads"),
        None => row.backend.clone(),
    });
    words.join(", ")
}

/// Wraps the text to lines of at most [`WIDTH`] columns, with a prefix for the first line and one for the others.
pub fn wrap(text: &str, first: &str, others: &str) -> String {
    let mut lines = vec![first.to_owned()];
    for word in text.split(' ') {
        let room = lines.last().is_some_and(|line| line.chars().count() + 1 + word.chars().count() <= WIDTH);
        match lines.last_mut() {
            Some(line) if room => {
                if !line.is_empty() && !line.ends_with(' ') {
                    line.push(' ');
                }
                line.push_str(word);
            }
            _ => lines.push(format!("{others}{word}")),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_have_figures() {
        assert_eq!([12.345, 0.5, 0.0666, 0.00123].map(ratio), ["12.35", "0.50", "0.067", "0.0012"]);
    }

    #[test]
    fn counts_are_short() {
        assert_eq!(
            [999.0, 1024.0, 1e6, 4_554_207.0, 1e8, 1e9].map(count),
            ["999", "2^10", "1 M", "4.55 M", "100 M", "1 G"]
        );
    }

    #[test]
    fn a_screen_has_a_hundred_columns() {
        let rows = ["insert", "contains hit", "test_and_insert"].map(|operation| {
            let row = Record::new("bloom", operation, 1_234_567).param("variant", "split block").param("threads", 16);
            let row = row.param("input", "generated").param("key", "u64").param("filter_bytes", 1 << 23);
            let mut row = row.time(0.5);
            (row.bits_per_item, row.limit_fraction) = (Some(16.0), Some(1.0));
            row.peer = Some("a library with a long name 0.123.456 and its hash".into());
            row.peer_ratio = Some(0.75);
            row
        });
        let text = screen(&Run { rows: rows.into(), ..Run::default() });
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.contains("a library with a") && text.contains('…') && text.contains("0.75"), "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with("bloom")).count(), 1);
        assert!(text.lines().count() <= 30);
    }
}

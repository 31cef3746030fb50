//! The rows that say most: one per structure and operation, on the screen after a run and at the top of the page.
//!
//! Which rows these are is data, in `lines.json`; nothing is chosen by its result, and a row that loses to a peer
//! stays.

mod rivals;
mod screen;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value};

use bench_record::Record;
use bench_record::file::{About, Run};
use bench_record::show::rate;

pub use rivals::Rival;
pub use screen::{count, ratio, screen, wrap};

const FILE: &str = include_str!("lines.json");

/// Contents of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lines {
    structures: Vec<Structure>,
    lines: Vec<Choice>,
    /// Prefixes of variants' names, by structure, that papers describe and users should avoid. These variants have rows
    /// of their own, which no summary counts.
    yardsticks: BTreeMap<String, Vec<String>>,
}

impl Lines {
    fn is_yardstick(&self, row: &Record) -> bool {
        let begins = |beginning: &String| row.text("variant").is_some_and(|variant| variant.starts_with(beginning));
        self.yardsticks.get(&row.structure).is_some_and(|beginnings| beginnings.iter().any(begins))
    }
}

/// A structure, in the order of the table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Structure {
    /// Name in rows.
    name: String,
    /// Name in sentences.
    plural: String,
}

/// Operation, with the choice of its representative row.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Choice {
    structure: String,
    /// Title of the line.
    title: String,
    /// Name of the operation in rows.
    operation: String,
    /// Parameters that the row must have, one of several where it is a list; `null`: must not have.
    #[serde(default)]
    params: Map<String, Value>,
    /// The backends: a line for each that has a row, the emulator in place of a GPU. `cuda or cpu` is one line.
    on: Vec<String>,
    /// Among several rows the one with the largest of these counts; then that on most threads, and of most items.
    #[serde(default)]
    largest: Vec<String>,
}

impl Choice {
    fn takes(&self, row: &Record, backend: &str) -> bool {
        let equal = |found: &Value, value: &Value| match found.as_f64() {
            Some(number) => value.as_f64() == Some(number),
            None => found == value,
        };
        let has = |(name, value): (&String, &Value)| match (row.params.get(name), value) {
            (found, Value::Null) => found.is_none(),
            (Some(found), Value::Array(values)) => values.iter().any(|value| equal(found, value)),
            (Some(found), value) => equal(found, value),
            (None, _) => false,
        };
        row.structure == self.structure
            && row.operation == self.operation
            && (row.backend == backend || (backend == "cuda" && row.backend == "emulator"))
            && row.implementation().is_none()
            && row.items_per_second.is_some()
            && self.params.iter().all(has)
    }

    /// Returns the representative row of the operation; one with a peer before others.
    fn row<'a>(&self, rows: &'a [Record], backend: &str) -> Option<&'a Record> {
        let size = |row: &Record| {
            let largest = self.largest.iter().map(|name| row.number(name).unwrap_or_default());
            let rest = [
                f64::from(u8::from(row.peer_ratio.is_some())),
                row.number("threads").unwrap_or_default(),
                row.n as f64,
            ];
            largest.chain(rest).collect::<Vec<f64>>()
        };
        let mut best: Option<&Record> = None;
        for row in rows.iter().filter(|row| self.takes(row, backend)) {
            if best.is_none_or(|best| size(row) > size(best)) {
                best = Some(row);
            }
        }
        best
    }
}

/// One line: an operation on a backend.
pub struct Line<'a> {
    /// Title of the operation.
    pub title: String,
    /// Representative row.
    pub row: &'a Record,
    /// Run of the row.
    pub about: &'a About,
    /// Whether it is a paper's method, shown beside ours.
    pub is_yardstick: bool,
    /// Rate of a CUDA program, for a row of a GPU.
    pub rival: Option<Rival>,
}

impl Line<'_> {
    /// Returns `cuda`, or the threads of the CPU.
    pub fn on(&self) -> String {
        match self.row.number("threads") {
            Some(threads) if self.row.backend == "cpu" => format!("cpu x{threads}"),
            _ => self.row.backend.clone(),
        }
    }

    /// Returns the fastest other library, or the CUDA program with its rate.
    pub fn peer(&self) -> Option<String> {
        let rival = self.rival.as_ref().map(|rival| format!("{} {}", rival.program, rate(rival.rate)));
        rival.or_else(|| self.row.peer.clone())
    }

    /// Returns our rate over the peer's; none if the CUDA program did other work or ran on another GPU.
    pub fn ratio(&self) -> Option<f64> {
        match &self.rival {
            Some(rival) => rival.is_like(self.row).then(|| Some(self.row.items_per_second? / rival.rate))?,
            None => self.row.peer_ratio,
        }
    }
}

fn lines_of_file() -> &'static Lines {
    static LINES: LazyLock<Lines> = LazyLock::new(|| serde_json::from_str(FILE).expect("a test reads it"));
    &LINES
}

/// Returns the lines that the runs have rows for, each from the first run that has one.
pub fn lines(runs: &[Run]) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let file = lines_of_file();
    let rivals = rivals::read();
    for choice in &file.lines {
        for backends in &choice.on {
            let of = |backend| runs.iter().find_map(|run| Some((choice.row(&run.rows, backend)?, &run.about)));
            let found = backends.split(" or ").find_map(of);
            lines.extend(found.map(|(row, about)| Line {
                title: choice.title.clone(),
                row,
                about,
                is_yardstick: file.is_yardstick(row),
                rival: rivals.of(&choice.title, row),
            }));
        }
    }
    lines
}

/// Whether a row measures a method that only a paper has.
pub fn is_only_in_papers(row: &Record) -> bool {
    row.structure != "bloom" && lines_of_file().is_yardstick(row)
}

/// Returns name and title of every structure, in the order of the table.
pub fn structures() -> Vec<(String, String)> {
    lines_of_file().structures.iter().map(|structure| (structure.name.clone(), structure.plural.clone())).collect()
}

/// Writes one sentence per structure with rows: how much was timed and verified, and the comparison with other
/// libraries.
pub fn sentences<'a>(rows: impl Iterator<Item = &'a Record> + Clone) -> Vec<String> {
    let file = lines_of_file();
    let rows = rows.filter(|row| !file.is_yardstick(row));
    file.structures.iter().filter_map(|structure| sentence(structure, rows.clone())).collect()
}

fn sentence<'a>(structure: &Structure, rows: impl Iterator<Item = &'a Record>) -> Option<String> {
    let ours: Vec<&Record> =
        rows.filter(|row| row.structure == structure.name && row.implementation().is_none()).collect();
    let timed = ours.iter().filter(|row| row.seconds.is_some()).count();
    let verified = ours.iter().filter(|row| row.seconds.is_some() && row.checked).count();
    if timed == 0 {
        return None;
    }
    let mut said = format!("{}: {timed} operations timed, {verified} of them verified", structure.plural);
    let mut compared: Vec<(f64, &Record)> = ours.iter().filter_map(|row| Some((row.peer_ratio?, *row))).collect();
    compared.sort_by(|a, b| a.0.total_cmp(&b.0));
    if let (Some(&(least, row)), Some(&(median, _))) = (compared.first(), compared.get(compared.len() / 2)) {
        let faster = compared.iter().filter(|(ratio, _)| *ratio >= 1.0).count();
        let (peer, what) = (row.peer.as_deref().unwrap_or_default(), screen::what(row));
        said += &format!(
            "; {faster} of {} as fast as the fastest other library or faster, median {} times, least {} ({what}, against {peer})",
            compared.len(),
            screen::ratio(median),
            screen::ratio(least),
        );
    }
    Some(said + ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(operation: &str, threads: u32, bytes: u64, seconds: f64) -> Record {
        let row = Record::new("bloom", operation, 1000).param("variant", "split block").param("input", "generated");
        row.param("key", "u64").param("threads", threads).param("filter_bytes", bytes).time(seconds)
    }

    #[test]
    fn the_file_is_read_and_fits_a_screen() {
        let file = lines_of_file();
        let most: usize = file.lines.iter().map(|choice| choice.on.len()).sum();
        assert!(most <= 30, "{most} lines and a head");
        assert!(file.yardsticks.keys().all(|name| file.structures.iter().any(|structure| structure.name == *name)));
        for choice in &file.lines {
            assert!(file.structures.iter().any(|structure| structure.name == choice.structure), "{}", choice.title);
        }
    }

    #[test]
    fn rows_are_chosen_by_size_and_not_by_result() {
        let mut slow = row("contains hit", 1, 4096, 2.0);
        (slow.peer, slow.peer_ratio) = (Some("another".into()), Some(0.5));
        let peer = row("contains hit", 1, 1 << 20, 0.1).param("implementation", "another");
        let other = row("contains hit", 2, 1 << 30, 0.1).param("study", "a study");
        let rows =
            vec![row("contains hit", 2, 1024, 0.1), slow.clone(), row("contains hit", 2, 4096, 1.0), peer, other];
        let runs = [Run { rows, ..Run::default() }];
        let lines = lines(&runs);
        assert_eq!(lines.len(), 1);
        assert_eq!((lines[0].row, lines[0].on().as_str()), (&slow, "cpu x1"));
        let said = sentences(runs[0].rows.iter());
        assert_eq!(said.len(), 1);
        assert!(said[0].starts_with("Bloom filters: 4 operations timed, 0 of them verified; 0 of 1"), "{said:?}");
        assert!(said[0].contains("least 0.50 (contains hit, split block") && said[0].contains("against another"));
    }

    #[test]
    fn yardsticks_count_in_no_summary() {
        let mut paper = Record::new("lsm", "insert batches", 10).time(1.0).param("variant", "as published");
        (paper.peer, paper.peer_ratio) = (Some("BTreeMap".into()), Some(0.01));
        let mut ours = paper.clone().param("variant", "lsm");
        ours.peer_ratio = Some(2.0);
        let said = sentences([&paper, &ours].into_iter());
        assert!(said[0].starts_with("Ordered dictionaries: 1 operation") && said[0].contains("least 2.00"), "{said:?}");
        let runs = [Run { rows: vec![paper], ..Run::default() }];
        assert!(lines(&runs)[0].is_yardstick);
    }

    #[test]
    fn rows_of_a_gpu_have_a_cuda_program_beside() {
        let mut row = Record::new("primitives", "sort", 1 << 24).time(1e-3).param("key", "u32");
        (row.backend, row.device) = ("cuda".into(), "NVIDIA H200, compute capability 9.0".into());
        let other = Record { device: "NVIDIA A100".into(), ..row.clone() };
        for (row, has_ratio) in [(row, true), (other, false)] {
            let runs = [Run { rows: vec![row], ..Run::default() }];
            let line = lines(&runs).remove(0);
            assert_eq!(line.peer().as_deref(), Some("CUB 3.5 36.40 G"));
            assert_eq!(line.ratio().is_some(), has_ratio);
        }
    }
}

//! Screens on real input: which of these keys are in that set? The exact truth beside what each filter says.

use crate::input::genome::Genome;
use indicatif::HumanCount;

use super::suite::{Session, Target, Threads};
use super::table::{grid, rate};
use bench_record::Record;

/// The false-positive rate that every filter is built for.
pub const FPR: f64 = 0.01;

/// Question of a screen: a set, and keys to look up, members first.
pub struct Screen<'a> {
    /// `bloom`, `quotient`.
    pub structure: &'static str,
    /// The input, for the rows.
    pub input: String,
    /// Name of the keys, for the sentence above the table.
    pub noun: &'a str,
    /// Their type, for the rows.
    pub key: &'static str,
    /// Source of the set.
    pub set: &'a str,
    /// Source of the keys that are looked up.
    pub asked_from: &'a str,
    /// Distinct keys in the set.
    pub distinct: usize,
    /// Number of keys to look up.
    pub asked: usize,
    /// Number of generated keys among them: the last ones.
    pub made: usize,
    /// Number of them that are in the set: the first ones.
    pub shared: usize,
}

/// Answers of a filter, with the times and memory behind them.
pub struct Said {
    /// Variant or peer.
    pub name: String,
    /// Whether it is a peer.
    pub peer: bool,
    /// `insert` or `build`.
    pub operation: &'static str,
    /// Keys that were inserted, repeated ones included.
    pub inserted: usize,
    /// Threads that inserted.
    pub threads: Threads,
    /// Seconds to insert them.
    pub build: f64,
    /// Seconds to ask for all keys.
    pub query: f64,
    /// Its memory, in bits.
    pub bits: f64,
    /// Bits per key that it sets, where we know them.
    pub hashes: Option<u32>,
    /// False positives that it promises, if it does.
    pub expected: Option<f64>,
    /// Whether a number of false positives agrees with that.
    pub agrees: fn(usize, f64) -> bool,
    /// Its answers.
    pub answers: Vec<bool>,
}

fn count(n: usize) -> String {
    HumanCount(n as u64).to_string()
}

impl<'a> Screen<'a> {
    /// Prepares the question which k-mers of a sample are in a reference. Returns it with the k-mers to look up.
    pub fn of_genomes(structure: &'static str, reference: &'a Genome, sample: &'a Genome) -> (Self, Vec<u64>) {
        let (mut asked, absent) = sample.screen(reference);
        let shared = asked.len();
        asked.extend(absent);
        let screen = Screen {
            structure,
            input: format!("{} in {}", sample.name, reference.name),
            noun: "distinct 31-mers",
            key: "u64",
            set: &reference.name,
            asked_from: &sample.name,
            distinct: reference.distinct.len(),
            asked: asked.len(),
            made: 0,
            shared,
        };
        (screen, asked)
    }

    /// Compares the answers with the truth: adds the rows, and returns the line of the table.
    pub fn judge(&self, session: &mut Session, target: &Target, said: &Said) -> Vec<String> {
        let (inside, outside) = said.answers.split_at(self.shared);
        let missed = inside.iter().filter(|answer| !**answer).count();
        let false_positives = outside.iter().filter(|answer| **answer).count();
        let yes = inside.len() - missed + false_positives;
        let right = missed == 0 && said.expected.is_none_or(|expected| (said.agrees)(false_positives, expected));
        let bits_per_key = said.bits / self.distinct as f64;
        let row = |operation: &str, n: usize, seconds: f64| {
            let row = Record::new(self.structure, operation, n).time(seconds).by(said.name.clone(), said.peer);
            let mut row = row.param("input", self.input.clone()).param("key", self.key);
            if let Some(hashes) = said.hashes {
                row = row.param("hashes", hashes);
            }
            row.bits_per_item = Some(bits_per_key);
            row
        };
        session.add(target, said.threads, row(said.operation, said.inserted, said.build), right);
        let mut query = row("screen", self.asked, said.query).param("truth", self.shared).param("said", yes);
        query = query.param("false_positives", false_positives);
        if let Some(expected) = said.expected {
            query = query.param("expected", expected);
        }
        query.fpr = (!outside.is_empty()).then(|| false_positives as f64 / outside.len() as f64);
        session.add(target, Threads::All, query, right);
        vec![
            said.name.clone(),
            target.name().into(),
            format!("{bits_per_key:.2}"),
            count(yes),
            count(missed),
            count(false_positives),
            said.expected.map_or_else(String::new, |expected| format!("{expected:.1}")),
            rate(said.inserted as f64 / said.build),
            rate(self.asked as f64 / said.query),
        ]
    }

    /// Prints the lines, under the truth.
    pub fn print(&self, session: &Session, mut lines: Vec<Vec<String>>) {
        let header =
            ["filter", "on", "bits/key", "says yes", "missed", "false positives", "expected", "inserts/s", "queries/s"];
        let shared = count(self.shared);
        lines.insert(0, ["(the truth)", "", "", &shared, "0", "0", "", "", ""].map(String::from).into());
        session.print(&grid(&self.question(), header.map(String::from).into(), lines));
    }

    /// Writes the sentence above the table. It counts generated keys apart from those of the input.
    fn question(&self) -> String {
        let made = match self.made {
            0 => String::new(),
            made => format!(" and of {} others, made for the test,", count(made)),
        };
        format!(
            "Which of {} {} of {}{made} are in {} ({} distinct)? Filters built for {} % false positives.",
            count(self.asked - self.made),
            self.noun,
            self.asked_from,
            self.set,
            count(self.distinct),
            100.0 * FPR
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_counts_keys_that_were_made_apart_from_those_that_were_brought() {
        let screen = Screen {
            structure: "bloom",
            input: "your keys".into(),
            noun: "distinct keys",
            key: "string",
            set: "your file",
            asked_from: "your file",
            distinct: 1500,
            asked: 2998,
            made: 1498,
            shared: 1500,
        };
        assert_eq!(
            screen.question(),
            "Which of 1,500 distinct keys of your file and of 1,498 others, made for the test, are in your file (1,500 \
             distinct)? Filters built for 1 % false positives."
        );
        let brought = Screen { noun: "keys", asked_from: "your second file", made: 0, ..screen };
        assert!(brought.question().starts_with("Which of 2,998 keys of your second file are in your file (1,500"));
    }
}

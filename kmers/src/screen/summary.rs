//! Totals of a screening, and its summary as JSON.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::batch::Batch;
use super::decide::Decision;
use super::split::{COUNTS, MATCHED, UNMATCHED};
use super::{By, Screening};
use crate::{OddLetters, Pairing, checksum};

/// Numbers of reads and bases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Screened {
    /// Reads that match, both mates of pairs.
    pub matched: u64,
    /// Reads that do not match.
    pub unmatched: u64,
    /// Letters of reads that match.
    pub matched_bases: u64,
    /// Letters of reads that do not match.
    pub unmatched_bases: u64,
    /// Letters of all reads other than A, C, G, T.
    pub odd_letters: OddLetters,
}

impl Screened {
    /// Adds a batch.
    pub(super) fn add(&mut self, batch: &Batch, decisions: &[Decision]) {
        self.odd_letters += batch.odd_letters();
        for (unit, decision) in decisions.iter().enumerate() {
            let mates = unit * batch.mates()..(unit + 1) * batch.mates();
            let bases = mates.map(|record| batch.letters_len(record) as u64).sum::<u64>();
            let (reads, letters) = match decision.matches {
                true => (&mut self.matched, &mut self.matched_bases),
                false => (&mut self.unmatched, &mut self.unmatched_bases),
            };
            *reads += batch.mates() as u64;
            *letters += bases;
        }
    }

    /// Returns the sum of both.
    pub(super) fn plus(self, other: Screened) -> Screened {
        let mut odd_letters = self.odd_letters;
        odd_letters += other.odd_letters;
        Screened {
            odd_letters,
            matched: self.matched + other.matched,
            unmatched: self.unmatched + other.unmatched,
            matched_bases: self.matched_bases + other.matched_bases,
            unmatched_bases: self.unmatched_bases + other.unmatched_bases,
        }
    }
}

/// Fields of the summary.
#[derive(Serialize)]
struct Summary {
    version: &'static str,
    files: Vec<String>,
    matched: Option<String>,
    matched_mates: Option<String>,
    unmatched: Option<String>,
    unmatched_mates: Option<String>,
    counts: Option<String>,
    index: Option<String>,
    index_checksum: Option<String>,
    k: u32,
    w: Option<u32>,
    kind: String,
    kmers: u64,
    min_hits: u64,
    min_share: f64,
    prefix: usize,
    paired: bool,
    pairs: Option<u64>,
    pairs_matched: Option<u64>,
    reads: u64,
    reads_matched: u64,
    reads_unmatched: u64,
    share_matched: f64,
    bases: u64,
    bases_matched: u64,
    bases_unmatched: u64,
    /// Letters that ended k-mers.
    other_letters: u64,
    /// Letters U, read as T.
    uracils: u64,
    seconds: f64,
    bases_per_second: u64,
}

/// Returns a path as text, with replacement characters for other bytes.
fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

impl Screening<'_> {
    /// Returns the outcome of [`run`](Screening::run) as a JSON object: files, settings, numbers of reads and bases,
    /// and `time`.
    pub fn summary(&self, files: &[PathBuf], screened: &Screened, time: Duration) -> String {
        let output = |which: usize| self.outputs[which].as_deref().map(shown);
        let (reads, bases) = (screened.matched + screened.unmatched, screened.matched_bases + screened.unmatched_bases);
        let seconds = time.as_secs_f64();
        let is_paired = self.pairing != Pairing::Single;
        let (k, w, kind, kmers) = match self.by {
            By::Table(table) => (table.k().get(), None, "table".to_owned(), table.distinct()),
            By::Labels(labels) => (labels.k().get(), None, "labels".to_owned(), labels.len()),
            By::Index(index) => (index.k().get(), Some(index.w()), index.kind().to_string(), index.len()),
        };
        let summary = Summary {
            version: concat!("kmers ", env!("CARGO_PKG_VERSION")),
            files: files.iter().map(|path| shown(path)).collect(),
            matched: output(MATCHED),
            matched_mates: output(MATCHED + 1),
            unmatched: output(UNMATCHED),
            unmatched_mates: output(UNMATCHED + 1),
            counts: output(COUNTS),
            index: self.index_file.as_deref().map(shown),
            index_checksum: self.index_file.as_deref().and_then(|path| checksum(path).ok()),
            k,
            w,
            kind,
            kmers,
            min_hits: self.rule.hits(),
            min_share: self.rule.share(),
            prefix: if self.prefix == usize::MAX { 0 } else { self.prefix },
            paired: is_paired,
            pairs: is_paired.then_some(reads / 2),
            pairs_matched: is_paired.then_some(screened.matched / 2),
            reads,
            reads_matched: screened.matched,
            reads_unmatched: screened.unmatched,
            share_matched: screened.matched as f64 / reads.max(1) as f64,
            bases,
            bases_matched: screened.matched_bases,
            bases_unmatched: screened.unmatched_bases,
            other_letters: screened.odd_letters.others,
            uracils: screened.odd_letters.uracils,
            seconds,
            bases_per_second: (bases as f64 / seconds.max(1e-9)) as u64,
        };
        // Text and numbers always serialise.
        serde_json::to_string_pretty(&summary).unwrap_or_default()
    }
}

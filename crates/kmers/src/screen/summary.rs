//! What came of a screening, as JSON.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::{COUNTS, MATCHED, Screened, Screening, UNMATCHED};
use crate::Pairing;

/// The fields of the summary.
#[derive(Serialize)]
struct Summary<'a> {
    version: &'static str,
    files: &'a [PathBuf],
    matched: Option<&'a PathBuf>,
    matched_mates: Option<&'a PathBuf>,
    unmatched: Option<&'a PathBuf>,
    unmatched_mates: Option<&'a PathBuf>,
    counts: Option<&'a PathBuf>,
    k: u32,
    w: Option<u32>,
    kind: String,
    min_hits: u64,
    min_share: f64,
    prefix: usize,
    paired: bool,
    reads: u64,
    reads_matched: u64,
    reads_unmatched: u64,
    share_matched: f64,
    bases: u64,
    bases_matched: u64,
    bases_unmatched: u64,
    seconds: f64,
    bases_per_second: u64,
}

impl Screening<'_> {
    /// What came of [`run`](Screening::run) in this time, as a JSON object: files, settings, and numbers of reads and
    /// bases.
    pub fn summary(&self, files: &[PathBuf], screened: &Screened, time: Duration) -> String {
        let output = |which: usize| self.outputs[which].as_ref();
        let (reads, bases) = (screened.matched + screened.unmatched, screened.matched_bases + screened.unmatched_bases);
        let seconds = time.as_secs_f64();
        let (k, w, kind) = match self.by {
            super::By::Table(table) => (table.k().get(), None, "table".to_owned()),
            super::By::Index(index) => (index.k().get(), Some(index.w()), index.kind().to_string()),
        };
        let summary = Summary {
            version: concat!("kmers ", env!("CARGO_PKG_VERSION")),
            files,
            matched: output(MATCHED),
            matched_mates: output(MATCHED + 1),
            unmatched: output(UNMATCHED),
            unmatched_mates: output(UNMATCHED + 1),
            counts: output(COUNTS),
            k,
            w,
            kind,
            min_hits: self.rule.hits(),
            min_share: self.rule.share(),
            prefix: if self.prefix == usize::MAX { 0 } else { self.prefix },
            paired: self.pairing != Pairing::Single,
            reads,
            reads_matched: screened.matched,
            reads_unmatched: screened.unmatched,
            share_matched: screened.matched as f64 / reads.max(1) as f64,
            bases,
            bases_matched: screened.matched_bases,
            bases_unmatched: screened.unmatched_bases,
            seconds,
            bases_per_second: (bases as f64 / seconds.max(1e-9)) as u64,
        };
        // Paths that are no text have no JSON: the names then are what can be shown of them.
        serde_json::to_string_pretty(&summary).unwrap_or_else(|error| format!("{{\"error\": {:?}}}", error.to_string()))
    }
}

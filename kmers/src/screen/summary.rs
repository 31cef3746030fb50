//! What came of a screening, as JSON.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::{COUNTS, MATCHED, Screened, Screening, UNMATCHED};
use crate::{Pairing, checksum};

/// The fields of the summary.
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
    /// Letters that ended k-mers, and letters U, read as T.
    other_letters: u64,
    uracils: u64,
    seconds: f64,
    bases_per_second: u64,
}

/// Shows a path, or what can be shown of one that is no text.
fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

impl Screening<'_> {
    /// Describes what came of [`run`](Screening::run) in this time, as a JSON object: files, settings, and numbers of
    /// reads and bases.
    pub fn summary(&self, files: &[PathBuf], screened: &Screened, time: Duration) -> String {
        let output = |which: usize| self.outputs[which].as_deref().map(shown);
        let (reads, bases) = (screened.matched + screened.unmatched, screened.matched_bases + screened.unmatched_bases);
        let seconds = time.as_secs_f64();
        let is_paired = self.pairing != Pairing::Single;
        let (k, w, kind, kmers) = match self.by {
            super::By::Table(table) => (table.k().get(), None, "table".to_owned(), table.distinct()),
            super::By::Index(index) => (index.k().get(), Some(index.w()), index.kind().to_string(), index.len()),
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
        // Text and numbers always have JSON.
        serde_json::to_string_pretty(&summary).unwrap_or_default()
    }
}

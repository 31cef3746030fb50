//! Decisions by all windows of `k` bases in a table of k-mers.

use warpset_base::filter::Filter;

use super::batch::Batch;
use super::decide::{AtOnce, Decider, Decision, Immediate, Worker};
use super::rule::Rule;
use crate::{Error, Roll, Table};

/// K-mers per lookup call, about.
const LOOKUPS: usize = 1 << 12;

/// Decider by the k-mers of a table.
pub(crate) struct ByWindows<'a> {
    pub(crate) table: &'a Table,
    pub(crate) rule: Rule,
    /// Number of bases of each read to look at.
    pub(crate) prefix: usize,
}

struct Windows<'a> {
    by: &'a ByWindows<'a>,
    kmers: Vec<u64>,
    /// End of the k-mers of each unit.
    ends: Vec<usize>,
}

impl Decider for ByWindows<'_> {
    fn worker(&self, _: bool) -> Result<Box<dyn Worker + '_>, Error> {
        Ok(Box::new(Immediate::new(Windows { by: self, kmers: Vec::new(), ends: Vec::new() })))
    }
}

impl Windows<'_> {
    /// Looks up the gathered k-mers.
    fn look_up(&mut self, decisions: &mut Vec<Decision>) {
        let found = self.by.table.filter().contains_bulk(&self.kmers).expect("lookups in host memory do not fail");
        let mut begin = 0;
        for end in self.ends.drain(..) {
            let found = &found[std::mem::replace(&mut begin, end)..end];
            let (hits, total) = (found.iter().filter(|found| **found).count() as u64, found.len() as u64);
            decisions.push(Decision { matches: self.by.rule.matches(hits, total), hits, total });
        }
        self.kmers.clear();
    }
}

impl AtOnce for Windows<'_> {
    fn decide(&mut self, batch: &Batch, decisions: &mut Vec<Decision>) {
        for unit in 0..batch.units() {
            for letters in batch.letters_of_unit(unit) {
                let letters = &letters[..letters.len().min(self.by.prefix)];
                Roll::new(self.by.table.k()).each(letters, |kmer| self.kmers.push(kmer));
            }
            self.ends.push(self.kmers.len());
            if self.kmers.len() >= LOOKUPS {
                self.look_up(decisions);
            }
        }
        self.look_up(decisions);
    }
}

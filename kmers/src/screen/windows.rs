//! Decisions by all windows of `k` bases: in a table of k-mers, or by the votes of their labels.

use std::fmt::Write;

use super::batch::Batch;
use super::decide::{AtOnce, Decider, Decision, Immediate, Worker};
use super::rule::Rule;
use crate::labels::MOST_GENOMES;
use crate::word::Word;
use crate::{Error, K, Labels, Roll, Table};

/// K-mers per lookup call, about.
const LOOKUPS: usize = 1 << 12;

/// Way to look up k-mers, given with the end of the k-mers of each unit, and to append the decision on each unit.
type Decide<'a, W> = dyn Fn(&[W], &[usize], &mut Vec<Decision>) + Sync + 'a;

/// Decider by k-mers.
pub(crate) struct ByWindows<'a, W> {
    k: K,
    /// Number of bases of each read to look at.
    prefix: usize,
    decide: Box<Decide<'a, W>>,
}

impl<'a, W: Word> ByWindows<'a, W> {
    /// Decides by the k-mers in a table.
    pub(crate) fn of_table(table: &'a Table, rule: Rule, prefix: usize) -> ByWindows<'a, W> {
        let decide = move |kmers: &[W], ends: &[usize], decisions: &mut Vec<Decision>| {
            let found = table.contains_bulk(kmers);
            decisions.extend(units(&found, ends).map(|found| {
                let (hits, total) = (found.iter().filter(|found| **found).count() as u64, found.len() as u64);
                Decision::new(rule.matches(hits, total), hits, total)
            }));
        };
        ByWindows { k: table.k(), prefix, decide: Box::new(decide) }
    }

    /// Decides by the genome with most k-mers, which no other genome has; `counts` asks for the fields of all votes.
    pub(crate) fn of_labels(labels: &'a Labels, rule: Rule, prefix: usize, counts: bool) -> ByWindows<'a, W> {
        let decide = move |kmers: &[W], ends: &[usize], decisions: &mut Vec<Decision>| {
            let found = labels.numbers(kmers);
            decisions.extend(units(&found, ends).map(|found| vote(labels, rule, found, counts)));
        };
        ByWindows { k: labels.k(), prefix, decide: Box::new(decide) }
    }
}

/// Splits the answers for k-mers by units.
fn units<'a, A>(answers: &'a [A], ends: &'a [usize]) -> impl Iterator<Item = &'a [A]> {
    let mut begin = 0;
    ends.iter().map(move |&end| &answers[std::mem::replace(&mut begin, end)..end])
}

/// Decides for the genome with most votes, if the rule is met and no other genome has as many.
fn vote(labels: &Labels, rule: Rule, found: &[Option<u8>], counts: bool) -> Decision {
    let mut votes = [0u64; MOST_GENOMES + 1];
    found.iter().flatten().for_each(|&number| votes[usize::from(number)] += 1);
    let (names, total) = (labels.genomes(), found.len() as u64);
    // Numbers of no genome are false.
    let (several, votes) = (votes[0], &votes[1..=names.len()]);
    let hits = votes.iter().copied().max().unwrap_or(0);
    let mut winners = votes.iter().zip(names).filter(|(votes, _)| **votes == hits).map(|(_, name)| name);
    let winner = winners.next().filter(|_| hits > 0 && winners.next().is_none() && rule.matches(hits, total));
    let mut decision = Decision::new(winner.is_some(), hits, total);
    if counts {
        let fields = &mut decision.fields;
        let mut sorted: Vec<(u64, usize)> = votes.iter().copied().zip(1..).filter(|&(votes, _)| votes > 0).collect();
        sorted.sort_unstable_by_key(|&(votes, number)| (std::cmp::Reverse(votes), number));
        // Writing to a string does not fail.
        let _ = write!(fields, "{}\t{hits}\t{several}\t{total}\t", winner.map_or("-", String::as_str));
        let mut comma = "";
        for (votes, number) in &sorted {
            let _ = write!(fields, "{comma}{number}:{votes}");
            comma = ",";
        }
        if sorted.is_empty() {
            fields.push('-');
        }
    }
    decision
}

struct Windows<'a, W> {
    by: &'a ByWindows<'a, W>,
    kmers: Vec<W>,
    /// End of the k-mers of each unit.
    ends: Vec<usize>,
}

impl<W: Word> Decider for ByWindows<'_, W> {
    fn worker(&self, _: bool) -> Result<Box<dyn Worker + '_>, Error> {
        Ok(Box::new(Immediate::new(Windows { by: self, kmers: Vec::new(), ends: Vec::new() })))
    }
}

impl<W: Word> Windows<'_, W> {
    /// Looks up the gathered k-mers.
    fn look_up(&mut self, decisions: &mut Vec<Decision>) {
        (self.by.decide)(&self.kmers, &self.ends, decisions);
        self.kmers.clear();
        self.ends.clear();
    }
}

impl<W: Word> AtOnce for Windows<'_, W> {
    fn decide(&mut self, batch: &Batch, decisions: &mut Vec<Decision>) {
        for unit in 0..batch.units() {
            for letters in batch.letters_of_unit(unit) {
                let letters = &letters[..letters.len().min(self.by.prefix)];
                Roll::of(self.by.k).each(letters, |kmer| self.kmers.push(kmer));
            }
            self.ends.push(self.kmers.len());
            if self.kmers.len() >= LOOKUPS {
                self.look_up(decisions);
            }
        }
        self.look_up(decisions);
    }
}
